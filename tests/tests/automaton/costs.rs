//! What a policy says its cells cost, and why where it is more than a lookup.

use super::equivalence::cases;
use super::formulas::{Writer, services};
use super::stage::*;
use dogwood_compiler::monitor::{CellKind, Cost, Policy};
use dogwood_compiler::value::Value;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use std::sync::Arc;

/// Kind, update, lookup and reason of each cell of a leaf.
fn costs(leaf: &str) -> Vec<(CellKind, Cost, Cost, Option<&'static str>)> {
    let service = service(DEPOT, Some(UNPINNED));
    let cells = policy(&move_rule(leaf), &service).cells();
    let cost = |cell: &dogwood_compiler::monitor::CellSummary| {
        (cell.kind, cell.update, cell.lookup, cell.why)
    };
    cells.iter().map(cost).collect()
}

const FREE: (Cost, Cost, Option<&str>) = (Cost::Constant, Cost::Constant, None);

#[test]
fn most_cells_cost_a_lookup() {
    let of = |kind| (kind, FREE.0, FREE.1, FREE.2);
    let cases = [
        (
            "formerly within 20s Q{ input.crate: context.input.crate }",
            vec![of(CellKind::Latest)],
        ),
        (
            "!Q{ input.crate: context.input.crate } since within 20s M{ input.crate: \"c\" }",
            vec![of(CellKind::Anchor)],
        ),
        ("M{} since within 20s Q{}", vec![of(CellKind::Anchor)]),
        (
            "(count for (t: Timepoint). where formerly within 20s (M{} && tp(t))) <= 2",
            vec![of(CellKind::Window)],
        ),
        // The weighing is looked up by the crate that is moved.
        (
            "formerly within 20s (M{ input.crate: context.input.crate } && formerly within 20s Q{ input.crate: context.input.crate })",
            vec![of(CellKind::Latest), of(CellKind::Relation)],
        ),
        // What ends an anchor is told apart by what the anchor has.
        (
            "formerly within 20s (B{} && (!Q{ input.crate: \"c\" } since within 20s M{}))",
            vec![of(CellKind::Anchor), of(CellKind::Relation)],
        ),
        // What holds at every event is looked up where it last began or ended.
        (
            "formerly within 20s (formerly within 9s Q{ input.crate: context.input.crate })",
            vec![of(CellKind::Nested)],
        ),
        // An end that needs what another value did, and three deep.
        (
            "!(M{ callerPrincipal: principal } && formerly within 9s Q{ input.crate: context.input.crate }) since within 20s B{}",
            vec![of(CellKind::Nested)],
        ),
        // Each of two keys is looked up by itself.
        (
            "formerly within 20s (M{ callerPrincipal: principal } && formerly within 20s Q{ input.crate: context.input.crate })",
            vec![of(CellKind::Nested)],
        ),
        (
            "(formerly within 2s Q{ input.crate: context.input.crate }) since within 20s M{ input.crate: context.input.crate }",
            vec![of(CellKind::Latest), of(CellKind::Anchor)],
        ),
        // Rows are found in the order of what is compared; of what must differ, the second will do.
        (
            "exists (k: Long). (formerly within 20s Q{ input.kg: k } && k > context.input.kg)",
            vec![of(CellKind::Latest)],
        ),
        (
            "formerly within 20s (exists (k: Long). (Q{ input.kg: k } && k > context.input.kg))",
            vec![of(CellKind::Latest)],
        ),
        (
            "exists (c: String). (formerly within 20s Q{ input.crate: c } && c != context.input.crate)",
            vec![of(CellKind::Latest)],
        ),
        // Windows over one body share a cell.
        (
            "(count for (t: Timepoint). where formerly within 20s (M{} && tp(t))) <= 2 && (count for (t: Timepoint). where formerly within 5s (M{} && tp(t))) <= 1",
            vec![of(CellKind::Window)],
        ),
        (
            "(count for (c: String). where (formerly within 20s Q{ input.crate: c } && formerly within 9s M{ input.crate: c })) <= 2",
            vec![
                of(CellKind::Latest),
                of(CellKind::Latest),
                of(CellKind::Pair),
            ],
        ),
        (
            "(sum k for (k: Long), (c: String). where (formerly within 20s Q{ input.crate: c, input.kg: k } && formerly within 9s M{ input.crate: c })) <= 2",
            vec![
                of(CellKind::Latest),
                of(CellKind::Latest),
                (
                    CellKind::Pair,
                    Cost::Rows,
                    Cost::Constant,
                    Some("an event changes every pair that has its values"),
                ),
            ],
        ),
        (
            "exists (c: String). (formerly within 20s Q{ input.crate: c } && !formerly within 9s M{ input.crate: c })",
            vec![
                of(CellKind::Latest),
                of(CellKind::Latest),
                of(CellKind::Pair),
            ],
        ),
        // The first common row answers.
        (
            "exists (c: String). (formerly within 20s Q{ input.crate: c } && formerly within 9s M{ input.crate: c })",
            vec![
                of(CellKind::Latest),
                of(CellKind::Latest),
                of(CellKind::Pair),
            ],
        ),
    ];
    for (leaf, expected) in cases {
        assert_eq!(costs(leaf), expected, "{leaf}");
    }
}

