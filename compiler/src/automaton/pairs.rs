//! Where a leaf asks a cell for a row that others have too, or do not have, one cell that keeps such rows takes
//! their place.
//!
//! Only where the rows of one side are told apart by all that the others have: there are then no more of them
//! than that side has rows.

use super::build::Network;
use super::formula::{CellDef, CellId, CellOp, LOCAL, Node, Other, Term, Triggers, Use};
use super::open::plain_cell;
use super::row::{Slot, Total};
use std::collections::BTreeSet;

impl Network {
    /// Walks a leaf in the order of evaluation; the `known` slots have a value before.
    pub(super) fn pair_up(&mut self, node: &mut Node, known: &mut BTreeSet<Slot>) {
        match node {
            Node::And(parts) => {
                let mut at = 0;
                while at < parts.len() {
                    self.joined(parts, at, known);
                    if let Some(part) = parts.get_mut(at) {
                        self.pair_up(part, known);
                    }
                    at += 1;
                }
                if let [_] = parts.as_slice()
                    && let Some(part) = parts.pop()
                {
                    *node = part;
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
            Node::Cell(_) | Node::Among(..) => known.extend(node.bound(&self.cells)),
            Node::Never => {}
        }
    }

    fn pair_up_term(&mut self, term: &mut Term, known: &BTreeSet<Slot>) {
        match term {
            Term::Total { op, vars, body } => {
                let mut inner = known.clone();
                inner.retain(|slot| !vars.contains(slot));
                self.pair_up(body, &mut inner.clone());
                if let Node::Cell(cell) = body.as_ref()
                    && self.counts(cell, vars, &inner)
                    && let Some(cell) = self.totalled(cell, *op, vars)
                {
                    *term = Term::Window {
                        op: *op,
                        vars: std::mem::take(vars),
                        cell,
                    };
                }
            }
            Term::Arith(_, left, right) => {
                self.pair_up_term(left, known);
                self.pair_up_term(right, known);
            }
            Term::Known(_) | Term::Slot(_) | Term::Window { .. } => {}
        }
    }

    /// Whether the number of pairs of a group is the number of tuples.
    fn counts(&self, cell: &Use, vars: &[Slot], known: &BTreeSet<Slot>) -> bool {
        let joins = matches!(
            self.cells.get(cell.cell).map(|def| &def.op),
            Some(CellOp::Pair { .. })
        );
        let counted: BTreeSet<Slot> = vars.iter().copied().collect();
        let free: BTreeSet<Slot> = cell
            .outer_slots()
            .filter(|slot| !known.contains(slot))
            .collect();
        joins && free == counted
    }

    /// The cell that keeps the number of its pairs, or a sum of theirs.
    fn totalled(&mut self, cell: &Use, op: Total, vars: &[Slot]) -> Option<Use> {
        let Total::Sum(var) = op else {
            return Some(cell.clone());
        };
        let var = vars.get(var)?;
        let mut def = self.cells.get(cell.cell)?.clone();
        if let CellOp::Pair { summed, .. } = &mut def.op {
            *summed = Some(cell.slots.iter().position(|slot| slot == var)?);
        }
        Some(Use {
            cell: self.cell(def),
            ..cell.clone()
        })
    }

    /// What takes the place of parts of a conjunction, this one and later ones, if some go together.
    fn joined(&mut self, parts: &mut Vec<Node>, at: usize, known: &BTreeSet<Slot>) {
        let candidates = (at..parts.len()).filter_map(|left| {
            let others = self.others(parts, left, at, known)?;
            let together = left == at || others.contains(&at);
            (together && !others.is_empty()).then_some((left, others))
        });
        // The first of the largest.
        let best = candidates.min_by_key(|(_, others)| std::cmp::Reverse(others.len()));
        let Some((left, others)) = best else { return };
        let Some(joined) = self.join_of(parts, left, &others, known) else {
            return;
        };
        // What comes between has nothing bound later than before: the columns of all are those of one.
        let mut place = 0..;
        parts.retain(|_| {
            let place = place.next().unwrap_or(0);
            place == at || (place != left && !others.contains(&place))
        });
        if let Some(part) = parts.get_mut(at) {
            *part = joined;
        }
    }

    /// The parts from `from` on that only say which rows of the left one count.
    fn others(
        &self,
        parts: &[Node],
        left: usize,
        from: usize,
        known: &BTreeSet<Slot>,
    ) -> Option<Vec<usize>> {
        let columns = self.columns(parts.get(left)?)?;
        let open = |slots: &BTreeSet<Slot>| slots.iter().any(|slot| !known.contains(slot));
        if !open(&columns) {
            return None;
        }
        let others = (from..parts.len()).filter(|other| {
            let node = match parts.get(*other) {
                Some(Node::Not(body)) => Some(body.as_ref()),
                part => part,
            };
            let own = node.and_then(|node| self.columns(node));
            *other != left && own.is_some_and(|own| own.is_subset(&columns) && open(&own))
        });
        Some(others.collect())
    }

    /// The slots of a cell that keeps the latest times of rows which leave nothing open.
    fn columns(&self, node: &Node) -> Option<BTreeSet<Slot>> {
        let Node::Cell(cell) = node else { return None };
        let def = self.cells.get(cell.cell)?;
        let open = self.open.get(cell.cell).copied()?;
        let fits = plain_cell(def, open, &self.cells)
            && def.columns.len() < 64
            && matches!(def.triggers(), Triggers::Types(_));
        fits.then(|| cell.outer_slots().collect())
    }

    fn join_of(
        &mut self,
        parts: &[Node],
        left: usize,
        others: &[usize],
        known: &BTreeSet<Slot>,
    ) -> Option<Node> {
        let Some(Node::Cell(left)) = parts.get(left) else {
            return None;
        };
        let def = self.cells.get(left.cell)?;
        // The slots of a pair are the columns of the left side; outside they stand for what these stand for.
        let slots: Vec<Slot> = def
            .columns
            .iter()
            .map(|column| left.outer(*column))
            .collect::<Option<_>>()?;
        let mut window = def.window;
        let mut events = BTreeSet::new();
        let mut inside = |cell: &Use| -> Option<Use> {
            let def = self.cells.get(cell.cell)?;
            let Triggers::Types(types) = def.triggers() else {
                return None;
            };
            events.extend(types);
            window = window.max(def.window);
            let mut own = cell.clone();
            own.slots.fill(LOCAL);
            for column in &def.columns {
                let outer = cell.outer(*column)?;
                let at = slots.iter().position(|slot| *slot == outer)?;
                *own.slots.get_mut(*column as usize)? = Slot::try_from(at).ok()?;
            }
            Some(own)
        };
        let inner_left = inside(left)?;
        let mut sides = Vec::with_capacity(others.len());
        let mut shared = Vec::with_capacity(others.len());
        for other in others {
            let (cell, negated) = match parts.get(*other)? {
                Node::Cell(cell) => (cell, false),
                Node::Not(body) => match body.as_ref() {
                    Node::Cell(cell) => (cell, true),
                    _ => return None,
                },
                _ => return None,
            };
            let cell = inside(cell)?;
            shared.push(cell.outer_slots().fold(0u64, |mask, at| mask | 1 << at));
            sides.push(Other {
                node: Node::Cell(cell),
                negated,
            });
        }
        let mut group = 0u64;
        for (at, slot) in slots.iter().enumerate() {
            if known.contains(slot) {
                group |= 1 << at;
            }
        }
        let columns: Vec<Slot> = (0..Slot::try_from(slots.len()).ok()?).collect();
        let def = CellDef {
            op: CellOp::Pair {
                left: Node::Cell(inner_left),
                others: sides,
                group,
                summed: None,
                events,
            },
            window,
            width: columns.len(),
            columns,
        };
        for mask in shared {
            self.note_index(left.cell, mask);
        }
        let cell = self.cell(def);
        Some(Node::Cell(Use {
            cell,
            slots,
            window,
        }))
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
