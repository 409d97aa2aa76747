//! Macros: what a call stands for, and what is said about wrong ones.

use super::screen::said;
use super::screen::{depot, diagnostics, draw, in_depot, source};
use dogwood_compiler::compile::{self, Options};
use dogwood_compiler::grammar::ast::{ClauseBody, Item, Rule};

fn rules(policy: &str) -> Vec<Rule> {
    match compile::parse_only(&[source("policy.dw", policy)], None, &Options::default()) {
        Ok(checked) => checked.rules.into_iter().map(|rule| rule.rule).collect(),
        Err(said) => panic!("{}", draw(policy, &said)),
    }
}

/// The clauses of a rule with every place and depth left out.
fn shape(rule: &Rule) -> String {
    let bodies: Vec<String> = rule
        .clauses
        .iter()
        .map(|clause| match &clause.body {
            ClauseBody::Expr(expr) => format!("{:?}", expr.kind),
            ClauseBody::Temporal(leaf) => format!("{:?}", leaf.body.kind),
        })
        .collect();
    let text = bodies.join("\n");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("Span {") {
        out.push_str(&rest[..at]);
        let end = rest[at..].find('}').unwrap_or(rest.len() - at - 1);
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    out
}

const HEAD: &str = "permit (principal, action == Depot::Action::\"move\", resource)";

#[track_caller]
fn same(macros: &str, written: &str, meant: &str) {
    let written = rules(&format!("{macros}\n{HEAD} when {{ {written} }};"));
    let meant = rules(&format!("{HEAD} when {{ {meant} }};"));
    assert_eq!(shape(&written[0]), shape(&meant[0]));
}

#[test]
fn cedar_macros_are_trees_not_text() {
    let macros = "def cedar twice(?x) { ?x * 2 }; def cedar both(?a, ?b) { ?a && ?b };";
    same(macros, "twice(1 + 2) == 6", "(1 + 2) * 2 == 6");
    same(macros, "twice(twice(3)) == 12", "(3 * 2) * 2 == 12");
    same(
        macros,
        "both(context.a || context.b, context.c)",
        "(context.a || context.b) && context.c",
    );
    same("def cedar yes() { true };", "yes()", "true");
}

#[test]
fn temporal_macros_by_the_use_of_each_parameter() {
    let seen = "Depot::Action::\"weigh\"::request{ input.crate: context.input.crate }";
    same(
        "def temporal recently(?w, ?c) { formerly within ?w ?c };",
        &format!("temporal {{ recently(10m, {seen}) }}"),
        &format!("temporal {{ formerly within 10m {seen} }}"),
    );
    same(
        "def temporal heavy(?k, ?p, ?min) { exists (?k: Long). (?p{ input.kg: ?k } && ?min < ?k) };",
        "temporal { heavy(kilos, Depot::Action::\"move\"::request{}, 3) }",
        "temporal { exists (kilos: Long). (Depot::Action::\"move\"::request{}{ input.kg: kilos } && 3 < kilos) }",
    );
    // The body can use what the caller's argument names, because the caller chose the name.
    same(
        "def temporal some(?n, ?c) { exists (?n: Long). ?c };",
        "temporal { some(k, Depot::Action::\"move\"::request{ input.kg: k } && k > 3) }",
        "temporal { exists (k: Long). (Depot::Action::\"move\"::request{ input.kg: k } && k > 3) }",
    );
}

#[test]
fn fresh_names_are_new_for_every_call() {
    let policy = format!(
        "def temporal twice(?s) {{ exists ($t: Timepoint). (?s && tp($t)) }};\n\
         {HEAD} when temporal {{ exists (t: Timepoint). (tp(t) && twice(Depot::Action::\"move\"::request{{}}) && twice(Depot::Action::\"beep\"::request{{}})) }};"
    );
    let shape = shape(&rules(&policy)[0]);
    assert!(
        shape.contains("\"t$1\"") && shape.contains("\"t$2\""),
        "{shape}"
    );
    assert!(!shape.contains("Fresh"), "{shape}");
}

#[test]
fn value_macros_give_numbers() {
    same(
        "def temporal times(?w, ?s) { count for (t: Timepoint). where (formerly within ?w (?s && tp(t))) };",
        "temporal { times(1h, Depot::Action::\"move\"::request{}) <= 3 }",
        "temporal { (count for (t: Timepoint). where (formerly within 1h (Depot::Action::\"move\"::request{} && tp(t)))) <= 3 }",
    );
}

#[test]
fn built_in_macros_check_clean() {
    for leaf in [
        "count_within(1h, Depot::Action::\"move\"::request{}) <= 3",
        "sum_within(k, 1h, Depot::Action::\"move\"::request{ input.kg: k }) <= 3",
        "count_distinct_within(c, 1h, Depot::Action::\"move\"::request{ input.crate: c }) <= 3",
        "bind(n, count_within(1h, Depot::Action::\"move\"::request{}), n > 2 && n < 5)",
        "exists (at: String). (Depot::Action::\"move\"::request{ input.crate: at } && count_within(1h, Depot::Action::\"move\"::request{ input.crate: at }) <= 3)",
    ] {
        let policy = format!("{HEAD} when temporal {{ {leaf} }};");
        let said = diagnostics(&policy, &depot());
        assert!(said.is_empty(), "{}", draw(&policy, &said));
    }
}

#[test]
fn a_policy_overrides_the_library() {
    let macros = source(
        "macros.dw",
        "def cedar yes() { true }; def cedar no() { false };",
    );
    let policy = source(
        "policy.dw",
        &format!("def cedar no() {{ true }}; {HEAD} when {{ yes() && no() }};"),
    );
    let checked = compile::parse_only(&[policy], Some(&macros), &Options::default())
        .map_err(|said| draw("", &said))
        .unwrap();
    let shape = shape(&checked.rules[0].rule);
    assert!(!shape.contains("Bool(false)"), "{shape}");
    // The library given replaces the built-in one.
    let policy = source(
        "policy.dw",
        &format!(
            "{HEAD} when temporal {{ count_within(1h, Depot::Action::\"move\"::request{{}}) < 3 }};"
        ),
    );
    let said = compile::parse_only(&[policy], Some(&macros), &Options::default()).unwrap_err();
    assert_eq!(
        said.iter().map(|d| d.code).collect::<Vec<_>>(),
        ["unknown-macro"]
    );
}

#[test]
fn expansion_is_bounded() {
    let double = "def cedar double(?x) { ?x && ?x };";
    let mut call = "true".to_owned();
    for _ in 0..40 {
        call = format!("double({call})");
    }
    let policy = format!("{double}\n{HEAD} when {{ {call} }};");
    let said = diagnostics(&policy, &depot());
    assert_eq!(
        said.iter().map(|d| d.code).collect::<Vec<_>>(),
        ["expansion-too-large"]
    );

    let nest = format!(
        "def cedar nest(?x) {{ {}?x{} }};",
        "!(".repeat(60),
        ")".repeat(60)
    );
    let policy = format!("{nest}\n{HEAD} when {{ nest(nest(nest(nest(true)))) }};");
    let said = diagnostics(&policy, &depot());
    assert_eq!(
        said.iter().map(|d| d.code).collect::<Vec<_>>(),
        ["expansion-too-deep"]
    );
}

#[test]
fn the_deepest_input_is_checked_without_overflow() {
    let open = "(".repeat(60);
    let close = ")".repeat(60);
    for condition in [
        format!("{}true{}", "!(".repeat(95), ")".repeat(95)),
        format!("{}true{}", "[".repeat(150), "]".repeat(150)),
        format!(
            "{}1{} == 1",
            "(if true then ".repeat(90),
            " else 2)".repeat(90)
        ),
        format!(
            "temporal {{ {}Depot::Action::\"move\"::request{{}}{} }}",
            "!(".repeat(95),
            ")".repeat(95)
        ),
        format!(
            "temporal {{ {}Depot::Action::\"move\"::request{{}}{} }}",
            "formerly within 1s (".repeat(95),
            ")".repeat(95)
        ),
        format!("{open}context has a && context.a{close}"),
    ] {
        diagnostics(&format!("{HEAD} when {{ {condition} }};"), &depot());
    }
    let wide = vec!["context.input.crate == \"a\""; 5000].join(" && ");
    assert!(diagnostics(&format!("{HEAD} when {{ {wide} }};"), &depot()).is_empty());
    let wide = vec!["Depot::Action::\"move\"::request{ input.kg: 1 }"; 5000].join(" && ");
    assert!(diagnostics(&format!("{HEAD} when temporal {{ {wide} }};"), &depot()).is_empty());
}

#[test]
fn a_fault_in_a_body_points_at_the_call() {
    said!(in_depot(&format!(
        "def temporal recently(?w, ?c) {{ formerly within ?w ?c }};\n\
         {HEAD}\nwhen temporal {{ recently(48h, Depot::Action::\"weigh\"::request{{ input.crat: \"a\" }}) }};\n\
         {HEAD}\nwhen temporal {{ count_within(1h, Depot::Action::\"weigh\"::request{{ input.kg: k }}) < 3 }};\n"
    )));
}

#[test]
fn no_fix_rewrites_a_call() {
    said!(in_depot(&format!(
        "def temporal weighed(?w) {{ formerly within ?w Depot::Action::\"weigh\"::request{{ input.crat: \"a\" }} }};\n\
         def cedar light(?x) {{ context.input.kg < ?x }};\n\
         {HEAD}\nwhen temporal {{ weighed(1h) }};\n\
         {HEAD}\nwhen {{ context.input.crate == \"a\" && light(3) }};\n"
    )));
}

#[test]
fn wrong_definitions() {
    said!(in_depot(
        r#"
def cedar decimal(?x) { ?x };
def temporal exists(?x) { ?x };
def cedar twice(?x, ?x) { ?x };
def cedar again(?x) { ?x == ?y };
def cedar again(?x) { ?x };
def cedar outer(?x) { again(?x) && Ns::f(1) && temporal { Depot::Action::"move"::request{} } };
def temporal other(?window, ?x) { formerly within ?windw (?x && again(1)) };
"#
    ));
}

#[test]
fn wrong_calls() {
    let calls = [
        "temporal { recent(1h, Depot::Action::\"move\"::request{}) }",
        "recently(true, true)",
        "temporal { yes() }",
        "temporal { recently(1h) }",
        "temporal { recently(Depot::Action::\"move\"::request{}, 1h) }",
        "temporal { many(1h) }",
        "temporal { recently(1h, Depot::Action::\"move\"::request{}) <= 3 }",
        "temporal { heavy(3, Depot::Action::\"move\"::request{}) }",
        "temporal { heavy(k, !Depot::Action::\"move\"::request{}) }",
        "yse()",
        "?x == 1",
        "temporal { formerly within ?w ?c }",
        "temporal { exists ($t: Timepoint). tp($t) }",
    ];
    let rules: String = calls
        .iter()
        .map(|call| format!("{HEAD}\nwhen {{ {call} }};\n"))
        .collect();
    said!(in_depot(&format!(
        "def temporal recently(?w, ?c) {{ formerly within ?w ?c }};\n\
         def temporal many(?w) {{ count for (t: Timepoint). where (formerly within ?w (Depot::Action::\"move\"::request{{}} && tp(t))) }};\n\
         def temporal heavy(?k, ?p) {{ exists (?k: Long). (?p{{ input.kg: ?k }} && 3 < ?k) }};\n\
         def cedar yes() {{ true }};\n{rules}"
    )));
}

#[test]
fn macros_of_the_built_in_library_are_sound() {
    use dogwood_compiler::macros::{BUILTIN_MACROS, Library};
    let parsed = dogwood_compiler::grammar::parse_policy(BUILTIN_MACROS);
    assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
    assert!(Library::define(&parsed.tree).1.is_empty());
    let names: Vec<&str> = parsed
        .tree
        .items
        .iter()
        .map(|item| match item {
            Item::Macro(def) => def.name.text.as_str(),
            _ => "?",
        })
        .collect();
    assert_eq!(
        names,
        [
            "count_within",
            "sum_within",
            "count_distinct_within",
            "bind"
        ]
    );
}
