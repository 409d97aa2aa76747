//! Events in temporal conditions: their kinds, their fields, and what those are compared with.

use super::Here;
use crate::feature::completion::{ItemKind, Items, escaped};
use crate::feature::{hover, words};
use dogwood_compiler::schema::{DerivedEvent, EventId, FieldType};
use dogwood_compiler::value::EntityUid;
use smol_str::SmolStr;

impl<'a> Here<'a> {
    /// Behind `Ns::Action::"id"::`.
    pub(super) fn kinds(&self, items: &mut Items) {
        let Some((ty, id)) = self.cursor.action(1) else {
            return;
        };
        let uid = EntityUid::new(ty, id);
        let events = &self.snapshot.setup.service.events;
        for event in events.events.keys().filter(|event| event.action == uid) {
            let decided = events.decision_kinds.contains(&event.kind);
            let detail = if decided { "is decided" } else { "happened" };
            let insert = format!("{}{{ $0 }}", event.kind);
            items.snippet(ItemKind::EventKind, &event.kind, detail, None, insert);
        }
    }

    pub(super) fn kind_choice(&self, uid: &EntityUid) -> String {
        let events = self.snapshot.setup.service.events.events.keys();
        let kinds: Vec<&str> = events
            .filter(|event| event.action == *uid)
            .map(|event| event.kind.as_str())
            .collect();
        format!("${{1|{}|}}", kinds.join(","))
    }

    pub(super) fn event(&self, ty: &str, id: &str, kind: &str) -> Option<&'a DerivedEvent> {
        let id = EventId {
            action: EntityUid::new(ty, id),
            kind: SmolStr::new(kind),
        };
        self.snapshot.setup.service.events.events.get(&id)
    }

    /// The fields of an event, whole paths at once; behind a dot, what is left of them.
    pub(super) fn event_fields(&self, event: &DerivedEvent, items: &mut Items) {
        let way = self.cursor.dotted(0);
        for (path, ty) in &event.fields {
            let begins = path.iter().zip(&way).all(|(word, way)| word == way);
            let Some(rest) = path
                .get(way.len()..)
                .filter(|rest| begins && !rest.is_empty())
            else {
                continue;
            };
            let label = rest.join(".");
            let about = hover::field_comment(self.snapshot, &event.id.action, path);
            let insert = format!("{}: $0", escaped(&label));
            items.snippet(
                ItemKind::Field,
                &label,
                &hover::field_type(ty),
                about,
                insert,
            );
        }
    }

    /// What a field of an event may be compared with.
    pub(super) fn value_of(&self, event: &DerivedEvent, items: &mut Items) {
        let field = self.cursor.back(2);
        let mut path = self.cursor.dotted(2);
        path.push(field);
        let path: Vec<SmolStr> = path.into_iter().map(SmolStr::new).collect();
        match event.fields.get(&path) {
            Some(FieldType::Declared { ty, .. }) => self.values(ty, items),
            Some(FieldType::Scope(_)) => {
                let word = if field.to_ascii_lowercase().contains("resource") {
                    "resource"
                } else {
                    "principal"
                };
                items.word(ItemKind::Variable, word, "", None);
            }
            _ => {}
        }
        if let Some(action) = self.snapshot.actions_of(self.rule).first()
            && let Some(applies_to) = &action.applies_to
            && self
                .snapshot
                .inside(
                    &applies_to.context,
                    path.get(..path.len() - 1).unwrap_or_default(),
                )
                .is_some_and(|record| {
                    path.last()
                        .is_some_and(|last| record.attrs.contains_key(last))
                })
        {
            let label = format!("context.{}", path.join("."));
            let about = Some("The same as in the request being decided.".to_owned());
            items.word(ItemKind::Field, &label, "", about);
        }
        self.variables(items);
        items.word(
            ItemKind::Value,
            "*",
            "present",
            words::operator("*").map(|about| about.meaning.to_owned()),
        );
    }
}
