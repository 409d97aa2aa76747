//! The authority itself: one thread that orders every request, makes it durable, asks the policy, records
//! the decision, and only then answers.
//!
//! ```text
//! checkpoints ──decide──▶ channel ──▶ writer: everything waiting becomes one transaction
//!             ◀─answer──            append → step → … → commit → record → answer
//! ```
//!
//! A verdict leaves after the commit that made its request durable, so concurrent callers share one sync. A
//! fault in storage, in the records or in evaluation denies that request and every later one.

use crate::action::{Action, FsResult, Outcome};
use crate::clock::Clock;
use crate::denial::{Denial, DenyCause};
use crate::engine::{Engine, PolicySet, Ruling};
use crate::gate::{Caller, Gate, Permit};
use crate::history::{Entry, History, HistoryError};
use crate::records::Records;
use dogwood_compiler::value::{EntityUid, Record};
use smol_str::SmolStr;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use writer::Writer;

mod writer;

#[cfg(test)]
mod tests;

/// Requests that may wait for the writer before callers are held back.
const QUEUE: usize = 1024;
/// Events of one transaction at most.
const BATCH: usize = 256;

/// Why a box cannot open its authority.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("this box is already running: another process holds {}", .0.display())]
    AlreadyRunning(PathBuf),
    #[error("{} cannot be used: {reason}", path.display())]
    Directory { path: PathBuf, reason: String },
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error("event {number} of the history does not fit this policy: {reason}")]
    Replay { number: u64, reason: String },
    #[error("the decision records cannot be written: {0}")]
    Records(std::io::Error),
}

/// The one place where a box decides. Dropping it ends the writer; permits still out are recorded as
/// indeterminate when the box is opened again.
pub struct Authority {
    inbox: SyncSender<Message>,
    writer: Mutex<Option<JoinHandle<()>>>,
    recovered: Recovered,
}

/// What opening found and mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Events replayed into the policy.
    pub events: usize,
    /// Requests of an earlier run whose outcome was never told, now recorded as indeterminate.
    pub unfinished: usize,
}

enum Message {
    Decide {
        caller: Caller,
        action: Action,
        answer: SyncSender<Result<Granted, Denial>>,
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
    Stop,
}

/// A request that was permitted and has not ended.
struct Granted {
    sequence: u64,
    request_id: SmolStr,
    uid: EntityUid,
    input: Record,
    unknown: Outcome,
}

impl Authority {
    /// Opens the history under `dir`, which must exist, and replays it into the policy.
    pub fn open(
        dir: &Path,
        mut policy: PolicySet,
        clock: Arc<dyn Clock>,
        mut records: Records,
    ) -> Result<Authority, OpenError> {
        let lock = lock(&dir.join("lock"))?;
        let file = dir.join("history.redb");
        let ran_before = dir.join("ran");
        let empty = match std::fs::metadata(&file) {
            Ok(found) => found.len() == 0,
            Err(e) if e.kind() == ErrorKind::NotFound => true,
            Err(e) => {
                return Err(OpenError::Directory {
                    path: file,
                    reason: e.to_string(),
                });
            }
        };
        if empty && ran_before.exists() {
            return Err(HistoryError::Missing(file).into());
        }
        let found = History::open(&file, policy.horizon)?;
        File::create(&ran_before)
            .and_then(|mark| mark.sync_all())
            .map_err(|e| OpenError::Directory {
                path: ran_before,
                reason: e.to_string(),
            })?;
        let first = found
            .history
            .next()
            .saturating_sub(found.entries.len() as u64);
        for (number, entry) in (first..).zip(&found.entries) {
            step(&mut *policy.engine, entry)
                .map_err(|reason| OpenError::Replay { number, reason })?;
        }
        let recovered = Recovered {
            events: found.entries.len(),
            unfinished: found.unfinished.len(),
        };
        let mut history = found.history;
        end_unfinished(
            &mut history,
            &mut *policy.engine,
            &found.unfinished,
            clock.now(),
        )?;
        records
            .control(clock.now(), "box_started", "ok", &dir.to_string_lossy())
            .and_then(|()| records.flush())
            .map_err(OpenError::Records)?;
        let (inbox, messages) = sync_channel(QUEUE);
        let writer = Writer {
            history,
            engine: policy.engine,
            rules: policy.rules,
            clock,
            records,
            returns: inbox.clone(),
            fault: None,
            _lock: lock,
        };
        let writer = std::thread::Builder::new()
            .name("authority".into())
            .spawn(move || writer.run(&messages))
            .map_err(|e| OpenError::Directory {
                path: dir.to_path_buf(),
                reason: e.to_string(),
            })?;
        Ok(Authority {
            inbox,
            writer: Mutex::new(Some(writer)),
            recovered,
        })
    }

