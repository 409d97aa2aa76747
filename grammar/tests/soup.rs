//! No text, however broken, makes a parser panic; its errors lie inside the text, in order.

use dogwood_grammar::{
    SyntaxError, parse_action_schema, parse_condition, parse_event_schema, parse_expr, parse_policy,
};
use proptest::prelude::*;
use proptest::sample::select;

const WORDS: &[&str] = &[
    "permit",
    "forbid",
    "when",
    "unless",
    "guardrails",
    "temporal",
    "def",
    "cedar",
    "if",
    "then",
    "else",
    "has",
    "like",
    "is",
    "in",
    "formerly",
    "previous",
    "since",
    "within",
    "exists",
    "for",
    "where",
    "count",
    "sum",
    "tp",
    "let",
    "true",
    "principal",
    "action",
    "resource",
    "context",
    "namespace",
    "entity",
    "type",
    "tags",
    "enum",
    "appliesTo",
    "attributes",
    "Set",
    "max_window",
    "decision",
    "event",
    "pin",
    "x",
    "A::\"a\"",
    "A::\"a\"::r{}",
    "1h",
    "5",
    "\"s\"",
    "\"a\\*\"",
    "?x",
    "$x",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    ",",
    ";",
    ":",
    "::",
    ".",
    "...",
    "@",
    "?",
    "=",
    "==",
    "!=",
    "<=",
    "&&",
    "||",
    "!",
    "+",
    "-",
    "*",
    "/",
    "%",
    "\"",
    "#",
    "é",
    "\n",
    "// c\n",
    "temporal {",
    "when {",
    "};",
    "permit(principal, action, resource)",
    "(x: T).",
    "within 1h",
    "event <A>::r {",
    "entity A",
    "9223372036854775808",
    "\\q",
];

fn check(source: &str, errors: &[SyntaxError]) -> Result<(), TestCaseError> {
    let mut before = 0;
    for error in errors {
        let found = error.diagnostic(source);
        prop_assert!(error.span.start <= error.span.end, "{source:?} {error:?}");
        prop_assert!(
            source.get(error.span.range()).is_some(),
            "{source:?} {error:?}"
        );
        prop_assert!(before <= error.span.start, "{source:?} {errors:?}");
        before = error.span.start;
        let plain = !found.message.ends_with('.') && !found.message.starts_with(char::is_uppercase);
        prop_assert!(plain, "{}", found.message);
        for edit in found.fix.iter().flat_map(|fix| &fix.edits) {
            prop_assert!(
                source.get(edit.span.range()).is_some(),
                "{source:?} {error:?}"
            );
        }
    }
    Ok(())
}

fn check_all(source: &str) -> Result<(), TestCaseError> {
    check(source, &parse_policy(source).errors)?;
    check(source, &parse_expr(source).errors)?;
    check(source, &parse_condition(source).errors)?;
    check(source, &parse_action_schema(source).errors)?;
    check(source, &parse_event_schema(source).errors)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn token_soup(words in prop::collection::vec(select(WORDS), 0..40)) {
        check_all(&words.join(" "))?;
        check_all(&words.concat())?;
    }

    #[test]
    fn any_text(source in "(?s).{0,60}") {
        check_all(&source)?;
    }

    /// Damage to a good rule never silences the rule behind it.
    #[test]
    fn damage(at in 0usize..150, remove in 0usize..8, insert in prop::collection::vec(select(WORDS), 0..3)) {
        const GOOD: &str = "permit(principal, action == A::\"x\", resource) when { context.a == [1, {b: 2}] } unless temporal { formerly within 1h (A::\"x\"::r{ a: 1 } && tp(t)) };";
        let from = at.min(GOOD.len());
        let to = (from + remove).min(GOOD.len());
        let inserted = insert.join(" ");
        let source = format!("{} {inserted} {}\nforbid(principal, action, resource) when {{ 1 / 2 }};", &GOOD[..from], &GOOD[to..]);
        let errors = parse_policy(&source).errors;
        check(&source, &errors)?;
        // A quote opened in the damaged line and closed in the next takes the next with it.
        if source.lines().next().is_some_and(|line| line.matches('"').count() % 2 == 0) && !inserted.contains("//") {
            let slash = errors.iter().any(|error| error.span.text(&source) == "/" && error.span.end as usize + 10 > source.len() - 6);
            prop_assert!(slash, "{source} {errors:?}");
        }
    }
}

/// A bracket that closes nothing, left between two rules, is an error of its own.
#[test]
fn a_stray_bracket_between_rules_hides_no_error() {
    for stray in [")", "]", "}", ") )", "} )"] {
        let source = format!(
            "permit(principal, action, resource); {stray}\nforbid(principal, action, resource) when {{ 1 / 2 }};"
        );
        let errors = parse_policy(&source).errors;
        let told = |text: &str| errors.iter().any(|error| error.span.text(&source) == text);
        assert!(told("/"), "{source} {errors:?}");
        assert!(errors.len() >= 2, "{source} {errors:?}");
    }
}
