//! Resolved schemas back into trees, and trees as Cedar's JSON.
//!
//! Common types are written out in a resolved schema, so the tree has none; every name stands in full.

use super::{ActionSchema, Annotated, AttrType, RecordType, Type};
use crate::value::EntityUid;
use dogwood_grammar::Span;
use dogwood_grammar::ast::action_schema::{
    ActionRef, ActionSchemaFile, AppliesTo, AttrDecl, Decl, DeclKind, EntityBody, Namespace,
    RecordTy, Ty, TyKind,
};
use dogwood_grammar::ast::{Annotation, Ident, Name, Str};
use serde_json::{Map, Value, json};
use smol_str::{SmolStr, format_smolstr};
use std::collections::BTreeMap;

/// A tree that resolves to this schema.
pub fn tree(schema: &ActionSchema) -> ActionSchemaFile {
    let mut namespaces: BTreeMap<SmolStr, Vec<Decl>> = BTreeMap::new();
    for (name, entity) in &schema.entity_types {
        let (namespace, base) = split(name);
        let place = Annotated::EntityType(name.clone());
        let writer = Writer {
            schema,
            place: Some(&place),
        };
        let body = match &entity.choices {
            Some(choices) => EntityBody::Enum(choices.iter().map(|id| string(id)).collect()),
            None => EntityBody::Standard {
                parents: entity
                    .parents
                    .iter()
                    .map(|parent| self::name(parent))
                    .collect(),
                attrs: (!entity.attrs.attrs.is_empty()).then(|| writer.shape(&entity.attrs)),
                tags: entity.tags.as_ref().map(|ty| self::ty(schema, ty)),
            },
        };
        let names = vec![ident(base)];
        let decls = namespaces.entry(SmolStr::new(namespace)).or_default();
        let notes = annotations(schema, &place, &[]);
        decls.push(Decl {
            annotations: notes,
            ..decl(DeclKind::Entity { names, body })
        });
    }
    for (uid, action) in &schema.actions {
        let place = Annotated::Action(uid.clone());
        let writer = Writer {
            schema,
            place: Some(&place),
        };
        let applies_to = action.applies_to.as_ref().map(|applies| AppliesTo {
            principals: applies.principals.iter().map(|ty| name(ty)).collect(),
            resources: applies.resources.iter().map(|ty| name(ty)).collect(),
            context: Some(ty_of(TyKind::Record(writer.shape(&applies.context)))),
            span: Span::default(),
        });
        let kind = DeclKind::Action {
            names: vec![string(&uid.id)],
            parents: action.parents.iter().map(action_ref).collect(),
            applies_to,
        };
        let namespace = SmolStr::new(split(&uid.ty).0);
        namespaces.entry(namespace).or_default().push(Decl {
            annotations: annotations(schema, &place, &[]),
            ..decl(kind)
        });
    }
    let namespaces = namespaces
        .into_iter()
        .map(|(namespace, decls)| Namespace {
            annotations: annotations(schema, &Annotated::Namespace(namespace.clone()), &[]),
            name: (!namespace.is_empty()).then(|| name(&namespace)),
            decls,
            span: Span::default(),
        })
        .collect();
    ActionSchemaFile { namespaces }
}

/// A type of that schema as a tree.
pub(crate) fn ty(schema: &ActionSchema, ty: &Type) -> Ty {
    let place = None;
    Writer { schema, place }.ty(ty, &mut Vec::new())
}

fn annotations(schema: &ActionSchema, place: &Annotated, path: &[SmolStr]) -> Vec<Annotation> {
    let notes = schema.notes.at(place, path);
    notes.map(|(key, value)| annotation(key, value)).collect()
}

struct Writer<'s> {
    schema: &'s ActionSchema,
    /// Whose attributes these are, if they have annotations.
    place: Option<&'s Annotated>,
}

