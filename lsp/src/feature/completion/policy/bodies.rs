//! The words of conditions and expressions.

use super::Here;
use crate::feature::completion::{ItemKind, Items, escaped};
use crate::feature::words;
use dogwood_compiler::explain::short_name;
use dogwood_compiler::grammar::ast::MacroKind;

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
        for word in ["context", "principal", "action", "resource"] {
            items.word(ItemKind::Variable, word, "", None);
        }
        items.keywords(&["has", "like", "is", "in", "if", "then", "else"]);
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
