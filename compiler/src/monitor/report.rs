//! What a decision saw: for those who explain it. Never on the way to a verdict.

use super::Monitor;
use super::decide::{Answers, Asked};
use super::history::{History, RECENT};
use super::policy::CellKind;
use crate::automaton::build::Site;
use crate::automaton::cell::{Breaks, CellState};
use crate::automaton::formula::{BreakShape, CellOp, Node};
use crate::automaton::reread::Seen;
use crate::automaton::row::{Row, Sym};
use crate::automaton::solve::slots;
use crate::automaton::store::{At, in_window};
use crate::automaton::table::{Found, Table};
use crate::event::Event;
use dogwood_grammar::Span;
use std::collections::BTreeSet;
use std::sync::Arc;

/// At most so many stamps are listed for one operator.
const LISTED: usize = 1000;

/// A temporal leaf at a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafReport {
    /// The whole `temporal { … }`.
    pub span: Span,
    pub truth: bool,
    /// The operators and aggregates asked directly, in the order of the text.
    pub witnesses: Vec<Witness>,
}

/// What an operator over the past, or an aggregate over one, holds for this request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The operator with its operands, or the aggregate.
    pub span: Span,
    pub kind: CellKind,
    /// Seconds.
    pub window: i64,
    /// Whether it has a row for the values of the request. Variables bound by other conjuncts are left
    /// open, so an operator can hold alone and still not join.
    pub holds: bool,
    /// The latest stamp in the window at which its body (for `since`, its anchor) held.
    pub latest: Option<i64>,
    /// For a `since` whose anchors are all broken: the time of the last break.
    pub broken: Option<i64>,
    /// For an aggregate, its value.
    pub value: Option<i64>,
    /// The stamps the window holds, oldest first. One leaves `window + 1` seconds after it.
    pub times: Vec<i64>,
}

/// An event of the near past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recent {
    /// In the history, or the partition of it.
    pub position: i64,
    pub event: Arc<Event>,
    /// There may have been earlier events of this action and kind that are not kept.
    pub forgetful: bool,
}

impl Monitor {
    /// The leaves of a rule as the decision on `event` saw them. The event must be the last of its history.
    pub fn report(&self, event: &Event, rule: usize) -> Vec<LeafReport> {
        let (Some((history, mut values)), Some(compiled)) =
            (self.history_of(event), self.policy.rules.get(rule))
        else {
            return Vec::new();
        };
        let mut known = Answers::default();
        let mut params = Asked::new(&self.policy, event, &mut known);
        let values = &mut values;
        let leaves = compiled
            .leaves
            .iter()
            .filter_map(|number| Some((*number, self.policy.leaves.get(*number)?)));
        leaves
            .map(|(number, leaf)| {
                let truth = params.leaf(number, &history.moment(&self.policy), values);
                let row = params.row(leaf, values);
                let sites = leaf.sites.iter();
                let witnesses = sites.filter_map(|site| self.witness(site, history, &row));
                LeafReport {
                    span: leaf.span,
                    truth,
                    witnesses: witnesses.collect(),
                }
            })
            .collect()
    }

    /// The last events of each action and kind that the policy names, in the history of this event, in
    /// order of arrival; and for each whether earlier ones of its action and kind have been forgotten.
    pub fn recent(&self, event: &Event) -> Vec<Recent> {
        let Some((history, _)) = self.history_of(event) else {
            return Vec::new();
        };
        let mut found: Vec<Recent> = history
            .recent
            .values()
            .flat_map(|events| {
                let forgetful = events.len() == RECENT;
                events.iter().map(move |(position, event)| Recent {
                    position: *position,
                    event: Arc::clone(event),
                    forgetful,
                })
            })
            .collect();
        found.sort_by_key(|recent| recent.position);
        found
    }

