//! The words of conditions and expressions.

use super::Here;
use crate::feature::completion::{ItemKind, Items, escaped};
use crate::feature::words;
use crate::walk::{self, Node};
use dogwood_compiler::explain::short_name;
use dogwood_compiler::grammar::TokenKind;
use dogwood_compiler::grammar::ast::{CondKind, MacroDef, MacroKind, WindowKind};
use smol_str::SmolStr;

impl Here<'_> {
    pub(super) fn parameters(&self, items: &mut Items) {
        for name in self.cursor.parameters() {
            items.word(ItemKind::Variable, name, "parameter", None);
        }
    }

    pub(super) fn variables(&self, items: &mut Items) {
        for (name, ty) in self.cursor.variables() {
            items.word(ItemKind::Variable, name, ty, None);
        }
        self.parameters(items);
    }

    pub(super) fn windows(&self, items: &mut Items) {
        for window in ["1m", "15m", "1h", "24h"] {
            items.word(ItemKind::Value, window, "", None);
        }
        self.parameters(items);
    }

    /// Whether the cursor is where a macro takes a window.
    pub(super) fn takes_window(&self) -> bool {
        let Some((name, position)) = self.cursor.call() else {
            return false;
        };
        let directly = self.cursor.inside().is_some_and(|(_, at)| at == name + 1);
        if !directly || !matches!(self.cursor.back(1), "(" | ",") {
            return false;
        }
        let name = self.cursor.before.get(name).map_or("", |word| word.text);
        let found = self.snapshot.macro_named(name);
        let param = found.and_then(|(def, ..)| Some((def, def.params.get(position)?)));
        param.is_some_and(|(def, param)| windows_of(def).contains(&param.text))
    }

    /// Whether a whole operand stands before the cursor, so that an operator comes next.
    fn behind_operand(&self) -> bool {
        let Some(last) = self.cursor.before.last() else {
            return false;
        };
        match last.kind {
            TokenKind::String | TokenKind::Number | TokenKind::Parameter | TokenKind::Word => true,
            TokenKind::Keyword => matches!(
                last.text,
                "true" | "false" | "principal" | "action" | "resource" | "context"
            ),
            TokenKind::Bracket => matches!(last.text, ")" | "]"),
            _ => false,
        }
    }

    fn operators(&self, items: &mut Items) {
        if self.cursor.before.iter().any(|word| word.text == "if") {
            items.keywords(&["then", "else"]);
        }
        items.keywords(&["has", "like", "is", "in"]);
        for operator in ["==", "!=", "<", "<=", ">", ">=", "&&", "||"] {
            let about = words::operator(operator).map(|about| about.meaning.to_owned());
            items.word(ItemKind::Keyword, operator, "", about);
        }
    }

    pub(super) fn condition(&self, items: &mut Items) {
        self.variables(items);
        self.macros(MacroKind::Temporal, items);
        for (label, insert) in [
            ("formerly", "formerly within ${1:1h} $0"),
            ("previous", "previous within ${1:1h} $0"),
            ("since", "since within ${1:1h} $0"),
            ("exists", "exists (${1:x}: ${2:String}). ($0)"),
            (
                "count",
                "(count for (${1:t}: Timepoint). where (formerly within ${2:1h} ($0 && tp(${1:t}))))",
            ),
            (
                "sum",
                "(sum ${1:n} for (${1:n}: Long), (${2:t}: Timepoint). where (formerly within ${3:1h} ($0 && tp(${2:t}))))",
            ),
            ("tp", "tp(${1:t})"),
        ] {
            let about = words::keyword(label).map(|about| about.meaning.to_owned());
            items.snippet(ItemKind::Keyword, label, "", about, insert.to_owned());
        }
        for action in self.snapshot.setup.service.actions.actions.values() {
            if action.applies_to.is_none() {
                continue;
            }
            let uid = &action.uid;
            let insert = format!(
                "{}::\"{}\"::{}{{ $0 }}",
                uid.ty,
                escaped(&uid.id),
                self.kind_choice(uid)
            );
            let label = format!("{}::\"{}\"", uid.ty, uid.id);
            items.snippet(
                ItemKind::Action,
                &label,
                &short_name(uid),
                self.about_action(uid),
                insert,
            );
        }
        for word in ["context", "principal", "resource"] {
            items.word(ItemKind::Variable, word, "", None);
        }
    }

    pub(super) fn expression(&self, items: &mut Items) {
        if self.behind_operand() {
            return self.operators(items);
        }
        for word in ["context", "principal", "action", "resource"] {
            items.word(ItemKind::Variable, word, "", None);
        }
        items.keywords(&["if"]);
        items.word(ItemKind::Value, "true", "", None);
        items.word(ItemKind::Value, "false", "", None);
        let about = words::keyword("temporal").map(|about| about.meaning.to_owned());
        let insert = "temporal { $0 }".to_owned();
        items.snippet(ItemKind::Keyword, "temporal", "", about, insert);
        self.macros(MacroKind::Cedar, items);
        for name in ["decimal", "datetime", "duration", "ip"] {
            let about = words::constructor(name).map(|about| about.meaning.to_owned());
            let insert = format!("{name}(\"$0\")");
            items.snippet(ItemKind::Function, name, "", about, insert);
        }
        let providers = &self.snapshot.setup.service.providers;
        for name in providers.names() {
            if let Some(provider) = providers.get(name) {
                self.provider(name, provider, items);
            }
        }
        self.parameters(items);
    }
}

/// The parameters of a macro that stand for windows.
fn windows_of(def: &MacroDef) -> Vec<SmolStr> {
    let mut found = Vec::new();
    walk::definition(def, &mut |node| {
        if let Node::Cond(cond) = node
            && let CondKind::Formerly { window, .. }
            | CondKind::Previous { window, .. }
            | CondKind::Since { window, .. } = &cond.kind
            && let WindowKind::Param(name) = &window.kind
        {
            found.push(name.text.clone());
        }
    });
    found
}
