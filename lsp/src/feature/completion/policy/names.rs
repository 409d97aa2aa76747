//! Names of a schema and of macros, written out or behind `Ns::`.

use super::Here;
use crate::feature::completion::{ItemKind, Items, escaped};
use crate::feature::{hover, words};
use dogwood_compiler::grammar::ast::MacroKind;
use dogwood_compiler::value::EntityUid;

impl Here<'_> {
    /// Behind `Ns::…::`.
    pub(super) fn qualified(&self, path: &str, items: &mut Items) {
        let schema = &self.snapshot.setup.service.actions;
        let quoted = |id: &str| {
            if self.cursor.in_string {
                id.to_owned()
            } else {
                format!("\"{id}\"")
            }
        };
        for action in schema
            .actions
            .values()
            .filter(|action| action.uid.ty == path)
        {
            let about = self.about_action(&action.uid);
            let matcher = self.cursor.temporal() && action.applies_to.is_some();
            if matcher && !self.cursor.in_string {
                let insert = format!(
                    "\"{}\"::{}{{ $0 }}",
                    escaped(&action.uid.id),
                    self.kind_choice(&action.uid)
                );
                let label = quoted(&action.uid.id);
                items.snippet(ItemKind::Action, &label, "action", about, insert);
            } else {
                items.word(ItemKind::Action, &quoted(&action.uid.id), "action", about);
            }
        }
        if let Some(entity) = schema.entity_types.get(path) {
            for choice in entity.choices.iter().flatten() {
                items.word(ItemKind::Value, &quoted(choice), path, None);
            }
        }
        self.provided(path, items);
        if self.cursor.in_string {
            return;
        }
        let prefix = format!("{path}::");
        let types = schema.entity_types.keys();
        let actions = schema.actions.keys().map(|uid| &uid.ty);
        for name in types.chain(actions) {
            if let Some(rest) = name.strip_prefix(&prefix) {
                let next = rest.split("::").next().unwrap_or(rest);
                items.word(ItemKind::Type, next, name, None);
            }
        }
    }

    pub(super) fn about_action(&self, uid: &EntityUid) -> Option<String> {
        let built_in = self.snapshot.setup.action_schema.is_none();
        let about = words::action(&uid.id).filter(|_| built_in)?;
        Some(about.to_owned())
    }

    /// Every action, written out.
    pub(super) fn actions(&self, items: &mut Items) {
        for action in self.snapshot.setup.service.actions.actions.values() {
            let uid = &action.uid;
            let label = format!("{}::\"{}\"", uid.ty, uid.id);
            let detail = if action.applies_to.is_some() {
                "action"
            } else {
                "group of actions"
            };
            items.word(ItemKind::Action, &label, detail, self.about_action(uid));
        }
    }

    pub(super) fn types(&self, items: &mut Items) {
        for entity in self.snapshot.setup.service.actions.entity_types.values() {
            let detail = if entity.choices.is_some() {
                "enumerated"
            } else {
                "entity type"
            };
            items.word(ItemKind::Type, &entity.name, detail, None);
        }
    }

    pub(super) fn macros(&self, kind: MacroKind, items: &mut Items) {
        for (def, document) in self.snapshot.all_macros() {
            if def.kind != kind {
                continue;
            }
            let params: Vec<String> = def
                .params
                .iter()
                .enumerate()
                .map(|(at, param)| format!("${{{}:{}}}", at + 1, param.text))
                .collect();
            let insert = format!("{}({})", def.name.text, params.join(", "));
            let about = document.comment_above(def.span.start as usize);
            items.snippet(
                ItemKind::Macro,
                &def.name.text,
                &hover::signature(def),
                about,
                insert,
            );
        }
    }
}
