//! After how many seconds a denied request may be tried again. Never on the way to a verdict.
//!
//! What happened does not change any more; what changes with time is which of it an operator that is asked
//! at the retry still finds: that operator itself, and those inside it, since the retry is an event, too. So the
//! answer can change only when a stamp that one of them looks at leaves its window, and these instants are
//! tried one after the other.

use super::Monitor;
use super::decide::{Answers, Asked};
use super::history::History;
use crate::automaton::build::Leaf;
use crate::automaton::cell::CellState;
use crate::automaton::formula::{CellOp, Use};
use crate::automaton::row::{Row, Sym};
use crate::automaton::solve::slots;
use crate::automaton::table::{Found, Table};
use crate::automaton::value::Val;
use crate::event::Event;
use std::collections::BTreeSet;

/// At most so many instants are tried.
const TRIES: usize = 64;

/// The next instants at which something leaves a window.
struct Leaving {
    now: i64,
    found: BTreeSet<i64>,
}

impl Leaving {
    fn add(&mut self, stamp: i64, window: i64) {
        // The first second at which it is outside.
        let leaves = stamp.saturating_add(window).saturating_add(1);
        if leaves > self.now && self.found.insert(leaves) && self.found.len() > TRIES {
            self.found.pop_last();
        }
    }
}

impl Monitor {
    /// After how many seconds the same request would be allowed if nothing else happened. The history
    /// already has the denied event. Nothing, where time alone does not help: neither where no instant does,
    /// nor where asking again at once would do.
    pub fn retry_after(&self, event: &Event) -> Option<i64> {
        let allowed_at = |time: i64| {
            let mut again = event.clone();
            again.time = time;
            self.decide_only(&again).allowed()
        };
        let now = event.time.max(self.clock);
        let instants = self.instants(event, now);
        if instants.is_empty() || allowed_at(now) {
            return None;
        }
        let allowed = instants.into_iter().find(|time| allowed_at(*time))?;
        allowed.checked_sub(now)
    }

    /// The next instants at which something leaves a window that a rule of this action asks.
    fn instants(&self, event: &Event, now: i64) -> BTreeSet<i64> {
        let mut leaving = Leaving {
            now,
            found: BTreeSet::new(),
        };
        let Some((history, mut values)) = self.history_of(event) else {
            return leaving.found;
        };
        let mut known = Answers::default();
        let mut params = Asked::new(&self.policy, event, &mut known);
        for &rule in self.policy.rules_of(&event.action).iter() {
            let Some(rule) = self.policy.rules.get(rule) else {
                continue;
            };
            let leaves = rule.leaves.iter();
            for leaf in leaves.filter_map(|leaf| self.policy.leaves.get(*leaf)) {
                let row = params.row(leaf, &mut values);
                for site in &leaf.sites {
                    self.asked_directly(&site.cell, history, &row, &mut leaving);
                }
                self.asked_inside(leaf, history, &mut leaving);
            }
        }
        leaving.found
    }

    /// What a leaf asks a cell of, by the values of the request.
    fn asked_directly(&self, cell: &Use, history: &History, row: &Row, leaving: &mut Leaving) {
        let (Some(def), Some(state)) = (
            self.policy.network.cells.get(cell.cell),
            history.states.get(cell.cell),
        ) else {
            return;
        };
        let column = |column: &u16| {
            cell.outer(*column)
                .map_or(Sym::Bottom, |slot| row.view(slot))
        };
        let columns: Vec<Sym> = def.columns.iter().map(column).collect();
        match (state, &def.op) {
            (CellState::Formerly(table) | CellState::Since { anchors: table, .. }, _) => {
                let known = columns.iter().map(|sym| match sym {
                    Sym::Val(val) => Some(*val),
                    _ => None,
                });
                let known: Vec<Option<Val>> = known.collect();
                let missing = columns.contains(&Sym::Bottom);
                rows(table, &known, missing, cell.window, leaving);
            }
            (CellState::Previous { .. }, _) => leaving.add(history.at.time, cell.window),
            (CellState::Window(counts), _) => {
                let moment = history.moment(&self.policy);
                let key = moment.window_key(cell, row);
                counts.each_time(key.as_deref(), &mut |stamp| leaving.add(stamp, cell.window));
            }
            (CellState::Nested(nested), CellOp::Nested { logs, test }) => {
                let known = |slot: u16| row.known(cell.outer(slot)?);
                nested.each_reached((logs, test), &known, &mut |stamp, window| {
                    leaving.add(stamp, window);
                });
            }
            (CellState::Reread(reread), CellOp::Reread(plan)) => {
                let known = slots(def, cell, row);
                reread.each_reached(plan, &known, &mut |stamp, window| {
                    leaving.add(stamp, window);
                });
            }
            // Its parts are asked as cells of their own.
            (CellState::Pair(_), _) => {}
            _ => {}
        }
    }

    /// The same for cells that are asked by other cells, with values that are not known here.
    fn asked_inside(&self, leaf: &Leaf, history: &History, leaving: &mut Leaving) {
        for (cell, window) in self.policy.inner_uses(&leaf.node) {
            let (Some(def), Some(state)) = (
                self.policy.network.cells.get(cell),
                history.states.get(cell),
            ) else {
                continue;
            };
            match state {
                CellState::Formerly(table) | CellState::Since { anchors: table, .. } => {
                    let open = vec![None; def.columns.len()];
                    rows(table, &open, false, window, leaving);
                }
                CellState::Previous { .. } => leaving.add(history.at.time, window),
                // Leaves alone ask these.
                CellState::Window(_)
                | CellState::Pair(_)
                | CellState::Nested(_)
                | CellState::Reread(_) => {}
            }
        }
    }
}

/// The stamps of the rows that agree with what is known.
fn rows(table: &Table, known: &[Option<Val>], missing: bool, window: i64, leaving: &mut Leaving) {
    table.find(known, missing, |row| {
        let (Found::Plain(_, times) | Found::Open(_, times)) = row;
        times.iter().for_each(|at| leaving.add(at.time, window));
        false
    });
}
