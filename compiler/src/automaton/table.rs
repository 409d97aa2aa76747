//! The rows of one cell: plain ones, whose columns all have values, with indexes; and open ones.

use super::formula::CellDef;
use super::index::{Index, Key};
use super::keyed::Flat;
use super::ordered::Ordered;
use super::row::{Residual, Row, Slot, Sym};
use super::saved::{SavedRow, SavedTable};
use super::store::{At, Store, Times};
use super::value::Val;
use super::waiting::Waiting;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

#[derive(Clone, Debug)]
pub(crate) struct Table {
    plain: Store<Flat>,
    /// Few cells ever have any.
    open: Option<Box<Waiting>>,
    /// For each set of columns by which a formula asks.
    indexes: Vec<Index>,
    ordered: Vec<Ordered>,
}

/// How the rows of a cell are looked up.
#[derive(Clone, Copy)]
pub(crate) struct Lookups<'l> {
    /// By these columns, a bit each.
    pub masks: &'l BTreeSet<u64>,
    /// By these, in the order of another.
    pub orders: &'l BTreeSet<(u64, usize)>,
}

/// What a lookup meets: the values of the columns in order, or a row over the cell's slots.
pub(crate) enum Found<'t> {
    Plain(&'t [Val], &'t Times),
    Open(&'t Row, &'t Times),
}

impl Table {
    pub fn new(columns: usize, lookups: Lookups<'_>) -> Table {
        let orders = lookups.orders.iter();
        Table {
            plain: Store::new(Flat::new(columns)),
            open: None,
            indexes: lookups.masks.iter().map(|mask| Index::new(*mask)).collect(),
            ordered: orders
                .map(|(mask, column)| Ordered::new(*mask, *column))
                .collect(),
        }
    }

    /// Notes that a settled row over the cell's frame held.
    pub fn insert(&mut self, row: Row, columns: &[Slot], at: At, floor: i64) {
        match plain(&row, columns) {
            Some(vals) => self.insert_plain(&vals, at, floor),
            None => self.insert_open(&closed_names(row, columns), columns, at, floor),
        }
    }

    pub fn insert_plain(&mut self, vals: &[Val], at: At, floor: i64) {
        let (id, new) = self.plain.insert(vals, at, floor);
        if new {
            for index in &mut self.indexes {
                index.insert(&self.plain, id, vals);
            }
            for ordered in &mut self.ordered {
                ordered.insert(id, vals);
            }
        }
    }

    /// After many rows have gone, lets go of their places.
    pub fn give_back(&mut self, def: &CellDef) {
        if self.plain.is_sparse() {
            let masks = self.indexes.iter().map(|index| index.mask).collect();
            let orders = self.ordered.iter();
            let orders = orders
                .map(|ordered| (ordered.mask, ordered.column))
                .collect();
            let lookups = Lookups {
                masks: &masks,
                orders: &orders,
            };
            let fresh = Table::new(def.columns.len(), lookups);
            let old = std::mem::replace(self, fresh);
            // What was in a table fits it.
            let _ = self.restore(old.saved(), def);
        }
    }

    fn insert_open(&mut self, row: &Row, columns: &[Slot], at: At, floor: i64) {
        let open = &mut self.open;
        let open = open.get_or_insert_with(|| Box::new(Waiting::new(columns)));
        open.insert(row, at, floor);
    }

    fn open_rows(&self) -> impl Iterator<Item = (&Row, &Times)> {
        self.open.iter().flat_map(|open| open.iter())
    }

    pub fn expire(&mut self, limit: i64) {
        let (indexes, ordered) = (&mut self.indexes, &mut self.ordered);
        self.plain.expire(limit, |id, vals| {
            for index in indexes.iter_mut() {
                index.remove(id, vals);
            }
            for ordered in ordered.iter_mut() {
                ordered.remove(id, vals);
            }
        });
        if let Some(open) = &mut self.open {
            open.expire(limit);
            if open.len() == 0 {
                self.open = None;
            }
        }
    }

