//! Cedar conditions: what is well typed, and what is said about the rest.

use super::screen::said;
use super::screen::{diagnostics, draw, in_box, screen, service, source};
use dogwood_compiler::compile::{self, Options};
use dogwood_compiler::schema::Service;

const LIBRARY: &str = r#"
namespace Library {
  entity Group;
  entity Role enum ["reader", "writer"];
  entity User in [Group] = {
    name: String, age?: Long, role: Role, home: { city: String, zip?: String }, friends: Set<User>
  } tags String;
  entity Robot = { name: String, serial: Long };
  entity Shelf;
  entity Book in [Shelf] = { title: String, price: decimal, due?: datetime, owner: User };
  action Reading;
  action read, browse in [Reading] appliesTo {
    principal: [User, Robot], resource: [Book], context: { from?: ipaddr, at: datetime, count: Long }
  };
  action lend appliesTo { principal: [User], resource: [Book, Shelf], context: { span: duration } };
}
"#;

fn library() -> Service {
    service(LIBRARY, "decision event <A>::request { ...inputs(A) }")
}

fn lending(condition: &str) -> String {
    format!(
        "permit (principal, action == Library::Action::\"lend\", resource is Library::Book)\nwhen {{ {condition} }};\n"
    )
}

#[track_caller]
fn says(policy: &str, codes: &[&str]) {
    let said = diagnostics(policy, &library());
    let found: Vec<&str> = said.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(found, codes, "\n{}", draw(policy, &said));
}

#[test]
fn well_typed_conditions() {
    for condition in [
        "principal.name == \"ann\" && principal.home.city like \"*ton\"",
        "principal has age && principal.age > 17",
        "principal has home.zip && principal.home.zip == \"1\"",
        "if principal has age then principal.age >= 18 else false",
        "(principal has age || principal has age) && principal.age < 100",
        "principal has age && (resource.price.lessThan(decimal(\"1.5\")) || principal.age == 3)",
        "principal in Library::Group::\"staff\"",
        "principal in [Library::Group::\"a\", Library::Group::\"b\"]",
        "resource in Library::Shelf::\"s\"",
        "principal is Library::User in Library::Group::\"a\"",
        "principal.role == Library::Role::\"reader\"",
        "principal.hasTag(\"vip\") && principal.getTag(\"vip\") == \"yes\"",
        "principal.hasTag(principal.name) && principal.getTag(principal.name) == \"yes\"",
        "principal.friends.contains(resource.owner) && !principal.friends.isEmpty()",
        "[1, 2, 3].containsAll([1]) && [\"a\"].containsAny([\"b\"])",
        "context.span > duration(\"1h30m\") && context.span.toHours() < 3",
        "resource has due && resource.due.offset(context.span) > datetime(\"2026-01-01\")",
        "{ a: 1, b: \"x\" }.a + 2 * 3 - -4 == 5",
        "{ a: 1 } has a",
        "resource.owner.home.city == principal.home.city",
        "principal == resource.owner",
        "action == Library::Action::\"lend\"",
    ] {
        says(&lending(condition), &[]);
    }
}

