//! Input that nests a hundred thousand levels deep is refused at once, with one error and on a small
//! stack; long flat input is read.

#![allow(clippy::unwrap_used)]

use dogwood_grammar::{
    SyntaxErrorKind, parse_action_schema, parse_condition, parse_event_schema, parse_expr,
    parse_policy,
};

const DEEP: usize = 100_000;

/// Runs on the stack that threads usually have.
fn small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(2 * 1024 * 1024)
        .spawn(test);
    if let Err(panic) = thread.unwrap().join() {
        std::panic::resume_unwind(panic);
    }
}

fn nested(open: &str, middle: &str, close: &str) -> String {
    format!("{}{middle}{}", open.repeat(DEEP), close.repeat(DEEP))
}

#[track_caller]
fn refused(what: &str, errors: &[dogwood_grammar::SyntaxError]) {
    let kinds: Vec<_> = errors.iter().take(5).map(|error| &error.kind).collect();
    assert_eq!(
        kinds,
        [&SyntaxErrorKind::TooDeep],
        "{what} {:?}",
        &errors[..errors.len().min(3)]
    );
}

#[test]
fn expressions() {
    small_stack(|| {
        for (open, middle, close) in [
            ("(", "1", ")"),
            ("(", "", ""),
            ("[", "1", "]"),
            ("[", "", ""),
            ("{a: ", "1", "}"),
            ("{a: ", "", ""),
            ("f(", "1", ")"),
            ("f(", "", ""),
            ("if true then 1 else ", "1", ""),
            ("if ", "true", " then 1 else 2"),
            ("if true then ", "1", " else 2"),
            ("if ", "", ""),
            ("!", "true", ""),
            ("-", "principal", ""),
            ("!(", "true", ")"),
            ("context", "", ".a"),
            ("context", "", ".m(1)"),
            ("context", "", "[\"a\"]"),
            ("1", "", " == 1"),
            ("context[", "1", "]"),
            ("(1 + ", "1", ")"),
        ] {
            let source = if open == "context" || open == "1" {
                format!("{open}{}", close.repeat(DEEP))
            } else {
                nested(open, middle, close)
            };
            refused(&format!("{open}…{close}"), &parse_expr(&source).errors);
        }
    });
}

#[test]
fn conditions() {
    small_stack(|| {
        for (open, middle, close) in [
            ("(", "tp(t)", ")"),
            ("(", "", ""),
            ("!", "tp(t)", ""),
            ("!(", "tp(t)", ")"),
            ("exists (t: T). ", "tp(t)", ""),
            ("exists (t: T). (", "tp(t)", ")"),
            ("formerly within 1h (", "tp(t)", ")"),
            ("tp(t) since within 1h (", "tp(t)", ")"),
            ("count for (t: T). where ", "tp(t)", ""),
            ("(count for (t: T). where ", "tp(t)", ") == 1"),
            ("f(", "x", ")"),
            ("f([", "x", "])"),
            ("f(1 + ", "1", ")"),
            ("A::\"a\"::r{ x: f(", "1", ") }"),
        ] {
            refused(
                &format!("{open}…{close}"),
                &parse_condition(&nested(open, middle, close)).errors,
            );
        }
    });
}

/// Each of these needs parentheses, which is said once.
#[test]
fn steps_without_parentheses() {
    small_stack(|| {
        let errors = parse_condition(&nested("formerly within 1h ", "tp(t)", "")).errors;
        let deep = errors
            .iter()
            .filter(|error| error.kind == SyntaxErrorKind::TooDeep)
            .count();
        assert_eq!((deep, errors.len()), (1, 2));
    });
}

#[test]
fn schemas() {
    small_stack(|| {
        for (open, middle, close) in [
            ("Set<", "Long", ">"),
            ("{ a: ", "Long", " }"),
            ("{ a: Set<", "Long", "> }"),
            ("{ a: ", "", ""),
        ] {
            let source = format!("type T = {};", nested(open, middle, close));
            refused(open, &parse_action_schema(&source).errors);
        }
        for (middle, close) in [("Long", " }"), ("", "")] {
            let source = format!("event <A>::r {{ a: {} }}", nested("{ a: ", middle, close));
            refused(close, &parse_event_schema(&source).errors);
        }
    });
}

#[test]
fn brackets_that_never_close_do_not_hide_the_next_rule() {
    small_stack(|| {
        for open in ["(", "[", "{", "f(", "!", "if "] {
            let source = format!(
                "permit(principal) when {{ {} }};\nforbid(principal) when {{ 1 / 2 }};",
                open.repeat(DEEP)
            );
            let errors = parse_policy(&source).errors;
            let last = errors.last().map(|error| &error.kind);
            assert_eq!(
                last,
                Some(&SyntaxErrorKind::UnsupportedOperator { operator: '/' }),
                "{open}"
            );
        }
    });
}

#[test]
fn long_chains_are_no_nesting() {
    small_stack(|| {
        for operator in [" || ", " && ", " + ", " * "] {
            let source = vec!["1"; 50_000].join(operator);
            assert_eq!(parse_expr(&source).errors, [], "{operator}");
        }
        let ands = vec!["tp(t)"; 50_000].join(" && ");
        assert_eq!(parse_condition(&ands).errors, []);
        let sums = format!("x == {}", vec!["1"; 50_000].join(" + "));
        assert_eq!(parse_condition(&sums).errors, []);
        let list = format!("[{}]", vec!["if true then 1 else 2"; 50_000].join(", "));
        assert_eq!(parse_expr(&list).errors, []);
        let rules = "permit(principal, action, resource) when { !(context.a) };\n".repeat(2_000);
        assert_eq!(parse_policy(&rules).errors, []);
    });
}

#[test]
fn the_limit_is_what_it_says() {
    let levels = usize::from(dogwood_grammar::ast::MAX_DEPTH);
    let fits = format!("{}true", "!".repeat(levels - 1));
    assert_eq!(parse_expr(&fits).errors, []);
    let deeper = format!("{}true", "!".repeat(levels));
    refused("one too many", &parse_expr(&deeper).errors);
    let parens = format!("{}true{}", "(".repeat(500), ")".repeat(500));
    assert_eq!(parse_expr(&parens).errors, []);
}
