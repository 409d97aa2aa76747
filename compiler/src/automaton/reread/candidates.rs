//! What a variable can be: the values that the events say, of the part of a formula that has the fewest.

use super::ask::{Asked, Known, Visit, of, set};
use super::plan::{Form, Value};
use super::spans::Spans;
use crate::automaton::index::Key;
use crate::automaton::row::Slot;
use crate::automaton::value::Val;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

impl<'n> Asked<'n> {
    /// By which columns events are looked for, and the values.
    pub(super) fn key(slots: &[Slot], env: &[Known]) -> Option<(u64, Key)> {
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
    pub(super) fn with(&mut self, log: usize, mask: u64, key: &Key) -> Rc<Vec<usize>> {
        let wanted = (log, mask, key.clone());
        if let Some(events) = self.found.events.get(&wanted) {
            return events.clone();
        }
        let events = match self.state.logs.get(log) {
            None => Vec::new(),
            Some(happened) if mask == 0 => (0..happened.at.len()).collect(),
            Some(happened) => {
                let place = (log, mask);
                let (events, made) =
                    self.state
                        .indexes
                        .look(place, happened, key, |found, gone| {
                            let events = found.into_iter().flatten();
                            let events = events
                                .filter_map(|event| usize::try_from(event.checked_sub(gone)?).ok());
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
    pub(super) fn many(&mut self, log: usize, mask: u64, key: &Key) -> usize {
        let Some(happened) = self.state.logs.get(log) else {
            return 0;
        };
        if mask == 0 {
            return happened.at.len();
        }
        let place = (log, mask);
        let (many, made) = self.state.indexes.look(place, happened, key, |found, _| {
            found.map_or(0, VecDeque::len)
        });
        self.looked_at(if made { happened.at.len() } else { 1 });
        many
    }

    /// The log of a conjunction with the fewest events of the values that are known, and how to find them.
    pub(super) fn fewest(
        &mut self,
        parts: &[Form],
        env: &[Known],
    ) -> Option<(usize, usize, u64, Key)> {
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
    pub(super) fn at_events(&mut self, parts: &[Form], env: &[Known], domain: &Spans) -> Spans {
        match self.fewest(parts, env) {
            None => domain.clone(),
            Some((0, ..)) => Spans::default(),
            Some((_, log, mask, key)) => self.positions(log, mask, &key, domain),
        }
    }

    /// Those positions of a domain that have an event of a log with these values.
    pub(super) fn positions(&mut self, log: usize, mask: u64, key: &Key, domain: &Spans) -> Spans {
        let mut found = Spans::default();
        let Some(happened) = self.state.logs.get(log) else {
            return found;
        };
        let events = self.with(log, mask, key);
        let looked = inside(&events, &happened.at, domain, &mut |_, pos| {
            found.push(pos, pos);
        });
        self.looked_at(looked);
        found
    }

    /// Visits all values that these slots can have where the formula holds in the domain. What a slot can be is
    /// taken from the part that says least.
    pub(super) fn each(
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
    pub(super) fn how_many(
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
    pub(super) fn candidates(
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
}

/// Visits those of some events that lie in a domain, with their positions; how many.
pub(super) fn inside(
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
