//! Every feature, drawn: the source with the answer under it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod completing;
mod drawing;
mod editing;
mod finding;
mod looking;
mod running;
mod typing;
mod workspace;
