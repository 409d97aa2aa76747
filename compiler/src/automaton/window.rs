//! Counts and sums over a window, per key, without looking at the rows again.

use super::formula::CellDef;
use super::keyed::{Ends, Flat, Keyed, Linked, Links, NONE};
use super::points::Points;
use super::row::{Slot, clamp};
use super::saved::{SavedCount, SavedKey};
use super::store::{At, Times, in_window};
use super::value::Val;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem::size_of;

#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// Columns that select, in the order of the cell's columns.
    pub keyed: Vec<Slot>,
    counted: Vec<Slot>,
    sum: Option<usize>,
    held: Held,
}

/// What the windows of all keys hold.
#[derive(Clone, Debug)]
enum Held {
    /// Each event is a row of its own.
    Points(Points),
    /// Equal rows are one.
    Rows(Rows),
}

#[derive(Clone, Debug)]
struct Rows {
    keys: Keyed<Flat, Count>,
    /// By the key and the values counted.
    items: Items,
    /// When each key has something to drop: one entry a key.
    deadlines: BinaryHeap<Reverse<(i64, u32)>>,
}

type Items = Keyed<Flat, Counted>;

/// The window of one key: its items by their (latest) stamp.
#[derive(Clone, Debug, Default)]
struct Count {
    ends: Ends,
    len: u32,
    total: i128,
}

#[derive(Clone, Debug, Default)]
struct Counted {
    times: Times,
    links: Links,
}

impl Linked for Items {
    fn links(&self, id: u32) -> Links {
        self.get(id).map(|row| row.links).unwrap_or_default()
    }

    fn links_mut(&mut self, id: u32) -> Option<&mut Links> {
        self.get_mut(id).map(|row| &mut row.links)
    }
}

impl Items {
    /// The latest stamp of an item.
    fn stamp(&self, id: u32) -> Option<i64> {
        Some(self.get(id)?.times.newest())
    }

    fn in_window(&self, id: u32, now: i64, window: i64) -> bool {
        let row = self.get(id);
        row.is_some_and(|row| row.times.iter().any(|at| in_window(at.time, now, window)))
    }
}

impl Counts {
    pub fn new(def: &CellDef, counted: &[Slot], sum: Option<usize>, by_time_point: bool) -> Counts {
        let keyed = def
            .columns
            .iter()
            .copied()
            .filter(|column| !counted.contains(column));
        let keyed: Vec<Slot> = keyed.collect();
        Counts {
            held: if by_time_point {
                Held::Points(Points::new(keyed.len(), sum.is_some()))
            } else {
                Held::Rows(Rows::new(keyed.len(), counted.len()))
            },
            keyed,
            counted: counted.to_vec(),
            sum,
        }
    }

