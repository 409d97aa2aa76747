//! The state of cells, and how one event changes it.

use super::breaks::Ended;
use super::formula::{BreakShape, CellDef, CellOp, EventTypeId, Node};
use super::index::Key;
use super::join::Joint;
use super::nested::Nested;
use super::reread::Reread;
use super::row::{Residual, Row, Slot, Sym};
use super::solve::{Moment, Vals};
use super::store::At;
use super::table::{Lookups, Table, row_vals};
use super::value::Val;
use super::window::Counts;
use smallvec::SmallVec;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) enum CellState {
    Formerly(Table),
    /// The rows of the last two events that had any.
    Previous {
        older: Option<Held>,
        newer: Option<Held>,
    },
    Since {
        anchors: Table,
        breaks: Breaks,
    },
    Window(Counts),
    Pair(Joint),
    Nested(Nested),
    Reread(Reread),
}

#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub at: At,
    pub rows: Arc<Vec<Row>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Breaks {
    /// Anchors carry what they still need in their residual.
    General,
    /// For each part of the left side.
    Parts(Vec<Ended>),
}

impl CellState {
    pub fn new(def: &CellDef, lookups: Lookups<'_>) -> CellState {
        match &def.op {
            CellOp::Formerly(_) => CellState::Formerly(Table::new(def.columns.len(), lookups)),
            CellOp::Previous(_) => CellState::Previous {
                older: None,
                newer: None,
            },
            CellOp::Since { breaks, .. } => CellState::Since {
                anchors: Table::new(def.columns.len(), lookups),
                breaks: match breaks {
                    BreakShape::General => Breaks::General,
                    BreakShape::Parts(parts) => {
                        let parts = parts.iter().map(Ended::new);
                        Breaks::Parts(parts.collect())
                    }
                },
            },
            CellOp::Window {
                counted,
                sum,
                by_time_point,
                ..
            } => CellState::Window(Counts::new(def, counted, *sum, *by_time_point)),
            CellOp::Nested { logs, .. } => CellState::Nested(Nested::new(logs)),
            CellOp::Reread(plan) => CellState::Reread(Reread::new(plan)),
            CellOp::Pair { group, summed, .. } => {
                CellState::Pair(Joint::new(def.columns.len(), *group, *summed))
            }
        }
    }

    /// Takes in the event of `moment`, whose earlier cells are up to date. No decision to come is earlier
    /// than `floor`; `clock` is the latest stamp so far.
    pub fn update(&mut self, def: &CellDef, moment: &Moment<'_>, floor: i64, clock: i64) {
        let at = moment.at;
        match (self, &def.op) {
            (CellState::Formerly(table), CellOp::Formerly(body)) => {
                insert(table, body, def, moment, floor);
            }
            (CellState::Previous { older, newer }, CellOp::Previous(body)) => {
                let rows = moment.rows(body, def.width);
                if !rows.is_empty() {
                    *older = newer.take();
                    *newer = Some(Held {
                        at,
                        rows: Arc::new(rows),
                    });
                }
            }
            (
                CellState::Since { anchors, breaks },
                CellOp::Since {
                    left,
                    right,
                    breaks: shape,
                },
            ) => {
                match (breaks, shape) {
                    (Breaks::Parts(ended), BreakShape::Parts(parts)) => {
                        for (ended, part) in ended.iter_mut().zip(parts) {
                            ended.update(part, def.width, moment, clock);
                        }
                    }
                    _ if anchors.len() > 0 && may_fail(left, moment.event) => {
                        anchors.rework(&def.columns, def.width, floor, |row| {
                            weaken(row, left, moment)
                        });
                    }
                    _ => {}
                }
                insert(anchors, right, def, moment, floor);
            }
            (CellState::Window(counts), CellOp::Window { body, .. }) => {
                let columns: SmallVec<[Slot; 8]> = counts.columns().collect();
                moment.keys(body, def.width, &columns, |vals| {
                    counts.insert(&vals, at, floor);
                });
            }
            (CellState::Pair(joint), CellOp::Pair { left, others, .. }) => {
                joint.update(left, others, moment);
            }
            (CellState::Nested(nested), CellOp::Nested { logs, .. }) => {
                nested.update(logs, def.width, moment, clock);
            }
            (CellState::Reread(reread), CellOp::Reread(plan)) => {
                reread.update(plan, moment, floor, clock);
            }
            _ => {}
        }
    }

    /// The latest times of rows, where it keeps those.
    pub fn table(&self) -> Option<&Table> {
        match self {
            CellState::Formerly(table) => Some(table),
            _ => None,
        }
    }

    /// Drops what no window reaches any more.
    pub fn expire(&mut self, def: &CellDef, floor: i64) {
        let limit = floor.saturating_sub(def.window);
        match self {
            CellState::Formerly(table) => {
                table.expire(limit);
                table.give_back(def);
            }
            CellState::Previous { .. } => {}
            CellState::Since { anchors, breaks } => {
                anchors.expire(limit);
                anchors.give_back(def);
                if let Breaks::Parts(parts) = breaks {
                    for ended in parts {
                        ended.expire(floor, def.window);
                    }
                }
            }
            CellState::Window(counts) => counts.expire(limit),
            CellState::Pair(joint) => joint.expire(floor),
            CellState::Nested(nested) => {
                if let CellOp::Nested { logs, .. } = &def.op {
                    nested.expire(floor, logs);
                }
            }
            CellState::Reread(reread) => {
                if let CellOp::Reread(plan) = &def.op {
                    reread.expire(plan, floor);
                }
            }
        }
    }

