//! What an event concerns: the fields that are taken from it, and the cells it can change.
//!
//! Of the cells whose formulas name the event's action and kind, those are touched whose constants the event
//! has: each is found by the constant of it that fewest others want.

use crate::automaton::build::Network;
use crate::automaton::formula::{
    BreakShape, CellDef, CellId, CellOp, EventTypeId, How, Node, Pattern, Triggers,
};
use crate::automaton::value::{Val, Values};
use crate::trace::Wanted;
use crate::value::{Record, Value};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use smol_str::SmolStr;

/// Of one action and kind.
#[derive(Clone, Debug, Default)]
pub(super) struct EventPlan {
    fields: usize,
    /// The same and the field by which partitions are told apart.
    wanted: Vec<Wanted>,
    layout: Vec<Branch>,
    always: Vec<CellId>,
    /// For some fields, by their places, the cells that want this value there.
    wanting: Vec<(usize, FxHashMap<Val, Vec<CellId>>)>,
}

/// A field of a record and what is taken from it.
#[derive(Clone, Debug)]
struct Branch {
    name: SmolStr,
    place: Option<usize>,
    below: Vec<Branch>,
}

pub(super) type Cells = SmallVec<[CellId; 32]>;

/// The plans of all event types, and the cells that any other event can change.
pub(super) fn plans(network: &Network, pin: Option<&[SmolStr]>) -> (Vec<EventPlan>, Vec<CellId>) {
    let mut plans: Vec<EventPlan> = network
        .fields
        .iter()
        .map(|paths| {
            let mut plan = EventPlan {
                fields: paths.len(),
                wanted: Wanted::paths(paths.iter().map(Vec::as_slice).chain(pin)),
                ..EventPlan::default()
            };
            for (place, path) in paths.iter().enumerate() {
                grow(&mut plan.layout, path, place);
            }
            plan
        })
        .collect();
    let mut wants: Vec<Vec<(CellId, Constants)>> = vec![Vec::new(); plans.len()];
    let mut of_others = Vec::new();
    for (cell, def) in network.cells.iter().enumerate() {
        let types: Vec<usize> = match def.triggers() {
            Triggers::All => {
                of_others.push(cell);
                (0..plans.len()).collect()
            }
            Triggers::Types(types) => types.into_iter().map(|of| of as usize).collect(),
        };
        for of in types {
            let (Some(plan), Some(wants)) = (plans.get_mut(of), wants.get_mut(of)) else {
                continue;
            };
            if let Some(wanted) = network.wanted.get(&cell)
                && wanted.event as usize == of
            {
                let vals = wanted.vals.iter();
                wants.extend(vals.map(|val| (cell, vec![(wanted.place, *val)])));
                continue;
            }
            let event = EventTypeId::try_from(of).unwrap_or(EventTypeId::MAX);
            match ways(def, event) {
                Some(ways) if ways.iter().all(|way| !way.is_empty()) => {
                    wants.extend(ways.into_iter().map(|way| (cell, way)));
                }
                _ => plan.always.push(cell),
            }
        }
    }
    for (plan, wants) in plans.iter_mut().zip(&wants) {
        plan.choose(wants);
    }
    (plans, of_others)
}

/// What must all be true of an event: the place of a field, and its value.
type Constants = Vec<(usize, Val)>;

/// The ways in which an event of this type can change a cell; nothing where it always can.
fn ways(def: &CellDef, event: EventTypeId) -> Option<Vec<Constants>> {
    let mut nodes = Vec::new();
    match &def.op {
        CellOp::Formerly(body) | CellOp::Previous(body) | CellOp::Window { body, .. } => {
            nodes.push(body);
        }
        CellOp::Nested { .. } => nodes.extend(def.nodes()),
        CellOp::Pair { .. } | CellOp::Reread(_) => return None,
        CellOp::Since {
            left,
            right,
            breaks,
        } => {
            nodes.push(right);
            match breaks {
                BreakShape::Parts(parts) => {
                    if parts
                        .iter()
                        .any(|part| matches!(part.how, How::Lasting { .. }))
                    {
                        return None;
                    }
                    nodes.extend(parts.iter().map(|part| &part.node));
                }
                BreakShape::General => failing(left, &mut nodes)?,
            }
        }
    }
    let ways = nodes.into_iter().filter_map(|node| {
        let mut constants = Vec::new();
        needs(node, event, &mut constants).then_some(constants)
    });
    Some(ways.collect())
}

