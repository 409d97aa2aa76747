//! Completion in schemas.

use super::{ItemKind, Items};
use crate::cursor::Cursor;
use crate::feature::words;
use crate::mark::What;
use crate::snapshot::Snapshot;

const PRIMITIVES: [&str; 8] = [
    "Bool", "Long", "String", "decimal", "ipaddr", "datetime", "duration", "Set",
];

pub fn actions(snapshot: &Snapshot, cursor: &Cursor, items: &mut Items) {
    let inside = cursor.inside();
    let opened_by = |n: usize| {
        let at = inside.and_then(|(_, at)| at.checked_sub(n));
        at.and_then(|at| cursor.before.get(at))
            .map_or("", |word| word.text)
    };
    match (cursor.back(1), inside.map(|(bracket, _)| bracket)) {
        ("{" | ",", Some("{")) if opened_by(1) == "appliesTo" => {
            items.snippet(
                ItemKind::Keyword,
                "principal",
                "",
                None,
                "principal: [$0]".to_owned(),
            );
            items.snippet(
                ItemKind::Keyword,
                "resource",
                "",
                None,
                "resource: [$0]".to_owned(),
            );
            items.snippet(
                ItemKind::Keyword,
                "context",
                "",
                None,
                "context: { $0 }".to_owned(),
            );
        }
        (":" | "=" | "<" | "tags", _) | ("[" | ",", Some("[")) | ("in", _) => {
            for name in PRIMITIVES {
                let about = words::type_name(name).map(|about| about.meaning.to_owned());
                items.word(ItemKind::Type, name, "", about);
            }
            for mark in snapshot.document.marks() {
                if let (What::Type(name), true) = (&mark.what, mark.defines) {
                    let short = mark.span.text(snapshot.text());
                    items.word(ItemKind::Type, short, name, None);
                }
            }
        }
        ("" | "{" | "}", _) => {
            for (word, insert) in [
                ("namespace", "namespace ${1:Name} {\n  $0\n}"),
                ("entity", "entity ${1:Name};"),
                (
                    "action",
                    "action \"${1:name}\" appliesTo {\n  principal: [${2}],\n  resource: [${3}],\n  context: { input: { $0 } }\n};",
                ),
                ("type", "type ${1:Name} = { $0 };"),
            ] {
                let about = words::keyword(word).map(|about| about.meaning.to_owned());
                items.snippet(ItemKind::Keyword, word, "", about, insert.to_owned());
            }
        }
        _ => items.keywords(&["appliesTo", "in", "tags", "enum"]),
    }
}

pub fn events(cursor: &Cursor, items: &mut Items) {
    let about = |word: &str| words::keyword(word).map(|about| about.meaning.to_owned());
    let letter = cursor
        .before
        .iter()
        .rposition(|word| word.text == "<")
        .and_then(|at| cursor.before.get(at + 1))
        .map_or("A", |word| word.text);
    if cursor.open.is_empty() {
        let decision = "decision event <A>::${1:request} {\n  ...inputs(A),\n  $0\n}";
        items.snippet(
            ItemKind::Keyword,
            "decision event",
            "",
            about("decision"),
            decision.to_owned(),
        );
        let event = "event <A>::${1:response} {\n  ...inputs(A),\n  ...outputs(A),\n  $0\n}";
        items.snippet(
            ItemKind::Keyword,
            "event",
            "",
            about("event"),
            event.to_owned(),
        );
        items.snippet(
            ItemKind::Keyword,
            "max_window",
            "",
            about("max_window"),
            "max_window = ${1:24h}".to_owned(),
        );
        return;
    }
    let selectors: &[&str] = match cursor.back(1) {
        "..." => &["inputs", "outputs"],
        ":" => &["principalType", "resourceType"],
        "=" => {
            for root in ["principal", "resource", "context"] {
                items.word(ItemKind::Variable, root, "", None);
            }
            return;
        }
        _ => {
            for name in ["inputs", "outputs"] {
                let label = format!("...{name}({letter})");
                let about = words::selector(name).map(|about| about.meaning.to_owned());
                items.word(ItemKind::Field, &label, "", about);
            }
            items.snippet(
                ItemKind::Keyword,
                "pin",
                "",
                about("pin"),
                format!("pin ${{1:callerPrincipal}}: principalType({letter}) = ${{2:principal}}"),
            );
            return;
        }
    };
    for name in selectors {
        let about = words::selector(name).map(|about| about.meaning.to_owned());
        let label = format!("{name}({letter})");
        items.word(ItemKind::Function, &label, "", about);
    }
    if cursor.back(1) == ":" {
        for name in PRIMITIVES.iter().take(3) {
            items.word(ItemKind::Type, name, "", None);
        }
    }
}
