//! The monitor: takes one event at a time and decides, without looking back at earlier ones.
//!
//! ```text
//! event ─ partition (universal pin) ─ history: fields ─ cells ─ rules of the action ─ Decision
//! ```
//!
//! A [`Policy`] is compiled once and shared; a [`Monitor`] is its state over one history. Memory follows
//! what the windows hold: rows, idle partitions and interned values go when no decision can reach them.

mod ask;
mod decide;
mod dispatch;
mod families;
mod history;
mod outline;
mod policy;
mod report;
mod retry;
mod size;
mod snapshot;
mod trigger;

pub use decide::{Decision, RuleError, Verdict};
pub use outline::{CellOutline, FieldTest, Key, LeafOutline, MatcherOutline, Operator, Outline};
pub use policy::{CellKind, CellSummary, Cost, Policy};
pub use report::{LeafReport, Recent, Witness};
pub use size::Size;
pub use snapshot::LoadError;

use crate::automaton::reread::Seen;
use crate::automaton::value::{Interner, Overlay, Val, Values};
use crate::eval::EvalError;
use crate::event::Event;
use crate::trace::Keep;
use crate::value::EntityUid;
use decide::Scratch;
use foldhash::fast::RandomState;
use history::History;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fmt;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// How many seconds the time stamp of an event may lie before the latest one so far.
    pub lateness: i64,
    /// Whether the last events are kept, for those who explain decisions afterwards.
    pub explained: bool,
}

/// Why an event was not taken in. The history is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepError {
    /// The event is stamped further back than the monitor remembers exactly.
    Late {
        time: i64,
        clock: i64,
        lateness: i64,
    },
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StepError::Late {
            time,
            clock,
            lateness,
        } = self;
        write!(
            f,
            "the event is stamped {time}, more than {lateness}s before the latest, {clock}"
        )
    }
}

impl std::error::Error for StepError {}

/// The state of a policy over one history.
#[derive(Clone, Debug)]
pub struct Monitor {
    policy: Arc<Policy>,
    lateness: i64,
    explained: bool,
    /// The latest stamp so far.
    clock: i64,
    values: Interner,
    /// By the pinned field under a universal pin, else one.
    partitions: HashMap<Option<Val>, History, RandomState>,
    /// When a partition may be dropped at the earliest.
    idle: BinaryHeap<Reverse<(i64, Option<Val>)>>,
    scratch: Scratch,
}