#[test]
fn ill_typed_conditions() {
    for (condition, code) in [
        ("principal.age > 17", "unguarded-optional"),
        (
            "!(principal has age) && principal.age < 100",
            "unguarded-optional",
        ),
        (
            "(principal has age || resource has due) && principal.age < 100",
            "unguarded-optional",
        ),
        (
            "principal has age || principal.age == 1",
            "unguarded-optional",
        ),
        (
            "!(principal has age) || principal.age < 100",
            "unguarded-optional",
        ),
        (
            "resource.owner has age && principal.age == 1",
            "unguarded-optional",
        ),
        ("principal.getTag(\"vip\") == \"yes\"", "unguarded-tag"),
        (
            "principal.hasTag(\"a\") && principal.getTag(\"vip\") == \"yes\"",
            "unguarded-tag",
        ),
        ("resource.hasTag(\"a\")", "never-true"),
        ("resource.getTag(\"a\") == \"b\"", "no-tags"),
        ("principal.nmae == \"ann\"", "unknown-attribute"),
        ("principal.name.first == \"ann\"", "not-a-record"),
        ("principal.name == 3", "type-mismatch"),
        ("principal.name > 3", "type-mismatch"),
        ("principal.name", "type-mismatch"),
        ("principal.name && true", "type-mismatch"),
        ("!principal.name", "type-mismatch"),
        ("principal.name + 1 == 2", "type-mismatch"),
        ("principal.role like \"read*\"", "type-mismatch"),
        (
            "(if principal has age then 1 else \"a\") == 1",
            "type-mismatch",
        ),
        ("[1, \"a\"].contains(1)", "mixed-set"),
        ("[].contains(1)", "empty-set"),
        ("[1].contains(\"a\")", "type-mismatch"),
        ("principal.name.contains(\"a\")", "type-mismatch"),
        ("decimal(principal.name) == resource.price", "not-a-literal"),
        ("decimal(\"1.23456\") == resource.price", "bad-literal"),
        ("ip(\"300.0.0.1\").isLoopback()", "bad-literal"),
        ("resource.price < decimal(\"1.0\")", "type-mismatch"),
        ("context.span < datetime(\"2026-01-01\")", "type-mismatch"),
        (
            "principal.role == Library::Role::\"raeder\"",
            "unknown-enum-value",
        ),
        ("principal in Library::Grup::\"a\"", "unknown-entity-type"),
        ("principal is User", "unknown-entity-type"),
        ("principal in \"a\"", "type-mismatch"),
        ("A::f(1)", "unknown-provider"),
        ("resource.due has x", "unguarded-optional"),
        ("principal.role has x", "never-true"),
        ("resource.owner == resource", "never-equal"),
        ("resource in Library::Group::\"a\"", "never-true"),
        ("principal has agee && principal.agee > 3", "never-true"),
        ("1 == 2", "never-applies"),
        ("false", "never-applies"),
        ("1 == \"a\"", "never-equal"),
        (
            "false && principal is Library::Nobody",
            "unknown-entity-type",
        ),
        (
            "false && principal.role == Library::Role::\"raeder\"",
            "unknown-enum-value",
        ),
        ("false && A::f(1)", "unknown-provider"),
    ] {
        let policy = lending(condition);
        let said = diagnostics(&policy, &library());
        let found: Vec<&str> = said.iter().map(|diagnostic| diagnostic.code).collect();
        assert!(
            found.contains(&code),
            "{condition}: {found:?}\n{}",
            draw(&policy, &said)
        );
    }
}

#[test]
fn guards_reach_across_clauses() {
    says(
        "permit (principal is Library::User, action == Library::Action::\"read\", resource)\nwhen { principal has age }\nwhen { principal.age > 3 };",
        &[],
    );
    says(
        "permit (principal is Library::User, action == Library::Action::\"read\", resource)\nunless { principal has age }\nwhen { principal.age > 3 };",
        &["unguarded-optional"],
    );
}

#[test]
fn a_condition_is_typed_for_every_request_the_scope_admits() {
    // Robots have a serial, users an age; each is reached only where it exists.
    says(
        "permit (principal, action in Library::Action::\"Reading\", resource)\nwhen { principal is Library::Robot && principal.serial == 1 || principal is Library::User && principal.role == Library::Role::\"reader\" };",
        &[],
    );
    says(
        "permit (principal, action in Library::Action::\"Reading\", resource) when { principal.serial == 1 };",
        &["unknown-attribute"],
    );
    says(
        "permit (principal is Library::Robot, action in Library::Action::\"Reading\", resource) when { principal.serial == 1 };",
        &[],
    );
    says(
        "permit (principal, action, resource) when { action in Library::Action::\"Reading\" && context.count > 1 };",
        &[],
    );
    says(
        "permit (principal, action, resource) when { action in [Library::Action::\"lend\"] && context.count > 1 };",
        &["unknown-attribute"],
    );
}

