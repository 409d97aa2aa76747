//! State follows what the windows hold, however long the history.

use super::stage::*;
use dogwood_compiler::monitor::{CellKind, Config, Monitor, Size};
use std::collections::BTreeSet;

/// One leaf for each kind of cell, and nested ones.
const LEAVES: [&str; 12] = [
    "formerly within 20s Q{ input.crate: context.input.crate }",
    "formerly within 20s (Q{ input.kg: * } && !(Q{ input.crate: context.input.crate }))",
    "previous within 20s M{ input.crate: context.input.crate }",
    "!Q{ input.crate: context.input.crate } since within 20s M{ input.crate: \"number 1 of many\" }",
    "!B{} since within 20s M{ input.crate: context.input.crate }",
    "M{} since within 20s Q{}",
    "(count for (c: String). where formerly within 20s M{ input.crate: c }) <= 2",
    "(sum k for (k: Long), (t: Timepoint). where formerly within 20s (M{ input.kg: k, input.crate: context.input.crate } && tp(t))) <= 2",
    "exists (c: String). (formerly within 20s Q{ input.crate: c } && formerly within 20s M{ input.crate: c })",
    "formerly within 20s (formerly within 20s Q{ input.crate: context.input.crate })",
    "!(M{ input.crate: context.input.crate } && formerly within 9s Q{ input.kg: context.input.kg }) since within 20s B{}",
    "(!(M{} since within 9s Q{ input.crate: context.input.crate })) since within 20s M{ input.crate: context.input.crate }",
];

fn run(events: i64, pinned: bool) -> (Size, Monitor) {
    let events_schema = if pinned { None } else { Some(UNPINNED) };
    let service = service(DEPOT, events_schema);
    let text: String = LEAVES.iter().map(|leaf| move_rule(leaf)).collect();
    let policy = policy(&text, &service);
    let kinds: BTreeSet<CellKind> = policy.cells().iter().map(|cell| cell.kind).collect();
    assert_eq!(kinds.len(), 7);
    let mut monitor = Monitor::new(policy, Config::default());
    let mut largest = Size::default();
    for n in 0..events {
        // Names never come back, so whatever is kept by name must go. They are too long to lie in a value.
        let (time, name) = (n / 4, format!("number {n} of many"));
        let who = clerk(&format!("clerk number {}", n / 16));
        let event = match n % 4 {
            0 => weigh(time, &name, n),
            3 if n % 20 == 3 => beep(time),
            _ => a_move_of(time, &name, n),
        };
        let mut event = event;
        event
            .logged
            .insert("callerPrincipal".into(), who.clone().into());
        if let Some(request) = &mut event.request {
            request.principal = Some(who);
        }
        monitor.step(&event).expect("in time");
        if n % 37 != 0 {
            continue;
        }
        let size = monitor.size();
        largest.rows = largest.rows.max(size.rows);
        largest.partitions = largest.partitions.max(size.partitions);
        largest.values = largest.values.max(size.values);
    }
    (largest, monitor)
}

#[test]
fn rows_values_and_partitions_are_bounded_by_the_windows() {
    for pinned in [false, true] {
        let (few, _) = run(2_000, pinned);
        let (many, monitor) = run(20_000, pinned);
        assert!(
            many.rows <= few.rows + few.rows / 10,
            "pinned: {pinned}: {few:?} {many:?}"
        );
        assert!(many.partitions <= few.partitions + 1);
        assert!(many.values < 10_000, "{many:?}");
        assert!(monitor.size().rows > 0);
    }
}

/// Values are released and their numbers used again, many times over; no answer may change by that.
#[test]
fn releasing_values_changes_no_answer() {
    let service = service(DEPOT, Some(UNPINNED));
    let rule = move_rule("formerly within 20s Q{ input.crate: context.input.crate }");
    let mut monitor = Monitor::new(policy(&rule, &service), Config::default());
    for n in 0..30_000 {
        let time = n / 10;
        monitor
            .step(&weigh(time, &format!("number {n} of many"), 1))
            .expect("in time");
        let mut ask = |age: i64| {
            let event = a_move(time, &format!("number {} of many", n - age));
            let decision = monitor.step(&event).expect("in time");
            decision.is_some_and(|decision| decision.allowed())
        };
        assert!(ask(0) && (n < 200 || ask(200)), "at {n}");
        assert!(!ask(220) && !ask(-1), "at {n}");
    }
    assert!(monitor.size().values < 10_000);
}

#[test]
fn an_idle_history_empties() {
    for pinned in [false, true] {
        let (_, mut monitor) = run(400, pinned);
        // An event nobody asks about, long after.
        monitor
            .step(&event(10_000, "weigh", "error", &[]))
            .expect("in time");
        let size = monitor.size();
        // What the last event itself leaves: the step that `previous` and runs remember, and where every event
        // matters its own time.
        assert!(size.rows <= 6, "{size:?}");
        assert_eq!(size.partitions, 1);
    }
}

#[test]
fn a_clone_goes_its_own_way() {
    let (_, monitor) = run(400, false);
    let (mut a, mut b) = (monitor.clone(), monitor);
    let steps = [
        weigh(101, "z", 1),
        a_move(102, "z"),
        beep(103),
        a_move(104, "z"),
    ];
    for step in &steps {
        assert_eq!(a.step(step), b.step(step));
    }
}

/// What one principal did is kept as long as an operator inside another can ask for it.
#[test]
fn an_idle_partition_is_kept_as_long_as_inner_operators_look_back() {
    let service = service(DEPOT, None);
    let leaves = [
        "formerly within 3s (formerly within 20s Q{ input.crate: context.input.crate })",
        "formerly within 3s (M{} && formerly within 20s Q{ input.crate: context.input.crate })",
        "formerly within 3s (M{} && (!B{} since within 20s Q{ input.crate: context.input.crate }))",
    ];
    for leaf in leaves {
        let mut monitor = Monitor::new(policy(&move_rule(leaf), &service), Config::default());
        monitor.step(&weigh(100, "c", 1)).expect("in time");
        let mut allows = |time: i64| {
            let decision = monitor.step(&a_move(time, "c")).expect("in time");
            decision.is_some_and(|decision| decision.allowed())
        };
        assert!(allows(120) && allows(123) && !allows(124), "{leaf}");
    }
}
