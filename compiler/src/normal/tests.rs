//! `PROPTEST_CASES` says how many random rules are tried.

mod spellings;

use super::*;
use crate::check::check_rule;
use crate::event::{Event, RequestPart};
use crate::explain::sentences;
use crate::grammar::ast::Item;
use crate::grammar::parse_policy;
use crate::macros::{Library, expand_rule};
use crate::monitor::{Policy, replay};
use crate::schema::box_service;
use crate::value::{EntityUid, Record, Value};
use dogwood_grammar::diagnostic::Severity;
use proptest::prelude::*;
use spellings::{Choices, VALUES, Written};
use std::sync::Arc;

fn rule(text: &str) -> Rule {
    let parsed = parse_policy(text);
    assert_eq!(parsed.errors, [], "{text}");
    match parsed.tree.items.into_iter().next() {
        Some(Item::Rule(rule)) => expand_rule(&rule, &Library::builtin()).rule,
        other => panic!("no rule: {other:?}"),
    }
}

fn of(source: &str) -> String {
    text(&rule(source))
}

fn said(source: &str) -> String {
    sentences(&rule(source), &box_service()).join(" ")
}

#[test]
fn spelling_goes() {
    let one = r#"
        @id("a") // comment
        forbid (principal, action == B::Action::"x", resource)
        unless { !(context.a == 1 && (context["b"] == 2 && context has c)) }
        unless temporal { exists (u: String). formerly within 15m B::Action::"y"::k{ b: 1, a: u } };"#;
    let other = r#"
        forbid (action == B::Action::"x", principal, resource)
        when { context.a == 1 && context.b == 2 && context has "c" }
        when temporal { !(exists (v: String). formerly within 900s B::Action::"y"::k{ a: v }{ b: 1 }) };"#;
    assert_eq!(of(one), of(other));
}

