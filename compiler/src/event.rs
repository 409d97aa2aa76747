//! Events: one step of the history a policy looks back over.

use crate::schema::PinValue;
use crate::value::{EntityUid, Record, Value};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::borrow::Cow;

pub mod strict;

/// What happened at one time point, and (for a decision) what was asked.
///
/// The logged record and the request context are never mixed: predicates read only `logged`, and
/// `context.…` reads only `request.context` of the event being decided (language reference, section 0).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Seconds. Neither unique nor monotone in a trace; non-decreasing in a box.
    pub time: i64,
    /// The action: type `Box::Action`, id `shell:spawn`.
    pub action: EntityUid,
    pub kind: SmolStr,
    /// Matched by predicates; inputs and outputs are nested records `input`, `output`.
    pub logged: Record,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestPart>,
}

/// The part of a decision event that rule heads and conditions read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestPart {
    pub principal: Option<EntityUid>,
    pub resource: Option<EntityUid>,
    #[serde(default)]
    pub context: Record,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entities: Vec<EntityData>,
}

/// One entity of the store slice that comes with a decision event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntityData {
    pub uid: EntityUid,
    #[serde(default)]
    pub attrs: Record,
    #[serde(default)]
    pub parents: Vec<EntityUid>,
    #[serde(default, skip_serializing_if = "Record::is_empty")]
    pub tags: Record,
}

impl RequestPart {
    /// The value at a path of the request, if it is there. An attribute that was given wins over the id
    /// and the type that every entity has.
    pub fn read(&self, path: &PinValue) -> Option<Cow<'_, Value>> {
        match path {
            PinValue::Context(path) => match path.split_first() {
                None => Some(Cow::Owned(Value::Object(self.context.clone()))),
                Some((first, rest)) => self.context.get(first)?.at(rest).map(Cow::Borrowed),
            },
            PinValue::Principal(path) => self.of_entity(self.principal.as_ref()?, path),
            PinValue::Resource(path) => self.of_entity(self.resource.as_ref()?, path),
        }
    }

    fn of_entity(&self, uid: &EntityUid, path: &[SmolStr]) -> Option<Cow<'_, Value>> {
        let Some((first, rest)) = path.split_first() else {
            return Some(Cow::Owned(Value::Entity(uid.clone())));
        };
        let given = self.entities.iter().find(|entity| entity.uid == *uid);
        if let Some(value) = given.and_then(|given| given.attrs.get(first)) {
            return value.at(rest).map(Cow::Borrowed);
        }
        match (first.as_str(), rest) {
            ("id", []) => Some(Cow::Owned(Value::String(uid.id.clone()))),
            ("type", []) => Some(Cow::Owned(Value::String(uid.ty.clone()))),
            _ => None,
        }
    }
}
