//! Cells that differ in their windows only, made one that keeps what the longest of them needs.
//!
//! What a cell keeps for a key says as well what a shorter window holds; the place that asks says how far it
//! looks back. Only where every row is asked for by its whole key: a search among rows would meet those that
//! only the longer window holds.

use super::build::{Leaf, Network};
use super::family::each_use_mut;
use super::formula::{CellDef, CellId, CellOp};
use std::collections::HashMap;

impl Network {
    pub(crate) fn share_windows(&mut self, leaves: &mut [Leaf]) {
        let mut alike: HashMap<CellDef, Vec<CellId>> = HashMap::new();
        for (cell, def) in self.cells.iter().enumerate() {
            if self.can_share(cell, def) {
                let window = 0;
                let def = def.clone();
                alike
                    .entry(CellDef { window, ..def })
                    .or_default()
                    .push(cell);
            }
        }
        let mut moved: HashMap<CellId, CellId> = HashMap::new();
        for cells in alike.values() {
            let windows = cells.iter().filter_map(|cell| self.cells.get(*cell));
            let longest = windows.map(|def| def.window).max();
            let Some((first, rest)) = cells.split_first() else {
                continue;
            };
            if let (Some(def), Some(longest)) = (self.cells.get_mut(*first), longest) {
                def.window = longest;
            }
            moved.extend(rest.iter().map(|cell| (*cell, *first)));
        }
        if moved.is_empty() {
            return;
        }
        self.each_use_mut(leaves, &mut |cell| {
            if let Some(first) = moved.get(&cell.cell) {
                cell.cell = *first;
            }
        });
        self.remove(&|cell| moved.contains_key(&cell), leaves);
    }

    fn can_share(&self, cell: CellId, def: &CellDef) -> bool {
        let searched = self.searched.get(cell).copied().unwrap_or(true)
            || self.indexes.get(cell).is_none_or(|masks| !masks.is_empty())
            || self
                .orders
                .get(cell)
                .is_none_or(|orders| !orders.is_empty())
            || self.open.get(cell).copied().unwrap_or(true);
        match def.op {
            CellOp::Formerly(_) | CellOp::Since { .. } | CellOp::Previous(_) => !searched,
            CellOp::Window { by_time_point, .. } => by_time_point,
            CellOp::Pair { .. } | CellOp::Nested { .. } | CellOp::Reread(_) => false,
        }
    }

    /// Every place where a cell or a leaf asks a cell.
    pub(super) fn each_use_mut(
        &mut self,
        leaves: &mut [Leaf],
        change: &mut dyn FnMut(&mut super::formula::Use),
    ) {
        for def in &mut self.cells {
            for node in def.nodes_mut() {
                each_use_mut(node, change);
            }
        }
        for leaf in leaves {
            each_use_mut(&mut leaf.node, change);
            for site in &mut leaf.sites {
                change(&mut site.cell);
                if let Some(whole) = &mut site.whole {
                    each_use_mut(whole, change);
                }
            }
        }
    }
}
