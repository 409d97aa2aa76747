//! Counts and sums over a window, per key, without looking at the rows again.

use super::formula::CellDef;
use super::keyed::{Ends, Flat, Keyed, Linked, Links, NONE, grow};
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
    keys: Keyed<Flat, Count>,
    items: Items,
    /// When each key has something to drop: one entry a key.
    deadlines: BinaryHeap<Reverse<(i64, u32)>>,
}

/// What the windows of all keys hold.
#[derive(Clone, Debug)]
enum Items {
    /// Each event is a row of its own.
    Points {
        points: Vec<Point>,
        free: u32,
        held: usize,
    },
    /// Equal rows are one: found by the key and the values counted.
    Rows(Keyed<Flat, Counted>),
}

/// The window of one key: its items by their (latest) stamp.
#[derive(Clone, Debug, Default)]
struct Count {
    ends: Ends,
    len: u32,
    total: i128,
}

#[derive(Clone, Debug)]
struct Point {
    time: i64,
    summand: i64,
    links: Links,
}

#[derive(Clone, Debug, Default)]
struct Counted {
    times: Times,
    links: Links,
}

impl Linked for Items {
    fn links(&self, id: u32) -> Links {
        let links = match self {
            Items::Points { points, .. } => points.get(id as usize).map(|point| point.links),
            Items::Rows(rows) => rows.get(id).map(|row| row.links),
        };
        links.unwrap_or_default()
    }

    fn links_mut(&mut self, id: u32) -> Option<&mut Links> {
        match self {
            Items::Points { points, .. } => {
                points.get_mut(id as usize).map(|point| &mut point.links)
            }
            Items::Rows(rows) => rows.get_mut(id).map(|row| &mut row.links),
        }
    }
}

impl Items {
    /// The latest stamp of an item.
    fn stamp(&self, id: u32) -> Option<i64> {
        match self {
            Items::Points { points, .. } => Some(points.get(id as usize)?.time),
            Items::Rows(rows) => Some(rows.get(id)?.times.newest()),
        }
    }

    fn in_window(&self, id: u32, now: i64, window: i64) -> bool {
        match self {
            Items::Points { points, .. } => points
                .get(id as usize)
                .is_some_and(|point| in_window(point.time, now, window)),
            Items::Rows(rows) => rows
                .get(id)
                .is_some_and(|row| row.times.iter().any(|at| in_window(at.time, now, window))),
        }
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
        let width = keyed.len() + counted.len();
        Counts {
            keys: Keyed::new(Flat::new(keyed.len())),
            keyed,
            counted: counted.to_vec(),
            sum,
            items: if by_time_point {
                Items::Points {
                    points: Vec::new(),
                    free: NONE,
                    held: 0,
                }
            } else {
                Items::Rows(Keyed::new(Flat::new(width)))
            },
            deadlines: BinaryHeap::new(),
        }
    }

