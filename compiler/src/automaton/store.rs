//! Rows with the times at which they held, found by key and dropped in the order of time.
//!
//! Expiry never sweeps: the rows form a list in the order in which they last held, and what no window
//! reaches any more is taken off its front. Where stamps step back, a row may stay as much longer.

use super::keyed::{Ends, Flat, Keyed, Keys, Linked, Links, NONE};
use super::value::Val;
use serde::{Deserialize, Serialize};
use std::mem::size_of;

/// A point of the history: the position in arrival order, and the time stamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct At {
    pub pos: i64,
    pub time: i64,
}

/// The points at which a row held, oldest first; only those a decision can still tell apart from newer
/// ones. With monotone time that is the last alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    last: At,
    earlier: Option<Box<Earlier>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Earlier(Vec<At>);

/// Whether a stamp lies in the window of `seconds` that ends at `now`; both ends are inside.
pub(crate) fn in_window(time: i64, now: i64, seconds: i64) -> bool {
    time <= now && now.saturating_sub(time) <= seconds
}

impl Times {
    pub fn new(at: At) -> Times {
        Times {
            last: at,
            earlier: None,
        }
    }

    /// The point that arrived last.
    pub fn last(&self) -> At {
        self.last
    }

    /// In order of arrival.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &At> {
        let earlier = self.earlier.iter().flat_map(|earlier| &earlier.0);
        earlier.chain(std::iter::once(&self.last))
    }

    /// The latest stamp.
    pub fn newest(&self) -> i64 {
        let stamps = self.iter().map(|at| at.time);
        stamps.max().unwrap_or(self.last.time)
    }

    /// Adds a point. No decision to come is earlier than `floor`: of the points up to there the newest
    /// stands for all, and of equal stamps the last.
    pub fn note(&mut self, at: At, floor: i64) {
        let before = std::mem::replace(&mut self.last, at);
        let covered = before.time == at.time || (before.time <= at.time && at.time <= floor);
        if self.earlier.is_none() && covered {
            return;
        }
        let mut best = if at.time <= floor { at.time } else { i64::MIN };
        let mut kept: Vec<At> = Vec::new();
        let mut earlier = self.earlier.take().unwrap_or_default();
        earlier.0.push(before);
        for point in earlier.0.iter().rev() {
            let same = point.time == at.time || kept.iter().any(|newer| newer.time == point.time);
            if same || (best != i64::MIN && point.time <= best) {
                continue;
            }
            kept.push(*point);
            if point.time <= floor {
                best = best.max(point.time);
            }
        }
        kept.reverse();
        if !kept.is_empty() {
            *earlier = Earlier(kept);
            self.earlier = Some(earlier);
        }
    }

    /// Beside the value itself.
    pub fn bytes(&self) -> usize {
        let earlier = self.earlier.iter();
        earlier
            .map(|earlier| size_of::<Earlier>() + earlier.0.capacity() * size_of::<At>())
            .sum()
    }
}

#[derive(Clone, Debug, Default)]
struct Entry {
    times: Times,
    links: Links,
}

#[derive(Clone, Debug)]
pub(crate) struct Store<S> {
    rows: Keyed<S, Entry>,
    /// The rows in the order in which they last held.
    order: Ends,
    /// Held for points beside the last of a row.
    more: usize,
}

impl<S: Keys> Linked for Keyed<S, Entry> {
    fn links(&self, id: u32) -> Links {
        self.get(id).map(|entry| entry.links).unwrap_or_default()
    }

    fn links_mut(&mut self, id: u32) -> Option<&mut Links> {
        self.get_mut(id).map(|entry| &mut entry.links)
    }
}

impl<S: Keys> Store<S> {
    pub fn new(keys: S) -> Store<S> {
        Store {
            rows: Keyed::new(keys),
            order: Ends::default(),
            more: 0,
        }
    }

    /// Notes that the row held; its number, and whether it is new.
    pub fn insert(&mut self, key: &S::Key, at: At, floor: i64) -> (u32, bool) {
        if let Some(id) = self.rows.find(key) {
            if let Some(entry) = self.rows.get_mut(id) {
                self.more -= entry.times.bytes();
                entry.times.note(at, floor);
                self.more += entry.times.bytes();
            }
            if self.order.last != id {
                self.order.remove(&mut self.rows, id);
                self.order.insert_after(&mut self.rows, self.order.last, id);
            }
            return (id, false);
        }
        let entry = Entry {
            times: Times::new(at),
            links: Links::default(),
        };
        let id = self.rows.insert(key, entry);
        self.order.insert_after(&mut self.rows, self.order.last, id);
        (id, true)
    }

