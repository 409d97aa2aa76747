//! The state of one partition.

use super::policy::{ActionPlan, Policy};
use super::trigger::Cells;
use crate::automaton::cell::CellState;
use crate::automaton::formula::{CellId, EventTypeId};
use crate::automaton::solve::{Moment, States};
use crate::automaton::store::At;
use crate::automaton::value::{Val, Values};
use crate::event::Event;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;

/// How many events of a type are kept for explanations.
pub(super) const RECENT: usize = 32;

#[derive(Clone, Debug)]
pub(super) struct History {
    pub states: Vec<CellState>,
    /// When a cell has something to drop. Of several entries of a cell the earliest counts.
    due: BinaryHeap<Reverse<(i64, CellId)>>,
    /// The earliest of each cell, or the largest number of all.
    armed: Vec<i64>,
    /// Of the next event.
    pub next: i64,
    /// The monitor's clock at the last event.
    pub clock: i64,
    /// The last event: its point, its type, and its fields as the matchers of that type take them.
    pub at: At,
    pub event: Option<EventTypeId>,
    pub fields: Vec<Option<Val>>,
    /// The last [`RECENT`] events of each type that a matcher names, with their positions. Only for those
    /// who explain a decision.
    pub recent: BTreeMap<EventTypeId, VecDeque<(i64, Arc<Event>)>>,
}

impl History {
    pub fn new(policy: &Policy) -> History {
        let network = &policy.network;
        let states = network
            .cells
            .iter()
            .zip(network.lookups())
            .map(|(def, lookups)| CellState::new(def, lookups))
            .collect();
        History {
            states,
            due: BinaryHeap::new(),
            armed: vec![i64::MAX; network.cells.len()],
            next: 0,
            clock: i64::MIN,
            at: At { pos: 0, time: 0 },
            event: None,
            fields: Vec::new(),
            recent: BTreeMap::new(),
        }
    }

    pub fn append(
        &mut self,
        policy: &Policy,
        action: Option<&ActionPlan>,
        values: &mut impl Values,
        event: &Event,
        floor: i64,
        clock: i64,
    ) {
        let defs = policy.network.cells.as_slice();
        self.expire(policy, floor);
        self.clock = clock;
        self.at = At {
            pos: self.next,
            time: event.time,
        };
        self.next += 1;
        self.event = action.and_then(|action| action.event_type(&event.kind));
        for cell in take(policy, self.event, values, event, &mut self.fields) {
            let (earlier, rest) = self.states.split_at_mut(cell);
            let (Some(state), Some(def)) = (rest.first_mut(), defs.get(cell)) else {
                continue;
            };
            let moment = Moment {
                defs,
                states: States::new(earlier, &[]),
                event: self.event,
                fields: &self.fields,
                at: self.at,
                late: event.time < clock,
                seen: None,
            };
            state.update(def, &moment, floor, clock);
            let Some(armed) = self.armed.get_mut(cell) else {
                continue;
            };
            // Most cells have nothing to drop before what they had to drop first.
            if (*armed == i64::MAX || matches!(state, CellState::Pair(_)))
                && let Some(deadline) = state.deadline(def)
                && deadline < *armed
            {
                self.due.push(Reverse((deadline, cell)));
                *armed = deadline;
            }
        }
    }

