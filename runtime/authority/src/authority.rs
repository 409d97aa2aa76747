//! The authority itself: one writer that orders every request, makes it durable, asks the policy, records
//! the decision, and only then answers.
//!
//! ```text
//! checkpoints ──decide──▶ inbox ──▶ writer: everything waiting becomes one transaction
//!             ◀─answer──          check → append → step → … → commit → record → answer
//!                                 between: parts of a snapshot, old events dropped
//! ```
//!
//! The writer runs on the thread of whoever finds it idle (`inbox.rs`).
//!
//! A verdict leaves after the commit that made its request durable, so concurrent callers share one sync. A
//! fault in storage, in the records or in evaluation denies that request and every later one.

use crate::action::{Action, FsResult, Outcome};
use crate::denial::{Denial, DenyCause};
use crate::engine::PolicySet;
use crate::gate::{Caller, Gate, Permit};
use crate::history::{Built, Entry, Reader};
use answer::{Answer, slot};
use dogwood_compiler::value::{EntityUid, Record};
use inbox::{Closed, Inbox};
use smol_str::SmolStr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

mod answer;
mod inbox;
mod judge;
mod snapshot;
mod start;
mod writer;

#[cfg(test)]
mod tests;

pub use judge::Waiting;
pub use start::OpenError;

/// Requests that may wait for the writer before callers are held back.
const QUEUE: usize = 1024;
/// Events of one transaction at most.
const BATCH: usize = 256;

/// The one place where a box decides. Dropping it ends that; permits still out are recorded as
/// indeterminate when the box is opened again.
pub struct Authority {
    inbox: Arc<Inbox>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// For a new policy to catch up with the history; gone once closed.
    reader: Mutex<Option<Reader>>,
    recovered: Recovered,
}

/// What opening found and mended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Events the history holds.
    pub events: usize,
    /// Requests of an earlier run whose outcome was never told, now recorded as indeterminate.
    pub unfinished: usize,
    /// Events that were stepped, because no snapshot holds them.
    pub stepped: usize,
    /// Why the snapshot that is there could not be used.
    pub passed_over: Option<String>,
    /// Rules whose window reaches back further than the history does.
    pub waiting: Vec<Waiting>,
}

/// Why a policy was not installed. The one before goes on deciding.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReloadError {
    #[error("the new policy cannot follow the history, so the one before goes on: {0}")]
    Replay(String),
    #[error("the box has stopped deciding: {0}")]
    Stopped(String),
    #[error("the box has stopped deciding")]
    Closed,
}

enum Message {
    Decide {
        caller: Caller,
        action: Action,
        key: Option<String>,
        answer: Answer<Result<Granted, Denial>>,
    },
    WhatIf {
        action: Action,
        answer: Answer<Result<(), Denial>>,
    },
    Complete {
        granted: Granted,
        outcome: Outcome,
    },
    Refused {
        caller: Caller,
        action: Box<Action>,
        denial: Box<Denial>,
    },
    Install {
        policy: Box<PolicySet>,
        built: Box<Built>,
        answer: Answer<Result<Vec<Waiting>, ReloadError>>,
    },
    /// The policy that was to be installed is none.
    Rejected(String),
    Stop,
}

impl Message {
    /// Whether its sender waits for the answer at once.
    fn is_asked(&self) -> bool {
        matches!(self, Message::Decide { .. } | Message::WhatIf { .. })
    }

    /// Whether it is for the authority's own thread.
    fn is_control(&self) -> bool {
        matches!(
            self,
            Message::Install { .. } | Message::Rejected(_) | Message::Stop
        )
    }
}

/// A request that was permitted and has not ended.
struct Granted {
    sequence: u64,
    uid: EntityUid,
    input: Record,
    unknown: Outcome,
    /// Given before, for the same key.
    repeated: bool,
}

