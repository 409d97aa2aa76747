//! `dogwood explain`: what each rule says in plain English, or why one event of a trace was decided so.

use super::policy::Set;
use super::replay::{Line, error, read_trace};
use super::{Failure, Format, Outcome, PolicyArgs, input, print, print_json};
use clap::{Args, ValueEnum};
use dogwood_compiler::compile::CheckedRule;
use dogwood_compiler::diagnostic::printable;
use dogwood_compiler::event::Event;
use dogwood_compiler::explain::graph::Graph;
use dogwood_compiler::explain::{NamedRule, Witness, cost, explain, why};
use dogwood_compiler::monitor::{self, Config, Decision, Monitor};
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
pub struct Explain {
    #[command(flatten)]
    policy: PolicyArgs,

    /// Explain a verdict on an event of this trace instead.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Say what each rule holds of the past, and what an event and a decision cost.
    #[arg(long, conflicts_with_all = ["trace", "graph"])]
    cost: bool,

    /// Draw how events reach the rules, for Graphviz (dot) or Mermaid.
    #[arg(long, value_name = "LANGUAGE", conflicts_with = "trace",
        num_args = 0..=1, default_missing_value = "dot")]
    graph: Option<Drawn>,

    /// The event's position in the trace, from 0; without it, the last denial.
    #[arg(long, value_name = "N", requires = "trace")]
    at: Option<usize>,

    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Drawn {
    Dot,
    Mermaid,
}

impl Explain {
    pub fn run(self) -> Result<Outcome, Failure> {
        self.policy.only_one_stdin(self.trace.as_deref())?;
        let set = Set::check(&self.policy)?;
        let trace = self.trace.as_deref().map(input::read).transpose()?;
        let rules = match set.rules_or_reject(self.format)? {
            Ok(rules) => rules,
            Err(outcome) => return Ok(outcome),
        };
        if self.cost {
            return self.costs(&set, rules);
        }
        if let Some(language) = self.graph {
            return self.draw(&set, rules, language);
        }
        let Some(trace) = trace else {
            return self.rules(&set, rules);
        };
        match read_trace(&trace, self.format)? {
            Ok(events) => self.verdict(&set, rules, &events),
            Err(outcome) => Ok(outcome),
        }
    }

    fn rules(&self, set: &Set, rules: &[CheckedRule]) -> Result<Outcome, Failure> {
        let explained: Vec<_> = rules
            .iter()
            .map(|rule| explain(&rule.rule, rule.index, set.place(rule), &set.service))
            .collect();
        match self.format {
            Format::Human => {
                let mut parts: Vec<String> = explained
                    .iter()
                    .map(|rule| printable(&rule.to_string()).into_owned())
                    .collect();
                let any_permit = explained.iter().any(|rule| rule.effect == "permit");
                parts.push(closing(explained.is_empty(), any_permit).to_owned());
                print(&parts.join("\n"))?;
            }
            Format::Json => {
                print_json(&json!({ "schema": set.schema.text(), "rules": explained }))?;
            }
        }
        Ok(Outcome::Accepted)
    }

    fn costs(&self, set: &Set, rules: &[CheckedRule]) -> Result<Outcome, Failure> {
        let (policy, named) = set.compiled(rules);
        let costs = cost::costs(&policy, &names(named));
        let pin = set.service.events.universal_pin.as_ref();
        let partition = pin.map(|pin| pin.field.join("."));
        match self.format {
            Format::Human => {
                let mut text: String = costs.iter().map(|cost| format!("{cost}\n")).collect();
                text.push_str(&cost::closing(&costs, partition.as_deref()));
                print(&format!("{}\n", printable(&text)))?;
            }
            Format::Json => print_json(&json!({ "rules": costs, "partition": partition }))?,
        }
        Ok(Outcome::Accepted)
    }

