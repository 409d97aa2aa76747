//! Ten million events through every kind of cell: bytes held, and events a second.
//!
//! `cargo bench -p dogwood-tests --bench state`. After `--`, a number runs so many events instead, and a word
//! only the kinds that have it in their name.

use cap::Cap;
use dogwood_compiler::monitor::{Config, Monitor};
use dogwood_tests::state::{KINDS, event};
use std::alloc::System;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const EVENTS: i64 = 10_000_000;

fn main() {
    // Cargo adds a flag of its own.
    let arguments = std::env::args().skip(1);
    let arguments: Vec<String> = arguments.filter(|word| !word.starts_with("--")).collect();
    let events = arguments.iter().find_map(|word| word.parse().ok());
    let events: i64 = events.unwrap_or(EVENTS);
    let wanted = arguments.iter().find(|word| word.parse::<i64>().is_err());
    println!(
        "{:26} {:>9} {:>9} {:>11} {:>11} {:>8} {:>12}",
        "kind of cell", "events", "needed", "held", "said", "a needed", "events/s"
    );
    let kinds = KINDS.iter();
    for kind in kinds.filter(|kind| wanted.is_none_or(|word| kind.name.contains(word.as_str()))) {
        let policy = kind.policy();
        let before = ALLOCATOR.allocated();
        let mut monitor = Monitor::new(policy, Config::default());
        let needed = usize::try_from(kind.window / kind.needs_one_in).unwrap_or(1);
        let mut stepping = Duration::ZERO;
        let mut next = 100_000;
        let mut n = 0;
        // Making the events is not what is timed.
        while n < events {
            let batch: Vec<_> = (n..(n + 1000).min(events)).map(event).collect();
            let started = Instant::now();
            for event in &batch {
                if let Err(error) = monitor.step(event) {
                    println!("{}: {error}", kind.name);
                    std::process::exit(1);
                }
            }
            stepping += started.elapsed();
            n += batch.len() as i64;
            drop(batch);
            if n >= next.min(events) {
                let held = ALLOCATOR.allocated() - before;
                println!(
                    "{:26} {:>9} {:>9} {:>11} {:>11} {:>8} {:>12.0}",
                    kind.name,
                    n,
                    needed,
                    held,
                    monitor.size().bytes,
                    held / needed,
                    n as f64 / stepping.as_secs_f64()
                );
                next *= 10;
            }
        }
    }
}
