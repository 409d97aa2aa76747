//! Whether an event of the past is what a description asks for, or how near it comes.

use super::code;
use crate::automaton::value::parse_decimal;
use crate::event::Event;
use crate::grammar::ast::*;
use crate::schema::EventId;
use crate::value::{EntityUid, Value};
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// A predicate with the comparisons that bind its variables, as seen from one request.
pub(super) struct Pattern<'t> {
    matcher: &'t Matcher,
    comparisons: Vec<(CompareOp, &'t Term, &'t Term)>,
    request: &'t Event,
    /// What variables bound elsewhere are.
    known: Bound,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Hit,
    /// All is right but one field.
    Near(Miss),
    Miss,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Miss {
    pub field: String,
    /// Nothing where the field is absent.
    pub found: Option<String>,
    pub wanted: String,
}

/// Fields that say which operation it is. One with another program is not a near miss, but another story.
const IDENTITY: [&str; 11] = [
    "program",
    "program_path",
    "command",
    "arg1",
    "path",
    "operation",
    "host",
    "method",
    "server",
    "tool",
    "callerPrincipal",
];

/// Variables and their values.
pub(super) type Bound = BTreeMap<SmolStr, Value>;

impl<'t> Pattern<'t> {
    /// `body` describes the event; comparisons elsewhere in `leaf` may bind its variables, too.
    pub fn of(
        body: &'t Cond,
        leaf: &'t Cond,
        request: &'t Event,
        known: &Bound,
    ) -> Option<Pattern<'t>> {
        let matcher = matcher(body)?;
        let mut comparisons = Vec::new();
        collect(leaf, &mut comparisons);
        collect(body, &mut comparisons);
        Some(Pattern {
            matcher,
            comparisons,
            request,
            known: known.clone(),
        })
    }

    pub fn event(&self) -> EventId {
        let event = &self.matcher.event;
        let action = EntityUid::new(event.ty.text(), event.action.value.clone());
        EventId {
            action,
            kind: event.kind.text.clone(),
        }
    }

    pub fn matches(&self, event: &Event) -> Outcome {
        self.matched(event).0
    }

    /// The same with what its variables become.
    pub fn matched(&self, event: &Event) -> (Outcome, Bound) {
        let mut bound = self.known.clone();
        let mut misses = Vec::new();
        for field in self.matcher.fields() {
            if let Some(miss) = self.field(field, event, &mut bound) {
                misses.push((field, miss));
            }
        }
        // A comparison with a side that is not known here cannot speak against the event.
        let fits = self.comparisons.iter().all(|(op, left, right)| {
            match (self.value(left, &bound), self.value(right, &bound)) {
                (Some(left), Some(right)) => compare(*op, &left, &right),
                _ => true,
            }
        });
        let outcome = match misses.as_slice() {
            [] if fits => Outcome::Hit,
            [(field, miss)] if fits && !is_identity(field) => Outcome::Near(miss.clone()),
            _ => Outcome::Miss,
        };
        (outcome, bound)
    }

    fn field(&self, field: &FieldPattern, event: &Event, bound: &mut Bound) -> Option<Miss> {
        let words: Vec<&str> = field.path.iter().map(|word| word.text.as_str()).collect();
        let found = words
            .split_first()
            .and_then(|(first, rest)| event.logged.get(*first)?.at(rest));
        let wanted = match &field.term.kind {
            TermKind::Wildcard => None,
            TermKind::Var(var) => bound.get(&var.name).cloned(),
            _ => self.value(&field.term, bound),
        };
        let fits = match (&field.term.kind, found, &wanted) {
            (_, None, _) => false,
            (TermKind::Wildcard, Some(_), _) => true,
            (TermKind::Var(var), Some(found), None) => {
                bound.insert(var.name.clone(), found.clone());
                true
            }
            (_, Some(found), Some(wanted)) => same(found, wanted),
            (_, Some(_), None) => false,
        };
        (!fits).then(|| Miss {
            field: super::field(&words),
            found: found.map(show),
            wanted: wanted.map_or_else(|| "a value".to_owned(), |wanted| show(&wanted)),
        })
    }

    fn value(&self, term: &Term, bound: &Bound) -> Option<Value> {
        match &term.kind {
            TermKind::Int(value) => Some(Value::Int(*value)),
            TermKind::Str(text) => Some(Value::String(text.clone())),
            TermKind::Bool(value) => Some(Value::Bool(*value)),
            TermKind::Decimal(text) => Some(Value::Decimal(text.value.clone())),
            TermKind::Entity(uid) => Some(Value::Entity(EntityUid::new(
                uid.ty.text(),
                uid.id.value.clone(),
            ))),
            TermKind::Context(words) => {
                let (first, rest) = words.split_first()?;
                let rest: Vec<&str> = rest.iter().map(|word| word.text.as_str()).collect();
                self.request
                    .request
                    .as_ref()?
                    .context
                    .get(&first.text)?
                    .at(&rest)
                    .cloned()
            }
            TermKind::Scope { root, path } if path.is_empty() => {
                let part = self.request.request.as_ref()?;
                let uid = match root {
                    ScopeRoot::Principal => &part.principal,
                    ScopeRoot::Resource => &part.resource,
                };
                uid.clone().map(Value::Entity)
            }
            TermKind::Var(var) => bound.get(&var.name).cloned(),
            _ => None,
        }
    }
}

/// The one predicate of a description.
fn matcher(body: &Cond) -> Option<&Matcher> {
    match &body.kind {
        CondKind::Match(matcher) => Some(matcher),
        CondKind::And(parts) => parts.iter().find_map(matcher),
        CondKind::Exists { body, .. } => matcher(body),
        _ => None,
    }
}

/// The comparisons that hold wherever the condition does.
fn collect<'t>(cond: &'t Cond, found: &mut Vec<(CompareOp, &'t Term, &'t Term)>) {
    match &cond.kind {
        CondKind::And(parts) => parts.iter().for_each(|part| collect(part, found)),
        CondKind::Exists { body, .. } => collect(body, found),
        CondKind::Compare { op, left, right } => found.push((*op, left, right)),
        _ => {}
    }
}

fn is_identity(field: &FieldPattern) -> bool {
    let path = code::path(&field.path);
    IDENTITY.contains(&path.strip_prefix("input.").unwrap_or(&path))
}

fn compare(op: CompareOp, left: &Value, right: &Value) -> bool {
    match (op, left, right) {
        (CompareOp::Eq, ..) => same(left, right),
        (CompareOp::Ne, ..) => !same(left, right),
        (_, Value::Int(left), Value::Int(right)) => match op {
            CompareOp::Lt => left < right,
            CompareOp::Le => left <= right,
            CompareOp::Gt => left > right,
            _ => left >= right,
        },
        _ => false,
    }
}

/// Equality of the language: decimals by value (language reference, "Values").
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Decimal(left), Value::Decimal(right)) => {
            left == right
                || matches!((parse_decimal(left), parse_decimal(right)), (Some(a), Some(b)) if a == b)
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(a, b)| same(a, b))
        }
        _ => left == right,
    }
}

/// The value in a line of text.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::String(text) => code::string(&super::why::shortened(text)),
        Value::Decimal(text) => text.to_string(),
        Value::Entity(uid) => format!("`{uid}`"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().take(8).map(show).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(_) => "a record".to_owned(),
    }
}