    /// The history with one more event, only the changed cells of which are new.
    pub fn trial(
        &self,
        policy: &Policy,
        action: Option<&ActionPlan>,
        values: &mut impl Values,
        event: &Event,
        floor: i64,
        clock: i64,
    ) -> Trial<'_> {
        let mut trial = Trial {
            states: &self.states,
            changed: Vec::new(),
            at: At {
                pos: self.next,
                time: event.time,
            },
            event: action.and_then(|action| action.event_type(&event.kind)),
            fields: Vec::new(),
            late: event.time < clock,
        };
        let fed = take(policy, trial.event, values, event, &mut trial.fields);
        let due = self.due.iter().filter_map(|Reverse((deadline, cell))| {
            let due = *deadline < floor;
            due.then_some(*cell)
        });
        let due: BTreeSet<CellId> = due.collect();
        let mut cells = due.clone();
        cells.extend(fed.iter().copied());
        for cell in cells {
            let (Some(state), Some(def)) = (self.states.get(cell), policy.network.cells.get(cell))
            else {
                continue;
            };
            let mut state = state.clone();
            if due.contains(&cell) {
                state.expire(def, floor);
            }
            if fed.contains(&cell) {
                state.update(def, &trial.moment(policy), floor, clock);
            }
            trial.changed.push((cell, state));
        }
        trial
    }

    /// Keeps the last event for explanations, if a matcher names its type.
    pub fn remember(&mut self, event: &Event) {
        let Some(event_type) = self.event else {
            return;
        };
        let recent = self.recent.entry(event_type).or_default();
        if recent.len() == RECENT {
            recent.pop_front();
        }
        recent.push_back((self.at.pos, Arc::new(event.clone())));
    }

    /// Held for knowing when cells have something to drop.
    pub fn timers_bytes(&self) -> usize {
        self.due.capacity() * size_of::<Reverse<(i64, CellId)>>()
            + self.armed.capacity() * size_of::<i64>()
    }

    /// Notes when each cell has something to drop, for states that were read back.
    pub fn arm(&mut self, policy: &Policy) {
        let cells = self.states.iter().zip(&policy.network.cells).enumerate();
        for (cell, (state, def)) in cells {
            if let Some(deadline) = state.deadline(def)
                && let Some(armed) = self.armed.get_mut(cell)
            {
                self.due.push(Reverse((deadline, cell)));
                *armed = deadline;
            }
        }
    }

    fn expire(&mut self, policy: &Policy, floor: i64) {
        while let Some(&Reverse((deadline, cell))) = self.due.peek()
            && deadline < floor
        {
            self.due.pop();
            let (Some(state), Some(def), Some(armed)) = (
                self.states.get_mut(cell),
                policy.network.cells.get(cell),
                self.armed.get_mut(cell),
            ) else {
                continue;
            };
            if *armed != deadline {
                continue;
            }
            state.expire(def, floor);
            *armed = state.deadline(def).unwrap_or(i64::MAX);
            if *armed != i64::MAX {
                self.due.push(Reverse((*armed, cell)));
            }
        }
    }

    /// The last event, with all cells up to date.
    pub fn moment<'m>(&'m self, policy: &'m Policy) -> Moment<'m> {
        Moment {
            defs: &policy.network.cells,
            states: States::new(&self.states, &[]),
            event: self.event,
            fields: &self.fields,
            at: self.at,
            late: self.at.time < self.clock,
            seen: None,
        }
    }

    pub fn each_val(&self, seen: &mut dyn FnMut(Val)) {
        for state in &self.states {
            state.each_val(seen);
        }
        // The fields of the last event are asked again when its decision is explained.
        self.fields.iter().flatten().for_each(|val| seen(*val));
    }
}

/// A history with an event that it does not record.
pub(super) struct Trial<'h> {
    states: &'h [CellState],
    changed: Vec<(CellId, CellState)>,
    at: At,
    event: Option<EventTypeId>,
    fields: Vec<Option<Val>>,
    late: bool,
}

impl Trial<'_> {
    pub fn moment<'m>(&'m self, policy: &'m Policy) -> Moment<'m> {
        Moment {
            defs: &policy.network.cells,
            states: States::new(self.states, &self.changed),
            event: self.event,
            fields: &self.fields,
            at: self.at,
            late: self.late,
            seen: None,
        }
    }
}

/// Takes the fields of an event, and says which cells it can change.
fn take(
    policy: &Policy,
    event_type: Option<EventTypeId>,
    values: &mut impl Values,
    event: &Event,
    fields: &mut Vec<Option<Val>>,
) -> Cells {
    match event_type.and_then(|event| policy.event_plan(event)) {
        Some(plan) => {
            plan.read(&event.logged, values, fields);
            plan.cells(fields)
        }
        None => {
            fields.clear();
            Cells::from_slice(policy.cells_of_others())
        }
    }
}
