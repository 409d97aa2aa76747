//! The worked examples of the language reference, with their verdicts.

use super::stage::*;
use dogwood_compiler::event::Event;
use dogwood_compiler::value::{EntityUid, Value};

fn response(time: i64, action: &str, ok: bool) -> Event {
    let mut event = event(time, action, "response", &[("crate", "a".into())]);
    event
        .logged
        .insert("output".into(), Value::Object(record(&[("ok", ok.into())])));
    event.request = None;
    event
}

#[test]
fn formerly_sees_the_current_event() {
    let leaf = "formerly within 10s M{ input.crate: context.input.crate }";
    assert_eq!(moves(leaf, &[a_move(10, "a"), a_move(25, "b")]), "AA");
}

#[test]
fn strictly_earlier() {
    let leaf = "exists (t: Timepoint). (tp(t) && exists (u: Timepoint). (formerly within 10s (M{input.crate: context.input.crate} && tp(u)) && u != t))";
    assert_eq!(
        moves(leaf, &[a_move(10, "a"), a_move(20, "a"), a_move(31, "a")]),
        "DAD"
    );
}

#[test]
fn window_ends_are_inside() {
    let trace = [weigh(0, "a", 1), a_move(10, "a"), a_move(11, "a")];
    assert_eq!(moves("formerly within 10s Q{}", &trace), "AD");
}

#[test]
fn previous_is_the_adjacent_event() {
    let trace = [
        a_move(10, "a"),
        a_move(11, "a"),
        beep(12),
        a_move(13, "a"),
        a_move(80, "a"),
    ];
    assert_eq!(moves("previous within 60s M{}", &trace), "DADD");
    assert_eq!(moves("!(previous within 60s M{})", &trace[..2]), "AD");
}

#[test]
fn counting_includes_now() {
    let leaf = "(count for (t: Timepoint). where formerly within 1m (M{} && tp(t))) <= 2";
    let trace: Vec<Event> = [10, 20, 30, 71, 200].map(|time| a_move(time, "a")).into();
    assert_eq!(moves(leaf, &trace), "AADDA");
}

#[test]
fn counts_are_of_distinct_rows() {
    let leaf = "(count for (c: String). where formerly within 1m M{ input.crate: c }) <= 1";
    let trace = [
        (10, "a"),
        (20, "a"),
        (30, "b"),
        (75, "b"),
        (90, "b"),
        (91, "b"),
    ];
    assert_eq!(
        moves(leaf, &trace.map(|(time, name)| a_move(time, name))),
        "AADDAA"
    );
}

#[test]
fn equal_rows_are_summed_once() {
    let trace = [3, 3, 2, 1].map(|kg| a_move_of(10 + kg, "a", kg));
    let mut trace = trace.to_vec();
    for (at, event) in trace.iter_mut().enumerate() {
        event.time = 10 + at as i64;
    }
    let leaf = "(sum k for (k: Long). where formerly within 1h M{ input.kg: k }) <= 5";
    assert_eq!(moves(leaf, &trace), "AAAD");
    let leaf = "(sum k for (k: Long), (t: Timepoint). where formerly within 1h (M{ input.kg: k } && tp(t))) <= 5";
    assert_eq!(moves(leaf, &trace), "ADDD");
}

#[test]
fn a_named_field_must_be_there() {
    let mut null = a_move(3, "a");
    null.logged.insert(
        "input".into(),
        Value::Object(record(&[("kg", Value::Null)])),
    );
    let trace = [a_move(1, "a"), a_move_of(2, "a", 1), null];
    assert_eq!(moves("M{ input.kg: * }", &trace), "DAA");
}

#[test]
fn absent_is_not_unequal() {
    let leaf = "exists (t: Timepoint). (tp(t) && context.input.kg != 5 && M{})";
    assert_eq!(moves(leaf, &[a_move(1, "a"), a_move_of(2, "a", 6)]), "DA");
    let leaf = "M{} && !(M{ input.kg: 5 })";
    assert_eq!(
        moves(
            leaf,
            &[a_move(1, "a"), a_move_of(2, "a", 5), a_move_of(3, "a", 6)]
        ),
        "ADA"
    );
    let leaf = "formerly within 1h M{ input.kg: context.input.kg }";
    assert_eq!(moves(leaf, &[a_move(1, "a")]), "D");
    assert_eq!(moves(&format!("!({leaf})"), &[a_move(1, "a")]), "A");
}

#[test]
fn a_positive_left_side_is_fragile() {
    let trace = [
        weigh(10, "a", 1),
        a_move(20, "a"),
        a_move(30, "a"),
        beep(40),
        a_move(50, "a"),
    ];
    assert_eq!(moves("M{} since within 1h Q{}", &trace), "AAD");
}

