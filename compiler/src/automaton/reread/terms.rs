//! Terms, each with a value at each position, and their comparisons.

use super::ask::{Asked, Known, Map, Steps, of, remembered};
use super::plan::{Form, Memo, Value};
use super::spans::Spans;
use crate::automaton::row::{Arith, Cmp, Slot, Total, clamp};
use crate::automaton::value::Val;
use std::collections::BTreeMap;
use std::rc::Rc;

impl<'n> Asked<'n> {
    /// The value of a term at the positions of a domain.
    pub(super) fn value(&mut self, value: &Value, env: &mut Vec<Known>, domain: &Spans) -> Steps {
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
    pub(super) fn total(
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
            false
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
    pub(super) fn compare_by_place(
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

    pub(super) fn compare(
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

/// The aggregate of two terms, where the other is the same at every event.
fn aggregate<'v>(left: &'v Value, right: &'v Value) -> Option<(&'v Memo, &'v Value, &'v Value)> {
    match (left, right) {
        (Value::Total(.., memo), other) if other.is_steady() => Some((memo, left, other)),
        (other, Value::Total(.., memo)) if other.is_steady() => Some((memo, right, other)),
        _ => None,
    }
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
