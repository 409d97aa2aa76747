//! `dogwood explain`: what each rule says in plain English, or why one event of a trace was decided so.

mod page;
mod verdict;

use super::policy::Set;
use super::replay::read_trace;
use super::{Failure, Format, Outcome, PolicyArgs, input, print, print_json};
use clap::{Args, ValueEnum};
use dogwood_compiler::compile::{CheckedRule, Source};
use dogwood_compiler::diagnostic::printable;
use dogwood_compiler::event::Event;
use dogwood_compiler::explain::graph::Graph;
use dogwood_compiler::explain::{
    Explanation, MacroExplanation, NamedRule, cost, explain, explain_macro,
};
use dogwood_compiler::grammar::print::print_rule;
use serde_json::json;
use std::fmt::Write;
use std::path::PathBuf;
use verdict::Verdict;

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

    /// Explain the last denial of the trace; what happens without --at.
    #[arg(long, requires = "trace", conflicts_with = "at")]
    last_deny: bool,

    /// Print a page that draws the whole trace, with every verdict explained.
    #[arg(long, requires = "trace", conflicts_with_all = ["at", "last_deny", "format"])]
    html: bool,

    /// Say what the macros of a rule stand for in place of their names, and show the rule so written out.
    #[arg(long, conflicts_with = "trace")]
    expand: bool,

    #[arg(long, value_enum, default_value_t = Shape::Human)]
    format: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Shape {
    Human,
    Json,
    Markdown,
}

impl Shape {
    /// Where errors go as JSON, or drawn.
    fn format(self) -> Format {
        match self {
            Shape::Json => Format::Json,
            Shape::Human | Shape::Markdown => Format::Human,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Drawn {
    Dot,
    Mermaid,
}

impl Explain {
    pub fn run(self) -> Result<Outcome, Failure> {
        self.policy.only_one_stdin(self.trace.as_deref())?;
        let set = match self.trace {
            None => Set::check_or_parse(&self.policy)?,
            Some(_) => Set::check(&self.policy)?,
        };
        let trace = self.trace.as_deref().map(input::read).transpose()?;
        let rules = match set.rules_or_reject(self.format.format())? {
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
        match read_trace(&trace, self.format.format())? {
            Ok(events) => self.verdict(&set, rules, &trace, &events),
            Err(outcome) => Ok(outcome),
        }
    }

    fn rules(&self, set: &Set, rules: &[CheckedRule]) -> Result<Outcome, Failure> {
        let explained: Vec<Explanation> = rules
            .iter()
            .map(|rule| {
                let by_name = rule.by_name.as_ref().filter(|_| !self.expand);
                let told = by_name.unwrap_or(&rule.rule);
                explain(told, rule.index, set.place(rule), &set.service)
            })
            .collect();
        let macros: Vec<MacroExplanation> = set
            .macros
            .iter()
            .filter(|_| !self.expand)
            .map(|called| explain_macro(&called.def, set.place_of_macro(called), &set.service))
            .collect();
        match self.format {
            Shape::Human => {
                let mut parts: Vec<String> = explained
                    .iter()
                    .zip(rules)
                    .map(|(said, rule)| {
                        let mut part = printable(&said.to_string()).into_owned();
                        if self.expand {
                            for line in print_rule(&rule.rule).lines() {
                                part.push_str(&format!("    {}\n", printable(line)));
                            }
                        }
                        part
                    })
                    .collect();
                parts.extend(
                    macros
                        .iter()
                        .map(|said| printable(&said.to_string()).into_owned()),
                );
                let any_permit = explained.iter().any(|rule| rule.effect == "permit");
                parts.push(closing(explained.is_empty(), any_permit).to_owned());
                print(&parts.join("\n"))?;
            }
            Shape::Json => {
                let mut said = json!({
                    "schema": set.schema.text(),
                    "rules": explained,
                    "macros": macros,
                });
                if self.expand {
                    let written = rules.iter().map(|rule| print_rule(&rule.rule));
                    said["expanded"] = written.collect::<Vec<_>>().into();
                }
                print_json(&said)?;
            }
            Shape::Markdown => {
                let written = if self.expand { rules } else { &[] };
                print(&rules_markdown(&explained, &macros, written))?;
            }
        }
        Ok(Outcome::Accepted)
    }

    fn costs(&self, set: &Set, rules: &[CheckedRule]) -> Result<Outcome, Failure> {
        let (policy, named) = set.compiled(rules);
        let costs = cost::costs(&policy, &names(named));
        let pin = set.service.events.universal_pin.as_ref();
        let partition = pin.map(|pin| pin.field.join("."));
        match self.format.format() {
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
        match self.format.format() {
            Format::Human => print(&text)?,
            Format::Json => print_json(&json!({ "graph": text }))?,
        }
        Ok(Outcome::Accepted)
    }

    fn verdict(
        &self,
        set: &Set,
        rules: &[CheckedRule],
        trace: &Source,
        events: &[Event],
    ) -> Result<Outcome, Failure> {
        let (policy, named) = set.compiled(rules);
        if self.html {
            let title = format!("{} under the policy", trace.name);
            print(&page::page(set, rules, &policy, &named, events, &title))?;
            return Ok(Outcome::Accepted);
        }
        let Some(at) = verdict::wanted(&policy, events, self.at) else {
            match self.format {
                Shape::Json => print_json(&json!({ "verdict": null }))?,
                _ => print("No request of this trace is denied.\n")?,
            }
            return Ok(Outcome::Accepted);
        };
        let found = Verdict::at(&policy, rules, &named, events, at)
            .ok_or_else(|| verdict::none_at(at, events))?;
        match self.format {
            Shape::Human => print(&found.text())?,
            Shape::Json => print_json(&found.json())?,
            Shape::Markdown => print(&found.markdown())?,
        }
        Ok(Outcome::Accepted)
    }
}

fn names(named: Vec<NamedRule>) -> Vec<String> {
    named.into_iter().map(|rule| rule.name).collect()
}

/// The rules of a set as Markdown; those written out, too, if they are given.
fn rules_markdown(
    rules: &[Explanation],
    macros: &[MacroExplanation],
    written: &[CheckedRule],
) -> String {
    let mut out = String::from("# What the rules say\n");
    for (at, said) in rules.iter().enumerate() {
        let name = said.id.as_ref().unwrap_or(&said.place);
        _ = writeln!(out, "\n## {name}\n\n{}", said.sentences.join(" "));
        if let Some(description) = &said.description {
            _ = writeln!(out, "\n> {}", description.replace('\n', "\n> "));
        }
        _ = writeln!(out, "\n*Rule {}, {}*", said.rule, said.place);
        if let Some(rule) = written.get(at) {
            let written = print_rule(&rule.rule);
            _ = writeln!(out, "\n```\n{}\n```", written.trim_end());
        }
    }
    if !macros.is_empty() {
        out.push_str("\n## Macros\n");
    }
    for said in macros {
        _ = writeln!(out, "\n`{}` ({}): {}", said.name, said.place, said.sentence);
    }
    let any_permit = rules.iter().any(|rule| rule.effect == "permit");
    out.push('\n');
    out.push_str(closing(rules.is_empty(), any_permit));
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
