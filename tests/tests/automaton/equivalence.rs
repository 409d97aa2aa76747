//! The monitor decides what the table of the language reference says, on random leaves and traces.
//!
//! `PROPTEST_CASES` says how many cases are run.

use super::formulas::{Writer, services, traces};
use super::stage::{try_rules, unchecked, written};
use dogwood_compiler::event::{Event, RequestPart};
use dogwood_compiler::grammar::ast::{ClauseBody, Cond, Rule};
use dogwood_compiler::monitor::{CellKind, Config, Decision, Monitor, Policy, lateness, replay};
use dogwood_compiler::schema::Service;
use dogwood_compiler::trace::Room;
use dogwood_compiler::value::{EntityUid, Record, Value};
use dogwood_tests::naive::Naive;
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestCaseError, TestRunner};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

/// So many cases; a failing one is printed, not kept in a file.
pub fn cases(cases: u32) -> Cases {
    Cases {
        cases,
        failure_persistence: None,
        max_shrink_iters: 4000,
        ..Cases::default()
    }
}

fn leaf_of(rule: &Rule) -> &Cond {
    match rule.clauses.first().map(|clause| &clause.body) {
        Some(ClauseBody::Temporal(temporal)) => &temporal.body,
        _ => panic!("the rule is one leaf"),
    }
}

fn show(events: &[Event]) -> String {
    events.iter().map(|event| format!("{event:?}\n")).collect()
}

/// What the cases covered.
#[derive(Default)]
struct Seen {
    written: Cell<u32>,
    accepted: Cell<u32>,
    leaves_true: Cell<u32>,
    leaves_false: Cell<u32>,
    kinds: RefCell<BTreeMap<CellKind, u32>>,
    /// Of the accepted leaves, those with such a condition.
    wrote: RefCell<BTreeMap<&'static str, u32>>,
}

fn more(count: &Cell<u32>, by: usize) {
    count.set(count.get() + u32::try_from(by).unwrap_or(0));
}

/// The decisions where the events are read from their lines, and no more of them than the monitor wants.
fn replay_of_lines(policy: &Arc<Policy>, events: &[Event]) -> Vec<(usize, i64, Decision)> {
    let config = Config {
        lateness: lateness(events),
        explained: false,
    };
    let mut monitor = Monitor::new(policy.clone(), config);
    let mut room = Room::default();
    let mut decisions = Vec::new();
    for (position, event) in events.iter().enumerate() {
        let line = written(event);
        let read = room.read(&line, |action, kind| monitor.reads(action, kind));
        assert_eq!(read, Ok(()), "{line}");
        if let Ok(Some(decision)) = monitor.step(&room.event) {
            decisions.push((position, room.event.time, decision));
        }
    }
    decisions
}

/// Compares the determining rules of every decision.
fn compare(
    text: &str,
    rules: &[Rule],
    service: &Service,
    events: &[Event],
    seen: &Seen,
) -> Result<(), TestCaseError> {
    let policy = Arc::new(Policy::new(rules, service));
    for cell in policy.cells() {
        *seen.kinds.borrow_mut().entry(cell.kind).or_default() += 1;
    }
    let decisions = replay(policy.clone(), events);
    prop_assert_eq!(&decisions, &replay_of_lines(&policy, events), "{}", text);
    for (position, time, decision) in decisions {
        let naive = Naive::new(&events[..=position], &service.events);
        let applies = events[position].action.id != "beep";
        let expected: Vec<usize> = rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| applies && naive.truth(leaf_of(rule)))
            .map(|(index, _)| index)
            .collect();
        more(&seen.leaves_true, expected.len());
        more(
            &seen.leaves_false,
            if applies {
                rules.len() - expected.len()
            } else {
                0
            },
        );
        prop_assert_eq!(
            &decision.rules,
            &expected,
            "at position {} (@{}) of\n{}\n{}",
            position,
            time,
            show(events),
            text
        );
        prop_assert!(decision.errors.is_empty());
    }
    Ok(())
}

