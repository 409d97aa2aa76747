//! The language as meaning: schemas, macro expansion, type and temporal checks, automata, explanations.
//!
//! In: syntax trees and schemas. Out: diagnostics, or a compiled policy whose [`monitor`] takes one event
//! at a time and decides without looking back at earlier ones. Nothing here reads a clock, a file or the
//! network; only the binary's `cli/` does.

#![forbid(unsafe_code)]

pub mod automaton;
pub mod check;
pub mod compare;
pub mod compile;
pub mod diagnostic;
pub mod eval;
pub mod event;
pub mod explain;
pub mod format;
pub mod horizon;
pub mod incremental;
pub mod json;
mod lint;
pub mod lower;
pub mod macros;
pub mod mcp_schema;
pub mod monitor;
mod nearest;
pub mod normal;
pub mod project;
pub mod providers;
pub mod schema;
pub mod suite;
pub mod trace;
pub mod value;

pub use dogwood_grammar as grammar;
