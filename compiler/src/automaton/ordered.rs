//! The rows of a table by some of their columns and in the order of another: what is larger or smaller than
//! the request says is found without trying the rest.

use super::index::select;
use super::keyed::{Flat, Keyed};
use super::value::Val;
use std::collections::BTreeSet;
use std::mem::size_of;
use std::ops::RangeInclusive;

#[derive(Clone, Debug)]
pub(crate) struct Ordered {
    /// The columns that agree, a bit each.
    pub mask: u64,
    /// The column compared. Only numbers are smaller or larger than anything.
    pub column: usize,
    groups: Keyed<Flat, u32>,
    rows: BTreeSet<(u32, i64, u32)>,
}

impl Ordered {
    pub fn new(mask: u64, column: usize) -> Ordered {
        Ordered {
            mask,
            column,
            groups: Keyed::new(Flat::new(mask.count_ones() as usize)),
            rows: BTreeSet::new(),
        }
    }

    pub fn insert(&mut self, id: u32, vals: &[Val]) {
        let Some(Val::Int(n)) = vals.get(self.column) else {
            return;
        };
        let key = select(vals, self.mask);
        let group = match self.groups.find(&key) {
            Some(group) => group,
            None => self.groups.insert(&key, 0),
        };
        if let Some(rows) = self.groups.get_mut(group) {
            *rows += 1;
        }
        self.rows.insert((group, *n, id));
    }

    /// Lets go of a row that is about to be dropped.
    pub fn remove(&mut self, id: u32, vals: &[Val]) {
        let Some(Val::Int(n)) = vals.get(self.column) else {
            return;
        };
        let Some(group) = self.groups.find(&select(vals, self.mask)) else {
            return;
        };
        self.rows.remove(&(group, *n, id));
        if let Some(rows) = self.groups.get_mut(group) {
            *rows = rows.saturating_sub(1);
            if *rows == 0 {
                self.groups.remove(group);
            }
        }
    }

    /// The rows with this key whose number is among these.
    pub fn find(&self, key: &[Val], among: &RangeInclusive<i64>) -> impl Iterator<Item = u32> + '_ {
        let group = (!among.is_empty()).then(|| self.groups.find(key)).flatten();
        let (from, to) = (*among.start(), *among.end());
        let found = group.map(|group| self.rows.range((group, from, 0)..=(group, to, u32::MAX)));
        found.into_iter().flatten().map(|(.., id)| *id)
    }

    pub fn clear(&mut self) {
        self.groups.clear();
        self.rows.clear();
    }

    pub fn bytes(&self) -> usize {
        // A node of the ordered set is between half and wholly full.
        self.groups.bytes() + self.rows.len() * size_of::<(u32, i64, u32)>() * 3 / 2
    }
}
