//! The rows of one cell that others have too, or do not have, kept up to date as any of them gets new ones.
//!
//! `exists u. formerly A{x: u} && formerly B{x: u} && !formerly C{x: u}` asks whether any `u` is in the first two
//! and not in the third. Found out at the decision, that takes as long as one of them has rows; so what holds is
//! kept, for each value of the columns a leaf asks by in the order in which it ends. The first answers, and where
//! a leaf counts or adds up, their number or their sum.

use super::formula::{CellDef, CellOp, Node, Other, Use};
use super::index::{Key, select};
use super::keyed::{Flat, Keyed};
use super::row::clamp;
use super::solve::Moment;
use super::store::{Times, in_window};
use super::table::{Found, Table};
use super::value::Val;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::mem::size_of;

/// The values of columns, as far as they are known.
type Known = SmallVec<[Option<Val>; 4]>;

#[derive(Clone, Debug)]
pub(crate) struct Joint {
    /// The columns by which leaves ask, a bit each.
    group: u64,
    /// The column that is added up.
    summed: Option<usize>,
    pairs: Keyed<Flat, Pair>,
    /// The values of those columns.
    groups: Keyed<Flat, Group>,
    /// The sum of each group, by its number; nothing where nothing is added up.
    sums: Vec<i128>,
    /// By group, what holds unless time has passed, in the order in which it ends.
    order: BTreeSet<(u32, i64, u32)>,
    /// What a negated cell hides, by the second from which it does not.
    hidden: BTreeSet<(i64, u32)>,
    /// When each pair may have ended: one entry a pair.
    deadlines: BinaryHeap<Reverse<(i64, u32)>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    group: u32,
    span: Span,
}

/// The seconds during which a pair holds if nothing else happens, and whether it is in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Span {
    from: i64,
    until: i64,
    shown: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Group {
    pairs: u32,
    shown: u32,
}

pub(crate) type SavedPair = (Vec<Val>, Span);

/// One of the cells: the latest times of rows that leave nothing open.
struct Side<'m> {
    cell: &'m Use,
    def: &'m CellDef,
    table: &'m Table,
}

impl<'m> Side<'m> {
    fn new(node: &'m Node, moment: &Moment<'m>) -> Option<Side<'m>> {
        let Node::Cell(cell) = node else { return None };
        let def = moment.defs.get(cell.cell)?;
        let CellOp::Formerly(_) = &def.op else {
            return None;
        };
        let table = moment.states.get(cell.cell)?.table()?;
        Some(Side { cell, def, table })
    }

    fn until(&self, times: &Times) -> i64 {
        times.newest().saturating_add(self.cell.window)
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

    fn holds(&self, pair: &[Val], now: i64) -> bool {
        let inside = |times: &Times| {
            let mut points = times.iter();
            points.any(|at| in_window(at.time, now, self.cell.window))
        };
        self.times(pair).is_some_and(inside)
    }
}