    /// The columns of a row as it is taken in: those that select, then those counted.
    pub fn columns(&self) -> impl Iterator<Item = Slot> + '_ {
        self.keyed.iter().chain(&self.counted).copied()
    }

    pub fn insert(&mut self, vals: &[Val], at: At, floor: i64) {
        let summand = summand(self.sum, self.keyed.len(), vals);
        match &mut self.held {
            Held::Points(points) => {
                let key = vals.get(..self.keyed.len()).unwrap_or(&[]);
                points.insert(key, at.time, summand);
            }
            Held::Rows(rows) => rows.insert(vals, i128::from(summand), at, floor),
        }
    }

    /// The count or sum of a key in the window that ends at `now`.
    pub fn value(&self, key: &[Val], now: i64, window: i64) -> i64 {
        let (len, total) = match &self.held {
            Held::Points(points) => points.value(key, now, window),
            Held::Rows(rows) => rows.value(self.sum, key, now, window),
        };
        match self.sum {
            None => len,
            Some(_) => clamp(total),
        }
    }

    /// The stamps of what the window of this key holds now, oldest first.
    pub fn times(&self, key: &[Val], now: i64, window: i64) -> Vec<i64> {
        match &self.held {
            Held::Points(points) => points.times(key, now, window),
            Held::Rows(rows) => rows.times(key, now, window),
        }
    }

    /// The stamps held of a key, or of all.
    pub fn each_time(&self, key: Option<&[Val]>, visit: &mut dyn FnMut(i64)) {
        let mut of = |key: &[Val]| {
            let times = self.times(key, i64::MAX, i64::MAX);
            times.into_iter().for_each(&mut *visit);
        };
        match (key, &self.held) {
            (Some(key), _) => of(key),
            (None, Held::Points(points)) => points.iter().for_each(|(key, _)| of(key)),
            (None, Held::Rows(rows)) => {
                let keys = rows.keys.ids().filter_map(|id| rows.keys.key(id));
                keys.for_each(of);
            }
        }
    }

    pub fn expire(&mut self, limit: i64) {
        match &mut self.held {
            Held::Points(points) => points.expire(limit),
            Held::Rows(rows) => {
                rows.expire(self.sum, limit);
                if rows.items.is_sparse() || rows.keys.is_sparse() {
                    // Many items have gone: their places go, too. What was in a window fits it.
                    let saved = self.saved();
                    let fresh = Rows::new(self.keyed.len(), self.counted.len());
                    self.held = Held::Rows(fresh);
                    let _ = self.restore(saved);
                }
            }
        }
    }

    pub fn oldest(&self) -> Option<i64> {
        match &self.held {
            Held::Points(points) => points.oldest(),
            Held::Rows(rows) => rows.deadlines.peek().map(|Reverse((time, _))| *time),
        }
    }

    pub fn len(&self) -> usize {
        match &self.held {
            Held::Points(points) => points.len(),
            Held::Rows(rows) => rows.items.len(),
        }
    }

    pub fn bytes(&self) -> usize {
        match &self.held {
            Held::Points(points) => points.bytes(),
            Held::Rows(rows) => {
                let items = &rows.items;
                let counted = items.ids().filter_map(|id| items.get(id));
                items.bytes()
                    + counted.map(|row| row.times.bytes()).sum::<usize>()
                    + rows.keys.bytes()
                    + rows.deadlines.capacity() * size_of::<Reverse<(i64, u32)>>()
            }
        }
    }

    pub fn saved(&self) -> Vec<(SavedKey, SavedCount)> {
        match &self.held {
            Held::Points(points) => points
                .iter()
                .map(|(key, points)| (key.to_vec(), SavedCount::Points(points)))
                .collect(),
            Held::Rows(rows) => rows.saved(),
        }
    }

    /// Takes saved counts in. Nothing, where they do not fit.
    pub fn restore(&mut self, saved: Vec<(SavedKey, SavedCount)>) -> Option<()> {
        for (key, count) in saved {
            if key.len() != self.keyed.len() {
                return None;
            }
            match (count, &mut self.held) {
                (SavedCount::Points(saved), Held::Points(points)) => {
                    for (time, summand) in saved {
                        points.insert(&key, time, summand);
                    }
                }
                (SavedCount::Rows(saved), Held::Rows(rows)) => {
                    for (counted, times) in saved {
                        if counted.len() != self.counted.len() {
                            return None;
                        }
                        let vals = [key.as_slice(), &counted].concat();
                        let summand = summand(self.sum, self.keyed.len(), &vals);
                        for at in times {
                            rows.insert(&vals, i128::from(summand), at, i64::MIN);
                        }
                    }
                }
                _ => return None,
            }
        }
        Some(())
    }

    pub fn each_val(&self, seen: &mut dyn FnMut(Val)) {
        match &self.held {
            Held::Points(points) => points.each_val(seen),
            Held::Rows(rows) => {
                // The key comes first in each.
                let items = rows.items.ids().filter_map(|id| rows.items.key(id));
                items.flatten().for_each(|val| seen(*val));
            }
        }
    }
}

/// What a row adds to the sum, so many columns selecting.
fn summand(sum: Option<usize>, keyed: usize, vals: &[Val]) -> i64 {
    let column = sum.and_then(|column| keyed.checked_add(column));
    match column.and_then(|column| vals.get(column)) {
        Some(Val::Int(n)) => *n,
        _ => 0,
    }
}

impl Rows {
    fn new(keyed: usize, counted: usize) -> Rows {
        Rows {
            keys: Keyed::new(Flat::new(keyed)),
            items: Keyed::new(Flat::new(keyed + counted)),
            deadlines: BinaryHeap::new(),
        }
    }

    fn insert(&mut self, vals: &[Val], summand: i128, at: At, floor: i64) {
        let keyed = self.keys.width();
        let (key, _) = vals.split_at_checked(keyed).unwrap_or_default();
        let Some(id) = self.items.find(vals) else {
            let counted = Counted {
                times: Times::new(at),
                links: Links::default(),
            };
            let id = self.items.insert(vals, counted);
            return self.link(key, id, at.time, summand);
        };
        let Some(row) = self.items.get_mut(id) else {
            return;
        };
        row.times.note(at, floor);
        let newest = row.times.newest();
        if let Some(count) = self.keys.find(key).and_then(|key| self.keys.get_mut(key)) {
            count.ends.remove(&mut self.items, id);
            count.place(&mut self.items, id, newest);
        }
    }

    /// Puts an item into the window of its key.
    fn link(&mut self, key: &[Val], id: u32, time: i64, summand: i128) {
        let number = match self.keys.find(key) {
            Some(number) => number,
            None => {
                let number = self.keys.insert(key, Count::default());
                self.deadlines.push(Reverse((time, number)));
                number
            }
        };
        if let Some(count) = self.keys.get_mut(number) {
            count.place(&mut self.items, id, time);
            count.len += 1;
            count.total += summand;
        }
    }

    fn summand_of(&self, sum: Option<usize>, id: u32) -> i128 {
        let vals = self.items.key(id).unwrap_or(&[]);
        i128::from(summand(sum, self.keys.width(), vals))
    }

