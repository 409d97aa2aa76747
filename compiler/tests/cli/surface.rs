//! Scripts written for the reference program carry over: its commands, its options, what goes to which
//! output, and the exit status. What is held here was learnt by running it.

use crate::{Answer, Place};
use serde_json::Value;

const SCHEMA: &str = "namespace Depot {
  entity Clerk;
  entity Bay;
  action \"move\" appliesTo { principal: [Clerk], resource: [Bay], context: { input: { kg: Long } } };
}
";
const RULE: &str = "permit(principal, action == Depot::Action::\"move\", resource)
unless temporal { formerly within 1h Depot::Action::\"move\"::request{ input.kg: 3 } };
";
const EVENTS: &str = "decision event <A>::request { ...inputs(A) }\n";

fn place() -> Place {
    let place = Place::new();
    place.file("d.cedarschema", SCHEMA);
    place.file("e.dwschema", EVENTS);
    place.file("pr.json", "{ \"availableProviders\": {} }");
    place.file("m.dw", "def cedar same(?a) { ?a };");
    place.file("p.dw", RULE);
    place.file(
        "unknown.dw",
        RULE.replace("\"move\"::request", "\"lift\"::request"),
    );
    place.file("bad.dw", "permit(principal, action resource);");
    place.file("t.log", "@1 scope(principal: Depot::Clerk::\"a\", resource: Depot::Bay::\"b\") request_context(input: { kg: 3 }) Depot::Action::\"move\"::request(input: { kg: 3 }, callerPrincipal: Depot::Clerk::\"a\")\n@2 Depot::Action::\"move\"::response(input: { kg: 3 })\n");
    place.file(
        "tools.json",
        "[{ \"name\": \"ping\", \"inputSchema\": { \"type\": \"object\" } }]",
    );
    place
}

fn run(place: &Place, line: &str) -> Answer {
    place.run(&line.split(' ').collect::<Vec<_>>())
}

const ALL: &str =
    "--policy-schema d.cedarschema --event-schema e.dwschema --providers pr.json --macros m.dw";

#[test]
fn every_command_and_option() {
    let place = place();
    for line in [
        "format p.dw",
        "check-parse p.dw --event-schema e.dwschema --providers pr.json --macros m.dw",
        "check-parse unknown.dw --format human",
        &format!("validate p.dw {ALL}"),
        &format!("validate {ALL} --format json p.dw"),
        &format!("lower p.dw {ALL}"),
        &format!("lower p.dw {ALL} --emit cedar-policies"),
        &format!("lower p.dw {ALL} --emit cedar-schema"),
        &format!("lower p.dw {ALL} --emit cedar-json"),
        &format!("lower p.dw {ALL} --emit both --format json"),
        &format!("replay p.dw --trace t.log {ALL}"),
        &format!("replay p.dw --trace t.log {ALL} --format json"),
        &format!("explain p.dw {ALL} --format json"),
        "explain p.dw",
        "explain unknown.dw --event-schema e.dwschema --policy-schema d.cedarschema --format human",
        "schema action d.cedarschema --format json",
        "schema event e.dwschema --format json",
        "schema providers pr.json --format json",
        "schema mcp --manifest tools.json",
        "help",
        "help validate",
        "--version",
    ] {
        // Explained here are rules that fit their schema.
        let wanted = i32::from(line.starts_with("explain unknown")) * 2;
        let answer = run(&place, line);
        assert_eq!(
            answer.status, wanted,
            "{line}: {}{}",
            answer.out, answer.err
        );
        assert_eq!(answer.out.is_empty(), wanted == 2, "{line}");
    }
    let written = run(
        &place,
        "schema mcp --manifest tools.json --output o.cedarschema",
    );
    assert_eq!((written.status, written.out.as_str()), (0, ""));
    assert!(place.path().join("o.cedarschema").exists());
    for command in ["format", "check-parse", "explain"] {
        let answer = place.run_with(&[command, "-"], RULE);
        assert_eq!(answer.status, 0, "{command}: {}", answer.err);
    }
    for kind in ["action", "event", "providers"] {
        let text = match kind {
            "action" => SCHEMA,
            "event" => EVENTS,
            _ => "{ \"availableProviders\": {} }",
        };
        let answer = place.run_with(&["schema", kind, "-"], text);
        assert_eq!(answer.status, 0, "{kind}: {}", answer.out);
    }
}

#[test]
fn exit_status() {
    let place = place();
    let schema = "--policy-schema d.cedarschema";
    for (line, status) in [
        (format!("validate none.dw {schema}"), 1),
        (
            "validate p.dw --policy-schema none.cedarschema".to_owned(),
            1,
        ),
        (format!("replay p.dw {schema} --trace none.log"), 1),
        ("check-parse none.dw".to_owned(), 1),
        ("schema mcp --manifest none.json".to_owned(), 1),
        (format!("validate bad.dw {schema}"), 2),
        (format!("validate unknown.dw {schema}"), 2),
        ("check-parse bad.dw".to_owned(), 2),
        (format!("lower bad.dw {schema}"), 2),
        ("explain bad.dw".to_owned(), 2),
        (format!("replay bad.dw {schema} --trace t.log"), 2),
        (format!("replay p.dw {schema} --trace p.dw"), 2),
        (format!("replay p.dw {schema}"), 2),
        ("schema event bad.dw".to_owned(), 2),
        ("schema mcp --manifest bad.dw".to_owned(), 2),
        ("schema mcp".to_owned(), 2),
        ("nonsense".to_owned(), 2),
        // Whatever is decided.
        (format!("replay p.dw {schema} --trace t.log"), 0),
        (
            format!("replay unknown.dw {schema} --trace t.log --unchecked"),
            0,
        ),
    ] {
        let answer = run(&place, &line);
        assert_eq!(
            answer.status, status,
            "{line}: {}{}",
            answer.out, answer.err
        );
    }
}

/// What another program reads is never mixed with a problem: it goes to the other output.
#[test]
fn data_alone_goes_to_standard_output() {
    let place = place();
    let schema = "--policy-schema d.cedarschema";
    for line in [
        format!("lower bad.dw {schema}"),
        format!("lower unknown.dw {schema} --emit cedar-json"),
        "explain bad.dw".to_owned(),
        format!("replay bad.dw {schema} --trace t.log"),
        format!("replay p.dw {schema} --trace bad.dw"),
        "schema mcp --manifest bad.dw".to_owned(),
        "format bad.dw".to_owned(),
    ] {
        let answer = run(&place, &line);
        assert_eq!((answer.status, answer.out.as_str()), (2, ""), "{line}");
        assert!(answer.err.contains("error["), "{line}: {}", answer.err);
    }
    // With JSON everything is in the one answer.
    let lowered = run(&place, &format!("lower p.dw {schema} --format json"));
    assert_eq!(lowered.err, "");
    // Told apart only by a remark.
    let lowered = run(&place, &format!("lower p.dw {schema}"));
    assert!(lowered.err.contains("note: "), "{}", lowered.err);
}

fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object().unwrap();
    object.keys().map(String::as_str).collect()
}

