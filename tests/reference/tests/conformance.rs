//! The published conformance corpora, read in place from the package `dogwood-language` 1.1.0.
//!
//! Every case is run through the library: check, then replay, and the verdicts are compared line by line; `cli` runs
//! the same cases through the program. One line of totals a corpus is printed, and one with the sum; a case that is
//! not right fails the test with its name.

mod conformance {
    mod cli;
    mod lower;
}

use dogwood_compiler::compile::{self, Options, Source};
use dogwood_compiler::monitor::{self, Policy, Verdict};
use dogwood_compiler::providers::load_providers;
use dogwood_compiler::{schema::Service, trace};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// The `tests` folder of the reference package, where cargo unpacked it.
fn corpora() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let manifest = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == "dogwood-language")
        .and_then(|package| package["manifest_path"].as_str())
        .expect("dogwood-language is a dev-dependency");
    Path::new(manifest)
        .parent()
        .expect("a manifest is in a folder")
        .join("tests")
}

fn source(path: &Path) -> Source {
    Source {
        name: path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        text: fs::read_to_string(path).unwrap_or_default(),
    }
}

fn optional(path: PathBuf) -> Option<Source> {
    path.exists().then(|| source(&path))
}

/// Files `<prefix>_<n>.<ending>` of a folder, by number.
fn numbered(folder: &Path, prefix: &str, ending: &str) -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let number = name
                .strip_prefix(prefix)?
                .strip_prefix('_')?
                .strip_suffix(ending)?
                .strip_suffix('.')?;
            Some((number.parse().ok()?, entry.path()))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

struct Case {
    folder: PathBuf,
    /// Used where the case has no schema of its own.
    shared_schema: Option<PathBuf>,
    /// Used where the case has no event schema of its own; the built-in one if there is none here either.
    shared_events: Option<PathBuf>,
}