    pub fn recovered(&self) -> Recovered {
        self.recovered
    }
}

impl Authority {
    /// Ends the writer once everything sent so far is answered. Whatever is asked later is denied.
    pub fn close(&self) {
        let _ = self.inbox.send(Message::Stop);
        let writer = self
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(writer) = writer {
            let _ = writer.join();
        }
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        self.close();
    }
}

impl Gate for Authority {
    fn decide(&self, caller: &Caller, action: Action) -> Result<Box<dyn Permit>, Denial> {
        let closed = Denial {
            action: action.name().into(),
            target: action.target(),
            cause: DenyCause::Fault("the box has stopped deciding".into()),
        };
        let (answer, verdict) = sync_channel(1);
        let message = Message::Decide {
            caller: caller.clone(),
            action,
            answer,
        };
        if self.inbox.send(message).is_err() {
            return Err(closed);
        }
        let granted = verdict.recv().map_err(|_| closed)??;
        Ok(Box::new(Ticket {
            granted: Some(granted),
            inbox: self.inbox.clone(),
        }))
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
    inbox: SyncSender<Message>,
}

impl Ticket {
    fn end(&mut self, outcome: Option<Outcome>) {
        if let Some(granted) = self.granted.take() {
            let outcome = outcome.unwrap_or_else(|| granted.unknown.clone());
            // A writer that is gone leaves the request open in the history; the next run ends it.
            let _ = self.inbox.send(Message::Complete { granted, outcome });
        }
    }
}

impl Permit for Ticket {
    fn complete(mut self: Box<Self>, outcome: Outcome) {
        self.end(Some(outcome));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.end(None);
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

fn lock(path: &Path) -> Result<File, OpenError> {
    let unusable = |e: std::io::Error| OpenError::Directory {
        path: path.to_path_buf(),
        reason: e.to_string(),
    };
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::AlreadyRunning(path.to_path_buf())),
        Err(TryLockError::Error(e)) => Err(unusable(e)),
    }
}

/// A panic inside the policy is an answer like any other: a fault.
fn step(engine: &mut dyn Engine, entry: &Entry) -> Result<Option<Ruling>, String> {
    catch_unwind(AssertUnwindSafe(|| engine.step(&entry.event())))
        .unwrap_or_else(|_| Err("the evaluation of the policy broke down".into()))
}

fn outcome_entry(
    time: i64,
    uid: &EntityUid,
    request_id: &SmolStr,
    input: &Record,
    outcome: &Outcome,
) -> Entry {
    let (kind, output) = outcome.record();
    Entry {
        time,
        action: uid.clone(),
        kind: SmolStr::new_static(kind),
        request_id: request_id.clone(),
        input: input.clone(),
        output,
    }
}

fn end_unfinished(
    history: &mut History,
    engine: &mut dyn Engine,
    unfinished: &[(u64, Entry)],
    now: i64,
) -> Result<(), OpenError> {
    if unfinished.is_empty() {
        return Ok(());
    }
    let time = history.stamp(now);
    let number = history.next();
    let mut entries = Vec::new();
    history
        .transact(|batch| {
            for (sequence, request) in unfinished {
                let outcome = unknown_end(&request.action);
                let entry = outcome_entry(
                    time,
                    &request.action,
                    &request.request_id,
                    &request.input,
                    &outcome,
                );
                batch.append(&entry)?;
                batch.close(*sequence)?;
                entries.push(entry);
            }
            Ok(())
        })
        .map_err(HistoryError::Write)?;
    for entry in &entries {
        step(engine, entry).map_err(|reason| OpenError::Replay { number, reason })?;
    }
    Ok(())
}
