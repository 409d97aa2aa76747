//! Valid input of every kind is read without an error.

use dogwood_grammar::{
    parse_action_schema, parse_condition, parse_event_schema, parse_expr, parse_policy,
};

fn policy(source: &str) {
    let parsed = parse_policy(source);
    assert!(parsed.errors.is_empty(), "{source}\n{:#?}", parsed.errors);
}

fn expr(source: &str) {
    let parsed = parse_expr(source);
    assert!(parsed.errors.is_empty(), "{source}\n{:#?}", parsed.errors);
}

fn condition(source: &str) {
    let parsed = parse_condition(source);
    assert!(parsed.errors.is_empty(), "{source}\n{:#?}", parsed.errors);
}

#[test]
fn files() {
    policy("");
    policy("\u{feff}// only a comment\n");
    policy("permit(principal, action, resource);");
    policy("permit();permit(,);\nforbid(resource, principal,);");
    policy(
        "@id(\"x\") @when @permit(\"\") forbid(action in [A::\"a\", A::\"b\",], principal is N::T in N::T::\"x\", resource == ?resource) when guardrails { true } unless { false };",
    );
    policy(
        "permit(principal in G::\"g\", action == Ns::Action::\"a\", resource is R) when temporal { formerly within 1h Ns::Action::\"a\"::request{} };",
    );
    policy(
        "permit(action in []) when { temporal { tp(t) } || !temporal { M::\"a\"::request{} } };",
    );
    policy(
        "def cedar small(?x, ?y) { ?x < ?y && context.n > decimal(\"1.0\") };\ndef temporal often(?w, ?s) { (count for ($t: Timepoint). where formerly within ?w (?s{ a: $t } && tp($t))) <= 3 };\ndef temporal total() { count for (t: T). where tp(t) };\ndef temporal n(?c) { ?c };\ndef cedar permit() { true };",
    );
    policy(
        "permit(principal, action, resource) when { permit(principal) && context.permit.forbid == 1 && {permit: 1, \"if\": 2}.def };",
    );
}

#[test]
fn expressions() {
    for source in [
        "1",
        "-1",
        "- 1",
        "--1",
        "!!true",
        "-9223372036854775808",
        "9223372036854775807",
        "\"a\\n\\u{1F600}\\x41\\'\"",
        "principal",
        "A::B::\"x\"",
        "if::then::\"x\"",
        "true::\"x\"",
        "?x",
        "[]",
        "[1, 2,]",
        "{}",
        "{a: 1, if: 2, \"b c\": 3,}",
        "if true then 1 else if false then 2 else 3",
        "a::f(1, 2)",
        "ip(\"::1\").isIpv6()",
        "context.input.count",
        "context.since.temporal.if",
        "context[\"a b\"].c",
        "principal has a.b.c",
        "principal has \"a b\"",
        "principal has if.then",
        "context has has",
        "context.name like \"a*\\*b\"",
        "principal is A::B",
        "principal is A in A::\"x\"",
        "1 == 2 == true",
        "1 < 2 in [true]",
        "1 + 2 * 3 - 4",
        "f(1).g(2)[\"x\"].h()",
        "(1)",
        "((1 + 2)) * 3",
        "temporal { tp(t) } && temporal::X::\"a\" == action",
        "principal.tags.contains(\"x\") || !(resource in G::\"g\")",
        "context.a.getTag(\"x\").isEmpty()",
        "when(1)",
        "context.x.like.is.in.has",
        "{when: 1}.when",
    ] {
        expr(source);
    }
}

#[test]
fn conditions() {
    for source in [
        "tp(t)",
        "tp(?t)",
        "M::\"a\"::request{}",
        "N::M::\"a\"::if{input.a: 1, b: -5, c: *, d: _, e: x}{f: \"s\"}",
        "!A::\"a\"::r{} since within 1 h B::\"b\"::r{}",
        "formerly within 10s (A::\"a\"::r{} && tp(u))",
        "previous within ?w x == 3",
        "exists (t: Timepoint). tp(t) && u != t",
        "exists (?t: A::B). f(1h, t, tp(t), x == 3, [1])",
        "(count for (t: T). where formerly within 1m (tp(t))) <= 3",
        "2 <= count for (t: T), (u: U). where tp(t) && tp(u)",
        "count for (t: T). where formerly within 1m (tp(t)) <= 3",
        "count for (t: T). where formerly within 1m A::\"a\"::r{} <= 3 && tp(t)",
        "(sum k for (k: Long). where k == 4 && tp(t)) == 4",
        "exists (t: T). count for (t: T). where (tp(t)) <= 3 && tp(t)",
        "context.input.count == resource.since.a",
        "principal == A::\"x\"",
        "decimal(\"1.5\") < context.a",
        "a + b * 2 - 1 <= (c + 1)",
        "?c",
        "?c{a: 1}{b: 2}",
        "?c && !?d",
        "f(x)",
        "f() && g(h(1))",
        "f(x) <= 3",
        "(f(x)) && ((tp(t)))",
        "$x == 1",
        "since == where",
        "A::\"a\"::r{ count: count, sum: sum, within: within }",
        "* * * == 1",
        "true == false",
        "! ! tp(t)",
        "(x) == (y)",
        "A::\"a\"::r{a: A::\"x\"}",
        "exists (since: T). tp(since)",
    ] {
        condition(source);
    }
}

fn action_schema(source: &str) {
    let parsed = parse_action_schema(source);
    assert!(parsed.errors.is_empty(), "{source}\n{:#?}", parsed.errors);
}

fn event_schema(source: &str) {
    let parsed = parse_event_schema(source);
    assert!(parsed.errors.is_empty(), "{source}\n{:#?}", parsed.errors);
}

#[test]
fn action_schemas() {
    action_schema("");
    action_schema(
        r#"namespace Depot {
  entity Crew;
  entity Clerk in [Crew] = { rank: Long, nick?: String };
  type MoveIn  = { crate: String, kg?: Long };
  action Any;
  action "move"  in [Any] appliesTo { principal: [Clerk, Drone], resource: [Bay],
                                      context: { input: MoveIn,  output?: { ok: Bool } } };
  action "beep" appliesTo { principal: [Clerk], resource: [Bay], context: {} };
}
@doc("x") @mark
namespace A::B { @a entity entity, type in X::Y { "a b"?: Set<Set<Long>>, @d("x") in: __cedar::Long, } tags Set<String>; }
entity E enum ["a", "b",];
entity F = {};
entity G in [];
entity entity;
entity
  type;
action a, "b c" in Other::Action::"g" appliesTo { context: Ctx::C, resource: R, principal: [P,], } attributes {};
action c in [a, "b", X::"y"];
type T = Set<{a: Long}>;
"#,
    );
}

#[test]
fn event_schemas() {
    event_schema("// nothing");
    event_schema("max_window = 24h");
    event_schema(
        "max_window = 7 d\ndecision event <A>::request { ...inputs(A), pin callerPrincipal: principalType(A) = principal, pin: Long, pin pin: N::T = context.a.pin, group: { x: Long, ...outputs(A), }, }\nevent <event>::event {}",
    );
}
