//! What the leaves of a policy share: cells, the fields of events, request paths, and by what cells are asked.

use super::family::{Wanted, each_use};
use super::formula::{BreakShape, CellDef, CellId, CellOp, How, Node, Term, Use};
use super::open::leaves_open;
use super::row::{Slot, Total};
use super::table::Lookups;
use super::value::{Interner, Val};
use crate::schema::{EventId, PinValue};
use dogwood_grammar::Span;
use indexmap::IndexSet;
use smol_str::SmolStr;
use std::collections::{BTreeSet, HashMap};

/// A field path of the logged record.
pub(crate) type Path = Vec<SmolStr>;

/// Everything the leaves of a policy share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    pub values: Interner,
    pub cells: Vec<CellDef>,
    ids: HashMap<CellDef, CellId>,
    /// The cells of which rows are looked for without a key.
    pub searched: Vec<bool>,
    /// The cells that can have rows which leave something open.
    pub open: Vec<bool>,
    pub event_types: IndexSet<EventId>,
    /// For each event type, the fields taken from its events.
    pub fields: Vec<IndexSet<Path>>,
    /// Request paths that leaves read.
    pub params: IndexSet<PinValue>,
    /// For each cell, the sets of columns (a bit each) by which rows are looked up.
    pub indexes: Vec<BTreeSet<u64>>,
    /// For each cell, the sets of columns by which rows are looked up in the order of another.
    pub orders: Vec<BTreeSet<(u64, usize)>>,
    /// For the cells of families, what they take in.
    pub wanted: HashMap<CellId, Wanted>,
}

/// One `temporal { … }` of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    pub node: Node,
    pub width: usize,
    /// Slots filled from the request before anything is asked.
    pub params: Vec<(Slot, usize)>,
    /// Slots filled with the constants by which it asks a family of cells.
    pub constants: Vec<(Slot, Val)>,
    pub span: Span,
    /// The cells asked directly by this leaf, in the order of the text.
    pub sites: Vec<Site>,
}

/// Where a leaf asks a cell.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// The operator with its operands, or the aggregate.
    pub span: Span,
    pub cell: Use,
    /// For a window cell.
    pub total: Option<Total>,
    /// The formula of the operator, where the cell alone says less.
    pub whole: Option<Node>,
}

impl Leaf {
    /// The slots that have a value before anything is asked.
    pub(super) fn known(&self) -> BTreeSet<Slot> {
        let params = self.params.iter().map(|(slot, _)| *slot);
        params
            .chain(self.constants.iter().map(|(slot, _)| *slot))
            .collect()
    }
}

