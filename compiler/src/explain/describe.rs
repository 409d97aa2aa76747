//! One event in a line, as a predicate over it would be written.

use super::action_name;
use crate::event::Event;
use crate::suite::command;
use crate::value::{Record, Value};

/// `shell:spawn::response{ input.program: "git", output.status: 0 }`: the input and the output, without the
/// parts of the input that say nothing (empty texts, zeros, false).
pub fn describe(event: &Event) -> String {
    let mut fields = Vec::new();
    for (group, always) in [("input", false), ("output", true)] {
        if let Some(Value::Object(record)) = event.logged.get(group) {
            leaves(group, &unsaid(record), always, &mut fields);
        }
    }
    crate::normal::in_order(&mut fields, |field| {
        field.split(':').next().unwrap_or_default()
    });
    let name = action_name(&event.action.ty, &event.action.id);
    if fields.is_empty() {
        format!("{name}::{}{{}}", event.kind)
    } else {
        format!("{name}::{}{{ {} }}", event.kind, fields.join(", "))
    }
}

/// Without what the command line says by itself.
fn unsaid(record: &Record) -> Record {
    let said = match record.get("command") {
        Some(Value::String(line)) => command::input(line).unwrap_or_default(),
        _ => Record::new(),
    };
    let mut rest = record.clone();
    rest.retain(|name, value| name == "command" || said.get(name) != Some(value));
    rest
}

fn leaves(path: &str, record: &Record, always: bool, out: &mut Vec<String>) {
    for (name, value) in record {
        let path = format!("{path}.{name}");
        let plain = match value {
            Value::Object(inner) => {
                leaves(&path, inner, always, out);
                continue;
            }
            Value::Null => true,
            Value::Bool(yes) => !yes,
            Value::Int(n) => *n == 0,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Decimal(_) | Value::Entity(_) => false,
        };
        if always || !plain {
            out.push(format!("{path}: {}", written(value)));
        }
    }
}

fn written(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(yes) => yes.to_string(),
        Value::Int(n) => n.to_string(),
        Value::String(text) => format!("{text:?}"),
        Value::Decimal(text) => format!("decimal({text:?})"),
        Value::Entity(uid) => uid.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(written).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{name}: {}", written(value)))
                .collect();
            format!("{{ {} }}", fields.join(", "))
        }
    }
}
