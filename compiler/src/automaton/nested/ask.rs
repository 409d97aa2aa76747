//! Asking for what was so, by going through what happened with the values of one request.
//!
//! Each test answers with how far back its answer surely stays the same; those events need not be asked. What
//! is found on the way is remembered, and questions go back in time only: a decision passes over each
//! event of its keys once at most.

use super::super::formula::{Test, Then, When};
use super::super::row::Cmp;
use super::super::store::{At, in_window};
use super::super::value::Val;
use super::Late;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What happened with the values of one request.
pub(super) struct Asked<'n> {
    logs: SmallVec<[Option<&'n VecDeque<At>>; 4]>,
    late: &'n BTreeMap<i64, Late>,
    /// What was found last, by the number of what was looked for.
    found: SmallVec<[Option<Found>; 4]>,
}

#[derive(Clone, Copy)]
struct Found {
    /// Up to this position
    upto: i64,
    /// this is the last.
    at: Option<At>,
}

/// How far back an answer is the same: for events that are stamped later than `time` and came at `pos` or later.
#[derive(Clone, Copy)]
struct Same {
    pos: i64,
    time: i64,
}

impl Same {
    /// For all that came before.
    const ALWAYS: Same = Same {
        pos: i64::MIN,
        time: i64::MIN,
    };

    fn from(pos: i64) -> Same {
        Same {
            pos,
            ..Same::ALWAYS
        }
    }

    /// As long as the window of this one is over.
    fn after(last: At, window: i64) -> Same {
        Same {
            time: last.time.saturating_add(window),
            ..Same::ALWAYS
        }
    }

    fn and(self, other: Same) -> Same {
        Same {
            pos: self.pos.max(other.pos),
            time: self.time.max(other.time),
        }
    }

    fn covers(self, at: &At) -> bool {
        at.pos >= self.pos && at.time > self.time
    }
}

/// The answer, and how far back it is the same.
type Answer = (bool, Same);

impl<'n> Asked<'n> {
    pub fn new(
        logs: SmallVec<[Option<&'n VecDeque<At>>; 4]>,
        late: &'n BTreeMap<i64, Late>,
    ) -> Asked<'n> {
        Asked {
            logs,
            late,
            found: SmallVec::new(),
        }
    }

