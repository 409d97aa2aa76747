//! `dogwood diff`: what changed between two versions of a policy, in meaning and not in text.

use super::policy::Set;
use super::replay::read_trace;
use super::{Failure, Format, Outcome, PolicyArgs, counted, input, print, print_json};
use clap::Args;
use dogwood_compiler::compare::{
    Bounds, Difference, Pair, PairKind, Search, pairs, search, vocabulary,
};
use dogwood_compiler::compile::CheckedRule;
use dogwood_compiler::diagnostic::printable;
use dogwood_compiler::event::Event;
use dogwood_compiler::explain::{NamedRule, describe, explain};
use dogwood_compiler::grammar::ast::{Effect, Rule};
use dogwood_compiler::monitor::{self, Decision, Policy};
use dogwood_compiler::schema::Service;
use dogwood_compiler::suite::span_text;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Args)]
pub struct Diff {
    /// The policy as it was.
    #[arg(value_name = "OLD")]
    old: PathBuf,

    /// The policy as it is now.
    #[arg(value_name = "NEW")]
    new: PathBuf,

    /// Replay every trace in this folder under both, and list the decisions that differ.
    #[arg(long, value_name = "DIR")]
    traces: Option<PathBuf>,

    /// The longest trace to look for a difference on.
    #[arg(long, value_name = "N", default_value_t = 4)]
    events: usize,

    /// Action schema (.cedarschema).
    #[arg(long, value_name = "FILE")]
    policy_schema: Option<PathBuf>,

    /// Event schema (.dwschema).
    #[arg(long, value_name = "FILE")]
    event_schema: Option<PathBuf>,

    /// A macro library in place of the built-in one.
    #[arg(long, value_name = "FILE")]
    macros: Option<PathBuf>,

    /// Declarations of information providers (.json).
    #[arg(long, value_name = "FILE")]
    providers: Option<PathBuf>,

    #[command(flatten)]
    experiments: super::Experiments,

    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// Events tried for each question.
const TRIED: usize = 150_000;
/// At most so many decisions of a trace are listed.
const LISTED: usize = 20;

/// One version, compiled.
struct Side<'s> {
    set: &'s Set,
    rules: &'s [CheckedRule],
    named: Vec<NamedRule>,
    policy: Arc<Policy>,
}

/// One pair of rules, with what it came to.
struct Entry {
    pair: Pair,
    name: String,
    /// What it was called, if it has another `@id` now.
    renamed: Option<String>,
    was: Option<String>,
    now: Option<String>,
    /// Of a changed pair: by itself, whatever other rules say.
    alone: Option<Search>,
}

/// The decisions of one trace that differ.
struct OfTrace {
    name: String,
    decisions: usize,
    differ: Vec<(usize, Event, Decision, Decision)>,
}

impl Diff {
    pub fn run(self) -> Result<Outcome, Failure> {
        let old = Set::check(&self.side(&self.old))?;
        let new = Set::check(&self.side(&self.new))?;
        let old_rules = match old.rules_or_reject(self.format)? {
            Ok(rules) => rules,
            Err(outcome) => return Ok(outcome),
        };
        let new_rules = match new.rules_or_reject(Format::Json)? {
            Ok(rules) => rules,
            Err(outcome) => return Ok(outcome),
        };
        let old = Side::new(&old, old_rules);
        let new = Side::new(&new, new_rules);
        let entries = self.entries(&old, &new);
        let verdict = self.verdict(&old, &new, &entries);
        let mut traces = Vec::new();
        for path in self.trace_files()? {
            let text = input::read(&path)?;
            let events = match read_trace(&text, self.format)? {
                Ok(events) => events,
                Err(outcome) => return Ok(outcome),
            };
            traces.push(of_trace(&path, &events, &old, &new));
        }
        match self.format {
            Format::Human => print(&told(&entries, verdict.as_ref(), &traces, &old, &new))?,
            Format::Json => print_json(&as_json(&entries, verdict.as_ref(), &traces, &old, &new))?,
        }
        Ok(Outcome::Accepted)
    }