impl Writer<'_> {
    fn shape(&self, record: &RecordType) -> RecordTy {
        self.record(record, &mut Vec::new())
    }

    fn ty(&self, ty: &Type, path: &mut Vec<SmolStr>) -> Ty {
        ty_of(match ty {
            Type::Bool => self.builtin("Bool"),
            Type::Long => self.builtin("Long"),
            Type::String => self.builtin("String"),
            Type::Ext(extension) => self.builtin(extension.name()),
            Type::Entity(entity) => TyKind::Name(name(entity)),
            Type::Set(element) => TyKind::Set(Box::new(self.ty(element, path))),
            Type::Record(record) => TyKind::Record(self.record(record, path)),
        })
    }

    /// The name of a built-in type; in full where an entity type is called the same.
    fn builtin(&self, base: &str) -> TyKind {
        let hidden = self
            .schema
            .entity_types
            .keys()
            .any(|entity| split(entity).1 == base);
        TyKind::Name(if hidden {
            name(&format_smolstr!("__cedar::{base}"))
        } else {
            name(base)
        })
    }

    fn record(&self, record: &RecordType, path: &mut Vec<SmolStr>) -> RecordTy {
        let mut attr = |(label, attr): (&SmolStr, &AttrType)| {
            path.push(label.clone());
            let notes = self
                .place
                .map(|place| annotations(self.schema, place, path));
            let decl = AttrDecl {
                annotations: notes.unwrap_or_default(),
                name: string(label),
                optional: !attr.required,
                ty: self.ty(&attr.ty, path),
                span: Span::default(),
            };
            path.pop();
            decl
        };
        RecordTy {
            attrs: record.attrs.iter().map(&mut attr).collect(),
            span: Span::default(),
        }
    }
}

/// `A::B::C` as `A::B` and `C`.
fn split(name: &str) -> (&str, &str) {
    name.rsplit_once("::").unwrap_or(("", name))
}

fn action_ref(uid: &EntityUid) -> ActionRef {
    ActionRef {
        ty: Some(name(&uid.ty)),
        id: string(&uid.id),
        span: Span::default(),
    }
}

