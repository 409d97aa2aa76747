//! Temporal blocks against the schemas: names, windows, paths, types.

use super::screen::said;
use super::screen::{DEPOT, EVENTS, depot, diagnostics, draw, in_box, in_depot, screen, service};

fn moving(leaf: &str) -> String {
    format!(
        "permit (principal, action == Depot::Action::\"move\", resource)\nwhen temporal {{ {} }};\n",
        short(leaf)
    )
}

fn short(leaf: &str) -> String {
    leaf.replace("M{", "Depot::Action::\"move\"::request{")
        .replace("Q{", "Depot::Action::\"weigh\"::request{")
        .replace("B{", "Depot::Action::\"beep\"::request{")
}

#[track_caller]
fn says(policy: &str, codes: &[&str]) {
    let said = diagnostics(policy, &depot());
    let found: Vec<&str> = said.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(found, codes, "\n{}", draw(policy, &said));
}

#[test]
fn the_worked_examples_check_clean() {
    for leaf in [
        "formerly within 10s M{ input.crate: context.input.crate }",
        "exists (t: Timepoint). (tp(t) && exists (u: Timepoint). (formerly within 10s (M{input.crate: context.input.crate} && tp(u)) && u != t))",
        "previous within 60s M{}",
        "!(previous within 60s M{})",
        "(count for (t: Timepoint). where formerly within 1m (M{} && tp(t))) <= 2",
        "(count for (c: String). where formerly within 1m M{ input.crate: c }) <= 1",
        "(sum k for (k: Long). where formerly within 1h M{ input.kg: k }) <= 5",
        "M{ input.kg: * }",
        "exists (t: Timepoint). (tp(t) && context.input.kg != 5 && M{})",
        "M{} since within 1h Q{}",
        "!B{} since within 1h Q{}",
        "B{} since within 1h M{ input.crate: \"a\" }",
        "formerly within 10s (formerly within 10s Q{})",
        "formerly within 1h Depot::Action::\"weigh\"::response{ output.ok: true }",
        "exists (c: String). (formerly within 1h Q{ input.crate: c } && formerly within 1h B{} && M{ input.crate: c })",
        "exists (c: String). (formerly within 1h Q{ input.crate: c } && 2 <= (count for (t: Timepoint). where formerly within 1h (Q{ input.crate: c } && tp(t))))",
        "formerly within 1h Q{ input.tare: decimal(\"1.5\") }",
        "formerly within 1h M{ callerPrincipal: Depot::Clerk::\"x1\" }",
        "exists (n: Long). ((count for (t: Timepoint). where formerly within 1h (Q{} && tp(t))) == n && n < 2)",
        "!(formerly within 1h (Q{} && !(Q{ input.kg: 1 })))",
        "exists (p: Depot::Clerk). (M{ callerPrincipal: p } && formerly within 1h Q{ callerPrincipal: p })",
        "M{ callerPrincipal: principal, callerResource: resource }",
        "M{ input.crate: principal.id }",
        // Injected fields are not typed.
        "M{ callerPrincipal: \"x\" }",
    ] {
        says(&moving(leaf), &[]);
    }
    says(
        "permit (principal, action in Depot::Action::\"Any\", resource) when temporal { formerly within 1h Depot::Action::\"beep\"::request{} };",
        &[],
    );
}

#[test]
fn scope_attributes_exist_on_every_admitted_type() {
    // 12.33
    let leaf = short("M{ input.crate: principal.nick }");
    says(
        &moving("M{ input.crate: principal.nick }"),
        &["unknown-attribute"],
    );
    says(
        &format!(
            "permit (principal is Depot::Clerk, action == Depot::Action::\"move\", resource) when temporal {{ {leaf} }};"
        ),
        &[],
    );
}

#[test]
fn optional_attributes_need_no_guard_in_a_temporal_block() {
    // 12.34
    says(&moving("M{ input.kg: context.input.kg }"), &[]);
    says(
        "permit (principal, action == Depot::Action::\"move\", resource) when { context.input.kg == 3 };",
        &["unguarded-optional"],
    );
}

#[test]
fn windows_are_inclusive_of_the_cap() {
    says(&moving("formerly within 24h M{}"), &[]);
    says(&moving("formerly within 1d M{}"), &[]);
    says(&moving("formerly within 86401s M{}"), &["window-too-long"]);
    says(&moving("formerly within 0s M{}"), &["zero-window"]);
    says(
        &moving("1 <= (count for (t: Timepoint). where formerly within 25h (M{} && tp(t)))"),
        &["window-too-long"],
    );
    let long = service(DEPOT, &format!("max_window = 30d {EVENTS}"));
    assert!(diagnostics(&moving("formerly within 720h M{}"), &long).is_empty());
    assert_eq!(
        diagnostics(&moving("formerly within 721h M{}"), &long).len(),
        1
    );
}

