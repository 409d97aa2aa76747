//! The writer: everything waiting becomes one transaction, then one round of answers. It has one user at a time.

use super::inbox::Inbox;
use super::judge::{Live, Waiting};
use super::snapshot::Snapshots;
use super::{Granted, Message, ReloadError};
use crate::clock::Clock;
use crate::engine::PolicySet;
use crate::history::{Built, History};
use crate::records::Records;
use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use take::{Decision, Taking, refused};

mod take;

pub(super) use super::snapshot::Pace;
pub(super) use take::Done;

/// Old events dropped at once, beside as many as came in meanwhile.
const TIDY: usize = 64;
/// Batches between two chores when there is never a pause.
const EVERY: u64 = 16;

/// Work on snapshots and old events that nobody waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Chores {
    Due,
    /// They have been put off for too long.
    Overdue,
}

pub(super) struct Writer {
    history: History,
    live: Live,
    clock: Arc<dyn Clock>,
    records: Records,
    /// What was taken in and is not durable yet.
    done: Vec<Done>,
    /// Of how many of these the records are made.
    told: usize,
    /// Set once, never cleared: what broke.
    fault: Option<String>,
    snapshots: Snapshots,
    /// Since the last chore.
    batches: u64,
    /// Events appended when old ones were last dropped.
    tidied_at: u64,
    clock_behind: bool,
    _lock: Option<File>,
}

impl Writer {
    /// `snapshot` is the last event that the snapshot in the history holds.
    pub(super) fn new(
        history: History,
        live: Live,
        clock: Arc<dyn Clock>,
        records: Records,
        lock: Option<File>,
        pace: Pace,
        snapshot: Option<u64>,
    ) -> Writer {
        let behind = history.next().saturating_sub(1) - snapshot.unwrap_or(0);
        Writer {
            history,
            live,
            clock,
            records,
            done: Vec::new(),
            told: 0,
            fault: None,
            snapshots: Snapshots::new(pace, behind),
            batches: 0,
            tidied_at: 0,
            clock_behind: false,
            _lock: lock,
        }
    }

    /// What is to be done beside requests.
    pub(super) fn chores(&mut self) -> Option<Chores> {
        let due = self.fault.is_none()
            && (self.snapshots.waiting(self.history.appended()) || self.untidy());
        due.then_some(match self.batches < EVERY {
            true => Chores::Due,
            false => Chores::Overdue,
        })
    }

    fn untidy(&self) -> bool {
        self.history.untidy(self.live.keep)
    }

    /// One bounded piece of work on snapshots or old events.
    pub(super) fn do_chore(&mut self, inbox: &Arc<Inbox>) {
        self.batches = 0;
        if self.fault.is_some() {
            return;
        }
        let appended = self.history.appended();
        let done = if self.snapshots.waiting(appended) {
            self.snapshots.begin(
                appended,
                self.history.reader(),
                Arc::clone(&self.live.compiled),
                Arc::clone(inbox),
            );
            let stored = match self.snapshots.next_part() {
                Some((head, part, bytes)) => self.history.put_snapshot(head, part, bytes),
                None => Ok(()),
            };
            self.snapshots.put();
            stored
        } else if self.untidy() {
            self.tidy();
            return;
        } else {
            return;
        };
        if let Some(reason) = self.snapshots.failed.take() {
            self.note("snapshot_failed", "refused", &reason);
        }
        self.broke(done);
    }

    /// The end: what old events there are is dropped, and nothing comes after that.
    pub(super) fn finish(&mut self) {
        self.serve(VecDeque::new());
        self.snapshots.abandon();
        if self.fault.is_none() && self.untidy() {
            self.tidy();
        }
        self.note("box_stopped", "ok", "");
    }

    /// What is no request.
    pub(super) fn control(&mut self, message: Message) {
        self.serve(VecDeque::new());
        match message {
            Message::Install {
                policy,
                built,
                answer,
            } => {
                let _ = answer.send(self.install(*policy, *built));
            }
            Message::Rejected(reason) => self.note("policy_refused", "refused", &reason),
            _ => {}
        }
    }

    /// Drops old events: some, and more the more came in since the last time.
    fn tidy(&mut self) {
        let (appended, _) = self.history.appended();
        let came = usize::try_from(appended - self.tidied_at).unwrap_or(usize::MAX);
        self.tidied_at = appended;
        let rows = TIDY.saturating_add(came.saturating_mul(2));
        let done = self.history.tidy(self.live.keep, rows);
        self.broke(done);
    }

    fn broke(&mut self, written: Result<(), String>) {
        if let Err(reason) = written {
            self.fault.get_or_insert(unwritable(&reason));
        }
    }

    /// What the box itself did, recorded at once.
    fn note(&mut self, operation: &str, outcome: &str, subject: &str) {
        let now = self.clock.now();
        if let Err(e) = self.records.control(now, operation, outcome, subject) {
            self.fault.get_or_insert(unrecorded(&e));
        }
    }

