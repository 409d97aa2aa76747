//! What an author reads about each mistake: the source, then every message with its place, its help,
//! and the text as its fix would leave it.

#![allow(clippy::unwrap_used)]

use dogwood_grammar::diagnostic::{Diagnostic, Fix};
use dogwood_grammar::{
    SyntaxError, parse_action_schema, parse_condition, parse_event_schema, parse_expr, parse_policy,
};
use std::fmt::Write;

fn place(source: &str, at: u32) -> (usize, usize) {
    let before = &source[..at as usize];
    let line = before.matches('\n').count() + 1;
    (
        line,
        before.len() - before.rfind('\n').map_or(0, |nl| nl + 1) + 1,
    )
}

fn mended(source: &str, fix: &Fix) -> String {
    let mut edits = fix.edits.clone();
    edits.sort_by_key(|edit| std::cmp::Reverse((edit.span.start, edit.span.end)));
    let mut text = source.to_owned();
    for edit in edits {
        text.replace_range(edit.span.range(), &edit.text);
    }
    text
}

fn render(source: &str, errors: &[SyntaxError]) -> String {
    let mut out = format!("{source}\n");
    if errors.is_empty() {
        out.push_str("no error\n");
    }
    for error in errors {
        let found: Diagnostic = error.diagnostic(source);
        let (line, from) = place(source, found.span.start);
        let (last, to) = place(source, found.span.end);
        let end = if last == line {
            to.to_string()
        } else {
            format!("{last}:{to}")
        };
        let text = found.span.text(source);
        writeln!(
            out,
            "{} at {line}:{from}..{end} [{text}]: {}",
            found.code, found.message
        )
        .unwrap();
        for label in &found.labels {
            let (line, column) = place(source, label.span.start);
            let text = label.span.text(source);
            writeln!(out, "  at {line}:{column} [{text}]: {}", label.text).unwrap();
        }
        if let Some(help) = &found.help {
            writeln!(out, "  help: {help}").unwrap();
        }
        if let Some(fix) = &found.fix {
            writeln!(out, "  fix: {}", fix.title).unwrap();
            for line in mended(source, fix).lines() {
                writeln!(out, "     | {line}").unwrap();
            }
        }
    }
    out
}

fn all(sources: &[&str], read: impl Fn(&str) -> Vec<SyntaxError>) -> String {
    let parts: Vec<String> = sources
        .iter()
        .map(|source| render(source, &read(source)))
        .collect();
    parts.join("\n")
}

fn policies(sources: &[&str]) -> String {
    all(sources, |source| parse_policy(source).errors)
}

fn expressions(sources: &[&str]) -> String {
    all(sources, |source| parse_expr(source).errors)
}

fn conditions(sources: &[&str]) -> String {
    all(sources, |source| parse_condition(source).errors)
}

#[test]
fn rules() {
    insta::assert_snapshot!(policies(&[
        "permit(principal, action, resource)",
        "permit(principal, action, resource) when { true }\n\nforbid(principal, action, resource);",
        "permit(principal, action, resource);;",
        "allow(principal, action, resource);",
        "forbidd(principal, action, resource);",
        "permit(principal, action, resource) { context.x == 1 };",
        "permit(principal, action, resource) if { context.x == 1 };",
        "permit(principal, action, resource) whe { context.x == 1 };",
        "permit(principal, action, resource) temporal { tp(t) };",
        "permit(principal, action, resource) when context.x == 1;",
        "permit(principal, action, resource) when;",
        "permit(principal, action, resource) when { };",
        "permit(principal, action, resource) when { context.x == 1 ;",
        "permit(principal, action, resource when { true };",
        "permit;",
        "@id(5) permit(principal, action, resource);",
        "@id(\"a\")",
        "rule x { }",
        "def cedar f(x) { true };",
        "def cedar f(?x,) { true };",
        "def temporal f(?x) { };",
        "def f(?x) { true };",
    ]));
}

#[test]
fn scopes() {
    insta::assert_snapshot!(policies(&[
        "permit(principal, principal == U::\"a\", resource);",
        "permit(user, action, resource);",
        "permit(principals, action, resource);",
        "permit(principal, action, resource, context);",
        "permit(principal : U, action, resource);",
        "permit(principal: U, action, resource);",
        "permit(principal = U::\"a\", action, resource);",
        "permit(principal != U::\"a\", action, resource);",
        "permit(principal, action is A, resource);",
        "permit(principal, action == ?action, resource);",
        "permit(principal == ?resource, action, resource);",
        "permit(principal == U, action, resource);",
        "permit(principal == context.user, action == \"read\", resource);",
        "permit(principal in [U::\"a\"], action == [A::\"x\"], resource);",
        "permit(principal, action in [A::\"x\", y], resource);",
        "permit(principal ==, action, resource);",
        "permit(principal action, resource);",
        "permit(principal == U::\"a\" || U::\"b\", action, resource);",
    ]));
}

#[test]
fn tokens() {
    insta::assert_snapshot!(expressions(&[
        r#""a\qb" == "\u{110000}\x80""#,
        r#""a\*b" == context.x"#,
        r#"context.x like "a\*\d""#,
        "context.x == \"open",
        "context.x == 'a'",
        "context.x & context.y",
        "context.x == “a”",
        "9223372036854775808 == -9223372036854775809",
        "context.größe == 1",
    ]));
}

