//! How a formula is best run: the order of conjuncts, and how a `since` keeps track of what breaks it.

use super::formula::{Break, BreakShape, CellDef, CellOp, How, Node};
use super::open::{plain_cell, plain_rows};
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
        Node::Cell(_) | Node::Among(..) => 7,
    }
}

/// The cheapest way to keep track of what ends an anchor's life. The comparison of anchors with breaks happens
/// when the cell is asked, so every key of a break must be known then: to a leaf all are, to another cell
/// those that the anchor has.
pub(crate) fn break_shape(
    left: &Node,
    right: &Node,
    asked_by_leaf: bool,
    cells: &[CellDef],
    open: &[bool],
) -> BreakShape {
    let Some(parts) = parts_of(left, cells, open) else {
        return BreakShape::General;
    };
    let anchored = plain_rows(right, cells, open).unwrap_or_default();
    let mut keys = parts.iter().flat_map(|part| &part.keys);
    if asked_by_leaf || keys.all(|key| anchored.contains(key)) {
        BreakShape::Parts(parts)
    } else {
        BreakShape::General
    }
}

fn parts_of(left: &Node, cells: &[CellDef], open: &[bool]) -> Option<Vec<Break>> {
    let each: Option<Vec<Break>> = match left {
        Node::And(parts) => parts
            .iter()
            .map(|part| part_of(part, cells, open))
            .collect(),
        other => part_of(other, cells, open).map(|part| vec![part]),
    };
    each.or_else(|| Some(vec![momentary(How::Miss, left, cells, open)?]))
}

fn part_of(part: &Node, cells: &[CellDef], open: &[bool]) -> Option<Break> {
    let (how, body, negated) = match part {
        Node::Not(body) => (How::Hit, body.as_ref(), true),
        other => (How::Miss, other, false),
    };
    if let Some(found) = momentary(how, body, cells, open) {
        return Some(found);
    }
    let Node::Cell(cell) = body else { return None };
    let def = cells.get(cell.cell)?;
    let is_open = open.get(cell.cell).copied()?;
    if !plain_cell(def, is_open, cells) {
        return None;
    }
    // In the order of the cell's columns: its rows are found by them.
    let keys = def.columns.iter().map(|column| cell.outer(*column));
    Some(Break {
        how: How::Lasting { negated },
        node: body.clone(),
        keys: keys.collect::<Option<_>>()?,
    })
}

/// A part that says something of one event, whose rows leave nothing open.
fn momentary(how: How, node: &Node, cells: &[CellDef], open: &[bool]) -> Option<Break> {
    if !is_momentary(node, cells) {
        return None;
    }
    Some(Break {
        how,
        node: node.clone(),
        keys: plain_rows(node, cells, open)?,
    })
}

/// Whether all its rows come from the event at hand, or from the one before.
fn is_momentary(node: &Node, cells: &[CellDef]) -> bool {
    match node {
        Node::Match(_) | Node::Never => true,
        Node::And(parts) => parts.iter().any(|part| is_momentary(part, cells)),
        Node::Exists(_, body) => is_momentary(body, cells),
        Node::Cell(cell) => matches!(
            cells.get(cell.cell).map(|def| &def.op),
            Some(CellOp::Previous(_))
        ),
        _ => false,
    }
}
