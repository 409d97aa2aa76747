//! Types of a JSON schema: `{ "type": "Set", "element": … }`, `{ "type": "Common" }`, ….

use super::{JsonSchemaProblem, Reader, name_of};
use crate::json::{Json, JsonKind, Member};
use dogwood_grammar::Span;
use dogwood_grammar::ast::action_schema::{AttrDecl, RecordTy, Ty, TyKind};
use dogwood_grammar::ast::{Ident, Str};
use smol_str::SmolStr;

/// Most common types in a row on the way to the record an entity type has as its shape.
const MAX_STEPS: usize = 100;

fn ty(kind: TyKind, span: Span) -> Ty {
    let depth = match &kind {
        TyKind::Set(element) => element.depth.saturating_add(1),
        TyKind::Record(record) => record
            .attrs
            .iter()
            .map(|attr| attr.ty.depth)
            .max()
            .unwrap_or(0)
            .saturating_add(1),
        TyKind::Name(_) | TyKind::Error => 1,
    };
    Ty { kind, span, depth }
}

impl<'a> Reader<'a> {
    pub(super) fn ty(&mut self, ns: &str, json: &'a Json) -> Ty {
        let kind = self.kind(ns, json).unwrap_or(TyKind::Error);
        ty(kind, json.span)
    }

    fn kind(&mut self, ns: &str, json: &'a Json) -> Option<TyKind> {
        let Some(written) = json.get("type") else {
            if json.as_object().is_some() {
                self.report(json.span, JsonSchemaProblem::Missing { key: "type" });
            } else {
                self.wrong(json, "a type, `{ \"type\": … }`");
            }
            return None;
        };
        let text = self.string(written, "the name of a type")?;
        // An attribute has its own keys beside those of its type.
        const OWN: [&str; 2] = ["required", "annotations"];
        let mut only = |keys: &[&'static str]| {
            for member in self.members(json, "a type") {
                let key = member.key.value.as_str();
                if key != "type" && !OWN.contains(&key) && !keys.contains(&key) {
                    let problem = JsonSchemaProblem::UnneededKey {
                        name: member.key.value.clone(),
                        ty: text.value.clone(),
                    };
                    self.report(member.key.span, problem);
                }
            }
        };
        Some(match text.value.as_str() {
            "Bool" | "Boolean" => {
                only(&[]);
                builtin("Bool", text.span)
            }
            "Long" | "String" => {
                only(&[]);
                builtin(&text.value, text.span)
            }
            "Set" => {
                only(&["element"]);
                let Some(element) = json.get("element") else {
                    self.report(json.span, JsonSchemaProblem::Missing { key: "element" });
                    return None;
                };
                TyKind::Set(Box::new(self.ty(ns, element)))
            }
            "Record" => {
                only(&["attributes", "additionalAttributes"]);
                TyKind::Record(self.record(ns, json))
            }
            "Extension" => {
                only(&["name"]);
                let name = self.named(json)?;
                match name.value.as_str() {
                    "decimal" | "ipaddr" | "datetime" | "duration" => {
                        builtin(&name.value, name.span)
                    }
                    _ => {
                        let problem = JsonSchemaProblem::UnknownExtension { name: name.value };
                        self.report(name.span, problem);
                        return None;
                    }
                }
            }
            "Entity" => {
                only(&["name"]);
                let text = self.named(json)?;
                let name = self.name(&text)?;
                let is = |reader: &Self, full: &SmolStr| {
                    reader.entities.contains(full) || reader.actions.contains(full)
                };
                let full = self.full(ns, &name, is);
                if !is(self, &full.text()) {
                    let problem = JsonSchemaProblem::UnknownEntityType {
                        nearest: crate::nearest::nearest(&text.value, &self.entities),
                        name: text.value,
                    };
                    self.report(text.span, problem);
                    return None;
                }
                TyKind::Name(full)
            }
            "EntityOrCommon" => {
                only(&["name"]);
                let text = self.named(json)?;
                TyKind::Name(self.name(&text)?)
            }
            _ => {
                only(&[]);
                let name = self.name(&text)?;
                let full = self.full(ns, &name, |reader, full| reader.common.contains_key(full));
                let builtin = text.value.starts_with("__cedar::")
                    || matches!(
                        text.value.as_str(),
                        "decimal" | "ipaddr" | "datetime" | "duration"
                    );
                if !builtin && !self.common.contains_key(&full.text()) {
                    let problem = JsonSchemaProblem::UnknownCommonType {
                        entity: self.entities.contains(&text.value)
                            || self.entities.contains(&super::qualified(ns, &text.value)),
                        nearest: crate::nearest::nearest(
                            &text.value,
                            &self.common.keys().cloned().collect::<Vec<_>>(),
                        ),
                        name: text.value,
                    };
                    self.report(text.span, problem);
                    return None;
                }
                TyKind::Name(full)
            }
        })
    }

    fn named(&mut self, json: &'a Json) -> Option<Str> {
        match json.get("name") {
            Some(name) => self.string(name, "a name"),
            None => {
                self.report(json.span, JsonSchemaProblem::Missing { key: "name" });
                None
            }
        }
    }

    fn record(&mut self, ns: &str, json: &'a Json) -> RecordTy {
        if let Some(more) = json.get("additionalAttributes") {
            match more.kind {
                JsonKind::Bool(false) => {}
                JsonKind::Bool(true) => self.report(more.span, JsonSchemaProblem::OpenRecord),
                _ => self.wrong(more, "`false`"),
            }
        }
        let mut attrs = Vec::new();
        match json.get("attributes") {
            None => self.report(json.span, JsonSchemaProblem::Missing { key: "attributes" }),
            Some(written) => {
                for member in self.members(written, "an object of attributes") {
                    attrs.push(self.attr(ns, member));
                }
            }
        }
        RecordTy {
            attrs,
            span: json.span,
        }
    }

    fn attr(&mut self, ns: &str, member: &'a Member) -> AttrDecl {
        let json = &member.value;
        let required = json.get("required");
        if let Some(required) = required
            && required.as_bool().is_none()
        {
            self.wrong(required, "`true` or `false`");
        }
        AttrDecl {
            annotations: self.annotations(json.get("annotations")),
            name: member.key.clone(),
            optional: required.and_then(Json::as_bool) == Some(false),
            ty: self.ty(ns, json),
            span: member.key.span.to(json.span),
        }
    }

    /// The record an entity type has as its attributes; it may be behind common types.
    pub(super) fn shape(&mut self, ns: &str, json: &'a Json) -> Option<RecordTy> {
        let (mut ns, mut json) = (SmolStr::new(ns), json);
        let written = json;
        for _ in 0..MAX_STEPS {
            match self.ty(&ns, json).kind {
                TyKind::Record(record) => return Some(record),
                TyKind::Error => return None,
                TyKind::Set(_) => break,
                TyKind::Name(name) => {
                    let name = name.text();
                    let candidates = [super::qualified(&ns, &name), name];
                    let found = candidates.iter().find_map(|name| self.common.get(name));
                    let Some((inner, stands_for)) = found else {
                        break;
                    };
                    (ns, json) = (inner.clone(), stands_for);
                }
            }
        }
        self.report(written.span, JsonSchemaProblem::ShapeNotRecord);
        None
    }
}

/// A built-in type, whatever else has its name.
fn builtin(name: &str, span: Span) -> TyKind {
    let mut full = name_of("__cedar", span);
    full.path.push(Ident {
        text: SmolStr::new(name),
        span,
    });
    TyKind::Name(full)
}
