//! Cells that differ in one constant, made one.
//!
//! A thousand rules that ask `formerly … Login{item: "a", user: …}`, each for another item, are a thousand
//! cells. As one cell that keeps the item too they cost an event one insertion, and a decision one lookup by
//! user that finds the items, and with them the leaves that hold.

use super::build::{Leaf, Network};
use super::formula::{
    BreakShape, CellDef, CellId, CellOp, EventTypeId, How, Matcher, Node, Pattern, Term, Triggers,
    Use,
};
use super::row::Slot;
use super::value::Val;
use std::collections::HashMap;

/// With fewer members than this, cells of their own cost no more.
pub(crate) const MEMBERS: usize = 8;

/// What makes a row of a family: an event of this type with one of these values at this place among its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub event: EventTypeId,
    pub place: usize,
    pub vals: Vec<Val>,
}

/// A member by what it has in common with the others: its definition without the constant, and the place.
type Shape = (CellDef, usize);

/// Makes families of the cells that only leaves ask, and lets the leaves ask the families.
pub(crate) fn merge(network: &mut Network, leaves: &mut [Leaf]) {
    let mut asked_by_cells = vec![false; network.cells.len()];
    for def in &network.cells {
        for node in def.nodes() {
            each_use(node, &mut |cell| {
                if let Some(asked) = asked_by_cells.get_mut(cell.cell) {
                    *asked = true;
                }
            });
        }
    }
    let mut families: HashMap<Shape, Vec<(CellId, Val)>> = HashMap::new();
    for (cell, def) in network.cells.iter().enumerate() {
        if asked_by_cells.get(cell) == Some(&false) {
            for (shape, val) in shapes(def) {
                families.entry(shape).or_default().push((cell, val));
            }
        }
    }
    let mut families: Vec<(Shape, Vec<(CellId, Val)>)> = families
        .into_iter()
        .filter(|(_, members)| members.len() >= MEMBERS)
        .collect();
    if families.is_empty() {
        return;
    }
    // The largest first; those of one size in the order of their first cells.
    families.sort_by_key(|((_, place), members)| {
        let first = members.first().map(|(cell, _)| *cell);
        (std::cmp::Reverse(members.len()), first, *place)
    });
    let mut moved: HashMap<CellId, (CellId, Val)> = HashMap::new();
    for ((def, place), mut members) in families {
        members.retain(|(cell, _)| !moved.contains_key(cell));
        if members.len() < MEMBERS {
            continue;
        }
        let Some(mut def) = widened(def, place) else {
            continue;
        };
        let windows = members
            .iter()
            .filter_map(|(cell, _)| network.cells.get(*cell));
        def.window = windows.map(|def| def.window).max().unwrap_or(0);
        let before = network.cells.len();
        let event = anchor(&def).map(|matcher| matcher.event);
        let family = network.cell(def);
        if family == before {
            let vals = members.iter().map(|(_, val)| *val).collect();
            if let Some(event) = event {
                network.wanted.insert(family, Wanted { event, place, vals });
            }
        }
        moved.extend(members.iter().map(|(cell, val)| (*cell, (family, *val))));
    }
    let mut rewritten = Vec::with_capacity(leaves.len());
    for leaf in leaves.iter_mut() {
        rewritten.push(ask_families(leaf, &moved));
    }
    network.remove(&|cell| moved.contains_key(&cell), leaves);
    for leaf in leaves
        .iter()
        .zip(rewritten)
        .filter_map(|(leaf, new)| new.then_some(leaf))
    {
        let mut known = leaf.known();
        network.note_lookups(&leaf.node, &mut known);
        // To find all members at once.
        if let Node::Cell(cell) = &leaf.node {
            known = leaf.params.iter().map(|(slot, _)| *slot).collect();
            network.note_lookups(&Node::Cell(cell.clone()), &mut known);
        }
    }
}

/// The definition with each of its constants left out in turn, whatever its window.
fn shapes(def: &CellDef) -> Vec<(Shape, Val)> {
    let Some(matcher) = anchor(def) else {
        return Vec::new();
    };
    let patterns = matcher.patterns.iter().enumerate();
    let constants = patterns.filter_map(|(at, (place, pattern))| match pattern {
        Pattern::Const(val) => Some((at, *place, *val)),
        _ => None,
    });
    constants
        .filter_map(|(at, place, val)| {
            let mut shape = def.clone();
            shape.window = 0;
            anchor_mut(&mut shape.op)?.patterns.remove(at);
            Some(((shape, place), val))
        })
        .collect()
}

