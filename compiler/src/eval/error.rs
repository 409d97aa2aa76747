//! Why a rule, or a whole decision, could not be evaluated.

use super::entities::EntityError;
use crate::providers::ProviderError;
use crate::value::EntityUid;
use smol_str::SmolStr;
use std::fmt;
use std::hash::{Hash, Hasher};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// An operand has another type than the operator takes.
    WrongType {
        expected: &'static str,
        found: &'static str,
    },
    /// A record has no such attribute.
    NoAttribute {
        name: SmolStr,
    },
    /// An entity has no such attribute.
    NoEntityAttribute {
        entity: EntityUid,
        name: SmolStr,
    },
    /// The decision came with nothing about this entity.
    UnknownEntity {
        entity: EntityUid,
    },
    NoTag {
        entity: EntityUid,
        name: SmolStr,
    },
    Overflow {
        operator: &'static str,
    },
    /// The text given to an extension constructor is not one of its values.
    BadLiteral {
        function: &'static str,
        text: SmolStr,
    },
    UnknownFunction {
        name: SmolStr,
    },
    UnknownMethod {
        name: SmolStr,
    },
    WrongArity {
        name: SmolStr,
    },
    /// An information provider gave no answer.
    Provider {
        name: SmolStr,
        why: ProviderError,
    },
    /// A template slot or an unreadable part.
    NotEvaluable,
    NoPrincipal,
    NoResource,
    /// A value of the request context that is no value of the language.
    BadContext {
        path: SmolStr,
    },
    BadEntities(EntityError),
    /// The event is stamped further back than the history is kept exactly.
    Late {
        time: i64,
        clock: i64,
    },
}

// Equal errors have equal texts.
impl Hash for EvalError {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to_string().hash(state);
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::WrongType { expected, found } => {
                write!(f, "expected {expected}, found {found}")
            }
            EvalError::NoAttribute { name } => write!(f, "the record has no attribute `{name}`"),
            EvalError::NoEntityAttribute { entity, name } => {
                write!(f, "{entity} has no attribute `{name}`")
            }
            EvalError::UnknownEntity { entity } => write!(f, "nothing is known of {entity}"),
            EvalError::NoTag { entity, name } => write!(f, "{entity} has no tag `{name}`"),
            EvalError::Overflow { operator } => {
                write!(f, "the result of `{operator}` does not fit 64 bits")
            }
            EvalError::BadLiteral { function, text } => {
                write!(f, "{text:?} is not a value of `{function}`")
            }
            EvalError::UnknownFunction { name } => write!(f, "there is no function `{name}`"),
            EvalError::UnknownMethod { name } => write!(f, "there is no method `{name}`"),
            EvalError::WrongArity { name } => {
                write!(f, "`{name}` is given a wrong number of arguments")
            }
            EvalError::Provider { name, why } => {
                write!(f, "the information provider `{name}` gave no answer: {why}")
            }
            EvalError::NotEvaluable => f.write_str("a part of the condition cannot be evaluated"),
            EvalError::NoPrincipal => f.write_str("the request names no principal"),
            EvalError::NoResource => f.write_str("the request names no resource"),
            EvalError::BadContext { path } => {
                write!(f, "`context.{path}` is not a well-formed value")
            }
            EvalError::BadEntities(error) => error.fmt(f),
            EvalError::Late { time, clock } => {
                write!(
                    f,
                    "the request is stamped {time}, too far before the latest event, {clock}"
                )
            }
        }
    }
}

impl std::error::Error for EvalError {}