#[test]
fn every_part_looks_at_the_trace() {
    says(&moving("context.input.kg == 1"), &["not-temporal"]);
    says(&moving("M{} && context.input.kg == 1"), &["not-temporal"]);
    says(&moving("!(context.input.kg == 1)"), &["not-temporal"]);
    says(
        &moving("formerly within 1h (context.input.kg == 1)"),
        &["not-temporal"],
    );
    says(
        &moving("(context.input.kg == 1) since within 1h M{}"),
        &["not-temporal"],
    );
    says(&moving("exists (k: Long). (k == context.input.kg)"), &[]);
    says(
        &moving("exists (t: Timepoint). (tp(t) && context.input.kg == 1)"),
        &[],
    );
}

#[test]
fn types_are_checked_for_every_action_of_the_scope() {
    for scope in [
        "action",
        "action in Depot::Action::\"Any\"",
        "action in [Depot::Action::\"move\"]",
    ] {
        let leaf = short("formerly within 1h Q{ input.crate: 3 }");
        says(
            &format!("forbid (principal, {scope}, resource) when temporal {{ {leaf} }};"),
            &["type-mismatch"],
        );
    }
    says(
        &moving("exists (t: Timepoint). (tp(t) && t < 3)"),
        &["type-mismatch"],
    );
    says(
        &moving("exists (t: Decimal). (Q{ input.tare: t } && t > 3)"),
        &["type-mismatch"],
    );
    says(
        &moving("exists (k: String). (M{ input.kg: k })"),
        &["type-mismatch"],
    );
    says(
        &moving("exists (k: Long). (M{ input.kg: k } && k == \"a\")"),
        &["type-mismatch"],
    );
    says(&moving("exists (k: Long). tp(k)"), &["type-mismatch"]);
    says(
        &moving("1 <= (sum c for (c: String). where M{ input.crate: c })"),
        &["type-mismatch"],
    );
    says(
        &moving("exists (p: Depot::Clerk). (M{ callerPrincipal: p } && p == resource)"),
        &[],
    );
}

#[test]
fn names_that_are_nearly_right() {
    said!(in_box(
        r#"
forbid (principal, action == Box::Action::"shell:spwan", resource);
forbid (principal, action, resource)
when temporal { formerly within 1h Box::Action::"http:requst"::request{} };
forbid (principal, action == Box::Action::"shell:spawn", resource)
when temporal { formerly within 1h Box::Action::"shell:spawn"::respnse{ input.program: "git" } };
forbid (principal, action == Box::Action::"shell:spawn", resource)
unless temporal {
  !Box::Action::"fs:write"::response{ input.pth: "a", input.operation: Box::FsWriteOperation::"write_contents" }
  since within 15m
  Box::Action::"shell:spawn"::response{ input.program: "npm", inptu.arg1: "test", output.stats: 0, status: 0 }
};
"#
    ));
}

#[test]
fn names_that_are_not_even_near() {
    said!(in_box(
        r#"
forbid (principal, action == Box::Action::"tool:invoke", resource);
forbid (principal, action == Shell::Action::"shell:spawn", resource);
forbid (principal, action in [Bx::Action::"shell:start"], resource);
forbid (principal, action == Box::Action::"fs:read", resource)
when temporal { formerly within 1h Box::Action::"fs:read"::done{ } };
forbid (principal, action == Box::Action::"fs:read", resource)
when temporal {
  formerly within 1h Box::Action::"fs:read"::response{ input: *, input.path.name: "a", zebra: 1, input.operation: Box::FsReadOperation::"copy" }
};
forbid (principal, action == Box::Action::"fs:read", resource)
when temporal { exists (p: Strng). Box::Action::"fs:read"::request{ input.path: p } };
"#
    ));
}

#[test]
fn one_field_of_many_is_underlined() {
    said!(in_box(
        r#"
forbid (principal, action == Box::Action::"shell:spawn", resource)
when temporal {
  formerly within 1h Box::Action::"shell:spawn"::response{
    input.program: "npm", input.arg_count: "1", input.cwd: "~/project", output.status: 0
  }
};
"#
    ));
}

#[test]
fn windows_paths_and_types() {
    said!(in_depot(
        &[
            moving("formerly within 48h M{}"),
            moving("formerly within 0s M{}"),
            moving("M{ input.crate: context.input.crte }"),
            moving("M{ input.crate: context.input.crate.name }"),
            moving("M{ input.crate: principal.nick }"),
            moving("context.input.kg == 1"),
            moving("exists (t: Timepoint). (tp(t) && t < 3)"),
            moving("exists (k: Long). (M{ input.kg: k } && k == \"a\")"),
            moving("exists (k: Long). tp(k)"),
            moving("1 <= (sum c for (c: String). where M{ input.crate: c })"),
            moving("formerly within 1h Q{ input.tare: decimal(\"1,5\") }"),
        ]
        .concat()
    ));
}

#[test]
fn a_message_names_the_action_it_is_about() {
    said!(screen(
        "forbid (principal, action, resource)\nwhen temporal { formerly within 1h Depot::Action::\"weigh\"::request{ input.kg: context.input.kg } };\n",
        &depot()
    ));
}
