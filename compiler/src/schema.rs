//! What the schemas say, resolved: the actions with their contexts, and the events derived from them.
//!
//! ```text
//! .cedarschema ── ActionSchema (entity types, actions, contexts; every name resolved)
//! .dwschema    ── EventSchema  (one DerivedEvent for each action × kind)
//! ```

use crate::providers::Providers;
use crate::value::EntityUid;
use indexmap::IndexMap;
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

mod builtin;
mod derive;
mod error;
pub mod json;
mod notes;
mod resolve;
pub mod write;

pub use builtin::{BOX_ACTIONS, BOX_EVENTS, DEFAULT_EVENTS, box_service, default_events};
pub use derive::{MAX_FIELDS, MAX_NESTING, check_event_schema, derive};
pub use error::SchemaError;
pub use notes::{Annotated, Notes};
pub use resolve::resolve;

/// The cap on a window where the event schema sets none, in seconds; inclusive.
pub const DEFAULT_MAX_WINDOW: i64 = 24 * 3600;

/// Both schemas a policy is checked and decided against, and its information providers.
#[derive(Clone, Debug, Default)]
pub struct Service {
    pub actions: ActionSchema,
    pub events: EventSchema,
    /// What the rules can ask beside the request and the history.
    pub providers: Arc<Providers>,
}

#[derive(Clone, Debug, Default)]
pub struct ActionSchema {
    /// By fully qualified name.
    pub entity_types: BTreeMap<SmolStr, EntityType>,
    /// In the order of declaration.
    pub actions: IndexMap<EntityUid, ActionDecl>,
    /// The names of the common types, which are written out everywhere else.
    pub common_types: BTreeSet<SmolStr>,
    pub notes: Notes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityType {
    pub name: SmolStr,
    pub parents: BTreeSet<SmolStr>,
    /// Types an entity of this type can be `in`, itself not included.
    pub ancestors: BTreeSet<SmolStr>,
    pub attrs: RecordType,
    pub tags: Option<Type>,
    /// The ids of an enumerated type.
    pub choices: Option<Vec<SmolStr>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionDecl {
    pub uid: EntityUid,
    pub parents: BTreeSet<EntityUid>,
    /// Every group the action is in, transitively, itself not included.
    pub ancestors: BTreeSet<EntityUid>,
    /// Absent for a pure group.
    pub applies_to: Option<AppliesTo>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliesTo {
    pub principals: Vec<SmolStr>,
    pub resources: Vec<SmolStr>,
    pub context: RecordType,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Bool,
    Long,
    String,
    Ext(Extension),
    Entity(SmolStr),
    Set(Box<Type>),
    Record(RecordType),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Extension {
    Decimal,
    IpAddr,
    Datetime,
    Duration,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordType {
    pub attrs: BTreeMap<SmolStr, AttrType>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttrType {
    pub ty: Type,
    pub required: bool,
}

#[derive(Clone, Debug, Default)]
pub struct EventSchema {
    /// Seconds, inclusive.
    pub max_window: i64,
    /// Kinds whose events are decided.
    pub decision_kinds: BTreeSet<SmolStr>,
    pub events: BTreeMap<EventId, DerivedEvent>,
    /// The pin that makes the temporal semantics key-local, if every event carries it
    /// (language reference, "Key-local semantics").
    pub universal_pin: Option<Pin>,
}

/// An action and an event kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId {
    pub action: EntityUid,
    pub kind: SmolStr,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedEvent {
    pub id: EventId,
    /// Leaf fields by path: `["input", "path"]`.
    pub fields: BTreeMap<Vec<SmolStr>, FieldType>,
    /// Paths that name a group of fields: `["input"]`.
    pub groups: BTreeSet<Vec<SmolStr>>,
    /// Patterns appended to every predicate over this event.
    pub pins: Vec<Pin>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldType {
    /// From `...inputs(A)` / `...outputs(A)`: has a type of the action schema, and may be absent.
    Declared { ty: Type, required: bool },
    /// `principalType(A)` / `resourceType(A)`: an entity of one of these types.
    Scope(Vec<SmolStr>),
    /// Any other field, of the named type; not type-checked.
    Injected(SmolStr),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pin {
    pub field: Vec<SmolStr>,
    pub value: PinValue,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PinValue {
    Principal(Vec<SmolStr>),
    Resource(Vec<SmolStr>),
    Context(Vec<SmolStr>),
}

impl ActionSchema {
    /// The actions a group stands for: itself and everything below it, in the order of declaration.
    pub fn members<'s>(&'s self, group: &'s EntityUid) -> impl Iterator<Item = &'s ActionDecl> {
        self.actions
            .values()
            .filter(move |action| action.uid == *group || action.ancestors.contains(group))
    }

    /// The entity types of which an entity can be `in` an entity of type `ty`, itself included.
    pub fn types_in<'s>(&'s self, ty: &'s str) -> impl Iterator<Item = &'s EntityType> {
        self.entity_types
            .values()
            .filter(move |entity| entity.name == ty || entity.ancestors.contains(ty))
    }

    /// Whether `name` is that of an entity type or of a common type.
    pub fn declares(&self, name: &str) -> bool {
        self.entity_types.contains_key(name) || self.common_types.contains(name)
    }

    /// Whether `ty` is the type of some declared action, `Box::Action`.
    pub fn is_action_type(&self, ty: &str) -> bool {
        self.actions.keys().any(|uid| uid.ty == ty)
    }
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Type::Bool => f.write_str("Bool"),
            Type::Long => f.write_str("Long"),
            Type::String => f.write_str("String"),
            Type::Ext(extension) => f.write_str(extension.name()),
            Type::Entity(name) => f.write_str(name),
            Type::Set(element) => write!(f, "Set<{element}>"),
            Type::Record(_) => f.write_str("record"),
        }
    }
}

impl Extension {
    /// The name of the type in a schema.
    pub fn name(self) -> &'static str {
        match self {
            Extension::Decimal => "decimal",
            Extension::IpAddr => "ipaddr",
            Extension::Datetime => "datetime",
            Extension::Duration => "duration",
        }
    }
}