#[test]
fn expressions_of_rules() {
    insta::assert_snapshot!(expressions(&[
        "context.x = 1",
        "context.x / 2 == context.y % 3",
        "count > 3",
        "principle == U::\"a\"",
        "principal == User",
        "principal == N::User",
        "context[0]",
        "context[context.key]",
        "(1)(2)",
        "\"f\"(1)",
        "context(1)",
        "decimal()",
        "ip(\"::1\", 2)",
        "context.s.contains()",
        "context.s.isEmpty(1)",
        "U::{a: 1}",
        "!-1",
        "-!true",
        "{a: 1, \"a\": 2}",
        "{1: 2}",
        "context.x like context.y",
        "context has 1",
        "context has a == true",
        "context.a and context.b or context.c",
        "not context.a",
        "if context.a then 1",
        "1 +",
        "",
        "(1 + 2",
        "[1, 2",
        "1 2",
        "context.",
        "principal is \"U\"",
    ]));
}

#[test]
fn temporal_conditions() {
    insta::assert_snapshot!(conditions(&[
        "A::\"a\"::r{} || A::\"b\"::r{} || tp(t)",
        "let n = 3 && tp(t)",
        "formerly A::\"a\"::r{}",
        "A::\"a\"::r{} since A::\"b\"::r{}",
        "A::\"a\"::r{} since within 1h tp(t) since within 1h tp(u)",
        "formerly within 10 (tp(t))",
        "formerly within 10 A::\"a\"::r{}",
        "formerly within 10 min A::\"a\"::r{}",
        "formerly within 10 weeks A::\"a\"::r{}",
        "formerly within 99999999999999999999s A::\"a\"::r{}",
        "formerly within 1h !A::\"a\"::r{}",
        "previous within 1h exists (t: T). tp(t)",
        "A::\"a\"",
        "A::\"a\"::r",
        "A::\"a\"{ x: 1 }",
        "N::A::\"a\"::{ x: 1 }",
        "A::\"a\"::r{ x: 1, }",
        "A::\"a\"::r{ x = 1 }",
        "A::\"a\"::r{ x == 1 }",
        "A::\"a\"::r{ input.x != 1, y: 2 }",
        "A::\"a\"::r{ x: [1] }",
        "[1] == x",
        "x = 1",
        "x == 1 == 2",
        "x",
        "3 && tp(t)",
        "tp(t) == 3",
        "A::\"a\"::r{ x: tp(t) }",
        "exists (t: T) tp(t)",
        "exists t: T. tp(t)",
        "(count for (t: T) where tp(t)) <= 3",
        "(count for (t: T),. where tp(t)) <= 3",
        "x == 99999999999999999999",
        "x == -9223372036854775809",
        "context == 1",
        "input.x == 1",
        "contxt.input.x == 1",
        "x in [1, 2]",
        "context.x like \"a*\"",
        "tp(t) and tp(u)",
        "f(1, )",
        "true(1)",
        "decimal(1.5) == x",
        "decimal(1) == x",
        "x / 2 == 1",
        "tp(1)",
        "",
    ]));
}

#[test]
fn action_schemas() {
    let read = |source: &str| parse_action_schema(source).errors;
    insta::assert_snapshot!(all(
        &[
            "entity A\nentity B;",
            "entity A { a: Long };\nentity B { a: Long b: Long };\nentity C { a };\naction \"x\" appliesTo { principle: [A], resource: [B, 1], context: [A] };",
            "entity A { a: Long, a?: String };",
            "entity A { a: set<Long>, b: List<Long> };",
            "action x appliesTo { principal: A, principal: B, resources: R };",
            "action x appliesTo { principal: {}, resource: Set<R> };",
            "type T Long;",
            "namespace A { namespace B { entity C; } }",
            "namespace A { entity C;",
            "entity C; }",
            "entity A enum [\"a\", b, \"c\"];",
            "ent A;",
            ";",
            "entity A = { a: Long\nentity B;\nentity C = { \"x\": };",
        ],
        read
    ));
}

#[test]
fn event_schemas() {
    let read = |source: &str| parse_event_schema(source).errors;
    insta::assert_snapshot!(all(
        &[
            " \n",
            "max_window = 0h",
            "max_window = 24",
            "max_window = 24 hours",
            "max_window = 9223372036854775807d",
            "event <A>::r {}\nmax_window = 1h",
            "event <A>::r { ...inputs(B), who: principalType(C) }",
            "event <A>::r { pin who: principalType(A) }",
            "event <A>::r { who: principalType(A) = principal }",
            "event <A>::r { pin who: T = action, pin what: T = context }",
            "event <A>::r { pin g: { n: Long } = principal }",
            "event A::r {}",
            "event <A>::r { a Long, b: , ..inputs(A) }\nevent <A>::s { a Long }",
            "event <A>::r { a: Long\nevent <A>::s {}",
        ],
        read
    ));
}

#[test]
fn several_mistakes() {
    insta::assert_snapshot!(policies(&[
        "permit(principal == , action, resource) when { 1 + };\nforbid(principal, action, resource) when { context.a b { c: 1 } && d } unless { context.x = 1 };\npermit(foo);\nforbid(principal) when { f(1, , 2) && [1, 2 3, (4 5)] == {a: , b: 2 3} };",
        "permit(principal) when { (1 + 2 }\nforbid(principal) when { 1 + };\n@id(\"x\")\npermit(principal) unless { 2 + };",
        "permit(principal) when { \"open };\nforbid(principal) when { 1 + };",
        "permit(principal) when temporal { (tp(t) && ) && A::\"a\"::r{ x: , y: 1 2, z: 3 } && f(, 1) };",
        "garbage here\npermit(principal) when { 1 + };",
        "def cedar f(?x) { ?x + }\ndef temporal g(?x) { tp( };\npermit(principal);",
    ]));
}
