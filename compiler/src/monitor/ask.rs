//! Leaves that ask cells for one key each, all of it known at the decision: answered without rows.

use crate::automaton::build::{Leaf, Network};
use crate::automaton::cell::CellState;
use crate::automaton::formula::{BreakShape, CellDef, CellId, CellOp, Node, Term, Use};
use crate::automaton::row::{Cmp, Slot, Sym};
use crate::automaton::solve::Moment;
use crate::automaton::store::{At, in_window};
use crate::automaton::value::Val;
use smallvec::SmallVec;

#[derive(Clone, Debug)]
pub(super) enum Ask {
    All(Vec<Ask>),
    Not(Box<Ask>),
    /// Whether the cell has a row of these values within so many seconds.
    Row(CellId, i64, Vec<Part>),
    /// A comparison of a running total over so many seconds with a number.
    Total(Cmp, CellId, i64, Vec<Part>, Part),
}

/// What a slot of the leaf stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Param(usize),
    Val(Val),
}

type Vals = SmallVec<[Val; 4]>;

impl Ask {
    /// The quick form of a leaf, if it has one.
    pub fn new(network: &Network, leaf: &Leaf) -> Option<Ask> {
        Plan { network, leaf }.node(&leaf.node)
    }

    /// Whether it holds, where `param` reads the request.
    pub fn holds(&self, moment: &Moment<'_>, param: &mut dyn FnMut(usize) -> Option<Val>) -> bool {
        match self {
            Ask::All(asks) => asks.iter().all(|ask| ask.holds(moment, param)),
            Ask::Not(ask) => !ask.holds(moment, param),
            // What the request does not have equals nothing.
            Ask::Row(cell, window, parts) => {
                read(parts, param).is_some_and(|key| has_row(moment, *cell, *window, &key))
            }
            Ask::Total(op, cell, window, parts, bound) => {
                let Some(bound) = bound.read(param) else {
                    return false;
                };
                let total = read(parts, param).and_then(|key| total(moment, *cell, *window, &key));
                op.holds(Val::Int(total.unwrap_or(0)), bound)
            }
        }
    }
}

impl Part {
    fn read(self, param: &mut dyn FnMut(usize) -> Option<Val>) -> Option<Val> {
        match self {
            Part::Param(number) => param(number),
            Part::Val(val) => Some(val),
        }
    }
}

fn read(parts: &[Part], param: &mut dyn FnMut(usize) -> Option<Val>) -> Option<Vals> {
    parts.iter().map(|part| part.read(param)).collect()
}

fn has_row(moment: &Moment<'_>, cell: CellId, window: i64, key: &[Val]) -> bool {
    let (Some(def), Some(state)) = (moment.defs.get(cell), moment.states.get(cell)) else {
        return false;
    };
    let inside = |at: &At| in_window(at.time, moment.at.time, window);
    match state {
        CellState::Formerly(table) => table
            .times(key)
            .is_some_and(|times| times.iter().any(inside)),
        CellState::Since { anchors, breaks } => {
            let Some(times) = anchors.times(key) else {
                return false;
            };
            let known = |slot: Slot| {
                let column = def.columns.iter().position(|column| *column == slot)?;
                key.get(column).copied()
            };
            let from = moment.unbroken_from(def, breaks, &known);
            times.iter().any(|at| at.pos >= from && inside(at))
        }
        _ => false,
    }
}

fn total(moment: &Moment<'_>, cell: CellId, window: i64, key: &[Val]) -> Option<i64> {
    match moment.states.get(cell)? {
        CellState::Window(counts) => Some(counts.value(key, moment.at.time, window)),
        _ => None,
    }
}

struct Plan<'p> {
    network: &'p Network,
    leaf: &'p Leaf,
}

impl Plan<'_> {
    fn node(&self, node: &Node) -> Option<Ask> {
        match node {
            Node::And(parts) => {
                let asks = parts.iter().map(|part| self.node(part));
                Some(Ask::All(asks.collect::<Option<_>>()?))
            }
            Node::Not(body) => Some(Ask::Not(Box::new(self.node(body)?))),
            Node::Cell(cell) => {
                let def = self.network.cells.get(cell.cell)?;
                if !is_plain(def) {
                    return None;
                }
                let parts = self.parts(cell, &def.columns)?;
                Some(Ask::Row(cell.cell, cell.window, parts))
            }
            Node::Compare(op, Term::Window { cell, .. }, other) => self.total(*op, cell, other),
            Node::Compare(op, other, Term::Window { cell, .. }) => {
                self.total(op.turned(), cell, other)
            }
            _ => None,
        }
    }

    fn total(&self, op: Cmp, cell: &Use, other: &Term) -> Option<Ask> {
        let def = self.network.cells.get(cell.cell)?;
        let CellOp::Window { counted, .. } = &def.op else {
            return None;
        };
        let keyed = def.columns.iter().copied();
        let keyed: Vec<Slot> = keyed.filter(|column| !counted.contains(column)).collect();
        let bound = match other {
            Term::Known(Sym::Val(val)) => Part::Val(*val),
            Term::Slot(slot) => self.part(*slot)?,
            _ => return None,
        };
        let parts = self.parts(cell, &keyed)?;
        Some(Ask::Total(op, cell.cell, cell.window, parts, bound))
    }

    fn parts(&self, cell: &Use, columns: &[Slot]) -> Option<Vec<Part>> {
        let parts = columns.iter().map(|column| self.part(cell.outer(*column)?));
        parts.collect()
    }

    fn part(&self, slot: Slot) -> Option<Part> {
        let mut params = self.leaf.params.iter();
        if let Some((_, param)) = params.find(|(known, _)| *known == slot) {
            return Some(Part::Param(*param));
        }
        let mut constants = self.leaf.constants.iter();
        let (_, val) = constants.find(|(known, _)| *known == slot)?;
        Some(Part::Val(*val))
    }
}

/// Whether every row of the cell has all columns, and no condition left open.
fn is_plain(def: &CellDef) -> bool {
    match &def.op {
        CellOp::Formerly(_) => def.flat(),
        CellOp::Since {
            right,
            breaks: BreakShape::Parts(_),
            ..
        } => right.flat().is_some_and(|bound| {
            let mut columns = def.columns.iter();
            columns.all(|column| bound.contains(column))
        }),
        _ => false,
    }
}
