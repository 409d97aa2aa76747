//! What a monitor says it holds is what it holds, and no more than the windows need. One test in one process:
//! the allocator counts for all.

use cap::Cap;
use dogwood_compiler::monitor::{Config, Monitor};
use dogwood_tests::state::{KINDS, event};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// So many bytes of state for each event that a window still needs.
const FOR_EACH: usize = 200;

#[test]
fn a_monitor_holds_what_it_says_and_no_more_than_it_needs() {
    for kind in &KINDS {
        let policy = kind.policy();
        // What is made lazily for the first monitor of a policy is not state.
        drop(Monitor::new(policy.clone(), Config::default()));
        let before = ALLOCATOR.allocated();
        let mut monitor = Monitor::new(policy, Config::default());
        let mut said = Vec::new();
        for n in 0..100_000 {
            monitor.step(&event(n)).expect("in time");
            if n % 20_000 == 19_999 {
                let held = ALLOCATOR.allocated() - before;
                let size = monitor.size();
                println!(
                    "{:28} {:7} events: {:8} bytes held, {:8} said, {:6} rows, {:6} values",
                    kind.name,
                    n + 1,
                    held,
                    size.bytes,
                    size.rows,
                    size.values
                );
                let apart = held.abs_diff(size.bytes);
                assert!(
                    apart <= held / 5 + 4096,
                    "{}: {held} bytes held, {} said",
                    kind.name,
                    size.bytes
                );
                said.push(held);
            }
        }
        let needed = usize::try_from(kind.window.max(1) / kind.needs_one_in).unwrap();
        let held = said.last().copied().unwrap();
        // A sweep of values waits until there are some thousands of them.
        let fixed = 256 * 1024;
        assert!(
            held <= needed * FOR_EACH + fixed,
            "{}: {held} bytes for {needed} events",
            kind.name
        );
        let (third, last) = (said[2], said[4]);
        assert!(
            last <= third * 3 / 2 + fixed,
            "{}: grows from {third} to {last}",
            kind.name
        );
    }
}
