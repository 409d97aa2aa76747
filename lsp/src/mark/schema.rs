//! The names of both kinds of schema.

use super::{Local, Marks, What};
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::ast::action_schema::*;
use dogwood_compiler::grammar::ast::event_schema::*;
use dogwood_compiler::grammar::ast::{Annotation, Ident, Name, Sigil, Window, WindowKind};
use dogwood_compiler::value::EntityUid;
use smol_str::{SmolStr, format_smolstr};
use std::collections::BTreeSet;

pub fn actions(file: &ActionSchemaFile, marks: &mut Marks) {
    let mut declared = BTreeSet::new();
    for namespace in &file.namespaces {
        let space = namespace.name.as_ref().map(Name::text);
        for decl in &namespace.decls {
            match &decl.kind {
                DeclKind::Entity { names, .. } => {
                    declared.extend(names.iter().map(|name| within(&space, &name.text)));
                }
                DeclKind::Type { name, .. } => {
                    declared.insert(within(&space, &name.text));
                }
                DeclKind::Action { .. } | DeclKind::Broken => {}
            }
        }
    }
    for namespace in &file.namespaces {
        let mut walk = Actions {
            space: namespace.name.as_ref().map(Name::text),
            declared: &declared,
            marks,
        };
        walk.notes(&namespace.annotations);
        namespace.decls.iter().for_each(|decl| walk.decl(decl));
    }
}

fn within(space: &Option<SmolStr>, name: &str) -> SmolStr {
    match space {
        Some(space) => format_smolstr!("{space}::{name}"),
        None => SmolStr::new(name),
    }
}

struct Actions<'a, 't> {
    space: Option<SmolStr>,
    declared: &'a BTreeSet<SmolStr>,
    marks: &'a mut Marks<'t>,
}

impl Actions<'_, '_> {
    fn notes(&mut self, notes: &[Annotation]) {
        for note in notes {
            self.marks
                .uses(note.key.span, What::Annotation(note.key.text.clone()));
        }
    }

    fn name(&mut self, name: &Name) {
        let text = name.text();
        let near = within(&self.space, &text);
        let full = if self.declared.contains(&near) {
            near
        } else {
            text
        };
        self.marks.uses(name.span, What::Type(full));
    }

    fn action(&mut self, ty: Option<&Name>, id: &SmolStr) -> EntityUid {
        let ty = ty.map_or_else(|| within(&self.space, "Action"), Name::text);
        EntityUid::new(ty, id.clone())
    }

    fn decl(&mut self, decl: &Decl) {
        self.notes(&decl.annotations);
        match &decl.kind {
            DeclKind::Entity { names, body } => {
                for name in names {
                    let full = within(&self.space, &name.text);
                    self.marks.defines(name.span, What::Type(full.clone()));
                    if let EntityBody::Enum(choices) = body {
                        for choice in choices {
                            let uid = EntityUid::new(full.clone(), choice.value.clone());
                            self.marks.defines(choice.span, What::Entity(uid));
                        }
                    }
                }
                if let EntityBody::Standard {
                    parents,
                    attrs,
                    tags,
                } = body
                {
                    parents.iter().for_each(|parent| self.name(parent));
                    attrs.iter().for_each(|attrs| self.record(attrs));
                    tags.iter().for_each(|tags| self.ty(tags));
                }
            }
            DeclKind::Action {
                names,
                parents,
                applies_to,
            } => {
                for name in names {
                    let uid = self.action(None, &name.value);
                    let inside = self.marks.inside(name);
                    self.marks.defines(inside, What::Action(uid));
                }
                for parent in parents {
                    let uid = self.action(parent.ty.as_ref(), &parent.id.value);
                    self.marks.uses(parent.span, What::Action(uid));
                }
                if let Some(applies_to) = applies_to {
                    let types = applies_to.principals.iter().chain(&applies_to.resources);
                    types.for_each(|name| self.name(name));
                    applies_to.context.iter().for_each(|ty| self.ty(ty));
                }
            }
            DeclKind::Type { name, ty } => {
                let full = within(&self.space, &name.text);
                self.marks.defines(name.span, What::Type(full));
                self.ty(ty);
            }
            DeclKind::Broken => {}
        }
    }

    fn ty(&mut self, ty: &Ty) {
        match &ty.kind {
            TyKind::Name(name) => self.name(name),
            TyKind::Set(element) => self.ty(element),
            TyKind::Record(record) => self.record(record),
            TyKind::Error => {}
        }
    }

    fn record(&mut self, record: &RecordTy) {
        for attr in &record.attrs {
            self.notes(&attr.annotations);
            self.marks.defines(
                attr.name.span,
                What::Attribute(attr.name.value.clone(), attr.span),
            );
            self.ty(&attr.ty);
        }
    }
}

pub fn events(file: &EventSchemaFile, marks: &mut Marks) {
    if let Some(window) = &file.max_window {
        window_mark(window, marks);
    }
    for event in &file.events {
        let local = letter(&event.binder, event.binder.span);
        marks.defines(event.binder.span, What::Local(local));
        let kind = event.kind.text.clone();
        marks.defines(event.kind.span, What::Kind { action: None, kind });
        members(&event.members, event.binder.span, marks);
    }
}

fn window_mark(window: &Window, marks: &mut Marks) {
    if let WindowKind::Amount { .. } = window.kind {
        marks.uses(window.span, What::Window(window.seconds()));
    }
}

fn letter(name: &Ident, binder: Span) -> Local {
    Local {
        name: name.text.clone(),
        sigil: Sigil::Plain,
        binder,
        ty: Some(SmolStr::new_static("every action")),
    }
}

fn members(all: &[Member], binder: Span, marks: &mut Marks) {
    for member in all {
        match member {
            Member::Spread(spread) => selector(&spread.selector, &spread.argument, binder, marks),
            Member::Field(field) => {
                let name = field.name.text.clone();
                marks.defines(field.name.span, What::Attribute(name, field.span));
                match &field.ty.kind {
                    FieldTyKind::Selector {
                        selector: name,
                        argument,
                    } => selector(name, argument, binder, marks),
                    FieldTyKind::Record(inner) => members(inner, binder, marks),
                    FieldTyKind::Name(name) => marks.uses(name.span, What::Type(name.text())),
                    FieldTyKind::Error => {}
                }
            }
        }
    }
}

fn selector(name: &Ident, argument: &Ident, binder: Span, marks: &mut Marks) {
    marks.uses(name.span, What::Selector(name.text.clone()));
    marks.uses(argument.span, What::Local(letter(argument, binder)));
}
