//! What cells cost: what an event and a decision do beside a fixed number of lookups, and why.

use super::build::{Leaf, Network};
use super::formula::{BreakShape, CellDef, CellId, CellOp, How, Node, Term, Test, Then, When};
use super::row::{Cmp, Slot};
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
// These two of rules that no check has seen only (see `BreakShape::General`).
const TAKEN_OVER: &str = "an event takes over rows of the operators inside it";
const WEAKENED: &str = "each event that can end an anchor asks every anchor";
const PAIRED: &str = "an event changes every pair that has its values";

const REREAD: &str =
    "the events in its windows are gone through, once for each value that a variable can have";
const GONE_THROUGH: &str = "the events that have its values are gone through until one fits";

/// Whether few events are asked: what fails at one fails for a whole inner window.
fn asks_few(when: &When) -> bool {
    let skips = |then: &Then| match &then.test {
        Test::Formerly(inner, _) => !then.negated && inner.then.is_empty(),
        _ => false,
    };
    when.then.iter().all(skips)
}

/// Whether an operator is answered so.
fn skips(test: &Test) -> bool {
    match test {
        Test::Now(when) | Test::Previous(when, _) | Test::Formerly(when, _) => asks_few(when),
        Test::Number(number) => {
            let listed = number.sum.is_some() || number.distinct.is_some();
            !listed && number.when.then.is_empty()
        }
        Test::Compare(..) => true,
        Test::Since(anchor, breaks, _) => asks_few(anchor) && breaks.iter().all(asks_few),
        Test::All(parts) => parts.iter().all(|then| skips(&then.test)),
    }
}

/// The costs of all cells, for these leaves.
pub(crate) fn costs(network: &Network, leaves: &[Leaf]) -> Vec<CellCost> {
    let open = network.open.as_slice();
    let mut costs = vec![CellCost::default(); network.cells.len()];
    for (number, def) in network.cells.iter().enumerate() {
        let mut grows = false;
        let mut walk = Walk {
            cells: &network.cells,
            open,
            found: &mut |_, _| grows = true,
        };
        let nothing = &mut BTreeSet::new();
        match &def.op {
            CellOp::Formerly(body) | CellOp::Previous(body) | CellOp::Window { body, .. } => {
                walk.node(body, nothing, Some(TRIED));
            }
            CellOp::Since { right, breaks, .. } => {
                walk.node(right, nothing, Some(TRIED));
                if let BreakShape::Parts(parts) = breaks {
                    for part in parts {
                        if !matches!(part.how, How::Lasting { .. }) {
                            walk.node(&part.node, &mut BTreeSet::new(), Some(TRIED));
                        }
                    }
                }
            }
            CellOp::Pair { .. } | CellOp::Nested { .. } | CellOp::Reread(_) => {}
        }
        if let Some(cost) = costs.get_mut(number) {
            if let CellOp::Nested { test, .. } = &def.op
                && !skips(test)
            {
                cost.lookup = Some(GONE_THROUGH);
            }
            if let CellOp::Reread(_) = &def.op {
                cost.lookup = Some(REREAD);
            }
            cost.update = match &def.op {
                CellOp::Since {
                    breaks: BreakShape::General,
                    ..
                } => Some(WEAKENED),
                CellOp::Pair { others, .. }
                    if others
                        .iter()
                        .any(|other| other.node.free().len() < def.columns.len()) =>
                {
                    Some(PAIRED)
                }
                _ => grows.then_some(TAKEN_OVER),
            };
        }
    }
    for leaf in leaves {
        let mut walk = Walk {
            cells: &network.cells,
            open,
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
                    let rest = parts.get(at + 1..).unwrap_or(&[]);
                    let last = rest.is_empty() || self.all_but_few(part, rest, known);
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
            Node::Cell(cell) | Node::Among(cell, ..) => {
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

    /// Whether the rest of a conjunction leaves out only so many rows of a part as it has comparisons: where one
    /// column is unknown, and it must differ from what is known.
    fn all_but_few(&self, part: &Node, rest: &[Node], known: &BTreeSet<Slot>) -> bool {
        let Node::Cell(cell) = part else {
            return false;
        };
        let mut unknown = cell.outer_slots().filter(|slot| !known.contains(slot));
        let (Some(column), None) = (unknown.next(), unknown.next()) else {
            return false;
        };
        let is_known = |term: &Term| !term.has_cells() && term.free().is_subset(known);
        let is_column = |term: &Term| *term == Term::Slot(column);
        rest.iter().all(|node| match node {
            Node::Compare(Cmp::Ne, left, right) => {
                (is_column(left) && is_known(right)) || (is_known(left) && is_column(right))
            }
            _ => false,
        })
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
