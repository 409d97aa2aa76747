//! Schemas that come with the toolchain: the default events, and what a box decides about.

use super::{ActionSchema, EventSchema, Service, derive, resolve};
use dogwood_grammar::{parse_action_schema, parse_event_schema};

/// The event schema used where none is given: every event is pinned to the deciding principal, so a
/// rule sees only what the same principal did.
pub const DEFAULT_EVENTS: &str = "\
decision event <A>::request {
  ...inputs(A),
  pin callerPrincipal: principalType(A) = principal,
  callerResource: resourceType(A),
  requestId: String,
  sessionId: String
}

event <A>::response {
  ...inputs(A),
  ...outputs(A),
  pin callerPrincipal: principalType(A) = principal,
  callerResource: resourceType(A),
  requestId: String,
  sessionId: String
}

event <A>::error {
  ...inputs(A),
  pin callerPrincipal: principalType(A) = principal,
  callerResource: resourceType(A),
  requestId: String,
  sessionId: String
}
";

/// The text of the action schema of a box.
pub const BOX_ACTIONS: &str = include_str!("../../../stdlib-policies/box/actions.cedarschema");
/// The text of the event schema of a box.
pub const BOX_EVENTS: &str = include_str!("../../../stdlib-policies/box/events.dwschema");

/// The built-in events over these actions.
pub fn default_events(actions: &ActionSchema) -> EventSchema {
    derive(&parse_event_schema(DEFAULT_EVENTS).tree, actions).0
}

/// What a box decides about: ten actions of one agent, and their events.
pub fn box_service() -> Service {
    let actions = resolve(&parse_action_schema(BOX_ACTIONS).tree).0;
    let events = derive(&parse_event_schema(BOX_EVENTS).tree, &actions).0;
    Service {
        actions,
        events,
        ..Service::default()
    }
}