impl Case {
    fn name(&self) -> String {
        self.folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    fn service(&self) -> Result<Service, String> {
        let actions = optional(self.folder.join("schema.cedarschema"))
            .or_else(|| self.shared_schema.clone().and_then(optional));
        let events = optional(self.folder.join("event.dwschema"))
            .or_else(|| self.shared_events.clone().and_then(optional));
        let (mut service, _warnings) = compile::load_service(actions.as_ref(), events.as_ref())
            .map_err(|errors| format!("schema: {errors:?}"))?;
        if let Some(declarations) = optional(self.folder.join("providers.json")) {
            let beside = |name: &str| {
                fs::read_to_string(self.folder.join(name)).map_err(|error| error.to_string())
            };
            let (providers, _warnings) = load_providers(&declarations, &beside)
                .map_err(|errors| format!("providers: {errors:?}"))?;
            service.providers = Arc::new(providers);
        }
        Ok(service)
    }

    /// Whether the rules are published as ones that a check accepts: where providers are asked, unless it is said
    /// that they are not.
    fn is_checked(&self) -> bool {
        let has = |name: &str| self.folder.join(name).exists();
        has("providers.json") && !has("skip_validation.txt")
    }

    fn policies(&self) -> Vec<Source> {
        let files = numbered(&self.folder, "policy", "dw");
        // The published convention: the files of a case are one text.
        let text: Vec<String> = files.iter().map(|path| source(path).text).collect();
        vec![Source {
            name: "policy.dw".into(),
            text: text.join("\n"),
        }]
    }

    fn checked(&self, service: &Service) -> Result<Vec<compile::CheckedRule>, String> {
        let macros = optional(self.folder.join("macros.dw"));
        let checked = compile::check(
            &self.policies(),
            macros.as_ref(),
            service,
            &Options::default(),
        )
        .map_err(|errors| format!("check: {errors:?}"))?;
        Ok(checked.rules)
    }

    fn parsed(&self) -> Result<Vec<compile::CheckedRule>, String> {
        let macros = optional(self.folder.join("macros.dw"));
        let parsed = compile::parse_only(&self.policies(), macros.as_ref(), &Options::default())
            .map_err(|errors| format!("parse: {errors:?}"))?;
        Ok(parsed.rules)
    }

    /// How many traces were right, or what was wrong.
    fn verdicts(&self) -> Result<usize, String> {
        let service = self.service()?;
        let rules = if self.is_checked() {
            self.checked(&service)?
        } else {
            self.parsed()?
        };
        let rules: Vec<_> = rules.into_iter().map(|checked| checked.rule).collect();
        let policy = Arc::new(Policy::new(&rules, &service));
        let traces = numbered(&self.folder, "trace", "log");
        for path in &traces {
            let (events, errors) = trace::parse(&source(path).text);
            if !errors.is_empty() {
                return Err(format!("{}: {errors:?}", path.display()));
            }
            let mut said = Vec::new();
            for (position, time, decision) in monitor::replay(policy.clone(), &events) {
                said.push(format!(
                    "@{time} (time point {position}): {}",
                    decision.verdict == Verdict::Allow
                ));
            }
            self.compare(path, &said)?;
        }
        Ok(traces.len())
    }

    /// The rules are accepted.
    fn accepted(&self) -> Result<usize, String> {
        self.checked(&self.service()?).map(|_| 1)
    }

    /// Something is wrong with the schemas, the providers or the rules, and said.
    fn rejected(&self) -> Result<usize, String> {
        match self.service().and_then(|service| self.checked(&service)) {
            Err(_) => Ok(1),
            Ok(_) => Err("accepted".into()),
        }
    }

    /// The verdicts on a trace with the published ones.
    fn compare(&self, trace: &Path, said: &[String]) -> Result<(), String> {
        let name = trace.file_name().unwrap_or_default().to_string_lossy();
        let published = name.replace("trace_", "expected_").replace(".log", ".out");
        let expected = fs::read_to_string(self.folder.join(published))
            .map_err(|error| format!("{name}: {error}"))?;
        let expected: Vec<&str> = expected
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        if said == expected {
            return Ok(());
        }
        let at = said
            .iter()
            .zip(&expected)
            .position(|(a, b)| a != b)
            .unwrap_or(said.len().min(expected.len()));
        let (said, expected) = (said.get(at), expected.get(at));
        Err(format!("{name}: said {said:?}, expected {expected:?}"))
    }
}

fn cases(folder: &Path, schema: Option<&Path>, events: Option<&Path>) -> Vec<Case> {
    let mut folders: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
        .into_iter()
        .map(|folder| Case {
            folder,
            shared_schema: schema.map(Path::to_path_buf),
            shared_events: events.map(Path::to_path_buf),
        })
        .collect()
}

/// Prints the totals and names every case that is wrong.
fn run(corpus: &str, cases: &[Case], run: impl Fn(&Case) -> Result<usize, String>) {
    let results: Vec<_> = cases.iter().map(run).collect();
    let wrong = score(corpus, cases, &results).1;
    assert!(wrong.is_empty(), "{corpus}:\n{}", wrong.join("\n"));
}

/// How many were right, and which cases were not.
fn score(corpus: &str, cases: &[Case], results: &[Result<usize, String>]) -> (usize, Vec<String>) {
    assert!(!cases.is_empty(), "no cases of {corpus} found");
    let right = results.iter().flatten().sum();
    let wrong: Vec<String> = cases
        .iter()
        .zip(results)
        .filter_map(|(case, result)| {
            let why: String = result.as_ref().err()?.chars().take(600).collect();
            Some(format!("{corpus}/{}: {why}", case.name()))
        })
        .collect();
    println!(
        "{corpus}: {right} right, {} cases wrong of {}",
        wrong.len(),
        cases.len()
    );
    (right, wrong)
}

/// What is published of the cases of a corpus.
#[derive(Clone, Copy)]
enum Published {
    Verdicts,
    Accepted,
    Rejected,
}

struct Corpus {
    name: &'static str,
    cases: Vec<Case>,
    published: Published,
    /// How many traces, or cases where there are no traces.
    total: usize,
}

fn all() -> Vec<Corpus> {
    let root = corpora();
    let temporal = root.join("passing/temporal_only");
    let shared = temporal.join("shared_schema.cedarschema");
    let providers = root.join("passing/provider_only");
    let of_providers = providers.join("shared_schema.cedarschema");
    let events = root.join("fixtures/request_response.dwschema");
    let events = Some(events.as_path());
    let corpus = |name, folder: PathBuf, schema, events, published, total| Corpus {
        name,
        cases: cases(&folder, schema, events),
        published,
        total,
    };
    let passing = |name| root.join("passing").join(name);
    use Published::{Accepted, Rejected, Verdicts};
    vec![
        corpus(
            "temporal",
            temporal.join("corpus"),
            Some(&*shared),
            events,
            Verdicts,
            1061,
        ),
        corpus(
            "macros",
            passing("macros/corpus"),
            Some(&*shared),
            events,
            Verdicts,
            254,
        ),
        corpus("mixed", passing("mixed/corpus"), None, events, Verdicts, 28),
        corpus(
            "providers",
            providers.join("corpus"),
            Some(&*of_providers),
            events,
            Verdicts,
            94,
        ),
        corpus(
            "cedar",
            passing("cedar_only/corpus_handwritten"),
            None,
            None,
            Accepted,
            32,
        ),
        corpus(
            "rejected",
            root.join("expected_failures/corpus"),
            None,
            events,
            Rejected,
            261,
        ),
    ]
}

/// Runs all corpora; `judge` gives, for each case of one, how many were right or what was wrong.
fn conformance(title: &str, judge: impl Fn(&Corpus) -> Vec<Result<usize, String>>) {
    let (mut right, mut total, mut wrong) = (0, 0, Vec::new());
    for corpus in all() {
        let (of_corpus, named) = score(corpus.name, &corpus.cases, &judge(&corpus));
        right += of_corpus;
        total += corpus.total;
        wrong.extend(named);
    }
    println!("{title}: {right} of {total} right");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(right, total, "not every published case was found");
}

#[test]
fn library() {
    conformance("conformance", |corpus| {
        let judge = |case: &Case| match corpus.published {
            Published::Verdicts => case.verdicts(),
            Published::Accepted => case.accepted(),
            Published::Rejected => case.rejected(),
        };
        corpus.cases.iter().map(judge).collect()
    });
}
