//! Lines above a policy and its rules: tests to run, and how often each rule decided in the trace beside it.

use crate::document::{Document, Kind};
use crate::snapshot::Snapshot;
use dogwood_compiler::compile::{self, CheckedRule, Options, Source};
use dogwood_compiler::explain::NamedRule;
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::ast::{Item, Rule};
use dogwood_compiler::json::Json;
use dogwood_compiler::monitor::{self, Policy};
use dogwood_compiler::suite::{self, CaseOutcome};
use dogwood_compiler::trace;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lens {
    pub span: Span,
    pub title: String,
    /// What a click does: run the tests of this document, all or those of one name.
    pub runs: Option<Run>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub path: PathBuf,
    pub test: Option<String>,
}

/// What is found out beside the editing: slow to make, and shown when it is there.
#[derive(Clone, Debug, Default)]
pub struct Slow {
    pub verdicts: Option<Verdicts>,
    pub tests: Option<Vec<TestRun>>,
}

/// How the rules of a policy decided in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdicts {
    /// The name of the file.
    pub trace: String,
    pub decisions: usize,
    /// By rule, how often it was among those that determined a verdict.
    pub by_rule: Vec<usize>,
    /// Denied because no rule permits it.
    pub unpermitted: usize,
}

/// The tests of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRun {
    pub path: PathBuf,
    pub outcomes: Vec<CaseOutcome>,
    /// Why they could not be run.
    pub problem: Option<String>,
}

impl TestRun {
    pub fn failed(&self) -> usize {
        self.outcomes
            .iter()
            .filter(|outcome| outcome.failure.is_some())
            .count()
    }
}

/// What the rules of a policy are called in verdicts: by `@id`, else by place.
pub fn names(document: &Document) -> Vec<String> {
    let items = document.policy().tree.items.iter();
    items
        .filter_map(|item| match item {
            Item::Rule(rule) => Some(name(document, rule)),
            _ => None,
        })
        .collect()
}

fn name(document: &Document, rule: &Rule) -> String {
    match rule.annotation("id").map(str::trim) {
        Some(id) if !id.is_empty() => id.to_owned(),
        _ => {
            let file = document.path.file_name().unwrap_or_default();
            let line = 1 + document.lines.line(rule.span.start as usize);
            format!("{}:{line}", file.to_string_lossy())
        }
    }
}

pub fn lenses(snapshot: &Snapshot, slow: &Slow) -> Vec<Lens> {
    match snapshot.document.kind {
        Kind::Policy => policy(snapshot, slow),
        Kind::Tests => tests(snapshot, slow),
        _ => Vec::new(),
    }
}

fn counted(n: usize, one: &str) -> String {
    if n == 1 {
        format!("1 {one}")
    } else {
        format!("{n} {one}s")
    }
}

fn result(runs: &[&TestRun]) -> Option<String> {
    if let Some(problem) = runs.iter().find_map(|run| run.problem.as_ref()) {
        return Some(problem.clone());
    }
    let all: usize = runs.iter().map(|run| run.outcomes.len()).sum();
    let failed: usize = runs.iter().map(|run| run.failed()).sum();
    match (all, failed) {
        (0, _) => None,
        (all, 0) => Some(format!("{} passed", counted(all, "test"))),
        (all, failed) => Some(format!("{failed} of {} failed", counted(all, "test"))),
    }
}

