//! Completion in test files: keys by where they stand, and the names that policy and schema give.

use super::{Item, ItemKind, Items};
use crate::feature::{lens, words};
use crate::snapshot::Snapshot;
use dogwood_compiler::explain::short_name;
use dogwood_compiler::grammar::Span;
use dogwood_compiler::suite::STEP;

const TOP: &[&str] = &[
    "policy",
    "policy-schema",
    "event-schema",
    "macros",
    "providers",
    "defaults",
];
const TEST: &[&str] = &["name", "description", "events", "cases"];

pub fn complete(snapshot: &Snapshot, offset: usize) -> Vec<Item> {
    let text = snapshot.text();
    let line = snapshot.document.lines.line(offset);
    let start = snapshot.document.lines.start(text, line);
    let before = text.get(start..offset).unwrap_or("");
    let word = before
        .rfind(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | ':'))
        .map_or(0, |at| {
            at + before
                .get(at..)
                .and_then(|rest| rest.chars().next())
                .map_or(1, char::len_utf8)
        });
    let mut items = Items {
        replace: Span::new(start + word, offset),
        all: Vec::new(),
    };
    let ahead = before.get(..word).unwrap_or("");
    let quoted = ahead.matches('"').count() % 2 == 1;
    let key = ahead
        .trim_end_matches(['"', '[', ' '])
        .trim_end()
        .strip_suffix('=')
        .map(|rest| rest.trim_end().rsplit([' ', '{', ',']).next().unwrap_or(""))
        .or_else(|| {
            // A later element of a list.
            let (before, list) = ahead.rsplit_once('[')?;
            let flat = !list.contains(['{', ']', '=']);
            let key = before.trim_end().strip_suffix('=')?.trim_end();
            flat.then(|| key.rsplit([' ', '{', ',']).next().unwrap_or(""))
        });
    match key {
        Some(key) => values(snapshot, key, quoted, &mut items),
        None if quoted => {}
        None => keys(ahead, text.get(..start).unwrap_or(""), &mut items),
    }
    items.all
}

fn values(snapshot: &Snapshot, key: &str, quoted: bool, items: &mut Items) {
    let mut offer = |kind: ItemKind, word: &str, detail: &str| {
        let text = if quoted {
            word.to_owned()
        } else {
            format!("\"{word}\"")
        };
        items.word(kind, &text, detail, None);
    };
    match key {
        "expect" => {
            offer(ItemKind::Value, "allow", "");
            offer(ItemKind::Value, "deny", "");
        }
        "action" => {
            for action in snapshot.setup.service.actions.actions.values() {
                if action.applies_to.is_some() {
                    offer(ItemKind::Action, &short_name(&action.uid), "action");
                }
            }
        }
        "kind" => {
            let mut kinds: Vec<&str> = Vec::new();
            for event in snapshot.setup.service.events.events.keys() {
                if !kinds.contains(&event.kind.as_str()) {
                    kinds.push(&event.kind);
                }
            }
            for kind in kinds {
                offer(ItemKind::EventKind, kind, "");
            }
        }
        "by" => {
            let tested = snapshot.shelf.tested(&snapshot.document);
            for path in tested.map(|tested| tested.policies).unwrap_or_default() {
                let policy = snapshot.shelf.document(&path);
                for name in policy.iter().flat_map(|policy| lens::names(policy)) {
                    offer(ItemKind::Rule, &name, "rule");
                }
            }
        }
        "at" | "every" => {
            for time in ["+1s", "+1m", "+1h"] {
                offer(ItemKind::Value, time, "");
            }
        }
        _ => {}
    }
}

fn keys(line: &str, above: &str, items: &mut Items) {
    let in_table = line.rfind('{') > line.rfind('}') && line.contains('{');
    let names: &[&str] = if in_table {
        STEP
    } else if above.contains("[[test]]") {
        TEST
    } else {
        TOP
    };
    for name in names {
        let about = words::test_key(name).map(|about| about.meaning.to_owned());
        let insert = match *name {
            "events" => "events = [\n  { ${1} },\n]".to_owned(),
            "cases" => "cases = [\n  { ${1} },\n]".to_owned(),
            "times" | "status" => format!("{name} = ${{1}}"),
            "input" | "output" | "context" | "logged" | "defaults" => {
                format!("{name} = {{ ${{1}} }}")
            }
            _ => format!("{name} = \"${{1}}\""),
        };
        items.snippet(ItemKind::Keyword, name, "", about, insert);
    }
    if !in_table {
        let insert = "[[test]]\nname = \"${1:what the policy should do}\"\nevents = [\n  { command = \"${2}\", expect = \"${3|deny,allow|}\" },\n]";
        items.snippet(
            ItemKind::Snippet,
            "[[test]]",
            "a test",
            None,
            insert.to_owned(),
        );
    }
}