#[test]
fn keys_of_json() {
    let place = place();
    let json = |line: &str| run(&place, line).json();
    let has = |value: &Value, wanted: &[&str]| {
        for key in wanted {
            assert!(keys(value).contains(key), "{key} in {value:#}");
        }
    };
    let schema = "--policy-schema d.cedarschema --format json";
    let verdict = ["passed", "passed_without_warnings", "errors", "warnings"];
    has(&json(&format!("validate p.dw {schema}")), &verdict);
    let rejected = json(&format!("validate unknown.dw {schema}"));
    has(&rejected, &verdict);
    let problem = ["severity", "code", "message", "labels"];
    has(&rejected["errors"][0], &problem);
    has(&rejected["errors"][0]["labels"][0], &["start", "len"]);
    // A file that cannot be read at all is one problem.
    for line in [
        format!("validate bad.dw {schema}"),
        "check-parse bad.dw --format json".to_owned(),
        format!("lower bad.dw {schema}"),
        format!("replay p.dw {schema} --trace bad.dw"),
        "schema action bad.dw --format json".to_owned(),
        "schema event bad.dw --format json".to_owned(),
        "schema providers bad.dw --format json".to_owned(),
    ] {
        let answer = json(&line);
        assert_eq!(answer["severity"], "error", "{line}");
        assert!(answer["message"].is_string(), "{line}");
        assert!(answer["spanned"].is_boolean(), "{line}: {answer:#}");
    }
    let parsed = json("check-parse p.dw --format json");
    assert_eq!(parsed["policy_count"], 1);
    has(
        &parsed["policies"][0],
        &[
            "temporal_count",
            "uses_temporal",
            "provider_invocations",
            "undeclared_providers",
        ],
    );
    let lowered = json(&format!("lower p.dw {schema} --emit cedar-policies"));
    for key in ["cedar_policies", "cedar_schema", "cedar_schema_json"] {
        assert!(lowered[key].is_string(), "{key}");
    }
    let inner = lowered["cedar_schema_json"].as_str().unwrap();
    assert!(serde_json::from_str::<Value>(inner).unwrap()["Depot"].is_object());
    assert_eq!(lowered["self_contained"], false);
    assert_eq!(
        lowered["temporal_fields"],
        serde_json::json!(["policy_0__temporal_0"])
    );
    assert_eq!(lowered["provider_fields"], serde_json::json!([]));
    assert_eq!(lowered["decision_kinds"], serde_json::json!(["request"]));
    let replayed = json(&format!("replay p.dw {schema} --trace t.log"));
    let verdict = &replayed["verdicts"][0];
    assert_eq!(
        keys(verdict),
        [
            "index",
            "timestamp",
            "verdict",
            "determining_rules",
            "errors"
        ]
    );
    assert_eq!(verdict["verdict"], "deny");
}
