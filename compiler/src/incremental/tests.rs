//! Whatever was edited before: the messages are those of a check of the whole text.

use super::*;
use crate::schema::box_service;
use proptest::prelude::*;
use std::sync::OnceLock;

fn boxed() -> Arc<Service> {
    static BOX: OnceLock<Arc<Service>> = OnceLock::new();
    Arc::clone(BOX.get_or_init(|| Arc::new(box_service())))
}

fn session() -> Session {
    Session::new(boxed(), None, Options::default())
}

fn source(text: &str) -> Source {
    Source {
        name: "policy.dw".to_owned(),
        text: text.to_owned(),
    }
}

fn whole(text: &str) -> Vec<Diagnostic> {
    compile::check(&[source(text)], None, &boxed(), &Options::default())
        .map_or_else(|all| all, |checked| checked.diagnostics)
}

/// The text after each edit, checked both ways.
fn same_after(texts: &[String]) {
    let mut session = session();
    for text in texts {
        assert_eq!(session.check(&source(text)), whole(text), "{text}");
    }
}

const RULES: &[&str] = &[
    "@id(\"a\") permit (principal, action == Box::Action::\"fs:read\", resource);",
    "@id(\"a\") @allow(\"unbounded-read\")\npermit (principal, action == Box::Action::\"fs:read\", resource);",
    "permit (principal, action == Box::Action::\"fs:read\", resource) when { context.input.pth == \"é\" };",
    "forbid (principal, action == Box::Action::\"mcp:call\", resource) when temporal { count_within(1h, Box::Action::\"mcp:call\"::request{}) > 3 };",
    "forbid (principal, action, resource) when temporal { mine(1h) };",
    "def temporal mine(?w) { formerly within ?w Box::Action::\"fs:read\"::response{} };",
    "def temporal mine(?w, ?x) { formerly within ?w ?x && ?y };",
    "def temporal count_within(?w, ?x) { formerly within ?w ?x };",
    "permit (principal, action, resource) when { mine() };",
    "def cedar mine() { true };",
    "permit (principal, action, resource",
    "permit (principal, action, resource) when { context.input.path == };",
    "@allow(\"no-such\") forbid (principal, action == Box::Action::\"net:connect\", resource) when { false };",
    "forbid (principal, action == Box::Action::\"fs:raed\", resource) unless { \"open };",
    ";",
    "}",
    "// a comment",
    "broken broken;",
    "\u{feff}",
    "permit (principal, action, resource) when { 1 == \"a\" && x }",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn statements_come_and_go(steps in prop::collection::vec((0usize..8, 0usize..3, 0..RULES.len()), 1..12)) {
        let mut lines: Vec<&str> = Vec::new();
        let mut texts = Vec::new();
        for (at, remove, rule) in steps {
            let at = at.min(lines.len());
            let end = (at + remove).min(lines.len());
            lines.splice(at..end, [RULES[rule]]);
            texts.push(lines.join("\n"));
        }
        same_after(&texts);
    }

    #[test]
    fn characters_come_and_go(
        start in prop::collection::vec(0..RULES.len(), 1..6),
        steps in prop::collection::vec((0usize..400, 0usize..3, "[a-z;{}()\"@?.:=!é \n-]{0,2}"), 1..12),
    ) {
        let mut text = start.iter().map(|at| RULES[*at]).collect::<Vec<_>>().join("\n\n");
        let mut texts = vec![text.clone()];
        for (at, remove, new) in steps {
            let from = text.floor_char_boundary(at.min(text.len()));
            let to = text.ceil_char_boundary((from + remove).min(text.len()));
            text.replace_range(from..to, &new);
            texts.push(text.clone());
        }
        same_after(&texts);
    }
}

#[test]
fn a_mark_at_the_start_moves_nothing() {
    same_after(&[
        "\u{feff}permit (principal, action == Box::Action::\"fs:raed\", resource);".to_owned(),
        "permit (principal, action == Box::Action::\"fs:raed\", resource);".to_owned(),
    ]);
}

#[test]
fn a_macro_that_changes_changes_its_callers() {
    let rule = RULES[4];
    same_after(&[
        rule.to_owned(),
        format!("{rule}\n{}", RULES[5]),
        format!("{}\n{rule}\n{}", RULES[5], RULES[6]),
        format!("{rule}\n{}", RULES[6]),
    ]);
}