    fn side(&self, policy: &Path) -> PolicyArgs {
        PolicyArgs {
            policies: vec![policy.to_path_buf()],
            policy_schema: self.policy_schema.clone(),
            event_schema: self.event_schema.clone(),
            macros: self.macros.clone(),
            providers: self.providers.clone(),
            experiments: self.experiments,
        }
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            events: self.events,
            tried: TRIED,
        }
    }

    fn entries(&self, old: &Side<'_>, new: &Side<'_>) -> Vec<Entry> {
        let mut entries = Vec::new();
        for pair in pairs(&old.named, &new.named) {
            let (before, after) = (
                pair.old.and_then(|at| old.named.get(at)),
                pair.new.and_then(|at| new.named.get(at)),
            );
            let alone = match (pair.kind, pair.old, pair.new) {
                // Where a permit became a forbid, there is nothing to look for.
                (PairKind::Changed, Some(at_old), Some(at_new))
                    if before.map(|named| named.rule.effect)
                        == after.map(|named| named.rule.effect) =>
                {
                    let both = old
                        .rules
                        .get(at_old)
                        .into_iter()
                        .chain(new.rules.get(at_new));
                    let words = vocabulary(both, &new.set.service);
                    let lone = |side: &Side<'_>, at: usize| {
                        let rule = side.named.get(at).map(|named| as_permit(&named.rule));
                        Arc::new(Policy::new(rule.as_slice(), &side.set.service))
                    };
                    Some(search(
                        &lone(old, at_old),
                        &lone(new, at_new),
                        &words,
                        self.bounds(),
                    ))
                }
                _ => None,
            };
            let sentence = |named: Option<&NamedRule>, side: &Side<'_>| {
                named.map(|named| said(&named.rule, &side.set.service))
            };
            entries.push(Entry {
                pair,
                name: after
                    .or(before)
                    .map(|named| named.name.clone())
                    .unwrap_or_default(),
                renamed: before
                    .zip(after)
                    .filter(|(before, after)| id(before) != id(after))
                    .map(|(before, _)| before.name.clone()),
                was: sentence(before, old),
                now: sentence(after, new),
                alone,
            });
        }
        entries
    }

    /// Whether the verdicts differ, if any rule changed meaning.
    fn verdict(&self, old: &Side<'_>, new: &Side<'_>, entries: &[Entry]) -> Option<Search> {
        let moved: Vec<&Entry> = entries
            .iter()
            .filter(|entry| !matches!(entry.pair.kind, PairKind::Same { .. }))
            .collect();
        if moved.is_empty() {
            return None;
        }
        let rules = moved.iter().flat_map(|entry| {
            let before = entry.pair.old.and_then(|at| old.rules.get(at));
            let after = entry.pair.new.and_then(|at| new.rules.get(at));
            before.into_iter().chain(after)
        });
        let words = vocabulary(rules, &new.set.service);
        Some(search(&old.policy, &new.policy, &words, self.bounds()))
    }

    fn trace_files(&self) -> Result<Vec<PathBuf>, Failure> {
        let Some(dir) = &self.traces else {
            return Ok(Vec::new());
        };
        let failed = |error| Failure::Read {
            path: dir.display().to_string(),
            error,
        };
        let mut found = Vec::new();
        for entry in std::fs::read_dir(dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.is_file() {
                found.push(path);
            }
        }
        found.sort();
        Ok(found)
    }
}