#[test]
fn impossible_heads() {
    says(
        "permit (principal is Library::Robot, action == Library::Action::\"lend\", resource);",
        &["impossible-scope"],
    );
    says(
        "permit (principal == Library::Book::\"b\", action, resource);",
        &["impossible-scope"],
    );
    says(
        "permit (principal, action == Library::Action::\"Reading\", resource);",
        &["group-action"],
    );
    says(
        "permit (principal in Library::Group::\"a\", action, resource in Library::Shelf::\"s\");",
        &[],
    );
    let back = "when temporal { formerly within 1h Library::Action::\"read\"::request{} }";
    let group =
        format!("permit (principal, action == Library::Action::\"Reading\", resource) {back};");
    assert!(
        compile::check(
            &[source("p", &group)],
            None,
            &library(),
            &Options::default()
        )
        .is_err()
    );
    says(
        "permit (principal == ?principal, action, resource);",
        &["template-slot"],
    );
}

#[test]
fn one_annotation_of_a_name() {
    says(
        "@id(\"a\") @note @id(\"b\") permit (principal, action, resource);",
        &["duplicate-annotation"],
    );
}

#[test]
fn optional_attributes_offer_the_guard() {
    said!(in_box(
        r#"
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "git" && context.input.arg1 == "push" };
forbid (principal, action == Box::Action::"shell:spawn", resource)
unless { context.input.arg1 == "push" };
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "git" && (context.input.cwd == "~" || !(context.input.arg1 == "push")) };
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { if context.input.arg_count == 1 then context.input.arg1 == "push" else (if true then context.input.arg2 else "x") == "y" };
"#
    ));
}

#[test]
fn what_is_said_about_a_box_condition() {
    said!(in_box(
        r#"
forbid (principal, action == Box::Action::"fs:read", resource)
when { context.input.operation == Box::FsReadOperation::"raed_content" };
forbid (principal, action == Box::Action::"fs:read", resource)
when { context.input.operation == FsReadOperation::"read_content" };
forbid (principal, action == Box::Action::"fs:read", resource)
when { context.input.operation == Box::FsWriteOperation::"write_content" };
forbid (principal, action == Box::Action::"fs:read", resource)
when { context.input.operation == "read_content" };
forbid (principal, action == Box::Action::"fs:read", resource)
when { context.input has pth && context.input.path like "~/secret/*" };
permit (principal, action in [Box::Action::"fs:read", Box::Action::"shell:exec"], resource)
when { context.input.path like "~/project/*" };
permit (principal, action == Box::Action::"net:connect", resource)
when { context.input.port == "443" && ip(context.input.host).isLoopback() };
"#
    ));
}

#[test]
fn what_is_said_about_a_library_condition() {
    let policy = [
        "principal.getTag(\"vip\") == \"yes\"",
        "resource.hasTag(\"a\")",
        "principal.name.first == \"ann\"",
        "(if principal has age then 1 else \"a\") == 1",
        "[1, \"a\"].contains(1) && [].isEmpty()",
        "decimal(\"1.23456\") == resource.price && datetime(\"yesterday\") == datetime(\"2026-01-01\")",
        "resource in Library::Group::\"a\"",
        "principal.friends.contians(principal)",
        "Billing::Score(principal.name) > 3",
        "false",
    ]
    .map(lending)
    .concat();
    said!(screen(
        &format!(
            "{policy}permit (principal is Library::Robot, action == Library::Action::\"lend\", resource);\n\
             permit (principal, action == Library::Action::\"Reading\", resource);\n\
             permit (principal in ?principal, action, resource);\n\
             permit (principal is Library::Shelf, action, resource) when {{ principal is Library::Shelf }};\n\
             permit (principal, action == Library::Action::\"read\", resource) when {{ principal is Library::Shelf }};\n"
        ),
        &library()
    ));
}
