//! Where a leaf asks a cell for a row with a number larger or smaller than something known, such rows are found
//! in the order of that number.

use super::formula::{Node, Term, Use};
use super::network::Network;
use super::open::plain_cell;
use super::row::{Cmp, Slot};
use std::collections::BTreeSet;

impl Network {
    /// Walks a leaf in the order of evaluation; the `known` slots have a value before.
    pub(super) fn narrow(&mut self, node: &mut Node, known: &mut BTreeSet<Slot>) {
        match node {
            Node::And(parts) => {
                let mut at = 0;
                while at < parts.len() {
                    self.narrow_part(parts, at, known);
                    if let Some(part) = parts.get_mut(at) {
                        self.narrow(part, known);
                    }
                    at += 1;
                }
                if let [_] = parts.as_slice()
                    && let Some(part) = parts.pop()
                {
                    *node = part;
                }
            }
            Node::Not(body) => self.narrow(body, &mut known.clone()),
            Node::Exists(slot, body) => {
                known.remove(slot);
                self.narrow(body, known);
                known.remove(slot);
            }
            Node::Compare(_, left, right) => {
                self.narrow_term(left, known);
                self.narrow_term(right, known);
            }
            Node::Bind(slot, term) => {
                self.narrow_term(term, known);
                known.insert(*slot);
            }
            Node::Match(_) | Node::Tp(_) => known.extend(node.free()),
            Node::Cell(_) | Node::Among(..) => known.extend(node.bound(&self.cells)),
            Node::Never => {}
        }
    }

    fn narrow_term(&mut self, term: &mut Term, known: &BTreeSet<Slot>) {
        match term {
            Term::Total { vars, body, .. } => {
                let mut inner = known.clone();
                inner.retain(|slot| !vars.contains(slot));
                self.narrow(body, &mut inner);
            }
            Term::Arith(_, left, right) => {
                self.narrow_term(left, known);
                self.narrow_term(right, known);
            }
            Term::Known(_) | Term::Slot(_) | Term::Window { .. } => {}
        }
    }

    /// Takes the comparisons of one unknown column of a cell into the lookup.
    fn narrow_part(&mut self, parts: &mut Vec<Node>, at: usize, known: &BTreeSet<Slot>) {
        let Some(Node::Cell(cell)) = parts.get(at) else {
            return;
        };
        let cell = cell.clone();
        if !self.has_plain_rows(&cell) {
            return;
        }
        let unknown = |slot: Slot| {
            let mut slots = cell.outer_slots();
            slots.any(|own| own == slot) && !known.contains(&slot)
        };
        let mut rest = parts.iter().skip(at + 1);
        let compared = rest.find_map(|part| {
            let (slot, ..) = bound(part, known)?;
            unknown(slot).then_some(slot)
        });
        let Some(column) = compared else { return };
        let mut bounds = Vec::new();
        let mut place = 0..;
        parts.retain(|part| {
            let later = place.next().is_some_and(|place| place > at);
            match bound(part, known) {
                Some((slot, op, term)) if later && slot == column => {
                    bounds.push((op, term));
                    false
                }
                _ => true,
            }
        });
        if let Some(part) = parts.get_mut(at) {
            *part = Node::Among(cell, column, bounds);
        }
    }

    fn has_plain_rows(&self, cell: &Use) -> bool {
        let def = self.cells.get(cell.cell);
        let open = self.open.get(cell.cell).copied().unwrap_or(true);
        def.is_some_and(|def| def.columns.len() < 64 && plain_cell(def, open, &self.cells))
    }
}

/// A comparison of a slot, on the left, with something known.
fn bound(node: &Node, known: &BTreeSet<Slot>) -> Option<(Slot, Cmp, Term)> {
    let Node::Compare(op, left, right) = node else {
        return None;
    };
    if !matches!(op, Cmp::Lt | Cmp::Le | Cmp::Gt | Cmp::Ge) {
        return None;
    }
    let is_known = |term: &Term| !term.has_cells() && term.free().is_subset(known);
    match (left, right) {
        (Term::Slot(slot), term) if is_known(term) => Some((*slot, *op, term.clone())),
        (term, Term::Slot(slot)) if is_known(term) => Some((*slot, op.turned(), term.clone())),
        _ => None,
    }
}
