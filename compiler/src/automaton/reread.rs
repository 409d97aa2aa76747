//! Operators of which rows cannot be kept in the space of the events: a variable that two operators inside
//! share, a `since` whose left side looks back, what the leaf around binds.
//!
//! Kept is what happened: the stamp of every event, and of those that a matcher names what it says. A
//! decision, which knows what the request asks, goes through them: the formula is evaluated from the inside
//! out, for each subformula and the values of its variables as the set of all positions at which it holds
//! (`ask`). What a variable can be is what some event says, so the work has a bound: for each value (each
//! pair of values, where two variables stand between the same operators) the events that have it.

mod ask;
mod candidates;
mod events;
mod indexes;
#[cfg(test)]
mod naive;
mod plan;
mod reached;
mod somewhere;
mod spans;
mod terms;
#[cfg(test)]
mod tests;

pub(crate) use ask::{Known, Seen};
pub(super) use plan::plan;
pub(crate) use plan::{Form, Plan};

use super::formula::{Matcher, Node, Pattern};
use super::solve::Moment;
use super::value::Val;
use indexes::Indexes;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::mem::size_of;

#[derive(Clone, Debug)]
pub(crate) struct Reread {
    /// The position of the first stamp. There is one for each event.
    first: i64,
    stamps: VecDeque<i64>,
    /// How many of them are earlier than the one before.
    back: usize,
    /// How far stamps may step back.
    lateness: i64,
    logs: Vec<Happened>,
    indexes: Indexes,
}

/// The events that a matcher names.
#[derive(Clone, Debug, Default)]
struct Happened {
    /// How many have been dropped.
    gone: u64,
    /// How many values are kept of each.
    width: usize,
    at: VecDeque<i64>,
    /// What each of them says, one behind the other.
    vals: VecDeque<Val>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct SavedReread {
    first: i64,
    lateness: i64,
    stamps: Vec<i64>,
    logs: Vec<(Vec<i64>, Vec<Val>)>,
}

impl Reread {
    pub fn new(plan: &Plan) -> Reread {
        Reread {
            first: 0,
            stamps: VecDeque::new(),
            back: 0,
            lateness: 0,
            logs: plan.logs.iter().map(Happened::new).collect(),
            indexes: Indexes::default(),
        }
    }

    pub fn update(&mut self, plan: &Plan, moment: &Moment<'_>, floor: i64, clock: i64) {
        let pos = moment.at.pos;
        if self.stamps.is_empty() {
            self.first = pos;
        }
        self.stamp(moment.at.time);
        self.lateness = self.lateness.max(clock.saturating_sub(floor));
        for (number, (happened, log)) in self.logs.iter_mut().zip(&plan.logs).enumerate() {
            if let Node::Match(matcher) = log
                && let Some(vals) = taken(matcher, moment)
            {
                happened.at.push_back(pos);
                happened.vals.extend(vals);
                self.indexes.added(number, happened);
            }
        }
    }

    fn stamp(&mut self, stamp: i64) {
        let back = self.stamps.back().is_some_and(|last| stamp < *last);
        self.back += usize::from(back);
        self.stamps.push_back(stamp);
    }

    /// Drops what no decision to come can reach.
    pub fn expire(&mut self, plan: &Plan, floor: i64) {
        let limit = floor.saturating_sub(self.reach(plan));
        // Behind the first that is young enough all are kept: what came late as well.
        while let Some(first) = self.stamps.front()
            && *first < limit
        {
            let back = self.stamps.get(1).is_some_and(|second| second < first);
            self.back = self.back.saturating_sub(usize::from(back));
            self.stamps.pop_front();
            self.first = self.first.saturating_add(1);
        }
        give_back(&mut self.stamps);
        let first = self.first;
        for (number, happened) in self.logs.iter_mut().enumerate() {
            let gone = happened.at.partition_point(|pos| *pos < first);
            self.indexes.dropped(number, happened, gone);
            happened.gone = happened.gone.saturating_add(gone as u64);
            happened.at.drain(..gone);
            happened.vals.drain(..gone * happened.width);
            give_back(&mut happened.at);
            give_back(&mut happened.vals);
        }
    }

