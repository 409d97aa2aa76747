//! Where requests wait, and who serves them next.
//!
//! The writer lies here between two batches. A caller who finds it here takes it and serves what waits, its own
//! request among it: to wake another thread for that, and to be woken by it, costs about as much as the sync.
//! The authority's own thread serves what nobody waits for: ends of requests, once they have waited a moment
//! for a request to share a sync with; snapshots and old events; and messages that change what decides.

use super::writer::{Chores, Writer, answer};
use super::{BATCH, Message, QUEUE};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long what nobody waits for may wait for a request to share a sync with. What is lost of it with the
/// machine is recorded as indeterminate by the next run.
const LINGER: Duration = Duration::from_millis(10);
/// Bytes of stack that a decision finds at least, whosever thread it is made on, and what it gets where there
/// are fewer.
const LEAST_STACK: usize = 1024 * 1024;
const NEW_STACK: usize = 4 * 1024 * 1024;

pub(super) struct Inbox {
    queue: Mutex<Queue>,
    /// The authority's thread is to look again.
    due: Condvar,
    /// There is room for more.
    room: Condvar,
}

struct Queue {
    waiting: VecDeque<Message>,
    /// How many of them only the authority's thread may take.
    controls: usize,
    /// How many waited for an answer in the batch before.
    askers: usize,
    /// Nobody serves at this moment.
    writer: Option<Box<Writer>>,
    /// When the authority's thread is to serve at the latest, unless somebody else does before.
    deadline: Option<Instant>,
    /// Something came since the authority's thread last looked.
    busy: bool,
    /// Chores have been put off for too long, so the next batch is not a caller's.
    overdue: bool,
    thread: Thread,
    closed: bool,
}

/// What the authority's thread is doing.
enum Thread {
    Awake,
    Asleep { until: Option<Instant> },
}

/// There is nobody any more who would answer.
#[derive(Debug)]
pub(super) struct Closed;

impl Queue {
    fn push(&mut self, message: Message) {
        let now = Instant::now();
        let deadline = match message {
            Message::Complete { .. } | Message::Refused { .. } => now + LINGER,
            Message::Decide { .. } | Message::WhatIf { .. } => now,
            Message::Install { .. } | Message::Rejected(_) | Message::Stop => {
                self.controls += 1;
                now
            }
        };
        self.waiting.push_back(message);
        self.busy = true;
        self.no_later_than(match self.waiting.len() < BATCH {
            true => deadline,
            false => now,
        });
    }

    fn no_later_than(&mut self, deadline: Instant) {
        self.deadline = Some(self.deadline.map_or(deadline, |set| set.min(deadline)));
    }

    /// What is served next: everything before the next control, or that control alone.
    fn batch(&mut self) -> VecDeque<Message> {
        let control = self.waiting.iter().position(Message::is_control);
        if control == Some(0) {
            self.controls -= 1;
        }
        let end = control.map_or(self.waiting.len(), |control| control.max(1));
        let rest = self.waiting.split_off(end.min(BATCH));
        let batch = std::mem::replace(&mut self.waiting, rest);
        self.askers = batch.iter().filter(|message| message.is_asked()).count();
        self.deadline = (!self.waiting.is_empty()).then(Instant::now);
        batch
    }

    /// When the authority's thread is to serve. Whoever serves at this moment looks again at the end.
    fn due(&self) -> Option<Instant> {
        self.writer.as_ref().and(self.deadline)
    }

    fn close(&mut self) {
        self.closed = true;
        self.writer = None;
        // Whoever waits for an answer hears that there is none.
        self.waiting.clear();
    }
}

