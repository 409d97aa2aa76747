//! Warnings about rules that are correct, but hardly mean what their author thinks.

use super::screen::{apply, draw, source};
use dogwood_compiler::compile::{self, Options};
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use dogwood_compiler::schema::{Service, box_service};

pub fn warnings(policy: &str, service: &Service) -> Vec<Diagnostic> {
    let checked = compile::check(
        &[source("policy.dw", policy)],
        None,
        service,
        &Options::default(),
    );
    checked.map_or_else(|all| all, |checked| checked.diagnostics)
}

fn codes(said: &[Diagnostic]) -> Vec<&'static str> {
    said.iter().map(|diagnostic| diagnostic.code).collect()
}

#[track_caller]
fn fires(policy: &str, expected: &[&str]) {
    let said = warnings(policy, &box_service());
    assert_eq!(codes(&said), expected, "\n{}", draw(policy, &said));
}

#[test]
fn an_allowed_code_is_silent_for_that_rule_only() {
    let read = |note: &str| {
        format!("{note}\npermit (principal, action == Box::Action::\"fs:read\", resource);\n")
    };
    fires(&read(""), &["unbounded-read"]);
    fires(&read("@allow(\"unbounded-read\")"), &[]);
    fires(&read("@allow(\"value-counted, unbounded-read\")"), &[]);
    fires(
        &read("@allow(\"unbounded-read\") @allow(\"value-counted\")"),
        &[],
    );
    fires(&read("@allow(\"value-counted\")"), &["unbounded-read"]);
    fires(
        &read("@allow(\"unbounded-reed\")"),
        &["unknown-code", "unbounded-read"],
    );
    let two = format!(
        "{}{}",
        read("@allow(\"unbounded-read\")"),
        "permit (principal, action in [Box::Action::\"fs:read\", Box::Action::\"mcp:call\"], resource);\n"
    );
    let said = warnings(&two, &box_service());
    assert!(
        codes(&said).contains(&"unbounded-read"),
        "{}",
        draw(&two, &said)
    );
    // Every warning can be allowed, not only a lint.
    fires(
        "@allow(\"never-applies\") permit (principal, action == Box::Action::\"mcp:call\", resource) when { false };",
        &[],
    );
}

#[test]
fn a_cap_says_how_many_pass() {
    let cap = |rule: &str| {
        format!(
            "permit (principal, action == Box::Action::\"mcp:call\", resource);\nforbid (principal, action == Box::Action::\"mcp:call\", resource)\nwhen {{ context.input.server == \"aws\" }}\n{rule};\n"
        )
    };
    let count = "(count for (t: Timepoint). where formerly within 1h (Box::Action::\"mcp:call\"::request{ input.server: \"aws\" } && tp(t)))";
    let other = count.replace("aws", "gcp");
    let named = format!("exists (n: Long). ({count} == n && n");
    for (rule, passes) in [
        (
            format!("when temporal {{ {count} >= 60 }}"),
            Some("only 59 pass within 1h"),
        ),
        (
            format!("when temporal {{ 60 <= {count} }}"),
            Some("only 59 pass within 1h"),
        ),
        (
            format!("when temporal {{ {named} >= 2) }}"),
            Some("only 1 passes within 1h"),
        ),
        (
            format!("unless temporal {{ {named} < 1) }}"),
            Some("none passes within 1h"),
        ),
        (
            format!("unless temporal {{ !({count} >= 60) }}"),
            Some("only 59 pass within 1h"),
        ),
        (format!("when temporal {{ {count} > 60 }}"), None),
        (format!("unless temporal {{ {count} <= 60 }}"), None),
        (format!("when temporal {{ {count} < 60 }}"), None),
        // The rule decides no call to that server, so the count never includes the request.
        (format!("when temporal {{ {other} >= 60 }}"), None),
        (
            format!(
                "when temporal {{ {} >= 60 }}",
                count.replace("request", "response")
            ),
            None,
        ),
    ] {
        let policy = cap(&rule);
        let said = warnings(&policy, &box_service());
        match passes {
            None => assert!(said.is_empty(), "{}", draw(&policy, &said)),
            Some(words) => {
                assert_eq!(
                    codes(&said),
                    ["cap-counts-itself"],
                    "{}",
                    draw(&policy, &said)
                );
                assert!(said[0].message.contains(words), "{}", said[0].message);
                let mended = apply(&policy, said[0].fix.as_ref().unwrap());
                assert_eq!(
                    codes(&warnings(&mended, &box_service())),
                    [""; 0],
                    "{mended}"
                );
            }
        }
    }
}

#[test]
fn what_overlaps_is_seen_through_groups_types_and_constants() {
    let git = "permit (principal, action == Box::Action::\"shell:spawn\", resource) when { context.input.program == \"git\" };\n";
    // Disjoint constants never meet.
    fires(
        &format!(
            "{git}forbid (principal, action == Box::Action::\"shell:spawn\", resource) when {{ context.input.program == \"make\" }};"
        ),
        &["forbid-without-permit"],
    );
    fires(
        &format!("{git}forbid (principal, action, resource) when {{ context has input }};"),
        &[],
    );
    fires(
        &format!("{git}forbid (principal, action, resource);"),
        &["shadowed-rule"],
    );
    // Of two equal rules the later one is pointless.
    let twice = "permit (principal, action == Box::Action::\"shell:exec\", resource);\npermit (principal is Box::Agent, action == Box::Action::\"shell:exec\", resource);\n";
    let said = warnings(twice, &box_service());
    assert_eq!(codes(&said), ["shadowed-rule"]);
    assert!(said[0].span.start > 60, "{}", draw(twice, &said));
    // A narrower head shadows nothing.
    fires(
        "permit (principal == Box::Agent::\"a\", action == Box::Action::\"shell:exec\", resource);\npermit (principal, action == Box::Action::\"shell:exec\", resource) when { context.input.program == \"ls\" };",
        &[],
    );
    // A set without permits is part of something larger.
    fires(
        "forbid (principal, action == Box::Action::\"fs:delete\", resource);",
        &[],
    );
}

