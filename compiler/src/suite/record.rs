//! A trace or the records of a box as a test file: what happened, and what the policy says to it.

mod decisions;

pub use decisions::from_decisions;

use super::plain::Plain;
use super::time;
use crate::event::Event;
use crate::explain::action_name;
use crate::monitor::Decision;
use crate::schema::{ActionDecl, RecordType, Service, Type};
use crate::value::{EntityUid, Record, Value};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Why a trace cannot be written as a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordFault {
    /// The stamp of the event with this position is before that of an earlier one.
    BackInTime(usize),
    /// The action of the event is not in the schema.
    UnknownAction {
        position: usize,
        action: EntityUid,
    },
    /// A line is no decision record, from 1.
    NotARecord {
        line: usize,
    },
    NoDecisions,
}

impl std::fmt::Display for RecordFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RecordFault::BackInTime(position) => write!(
                f,
                "event {position} is stamped before the one above it, and a test has its events in order of time"
            ),
            RecordFault::UnknownAction { position, action } => {
                write!(
                    f,
                    "the action of event {position}, {action}, is not in the schema"
                )
            }
            RecordFault::NotARecord { line } => {
                write!(f, "line {line} is no decision record of a box")
            }
            RecordFault::NoDecisions => f.write_str("these records hold no decision"),
        }
    }
}

/// The text of a test file with one test.
pub fn record(
    service: &Service,
    events: &[Event],
    decisions: &[(usize, i64, Decision)],
    names: &[String],
    policies: &[String],
    title: &str,
) -> Result<String, RecordFault> {
    let decided: BTreeMap<usize, &Decision> = decisions
        .iter()
        .map(|(position, _, decision)| (*position, decision))
        .collect();
    let mut out = header(policies, title);
    let mut now = events.first().map_or(0, |event| event.time);
    for (position, event) in events.iter().enumerate() {
        let Some(action) = service.actions.actions.get(&event.action) else {
            let action = event.action.clone();
            return Err(RecordFault::UnknownAction { position, action });
        };
        let mut parts = Vec::new();
        match event.time.checked_sub(now) {
            Some(0) => {}
            Some(later) if later > 0 => parts.push(format!("at = \"+{}\"", time::text(later))),
            _ => return Err(RecordFault::BackInTime(position)),
        }
        now = event.time;
        parts.push(format!("action = {}", string(&named(service, action))));
        if !service.events.decision_kinds.contains(&event.kind) {
            parts.push(format!("kind = {}", string(&event.kind)));
        }
        let writer = Writer { service };
        for (part, given) in [("input", &event.logged), ("output", &event.logged)] {
            if let (Some(Value::Object(fields)), Some(ty)) =
                (given.get(part), record_type(action, part))
            {
                let mut shown = fields.clone();
                if part == "input"
                    && let Some(line) = commanded(&mut shown)
                {
                    parts.push(format!("command = {}", string(&line)));
                }
                let fields = writer.fields(&ty, &shown, part == "output");
                if !fields.is_empty() || part == "output" {
                    parts.push(format!("{part} = {}", braced(&fields)));
                }
            }
        }
        if let Some(request) = &event.request {
            let types = action.applies_to.as_ref();
            let first = |types: Option<&Vec<_>>, uid: &EntityUid, usual: &str| {
                types.and_then(|types| types.first()) == Some(&uid.ty) && uid.id == usual
            };
            if let Some(uid) = request
                .principal
                .as_ref()
                .filter(|uid| !first(types.map(|types| &types.principals), uid, "self"))
            {
                parts.push(format!("principal = {}", string(&uid.to_string())));
            }
            if let Some(uid) = request
                .resource
                .as_ref()
                .filter(|uid| !first(types.map(|types| &types.resources), uid, "unused"))
            {
                parts.push(format!("resource = {}", string(&uid.to_string())));
            }
            if let Some(mut ty) = types.map(|types| types.context.clone()) {
                ty.attrs
                    .retain(|name, _| name != "input" && name != "output");
                let fields = writer.fields(&ty, &request.context, false);
                if !fields.is_empty() {
                    parts.push(format!("context = {}", braced(&fields)));
                }
            }
        }
        if let Some(decision) = decided.get(&position) {
            let verdict = if decision.allowed() { "allow" } else { "deny" };
            parts.push(format!("expect = \"{verdict}\""));
            let by: Vec<String> = decision
                .rules
                .iter()
                .filter_map(|rule| names.get(*rule))
                .map(|name| string(name))
                .collect();
            match by.as_slice() {
                [one] => parts.push(format!("by = {one}")),
                several => parts.push(format!("by = [{}]", several.join(", "))),
            }
        }
        _ = writeln!(out, "  {{ {} }},", parts.join(", "));
    }
    out.push_str("]\n");
    Ok(out)
}

