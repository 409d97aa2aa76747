//! The events of logs by some of the values they say.
//!
//! By which ones they are looked for a decision finds out; what it needs is made then, and kept up to date.

use super::Happened;
use crate::automaton::index::Key;
use crate::automaton::value::Val;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::collections::{BTreeMap, VecDeque};
use std::hash::BuildHasher;
use std::mem::size_of;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Default)]
pub(super) struct Indexes(Mutex<BTreeMap<Place, Index>>);

/// A log, and columns of it, a bit each.
type Place = (usize, u64);

/// The numbers of the events with the same values, oldest first.
#[derive(Debug, Default)]
struct Index {
    events: HashTable<VecDeque<u64>>,
    hasher: RandomState,
}

/// What is made anew as it is needed is not copied.
impl Clone for Indexes {
    fn clone(&self) -> Indexes {
        Indexes::default()
    }
}

impl Indexes {
    /// Gives those with a key to `take`. Also whether the events had to be gone through for it.
    pub fn look<T>(
        &self,
        (log, mask): Place,
        happened: &Happened,
        key: &Key,
        take: impl FnOnce(Option<&VecDeque<u64>>) -> T,
    ) -> (T, bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut made = false;
        let index = all.entry((log, mask)).or_insert_with(|| {
            made = true;
            let mut index = Index::default();
            for event in 0..happened.at.len() {
                index.insert(mask, happened, event);
            }
            index
        });
        let hash = index.hasher.hash_one(key);
        let same = |events: &VecDeque<u64>| happened.has(events, mask, key);
        (take(index.events.find(hash, same)), made)
    }

    /// Takes the last event of a log in.
    pub fn added(&mut self, log: usize, happened: &Happened) {
        let Some(last) = happened.at.len().checked_sub(1) else {
            return;
        };
        for (&(_, mask), index) in self.of(log) {
            index.insert(mask, happened, last);
        }
    }

    /// Lets the first so many events of a log go, before they do.
    pub fn dropped(&mut self, log: usize, happened: &Happened, many: usize) {
        for (&(_, mask), index) in self.of(log) {
            for event in 0..many {
                let key = happened.key(event, mask);
                let hash = index.hasher.hash_one(&key);
                let same = |events: &VecDeque<u64>| happened.has(events, mask, &key);
                if let Ok(mut found) = index.events.find_entry(hash, same) {
                    if found.get().len() > 1 {
                        found.get_mut().pop_front();
                    } else {
                        found.remove();
                    }
                }
            }
            if index.events.capacity() > 64 && index.events.len() * 4 < index.events.capacity() {
                let hasher = &index.hasher;
                let rehash = |events: &VecDeque<u64>| hashed(hasher, happened, mask, events);
                index.events.shrink_to(index.events.len() * 2, rehash);
            }
        }
    }

    fn of(&mut self, log: usize) -> impl Iterator<Item = (&Place, &mut Index)> {
        let all = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        all.range_mut((log, 0)..=(log, u64::MAX))
    }

    pub fn bytes(&self) -> usize {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let each = all.values().map(|index| {
            let held = index.events.iter();
            let held = held.map(|events| events.capacity() * size_of::<u64>());
            size_of::<(Place, Index)>()
                + index.events.capacity() * (size_of::<VecDeque<u64>>() + 1) * 8 / 7
                + held.sum::<usize>()
        });
        each.sum()
    }
}

fn hashed(hasher: &RandomState, happened: &Happened, mask: u64, events: &VecDeque<u64>) -> u64 {
    let key = events.front().and_then(|event| happened.number(*event));
    hasher.hash_one(
        key.map(|event| happened.key(event, mask))
            .unwrap_or_default(),
    )
}

impl Index {
    fn insert(&mut self, mask: u64, happened: &Happened, event: usize) {
        let key = happened.key(event, mask);
        let number = happened.gone.saturating_add(event as u64);
        let Index { events, hasher } = self;
        let same = |events: &VecDeque<u64>| happened.has(events, mask, &key);
        let rehash = |events: &VecDeque<u64>| hashed(hasher, happened, mask, events);
        events
            .entry(hasher.hash_one(&key), same, rehash)
            .or_insert_with(|| VecDeque::with_capacity(1))
            .get_mut()
            .push_back(number);
    }
}

impl Happened {
    /// Where the event of a number lies.
    pub fn number(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.gone)?).ok()
    }

    fn key(&self, event: usize, mask: u64) -> Key {
        let columns = (0..self.width).filter(|column| mask & (1 << column) != 0);
        let vals = columns.filter_map(|column| self.val(event, column));
        vals.collect()
    }

    pub fn val(&self, event: usize, column: usize) -> Option<Val> {
        self.vals.get(event * self.width + column).copied()
    }

    /// Whether events of the same values have these.
    fn has(&self, events: &VecDeque<u64>, mask: u64, key: &Key) -> bool {
        let first = events.front().and_then(|event| self.number(*event));
        first.is_some_and(|first| self.key(first, mask) == *key)
    }
}