    pub fn oldest(&self) -> Option<i64> {
        let open = self.open.as_ref().and_then(|open| open.oldest());
        match (self.plain.oldest(), open) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The points of the row with these values, if it leaves nothing open.
    pub fn times(&self, vals: &[Val]) -> Option<&Times> {
        self.plain.get(vals)
    }

    /// The rows without anything open that held at the event of this position, if it was the last.
    pub fn fresh(&self, pos: i64) -> impl Iterator<Item = (&[Val], &Times)> {
        self.plain.fresh(pos)
    }

    /// Visits the rows that agree with the known columns, until told to stop. Where a column is `missing`
    /// for good, no plain row can agree.
    pub fn find<'t>(
        &'t self,
        known: &[Option<Val>],
        missing: bool,
        mut visit: impl FnMut(Found<'t>) -> bool,
    ) -> bool {
        if missing {
            return self.find_open(known, visit);
        }
        let mut mask = 0u64;
        for (at, val) in known.iter().enumerate().take(64) {
            if val.is_some() {
                mask |= 1 << at;
            }
        }
        let mut plain = |found: Option<(&'t [Val], &'t Times)>| match found {
            Some((vals, times)) => visit(Found::Plain(vals, times)),
            None => false,
        };
        let stop = if known.iter().all(Option::is_some) {
            let key: Key = known.iter().flatten().copied().collect();
            plain(self.plain.find(&key))
        } else if let Some(index) = self.indexes.iter().find(|index| index.mask == mask) {
            let key: Key = known.iter().flatten().copied().collect();
            index
                .find(&self.plain, &key)
                .any(|id| plain(self.plain.entry(id)))
        } else {
            self.plain.iter().any(|(vals, times)| {
                let mut pairs = vals.iter().zip(known);
                pairs.all(|(val, k)| k.is_none_or(|k| k == *val)) && plain(Some((vals, times)))
            })
        };
        stop || self.find_open(known, visit)
    }

    /// Visits the rows without anything open that agree with the known columns and have a number of these
    /// in another, until told to stop.
    pub fn find_among<'t>(
        &'t self,
        known: &[Option<Val>],
        column: usize,
        among: RangeInclusive<i64>,
        mut visit: impl FnMut(&'t [Val], &'t Times) -> bool,
    ) -> bool {
        let mut mask = 0u64;
        for (at, val) in known.iter().enumerate().take(64) {
            if val.is_some() {
                mask |= 1 << at;
            }
        }
        let mut orders = self.ordered.iter();
        let found = orders.find(|ordered| (ordered.mask, ordered.column) == (mask, column));
        if let Some(ordered) = found {
            let key: Key = known.iter().flatten().copied().collect();
            let mut rows = ordered.find(&key, &among);
            return rows.any(|id| {
                let row = self.plain.entry(id);
                row.is_some_and(|(vals, times)| visit(vals, times))
            });
        }
        self.find(known, false, |found| match found {
            Found::Plain(vals, times) => match vals.get(column) {
                Some(Val::Int(n)) if among.contains(n) => visit(vals, times),
                _ => false,
            },
            Found::Open(..) => false,
        })
    }