impl<'s> Side<'s> {
    fn new(set: &'s Set, rules: &'s [CheckedRule]) -> Side<'s> {
        let (policy, named) = set.compiled(rules);
        Side {
            set,
            rules,
            named,
            policy,
        }
    }

    fn names(&self, decision: &Decision) -> Vec<&str> {
        let names = decision
            .rules
            .iter()
            .filter_map(|rule| self.named.get(*rule));
        names.map(|rule| rule.name.as_str()).collect()
    }

    /// `deny (push_gate)`.
    fn says(&self, decision: &Decision) -> String {
        let verdict = if decision.allowed() { "allow" } else { "deny" };
        match self.names(decision).as_slice() {
            [] if decision.allowed() => verdict.to_owned(),
            [] => format!("{verdict} (no rule permits it)"),
            names => format!("{verdict} ({})", names.join(", ")),
        }
    }
}

fn id(named: &NamedRule) -> Option<&str> {
    named.rule.annotation("id")
}

fn as_permit(rule: &Rule) -> Rule {
    Rule {
        effect: Effect::Permit,
        ..rule.clone()
    }
}

fn said(rule: &Rule, service: &Service) -> String {
    explain(rule, 0, "", service).sentences.join(" ")
}

fn of_trace(path: &Path, events: &[Event], old: &Side<'_>, new: &Side<'_>) -> OfTrace {
    let before = monitor::replay(Arc::clone(&old.policy), events);
    let after = monitor::replay(Arc::clone(&new.policy), events);
    let differ = before
        .iter()
        .zip(&after)
        .filter(|((_, _, a), (_, _, b))| a.verdict != b.verdict)
        .filter_map(|((at, _, a), (_, _, b))| {
            Some((*at, events.get(*at)?.clone(), a.clone(), b.clone()))
        });
    OfTrace {
        name: path.display().to_string(),
        decisions: before.len(),
        differ: differ.collect(),
    }
}

fn told(
    entries: &[Entry],
    verdict: Option<&Search>,
    traces: &[OfTrace],
    old: &Side<'_>,
    new: &Side<'_>,
) -> String {
    let mut out = String::new();
    let mut reworded = BTreeSet::new();
    for entry in entries {
        let name = printable(&entry.name);
        let was = entry.was.as_deref().unwrap_or_default();
        let now = entry.now.as_deref().unwrap_or_default();
        match entry.pair.kind {
            PairKind::Same { reworded: true } => {
                reworded.insert(name.into_owned());
            }
            PairKind::Same { reworded: false } => {}
            PairKind::Added => _ = writeln!(out, "{name}: new\n  {}", printable(now)),
            PairKind::Removed => _ = writeln!(out, "{name}: gone\n  {}", printable(was)),
            PairKind::Changed => {
                _ = writeln!(
                    out,
                    "{name}: changed\n  was: {}\n  now: {}",
                    printable(was),
                    printable(now)
                );
                if let Some(search) = entry.alone.as_ref() {
                    match &search.difference {
                        Some(found) => {
                            let applied = |decision: &Decision| {
                                if decision.allowed() {
                                    "applies"
                                } else {
                                    "does not apply"
                                }
                            };
                            _ = writeln!(
                                out,
                                "  for example it {} before and {} now, at the end of",
                                applied(&found.old),
                                applied(&found.new)
                            );
                            out.push_str(&steps(found, "    "));
                        }
                        None => _ = writeln!(out, "  {}", equal(search)),
                    }
                }
            }
        }
    }
    for entry in entries.iter().filter(|entry| entry.renamed.is_some()) {
        let before = entry.renamed.as_deref().unwrap_or_default();
        _ = writeln!(
            out,
            "{}: was called {}",
            printable(&entry.name),
            printable(before)
        );
    }
    if !reworded.is_empty() {
        let names: Vec<String> = reworded.into_iter().collect();
        _ = writeln!(
            out,
            "written differently, the same in meaning: {}",
            names.join(", ")
        );
    }
    match verdict {
        None => out.push_str("No rule changed meaning.\n"),
        Some(search) => match &search.difference {
            Some(found) => {
                _ = writeln!(
                    out,
                    "\nThe verdict differs: was {}, is {}, at the end of",
                    printable(&old.says(&found.old)),
                    printable(&new.says(&found.new))
                );
                out.push_str(&steps(found, "  "));
            }
            None => _ = writeln!(out, "\nVerdicts: {}", equal(search)),
        },
    }
    for trace in traces {
        let name = printable(&trace.name);
        if trace.differ.is_empty() {
            _ = writeln!(
                out,
                "{name}: the same {}",
                counted(trace.decisions, "verdict")
            );
            continue;
        }
        _ = writeln!(
            out,
            "{name}: {} of {} differ",
            trace.differ.len(),
            counted(trace.decisions, "verdict")
        );
        for (at, event, before, after) in trace.differ.iter().take(LISTED) {
            _ = writeln!(
                out,
                "  time point {at}, {}: was {}, is {}",
                printable(&describe(event)),
                printable(&old.says(before)),
                printable(&new.says(after))
            );
        }
        if trace.differ.len() > LISTED {
            _ = writeln!(out, "  and {} more", trace.differ.len() - LISTED);
        }
    }
    out
}

