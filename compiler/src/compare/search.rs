//! The shortest trace on which two policies differ, looked for breadth first over both automata.

use super::vocabulary::Vocabulary;
use crate::event::Event;
use crate::monitor::{Config, Decision, Monitor, Policy};
use crate::schema::Type;
use crate::value::{EntityUid, Value};
use smol_str::SmolStr;
use std::sync::Arc;

/// How far to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Events of a trace.
    pub events: usize,
    /// Events tried in all.
    pub tried: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            events: 4,
            tried: 200_000,
        }
    }
}

/// A trace, and what both say to its last event.
#[derive(Clone, Debug)]
pub struct Difference {
    pub events: Vec<Event>,
    pub old: Decision,
    pub new: Decision,
}

#[derive(Clone, Debug)]
pub struct Search {
    pub difference: Option<Difference>,
    /// Every trace of the vocabulary up to this length was tried.
    pub complete_to: usize,
    pub tried: usize,
}

#[derive(Clone)]
struct Node {
    old: Monitor,
    new: Monitor,
    /// Places in the vocabulary, with the time of each.
    path: Vec<(usize, i64)>,
}

/// Looks for a trace of the vocabulary after which `old` and `new` decide differently.
pub fn search(
    old_policy: &Arc<Policy>,
    new_policy: &Arc<Policy>,
    vocabulary: &Vocabulary,
    bounds: Bounds,
) -> Search {
    let start = Node {
        old: Monitor::new(Arc::clone(old_policy), Config::default()),
        new: Monitor::new(Arc::clone(new_policy), Config::default()),
        path: Vec::new(),
    };
    let mut found = Search {
        difference: None,
        complete_to: 0,
        tried: 0,
    };
    let mut level = vec![start];
    for length in 1..=bounds.events {
        let mut next = Vec::new();
        for node in &level {
            let now = node.path.last().map_or(0, |(_, time)| *time);
            // The first event has no time to wait for.
            let steps = if node.path.is_empty() {
                &[0][..]
            } else {
                &vocabulary.steps
            };
            for (place, template) in vocabulary.events.iter().enumerate() {
                let grows = template.history && length < bounds.events;
                if !template.decided && !grows {
                    continue;
                }
                for step in steps {
                    if found.tried >= bounds.tried {
                        return found;
                    }
                    found.tried += 1;
                    let mut event = template.event.clone();
                    event.time = now.saturating_add(*step);
                    let mut grown = node.clone();
                    grown.path.push((place, event.time));
                    let (Ok(old), Ok(new)) = (grown.old.step(&event), grown.new.step(&event))
                    else {
                        continue;
                    };
                    if let (Some(old), Some(new)) = (old, new)
                        && old.verdict != new.verdict
                    {
                        let events = grown.path.iter().filter_map(|(place, time)| {
                            let mut event = vocabulary.events.get(*place)?.event.clone();
                            event.time = *time;
                            Some(event)
                        });
                        let difference = Difference {
                            events: events.collect(),
                            old,
                            new,
                        };
                        found.difference = Some(smaller(difference, old_policy, new_policy));
                        return found;
                    }
                    if grows {
                        next.push(grown);
                    }
                }
            }
        }
        found.complete_to = length;
        if next.is_empty() {
            // Nothing looks back at anything: longer traces say no more.
            found.complete_to = bounds.events;
            break;
        }
        level = next;
    }
    if vocabulary.most >= bounds.events {
        runs(old_policy, new_policy, vocabulary, bounds, &mut found);
    }
    found
}

/// Looks among runs of one event over and over: what a cap counts needs more events than can be tried in every
/// order.
fn runs(
    old_policy: &Arc<Policy>,
    new_policy: &Arc<Policy>,
    vocabulary: &Vocabulary,
    bounds: Bounds,
    found: &mut Search,
) {
    let decided = || vocabulary.events.iter().filter(|template| template.decided);
    let mut shortest: Option<Vec<Event>> = None;
    let mut tried = 0;
    for template in vocabulary.events.iter().filter(|template| template.history) {
        let mut old = Monitor::new(Arc::clone(old_policy), Config::default());
        let mut new = Monitor::new(Arc::clone(new_policy), Config::default());
        for length in 1..=vocabulary.most + 1 {
            let longer = |best: &Vec<Event>| length + 1 >= best.len();
            if tried >= bounds.tried || shortest.as_ref().is_some_and(longer) {
                break;
            }
            let (Ok(_), Ok(_)) = (old.step(&template.event), new.step(&template.event)) else {
                break;
            };
            let last = decided().find(|last| {
                tried += 1;
                let (mut old, mut new) = (old.clone(), new.clone());
                match (old.step(&last.event), new.step(&last.event)) {
                    (Ok(Some(old)), Ok(Some(new))) => old.verdict != new.verdict,
                    _ => false,
                }
            });
            if let Some(last) = last {
                let mut events = vec![template.event.clone(); length];
                events.push(last.event.clone());
                shortest = Some(events);
                break;
            }
        }
    }
    found.tried += tried;
    let difference = shortest.and_then(|events| differ(events, old_policy, new_policy));
    found.difference = difference.map(|found| smaller_run(found, old_policy, new_policy));
}