fn policy(snapshot: &Snapshot, slow: &Slow) -> Vec<Lens> {
    let mut found = Vec::new();
    let document = &snapshot.document;
    let files = snapshot.shelf.tests_of(&document.path);
    if !files.is_empty() {
        let runs: Vec<&TestRun> = slow.tests.iter().flatten().collect();
        let mut title = format!("run {}", counted(files.len(), "test file"));
        if let Some(result) = result(&runs) {
            title = format!("{title} ({result})");
        }
        found.push(Lens {
            span: Span::at(0),
            title,
            runs: Some(Run {
                path: document.path.clone(),
                test: None,
            }),
        });
    }
    let Some(verdicts) = &slow.verdicts else {
        return found;
    };
    for (number, rule) in snapshot.rules().enumerate() {
        let decided = verdicts.by_rule.get(number).copied().unwrap_or(0);
        let title = if decided == 0 {
            format!("decided nothing in {}", verdicts.trace)
        } else {
            format!(
                "decided {decided} of {} in {}",
                counted(verdicts.decisions, "request"),
                verdicts.trace
            )
        };
        found.push(Lens {
            span: rule.effect_span,
            title,
            runs: None,
        });
    }
    found
}

fn tests(snapshot: &Snapshot, slow: &Slow) -> Vec<Lens> {
    let document = &snapshot.document;
    let own: Vec<&TestRun> = slow
        .tests
        .iter()
        .flatten()
        .filter(|run| run.path == document.path)
        .collect();
    let mut title = "run all tests".to_owned();
    if let Some(result) = result(&own) {
        title = format!("{title} ({result})");
    }
    let mut found = vec![Lens {
        span: Span::at(0),
        title,
        runs: Some(Run {
            path: document.path.clone(),
            test: None,
        }),
    }];
    let tests = document.tests().get("test").and_then(Json::as_array);
    for test in tests.unwrap_or_default() {
        let Some(node) = test.get("name") else {
            continue;
        };
        let Some(name) = node.as_str() else { continue };
        let row = format!("{name} (");
        let outcomes: Vec<&CaseOutcome> = own
            .iter()
            .flat_map(|run| &run.outcomes)
            .filter(|outcome| outcome.name == *name || outcome.name.starts_with(&row))
            .collect();
        let failed = outcomes.iter().find_map(|outcome| outcome.failure.as_ref());
        let title = match failed {
            _ if outcomes.is_empty() => "run".to_owned(),
            None => "run (passed)".to_owned(),
            Some(failure) => format!("run (failed at {}: {})", failure.at, failure.mismatch),
        };
        found.push(Lens {
            span: node.span,
            title,
            runs: Some(Run {
                path: document.path.clone(),
                test: Some(name.to_string()),
            }),
        });
    }
    found
}

/// The rules of policies and what they are called, if nothing is wrong with them.
fn checked(
    snapshot: &Snapshot,
    policies: &[Arc<Document>],
) -> Option<(Vec<CheckedRule>, Vec<NamedRule>)> {
    let setup = &snapshot.setup;
    if !setup.broken.is_empty() {
        return None;
    }
    let sources: Vec<Source> = policies.iter().map(|policy| source(policy)).collect();
    let macros = setup.macros.as_deref().map(source);
    let options = Options {
        arithmetic: setup.arithmetic,
        quiet: true,
    };
    let checked = compile::check(&sources, macros.as_ref(), &setup.service, &options).ok()?;
    let named = checked
        .rules
        .iter()
        .map(|rule| {
            let document = policies.get(usize::from(rule.source.0));
            NamedRule {
                name: document.map_or_else(String::new, |document| name(document, &rule.rule)),
                rule: rule.rule.clone(),
            }
        })
        .collect();
    Some((checked.rules, named))
}

fn source(document: &Document) -> Source {
    Source {
        name: document.path.display().to_string(),
        text: document.text.clone(),
    }
}

fn compiled(snapshot: &Snapshot, rules: &[CheckedRule]) -> Arc<Policy> {
    let trees: Vec<Rule> = rules.iter().map(|rule| rule.rule.clone()).collect();
    Arc::new(Policy::new(&trees, &snapshot.setup.service))
}

