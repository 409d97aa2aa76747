//! The same cases through the program: what it prints and how it exits.

use crate::{Case, Corpus, Published, conformance, numbered};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

const WORKERS: usize = 4;

/// Builds the program, and says where it is: beside the folder of the tests.
fn program() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args([
            "build",
            "--locked",
            "--quiet",
            "-p",
            "dogwood-compiler",
            "--bin",
            "dogwood",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .expect("cargo runs");
    assert!(built.success(), "the program builds");
    let here = std::env::current_exe().expect("a test is a file");
    let folder = here.parent().and_then(Path::parent);
    folder.expect("tests are built in a folder").join("dogwood")
}

fn ask(program: &Path, case: &Case, command: &[&str], trace: Option<&Path>) -> Output {
    let mut run = Command::new(program);
    run.args(command).arg("-").args(["--format", "json"]);
    let mut option = |name: &str, own: &str, shared: &Option<PathBuf>| {
        let own = case.folder.join(own);
        if let Some(path) = own.exists().then_some(own).or_else(|| shared.clone()) {
            run.arg(name).arg(path);
        }
    };
    option("--policy-schema", "schema.cedarschema", &case.shared_schema);
    option("--event-schema", "event.dwschema", &case.shared_events);
    option("--macros", "macros.dw", &None);
    option("--providers", "providers.json", &None);
    if let Some(trace) = trace {
        run.arg("--trace").arg(trace);
    }
    let mut child = run
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut stdin = child.stdin.take().expect("its input is a pipe");
    for policy in case.policies() {
        // It may have ended over a broken schema.
        _ = stdin.write_all(policy.text.as_bytes());
    }
    drop(stdin);
    child.wait_with_output().expect("the program ends")
}

fn judge(program: &Path, case: &Case, published: Published) -> Result<usize, String> {
    let said = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    match published {
        Published::Accepted | Published::Rejected => {
            let wanted = match published {
                Published::Accepted => 0,
                _ => 2,
            };
            let output = ask(program, case, &["check"], None);
            match output.status.code() {
                Some(code) if code == wanted => Ok(1),
                code => Err(format!("exit {code:?}: {}", said(&output))),
            }
        }
        Published::Verdicts => {
            let traces = numbered(&case.folder, "trace", "log");
            let command: &[&str] = match case.is_checked() {
                true => &["replay"],
                false => &["replay", "--unchecked"],
            };
            for trace in &traces {
                let output = ask(program, case, command, Some(trace));
                if output.status.code() != Some(0) {
                    return Err(format!(
                        "exit {:?}: {}",
                        output.status.code(),
                        said(&output)
                    ));
                }
                case.compare(trace, &lines(&said(&output))?)?;
            }
            Ok(traces.len())
        }
    }
}

/// The printed verdicts as they are published.
fn lines(output: &str) -> Result<Vec<String>, String> {
    let answer: serde_json::Value =
        serde_json::from_str(output).map_err(|error| format!("{error}: {output}"))?;
    let verdicts = answer["verdicts"].as_array().ok_or("no verdicts")?;
    let line = |verdict: &serde_json::Value| {
        let (time, index) = (&verdict["timestamp"], &verdict["index"]);
        format!(
            "@{time} (time point {index}): {}",
            verdict["verdict"] == "allow"
        )
    };
    Ok(verdicts.iter().map(line).collect())
}

#[test]
fn program_gives_the_published_answers() {
    let program = program();
    conformance("conformance of the program", |corpus: &Corpus| {
        let next = AtomicUsize::new(0);
        let results = Mutex::new(vec![Ok(0); corpus.cases.len()]);
        std::thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(case) = corpus.cases.get(at) else {
                            return;
                        };
                        let result = judge(&program, case, corpus.published);
                        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                        results[at] = result;
                    }
                });
            }
        });
        results.into_inner().unwrap_or_else(PoisonError::into_inner)
    });
}
