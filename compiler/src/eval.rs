//! Evaluation of rule conditions: Cedar expressions whose temporal blocks are already known to be numbered
//! leaves (language reference, "What of Cedar is supported").
//!
//! A condition is compiled once per policy and evaluated against one decision event at a time. Evaluation
//! never panics: what Cedar calls an evaluation error is an [`EvalError`], and the rule is skipped.

mod compile;
pub mod entities;
pub mod error;
pub(crate) mod extension;
mod guard;
pub(crate) mod program;
mod value;

pub(crate) use compile::{Asked, compile, is_method};
pub use error::EvalError;
pub(crate) use guard::{Guard, Request, is_true, like};
pub(crate) use value::check_record;
