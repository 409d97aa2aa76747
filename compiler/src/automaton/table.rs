//! The rows of one cell: plain ones, whose columns all have values, with indexes; and open ones.

use super::formula::CellDef;
use super::row::{Residual, Row, Slot, Sym};
use super::saved::{SavedRow, SavedTable, points};
use super::store::{At, Store, Times};
use super::value::Val;
use smallvec::SmallVec;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

type Key = SmallVec<[Val; 4]>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    plain: Store<Arc<[Val]>>,
    open: Store<Arc<Row>>,
    /// For each set of columns by which a formula asks: their values to the plain rows.
    indexes: Vec<(u64, HashMap<Key, HashSet<u32>>)>,
}

/// What a lookup meets: the values of the columns in order, or a row over the cell's slots.
pub(crate) enum Found<'t> {
    Plain(&'t [Val], &'t Times),
    Open(&'t Row, &'t Times),
}

impl Table {
    pub fn new(masks: &BTreeSet<u64>) -> Table {
        let indexes = masks.iter().map(|mask| (*mask, HashMap::new())).collect();
        Table {
            indexes,
            ..Table::default()
        }
    }

    /// Notes that a settled row over the cell's frame held.
    pub fn insert(&mut self, row: Row, columns: &[Slot], at: At, floor: i64) {
        match plain(&row, columns) {
            Some(vals) => self.insert_plain(&Arc::from(vals.as_slice()), at, floor),
            None => {
                self.open
                    .insert(&Arc::new(closed_names(row, columns)), at, floor);
            }
        }
    }

    fn insert_plain(&mut self, vals: &Arc<[Val]>, at: At, floor: i64) {
        let (id, new) = self.plain.insert(vals, at, floor);
        if new {
            for (mask, index) in &mut self.indexes {
                index.entry(select(vals, *mask)).or_default().insert(id);
            }
        }
    }

    pub fn expire(&mut self, limit: i64) {
        let indexes = &mut self.indexes;
        self.plain.expire(limit, |id, vals| {
            for (mask, index) in indexes.iter_mut() {
                let key = select(vals, *mask);
                if let Some(ids) = index.get_mut(&key) {
                    ids.remove(&id);
                    if ids.is_empty() {
                        index.remove(&key);
                    }
                }
            }
        });
        self.open.expire(limit, |_, _| {});
    }

