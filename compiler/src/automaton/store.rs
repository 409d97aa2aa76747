//! Rows with the times at which they held, found by key and dropped in the order of time.
//!
//! Expiry never sweeps: each row has one entry in a heap of deadlines. An entry whose row has held again
//! since is pushed back when it comes up, so a row costs one heap operation a window, not one an event.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hash;

/// A point of the history: the position in arrival order, and the time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct At {
    pub pos: i64,
    pub time: i64,
}

/// The points at which a row held, oldest first; only those a decision can still tell apart from newer
/// ones. With monotone time that is the newest alone.
pub(crate) type Times = SmallVec<[At; 1]>;

/// Whether a stamp lies in the window of `seconds` that ends at `now`; both ends are inside.
pub(crate) fn in_window(time: i64, now: i64, seconds: i64) -> bool {
    time <= now && now.saturating_sub(time) <= seconds
}

/// Adds a point. No decision to come is earlier than `floor`: of the points up to there the newest stands
/// for all, and of equal stamps the last.
pub(crate) fn note(times: &mut Times, at: At, floor: i64) {
    times.push(at);
    if times.len() == 1 {
        return;
    }
    let mut best = i64::MIN;
    let mut kept: Times = SmallVec::new();
    for point in times.iter().rev() {
        let same = kept.iter().any(|newer| newer.time == point.time);
        if same || (best != i64::MIN && point.time <= best) {
            continue;
        }
        kept.push(*point);
        if point.time <= floor {
            best = best.max(point.time);
        }
    }
    kept.reverse();
    *times = kept;
}

#[derive(Clone, Debug)]
struct Entry<K> {
    key: K,
    times: Times,
    /// Tells this row from a former one of the same number.
    birth: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Store<K> {
    entries: Vec<Option<Entry<K>>>,
    ids: HashMap<K, u32>,
    free: Vec<u32>,
    deadlines: BinaryHeap<Reverse<(i64, u32, u64)>>,
    births: u64,
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Store {
            entries: Vec::new(),
            ids: HashMap::new(),
            free: Vec::new(),
            deadlines: BinaryHeap::new(),
            births: 0,
        }
    }
}

impl<K: Clone + Eq + Hash> Store<K> {
    /// Notes that the row held; its number, and whether it is new.
    pub fn insert(&mut self, key: &K, at: At, floor: i64) -> (u32, bool) {
        if let Some(&id) = self.ids.get(key)
            && let Some(Some(entry)) = self.entries.get_mut(id as usize)
        {
            note(&mut entry.times, at, floor);
            return (id, false);
        }
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                self.entries.push(None);
                u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.births += 1;
        let entry = Entry {
            key: key.clone(),
            times: smallvec::smallvec![at],
            birth: self.births,
        };
        if let Some(place) = self.entries.get_mut(id as usize) {
            *place = Some(entry);
        }
        self.ids.insert(key.clone(), id);
        self.deadlines.push(Reverse((at.time, id, self.births)));
        (id, true)
    }

    pub fn get_key_value<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<(&K, &Times)>
    where
        K: Borrow<Q>,
    {
        self.entry(*self.ids.get(key)?)
    }

    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&Times>
    where
        K: Borrow<Q>,
    {
        let id = self.ids.get(key)?;
        self.entry(*id).map(|(_, times)| times)
    }

    pub fn entry(&self, id: u32) -> Option<(&K, &Times)> {
        let entry = self.entries.get(id as usize)?.as_ref()?;
        Some((&entry.key, &entry.times))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &Times)> {
        self.entries
            .iter()
            .flatten()
            .map(|entry| (&entry.key, &entry.times))
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// The earliest stamp that may have to go next.
    pub fn oldest(&self) -> Option<i64> {
        self.deadlines.peek().map(|Reverse((time, ..))| *time)
    }

    /// Drops the rows that last held before `limit`.
    pub fn expire(&mut self, limit: i64, mut dropped: impl FnMut(u32, &K)) {
        while let Some(&Reverse((time, id, birth))) = self.deadlines.peek()
            && time < limit
        {
            self.deadlines.pop();
            let Some(Some(entry)) = self.entries.get(id as usize) else {
                continue;
            };
            if entry.birth != birth {
                continue;
            }
            let newest = entry.times.iter().map(|at| at.time).max().unwrap_or(time);
            if newest >= limit {
                self.deadlines.push(Reverse((newest, id, birth)));
                continue;
            }
            self.remove(id, &mut dropped);
        }
    }

    fn remove(&mut self, id: u32, dropped: &mut impl FnMut(u32, &K)) {
        let Some(entry) = self.entries.get_mut(id as usize).and_then(Option::take) else {
            return;
        };
        self.ids.remove(&entry.key);
        self.free.push(id);
        dropped(id, &entry.key);
        // A table that was large once gives its memory back.
        if self.ids.is_empty() && self.entries.len() > 1024 {
            let births = self.births;
            *self = Store {
                births,
                ..Store::default()
            };
        } else if self.ids.capacity() > 1024 && self.ids.len() * 8 < self.ids.capacity() {
            self.ids.shrink_to(self.ids.len() * 2);
        }
    }

    /// Takes every row out.
    pub fn drain(&mut self) -> Vec<(K, Times)> {
        let births = self.births;
        let old = std::mem::replace(
            self,
            Store {
                births,
                ..Store::default()
            },
        );
        old.entries
            .into_iter()
            .flatten()
            .map(|entry| (entry.key, entry.times))
            .collect()
    }

    /// Puts a row back with its points, joining those of an equal one.
    pub fn restore(&mut self, key: &K, times: Times, floor: i64) {
        let mut points = self.get::<K>(key).cloned().unwrap_or_default();
        points.extend(times);
        points.sort_by_key(|at| at.pos);
        for at in points {
            self.insert(key, at, floor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(pos: i64, time: i64) -> At {
        At { pos, time }
    }

    #[test]
    fn monotone_time_keeps_one_point_a_row() {
        let mut store = Store::default();
        for n in 0..100 {
            store.insert(&"row", at(n, n), n);
        }
        assert_eq!(
            store.get("row").map(|times| times.to_vec()),
            Some(vec![at(99, 99)])
        );
        assert_eq!(store.deadlines.len(), 1);
    }

    #[test]
    fn late_time_keeps_what_a_late_decision_needs() {
        let mut times = Times::new();
        // Decisions may come at 90 or later.
        note(&mut times, at(0, 80), 90);
        note(&mut times, at(1, 95), 90);
        note(&mut times, at(2, 100), 90);
        note(&mut times, at(3, 85), 90);
        assert_eq!(times.to_vec(), vec![at(1, 95), at(2, 100), at(3, 85)]);
    }

    #[test]
    fn expiry_drops_by_last_time_and_reuses_numbers() {
        let mut store = Store::default();
        store.insert(&1, at(0, 0), 0);
        store.insert(&2, at(1, 1), 1);
        store.insert(&1, at(2, 10), 10);
        let mut gone = Vec::new();
        store.expire(5, |_, key| gone.push(*key));
        assert_eq!((gone, store.len()), (vec![2], 1));
        store.insert(&3, at(3, 12), 12);
        assert_eq!(store.entries.len(), 2);
        store.expire(11, |_, _| {});
        assert_eq!(
            store.iter().map(|(key, _)| *key).collect::<Vec<_>>(),
            vec![3]
        );
    }
}
