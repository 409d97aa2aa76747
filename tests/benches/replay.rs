//! `dogwood replay` of traces on disk: the whole program, reading and parsing included.
//!
//! ```text
//! cargo bench -p dogwood-tests --bench replay
//! ```
//!
//! `DOGWOOD_BENCH_EVENTS` (1000000) is the length of the long trace; a tenth of it is the short one. Both hold
//! the same windows, so the long one must not take more memory.

#![allow(clippy::print_stdout, clippy::panic)]

use dogwood_tests::release_program;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: usize = 3;
const GOAL: f64 = 500_000.0;

const ACTIONS: &str = r#"namespace Depot {
  entity Clerk;
  entity Bay;
  type In = { user: String, item: String, amount: Long };
  action "push", "test", "edit", "pay" appliesTo { principal: [Clerk], resource: [Bay], context: { input: In, output?: { ok: Bool } } };
}
"#;

const EVENTS: &str = r"decision event <A>::request { ...inputs(A), callerPrincipal: principalType(A), callerResource: resourceType(A) }
event <A>::response { ...inputs(A), ...outputs(A), callerPrincipal: principalType(A), callerResource: resourceType(A) }
";

const POLICY: &str = r#"permit (principal, action, resource);
forbid (principal, action == Depot::Action::"push", resource)
unless temporal {
  !Depot::Action::"edit"::response{ input.item: context.input.item }
  since within 15m
  Depot::Action::"test"::response{ input.item: context.input.item, output.ok: true }
};
forbid (principal, action == Depot::Action::"push", resource)
when temporal { (count for (t: Timepoint). where formerly within 1h (Depot::Action::"push"::response{ input.user: context.input.user } && tp(t))) >= 60 };
forbid (principal, action == Depot::Action::"pay", resource)
when temporal { (sum spent for (spent: Long), (t: Timepoint). where formerly within 1h (Depot::Action::"pay"::response{ input.user: context.input.user, input.amount: spent } && tp(t))) > 10000 };
forbid (principal, action == Depot::Action::"pay", resource)
unless temporal { formerly within 1h Depot::Action::"test"::response{ input.user: context.input.user } };
"#;

/// Two events in three are requests or their responses of `push` and `pay`; a hundred a minute.
fn event(n: u64, out: &mut impl Write) -> std::io::Result<()> {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^= x >> 31;
    let time = n * 6 / 10;
    let (user, item, amount) = (x % 100, (x >> 8) % 50, (x >> 16) % 300);
    let action = match (x >> 32) % 12 {
        0..4 => "push",
        4..8 => "pay",
        8..11 => "test",
        _ => "edit",
    };
    let input =
        format!("input: {{ user: \"user-{user}\", item: \"item-{item}\", amount: {amount} }}");
    let caller = "Depot::Clerk::\"ann\"";
    let place = "Depot::Bay::\"b1\"";
    let callers = format!("callerPrincipal: {caller}, callerResource: {place}");
    if (x >> 40).is_multiple_of(2) {
        writeln!(
            out,
            "@{time} scope(principal: {caller}, resource: {place}) request_context({input}) Depot::Action::\"{action}\"::request({input}, {callers})"
        )
    } else {
        writeln!(
            out,
            "@{time} Depot::Action::\"{action}\"::response({input}, output: {{ ok: true }}, {callers})"
        )
    }
}

fn or_panic<T, E: std::fmt::Display>(result: Result<T, E>, what: &str) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{what}: {error}"),
    }
}

fn write_trace(path: &Path, events: u64) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    for n in 0..events {
        event(n, &mut out)?;
    }
    out.flush()
}

struct Run {
    took: Duration,
    /// The most memory it held, in KiB, where the system tells.
    peak: Option<u64>,
    allowed: usize,
    denied: usize,
}

fn run(program: &Path, place: &Path, trace: &str) -> Run {
    let answer = place.join("answer");
    let out = or_panic(File::create(&answer), "the answer");
    let begun = Instant::now();
    let mut child = or_panic(
        Command::new(program)
            .args(["replay", "policy.dw", "--trace", trace])
            .args(["--policy-schema", "actions.cedarschema"])
            .args(["--event-schema", "events.dwschema"])
            .current_dir(place)
            .stdout(out)
            .stderr(Stdio::null())
            .spawn(),
        "our program",
    );
    let mut peak = None;
    let status = loop {
        if let Some(status) = or_panic(child.try_wait(), "our program") {
            break status;
        }
        peak = peak_of(child.id()).or(peak);
        std::thread::sleep(Duration::from_millis(2));
    };
    let took = begun.elapsed();
    assert!(status.success(), "replay failed");
    let answer = or_panic(std::fs::read_to_string(answer), "the answer");
    let allowed = answer
        .lines()
        .filter(|line| line.contains(": ALLOW"))
        .count();
    let denied = answer
        .lines()
        .filter(|line| line.contains(": DENY"))
        .count();
    Run {
        took,
        peak,
        allowed,
        denied,
    }
}

/// The high-water mark of a running process.
fn peak_of(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn main() {
    let given = std::env::var("DOGWOOD_BENCH_EVENTS").ok();
    let long: u64 = given
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000_000);
    let program = or_panic(
        release_program("dogwood-compiler", "dogwood"),
        "our program",
    );
    let place = or_panic(tempfile::tempdir(), "a folder to work in");
    for (name, text) in [
        ("policy.dw", POLICY),
        ("actions.cedarschema", ACTIONS),
        ("events.dwschema", EVENTS),
    ] {
        or_panic(std::fs::write(place.path().join(name), text), name);
    }
    println!("| trace | MB | best of {RUNS} | events/s | peak memory |");
    println!("|---|---|---|---|---|");
    let mut peaks = Vec::new();
    let mut speed = 0.0;
    for events in [long / 10, long] {
        let path = place.path().join("trace.log");
        or_panic(write_trace(&path, events), "the trace");
        let size = or_panic(std::fs::metadata(&path), "the trace").len();
        let runs: Vec<Run> = (0..RUNS)
            .map(|_| run(&program, place.path(), "trace.log"))
            .collect();
        for run in &runs {
            assert!(run.allowed > 0 && run.denied > 0, "no mixed verdicts");
        }
        let best = runs.iter().map(|run| run.took).min().unwrap_or_default();
        let peak = runs.iter().filter_map(|run| run.peak).max();
        speed = events as f64 / best.as_secs_f64();
        println!(
            "| {events} events | {} | {best:.2?} | {speed:.0} | {} |",
            size / 1_000_000,
            peak.map_or("–".to_owned(), |peak| format!("{} KiB", peak)),
        );
        peaks.push(peak);
    }
    let told = |met: bool| if met { "met" } else { "not met" };
    println!("goal: {GOAL:.0} events/s: {}", told(speed >= GOAL));
    if let [Some(short), Some(long)] = peaks.as_slice() {
        let bounded = *long as f64 <= 1.25 * *short as f64;
        println!(
            "goal: memory of the windows, not of the trace: {}",
            told(bounded)
        );
    }
}