    pub fn get(&self, key: &S::Key) -> Option<&Times> {
        let id = self.rows.find(key)?;
        self.rows.get(id).map(|entry| &entry.times)
    }

    pub fn find(&self, key: &S::Key) -> Option<(&S::Key, &Times)> {
        self.entry(self.rows.find(key)?)
    }

    pub fn key(&self, id: u32) -> Option<&S::Key> {
        self.rows.key(id)
    }

    pub fn entry(&self, id: u32) -> Option<(&S::Key, &Times)> {
        Some((self.rows.key(id)?, &self.rows.get(id)?.times))
    }

    /// In the order in which they last held.
    pub fn iter(&self) -> impl Iterator<Item = (&S::Key, &Times)> {
        let mut at = self.order.first;
        std::iter::from_fn(move || {
            let found = self.entry(at)?;
            at = self.rows.links(at).next;
            Some(found)
        })
    }

    /// The rows that held at the event of this position, if it was the last.
    pub fn fresh(&self, pos: i64) -> impl Iterator<Item = (&S::Key, &Times)> {
        let mut at = self.order.last;
        std::iter::from_fn(move || {
            let found = self.entry(at)?;
            at = self.rows.links(at).prev;
            (found.1.last().pos == pos).then_some(found)
        })
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The stamp of what may have to go next.
    pub fn oldest(&self) -> Option<i64> {
        let (_, times) = self.entry(self.order.first)?;
        Some(times.newest())
    }

    /// Drops rows that last held before `limit`.
    pub fn expire(&mut self, limit: i64, mut dropped: impl FnMut(u32, &S::Key)) {
        while let Some((key, times)) = self.entry(self.order.first)
            && times.newest() < limit
        {
            let id = self.order.first;
            dropped(id, key);
            self.order.remove(&mut self.rows, id);
            if let Some(entry) = self.rows.remove(id) {
                self.more -= entry.times.bytes();
            }
        }
    }

    pub fn is_sparse(&self) -> bool {
        self.rows.is_sparse()
    }

    pub fn clear(&mut self) {
        self.rows.clear();
        self.order = Ends::default();
        self.more = 0;
    }

    pub fn bytes(&self) -> usize {
        self.rows.bytes() + self.more
    }
}

impl Store<Flat> {
    /// After many rows have gone, lets go of their places.
    pub fn give_back(&mut self) {
        if !self.is_sparse() {
            return;
        }
        let rows: Vec<(Vec<Val>, Times)> = self
            .iter()
            .map(|(vals, times)| (vals.to_vec(), times.clone()))
            .collect();
        self.clear();
        for (vals, times) in rows {
            for at in times.iter() {
                self.insert(&vals, *at, i64::MIN);
            }
        }
    }
}

/// A list of numbers that start nowhere.
impl Linked for Vec<Links> {
    fn links(&self, id: u32) -> Links {
        self.get(id as usize).copied().unwrap_or_default()
    }

    fn links_mut(&mut self, id: u32) -> Option<&mut Links> {
        match id {
            NONE => None,
            id => self.get_mut(id as usize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(pos: i64, time: i64) -> At {
        At { pos, time }
    }

    fn key(n: i64) -> [Val; 1] {
        [Val::Int(n)]
    }

    fn points(times: &Times) -> Vec<At> {
        times.iter().copied().collect()
    }

    #[test]
    fn monotone_time_keeps_one_point_a_row() {
        let mut store = Store::new(Flat::new(1));
        for n in 0..100 {
            store.insert(&key(7), at(n, n), n);
        }
        assert_eq!(store.get(&key(7)).map(points), Some(vec![at(99, 99)]));
    }

    #[test]
    fn late_time_keeps_what_a_late_decision_needs() {
        // Decisions may come at 90 or later.
        let mut times = Times::new(at(0, 80));
        times.note(at(1, 95), 90);
        times.note(at(2, 100), 90);
        times.note(at(3, 85), 90);
        assert_eq!(points(&times), vec![at(1, 95), at(2, 100), at(3, 85)]);
    }

    #[test]
    fn expiry_drops_by_last_time_and_reuses_numbers() {
        let mut store = Store::new(Flat::new(1));
        store.insert(&key(1), at(0, 0), 0);
        let (second, _) = store.insert(&key(2), at(1, 1), 1);
        store.insert(&key(1), at(2, 10), 10);
        let mut gone = Vec::new();
        store.expire(5, |_, key| gone.extend(key));
        assert_eq!((gone, store.len()), (vec![Val::Int(2)], 1));
        assert_eq!(store.insert(&key(3), at(3, 12), 12), (second, true));
        store.expire(11, |_, _| {});
        let left: Vec<&[Val]> = store.iter().map(|(key, _)| key).collect();
        assert_eq!(left, [key(3)]);
    }
}
