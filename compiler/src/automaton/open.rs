//! What can still be undecided when an event is taken in, because it depends on the request.

use super::formula::{BreakShape, CellDef, CellOp, Node, Term};
use super::row::Slot;
use std::collections::BTreeSet;

/// Whether rows of a cell can leave something open. A column without a value alone is not that: of each
/// key there is one row.
pub(super) fn leaves_open(def: &CellDef, cells: &[CellDef], open: &[bool]) -> bool {
    let mut known = BTreeSet::new();
    match &def.op {
        CellOp::Formerly(body) | CellOp::Previous(body) => waits(body, &mut known, cells, open),
        CellOp::Since {
            left,
            right,
            breaks,
        } => {
            let anchor = waits(right, &mut known, cells, open);
            let ended = *breaks == BreakShape::General
                && (waits(left, &mut known.clone(), cells, open) || !left.free().is_subset(&known));
            anchor || ended
        }
        CellOp::Window { .. } | CellOp::Pair { .. } | CellOp::Nested { .. } | CellOp::Reread(_) => {
            false
        }
    }
}

/// Whether a condition in it can still be undecided at the event.
pub(super) fn waits(
    node: &Node,
    known: &mut BTreeSet<Slot>,
    cells: &[CellDef],
    open: &[bool],
) -> bool {
    let term_waits = |term: &Term, known: &BTreeSet<Slot>| {
        !term.free().is_subset(known) || total_waits(term, known, cells, open)
    };
    match node {
        // Every part, so that all that is bound is known.
        Node::And(parts) => {
            let mut any = false;
            for part in parts {
                any |= waits(part, known, cells, open);
            }
            any
        }
        Node::Not(body) => {
            !body.free().is_subset(known) || waits(body, &mut known.clone(), cells, open)
        }
        Node::Exists(slot, body) => {
            known.remove(slot);
            let body = waits(body, known, cells, open);
            known.remove(slot);
            body
        }
        Node::Match(_) | Node::Tp(_) => {
            known.extend(node.free());
            false
        }
        Node::Bind(slot, term) => {
            let waits = term_waits(term, known);
            known.insert(*slot);
            waits
        }
        Node::Compare(_, left, right) => term_waits(left, known) || term_waits(right, known),
        Node::Cell(cell) | Node::Among(cell, ..) => {
            known.extend(node.bound(cells));
            open.get(cell.cell).copied().unwrap_or(true)
        }
        Node::Never => false,
    }
}

fn total_waits(term: &Term, known: &BTreeSet<Slot>, cells: &[CellDef], open: &[bool]) -> bool {
    match term {
        Term::Total { vars, body, .. } => {
            let mut inner = known.clone();
            inner.retain(|slot| !vars.contains(slot));
            waits(body, &mut inner, cells, open)
        }
        Term::Arith(_, left, right) => {
            total_waits(left, known, cells, open) || total_waits(right, known, cells, open)
        }
        Term::Known(_) | Term::Slot(_) | Term::Window { .. } => false,
    }
}

/// For a formula whose rows leave nothing open, the slots that each of them binds, all that it has.
pub(super) fn plain_rows(node: &Node, cells: &[CellDef], open: &[bool]) -> Option<Vec<Slot>> {
    let (free, bound) = (node.free(), node.bound(cells));
    let plain = free.is_subset(&bound) && !waits(node, &mut BTreeSet::new(), cells, open);
    plain.then(|| free.into_iter().collect())
}

/// Whether every row of the cell binds all columns and leaves nothing open.
pub(super) fn plain_cell(def: &CellDef, open: bool, cells: &[CellDef]) -> bool {
    match &def.op {
        CellOp::Formerly(body) if !open => {
            let bound = body.bound(cells);
            def.columns.iter().all(|column| bound.contains(column))
        }
        _ => false,
    }
}
