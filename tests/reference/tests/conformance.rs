//! The published conformance corpora, read in place from the package `dogwood-language` 1.1.0.
//!
//! Every case is run through the library: check, then replay, and the verdicts are compared line by line. One line
//! of totals a corpus is printed; a case that is not right fails the test with its name.

use dogwood_compiler::compile::{self, Options, Source};
use dogwood_compiler::monitor::{self, Policy, Verdict};
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
        let (service, _warnings) = compile::load_service(actions.as_ref(), events.as_ref())
            .map_err(|errors| format!("schema: {errors:?}"))?;
        Ok(service)
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
        let rules = self.parsed()?;
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
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .replace("trace_", "expected_");
            let expected = fs::read_to_string(self.folder.join(name.replace(".log", ".out")))
                .unwrap_or_default();
            let expected: Vec<&str> = expected
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .collect();
            if said != expected {
                let at = said
                    .iter()
                    .zip(&expected)
                    .position(|(a, b)| a != b)
                    .unwrap_or(said.len().min(expected.len()));
                return Err(format!(
                    "{}: said {:?}, expected {:?}",
                    path.file_name().unwrap_or_default().to_string_lossy(),
                    said.get(at),
                    expected.get(at)
                ));
            }
        }
        Ok(traces.len())
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

/// Runs every case and prints the totals; names every one that is wrong.
fn run(corpus: &str, cases: &[Case], run: impl Fn(&Case) -> Result<usize, String>) {
    assert!(!cases.is_empty(), "no cases of {corpus} found");
    let mut right = 0;
    let mut wrong = Vec::new();
    for case in cases {
        match run(case) {
            Ok(count) => right += count,
            Err(why) => wrong.push(format!(
                "{}: {}",
                case.name(),
                why.chars().take(600).collect::<String>()
            )),
        }
    }
    println!(
        "{corpus}: {right} right, {} cases wrong of {}",
        wrong.len(),
        cases.len()
    );
    assert!(wrong.is_empty(), "{corpus}:\n{}", wrong.join("\n"));
}

#[test]
fn temporal() {
    let root = corpora();
    let folder = root.join("passing/temporal_only");
    let cases = cases(
        &folder.join("corpus"),
        Some(&folder.join("shared_schema.cedarschema")),
        Some(&root.join("fixtures/request_response.dwschema")),
    );
    run("temporal", &cases, Case::verdicts);
}

#[test]
fn macros() {
    let root = corpora();
    let events = root.join("fixtures/request_response.dwschema");
    let schema = root.join("passing/temporal_only/shared_schema.cedarschema");
    run(
        "macros",
        &cases(
            &root.join("passing/macros/corpus"),
            Some(&schema),
            Some(&events),
        ),
        Case::verdicts,
    );
}

#[test]
fn mixed() {
    let root = corpora();
    let events = root.join("fixtures/request_response.dwschema");
    run(
        "mixed",
        &cases(&root.join("passing/mixed/corpus"), None, Some(&events)),
        Case::verdicts,
    );
}

#[test]
fn cedar() {
    let root = corpora();
    let cases = cases(
        &root.join("passing/cedar_only/corpus_handwritten"),
        None,
        None,
    );
    run("cedar", &cases, |case| {
        case.checked(&case.service()?).map(|_| 1)
    });
}

#[test]
fn rejected() {
    let root = corpora();
    let events = root.join("fixtures/request_response.dwschema");
    let cases = cases(&root.join("expected_failures/corpus"), None, Some(&events));
    run("rejected", &cases, |case| {
        match case.service().and_then(|service| case.checked(&service)) {
            Err(_) => Ok(1),
            Ok(_) => Err("accepted".into()),
        }
    });
}
