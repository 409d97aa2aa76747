//! The engine of the reference behind its documented interface.

use crate::workload::{EVENT_SCHEMA, Workload, action_schema};
use dogwood_compiler::event::Event;
use dogwood_compiler::value::{EntityUid, Value};
use dogwood_language as language;
use dogwood_local_engine::LocalTemporalEngine;

pub struct Peer(language::Authorizer);

impl Peer {
    pub fn new(workload: &Workload, history: usize) -> Result<Peer, String> {
        let service = language::ServiceSchema::builder()
            .event_schema_str(EVENT_SCHEMA)
            .build()
            .map_err(|error| error.to_string())?;
        let actions = action_schema(&(workload.actions)());
        let actions = language::PolicySchema::from_cedarschema_str(&actions)
            .map_err(|error| error.to_string())?;
        let policy = (workload.policy)(history);
        let lowered = language::LoweredPolicySet::from_str(&policy, &service, &actions)
            .map_err(|error| error.to_string())?;
        language::Authorizer::builder(lowered)
            .temporal_engine(LocalTemporalEngine::new())
            .build()
            .map(Peer)
            .map_err(|error| error.to_string())
    }

    /// The verdict, on a decision.
    pub fn step(&mut self, event: &language::Event) -> Option<bool> {
        self.0
            .is_authorized(event)
            .map(|response| response.allowed())
    }
}

/// The same event in the peer's words.
pub fn event(event: &Event) -> language::Event {
    builder(event).timestamp(event.time).build()
}

pub fn builder(event: &Event) -> language::EventBuilder {
    let namespace: Vec<&str> = event.action.ty.split("::").collect();
    let mut built = language::Event::builder_for(&namespace, &event.action.id, &event.kind);
    for (name, value) in &event.logged {
        built = match value {
            Value::Object(fields) => fields.iter().fold(built, |built, (field, value)| {
                built.field(name, field, self::value(value))
            }),
            value => built.logged_field(name, self::value(value)),
        };
    }
    let Some(request) = &event.request else {
        return built;
    };
    for (name, value) in &request.context {
        if let Value::Object(fields) = value {
            for (field, value) in fields {
                built = built.request_context(name, field, self::value(value));
            }
        }
    }
    if let Some(EntityUid { ty, id }) = &request.principal {
        built = built.principal_for(ty, id);
    }
    if let Some(EntityUid { ty, id }) = &request.resource {
        built = built.resource_for(ty, id);
    }
    built
}

fn value(value: &Value) -> language::Value {
    match value {
        Value::Null => language::Value::Null,
        Value::Bool(b) => language::Value::Bool(*b),
        Value::Int(n) => language::Value::Int(*n),
        Value::String(text) => language::Value::String(text.to_string()),
        Value::Decimal(text) => language::Value::Decimal(text.to_string()),
        Value::Entity(uid) => language::Value::Entity {
            ty: uid.ty.to_string(),
            id: uid.id.to_string(),
        },
        Value::Array(items) => language::Value::Array(items.iter().map(self::value).collect()),
        Value::Object(fields) => language::Value::Object(
            fields
                .iter()
                .map(|(name, value)| (name.to_string(), self::value(value)))
                .collect(),
        ),
    }
}