#[test]
fn a_negated_left_side_is_the_useful_one() {
    let trace = [
        a_move(5, "a"),
        weigh(10, "a", 1),
        a_move(20, "a"),
        beep(40),
        a_move(50, "a"),
        weigh(60, "a", 1),
        a_move(70, "a"),
    ];
    assert_eq!(moves("!B{} since within 1h Q{}", &trace), "DADA");
}

#[test]
fn the_left_side_is_tested_now_but_not_at_the_anchor() {
    assert_eq!(
        moves(
            "!M{} since within 1h Q{}",
            &[weigh(1, "a", 1), a_move(2, "a")]
        ),
        "D"
    );
    let leaf = "B{} since within 1h M{ input.crate: \"a\" }";
    assert_eq!(moves(leaf, &[a_move(1, "a"), a_move(2, "b")]), "AD");
}

#[test]
fn pins_change_previous() {
    let trace: Vec<Event> = [("ann", 10), ("bob", 20), ("ann", 30), ("bob", 40)]
        .map(|(who, time)| {
            by(
                clerk(who),
                time,
                "move",
                "request",
                &[("crate", "a".into())],
            )
        })
        .into();
    let pinned = service(DEPOT, None);
    let rule = move_rule("previous within 1h M{}");
    assert_eq!(verdicts(policy(&rule, &pinned), &trace), "DDAA");
    assert_eq!(
        moves("previous within 1h M{ callerPrincipal: principal }", &trace),
        "DDDD"
    );
}

#[test]
fn nested_windows_hop() {
    let leaf = "formerly within 10s (formerly within 10s Q{})";
    let trace = [
        weigh(10, "a", 1),
        beep(20),
        a_move(30, "a"),
        a_move(31, "a"),
    ];
    assert_eq!(moves(leaf, &trace), "AD");
    assert_eq!(moves(leaf, &[weigh(10, "a", 1), a_move(30, "a")]), "D");
}

#[test]
fn request_terms_do_not_travel() {
    let leaf = "formerly within 1h Q{ input.crate: context.input.crate }";
    assert_eq!(
        moves(leaf, &[weigh(10, "a", 1), a_move(11, "b"), a_move(12, "a")]),
        "DA"
    );
}

#[test]
fn outcomes_count_when_they_come() {
    let leaf = "formerly within 1h Depot::Action::\"weigh\"::response{ output.ok: true }";
    let trace = [
        weigh(10, "a", 1),
        a_move(11, "a"),
        response(12, "weigh", false),
        a_move(13, "a"),
        response(14, "weigh", true),
        a_move(15, "a"),
    ];
    assert_eq!(moves(leaf, &trace), "DDA");
}

#[test]
fn joins_and_correlated_aggregates() {
    let leaf = "exists (c: String). (formerly within 1h Q{ input.crate: c } && formerly within 1h B{} && M{ input.crate: c })";
    let trace = [beep(1), weigh(10, "a", 1), a_move(11, "b"), a_move(12, "a")];
    assert_eq!(moves(leaf, &trace), "DA");
    let leaf = "exists (c: String). (formerly within 1h Q{ input.crate: c } && 2 <= (count for (t: Timepoint). where formerly within 1h (Q{ input.crate: c } && tp(t))))";
    let trace = [
        weigh(1, "a", 1),
        weigh(2, "b", 1),
        a_move(3, "a"),
        weigh(4, "b", 1),
        a_move(5, "a"),
    ];
    assert_eq!(moves(leaf, &trace), "DA");
}

#[test]
fn decimals_compare_by_value() {
    let leaf = "formerly within 1h Q{ input.tare: decimal(\"1.5\") }";
    assert_eq!(moves(leaf, &[weigh(1, "a", 1), a_move(2, "a")]), "A");
}

#[test]
fn time_stamps_may_step_back() {
    let trace = [weigh(100, "a", 1), a_move(50, "a"), a_move(120, "a")];
    assert_eq!(moves("formerly within 1h Q{}", &trace), "DA");
}