/// All of the cells.
struct Sides<'m> {
    left: Side<'m>,
    others: SmallVec<[(Side<'m>, bool); 4]>,
}

impl<'m> Sides<'m> {
    fn new(left: &'m Node, others: &'m [Other], moment: &Moment<'m>) -> Option<Sides<'m>> {
        let others = others.iter();
        let others = others.map(|other| Some((Side::new(&other.node, moment)?, other.negated)));
        Some(Sides {
            left: Side::new(left, moment)?,
            others: others.collect::<Option<_>>()?,
        })
    }

    fn hold(&self, pair: &[Val], now: i64) -> bool {
        let mut others = self.others.iter();
        self.left.holds(pair, now)
            && others.all(|(side, negated)| side.holds(pair, now) != *negated)
    }

    /// From when until when a pair holds if nothing else happens; nothing where it does not.
    fn span(&self, pair: &[Val]) -> Option<(i64, i64)> {
        let mut until = self.left.until(self.left.times(pair)?);
        let mut from = i64::MIN;
        for (side, negated) in &self.others {
            match (side.times(pair), negated) {
                (Some(times), false) => until = until.min(side.until(times)),
                (None, false) => return None,
                (Some(times), true) => from = from.max(side.until(times).saturating_add(1)),
                (None, true) => {}
            }
        }
        Some((from, until))
    }
}

impl Joint {
    pub fn new(columns: usize, group: u64, summed: Option<usize>) -> Joint {
        Joint {
            group,
            summed,
            sums: Vec::new(),
            pairs: Keyed::new(Flat::new(columns)),
            groups: Keyed::new(Flat::new(group.count_ones() as usize)),
            order: BTreeSet::new(),
            hidden: BTreeSet::new(),
            deadlines: BinaryHeap::new(),
        }
    }

    /// Takes in what the last event added to any of the cells, which are up to date.
    pub fn update(&mut self, left: &Node, others: &[Other], moment: &Moment<'_>) {
        let Some(sides) = Sides::new(left, others, moment) else {
            return;
        };
        let now = moment.at.time;
        if !moment.late {
            self.reveal(now);
        }
        let left = &sides.left;
        // The columns of a pair are those of the left side.
        for (pair, _) in left.table.fresh(moment.at.pos) {
            self.note(pair, &sides, now);
        }
        for (side, _) in &sides.others {
            for (row, _) in side.table.fresh(moment.at.pos) {
                let mut known: Known = smallvec::smallvec![None; left.def.columns.len()];
                for (column, val) in side.def.columns.iter().zip(row) {
                    let place = side.cell.outer(*column);
                    if let Some(place) = place.and_then(|place| known.get_mut(place as usize)) {
                        *place = Some(*val);
                    }
                }
                left.table.find(&known, false, |found| {
                    if let Found::Plain(pair, _) = found {
                        self.note(pair, &sides, now);
                    }
                    false
                });
            }
        }
    }

    fn note(&mut self, vals: &[Val], sides: &Sides<'_>, now: i64) {
        if let Some((from, until)) = sides.span(vals) {
            let shown = from <= now;
            self.put(vals, Span { from, until, shown });
        }
    }

    fn put(&mut self, vals: &[Val], span: Span) {
        if let Some(id) = self.pairs.find(vals) {
            self.take_out(id);
            if let Some(pair) = self.pairs.get_mut(id) {
                pair.span = span;
            }
            return self.put_in(id);
        }
        let key = select(vals, self.group);
        let group = match self.groups.find(&key) {
            Some(group) => group,
            None => self.groups.insert(&key, Group::default()),
        };
        if let Some(group) = self.groups.get_mut(group) {
            group.pairs += 1;
        }
        let id = self.pairs.insert(vals, Pair { group, span });
        self.put_in(id);
        self.deadlines.push(Reverse((span.until, id)));
    }

    fn put_in(&mut self, id: u32) {
        let Some(Pair { group, span }) = self.pairs.get(id).copied() else {
            return;
        };
        if !span.shown {
            self.hidden.insert((span.from, id));
            return;
        }
        self.order.insert((group, span.until, id));
        self.add(group, self.share(id));
        if let Some(group) = self.groups.get_mut(group) {
            group.shown += 1;
        }
    }

    fn take_out(&mut self, id: u32) {
        let Some(Pair { group, span }) = self.pairs.get(id).copied() else {
            return;
        };
        if !span.shown {
            self.hidden.remove(&(span.from, id));
            return;
        }
        self.order.remove(&(group, span.until, id));
        self.add(group, -self.share(id));
        if let Some(group) = self.groups.get_mut(group) {
            group.shown = group.shown.saturating_sub(1);
        }
    }

    /// What a pair adds to the sum of its group.
    fn share(&self, id: u32) -> i128 {
        let pair = self.pairs.key(id).unwrap_or(&[]);
        match self.summed.and_then(|column| pair.get(column)) {
            Some(Val::Int(n)) => i128::from(*n),
            _ => 0,
        }
    }

    fn add(&mut self, group: u32, share: i128) {
        if self.summed.is_none() {
            return;
        }
        let group = group as usize;
        if self.sums.len() <= group {
            self.sums.resize(group + 1, 0);
        }
        if let Some(sum) = self.sums.get_mut(group) {
            *sum += share;
        }
    }

    /// Puts what is hidden no more in its place.
    fn reveal(&mut self, now: i64) {
        while let Some(&(from, id)) = self.hidden.first()
            && from <= now
        {
            self.take_out(id);
            if let Some(pair) = self.pairs.get_mut(id) {
                pair.span.shown = true;
            }
            self.put_in(id);
        }
    }

    /// The pairs that hold now and agree with what is known, those that end last first, until told to stop.
    pub fn find(
        &self,
        left: &Node,
        others: &[Other],
        moment: &Moment<'_>,
        known: &[Option<Val>],
        mut visit: impl FnMut(&[Val]) -> bool,
    ) -> bool {
        let Some(sides) = Sides::new(left, others, moment) else {
            return false;
        };
        let now = moment.at.time;
        let mut ask = |id: u32| {
            let Some(pair) = self.pairs.key(id) else {
                return false;
            };
            let mut columns = pair.iter().zip(known);
            columns.all(|(val, known)| known.is_none_or(|known| known == *val))
                && sides.hold(pair, now)
                && visit(pair)
        };
        // To an event that comes late some rows have not happened yet.
        let Some(key) = self.group_of(known).filter(|_| !moment.late) else {
            return self.pairs.ids().any(ask);
        };
        let Some(group) = self.groups.find(&key) else {
            return false;
        };
        let shown = self
            .order
            .range((group, now, 0)..=(group, i64::MAX, u32::MAX));
        shown.rev().any(|(.., id)| ask(*id)) || self.revealed(group, now).any(ask)
    }

    /// How many pairs hold now that agree with what is known, or their sum: the columns asked by, and no others.
    pub fn total(
        &self,
        left: &Node,
        others: &[Other],
        moment: &Moment<'_>,
        known: &[Option<Val>],
    ) -> i64 {
        let now = moment.at.time;
        let asked = known.iter().flatten().count() == self.group.count_ones() as usize;
        let key = self
            .group_of(known)
            .filter(|_| asked && !moment.late && Sides::new(left, others, moment).is_some());
        let Some(key) = key else {
            let mut total = 0;
            self.find(left, others, moment, known, |pair| {
                total += match self.summed {
                    None => 1,
                    Some(column) => match pair.get(column) {
                        Some(Val::Int(n)) => i128::from(*n),
                        _ => 0,
                    },
                };
                false
            });
            return clamp(total);
        };
        let Some(group) = self.groups.find(&key) else {
            return 0;
        };
        let each = |id: u32| match self.summed {
            None => 1,
            Some(_) => self.share(id),
        };
        let shown = match self.summed {
            None => self.groups.get(group).map_or(0, |group| group.shown.into()),
            Some(_) => self.sums.get(group as usize).copied().unwrap_or(0),
        };
        let over = self.order.range((group, i64::MIN, 0)..(group, now, 0));
        let over: i128 = over.map(|(.., id)| each(*id)).sum();
        let revealed = self.revealed(group, now).filter(|id| {
            let pair = self.pairs.get(*id);
            pair.is_some_and(|pair| pair.span.until >= now)
        });
        clamp(shown + revealed.map(each).sum::<i128>() - over)
    }

    /// What is hidden no more and not in its place yet.
    fn revealed(&self, group: u32, now: i64) -> impl Iterator<Item = u32> + '_ {
        let hidden = self.hidden.range(..=(now, u32::MAX));
        let ids = hidden.map(|(_, id)| *id);
        ids.filter(move |id| self.pairs.get(*id).is_some_and(|pair| pair.group == group))
    }

    /// The values of the columns asked by, if they are known.
    fn group_of(&self, known: &[Option<Val>]) -> Option<Key> {
        let columns = known.iter().enumerate().take(64);
        let asked = columns.filter(|(at, _)| self.group & (1 << at) != 0);
        asked.map(|(_, val)| *val).collect()
    }

    pub fn expire(&mut self, floor: i64) {
        self.reveal(floor);
        while let Some(&Reverse((until, id))) = self.deadlines.peek()
            && until < floor
        {
            self.deadlines.pop();
            let Some(pair) = self.pairs.get(id).copied() else {
                continue;
            };
            if pair.span.until >= floor {
                self.deadlines.push(Reverse((pair.span.until, id)));
                continue;
            }
            self.take_out(id);
            self.pairs.remove(id);
            if let Some(group) = self.groups.get_mut(pair.group) {
                group.pairs = group.pairs.saturating_sub(1);
                if group.pairs == 0 {
                    self.groups.remove(pair.group);
                }
            }
        }
        if self.pairs.is_sparse() {
            let saved = self.saved();
            *self = Joint::new(self.pairs.width(), self.group, self.summed);
            saved.iter().for_each(|(vals, span)| self.put(vals, *span));
        }
    }

    /// The clock after which a pair may have ended, or is hidden no more.
    pub fn deadline(&self) -> Option<i64> {
        let ends = self.deadlines.peek().map(|Reverse((until, _))| *until);
        let shows = self.hidden.first().map(|(from, _)| from.saturating_sub(1));
        ends.into_iter().chain(shows).min()
    }

    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    pub fn bytes(&self) -> usize {
        // A node of an ordered set is between half and wholly full.
        self.pairs.bytes()
            + self.groups.bytes()
            + self.order.len() * size_of::<(u32, i64, u32)>() * 3 / 2
            + self.sums.capacity() * size_of::<i128>()
            + self.hidden.len() * size_of::<(i64, u32)>() * 3 / 2
            + self.deadlines.capacity() * size_of::<Reverse<(i64, u32)>>()
    }

    pub fn each_val(&self, seen: &mut dyn FnMut(Val)) {
        for pair in self.pairs.ids().filter_map(|id| self.pairs.key(id)) {
            pair.iter().for_each(|val| seen(*val));
        }
    }

    pub fn saved(&self) -> Vec<SavedPair> {
        let pairs = self.pairs.ids();
        pairs
            .filter_map(|id| Some((self.pairs.key(id)?.to_vec(), self.pairs.get(id)?.span)))
            .collect()
    }

    /// Takes saved pairs in. Nothing, where they do not fit.
    pub fn restore(&mut self, saved: Vec<SavedPair>, columns: usize) -> Option<()> {
        for (vals, span) in saved {
            if vals.len() != columns {
                return None;
            }
            self.put(&vals, span);
        }
        Some(())
    }
}
