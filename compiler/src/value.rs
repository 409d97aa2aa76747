//! Values at the edge: what traces, requests and histories carry.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// Field name to value. Ordered, so that two equal records print and hash alike.
pub type Record = BTreeMap<SmolStr, Value>;

/// A type and an id: `Depot::Clerk::"ann"` is type `Depot::Clerk`, id `ann`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EntityUid {
    pub ty: SmolStr,
    pub id: SmolStr,
}

impl EntityUid {
    pub fn new(ty: impl Into<SmolStr>, id: impl Into<SmolStr>) -> EntityUid {
        EntityUid {
            ty: ty.into(),
            id: id.into(),
        }
    }
}

impl std::fmt::Display for EntityUid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}::{:?}", self.ty, self.id.as_str())
    }
}

/// A value of an event's logged record or of a request context (language reference, "Values").
///
/// `==` on this type is structural. The language's own equality also takes two spellings of one
/// decimal as equal; see the automaton's interner. Stored histories name the variants by their order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    String(SmolStr),
    /// The text as written; well-formed when it has digits on both sides of the dot, at most four
    /// behind it, and fits an `i64` scaled by 10,000.
    Decimal(SmolStr),
    Entity(EntityUid),
    Array(Vec<Value>),
    Object(Record),
}

impl Value {
    pub fn str(text: impl Into<SmolStr>) -> Value {
        Value::String(text.into())
    }

    /// The value at a path of record fields.
    pub fn at<'v, S: AsRef<str>>(&'v self, path: &[S]) -> Option<&'v Value> {
        path.iter().try_fold(self, |value, word| match value {
            Value::Object(fields) => fields.get(word.as_ref()),
            _ => None,
        })
    }
}

/// Puts a value at a path of record fields, with the records on the way, or takes away what is there. False
/// where nothing changes.
pub fn put(record: &mut Record, path: &[SmolStr], value: Option<Value>) -> bool {
    match (path, value) {
        ([], _) => false,
        ([last], Some(value)) => {
            let same = record.get(last) == Some(&value);
            record.insert(last.clone(), value);
            !same
        }
        ([last], None) => record.remove(last).is_some(),
        ([first, rest @ ..], value) => {
            if value.is_some() && !record.contains_key(first) {
                record.insert(first.clone(), Value::Object(Record::new()));
            }
            match record.get_mut(first) {
                Some(Value::Object(inner)) => put(inner, rest, value),
                _ => false,
            }
        }
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Value {
        Value::Int(n)
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Value {
        Value::Bool(b)
    }
}

impl From<&str> for Value {
    fn from(s: &str) -> Value {
        Value::str(s)
    }
}

impl From<EntityUid> for Value {
    fn from(uid: EntityUid) -> Value {
        Value::Entity(uid)
    }
}
