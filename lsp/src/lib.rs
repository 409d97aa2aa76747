//! The language server of Dogwood.
//!
//! ```text
//! editor ── server ── shelf (documents, schemas) ── snapshot ── feature/* (pure functions)
//!              └ worker: traces and tests, by revision
//! ```
//!
//! One thread reads messages in order and answers each from the texts as they are then; nothing it does waits.
//! What may take long is done by a worker, and told when it is done unless the text has changed since.

#![forbid(unsafe_code)]

pub mod builtin;
pub mod cursor;
pub mod disk;
pub mod document;
pub mod feature;
pub mod mark;
pub mod server;
pub mod shelf;
pub mod snapshot;
pub mod text;
pub mod uri;
mod walk;
mod wire;
mod worker;
