//! Test files of policies: events in short form, and what the policy should say to each.
//!
//! ```text
//! *.dwtest.toml ── header: which policy, which schemas ── read: cases of steps, events filled from the schema
//!                                                            └─ run: verdicts against what was expected
//! ```
//!
//! A step writes down what matters about an event; the schema supplies the rest. Nothing here touches files or
//! clocks: time in a test is what the test says.

pub(crate) mod command;
pub mod coverage;
mod fill;
mod plain;
mod read;
pub mod record;
mod run;
mod table;
mod time;

pub use plain::Plain;
pub use read::{Header, START, STEP, header, header_of, read, single};
pub use run::{CaseOutcome, Failure, Mismatch, run};
pub use table::{outline, syntax};
pub use time::{span as read_span, text as span_text};

use crate::event::Event;
use crate::grammar::Span;
use crate::monitor::Verdict;

/// One way through a test: the test itself, or one row of its table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// `push waits for the tests`, `verbs (verb = "push")`.
    pub name: String,
    /// The name in the file.
    pub span: Span,
    pub steps: Vec<Step>,
}

/// One event, or the same one several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub span: Span,
    /// As a person would name it: `shell:spawn` of `git push`.
    pub title: String,
    /// The first of them; later ones are `every` seconds apart.
    pub event: Event,
    /// What is recorded if the event is permitted.
    pub response: Option<Event>,
    pub times: u32,
    pub every: i64,
    pub expected: Option<Expected>,
}

/// What a decision should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    pub span: Span,
    pub verdict: Verdict,
    /// Names of the rules that should decide, in any order; empty for a denial that no rule permits.
    pub by: Option<Vec<String>>,
    /// What the explanation should contain.
    pub says: Option<String>,
}

/// The most events of one case: a slip of the pen in `times` should not run for an hour.
pub const MOST_EVENTS: u32 = 1_000_000;
