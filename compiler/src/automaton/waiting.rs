//! Rows that wait for what the request says, found by the columns that have values already.

use super::index::Key;
use super::keyed::{Ends, Flat, Keyed, Linked, Links, NONE, Open, grow};
use super::row::{Row, Slot};
use super::store::{At, Store, Times};
use super::value::Val;
use std::mem::size_of;

#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    columns: Vec<Slot>,
    rows: Store<Open>,
    /// A formula makes rows of few shapes.
    shapes: Vec<Shape>,
    links: Vec<Links>,
}

/// The rows in which the same columns have values.
#[derive(Clone, Debug)]
struct Shape {
    /// These columns, a bit each.
    mask: u64,
    /// By the values, a list of rows.
    keys: Keyed<Flat, Ends>,
}

impl Waiting {
    pub fn new(columns: &[Slot]) -> Waiting {
        Waiting {
            columns: columns.to_vec(),
            rows: Store::new(Open::default()),
            shapes: Vec::new(),
            links: Vec::new(),
        }
    }

    pub fn insert(&mut self, row: &Row, at: At, floor: i64) {
        let (id, new) = self.rows.insert(row, at, floor);
        if !new {
            return;
        }
        let (mask, key) = key_of(row, &self.columns);
        if self.links.len() <= id as usize {
            grow(&mut self.links, 1);
            self.links.resize(id as usize + 1, Links::default());
        }
        let place = self.shapes.iter().position(|shape| shape.mask == mask);
        let place = place.unwrap_or_else(|| {
            self.shapes.push(Shape {
                mask,
                keys: Keyed::new(Flat::new(key.len())),
            });
            self.shapes.len() - 1
        });
        let Some(shape) = self.shapes.get_mut(place) else {
            return;
        };
        let group = match shape.keys.find(&key) {
            Some(group) => group,
            None => shape.keys.insert(&key, Ends::default()),
        };
        if let Some(ends) = shape.keys.get_mut(group) {
            ends.insert_after(&mut self.links, NONE, id);
        }
    }

    pub fn expire(&mut self, limit: i64) {
        let (columns, shapes, links) = (&self.columns, &mut self.shapes, &mut self.links);
        self.rows.expire(limit, |id, row| {
            let (mask, key) = key_of(row, columns);
            let Some(shape) = shapes.iter_mut().find(|shape| shape.mask == mask) else {
                return;
            };
            let Some(group) = shape.keys.find(&key) else {
                return;
            };
            if let Some(ends) = shape.keys.get_mut(group) {
                ends.remove(links, id);
                if ends.first == NONE {
                    shape.keys.remove(group);
                }
            }
        });
    }

    /// Visits at least the rows that agree with the known columns, until told to stop.
    pub fn find<'t>(
        &'t self,
        known: &[Option<Val>],
        mut visit: impl FnMut(&'t Row, &'t Times) -> bool,
    ) -> bool {
        self.shapes.iter().any(|shape| {
            let mut list = |ends: &Ends| {
                let mut at = ends.first;
                while let Some((row, times)) = self.rows.entry(at) {
                    if visit(row, times) {
                        return true;
                    }
                    at = self.links.links(at).next;
                }
                false
            };
            let wanted = |(at, _): &(usize, _)| *at < 64 && shape.mask & (1 << at) != 0;
            let key: Key = known
                .iter()
                .enumerate()
                .filter(wanted)
                .filter_map(|(_, val)| *val)
                .collect();
            if key.len() == shape.mask.count_ones() as usize {
                let group = shape.keys.find(&key);
                return group
                    .and_then(|group| shape.keys.get(group))
                    .is_some_and(list);
            }
            let mut groups = shape.keys.ids().filter_map(|id| shape.keys.get(id));
            groups.any(&mut list)
        })
    }

    /// In the order in which they last held.
    pub fn iter(&self) -> impl Iterator<Item = (&Row, &Times)> {
        self.rows.iter()
    }

    pub fn oldest(&self) -> Option<i64> {
        self.rows.oldest()
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn bytes(&self) -> usize {
        let shapes = self.shapes.iter().map(|shape| shape.keys.bytes());
        self.rows.bytes()
            + shapes.sum::<usize>()
            + self.shapes.capacity() * size_of::<Shape>()
            + self.links.capacity() * size_of::<Links>()
            + self.columns.capacity() * size_of::<Slot>()
    }
}

/// The columns that have values, and these.
fn key_of(row: &Row, columns: &[Slot]) -> (u64, Key) {
    let mut mask = 0;
    let mut key = Key::new();
    for (at, column) in columns.iter().enumerate().take(64) {
        if let Some(val) = row.known(*column) {
            mask |= 1 << at;
            key.push(val);
        }
    }
    (mask, key)
}