/// The matcher that makes the rows of a cell, if each of them has all columns.
fn anchor(def: &CellDef) -> Option<&Matcher> {
    let (node, breaks) = match &def.op {
        CellOp::Formerly(node) => (node, None),
        CellOp::Since { right, breaks, .. } => (right, Some(breaks)),
        _ => return None,
    };
    let Node::Match(matcher) = node else {
        return None;
    };
    let bound = node.flat()?;
    let all = def.columns.iter().all(|column| bound.contains(column));
    let apart = match breaks {
        None => true,
        // What ends an anchor must be told from the events that make one: the family takes in events by these.
        Some(BreakShape::Parts(parts)) => parts.iter().all(|part| {
            !matches!(part.how, How::Lasting { .. })
                && matches!(part.node.triggers(), Triggers::Types(types) if !types.contains(&matcher.event))
        }),
        Some(BreakShape::General) => false,
    };
    (all && apart).then_some(matcher)
}

fn anchor_mut(op: &mut CellOp) -> Option<&mut Matcher> {
    match op {
        CellOp::Formerly(Node::Match(matcher))
        | CellOp::Since {
            right: Node::Match(matcher),
            ..
        } => Some(matcher),
        _ => None,
    }
}

/// The definition with a column more, for what the event has at this place.
fn widened(mut def: CellDef, place: usize) -> Option<CellDef> {
    let slot = Slot::try_from(def.width).ok()?;
    let matcher = anchor_mut(&mut def.op)?;
    matcher.patterns.push((place, Pattern::Slot(slot)));
    def.width += 1;
    def.columns.push(slot);
    Some(def)
}

/// Lets a leaf ask the families of its cells; whether it has any.
fn ask_families(leaf: &mut Leaf, moved: &HashMap<CellId, (CellId, Val)>) -> bool {
    let mut width = leaf.width;
    let mut constants = Vec::new();
    let mut node = leaf.node.clone();
    each_use_mut(&mut node, &mut |cell| {
        if let Some((family, val)) = moved.get(&cell.cell) {
            let known = constants.iter().find(|(_, known)| known == val);
            let slot = match known {
                Some((slot, _)) => *slot,
                None => {
                    let slot = Slot::try_from(width).unwrap_or(Slot::MAX - 1);
                    width += 1;
                    constants.push((slot, *val));
                    slot
                }
            };
            cell.cell = *family;
            cell.slots.push(slot);
        }
    });
    for site in &mut leaf.sites {
        let asked = site.cell.cell;
        if let Some((family, val)) = moved.get(&asked)
            && let Some((slot, _)) = constants.iter().find(|(_, known)| known == val)
        {
            site.cell.cell = *family;
            site.cell.slots.push(*slot);
            if let Some(whole) = &mut site.whole {
                each_use_mut(whole, &mut |cell| {
                    if cell.cell == asked {
                        cell.cell = *family;
                        cell.slots.push(*slot);
                    }
                });
            }
        }
    }
    let any = !constants.is_empty();
    leaf.node = node;
    leaf.width = width;
    leaf.constants.extend(constants);
    any
}

pub(crate) fn each_use(node: &Node, seen: &mut dyn FnMut(&Use)) {
    match node {
        Node::And(parts) => parts.iter().for_each(|part| each_use(part, seen)),
        Node::Not(body) | Node::Exists(_, body) => each_use(body, seen),
        Node::Bind(_, term) => each_use_of_term(term, seen),
        Node::Compare(_, left, right) => {
            each_use_of_term(left, seen);
            each_use_of_term(right, seen);
        }
        Node::Cell(cell) | Node::Among(cell, ..) => seen(cell),
        Node::Match(_) | Node::Tp(_) | Node::Never => {}
    }
}

fn each_use_of_term(term: &Term, seen: &mut dyn FnMut(&Use)) {
    match term {
        Term::Known(_) | Term::Slot(_) => {}
        Term::Arith(_, left, right) => {
            each_use_of_term(left, seen);
            each_use_of_term(right, seen);
        }
        Term::Total { body, .. } => each_use(body, seen),
        Term::Window { cell, .. } => seen(cell),
    }
}

pub(super) fn each_use_mut(node: &mut Node, change: &mut dyn FnMut(&mut Use)) {
    match node {
        Node::And(parts) => parts.iter_mut().for_each(|part| each_use_mut(part, change)),
        Node::Not(body) | Node::Exists(_, body) => each_use_mut(body, change),
        Node::Bind(_, term) => each_use_of_term_mut(term, change),
        Node::Compare(_, left, right) => {
            each_use_of_term_mut(left, change);
            each_use_of_term_mut(right, change);
        }
        Node::Cell(cell) | Node::Among(cell, ..) => change(cell),
        Node::Match(_) | Node::Tp(_) | Node::Never => {}
    }
}

fn each_use_of_term_mut(term: &mut Term, change: &mut dyn FnMut(&mut Use)) {
    match term {
        Term::Known(_) | Term::Slot(_) => {}
        Term::Arith(_, left, right) => {
            each_use_of_term_mut(left, change);
            each_use_of_term_mut(right, change);
        }
        Term::Total { body, .. } => each_use_mut(body, change),
        Term::Window { cell, .. } => change(cell),
    }
}
