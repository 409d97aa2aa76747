//! Entries that are found by key and numbered by small integers, with nothing allocated for each: the keys
//! lie in one array, and the table that finds them holds numbers only.

use super::row::Row;
use super::value::Val;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::{BuildHasher, Hash};
use std::mem::size_of;

/// No entry.
pub(crate) const NONE: u32 = u32::MAX;

/// Where the keys of a table are kept, by number.
pub(crate) trait Keys {
    type Key: ?Sized + Eq + Hash;
    fn key(&self, id: u32) -> Option<&Self::Key>;
    fn put(&mut self, id: u32, key: &Self::Key);
    fn take(&mut self, id: u32);
    fn clear(&mut self);
    fn bytes(&self) -> usize;
}

/// Keys of so many values each, one behind the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flat {
    width: usize,
    vals: Vec<Val>,
}

/// Keys that are rows with unknowns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Open(Vec<Option<Box<Row>>>);

impl<T> Keyed<Flat, T> {
    /// Values in a key.
    pub fn width(&self) -> usize {
        self.keys.width
    }
}

impl<T: Default> Keyed<Flat, T> {
    /// Makes the table anew, with other numbers; gives them in the order of what `first` says of the entries.
    pub fn rebuilt(
        &mut self,
        first: impl Fn(&T) -> Option<i64>,
    ) -> BinaryHeap<Reverse<(i64, u32)>> {
        let ids: Vec<u32> = self.ids().collect();
        let entries: Vec<(Vec<Val>, T)> = ids
            .into_iter()
            .filter_map(|id| {
                let key = self.key(id)?.to_vec();
                Some((key, std::mem::take(self.get_mut(id)?)))
            })
            .collect();
        self.clear();
        let mut order = BinaryHeap::with_capacity(entries.len());
        for (key, entry) in entries {
            let first = first(&entry);
            let id = self.insert(&key, entry);
            order.extend(first.map(|first| Reverse((first, id))));
        }
        order
    }
}

impl Flat {
    pub fn new(width: usize) -> Flat {
        Flat {
            width,
            vals: Vec::new(),
        }
    }
}

impl Keys for Flat {
    type Key = [Val];

    fn key(&self, id: u32) -> Option<&[Val]> {
        let from = id as usize * self.width;
        self.vals.get(from..from + self.width)
    }

    fn put(&mut self, id: u32, key: &[Val]) {
        let from = id as usize * self.width;
        match self.vals.get_mut(from..from + self.width) {
            Some(place) if place.len() == key.len() => place.copy_from_slice(key),
            Some(_) => {}
            None => {
                grow(&mut self.vals, self.width);
                self.vals.resize(from, Val::Null);
                self.vals.extend(key);
            }
        }
    }

    fn take(&mut self, _: u32) {}

    fn clear(&mut self) {
        self.vals = Vec::new();
    }

    fn bytes(&self) -> usize {
        self.vals.capacity() * size_of::<Val>()
    }
}

impl Keys for Open {
    type Key = Row;

    fn key(&self, id: u32) -> Option<&Row> {
        self.0.get(id as usize)?.as_deref()
    }

    fn put(&mut self, id: u32, key: &Row) {
        if self.0.len() <= id as usize {
            self.0.resize(id as usize + 1, None);
        }
        if let Some(place) = self.0.get_mut(id as usize) {
            *place = Some(Box::new(key.clone()));
        }
    }

    fn take(&mut self, id: u32) {
        if let Some(place) = self.0.get_mut(id as usize) {
            *place = None;
        }
    }

    fn clear(&mut self) {
        self.0 = Vec::new();
    }

    fn bytes(&self) -> usize {
        let rows = self.0.iter().flatten().map(|row| row.bytes());
        self.0.capacity() * size_of::<Option<Box<Row>>>() + rows.sum::<usize>()
    }
}

/// Makes room by a quarter at a time: half of a large table would stand empty otherwise.
pub(crate) fn grow<T>(items: &mut Vec<T>, by: usize) {
    if items.len() + by > items.capacity() {
        items.reserve_exact(by.max(items.len() / 4));
    }
}

/// A table of entries by key.
#[derive(Clone, Debug)]
pub(crate) struct Keyed<S, T> {
    keys: S,
    entries: Vec<T>,
    ids: HashTable<u32>,
    free: Vec<u32>,
    hasher: RandomState,
}

impl<S: Keys, T: Default> Keyed<S, T> {
    pub fn new(keys: S) -> Keyed<S, T> {
        Keyed {
            keys,
            entries: Vec::new(),
            ids: HashTable::new(),
            free: Vec::new(),
            hasher: RandomState::default(),
        }
    }

