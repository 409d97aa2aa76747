//! Why one event of a trace was decided so: what decided, on which events it rests, and what would turn it.

use super::super::Failure;
use super::super::replay::{Line, error};
use dogwood_compiler::compile::CheckedRule;
use dogwood_compiler::diagnostic::printable;
use dogwood_compiler::event::Event;
use dogwood_compiler::explain::{
    Cause, Change, NamedRule, Witness, cause, changes, describe, spoken_wait, why_after,
};
use dogwood_compiler::monitor::{self, Config, Decision, Monitor, Policy};
use dogwood_compiler::value::Value;
use serde_json::{Value as Json, json};
use std::fmt::Write;
use std::sync::Arc;

/// A decision, examined.
pub struct Verdict<'t> {
    pub at: usize,
    pub event: &'t Event,
    pub decision: Decision,
    /// Names of the rules that determined it.
    pub rules: Vec<String>,
    pub why: Vec<Witness>,
    pub cause: Option<Cause>,
    pub changes: Vec<Change>,
    events: &'t [Event],
}

/// At most so many events of a cause are listed.
const LISTED: usize = 12;

impl<'t> Verdict<'t> {
    /// Examines the decision at a position; nothing where nothing is decided.
    pub fn at(
        policy: &Arc<Policy>,
        rules: &[CheckedRule],
        named: &[NamedRule],
        events: &'t [Event],
        at: usize,
    ) -> Option<Verdict<'t>> {
        // Never late: the lateness is that of this very trace.
        let lateness = monitor::lateness(events);
        let mut monitor = Monitor::new(
            Arc::clone(policy),
            Config {
                lateness,
                explained: true,
            },
        );
        let mut decided = None;
        for event in events.get(..=at)? {
            decided = monitor.step(event).ok().flatten();
        }
        let (event, decision) = (events.get(at)?, decided?);
        let changes = if decision.allowed() {
            Vec::new()
        } else {
            changes(policy, rules, events.get(..=at)?)
        };
        Some(Verdict {
            at,
            event,
            rules: decision
                .rules
                .iter()
                .filter_map(|rule| named.get(*rule))
                .map(|rule| rule.name.clone())
                .collect(),
            why: why_after(named, &monitor, events.get(..at)?, event, &decision),
            cause: cause(policy, events, at),
            changes,
            decision,
            events,
        })
    }

    /// The position of the last denial.
    pub fn last_denial(policy: &Arc<Policy>, events: &[Event]) -> Option<usize> {
        let decisions = monitor::replay(Arc::clone(policy), events);
        let mut denials = decisions
            .iter()
            .rev()
            .filter(|(_, _, decision)| !decision.allowed());
        denials.next().map(|(at, ..)| *at)
    }

    pub fn text(&self) -> String {
        let line = Line {
            position: self.at,
            time: self.event.time,
            decision: &self.decision,
        };
        let mut out = line.to_string();
        if !self.rules.is_empty() {
            let by = if self.decision.allowed() {
                "permitted"
            } else {
                "forbidden"
            };
            _ = writeln!(out, "  {by} by {}", printable(&self.rules.join(", ")));
        }
        for line in self.reasons() {
            _ = writeln!(out, "  {}", printable(&line));
        }
        if let Some(cause) = self.cause.as_ref().filter(|cause| !cause.events.is_empty()) {
            let which = if cause.minimal {
                "it rests on these events; without any one of them it would be another:"
            } else {
                "it rests on these events, or on some of them:"
            };
            _ = writeln!(out, "  {which}");
            for at in cause.events.iter().take(LISTED) {
                _ = writeln!(out, "    {}", printable(&self.named(*at)));
            }
            if cause.events.len() > LISTED {
                _ = writeln!(out, "    and {} more", cause.events.len() - LISTED);
            }
        }
        for line in self.turns() {
            _ = writeln!(out, "  {}", printable(&line));
        }
        out
    }

    /// `@1000 (time point 3): shell:spawn::response{ … }`.
    fn named(&self, at: usize) -> String {
        match self.events.get(at) {
            Some(event) => format!("@{} (time point {at}): {}", event.time, describe(event)),
            None => String::new(),
        }
    }

    /// The reasons, without those said elsewhere: errors stand above, waiting below.
    pub fn reasons(&self) -> Vec<String> {
        let said = self.why.iter().filter(|witness| {
            !matches!(witness, Witness::Broken { .. } | Witness::AllowedIn { .. })
        });
        said.map(Witness::to_string).collect()
    }

    /// What would turn a denial, a sentence each.
    pub fn turns(&self) -> Vec<String> {
        self.changes
            .iter()
            .map(|change| match change {
                Change::Later(seconds) => format!(
                    "it would be allowed in {} if nothing else happens",
                    spoken_wait(*seconds)
                ),
                Change::After(event) => {
                    format!("it would be allowed after one {}", describe(event))
                }
                Change::With { path, value } => format!(
                    "it would be allowed if `{}` were {}",
                    path.join("."),
                    shown(value)
                ),
                Change::Unlike { path, found, .. } => format!(
                    "it would be allowed if `{}` were not {}",
                    path.join("."),
                    shown(found)
                ),
            })
            .collect()
    }

    pub fn json(&self) -> Json {
        let errors: Vec<String> = self.decision.errors.iter().map(error).collect();
        let why: Vec<String> = self.why.iter().map(Witness::to_string).collect();
        let cause = self.cause.as_ref().map(|cause| {
            let events: Vec<Json> = cause
                .events
                .iter()
                .filter_map(|at| Some((at, self.events.get(*at)?)))
                .map(|(at, event)| json!({ "index": at, "timestamp": event.time, "event": describe(event) }))
                .collect();
            json!({ "events": events, "minimal": cause.minimal })
        });
        json!({
            "index": self.at,
            "timestamp": self.event.time,
            "verdict": if self.decision.allowed() { "allow" } else { "deny" },
            "determining_rules": self.decision.rules,
            "rules": self.rules,
            "errors": errors,
            "why": why,
            "rests_on": cause,
            "would_be_allowed": self.turns(),
        })
    }

    pub fn markdown(&self) -> String {
        let verdict = if self.decision.allowed() {
            "allowed"
        } else {
            "denied"
        };
        let mut out = format!(
            "## Time point {}, @{}: {verdict}\n\n`{}`\n\n",
            self.at,
            self.event.time,
            describe(self.event).replace('`', "'")
        );
        if !self.rules.is_empty() {
            let rules: Vec<String> = self.rules.iter().map(|rule| format!("`{rule}`")).collect();
            _ = writeln!(out, "Decided by {}.\n", rules.join(", "));
        }
        for line in self.reasons().iter().chain(&self.turns()) {
            _ = writeln!(out, "- {line}");
        }
        if let Some(cause) = self.cause.as_ref().filter(|cause| !cause.events.is_empty()) {
            out.push_str("\nIt rests on\n\n");
            for at in &cause.events {
                _ = writeln!(out, "1. {}", self.named(*at));
            }
        }
        out
    }
}

/// Which decision was asked for: a position, or the last denial.
pub fn wanted(policy: &Arc<Policy>, events: &[Event], at: Option<usize>) -> Option<usize> {
    at.or_else(|| Verdict::last_denial(policy, events))
}

/// Nothing is decided there, or nothing is there.
pub fn none_at(at: usize, events: &[Event]) -> Failure {
    Failure::NoDecision {
        at,
        events: events.len(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        Value::Int(n) => n.to_string(),
        Value::Bool(yes) => yes.to_string(),
        Value::Decimal(text) => text.to_string(),
        Value::Entity(uid) => uid.to_string(),
        Value::Null => "null".to_owned(),
        Value::Array(_) => "a set".to_owned(),
        Value::Object(_) => "a record".to_owned(),
    }
}
