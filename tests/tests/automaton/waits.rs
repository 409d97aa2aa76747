//! How long to wait before a denied request is tried again is what trying every second finds.

use super::equivalence::cases;
use super::formulas::{Writer, services, traces};
use super::stage::*;
use dogwood_compiler::event::Event;
use dogwood_compiler::monitor::{CellKind, Config, Monitor, Policy, lateness};
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

/// No window of a random leaf is longer, so nothing changes later.
const LAST: i64 = 25;

/// The first second at which the request is allowed; nothing, where it is at once.
fn tried(monitor: &Monitor, event: &Event, now: i64) -> Option<i64> {
    let allowed = |seconds: &i64| {
        let mut again = event.clone();
        again.time = now + seconds;
        monitor.decide_only(&again).allowed()
    };
    (0..=LAST).find(allowed).filter(|seconds| *seconds > 0)
}

#[test]
fn the_time_to_wait_is_the_first_second_that_is_allowed() {
    let services = services();
    let mut runner = TestRunner::new(cases(Cases::default().cases.max(1024)));
    let input = (
        0usize..4,
        prop::collection::vec(any::<u8>(), 0..160),
        any::<bool>(),
    )
        .prop_flat_map(|(service, choices, back)| (Just((service, choices)), traces(back)));
    let waited: RefCell<BTreeMap<CellKind, u32>> = RefCell::default();
    let never = Cell::new(0);
    let outcome = runner.run(&input, |((at, choices), events)| {
        let service = &services[at];
        let mut writer = Writer::new(&choices);
        let leaf = match choices.first().map_or(0, |choice| choice % 4) {
            0 => writer.nested(),
            1 => writer.sharing(),
            _ => writer.leaf(),
        };
        let scope = "(principal, action, resource)";
        // What one of them denies the other allows.
        for text in [
            format!("permit{scope};\nforbid{scope} when temporal {{ {leaf} }};"),
            format!("permit{scope} when temporal {{ {leaf} }};"),
        ] {
            let Ok(rules) = try_rules(&text, service) else {
                return Ok(());
            };
            let policy = Arc::new(Policy::new(&rules, service));
            let config = Config {
                lateness: lateness(&events),
                explained: false,
            };
            let mut monitor = Monitor::new(policy.clone(), config);
            let mut clock = i64::MIN;
            for event in &events {
                clock = clock.max(event.time);
                let decision = match monitor.step(event) {
                    Ok(Some(decision)) if !decision.allowed() => decision,
                    _ => continue,
                };
                let wait = monitor.retry_after(event);
                let expected = tried(&monitor, event, clock);
                prop_assert_eq!(wait, expected, "{}\n{:?}\n{:#?}", text, decision, events);
                if wait.is_none() {
                    never.set(never.get() + 1);
                    continue;
                }
                for cell in policy.cells() {
                    *waited.borrow_mut().entry(cell.kind).or_default() += 1;
                }
            }
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let waited = waited.borrow();
    println!("{waited:?}, {} times no wait", never.get());
    let waits = |kind| waited.contains_key(&kind);
    assert!(waits(CellKind::Nested) && waits(CellKind::Reread) && never.get() > 10);
}

/// The kind of the operator that a leaf asks, and how long to wait after these events.
fn wait(leaf: &str, events: &[Event]) -> (CellKind, Option<i64>) {
    let text = format!(
        "permit(principal, action, resource);
         forbid(principal, action == Depot::Action::\"move\", resource) when temporal {{ {leaf} }};"
    );
    let service = service(DEPOT, Some(UNPINNED));
    let policy = policy(&long(&text), &service);
    let mut monitor = Monitor::new(policy.clone(), Config::default());
    for event in events {
        monitor.step(event).expect("in time");
    }
    let last = events.last().expect("an event");
    (
        policy.cells().pop().expect("a cell").kind,
        monitor.retry_after(last),
    )
}

#[test]
fn the_windows_inside_an_operator_end_too() {
    // The move does not end what the beep began while its crate was weighed 10s ago or less; when others were is
    // no matter.
    let leaf = "(M{ callerPrincipal: principal } && formerly within 10s Q{ input.crate: context.input.crate })
        since within 1h B{}";
    let events = [
        weigh(100, "a", 1),
        weigh(101, "b", 1),
        beep(102),
        a_move(105, "a"),
    ];
    assert_eq!(wait(leaf, &events), (CellKind::Anchor, Some(6)));
    // A cap inside: of two weighings one must have left.
    let leaf = "!(exists (c: String). (M{ input.crate: c } && formerly within 1m Q{ input.crate: c }
          && (count for (t: Timepoint). where formerly within 20s (Q{ input.crate: c } && tp(t))) < 2))
        since within 1h B{}";
    let events = [
        weigh(100, "a", 1),
        weigh(103, "a", 1),
        weigh(104, "b", 1),
        beep(104),
        a_move(105, "a"),
    ];
    assert_eq!(wait(leaf, &events), (CellKind::Reread, Some(16)));
    // What was so at an event of the past stays so until that event leaves.
    let leaf =
        "formerly within 1h (B{} && formerly within 10s Q{ input.crate: context.input.crate })";
    let events = [weigh(100, "a", 1), beep(105), a_move(106, "a")];
    assert_eq!(wait(leaf, &events), (CellKind::Nested, Some(3600)));
    // Each move begins something itself, as long as its crate was weighed 10s ago or less.
    let leaf =
        "B{} since within 1h (M{} && formerly within 10s Q{ input.crate: context.input.crate })";
    let events = [weigh(100, "a", 1), a_move(106, "a")];
    assert_eq!(wait(leaf, &events), (CellKind::Nested, Some(5)));
}