#[test]
fn each_kind_of_spelling() {
    let guards = [
        ("a == 1 && b == 2", "b == 2 && a == 1"),
        ("a != 1", "!(a == 1)"),
        ("a > b", "b < a"),
        ("a > 3", "a >= 4"),
        ("a < 10", "!(a >= 10)"),
        ("a == 1 && b == 2", "if a == 1 then b == 2 else false"),
        ("a == 1 || b == 2", "if a == 1 then true else b == 2"),
        (
            "a == 1 && b == 2 && c == 3",
            "if a == 1 then (if b == 2 then c == 3 else false) else false",
        ),
        (
            "if a == 1 then b == 2 else c == 3",
            "if !(a == 1) then c == 3 else b == 2",
        ),
        ("!(a == 1 && b == 2)", "a != 1 || b != 2"),
        ("a == 1 && b == 2", "((a == 1) && !(!((b == 2))))"),
        ("flag", "flag == true"),
        ("!flag", "flag == false"),
        (r#"a == "x" || a == "y""#, r#"["y", "x", "x"].contains(a)"#),
        (r#"a != "x" && a != "y""#, r#"!["x", "y"].contains(a)"#),
        (r#"["x"].contains(a)"#, r#""x" == a"#),
        ("a == 1 && a == 1", "a == 1 && true"),
        ("false", "a == 1 && false"),
        (r#"a == "x""#, r#"a like "x""#),
        ("a == {x: 1, y: 2}", "a == {y: 2, x: 1}"),
    ];
    let full = |guard: &str| {
        let mut guard = guard.to_owned();
        for field in ["a", "b", "c", "flag"] {
            for before in ["", "(", "!"] {
                for after in [" ", ")", ""] {
                    let (from, to) = (
                        format!(" {before}{field}{after} "),
                        format!(" {before}context.{field}{after} "),
                    );
                    guard = format!(" {guard} ").replace(&from, &to);
                }
            }
            guard = guard
                .replace(&format!("({field})"), &format!("(context.{field})"))
                .replace(&format!("({field} "), &format!("(context.{field} "));
        }
        format!("forbid (principal, action, resource) when {{ {guard} }};")
    };
    for (one, other) in guards {
        assert_eq!(of(&full(one)), of(&full(other)), "{one} | {other}");
    }
    let clauses = [
        (
            "when { context.a == 1 && context.b == 2 }",
            "when { context.b == 2 } when { context.a == 1 }",
        ),
        ("unless { context.a == 1 }", "when { context.a != 1 }"),
        (
            r#"when temporal { formerly within 1h B::Action::"y"::k{ a: 1 } && !(previous within 5s B::Action::"y"::k{}) }"#,
            r#"unless temporal { previous within 5s B::Action::"y"::k{} } when temporal { formerly within 60m B::Action::"y"::k{ a: 1 } }"#,
        ),
        (
            r#"when temporal { exists (p: String). exists (q: Long). (B::Action::"y"::k{ a: p, b: q } && q > 3) }"#,
            r#"when temporal { exists (n: Long). (exists (m: String). (4 <= n && B::Action::"y"::k{ b: n, a: m })) }"#,
        ),
        (
            r#"when temporal { !(exists (n: Long). (B::Action::"y"::k{ a: n } && !(n == 3))) }"#,
            r#"unless temporal { exists (k: Long). (3 != k && B::Action::"y"::k{ a: k }) }"#,
        ),
        (
            r#"when { temporal { formerly within 1d B::Action::"y"::k{ b: 2, a: 1 } } && context.a == 1 }"#,
            r#"when { context.a == 1 } when temporal { formerly within 24h B::Action::"y"::k{ a: 1 }{ b: 2 } }"#,
        ),
        (
            r#"when temporal { (count for (t: Timepoint), (c: String). where formerly within 1h (B::Action::"y"::k{ a: c } && tp(t))) > 2 }"#,
            r#"when temporal { 3 <= (count for (s: String), (u: Timepoint). where formerly within 60m (tp(u) && B::Action::"y"::k{ a: s })) }"#,
        ),
    ];
    for (one, other) in clauses {
        let full = |clauses: &str| format!("forbid (principal, action, resource) {clauses};");
        assert_eq!(of(&full(one)), of(&full(other)), "{one} | {other}");
    }
    assert_eq!(
        of(r#"permit (principal, action in [A::Action::"x", A::Action::"y"], resource);"#),
        of(
            r#"permit (resource, action in [A::Action::"y", A::Action::"x", A::Action::"y"], principal);"#
        ),
    );
}

#[test]
fn meaning_stays() {
    let base = r#"forbid (principal, action, resource) when temporal { formerly within 15m B::Action::"y"::k{ a: 1 } };"#;
    for other in [
        r#"permit (principal, action, resource) when temporal { formerly within 15m B::Action::"y"::k{ a: 1 } };"#,
        r#"forbid (principal, action, resource) unless temporal { formerly within 15m B::Action::"y"::k{ a: 1 } };"#,
        r#"forbid (principal, action, resource) when temporal { formerly within 16m B::Action::"y"::k{ a: 1 } };"#,
        r#"forbid (principal, action, resource) when temporal { previous within 15m B::Action::"y"::k{ a: 1 } };"#,
        r#"forbid (principal, action, resource) when temporal { formerly within 15m B::Action::"y"::k{ a: 2 } };"#,
        r#"forbid (principal == B::U::"a", action, resource) when temporal { formerly within 15m B::Action::"y"::k{ a: 1 } };"#,
    ] {
        assert_ne!(of(base), of(other), "{other}");
    }
    // Spellings that look alike and are none.
    let different = [
        // An absent field differs from nothing.
        (
            "when temporal { context.input.kg != 5 }",
            "unless temporal { context.input.kg == 5 }",
        ),
        // A sum that overflows is judged only behind its guard.
        (
            "when { context.a == 1 && context.b + 1 > 2 }",
            "when { context.b + 1 > 2 && context.a == 1 }",
        ),
        (
            "when { principal.rank > 2 && context.a == 1 }",
            "when { context.a == 1 && principal.rank > 2 }",
        ),
    ];
    for (one, other) in different {
        let full = |clauses: &str| format!("forbid (principal, action, resource) {clauses};");
        assert_ne!(of(&full(one)), of(&full(other)), "{one} | {other}");
    }
}

proptest! {
    /// Two spellings of one rule read the same and compare as equal.
    #[test]
    fn two_spellings_read_the_same(
        written in prop::collection::vec(any::<u8>(), 0..60),
        one in prop::collection::vec(any::<u8>(), 0..200),
        other in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let written = Written::of(&mut Choices(&written));
        let (one, other) = (written.spelled(&mut Choices(&one)), written.spelled(&mut Choices(&other)));
        prop_assert_eq!(of(&one), of(&other), "\n{}\n{}", one, other);
        prop_assert_eq!(said(&one), said(&other), "\n{}\n{}", one, other);
    }

    /// The normal form has itself as its normal form.
    #[test]
    fn a_normal_form_stays(written in prop::collection::vec(any::<u8>(), 0..60)) {
        let written = rule(&Written::of(&mut Choices(&written)).spelled(&mut Choices(&[])));
        prop_assert_eq!(text(&form(&written)), text(&written));
    }

    /// Rules whose normal forms differ read differently.
    #[test]
    fn two_rules_read_differently(
        written in prop::collection::vec(any::<u8>(), 1..60),
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let mut changed = written.clone();
        changed[at.index(written.len())] = value;
        let spelled = |bytes: &[u8]| Written::of(&mut Choices(bytes)).spelled(&mut Choices(&[]));
        let (one, other) = (spelled(&written), spelled(&changed));
        if of(&one) != of(&other) {
            prop_assert_ne!(said(&one), said(&other), "\n{}\n{}", one, other);
        }
    }
}

/// An `http:request` request: texts, numbers and the flag by their choices.
fn request(time: i64, choices: [u8; 6]) -> Event {
    let [host, path, method, port, body, flag] = choices;
    let text = |at: u8| Value::str(VALUES[usize::from(at) % VALUES.len()]);
    let input = Record::from([
        ("host".into(), text(host)),
        ("path".into(), text(path)),
        ("method".into(), text(method)),
        ("port".into(), Value::Int(i64::from(port % 13))),
        ("body_bytes".into(), Value::Int(i64::from(body % 13))),
        ("intercepted".into(), Value::Bool(flag % 2 == 1)),
    ]);
    let input = Value::Object(input);
    Event {
        time,
        action: EntityUid::new("Box::Action", "http:request"),
        kind: "request".into(),
        logged: Record::from([("input".into(), input.clone())]),
        request: Some(RequestPart {
            principal: Some(EntityUid::new("Box::Agent", "self")),
            resource: Some(EntityUid::new("Box::Resource", "unused")),
            context: Record::from([("input".into(), input)]),
            entities: Vec::new(),
        }),
    }
}

proptest! {
    /// A rule and its normal form decide alike.
    #[test]
    fn the_meaning_is_kept(
        written in prop::collection::vec(any::<u8>(), 0..60),
        spelling in prop::collection::vec(any::<u8>(), 0..200),
        events in prop::collection::vec((0..80i64, any::<[u8; 6]>()), 1..12),
    ) {
        let mut written = Written::of(&mut Choices(&written));
        written.actions = vec![0];
        written.forbids = false;
        let written = rule(&written.spelled(&mut Choices(&spelling)));
        let service = box_service();
        let findings = check_rule(&written, &service, false).0;
        prop_assume!(findings.iter().all(|found| found.diagnostic("").severity != Severity::Error));
        let policy = |rule: &Rule| Arc::new(Policy::new(std::slice::from_ref(rule), &service));
        let mut now = 0;
        let events: Vec<Event> = events
            .into_iter()
            .map(|(gap, choices)| {
                now += gap;
                request(now, choices)
            })
            .collect();
        let verdicts = |rule: &Rule| -> Vec<bool> {
            replay(policy(rule), &events)
                .into_iter()
                .map(|(_, _, decision)| decision.allowed())
                .collect()
        };
        let form = form(&written);
        prop_assert_eq!(verdicts(&written), verdicts(&form), "\n{}\n{}", print_rule(&written), print_rule(&form));
    }
}
