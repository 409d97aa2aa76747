//! Values while a condition is evaluated. Records of the event are read in place.

use super::error::EvalError;
use super::extension::IpNet;
use crate::automaton::parse_decimal;
use crate::value::{EntityUid, Record, Value};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) enum V<'a> {
    Bool(bool),
    Long(i64),
    Str(SmolStr),
    Entity(EntityUid),
    Set(Arc<Vec<V<'a>>>),
    /// A record of the event.
    Given(&'a Record),
    Record(Arc<BTreeMap<SmolStr, V<'a>>>),
    Decimal(i64),
    Ip(IpNet),
    /// Milliseconds since 1970.
    Datetime(i64),
    /// Milliseconds.
    Duration(i64),
}

impl<'a> V<'a> {
    /// A value of the request or of an entity. Null reads as the empty string.
    pub fn of(value: &'a Value) -> Result<V<'a>, EvalError> {
        Ok(match value {
            Value::Null => V::Str(SmolStr::default()),
            Value::Bool(b) => V::Bool(*b),
            Value::Int(n) => V::Long(*n),
            Value::String(s) => V::Str(s.clone()),
            Value::Decimal(text) => {
                V::Decimal(parse_decimal(text).ok_or_else(|| EvalError::BadLiteral {
                    function: "decimal",
                    text: text.clone(),
                })?)
            }
            Value::Entity(uid) => V::Entity(uid.clone()),
            Value::Array(items) => {
                V::Set(Arc::new(items.iter().map(V::of).collect::<Result<_, _>>()?))
            }
            Value::Object(fields) => V::Given(fields),
        })
    }

    pub fn kind(&self) -> &'static str {
        match self {
            V::Bool(_) => "a Bool",
            V::Long(_) => "a Long",
            V::Str(_) => "a String",
            V::Entity(_) => "an entity",
            V::Set(_) => "a Set",
            V::Given(_) | V::Record(_) => "a record",
            V::Decimal(_) => "a decimal",
            V::Ip(_) => "an ipaddr",
            V::Datetime(_) => "a datetime",
            V::Duration(_) => "a duration",
        }
    }

    pub fn wrong<T>(&self, expected: &'static str) -> Result<T, EvalError> {
        Err(EvalError::WrongType {
            expected,
            found: self.kind(),
        })
    }

    pub fn bool(&self) -> Result<bool, EvalError> {
        match self {
            V::Bool(b) => Ok(*b),
            other => other.wrong("a Bool"),
        }
    }

    pub fn long(&self) -> Result<i64, EvalError> {
        match self {
            V::Long(n) => Ok(*n),
            other => other.wrong("a Long"),
        }
    }

    pub fn string(&self) -> Result<&SmolStr, EvalError> {
        match self {
            V::Str(s) => Ok(s),
            other => other.wrong("a String"),
        }
    }

    pub fn entity(&self) -> Result<&EntityUid, EvalError> {
        match self {
            V::Entity(uid) => Ok(uid),
            other => other.wrong("an entity"),
        }
    }

    pub fn set(&self) -> Result<&[V<'a>], EvalError> {
        match self {
            V::Set(items) => Ok(items),
            other => other.wrong("a Set"),
        }
    }

    /// The value of a record's attribute, if it is there.
    pub fn field(&self, name: &str) -> Result<Option<V<'a>>, EvalError> {
        match self {
            V::Given(fields) => fields.get(name).map(V::of).transpose(),
            V::Record(fields) => Ok(fields.get(name).cloned()),
            other => other.wrong("a record or an entity"),
        }
    }

    /// Structural equality; values of different types are unequal.
    pub fn same(&self, other: &V<'a>) -> bool {
        match (self, other) {
            (V::Bool(a), V::Bool(b)) => a == b,
            (V::Long(a), V::Long(b)) => a == b,
            (V::Str(a), V::Str(b)) => a == b,
            (V::Entity(a), V::Entity(b)) => a == b,
            (V::Set(a), V::Set(b)) => {
                a.iter().all(|item| has(b, item)) && b.iter().all(|item| has(a, item))
            }
            (V::Decimal(a), V::Decimal(b)) => a == b,
            (V::Ip(a), V::Ip(b)) => a == b,
            (V::Datetime(a), V::Datetime(b)) | (V::Duration(a), V::Duration(b)) => a == b,
            (V::Given(a), V::Given(b)) => {
                a.len() == b.len()
                    && a.iter().zip(b.iter()).all(|((k, v), (l, w))| {
                        k == l
                            && match (V::of(v), V::of(w)) {
                                (Ok(v), Ok(w)) => v.same(&w),
                                _ => false,
                            }
                    })
            }
            (V::Record(a), V::Record(b)) => {
                a.len() == b.len()
                    && a.iter()
                        .zip(b.iter())
                        .all(|((k, v), (l, w))| k == l && v.same(w))
            }
            (V::Given(a), V::Record(b)) | (V::Record(b), V::Given(a)) => {
                a.len() == b.len()
                    && a.iter()
                        .zip(b.iter())
                        .all(|((k, v), (l, w))| k == l && V::of(v).is_ok_and(|v| v.same(w)))
            }
            _ => false,
        }
    }
}

pub(crate) fn has<'a>(items: &[V<'a>], item: &V<'a>) -> bool {
    items.iter().any(|other| other.same(item))
}

/// Finds the first value of a request record that is no value of the language: a malformed decimal.
pub(crate) fn check_record(record: &Record) -> Result<(), EvalError> {
    fn bad(value: &Value) -> bool {
        match value {
            Value::Decimal(text) => parse_decimal(text).is_none(),
            Value::Array(items) => items.iter().any(bad),
            Value::Object(fields) => fields.values().any(bad),
            _ => false,
        }
    }
    fn way(record: &Record, path: &mut Vec<SmolStr>) {
        let Some((name, value)) = record.iter().find(|(_, value)| bad(value)) else {
            return;
        };
        path.push(name.clone());
        if let Value::Object(fields) = value {
            way(fields, path);
        }
    }
    if !record.values().any(bad) {
        return Ok(());
    }
    let mut path = Vec::new();
    way(record, &mut path);
    Err(EvalError::BadContext {
        path: SmolStr::new(path.join(".")),
    })
}
