//! Runs a case: every event in order, each decision against what was expected of it.

use super::coverage::Coverage;
use super::{Case, Expected, Step, time};
use crate::event::Event;
use crate::explain::{NamedRule, Witness, why_after};
use crate::grammar::Span;
use crate::monitor::{Config, Decision, Monitor, Policy, Verdict};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How one case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseOutcome {
    pub name: String,
    pub span: Span,
    /// Of the events that were decided.
    pub decisions: usize,
    pub failure: Option<Failure>,
}

/// The first decision that was not as expected; nothing after it was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The expectation, or the event.
    pub span: Span,
    /// `event 3, at +5m: shell:spawn of git push`.
    pub at: String,
    pub mismatch: Mismatch,
    /// Why it was decided so, a line each.
    pub why: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    Verdict {
        wanted: Verdict,
        /// What decided, or nothing where no rule permits.
        by: Vec<String>,
    },
    Rules {
        verdict: Verdict,
        wanted: Vec<String>,
        by: Vec<String>,
    },
    Says {
        wanted: String,
    },
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let by = |by: &[String], none: &str| match by {
            [] => none.to_owned(),
            names => format!("by {}", names.join(", ")),
        };
        match self {
            Mismatch::Verdict {
                wanted: Verdict::Allow,
                by: rules,
            } => write!(
                f,
                "expected allow, but it is denied {}",
                by(rules, "because no rule permits it")
            ),
            Mismatch::Verdict {
                wanted: Verdict::Deny,
                by: rules,
            } => write!(f, "expected deny, but it is allowed {}", by(rules, "")),
            Mismatch::Rules {
                verdict,
                wanted,
                by: rules,
            } => {
                let verdict = match verdict {
                    Verdict::Allow => "allowed",
                    Verdict::Deny => "denied",
                };
                write!(
                    f,
                    "{verdict} as expected, but {} and not {}",
                    by(rules, "by no rule"),
                    by(wanted, "by no rule")
                )
            }
            Mismatch::Says { wanted } => {
                write!(
                    f,
                    "denied as expected, but the explanation does not say {wanted:?}"
                )
            }
        }
    }
}

/// Runs one case from an empty history.
pub fn run(
    policy: &Arc<Policy>,
    rules: &[NamedRule],
    case: &Case,
    mut coverage: Option<&mut Coverage>,
) -> CaseOutcome {
    // Steps are in order of time.
    let mut monitor = Monitor::new(
        Arc::clone(policy),
        Config {
            explained: true,
            ..Config::default()
        },
    );
    if let Some(coverage) = coverage.as_deref_mut() {
        coverage.begin();
    }
    let mut outcome = CaseOutcome {
        name: case.name.clone(),
        span: case.span,
        decisions: 0,
        failure: None,
    };
    // To say what is nearest to what was missing.
    let mut past = Vec::new();
    let start = case.steps.first().map_or(0, |step| step.event.time);
    for (number, step) in case.steps.iter().enumerate() {
        for round in 0..step.times {
            let later = step.every.saturating_mul(i64::from(round));
            let event = shifted(&step.event, later, round);
            if let Some(coverage) = coverage.as_deref_mut() {
                coverage.step(&event);
            }
            let Ok(decision) = monitor.step(&event) else {
                continue;
            };
            let mut allowed = false;
            if let Some(decision) = decision {
                outcome.decisions += 1;
                allowed = decision.allowed();
                // Of a repeated event, the last is the one that is expected to be so, and all before it where
                // it should be allowed.
                let last = round + 1 == step.times;
                let judged = step
                    .expected
                    .as_ref()
                    .filter(|expected| last || expected.verdict == Verdict::Allow);
                if let Some(expected) = judged
                    && let Some((mismatch, why)) =
                        judge(expected, rules, &monitor, &past, &event, &decision)
                {
                    outcome.failure = Some(Failure {
                        span: expected.span,
                        at: place(number, step, round, event.time - start),
                        mismatch,
                        why,
                    });
                    return outcome;
                }
            }
            past.push(event);
            if let (true, Some(response)) = (allowed, &step.response) {
                let response = shifted(response, later, round);
                if let Some(coverage) = coverage.as_deref_mut() {
                    coverage.step(&response);
                }
                // Never late, and nothing is decided at it.
                _ = monitor.step(&response);
                past.push(response);
            }
        }
    }
    outcome
}

fn shifted(event: &Event, later: i64, round: u32) -> Event {
    let mut event = event.clone();
    event.time = event.time.saturating_add(later);
    // Two requests do not have one name.
    if round > 0
        && let Some(crate::value::Value::String(id)) = event.logged.get_mut("requestId")
    {
        *id = smol_str::SmolStr::new(format!("{id}.{round}"));
    }
    event
}

fn place(number: usize, step: &Step, round: u32, after: i64) -> String {
    let which = match step.times {
        1 => String::new(),
        times => format!(" ({} of {times})", round + 1),
    };
    format!(
        "event {}{which}, at +{}: {}",
        number + 1,
        time::text(after),
        step.title
    )
}

fn judge(
    expected: &Expected,
    rules: &[NamedRule],
    monitor: &Monitor,
    past: &[Event],
    event: &Event,
    decision: &Decision,
) -> Option<(Mismatch, Vec<String>)> {
    let by: Vec<String> = decision
        .rules
        .iter()
        .filter_map(|rule| rules.get(*rule))
        .map(|rule| rule.name.clone())
        .collect();
    let said = || -> Vec<String> {
        let witnesses = why_after(rules, monitor, past, event, decision);
        let mut lines: Vec<String> = witnesses.iter().map(Witness::to_string).collect();
        lines.extend(decision.errors.iter().map(|error| match error.rule {
            Some(rule) => {
                let name = rules.get(rule).map_or("", |rule| rule.name.as_str());
                format!("{name} cannot be evaluated: {}", error.error)
            }
            None => error.error.to_string(),
        }));
        lines
    };
    if decision.verdict != expected.verdict {
        let wanted = expected.verdict;
        return Some((Mismatch::Verdict { wanted, by }, said()));
    }
    if let Some(wanted) = &expected.by {
        let found: BTreeSet<&String> = by.iter().collect();
        if found != wanted.iter().collect() {
            let mismatch = Mismatch::Rules {
                verdict: decision.verdict,
                wanted: wanted.clone(),
                by,
            };
            return Some((mismatch, said()));
        }
    }
    if let Some(wanted) = &expected.says {
        let lines = said();
        if !lines.join("\n").contains(wanted.as_str()) {
            let wanted = wanted.clone();
            return Some((Mismatch::Says { wanted }, lines));
        }
    }
    None
}
