//! Completion in policies and macro libraries.

mod bodies;
mod events;
mod names;
mod providers;
mod request;
mod rules;

use super::{ItemKind, Items};
use crate::cursor::Cursor;
use crate::feature::words;
use crate::mark::Root;
use crate::snapshot::Snapshot;
use dogwood_compiler::grammar::ast::{Item, Rule};
use dogwood_compiler::grammar::parse_policy;

/// Types a variable of a temporal condition may have beside entities.
const VARIABLE_TYPES: [&str; 5] = ["Timepoint", "String", "Long", "Bool", "decimal"];

pub fn complete(snapshot: &Snapshot, offset: usize, cursor: &Cursor, items: &mut Items) {
    let written = snapshot.rule_at(offset).map(|(_, rule)| rule);
    // A rule that is still being written has at least its head.
    let begun = match written {
        Some(_) => None,
        None => head_before(snapshot.text(), cursor),
    };
    let here = Here {
        snapshot,
        rule: written.or(begun.as_ref()),
        cursor,
    };
    here.complete(items);
}

/// The rule that the tokens before the cursor begin: its effect and its head.
fn head_before(text: &str, cursor: &Cursor) -> Option<Rule> {
    let mut words = cursor.before.iter();
    let effect = words.find(|word| matches!(word.text, "permit" | "forbid"))?;
    let mut depth = 0usize;
    let close = words.find(|word| {
        match word.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        word.text == ")" && depth == 0
    })?;
    let head = text.get(effect.span.start as usize..close.span.end as usize)?;
    let parsed = parse_policy(&format!("{head};"));
    parsed.tree.items.into_iter().find_map(|item| match item {
        Item::Rule(rule) => Some(rule),
        _ => None,
    })
}

struct Here<'a> {
    snapshot: &'a Snapshot,
    rule: Option<&'a Rule>,
    cursor: &'a Cursor<'a>,
}

fn root(word: &str) -> Option<Root> {
    Some(match word {
        "principal" => Root::Principal,
        "action" => Root::Action,
        "resource" => Root::Resource,
        "context" => Root::Context,
        _ => return None,
    })
}

impl<'a> Here<'a> {
    fn complete(&self, items: &mut Items) {
        let cursor = self.cursor;
        let inside = cursor.inside().map_or("", |(bracket, _)| bracket);
        if let Some(path) = cursor.path() {
            return self.qualified(&path, items);
        }
        if cursor.in_string {
            return self.in_string(items);
        }
        match cursor.back(1) {
            "::" => return self.kinds(items),
            "@" => {
                for key in ["id", "description", "allow"] {
                    let about = words::annotation(key).map(|about| about.meaning.to_owned());
                    let insert = format!("{key}(\"${{1}}\")");
                    items.snippet(ItemKind::Keyword, key, "", about, insert);
                }
                return;
            }
            "." => {
                let introduces = cursor.back(2) == ")" && cursor.temporal();
                if !introduces {
                    return self.members(items);
                }
            }
            "within" => {
                self.windows(items);
                return;
            }
            "has" => {
                let path = cursor.dotted_name(1);
                return self.fields_of(&path, items);
            }
            "is" => return self.types(items),
            ":" if inside == "(" => {
                for ty in VARIABLE_TYPES {
                    let about = words::type_name(ty).map(|about| about.meaning.to_owned());
                    items.word(ItemKind::Type, ty, "", about);
                }
                return self.types(items);
            }
            _ => {}
        }
        if let Some((ty, id, kind)) = cursor.matcher() {
            let value = cursor.back(1) == ":";
            if let Some(event) = self.event(&ty, &id, kind) {
                if value {
                    self.value_of(event, items);
                } else {
                    self.event_fields(event, items);
                }
            }
            return;
        }
        if cursor.open.is_empty() {
            return self.outside(items);
        }
        if cursor.in_head() {
            return self.head(items);
        }
        if self.argument(items) {
            return;
        }
        if self.takes_window() {
            self.windows(items);
            return;
        }
        if let "==" | "!=" | "<" | "<=" | ">" | ">=" | "in" = cursor.back(1) {
            self.compared(items);
        }
        if cursor.temporal() {
            self.condition(items);
        } else if cursor.in_body() {
            self.expression(items);
        }
    }
}