impl Authority {
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Puts another policy in the place of the one that decides. It knows the history as if it had been there
    /// from the start, as far back as events are kept; rules that would need older ones are named in the
    /// answer, and wait. Requests decided meanwhile are decided by the policy before.
    pub fn reload(&self, policy: PolicySet) -> Result<Vec<Waiting>, ReloadError> {
        let reader = match self.reader.lock() {
            Ok(reader) => reader.clone().ok_or(ReloadError::Closed)?,
            Err(_) => return Err(ReloadError::Closed),
        };
        let built = reader
            .view()
            .and_then(|view| view.build(&*policy.compiled, &AtomicBool::new(false)));
        drop(reader);
        let built = match built {
            Ok(built) => built,
            Err(reason) => {
                self.reject(&reason);
                return Err(ReloadError::Replay(reason));
            }
        };
        let (answer, installed) = slot();
        let message = Message::Install {
            policy: Box::new(policy),
            built: Box::new(built),
            answer,
        };
        self.inbox
            .send(message)
            .map_err(|Closed| ReloadError::Closed)?;
        installed.recv().ok_or(ReloadError::Closed)?
    }

    /// Records that a policy was offered that is none, and why. The one before goes on deciding.
    pub fn reject(&self, reason: &str) {
        let _ = self.inbox.send(Message::Rejected(reason.into()));
    }

    /// Ends it once everything sent so far is answered. Whatever is asked later is denied.
    pub fn close(&self) {
        let _ = self.inbox.send(Message::Stop);
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        self.reader
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    fn ask(
        &self,
        caller: &Caller,
        action: Action,
        key: Option<String>,
    ) -> Result<Box<dyn Permit>, Denial> {
        let closed = closed(&action);
        let (answer, verdict) = slot();
        let message = Message::Decide {
            caller: caller.clone(),
            action,
            key,
            answer,
        };
        if self.inbox.ask(message).is_err() {
            return Err(closed);
        }
        let granted = verdict.recv().ok_or(closed)??;
        Ok(Box::new(Ticket {
            granted: Some(granted),
            inbox: Arc::clone(&self.inbox),
        }))
    }
}

fn closed(action: &Action) -> Denial {
    Denial {
        action: action.name().into(),
        target: action.target(),
        cause: DenyCause::Fault("the box has stopped deciding".into()),
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        self.close();
    }
}

impl Gate for Authority {
    fn decide(&self, caller: &Caller, action: Action) -> Result<Box<dyn Permit>, Denial> {
        self.ask(caller, action, None)
    }

    fn decide_once(
        &self,
        caller: &Caller,
        action: Action,
        key: &str,
    ) -> Result<Box<dyn Permit>, Denial> {
        self.ask(caller, action, Some(key.into()))
    }

    fn what_if(&self, _: &Caller, action: Action) -> Result<(), Denial> {
        let closed = closed(&action);
        let (answer, verdict) = slot();
        if self.inbox.ask(Message::WhatIf { action, answer }).is_err() {
            return Err(closed);
        }
        verdict.recv().ok_or(closed)?
    }

    fn record_refusal(&self, caller: &Caller, action: &Action, denial: &Denial) {
        let _ = self.inbox.send(Message::Refused {
            caller: caller.clone(),
            action: Box::new(action.clone()),
            denial: Box::new(denial.clone()),
        });
    }
}

struct Ticket {
    granted: Option<Granted>,
    inbox: Arc<Inbox>,
}

impl Permit for Ticket {
    fn complete(mut self: Box<Self>, outcome: Outcome) {
        if let Some(granted) = self.granted.take() {
            // An authority that is gone leaves the request open in the history; the next run ends it.
            let _ = self.inbox.end(Message::Complete { granted, outcome });
        }
    }

    fn repeated(&self) -> bool {
        self.granted
            .as_ref()
            .is_some_and(|granted| granted.repeated)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(granted) = self.granted.take()
            && !granted.repeated
        {
            let outcome = granted.unknown.clone();
            let _ = self.inbox.end(Message::Complete { granted, outcome });
        }
    }
}

/// How an action ended when nobody says: it may have happened, so it is a response, never an error.
fn unknown_end(action: &EntityUid) -> Outcome {
    if action.ty != "Box::Action" {
        return Outcome::Done;
    }
    match action.id.split(':').next() {
        Some("fs") => Outcome::Fs(FsResult::Indeterminate),
        // The status commands have when none was reported.
        Some("shell") => Outcome::Status(-1),
        _ => Outcome::Done,
    }
}

fn outcome_entry(
    time: i64,
    action: EntityUid,
    request_id: SmolStr,
    input: Record,
    outcome: &Outcome,
) -> Entry {
    let (kind, output) = outcome.record();
    Entry {
        time,
        action,
        kind: SmolStr::new_static(kind),
        request_id,
        input,
        output,
        permitted: false,
        open_from: None,
    }
}
