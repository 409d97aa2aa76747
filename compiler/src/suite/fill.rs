//! From the fields a step writes down to whole records of the schema: what it leaves out gets a plain value.

use super::plain::Plain;
use super::table::what;
use crate::grammar::ast::ExprKind;
use crate::grammar::diagnostic::Diagnostic;
use crate::grammar::parse_expr;
use crate::json::{Json, JsonKind, Member};
use crate::nearest::nearest;
use crate::schema::{Extension, RecordType, Type};
use crate::value::{EntityUid, Record, Value};
use smol_str::SmolStr;

pub struct Fill<'a> {
    pub plain: Plain<'a>,
    pub problems: &'a mut Vec<Diagnostic>,
}

impl Fill<'_> {
    /// The record with the given members over those of `under`, typed by `ty`; required attributes that neither
    /// has get a plain value.
    pub fn record(
        &mut self,
        ty: &RecordType,
        given: &[Member],
        under: Record,
        place: &str,
    ) -> Record {
        let mut record = under;
        record.retain(|name, _| ty.attrs.contains_key(name));
        for member in given {
            let name = &member.key.value;
            let Some(attr) = ty.attrs.get(name) else {
                let mut problem = Diagnostic::error(
                    "unknown-attribute",
                    member.key.span,
                    format!("{place} has no `{name}`"),
                );
                problem = match nearest(name, ty.attrs.keys()) {
                    Some(near) => problem.label(format!("did you mean `{near}`?")).fix(
                        format!("change to `{near}`"),
                        member.key.span,
                        near.as_str(),
                    ),
                    None => problem.help(format!("it has {}", listed(ty))),
                };
                self.problems.push(problem);
                continue;
            };
            if let Some(value) = self.value(&attr.ty, &member.value, name) {
                record.insert(name.clone(), value);
            }
        }
        for (name, attr) in &ty.attrs {
            if attr.required && !record.contains_key(name) {
                record.insert(name.clone(), self.plain.value(&attr.ty));
            }
        }
        record
    }

    /// One value of a type.
    pub fn value(&mut self, ty: &Type, node: &Json, name: &str) -> Option<Value> {
        let value = match (ty, &node.kind) {
            (Type::Bool, JsonKind::Bool(yes)) => Value::Bool(*yes),
            (Type::Long, JsonKind::Number(digits)) => {
                Value::Int(digits.parse().ok().or_else(|| {
                    self.mismatch(ty, node, name);
                    None
                })?)
            }
            (Type::String, JsonKind::String(text)) => Value::String(text.clone()),
            (Type::Ext(Extension::Decimal), JsonKind::String(text) | JsonKind::Number(text))
                if crate::automaton::parse_decimal(text).is_some() =>
            {
                Value::Decimal(text.clone())
            }
            (Type::Ext(extension), JsonKind::String(text)) if *extension != Extension::Decimal => {
                Value::String(text.clone())
            }
            (Type::Entity(entity), JsonKind::String(text)) => {
                Value::Entity(self.entity(std::slice::from_ref(entity), text, node)?)
            }
            (Type::Set(element), JsonKind::Array(items)) => Value::Array(
                items
                    .iter()
                    .filter_map(|item| self.value(element, item, name))
                    .collect(),
            ),
            (Type::Record(record), JsonKind::Object(members)) => {
                Value::Object(self.record(record, members, Record::new(), &format!("`{name}`")))
            }
            _ => {
                self.mismatch(ty, node, name);
                return None;
            }
        };
        Some(value)
    }

    fn mismatch(&mut self, ty: &Type, node: &Json, name: &str) {
        self.problems.push(Diagnostic::error(
            "type-mismatch",
            node.span,
            format!("`{name}` is a `{ty}`, and this is {}", what(node)),
        ));
    }

    /// An entity of one of these types: written in full, or by its id alone where there is one type.
    pub fn entity(&mut self, types: &[SmolStr], text: &str, node: &Json) -> Option<EntityUid> {
        let uid = match (written(text), types) {
            (Some(uid), _) => uid,
            (None, [only]) => EntityUid::new(only.clone(), text),
            (None, _) => {
                let all: Vec<String> = types
                    .iter()
                    .map(|ty| format!("`{ty}::\"{text}\"`"))
                    .collect();
                self.problems.push(
                    Diagnostic::error(
                        "ambiguous-type",
                        node.span,
                        format!("an id alone does not say of which type `{text}` is"),
                    )
                    .help(format!("write one of {}", all.join(", "))),
                );
                return None;
            }
        };
        if !types.contains(&uid.ty) {
            let wanted: Vec<String> = types.iter().map(|ty| format!("`{ty}`")).collect();
            self.problems.push(Diagnostic::error(
                "type-mismatch",
                node.span,
                format!(
                    "an entity of {} is wanted, and this is a `{}`",
                    wanted.join(" or "),
                    uid.ty
                ),
            ));
            return None;
        }
        let choices = self
            .plain
            .service
            .actions
            .entity_types
            .get(&uid.ty)
            .and_then(|ty| ty.choices.as_ref());
        if let Some(choices) = choices.filter(|choices| !choices.contains(&uid.id)) {
            let problem = Diagnostic::error(
                "unknown-enum-value",
                node.span,
                format!("`{}` has no choice `{}`", uid.ty, uid.id),
            );
            let all: Vec<String> = choices.iter().map(|id| format!("`{id}`")).collect();
            let problem = problem.help(format!("its choices: {}", all.join(", ")));
            self.problems.push(match nearest(&uid.id, choices) {
                Some(near) => problem.label(format!("did you mean `{near}`?")),
                None => problem,
            });
            return None;
        }
        Some(uid)
    }
}

/// `Ns::Type::"id"`.
pub fn written(text: &str) -> Option<EntityUid> {
    let parsed = parse_expr(text);
    match parsed.tree.kind {
        ExprKind::Entity(entity) if parsed.errors.is_empty() => {
            Some(EntityUid::new(entity.ty.text(), entity.id.value))
        }
        _ => None,
    }
}

fn listed(ty: &RecordType) -> String {
    let names: Vec<String> = ty.attrs.keys().map(|name| format!("`{name}`")).collect();
    if names.is_empty() {
        "no fields at all".to_owned()
    } else {
        names.join(", ")
    }
}
