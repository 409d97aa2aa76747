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
use crate::engine::{Engine, PolicySet, RuleCard, Ruling};
use crate::gate::{Caller, Gate, Permit};
use crate::history::{Batch, Entry, History, HistoryError};
use crate::records::{Decided, Records};
use dogwood_compiler::value::{EntityUid, Record, Value};
use smol_str::{SmolStr, format_smolstr};
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

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
fn unknown_end(action: &str) -> Outcome {
    match action.split(':').next() {
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
                let outcome = unknown_end(&request.action.id);
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

struct Writer {
    history: History,
    engine: Box<dyn Engine>,
    rules: Vec<RuleCard>,
    clock: Arc<dyn Clock>,
    records: Records,
    /// Where a permit that nobody received is reported back to.
    returns: SyncSender<Message>,
    /// Set once, never cleared: what broke.
    fault: Option<String>,
    _lock: File,
}

/// A decision made and not yet answered.
struct Decision {
    entry: Entry,
    caller: Caller,
    action: Action,
    verdict: Result<Granted, Denial>,
    governing: Option<usize>,
    determining: Vec<usize>,
    sequence: u64,
}

/// What happened in one transaction, in order, to be recorded after the commit.
enum Done {
    Decision(Box<Decision>, SyncSender<Result<Granted, Denial>>),
    Outcome {
        sequence: u64,
        entry: Entry,
    },
    Refused {
        caller: Caller,
        action: Box<Action>,
        denial: Box<Denial>,
    },
}

impl Writer {
    fn run(mut self, messages: &Receiver<Message>) {
        let mut going = true;
        while going {
            let Ok(first) = messages.recv() else { break };
            let mut waiting = vec![first];
            waiting.extend(messages.try_iter().take(BATCH - 1));
            if let Some(stop) = waiting
                .iter()
                .position(|message| matches!(message, Message::Stop))
            {
                waiting.truncate(stop);
                going = false;
            }
            self.serve(waiting);
        }
        let _ = self
            .records
            .control(self.clock.now(), "box_stopped", "ok", "");
        let _ = self.records.flush();
    }

    /// One transaction: everything waiting.
    fn serve(&mut self, waiting: Vec<Message>) {
        let mut done = Vec::with_capacity(waiting.len());
        if self.fault.is_none() && !waiting.is_empty() {
            let time = self.history.stamp(self.clock.now());
            let Writer {
                history,
                engine,
                rules,
                fault,
                ..
            } = self;
            let committed = history.transact(|batch| {
                for message in waiting {
                    take(message, time, batch, &mut **engine, rules, fault, &mut done)?;
                }
                Ok(())
            });
            if let Err(reason) = committed {
                self.fault
                    .get_or_insert(format!("the history cannot be written: {reason}"));
                self.refuse_all(&mut done);
            }
        } else {
            for message in waiting {
                self.take_faulted(message, &mut done);
            }
        }
        if let Err(e) = self.record(&done) {
            self.fault
                .get_or_insert(format!("the decision records cannot be written: {e}"));
            self.refuse_all(&mut done);
        }
        for done in done {
            if let Done::Decision(decision, answer) = done {
                let Decision { verdict, .. } = *decision;
                if let Err(unheard) = answer.send(verdict)
                    && let Ok(granted) = unheard.0
                {
                    let outcome = granted.unknown.clone();
                    let _ = self
                        .returns
                        .try_send(Message::Complete { granted, outcome });
                }
            }
        }
    }

    /// Once something broke, nothing is asked any more: it is recorded as refused, if that still works.
    fn take_faulted(&self, message: Message, done: &mut Vec<Done>) {
        let reason = self.fault.clone().unwrap_or_default();
        match message {
            Message::Decide {
                caller,
                action,
                answer,
            } => {
                let entry = request_entry(self.clock.now(), &action, 0);
                let verdict = Err(fault(&action, reason));
                let decision = Decision {
                    entry,
                    caller,
                    action,
                    verdict,
                    governing: None,
                    determining: Vec::new(),
                    sequence: 0,
                };
                done.push(Done::Decision(Box::new(decision), answer));
            }
            Message::Refused {
                caller,
                action,
                denial,
            } => done.push(Done::Refused {
                caller,
                action,
                denial,
            }),
            Message::Complete { .. } | Message::Stop => {}
        }
    }

    /// Nothing of this batch is durable, so none of it may be answered with leave.
    fn refuse_all(&self, done: &mut [Done]) {
        let reason = self.fault.clone().unwrap_or_default();
        for done in done {
            if let Done::Decision(decision, _) = done
                && decision.verdict.is_ok()
            {
                decision.verdict = Err(fault(&decision.action, reason.clone()));
            }
        }
    }

    fn record(&mut self, done: &[Done]) -> std::io::Result<()> {
        for done in done {
            match done {
                Done::Decision(decision, _) => {
                    let card = decision.governing.and_then(|rule| self.rules.get(rule));
                    let decided = Decided {
                        time: decision.entry.time,
                        request_id: &decision.entry.request_id,
                        caller: &decision.caller,
                        action: &decision.action,
                        verdict: decision.verdict.as_ref().map(drop),
                        rule: card.map(|card| (&card.name, card.description.as_ref())),
                        determining: decision
                            .determining
                            .iter()
                            .filter_map(|rule| self.rules.get(*rule))
                            .map(|card| card.name.to_string())
                            .collect(),
                    };
                    self.records.decision(decision.sequence, &decided)?;
                }
                Done::Outcome { sequence, entry } => {
                    let output = entry
                        .output
                        .as_ref()
                        .and_then(|fields| fields.iter().next());
                    let output = output.map(|(field, value)| {
                        let value = match value {
                            Value::Int(n) => n.to_string(),
                            Value::Entity(uid) => uid.id.to_string(),
                            _ => String::new(),
                        };
                        (field.as_str(), value)
                    });
                    let (id, action) = (&entry.request_id, &entry.action.id);
                    self.records
                        .outcome(*sequence, entry.time, id, action, &entry.kind, output)?;
                }
                Done::Refused {
                    caller,
                    action,
                    denial,
                } => {
                    let decided = Decided {
                        time: self.clock.now(),
                        request_id: "",
                        caller,
                        action,
                        verdict: Err(denial),
                        rule: None,
                        determining: Vec::new(),
                    };
                    self.records.decision(0, &decided)?;
                }
            }
        }
        self.records.flush()
    }
}

/// Appends one message to the transaction and, for a request, decides it.
fn take(
    message: Message,
    time: i64,
    batch: &mut Batch<'_>,
    engine: &mut dyn Engine,
    rules: &[RuleCard],
    broken: &mut Option<String>,
    done: &mut Vec<Done>,
) -> Result<(), String> {
    match message {
        Message::Decide {
            caller,
            action,
            answer,
        } => {
            let entry = request_entry(time, &action, batch.next());
            let mut decision = Decision {
                verdict: Err(fault(&action, "the request was not made durable".into())),
                entry,
                caller,
                action,
                governing: None,
                determining: Vec::new(),
                sequence: 0,
            };
            // The caller must hear of it even if the append fails, so it is listed before.
            let appended = batch.append(&decision.entry);
            if let Ok(sequence) = appended {
                decision.sequence = sequence;
                rule(&mut decision, engine, rules, broken);
                if decision.verdict.is_ok()
                    && let Err(reason) = batch.leave_open(sequence)
                {
                    done.push(Done::Decision(Box::new(decision), answer));
                    return Err(reason);
                }
            }
            done.push(Done::Decision(Box::new(decision), answer));
            appended.map(drop)
        }
        Message::Complete { granted, outcome } => {
            let entry = outcome_entry(
                time,
                &granted.uid,
                &granted.request_id,
                &granted.input,
                &outcome,
            );
            batch.append(&entry)?;
            batch.close(granted.sequence)?;
            if let Err(reason) = step(engine, &entry) {
                broken.get_or_insert(format!("the policy cannot follow the history: {reason}"));
            }
            done.push(Done::Outcome {
                sequence: granted.sequence,
                entry,
            });
            Ok(())
        }
        Message::Refused {
            caller,
            action,
            denial,
        } => {
            done.push(Done::Refused {
                caller,
                action,
                denial,
            });
            Ok(())
        }
        Message::Stop => Ok(()),
    }
}

fn request_entry(time: i64, action: &Action, sequence: u64) -> Entry {
    Entry {
        time,
        action: action.uid(),
        kind: SmolStr::new_static("request"),
        request_id: format_smolstr!("{sequence}"),
        input: action.input(),
        output: None,
    }
}

fn fault(action: &Action, reason: String) -> Denial {
    Denial {
        action: action.name().into(),
        target: action.target(),
        cause: DenyCause::Fault(reason),
    }
}

/// Asks the policy about a request and turns its ruling into a verdict.
fn rule(
    decision: &mut Decision,
    engine: &mut dyn Engine,
    rules: &[RuleCard],
    broken: &mut Option<String>,
) {
    if let Some(reason) = broken {
        decision.verdict = Err(fault(&decision.action, reason.clone()));
        return;
    }
    let ruling = match step(engine, &decision.entry) {
        Ok(Some(ruling)) => ruling,
        Ok(None) => {
            let reason = broken.insert("the policy does not decide requests of this action".into());
            decision.verdict = Err(fault(&decision.action, reason.clone()));
            return;
        }
        Err(reason) => {
            let reason = broken.insert(reason);
            decision.verdict = Err(fault(&decision.action, reason.clone()));
            return;
        }
    };
    decision.governing = ruling.determining.first().copied();
    decision.determining.clone_from(&ruling.determining);
    let card = decision.governing.and_then(|rule| rules.get(rule));
    let witness = || {
        let event = decision.entry.event();
        // An explanation that breaks must not take the verdict with it.
        catch_unwind(AssertUnwindSafe(|| engine.witness(&event, &ruling))).unwrap_or_default()
    };
    let cause = match (ruling.allow, card, ruling.errors.first()) {
        (false, Some(card), _) => DenyCause::Forbidden {
            rule: card.name.clone(),
            description: card.description.clone(),
            witness: witness(),
        },
        // A rule that could not be evaluated might have forbidden it.
        (_, _, Some((rule, reason))) => {
            decision.governing = *rule;
            match rule.and_then(|rule| rules.get(rule)) {
                Some(card) => DenyCause::Fault(format!(
                    "rule {} could not be evaluated: {reason}",
                    card.name
                )),
                None => DenyCause::Fault(reason.clone()),
            }
        }
        (false, None, None) => DenyCause::NoPermit { witness: witness() },
        (true, _, None) => {
            decision.verdict = Ok(Granted {
                sequence: decision.sequence,
                request_id: decision.entry.request_id.clone(),
                uid: decision.entry.action.clone(),
                input: decision.entry.input.clone(),
                unknown: unknown_end(&decision.entry.action.id),
            });
            return;
        }
    };
    decision.verdict = Err(Denial {
        action: decision.action.name().into(),
        target: decision.action.target(),
        cause,
    });
}
