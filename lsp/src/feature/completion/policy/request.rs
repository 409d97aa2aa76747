//! What is asked for: the fields of the request, their methods, and what they are compared with.

use super::{Here, root};
use crate::feature::completion::{ItemKind, Items};
use crate::feature::{hover, words};
use crate::mark::Root;
use dogwood_compiler::schema::{Extension, RecordType, Type};
use smol_str::SmolStr;

const SET_METHODS: &[&str] = &["contains", "containsAll", "containsAny", "isEmpty"];
const ENTITY_METHODS: &[&str] = &["hasTag", "getTag"];

impl Here<'_> {
    /// Behind a dot.
    pub(super) fn members(&self, items: &mut Items) {
        let words = self.cursor.dotted(0);
        if let Some((ty, id, kind)) = self.cursor.matcher()
            && root(words.first().copied().unwrap_or_default()).is_none()
        {
            if let Some(event) = self.event(&ty, &id, kind) {
                self.event_fields(event, items);
            }
            return;
        }
        self.fields_of(&words, items);
        if self.cursor.temporal() {
            return;
        }
        let stage = self.cursor.before.len().checked_sub(1);
        if let Some(stage) = stage.and_then(|end| self.stage(end)) {
            self.of_stage(&stage, items);
            self.methods(methods(&[(stage.ty, true)]), items);
            return;
        }
        if let Some(extension) = self.constructed() {
            self.methods(methods(&[(Type::Ext(extension), true)]), items);
            return;
        }
        let path: Vec<SmolStr> = words.iter().skip(1).map(SmolStr::new).collect();
        let root = words.first().and_then(|word| root(word));
        let names = match root {
            Some(Root::Context | Root::Action) if path.is_empty() => &[][..],
            Some(_) if path.is_empty() => ENTITY_METHODS,
            Some(root) => methods(&self.snapshot.field_types(self.rule, root, &path)),
            None => SET_METHODS,
        };
        self.methods(names, items);
    }

    /// What the constructor makes that is called before the dot: `decimal("1.0").`.
    fn constructed(&self) -> Option<Extension> {
        let close = self.cursor.before.len().checked_sub(2)?;
        let open = self.opening(close).filter(|open| *open < close)?;
        match self.word(open.checked_sub(1)?) {
            "decimal" => Some(Extension::Decimal),
            "ip" => Some(Extension::IpAddr),
            "datetime" => Some(Extension::Datetime),
            "duration" => Some(Extension::Duration),
            _ => None,
        }
    }

    /// Methods of the language itself.
    fn methods(&self, names: &[&str], items: &mut Items) {
        for name in names {
            let about = words::method(name).map(|about| about.meaning.to_owned());
            let bare = name.starts_with("is") && *name != "isInRange" || name.starts_with("to");
            let insert = if bare {
                format!("{name}()")
            } else {
                format!("{name}($0)")
            };
            items.snippet(ItemKind::Function, name, "method", about, insert);
        }
    }

    /// The fields below a path of the request.
    pub(super) fn fields_of(&self, words: &[&str], items: &mut Items) {
        let Some(root) = words.first().and_then(|word| root(word)) else {
            return;
        };
        let way: Vec<SmolStr> = words.iter().skip(1).map(SmolStr::new).collect();
        for record in self.snapshot.records_of(self.rule, root) {
            let Some(record) = self.snapshot.inside(&record, &way) else {
                continue;
            };
            self.record(record, root, &way, items);
        }
    }

    pub(super) fn record(
        &self,
        record: &RecordType,
        root: Root,
        way: &[SmolStr],
        items: &mut Items,
    ) {
        for (name, attr) in &record.attrs {
            let optional = if attr.required {
                ""
            } else {
                " (may be absent)"
            };
            let mut path = way.to_vec();
            path.push(name.clone());
            let about = match root {
                Root::Context => self
                    .snapshot
                    .actions_of(self.rule)
                    .first()
                    .and_then(|action| hover::field_comment(self.snapshot, &action.uid, &path)),
                _ => None,
            };
            items.word(
                ItemKind::Field,
                name,
                &format!("{}{optional}", attr.ty),
                about,
            );
        }
    }

    /// The values of an enumerated type, and of `Bool`.
    pub(super) fn values(&self, ty: &Type, items: &mut Items) {
        match ty {
            Type::Entity(name) => {
                let types = &self.snapshot.setup.service.actions.entity_types;
                let choices = types.get(name).and_then(|entity| entity.choices.as_ref());
                let given = self.snapshot.setup.service.providers.enums().get(name);
                let given = given.map(|given| &given.choices);
                for choice in choices.or(given).into_iter().flatten() {
                    let label = format!("{name}::\"{choice}\"");
                    items.word(ItemKind::Value, &label, "", None);
                }
            }
            Type::Bool => {
                items.word(ItemKind::Value, "true", "", None);
                items.word(ItemKind::Value, "false", "", None);
            }
            _ => {}
        }
    }

    /// What the left side of a comparison is compared with.
    pub(super) fn compared(&self, items: &mut Items) {
        let end = self.cursor.before.len().saturating_sub(1);
        if let Some(stage) = self.stage(end) {
            return self.values(&stage.ty, items);
        }
        let words = self.cursor.dotted_name(1);
        let Some(root) = words.first().and_then(|word| root(word)) else {
            return;
        };
        if root == Root::Action && words.len() == 1 {
            return self.actions(items);
        }
        let path: Vec<SmolStr> = words.iter().skip(1).map(SmolStr::new).collect();
        for (ty, _) in self.snapshot.field_types(self.rule, root, &path) {
            self.values(&ty, items);
        }
    }
}

/// The methods that values of these types have; those of sets where nothing is known.
fn methods(types: &[(Type, bool)]) -> &'static [&'static str] {
    match types.first().map(|(ty, _)| ty) {
        Some(Type::Set(_)) => SET_METHODS,
        Some(Type::Entity(_)) => ENTITY_METHODS,
        Some(Type::Ext(Extension::Decimal)) => &[
            "lessThan",
            "lessThanOrEqual",
            "greaterThan",
            "greaterThanOrEqual",
        ],
        Some(Type::Ext(Extension::IpAddr)) => {
            &["isIpv4", "isIpv6", "isLoopback", "isMulticast", "isInRange"]
        }
        Some(Type::Ext(Extension::Datetime)) => &["offset", "durationSince", "toDate", "toTime"],
        Some(Type::Ext(Extension::Duration)) => &[
            "toMilliseconds",
            "toSeconds",
            "toMinutes",
            "toHours",
            "toDays",
        ],
        Some(Type::Bool | Type::Long | Type::String | Type::Record(_)) => &[],
        None => SET_METHODS,
    }
}