/// The trace beside a policy: the one of its name, else the first.
fn trace_beside(snapshot: &Snapshot) -> Option<PathBuf> {
    let path = &snapshot.document.path;
    let traces: Vec<PathBuf> = snapshot
        .shelf
        .list(path.parent()?)
        .into_iter()
        .filter(|file| {
            file.extension()
                .is_some_and(|ending| ending == "log" || ending == "trace")
        })
        .collect();
    let own = |file: &&PathBuf| file.file_stem() == path.file_stem();
    traces.iter().find(own).or(traces.first()).cloned()
}

/// Replays the trace beside a policy. None without one, or where either has errors.
pub fn verdicts(snapshot: &Snapshot) -> Option<Verdicts> {
    if snapshot.document.kind != Kind::Policy {
        return None;
    }
    let path = trace_beside(snapshot)?;
    let text = snapshot.shelf.read(&path)?;
    let (events, errors) = trace::parse(&text);
    if !errors.is_empty() || events.is_empty() {
        return None;
    }
    let (rules, _) = checked(snapshot, std::slice::from_ref(&snapshot.document))?;
    let decisions = monitor::replay(compiled(snapshot, &rules), &events);
    let mut by_rule = vec![0; rules.len()];
    let mut unpermitted = 0;
    for (_, _, decision) in &decisions {
        if decision.rules.is_empty() {
            unpermitted += 1;
        }
        for rule in &decision.rules {
            if let Some(count) = by_rule.get_mut(*rule) {
                *count += 1;
            }
        }
    }
    Some(Verdicts {
        trace: path.file_name()?.to_string_lossy().into_owned(),
        decisions: decisions.len(),
        by_rule,
        unpermitted,
    })
}

/// Runs the tests of a policy, or of a test file: all, or those of one name.
pub fn run(snapshot: &Snapshot, only: Option<&str>) -> Vec<TestRun> {
    let files = match snapshot.document.kind {
        Kind::Tests => vec![Arc::clone(&snapshot.document)],
        Kind::Policy => snapshot.shelf.tests_of(&snapshot.document.path),
        _ => Vec::new(),
    };
    files
        .iter()
        .map(|file| run_file(snapshot, file, only))
        .collect()
}

fn run_file(snapshot: &Snapshot, file: &Arc<Document>, only: Option<&str>) -> TestRun {
    let mut done = TestRun {
        path: file.path.clone(),
        outcomes: Vec::new(),
        problem: None,
    };
    match outcomes(snapshot, &file.path, only) {
        Ok(outcomes) => done.outcomes = outcomes,
        Err(problem) => done.problem = Some(problem),
    }
    done
}

fn outcomes(
    snapshot: &Snapshot,
    path: &Path,
    only: Option<&str>,
) -> Result<Vec<CaseOutcome>, String> {
    let own = Snapshot::new(&snapshot.shelf, path).ok_or("the test file cannot be read")?;
    let tested = own
        .shelf
        .tested(&own.document)
        .map_err(|problem| problem.message)?;
    let policies: Vec<Arc<Document>> = tested
        .policies
        .iter()
        .map(|path| {
            let missing = || format!("there is no policy {}", path.display());
            own.shelf.document(path).ok_or_else(missing)
        })
        .collect::<Result<_, _>>()?;
    let (rules, named) = checked(&own, &policies).ok_or("the policy has errors")?;
    let names: BTreeSet<String> = named.iter().map(|rule| rule.name.clone()).collect();
    let cases = suite::read(&own.document.text, &own.setup.service, &names)
        .map_err(|problems| first(&problems))?;
    let policy = compiled(&own, &rules);
    let wanted =
        |name: &str| only.is_none_or(|only| name == only || name.starts_with(&format!("{only} (")));
    Ok(cases
        .iter()
        .filter(|case| wanted(&case.name))
        .map(|case| suite::run(&policy, &named, case, None))
        .collect())
}

fn first(problems: &[dogwood_compiler::grammar::diagnostic::Diagnostic]) -> String {
    problems
        .first()
        .map_or_else(String::new, |problem| problem.message.clone())
}
