//! Runs scripts in real workers. This executable is the test and the worker: `main` looks at how it was called.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test, which clippy does not see in one that brings its own main"
)]

#[path = "worker/confinement.rs"]
mod confinement;
#[path = "worker/differential.rs"]
mod differential;
#[path = "worker/effects.rs"]
mod effects;
#[path = "worker/ends.rs"]
mod ends;
#[path = "worker/limits.rs"]
mod limits;
#[path = "worker/network.rs"]
mod network;
#[path = "worker/world.rs"]
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

fn main() {
    let mut arguments = std::env::args_os();
    if arguments
        .next()
        .is_some_and(|name| box_python::is_worker(&name))
    {
        box_python::worker_main();
    }
    let filter = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let tests = [
        confinement::TESTS,
        effects::TESTS,
        ends::TESTS,
        limits::TESTS,
        network::TESTS,
        differential::TESTS,
    ]
    .concat();
    let mut failed = Vec::new();
    let mut passed = 0;
    for (name, test) in tests {
        if filter.as_ref().is_some_and(|filter| !name.contains(filter)) {
            continue;
        }
        print!("test {name} ... ");
        match catch_unwind(AssertUnwindSafe(test)) {
            Ok(()) => {
                passed += 1;
                println!("ok");
            }
            Err(_) => {
                failed.push(name);
                println!("FAILED");
            }
        }
    }
    println!(
        "\ntest result: {}. {passed} passed; {} failed\n",
        if failed.is_empty() { "ok" } else { "FAILED" },
        failed.len()
    );
    if !failed.is_empty() {
        println!("failed: {failed:?}");
        std::process::exit(101);
    }
}
