//! Asking what happened: for each subformula, with values for its variables, all positions at which it holds.

use super::Reread;
use super::plan::{Form, Memo, Plan, Value};
use super::spans::Spans;
use crate::automaton::formula::CellId;
use crate::automaton::index::Key;
use crate::automaton::row::{Arith, Cmp, Slot, Total, clamp};
use crate::automaton::store::in_window;
use crate::automaton::value::Val;
use foldhash::fast::RandomState;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
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
const FEW: usize = 4;

/// A subformula by its number, and what is known of its variables.
type Asking = (usize, Vec<Known>);

type Map<K, V> = HashMap<K, V, RandomState>;

/// A value at each position: from which position on which value, nothing for what is equal to nothing.
type Steps = Rc<Vec<(i64, Option<Val>)>>;

/// What was found out about one cell.
#[derive(Debug, Default)]
struct Found {
    /// By log and columns, a bit each: the events with these values there, by where they lie in the log.
    events: Map<(usize, u64, Key), Rc<Vec<usize>>>,
    spans: Map<Asking, Rc<Spans>>,
    steps: Map<Asking, Steps>,
    /// Where a number that changes has each of its values.
    places: Map<Asking, Rc<Map<Val, Spans>>>,
    /// For each window, the positions that are not so close to the one before.
    gaps: Map<i64, Rc<Spans>>,
    /// How many values and ranges were looked at.
    work: usize,
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
        let wanted: Vec<Slot> = plan.gives.clone();
        let wanted: Vec<Slot> = wanted
            .into_iter()
            .filter(|slot| of(&env, *slot) == Known::Not)
            .collect();
        let mut seen = self.0.borrow_mut();
        let mut asked = Asked {
            state,
            found: seen.entry(cell).or_default(),
        };
        let domain = Spans::of(now, now);
        let mut rows = Vec::new();
        let form = &plan.form;
        asked.each(&wanted, form, &mut env, &domain, &mut |asked, env| {
            if !asked.spans(form, env, &domain).is_empty() {
                rows.push(env.iter().take(known.len()).copied().collect());
            }
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

fn of(env: &[Known], slot: Slot) -> Known {
    env.get(slot as usize).copied().unwrap_or(Known::Missing)
}

fn set(env: &mut [Known], slot: Slot, known: Known) {
    if let Some(place) = env.get_mut(slot as usize) {
        *place = known;
    }
}

struct Asked<'n> {
    state: &'n Reread,
    found: &'n mut Found,
}

type Visit<'v, 'n> = dyn FnMut(&mut Asked<'n>, &mut Vec<Known>) + 'v;

impl<'n> Asked<'n> {
    /// All positions there are up to one.
    fn all(&self, upto: i64) -> Spans {
        Spans::of(self.state.first, upto)
    }

    fn last(&self) -> i64 {
        self.state.behind().saturating_sub(1)
    }

    fn ordered(&self) -> bool {
        self.state.back == 0
    }

    /// Those positions of the domain at which it holds. All that it asks is known.
    fn spans(&mut self, form: &Form, env: &mut Vec<Known>, domain: &Spans) -> Spans {
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
            Form::Event(log, slots) => self.events(*log, slots, env, domain),
            Form::Now(slot) => match of(env, *slot) {
                Known::Val(Val::Int(pos)) => domain.and(&Spans::of(pos, pos)),
                _ => Spans::default(),
            },
            Form::Compare(op, left, right) => self.compare(*op, (left, right), env, domain),
            Form::Exists(_, _, memo)
            | Form::Formerly(_, _, memo)
            | Form::Previous(_, _, memo)
            | Form::Since(_, _, memo) => {
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

    fn looked_at(&mut self, ranges: usize) {
        self.found.work += ranges;
    }

    fn operator(&mut self, form: &Form, env: &mut Vec<Known>, domain: &Spans) -> Spans {
        let (Some(first), Some(last)) = (domain.first(), domain.last()) else {
            return Spans::default();
        };
        let found = match form {
            Form::Exists(slots, body, _) => {
                let (mut found, hull) = (Vec::new(), Spans::of(first, last));
                // What holds for long is one range there, and many among single positions.
                let over = if domain.ranges() > FEW { &hull } else { domain };
                let enough = first == last;
                self.each(slots, body, env, domain, &mut |asked, env| {
                    if !enough || found.is_empty() {
                        found.extend(asked.spans(body, env, over).iter());
                    }
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
                let after = Spans::of(anchored.saturating_add(1), last);
                let left = self.spans(left, env, &after);
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

    /// The first position that the window of this one or a later one can reach.
    fn reached(&self, pos: i64, window: i64) -> i64 {
        let Some(time) = self.state.time(pos).filter(|_| self.ordered()) else {
            return self.state.first;
        };
        let from = time.saturating_sub(window);
        let before = self.state.stamps.partition_point(|stamp| *stamp < from);
        let before = i64::try_from(before).unwrap_or(i64::MAX);
        self.state.first.saturating_add(before)
    }

    /// The last position in whose window a position is.
    fn reaching(&self, pos: i64, window: i64) -> i64 {
        let time = self.state.time(pos).unwrap_or(i64::MIN);
        let to = time.saturating_add(window);
        let behind = self.state.stamps.partition_point(|stamp| *stamp <= to);
        let behind = i64::try_from(behind).unwrap_or(i64::MAX);
        self.state.first.saturating_add(behind).saturating_sub(1)
    }

    /// Where one of the anchors lies in the window, and the left side, if there is one, holds ever since.
    fn since(&self, left: Option<&Spans>, anchors: &Spans, window: i64, last: i64) -> Spans {
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
    fn since_in_any_order(
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

    fn gaps(&mut self, window: i64) -> Rc<Spans> {
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

    /// By which columns events are looked for, and the values.
    fn key(slots: &[Slot], env: &[Known]) -> Option<(u64, Key)> {
        let (mut mask, mut key) = (0, Key::new());
        for (at, slot) in slots.iter().enumerate() {
            match of(env, *slot) {
                Known::Val(val) => {
                    mask |= 1 << at;
                    key.push(val);
                }
                Known::Missing => return None,
                Known::Not | Known::Sought => {}
            }
        }
        Some((mask, key))
    }

    /// The events of a log with these values, by where they lie there.
    fn with(&mut self, log: usize, mask: u64, key: &Key) -> Rc<Vec<usize>> {
        let wanted = (log, mask, key.clone());
        if let Some(events) = self.found.events.get(&wanted) {
            return events.clone();
        }
        let events = match self.state.logs.get(log) {
            None => Vec::new(),
            Some(happened) if mask == 0 => (0..happened.at.len()).collect(),
            Some(happened) => {
                let place = (log, mask);
                let (events, made) = self.state.shelf.look(place, happened, key, |found, gone| {
                    let events = found.into_iter().flatten();
                    let events =
                        events.filter_map(|event| usize::try_from(event.checked_sub(gone)?).ok());
                    events.collect::<Vec<usize>>()
                });
                if made {
                    self.looked_at(happened.at.len());
                }
                events
            }
        };
        self.looked_at(1 + events.len());
        let events = Rc::new(events);
        self.found.events.insert(wanted, events.clone());
        events
    }

    /// How many there are.
    fn many(&mut self, log: usize, mask: u64, key: &Key) -> usize {
        let Some(happened) = self.state.logs.get(log) else {
            return 0;
        };
        if mask == 0 {
            return happened.at.len();
        }
        let place = (log, mask);
        let (many, made) = self.state.shelf.look(place, happened, key, |found, _| {
            found.map_or(0, VecDeque::len)
        });
        self.looked_at(if made { happened.at.len() } else { 1 });
        many
    }

    fn events(&mut self, log: usize, slots: &[Slot], env: &[Known], domain: &Spans) -> Spans {
        let mut found = Spans::default();
        let Some((mask, key)) = Self::key(slots, env) else {
            return found;
        };
        if mask.count_ones() as usize != slots.len() {
            return found;
        }
        let Some(happened) = self.state.logs.get(log) else {
            return found;
        };
        let events = self.with(log, mask, &key);
        let looked = inside(&events, &happened.at, domain, &mut |_, pos| {
            found.push(pos, pos);
        });
        self.looked_at(looked);
        found
    }

    /// The log of a conjunction with the fewest events of the values that are known, and how to find them.
    fn fewest(&mut self, parts: &[Form], env: &[Known]) -> Option<(usize, usize, u64, Key)> {
        let mut best: Option<(usize, usize, u64, Key)> = None;
        for part in parts {
            if let Form::Event(log, slots) = part {
                let Some((mask, key)) = Self::key(slots, env) else {
                    return Some((0, *log, 0, Key::new()));
                };
                let many = self.many(*log, mask, &key);
                if best.as_ref().is_none_or(|(few, ..)| many < *few) {
                    best = Some((many, *log, mask, key));
                }
            }
        }
        best
    }

    /// Those positions of a domain that have an event of which a conjunction speaks.
    fn at_events(&mut self, parts: &[Form], env: &[Known], domain: &Spans) -> Spans {
        match self.fewest(parts, env) {
            None => domain.clone(),
            Some((0, ..)) => Spans::default(),
            Some((_, log, mask, key)) => {
                let mut found = Spans::default();
                let Some(happened) = self.state.logs.get(log) else {
                    return found;
                };
                let events = self.with(log, mask, &key);
                let looked = inside(&events, &happened.at, domain, &mut |_, pos| {
                    found.push(pos, pos);
                });
                self.looked_at(looked);
                found
            }
        }
    }

    /// Visits all values that these slots can have where the formula holds in the domain. What a slot can be is
    /// taken from the part that says least.
    fn each(
        &mut self,
        slots: &[Slot],
        form: &Form,
        env: &mut Vec<Known>,
        domain: &Spans,
        visit: &mut Visit<'_, 'n>,
    ) {
        if slots.is_empty() {
            visit(self, env);
            return;
        }
        let mut best: Option<(usize, Slot)> = None;
        for slot in slots {
            if let Some(many) = self.how_many(form, env, *slot, domain)
                && best.is_none_or(|(few, _)| many < few)
            {
                best = Some((many, *slot));
            }
        }
        // A plan is made only where there is always one.
        let Some((_, slot)) = best else { return };
        let mut rest = slots.to_vec();
        rest.retain(|other| *other != slot);
        let mut vals = BTreeSet::new();
        self.candidates(form, env, slot, domain, &mut vals);
        for val in vals {
            self.found.work += 1;
            set(env, slot, Known::Val(val));
            self.each(&rest, form, env, domain, visit);
        }
        set(env, slot, Known::Not);
    }

    /// How many values of a slot `candidates` goes through at most. Nothing, where the formula does not say.
    fn how_many(
        &mut self,
        form: &Form,
        env: &mut Vec<Known>,
        slot: Slot,
        domain: &Spans,
    ) -> Option<usize> {
        match form {
            Form::Event(log, slots) if slots.contains(&slot) => {
                let Some((mask, key)) = Self::key(slots, env) else {
                    return Some(0);
                };
                Some(self.many(*log, mask, &key).min(domain.len()))
            }
            Form::Now(own) if *own == slot => Some(domain.len()),
            Form::Compare(..) => {
                let mut says = form.says(slot).into_iter();
                let value = says.find(|value| is_known(value, env))?;
                match value.is_steady() {
                    true => Some(1),
                    false => Some(self.state.stamps.len()),
                }
            }
            Form::All(parts) => {
                let points = at_points(parts, env, domain);
                let domain = points.as_ref().unwrap_or(domain);
                let each = parts.iter();
                let each = each.filter_map(|part| self.how_many(part, env, slot, domain));
                if let Some(few) = each.min() {
                    let events = self.fewest(parts, env).map(|(few, ..)| few);
                    // A time point is that of one of the events that are named beside it.
                    return Some(match is_point(parts, slot) {
                        true => few.min(events.unwrap_or(few)),
                        false => few,
                    });
                }
                set(env, slot, Known::Sought);
                let firsts = through(parts, env, slot).into_iter();
                let mut each = firsts.map(|first| self.how_many(form, env, first, domain));
                let many = each.find_map(|many| many);
                set(env, slot, Known::Not);
                many
            }
            Form::Exists(_, body, _) => self.how_many(body, env, slot, domain),
            Form::Formerly(body, ..) | Form::Previous(body, ..) => {
                let before = self.all(domain.last()?);
                self.how_many(body, env, slot, &before)
            }
            Form::Since(sides, ..) => {
                let before = self.all(domain.last()?);
                self.how_many(&sides.1, env, slot, &before)
            }
            Form::Event(..) | Form::Now(_) | Form::Not(_) | Form::Never => None,
        }
    }

    /// All values that a slot can have where the formula holds in the domain, and perhaps more.
    fn candidates(
        &mut self,
        form: &Form,
        env: &mut Vec<Known>,
        slot: Slot,
        domain: &Spans,
        vals: &mut BTreeSet<Val>,
    ) {
        match form {
            Form::Event(log, slots) => {
                let Some((mask, key)) = Self::key(slots, env) else {
                    return;
                };
                let (Some(column), Some(happened)) = (
                    slots.iter().position(|own| *own == slot),
                    self.state.logs.get(*log),
                ) else {
                    return;
                };
                let width = slots.len();
                let events = self.with(*log, mask, &key);
                let looked = inside(&events, &happened.at, domain, &mut |event, _| {
                    vals.extend(happened.vals.get(event * width + column));
                });
                self.looked_at(looked);
            }
            Form::Now(own) if *own == slot => {
                let points = domain.iter().flat_map(|(from, to)| from..=to);
                vals.extend(points.map(Val::Int));
            }
            Form::Compare(..) => {
                let mut says = form.says(slot).into_iter();
                if let Some(value) = says.find(|value| is_known(value, env)) {
                    let steps = self.value(value, env, domain);
                    self.looked_at(steps.len());
                    vals.extend(steps.iter().filter_map(|(_, val)| *val));
                }
            }
            Form::All(parts) => {
                let points = at_points(parts, env, domain);
                let domain = points.as_ref().unwrap_or(domain);
                let mut best: Option<(usize, &Form)> = None;
                for part in parts {
                    if let Some(many) = self.how_many(part, env, slot, domain)
                        && best.is_none_or(|(few, _)| many < few)
                    {
                        best = Some((many, part));
                    }
                }
                if let Some((_, part)) = best {
                    let at = match part {
                        Form::Now(_) | Form::Exists(..) => self.at_events(parts, env, domain),
                        _ => domain.clone(),
                    };
                    return self.candidates(part, env, slot, &at, vals);
                }
                // What it is compared with has to be found first.
                let mut found = BTreeSet::new();
                set(env, slot, Known::Sought);
                let mut firsts = through(parts, env, slot).into_iter();
                let first = firsts.find(|first| {
                    let many = self.how_many(form, env, *first, domain);
                    many.is_some()
                });
                if let Some(first) = first {
                    self.candidates(form, env, first, domain, &mut found);
                }
                set(env, slot, Known::Not);
                let Some(first) = first else { return };
                for val in found {
                    set(env, first, Known::Val(val));
                    self.candidates(form, env, slot, domain, vals);
                }
                set(env, first, Known::Not);
            }
            Form::Exists(_, body, _) => self.candidates(body, env, slot, domain, vals),
            Form::Formerly(body, ..) | Form::Previous(body, ..) => {
                if let Some(last) = domain.last() {
                    let before = self.all(last);
                    self.candidates(body, env, slot, &before, vals);
                }
            }
            Form::Since(sides, ..) => {
                if let Some(last) = domain.last() {
                    let before = self.all(last);
                    self.candidates(&sides.1, env, slot, &before, vals);
                }
            }
            Form::Now(_) | Form::Not(_) | Form::Never => {}
        }
    }

    /// The value of a term at the positions of a domain.
    fn value(&mut self, value: &Value, env: &mut Vec<Known>, domain: &Spans) -> Steps {
        let steady = |val: Option<Val>| Rc::new(vec![(i64::MIN, val)]);
        match value {
            Value::Known(val) => steady(*val),
            Value::Slot(slot) => match of(env, *slot) {
                Known::Val(val) => steady(Some(val)),
                Known::Not | Known::Missing | Known::Sought => steady(None),
            },
            Value::Arith(op, left, right) => {
                let left = self.value(left, env, domain);
                let right = self.value(right, env, domain);
                let mut steps: Vec<(i64, Option<Val>)> = Vec::new();
                both(&left, &right, i64::MIN, &mut |from, left, right| {
                    let val = calculated(*op, left, right);
                    if steps.last().is_none_or(|(_, last)| *last != val) {
                        steps.push((from, val));
                    }
                    true
                });
                self.looked_at(steps.len());
                Rc::new(steps)
            }
            Value::Total(op, vars, body, memo) => {
                if !memo.shared {
                    return self.total(*op, vars, body, env, domain);
                }
                let key = remembered(memo, env);
                if let Some(steps) = self.found.steps.get(&key) {
                    return steps.clone();
                }
                let all = self.all(self.last());
                let steps = self.total(*op, vars, body, env, &all);
                self.found.steps.insert(key, steps.clone());
                steps
            }
        }
    }

    /// Each tuple counts where the body holds for it.
    fn total(
        &mut self,
        op: Total,
        vars: &[Slot],
        body: &Form,
        env: &mut Vec<Known>,
        domain: &Spans,
    ) -> Steps {
        let mut changes: BTreeMap<i64, i128> = BTreeMap::new();
        let (Some(first), Some(last)) = (domain.first(), domain.last()) else {
            return Rc::new(vec![(i64::MIN, Some(Val::Int(0)))]);
        };
        let over = &Spans::of(first, last);
        self.each(vars, body, env, domain, &mut |asked, env| {
            let summand = match op {
                Total::Count => 1,
                Total::Sum(column) => match vars.get(column).map(|var| of(env, *var)) {
                    Some(Known::Val(Val::Int(n))) => i128::from(n),
                    _ => 0,
                },
            };
            for (from, to) in asked.spans(body, env, over).iter() {
                *changes.entry(from).or_default() += summand;
                *changes.entry(to.saturating_add(1)).or_default() -= summand;
            }
        });
        self.looked_at(changes.len());
        let (mut sum, mut steps) = (0, vec![(i64::MIN, Some(Val::Int(0)))]);
        for (from, change) in changes {
            sum += change;
            let val = Some(Val::Int(clamp(sum)));
            if steps.last().is_none_or(|(_, last)| *last != val) {
                steps.push((from, val));
            }
        }
        Rc::new(steps)
    }

    /// Whether an aggregate that is asked again with other values is equal to one of them.
    fn compare_by_place(
        &mut self,
        op: Cmp,
        (left, right): (&Value, &Value),
        env: &mut Vec<Known>,
        domain: &Spans,
    ) -> Option<Spans> {
        let (memo, total, other) = aggregate(left, right)?;
        if !memo.shared || !matches!(op, Cmp::Eq | Cmp::Ne) {
            return None;
        }
        let other = self.value(other, env, domain);
        let Some(&(_, Some(val))) = other.first() else {
            return Some(Spans::default());
        };
        let key = remembered(memo, env);
        let places = match self.found.places.get(&key) {
            Some(places) => places.clone(),
            None => {
                let steps = self.value(total, env, domain);
                let mut places: Map<Val, Spans> = Map::default();
                let behind = steps.iter().skip(1).map(|(from, _)| *from);
                let behind = behind.chain([i64::MAX]);
                for ((from, val), behind) in steps.iter().zip(behind) {
                    if let Some(val) = val {
                        let place = places.entry(*val).or_default();
                        place.push(*from, behind.saturating_sub(1));
                    }
                }
                self.looked_at(steps.len());
                let places = Rc::new(places);
                self.found.places.insert(key, places.clone());
                places
            }
        };
        let none = Spans::default();
        let equal = places.get(&val).unwrap_or(&none);
        self.looked_at(equal.ranges().min(domain.ranges()));
        Some(match op {
            Cmp::Ne => domain.minus(equal),
            _ => domain.and(equal),
        })
    }

    fn compare(
        &mut self,
        op: Cmp,
        (left, right): (&Value, &Value),
        env: &mut Vec<Known>,
        domain: &Spans,
    ) -> Spans {
        if let Some(found) = self.compare_by_place(op, (left, right), env, domain) {
            return found;
        }
        let left = self.value(left, env, domain);
        let right = self.value(right, env, domain);
        let (mut found, mut looked) = (Spans::default(), 0);
        for (start, end) in domain.iter() {
            let mut open: Option<i64> = None;
            both(&left, &right, start, &mut |from, left, right| {
                looked += 1;
                if from > end {
                    return false;
                }
                let sides = left.zip(right);
                let holds = sides.is_some_and(|(left, right)| op.holds(left, right));
                match (holds, open) {
                    (true, None) => open = Some(from),
                    (false, Some(since)) => {
                        found.push(since, from.saturating_sub(1));
                        open = None;
                    }
                    _ => {}
                }
                true
            });
            if let Some(since) = open {
                found.push(since, end);
            }
        }
        self.looked_at(looked);
        found
    }
}

/// Visits those of some events that lie in a domain, with their positions; how many.
fn inside(
    events: &[usize],
    at: &VecDeque<i64>,
    domain: &Spans,
    visit: &mut dyn FnMut(usize, i64),
) -> usize {
    let pos = |event: usize| at.get(event).copied().unwrap_or(i64::MAX);
    let mut looked = 0;
    let mut visit = |event: usize| {
        looked += 1;
        visit(event, pos(event));
    };
    if domain.ranges() > events.len() {
        let events = events.iter().filter(|event| domain.contains(pos(**event)));
        events.for_each(|event| visit(*event));
        return looked;
    }
    for (from, to) in domain.iter() {
        let start = events.partition_point(|event| pos(*event) < from);
        let rest = events.get(start..).unwrap_or(&[]).iter();
        let rest = rest.take_while(|event| pos(**event) <= to);
        rest.for_each(|event| visit(*event));
    }
    looked
}

/// Whether a conjunction says that a slot is its time point.
fn is_point(parts: &[Form], slot: Slot) -> bool {
    let mut parts = parts.iter();
    parts.any(|part| matches!(part, Form::Now(own) if *own == slot))
}

/// The positions of a domain that can be the time points a conjunction speaks of, if it speaks of one that is known.
fn at_points(parts: &[Form], env: &[Known], domain: &Spans) -> Option<Spans> {
    let mut left: Option<Spans> = None;
    for part in parts {
        if let Form::Now(slot) = part
            && let Known::Val(val) = of(env, *slot)
        {
            let before = left.as_ref().unwrap_or(domain);
            left = Some(match val {
                Val::Int(pos) => before.and(&Spans::of(pos, pos)),
                _ => Spans::default(),
            });
        }
    }
    left
}

/// The aggregate of two terms, where the other is the same at every event.
fn aggregate<'v>(left: &'v Value, right: &'v Value) -> Option<(&'v Memo, &'v Value, &'v Value)> {
    match (left, right) {
        (Value::Total(.., memo), other) if other.is_steady() => Some((memo, left, other)),
        (other, Value::Total(.., memo)) if other.is_steady() => Some((memo, right, other)),
        _ => None,
    }
}

fn remembered(memo: &Memo, env: &[Known]) -> Asking {
    let vals = memo.free.iter().map(|slot| of(env, *slot));
    (memo.number, vals.collect())
}

fn is_known(value: &Value, env: &[Known]) -> bool {
    let mut free = value.free().into_iter();
    free.all(|slot| matches!(of(env, slot), Known::Val(_) | Known::Missing))
}

/// What may have to be known first, so that one of these comparisons says what a slot is.
fn through(parts: &[Form], env: &[Known], slot: Slot) -> Vec<Slot> {
    let needs = parts.iter().flat_map(|part| part.needs(slot));
    let firsts = needs.filter_map(|needs| {
        let mut each = needs.iter();
        if each.any(|need| of(env, *need) == Known::Sought) {
            return None;
        }
        needs.into_iter().find(|need| of(env, *need) == Known::Not)
    });
    firsts.collect()
}

/// Visits both values from a position on, each time one changes, until told to stop.
fn both(
    left: &[(i64, Option<Val>)],
    right: &[(i64, Option<Val>)],
    start: i64,
    visit: &mut dyn FnMut(i64, Option<Val>, Option<Val>) -> bool,
) {
    let at = |steps: &[(i64, Option<Val>)]| {
        let behind = steps.partition_point(|(from, _)| *from <= start);
        behind.saturating_sub(1)
    };
    let (mut one, mut two) = (at(left), at(right));
    let mut from = start;
    while let (Some((_, val)), Some((_, other))) = (left.get(one), right.get(two)) {
        if !visit(from, *val, *other) {
            return;
        }
        let next = |steps: &[(i64, Option<Val>)], at: usize| steps.get(at + 1).map(|step| step.0);
        from = match (next(left, one), next(right, two)) {
            (None, None) => return,
            (Some(one), None) => one,
            (None, Some(two)) => two,
            (Some(one), Some(two)) => one.min(two),
        };
        one += usize::from(next(left, one) == Some(from));
        two += usize::from(next(right, two) == Some(from));
    }
}

fn calculated(op: Arith, left: Option<Val>, right: Option<Val>) -> Option<Val> {
    let (Some(Val::Int(left)), Some(Val::Int(right))) = (left, right) else {
        return None;
    };
    Some(Val::Int(match op {
        Arith::Add => left.saturating_add(right),
        Arith::Sub => left.saturating_sub(right),
        Arith::Mul => left.saturating_mul(right),
    }))
}