#[test]
fn an_erring_forbid_is_ignored_and_reported() {
    let service = service(DEPOT, Some(UNPINNED));
    let text = "permit(principal, action, resource);
        forbid(principal is Depot::Clerk, action == Depot::Action::\"move\", resource) when { principal.rank < 3 };";
    let policy = policy(text, &service);
    let ranked = |time, rank: i64| {
        with_entity(
            a_move(time, "a"),
            clerk("ann"),
            record(&[("rank", rank.into())]),
            &[],
        )
    };
    let trace = [a_move(1, "a"), ranked(2, 1), ranked(3, 5)];
    assert_eq!(verdicts(policy.clone(), &trace), "ADA");
    let decisions = dogwood_compiler::monitor::replay(policy, &trace);
    let (_, _, first) = &decisions[0];
    assert_eq!(first.rules, [0]);
    assert_eq!(first.errors[0].rule, Some(1));
    assert_eq!(
        first.errors[0].error.to_string(),
        "Depot::Clerk::\"ann\" has no attribute `rank`"
    );
    assert_eq!(decisions[1].2.rules, [1]);
}

#[test]
fn unless_temporal() {
    let service = service(DEPOT, Some(UNPINNED));
    let text = long(
        "permit(principal, action, resource);
        forbid(principal, action == Depot::Action::\"move\", resource)
        unless temporal { formerly within 1h Q{ input.crate: context.input.crate } };",
    );
    let trace = [a_move(10, "a"), weigh(20, "a", 1), a_move(30, "a")];
    assert_eq!(verdicts(policy(&text, &service), &trace), "DAA");
}

#[test]
fn no_scope_is_a_denial_with_an_error() {
    let service = service(DEPOT, Some(UNPINNED));
    let policy = policy("permit(principal, action, resource);", &service);
    let mut event = a_move(1, "a");
    event.request.as_mut().unwrap().principal = None;
    let decisions = dogwood_compiler::monitor::replay(policy, &[event]);
    assert_eq!(letter(&decisions[0].2), 'D');
    assert_eq!(decisions[0].2.errors[0].rule, None);
    assert_eq!(
        decisions[0].2.errors[0].error.to_string(),
        "the request names no principal"
    );
}

#[test]
fn entity_types_matter() {
    let drone = EntityUid::new("Depot::Drone", "x1");
    let crate_a: &[(&str, Value)] = &[("crate", "a".into())];
    let trace = [
        by(drone.clone(), 1, "move", "request", crate_a),
        by(clerk("x1"), 2, "move", "request", crate_a),
        by(drone, 3, "move", "request", crate_a),
    ];
    let leaf = "formerly within 1h M{ callerPrincipal: Depot::Clerk::\"x1\" }";
    assert_eq!(moves(leaf, &trace), "DAA");
}

#[test]
fn naming_an_aggregate() {
    let leaf = "exists (n: Long). ((count for (t: Timepoint). where formerly within 1h (Q{} && tp(t))) == n && n < 2)";
    let trace = [
        a_move(1, "a"),
        weigh(2, "a", 1),
        weigh(3, "a", 1),
        a_move(4, "a"),
    ];
    assert_eq!(moves(leaf, &trace), "AD");
}

#[test]
fn universal_property() {
    let leaf = "!(formerly within 1h (Q{} && !(Q{ input.kg: 1 })))";
    let trace = [
        weigh(1, "a", 1),
        a_move(2, "a"),
        weigh(3, "a", 2),
        a_move(4, "a"),
    ];
    assert_eq!(moves(leaf, &trace), "AD");
}

#[test]
fn an_inner_name_is_another_variable() {
    let leaf = "exists (c: String). (M{ input.crate: c } && exists (c: String). (formerly within 1h Q{ input.crate: c }))";
    assert_eq!(moves(leaf, &[weigh(1, "q", 1), a_move(2, "a")]), "A");
}

#[test]
fn binding_through_a_field() {
    let leaf = "exists (p: Depot::Clerk). (M{ callerPrincipal: p } && formerly within 1h Q{ callerPrincipal: p })";
    let input: &[(&str, Value)] = &[("crate", "a".into()), ("kg", 1.into())];
    let trace = [
        by(clerk("bob"), 1, "weigh", "request", input),
        a_move(2, "a"),
        weigh(3, "a", 1),
        a_move(4, "a"),
    ];
    assert_eq!(moves(leaf, &trace), "DA");
}

#[test]
fn equality_binds_inside_an_aggregate() {
    let leaf = "(sum k for (k: Long), (t: Timepoint). where (k == context.input.kg && tp(t))) == 4";
    assert_eq!(
        moves(leaf, &[a_move_of(1, "a", 4), a_move_of(2, "a", 5)]),
        "AD"
    );
}

#[test]
fn a_group_covers_its_actions() {
    let service = service(DEPOT, Some(UNPINNED));
    let text = long(
        "permit(principal, action in Depot::Action::\"Any\", resource) when temporal { formerly within 1h B{} };",
    );
    let trace = [a_move(1, "a"), beep(2), a_move(3, "a"), weigh(4, "a", 1)];
    assert_eq!(verdicts(policy(&text, &service), &trace), "DDAA");
}

#[test]
fn entity_attributes_are_those_of_the_decision() {
    let leaf = "formerly within 1h M{ input.kg: principal.rank }";
    let service = service(DEPOT, Some(UNPINNED));
    let text = long(&format!(
        "permit(principal is Depot::Clerk, action == Depot::Action::\"move\", resource) when temporal {{ {leaf} }};"
    ));
    let ranked =
        |event, rank: i64| with_entity(event, clerk("ann"), record(&[("rank", rank.into())]), &[]);
    let trace = [
        ranked(a_move_of(1, "a", 7), 3),
        ranked(a_move_of(2, "a", 8), 7),
        a_move_of(3, "a", 7),
    ];
    assert_eq!(verdicts(policy(&text, &service), &trace), "DAD");
}