impl Inbox {
    pub fn new(writer: Writer) -> Arc<Inbox> {
        Arc::new(Inbox {
            queue: Mutex::new(Queue {
                waiting: VecDeque::new(),
                controls: 0,
                askers: 0,
                writer: Some(Box::new(writer)),
                deadline: Some(Instant::now()),
                busy: false,
                overdue: false,
                thread: Thread::Awake,
                closed: false,
            }),
            due: Condvar::new(),
            room: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room, then leaves the message.
    fn enter(&self, message: Message) -> Result<MutexGuard<'_, Queue>, Closed> {
        let full = |queue: &mut Queue| !queue.closed && queue.waiting.len() >= QUEUE;
        let entered = self.room.wait_while(self.lock(), full);
        let mut queue = entered.unwrap_or_else(PoisonError::into_inner);
        if queue.closed {
            return Err(Closed);
        }
        queue.push(message);
        Ok(queue)
    }

    /// Wakes the authority's thread if it would sleep too long.
    fn rouse(&self, mut queue: MutexGuard<'_, Queue>) {
        let sleeps_past = |due: Instant| match queue.thread {
            Thread::Awake => false,
            Thread::Asleep { until } => until.is_none_or(|until| until > due),
        };
        if queue.due().is_some_and(sleeps_past) {
            queue.thread = Thread::Awake;
            drop(queue);
            self.due.notify_one();
        }
    }

    /// Leaves a message whose sender does not wait for the answer here and now.
    pub fn send(&self, message: Message) -> Result<(), Closed> {
        self.enter(message).map(|queue| self.rouse(queue))
    }

    /// As `send`, from those who must not wait for room.
    pub fn post(&self, message: Message) {
        let mut queue = self.lock();
        if !queue.closed {
            queue.push(message);
            self.rouse(queue);
        }
    }

    /// There may be chores to do.
    pub fn look(&self) {
        let mut queue = self.lock();
        queue.no_later_than(Instant::now());
        self.rouse(queue);
    }

    /// Leaves a request and, if nobody else serves, serves what waits. Afterwards its sender can wait for the
    /// answer.
    pub fn ask(self: &Arc<Inbox>, message: Message) -> Result<(), Closed> {
        let mut queue = self.enter(message)?;
        if queue.controls > 0 || queue.overdue {
            self.rouse(queue);
            return Ok(());
        }
        let Some(writer) = queue.writer.take() else {
            return Ok(());
        };
        let (mut turn, batch) = self.turn(queue, writer);
        if let Some(done) = turn.work(|writer| writer.serve(batch)) {
            turn.end(LINGER);
            answer(done, self);
        }
        Ok(())
    }

    /// Leaves the end of a request. Where no others ask it is taken in here and now, so that the next decision
    /// has less to do, and is durable with that one or after a moment.
    pub fn end(self: &Arc<Inbox>, message: Message) -> Result<(), Closed> {
        let mut queue = self.enter(message)?;
        let alone = queue.askers <= 1 && queue.waiting.len() == 1;
        if alone
            && queue.controls == 0
            && !queue.overdue
            && let Some(writer) = queue.writer.take()
        {
            let (mut turn, batch) = self.turn(queue, writer);
            if turn.work(|writer| writer.prepare(batch)).is_some() {
                turn.end(LINGER);
            }
        } else {
            self.rouse(queue);
        }
        Ok(())
    }

    /// What the authority's thread does until it is told to stop.
    pub fn run(self: &Arc<Inbox>) {
        while let Some((mut turn, mut batch)) = self.next() {
            let Some(writer) = &mut turn.writer else {
                return;
            };
            let idle = batch.is_empty() && !writer.unwritten();
            if idle || writer.chores() == Some(Chores::Overdue) {
                writer.do_chore(self);
            }
            let (mut done, mut going) = (Vec::new(), true);
            match batch.pop_front_if(|message| message.is_control()) {
                Some(Message::Stop) => going = false,
                Some(control) => writer.control(control),
                None => done = writer.serve(batch),
            }
            if going {
                turn.end(Duration::ZERO);
            } else {
                writer.finish();
                drop(turn);
            }
            answer(done, self);
        }
    }

    /// The next turn of the authority's thread.
    fn next(self: &Arc<Inbox>) -> Option<(Turn<'_>, VecDeque<Message>)> {
        let mut queue = self.lock();
        loop {
            if queue.closed {
                return None;
            }
            let due = queue.due();
            if due.is_some_and(|due| due <= Instant::now())
                && let Some(writer) = queue.writer.take()
            {
                return Some(self.turn(queue, writer));
            }
            // Who leaves something soon that may linger need not wake anybody then.
            let soon = std::mem::take(&mut queue.busy).then(|| Instant::now() + LINGER);
            let until = due.or(soon);
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            queue.thread = Thread::Asleep { until };
            queue = match left {
                Some(left) => {
                    let woken = self.due.wait_timeout(queue, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let woken = self.due.wait(queue);
                    woken.unwrap_or_else(PoisonError::into_inner)
                }
            };
            queue.thread = Thread::Awake;
        }
    }

    fn turn<'i>(
        self: &'i Arc<Inbox>,
        mut queue: MutexGuard<'i, Queue>,
        writer: Box<Writer>,
    ) -> (Turn<'i>, VecDeque<Message>) {
        // Where several ask at a time, those who are about to are let in first: all of them share the sync.
        for _ in 1..queue.askers {
            let before = queue.waiting.len();
            drop(queue);
            std::thread::yield_now();
            queue = self.lock();
            if queue.waiting.len() == before {
                break;
            }
        }
        let full = queue.waiting.len() >= QUEUE;
        let batch = queue.batch();
        drop(queue);
        if full {
            self.room.notify_all();
        }
        let turn = Turn {
            inbox: self,
            writer: Some(writer),
        };
        (turn, batch)
    }
}

/// The writer, taken out. A turn that is dropped before its end closes the inbox.
struct Turn<'i> {
    inbox: &'i Arc<Inbox>,
    writer: Option<Box<Writer>>,
}

impl Turn<'_> {
    /// On the thread of a caller. Nothing, where it broke down: then the turn is over, the inbox closed, and
    /// nobody answered.
    fn work<T>(&mut self, work: impl FnOnce(&mut Writer) -> T) -> Option<T> {
        let writer = self.writer.as_mut()?;
        let work = || stacker::maybe_grow(LEAST_STACK, NEW_STACK, || work(writer));
        catch_unwind(AssertUnwindSafe(work)).ok()
    }

    /// Chores that are not overdue may be put off for so long.
    fn end(mut self, put_off: Duration) {
        let Some(mut writer) = self.writer.take() else {
            return;
        };
        let chores = writer.chores();
        let unwritten = writer.unwritten();
        let mut queue = self.inbox.lock();
        queue.writer = Some(writer);
        queue.overdue = chores == Some(Chores::Overdue);
        match chores {
            Some(Chores::Overdue) => queue.no_later_than(Instant::now()),
            Some(Chores::Due) => queue.no_later_than(Instant::now() + put_off),
            None => {}
        }
        if unwritten {
            queue.no_later_than(Instant::now() + LINGER);
        }
        self.inbox.rouse(queue);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            drop(writer);
            self.inbox.lock().close();
            self.inbox.due.notify_all();
            self.inbox.room.notify_all();
        }
    }
}
