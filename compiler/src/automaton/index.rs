//! The rows of a table by some of their columns: lists of the rows that agree, newest first.

use super::keyed::{Ends, Flat, Linked, Links, NONE, grow};
use super::store::Store;
use super::value::Val;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::hash::BuildHasher;
use std::mem::size_of;

pub(crate) type Key = SmallVec<[Val; 4]>;

#[derive(Clone, Debug)]
pub(crate) struct Index {
    /// The columns, a bit each.
    pub mask: u64,
    /// The first row of each list.
    heads: HashTable<u32>,
    links: Vec<Links>,
    hasher: RandomState,
}

/// The values of the columns of a mask.
pub(crate) fn select(vals: &[Val], mask: u64) -> Key {
    let chosen = vals
        .iter()
        .enumerate()
        .filter(|(at, _)| *at < 64 && mask & (1 << at) != 0);
    chosen.map(|(_, val)| *val).collect()
}

impl Index {
    pub fn new(mask: u64) -> Index {
        Index {
            mask,
            heads: HashTable::new(),
            links: Vec::new(),
            hasher: RandomState::default(),
        }
    }

    /// Takes a new row in.
    pub fn insert(&mut self, rows: &Store<Flat>, id: u32, vals: &[Val]) {
        let key = select(vals, self.mask);
        if self.links.len() <= id as usize {
            grow(&mut self.links, 1);
            self.links.resize(id as usize + 1, Links::default());
        }
        let (mask, hasher) = (self.mask, &self.hasher);
        let hash = hasher.hash_one(key.as_slice());
        let is = |head: &u32| agrees(rows, *head, mask, &key);
        match self.heads.find_mut(hash, is) {
            Some(head) => {
                let mut ends = Ends {
                    first: *head,
                    last: NONE,
                };
                ends.insert_after(&mut self.links, NONE, id);
                *head = id;
            }
            None => {
                if let Some(links) = self.links.links_mut(id) {
                    *links = Links::default();
                }
                let hash_of = |id: &u32| {
                    let vals = rows.key(*id).unwrap_or(&[]);
                    hasher.hash_one(select(vals, mask).as_slice())
                };
                self.heads.insert_unique(hash, id, hash_of);
            }
        }
    }

    /// Lets go of a row that is about to be dropped.
    pub fn remove(&mut self, id: u32, vals: &[Val]) {
        let key = select(vals, self.mask);
        let hash = self.hasher.hash_one(key.as_slice());
        let Links { prev, next } = self.links.links(id);
        if prev == NONE {
            // The first of its list, so the table has its very number.
            if let Ok(mut place) = self.heads.find_entry(hash, |head| *head == id) {
                match next {
                    NONE => {
                        place.remove();
                    }
                    next => *place.get_mut() = next,
                }
            }
        }
        let mut ends = Ends::default();
        ends.remove(&mut self.links, id);
    }

    /// The rows with this key, newest first.
    pub fn find(&self, rows: &Store<Flat>, key: &[Val]) -> impl Iterator<Item = u32> + '_ {
        let hash = self.hasher.hash_one(key);
        let head = self
            .heads
            .find(hash, |head| agrees(rows, *head, self.mask, key));
        let mut at = head.copied().unwrap_or(NONE);
        std::iter::from_fn(move || {
            let found = at;
            at = self.links.links(at).next;
            (found != NONE).then_some(found)
        })
    }

    pub fn clear(&mut self) {
        self.heads = HashTable::new();
        self.links = Vec::new();
    }

    pub fn bytes(&self) -> usize {
        self.heads.allocation_size() + self.links.capacity() * size_of::<Links>()
    }
}

fn agrees(rows: &Store<Flat>, id: u32, mask: u64, key: &[Val]) -> bool {
    rows.key(id)
        .is_some_and(|vals| select(vals, mask).as_slice() == key)
}
