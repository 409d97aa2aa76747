//! Asking what happened: for each subformula, with values for its variables, all positions at which it holds.

use super::Reread;
use super::plan::{Form, Memo, Plan};
use super::spans::Spans;
use crate::automaton::formula::CellId;
use crate::automaton::row::Slot;
use crate::automaton::store::in_window;
use crate::automaton::value::Val;
use foldhash::fast::RandomState;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// What is known of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Known {
    Not,
    /// The request does not have it: it is equal to nothing.
    Missing,
    Val(Val),
    /// It is being looked for.
    Sought,
}

/// What was found out while one event is decided.
#[derive(Debug, Default)]
pub(crate) struct Seen(RefCell<BTreeMap<CellId, Found>>);

/// As many ranges are not worth putting together.
pub(super) const FEW: usize = 4;

/// A subformula by its number, and what is known of its variables.
pub(super) type Asking = (usize, Vec<Known>);

pub(super) type Map<K, V> = HashMap<K, V, RandomState>;

/// A value at each position: from which position on which value, nothing for what is equal to nothing.
pub(super) type Steps = Rc<Vec<(i64, Option<Val>)>>;

/// What was found out about one cell.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) spans: Map<Asking, Rc<Spans>>,
    pub(super) steps: Map<Asking, Steps>,
    /// Where a number that changes has each of its values.
    pub(super) places: Map<Asking, Rc<Map<Val, Spans>>>,
    /// For each window, the positions that are not so close to the one before.
    pub(super) gaps: Map<i64, Rc<Spans>>,
    /// How many values and ranges were looked at.
    pub(super) work: usize,
}

impl Seen {
    /// The rows that the operator has at a position: the values of the slots that it gives, where those are not
    /// known yet. What it holds by is all known.
    pub fn rows(
        &self,
        cell: CellId,
        (plan, state): (&Plan, &Reread),
        known: &[Known],
        now: i64,
    ) -> Vec<Vec<Known>> {
        let mut env = known.to_vec();
        env.resize(plan.width, Known::Not);
        let gives = plan.gives.iter().copied();
        let wanted: Vec<Slot> = gives.filter(|slot| of(&env, *slot) == Known::Not).collect();
        let mut seen = self.0.borrow_mut();
        let mut asked = Asked {
            state,
            found: seen.entry(cell).or_default(),
        };
        let domain = Spans::of(now, now);
        let mut rows = Vec::new();
        let form = &plan.form;
        asked.each(&wanted, form, &mut env, &domain, &mut |asked, env| {
            if asked.somewhere(form, env, &domain) {
                rows.push(env.iter().take(known.len()).copied().collect());
            }
            false
        });
        rows
    }

    /// The stamps of the events that make it so, all that it asks being known.
    pub fn witnesses(
        &self,
        cell: CellId,
        (plan, state): (&Plan, &Reread),
        known: &[Known],
        now: i64,
    ) -> Vec<i64> {
        let mut env = known.to_vec();
        env.resize(plan.width, Known::Not);
        let mut seen = self.0.borrow_mut();
        let mut asked = Asked {
            state,
            found: seen.entry(cell).or_default(),
        };
        let before = &Spans::of(state.first, now);
        let (spans, window) = match &plan.form {
            Form::Formerly(body, window, _) => (asked.spans(body, &mut env, before), *window),
            Form::Since(sides, window, _) => {
                let (left, right) = &**sides;
                let broken = before.minus(&asked.spans(left, &mut env, before));
                let from = broken.last().unwrap_or(state.first);
                let alive = &Spans::of(from, now);
                (asked.spans(right, &mut env, alive), *window)
            }
            _ => return Vec::new(),
        };
        let times = spans.iter().flat_map(|(from, to)| from..=to);
        let times = times.filter_map(|pos| state.time(pos));
        let now = state.time(now).unwrap_or(i64::MIN);
        times.filter(|time| in_window(*time, now, window)).collect()
    }
}

#[cfg(test)]
thread_local! {
    /// How many values and ranges were looked at in all decisions.
    pub(super) static WORK: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
impl Drop for Seen {
    fn drop(&mut self) {
        let found = self.0.get_mut().values();
        let work: usize = found.map(|found| found.work).sum();
        WORK.set(WORK.get() + work);
    }
}

pub(super) fn of(env: &[Known], slot: Slot) -> Known {
    env.get(slot as usize).copied().unwrap_or(Known::Missing)
}

pub(super) fn set(env: &mut [Known], slot: Slot, known: Known) {
    if let Some(place) = env.get_mut(slot as usize) {
        *place = known;
    }
}

pub(super) struct Asked<'n> {
    pub(super) state: &'n Reread,
    pub(super) found: &'n mut Found,
}