    fn witness(&self, site: &Site, history: &History, row: &Row) -> Option<Witness> {
        let moment = history.moment(&self.policy);
        let def = self.policy.network.cells.get(site.cell.cell)?;
        let now = history.at.time;
        let mut witness = Witness {
            span: site.span,
            kind: self.policy.kind(site.cell.cell),
            window: site.cell.window,
            holds: false,
            latest: None,
            broken: None,
            value: None,
            times: Vec::new(),
        };
        let known: Vec<Sym> = def
            .columns
            .iter()
            .map(|column| {
                site.cell
                    .outer(*column)
                    .map_or(Sym::Bottom, |slot| row.view(slot))
            })
            .collect();
        match history.states.get(site.cell.cell)? {
            CellState::Formerly(table) => {
                witness.times = stamps(table, &known, now, site.cell.window, |_| true);
            }
            CellState::Since { anchors, breaks } => {
                let from =
                    moment.unbroken_from(def, breaks, &|slot| row.known(site.cell.outer(slot)?));
                witness.times = stamps(anchors, &known, now, site.cell.window, |at| at.pos >= from);
                if witness.times.is_empty() {
                    witness.broken = last_break(def.op.clone(), breaks, &|slot| {
                        site.cell.outer(slot).and_then(|slot| row.known(slot))
                    });
                }
            }
            CellState::Pair(_) => {}
            CellState::Nested(nested) => {
                if let CellOp::Nested { logs, test } = &def.op {
                    let known = |slot: u16| row.known(site.cell.outer(slot)?);
                    witness.times = nested.witnesses((logs, test), &moment, &known);
                    witness.times.truncate(LISTED);
                    witness.times.reverse();
                }
            }
            CellState::Reread(reread) => {
                if let CellOp::Reread(plan) = &def.op {
                    let seen = Seen::default();
                    let known = slots(def, &site.cell, row);
                    let both = (&**plan, reread);
                    witness.times = seen.witnesses(site.cell.cell, both, &known, history.at.pos);
                    let old = witness.times.len().saturating_sub(LISTED);
                    witness.times.drain(..old);
                }
            }
            CellState::Previous { older, newer } => {
                let held = [newer, older].into_iter().flatten();
                let mut held = held.filter(|held| held.at.pos == history.at.pos - 1);
                witness.times.extend(held.next().map(|held| held.at.time));
            }
            CellState::Window(counts) => {
                if let Some(key) = moment.window_key(&site.cell, row) {
                    witness.times = counts.times(&key, now, site.cell.window);
                    witness.value = Some(counts.value(&key, now, site.cell.window));
                }
            }
        }
        witness.latest = witness.times.last().copied();
        witness.holds = match site.total {
            Some(_) => !witness.times.is_empty(),
            None => {
                let alone = || Node::Cell(site.cell.clone());
                let node = site.whole.clone().unwrap_or_else(alone);
                moment.holds(&node, row.clone())
            }
        };
        Some(witness)
    }
}

/// The stamps inside the window of the rows that agree with what is known.
fn stamps(
    table: &Table,
    columns: &[Sym],
    now: i64,
    window: i64,
    live: impl Fn(&At) -> bool,
) -> Vec<i64> {
    let known: Vec<_> = columns
        .iter()
        .map(|sym| match sym {
            Sym::Val(val) => Some(*val),
            _ => None,
        })
        .collect();
    let missing = columns.contains(&Sym::Bottom);
    let mut found = BTreeSet::new();
    table.find(&known, missing, |row| {
        let (Found::Plain(_, times) | Found::Open(_, times)) = row;
        let inside = times
            .iter()
            .filter(|at| live(at) && in_window(at.time, now, window));
        found.extend(inside.map(|at| at.time));
        found.len() >= LISTED
    });
    found.into_iter().collect()
}

fn last_break(
    op: CellOp,
    breaks: &Breaks,
    known: &dyn Fn(u16) -> Option<crate::automaton::value::Val>,
) -> Option<i64> {
    let (
        Breaks::Parts(ended),
        CellOp::Since {
            breaks: BreakShape::Parts(parts),
            ..
        },
    ) = (breaks, op)
    else {
        return None;
    };
    let times = ended.iter().zip(&parts).filter_map(|(ended, part)| {
        let key: Option<Vec<_>> = part.keys.iter().map(|slot| known(*slot)).collect();
        ended.last_break(key?.as_slice())
    });
    times.max()
}
