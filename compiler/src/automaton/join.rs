//! The rows that two cells have in common, kept up to date as either gets new ones.
//!
//! `exists u. formerly A{x: u} && formerly B{x: u}` asks whether any `u` is in both. Found out at the
//! decision, that takes as long as one of them has rows; so the pairs are kept, for each value of the columns
//! a leaf asks by in the order in which they end. The first of them answers.

use super::cell::key_of;
use super::formula::{CellDef, CellOp, Node, Use};
use super::index::{Key, select};
use super::keyed::{Flat, Keyed};
use super::solve::Moment;
use super::store::{Times, in_window};
use super::table::{Found, Table};
use super::value::Val;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::mem::size_of;

/// The values of columns, as far as they are known.
type Known = smallvec::SmallVec<[Option<Val>; 4]>;

#[derive(Clone, Debug)]
pub(crate) struct Joint {
    /// The columns by which leaves ask, a bit each.
    group: u64,
    pairs: Keyed<Flat, Pair>,
    /// The values of those columns, and how many pairs have them.
    groups: Keyed<Flat, u32>,
    /// By group, the pairs in the order in which they end.
    order: BTreeSet<(u32, i64, u32)>,
    /// When each pair may have ended: one entry a pair.
    deadlines: BinaryHeap<Reverse<(i64, u32)>>,
}

#[derive(Clone, Debug, Default)]
struct Pair {
    group: u32,
    /// The last second at which it can hold.
    until: i64,
}

/// One of the two cells: `Formerly` over a flat body.
struct Side<'m> {
    cell: &'m Use,
    def: &'m CellDef,
    body: &'m Node,
    table: &'m Table,
}

impl<'m> Side<'m> {
    fn new(node: &'m Node, moment: &Moment<'m>) -> Option<Side<'m>> {
        let Node::Cell(cell) = node else { return None };
        let def = moment.defs.get(cell.cell)?;
        let CellOp::Formerly(body) = &def.op else {
            return None;
        };
        let table = moment.states.get(cell.cell)?.table()?;
        Some(Side {
            cell,
            def,
            body,
            table,
        })
    }

    fn until(&self, times: &Times) -> i64 {
        times.newest().saturating_add(self.def.window)
    }

    /// The rows of the last event.
    fn new_rows(&self, moment: &Moment<'_>) -> impl Iterator<Item = Key> {
        let rows = moment.rows(self.body, self.def.width).into_iter();
        rows.filter_map(|row| key_of(&row, &self.def.columns))
    }

    /// Its key in a pair.
    fn key(&self, pair: &[Val]) -> Option<Key> {
        let columns = self.def.columns.iter();
        columns
            .map(|column| pair.get(self.cell.outer(*column)? as usize).copied())
            .collect()
    }

    fn times(&self, pair: &[Val]) -> Option<&'m Times> {
        self.table.times(&self.key(pair)?)
    }
}

impl Joint {
    pub fn new(columns: usize, group: u64) -> Joint {
        Joint {
            group,
            pairs: Keyed::new(Flat::new(columns)),
            groups: Keyed::new(Flat::new(group.count_ones() as usize)),
            order: BTreeSet::new(),
            deadlines: BinaryHeap::new(),
        }
    }

    /// Takes in what the last event added to either side, which are up to date.
    pub fn update(&mut self, left: &Node, right: &Node, moment: &Moment<'_>) {
        let (Some(left), Some(right)) = (Side::new(left, moment), Side::new(right, moment)) else {
            return;
        };
        // The columns of a pair are those of the left side.
        for pair in left.new_rows(moment) {
            if let (Some(l), Some(r)) = (left.table.times(&pair), right.times(&pair)) {
                self.note(&pair, left.until(l).min(right.until(r)));
            }
        }
        for row in right.new_rows(moment) {
            let Some(times) = right.table.times(&row) else {
                continue;
            };
            let until = right.until(times);
            let mut known: Known = smallvec::smallvec![None; left.def.columns.len()];
            for (column, val) in right.def.columns.iter().zip(&row) {
                let place = right.cell.outer(*column);
                if let Some(place) = place.and_then(|place| known.get_mut(place as usize)) {
                    *place = Some(*val);
                }
            }
            left.table.find(&known, false, |found| {
                if let Found::Plain(pair, times) = found {
                    self.note(pair, left.until(times).min(until));
                }
                false
            });
        }
    }