#[test]
fn what_costs_more_says_why() {
    let why = |leaf: &str| -> Vec<&'static str> {
        let costs = costs(leaf);
        let more = costs
            .iter()
            .filter(|(_, update, lookup, _)| (*update, *lookup) != (FREE.0, FREE.1));
        more.map(|(.., why)| why.expect("a reason")).collect()
    };
    assert_eq!(
        why("formerly within 20s (Q{} && !Q{ input.crate: context.input.crate })"),
        ["its rows wait for what the request says, and each of the same key is asked"]
    );
    assert_eq!(
        why(
            "exists (c: String). exists (k: Long). (formerly within 20s Q{ input.crate: c, input.kg: k } && k > 3 && c != context.input.crate)"
        ),
        ["its rows are tried one by one against the rest of the condition"]
    );
    assert_eq!(
        why(
            "(count for (c: String). where (formerly within 20s Q{ input.crate: c } && c != context.input.crate)) <= 2"
        ),
        ["an aggregate goes through its rows"]
    );
    assert_eq!(
        why(
            "exists (c: String). (formerly within 20s (M{} && formerly within 20s Q{ input.crate: c }) && formerly within 5s Q{ input.crate: c })"
        ),
        [
            "the events in its windows are gone through, once for each value that a variable can have"
        ]
    );
    assert_eq!(
        why(
            "formerly within 20s (M{} && !formerly within 20s Q{ input.crate: context.input.crate })"
        ),
        ["the events that have its values are gone through until one fits"]
    );
    assert_eq!(
        why("(!(B{} since within 2s Q{})) since within 20s M{ input.crate: context.input.crate }"),
        ["the events that have its values are gone through until one fits"]
    );
    // With a variable of the leaf around it, no key of the request finds its events.
    assert_eq!(
        why(
            "exists (c: String). (formerly within 9s Q{ input.crate: c } && ((!(B{} since within 2s Q{ input.crate: c })) since within 20s M{ input.crate: c }))"
        ),
        [
            "its rows are tried one by one against the rest of the condition",
            "the events in its windows are gone through, once for each value that a variable can have"
        ]
    );
    assert_eq!(
        why(
            "exists (c: String). (formerly within 20s Q{ input.crate: c, callerPrincipal: principal } && formerly within 9s M{ input.crate: c })"
        ),
        ["an event changes every pair that has its values"]
    );
}

/// What an operator costs that neither keeps few rows nor goes through what happened.
const WEAKENED: &str = "each event that can end an anchor asks every anchor";
const TAKEN_OVER: &str = "an event takes over rows of the operators inside it";

fn reasons(policy: &Policy) -> Vec<&'static str> {
    policy.cells().iter().filter_map(|cell| cell.why).collect()
}

