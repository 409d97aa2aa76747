//! Pins that narrow predicates, but do not part the history.

use crate::schema::EventSchema;
use dogwood_grammar::ast::event_schema::{EventSchemaFile, Field, FieldTyKind, Member};
use dogwood_grammar::diagnostic::Diagnostic;
use std::collections::BTreeSet;

/// Warnings about the pins of an event schema without a universal one.
pub(crate) fn pins(file: &EventSchemaFile, events: &EventSchema) -> Vec<Diagnostic> {
    if events.universal_pin.is_some() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for decl in &file.events {
        for (path, field) in pinned(&decl.members) {
            let Some(keyword) = field.pin else { continue };
            if !seen.insert(path.clone()) {
                continue;
            }
            let without = file.events.iter().find(|other| {
                !pinned(&other.members)
                    .iter()
                    .any(|(other, _)| *other == path)
            });
            let name = path.join(".");
            let why = match without {
                Some(other) => format!("`{}` events are not pinned by it", other.kind.text),
                None => "its value is not the one the request has in this field, or differs from event to event".to_owned(),
            };
            found.push(
                Diagnostic::warning(
                    "partial-pin",
                    keyword,
                    format!("the pin of `{name}` does not part the history: {why}"),
                )
                .help("`previous` and the left side of `since` still see every event; pin the same field the same way in all events"),
            );
        }
    }
    found
}

fn pinned(members: &[Member]) -> Vec<(Vec<String>, &Field)> {
    let mut found = Vec::new();
    for member in members {
        let Member::Field(field) = member else {
            continue;
        };
        let name = field.name.text.to_string();
        if field.pin.is_some() {
            found.push((vec![name.clone()], field));
        }
        if let FieldTyKind::Record(inner) = &field.ty.kind {
            for (mut path, field) in pinned(inner) {
                path.insert(0, name.clone());
                found.push((path, field));
            }
        }
    }
    found
}