    /// Only where stamps step back is something held that the window does not reach, and taken off again here.
    fn value(&self, sum: Option<usize>, key: &[Val], now: i64, window: i64) -> (i64, i128) {
        let count = self.keys.find(key).and_then(|id| self.keys.get(id));
        let Some(count) = count else { return (0, 0) };
        let (mut len, mut total) = (i64::from(count.len), count.total);
        let start = now.saturating_sub(window);
        let mut leave = |id: u32| {
            len -= 1;
            total -= self.summand_of(sum, id);
        };
        let mut at = count.ends.first;
        while let Some(stamp) = self.items.stamp(at)
            && stamp < start
        {
            leave(at);
            at = self.items.links(at).next;
        }
        let mut at = count.ends.last;
        while let Some(stamp) = self.items.stamp(at)
            && stamp > now
        {
            if !self.items.in_window(at, now, window) {
                leave(at);
            }
            at = self.items.links(at).prev;
        }
        (len, total)
    }

    fn times(&self, key: &[Val], now: i64, window: i64) -> Vec<i64> {
        let count = self.keys.find(key).and_then(|id| self.keys.get(id));
        let mut at = count.map_or(NONE, |count| count.ends.first);
        let mut times = Vec::new();
        while let Some(stamp) = self.items.stamp(at) {
            if in_window(stamp, now, window) {
                times.push(stamp);
            }
            at = self.items.links(at).next;
        }
        times
    }

    fn expire(&mut self, sum: Option<usize>, limit: i64) {
        while let Some(&Reverse((time, key))) = self.deadlines.peek()
            && time < limit
        {
            self.deadlines.pop();
            let Some(count) = self.keys.get(key) else {
                continue;
            };
            let mut count = count.clone();
            while let Some(stamp) = self.items.stamp(count.ends.first)
                && stamp < limit
            {
                let id = count.ends.first;
                count.len = count.len.saturating_sub(1);
                count.total -= self.summand_of(sum, id);
                count.ends.remove(&mut self.items, id);
                self.items.remove(id);
            }
            match self.items.stamp(count.ends.first) {
                Some(next) => {
                    self.deadlines.push(Reverse((next, key)));
                    if let Some(place) = self.keys.get_mut(key) {
                        *place = count;
                    }
                }
                None => {
                    self.keys.remove(key);
                }
            }
        }
    }

    fn saved(&self) -> Vec<(SavedKey, SavedCount)> {
        let mut saved = Vec::with_capacity(self.keys.len());
        for id in self.keys.ids() {
            let (Some(key), Some(count)) = (self.keys.key(id), self.keys.get(id)) else {
                continue;
            };
            let mut at = count.ends.first;
            let items = std::iter::from_fn(|| {
                let found = at;
                at = self.items.links(at).next;
                (found != NONE).then_some(found)
            });
            let rows = items.filter_map(|id| Some((self.items.key(id)?, self.items.get(id)?)));
            let rows = rows.map(|(vals, row)| {
                let counted = vals.iter().skip(key.len()).copied();
                (counted.collect(), row.times.iter().copied().collect())
            });
            saved.push((key.to_vec(), SavedCount::Rows(rows.collect())));
        }
        saved
    }
}

impl Count {
    /// Links an item in behind those stamped no later.
    fn place(&mut self, items: &mut Items, id: u32, time: i64) {
        let mut before = self.ends.last;
        while let Some(stamp) = items.stamp(before)
            && stamp > time
        {
            before = items.links(before).prev;
        }
        self.ends.insert_after(items, before, id);
    }
}

#[cfg(test)]
mod tests {
    use super::super::formula::{CellOp, Node};
    use super::*;

    fn counts(by_time_point: bool) -> Counts {
        let def = CellDef {
            op: CellOp::Formerly(Node::Never),
            window: 10,
            width: 2,
            columns: vec![0, 1],
        };
        Counts::new(&def, &[1], Some(0), by_time_point)
    }

    #[test]
    fn a_window_that_was_large_gives_its_places_back_and_counts_on() {
        for by_time_point in [true, false] {
            let mut counts = counts(by_time_point);
            for n in 0..20_000 {
                let at = At { pos: n, time: n };
                counts.insert(&[Val::Int(n % 4), Val::Int(n)], at, n);
            }
            let large = counts.bytes();
            counts.expire(19_900);
            assert_eq!(counts.len(), 100);
            assert!(counts.bytes() * 20 < large);
            let of = |key: i64, from: i64| (from..20_000).filter(|n| n % 4 == key).sum::<i64>();
            for key in 0..4 {
                let value = counts.value(&[Val::Int(key)], 19_999, 99);
                assert_eq!(value, of(key, 19_900));
            }
            counts.expire(19_950);
            let value = counts.value(&[Val::Int(1)], 19_999, 49);
            assert_eq!((counts.len(), value), (50, of(1, 19_950)));
        }
    }

    #[test]
    fn what_lies_outside_a_late_window_is_not_counted() {
        let mut counts = counts(true);
        for (pos, time) in [(0, 100), (1, 110), (2, 104), (3, 112)] {
            counts.insert(&[Val::Int(1), Val::Int(pos)], At { pos, time }, 90);
        }
        let at = |now: i64| counts.value(&[Val::Int(1)], now, 10);
        assert_eq!([at(104), at(110), at(111), at(115)], [2, 3, 3, 4]);
        assert_eq!(counts.times(&[Val::Int(1)], 111, 10), [104, 110]);
    }
}
