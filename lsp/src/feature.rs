//! What the server knows about a document, one question a file. Each is a function of a snapshot: no editor,
//! no protocol, places as bytes.

pub mod action;
pub mod completion;
pub mod definition;
pub mod diagnostics;
pub mod folding;
pub mod formatting;
pub mod highlight;
pub mod hover;
pub mod inlay;
pub mod lens;
pub mod references;
pub mod rename;
pub mod selection;
pub mod signature;
pub mod symbols;
pub mod tokens;
pub mod words;