    fn draw(&self, set: &Set, rules: &[CheckedRule], language: Drawn) -> Result<Outcome, Failure> {
        let (policy, named) = set.compiled(rules);
        let graph = Graph::new(&policy, &names(named));
        let text = match language {
            Drawn::Dot => graph.dot(),
            Drawn::Mermaid => graph.mermaid(),
        };
        match self.format {
            Format::Human => print(&text)?,
            Format::Json => print_json(&json!({ "graph": text }))?,
        }
        Ok(Outcome::Accepted)
    }

    fn verdict(
        &self,
        set: &Set,
        rules: &[CheckedRule],
        events: &[Event],
    ) -> Result<Outcome, Failure> {
        let (policy, named) = set.compiled(rules);
        let lateness = monitor::lateness(events);
        let at = match self.at {
            Some(at) => Some(at),
            None => {
                let decisions = monitor::replay(policy.clone(), events);
                decisions
                    .iter()
                    .rev()
                    .find(|(_, _, d)| !d.allowed())
                    .map(|(at, ..)| *at)
            }
        };
        let Some(at) = at else {
            match self.format {
                Format::Human => print("No request of this trace is denied.\n")?,
                Format::Json => print_json(&json!({ "verdict": null }))?,
            }
            return Ok(Outcome::Accepted);
        };
        // Never late: the lateness is that of this very trace.
        let mut monitor = Monitor::new(
            policy,
            Config {
                lateness,
                explained: true,
            },
        );
        let mut decided = None;
        for event in events.iter().take(at.saturating_add(1)) {
            decided = monitor
                .step(event)
                .ok()
                .flatten()
                .map(|decision| (event, decision));
        }
        let Some((event, decision)) = decided.filter(|_| at < events.len()) else {
            return Err(Failure::NoDecision {
                at,
                events: events.len(),
            });
        };
        let witnesses = why(&named, &monitor, event, &decision);
        match self.format {
            Format::Human => print(&told(at, event, &decision, &named, &witnesses))?,
            Format::Json => {
                let names = |rules: &[usize]| -> Vec<&str> {
                    rules
                        .iter()
                        .filter_map(|rule| named.get(*rule))
                        .map(|rule| rule.name.as_str())
                        .collect()
                };
                let why: Vec<String> = witnesses.iter().map(Witness::to_string).collect();
                let errors: Vec<String> = decision.errors.iter().map(error).collect();
                print_json(&json!({
                    "index": at,
                    "timestamp": event.time,
                    "verdict": if decision.allowed() { "allow" } else { "deny" },
                    "determining_rules": decision.rules,
                    "rules": names(&decision.rules),
                    "errors": errors,
                    "why": why,
                }))?;
            }
        }
        Ok(Outcome::Accepted)
    }
}

fn names(named: Vec<NamedRule>) -> Vec<String> {
    named.into_iter().map(|rule| rule.name).collect()
}

fn told(
    at: usize,
    event: &Event,
    decision: &Decision,
    named: &[NamedRule],
    why: &[Witness],
) -> String {
    let line = Line {
        position: at,
        time: event.time,
        decision,
    };
    let mut out = line.to_string();
    let rules: Vec<&str> = decision
        .rules
        .iter()
        .filter_map(|rule| named.get(*rule))
        .map(|rule| rule.name.as_str())
        .collect();
    if !rules.is_empty() {
        let by = if decision.allowed() {
            "permitted"
        } else {
            "forbidden"
        };
        out.push_str(&format!("  {by} by {}\n", printable(&rules.join(", "))));
    }
    // The line above has the errors already.
    for witness in why
        .iter()
        .filter(|witness| !matches!(witness, Witness::Broken { .. }))
    {
        out.push_str(&format!("  {}\n", printable(&witness.to_string())));
    }
    out
}

/// What holds beside the rules.
fn closing(empty: bool, any_permit: bool) -> &'static str {
    match (empty, any_permit) {
        (true, _) => "There are no rules, so everything is denied.\n",
        (_, false) => "No rule permits anything, so everything is denied.\n",
        _ => {
            "Whatever no rule permits is denied, and a rule that forbids beats every rule that permits.\n"
        }
    }
}