/// The same run with fewer fields in the event that is repeated, and in the last.
fn smaller_run(found: Difference, old: &Arc<Policy>, new: &Arc<Policy>) -> Difference {
    let mut best = found;
    let Some((last, run)) = best.events.split_last() else {
        return best;
    };
    let (last, repeated, length) = (last.clone(), run.first().cloned(), run.len());
    let alike = repeated.as_ref() == Some(&last);
    let Some(repeated) = repeated else {
        return best;
    };
    slim(&repeated, new, &mut |slimmer| {
        let mut events = vec![slimmer.clone(); length];
        events.push(if alike { slimmer.clone() } else { last.clone() });
        match differ(events, old, new) {
            Some(difference) => {
                best = difference;
                true
            }
            None => false,
        }
    });
    best
}

/// The same difference with fewer fields: what makes none is plain or gone.
fn smaller(found: Difference, old: &Arc<Policy>, new: &Arc<Policy>) -> Difference {
    let mut best = found;
    for at in 0..best.events.len() {
        let Some(event) = best.events.get(at).cloned() else {
            continue;
        };
        let mut events = best.events.clone();
        slim(&event, new, &mut |slimmer| {
            if let Some(place) = events.get_mut(at) {
                place.clone_from(slimmer);
            }
            match differ(events.clone(), old, new) {
                Some(difference) => {
                    best = difference;
                    true
                }
                None => false,
            }
        });
    }
    best
}

/// The event with as few fields of its input as `holds` allows: each is left out or made plain if that holds.
pub(crate) fn slim(event: &Event, policy: &Policy, holds: &mut dyn FnMut(&Event) -> bool) -> Event {
    let mut best = event.clone();
    for field in fields(event) {
        let optional = may_be_absent(policy, &event.action, &field);
        for value in [None, Some(Value::str(""))] {
            let mut slimmer = best.clone();
            if change(&mut slimmer, &field, value, optional) && holds(&slimmer) {
                best = slimmer;
                break;
            }
        }
    }
    best
}

/// The text fields of the input: those that carry names nobody may have asked for.
fn fields(event: &Event) -> Vec<SmolStr> {
    let Some(Value::Object(input)) = event.logged.get("input") else {
        return Vec::new();
    };
    let texts = input
        .iter()
        .filter(|(_, value)| matches!(value, Value::String(text) if !text.is_empty()));
    texts.map(|(name, _)| name.clone()).collect()
}

/// Gives a field of the input another value, or takes an optional one away; false where nothing changes.
fn change(event: &mut Event, field: &SmolStr, value: Option<Value>, optional: bool) -> bool {
    let mut parts = vec![&mut event.logged];
    if let Some(request) = &mut event.request {
        parts.push(&mut request.context);
    }
    let mut changed = false;
    for part in parts {
        let Some(Value::Object(input)) = part.get_mut("input") else {
            continue;
        };
        changed |= match &value {
            Some(value) => input.insert(field.clone(), value.clone()).as_ref() != Some(value),
            None => optional && input.remove(field).is_some(),
        };
    }
    changed
}

fn may_be_absent(policy: &Policy, action: &EntityUid, field: &SmolStr) -> bool {
    let input = policy
        .service()
        .actions
        .actions
        .get(action)
        .and_then(|action| action.applies_to.as_ref()?.context.attrs.get("input"));
    match input.map(|attr| &attr.ty) {
        Some(Type::Record(record)) => record.attrs.get(field).is_some_and(|attr| !attr.required),
        _ => false,
    }
}

/// What both say to the last event, if they differ there.
fn differ(events: Vec<Event>, old: &Arc<Policy>, new: &Arc<Policy>) -> Option<Difference> {
    let last = |policy: &Arc<Policy>| -> Option<Decision> {
        let mut monitor = Monitor::new(Arc::clone(policy), Config::default());
        let mut decided = None;
        for event in &events {
            decided = monitor.step(event).ok()?;
        }
        decided
    };
    let (old, new) = (last(old)?, last(new)?);
    (old.verdict != new.verdict).then_some(Difference { events, old, new })
}
