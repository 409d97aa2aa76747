//! Rules from outside: what begins one, its head, and its clauses.

use super::Here;
use crate::feature::completion::idioms::{IDIOMS, plain};
use crate::feature::completion::{ItemKind, Items};
use crate::feature::words;
use dogwood_compiler::diagnostic::codes::CODES;

impl Here<'_> {
    /// Outside all brackets: between rules, or between the clauses of one.
    pub(super) fn outside(&self, items: &mut Items) {
        if self.cursor.before.is_empty() || self.cursor.back(1) == ")" && self.noted() {
            if self.cursor.before.is_empty() && self.snapshot.setup.action_schema.is_none() {
                for idiom in IDIOMS {
                    let about =
                        format!("{}\n\n```dogwood\n{}\n```", idiom.about, plain(idiom.body));
                    items.snippet(
                        ItemKind::Snippet,
                        idiom.label,
                        "idiom",
                        Some(about),
                        idiom.body.to_owned(),
                    );
                }
            }
            for effect in ["permit", "forbid"] {
                let about = words::keyword(effect).map(|about| about.meaning.to_owned());
                let insert = format!("{effect} (principal, action == ${{1}}, resource)$0;");
                items.snippet(ItemKind::Keyword, effect, "", about, insert);
            }
            let macros: &[&str] = if self.cursor.before.is_empty() {
                &["temporal", "cedar"]
            } else {
                &[]
            };
            for kind in macros {
                let label = format!("def {kind}");
                let about = words::keyword("def").map(|about| about.meaning.to_owned());
                let insert = format!("def {kind} ${{1:name}}(${{2:?param}}) {{\n  $0\n}};");
                items.snippet(ItemKind::Keyword, &label, "", about, insert);
            }
            let insert = "@id(\"${1}\")".to_owned();
            items.snippet(ItemKind::Keyword, "@id", "", None, insert);
            return;
        }
        match self.cursor.back(1) {
            "when" | "unless" => {
                let insert = "temporal { $0 }".to_owned();
                let about = words::keyword("temporal").map(|about| about.meaning.to_owned());
                items.snippet(ItemKind::Keyword, "temporal", "", about, insert);
            }
            ")" | "}" => {
                for clause in ["when", "unless"] {
                    let about = words::keyword(clause).map(|about| about.meaning.to_owned());
                    let insert = format!("{clause} {{ $0 }}");
                    items.snippet(ItemKind::Keyword, clause, "", about.clone(), insert);
                    let insert = format!("{clause} temporal {{ $0 }}");
                    let label = format!("{clause} temporal");
                    items.snippet(ItemKind::Keyword, &label, "", about, insert);
                }
            }
            "def" => items.keywords(&["temporal", "cedar"]),
            _ => {}
        }
    }

    /// Whether only annotations stand before the cursor.
    pub(super) fn noted(&self) -> bool {
        self.cursor
            .before
            .first()
            .is_some_and(|word| word.text == "@")
            && !self
                .cursor
                .before
                .iter()
                .any(|word| matches!(word.text, "permit" | "forbid"))
    }

    pub(super) fn head(&self, items: &mut Items) {
        let cursor = self.cursor;
        match cursor.back(1) {
            "(" | "," if cursor.open.len() == 1 => {
                for word in ["principal", "action", "resource"] {
                    let said = cursor.before.iter().any(|before| before.text == word);
                    if !said {
                        items.word(ItemKind::Variable, word, "", None);
                    }
                }
            }
            "principal" | "resource" => items.keywords(&["is", "in", "=="]),
            "action" => items.keywords(&["==", "in"]),
            "==" | "in" | "[" | "," => {
                let of_action = cursor
                    .before
                    .iter()
                    .rev()
                    .find(|word| matches!(word.text, "principal" | "action" | "resource"))
                    .is_some_and(|word| word.text == "action");
                if of_action {
                    self.actions(items);
                } else {
                    self.types(items);
                }
            }
            _ => {}
        }
    }

    pub(super) fn in_string(&self, items: &mut Items) {
        let cursor = self.cursor;
        if cursor.back(1) == "(" && cursor.back(2) == "allow" && cursor.back(3) == "@" {
            for (code, meaning) in CODES {
                items.word(ItemKind::Code, code, "", Some((*meaning).to_owned()));
            }
        }
    }
}