    /// From here on the new policy decides. It steps the few events that came while it was built.
    fn install(
        &mut self,
        mut policy: PolicySet,
        mut built: Built,
    ) -> Result<Vec<Waiting>, ReloadError> {
        if let Some(reason) = &self.fault {
            return Err(ReloadError::Stopped(reason.clone()));
        }
        let followed = self
            .history
            .reader()
            .view()
            .and_then(|view| built.follow(&view, &AtomicBool::new(false)));
        if let Err(reason) = followed {
            self.note("policy_refused", "refused", &reason);
            return Err(ReloadError::Replay(reason));
        }
        let before = self.live.compiled.fingerprint();
        self.records.quote(std::mem::take(&mut policy.text));
        self.live = Live::new(policy, built);
        let fingerprint = self.live.compiled.fingerprint();
        if before != fingerprint {
            self.snapshots.hurry();
        }
        self.note("policy_installed", "ok", &fingerprint);
        match &self.fault {
            Some(reason) => Err(ReloadError::Stopped(reason.clone())),
            None => Ok(self.live.waiting(self.history.time().max(self.clock.now()))),
        }
    }

    /// Takes in what nobody waits for. It becomes durable with what comes next.
    pub(super) fn prepare(&mut self, mut ends: VecDeque<Message>) {
        if self.fault.is_none()
            && let Err(reason) = self.take(&mut ends).and_then(|()| self.tell())
        {
            self.fault.get_or_insert(reason);
        }
    }

    /// Whether something was taken in that is not durable.
    pub(super) fn unwritten(&self) -> bool {
        !self.done.is_empty()
    }

    /// One transaction: everything waiting, and what was taken in before. What comes of it may be answered.
    pub(super) fn serve(&mut self, mut waiting: VecDeque<Message>) -> Vec<Done> {
        if waiting.is_empty() && !self.unwritten() {
            return Vec::new();
        }
        self.batches += 1;
        if self.fault.is_none() {
            self.note_clock();
            let taken = self.take(&mut waiting);
            if let Err(reason) = taken.and_then(|()| self.commit()) {
                self.fault.get_or_insert(reason);
            } else if let Err(e) = self.records.flush() {
                self.fault.get_or_insert(unrecorded(&e));
            } else {
                return self.all_done();
            }
            self.records.forget();
        }
        // Once something broke, nothing is asked any more, and nothing that was is answered as decided: it is
        // recorded as refused, if that still works.
        let reason = self.fault.clone().unwrap_or_default();
        let mut done = self.all_done();
        done.iter_mut().for_each(|done| done.refuse(&reason));
        let now = self.clock.now();
        done.extend(
            waiting
                .into_iter()
                .filter_map(|message| refused(message, &reason, now)),
        );
        self.done = done;
        let told = self.tell();
        let written = told.and_then(|()| self.records.flush().map_err(|e| unrecorded(&e)));
        if let Err(reason) = written {
            self.fault.get_or_insert(reason);
        }
        self.all_done()
    }

    /// What was taken in, which is done with now.
    fn all_done(&mut self) -> Vec<Done> {
        self.told = 0;
        std::mem::take(&mut self.done)
    }

    fn take(&mut self, waiting: &mut VecDeque<Message>) -> Result<(), String> {
        let mut taking = Taking {
            time: self.history.stamp(self.clock.now())?,
            history: &mut self.history,
            live: &mut self.live,
            fault: &mut self.fault,
            done: &mut self.done,
        };
        while let Some(message) = waiting.pop_front() {
            let taken = taking.take(message);
            taken.map_err(|reason| unwritable(&reason))?;
        }
        Ok(())
    }

    /// What is recorded is made before the commit, for after it the memory is cold.
    fn commit(&mut self) -> Result<(), String> {
        self.tell()?;
        self.history.commit().map_err(|reason| unwritable(&reason))
    }

    /// Makes the records of what was taken in since the last time.
    fn tell(&mut self) -> Result<(), String> {
        for done in self.done.iter().skip(self.told) {
            let told = done.record(&self.live.rules, &mut self.records, self.clock.now());
            told.map_err(|e| unrecorded(&e))?;
        }
        self.told = self.done.len();
        Ok(())
    }

    /// A clock that was set back is followed again when it has caught up. Until then time stands still, so that
    /// no window ends early.
    fn note_clock(&mut self) {
        const SLACK: i64 = 300;
        let behind = self.history.time().saturating_sub(self.clock.now());
        if self.history.next() > 1 && behind > SLACK && !self.clock_behind {
            self.clock_behind = true;
            self.note("clock_set_back", "ok", &format!("by {behind} seconds"));
        } else if behind <= 0 {
            self.clock_behind = false;
        }
    }
}

fn unwritable(reason: &str) -> String {
    format!("the history cannot be written: {reason}")
}

fn unrecorded(error: &std::io::Error) -> String {
    format!("the decision records cannot be written: {error}")
}

/// Tells everybody. The writer may be at the next batch already.
pub(super) fn answer(done: Vec<Done>, inbox: &Inbox) {
    for done in done {
        match done {
            Done::Decision(decision, answer) => {
                let Decision { verdict, .. } = *decision;
                if let Err(unheard) = answer.send(verdict)
                    && let Ok(granted) = unheard
                {
                    unknown(granted, inbox);
                }
            }
            Done::WhatIf(verdict, answer) => {
                let _ = answer.send(verdict);
            }
            Done::Outcome(_) | Done::Refused { .. } | Done::Misfit(_) => {}
        }
    }
}

/// Nobody holds this permit; whether anything was done with it is not known.
fn unknown(granted: Granted, inbox: &Inbox) {
    if !granted.repeated {
        let outcome = granted.unknown.clone();
        inbox.post(Message::Complete { granted, outcome });
    }
}
