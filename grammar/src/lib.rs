//! The language as text: tokens, grammars, syntax trees and syntax errors.
//!
//! In: UTF-8 text of a policy file, an action schema or an event schema. Out: a tree with the place of
//! every part, the comments and blank lines beside it, and every syntax error in source order. Broken
//! input still gives a tree. No file, no schema, no meaning: those live in the compiler.

#![forbid(unsafe_code)]

mod action_schema;
pub mod ast;
pub mod diagnostic;
mod error;
mod event_schema;
mod expr;
mod literal;
mod policy;
pub mod print;
mod recovery;
mod rule;
mod span;
mod structure;
mod temporal;
mod token;
mod tokens;
mod tree;
mod trivia;

pub use action_schema::parse_action_schema;
pub use error::{Expected, SyntaxError, SyntaxErrorKind};
pub use event_schema::parse_event_schema;
pub use policy::{parse_condition, parse_expr, parse_policy};
pub use span::Span;
pub use token::Language;
pub use tokens::{Piece, TokenKind, statements, tokens};
pub use trivia::{Trivia, TriviaKind, TriviaPiece};

/// What reading a text gives. There is always a tree; it stands for the text only where there are
/// no errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed<T> {
    pub tree: T,
    pub trivia: Trivia,
    /// In source order.
    pub errors: Vec<SyntaxError>,
}

impl<T> Parsed<T> {
    fn new(tree: T, trivia: Trivia, cx: tree::Cx<'_>) -> Parsed<T> {
        let mut errors = cx.errors;
        errors.sort_by_key(|error| (error.span.start, error.span.end));
        errors.dedup();
        Parsed {
            tree,
            trivia,
            errors,
        }
    }
}

/// The generated parsers.
#[allow(
    unused_imports,
    clippy::all,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]
mod grammars {
    use lalrpop_util::lalrpop_mod;

    lalrpop_mod!(pub(crate) action_schema);
    lalrpop_mod!(pub(crate) event_schema);
    lalrpop_mod!(pub(crate) policy);
}
