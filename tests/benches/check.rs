//! `dogwood check` of a file of 1,000 rules against the program of the reference, side by side.
//!
//! ```text
//! DOGWOOD_REFERENCE=/path/to/their/dogwood cargo bench -p dogwood-tests --bench check
//! ```
//!
//! Medians of whole processes: start, read, check, exit. Without `DOGWOOD_REFERENCE` only ours is timed.

#![allow(clippy::print_stdout, clippy::panic)]

use dogwood_tests::release_program;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const RULES: usize = 1000;
const RUNS: usize = 7;

const ACTIONS: &str = r#"namespace Depot {
  entity Clerk = { rank: Long };
  entity Bay;
  type In = { crate: String, kg: Long, urgent?: Bool };
  action "move" appliesTo { principal: [Clerk], resource: [Bay], context: { input: In, output?: { ok: Bool } } };
  action "weigh" appliesTo { principal: [Clerk], resource: [Bay], context: { input: In, output?: { ok: Bool } } };
}
"#;

const EVENTS: &str = r"decision event <A>::request { ...inputs(A), callerPrincipal: principalType(A), callerResource: resourceType(A) }
event <A>::response { ...inputs(A), ...outputs(A), callerPrincipal: principalType(A), callerResource: resourceType(A) }
";

/// Half of the rules look back in time.
fn policy() -> String {
    let mut text = String::new();
    for n in 0..RULES {
        let rule = match n % 4 {
            0 => format!(
                "permit (principal, action == Depot::Action::\"move\", resource) when {{ context.input.kg < {n} && principal.rank >= 2 && context.input.crate like \"c{n}*\" }};"
            ),
            1 => format!(
                "permit (principal, action == Depot::Action::\"weigh\", resource) when {{ context.input has urgent && context.input.urgent && context.input.crate == \"c{n}\" }};"
            ),
            2 => format!(
                "forbid (principal, action == Depot::Action::\"move\", resource) when {{ context.input.crate == \"c{n}\" }} unless temporal {{ formerly within 1h Depot::Action::\"weigh\"::response{{ input.crate: context.input.crate, output.ok: true }} }};"
            ),
            _ => format!(
                "forbid (principal, action == Depot::Action::\"weigh\", resource) when temporal {{ (count for (t: Timepoint). where formerly within 1h (Depot::Action::\"weigh\"::request{{ input.crate: \"c{n}\" }} && tp(t))) > {n} }};"
            ),
        };
        _ = writeln!(text, "{rule}");
    }
    text
}

fn ours() -> PathBuf {
    match release_program("dogwood-compiler", "dogwood") {
        Ok(program) => program,
        Err(error) => panic!("{error}"),
    }
}

fn median(program: &Path, arguments: &[&str], place: &Path) -> Duration {
    let mut times: Vec<Duration> = (0..RUNS)
        .map(|_| {
            let begun = Instant::now();
            let output = Command::new(program)
                .args(arguments)
                .current_dir(place)
                .output();
            let took = begun.elapsed();
            match output {
                Ok(output) if output.status.success() => took,
                Ok(output) => panic!(
                    "{} rejects the file: {}",
                    program.display(),
                    String::from_utf8_lossy(&output.stdout)
                ),
                Err(error) => panic!("{} does not run: {error}", program.display()),
            }
        })
        .collect();
    times.sort();
    times[RUNS / 2]
}

fn main() {
    let place = match tempfile::tempdir() {
        Ok(place) => place,
        Err(error) => panic!("no folder to work in: {error}"),
    };
    for (name, text) in [
        ("policy.dw", policy().as_str()),
        ("actions.cedarschema", ACTIONS),
        ("events.dwschema", EVENTS),
    ] {
        if let Err(error) = std::fs::write(place.path().join(name), text) {
            panic!("{name}: {error}");
        }
    }
    let schemas = [
        "--policy-schema",
        "actions.cedarschema",
        "--event-schema",
        "events.dwschema",
    ];
    let arguments = |command| [[command, "policy.dw"].as_slice(), &schemas].concat();
    let our = median(&ours(), &arguments("check"), place.path());
    println!("check of {RULES} rules, median of {RUNS} runs");
    println!("  ours       {our:>12.2?}");
    let Some(program) = std::env::var_os("DOGWOOD_REFERENCE") else {
        println!("  reference  skipped: DOGWOOD_REFERENCE does not name its program");
        return;
    };
    let their = median(Path::new(&program), &arguments("validate"), place.path());
    let ratio = their.as_secs_f64() / our.as_secs_f64();
    println!("  reference  {their:>12.2?}");
    println!("  ratio      {ratio:>11.1}× (goal: at least 5)");
}
