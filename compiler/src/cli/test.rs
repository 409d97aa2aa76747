//! `dogwood test`: runs the test files beside policies, and says what is covered.

mod covered;
mod files;
mod report;

use super::input;
use super::policy::Set;
use super::replay::read_trace;
use super::{Failure, Findings, Format, Outcome, PolicyArgs, counted, print, print_json};
use clap::Args;
use dogwood_compiler::compile::Source;
use dogwood_compiler::diagnostic::printable;
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use dogwood_compiler::monitor;
use dogwood_compiler::suite::coverage::{Coverage, Part};
use dogwood_compiler::suite::{self, CaseOutcome, record};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Args)]
pub struct Test {
    /// Test files, or folders to look for `*.dwtest.toml` in; with --record, policies.
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,

    /// Run only the tests whose name contains this.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// Say which rules, conditions and operators over the past were never seen to hold, or never to fail.
    #[arg(long)]
    coverage: bool,

    /// Write the coverage as lcov.
    #[arg(long, value_name = "FILE")]
    lcov: Option<PathBuf>,

    /// Write the coverage as a page.
    #[arg(long, value_name = "FILE")]
    coverage_html: Option<PathBuf>,

    /// Write the outcomes as JUnit XML.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Run again whenever a test, policy or schema changes.
    #[arg(long, conflicts_with_all = ["record", "junit"])]
    watch: bool,

    /// Print a test file of what the policies decide on this trace, or of what the decision records of a box say.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// What came of one test file.
struct FileOutcome {
    text: Source,
    /// Instead of outcomes, where the file or its policy has errors.
    rejected: Option<Rejected>,
    cases: Vec<CaseOutcome>,
    coverage: Option<Covered>,
    /// Every file that was read, for --watch.
    read: Vec<PathBuf>,
}

struct Rejected {
    diagnostics: Vec<Diagnostic>,
    texts: Vec<Source>,
}

/// The coverage of one policy by one file.
struct Covered {
    policies: Vec<Source>,
    /// Of each rule: its name, and the number of its source.
    rules: Vec<(String, usize)>,
    parts: Vec<Part>,
}

impl FileOutcome {
    fn failed(&self) -> bool {
        self.rejected.is_some() || self.cases.iter().any(|case| case.failure.is_some())
    }
}

impl Test {
    pub fn run(self) -> Result<Outcome, Failure> {
        if let Some(trace) = &self.record {
            return self.record(trace);
        }
        if self.watch {
            return self.watch();
        }
        let outcomes = self.all()?;
        self.tell(&outcomes)?;
        Ok(verdict(&outcomes))
    }

    fn all(&self) -> Result<Vec<FileOutcome>, Failure> {
        let files = files::find(&self.paths)?;
        if files.is_empty() {
            return Err(Failure::NoTests);
        }
        files.iter().map(|file| self.file(file)).collect()
    }

    fn wants_coverage(&self) -> bool {
        self.coverage || self.lcov.is_some() || self.coverage_html.is_some()
    }

    fn tell(&self, outcomes: &[FileOutcome]) -> Result<(), Failure> {
        let covered = covered::merged(outcomes);
        if let Some(path) = &self.junit {
            input::replace(path, &report::junit(outcomes))?;
        }
        if let Some(path) = &self.lcov {
            input::replace(path, &covered::lcov(&covered))?;
        }
        if let Some(path) = &self.coverage_html {
            input::replace(path, &covered::html(&covered))?;
        }
        match self.format {
            Format::Human => {
                let mut out = report::text(outcomes);
                if self.coverage {
                    out.push_str(&covered::text(&covered));
                }
                print(&out)
            }
            Format::Json => {
                let mut out = report::json(outcomes);
                if self.coverage
                    && let Some(object) = out.as_object_mut()
                {
                    object.insert("coverage".to_owned(), covered::json(&covered));
                }
                print_json(&out)
            }
        }
    }

