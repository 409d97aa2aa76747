//! Our monitor against the engine of the reference, in one process, over the same rules and events.
//!
//! ```text
//! cargo bench -p dogwood-tests --bench engine            # everything
//! cargo bench -p dogwood-tests --bench engine -- since   # rows whose name has the word
//! ```
//!
//! `DOGWOOD_BENCH_HISTORY` (`1000,10000,100000,1000000`) names the lengths of history, `DOGWOOD_BENCH_PEER_SECONDS`
//! (20) how long a cell of the peer may take to load and again to decide, `DOGWOOD_BENCH_STEPS` (20000) how
//! many decisions of ours are timed. `ours` as an argument leaves the peer out; the rows of `shape` are ours alone.
//!
//! Before anything is timed both engines decide the same events, and must agree and say both yes and no.
//! Decisions are timed one by one, in the order of a stream: an event of the past, a decision, and so on.
//! A counting allocator says what the history takes; both engines pay for the counting.

#![allow(clippy::print_stdout, clippy::panic)]

#[path = "engine/durable.rs"]
mod durable;
#[path = "engine/measure.rs"]
mod measure;
#[path = "engine/ours.rs"]
mod ours;
#[path = "engine/peer.rs"]
mod peer;
#[path = "engine/shapes.rs"]
mod shapes;
#[path = "engine/workload.rs"]
mod workload;

use cap::Cap;
use measure::{Budget, Measured, agree, measure};
use ours::Ours;
use peer::Peer;
use std::alloc::System;
use std::time::Duration;
use workload::Workload;

#[global_allocator]
static ALLOCATED: Cap<System> = Cap::new(System, usize::MAX);

/// History and decisions of the run before the clock starts.
const REHEARSAL: (usize, usize) = (600, 400);

struct Plan {
    words: Vec<String>,
    histories: Vec<usize>,
    peer: Option<Budget>,
    ours: Budget,
}

impl Plan {
    fn new() -> Plan {
        let number = |name: &str, default: usize| {
            let given = std::env::var(name).ok();
            given.and_then(|text| text.parse().ok()).unwrap_or(default)
        };
        let histories = std::env::var("DOGWOOD_BENCH_HISTORY")
            .unwrap_or_else(|_| "1000,10000,100000,1000000".to_owned());
        // Cargo itself adds `--bench`.
        let words: Vec<String> = std::env::args()
            .skip(1)
            .filter(|word| !word.starts_with('-'))
            .collect();
        let seconds = Duration::from_secs(number("DOGWOOD_BENCH_PEER_SECONDS", 20) as u64);
        let peer = Budget {
            setup: seconds,
            measured: seconds / 4,
            steps: 2000,
        };
        Plan {
            histories: histories
                .split(',')
                .filter_map(|text| text.trim().parse().ok())
                .collect(),
            peer: (!words.iter().any(|word| word == "ours")).then_some(peer),
            words: words.into_iter().filter(|word| word != "ours").collect(),
            ours: Budget {
                setup: Duration::from_secs(600),
                measured: Duration::from_secs(60),
                steps: number("DOGWOOD_BENCH_STEPS", 20_000),
            },
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| name.contains(word.as_str()))
    }
}

fn main() {
    let plan = Plan::new();
    println!(
        "| rules | history | p50 | p99 | events/s | bytes/event | peer p50 | peer p99 | peer bytes/event | ratio | goal |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for workload in workload::all() {
        if plan.wants(workload.name) {
            row(&workload, &plan);
        }
    }
    for shape in shapes::all() {
        if plan.wants(shape.name) {
            row(&shape, &plan);
        }
    }
    if plan.peer.is_some() && plan.wants("durable") {
        durable::run();
    }
}

/// Both engines over a short history: whoever is raced must decide alike.
fn rehearse(workload: &Workload) {
    let (history, steps) = REHEARSAL;
    let budget = Budget {
        setup: Duration::from_secs(300),
        measured: Duration::from_secs(300),
        steps,
    };
    let run = |name: &str, answer: Result<Measured, String>| match answer {
        Ok(measured) => measured.verdicts,
        Err(error) => panic!("{}: {name}: {error}", workload.name),
    };
    let ours = run("ours", measure::<Ours>(workload, history, budget));
    let peers = run("the peer", measure::<Peer>(workload, history, budget));
    agree(workload.name, &ours, &peers, true);
}

fn row(workload: &Workload, plan: &Plan) {
    let peer = plan.peer.filter(|_| !workload.name.starts_with("shape"));
    if peer.is_some() {
        rehearse(workload);
    }
    let shortest: &[usize] = match plan.histories.as_slice() {
        [first, ..] if !workload.temporal => std::slice::from_ref(first),
        all => all,
    };
    let mut first: Option<(Duration, Duration)> = None;
    for &history in shortest {
        let peer = peer.map(|budget| measure::<Peer>(workload, history, budget));
        let ours = match measure::<Ours>(workload, history, plan.ours) {
            Ok(measured) => measured,
            Err(error) => panic!("{}: {error}", workload.name),
        };
        if let Some(Ok(peer)) = &peer {
            agree(workload.name, &ours.verdicts, &peer.verdicts, false);
        }
        let (p50, p99) = *first.get_or_insert((ours.p50, ours.p99));
        let flat = ours.p50 <= 2 * p50 && ours.p99 <= 2 * p99;
        print_row(workload, history, &ours, peer.as_ref(), flat);
    }
}

fn print_row(
    workload: &Workload,
    history: usize,
    ours: &Measured,
    peer: Option<&Result<Measured, String>>,
    flat: bool,
) {
    let per_event = |measured: &Measured| measured.bytes / history.max(1) as u64;
    let memory = |measured: &Measured| match workload.temporal {
        true => per_event(measured).to_string(),
        false => "".to_owned(),
    };
    let their = match peer {
        None => "| | | | ".to_owned(),
        Some(Err(why)) => format!("| – ({why}) | | | "),
        Some(Ok(peer)) => format!(
            "| {} | {} | {} | {:.0}× ",
            shown(peer.p50),
            shown(peer.p99),
            memory(peer),
            peer.p50.as_secs_f64() / ours.p50.as_secs_f64().max(1e-9)
        ),
    };
    let goal = workload.goal;
    let mut verdicts = vec![told(
        format!("≤ {}", shown(Duration::from_nanos(goal.nanoseconds))),
        ours.p50 <= Duration::from_nanos(goal.nanoseconds),
    )];
    if goal.flat {
        verdicts.push(told("flat".to_owned(), flat));
    }
    if let Some(bytes) = goal.bytes_per_event {
        verdicts.push(told(format!("≤ {bytes} B"), per_event(ours) <= bytes));
    }
    println!(
        "| {} | {} | {} | {} | {:.0} | {} {their}| {} |",
        workload.name,
        history,
        shown(ours.p50),
        shown(ours.p99),
        ours.events_per_second(),
        memory(ours),
        verdicts.join(", "),
    );
}

fn told(goal: String, met: bool) -> String {
    format!("{goal}: {}", if met { "met" } else { "**not met**" })
}

/// Three digits and a unit.
pub fn shown(time: Duration) -> String {
    let nanoseconds = time.as_nanos() as f64;
    match nanoseconds {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e4 => format!("{:.2} µs", n / 1e3),
        n if n < 1e6 => format!("{:.0} µs", n / 1e3),
        n if n < 1e9 => format!("{:.1} ms", n / 1e6),
        n => format!("{:.1} s", n / 1e9),
    }
}