    /// The columns of a row as it is taken in: those that select, then those counted.
    pub fn columns(&self) -> impl Iterator<Item = Slot> + '_ {
        self.keyed.iter().chain(&self.counted).copied()
    }

    pub fn insert(&mut self, vals: &[Val], at: At, floor: i64) {
        match self.items {
            Items::Points { .. } => {
                let summand = self.summand(vals);
                let key = vals.get(..self.keyed.len()).unwrap_or(&[]);
                self.insert_point(key, at.time, summand);
            }
            Items::Rows(_) => self.insert_row(vals, at, floor),
        }
    }

    fn insert_point(&mut self, key: &[Val], time: i64, summand: i64) {
        let Items::Points { points, free, held } = &mut self.items else {
            return;
        };
        let point = Point {
            time,
            summand,
            links: Links::default(),
        };
        *held += 1;
        let id = *free;
        let id = match points.get_mut(id as usize) {
            Some(place) => {
                *free = place.links.next;
                *place = point;
                id
            }
            None => {
                grow(points, 1);
                points.push(point);
                u32::try_from(points.len() - 1).unwrap_or(NONE)
            }
        };
        self.link(key, id, time, i128::from(summand));
    }

    fn insert_row(&mut self, vals: &[Val], at: At, floor: i64) {
        let summand = i128::from(self.summand(vals));
        let (key, _) = vals.split_at_checked(self.keyed.len()).unwrap_or_default();
        let Items::Rows(rows) = &mut self.items else {
            return;
        };
        let Some(id) = rows.find(vals) else {
            let counted = Counted {
                times: Times::new(at),
                links: Links::default(),
            };
            let id = rows.insert(vals, counted);
            return self.link(key, id, at.time, summand);
        };
        let Some(row) = rows.get_mut(id) else { return };
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

    fn summand(&self, vals: &[Val]) -> i64 {
        let column = self
            .sum
            .and_then(|column| self.keyed.len().checked_add(column));
        match column.and_then(|column| vals.get(column)) {
            Some(Val::Int(n)) => *n,
            _ => 0,
        }
    }

    fn summand_of(&self, id: u32) -> i128 {
        i128::from(match &self.items {
            Items::Points { points, .. } => {
                points.get(id as usize).map_or(0, |point| point.summand)
            }
            Items::Rows(rows) => rows.key(id).map_or(0, |vals| self.summand(vals)),
        })
    }

    /// The count or sum of a key in the window that ends at `now`. Only where stamps step back is something
    /// held that the window does not reach, and taken off again here.
    pub fn value(&self, key: &[Val], now: i64, window: i64) -> i64 {
        let count = self.keys.find(key).and_then(|id| self.keys.get(id));
        let Some(count) = count else { return 0 };
        let (mut len, mut total) = (i64::from(count.len), count.total);
        let start = now.saturating_sub(window);
        let mut leave = |id: u32| {
            len -= 1;
            total -= self.summand_of(id);
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
        match self.sum {
            None => len,
            Some(_) => clamp(total),
        }
    }

    /// The stamps of what the window of this key holds now, oldest first.
    pub fn times(&self, key: &[Val], now: i64, window: i64) -> Vec<i64> {
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

    pub fn expire(&mut self, limit: i64) {
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
                count.total -= self.summand_of(id);
                count.ends.remove(&mut self.items, id);
                self.drop_item(id);
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
        self.give_back();
    }

    fn drop_item(&mut self, id: u32) {
        match &mut self.items {
            Items::Points { points, free, held } => {
                if let Some(point) = points.get_mut(id as usize) {
                    *held = held.saturating_sub(1);
                    point.links.next = *free;
                    *free = id;
                }
            }
            Items::Rows(rows) => {
                rows.remove(id);
            }
        }
    }

    /// After many items have gone, lets go of their places.
    fn give_back(&mut self) {
        let sparse = match &self.items {
            Items::Points { points, held, .. } => points.len() > 1024 && held * 8 < points.len(),
            Items::Rows(rows) => rows.is_sparse(),
        };
        if !sparse && !self.keys.is_sparse() {
            return;
        }
        let saved = self.saved();
        self.keys.clear();
        self.deadlines = BinaryHeap::new();
        match &mut self.items {
            Items::Points { points, free, held } => {
                (*points, *free, *held) = (Vec::new(), NONE, 0);
            }
            Items::Rows(rows) => rows.clear(),
        }
        // What was in a window fits it.
        let _ = self.restore(saved);
    }

    pub fn oldest(&self) -> Option<i64> {
        self.deadlines.peek().map(|Reverse((time, _))| *time)
    }

    pub fn len(&self) -> usize {
        let counts = self.keys.ids().filter_map(|id| self.keys.get(id));
        counts.map(|count| count.len as usize).sum()
    }

    pub fn bytes(&self) -> usize {
        let items = match &self.items {
            Items::Points { points, .. } => points.capacity() * size_of::<Point>(),
            Items::Rows(rows) => {
                let counted = rows.ids().filter_map(|id| rows.get(id));
                rows.bytes() + counted.map(|row| row.times.bytes()).sum::<usize>()
            }
        };
        items + self.keys.bytes() + self.deadlines.capacity() * size_of::<Reverse<(i64, u32)>>()
    }

    pub fn saved(&self) -> Vec<(SavedKey, SavedCount)> {
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
            let items = match &self.items {
                Items::Points { points, .. } => {
                    let points = items.filter_map(|id| points.get(id as usize));
                    SavedCount::Points(points.map(|point| (point.time, point.summand)).collect())
                }
                Items::Rows(rows) => {
                    let rows = items.filter_map(|id| Some((rows.key(id)?, rows.get(id)?)));
                    let rows = rows.map(|(vals, row)| {
                        let counted = vals.iter().skip(self.keyed.len()).copied();
                        (counted.collect(), row.times.iter().copied().collect())
                    });
                    SavedCount::Rows(rows.collect())
                }
            };
            saved.push((key.to_vec(), items));
        }
        saved
    }

    /// Takes saved counts in. Nothing, where they do not fit.
    pub fn restore(&mut self, saved: Vec<(SavedKey, SavedCount)>) -> Option<()> {
        for (key, count) in saved {
            if key.len() != self.keyed.len() {
                return None;
            }
            match (count, &self.items) {
                (SavedCount::Points(points), Items::Points { .. }) => {
                    for (time, summand) in points {
                        self.insert_point(&key, time, summand);
                    }
                }
                (SavedCount::Rows(rows), Items::Rows(_)) => {
                    for (counted, times) in rows {
                        if counted.len() != self.counted.len() {
                            return None;
                        }
                        let vals = [key.as_slice(), &counted].concat();
                        for at in times {
                            self.insert_row(&vals, at, i64::MIN);
                        }
                    }
                }
                _ => return None,
            }
        }
        Some(())
    }

    pub fn each_val(&self, seen: &mut dyn FnMut(Val)) {
        for key in self.keys.ids().filter_map(|id| self.keys.key(id)) {
            key.iter().for_each(|val| seen(*val));
        }
        if let Items::Rows(rows) = &self.items {
            for vals in rows.ids().filter_map(|id| rows.key(id)) {
                vals.iter().for_each(|val| seen(*val));
            }
        }
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