/// The formulas that, having a row, make a left side fail; nothing where it can fail by itself.
fn failing<'n>(left: &'n Node, nodes: &mut Vec<&'n Node>) -> Option<()> {
    match left {
        Node::Not(body) => nodes.push(body),
        Node::And(parts) => parts.iter().try_for_each(|part| failing(part, nodes))?,
        _ => return None,
    }
    Some(())
}

/// Collects the constants without which a formula has no row at such an event; false where it never has one.
fn needs(node: &Node, event: EventTypeId, constants: &mut Constants) -> bool {
    match node {
        Node::Match(matcher) => {
            matcher.event == event
                && matcher.patterns.iter().all(|(place, pattern)| {
                    if let Pattern::Const(val) = pattern {
                        constants.push((*place, *val));
                    }
                    *pattern != Pattern::Never
                })
        }
        Node::And(parts) => parts.iter().all(|part| needs(part, event, constants)),
        Node::Exists(_, body) => needs(body, event, constants),
        Node::Never => false,
        _ => true,
    }
}

fn grow(layout: &mut Vec<Branch>, path: &[SmolStr], place: usize) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    let at = match layout.iter().position(|branch| branch.name == *first) {
        Some(at) => at,
        None => {
            layout.push(Branch {
                name: first.clone(),
                place: None,
                below: Vec::new(),
            });
            layout.len() - 1
        }
    };
    let Some(branch) = layout.get_mut(at) else {
        return;
    };
    match rest {
        [] => branch.place = Some(place),
        rest => grow(&mut branch.below, rest, place),
    }
}

impl EventPlan {
    /// Files each want under the constant that fewest others share, and of those under the field that tells
    /// most apart, so that few fields are looked at.
    fn choose(&mut self, wants: &[(CellId, Constants)]) {
        let mut shared: FxHashMap<(usize, Val), usize> = FxHashMap::default();
        let mut apart: FxHashMap<usize, FxHashSet<Val>> = FxHashMap::default();
        for (place, val) in wants.iter().flat_map(|(_, constants)| constants) {
            *shared.entry((*place, *val)).or_default() += 1;
            apart.entry(*place).or_default().insert(*val);
        }
        for (cell, constants) in wants {
            let cost = |constant: &&(usize, Val)| {
                let values = apart.get(&constant.0).map_or(0, FxHashSet::len);
                (shared.get(*constant).copied(), std::cmp::Reverse(values))
            };
            let Some((place, val)) = constants.iter().min_by_key(cost) else {
                continue;
            };
            let at = match self.wanting.iter().position(|(known, _)| known == place) {
                Some(at) => at,
                None => {
                    self.wanting.push((*place, FxHashMap::default()));
                    self.wanting.len() - 1
                }
            };
            if let Some((_, cells)) = self.wanting.get_mut(at) {
                let cells = cells.entry(*val).or_default();
                if cells.last() != Some(cell) {
                    cells.push(*cell);
                }
            }
        }
    }

    pub fn wanted(&self) -> &[Wanted] {
        &self.wanted
    }

    /// The fields of an event as its matchers take them.
    pub fn read(&self, record: &Record, values: &mut impl Values, fields: &mut Vec<Option<Val>>) {
        fields.clear();
        fields.resize(self.fields, None);
        read(&self.layout, record, values, fields);
    }

    /// The cells that an event with these fields can change, in order.
    pub fn cells(&self, fields: &[Option<Val>]) -> Cells {
        let mut cells = Cells::from_slice(&self.always);
        let before = cells.len();
        for (place, wanting) in &self.wanting {
            if let Some(Some(val)) = fields.get(*place)
                && let Some(found) = wanting.get(val)
            {
                cells.extend_from_slice(found);
            }
        }
        if cells.len() > before {
            cells.sort_unstable();
            cells.dedup();
        }
        cells
    }
}

fn read(layout: &[Branch], record: &Record, values: &mut impl Values, fields: &mut [Option<Val>]) {
    for branch in layout {
        let Some(value) = record.get(&branch.name) else {
            continue;
        };
        if let Some(place) = branch.place.and_then(|place| fields.get_mut(place)) {
            *place = Some(values.value(value));
        }
        if let Value::Object(inner) = value {
            read(&branch.below, inner, values, fields);
        }
    }
}
