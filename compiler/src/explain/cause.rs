//! Which events a verdict rests on, and the smallest change that would turn it.
//!
//! Both are found by trying, over the automata: an event belongs to the cause if the decision changes without it
//! while all other events of the cause are there (Zeller and Hildebrandt, "Simplifying and isolating
//! failure-inducing input", 2002). So removing every event that is not named keeps the decision, and removing
//! any one that is named does not.

use super::describe;
use crate::compare::{slim, vocabulary};
use crate::compile::CheckedRule;
use crate::event::Event;
use crate::monitor::{Config, Decision, Monitor, Policy, lateness};
use crate::value::{Record, Value};
use smol_str::SmolStr;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The events a decision rests on, beside the request itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Positions in the trace, in order.
    pub events: Vec<usize>,
    /// Whether none of them can be left out; false where the search was cut short.
    pub minimal: bool,
}

/// What would turn a denial into an allowance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// So many seconds later.
    Later(i64),
    /// After this event, happening just before.
    After(Box<Event>),
    /// With another value in a field of the request, or without it.
    With {
        path: Vec<SmolStr>,
        value: Option<Value>,
    },
}

/// Events replayed in all, before the search for a smaller cause stops.
const MOST_REPLAYED: usize = 2_000_000;
/// Longest trace of which every event is tried one by one.
const MOST_TRIED: usize = 100_000;

/// What one decision is for a cause: the verdict, the rules that determined it, and what failed.
fn sum(decision: &Decision) -> (bool, &[usize], usize) {
    (decision.allowed(), &decision.rules, decision.errors.len())
}

struct Trial<'t> {
    policy: &'t Arc<Policy>,
    events: &'t [Event],
    at: usize,
    config: Config,
    replayed: usize,
}

impl Trial<'_> {
    /// The decision at the request with only these earlier events.
    fn decide(&mut self, kept: &[usize]) -> Option<Decision> {
        let mut monitor = Monitor::new(Arc::clone(self.policy), self.config);
        let mut decided = None;
        for at in kept.iter().chain([&self.at]) {
            decided = monitor.step(self.events.get(*at)?).ok()?;
        }
        self.replayed += kept.len() + 1;
        decided
    }
}

/// The cause of the decision at a position of a trace; nothing where nothing is decided there.
pub fn cause(policy: &Arc<Policy>, events: &[Event], at: usize) -> Option<Cause> {
    let mut trial = Trial {
        policy,
        events,
        at,
        config: Config {
            lateness: lateness(events.get(..=at)?),
            ..Config::default()
        },
        replayed: 0,
    };
    let all: Vec<usize> = (0..at).collect();
    let decision = trial.decide(&all)?;
    let wanted = sum(&decision);
    let same = |trial: &mut Trial<'_>, kept: &[usize]| {
        trial
            .decide(kept)
            .is_some_and(|decision| sum(&decision) == wanted)
    };
    if same(&mut trial, &[]) {
        return Some(Cause {
            events: Vec::new(),
            minimal: true,
        });
    }
    let mut kept = all;
    let mut parts = 2;
    let mut minimal = true;
    while !kept.is_empty() && parts <= kept.len().max(2) {
        if trial.replayed > MOST_REPLAYED || kept.len() > MOST_TRIED {
            minimal = false;
            break;
        }
        let size = kept.len().div_ceil(parts);
        let chunks: Vec<Vec<usize>> = kept.chunks(size).map(<[usize]>::to_vec).collect();
        let smaller = chunks.iter().enumerate().find_map(|(number, chunk)| {
            // The chunk alone, then everything but the chunk.
            if parts > 2 && same(&mut trial, chunk) {
                return Some((chunk.clone(), 2));
            }
            let rest: Vec<usize> = chunks
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != number)
                .flat_map(|(_, chunk)| chunk.iter().copied())
                .collect();
            same(&mut trial, &rest).then_some((rest, parts.saturating_sub(1).max(2)))
        });
        match smaller {
            Some((rest, next)) => {
                kept = rest;
                parts = next.min(kept.len().max(2));
            }
            None if parts >= kept.len() => break,
            None => parts = (parts * 2).min(kept.len()),
        }
    }
    Some(Cause {
        events: kept,
        minimal,
    })
}

