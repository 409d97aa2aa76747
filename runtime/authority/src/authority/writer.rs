//! The writer thread: everything waiting becomes one transaction, then one round of answers.

use super::judge::{Live, Waiting};
use super::snapshot::Snapshots;
use super::{BATCH, Granted, Message, ReloadError};
use crate::clock::Clock;
use crate::engine::PolicySet;
use crate::history::{Built, History};
use crate::records::Records;
use std::collections::VecDeque;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};
use take::{Decision, Done, Taking, refused};

mod take;

pub(super) use super::snapshot::Pace;

/// How long the outcome of a request may wait for a request to share a sync with. Nobody waits for it.
const LINGER: Duration = Duration::from_millis(1);
/// Old events dropped at once, beside as many as came in meanwhile.
const TIDY: usize = 64;
/// Batches between two pieces of housekeeping when there is never a pause.
const EVERY: u64 = 16;

pub(super) struct Writer {
    history: History,
    live: Live,
    clock: Arc<dyn Clock>,
    records: Records,
    /// Where a permit that nobody received is reported back to.
    returns: SyncSender<Message>,
    /// Set once, never cleared: what broke.
    fault: Option<String>,
    snapshots: Snapshots,
    batches: u64,
    /// Events appended when old ones were last dropped.
    tidied_at: u64,
    clock_behind: bool,
    _lock: Option<File>,
}

