//! What a policy says its cells cost, and why where it is more than a lookup.

use super::stage::*;
use dogwood_compiler::monitor::{CellKind, Cost};

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
