//! Code lenses, and the tests and traces behind them.

use crate::drawing::drawn;
use crate::workspace::open;
use dogwood_compiler::grammar::Span;
use dogwood_lsp::feature::lens::{self, Slow};
use dogwood_lsp::snapshot::Snapshot;

const POLICY: &str = r#"@id("files")
permit (principal, action == Box::Action::"fs:read", resource);
@id("keys")
forbid (principal, action == Box::Action::"fs:read", resource)
when { context.input.path like "*.key" };
"#;

const TESTS: &str = r#"[[test]]
name = "reads"
events = [{ action = "fs:read", input = { path = "${path}" } }]
cases = [
  { path = "/a", expect = "allow" },
  { path = "/a.key", expect = "deny", by = "keys" },
]

[[test]]
name = "wrong"
events = [{ action = "fs:read", input = { path = "/b.key" }, expect = "allow" }]
"#;

fn shown(snapshot: &Snapshot, slow: &Slow) -> String {
    let notes: Vec<(Span, String)> = lens::lenses(snapshot, slow)
        .into_iter()
        .map(|lens| {
            let runs = lens.runs.map_or(String::new(), |run| {
                format!(" → {} {}", run.path.display(), run.test.unwrap_or_default())
            });
            (lens.span, format!("[{}]{runs}", lens.title))
        })
        .collect();
    drawn(snapshot.text(), &notes)
}

#[test]
fn tests_and_their_results() {
    let files = [("policy.dw", POLICY), ("policy.dwtest.toml", TESTS)];
    let (policy, _) = open(&files);
    let (tests, _) = open(&[files[1], files[0]]);
    let before = shown(&tests, &Slow::default());
    let slow = Slow {
        tests: Some(lens::run(&tests, None)),
        ..Slow::default()
    };
    insta::assert_snapshot!(format!(
        "{before}\n{}\n{}",
        shown(&tests, &slow),
        shown(&policy, &slow)
    ));
}

#[test]
fn one_test_alone() {
    let (tests, _) = open(&[("policy.dwtest.toml", TESTS), ("policy.dw", POLICY)]);
    let names: Vec<String> = lens::run(&tests, Some("reads"))
        .into_iter()
        .flat_map(|run| run.outcomes)
        .map(|outcome| format!("{} {}", outcome.name, outcome.failure.is_none()))
        .collect();
    insta::assert_snapshot!(names.join("\n"), @r"
    reads (path = /a) true
    reads (path = /a.key) true
    ");
}

#[test]
fn verdicts_of_the_trace_beside_a_policy() {
    let mut trace = String::new();
    for (at, path) in ["/a", "/b", "/c.key"].iter().enumerate() {
        let input =
            format!("{{ path: {path:?}, operation: Box::FsReadOperation::\"read_content\" }}");
        trace.push_str(&format!(
            "@{at} scope(principal: Box::Agent::\"self\", resource: Box::Resource::\"unused\") request_context(input: {input}) Box::Action::\"fs:read\"::request(input: {input})\n"
        ));
    }
    let (policy, _) = open(&[
        ("policy.dw", POLICY),
        ("other.log", "no trace"),
        ("policy.trace", &trace),
    ]);
    let slow = Slow {
        verdicts: lens::verdicts(&policy),
        ..Slow::default()
    };
    insta::assert_snapshot!(shown(&policy, &slow));
}