/// Letters, digits and `_`, no digit first.
pub(crate) fn is_word(text: &str) -> bool {
    let mut chars = text.chars();
    let starts = chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    starts && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

// --------------------------------------------------------------------- nodes without a place

pub(crate) fn ident(text: &str) -> Ident {
    Ident {
        text: SmolStr::new(text),
        span: Span::default(),
    }
}

pub(crate) fn string(value: &str) -> Str {
    Str {
        value: SmolStr::new(value),
        span: Span::default(),
    }
}

pub(crate) fn name(text: &str) -> Name {
    Name {
        path: text.split("::").map(ident).collect(),
        span: Span::default(),
    }
}

pub(crate) fn annotation(key: &str, value: &str) -> Annotation {
    Annotation {
        key: ident(key),
        value: (!value.is_empty()).then(|| string(value)),
        span: Span::default(),
    }
}

pub(crate) fn decl(kind: DeclKind) -> Decl {
    Decl {
        annotations: Vec::new(),
        kind,
        span: Span::default(),
    }
}

pub(crate) fn ty_of(kind: TyKind) -> Ty {
    let depth = match &kind {
        TyKind::Set(element) => element.depth.saturating_add(1),
        TyKind::Record(record) => {
            let deepest = record.attrs.iter().map(|attr| attr.ty.depth).max();
            deepest.unwrap_or(0).saturating_add(1)
        }
        TyKind::Name(_) | TyKind::Error => 1,
    };
    Ty {
        kind,
        span: Span::default(),
        depth,
    }
}

// ------------------------------------------------------------------------------ Cedar's JSON

/// The schema in Cedar's JSON syntax.
pub fn to_json(file: &ActionSchemaFile) -> Value {
    let mut namespaces = Map::new();
    for namespace in &file.namespaces {
        let name = namespace
            .name
            .as_ref()
            .map_or_else(SmolStr::default, Name::text);
        let mut common = Map::new();
        let mut entities = Map::new();
        let mut actions = Map::new();
        for decl in &namespace.decls {
            match &decl.kind {
                DeclKind::Type { name, ty } => {
                    common.insert(
                        name.text.to_string(),
                        annotated(ty_json(ty), &decl.annotations),
                    );
                }
                DeclKind::Entity { names, body } => {
                    for name in names {
                        let json = annotated(entity_json(body), &decl.annotations);
                        entities.insert(name.text.to_string(), json);
                    }
                }
                DeclKind::Action {
                    names,
                    parents,
                    applies_to,
                } => {
                    for name in names {
                        let json = action_json(parents, applies_to.as_ref());
                        let json = annotated(json, &decl.annotations);
                        actions.insert(name.value.to_string(), json);
                    }
                }
                DeclKind::Broken => {}
            }
        }
        let mut json = json!({ "entityTypes": entities, "actions": actions });
        if !common.is_empty() {
            json["commonTypes"] = Value::Object(common);
        }
        namespaces.insert(name.to_string(), annotated(json, &namespace.annotations));
    }
    Value::Object(namespaces)
}

fn annotated(mut json: Value, notes: &[Annotation]) -> Value {
    if !notes.is_empty() {
        let notes: Map<String, Value> = notes
            .iter()
            .map(|note| {
                let value = note.value.as_ref().map_or("", |value| value.value.as_str());
                (note.key.text.to_string(), json!(value))
            })
            .collect();
        json["annotations"] = Value::Object(notes);
    }
    json
}

fn entity_json(body: &EntityBody) -> Value {
    match body {
        EntityBody::Enum(choices) => {
            let ids: Vec<&str> = choices.iter().map(|id| id.value.as_str()).collect();
            json!({ "enum": ids })
        }
        EntityBody::Standard {
            parents,
            attrs,
            tags,
        } => {
            let mut json = json!({ "memberOfTypes": names(parents) });
            if let Some(attrs) = attrs {
                json["shape"] = record_json(attrs);
            }
            if let Some(tags) = tags {
                json["tags"] = ty_json(tags);
            }
            json
        }
    }
}

fn names(names: &[Name]) -> Vec<String> {
    names.iter().map(|name| name.text().to_string()).collect()
}

fn action_json(parents: &[ActionRef], applies_to: Option<&AppliesTo>) -> Value {
    let parents: Vec<Value> = parents
        .iter()
        .map(|parent| match &parent.ty {
            Some(ty) => json!({ "id": parent.id.value, "type": ty.text() }),
            None => json!({ "id": parent.id.value }),
        })
        .collect();
    let mut json = json!({ "memberOf": parents });
    if let Some(applies) = applies_to {
        json["appliesTo"] = json!({
            "principalTypes": names(&applies.principals),
            "resourceTypes": names(&applies.resources),
        });
        if let Some(context) = &applies.context {
            json["appliesTo"]["context"] = ty_json(context);
        }
    }
    json
}

fn ty_json(ty: &Ty) -> Value {
    match &ty.kind {
        TyKind::Name(name) => json!({ "type": "EntityOrCommon", "name": name.text() }),
        TyKind::Set(element) => json!({ "type": "Set", "element": ty_json(element) }),
        TyKind::Record(record) => record_json(record),
        // A tree with such a node was rejected before.
        TyKind::Error => Value::Null,
    }
}

fn record_json(record: &RecordTy) -> Value {
    let attrs: Map<String, Value> = record
        .attrs
        .iter()
        .map(|attr| {
            let mut json = annotated(ty_json(&attr.ty), &attr.annotations);
            if attr.optional {
                json["required"] = json!(false);
            }
            (attr.name.value.to_string(), json)
        })
        .collect();
    json!({ "type": "Record", "attributes": attrs })
}