/// True to stop.
pub(super) type Visit<'v, 'n> = dyn FnMut(&mut Asked<'n>, &mut Vec<Known>) -> bool + 'v;

impl<'n> Asked<'n> {
    /// All positions there are up to one.
    pub(super) fn all(&self, upto: i64) -> Spans {
        Spans::of(self.state.first, upto)
    }

    pub(super) fn last(&self) -> i64 {
        self.state.behind().saturating_sub(1)
    }

    pub(super) fn ordered(&self) -> bool {
        self.state.back == 0
    }

    /// Those positions of the domain at which it holds. All that it asks is known.
    pub(super) fn spans(&mut self, form: &Form, env: &mut Vec<Known>, domain: &Spans) -> Spans {
        if domain.is_empty() {
            return Spans::default();
        }
        self.found.work += 1;
        match form {
            Form::All(parts) => {
                let mut left = domain.clone();
                for part in parts {
                    left = self.spans(part, env, &left);
                    if left.is_empty() {
                        break;
                    }
                }
                left
            }
            Form::Not(body) => domain.minus(&self.spans(body, env, domain)),
            Form::Event(log, slots) => {
                let says = Self::says_all(*log, slots, env);
                says.map_or_else(Spans::default, |says| self.positions(&says, domain))
            }
            Form::Now(slot) => match of(env, *slot) {
                Known::Val(Val::Int(pos)) => domain.and(&Spans::of(pos, pos)),
                _ => Spans::default(),
            },
            Form::Compare(op, left, right) => self.compare(*op, (left, right), env, domain),
            Form::Exists(_, _, memo)
            | Form::Formerly(_, _, memo)
            | Form::Previous(_, _, memo)
            | Form::Since(_, _, memo) => {
                let is_point = domain.first() == domain.last();
                if is_point && self.is_asked_anew(form, memo) {
                    return match self.meets(form, env, domain) {
                        true => domain.clone(),
                        false => Spans::default(),
                    };
                }
                if !memo.shared {
                    return self.operator(form, env, domain);
                }
                let key = remembered(memo, env);
                let known = self.found.spans.get(&key).cloned();
                let all = match known {
                    Some(all) => all,
                    None => {
                        let all = self.all(self.last());
                        let all = Rc::new(self.operator(form, env, &all));
                        self.found.spans.insert(key, all.clone());
                        all
                    }
                };
                self.looked_at(domain.ranges().min(all.ranges()));
                domain.and(&all)
            }
            Form::Never => Spans::default(),
        }
    }

    pub(super) fn looked_at(&mut self, ranges: usize) {
        self.found.work += ranges;
    }

    pub(super) fn operator(&mut self, form: &Form, env: &mut Vec<Known>, domain: &Spans) -> Spans {
        let (Some(first), Some(last)) = (domain.first(), domain.last()) else {
            return Spans::default();
        };
        let found = match form {
            Form::Exists(slots, body, _) => {
                let (mut found, hull) = (Vec::new(), Spans::of(first, last));
                // What holds for long is one range there, and many among single positions.
                let over = if domain.ranges() > FEW { &hull } else { domain };
                self.each(slots, body, env, domain, &mut |asked, env| {
                    found.extend(asked.spans(body, env, over).iter());
                    false
                });
                self.looked_at(found.len());
                Spans::all_of(found)
            }
            Form::Formerly(body, window, _) => {
                let before = Spans::of(self.reached(first, *window), last);
                let these = self.spans(body, env, &before);
                self.since(None, &these, *window, last)
            }
            Form::Since(sides, window, _) => {
                let (left, right) = &**sides;
                let before = Spans::of(self.reached(first, *window), last);
                let anchors = self.spans(right, env, &before);
                let Some(anchored) = anchors.first() else {
                    return anchors;
                };
                let left = match self.unbroken(left, env, (&anchors, *window), last) {
                    Some(left) => left,
                    None => {
                        let after = Spans::of(anchored.saturating_add(1), last);
                        self.spans(left, env, &after)
                    }
                };
                self.since(Some(&left), &anchors, *window, last)
            }
            Form::Previous(body, window, _) => {
                let mut before = Spans::default();
                for (from, to) in domain.iter() {
                    before.push(from.saturating_sub(1), to.saturating_sub(1));
                }
                let before = before.and(&self.all(last));
                let mut next = Spans::default();
                for (from, to) in self.spans(body, env, &before).iter() {
                    next.push(from.saturating_add(1), to.saturating_add(1));
                }
                next.minus(&self.gaps(*window))
            }
            _ => Spans::default(),
        };
        self.looked_at(found.ranges());
        found.and(domain)
    }

    /// How long behind each anchor no event breaks in, as far as it matters. Nothing, if other things can.
    fn unbroken(
        &mut self,
        left: &Form,
        env: &[Known],
        (anchors, window): (&Spans, i64),
        last: i64,
    ) -> Option<Spans> {
        let Form::Not(body) = left else { return None };
        let Form::Event(log, slots) = &**body else {
            return None;
        };
        let says = Self::says_all(*log, slots, env).filter(|_| self.ordered())?;
        let ends = anchors.iter().map(|(_, to)| {
            let until = self.reaching(to, window).min(last);
            (to.saturating_add(1), until)
        });
        let mut left: Vec<(i64, i64)> = ends.collect();
        self.with(&says, |events| {
            for (from, until) in &mut left {
                if let Some(pos) = events.first(*from, *until) {
                    *until = pos.saturating_sub(1);
                }
            }
        });
        Some(Spans::all_of(left))
    }

    /// The first position that the window of this one or a later one can reach.
    pub(super) fn reached(&self, pos: i64, window: i64) -> i64 {
        let Some(time) = self.state.time(pos).filter(|_| self.ordered()) else {
            return self.state.first;
        };
        let from = time.saturating_sub(window);
        self.behind_those(|stamp| stamp < from)
    }

    /// The last position in whose window a position is.
    pub(super) fn reaching(&self, pos: i64, window: i64) -> i64 {
        let time = self.state.time(pos).unwrap_or(i64::MIN);
        let to = time.saturating_add(window);
        self.behind_those(|stamp| stamp <= to).saturating_sub(1)
    }

    /// The position behind all stamps, in order, of which this is true.
    fn behind_those(&self, early: impl Fn(i64) -> bool) -> i64 {
        let many = self.state.stamps.partition_point(|stamp| early(*stamp));
        let many = i64::try_from(many).unwrap_or(i64::MAX);
        self.state.first.saturating_add(many)
    }

    /// Where one of the anchors lies in the window, and the left side, if there is one, holds ever since.
    pub(super) fn since(
        &self,
        left: Option<&Spans>,
        anchors: &Spans,
        window: i64,
        last: i64,
    ) -> Spans {
        if !self.ordered() {
            return self.since_in_any_order(left, anchors, window, last);
        }
        let mut found = Spans::default();
        for (from, to) in anchors.iter() {
            // At a later position the last of these counts.
            let unbroken = match left {
                None => last,
                Some(left) => left.around(to.saturating_add(1)).map_or(to, |(_, end)| end),
            };
            let until = self.reaching(to, window).min(unbroken).max(to);
            found.push(from, until.min(last));
        }
        found
    }

    /// The same where stamps step back.
    pub(super) fn since_in_any_order(
        &self,
        left: Option<&Spans>,
        anchors: &Spans,
        window: i64,
        last: i64,
    ) -> Spans {
        let mut found = Spans::default();
        let mut live = BTreeSet::new();
        for pos in anchors.first().unwrap_or(i64::MAX)..=last {
            let Some(time) = self.state.time(pos) else {
                break;
            };
            if left.is_some_and(|left| !left.contains(pos)) {
                live.clear();
            }
            if anchors.contains(pos) {
                live.insert(time);
            }
            let inside = time.saturating_sub(window)..=time;
            if live.range(inside).next().is_some() {
                found.push(pos, pos);
            }
        }
        found
    }

    pub(super) fn gaps(&mut self, window: i64) -> Rc<Spans> {
        if let Some(gaps) = self.found.gaps.get(&window) {
            return gaps.clone();
        }
        let mut gaps = Spans::default();
        let stamps = &self.state.stamps;
        let pairs = stamps.iter().zip(stamps.iter().skip(1));
        let mut pos = self.state.first;
        for (before, time) in pairs {
            pos = pos.saturating_add(1);
            if !in_window(*before, *time, window) {
                gaps.push(pos, pos);
            }
        }
        let gaps = Rc::new(gaps);
        self.found.gaps.insert(window, gaps.clone());
        gaps
    }
}

pub(super) fn remembered(memo: &Memo, env: &[Known]) -> Asking {
    let vals = memo.free.iter().map(|slot| of(env, *slot));
    (memo.number, vals.collect())
}