impl Network {
    /// How the rows of each cell are looked up.
    pub fn lookups(&self) -> impl Iterator<Item = Lookups<'_>> {
        let both = self.indexes.iter().zip(&self.orders);
        both.map(|(masks, orders)| Lookups { masks, orders })
    }

    /// Takes out what no leaf asks, directly or not.
    pub(crate) fn drop_unasked(&mut self, leaves: &mut [Leaf]) {
        let mut asked = vec![false; self.cells.len()];
        let mut work = Vec::new();
        for leaf in leaves.iter() {
            each_use(&leaf.node, &mut |cell| work.push(cell.cell));
            let sites = leaf.sites.iter();
            work.extend(sites.map(|site| site.cell.cell));
        }
        while let Some(cell) = work.pop() {
            let Some(known) = asked.get_mut(cell) else {
                continue;
            };
            if std::mem::replace(known, true) {
                continue;
            }
            let nodes = self.cells.get(cell).map(CellDef::nodes);
            for node in nodes.into_iter().flatten() {
                each_use(node, &mut |cell| work.push(cell.cell));
            }
        }
        if asked.contains(&false) {
            self.remove(&|cell| asked.get(cell) == Some(&false), leaves);
        }
    }

    /// Takes cells out that no other cell asks, and numbers the rest anew.
    pub(super) fn remove(&mut self, gone: &dyn Fn(CellId) -> bool, leaves: &mut [Leaf]) {
        let mut numbers = Vec::with_capacity(self.cells.len());
        let mut left = 0;
        for cell in 0..self.cells.len() {
            numbers.push(left);
            left += usize::from(!gone(cell));
        }
        let mut renumber = |cell: &mut Use| {
            if let Some(number) = numbers.get(cell.cell) {
                cell.cell = *number;
            }
        };
        let mut at = 0..;
        self.cells.retain(|_| !at.next().is_some_and(gone));
        let mut at = 0..;
        self.indexes.retain(|_| !at.next().is_some_and(gone));
        let mut at = 0..;
        self.orders.retain(|_| !at.next().is_some_and(gone));
        let mut at = 0..;
        self.searched.retain(|_| !at.next().is_some_and(gone));
        let mut at = 0..;
        self.open.retain(|_| !at.next().is_some_and(gone));
        self.each_use_mut(leaves, &mut renumber);
        let wanted = std::mem::take(&mut self.wanted).into_iter();
        self.wanted = wanted
            .filter_map(|(cell, wanted)| Some((*numbers.get(cell)?, wanted)))
            .collect();
        let defs = self.cells.iter().cloned().enumerate();
        self.ids = defs.map(|(cell, def)| (def, cell)).collect();
    }

    pub(super) fn cell(&mut self, def: CellDef) -> CellId {
        if let Some(&id) = self.ids.get(&def) {
            return id;
        }
        let id = self.cells.len();
        self.open.push(leaves_open(&def, &self.cells, &self.open));
        self.cells.push(def.clone());
        self.indexes.push(BTreeSet::new());
        self.orders.push(BTreeSet::new());
        self.searched.push(false);
        // Lookups made while this cell is brought up to date: nothing of the request is known there.
        let none = BTreeSet::new();
        match &def.op {
            CellOp::Formerly(body) | CellOp::Previous(body) | CellOp::Window { body, .. } => {
                self.note_lookups(body, &mut none.clone());
            }
            // Looked up by what the other side has; see `pairs`.
            CellOp::Pair { .. } | CellOp::Nested { .. } | CellOp::Reread(_) => {}
            CellOp::Since {
                left,
                right,
                breaks,
            } => {
                self.note_lookups(right, &mut none.clone());
                match breaks {
                    BreakShape::General => {
                        let mut anchored = right.bound(&self.cells);
                        self.note_lookups(left, &mut anchored);
                    }
                    BreakShape::Parts(parts) => {
                        for part in parts {
                            if !matches!(part.how, How::Lasting { .. }) {
                                self.note_lookups(&part.node, &mut none.clone());
                            }
                        }
                    }
                }
            }
        }
        self.ids.insert(def, id);
        id
    }

    /// Registers by which columns each cell is asked, walking in the order of evaluation.
    pub(super) fn note_lookups(&mut self, node: &Node, known: &mut BTreeSet<Slot>) {
        match node {
            Node::And(parts) => {
                for part in parts {
                    self.note_lookups(part, known);
                }
            }
            Node::Not(body) => self.note_lookups(body, &mut known.clone()),
            Node::Exists(slot, body) => {
                known.remove(slot);
                self.note_lookups(body, known);
                known.remove(slot);
            }
            Node::Match(_) | Node::Tp(_) => known.extend(node.free()),
            Node::Bind(slot, term) => {
                self.note_term_lookups(term, known);
                known.insert(*slot);
            }
            Node::Compare(_, left, right) => {
                self.note_term_lookups(left, known);
                self.note_term_lookups(right, known);
            }
            Node::Among(cell, column, _) => {
                self.note_order(cell, *column, known);
                known.extend(node.bound(&self.cells));
            }
            Node::Cell(cell) => {
                let Some(def) = self.cells.get(cell.cell) else {
                    return;
                };
                let mut mask = 0u64;
                for (at, column) in def.columns.iter().enumerate().take(64) {
                    if cell
                        .outer(*column)
                        .is_some_and(|slot| known.contains(&slot))
                    {
                        mask |= 1 << at;
                    }
                }
                let all = def.columns.len() == mask.count_ones() as usize;
                if !all && let Some(searched) = self.searched.get_mut(cell.cell) {
                    *searched = true;
                }
                if mask != 0
                    && !all
                    && let Some(masks) = self.indexes.get_mut(cell.cell)
                {
                    masks.insert(mask);
                }
                known.extend(node.bound(&self.cells));
            }
            Node::Never => {}
        }
    }

    /// Registers that rows are found by what is known and in the order of a column.
    fn note_order(&mut self, cell: &Use, column: Slot, known: &BTreeSet<Slot>) {
        let Some(def) = self.cells.get(cell.cell) else {
            return;
        };
        let mut mask = 0u64;
        let mut place = None;
        for (at, own) in def.columns.iter().enumerate().take(64) {
            match cell.outer(*own) {
                Some(slot) if slot == column => place = Some(at),
                Some(slot) if known.contains(&slot) => mask |= 1 << at,
                _ => {}
            }
        }
        if let (Some(place), Some(orders)) = (place, self.orders.get_mut(cell.cell)) {
            orders.insert((mask, place));
        }
    }

    fn note_term_lookups(&mut self, term: &Term, known: &BTreeSet<Slot>) {
        match term {
            Term::Total { vars, body, .. } => {
                let mut inner = known.clone();
                inner.retain(|slot| !vars.contains(slot));
                self.note_lookups(body, &mut inner);
            }
            Term::Arith(_, left, right) => {
                self.note_term_lookups(left, known);
                self.note_term_lookups(right, known);
            }
            Term::Known(_) | Term::Slot(_) | Term::Window { .. } => {}
        }
    }
}
