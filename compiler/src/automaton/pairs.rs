//! Where a leaf asks two cells for a common row, one cell that keeps such rows takes their place.
//!
//! Only where the rows of one side are told apart by nothing that the other does not have: there are then no
//! more pairs than the other side has rows.

use super::build::Network;
use super::formula::{CellDef, CellId, CellOp, Node, Term, Triggers, Use};
use super::row::Slot;
use std::collections::BTreeSet;

impl Network {
    /// Walks a leaf in the order of evaluation; the `known` slots have a value before.
    pub(super) fn pair_up(&mut self, node: &mut Node, known: &mut BTreeSet<Slot>) {
        match node {
            Node::And(parts) => {
                let mut at = 0;
                while at < parts.len() {
                    let partner = (at + 1..parts.len())
                        .find_map(|other| Some((other, self.pair(parts, at, other, known)?)));
                    if let Some((other, pair)) = partner {
                        parts.remove(other);
                        if let Some(part) = parts.get_mut(at) {
                            *part = pair;
                        }
                    }
                    if let Some(part) = parts.get_mut(at) {
                        self.pair_up(part, known);
                    }
                    at += 1;
                }
            }
            Node::Not(body) => self.pair_up(body, &mut known.clone()),
            Node::Exists(slot, body) => {
                known.remove(slot);
                self.pair_up(body, known);
                known.remove(slot);
            }
            Node::Match(_) | Node::Tp(_) => known.extend(node.free()),
            Node::Bind(slot, term) => {
                self.pair_up_term(term, known);
                known.insert(*slot);
            }
            Node::Compare(_, left, right) => {
                self.pair_up_term(left, known);
                self.pair_up_term(right, known);
            }
            Node::Cell(_) => known.extend(node.bound(&self.cells)),
            Node::Never => {}
        }
    }

    fn pair_up_term(&mut self, term: &mut Term, known: &BTreeSet<Slot>) {
        match term {
            Term::Total { vars, body, .. } => {
                let mut inner = known.clone();
                inner.retain(|slot| !vars.contains(slot));
                self.pair_up(body, &mut inner);
            }
            Term::Arith(_, left, right) => {
                self.pair_up_term(left, known);
                self.pair_up_term(right, known);
            }
            Term::Known(_) | Term::Slot(_) | Term::Window { .. } => {}
        }
    }

    /// What takes the place of two parts of a conjunction, if they go together.
    fn pair(
        &mut self,
        parts: &[Node],
        one: usize,
        other: usize,
        known: &BTreeSet<Slot>,
    ) -> Option<Node> {
        let (a, b) = (parts.get(one)?, parts.get(other)?);
        let (left, right) = match (self.covers(a, b)?, self.covers(b, a)?) {
            (true, _) => (a, b),
            (_, true) => (b, a),
            _ => return None,
        };
        let (Node::Cell(left), Node::Cell(right)) = (left, right) else {
            return None;
        };
        let open = |slot: &Slot| !known.contains(slot);
        if !right.outer_slots().any(|slot| open(&slot)) {
            return None;
        }
        self.pair_of(left, right, known)
    }

    /// Whether the rows of one cell have all columns of the other. Nothing, where either is not the latest
    /// times of rows that leave nothing open.
    fn covers(&self, one: &Node, other: &Node) -> Option<bool> {
        let (Node::Cell(one), Node::Cell(other)) = (one, other) else {
            return None;
        };
        let plain = |cell: &Use| {
            let def = self.cells.get(cell.cell)?;
            (def.flat() && def.columns.len() < 64).then_some(())
        };
        plain(one)?;
        plain(other)?;
        let columns: BTreeSet<Slot> = one.outer_slots().collect();
        Some(other.outer_slots().all(|slot| columns.contains(&slot)))
    }

    fn pair_of(&mut self, left: &Use, right: &Use, known: &BTreeSet<Slot>) -> Option<Node> {
        let (l, r) = (self.cells.get(left.cell)?, self.cells.get(right.cell)?);
        let (Triggers::Types(mut events), Triggers::Types(more)) = (l.triggers(), r.triggers())
        else {
            return None;
        };
        events.extend(more);
        let window = l.window.max(r.window);
        // The pair's slots are the columns of the left side; outside they stand for what these stand for.
        let slots: Vec<Slot> = l
            .columns
            .iter()
            .map(|column| left.outer(*column))
            .collect::<Option<_>>()?;
        let inside = |cell: &Use, def: &CellDef| -> Option<Use> {
            let mut own = cell.clone();
            for slot in &mut own.slots {
                *slot = super::formula::LOCAL;
            }
            for column in &def.columns {
                let outer = cell.outer(*column)?;
                let at = slots.iter().position(|slot| *slot == outer)?;
                *own.slots.get_mut(*column as usize)? = Slot::try_from(at).ok()?;
            }
            Some(own)
        };
        let (inner_left, inner_right) = (inside(left, l)?, inside(right, r)?);
        let mut group = 0u64;
        for (at, slot) in slots.iter().enumerate() {
            if known.contains(slot) {
                group |= 1 << at;
            }
        }
        let shared = inner_right
            .outer_slots()
            .fold(0u64, |mask, at| mask | 1 << at);
        let columns: Vec<Slot> = (0..Slot::try_from(slots.len()).ok()?).collect();
        let def = CellDef {
            op: CellOp::Pair {
                left: Node::Cell(inner_left),
                right: Node::Cell(inner_right),
                group,
                events,
            },
            window,
            width: columns.len(),
            columns,
        };
        self.note_index(left.cell, shared);
        let cell = self.cell(def);
        Some(Node::Cell(Use { cell, slots }))
    }

    /// Registers that a cell's rows are looked up by these columns.
    fn note_index(&mut self, cell: CellId, mask: u64) {
        let columns = self.cells.get(cell).map_or(0, |def| def.columns.len());
        if mask.count_ones() as usize != columns
            && let Some(masks) = self.indexes.get_mut(cell)
        {
            masks.insert(mask);
        }
    }
}
