//! What the tests found, as text, JSON and JUnit XML.

use super::super::escaped;
use super::{FileOutcome, Findings, counted, shown};
use dogwood_compiler::suite::CaseOutcome;
use serde_json::{Value, json};
use std::fmt::Write;

pub fn text(outcomes: &[FileOutcome]) -> String {
    let mut out = String::new();
    let (mut passed, mut failed, mut rejected) = (0_usize, 0_usize, 0_usize);
    for file in outcomes {
        _ = writeln!(out, "{}", shown(&file.text.name));
        if let Some(found) = &file.rejected {
            rejected += 1;
            let findings = Findings::new(&found.diagnostics, &found.texts);
            _ = writeln!(out, "{}", findings.drawn());
            continue;
        }
        for case in &file.cases {
            match &case.failure {
                None => {
                    passed += 1;
                    _ = writeln!(out, "  ok    {}", shown(&case.name));
                }
                Some(failure) => {
                    failed += 1;
                    _ = writeln!(out, "  FAIL  {}", shown(&case.name));
                    _ = writeln!(out, "        {}", shown(&failure.at));
                    _ = writeln!(out, "        {}", shown(&failure.mismatch.to_string()));
                    for line in &failure.why {
                        _ = writeln!(out, "          {}", shown(line));
                    }
                    _ = writeln!(out, "        at {}", shown(&file.place(failure.span)));
                }
            }
        }
    }
    let mut sums = vec![format!("{passed} passed")];
    if failed > 0 {
        sums.push(format!("{failed} failed"));
    }
    if rejected > 0 {
        sums.push(format!("{} could not be run", counted(rejected, "file")));
    }
    let mark = if failed + rejected > 0 {
        "FAILED"
    } else {
        "OK"
    };
    _ = writeln!(out, "{mark}: {}", sums.join(", "));
    out
}

pub fn json(outcomes: &[FileOutcome]) -> Value {
    let files: Vec<Value> = outcomes
        .iter()
        .map(|file| {
            let errors = file
                .rejected
                .as_ref()
                .map(|found| Findings::new(&found.diagnostics, &found.texts).json());
            json!({
                "file": file.text.name,
                "errors": errors.unwrap_or_else(|| json!([])),
                "tests": file.cases.iter().map(|case| of_case(file, case)).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "passed": !outcomes.iter().any(FileOutcome::failed),
        "files": files,
    })
}

fn of_case(file: &FileOutcome, case: &CaseOutcome) -> Value {
    let failure = case.failure.as_ref().map(|failure| {
        json!({
            "place": file.place(failure.span),
            "event": failure.at,
            "message": failure.mismatch.to_string(),
            "why": failure.why,
        })
    });
    json!({
        "name": case.name,
        "passed": case.failure.is_none(),
        "decisions": case.decisions,
        "failure": failure,
    })
}

pub fn junit(outcomes: &[FileOutcome]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for file in outcomes {
        let failures = file.cases.iter().filter(|case| case.failure.is_some());
        _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\">",
            escaped(&file.text.name),
            file.cases.len() + usize::from(file.rejected.is_some()),
            failures.count(),
            usize::from(file.rejected.is_some()),
        );
        if let Some(found) = &file.rejected {
            let messages: Vec<&str> = found
                .diagnostics
                .iter()
                .map(|problem| problem.message.as_str())
                .collect();
            _ = writeln!(
                out,
                "    <testcase name=\"the file is read\" classname=\"{0}\"><error message=\"{1}\"/></testcase>",
                escaped(&file.text.name),
                escaped(&messages.join("; ")),
            );
        }
        for case in &file.cases {
            let head = format!(
                "    <testcase name=\"{}\" classname=\"{}\"",
                escaped(&case.name),
                escaped(&file.text.name)
            );
            match &case.failure {
                None => _ = writeln!(out, "{head}/>"),
                Some(failure) => {
                    let mut lines = vec![failure.at.clone()];
                    lines.extend(failure.why.iter().cloned());
                    lines.push(format!("at {}", file.place(failure.span)));
                    _ = writeln!(
                        out,
                        "{head}><failure message=\"{}\">{}</failure></testcase>",
                        escaped(&failure.mismatch.to_string()),
                        escaped(&lines.join("\n")),
                    );
                }
            }
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}
