//! The language as text: tokens, grammars, syntax trees and syntax errors.
//!
//! In: UTF-8 text of a policy file, an action schema or an event schema. Out: a tree with the place of
//! every part, the comments and blank lines beside it, and every syntax error in source order. Broken
//! input still gives a tree. No file, no schema, no meaning: those live in the compiler.

#![forbid(unsafe_code)]

pub mod ast;
pub mod diagnostic;
mod span;

pub use span::Span;