#[test]
fn the_monitor_agrees_with_the_table() {
    let services = services();
    let mut runner = TestRunner::new(cases(Cases::default().cases));
    let choices = || prop::collection::vec(any::<u8>(), 0..160);
    let input = (0usize..4, choices(), choices(), any::<bool>())
        .prop_flat_map(|(service, a, b, back)| (Just((service, a, b)), traces(back)));
    let seen = Seen::default();
    let outcome = runner.run(&input, |((at, first, second), events)| {
        let service = &services[at];
        let leaves = [&first, &second].map(|choices| {
            let mut writer = Writer::new(choices);
            (writer.leaf(), writer.wrote)
        });
        let rules_of = |leaves: &[&String]| -> (String, Result<Vec<Rule>, String>) {
            let scope = "principal, action in Yard::Action::\"Any\", resource";
            let text: String = leaves
                .iter()
                .map(|leaf| format!("permit({scope}) when temporal {{ {leaf} }};\n"))
                .collect();
            let rules = try_rules(&text, service);
            (text, rules)
        };
        // A leaf may be refused for a reason of its own; both together share cells.
        let fit: Vec<&String> = leaves
            .iter()
            .filter(|(leaf, wrote)| {
                more(&seen.written, 1);
                let (_, rules) = rules_of(&[leaf]);
                if rules.is_ok() {
                    for kind in wrote {
                        *seen.wrote.borrow_mut().entry(kind).or_default() += 1;
                    }
                }
                rules.is_ok()
            })
            .map(|(leaf, _)| leaf)
            .collect();
        more(&seen.accepted, fit.len());
        match rules_of(&fit) {
            (text, Ok(rules)) => compare(&text, &rules, service, &events, &seen),
            (text, Err(error)) => Err(TestCaseError::fail(format!("{text}\n{error}"))),
        }
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let (written, accepted) = (seen.written.get(), seen.accepted.get());
    let (yes, no) = (seen.leaves_true.get(), seen.leaves_false.get());
    println!("{accepted} of {written} leaves accepted; {yes} times true, {no} times false");
    println!("{:?} {:?}", seen.kinds.borrow(), seen.wrote.borrow());
    // The cases are worth something: leaves are legal, both answers occur, and so do all kinds of cell.
    assert!(accepted * 2 > written && yes * 10 > no && no * 10 > yes);
    assert_eq!(seen.kinds.borrow().len(), 8);
    let wrote = seen.wrote.borrow();
    assert!(wrote.len() == 6 && wrote.values().all(|leaves| leaves * 40 > accepted));
}

/// More lateness than needed changes nothing, and neither does the order in which rules are given.
#[test]
fn lateness_beyond_need_changes_nothing() {
    let services = services();
    let mut runner = TestRunner::new(cases(64));
    let input = (
        0usize..4,
        prop::collection::vec(any::<u8>(), 0..160),
        traces(true),
    );
    let outcome = runner.run(&input, |(at, choices, events)| {
        let service = &services[at];
        let leaf = Writer::new(&choices).leaf();
        let text = format!("permit(principal, action, resource) when temporal {{ {leaf} }};");
        let Ok(rules) = try_rules(&text, service) else {
            return Ok(());
        };
        let policy = Arc::new(Policy::new(&rules, service));
        let exact = replay(policy.clone(), &events);
        let mut monitor = Monitor::new(
            policy,
            Config {
                lateness: lateness(&events) + 1000,
                explained: false,
            },
        );
        let mut decisions = Vec::new();
        for (position, event) in events.iter().enumerate() {
            // Asking first must change nothing either.
            let asked = monitor.decide_only(event);
            if let Some(decision) = monitor.step(event).expect("in time") {
                prop_assert_eq!(&asked, &decision);
                decisions.push((position, event.time, decision));
            }
        }
        prop_assert_eq!(decisions, exact);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// A variable that is to be equal to a number of what it says itself.
#[test]
fn what_says_itself_is_found_nowhere() {
    let event = "Yard::Action::\"move\"::request";
    let counted =
        format!("(count for (v: Long). where formerly within 11s {event}{{input.kg: z}})");
    let leaf =
        format!("exists (z: Long). formerly within 9s ({event}{{}} && {counted} == z && z < z)");
    let text = format!("permit(principal, action, resource) when temporal {{ {leaf} }};");
    let policy = unchecked(&text, &services()[0]);
    let input = Record::from_iter([
        ("crate".into(), Value::str("a")),
        ("kg".into(), Value::Int(1)),
    ]);
    let logged = Record::from_iter([("input".into(), Value::Object(input))]);
    let event = |time| Event {
        time,
        action: EntityUid::new("Yard::Action", "move"),
        kind: "request".into(),
        logged: logged.clone(),
        request: Some(RequestPart::default()),
    };
    let events: Vec<Event> = (0..4).map(event).collect();
    let decisions = replay(policy, &events);
    assert!(decisions.iter().all(|(_, _, decision)| !decision.allowed()));
    assert_eq!(decisions.len(), 4);
}

/// Rules that no check has seen decide something all the same: what makes no sense matches nothing.
#[test]
fn unchecked_rules_do_no_harm() {
    let services = services();
    let mut runner = TestRunner::new(cases(128));
    let input = (
        prop::collection::vec(any::<u8>(), 0..160),
        0usize..4,
        traces(true),
    );
    let outcome = runner.run(&input, |(choices, shift, events)| {
        // Variables change places, so that some are read before or without being bound.
        let names = ["x", "y", "z", "v"];
        let mut leaf = Writer::new(&choices).leaf();
        for (from, to) in names.iter().zip(names.iter().cycle().skip(shift)) {
            leaf = leaf.replacen(&format!(": {from}"), &format!(": {to}"), 1 + shift);
        }
        let text = format!("permit(principal, action, resource) when temporal {{ {leaf} }};");
        let requests = events
            .iter()
            .filter(|event| event.kind == "request")
            .count();
        let policy = unchecked(&text, &services[0]);
        prop_assert_eq!(replay(policy, &events).len(), requests);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