/// Where each variable has a value, what happened can be gone through in place of rows.
#[test]
fn no_checked_rule_takes_over_rows_or_asks_every_anchor() {
    let services = services();
    let mut runner = TestRunner::new(cases(400));
    let input = (0usize..4, prop::collection::vec(any::<u8>(), 0..160));
    let looked_at = Cell::new(0);
    let outcome = runner.run(&input, |(at, choices)| {
        let mut writer = Writer::new(&choices);
        let leaf = match choices.first().map_or(0, |choice| choice % 4) {
            0 => writer.nested(),
            1 => writer.sharing(),
            _ => writer.leaf(),
        };
        let text = format!("permit(principal, action, resource) when temporal {{ {leaf} }};");
        if let Ok(rules) = try_rules(&text, &services[at]) {
            let policy = Arc::new(Policy::new(&rules, &services[at]));
            for why in reasons(&policy) {
                looked_at.set(looked_at.get() + 1);
                prop_assert!(why != WEAKENED && why != TAKEN_OVER, "{why}: {leaf}");
            }
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    assert!(looked_at.get() > 50, "{} reasons", looked_at.get());
}

/// With a variable of the leaf around it, events are looked up by what they say: of the values of one, 64 at a time.
#[test]
fn neither_does_one_with_a_matcher_of_many_values() {
    let fields = || (0..130).map(|field| format!("f{field}"));
    let declared: String = fields().map(|name| format!("{name}: Long, ")).collect();
    let actions = format!(
        "namespace Depot {{
           entity Clerk; entity Bay;
           type In = {{ {declared} crate: String }};
           action \"move\", \"weigh\" appliesTo {{
             principal: [Clerk], resource: [Bay], context: {{ input: In }} }};
         }}"
    );
    let service = service(
        &actions,
        Some("decision event <A>::request { ...inputs(A) }"),
    );
    let weighed = |fields: &dyn Fn(usize) -> String| {
        let fields = (0..130).map(|field| format!("input.f{field}: {}, ", fields(field)));
        format!("Q{{ {} input.crate: c }}", fields.collect::<String>())
    };
    let asked = weighed(&|field| format!("context.input.f{field}"));
    // The weighing looked for has all the values of the request: one that differs in any is none.
    let leaves = [
        format!(
            "exists (c: String). (formerly within 9s Q{{ input.crate: c }}
               && (!(M{{ input.crate: c }} && formerly within 9s {asked}) since within 20s Q{{ input.crate: c }}))"
        ),
        format!(
            "exists (c: String). (formerly within 9s Q{{ input.crate: c }}
               && formerly within 20s (M{{ input.crate: c }} && formerly within 9s {asked}))"
        ),
    ];
    let event = |time, action, changed: Option<usize>| {
        let mut names: Vec<String> = fields().collect();
        names.push("crate".into());
        let values = names.iter().enumerate().map(|(field, name)| {
            let value = match name.as_str() {
                "crate" => Value::str("a"),
                _ => Value::Int(i64::from(changed == Some(field))),
            };
            (name.as_str(), value)
        });
        event(time, action, "request", &values.collect::<Vec<_>>())
    };
    for (leaf, expected) in leaves.iter().zip([["DDA", "DDD"], ["DDD", "DDA"]]) {
        let policy = policy(&move_rule(leaf), &service);
        for why in reasons(&policy) {
            assert!(why != WEAKENED && why != TAKEN_OVER, "{why}: {leaf}");
        }
        for changed in [0, 63, 64, 127, 128, 129] {
            let verdicts_of = |changed| {
                let events = [
                    event(1, "weigh", changed),
                    event(2, "weigh", changed),
                    event(3, "move", None),
                ];
                verdicts(policy.clone(), &events)
            };
            let found = [verdicts_of(Some(changed)), verdicts_of(None)];
            assert_eq!(found, expected, "{changed} {leaf}");
        }
    }
}

/// A variable that comes by no value.
#[test]
fn what_no_check_has_seen_can_ask_every_anchor() {
    let service = service(DEPOT, Some(UNPINNED));
    let leaf = "(exists (x: Long). x > 3) since within 20s M{}";
    assert_eq!(reasons(&unchecked(&move_rule(leaf), &service)), [WEAKENED]);
}
