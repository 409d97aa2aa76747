//! Operators whose parts are told apart by different values of the request, as
//! `formerly (A{x: context.a} && formerly B{y: context.b})`.
//!
//! No row can be made of the two before the request is known but each pair of values, and of three each triple.
//! So what is kept is when each of them happened, by its own key, which is linear in the events of the windows;
//! the decision goes through the events of its own keys, newest first, and skips those at which the answer cannot
//! differ (see `ask`).
//!
//! Both at once, few rows and one lookup, is not to be had: whether some event of one key lies in the windows
//! of another key's is set intersection, for which no structure of linear size is known that answers without going
//! through one of the sets, and none is believed to exist (Goldstein, Kopelowitz, Lewenstein and Porat, "Conditional
//! lower bounds for space/time tradeoffs", 2017).

mod ask;
mod plan;
#[cfg(test)]
mod tests;

pub(super) use plan::nested;

use super::formula::{Log, Test};
use super::index::Key;
use super::keyed::{Flat, Keyed};
use super::row::Slot;
use super::solve::Moment;
use super::store::At;
use super::value::Val;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::mem::size_of;

#[derive(Clone, Debug)]
pub(crate) struct Nested {
    logs: Vec<Happened>,
    /// Of the events that came late, by position. All times in the logs are the clock's, so that what has ended
    /// something outlives all that it can have ended.
    late: BTreeMap<i64, Late>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Late {
    stamp: i64,
    clock: i64,
}

/// When something happened, for each key in order of arrival.
#[derive(Clone, Debug)]
struct Happened {
    keys: Keyed<Flat, Events>,
    held: usize,
    /// When each key has something to drop: one entry a key.
    deadlines: BinaryHeap<Reverse<(i64, u32)>>,
}

/// The events of one key.
#[derive(Clone, Debug, Default)]
struct Events {
    at: VecDeque<At>,
    /// What is kept of each, one behind the other. Few logs keep anything.
    vals: Option<Box<Kept>>,
}

#[derive(Clone, Debug, Default)]
struct Kept(VecDeque<Val>);

#[derive(Serialize, Deserialize)]
pub(crate) struct SavedNested {
    late: BTreeMap<i64, Late>,
    logs: Vec<SavedLog>,
}

/// By key the points, and what is kept of all.
type SavedLog = Vec<(Vec<Val>, Vec<At>, Vec<Val>)>;

impl Nested {
    pub fn new(logs: &[Log]) -> Nested {
        let logs = logs.iter();
        Nested {
            logs: logs.map(|log| Happened::new(log.keys.len())).collect(),
            late: BTreeMap::new(),
        }
    }

    pub fn update(&mut self, logs: &[Log], width: usize, moment: &Moment<'_>, clock: i64) {
        let at = At {
            time: clock,
            ..moment.at
        };
        let mut any = false;
        for (happened, log) in self.logs.iter_mut().zip(logs) {
            let columns: SmallVec<[Slot; 8]> = log.keys.iter().chain(&log.vals).copied().collect();
            moment.keys(&log.node, width, &columns, |found| {
                any = true;
                let (key, vals) = found.split_at_checked(log.keys.len()).unwrap_or_default();
                happened.insert(key, vals, at);
            });
        }
        if any && moment.late {
            let stamp = moment.at.time;
            self.late.insert(at.pos, Late { stamp, clock });
        }
    }

    /// Whether it is so at the moment.
    pub fn holds(
        &self,
        (logs, test): (&[Log], &Test),
        moment: &Moment<'_>,
        known: &dyn Fn(Slot) -> Option<Val>,
    ) -> bool {
        let mut asked = self.asked(logs, known);
        if moment.late || !self.late.is_empty() {
            return asked.holds_slowly(test, moment.at);
        }
        asked.holds(test, moment.at)
    }

    /// The stamps of the events that make it so, newest first.
    pub fn witnesses(
        &self,
        (logs, test): (&[Log], &Test),
        moment: &Moment<'_>,
        known: &dyn Fn(Slot) -> Option<Val>,
    ) -> Vec<i64> {
        self.asked(logs, known).witnesses(test, moment.at)
    }

    /// The stamps that its operators can look at, each with the seconds that one of them looks back.
    pub fn each_reached(
        &self,
        (logs, test): (&[Log], &Test),
        known: &dyn Fn(Slot) -> Option<Val>,
        visit: &mut dyn FnMut(i64, i64),
    ) {
        self.asked(logs, known).each_reached(test, visit);
    }

    fn asked<'n>(&'n self, logs: &[Log], known: &'n dyn Fn(Slot) -> Option<Val>) -> ask::Asked<'n> {
        let found = self.logs.iter().zip(logs).map(|(happened, log)| {
            // What the request does not have has never happened.
            let key: Option<Key> = log.keys.iter().map(|slot| known(*slot)).collect();
            happened.keys.get(happened.keys.find(&key?)?)
        });
        ask::Asked::new(found.collect(), &self.late, known)
    }

    pub fn expire(&mut self, floor: i64, logs: &[Log]) {
        let mut longest = 0;
        for (happened, log) in self.logs.iter_mut().zip(logs) {
            happened.expire(floor.saturating_sub(log.window));
            longest = longest.max(log.window);
        }
        let limit = floor.saturating_sub(longest);
        while let Some(first) = self.late.first_entry()
            && first.get().clock < limit
        {
            first.remove();
        }
    }

    /// The clock after which something may be dropped.
    pub fn deadline(&self, logs: &[Log]) -> Option<i64> {
        let logs = self.logs.iter().zip(logs);
        let deadlines = logs.filter_map(|(happened, log)| {
            let Reverse((time, _)) = happened.deadlines.peek()?;
            Some(time.saturating_add(log.window))
        });
        deadlines.min()
    }

