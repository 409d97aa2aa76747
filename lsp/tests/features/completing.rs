//! Completion and signatures.

use crate::workspace::{CURSOR, DEPOT, DEPOT_TESTS, PROVIDERS, depot, open, policy};
use dogwood_compiler::compile::{Options, Source, check};
use dogwood_compiler::grammar::diagnostic::Severity;
use dogwood_compiler::schema::box_service;
use dogwood_lsp::feature::completion::{IDIOMS, completion, plain};
use dogwood_lsp::feature::signature;
use dogwood_lsp::snapshot::Snapshot;

/// The line with the cursor, and what could stand there.
fn offered((snapshot, cursors): (Snapshot, Vec<usize>)) -> String {
    let mut out = String::new();
    for cursor in cursors {
        let lines = &snapshot.document.lines;
        let line = lines.line(cursor);
        let mut shown = lines.text(snapshot.text(), line).to_owned();
        shown.insert(cursor - lines.start(snapshot.text(), line), CURSOR);
        out.push_str(&format!("│ {shown}\n"));
        for item in completion(&snapshot, cursor) {
            let replaced = item.replace.text(snapshot.text());
            let line = format!(
                "    {} — {:?} {} [{}]",
                item.label, item.kind, item.detail, replaced
            );
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
    out
}

#[test]
fn between_rules_and_clauses() {
    insta::assert_snapshot!(offered(policy(
        "‸\n@‸id(\"a\") permit (principal, action, resource) ‸ when ‸ { true };\n"
    )));
}

#[test]
fn in_the_head_of_a_rule() {
    insta::assert_snapshot!(offered(policy(
        "permit (‸principal i‸s ‸, action == ‸, resource);\npermit (principal, action in [Box::Act‸ion::\"fs:‸\"], resource);\n"
    )));
}

#[test]
fn fields_of_this_action_and_enum_values() {
    insta::assert_snapshot!(offered(depot(
        "permit (principal, action == Depot::Action::\"move\", resource) when { context.‸input.‸crate == \"a\" && context.input has ‸ && context.input.speed == ‸ && principal.‸ };\n"
    )));
}

#[test]
fn in_a_predicate() {
    insta::assert_snapshot!(offered(depot(
        "permit (principal, action == Depot::Action::\"move\", resource) when temporal { exists (c: ‸String). (formerly within ‸ Depot::Action::\"move\"::‸request{ input.crate: ‸c, ‸input.‸ }) };\n"
    )));
}

#[test]
fn in_a_condition_and_an_expression() {
    insta::assert_snapshot!(offered(policy(
        "def temporal mine(?w) { ‸formerly within ‸?w };\npermit (principal, action == Box::Action::\"shell:spawn\", resource) when { ‸ } when temporal { exists (x: String). (‸) };\n"
    )));
}

/// A policy of the depot that asks the providers above.
fn asking(text: &str) -> (Snapshot, Vec<usize>) {
    let tests = format!("providers = \"providers.json\"\n{DEPOT_TESTS}");
    open(&[
        ("policy.dw", text),
        ("depot.cedarschema", DEPOT),
        ("providers.json", PROVIDERS),
        ("policy.dwtest.toml", &tests),
    ])
}

#[test]
fn information_providers() {
    insta::assert_snapshot!(offered(asking(
        r#"permit (principal, action == Depot::Action::"move", resource)
when { Scan::‸Crate(‸context.input.crate).‸level == ‸ }
when { Scale::Load(principal.rank, ‸).‸plus(‸3).‸words().‸contains(Scan::Level::‸) }
when { Scan::Level::"‸" == Scan::Crate("a").level }
when temporal { formerly within 1h Scan::‸ };
"#
    )));
}

/// What is being typed is no expression yet.
#[test]
fn information_providers_in_a_broken_rule() {
    insta::assert_snapshot!(offered(asking(
        "permit (principal, action == Depot::Action::\"move\", resource) when { Scale::Load(‸ };\npermit (principal, action, resource) when { Scan::Crate(\"(\").‸ };\npermit (principal, action, resource) when { ).‸ };\n"
    )));
}

#[test]
fn in_schemas_and_tests() {
    let actions = offered(open(&[(
        "a.cedarschema",
        "‸namespace N {\n  entity Clerk in [‸];\n  type T = { a: ‸ };\n  action m appliesTo { ‸ };\n}\n",
    )]));
    let events = offered(open(&[(
        "a.dwschema",
        "‸event <E>::request { ‸...‸, x: ‸ }\n",
    )]));
    let tests = offered(open(&[
        (
            "policy.dwtest.toml",
            "‸\n[[test]]\n‸\nevents = [\n  { ‸ },\n  { action = \"‸\", expect = ‸, by = [\"a\", \"‸\"] },\n]\n",
        ),
        (
            "policy.dw",
            "@id(\"files\") permit (principal, action == Box::Action::\"fs:read\", resource);\n",
        ),
    ]));
    insta::assert_snapshot!(format!("{actions}{events}{tests}"));
}

/// What a test gives an action has the fields that the action takes.
#[test]
fn the_fields_that_a_test_gives() {
    insta::assert_snapshot!(offered(open(&[
        (
            "policy.dwtest.toml",
            "policy-schema = \"depot.cedarschema\"\n[[test]]\nevents = [\n  { action = \"Depot::move\", input = { ‸crate = \"{\", speed = \"‸\" }, ‸ },\n  { input = { ‸ }, action = \"Depot::weigh\" },\n  { action = \"Depot::move\", output = { ok = ‸",
        ),
        ("depot.cedarschema", DEPOT),
        ("policy.dw", ""),
    ])));
}

/// A rule is seldom whole while it is typed.
#[test]
fn in_a_rule_that_is_being_written() {
    let lines = [
        "permit (principal, action == Depot::Action::\"move\", ‸",
        "permit (principal, action == Depot::Action::\"weigh\", resource)\nwhen { context.‸",
        "permit (principal, action == Depot::Action::\"move\", resource)\nwhen { context.input.speed == ‸",
        "permit (principal, action == Depot::Action::\"move\", resource)\nwhen { context.input.kg ‸",
        "permit (principal, action == Depot::Action::\"move\", resource)\nwhen { decimal(\"1.0\").‸",
        "permit (principal, action == Depot::Action::\"move\", resource)\nwhen temporal { count_within(‸",
        "@id(\"a\")\n‸",
    ];
    insta::assert_snapshot!(lines.map(|line| offered(depot(line))).join("\n"));
}

#[test]
fn names_in_action_schemas() {
    insta::assert_snapshot!(offered(open(&[(
        "a.cedarschema",
        r#"namespace Crew {
  entity Clerk;
  type Badge = String;
  action "any";
}
namespace Depot {
  entity Bay ‸in [‸] = { ‸name: ‸Crew::Badge };
  entity Mode enum [‸];
  type Kilo = Long;
  action "all", "some" ‸;
  action "move" in ‸["all", ‸] appliesTo {
    principal: ‸[‸],
    context: ‸{},
    ‸
  };
  ‸
}
"#
    )])));
}

#[test]
fn nothing_in_a_comment() {
    let (snapshot, cursors) = policy("// context.‸\n");
    assert!(completion(&snapshot, cursors[0]).is_empty());
}

/// An idiom that is wrong as it comes would teach the wrong thing.
#[test]
fn every_idiom_passes_the_check() {
    for idiom in IDIOMS {
        // What a prohibition forbids, something has to permit.
        let text = format!(
            "@allow(\"temporal-bypassed\") permit (principal, action, resource) when {{ context has input && true }};\n{}\n",
            plain(idiom.body)
        );
        let source = Source {
            name: "policy.dw".to_owned(),
            text,
        };
        let checked = check(&[source], None, &box_service(), &Options::default());
        let errors: Vec<_> = checked
            .err()
            .unwrap_or_default()
            .into_iter()
            .filter(|found| found.severity == Severity::Error)
            .collect();
        assert!(errors.is_empty(), "{}: {errors:?}", idiom.label);
    }
}

#[test]
fn signatures() {
    let (snapshot, cursors) = policy(
        "permit (principal, action == Box::Action::\"http:request\", resource) when temporal { sum_within(‸n, 1‸h, Box::Action::\"http:request\"::request{ input.body_bytes: ‸n }) < 3 } when { [\"a\"].contains(‸context.input.host) && ip(\"‸\").isIpv4() };\n",
    );
    let mut out = String::new();
    for cursor in cursors {
        match signature::signature(&snapshot, cursor) {
            None => out.push_str("nothing\n"),
            Some(found) => {
                let active = found
                    .parameters
                    .get(found.active)
                    .map_or("", |range| &found.label[range.clone()]);
                out.push_str(&format!(
                    "{}  ▸ {active}\n    {}\n",
                    found.label,
                    found.about.unwrap_or_default().replace('\n', " ")
                ));
            }
        }
    }
    insta::assert_snapshot!(out);
}