    fn note(&mut self, vals: &[Val], until: i64) {
        if let Some(id) = self.pairs.find(vals) {
            if let Some(pair) = self.pairs.get_mut(id)
                && pair.until != until
            {
                self.order.remove(&(pair.group, pair.until, id));
                pair.until = until;
                self.order.insert((pair.group, until, id));
            }
            return;
        }
        let key = select(vals, self.group);
        let group = match self.groups.find(&key) {
            Some(group) => group,
            None => self.groups.insert(&key, 0),
        };
        if let Some(pairs) = self.groups.get_mut(group) {
            *pairs += 1;
        }
        let id = self.pairs.insert(vals, Pair { group, until });
        self.order.insert((group, until, id));
        self.deadlines.push(Reverse((until, id)));
    }

    /// The pairs that hold now and agree with what is known, those that end last first, until told to stop.
    pub fn find(
        &self,
        left: &Node,
        right: &Node,
        moment: &Moment<'_>,
        known: &[Option<Val>],
        mut visit: impl FnMut(&[Val]) -> bool,
    ) -> bool {
        let (Some(left), Some(right)) = (Side::new(left, moment), Side::new(right, moment)) else {
            return false;
        };
        let now = moment.at.time;
        let holds = |side: &Side<'_>, pair: &[Val]| {
            let inside = |times: &Times| {
                times
                    .iter()
                    .any(|at| in_window(at.time, now, side.def.window))
            };
            side.times(pair).is_some_and(inside)
        };
        let mut ask = |id: u32| {
            let Some(pair) = self.pairs.key(id) else {
                return false;
            };
            let mut columns = pair.iter().zip(known);
            columns.all(|(val, known)| known.is_none_or(|known| known == *val))
                && holds(&left, pair)
                && holds(&right, pair)
                && visit(pair)
        };
        let mut group = Key::new();
        for (at, val) in known.iter().enumerate().take(64) {
            if self.group & (1 << at) != 0 {
                match val {
                    Some(val) => group.push(*val),
                    None => return self.pairs.ids().any(ask),
                }
            }
        }
        let Some(group) = self.groups.find(&group) else {
            return false;
        };
        let pairs = self
            .order
            .range((group, now, 0)..=(group, i64::MAX, u32::MAX));
        pairs.rev().any(|(.., id)| ask(*id))
    }

    pub fn expire(&mut self, floor: i64) {
        while let Some(&Reverse((until, id))) = self.deadlines.peek()
            && until < floor
        {
            self.deadlines.pop();
            let Some(pair) = self.pairs.get(id) else {
                continue;
            };
            if pair.until >= floor {
                self.deadlines.push(Reverse((pair.until, id)));
                continue;
            }
            let Pair { group, until } = *pair;
            self.order.remove(&(group, until, id));
            self.pairs.remove(id);
            if let Some(pairs) = self.groups.get_mut(group) {
                *pairs = pairs.saturating_sub(1);
                if *pairs == 0 {
                    self.groups.remove(group);
                }
            }
        }
        if self.pairs.is_sparse() {
            let old = self.saved();
            self.pairs.clear();
            self.groups.clear();
            self.order = BTreeSet::new();
            self.deadlines = BinaryHeap::new();
            old.iter().for_each(|(vals, until)| self.note(vals, *until));
        }
    }

    /// The clock after which a pair may have ended.
    pub fn deadline(&self) -> Option<i64> {
        self.deadlines.peek().map(|Reverse((until, _))| *until)
    }

    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    pub fn bytes(&self) -> usize {
        // A node of the ordered set is between half and wholly full.
        self.pairs.bytes()
            + self.groups.bytes()
            + self.order.len() * size_of::<(u32, i64, u32)>() * 3 / 2
            + self.deadlines.capacity() * size_of::<Reverse<(i64, u32)>>()
    }

    pub fn each_val(&self, seen: &mut dyn FnMut(Val)) {
        for pair in self.pairs.ids().filter_map(|id| self.pairs.key(id)) {
            pair.iter().for_each(|val| seen(*val));
        }
    }

    pub fn saved(&self) -> Vec<(Vec<Val>, i64)> {
        let pairs = self.pairs.ids();
        pairs
            .filter_map(|id| Some((self.pairs.key(id)?.to_vec(), self.pairs.get(id)?.until)))
            .collect()
    }

    /// Takes saved pairs in. Nothing, where they do not fit.
    pub fn restore(&mut self, saved: Vec<(Vec<Val>, i64)>, columns: usize) -> Option<()> {
        for (vals, until) in saved {
            if vals.len() != columns {
                return None;
            }
            self.note(&vals, until);
        }
        Some(())
    }
}
