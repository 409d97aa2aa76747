//! What a variable can be: the values that the events say, of the part of a formula that has the fewest.

use super::ask::{Asked, Known, Visit, of, set};
use super::plan::{Form, Value};
use super::spans::Spans;
use crate::automaton::row::Slot;
use crate::automaton::value::Val;
use std::collections::BTreeSet;

impl<'n> Asked<'n> {
    /// Visits all values that these slots can have where the formula holds in the domain, until one visit says that
    /// this is enough, and says so. What a slot can be is taken from the part that says least.
    pub(super) fn each(
        &mut self,
        slots: &[Slot],
        form: &Form,
        env: &mut Vec<Known>,
        domain: &Spans,
        visit: &mut Visit<'_, 'n>,
    ) -> bool {
        if slots.is_empty() {
            return visit(self, env);
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
        let Some((_, slot)) = best else { return false };
        let mut rest = slots.to_vec();
        rest.retain(|other| *other != slot);
        let mut vals = BTreeSet::new();
        self.candidates(form, env, slot, domain, &mut vals);
        let enough = vals.into_iter().any(|val| {
            self.looked_at(1);
            set(env, slot, Known::Val(val));
            self.each(&rest, form, env, domain, visit)
        });
        set(env, slot, Known::Not);
        enough
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
                let says = Self::says(*log, slots, env);
                let many = says.map_or(0, |says| self.many(&says));
                Some(many.min(domain.len()))
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
                    let events = self.fewest(parts, env).map(|(few, _)| few);
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
            Form::Formerly(..) | Form::Previous(..) | Form::Since(..) => {
                let (body, before) = self.looks_back(form, domain)?;
                self.how_many(body, env, slot, &before)
            }
            Form::Event(..) | Form::Now(_) | Form::Not(_) | Form::Never => None,
        }
    }

    /// What gives an operator its values, and where that can be for it to hold in the domain.
    fn looks_back<'f>(&mut self, form: &'f Form, domain: &Spans) -> Option<(&'f Form, Spans)> {
        let (first, last) = (domain.first()?, domain.last()?);
        self.looked_at(1);
        let (body, from) = match form {
            Form::Formerly(body, window, _) => (&**body, self.reached(first, *window)),
            Form::Since(sides, window, _) => (&sides.1, self.reached(first, *window)),
            Form::Previous(body, ..) => (&**body, first.saturating_sub(1).max(self.state.first)),
            _ => return None,
        };
        Some((body, Spans::of(from, last)))
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
                let (Some(says), Some(column), Some(happened)) = (
                    Self::says(*log, slots, env),
                    slots.iter().position(|own| *own == slot),
                    self.state.logs.get(*log),
                ) else {
                    return;
                };
                self.with(&says, |events| {
                    events.each(domain, &mut |event, _| {
                        vals.extend(happened.val(event, column));
                    });
                });
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
                        Form::Now(_) | Form::Exists(..) => match self.fewest(parts, env) {
                            None => domain.clone(),
                            Some((0, _)) => Spans::default(),
                            Some((_, says)) => self.positions(&says, domain),
                        },
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
            Form::Formerly(..) | Form::Previous(..) | Form::Since(..) => {
                if let Some((body, before)) = self.looks_back(form, domain) {
                    self.candidates(body, env, slot, &before, vals);
                }
            }
            Form::Now(_) | Form::Not(_) | Form::Never => {}
        }
    }
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
