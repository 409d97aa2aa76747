//! Events: one step of the history a policy looks back over.

use crate::value::{EntityUid, Record};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// What happened at one time point, and (for a decision) what was asked.
///
/// The logged record and the request context are never mixed: predicates read only `logged`, and
/// `context.…` reads only `request.context` of the event being decided (language reference, section 0).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
}