/// A test file up to its first event.
fn header(policies: &[String], title: &str) -> String {
    let quoted: Vec<String> = policies.iter().map(|policy| string(policy)).collect();
    let policy = match quoted.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    format!(
        "policy = {policy}\n\n[[test]]\nname = {}\nevents = [\n",
        string(title)
    )
}

/// The short name if it means one action.
fn named(service: &Service, action: &ActionDecl) -> String {
    let short = action_name(&action.uid.ty, &action.uid.id);
    let same = service.actions.actions.values().filter(|other| {
        other.uid.id == short || action_name(&other.uid.ty, &other.uid.id) == short
    });
    if same.count() == 1 {
        short
    } else {
        action.uid.to_string()
    }
}

/// The command line of an input, if it says all that is said of the command; what it says is taken out.
fn commanded(input: &mut Record) -> Option<String> {
    let Some(Value::String(line)) = input.get("command").cloned() else {
        return None;
    };
    let said = super::command::input(&line).ok()?;
    let own = |field: &str| matches!(field, "arg1" | "arg2");
    let missing = said
        .iter()
        .any(|(field, value)| own(field) && input.get(field) != Some(value));
    let more = input
        .keys()
        .any(|field| own(field) && !said.contains_key(field));
    if missing || more {
        return None;
    }
    input.retain(|field, value| said.get(field) != Some(value));
    Some(line.to_string())
}

fn record_type(action: &ActionDecl, part: &str) -> Option<RecordType> {
    match &action.applies_to.as_ref()?.context.attrs.get(part)?.ty {
        Type::Record(record) => Some(record.clone()),
        _ => None,
    }
}

struct Writer<'a> {
    service: &'a Service,
}

impl Writer<'_> {
    /// The fields of the type; unless `all`, only those that say something.
    fn fields(&self, ty: &RecordType, record: &Record, all: bool) -> Vec<String> {
        let plain = Plain {
            service: self.service,
        };
        let known = record
            .iter()
            .filter_map(|(name, value)| Some((name, value, ty.attrs.get(name)?)));
        known
            .filter(|(_, value, attr)| all || !attr.required || **value != plain.value(&attr.ty))
            .map(|(name, value, attr)| format!("{} = {}", key(name), self.value(&attr.ty, value)))
            .collect()
    }

    fn value(&self, ty: &Type, value: &Value) -> String {
        match (ty, value) {
            (_, Value::Bool(yes)) => yes.to_string(),
            (_, Value::Int(n)) => n.to_string(),
            (Type::Entity(name), Value::Entity(uid)) if uid.ty == *name => string(&uid.id),
            (_, Value::Entity(uid)) => string(&uid.to_string()),
            (Type::Set(element), Value::Array(items)) => {
                let items: Vec<String> =
                    items.iter().map(|item| self.value(element, item)).collect();
                format!("[{}]", items.join(", "))
            }
            (Type::Record(record), Value::Object(fields)) => {
                braced(&self.fields(record, fields, true))
            }
            (_, Value::String(text) | Value::Decimal(text)) => string(text),
            (_, Value::Null | Value::Array(_) | Value::Object(_)) => string(""),
        }
    }
}

fn braced(fields: &[String]) -> String {
    if fields.is_empty() {
        "{}".to_owned()
    } else {
        format!("{{ {} }}", fields.join(", "))
    }
}

fn string(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn key(name: &str) -> String {
    let bare = !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if bare { name.to_owned() } else { string(name) }
}