    /// The clock at which something may have to be dropped next.
    pub fn deadline(&self, def: &CellDef) -> Option<i64> {
        let oldest = match self {
            CellState::Formerly(table) => table.oldest(),
            CellState::Previous { .. } => None,
            CellState::Since {
                anchors,
                breaks: Breaks::Parts(parts),
            } => {
                let ended = parts.iter().filter_map(|ended| ended.deadline(def.window));
                let oldest = anchors.oldest();
                let oldest = oldest.map(|time| time.saturating_add(def.window));
                return ended.chain(oldest).min();
            }
            CellState::Since { anchors, .. } => anchors.oldest(),
            CellState::Window(counts) => counts.oldest(),
            CellState::Pair(joint) => return joint.deadline(),
            CellState::Nested(nested) => match &def.op {
                CellOp::Nested { logs, .. } => return nested.deadline(logs),
                _ => None,
            },
            CellState::Reread(reread) => match &def.op {
                CellOp::Reread(plan) => return reread.deadline(plan),
                _ => None,
            },
        };
        oldest.map(|time| time.saturating_add(def.window))
    }

    /// Rows and keys held.
    pub fn len(&self) -> usize {
        match self {
            CellState::Formerly(table) => table.len(),
            CellState::Previous { older, newer } => [older, newer]
                .into_iter()
                .flatten()
                .map(|held| held.rows.len())
                .sum(),
            CellState::Since { anchors, breaks } => {
                anchors.len()
                    + match breaks {
                        Breaks::General => 0,
                        Breaks::Parts(parts) => parts.iter().map(Ended::len).sum(),
                    }
            }
            CellState::Window(counts) => counts.len(),
            CellState::Pair(joint) => joint.len(),
            CellState::Nested(nested) => nested.len(),
            CellState::Reread(reread) => reread.len(),
        }
    }

    /// Held for the rows and what finds them.
    pub fn bytes(&self) -> usize {
        match self {
            CellState::Formerly(table) => table.bytes(),
            CellState::Previous { older, newer } => {
                let held = [older, newer].into_iter().flatten();
                held.flat_map(|held| held.rows.iter()).map(Row::bytes).sum()
            }
            CellState::Since { anchors, breaks } => {
                anchors.bytes()
                    + match breaks {
                        Breaks::General => 0,
                        Breaks::Parts(parts) => parts.iter().map(Ended::bytes).sum(),
                    }
            }
            CellState::Window(counts) => counts.bytes(),
            CellState::Pair(joint) => joint.bytes(),
            CellState::Nested(nested) => nested.bytes(),
            CellState::Reread(reread) => reread.bytes(),
        }
    }

    pub fn each_val(&self, seen: &mut dyn FnMut(Val)) {
        match self {
            CellState::Formerly(table) => table.each_val(seen),
            CellState::Previous { older, newer } => {
                for held in [older, newer].into_iter().flatten() {
                    for row in held.rows.iter() {
                        row_vals(row, seen);
                    }
                }
            }
            CellState::Since { anchors, breaks } => {
                anchors.each_val(seen);
                if let Breaks::Parts(parts) = breaks {
                    parts.iter().for_each(|ended| ended.each_val(seen));
                }
            }
            CellState::Window(counts) => counts.each_val(seen),
            CellState::Pair(joint) => joint.each_val(seen),
            CellState::Nested(nested) => nested.each_val(seen),
            CellState::Reread(reread) => reread.each_val(seen),
        }
    }
}

/// Notes the rows that a formula has at this event.
fn insert(table: &mut Table, node: &Node, def: &CellDef, moment: &Moment<'_>, floor: i64) {
    match moment.vals(node, &def.columns) {
        Vals::One(vals) => table.insert_plain(&vals, moment.at, floor),
        Vals::None => {}
        Vals::Unknown => {
            for row in moment.rows(node, def.width) {
                table.insert(row, &def.columns, moment.at, floor);
            }
        }
    }
}

/// An anchor after one more step of the left side.
fn weaken(row: Row, left: &Node, moment: &Moment<'_>) -> Option<Row> {
    let holds = moment.condition(left, &row);
    let mut row = row;
    (row.require(holds) && row.residual != Residual::False).then_some(row)
}

/// Whether some row of the left side can be missing at this event.
fn may_fail(left: &Node, event: Option<EventTypeId>) -> bool {
    match left {
        Node::Not(body) => can_fire(body, event),
        Node::And(parts) => parts.iter().any(|part| may_fail(part, event)),
        _ => true,
    }
}

/// Whether a formula can have rows at an event of this type.
pub(crate) fn can_fire(node: &Node, event: Option<EventTypeId>) -> bool {
    match node {
        Node::Match(matcher) => event == Some(matcher.event),
        Node::And(parts) => parts.iter().all(|part| can_fire(part, event)),
        Node::Exists(_, body) => can_fire(body, event),
        Node::Never => false,
        _ => true,
    }
}

/// The values of these slots in a row that leaves none open.
pub(crate) fn key_of(row: &Row, columns: &[Slot]) -> Option<Key> {
    columns
        .iter()
        .map(|column| match row.view(*column) {
            Sym::Val(val) => Some(val),
            _ => None,
        })
        .collect()
}
