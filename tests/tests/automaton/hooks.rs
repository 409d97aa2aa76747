//! What a monitor tells those who explain a decision, and how it treats questions and late events.

use super::stage::*;
use dogwood_compiler::event::Event;
use dogwood_compiler::monitor::{CellKind, Config, LeafReport, Monitor, StepError};
use dogwood_compiler::value::EntityUid;

fn monitor(text: &str) -> Monitor {
    let service = service(DEPOT, Some(UNPINNED));
    let config = Config {
        explained: true,
        ..Config::default()
    };
    Monitor::new(policy(&long(text), &service), config)
}

fn feed(monitor: &mut Monitor, events: &[Event]) -> String {
    let decisions = events
        .iter()
        .filter_map(|event| monitor.step(event).expect("in time"));
    decisions.map(|decision| letter(&decision)).collect()
}

fn only(reports: Vec<LeafReport>) -> LeafReport {
    assert_eq!(reports.len(), 1);
    reports.into_iter().next().unwrap()
}

#[test]
fn a_count_tells_its_value_and_what_leaves_when() {
    let rule =
        move_rule("(count for (t: Timepoint). where formerly within 1m (M{} && tp(t))) <= 2");
    let mut monitor = monitor(&rule);
    let last = a_move(30, "a");
    assert_eq!(
        feed(
            &mut monitor,
            &[a_move(10, "a"), a_move(20, "a"), last.clone()]
        ),
        "AAD"
    );
    let report = only(monitor.report(&last, 0));
    assert!(!report.truth);
    let witness = &report.witnesses[0];
    assert_eq!(
        (witness.kind, witness.window, witness.value),
        (CellKind::Window, 60, Some(3))
    );
    assert_eq!(witness.times, [10, 20, 30]);
    assert_eq!(&rule[witness.span.range()][..5], "count");
    // The retry counts itself: 10 and 20 must both be gone, at 81.
    assert_eq!(monitor.retry_after(&last), Some(51));
    // Asking has changed nothing.
    assert_eq!(
        feed(&mut monitor, &[a_move(80, "a"), a_move(81, "a")]),
        "DD"
    );
}

#[test]
fn a_latest_time_is_that_of_the_key_asked_for() {
    let rule = move_rule("formerly within 1m Q{ input.crate: context.input.crate }");
    let mut monitor = monitor(&rule);
    feed(
        &mut monitor,
        &[weigh(5, "a", 1), weigh(9, "b", 1), weigh(12, "a", 1)],
    );
    let last = a_move(20, "a");
    assert_eq!(feed(&mut monitor, std::slice::from_ref(&last)), "A");
    let report = only(monitor.report(&last, 0));
    assert!(report.truth && report.witnesses[0].holds);
    assert_eq!(report.witnesses[0].latest, Some(12));
    assert_eq!(report.witnesses[0].kind, CellKind::Latest);
    let last = a_move(21, "c");
    assert_eq!(feed(&mut monitor, std::slice::from_ref(&last)), "D");
    let report = only(monitor.report(&last, 0));
    assert!(!report.truth && !report.witnesses[0].holds);
    assert_eq!(report.witnesses[0].latest, None);
    // Time does not bring a weighing.
    assert_eq!(monitor.retry_after(&last), None);
}

#[test]
fn a_broken_since_tells_what_broke_it() {
    let mut monitor = monitor(&move_rule("!B{} since within 1h Q{}"));
    let last = a_move(40, "a");
    assert_eq!(
        feed(&mut monitor, &[weigh(10, "a", 1), beep(30), last.clone()]),
        "DDD"
    );
    let report = only(monitor.report(&last, 0));
    let witness = &report.witnesses[0];
    assert_eq!((witness.kind, witness.holds), (CellKind::Anchor, false));
    assert_eq!((witness.latest, witness.broken), (None, Some(30)));
    let recent: Vec<i64> = monitor
        .recent(&last)
        .iter()
        .map(|recent| recent.event.time)
        .collect();
    assert_eq!(recent, [10, 30]);
}

#[test]
fn waiting_out_a_forbid() {
    let text = "permit(principal, action, resource);
        forbid(principal, action == Depot::Action::\"move\", resource) when temporal { formerly within 30s B{} };";
    let mut monitor = monitor(text);
    let last = a_move(12, "a");
    assert_eq!(feed(&mut monitor, &[beep(10), last.clone()]), "AD");
    assert_eq!(monitor.retry_after(&last), Some(29));
    let mut later = last;
    later.time = 12 + 28;
    assert!(!monitor.decide_only(&later).allowed());
    later.time += 1;
    assert!(monitor.decide_only(&later).allowed());
}

#[test]
fn late_events_are_refused_and_change_nothing() {
    let mut monitor = monitor(&move_rule("formerly within 1h Q{}"));
    feed(&mut monitor, &[a_move(100, "a")]);
    let late = StepError::Late {
        time: 99,
        clock: 100,
        lateness: 0,
    };
    assert_eq!(monitor.step(&weigh(99, "a", 1)), Err(late));
    assert!(!monitor.decide_only(&a_move(99, "a")).allowed());
    assert_eq!(feed(&mut monitor, &[a_move(100, "a")]), "D");
    assert_eq!(
        late.to_string(),
        "the event is stamped 99, more than 0s before the latest, 100"
    );
}

#[test]
fn equal_cells_are_one_whatever_their_names() {
    let service = service(DEPOT, Some(UNPINNED));
    let rule = |leaf: &str| long(&move_rule(leaf));
    let text = [
        rule("exists (c: String). (formerly within 1h Q{ input.crate: c } && M{ input.crate: c })"),
        rule("exists (d: String). (M{ input.crate: d } && formerly within 1h Q{ input.crate: d })"),
        rule("formerly within 1h Q{ input.crate: context.input.crate }"),
        rule("!(formerly within 1h Q{ input.crate: \"x\" })"),
        rule("(count for (t: Timepoint). where formerly within 1h (M{} && tp(t))) <= 2"),
        rule("(count for (u: Timepoint). where formerly within 1h (M{} && tp(u))) > 7"),
    ]
    .concat();
    let cells = policy(&text, &service).cells();
    let rules: Vec<Vec<usize>> = cells.iter().map(|cell| cell.rules.clone()).collect();
    assert_eq!(rules, [vec![0, 1, 2], vec![3], vec![4, 5]]);
}

#[test]
fn an_unknown_action_or_kind_is_history_only() {
    let mut monitor = monitor(&move_rule("previous within 1h M{}"));
    let mut other = beep(11);
    other.action = EntityUid::new("Depot::Action", "unheard");
    other.kind = "of".into();
    assert_eq!(
        feed(
            &mut monitor,
            &[a_move(10, "a"), other, a_move(12, "a"), a_move(13, "a")]
        ),
        "DDA"
    );
}