    pub fn find(&self, key: &S::Key) -> Option<u32> {
        let is = |id: &u32| self.keys.key(*id) == Some(key);
        self.ids.find(self.hasher.hash_one(key), is).copied()
    }

    /// Adds an entry under a key that has none.
    pub fn insert(&mut self, key: &S::Key, entry: T) -> u32 {
        let id = match self.free.pop() {
            Some(id) => {
                if let Some(place) = self.entries.get_mut(id as usize) {
                    *place = entry;
                }
                id
            }
            None => {
                grow(&mut self.entries, 1);
                self.entries.push(entry);
                u32::try_from(self.entries.len() - 1).unwrap_or(NONE)
            }
        };
        self.keys.put(id, key);
        let (keys, hasher) = (&self.keys, &self.hasher);
        let hash = hasher.hash_one(key);
        self.ids
            .insert_unique(hash, id, |id| hash_of(keys, hasher, *id));
        id
    }

    pub fn remove(&mut self, id: u32) -> Option<T> {
        let hash = hash_of(&self.keys, &self.hasher, id);
        let place = self.ids.find_entry(hash, |other| *other == id).ok()?;
        place.remove();
        self.keys.take(id);
        let entry = self.entries.get_mut(id as usize).map(std::mem::take);
        if self.ids.is_empty() && self.entries.len() > 1024 {
            // A table that was large once gives its memory back.
            self.clear();
            return entry;
        }
        self.free.push(id);
        let (keys, hasher) = (&self.keys, &self.hasher);
        if self.ids.capacity() > 1024 && self.ids.len() * 8 < self.ids.capacity() {
            let wanted = self.ids.len() * 2;
            self.ids.shrink_to(wanted, |id| hash_of(keys, hasher, *id));
        }
        entry
    }

    /// Whether most places stand empty, so that making the table anew costs less than what was taken out.
    pub fn is_sparse(&self) -> bool {
        self.entries.len() > 1024 && self.ids.len() * 8 < self.entries.len()
    }

    pub fn clear(&mut self) {
        self.keys.clear();
        self.entries = Vec::new();
        self.ids = HashTable::new();
        self.free = Vec::new();
    }

    pub fn key(&self, id: u32) -> Option<&S::Key> {
        self.keys.key(id)
    }

    pub fn get(&self, id: u32) -> Option<&T> {
        self.entries.get(id as usize)
    }

    pub fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        self.entries.get_mut(id as usize)
    }

    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// The numbers in use, in no order.
    pub fn ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.ids.iter().copied()
    }

    /// Held for keys and entries, what the entries point at left out.
    pub fn bytes(&self) -> usize {
        self.keys.bytes()
            + self.entries.capacity() * size_of::<T>()
            + self.ids.allocation_size()
            + self.free.capacity() * size_of::<u32>()
    }
}

fn hash_of<S: Keys>(keys: &S, hasher: &RandomState, id: u32) -> u64 {
    keys.key(id).map_or(0, |key| hasher.hash_one(key))
}

/// Makes linked lists of numbered entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub first: u32,
    pub last: u32,
}

impl Default for Ends {
    fn default() -> Ends {
        Ends {
            first: NONE,
            last: NONE,
        }
    }
}

/// An entry's neighbours in a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links {
    pub prev: u32,
    pub next: u32,
}

impl Default for Links {
    fn default() -> Links {
        Links {
            prev: NONE,
            next: NONE,
        }
    }
}

/// Entries that can be put into a list.
pub(crate) trait Linked {
    fn links(&self, id: u32) -> Links;
    fn links_mut(&mut self, id: u32) -> Option<&mut Links>;
}

impl Ends {
    /// Puts an entry behind another, or first.
    pub fn insert_after(&mut self, list: &mut impl Linked, before: u32, id: u32) {
        let after = match before {
            NONE => self.first,
            before => list.links(before).next,
        };
        if let Some(links) = list.links_mut(id) {
            *links = Links {
                prev: before,
                next: after,
            };
        }
        match list.links_mut(before) {
            Some(links) => links.next = id,
            None => self.first = id,
        }
        match list.links_mut(after) {
            Some(links) => links.prev = id,
            None => self.last = id,
        }
    }

    pub fn remove(&mut self, list: &mut impl Linked, id: u32) {
        let Links { prev, next } = list.links(id);
        match list.links_mut(prev) {
            Some(links) => links.next = next,
            None => self.first = next,
        }
        match list.links_mut(next) {
            Some(links) => links.prev = prev,
            None => self.last = prev,
        }
    }
}
