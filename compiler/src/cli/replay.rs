//! `dogwood replay`: what would these rules have decided?

use super::policy::{Set, remark_drawn, with_first_error};
use super::{Failure, Findings, Format, Outcome, PolicyArgs, input, print, print_json};
use clap::Args;
use dogwood_compiler::compile::Source;
use dogwood_compiler::diagnostic::printable;
use dogwood_compiler::event::Event;
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use dogwood_compiler::monitor::{self, Decision, Policy, RuleError};
use dogwood_compiler::trace::{self, TraceError};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Args)]
pub struct Replay {
    #[command(flatten)]
    policy: PolicyArgs,

    /// The events, one a line; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,

    /// Decide even where the rules do not fit their schemas.
    #[arg(long)]
    unchecked: bool,

    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl Replay {
    pub fn run(self) -> Result<Outcome, Failure> {
        self.policy.only_one_stdin(Some(&self.trace))?;
        let set = if self.unchecked {
            Set::parse(&self.policy)?
        } else {
            Set::check(&self.policy)?
        };
        let trace = input::read(&self.trace)?;
        let rules = match set.rules_or_reject(self.format)? {
            Ok(rules) => rules,
            Err(outcome) => return Ok(outcome),
        };
        let events = match read_trace(&trace, self.format)? {
            Ok(events) => events,
            Err(outcome) => return Ok(outcome),
        };
        let (policy, _) = set.compiled(rules);
        answer(&policy, &events, self.format)?;
        Ok(Outcome::Accepted)
    }
}

fn answer(policy: &Arc<Policy>, events: &[Event], format: Format) -> Result<(), Failure> {
    let decisions = monitor::replay(Arc::clone(policy), events);
    match format {
        Format::Human => {
            let lines = decisions
                .iter()
                .map(|(position, time, decision)| line(*position, *time, decision));
            print(&lines.collect::<String>())
        }
        Format::Json => {
            let verdicts: Vec<_> = decisions
                .iter()
                .map(|(position, time, decision)| {
                    let errors: Vec<String> = decision.errors.iter().map(error).collect();
                    json!({
                        "index": position,
                        "timestamp": time,
                        "verdict": if decision.allowed() { "allow" } else { "deny" },
                        "determining_rules": decision.rules,
                        "errors": errors,
                    })
                })
                .collect();
            print_json(&json!({ "verdicts": verdicts }))
        }
    }
}

pub(super) fn line(position: usize, time: i64, decision: &Decision) -> String {
    let verdict = if decision.allowed() { "ALLOW" } else { "DENY" };
    let mut out = format!("@{time} (time point {position}): {verdict}");
    if !decision.rules.is_empty() {
        let rules: Vec<String> = decision.rules.iter().map(usize::to_string).collect();
        out.push_str(&format!("  [rules: {}]", rules.join(", ")));
    }
    out.push('\n');
    for found in &decision.errors {
        out.push_str(&format!("    error: {}\n", printable(&error(found))));
    }
    out
}

pub(super) fn error(found: &RuleError) -> String {
    match found.rule {
        Some(rule) => format!("rule {rule}: {}", found.error),
        None => found.error.to_string(),
    }
}

/// The events of a trace, or the answer of a command that cannot go on without them.
pub(super) fn read_trace(
    trace: &Source,
    format: Format,
) -> Result<Result<Vec<Event>, Outcome>, Failure> {
    let (events, errors) = trace::parse(&trace.text);
    if errors.is_empty() {
        Ok(Ok(events))
    } else {
        reject(trace, &errors, format).map(Err)
    }
}

fn reject(trace: &Source, errors: &[TraceError], format: Format) -> Result<Outcome, Failure> {
    let found: Vec<Diagnostic> = errors
        .iter()
        .map(|error| {
            let at = place(&trace.text, error.line, error.column);
            Diagnostic::error("trace", Span::at(at), error.problem.to_string())
        })
        .collect();
    let texts = std::slice::from_ref(trace);
    let findings = Findings::new(&found, texts);
    match format {
        Format::Human => remark_drawn(&findings.drawn()),
        Format::Json => {
            let answer = json!({ "passed": false, "errors": findings.json() });
            print_json(&with_first_error(answer))?;
        }
    }
    Ok(Outcome::Rejected)
}

/// The byte at which a character of a line stands; both count from 1.
fn place(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let rest = text.get(start..).unwrap_or_default();
    let within = rest
        .char_indices()
        .nth(column.saturating_sub(1))
        .map_or(rest.len(), |(at, _)| at);
    start + within
}
