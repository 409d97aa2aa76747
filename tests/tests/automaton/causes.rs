//! Explanations of random verdicts, checked by trying: the events named are enough, each is needed, and what is
//! said to turn a denial does.
//!
//! `PROPTEST_CASES` says how many cases are run.

use super::formulas::{Writer, services, traces};
use super::stage::source;
use dogwood_compiler::compile::{CheckedRule, Options, check};
use dogwood_compiler::event::Event;
use dogwood_compiler::explain::{Change, cause, changes};
use dogwood_compiler::monitor::{Config, Decision, Monitor, Policy, lateness};
use dogwood_compiler::schema::Service;
use dogwood_compiler::value::put;
use proptest::prelude::*;
use std::sync::Arc;

/// A permit or forbid on a random leaf, over a plain permit if it forbids.
fn rules(
    choices: &[u8],
    forbids: bool,
    unless: bool,
    service: &Service,
) -> Option<Vec<CheckedRule>> {
    let leaf = Writer::new(choices).leaf();
    let scope = "principal, action in Yard::Action::\"Any\", resource";
    let clause = if unless { "unless" } else { "when" };
    let effect = if forbids { "forbid" } else { "permit" };
    let text = format!(
        "permit({scope}) when {{ {forbids} }};\n{effect}({scope}) {clause} temporal {{ {leaf} }};"
    );
    let checked = check(
        &[source("policy", &text)],
        None,
        service,
        &Options::default(),
    );
    checked.ok().map(|checked| checked.rules)
}

fn compiled(rules: &[CheckedRule], service: &Service) -> Arc<Policy> {
    let trees: Vec<_> = rules.iter().map(|rule| rule.rule.clone()).collect();
    Arc::new(Policy::new(&trees, service))
}

fn last(policy: &Arc<Policy>, lateness: i64, events: &[&Event]) -> Option<Decision> {
    let mut monitor = Monitor::new(
        Arc::clone(policy),
        Config {
            lateness,
            ..Config::default()
        },
    );
    let mut decided = None;
    for event in events {
        decided = monitor.step(event).unwrap();
    }
    decided
}

proptest! {
    #[test]
    fn a_cause_is_enough_and_all_of_it_is_needed(
        service in 0usize..4,
        choices in prop::collection::vec(any::<u8>(), 0..160),
        forbids in any::<bool>(),
        (unless, events) in (any::<bool>(), any::<bool>()).prop_flat_map(|(unless, back)| (Just(unless), traces(back))),
    ) {
        let service = &services()[service];
        let Some(rules) = rules(&choices, forbids, unless, service) else { return Ok(()) };
        let policy = compiled(&rules, service);
        for at in 0..events.len() {
            let late = lateness(&events[..=at]);
            let whole: Vec<&Event> = events[..=at].iter().collect();
            let Some(decision) = last(&policy, late, &whole) else {
                prop_assert_eq!(cause(&policy, &events, at), None);
                continue;
            };
            let found = cause(&policy, &events, at).unwrap();
            prop_assert!(found.minimal);
            let with = |left_out: Option<usize>| {
                let kept = found.events.iter().filter(|kept| Some(**kept) != left_out);
                let events: Vec<&Event> = kept.chain([&at]).map(|kept| &events[*kept]).collect();
                last(&policy, late, &events).unwrap()
            };
            prop_assert_eq!(&with(None), &decision, "without the events not named");
            for named in &found.events {
                prop_assert_ne!(&with(Some(*named)), &decision, "without event {}", named);
            }
        }
    }

    #[test]
    fn what_is_said_to_turn_a_denial_does(
        service in 0usize..4,
        choices in prop::collection::vec(any::<u8>(), 0..160),
        forbids in any::<bool>(),
        (unless, events) in any::<bool>().prop_flat_map(|unless| (Just(unless), traces(false))),
    ) {
        let service = &services()[service];
        let Some(rules) = rules(&choices, forbids, unless, service) else { return Ok(()) };
        let policy = compiled(&rules, service);
        for at in 0..events.len() {
            let whole: Vec<&Event> = events[..=at].iter().collect();
            let Some(decision) = last(&policy, 0, &whole) else { continue };
            if decision.allowed() { continue }
            for change in changes(&policy, &rules, &events[..=at]) {
                let (past, request) = (&events[..at], &events[at]);
                let mut all: Vec<Event> = past.to_vec();
                let mut request = request.clone();
                match &change {
                    Change::Later(seconds) => {
                        all.push(request.clone());
                        request.time += seconds;
                    }
                    Change::After(event) => all.push((**event).clone()),
                    Change::With { path, value }
                    | Change::Unlike {
                        path,
                        example: value,
                        ..
                    } => {
                        put(&mut request.logged, path, Some(value.clone()));
                        let context = &mut request.request.as_mut().unwrap().context;
                        put(context, path, Some(value.clone()));
                    }
                }
                all.push(request);
                let all: Vec<&Event> = all.iter().collect();
                prop_assert!(last(&policy, 0, &all).unwrap().allowed(), "{:?}", change);
            }
        }
    }
}
