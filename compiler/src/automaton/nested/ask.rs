//! Asking for what was so, by going through what happened with the values of one request.
//!
//! Each test answers with how far back its answer surely stays the same; those events need not be asked. What
//! is found on the way is remembered, and questions go back in time only: a decision passes over each
//! event of its keys once at most, where nothing is counted.

use super::super::formula::{Number, Side, Test, Then, When};
use super::super::row::{Slot, clamp};
use super::super::store::{At, in_window};
use super::super::value::Val;
use super::{Events, Late};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};

/// What happened with the values of one request.
pub(super) struct Asked<'n> {
    logs: SmallVec<[Option<&'n Events>; 4]>,
    late: &'n BTreeMap<i64, Late>,
    known: &'n dyn Fn(Slot) -> Option<Val>,
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

/// An event, and where it lies in a log.
#[derive(Clone, Copy)]
struct Here<'n> {
    at: At,
    own: Option<(&'n Events, usize)>,
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
        logs: SmallVec<[Option<&'n Events>; 4]>,
        late: &'n BTreeMap<i64, Late>,
        known: &'n dyn Fn(Slot) -> Option<Val>,
    ) -> Asked<'n> {
        Asked {
            logs,
            late,
            known,
            found: SmallVec::new(),
        }
    }

    fn log(&self, when: &When) -> Option<&'n Events> {
        self.logs.get(when.log).copied().flatten()
    }

    fn val(&self, side: &Side, here: Here<'n>) -> Option<Val> {
        match side {
            Side::Val(val) => Some(*val),
            Side::Asked(slot) => (self.known)(*slot),
            Side::Own(column) => {
                let (events, at) = here.own?;
                events.val(at, *column)
            }
        }
    }

    /// The count or sum over events.
    fn total(&self, number: &Number, events: impl Iterator<Item = Here<'n>>) -> Val {
        let val = |here: Here<'n>, column: usize| here.own.and_then(|(of, at)| of.val(at, column));
        let summand = |here| match number.sum.map(|column| val(here, column)) {
            None => 1,
            Some(Some(Val::Int(n))) => i128::from(n),
            Some(_) => 0,
        };
        let total = match &number.distinct {
            None => events.map(summand).sum(),
            Some(columns) => {
                let mut seen: BTreeSet<SmallVec<[Option<Val>; 2]>> = BTreeSet::new();
                let mut fresh =
                    |here| seen.insert(columns.iter().map(|at| val(here, *at)).collect());
                events.filter(|here| fresh(*here)).map(summand).sum()
            }
        };
        Val::Int(clamp(total))
    }

    /// Whether it is so at the last event there is. Stamps are in order.
    pub fn holds(&mut self, test: &Test, at: At) -> bool {
        self.test(test, Here { at, own: None }).0
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
        let events = self.log(when)?;
        let mut left = events.at.partition_point(|at| at.pos <= upto);
        while let Some(before) = left.checked_sub(1)
            && let Some(at) = events.at.get(before)
        {
            let own = Some((events, before));
            let (holds, same) = self.all(&when.then, Here { at: *at, own });
            if holds {
                return Some(*at);
            }
            left = events.at.partition_point(|at| !same.covers(at)).min(before);
        }
        None
    }

    /// The first of these behind a position, where it is known without asking.
    fn first(&self, when: &When, pos: i64) -> Option<i64> {
        if !when.then.is_empty() {
            return None;
        }
        let at = &self.log(when)?.at;
        let behind = at.partition_point(|at| at.pos <= pos);
        Some(at.get(behind)?.pos)
    }

    fn all(&mut self, parts: &[Then], here: Here<'n>) -> Answer {
        let mut all = Same::ALWAYS;
        for part in parts {
            let (truth, same) = self.test(&part.test, here);
            if truth == part.negated {
                return (false, same);
            }
            all = all.and(same);
        }
        (true, all)
    }

    fn test(&mut self, test: &Test, here: Here<'n>) -> Answer {
        let at = here.at;
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
            Test::Number(number) => self.number(number, here),
            Test::Compare(op, left, right) => {
                let sides = self.val(left, here).zip(self.val(right, here));
                let own = [left, right]
                    .iter()
                    .any(|side| matches!(side, Side::Own(_)));
                let same = if own {
                    Same::from(at.pos)
                } else {
                    Same::ALWAYS
                };
                (
                    sides.is_some_and(|(left, right)| op.holds(left, right)),
                    same,
                )
            }
            Test::All(parts) => self.all(parts, here),
        }
    }

    fn number(&mut self, number: &Number, here: Here<'n>) -> Answer {
        let (at, when) = (here.at, &number.when);
        let none = Events::default();
        let log = self.log(when);
        let times = &log.unwrap_or(&none).at;
        let end = times.partition_point(|other| other.pos <= at.pos);
        let start = at.time.saturating_sub(number.window);
        let start = times.partition_point(|other| other.time < start).min(end);
        // Until the last of these has not come yet, or one more is inside the window.
        let newest = end.checked_sub(1).and_then(|last| times.get(last));
        let older = start.checked_sub(1).and_then(|last| times.get(last));
        let came = newest.map_or(Same::ALWAYS, |newest| Same::from(newest.pos));
        let left = older.map_or(Same::ALWAYS, |older| Same::after(*older, number.window));
        let plain = when.then.is_empty() && number.sum.is_none() && number.distinct.is_none();
        let total = if plain {
            Val::Int(i64::try_from(end - start).unwrap_or(i64::MAX))
        } else {
            let mut inside: Vec<Here<'n>> = Vec::with_capacity(end - start);
            // Newest first, as everything is asked.
            for event in (start..end).rev() {
                if let Some(events) = log
                    && let Some(at) = events.at.get(event)
                {
                    let own = Some((events, event));
                    inside.push(Here { at: *at, own });
                }
            }
            inside.retain(|event| self.all(&when.then, *event).0);
            self.total(number, inside.into_iter())
        };
        let than = self.val(&number.than, here);
        let holds = than.is_some_and(|than| number.op.holds(total, than));
        (holds, came.and(left))
    }

    /// The same in whatever order stamps are: each list of events is made whole.
    pub fn holds_slowly(&self, test: &Test, at: At) -> bool {
        let mut events = vec![Here { at, own: None }];
        self.retain(test, false, &mut events);
        !events.is_empty()
    }

    /// Those of a list at which it is so, or is not.
    fn retain(&self, test: &Test, negated: bool, events: &mut Vec<Here<'n>>) {
        let before = |these: &[Here<'n>], at: At, window: i64| -> Vec<Here<'n>> {
            let before = these.iter().take_while(|other| other.at.pos <= at.pos);
            let inside = before.filter(|other| in_window(other.at.time, at.time, window));
            inside.copied().collect()
        };
        match test {
            Test::Now(when) => {
                let these = self.positions(when);
                events.retain(|here| these.contains(&here.at.pos) != negated);
            }
            Test::Formerly(when, window) => {
                let these = self.list(when);
                events.retain(|here| before(&these, here.at, *window).is_empty() == negated);
            }
            Test::Since(anchor, breaks, window) => {
                let anchors = self.list(anchor);
                let ended = breaks.iter().flat_map(|when| self.positions(when));
                let ended: BTreeSet<i64> = ended.collect();
                let holds = |at: At| {
                    let ended = ended.range(..=at.pos).next_back();
                    let ended = ended.copied().unwrap_or(i64::MIN);
                    let anchors = before(&anchors, at, *window);
                    anchors.iter().any(|other| other.at.pos >= ended)
                };
                events.retain(|here| holds(here.at) != negated);
            }
            Test::Previous(when, window) => {
                let these = self.list(when);
                let times = these.iter().map(|here| (here.at.pos, here.at.time));
                let times: BTreeMap<i64, i64> = times.collect();
                let holds = |at: At| {
                    let before = times.get(&at.pos.saturating_sub(1));
                    before.is_some_and(|time| in_window(*time, at.time, *window))
                };
                events.retain(|here| holds(here.at) != negated);
            }
            Test::Number(number) => {
                let these = self.list(&number.when);
                let holds = |here: Here<'n>| {
                    let inside = before(&these, here.at, number.window);
                    let total = self.total(number, inside.into_iter());
                    let than = self.val(&number.than, here);
                    than.is_some_and(|than| number.op.holds(total, than))
                };
                events.retain(|here| holds(*here) != negated);
            }
            Test::Compare(op, left, right) => {
                let holds = |here: Here<'n>| {
                    let sides = self.val(left, here).zip(self.val(right, here));
                    sides.is_some_and(|(left, right)| op.holds(left, right))
                };
                events.retain(|here| holds(*here) != negated);
            }
            Test::All(parts) => {
                let mut these = events.clone();
                for part in parts {
                    self.retain(&part.test, part.negated, &mut these);
                }
                let these: BTreeSet<i64> = these.iter().map(|here| here.at.pos).collect();
                events.retain(|here| these.contains(&here.at.pos) != negated);
            }
        }
    }

    /// All of these, with their own stamps.
    fn list(&self, when: &When) -> Vec<Here<'n>> {
        let mut list = Vec::new();
        if let Some(events) = self.log(when) {
            for (event, at) in events.at.iter().enumerate() {
                let late = self.late.get(&at.pos);
                let at = At {
                    time: late.map_or(at.time, |late| late.stamp),
                    ..*at
                };
                let own = Some((events, event));
                list.push(Here { at, own });
            }
        }
        for part in &when.then {
            self.retain(&part.test, part.negated, &mut list);
        }
        list
    }

    fn positions(&self, when: &When) -> BTreeSet<i64> {
        self.list(when).iter().map(|here| here.at.pos).collect()
    }

    /// The stamps that a test can look at, each with how far it looks back.
    pub fn each_reached(&self, test: &Test, visit: &mut dyn FnMut(i64, i64)) {
        match test {
            Test::Now(when) => self.reached_in(when, None, visit),
            Test::Formerly(when, window) | Test::Previous(when, window) => {
                self.reached_in(when, Some(*window), visit);
            }
            Test::Since(anchor, breaks, window) => {
                self.reached_in(anchor, Some(*window), visit);
                for when in breaks {
                    self.reached_in(when, None, visit);
                }
            }
            Test::Number(number) => self.reached_in(&number.when, Some(number.window), visit),
            Test::Compare(..) => {}
            Test::All(parts) => {
                for part in parts {
                    self.each_reached(&part.test, visit);
                }
            }
        }
    }

    fn reached_in(&self, when: &When, window: Option<i64>, visit: &mut dyn FnMut(i64, i64)) {
        let events = self.log(when).into_iter().flat_map(|events| &events.at);
        for (at, window) in events.filter_map(|at| Some((at, window?))) {
            let late = self.late.get(&at.pos);
            visit(late.map_or(at.time, |late| late.stamp), window);
        }
        for then in &when.then {
            self.each_reached(&then.test, visit);
        }
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
            _ => return Vec::new(),
        };
        let list = self.list(when);
        let times = list.iter().rev().map(|here| here.at);
        let live = |at: &At| at.pos >= ended && in_window(at.time, now.time, window);
        times.filter(live).map(|at| at.time).collect()
    }
}
