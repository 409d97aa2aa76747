//! The program as a user meets it: what it prints, where, and with which exit status.

#![allow(clippy::unwrap_used)]

mod cli {
    mod as_box;
    mod changes;
    mod commands;
    mod comparing;
    mod dialogue;
    mod explaining;
    mod network;
    mod surface;
    mod testing;
    mod traces;
    mod witnesses;
}

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An empty directory with no `box.toml` above it.
struct Place(tempfile::TempDir);

struct Answer {
    status: i32,
    out: String,
    err: String,
}

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    fn run(&self, args: &[&str]) -> Answer {
        self.run_with(args, "")
    }

    fn run_with(&self, args: &[&str], input: &str) -> Answer {
        let mut child = Command::new(env!("CARGO_BIN_EXE_dogwood"))
            .args(args)
            .current_dir(self.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that does not read its input closes it early.
        _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let output = child.wait_with_output().unwrap();
        Answer {
            status: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Answer {
    fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

const GOOD: &str =
    "@id(\"all\")\npermit (principal, action == Box::Action::\"shell:exec\", resource);\n";
const BAD: &str = "permit (principal, action == Box::Action::\"shell:spwn\", resource);\n";

#[test]
fn a_sound_policy_passes_and_the_schema_is_named() {
    let place = Place::new();
    place.file("policy.dw", GOOD);
    let answer = place.run(&["check", "policy.dw"]);
    assert_eq!((answer.status, answer.out.as_str()), (0, "OK: 1 rule\n"));
    assert_eq!(answer.err, "schema: built-in Box schema\n");
}

#[test]
fn a_broken_policy_is_drawn_and_rejected() {
    let place = Place::new();
    place.file("policy.dw", BAD);
    let answer = place.run(&["check", "policy.dw"]);
    assert_eq!(answer.status, 2);
    insta::assert_snapshot!(answer.out, @r#"
    error[unknown-action]: there is no action `shell:spwn`
      ┌─ policy.dw:1:43
      │
    1 │ permit (principal, action == Box::Action::"shell:spwn", resource);
      │                                           ^^^^^^^^^^^^
      │
      = help: did you mean `shell:spawn`?
      = fix: change to `shell:spawn`

    FAILED: 1 error, 0 warnings
    "#);
    assert_eq!(place.run(&["validate", "policy.dw"]).out, answer.out);
}

#[test]
fn json_has_the_findings_and_nothing_else_on_standard_output() {
    let place = Place::new();
    place.file("policy.dw", BAD);
    let answer = place.run(&["check", "policy.dw", "--format", "json"]);
    assert_eq!(answer.status, 2);
    let json = answer.json();
    assert_eq!(json["passed"], false);
    assert_eq!(json["schema"], "built-in Box schema");
    assert_eq!(json["errors"][0]["code"], "unknown-action");
    assert_eq!(json["errors"][0]["labels"][0]["line"], 1);
    assert_eq!(json["warnings"], serde_json::json!([]));

    place.file("policy.dw", GOOD);
    let answer = place.run(&["check", "policy.dw", "--format", "json"]);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    let json = answer.json();
    assert_eq!(json["passed_without_warnings"], true);
    assert_eq!(json["rules"], 1);
}

#[test]
fn standard_input_is_a_policy() {
    let place = Place::new();
    let answer = place.run_with(&["check", "-"], GOOD);
    assert_eq!((answer.status, answer.out.as_str()), (0, "OK: 1 rule\n"));
    let answer = place.run_with(&["check", "-"], BAD);
    assert_eq!(answer.status, 2);
    assert!(answer.out.contains("<stdin>:1:"), "{}", answer.out);
    let answer = place.run_with(&["check", "-", "-"], GOOD);
    assert_eq!(answer.status, 2);
    assert!(
        answer
            .err
            .contains("standard input (`-`) can be named only once"),
        "{}",
        answer.err
    );
}

#[test]
fn a_lint_is_a_warning_of_check_alone() {
    let place = Place::new();
    let read = "permit (principal, action == Box::Action::\"fs:read\", resource);\n";
    place.file("policy.dw", read);
    let answer = place.run(&["check", "policy.dw"]);
    assert_eq!(answer.status, 0);
    assert!(
        answer.out.contains("warning[unbounded-read]"),
        "{}",
        answer.out
    );
    assert!(
        answer.out.ends_with("OK: 1 rule, 1 warning\n"),
        "{}",
        answer.out
    );
    let denied = place.run(&["check", "--deny-warnings", "policy.dw"]);
    assert_eq!(denied.status, 2);
    let explained = place.run(&["explain", "policy.dw"]);
    assert!(
        !explained.err.contains("unbounded-read"),
        "{}",
        explained.err
    );

    place.file("policy.dw", format!("@allow(\"unbounded-read\")\n{read}"));
    let allowed = place.run(&["check", "--deny-warnings", "policy.dw"]);
    assert_eq!((allowed.status, allowed.out.as_str()), (0, "OK: 1 rule\n"));

    // The page shows how it is written instead.
    let page = place.run(&["explain-error", "unbounded-read"]);
    assert!(
        page.out.contains("Wrong:") && page.out.contains("Right:"),
        "{}",
        page.out
    );
}

#[test]
fn several_files_are_one_set() {
    let place = Place::new();
    place.file("a.dw", GOOD);
    let more = GOOD
        .replace("all", "more")
        .replace("shell:exec", "mcp:call");
    place.file("b.dw", &more);
    assert_eq!(place.run(&["check", "a.dw", "b.dw"]).out, "OK: 2 rules\n");
    let answer = place.run(&["explain", "a.dw", "b.dw"]);
    assert!(
        answer.out.contains("rule 1: more (b.dw:1)"),
        "{}",
        answer.out
    );
    place.file("b.dw", BAD);
    let answer = place.run(&["check", "a.dw", "b.dw"]);
    assert_eq!(answer.status, 2);
    assert!(answer.out.contains("b.dw:1:"), "{}", answer.out);
}

#[test]
fn the_nearest_box_toml_is_found_and_named() {
    let place = Place::new();
    let toml = place.file("project/box.toml", "name = \"demo\"\n");
    place.file("project/rules/deep/policy.dw", GOOD);
    let answer = place.run(&["check", "project/rules/deep/policy.dw"]);
    assert_eq!(answer.status, 0);
    let toml = toml.canonicalize().unwrap();
    assert_eq!(
        answer.err,
        format!("schema: Box schema (box.toml at {})\n", toml.display())
    );
}

#[test]
fn schemas_can_be_given() {
    let place = Place::new();
    place.file("depot.cedarschema", "namespace Depot {\n  entity Clerk, Bay;\n  action move appliesTo { principal: Clerk, resource: Bay, context: { input: { kg: Long } } };\n}\n");
    place.file("policy.dw", "permit (principal, action == Depot::Action::\"move\", resource) when { context.input.kg < 5 };\n");
    let answer = place.run(&["check", "policy.dw"]);
    assert_eq!(answer.status, 2, "unknown to the Box schema");
    let args = ["check", "policy.dw", "--policy-schema", "depot.cedarschema"];
    let answer = place.run(&args);
    assert_eq!((answer.status, answer.out.as_str()), (0, "OK: 1 rule\n"));
    assert_eq!(answer.err, "schema: depot.cedarschema\n");
    place.file(
        "depot.cedarschema",
        "namespace Depot {\n  entity Clerk in [Nobody];\n}\n",
    );
    let answer = place.run(&args);
    assert_eq!(answer.status, 2);
    assert!(
        answer.out.contains("depot.cedarschema:2:"),
        "{}",
        answer.out
    );
}

#[test]
fn a_missing_file_is_named_and_is_the_tools_failure() {
    let place = Place::new();
    for args in [
        &["check", "no-such.dw"][..],
        &["explain", "no-such.dw"],
        &["check-parse", "no-such.dw"],
        &["check", "-", "--macros", "no-such.dw"],
    ] {
        let answer = place.run_with(args, GOOD);
        assert_eq!(answer.status, 1, "{args:?}");
        assert_eq!(
            answer.err,
            "dogwood: error: cannot read no-such.dw: there is no such file\n"
        );
        assert_eq!(answer.out, "");
    }
}

#[test]
fn text_that_is_not_utf8_is_rejected_with_its_line() {
    let place = Place::new();
    place.file(
        "policy.dw",
        b"permit (principal, action, resource);\n// caf\xe9\n",
    );
    let answer = place.run(&["check", "policy.dw"]);
    assert_eq!(answer.status, 2);
    assert_eq!(
        answer.err,
        "dogwood: error: policy.dw:2: this is not UTF-8 text (at byte 44)\n"
    );
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_text() {
    let place = Place::new();
    place.file("policy.dw", format!("\u{feff}{GOOD}"));
    assert_eq!(place.run(&["check", "policy.dw"]).status, 0);
}

#[test]
fn warnings_pass_unless_denied() {
    let place = Place::new();
    place.file(
        "policy.dw",
        "permit (principal, action, resource) when { 1 == 2 };\n",
    );
    let answer = place.run(&["check", "policy.dw"]);
    assert_eq!(answer.status, 0);
    assert!(
        answer.out.ends_with("\nOK: 1 rule, 1 warning\n"),
        "{}",
        answer.out
    );
    let answer = place.run(&["check", "policy.dw", "--deny-warnings"]);
    assert_eq!(answer.status, 2);
    assert!(
        answer.out.ends_with("\nFAILED: 0 errors, 1 warning\n"),
        "{}",
        answer.out
    );
}

#[test]
fn check_parse_needs_no_schema() {
    let place = Place::new();
    place.file("policy.dw", BAD);
    let answer = place.run(&["check-parse", "policy.dw"]);
    assert_eq!(
        (answer.status, answer.out.as_str()),
        (0, "OK: parsed 1 rule\n")
    );
    place.file("policy.dw", "permit (principal;");
    assert_eq!(place.run(&["check-parse", "policy.dw"]).status, 2);
}

#[test]
fn explain_speaks_english_or_json() {
    let place = Place::new();
    place.file(
        "policy.dw",
        "@id(\"quiet\")\nforbid (principal, action == Box::Action::\"http:request\", resource)\nwhen temporal { formerly within 8h Box::Action::\"fs:read\"::response{ input.path: \"~/payroll.csv\" } };\n",
    );
    let answer = place.run(&["explain", "policy.dw"]);
    assert_eq!(answer.status, 0);
    insta::assert_snapshot!(answer.out, @"
    rule 0: quiet (policy.dw:1)
      Forbids `http:request` when in the last 8 hours there was an `fs:read` response of
      `~/payroll.csv`.

    No rule permits anything, so everything is denied.
    ");
    let json = place
        .run(&["explain", "policy.dw", "--format", "json"])
        .json();
    assert_eq!(json["rules"][0]["id"], "quiet");
    assert_eq!(json["rules"][0]["effect"], "forbid");
    assert!(
        json["rules"][0]["sentences"][0]
            .as_str()
            .unwrap()
            .starts_with("Forbids `http:request`")
    );

    place.file("policy.dw", BAD);
    let answer = place.run(&["explain", "policy.dw"]);
    assert_eq!((answer.status, answer.out.as_str()), (2, ""));
    assert!(
        answer.err.contains("error[unknown-action]"),
        "{}",
        answer.err
    );
}

const CAP: &str = "permit (principal, action, resource);
@id(\"cap\")
forbid (principal, action == Box::Action::\"mcp:call\", resource)
when temporal { (count for (t: Timepoint). where (formerly within 1m (Box::Action::\"mcp:call\"::request{} && tp(t)))) > 1 };
";

fn call(time: i64, kind: &str) -> String {
    let input = "input: { server: \"aws\", method: \"tools/call\" }";
    let scope = "scope(principal: Box::Agent::\"self\", resource: Box::Resource::\"unused\")";
    match kind {
        "request" => format!(
            "@{time} {scope} request_context({input}) Box::Action::\"mcp:call\"::request({input})\n"
        ),
        _ => format!("@{time} Box::Action::\"mcp:call\"::{kind}({input})\n"),
    }
}

#[test]
fn replay_decides_a_trace() {
    let place = Place::new();
    place.file("policy.dw", CAP);
    let events = [
        (10, "request"),
        (11, "response"),
        (20, "request"),
        (90, "request"),
    ];
    let trace: String = events
        .iter()
        .map(|(time, kind)| call(*time, kind))
        .collect();
    // A request without scope cannot be judged.
    let lost = "@91 Box::Action::\"mcp:call\"::request(input: { server: \"aws\", method: \"tools/call\" })\n";
    place.file("day.log", format!("{trace}\n{lost}"));
    let answer = place.run(&["replay", "policy.dw", "--trace", "day.log"]);
    assert_eq!(answer.status, 0, "{}", answer.out);
    insta::assert_snapshot!(answer.out, @"
    @10 (time point 0): ALLOW  [rules: 0]
    @20 (time point 2): DENY  [rules: 1]
    @90 (time point 3): ALLOW  [rules: 0]
    @91 (time point 4): DENY
        error: the request names no principal
    ");
    let json = place
        .run(&[
            "replay",
            "policy.dw",
            "--trace",
            "day.log",
            "--format",
            "json",
        ])
        .json();
    assert_eq!(
        json["verdicts"][1],
        serde_json::json!({
            "index": 2, "timestamp": 20, "verdict": "deny", "determining_rules": [1], "errors": [],
        })
    );
    let answer = place.run_with(&["replay", "policy.dw", "--trace", "-"], &trace);
    assert_eq!((answer.status, answer.out.lines().count()), (0, 3));
}

#[test]
fn replay_rejects_what_it_cannot_read() {
    let place = Place::new();
    place.file("policy.dw", CAP);
    place.file(
        "day.log",
        format!(
            "{}@12 nonsense\n{}",
            call(10, "request"),
            call(11, "what ever")
        ),
    );
    let answer = place.run(&["replay", "policy.dw", "--trace", "day.log"]);
    assert_eq!((answer.status, answer.out.as_str()), (2, ""));
    insta::assert_snapshot!(answer.err, @r#"
    schema: built-in Box schema
    error[trace]: expected `::`
      ┌─ day.log:2:13
      │
    2 │ @12 nonsense
      │             ^

    error[trace]: expected `(` and the logged record
      ┌─ day.log:3:35
      │
    3 │ @11 Box::Action::"mcp:call"::what ever(input: { server: "aws", method: "tools/call" })
      │                                   ^
    "#);
    let json = place
        .run(&[
            "replay",
            "policy.dw",
            "--trace",
            "day.log",
            "--format",
            "json",
        ])
        .json();
    assert_eq!(json["errors"][1]["labels"][0]["line"], 3);
    assert_eq!(
        place
            .run(&["replay", "policy.dw", "--trace", "no-such.log"])
            .status,
        1
    );
    assert_eq!(
        place.run_with(&["replay", "-", "--trace", "-"], CAP).status,
        2
    );
    place.file("policy.dw", BAD);
    let answer = place.run(&["replay", "policy.dw", "--trace", "day.log"]);
    assert!(
        answer.status == 2 && answer.err.contains("unknown-action"),
        "{}",
        answer.err
    );
}

#[test]
fn explain_says_why_an_event_was_denied() {
    let place = Place::new();
    place.file("policy.dw", CAP);
    let events = [
        (10, "request"),
        (11, "response"),
        (20, "request"),
        (90, "request"),
    ];
    let trace: String = events
        .iter()
        .map(|(time, kind)| call(*time, kind))
        .collect();
    place.file("day.log", &trace);
    let answer = place.run(&["explain", "policy.dw", "--trace", "day.log"]);
    assert_eq!(answer.status, 0);
    insta::assert_snapshot!(answer.out, @r#"
    @20 (time point 2): DENY  [rules: 1]
      forbidden by cap
      because: the number of `mcp:call` requests in the last minute, this one included, is 2; at most 1 is allowed
      oldest: `tools/call` on server `aws` at second 10, 10s ago; it leaves the window in 51s
      it rests on these events; without any one of them it would be another:
        @10 (time point 0): mcp:call::request{ input.server: "aws", input.method: "tools/call" }
      it would be allowed in 1m 01s if nothing else happens
    "#);
    let answer = place.run(&["explain", "policy.dw", "--trace", "day.log", "--at", "3"]);
    insta::assert_snapshot!(answer.out, @"
    @90 (time point 3): ALLOW  [rules: 0]
      permitted by policy.dw:1
    ");
    let json = place
        .run(&[
            "explain",
            "policy.dw",
            "--trace",
            "day.log",
            "--format",
            "json",
        ])
        .json();
    assert_eq!(
        (&json["index"], &json["rules"]),
        (&2.into(), &serde_json::json!(["cap"]))
    );

    let answer = place.run(&["explain", "policy.dw", "--trace", "day.log", "--at", "1"]);
    assert_eq!(answer.status, 2);
    assert_eq!(
        answer.err,
        "schema: built-in Box schema\ndogwood: error: event 1 of the trace is history only: nothing is decided at it\n"
    );
    let answer = place.run(&["explain", "policy.dw", "--trace", "day.log", "--at", "4"]);
    assert_eq!(answer.status, 2);
    place.file("day.log", call(10, "request"));
    let answer = place.run(&["explain", "policy.dw", "--trace", "day.log"]);
    assert_eq!(
        (answer.status, answer.out.as_str()),
        (0, "No request of this trace is denied.\n")
    );
}

#[test]
fn every_code_has_a_meaning() {
    let place = Place::new();
    let answer = place.run(&["explain-error", "unknown-action"]);
    assert_eq!(answer.status, 0);
    let meaning = "unknown-action: The action schema declares no such action.\n\n";
    assert!(answer.out.starts_with(meaning), "{}", answer.out);
    assert!(
        answer.out.contains("\nRight:\n\n    permit"),
        "{}",
        answer.out
    );
    let answer = place.run(&["explain-error", "unknown-acton"]);
    assert_eq!(answer.status, 2);
    assert_eq!(
        answer.err,
        "dogwood: error: there is no code `unknown-acton`; did you mean `unknown-action`?\n"
    );
    assert!(place.run(&["explain-error"]).out.lines().count() > 100);
}

#[test]
fn help_and_version() {
    let place = Place::new();
    assert_eq!(
        place.run(&["--version"]).out,
        format!("dogwood {}\n", env!("CARGO_PKG_VERSION"))
    );
    assert!(place.run(&["check", "--help"]).out.contains("Examples:"));
    assert_eq!(place.run(&[]).status, 2);
    assert_eq!(place.run(&["chekc"]).status, 2);
}
