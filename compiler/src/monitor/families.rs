//! Leaves that differ in one constant only, answered by one lookup.

use crate::automaton::build::{Leaf, Network};
use crate::automaton::cell::CellState;
use crate::automaton::family::MEMBERS;
use crate::automaton::formula::{CellId, Node};
use crate::automaton::solve::Moment;
use crate::automaton::store::{At, in_window};
use crate::automaton::table::Found;
use crate::automaton::value::Val;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::HashMap;

/// The leaves that ask one cell with the same request paths, each with another constant.
#[derive(Clone, Debug)]
pub(super) struct Family {
    cell: CellId,
    /// For each column of the cell the request path it is asked with; nothing for the constant.
    pub columns: Vec<Option<usize>>,
    /// Where the constant is among the columns.
    constant: usize,
    /// By the constant: leaves with the seconds each looks back.
    leaves: FxHashMap<Val, Vec<(usize, i64)>>,
    len: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Families {
    families: Vec<Family>,
    /// By leaf.
    of: Vec<Option<usize>>,
}

pub(super) type Known = SmallVec<[Option<Val>; 4]>;

impl Families {
    pub fn new(network: &Network, leaves: &[Leaf]) -> Families {
        let mut found: HashMap<(CellId, Vec<Option<usize>>), Family> = HashMap::new();
        for (number, leaf) in leaves.iter().enumerate() {
            let Some((cell, columns, val, window)) = member(network, leaf) else {
                continue;
            };
            let constant = columns.iter().position(Option::is_none).unwrap_or(0);
            let family = found
                .entry((cell, columns.clone()))
                .or_insert_with(|| Family {
                    cell,
                    columns,
                    constant,
                    leaves: FxHashMap::default(),
                    len: 0,
                });
            // Of equal leaves the first is asked.
            let leaves = family.leaves.entry(val).or_default();
            if leaves.iter().all(|(_, known)| *known != window) {
                leaves.push((number, window));
                family.len += 1;
            }
        }
        let mut families: Vec<Family> = found
            .into_values()
            .filter(|family| family.len >= MEMBERS)
            .collect();
        families.sort_by_key(|family| family.leaves.values().flatten().min().copied());
        let mut of = vec![None; leaves.len()];
        for (at, family) in families.iter().enumerate() {
            for (leaf, _) in family.leaves.values().flatten() {
                if let Some(place) = of.get_mut(*leaf) {
                    *place = Some(at);
                }
            }
        }
        Families { families, of }
    }

    pub fn len(&self) -> usize {
        self.families.len()
    }

    /// The family of a leaf, with its number.
    pub fn of(&self, leaf: usize) -> Option<(usize, &Family)> {
        let at = (*self.of.get(leaf)?)?;
        Some((at, self.families.get(at)?))
    }

    pub fn get(&self, at: usize) -> Option<&Family> {
        self.families.get(at)
    }
}

/// The cell a leaf asks and nothing else, the request paths of its columns, the one constant, and the seconds it
/// looks back.
fn member(network: &Network, leaf: &Leaf) -> Option<(CellId, Vec<Option<usize>>, Val, i64)> {
    let Node::Cell(cell) = &leaf.node else {
        return None;
    };
    let [(slot, val)] = leaf.constants.as_slice() else {
        return None;
    };
    let def = network.cells.get(cell.cell)?;
    let mut constants = 0;
    let mut columns = Vec::with_capacity(def.columns.len());
    for column in &def.columns {
        let outer = cell.outer(*column)?;
        if outer == *slot {
            constants += 1;
            columns.push(None);
        } else {
            let param = leaf.params.iter().find(|(slot, _)| *slot == outer)?;
            columns.push(Some(param.1));
        }
    }
    (constants == 1).then_some((cell.cell, columns, *val, cell.window))
}

impl Family {
    /// Visits the leaves that hold for this key; false where that would take longer than to ask them one by
    /// one.
    pub fn each(
        &self,
        moment: &Moment<'_>,
        key: &[Option<Val>],
        holds: &mut dyn FnMut(usize),
    ) -> bool {
        let (Some(state), Some(def)) = (moment.states.get(self.cell), moment.defs.get(self.cell))
        else {
            return false;
        };
        let (table, breaks) = match state {
            CellState::Formerly(table) => (table, None),
            CellState::Since { anchors, breaks } => (anchors, Some(breaks)),
            _ => return false,
        };
        let mut rows = 0;
        let most = 2 * self.len;
        let given_up = table.find(key, false, |found| {
            rows += 1;
            let Found::Plain(vals, times) = found else {
                return true;
            };
            let leaves = vals.get(self.constant).map(|val| self.leaves.get(val));
            let Some(Some(leaves)) = leaves else {
                return rows > most;
            };
            let from = breaks.map_or(i64::MIN, |breaks| {
                moment.unbroken_from(def, breaks, &|slot| {
                    let column = def.columns.iter().position(|column| *column == slot)?;
                    vals.get(column).copied()
                })
            });
            for (leaf, window) in leaves {
                let inside =
                    |at: &At| at.pos >= from && in_window(at.time, moment.at.time, *window);
                if times.iter().any(inside) {
                    holds(*leaf);
                }
            }
            rows > most
        });
        !given_up
    }
}