    /// An operator inside can be asked at an event that came late itself.
    fn reach(&self, plan: &Plan) -> i64 {
        let late = self.lateness.saturating_mul(plan.depth);
        plan.reach.saturating_add(late)
    }

    /// The clock after which something may be dropped.
    pub fn deadline(&self, plan: &Plan) -> Option<i64> {
        let first = self.stamps.front()?;
        Some(first.saturating_add(self.reach(plan)))
    }

    pub fn len(&self) -> usize {
        let logs = self.logs.iter().map(|happened| happened.at.len());
        self.stamps.len() + logs.sum::<usize>()
    }

    pub fn bytes(&self) -> usize {
        let logs = self.logs.iter().map(|happened| {
            happened.at.capacity() * size_of::<i64>() + happened.vals.capacity() * size_of::<Val>()
        });
        self.stamps.capacity() * size_of::<i64>() + logs.sum::<usize>() + self.indexes.bytes()
    }

    pub fn each_val(&self, seen: &mut dyn FnMut(Val)) {
        let vals = self.logs.iter().flat_map(|happened| &happened.vals);
        vals.for_each(|val| seen(*val));
    }

    pub fn saved(&self) -> SavedReread {
        let logs = self.logs.iter().map(|happened| {
            let vals = happened.vals.iter().copied().collect();
            (happened.at.iter().copied().collect(), vals)
        });
        SavedReread {
            first: self.first,
            lateness: self.lateness,
            stamps: self.stamps.iter().copied().collect(),
            logs: logs.collect(),
        }
    }

    /// Takes over what was saved. Nothing, where it does not fit.
    pub fn restore(&mut self, saved: SavedReread) -> Option<()> {
        if saved.logs.len() != self.logs.len() {
            return None;
        }
        self.first = saved.first;
        self.lateness = saved.lateness;
        saved.stamps.iter().for_each(|stamp| self.stamp(*stamp));
        let behind = self.behind();
        for (happened, (at, vals)) in self.logs.iter_mut().zip(saved.logs) {
            let inside = |pos: &i64| (saved.first..behind).contains(pos);
            let fits = vals.len() == at.len() * happened.width && at.iter().all(inside);
            if !fits || !at.is_sorted_by(|one, next| one < next) {
                return None;
            }
            happened.at = at.into();
            happened.vals = vals.into();
        }
        Some(())
    }

    /// The position behind the last.
    fn behind(&self) -> i64 {
        let events = i64::try_from(self.stamps.len()).unwrap_or(i64::MAX);
        self.first.saturating_add(events)
    }

    fn time(&self, pos: i64) -> Option<i64> {
        let at = usize::try_from(pos.checked_sub(self.first)?).ok()?;
        self.stamps.get(at).copied()
    }
}

/// What a matcher takes of the event at hand, if it is one of its.
fn taken(matcher: &Matcher, moment: &Moment<'_>) -> Option<SmallVec<[Val; 4]>> {
    if moment.event != Some(matcher.event) {
        return None;
    }
    let mut vals = SmallVec::new();
    for (place, pattern) in &matcher.patterns {
        let val = (*moment.fields.get(*place)?)?;
        match pattern {
            Pattern::Present => {}
            Pattern::Const(constant) if *constant == val => {}
            Pattern::Const(_) | Pattern::Never => return None,
            Pattern::Slot(_) => vals.push(val),
        }
    }
    Some(vals)
}

impl Happened {
    fn new(log: &Node) -> Happened {
        let slots = match log {
            Node::Match(matcher) => {
                let patterns = matcher.patterns.iter();
                let slots = patterns.filter(|(_, pattern)| matches!(pattern, Pattern::Slot(_)));
                slots.count()
            }
            _ => 0,
        };
        Happened {
            width: slots,
            ..Happened::default()
        }
    }
}

fn give_back<T>(items: &mut VecDeque<T>) {
    if items.capacity() > 64 && items.len() * 4 < items.capacity() {
        items.shrink_to(items.len() * 2);
    }
}