/// The smallest changes that would let a denied request pass, one of each kind at most: waiting, one event
/// before it, one field of it. `events` end with the request.
pub fn changes(policy: &Arc<Policy>, rules: &[CheckedRule], events: &[Event]) -> Vec<Change> {
    let Some((request, past)) = events.split_last() else {
        return Vec::new();
    };
    let config = Config {
        lateness: lateness(events),
        ..Config::default()
    };
    let mut before = Monitor::new(Arc::clone(policy), config);
    for event in past {
        if before.step(event).is_err() {
            return Vec::new();
        }
    }
    let mut found = Vec::new();
    let mut after = before.clone();
    if after.step(request).is_ok()
        && let Some(seconds) = after.retry_after(request)
    {
        found.push(Change::Later(seconds));
    }
    let concerned = rules
        .iter()
        .filter(|rule| rule.targets.is_empty() || rule.targets.contains(&request.action));
    let words = vocabulary(concerned, policy.service());
    let allowed = |monitor: &Monitor, request: &Event| monitor.decide_only(request).allowed();
    let happened = words.events.iter().filter(|template| template.history);
    let turns = |event: &Event| {
        let mut monitor = before.clone();
        monitor.step(event).is_ok() && allowed(&monitor, request)
    };
    let turning = happened.filter_map(|template| {
        let mut event = alike(&template.event, request);
        event.time = request.time;
        turns(&event).then(|| slim(&event, policy, &mut |slimmer| turns(slimmer)))
    });
    // The one that says least.
    let after = turning.min_by_key(|event| describe(event).len());
    found.extend(after.map(|event| Change::After(Box::new(event))));
    let mut tried = BTreeSet::new();
    let with = words
        .events
        .iter()
        .filter(|template| template.event.action == request.action)
        .filter_map(|template| template.event.request.as_ref())
        .flat_map(|part| leaves(&part.context, &mut Vec::new()))
        .filter(|(path, value)| tried.insert((path.clone(), value.clone())))
        .find(|(path, value)| {
            let mut request = request.clone();
            changed(&mut request, path, value.clone()) && allowed(&before, &request)
        });
    found.extend(with.map(|(path, value)| Change::With {
        path,
        value: Some(value),
    }));
    found
}

/// An event of the vocabulary, by the principal of the request.
fn alike(event: &Event, request: &Event) -> Event {
    let mut event = event.clone();
    for field in ["callerPrincipal", "callerResource"] {
        if let Some(value) = request.logged.get(field)
            && event.logged.contains_key(field)
        {
            event.logged.insert(field.into(), value.clone());
        }
    }
    if let (Some(own), Some(asked)) = (&mut event.request, &request.request) {
        own.principal.clone_from(&asked.principal);
        own.resource.clone_from(&asked.resource);
        own.entities.clone_from(&asked.entities);
    }
    event
}

/// Every field of a record that is no record, with its path.
fn leaves(record: &Record, path: &mut Vec<SmolStr>) -> Vec<(Vec<SmolStr>, Value)> {
    let mut found = Vec::new();
    for (name, value) in record {
        path.push(name.clone());
        match value {
            Value::Object(inner) => found.extend(leaves(inner, path)),
            _ => found.push((path.clone(), value.clone())),
        }
        path.pop();
    }
    found
}

/// Gives a field of the request another value; false where it has it already.
fn changed(event: &mut Event, path: &[SmolStr], value: Value) -> bool {
    let mut changed = false;
    if let Some(request) = &mut event.request {
        changed |= put(&mut request.context, path, &value);
    }
    changed | put(&mut event.logged, path, &value)
}

fn put(record: &mut Record, path: &[SmolStr], value: &Value) -> bool {
    match path {
        [] => false,
        [last] => record.insert(last.clone(), value.clone()).as_ref() != Some(value),
        [first, rest @ ..] => match record.get_mut(first) {
            Some(Value::Object(inner)) => put(inner, rest, value),
            _ => false,
        },
    }
}
