//! The plainest values and events of a schema: what stands where nobody said anything.

use crate::schema::{
    ActionDecl, EventId, Extension, FieldType, PinValue, RecordType, Service, Type,
};
use crate::value::{EntityUid, Record, Value, put};
use smol_str::SmolStr;

/// Makes values of a schema's types.
#[derive(Clone, Copy)]
pub struct Plain<'a> {
    pub service: &'a Service,
}

impl Plain<'_> {
    pub fn value(&self, ty: &Type) -> Value {
        match ty {
            Type::Bool => Value::Bool(false),
            Type::Long => Value::Int(0),
            Type::String => Value::str(""),
            Type::Ext(Extension::Decimal) => Value::Decimal("0.0".into()),
            Type::Ext(_) => Value::str(""),
            Type::Entity(name) => Value::Entity(self.someone(name)),
            Type::Set(_) => Value::Array(Vec::new()),
            Type::Record(record) => Value::Object(self.record(record)),
        }
    }

    /// The required attributes. Types are not recursive.
    pub fn record(&self, ty: &RecordType) -> Record {
        ty.attrs
            .iter()
            .filter(|(_, attr)| attr.required)
            .map(|(name, attr)| (name.clone(), self.value(&attr.ty)))
            .collect()
    }

    /// An entity of a type: the first choice of an enumeration, else `self`, as the agent of a box is called.
    pub fn someone(&self, ty: &SmolStr) -> EntityUid {
        let choices = self
            .service
            .actions
            .entity_types
            .get(ty)
            .and_then(|ty| ty.choices.as_ref());
        let id = choices
            .and_then(|choices| choices.first().cloned())
            .unwrap_or_else(|| SmolStr::new_static("self"));
        EntityUid::new(ty.clone(), id)
    }

    /// Who does the action.
    pub fn principal(&self, action: &ActionDecl) -> Option<EntityUid> {
        let first = action.applies_to.as_ref()?.principals.first()?;
        Some(self.someone(first))
    }

    /// What it is done to: in a box everything is done to `unused`.
    pub fn resource(&self, action: &ActionDecl) -> Option<EntityUid> {
        let first = action.applies_to.as_ref()?.resources.first()?;
        let someone = self.someone(first);
        Some(match someone.id.as_str() {
            "self" => EntityUid::new(first.clone(), "unused"),
            _ => someone,
        })
    }

    /// The logged record of an event, field by field as the event schema derives it: `input` and `output` from
    /// `given`, the parties from the request, and what the host would add from `injected`.
    pub fn logged(
        &self,
        id: &EventId,
        given: &Record,
        principal: Option<&EntityUid>,
        resource: Option<&EntityUid>,
        injected: &str,
    ) -> Record {
        let mut logged = Record::new();
        let Some(derived) = self.service.events.events.get(id) else {
            return logged;
        };
        for (path, ty) in &derived.fields {
            let Some(first) = path.first() else { continue };
            match ty {
                FieldType::Declared { .. } => {
                    if let Some(value) = given.get(first) {
                        logged.insert(first.clone(), value.clone());
                    }
                }
                FieldType::Scope(_) => {
                    let pinned = derived.pins.iter().find(|pin| pin.field == *path);
                    let of_resource = match pinned.map(|pin| &pin.value) {
                        Some(PinValue::Resource(_)) => true,
                        Some(_) => false,
                        None => first.to_ascii_lowercase().contains("resource"),
                    };
                    if let Some(uid) = if of_resource { resource } else { principal } {
                        put(&mut logged, path, Some(Value::Entity(uid.clone())));
                    }
                }
                FieldType::Injected(name) => {
                    let value = match name.as_str() {
                        "Long" => Value::Int(0),
                        "Bool" => Value::Bool(false),
                        _ => Value::str(injected),
                    };
                    put(&mut logged, path, Some(value));
                }
            }
        }
        logged
    }
}
