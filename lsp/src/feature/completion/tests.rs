//! Completion in test files: keys by where they stand, and the names that policy and schema give.

use super::{Item, ItemKind, Items, escaped};
use crate::feature::{hover, lens, words};
use crate::snapshot::Snapshot;
use dogwood_compiler::explain::short_name;
use dogwood_compiler::grammar::Span;
use dogwood_compiler::schema::{RecordType, Type};
use dogwood_compiler::suite::STEP;
use dogwood_compiler::value::EntityUid;
use smol_str::SmolStr;

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
    let given = Given::at(snapshot, offset);
    match (key, &given) {
        (Some(key), Some(given)) => given.values(snapshot, key, quoted, &mut items),
        (Some(key), None) => values(snapshot, key, quoted, &mut items),
        (None, _) if quoted => {}
        (None, Some(given)) => given.keys(snapshot, &mut items),
        (None, None) => keys(text.get(..offset).unwrap_or(""), &mut items),
    }
    items.all
}

/// The cursor is among the fields that a step gives its action.
struct Given {
    /// The type of the record they are in.
    record: RecordType,
    action: EntityUid,
    way: Vec<SmolStr>,
}

impl Given {
    fn at(snapshot: &Snapshot, offset: usize) -> Option<Given> {
        let text = snapshot.text();
        let before = text.get(..offset)?;
        // A step does not go beyond the head of its test.
        let head = before.rfind("[[").unwrap_or(0);
        let tables = open_tables(before.get(head..)?);
        let group = tables
            .iter()
            .position(|(key, _)| matches!(*key, "input" | "output" | "context"))?;
        let step = group.checked_sub(1).and_then(|at| tables.get(at));
        let step = step.map_or(head, |(_, start)| head + start);
        let called = called(text.get(step..)?)?;
        let action = snapshot.action_called(called)?.clone();
        let mut way: Vec<SmolStr> = tables
            .iter()
            .skip(group)
            .map(|(key, _)| SmolStr::new(key))
            .collect();
        if way.first().is_some_and(|first| first == "context") {
            way.remove(0);
        }
        let decl = snapshot.setup.service.actions.actions.get(&action)?;
        let context = &decl.applies_to.as_ref()?.context;
        let record = snapshot.inside(context, &way)?.clone();
        Some(Given {
            record,
            action,
            way,
        })
    }

    fn keys(&self, snapshot: &Snapshot, items: &mut Items) {
        for (name, attr) in &self.record.attrs {
            let mut path = self.way.clone();
            path.push(name.clone());
            let about = hover::field_comment(snapshot, &self.action, &path);
            let optional = if attr.required {
                ""
            } else {
                " (may be absent)"
            };
            let value = match &attr.ty {
                Type::Bool | Type::Long => "${1}",
                Type::Record(_) => "{ ${1} }",
                Type::Set(_) => "[${1}]",
                Type::String | Type::Entity(_) | Type::Ext(_) => "\"${1}\"",
            };
            let detail = format!("{}{optional}", attr.ty);
            let insert = format!("{} = {value}", escaped(name));
            items.snippet(ItemKind::Field, name, &detail, about, insert);
        }
    }

    fn values(&self, snapshot: &Snapshot, key: &str, quoted: bool, items: &mut Items) {
        let Some(attr) = self.record.attrs.get(key) else {
            return;
        };
        match &attr.ty {
            Type::Bool if !quoted => {
                items.word(ItemKind::Value, "true", "", None);
                items.word(ItemKind::Value, "false", "", None);
            }
            Type::Entity(name) => {
                let types = &snapshot.setup.service.actions.entity_types;
                let choices = types.get(name).and_then(|entity| entity.choices.as_ref());
                for choice in choices.into_iter().flatten() {
                    let text = if quoted {
                        choice.to_string()
                    } else {
                        format!("\"{choice}\"")
                    };
                    items.word(ItemKind::Value, &text, name, None);
                }
            }
            _ => {}
        }
    }
}

/// The inline tables that are open at the end of a text, outermost first: the key of each, and where its brace
/// stands.
fn open_tables(text: &str) -> Vec<(&str, usize)> {
    let mut open: Vec<(&str, usize)> = Vec::new();
    let mut rest = text.char_indices();
    while let Some((at, c)) = rest.next() {
        match c {
            '#' => {
                rest.find(|(_, c)| *c == '\n');
            }
            '"' | '\'' => {
                // A string that is not closed ends with its line.
                while let Some((_, next)) = rest.next() {
                    match next {
                        '\\' if c == '"' => {
                            rest.next();
                        }
                        '\n' => break,
                        next if next == c => break,
                        _ => {}
                    }
                }
            }
            '{' => {
                let before = text.get(..at).unwrap_or("").trim_end();
                let key = before.strip_suffix('=').map_or("", |key| {
                    let key = key.trim_end();
                    let from = key.rfind(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-'));
                    key.get(from.map_or(0, |from| from + 1)..).unwrap_or("")
                });
                open.push((key, at));
            }
            '}' => {
                open.pop();
            }
            _ => {}
        }
    }
    open
}

/// What a step calls its action, written on the line of its brace or on the next ones.
fn called(step: &str) -> Option<&str> {
    let end = step.find("[[").unwrap_or(step.len());
    let mut rest = step.get(..end)?;
    loop {
        let at = rest.find("action")?;
        let (before, after) = (rest.get(..at)?, rest.get(at + "action".len()..)?);
        // Only of this step: another brace that closes is its end.
        let closed = before.matches('}').count() > before.matches('{').count();
        if closed {
            return None;
        }
        let value = after.trim_start().strip_prefix('=').map(str::trim_start);
        let quote = value.and_then(|value| value.chars().next());
        match (value, quote) {
            (Some(value), Some(quote @ ('"' | '\''))) => {
                return value.get(1..)?.split(quote).next();
            }
            _ => rest = after,
        }
    }
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

fn keys(before: &str, items: &mut Items) {
    let head = before.rfind("[[");
    let in_table = !open_tables(before.get(head.unwrap_or(0)..).unwrap_or("")).is_empty();
    let names: &[&str] = if in_table {
        STEP
    } else if head.is_some() {
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
