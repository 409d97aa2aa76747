//! Whether what a cell keeps grows with the events in its windows and no faster.

use super::family::each_use;
use super::formula::{BreakShape, CellDef, CellOp, How, Node, Term, Use};
use super::open::waits;
use super::row::Slot;
use std::collections::BTreeSet;

/// The cells so far, and which of them can leave something open.
pub(super) struct Kept<'c> {
    pub cells: &'c [CellDef],
    pub open: &'c [bool],
}

impl Kept<'_> {
    /// Whether an event adds few rows to a cell, or rows that single events have told apart; and so to the
    /// cells that it asks.
    pub fn is_linear(&self, def: &CellDef) -> bool {
        let mut asked = BTreeSet::new();
        let mut work = vec![def];
        while let Some(def) = work.pop() {
            if !self.adds_few(def) {
                return false;
            }
            for node in def.nodes() {
                each_use(node, &mut |cell| {
                    if asked.insert(cell.cell) {
                        work.extend(self.cells.get(cell.cell));
                    }
                });
            }
        }
        true
    }

    fn adds_few(&self, def: &CellDef) -> bool {
        match &def.op {
            CellOp::Formerly(body) | CellOp::Previous(body) => self.rows(body, &def.columns),
            CellOp::Since { right, breaks, .. } => {
                let BreakShape::Parts(parts) = breaks else {
                    return false;
                };
                let kept = parts.iter().all(|part| match part.how {
                    How::Hit => self.rows(&part.node, &part.keys),
                    // The rows of one event are compared with those of the last.
                    How::Miss => self.tried(&part.node, &mut BTreeSet::new()) == Some(0),
                    How::Lasting { .. } => true,
                });
                kept && self.rows(right, &def.columns)
            }
            CellOp::Window { .. }
            | CellOp::Pair { .. }
            | CellOp::Nested { .. }
            | CellOp::Reread(_) => true,
        }
    }

    fn rows(&self, body: &Node, columns: &[Slot]) -> bool {
        match self.tried(body, &mut BTreeSet::new()) {
            Some(0) => true,
            Some(1) => {
                let mut known = BTreeSet::new();
                !waits(body, &mut known, self.cells, self.open) && self.of_one(body, columns)
            }
            _ => false,
        }
    }

    /// How many parts of a formula have more than one row at an event. Nothing, where a row can be as large as
    /// what is held, or a row of one part is tried with many others.
    fn tried(&self, node: &Node, known: &mut BTreeSet<Slot>) -> Option<usize> {
        match node {
            Node::And(parts) => {
                let each = parts.iter().map(|part| self.tried(part, known));
                each.sum()
            }
            Node::Not(body) => self.tried(body, &mut known.clone()),
            Node::Exists(slot, body) => {
                known.remove(slot);
                let tried = self.tried(body, known);
                known.remove(slot);
                tried
            }
            Node::Match(_) | Node::Tp(_) => {
                known.extend(node.free());
                Some(0)
            }
            Node::Bind(slot, term) => {
                let tried = self.totalled(term, known);
                known.insert(*slot);
                tried
            }
            Node::Compare(_, left, right) => {
                Some(self.totalled(left, known)? + self.totalled(right, known)?)
            }
            Node::Cell(cell) => self.asked(cell, known),
            Node::Among(..) => None,
            Node::Never => Some(0),
        }
    }

    fn asked(&self, cell: &Use, known: &mut BTreeSet<Slot>) -> Option<usize> {
        if self.open.get(cell.cell).copied().unwrap_or(true) {
            return None;
        }
        let mut slots = cell.outer_slots();
        let all_known = slots.all(|slot| known.contains(&slot));
        known.extend(Node::Cell(cell.clone()).bound(self.cells));
        Some(usize::from(!all_known))
    }

    /// The same of a term. An aggregate that waits for something is written into the row as a whole.
    fn totalled(&self, term: &Term, known: &BTreeSet<Slot>) -> Option<usize> {
        match term {
            Term::Total { vars, body, .. } => {
                let mut inner = known.clone();
                inner.retain(|slot| !vars.contains(slot));
                let waits = waits(body, &mut inner.clone(), self.cells, self.open);
                if waits {
                    None
                } else {
                    self.tried(body, &mut inner)
                }
            }
            Term::Arith(_, left, right) => {
                Some(self.totalled(left, known)? + self.totalled(right, known)?)
            }
            Term::Known(_) | Term::Slot(_) => Some(0),
            Term::Window { .. } => None,
        }
    }

    /// Whether all columns have their values from the event at hand, or all from one cell.
    fn of_one(&self, node: &Node, columns: &[Slot]) -> bool {
        let mut body = node;
        while let Node::Exists(_, inner) = body {
            body = inner;
        }
        let parts = match body {
            Node::And(parts) => parts.as_slice(),
            part => std::slice::from_ref(part),
        };
        let own = parts
            .iter()
            .filter(|part| matches!(part, Node::Match(_) | Node::Tp(_)));
        let own: BTreeSet<Slot> = own.flat_map(Node::free).collect();
        let cells = parts.iter().filter(|part| matches!(part, Node::Cell(_)));
        let mut sources = cells.map(|cell| cell.bound(self.cells));
        let has = |source: &BTreeSet<Slot>| columns.iter().all(|column| source.contains(column));
        has(&own) || sources.any(|source| has(&source))
    }
}
