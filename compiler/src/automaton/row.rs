//! Rows with unknowns.
//!
//! A cell is brought up to date before anybody knows what the deciding request will ask, so a row may leave
//! things open: a slot is bound to a value, to another slot that is still unknown, or to a term over such
//! slots; and a *residual* says which rows count once the unknown slots are known. At a decision nothing is
//! unknown any more and every residual is true or false.

use super::value::Val;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::sync::Arc;

pub(crate) type Slot = u16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Cmp {
    /// The comparison with its sides changed over.
    pub fn turned(self) -> Cmp {
        match self {
            Cmp::Lt => Cmp::Gt,
            Cmp::Le => Cmp::Ge,
            Cmp::Gt => Cmp::Lt,
            Cmp::Ge => Cmp::Le,
            same => same,
        }
    }

    pub fn holds(self, left: Val, right: Val) -> bool {
        match (self, left, right) {
            (Cmp::Eq, ..) => left == right,
            (Cmp::Ne, ..) => left != right,
            (Cmp::Lt, Val::Int(l), Val::Int(r)) => l < r,
            (Cmp::Le, Val::Int(l), Val::Int(r)) => l <= r,
            (Cmp::Gt, Val::Int(l), Val::Int(r)) => l > r,
            (Cmp::Ge, Val::Int(l), Val::Int(r)) => l >= r,
            _ => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Arith {
    Add,
    Sub,
    Mul,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Total {
    Count,
    /// Adds up this column of the tuples.
    Sum(usize),
}

/// What is known of a term.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Sym {
    Val(Val),
    /// A path of the request that is not there: equal to nothing, not even to itself.
    Bottom,
    /// The value of a slot that is not known yet.
    Slot(Slot),
    Term(Arc<Open>),
}

/// A term over slots that are not known yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Open {
    Arith(Arith, Sym, Sym),
    /// An aggregate over these tuples, each counting where its condition holds.
    Total(Total, Vec<(Residual, Vec<Sym>)>),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Residual {
    True,
    False,
    Not(Box<Residual>),
    /// Sorted, without repetition, at least two.
    All(Vec<Residual>),
    Any(Vec<Residual>),
    Cmp(Cmp, Sym, Sym),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub vals: SmallVec<[Option<Sym>; 4]>,
    pub residual: Residual,
}

impl Row {
    pub fn unknown(width: usize) -> Row {
        Row {
            vals: smallvec::smallvec![None; width],
            residual: Residual::True,
        }
    }

    /// Held for the row, itself and what it points at.
    pub fn bytes(&self) -> usize {
        let spilled = if self.vals.spilled() {
            self.vals.capacity() * size_of::<Option<Sym>>()
        } else {
            0
        };
        let terms = self.vals.iter().flatten().map(Sym::pointed);
        size_of::<Row>() + spilled + terms.sum::<usize>() + self.residual.pointed()
    }

    /// What is known of a slot, through aliases.
    pub fn view(&self, slot: Slot) -> Sym {
        let mut at = slot;
        // An alias never points at an alias of itself; the bound is for safety only.
        for _ in 0..=self.vals.len() {
            match self.vals.get(at as usize).and_then(Option::as_ref) {
                None => return Sym::Slot(at),
                Some(Sym::Slot(next)) => at = *next,
                Some(Sym::Term(open)) => return open.resolve(self),
                Some(known) => return known.clone(),
            }
        }
        Sym::Bottom
    }

    pub fn known(&self, slot: Slot) -> Option<Val> {
        match self.vals.get(slot as usize).and_then(Option::as_ref) {
            Some(Sym::Val(val)) => Some(*val),
            None | Some(Sym::Bottom) => None,
            Some(_) => match self.view(slot) {
                Sym::Val(val) => Some(val),
                _ => None,
            },
        }
    }

    pub fn set(&mut self, slot: Slot, sym: Option<Sym>) {
        if let Some(place) = self.vals.get_mut(slot as usize) {
            *place = sym;
        }
    }

    /// Adds a condition; false where the row cannot hold any more.
    pub fn require(&mut self, condition: Residual) -> bool {
        if condition == Residual::True {
            return true;
        }
        let before = std::mem::replace(&mut self.residual, Residual::True);
        self.residual = Residual::all(vec![before, condition]);
        self.residual != Residual::False
    }

    /// Makes two terms equal, as a pattern does; false where they cannot be.
    pub fn unify(&mut self, left: Sym, right: Sym) -> bool {
        match (left, right) {
            (Sym::Bottom, _) | (_, Sym::Bottom) => false,
            (Sym::Val(l), Sym::Val(r)) => l == r,
            (Sym::Slot(slot), Sym::Val(val)) | (Sym::Val(val), Sym::Slot(slot)) => {
                self.set(slot, Some(Sym::Val(val)));
                true
            }
            (left, right) => self.require(Residual::compare(Cmp::Eq, left, right)),
        }
    }

    /// Gives a variable a value it does not have yet, or compares with the one it has.
    pub fn bind(&mut self, slot: Slot, sym: Sym) -> bool {
        match self.view(slot) {
            Sym::Slot(free) if free == slot => match sym {
                Sym::Bottom => false,
                Sym::Val(_) => {
                    self.set(slot, Some(sym));
                    true
                }
                Sym::Slot(other) if other == slot => true,
                // It would have to be known to be found.
                open if open.mentions(slot) => {
                    self.require(Residual::compare(Cmp::Eq, Sym::Slot(slot), open))
                }
                open => {
                    let resolved = Residual::compare(Cmp::Eq, open.clone(), open.clone());
                    self.set(slot, Some(open));
                    self.require(resolved)
                }
            },
            bound => self.unify(bound, sym),
        }
    }

    /// Decides what can be decided now; false where the row cannot hold.
    pub fn settle(&mut self) -> bool {
        if self.residual != Residual::True {
            let residual = std::mem::replace(&mut self.residual, Residual::True);
            self.residual = residual.resolve(self);
        }
        self.residual != Residual::False
    }

    /// The condition under which this row, grown from `base`, holds: its new bindings and residual.
    pub fn condition_over(&self, base: &Row) -> Residual {
        let mut parts = Vec::new();
        for (at, sym) in self.vals.iter().enumerate() {
            let slot = Slot::try_from(at).unwrap_or(Slot::MAX);
            let Some(sym) = sym else { continue };
            if base.vals.get(at).is_some_and(Option::is_none) {
                let sym = sym.resolve(self);
                parts.push(Residual::compare(Cmp::Eq, Sym::Slot(slot), sym));
            }
        }
        parts.push(self.residual.resolve(self));
        Residual::all(parts)
    }
}

impl Sym {
    pub fn resolve(&self, row: &Row) -> Sym {
        match self {
            Sym::Slot(slot) => row.view(*slot),
            Sym::Term(open) => open.resolve(row),
            known => known.clone(),
        }
    }

    /// The same term with its slots renamed.
    pub fn rename(&self, slots: &[Slot]) -> Sym {
        match self {
            Sym::Slot(slot) => match slots.get(*slot as usize) {
                Some(to) => Sym::Slot(*to),
                None => Sym::Bottom,
            },
            Sym::Term(open) => Sym::Term(Arc::new(match open.as_ref() {
                Open::Arith(op, l, r) => Open::Arith(*op, l.rename(slots), r.rename(slots)),
                Open::Total(total, rows) => Open::Total(
                    *total,
                    rows.iter()
                        .map(|(condition, tuple)| {
                            let tuple = tuple.iter().map(|sym| sym.rename(slots)).collect();
                            (condition.rename(slots), tuple)
                        })
                        .collect(),
                ),
            })),
            known => known.clone(),
        }
    }

    fn mentions(&self, slot: Slot) -> bool {
        match self {
            Sym::Val(_) | Sym::Bottom => false,
            Sym::Slot(own) => *own == slot,
            Sym::Term(open) => match open.as_ref() {
                Open::Arith(_, left, right) => left.mentions(slot) || right.mentions(slot),
                Open::Total(_, tuples) => tuples.iter().any(|(condition, tuple)| {
                    condition.mentions(slot) || tuple.iter().any(|sym| sym.mentions(slot))
                }),
            },
        }
    }

    fn pointed(&self) -> usize {
        let Sym::Term(open) = self else { return 0 };
        size_of::<Open>()
            + match open.as_ref() {
                Open::Arith(_, left, right) => left.pointed() + right.pointed(),
                Open::Total(_, tuples) => tuples
                    .iter()
                    .map(|(condition, tuple)| {
                        let terms = tuple.iter().map(Sym::pointed).sum::<usize>();
                        size_of::<(Residual, Vec<Sym>)>()
                            + condition.pointed()
                            + size_of_val(tuple.as_slice())
                            + terms
                    })
                    .sum(),
            }
    }

    pub fn each_val(&self, seen: &mut dyn FnMut(Val)) {
        match self {
            Sym::Val(val) => seen(*val),
            Sym::Bottom | Sym::Slot(_) => {}
            Sym::Term(open) => match open.as_ref() {
                Open::Arith(_, l, r) => {
                    l.each_val(seen);
                    r.each_val(seen);
                }
                Open::Total(_, rows) => {
                    for (condition, tuple) in rows {
                        condition.each_val(seen);
                        for sym in tuple {
                            sym.each_val(seen);
                        }
                    }
                }
            },
        }
    }
}

impl Open {
    pub fn resolve(&self, row: &Row) -> Sym {
        match self {
            Open::Arith(op, l, r) => arith(*op, l.resolve(row), r.resolve(row)),
            Open::Total(op, rows) => {
                let resolved = rows
                    .iter()
                    .map(|(condition, tuple)| {
                        let tuple = tuple.iter().map(|sym| sym.resolve(row)).collect();
                        (condition.resolve(row), tuple)
                    })
                    .collect();
                total(*op, resolved)
            }
        }
    }
}

pub(crate) fn arith(op: Arith, left: Sym, right: Sym) -> Sym {
    match (&left, &right) {
        (Sym::Val(Val::Int(l)), Sym::Val(Val::Int(r))) => Sym::Val(Val::Int(match op {
            Arith::Add => l.saturating_add(*r),
            Arith::Sub => l.saturating_sub(*r),
            Arith::Mul => l.saturating_mul(*r),
        })),
        (Sym::Val(_) | Sym::Bottom, _) if !matches!(left, Sym::Val(Val::Int(_))) => Sym::Bottom,
        (_, Sym::Val(_) | Sym::Bottom) if !matches!(right, Sym::Val(Val::Int(_))) => Sym::Bottom,
        _ => Sym::Term(Arc::new(Open::Arith(op, left, right))),
    }
}

/// An aggregate over tuples with conditions: a number where everything is known.
pub(crate) fn total(op: Total, mut rows: Vec<(Residual, Vec<Sym>)>) -> Sym {
    rows.retain(|(condition, tuple)| {
        *condition != Residual::False && !tuple.contains(&Sym::Bottom)
    });
    rows.sort();
    rows.dedup();
    let settled = |(condition, tuple): &(Residual, Vec<Sym>)| {
        *condition == Residual::True && tuple.iter().all(|sym| matches!(sym, Sym::Val(_)))
    };
    if !rows.iter().all(settled) {
        return Sym::Term(Arc::new(Open::Total(op, rows)));
    }
    let number = match op {
        Total::Count => i64::try_from(rows.len()).unwrap_or(i64::MAX),
        Total::Sum(column) => {
            let summands = rows.iter().map(|(_, tuple)| match tuple.get(column) {
                Some(Sym::Val(Val::Int(n))) => i128::from(*n),
                _ => 0,
            });
            clamp(summands.sum())
        }
    };
    Sym::Val(Val::Int(number))
}

pub(crate) fn clamp(total: i128) -> i64 {
    i64::try_from(total).unwrap_or(if total < 0 { i64::MIN } else { i64::MAX })
}

impl Residual {
    pub fn compare(op: Cmp, left: Sym, right: Sym) -> Residual {
        match (&left, &right) {
            (Sym::Bottom, _) | (_, Sym::Bottom) => Residual::False,
            (Sym::Val(l), Sym::Val(r)) => Residual::truth(op.holds(*l, *r)),
            _ => Residual::Cmp(op, left, right),
        }
    }

    pub fn truth(b: bool) -> Residual {
        if b { Residual::True } else { Residual::False }
    }

    pub fn negate(self) -> Residual {
        match self {
            Residual::True => Residual::False,
            Residual::False => Residual::True,
            Residual::Not(inner) => *inner,
            other => Residual::Not(Box::new(other)),
        }
    }

    pub fn all(parts: Vec<Residual>) -> Residual {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Residual::True => {}
                Residual::False => return Residual::False,
                Residual::All(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        flat.sort();
        flat.dedup();
        match flat.len() {
            0 => Residual::True,
            1 => flat.pop().unwrap_or(Residual::True),
            _ => Residual::All(flat),
        }
    }

    pub fn any(parts: Vec<Residual>) -> Residual {
        let mut flat = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Residual::False => {}
                Residual::True => return Residual::True,
                Residual::Any(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        flat.sort();
        flat.dedup();
        match flat.len() {
            0 => Residual::False,
            1 => flat.pop().unwrap_or(Residual::False),
            _ => Residual::Any(flat),
        }
    }

    pub fn resolve(&self, row: &Row) -> Residual {
        match self {
            Residual::True | Residual::False => self.clone(),
            Residual::Not(inner) => inner.resolve(row).negate(),
            Residual::All(parts) => Residual::all(parts.iter().map(|p| p.resolve(row)).collect()),
            Residual::Any(parts) => Residual::any(parts.iter().map(|p| p.resolve(row)).collect()),
            Residual::Cmp(op, l, r) => Residual::compare(*op, l.resolve(row), r.resolve(row)),
        }
    }

    fn mentions(&self, slot: Slot) -> bool {
        match self {
            Residual::True | Residual::False => false,
            Residual::Not(inner) => inner.mentions(slot),
            Residual::All(parts) | Residual::Any(parts) => {
                parts.iter().any(|part| part.mentions(slot))
            }
            Residual::Cmp(_, left, right) => left.mentions(slot) || right.mentions(slot),
        }
    }

    pub fn rename(&self, slots: &[Slot]) -> Residual {
        match self {
            Residual::True | Residual::False => self.clone(),
            Residual::Not(inner) => inner.rename(slots).negate(),
            Residual::All(parts) => Residual::all(parts.iter().map(|p| p.rename(slots)).collect()),
            Residual::Any(parts) => Residual::any(parts.iter().map(|p| p.rename(slots)).collect()),
            Residual::Cmp(op, l, r) => Residual::compare(*op, l.rename(slots), r.rename(slots)),
        }
    }

    fn pointed(&self) -> usize {
        match self {
            Residual::True | Residual::False => 0,
            Residual::Not(inner) => size_of::<Residual>() + inner.pointed(),
            Residual::All(parts) | Residual::Any(parts) => {
                let deep = parts.iter().map(Residual::pointed).sum::<usize>();
                parts.capacity() * size_of::<Residual>() + deep
            }
            Residual::Cmp(_, left, right) => left.pointed() + right.pointed(),
        }
    }

    pub fn each_val(&self, seen: &mut dyn FnMut(Val)) {
        match self {
            Residual::True | Residual::False => {}
            Residual::Not(inner) => inner.each_val(seen),
            Residual::All(parts) | Residual::Any(parts) => {
                for part in parts {
                    part.each_val(seen);
                }
            }
            Residual::Cmp(_, l, r) => {
                l.each_val(seen);
                r.each_val(seen);
            }
        }
    }
}