fn equal(search: &Search) -> String {
    format!(
        "equal up to {} over this vocabulary ({} tried)",
        counted(search.complete_to, "event"),
        counted(search.tried, "event")
    )
}

/// The events of a difference, a line each.
fn steps(found: &Difference, indent: &str) -> String {
    let mut out = String::new();
    let start = found.events.first().map_or(0, |event| event.time);
    for same in found.events.chunk_by(|one, next| one == next) {
        let Some(event) = same.first() else { continue };
        let at = span_text(event.time.saturating_sub(start));
        let times = match same.len() {
            1 => String::new(),
            n => format!("  ({n} times)"),
        };
        _ = writeln!(out, "{indent}+{at}  {}{times}", printable(&describe(event)));
    }
    out
}

fn as_json(
    entries: &[Entry],
    verdict: Option<&Search>,
    traces: &[OfTrace],
    old: &Side<'_>,
    new: &Side<'_>,
) -> Value {
    let events = |found: &Difference| -> Vec<Value> {
        let each = found.events.iter();
        each.map(|event| json!({ "time": event.time, "event": describe(event) }))
            .collect()
    };
    let looked = |search: &Search, told: &dyn Fn(&Difference) -> Value| {
        json!({
            "equal_up_to": search.complete_to,
            "tried": search.tried,
            "difference": search.difference.as_ref().map(told),
        })
    };
    let rules: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let change = match entry.pair.kind {
                PairKind::Same { reworded: false } => "same",
                PairKind::Same { reworded: true } => "reworded",
                PairKind::Changed => "changed",
                PairKind::Added => "added",
                PairKind::Removed => "removed",
            };
            let alone = entry.alone.as_ref().map(|search| {
                looked(search, &|found| {
                    json!({
                        "applied_before": found.old.allowed(),
                        "applies_now": found.new.allowed(),
                        "trace": events(found),
                    })
                })
            });
            json!({
                "rule": entry.name,
                "was_called": entry.renamed,
                "change": change,
                "was": entry.was,
                "now": entry.now,
                "search": alone,
            })
        })
        .collect();
    let verdict = verdict.map(|search| {
        looked(search, &|found| {
            json!({
                "was": old.says(&found.old),
                "is": new.says(&found.new),
                "trace": events(found),
            })
        })
    });
    let traces: Vec<Value> = traces
        .iter()
        .map(|trace| {
            let differ: Vec<Value> = trace
                .differ
                .iter()
                .map(|(at, event, before, after)| {
                    json!({
                        "index": at,
                        "event": describe(event),
                        "was": old.says(before),
                        "is": new.says(after),
                    })
                })
                .collect();
            json!({ "trace": trace.name, "verdicts": trace.decisions, "differ": differ })
        })
        .collect();
    json!({ "rules": rules, "verdict": verdict, "traces": traces })
}