#[test]
fn a_prerequisite_is_reachable_only_through_another_rule() {
    let wait = |seen: &str| {
        format!(
            "permit (principal, action == Box::Action::\"shell:spawn\", resource)\nwhen {{ [\"git\", \"make\"].contains(context.input.program) }}\nwhen temporal {{ {seen} }};\n"
        )
    };
    let make =
        "formerly within 1h Box::Action::\"shell:spawn\"::response{ input.program: \"make\" }";
    let exec = "permit (principal, action == Box::Action::\"shell:exec\", resource);\n";
    fires(&wait(make), &["unreachable-prerequisite"]);
    // Not a prerequisite: the rule opens where it did not happen.
    fires(&wait(&format!("!({make})")), &[]);
    fires(
        &format!(
            "{exec}{}",
            wait("formerly within 1h Box::Action::\"shell:exec\"::response{}")
        ),
        &[],
    );
    fires(
        &format!(
            "{exec}{}",
            wait("count_within(1h, Box::Action::\"shell:exec\"::request{}) >= 2")
        ),
        &["attempt-as-precondition"],
    );
    fires(
        &format!(
            "{exec}{}",
            wait("count_within(1h, Box::Action::\"shell:exec\"::request{}) <= 2")
        ),
        &[],
    );
    let pattern = "permit (principal, action == Box::Action::\"shell:spawn\", resource) when { context.input.program like \"ma*\" };\n";
    fires(&format!("{pattern}{}", wait(make)), &[]);
}

#[test]
fn sums_and_counts_of_values() {
    let rule = |leaf: &str| {
        format!(
            "permit (principal, action == Box::Action::\"http:request\", resource);\nforbid (principal, action == Box::Action::\"http:request\", resource)\nwhen temporal {{ {leaf} }};\n"
        )
    };
    let sum = "formerly within 1h Box::Action::\"http:request\"::request{ input.body_bytes: b }";
    fires(
        &rule(&format!("(sum b for (b: Long). where {sum}) > 1000")),
        &["value-counted"],
    );
    fires(
        &rule(
            "(sum b for (b: Long), (at: Timepoint). where (formerly within 1h (Box::Action::\"http:request\"::request{ input.body_bytes: b } && tp(at)))) > 1000",
        ),
        &[],
    );
    // Many hosts, paths and names are worth counting.
    let hosts = "formerly within 1h Box::Action::\"http:request\"::request{ input.host: h }";
    fires(
        &rule(&format!("(count for (h: String). where {hosts}) > 100")),
        &[],
    );
    fires(
        &rule(
            "count_distinct_within(h, 1h, Box::Action::\"http:request\"::request{ input.method: h }) > 100",
        ),
        &[],
    );
    fires(
        &rule(&format!(
            "(count for (h: String). where {}) > 100",
            hosts.replace("input.host", "input.method")
        )),
        &["value-counted"],
    );
    fires(
        &rule(&format!(
            "(count for (h: String). where {}) > 3",
            hosts.replace("input.host", "input.method")
        )),
        &[],
    );
}

#[test]
fn the_strict_past_and_negated_left_sides_are_silent() {
    let rule = |leaf: &str| {
        format!(
            "permit (principal, action == Box::Action::\"mcp:call\", resource) when {{ context.input.server == \"a\" }} when temporal {{ {leaf} }};\npermit (principal, action == Box::Action::\"shell:spawn\", resource) when {{ context.input.program == \"make\" }};\n"
        )
    };
    let call = "Box::Action::\"mcp:call\"::request";
    fires(
        &rule(&format!(
            "exists (t: Timepoint). (tp(t) && exists (u: Timepoint). (formerly within 10s ({call}{{}} && tp(u)) && u != t))"
        )),
        &[],
    );
    fires(
        &rule(&format!(
            "formerly within 10s {call}{{ input.server: \"a\" }}"
        )),
        &["self-match"],
    );
    fires(
        &rule(&format!(
            "formerly within 10s {call}{{ input.server: \"b\" }}"
        )),
        &["attempt-as-precondition"],
    );
    fires(
        &rule(&format!(
            "!{call}{{ input.server: \"b\" }} since within 10m Box::Action::\"shell:spawn\"::response{{}}"
        )),
        &[],
    );
    fires(
        &rule(
            "!(exists (p: String). (Box::Action::\"fs:write\"::response{ input.path: p } && p != \"/dev/null\")) since within 10m Box::Action::\"shell:spawn\"::response{}",
        ),
        &[],
    );
    fires(
        &rule(
            "!(exists (a: String). (Box::Action::\"shell:exec\"::response{ input.arg1: a } && a != \"status\")) since within 10m Box::Action::\"shell:spawn\"::response{}",
        ),
        &["absent-unequal"],
    );
}

#[test]
fn the_shipped_example_means_what_it_says() {
    fires(
        include_str!("../../../docs/examples/push-after-tests/policy.dw"),
        &[],
    );
}