    pub fn oldest(&self) -> Option<i64> {
        match (self.plain.oldest(), self.open.oldest()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Visits the rows that agree with the known columns, until told to stop. Where a column is `missing`
    /// for good, no plain row can agree.
    pub fn find<'t>(
        &'t self,
        known: &[Option<Val>],
        missing: bool,
        mut visit: impl FnMut(Found<'t>) -> bool,
    ) -> bool {
        let mut mask = 0u64;
        for (at, val) in known.iter().enumerate().take(64) {
            if val.is_some() {
                mask |= 1 << at;
            }
        }
        if missing {
            return self.find_open(visit);
        }
        if known.iter().all(Option::is_some) {
            let key: Key = known.iter().flatten().copied().collect();
            if let Some((vals, times)) = self.plain.get_key_value(key.as_slice())
                && visit(Found::Plain(vals, times))
            {
                return true;
            }
        } else if let Some((_, index)) = self.indexes.iter().find(|(by, _)| *by == mask) {
            let key: Key = known.iter().flatten().copied().collect();
            for id in index.get(&key).into_iter().flatten() {
                if let Some((vals, times)) = self.plain.entry(*id)
                    && visit(Found::Plain(vals, times))
                {
                    return true;
                }
            }
        } else {
            for (vals, times) in self.plain.iter() {
                let fits = vals
                    .iter()
                    .zip(known)
                    .all(|(val, k)| k.is_none_or(|k| k == *val));
                if fits && visit(Found::Plain(vals, times)) {
                    return true;
                }
            }
        }
        self.find_open(visit)
    }

    fn find_open<'t>(&'t self, mut visit: impl FnMut(Found<'t>) -> bool) -> bool {
        self.open
            .iter()
            .any(|(row, times)| visit(Found::Open(row, times)))
    }

    pub fn len(&self) -> usize {
        self.plain.len() + self.open.len()
    }

    /// Gives each row with its points to `change`, which says what becomes of it.
    pub fn rework(
        &mut self,
        columns: &[Slot],
        width: usize,
        floor: i64,
        mut change: impl FnMut(Row) -> Option<Row>,
    ) {
        let plain_rows = self.plain.drain();
        let open_rows = self.open.drain();
        for (_, index) in &mut self.indexes {
            index.clear();
        }
        let rows = plain_rows
            .into_iter()
            .map(|(vals, times)| (row_of(&vals, columns, width), times))
            .chain(
                open_rows
                    .into_iter()
                    .map(|(row, times)| (row.as_ref().clone(), times)),
            );
        for (row, times) in rows {
            let Some(row) = change(row) else { continue };
            match plain(&row, columns) {
                Some(vals) => {
                    let vals: Arc<[Val]> = Arc::from(vals.as_slice());
                    let mut points = self.plain.get(&*vals).cloned().unwrap_or_default();
                    points.extend(times);
                    points.sort_by_key(|at| at.pos);
                    for at in points {
                        self.insert_plain(&vals, at, floor);
                    }
                }
                None => {
                    self.open
                        .restore(&Arc::new(closed_names(row, columns)), times, floor);
                }
            }
        }
    }

    pub fn saved(&self) -> SavedTable {
        let plain = self.plain.iter();
        let open = self.open.iter();
        SavedTable {
            plain: plain
                .map(|(vals, times)| (vals.to_vec(), times.to_vec()))
                .collect(),
            open: open
                .map(|(row, times)| (SavedRow::of(row), times.to_vec()))
                .collect(),
        }
    }

    /// Takes saved rows in. Nothing, where they do not fit.
    pub fn restore(&mut self, saved: SavedTable, def: &CellDef) -> Option<()> {
        for (vals, times) in saved.plain {
            if vals.len() != def.columns.len() {
                return None;
            }
            let vals: Arc<[Val]> = Arc::from(vals);
            for at in points(times)? {
                self.insert_plain(&vals, at, i64::MIN);
            }
        }
        for (row, times) in saved.open {
            let row = Arc::new(row.read(def.width)?);
            self.open.restore(&row, points(times)?, i64::MIN);
        }
        Some(())
    }

    pub fn each_val(&self, seen: &mut dyn FnMut(Val)) {
        for (vals, _) in self.plain.iter() {
            for val in vals.iter() {
                seen(*val);
            }
        }
        for (row, _) in self.open.iter() {
            row_vals(row, seen);
        }
    }
}

pub(crate) fn row_vals(row: &Row, seen: &mut dyn FnMut(Val)) {
    for sym in row.vals.iter().flatten() {
        sym.each_val(seen);
    }
    row.residual.each_val(seen);
}

/// A row over the cell's frame with these column values.
pub(crate) fn row_of(vals: &[Val], columns: &[Slot], width: usize) -> Row {
    let mut row = Row::unknown(width);
    for (column, val) in columns.iter().zip(vals) {
        row.set(*column, Some(Sym::Val(*val)));
    }
    row
}

fn plain(row: &Row, columns: &[Slot]) -> Option<Key> {
    if row.residual != Residual::True {
        return None;
    }
    columns.iter().map(|column| row.known(*column)).collect()
}

/// The row with what its slots stand for written out, and nothing of slots the outside cannot see.
pub(crate) fn closed_names(row: Row, columns: &[Slot]) -> Row {
    let mut closed = Row::unknown(row.vals.len());
    for column in columns {
        let sym = match row.view(*column) {
            Sym::Slot(same) if same == *column => None,
            sym => Some(sym),
        };
        closed.set(*column, sym);
    }
    closed.residual = row.residual.resolve(&row);
    closed
}

fn select(vals: &[Val], mask: u64) -> Key {
    let chosen = vals
        .iter()
        .enumerate()
        .filter(|(at, _)| *at < 64 && mask & (1 << at) != 0);
    chosen.map(|(_, val)| *val).collect()
}
