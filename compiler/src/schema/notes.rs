//! The annotations of an action schema. They mean nothing to a check; whoever is handed the schema again
//! finds them where they stood. Those of common types go, as these do, except on the attributes of a
//! context or a shape that is nothing but the name of one.

use crate::value::EntityUid;
use dogwood_grammar::ast::action_schema::{
    ActionSchemaFile, DeclKind, EntityBody, RecordTy, Ty, TyKind,
};
use dogwood_grammar::ast::{Annotation, Name};
use smol_str::{SmolStr, format_smolstr};
use std::collections::BTreeMap;

/// What an annotation stands at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Annotated {
    /// By name; empty outside any namespace.
    Namespace(SmolStr),
    EntityType(SmolStr),
    Action(EntityUid),
}

/// Annotations, by what they stand at: the declaration, or an attribute below it by the labels on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    all: BTreeMap<(Annotated, Vec<SmolStr>), BTreeMap<SmolStr, SmolStr>>,
}

impl Notes {
    /// Those of a schema without errors.
    pub fn of(file: &ActionSchemaFile) -> Notes {
        let mut collector = Collector {
            notes: Notes::default(),
            types: BTreeMap::new(),
        };
        for namespace in &file.namespaces {
            let space = text(namespace.name.as_ref());
            for decl in &namespace.decls {
                if let DeclKind::Type { name, ty } = &decl.kind {
                    let full = qualified(&space, &name.text);
                    collector.types.insert(full, (space.clone(), ty));
                }
            }
        }
        for namespace in &file.namespaces {
            let space = text(namespace.name.as_ref());
            let place = Annotated::Namespace(space.clone());
            collector.add(&place, &[], &namespace.annotations);
            for decl in &namespace.decls {
                match &decl.kind {
                    DeclKind::Entity { names, body } => {
                        for name in names {
                            let place = Annotated::EntityType(qualified(&space, &name.text));
                            collector.add(&place, &[], &decl.annotations);
                            if let EntityBody::Standard {
                                attrs: Some(attrs), ..
                            } = body
                            {
                                collector.record(&place, &mut Vec::new(), attrs);
                            }
                        }
                    }
                    DeclKind::Action {
                        names, applies_to, ..
                    } => {
                        for name in names {
                            let ty = qualified(&space, "Action");
                            let place = Annotated::Action(EntityUid::new(ty, name.value.clone()));
                            collector.add(&place, &[], &decl.annotations);
                            let context = applies_to.as_ref().and_then(|a| a.context.as_ref());
                            if let Some(record) = context.and_then(|ty| collector.shape(&space, ty))
                            {
                                collector.record(&place, &mut Vec::new(), record);
                            }
                        }
                    }
                    DeclKind::Type { .. } | DeclKind::Broken => {}
                }
            }
        }
        collector.notes
    }

    /// Keys and values of what stands there.
    pub fn at(
        &self,
        place: &Annotated,
        path: &[SmolStr],
    ) -> impl Iterator<Item = (&SmolStr, &SmolStr)> {
        let key = (place.clone(), path.to_vec());
        self.all.get(&key).into_iter().flatten()
    }
}

struct Collector<'f> {
    notes: Notes,
    /// Common types, with the namespaces they are in.
    types: BTreeMap<SmolStr, (SmolStr, &'f Ty)>,
}

impl<'f> Collector<'f> {
    fn add(&mut self, place: &Annotated, path: &[SmolStr], notes: &[Annotation]) {
        if notes.is_empty() {
            return;
        }
        let written = notes.iter().map(|note| {
            let value = note.value.as_ref();
            let value = value.map_or_else(SmolStr::default, |value| value.value.clone());
            (note.key.text.clone(), value)
        });
        let key = (place.clone(), path.to_vec());
        self.notes.all.entry(key).or_default().extend(written);
    }

    /// The attributes of a record and of the records directly below.
    fn record(&mut self, place: &Annotated, path: &mut Vec<SmolStr>, record: &RecordTy) {
        for attr in &record.attrs {
            path.push(attr.name.value.clone());
            self.add(place, path, &attr.annotations);
            if let TyKind::Record(below) = &attr.ty.kind {
                self.record(place, path, below);
            }
            path.pop();
        }
    }

    /// The record a context is, if need be by way of names.
    fn shape(&self, namespace: &str, ty: &'f Ty) -> Option<&'f RecordTy> {
        let (mut namespace, mut ty) = (SmolStr::new(namespace), ty);
        // A schema without errors has no circles; this is for one with them.
        for _ in 0..=self.types.len() {
            match &ty.kind {
                TyKind::Record(record) => return Some(record),
                TyKind::Name(name) => {
                    let near = qualified(&namespace, &name.text());
                    let found = self
                        .types
                        .get(&near)
                        .or_else(|| self.types.get(&name.text()));
                    (namespace, ty) = found.map(|(space, ty)| (space.clone(), *ty))?;
                }
                TyKind::Set(_) | TyKind::Error => return None,
            }
        }
        None
    }
}

fn text(name: Option<&Name>) -> SmolStr {
    name.map_or_else(SmolStr::default, Name::text)
}

fn qualified(namespace: &str, name: &str) -> SmolStr {
    if namespace.is_empty() {
        SmolStr::new(name)
    } else {
        format_smolstr!("{namespace}::{name}")
    }
}