    fn log(&self, when: &When) -> Option<&'n VecDeque<At>> {
        self.logs.get(when.log).copied().flatten()
    }

    /// Whether it is so at the last event there is. Stamps are in order.
    pub fn holds(&mut self, test: &Test, now: At) -> bool {
        self.test(test, now).0
    }

    /// The last of these up to a position.
    fn last(&mut self, when: &When, upto: i64) -> Option<At> {
        if let Some(Some(found)) = self.found.get(when.number)
            && upto <= found.upto
            && found.at.is_none_or(|at| at.pos <= upto)
        {
            return found.at;
        }
        let at = self.search(when, upto);
        if self.found.len() <= when.number {
            self.found.resize(when.number + 1, None);
        }
        if let Some(found) = self.found.get_mut(when.number) {
            *found = Some(Found { upto, at });
        }
        at
    }

    fn search(&mut self, when: &When, upto: i64) -> Option<At> {
        let log = self.log(when)?;
        let mut left = log.partition_point(|at| at.pos <= upto);
        while let Some(before) = left.checked_sub(1)
            && let Some(at) = log.get(before)
        {
            let (holds, same) = self.all(&when.then, *at);
            if holds {
                return Some(*at);
            }
            left = log.partition_point(|at| !same.covers(at)).min(before);
        }
        None
    }

    /// The first of these behind a position, where it is known without asking.
    fn first(&self, when: &When, pos: i64) -> Option<i64> {
        if !when.then.is_empty() {
            return None;
        }
        let log = self.log(when)?;
        let behind = log.partition_point(|at| at.pos <= pos);
        Some(log.get(behind)?.pos)
    }

    fn all(&mut self, parts: &[Then], at: At) -> Answer {
        let mut all = Same::ALWAYS;
        for part in parts {
            let (truth, same) = self.test(&part.test, at);
            if truth == part.negated {
                return (false, same);
            }
            all = all.and(same);
        }
        (true, all)
    }

    fn test(&mut self, test: &Test, at: At) -> Answer {
        match test {
            Test::Now(when) => match self.last(when, at.pos) {
                None => (false, Same::ALWAYS),
                Some(last) if last.pos == at.pos => (true, Same::from(at.pos)),
                Some(last) => (false, Same::from(last.pos.saturating_add(1))),
            },
            Test::Formerly(when, window) => match self.last(when, at.pos) {
                None => (false, Same::ALWAYS),
                Some(last) if in_window(last.time, at.time, *window) => {
                    (true, Same::from(last.pos))
                }
                Some(last) => (false, Same::after(last, *window)),
            },
            Test::Since(anchor, breaks, window) => {
                let Some(last) = self.last(anchor, at.pos) else {
                    return (false, Same::ALWAYS);
                };
                let ended = breaks.iter().filter_map(|when| self.last(when, at.pos));
                match ended.map(|at| at.pos).max() {
                    Some(ended) if ended > last.pos => {
                        let first = breaks.iter().filter_map(|when| self.first(when, last.pos));
                        (false, Same::from(first.min().unwrap_or(ended).min(ended)))
                    }
                    _ if in_window(last.time, at.time, *window) => (true, Same::from(last.pos)),
                    _ => (false, Same::after(last, *window)),
                }
            }
            Test::Previous(when, window) => {
                let before = at.pos.saturating_sub(1);
                match self.last(when, before) {
                    None => (false, Same::ALWAYS),
                    Some(last) if last.pos == before => {
                        let holds = in_window(last.time, at.time, *window);
                        (holds, Same::from(at.pos))
                    }
                    Some(last) => (false, Same::from(last.pos.saturating_add(2))),
                }
            }
            Test::Count(when, window, op, n) => self.count((when, *window), (*op, *n), at),
            Test::All(parts) => self.all(parts, at),
        }
    }

    fn count(&self, (when, window): (&When, i64), (op, n): (Cmp, i64), at: At) -> Answer {
        let none = VecDeque::new();
        let log = self.log(when).unwrap_or(&none);
        let end = log.partition_point(|other| other.pos <= at.pos);
        let start = at.time.saturating_sub(window);
        let start = log.partition_point(|other| other.time < start).min(end);
        let count = i64::try_from(end - start).unwrap_or(i64::MAX);
        // Until the last of these has not come yet, or one more is inside the window.
        let newest = end.checked_sub(1).and_then(|last| log.get(last));
        let older = start.checked_sub(1).and_then(|last| log.get(last));
        let came = newest.map_or(Same::ALWAYS, |newest| Same::from(newest.pos));
        let left = older.map_or(Same::ALWAYS, |older| Same::after(*older, window));
        (op.holds(Val::Int(count), Val::Int(n)), came.and(left))
    }

    /// The same in whatever order stamps are: each list of events is made whole.
    pub fn holds_slowly(&self, test: &Test, now: At) -> bool {
        let mut events = vec![now];
        self.retain(test, false, &mut events);
        !events.is_empty()
    }

    /// Those of a list at which it is so, or is not.
    fn retain(&self, test: &Test, negated: bool, events: &mut Vec<At>) {
        match test {
            Test::Now(when) => {
                let these = self.positions(when);
                events.retain(|at| these.contains(&at.pos) != negated);
            }
            Test::Formerly(when, window) => {
                let these = self.list(when);
                let inside = |at: &At| {
                    let mut before = these.iter().take_while(|other| other.pos <= at.pos);
                    before.any(|other| in_window(other.time, at.time, *window))
                };
                events.retain(|at| inside(at) != negated);
            }
            Test::Since(anchor, breaks, window) => {
                let anchors = self.list(anchor);
                let ended: BTreeSet<i64> = breaks
                    .iter()
                    .flat_map(|when| self.positions(when))
                    .collect();
                let holds = |at: &At| {
                    let ended = ended.range(..=at.pos).next_back();
                    let ended = ended.copied().unwrap_or(i64::MIN);
                    let mut before = anchors.iter().take_while(|other| other.pos <= at.pos);
                    before
                        .any(|other| other.pos >= ended && in_window(other.time, at.time, *window))
                };
                events.retain(|at| holds(at) != negated);
            }
            Test::Previous(when, window) => {
                let these = self.list(when);
                let times: BTreeMap<i64, i64> = these.iter().map(|at| (at.pos, at.time)).collect();
                let holds = |at: &At| {
                    let before = times.get(&at.pos.saturating_sub(1));
                    before.is_some_and(|time| in_window(*time, at.time, *window))
                };
                events.retain(|at| holds(at) != negated);
            }
            Test::Count(when, window, op, n) => {
                let these = self.list(when);
                let holds = |at: &At| {
                    let before = these.iter().take_while(|other| other.pos <= at.pos);
                    let inside = before.filter(|other| in_window(other.time, at.time, *window));
                    let count = i64::try_from(inside.count()).unwrap_or(i64::MAX);
                    op.holds(Val::Int(count), Val::Int(*n))
                };
                events.retain(|at| holds(at) != negated);
            }
            Test::All(parts) => {
                let mut these = events.clone();
                for part in parts {
                    self.retain(&part.test, part.negated, &mut these);
                }
                let these: BTreeSet<i64> = these.iter().map(|at| at.pos).collect();
                events.retain(|at| these.contains(&at.pos) != negated);
            }
        }
    }

    /// All of these, with their own stamps.
    fn list(&self, when: &When) -> Vec<At> {
        let stamped = |at: &At| At {
            time: self.late.get(&at.pos).map_or(at.time, |late| late.stamp),
            ..*at
        };
        let log = self.log(when).into_iter().flatten();
        let mut events: Vec<At> = log.map(stamped).collect();
        for part in &when.then {
            self.retain(&part.test, part.negated, &mut events);
        }
        events
    }

    fn positions(&self, when: &When) -> BTreeSet<i64> {
        self.list(when).iter().map(|at| at.pos).collect()
    }

    /// The stamps of the events that make it so, newest first.
    pub fn witnesses(&self, test: &Test, now: At) -> Vec<i64> {
        let mut ended = i64::MIN;
        let (when, window) = match test {
            Test::Formerly(when, window) => (when, *window),
            Test::Since(anchor, breaks, window) => {
                let breaks = breaks.iter().flat_map(|when| self.positions(when));
                ended = breaks.max().unwrap_or(ended);
                (anchor, *window)
            }
            Test::Now(_) | Test::Previous(..) | Test::Count(..) | Test::All(_) => {
                return Vec::new();
            }
        };
        let list = self.list(when);
        let live = |at: &&At| at.pos >= ended && in_window(at.time, now.time, window);
        list.iter().rev().filter(live).map(|at| at.time).collect()
    }
}
