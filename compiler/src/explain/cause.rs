//! Which events a verdict rests on, and the smallest change that would turn it.
//!
//! Both are found by trying, over the automata: an event belongs to the cause if the decision changes without it
//! while all other events of the cause are there (Zeller and Hildebrandt, "Simplifying and isolating
//! failure-inducing input", 2002). So removing every event that is not named keeps the decision, and removing
//! any one that is named does not.

use super::describe;
use crate::compare::{Vocabulary, slim, vocabulary};
use crate::compile::CheckedRule;
use crate::event::Event;
use crate::monitor::{Config, Decision, Monitor, Policy, lateness};
use crate::value::{Record, Value, put};
use smol_str::SmolStr;
use std::collections::BTreeMap;
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
    /// With another value in a field of the request.
    With { path: Vec<SmolStr>, value: Value },
    /// With anything in a field of the request but what it has; such as this.
    Unlike {
        path: Vec<SmolStr>,
        found: Value,
        example: Value,
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
        let mut agreeing = event.clone();
        agree(&mut agreeing, request, &words);
        [agreeing, event]
            .into_iter()
            .find(|event| turns(event))
            .map(|event| slim(&event, policy, &mut |slimmer| turns(slimmer)))
    });
    // The one that says least.
    let after = turning.min_by_key(|event| describe(event).len());
    found.extend(after.map(|event| Change::After(Box::new(event))));
    let other = |path: &[SmolStr], value: Value| {
        let mut request = request.clone();
        (changed(&mut request, path, value) && allowed(&before, &request)).then_some(())
    };
    found.extend(with(request, past, &words, &other));
    found
}

/// Values of earlier requests that are tried for a field.
const EARLIER: usize = 8;

/// The field of the request that a denial turns on, and to what.
fn with(
    request: &Event,
    past: &[Event],
    words: &Vocabulary,
    turns: &dyn Fn(&[SmolStr], Value) -> Option<()>,
) -> Option<Change> {
    let told = words.events.iter().map(|template| &template.event);
    let own = |event: &&Event| event.action == request.action;
    let values = |event: &Event| {
        let context = event.request.as_ref().map(|part| &part.context);
        context.map_or_else(Vec::new, |context| leaves(context, &mut Vec::new()))
    };
    let mut candidates: BTreeMap<Vec<SmolStr>, Vec<Value>> = BTreeMap::new();
    for (path, value) in told.filter(own).flat_map(values) {
        let known = candidates.entry(path).or_default();
        if !known.contains(&value) {
            known.push(value);
        }
    }
    for (path, known) in &mut candidates {
        let most = known.len() + EARLIER;
        for event in past.iter().rev().filter(own).take(100) {
            let seen = values(event).into_iter().find(|(at, _)| at == path);
            let new = seen.filter(|(_, value)| known.len() < most && !known.contains(value));
            known.extend(new.map(|(_, value)| value));
        }
    }
    // Nobody asks for it by name, so where it turns a denial, anything else does.
    let anything = Value::str("something else");
    let context = request.request.as_ref().map(|part| &part.context);
    let changes = candidates.into_iter().filter_map(|(path, values)| {
        let (first, rest) = path.split_first()?;
        let found = context?.get(first).and_then(|value| value.at(rest));
        let other = values.iter().filter(|value| Some(*value) != found);
        let turning: Vec<&Value> = other
            .filter(|value| turns(&path, (*value).clone()).is_some())
            .collect();
        let change = match (turning.as_slice(), found) {
            ([], _) => return None,
            ([Value::Int(there), ..], Some(Value::Int(here))) => Change::With {
                value: Value::Int(nearest(*there, *here, &|n| {
                    turns(&path, Value::Int(n)).is_some()
                })),
                path,
            },
            (_, Some(found @ Value::String(_))) if turns(&path, anything.clone()).is_some() => {
                Change::Unlike {
                    found: found.clone(),
                    example: anything.clone(),
                    path,
                }
            }
            ([value, ..], _) => Change::With {
                value: (*value).clone(),
                path,
            },
        };
        Some(change)
    });
    // What says which operation it is goes first in a sentence, and is changed last.
    changes.max_by_key(|change| match change {
        Change::With { path, .. } | Change::Unlike { path, .. } => (
            crate::normal::place_of(path),
            std::cmp::Reverse(path.clone()),
        ),
        Change::Later(_) | Change::After(_) => (0, std::cmp::Reverse(Vec::new())),
    })
}

/// Of the numbers from one that turns a denial to one that does not, the last that does.
fn nearest(there: i64, here: i64, turns: &dyn Fn(i64) -> bool) -> i64 {
    let (mut there, mut here) = (there, here);
    while there.abs_diff(here) > 1 {
        let middle = i64::midpoint(there, here);
        if turns(middle) {
            there = middle;
        } else {
            here = middle;
        }
    }
    there
}

/// Gives an event what rules want to be as in the request.
fn agree(event: &mut Event, request: &Event, words: &Vocabulary) {
    let Some(context) = request.request.as_ref().map(|part| &part.context) else {
        return;
    };
    for agreement in &words.agreements {
        let id = &agreement.event;
        if id.action != event.action || id.kind != event.kind {
            continue;
        }
        let asked = agreement.asked.split_first();
        let value = asked.and_then(|(first, rest)| context.get(first)?.at(rest));
        if let Some(value) = value {
            changed(event, &agreement.field, value.clone());
        }
    }
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

/// Gives a field of an event another value; false where it has it already.
fn changed(event: &mut Event, path: &[SmolStr], value: Value) -> bool {
    let mut changed = false;
    if let Some(request) = &mut event.request {
        changed |= put(&mut request.context, path, Some(value.clone()));
    }
    changed | put(&mut event.logged, path, Some(value))
}