    pub fn len(&self) -> usize {
        self.logs.iter().map(|happened| happened.held).sum()
    }

    pub fn bytes(&self) -> usize {
        let late = self.late.len() * size_of::<(i64, Late)>() * 3 / 2;
        let logs = self.logs.iter().map(Happened::bytes);
        logs.sum::<usize>() + late
    }

    pub fn each_val(&self, seen: &mut dyn FnMut(Val)) {
        for happened in &self.logs {
            let keys = &happened.keys;
            for (key, events) in keys
                .ids()
                .filter_map(|id| Some((keys.key(id)?, keys.get(id)?)))
            {
                let kept = events.vals.iter().flat_map(|vals| &vals.0);
                key.iter().chain(kept).for_each(|val| seen(*val));
            }
        }
    }

    pub fn saved(&self) -> SavedNested {
        let logs = self.logs.iter().map(|happened| {
            let ids = happened.keys.ids();
            let keys = ids.filter_map(|id| {
                let events = happened.keys.get(id)?;
                let times = events.at.iter().copied().collect();
                let vals = events.vals.iter().flat_map(|vals| vals.0.iter().copied());
                Some((happened.keys.key(id)?.to_vec(), times, vals.collect()))
            });
            keys.collect()
        });
        SavedNested {
            late: self.late.clone(),
            logs: logs.collect(),
        }
    }

    /// Takes over what was saved. Nothing, where it does not fit.
    pub fn restore(&mut self, saved: SavedNested, logs: &[Log]) -> Option<()> {
        if saved.logs.len() != self.logs.len() {
            return None;
        }
        self.late = saved.late;
        for ((happened, log), saved) in self.logs.iter_mut().zip(logs).zip(saved.logs) {
            let kept = log.vals.len();
            for (key, times, vals) in saved {
                if key.len() != log.keys.len() || vals.len() != times.len() * kept {
                    return None;
                }
                let mut vals = vals.chunks(kept.max(1));
                for at in times {
                    happened.insert(&key, vals.next().unwrap_or(&[]), at);
                }
            }
        }
        Some(())
    }
}

impl Happened {
    fn new(width: usize) -> Happened {
        Happened {
            keys: Keyed::new(Flat::new(width)),
            held: 0,
            deadlines: BinaryHeap::new(),
        }
    }

    fn insert(&mut self, key: &[Val], vals: &[Val], at: At) {
        let id = match self.keys.find(key) {
            Some(id) => id,
            None => {
                let id = self.keys.insert(key, Events::default());
                self.deadlines.push(Reverse((at.time, id)));
                id
            }
        };
        if let Some(events) = self.keys.get_mut(id) {
            grow(&mut events.at, 1);
            events.at.push_back(at);
            if !vals.is_empty() {
                let Kept(kept) = &mut **events.vals.get_or_insert_default();
                grow(kept, vals.len());
                kept.extend(vals);
            }
            self.held += 1;
        }
    }

    fn expire(&mut self, limit: i64) {
        while let Some(&Reverse((time, id))) = self.deadlines.peek()
            && time < limit
        {
            self.deadlines.pop();
            let Some(events) = self.keys.get_mut(id) else {
                continue;
            };
            self.held = self.held.saturating_sub(events.expire(limit));
            match events.at.front() {
                Some(next) => self.deadlines.push(Reverse((next.time, id))),
                None => {
                    self.keys.remove(id);
                }
            }
        }
        if self.keys.is_sparse() {
            let first = |events: &Events| events.at.front().map(|at| at.time);
            self.deadlines = self.keys.rebuilt(first);
        }
    }

    fn bytes(&self) -> usize {
        let events = self.keys.ids().filter_map(|id| self.keys.get(id));
        events.map(Events::bytes).sum::<usize>()
            + self.keys.bytes()
            + self.deadlines.capacity() * size_of::<Reverse<(i64, u32)>>()
    }
}

impl Events {
    /// How many values are kept of each event.
    fn kept(&self) -> usize {
        let vals = self.vals.as_ref().map_or(0, |vals| vals.0.len());
        vals.checked_div(self.at.len()).unwrap_or(0)
    }

    fn val(&self, event: usize, column: usize) -> Option<Val> {
        let kept = self.kept();
        let vals = self.vals.as_ref().filter(|_| column < kept)?;
        vals.0.get(event * kept + column).copied()
    }

    /// Drops what is stamped earlier; how many.
    fn expire(&mut self, limit: i64) -> usize {
        let kept = self.kept();
        let gone = self.at.iter().take_while(|at| at.time < limit).count();
        self.at.drain(..gone);
        give_back(&mut self.at);
        if let Some(vals) = &mut self.vals {
            vals.0.drain(..gone * kept);
            give_back(&mut vals.0);
        }
        gone
    }

    fn bytes(&self) -> usize {
        let vals = self.vals.iter();
        let vals = vals.map(|vals| size_of::<Kept>() + vals.0.capacity() * size_of::<Val>());
        self.at.capacity() * size_of::<At>() + vals.sum::<usize>()
    }
}

/// Makes room by a quarter at a time.
fn grow<T>(items: &mut VecDeque<T>, by: usize) {
    if items.len() + by > items.capacity() {
        items.reserve_exact((items.len() / 4).max(2 * by));
    }
}

fn give_back<T>(items: &mut VecDeque<T>) {
    if items.capacity() > 64 && items.len() * 4 < items.capacity() {
        items.shrink_to(items.len() * 2);
    }
}
