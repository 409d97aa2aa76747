//! How a formula is best run: the order of conjuncts, and how a `since` keeps track of what breaks it.

use super::formula::{BreakShape, CellDef, Node};
use super::row::Slot;
use std::collections::BTreeSet;

/// Conjunctions longer than this keep the author's order.
const LONG: usize = 64;

/// Orders conjuncts so that what binds comes before what asks, and few rows before many. The join of
/// rows does not depend on the order, as long as each filter comes after what binds its variables. The
/// `known` slots are request paths.
pub(crate) fn conjunction(parts: Vec<Node>, mut known: BTreeSet<Slot>, cells: &[CellDef]) -> Node {
    let mut flat = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Node::And(inner) => flat.extend(inner),
            other => flat.push(other),
        }
    }
    let mut waiting: Vec<(Node, BTreeSet<Slot>, BTreeSet<Slot>)> = flat
        .into_iter()
        .map(|part| {
            let bound = part.bound(cells);
            let demands = match &part {
                Node::Bind(_, term) => term.free(),
                _ => part.free().difference(&bound).copied().collect(),
            };
            (part, bound, demands)
        })
        .collect();
    if waiting.len() > LONG {
        // The author's order is a legal one.
        return Node::And(waiting.into_iter().map(|(part, ..)| part).collect());
    }
    let mut ordered = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        // Ready: nothing it asks for is still to be bound by another conjunct.
        let ready = |at: usize, demands: &BTreeSet<Slot>| {
            let to_come = |slot: &Slot| {
                let mut others = waiting.iter().enumerate().filter(|(other, _)| *other != at);
                others.any(|(_, (_, bound, _))| bound.contains(slot))
            };
            demands
                .iter()
                .all(|slot| known.contains(slot) || !to_come(slot))
        };
        let best = (0..waiting.len())
            .filter_map(|at| {
                let (part, bound, demands) = waiting.get(at)?;
                let not_ready = !ready(at, demands);
                let all_known = bound.iter().all(|slot| known.contains(slot));
                Some((not_ready, rank(part, all_known), at))
            })
            .min();
        let Some((.., at)) = best else { break };
        let (part, bound, _) = waiting.remove(at);
        known.extend(bound);
        ordered.push(part);
    }
    Node::And(ordered)
}

fn rank(part: &Node, all_known: bool) -> u8 {
    match part {
        Node::Never => 0,
        Node::Match(_) | Node::Tp(_) => 1,
        Node::Bind(_, term) if !term.has_cells() => 2,
        Node::Compare(..) | Node::Not(_) if !part.has_cells() => 3,
        Node::Exists(..) if !part.has_cells() => 3,
        Node::Cell(_) if all_known => 4,
        Node::Bind(..) | Node::Compare(..) | Node::Not(_) => 5,
        Node::Exists(..) | Node::And(_) => 6,
        Node::Cell(_) => 7,
    }
}

/// The cheapest way to keep track of what ends an anchor's life. The comparison of anchors with breaks happens
/// when the cell is asked, so every key of a break must be known then: to a leaf all are, to another cell
/// those that the anchor has.
pub(crate) fn break_shape(left: &Node, right: &Node, asked_by_leaf: bool) -> BreakShape {
    let shape = shape_of(left);
    let keys: BTreeSet<Slot> = match &shape {
        BreakShape::General => return shape,
        BreakShape::Negated(parts) => parts.iter().flat_map(|(_, keys)| keys).copied().collect(),
        BreakShape::Run(keys) => keys.iter().copied().collect(),
    };
    match right.flat() {
        Some(anchored) if keys.is_subset(&anchored) => shape,
        _ if asked_by_leaf => shape,
        _ => BreakShape::General,
    }
}

fn shape_of(left: &Node) -> BreakShape {
    let negated = |part: &Node| match part {
        Node::Not(body) => Some((body.as_ref().clone(), flat_columns(body)?)),
        _ => None,
    };
    let parts: Option<Vec<(Node, Vec<Slot>)>> = match left {
        Node::And(parts) => parts.iter().map(negated).collect(),
        other => negated(other).map(|part| vec![part]),
    };
    match parts {
        Some(parts) => BreakShape::Negated(parts),
        None => match flat_columns(left) {
            Some(columns) => BreakShape::Run(columns),
            None => BreakShape::General,
        },
    }
}

/// The slots seen outside that each row of a flat formula binds; nothing where a slot is left open.
fn flat_columns(node: &Node) -> Option<Vec<Slot>> {
    let bound = node.flat()?;
    let free = node.free();
    free.iter()
        .all(|slot| bound.contains(slot))
        .then(|| free.into_iter().collect())
}