    fn file(&self, path: &Path) -> Result<FileOutcome, Failure> {
        let text = input::read(path)?;
        let mut outcome = FileOutcome {
            text,
            rejected: None,
            cases: Vec::new(),
            coverage: None,
            read: vec![path.to_path_buf()],
        };
        let header = match suite::header(&outcome.text.text) {
            Ok(header) => header,
            Err(diagnostics) => return Ok(outcome.reject(diagnostics)),
        };
        let args = match files::policy(path, &header) {
            Ok(args) => args,
            Err(problem) => return Ok(outcome.reject(vec![*problem])),
        };
        outcome.read.extend(args.policies.iter().cloned());
        let others = [
            &args.policy_schema,
            &args.event_schema,
            &args.macros,
            &args.providers,
        ];
        outcome.read.extend(others.into_iter().flatten().cloned());
        let missing = header
            .policies
            .iter()
            .zip(&args.policies)
            .find(|(_, path)| !path.is_file());
        if let Some((name, path)) = missing {
            let message = format!("there is no policy {}", path.display());
            let problem = Diagnostic::error("test-policy", name.span, message)
                .help("the path is relative to the folder of the test file");
            return Ok(outcome.reject(vec![problem]));
        }
        let set = Set::check(&args)?;
        let Some(rules) = &set.rules else {
            outcome.rejected = Some(Rejected {
                diagnostics: set.diagnostics,
                texts: set.texts,
            });
            return Ok(outcome);
        };
        let (policy, named) = set.compiled(rules);
        let names: BTreeSet<String> = named.iter().map(|rule| rule.name.clone()).collect();
        let cases = match suite::read(&outcome.text.text, &set.service, &names) {
            Ok(cases) => cases,
            Err(diagnostics) => return Ok(outcome.reject(diagnostics)),
        };
        let mut coverage = self.wants_coverage().then(|| {
            let trees: Vec<_> = named.iter().map(|rule| rule.rule.clone()).collect();
            Coverage::new(&trees, &set.service)
        });
        outcome.cases = cases
            .iter()
            .filter(|case| {
                self.filter
                    .as_ref()
                    .is_none_or(|wanted| case.name.contains(wanted.as_str()))
            })
            .map(|case| suite::run(&policy, &named, case, coverage.as_mut()))
            .collect();
        outcome.coverage = coverage.map(|coverage| Covered {
            policies: set
                .texts
                .iter()
                .take(args.policies.len())
                .cloned()
                .collect(),
            rules: named
                .iter()
                .zip(rules)
                .map(|(rule, checked)| (rule.name.clone(), usize::from(checked.source.0)))
                .collect(),
            parts: coverage.parts().to_vec(),
        });
        Ok(outcome)
    }

    /// Runs until interrupted.
    fn watch(&self) -> Result<Outcome, Failure> {
        let mut watched: Vec<PathBuf> = Vec::new();
        loop {
            // What changes during the run must be seen after it, so this is from before.
            let listed = files::stamps(&self.paths, &[]);
            let mut known = files::stamps(&[], &watched);
            watched = match self.all() {
                Ok(outcomes) => {
                    self.tell(&outcomes)?;
                    outcomes.into_iter().flat_map(|file| file.read).collect()
                }
                // A file may be away for a moment while an editor writes it.
                Err(failure) => {
                    super::remark(&format!("dogwood: error: {}", failure.text()));
                    files::find(&self.paths).unwrap_or_default()
                }
            };
            super::remark("watching; stop with Ctrl-C");
            known.retain(|path, _| watched.contains(path));
            let mut before = files::stamps(&[], &watched);
            before.extend(known);
            before.extend(listed);
            while files::stamps(&self.paths, &watched) == before {
                std::thread::sleep(Duration::from_millis(200));
            }
        }
    }

    fn record(&self, trace: &Path) -> Result<Outcome, Failure> {
        let args = PolicyArgs {
            policies: self.paths.clone(),
            ..PolicyArgs::default()
        };
        args.only_one_stdin(Some(trace))?;
        let set = Set::check(&args)?;
        let text = input::read(trace)?;
        let rules = match set.rules_or_reject(self.format)? {
            Ok(rules) => rules,
            Err(outcome) => return Ok(outcome),
        };
        let policies: Vec<String> = self
            .paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let title = format!("recorded from {}", text.name);
        // A trace begins with `@`, a record is an object.
        if text.text.trim_start().starts_with('{') {
            let written = record::from_decisions(&text.text, &policies, &title);
            print(&written.map_err(Failure::Record)?)?;
            return Ok(Outcome::Accepted);
        }
        let events = match read_trace(&text, self.format)? {
            Ok(events) => events,
            Err(outcome) => return Ok(outcome),
        };
        let (policy, named) = set.compiled(rules);
        let decisions = monitor::replay(policy, &events);
        let names: Vec<String> = named.into_iter().map(|rule| rule.name).collect();
        let written = record::record(&set.service, &events, &decisions, &names, &policies, &title)
            .map_err(Failure::Record)?;
        print(&written)?;
        Ok(Outcome::Accepted)
    }
}

impl FileOutcome {
    fn reject(self, diagnostics: Vec<Diagnostic>) -> FileOutcome {
        let texts = vec![self.text.clone()];
        FileOutcome {
            rejected: Some(Rejected { diagnostics, texts }),
            ..self
        }
    }

    /// `push.dwtest.toml:14`.
    fn place(&self, span: Span) -> String {
        format!("{}:{}", self.text.name, line(&self.text.text, span))
    }
}

fn verdict(outcomes: &[FileOutcome]) -> Outcome {
    if outcomes.iter().any(FileOutcome::failed) {
        Outcome::Rejected
    } else {
        Outcome::Accepted
    }
}

/// The line a span begins on, from 1.
fn line(text: &str, span: Span) -> usize {
    let before = text.get(..span.start as usize).unwrap_or(text);
    1 + before.matches('\n').count()
}

fn shown(text: &str) -> String {
    printable(text).into_owned()
}
