//! The one decision authority of a box: compiled policy, durable history, decision records, reasons.
//!
//! In: a typed [`action::Action`] and who asks. Out: a [`gate::Permit`] or a [`denial::Denial`], after the
//! request is on disk. Checkpoints see only the [`gate::Gate`] trait; no verdict is made anywhere else.

#![forbid(unsafe_code)]

pub mod action;
pub mod clock;
pub mod denial;
pub mod engine;
pub mod gate;
pub mod history;
pub mod policy;
pub mod records;

mod authority;

pub use authority::{Authority, OpenError, Recovered, ReloadError, Waiting};
