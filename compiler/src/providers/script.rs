//! The scripts of providers. A script sees its arguments and nothing else: no clock, no files, no network, no other
//! script; and it ends, because what it may do and hold is bounded.
//!
//! The rest of the crate knows [`Script`] only; Rhai is named in `rhai.rs`.

mod rhai;

use crate::value::Value;
use smol_str::SmolStr;
use std::fmt;
use std::sync::Arc;

/// Operations of one call of a function.
pub const MAX_OPERATIONS: u64 = 1_000_000;
/// Calls inside calls.
pub const MAX_CALLS: usize = 64;
/// Bytes of a string.
pub const MAX_STRING: usize = 64 * 1024;
/// Elements of an array, members of a map.
pub const MAX_ELEMENTS: usize = 4096;
/// Nesting of a value that goes in or comes out.
const MAX_NESTING: usize = 128;

/// Where the value comes from that the methods are asked of.
#[derive(Clone, Debug)]
pub enum Base {
    Given(Value),
    /// Of `evaluate`, with these arguments.
    Evaluate(Vec<Value>),
}

/// A method: given the value of the stage before, and its own arguments.
#[derive(Clone, Debug)]
pub struct Stage<'c> {
    pub function: &'c str,
    pub args: Vec<Value>,
}

/// A compiled script.
pub trait Script: fmt::Debug + Send + Sync {
    /// The value of the base through all stages.
    fn run(&self, base: Base, stages: &[Stage<'_>]) -> Result<Value, ScriptError>;

    /// Whether the script has a function of this name with so many parameters.
    fn has(&self, function: &str, takes: usize) -> bool;
}

/// Why a script gives no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptError {
    Syntax {
        why: String,
    },
    NoFunction {
        name: SmolStr,
        takes: usize,
    },
    TooLong,
    TooDeep,
    TooLarge,
    /// A value of a kind that the language does not have.
    NoValue {
        kind: String,
    },
    Failed {
        why: String,
    },
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScriptError::Syntax { why } | ScriptError::Failed { why } => f.write_str(why),
            ScriptError::NoFunction { name, takes } => {
                write!(
                    f,
                    "its script has no function `{name}` of {takes} parameters"
                )
            }
            ScriptError::TooLong => {
                write!(f, "its script took more than {MAX_OPERATIONS} operations")
            }
            ScriptError::TooDeep => f.write_str("its script calls itself too deeply"),
            ScriptError::TooLarge => f.write_str("its script holds a value that is too large"),
            ScriptError::NoValue { kind } => {
                write!(
                    f,
                    "its script gives a {kind}, which is no value of the language"
                )
            }
        }
    }
}

impl std::error::Error for ScriptError {}

/// Compiles a script. It is compiled once and may be run any number of times.
pub fn compile(text: &str) -> Result<Arc<dyn Script>, ScriptError> {
    rhai::compile(text)
}
