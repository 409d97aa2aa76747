//! Action schemas and event schemas as text.

use super::{BROKEN, Out};
use crate::ast::action_schema::*;
use crate::ast::event_schema::*;
use crate::ast::{Name, Str};

/// Whether `text` can stand without quotes.
fn is_word(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl Out {
    pub(super) fn action_schema(&mut self, file: &ActionSchemaFile) {
        for (index, namespace) in file.namespaces.iter().enumerate() {
            if index > 0 {
                self.push("\n");
            }
            let indent = if namespace.name.is_some() { "  " } else { "" };
            if let Some(name) = &namespace.name {
                for annotation in &namespace.annotations {
                    self.annotation(annotation);
                    self.push("\n");
                }
                self.push("namespace ");
                self.name(name);
                self.push(" {\n");
            }
            for decl in &namespace.decls {
                for annotation in &decl.annotations {
                    self.push(indent);
                    self.annotation(annotation);
                    self.push("\n");
                }
                self.push(indent);
                self.decl(decl);
                self.push("\n");
            }
            if namespace.name.is_some() {
                self.push("}\n");
            }
        }
    }

    fn decl(&mut self, decl: &Decl) {
        match &decl.kind {
            DeclKind::Entity { names, body } => {
                self.push("entity ");
                self.list(names, |out, name| out.push(&name.text));
                match body {
                    EntityBody::Standard {
                        parents,
                        attrs,
                        tags,
                    } => {
                        if !parents.is_empty() {
                            self.push(" in [");
                            self.list(parents, Out::name);
                            self.push("]");
                        }
                        if let Some(attrs) = attrs {
                            self.push(" = ");
                            self.record_ty(attrs);
                        }
                        if let Some(tags) = tags {
                            self.push(" tags ");
                            self.ty(tags);
                        }
                    }
                    EntityBody::Enum(values) => {
                        self.push(" enum [");
                        self.list(values, |out, value| out.string(&value.value));
                        self.push("]");
                    }
                }
                self.push(";");
            }
            DeclKind::Action {
                names,
                parents,
                applies_to,
            } => {
                self.push("action ");
                self.list(names, |out, name| out.string(&name.value));
                if !parents.is_empty() {
                    self.push(" in [");
                    self.list(parents, |out, parent| {
                        if let Some(ty) = &parent.ty {
                            out.name(ty);
                            out.push("::");
                        }
                        out.string(&parent.id.value);
                    });
                    self.push("]");
                }
                if let Some(applies_to) = applies_to {
                    self.push(" appliesTo ");
                    self.applies_to(applies_to);
                }
                self.push(";");
            }
            DeclKind::Type { name, ty } => {
                self.push("type ");
                self.push(&name.text);
                self.push(" = ");
                self.ty(ty);
                self.push(";");
            }
            DeclKind::Broken => self.push(BROKEN),
        }
    }

    fn applies_to(&mut self, applies_to: &AppliesTo) {
        let types = |out: &mut Out, names: &[Name]| {
            out.push("[");
            out.list(names, Out::name);
            out.push("]");
        };
        let mut parts = vec!["principal", "resource"];
        parts.extend(applies_to.context.is_some().then_some("context"));
        self.push("{ ");
        self.list(&parts, |out, part| {
            out.push(part);
            out.push(": ");
            match (*part, &applies_to.context) {
                ("principal", _) => types(out, &applies_to.principals),
                ("context", Some(context)) => out.ty(context),
                _ => types(out, &applies_to.resources),
            }
        });
        self.push(" }");
    }

    fn ty(&mut self, ty: &Ty) {
        match &ty.kind {
            TyKind::Name(name) => self.name(name),
            TyKind::Set(element) => {
                self.push("Set<");
                self.ty(element);
                self.push(">");
            }
            TyKind::Record(record) => self.record_ty(record),
            TyKind::Error => self.push(BROKEN),
        }
    }

    fn record_ty(&mut self, record: &RecordTy) {
        if record.attrs.is_empty() {
            self.push("{}");
            return;
        }
        self.push("{ ");
        self.list(&record.attrs, |out, attr| {
            for annotation in &attr.annotations {
                out.annotation(annotation);
                out.push(" ");
            }
            out.label(&attr.name);
            out.push(if attr.optional { "?: " } else { ": " });
            out.ty(&attr.ty);
        });
        self.push(" }");
    }

    /// A word where it is one, else a string literal.
    fn label(&mut self, label: &Str) {
        if is_word(&label.value) && !super::reserved(&label.value) {
            self.push(&label.value)
        } else {
            self.string(&label.value)
        }
    }

    // ---------------------------------------------------------------------------- event schemas

    pub(super) fn event_schema(&mut self, file: &EventSchemaFile) {
        if let Some(window) = &file.max_window {
            self.push("max_window = ");
            self.window(window);
            self.push("\n");
        }
        for (index, event) in file.events.iter().enumerate() {
            if index > 0 || file.max_window.is_some() {
                self.push("\n");
            }
            self.push(if event.decision {
                "decision event <"
            } else {
                "event <"
            });
            self.push(&event.binder.text);
            self.push(">::");
            self.push(&event.kind.text);
            if event.members.is_empty() {
                self.push(" {}\n");
                continue;
            }
            self.push(" {\n");
            for member in &event.members {
                self.push("  ");
                self.member(member);
                self.push(",\n");
            }
            self.push("}\n");
        }
    }

    fn member(&mut self, member: &Member) {
        match member {
            Member::Spread(spread) => {
                self.push("...");
                self.push(&spread.selector.text);
                self.push("(");
                self.push(&spread.argument.text);
                self.push(")");
            }
            Member::Field(field) => {
                if field.pin.is_some() {
                    self.push("pin ");
                }
                self.push(&field.name.text);
                self.push(": ");
                self.field_ty(&field.ty);
                if let Some(value) = &field.value {
                    self.push(" = ");
                    self.push(&value.root.text);
                    for word in &value.path {
                        self.push(".");
                        self.push(&word.text);
                    }
                }
            }
        }
    }

    fn field_ty(&mut self, ty: &FieldTy) {
        match &ty.kind {
            FieldTyKind::Selector { selector, argument } => {
                self.push(&selector.text);
                self.push("(");
                self.push(&argument.text);
                self.push(")");
            }
            FieldTyKind::Record(members) if members.is_empty() => self.push("{}"),
            FieldTyKind::Record(members) => {
                self.push("{ ");
                self.list(members, Out::member);
                self.push(" }");
            }
            FieldTyKind::Name(name) => self.name(name),
            FieldTyKind::Error => self.push(BROKEN),
        }
    }
}
