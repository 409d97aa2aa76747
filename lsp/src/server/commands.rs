//! What is asked of this server alone: its commands, and the texts of what is built in.

use super::Server;
use crate::builtin;
use crate::feature::lens::TestRun;
use crate::snapshot::Snapshot;
use crate::uri;
use crate::worker::Job;
use dogwood_compiler::explain::explain;
use lsp_server::{ErrorCode, Request as Asked};
use lsp_types::{ExecuteCommandParams, TextDocumentIdentifier};
use serde_json::{Value, json};
use std::path::PathBuf;

pub const TEST: &str = "dogwood.test";
pub const EXPLAIN: &str = "dogwood.explain";
/// The text of what is built in.
pub const SOURCE: &str = "dogwood/source";

impl Server<'_> {
    pub(super) fn source(&mut self, asked: Asked) {
        let params: Result<TextDocumentIdentifier, _> = serde_json::from_value(asked.params);
        match params {
            Err(error) => self.fail(asked.id, ErrorCode::InvalidParams, error.to_string()),
            Ok(params) => match builtin::document(&uri::path(&params.uri.0)) {
                Some(document) => self.respond(asked.id, json!(document.text)),
                None => {
                    let said = format!("nothing built in has the address {}", params.uri.0);
                    self.fail(asked.id, ErrorCode::InvalidParams, said);
                }
            },
        }
    }

    /// Commands take the address of a document, and what to look at in it.
    pub(super) fn command(&mut self, asked: Asked) {
        let params: ExecuteCommandParams = match serde_json::from_value(asked.params) {
            Ok(params) => params,
            Err(error) => {
                return self.fail(asked.id, ErrorCode::InvalidParams, error.to_string());
            }
        };
        let arguments = params.arguments.unwrap_or_default();
        let address = arguments.first().and_then(Value::as_str).unwrap_or("");
        let path: PathBuf = uri::path(address);
        let Some(snapshot) = self.snapshot(&path) else {
            let said = format!("`{}` needs the address of a document", params.command);
            return self.fail(asked.id, ErrorCode::InvalidParams, said);
        };
        match params.command.as_str() {
            TEST => {
                let only = arguments.get(1).and_then(Value::as_str).map(str::to_owned);
                self.worker.ask(Job::Tests {
                    revision: self.revision_of(&path),
                    snapshot: Box::new(snapshot),
                    only,
                    request: asked.id,
                });
            }
            EXPLAIN => {
                let line = arguments.get(1).and_then(Value::as_u64);
                let text = explained(&snapshot, line);
                self.respond(asked.id, json!(text));
            }
            other => {
                let said = format!("there is no command `{other}`");
                self.fail(asked.id, ErrorCode::InvalidParams, said);
            }
        }
    }
}

/// The rules in plain English, as `dogwood explain` has them; of one line only the rule there.
fn explained(snapshot: &Snapshot, line: Option<u64>) -> String {
    let document = &snapshot.document;
    let name = document
        .path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let mut out = String::new();
    for (number, rule) in snapshot.rules().enumerate() {
        let first = document.lines.line(rule.span.start as usize);
        let last = document.lines.line(rule.span.end as usize);
        let there = |line: u64| usize::try_from(line).is_ok_and(|at| (first..=last).contains(&at));
        if line.is_some_and(|line| !there(line)) {
            continue;
        }
        let Some(expanded) = snapshot.expanded(rule) else {
            continue;
        };
        let place = format!("{name}:{}", first + 1);
        let explanation = explain(&expanded, number, place, &snapshot.setup.service);
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&explanation.to_string());
    }
    out
}

/// The answer to [`TEST`].
pub(super) fn test_summary(runs: &[TestRun]) -> Value {
    let all: usize = runs.iter().map(|run| run.outcomes.len()).sum();
    let failed: usize = runs.iter().map(TestRun::failed).sum();
    let failures: Vec<Value> = runs
        .iter()
        .flat_map(|run| {
            let outcomes = run.outcomes.iter().filter_map(|outcome| {
                let failure = outcome.failure.as_ref()?;
                Some(json!({
                    "file": uri::of(&run.path),
                    "test": outcome.name,
                    "at": failure.at,
                    "message": failure.mismatch.to_string(),
                    "why": failure.why,
                }))
            });
            let problem = run
                .problem
                .iter()
                .map(|problem| json!({ "file": uri::of(&run.path), "message": problem }));
            outcomes.chain(problem).collect::<Vec<_>>()
        })
        .collect();
    json!({ "tests": all, "passed": all - failed, "failed": failed, "failures": failures })
}