impl Monitor {
    pub fn new(policy: Arc<Policy>, config: Config) -> Monitor {
        let values = policy.network.values.clone();
        Monitor {
            policy,
            lateness: config.lateness.max(0),
            explained: config.explained,
            clock: i64::MIN,
            values,
            partitions: HashMap::default(),
            idle: BinaryHeap::new(),
            scratch: Scratch::default(),
        }
    }

    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// What it takes from the logged record of such an event.
    pub fn reads(&self, action: &EntityUid, kind: &str) -> Keep<'_> {
        // What an explanation will ask is not known.
        match self.explained {
            true => Keep::All,
            false => self.policy.reads(action, kind),
        }
    }

    /// Appends an event to the history, and decides if it is of a decision kind.
    pub fn step(&mut self, event: &Event) -> Result<Option<Decision>, StepError> {
        if let Some(late) = self.late(event) {
            return Err(late);
        }
        self.clock = self.clock.max(event.time);
        let floor = self.clock.saturating_sub(self.lateness);
        self.drop_idle(floor);
        if self.values.sweep_due() {
            self.sweep();
        }
        let policy: &Policy = &self.policy;
        let key = partition(policy, &mut self.values, event);
        let idle = &mut self.idle;
        let until = self.clock.saturating_add(policy.longest_window);
        let history = self.partitions.entry(key).or_insert_with(|| {
            // Without a pin there is one partition, and it remembers what people ask about afterwards.
            if policy.service.events.universal_pin.is_some() {
                idle.push(Reverse((until, key)));
            }
            History::new(policy)
        });
        let action = policy.action(&event.action);
        history.append(policy, action, &mut self.values, event, floor, self.clock);
        if self.explained {
            history.remember(event);
        }
        if !policy.decides(&event.kind) {
            return Ok(None);
        }
        let (values, scratch) = (&mut self.values, &mut self.scratch);
        let seen = Seen::default();
        let moment = history.moment(policy).seeing(&seen);
        let decision = decide::decide(policy, action, &moment, values, scratch, event);
        Ok(Some(decision))
    }

    /// What the decision would be, recording nothing. A late event is denied.
    pub fn decide_only(&self, event: &Event) -> Decision {
        if let Some(StepError::Late { time, clock, .. }) = self.late(event) {
            return Decision::refused(EvalError::Late { time, clock });
        }
        let policy: &Policy = &self.policy;
        let mut values = Overlay::new(&self.values);
        let key = partition(policy, &mut values, event);
        let empty;
        let history = match self.partitions.get(&key) {
            Some(history) => history,
            None => {
                empty = History::new(policy);
                &empty
            }
        };
        let clock = self.clock.max(event.time);
        let floor = clock.saturating_sub(self.lateness);
        let action = policy.action(&event.action);
        let trial = history.trial(policy, action, &mut values, event, floor, clock);
        let mut scratch = Scratch::default();
        let seen = Seen::default();
        let moment = trial.moment(policy).seeing(&seen);
        decide::decide(policy, action, &moment, &mut values, &mut scratch, event)
    }

    fn late(&self, event: &Event) -> Option<StepError> {
        let (clock, lateness) = (self.clock, self.lateness);
        (event.time < clock.saturating_sub(lateness)).then_some(StepError::Late {
            time: event.time,
            clock,
            lateness,
        })
    }

    /// The history this event belongs to, and the values to look into it with.
    fn history_of(&self, event: &Event) -> Option<(&History, Overlay<'_>)> {
        let mut values = Overlay::new(&self.values);
        let key = partition(&self.policy, &mut values, event);
        Some((self.partitions.get(&key)?, values))
    }

    fn drop_idle(&mut self, floor: i64) {
        while let Some(&Reverse((until, key))) = self.idle.peek()
            && until < floor
        {
            self.idle.pop();
            let Some(history) = self.partitions.get(&key) else {
                continue;
            };
            let until = history.clock.saturating_add(self.policy.longest_window);
            if until < floor {
                self.partitions.remove(&key);
            } else {
                self.idle.push(Reverse((until, key)));
            }
        }
    }

    fn sweep(&mut self) {
        let mut live: Vec<Val> = self.partitions.keys().flatten().copied().collect();
        for history in self.partitions.values() {
            history.each_val(&mut |val| live.push(val));
        }
        self.values.sweep(live);
    }
}

/// The key of the event's partition.
fn partition(policy: &Policy, values: &mut impl Values, event: &Event) -> Option<Val> {
    let pin = policy.service.events.universal_pin.as_ref()?;
    at(&event.logged, &pin.field).map(|value| values.value(value))
}

/// The value at a path of the logged record.
fn at<'v>(
    record: &'v crate::value::Record,
    path: &[smol_str::SmolStr],
) -> Option<&'v crate::value::Value> {
    let (first, rest) = path.split_first()?;
    record.get(first)?.at(rest)
}

/// Runs a whole trace: for each decision its position in the trace, its time and what was decided.
pub fn replay(policy: Arc<Policy>, events: &[Event]) -> Vec<(usize, i64, Decision)> {
    let mut monitor = Monitor::new(
        policy,
        Config {
            lateness: lateness(events),
            explained: false,
        },
    );
    let mut decisions = Vec::new();
    for (position, event) in events.iter().enumerate() {
        // Never late: the lateness is that of this very trace.
        if let Ok(Some(decision)) = monitor.step(event) {
            decisions.push((position, event.time, decision));
        }
    }
    decisions
}

/// How far back in time the stamps of a trace step at most.
pub fn lateness(events: &[Event]) -> i64 {
    let mut clock = i64::MIN;
    let mut lateness = 0;
    for event in events {
        clock = clock.max(event.time);
        lateness = lateness.max(clock.saturating_sub(event.time));
    }
    lateness
}