impl Writer {
    /// `snapshot` is the last event that the snapshot in the history holds.
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one thing, made in one place"
    )]
    pub(super) fn new(
        history: History,
        live: Live,
        clock: Arc<dyn Clock>,
        records: Records,
        returns: SyncSender<Message>,
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
            returns,
            fault: None,
            snapshots: Snapshots::new(pace, behind),
            batches: 0,
            tidied_at: 0,
            clock_behind: false,
            _lock: lock,
        }
    }

    pub(super) fn run(mut self, messages: &Receiver<Message>) {
        let mut going = true;
        while going {
            let Some(first) = self.wait(messages) else {
                break;
            };
            let mut waiting = gather(first, messages);
            let mut batch = VecDeque::new();
            while let Some(message) = waiting.pop_front() {
                match message {
                    Message::Stop => {
                        going = false;
                        break;
                    }
                    Message::Install {
                        policy,
                        built,
                        answer,
                    } => {
                        self.serve(std::mem::take(&mut batch));
                        let _ = answer.send(self.install(*policy, *built));
                    }
                    Message::Rejected(reason) => {
                        self.control("policy_refused", "refused", &reason);
                    }
                    Message::Woken => {}
                    other => batch.push_back(other),
                }
            }
            self.serve(batch);
        }
        self.snapshots.abandon();
        if self.fault.is_none() && self.history.untidy(self.keep()) {
            self.tidy();
        }
        self.control("box_stopped", "ok", "");
    }

    /// The next message. While there is none, and now and then in any case, what nobody waits for is done.
    fn wait(&mut self, messages: &Receiver<Message>) -> Option<Message> {
        if self.batches % EVERY == EVERY - 1 {
            self.batches += 1;
            self.keep_house();
        }
        loop {
            if let Ok(message) = messages.try_recv() {
                return Some(message);
            }
            if !self.keep_house() {
                return messages.recv().ok();
            }
        }
    }

    /// One bounded piece of work on snapshots or old events; whether there was one.
    fn keep_house(&mut self) -> bool {
        if self.fault.is_some() {
            return false;
        }
        let appended = self.history.appended();
        let done = if self.snapshots.waiting(appended) {
            self.snapshots.begin(
                appended,
                self.history.reader(),
                Arc::clone(&self.live.compiled),
                self.returns.clone(),
            );
            let stored = match self.snapshots.next_part() {
                Some((head, part, bytes)) => self.history.put_snapshot(head, part, bytes),
                None => Ok(()),
            };
            self.snapshots.put();
            stored
        } else if self.history.untidy(self.keep()) {
            self.tidy();
            return true;
        } else {
            return false;
        };
        if let Some(reason) = self.snapshots.failed.take() {
            self.control("snapshot_failed", "refused", &reason);
        }
        self.broke(done);
        true
    }

    /// Seconds of history that are kept.
    fn keep(&self) -> i64 {
        self.live.keep.max(self.live.horizon())
    }

    /// Drops old events: some, and more the more came in since the last time.
    fn tidy(&mut self) {
        let (appended, _) = self.history.appended();
        let came = usize::try_from(appended - self.tidied_at).unwrap_or(usize::MAX);
        self.tidied_at = appended;
        let rows = TIDY.saturating_add(came.saturating_mul(2));
        let done = self.history.tidy(self.keep(), rows);
        self.broke(done);
    }

    fn broke(&mut self, written: Result<(), String>) {
        if let Err(reason) = written {
            self.fault
                .get_or_insert(format!("the history cannot be written: {reason}"));
        }
    }

    /// What the box itself did, recorded at once.
    fn control(&mut self, operation: &str, outcome: &str, subject: &str) {
        let now = self.clock.now();
        let told = self.records.control(now, operation, outcome, subject);
        if let Err(e) = told.and_then(|()| self.records.flush()) {
            self.fault
                .get_or_insert(format!("the decision records cannot be written: {e}"));
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
            self.control("policy_refused", "refused", &reason);
            return Err(ReloadError::Replay(reason));
        }
        let before = self.live.compiled.fingerprint();
        self.records.quote(std::mem::take(&mut policy.text));
        self.live = Live::new(policy, built);
        let fingerprint = self.live.compiled.fingerprint();
        if before != fingerprint {
            self.snapshots.hurry();
        }
        self.control("policy_installed", "ok", &fingerprint);
        match &self.fault {
            Some(reason) => Err(ReloadError::Stopped(reason.clone())),
            None => Ok(self.live.waiting(self.history.time().max(self.clock.now()))),
        }
    }

    /// One transaction: everything waiting.
    fn serve(&mut self, mut waiting: VecDeque<Message>) {
        if waiting.is_empty() {
            return;
        }
        self.batches += 1;
        let mut done = Vec::with_capacity(waiting.len());
        if self.fault.is_none() {
            self.note_clock();
            let committed = match self.history.stamp(self.clock.now()) {
                Ok(time) => self.commit(time, &mut waiting, &mut done),
                Err(reason) => Err(reason),
            };
            if let Err(reason) = committed {
                self.fault.get_or_insert(reason);
                self.refuse_all(&mut done);
            }
        }
        // Once something broke, nothing is asked any more: it is recorded as refused, if that still works.
        let reason = self.fault.clone().unwrap_or_default();
        done.extend(
            waiting
                .into_iter()
                .filter_map(|message| refused(message, &reason, self.clock.now())),
        );
        if let Err(e) = self.record(&done) {
            self.fault
                .get_or_insert(format!("the decision records cannot be written: {e}"));
            self.refuse_all(&mut done);
        }
        self.answer(done);
    }

    fn commit(
        &mut self,
        time: i64,
        waiting: &mut VecDeque<Message>,
        done: &mut Vec<Done>,
    ) -> Result<(), String> {
        let mut taking = Taking {
            live: &mut self.live,
            fault: &mut self.fault,
            time,
            done,
        };
        let writes = |message: &Message| {
            !matches!(message, Message::WhatIf { .. } | Message::Refused { .. })
        };
        if !waiting.iter().any(writes) {
            while let Some(message) = waiting.pop_front() {
                taking.aside(message);
            }
            return Ok(());
        }
        self.history
            .transact(|batch| {
                while let Some(message) = waiting.pop_front() {
                    taking.take(message, batch)?;
                }
                Ok(())
            })
            .map_err(|reason| format!("the history cannot be written: {reason}"))
    }

    /// A clock that was set back is followed again when it has caught up. Until then time stands still, so that
    /// no window ends early.
    fn note_clock(&mut self) {
        const SLACK: i64 = 300;
        let behind = self.history.time().saturating_sub(self.clock.now());
        if self.history.next() > 1 && behind > SLACK && !self.clock_behind {
            self.clock_behind = true;
            self.control("clock_set_back", "ok", &format!("by {behind} seconds"));
        } else if behind <= 0 {
            self.clock_behind = false;
        }
    }

    /// Nothing of this batch is known to be durable, so none of it may be answered as decided.
    fn refuse_all(&self, done: &mut [Done]) {
        let reason = self.fault.clone().unwrap_or_default();
        for done in done {
            done.refuse(&reason);
        }
    }

    fn record(&mut self, done: &[Done]) -> std::io::Result<()> {
        for done in done {
            done.record(&self.live.rules, &mut self.records, self.clock.now())?;
        }
        self.records.flush()
    }

    fn answer(&self, done: Vec<Done>) {
        for done in done {
            match done {
                Done::Decision(decision, answer) => {
                    let Decision { verdict, .. } = *decision;
                    if let Err(unheard) = answer.send(verdict)
                        && let Ok(granted) = unheard.0
                    {
                        self.unheard(granted);
                    }
                }
                Done::WhatIf(verdict, answer) => {
                    let _ = answer.send(verdict);
                }
                Done::Outcome { .. } | Done::Refused { .. } | Done::Misfit(_) => {}
            }
        }
    }

    /// Nobody holds this permit; whether anything was done with it is not known.
    fn unheard(&self, granted: Granted) {
        if !granted.repeated {
            let outcome = granted.unknown.clone();
            let _ = self
                .returns
                .try_send(Message::Complete { granted, outcome });
        }
    }
}

/// What is waiting. If nobody waits for an answer among it, more may come.
fn gather(first: Message, messages: &Receiver<Message>) -> VecDeque<Message> {
    let mut waiting = VecDeque::from([first]);
    waiting.extend(messages.try_iter().take(BATCH - 1));
    let until = Instant::now() + LINGER;
    while waiting
        .iter()
        .all(|message| matches!(message, Message::Complete { .. }))
        && waiting.len() < BATCH
    {
        let left = until.saturating_duration_since(Instant::now());
        match messages.recv_timeout(left) {
            Ok(message) => waiting.push_back(message),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    waiting.extend(
        messages
            .try_iter()
            .take(BATCH.saturating_sub(waiting.len())),
    );
    waiting
}
