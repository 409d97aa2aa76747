//! What cells cost: what an event and a decision do beside a fixed number of lookups, and why.

use super::build::{Leaf, Network};
use super::formula::{BreakShape, CellDef, CellId, CellOp, Node, Term};
use super::row::Slot;
use std::collections::BTreeSet;

/// Nothing, where the work does not grow with what is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CellCost {
    pub update: Option<&'static str>,
    pub lookup: Option<&'static str>,
}

const OPEN: &str = "its rows wait for what the request says, and each of the same key is asked";
const TRIED: &str = "its rows are tried one by one against the rest of the condition";
const TOTALLED: &str = "an aggregate goes through its rows";
const ANCHORS: &str = "its anchors are tried one by one until one is not broken";
const TAKEN_OVER: &str = "an event takes over rows of the operators inside it";
const PAIRED: &str = "an event changes every pair that has its values";
const WEAKENED: &str = "each event that can end an anchor asks every anchor";

/// The costs of all cells, for these leaves.
pub(crate) fn costs(network: &Network, leaves: &[Leaf]) -> Vec<CellCost> {
    let mut open: Vec<bool> = Vec::with_capacity(network.cells.len());
    let mut costs = vec![CellCost::default(); network.cells.len()];
    for (number, def) in network.cells.iter().enumerate() {
        let leaves_open = leaves_open(def, &network.cells, &open);
        open.push(leaves_open);
        let mut grows = false;
        let mut walk = Walk {
            cells: &network.cells,
            open: &open,
            found: &mut |_, _| grows = true,
        };
        let nothing = &mut BTreeSet::new();
        match &def.op {
            CellOp::Formerly(body) | CellOp::Previous(body) | CellOp::Window { body, .. } => {
                walk.node(body, nothing, Some(TRIED));
            }
            CellOp::Since { right, .. } => walk.node(right, nothing, Some(TRIED)),
            CellOp::Pair { .. } => {}
        }
        if let Some(cost) = costs.get_mut(number) {
            cost.update = match &def.op {
                CellOp::Since {
                    breaks: BreakShape::General,
                    ..
                } => Some(WEAKENED),
                CellOp::Pair {
                    right: Node::Cell(right),
                    ..
                } if right.outer_slots().count() < def.columns.len() => Some(PAIRED),
                _ => grows.then_some(TAKEN_OVER),
            };
        }
    }
    for leaf in leaves {
        let mut walk = Walk {
            cells: &network.cells,
            open: &open,
            found: &mut |cell, why| {
                if let Some(cost) = costs.get_mut(cell) {
                    cost.lookup = cost.lookup.or(Some(why));
                }
            },
        };
        walk.node(&leaf.node, &mut leaf.known(), None);
    }
    costs
}

/// A formula in the order of evaluation.
struct Walk<'w> {
    cells: &'w [CellDef],
    /// The cells that can have rows which leave something open.
    open: &'w [bool],
    /// Takes each cell of which more than one row is asked.
    found: &'w mut dyn FnMut(CellId, &'static str),
}

impl Walk<'_> {
    /// `all` says why more than the first row of the formula is asked, if it is.
    fn node(&mut self, node: &Node, known: &mut BTreeSet<Slot>, all: Option<&'static str>) {
        match node {
            Node::And(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    let last = at + 1 == parts.len();
                    self.node(part, known, if last { all } else { all.or(Some(TRIED)) });
                }
            }
            Node::Not(body) => self.node(body, &mut known.clone(), None),
            Node::Exists(slot, body) => {
                known.remove(slot);
                self.node(body, known, all);
                known.remove(slot);
            }
            Node::Match(_) | Node::Tp(_) => known.extend(node.free()),
            Node::Bind(slot, term) => {
                self.term(term, known);
                known.insert(*slot);
            }
            Node::Compare(_, left, right) => {
                self.term(left, known);
                self.term(right, known);
            }
            Node::Cell(cell) => {
                let is_open = self.open.get(cell.cell).copied().unwrap_or(true);
                let all_known = cell.outer_slots().all(|slot| known.contains(&slot));
                let anchors = matches!(
                    self.cells.get(cell.cell).map(|def| &def.op),
                    Some(CellOp::Since { .. })
                );
                if is_open {
                    (self.found)(cell.cell, OPEN);
                } else if !all_known && let Some(why) = all {
                    (self.found)(cell.cell, why);
                } else if !all_known && anchors {
                    (self.found)(cell.cell, ANCHORS);
                }
                known.extend(node.bound(self.cells));
            }
            Node::Never => {}
        }
    }

    fn term(&mut self, term: &Term, known: &BTreeSet<Slot>) {
        match term {
            Term::Total { vars, body, .. } => {
                let mut inner = known.clone();
                inner.retain(|slot| !vars.contains(slot));
                self.node(body, &mut inner, Some(TOTALLED));
            }
            Term::Arith(_, left, right) => {
                self.term(left, known);
                self.term(right, known);
            }
            Term::Known(_) | Term::Slot(_) | Term::Window { .. } => {}
        }
    }
}

/// Whether rows of a cell can leave something open. A column without a value alone is not that: of each
/// key there is one row.
fn leaves_open(def: &CellDef, cells: &[CellDef], open: &[bool]) -> bool {
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
        CellOp::Window { .. } | CellOp::Pair { .. } => false,
    }
}

/// Whether a condition in it can still be undecided at the event.
fn waits(node: &Node, known: &mut BTreeSet<Slot>, cells: &[CellDef], open: &[bool]) -> bool {
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
        Node::Cell(cell) => {
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