    fn find_open<'t>(
        &'t self,
        known: &[Option<Val>],
        mut visit: impl FnMut(Found<'t>) -> bool,
    ) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| open.find(known, |row, times| visit(Found::Open(row, times))))
    }

    pub fn len(&self) -> usize {
        self.plain.len() + self.open.as_ref().map_or(0, |open| open.len())
    }

    pub fn bytes(&self) -> usize {
        let indexes = self.indexes.iter().map(Index::bytes);
        let open = self.open.iter();
        let open = open.map(|open| size_of::<Waiting>() + open.bytes());
        let ordered = self.ordered.iter().map(Ordered::bytes);
        self.plain.bytes() + open.sum::<usize>() + indexes.chain(ordered).sum::<usize>()
    }

    /// Gives each row with its points to `change`, which says what becomes of it.
    pub fn rework(
        &mut self,
        columns: &[Slot],
        width: usize,
        floor: i64,
        mut change: impl FnMut(Row) -> Option<Row>,
    ) {
        let plain = self.plain.iter();
        let open = self.open_rows();
        let rows: Vec<(Row, Times)> = plain
            .map(|(vals, times)| (row_of(vals, columns, width), times.clone()))
            .chain(open.map(|(row, times)| (row.clone(), times.clone())))
            .collect();
        self.plain.clear();
        self.open = None;
        self.indexes.iter_mut().for_each(Index::clear);
        self.ordered.iter_mut().for_each(Ordered::clear);
        // Rows that have become equal are joined in the order of their points.
        let mut points = Vec::with_capacity(rows.len());
        for (row, times) in rows {
            if let Some(row) = change(row) {
                points.extend(times.iter().map(|at| (row.clone(), *at)));
            }
        }
        points.sort_by_key(|(_, at)| at.pos);
        for (row, at) in points {
            self.insert(row, columns, at, floor);
        }
    }

    pub fn saved(&self) -> SavedTable {
        let plain = self.plain.iter();
        let open = self.open_rows();
        SavedTable {
            plain: plain
                .map(|(vals, times)| (vals.to_vec(), times.iter().copied().collect()))
                .collect(),
            open: open
                .map(|(row, times)| (SavedRow::of(row), times.iter().copied().collect()))
                .collect(),
        }
    }

    /// Takes saved rows in. Nothing, where they do not fit.
    pub fn restore(&mut self, saved: SavedTable, def: &CellDef) -> Option<()> {
        for (vals, times) in saved.plain {
            if vals.len() != def.columns.len() {
                return None;
            }
            for at in times {
                self.insert_plain(&vals, at, i64::MIN);
            }
        }
        for (row, times) in saved.open {
            let row = row.read(def.width)?;
            for at in times {
                self.insert_open(&row, &def.columns, at, i64::MIN);
            }
        }
        Some(())
    }

    pub fn each_val(&self, seen: &mut dyn FnMut(Val)) {
        for (vals, _) in self.plain.iter() {
            for val in vals {
                seen(*val);
            }
        }
        for (row, _) in self.open_rows() {
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

#[cfg(test)]
mod tests {
    use super::super::formula::{CellOp, Node};
    use super::*;

    fn keyed_by(columns: u16) -> CellDef {
        CellDef {
            op: CellOp::Formerly(Node::Never),
            window: 10,
            width: usize::from(columns),
            columns: (0..columns).collect(),
        }
    }

    #[test]
    fn a_table_that_was_large_gives_its_places_back() {
        let def = keyed_by(2);
        let lookups = Lookups {
            masks: &BTreeSet::from([0b10]),
            orders: &BTreeSet::from([(0b10, 0)]),
        };
        let mut table = Table::new(2, lookups);
        let row = |n: i64| [Val::Int(n), Val::Int(n % 10)];
        for n in 0..20_000 {
            let at = At { pos: n, time: n };
            table.insert_plain(&row(n), at, n);
        }
        let large = table.bytes();
        table.expire(19_900);
        table.give_back(&def);
        assert_eq!(table.len(), 100);
        assert!(table.bytes() * 50 < large);
        let mut found = Vec::new();
        table.find(&[None, Some(Val::Int(3))], false, |row| {
            if let Found::Plain(vals, times) = row {
                found.push((vals[0], times.last().time));
            }
            false
        });
        found.sort();
        let expected: Vec<(Val, i64)> = (0..10)
            .map(|n| 19_903 + 10 * n)
            .map(|n| (Val::Int(n), n))
            .collect();
        assert_eq!(found, expected);
        let mut found = Vec::new();
        table.find_among(&[None, Some(Val::Int(3))], 0, 19_940..=19_960, |vals, _| {
            found.push(vals[0]);
            false
        });
        assert_eq!(found, [Val::Int(19_943), Val::Int(19_953)]);
        // What is left goes in its order.
        table.expire(19_950);
        assert_eq!((table.len(), table.oldest()), (50, Some(19_950)));
    }
}
