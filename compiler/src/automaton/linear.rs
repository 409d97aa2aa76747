//! Whether an event costs a cell a few look-ups, and adds a row at most, so that what is kept grows as the
//! events in the windows do.

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
    /// Whether an event adds one row at most to a cell, and to the cells that it asks.
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
            CellOp::Formerly(body) | CellOp::Previous(body) => self.has_one_row(body),
            CellOp::Since { right, breaks, .. } => {
                let BreakShape::Parts(parts) = breaks else {
                    return false;
                };
                let mut parts = parts.iter();
                let kept = parts.all(|part| match part.how {
                    How::Hit | How::Miss => self.has_one_row(&part.node),
                    How::Lasting { .. } => true,
                });
                kept && self.has_one_row(right)
            }
            CellOp::Window { .. }
            | CellOp::Pair { .. }
            | CellOp::Nested { .. }
            | CellOp::Reread(_) => true,
        }
    }

    fn has_one_row(&self, body: &Node) -> bool {
        self.is_one_row(body, &mut BTreeSet::new())
    }

    /// Whether a formula has one row at an event, no larger than itself, whatever it waits for.
    fn is_one_row(&self, node: &Node, known: &mut BTreeSet<Slot>) -> bool {
        match node {
            Node::And(parts) => parts.iter().all(|part| self.is_one_row(part, known)),
            Node::Not(body) => self.is_one_row(body, &mut known.clone()),
            Node::Exists(slot, body) => {
                known.remove(slot);
                let one = self.is_one_row(body, known);
                known.remove(slot);
                one
            }
            Node::Match(_) | Node::Tp(_) => {
                known.extend(node.free());
                true
            }
            Node::Bind(slot, term) => {
                let one = self.is_of_one_row(term, known);
                known.insert(*slot);
                one
            }
            Node::Compare(_, left, right) => {
                self.is_of_one_row(left, known) && self.is_of_one_row(right, known)
            }
            Node::Cell(cell) => self.is_looked_up(cell, known),
            Node::Among(..) => false,
            Node::Never => true,
        }
    }

    fn is_looked_up(&self, cell: &Use, known: &BTreeSet<Slot>) -> bool {
        let waits = self.open.get(cell.cell).copied().unwrap_or(true);
        let mut slots = cell.outer_slots();
        !waits && slots.all(|slot| known.contains(&slot))
    }

    /// An aggregate that waits for something is written into the row as a whole.
    fn is_of_one_row(&self, term: &Term, known: &BTreeSet<Slot>) -> bool {
        match term {
            Term::Total { vars, body, .. } => {
                let mut inner = known.clone();
                inner.retain(|slot| !vars.contains(slot));
                let waits = waits(body, &mut inner.clone(), self.cells, self.open);
                !waits && self.is_one_row(body, &mut inner)
            }
            Term::Arith(_, left, right) => {
                self.is_of_one_row(left, known) && self.is_of_one_row(right, known)
            }
            Term::Known(_) | Term::Slot(_) => true,
            Term::Window { .. } => false,
        }
    }
}
