//! What a worker has given up, read from the kernel, and what happens when it dies.

use crate::world::{Ran, Test, World};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[cfg(target_os = "linux")]
pub const TESTS: &[Test] = &[
    (
        "the_kernel_says_what_a_worker_gave_up",
        the_kernel_says_what_a_worker_gave_up,
    ),
    ("a_killed_worker_is_told", a_killed_worker_is_told),
];
#[cfg(not(target_os = "linux"))]
pub const TESTS: &[Test] = &[];

/// The worker of this process that has begun to run its script.
fn worker() -> Option<(i32, String)> {
    std::fs::read_dir("/proc").unwrap().find_map(|entry| {
        let id = entry.ok()?.file_name().to_str()?.parse::<i32>().ok()?;
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
        let line = std::fs::read(format!("/proc/{id}/cmdline")).ok()?;
        let ours = status.contains(&format!("PPid:\t{}\n", std::process::id()))
            && line.starts_with(b"box-python-worker")
            && status.contains("Seccomp:\t2\n");
        ours.then_some((id, status))
    })
}

/// Runs a script that waits, does `with` to its worker and the switch that cancels it, and gives how it ended.
fn while_it_waits(with: impl FnOnce(i32, String, &AtomicBool)) -> Ran {
    let mut world = World::new();
    let cancel = Arc::new(AtomicBool::new(false));
    world.cancel = Some(Arc::clone(&cancel));
    let run = std::thread::spawn(move || world.run("print('on', end='')\nsleep(120)\n"));
    let (id, status) = loop {
        if let Some(found) = worker() {
            break found;
        }
        assert!(!run.is_finished(), "the worker ended by itself");
        std::thread::yield_now();
    };
    with(id, status, &cancel);
    run.join().unwrap()
}

fn the_kernel_says_what_a_worker_gave_up() {
    let mut seen = None;
    let ran = while_it_waits(|id, status, cancel| {
        let limits = std::fs::read_to_string(format!("/proc/{id}/limits")).unwrap();
        seen = Some((status, limits));
        cancel.store(true, Ordering::Relaxed);
    });
    let (status, limits) = seen.unwrap();
    assert!(status.contains("NoNewPrivs:\t1\n"), "{status}");
    let limit = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        line.trim_start_matches(name)
            .split_whitespace()
            .next()
            .unwrap()
            .to_owned()
    };
    for name in [
        "Max open files",
        "Max file size",
        "Max core file size",
        "Max processes",
    ] {
        assert_eq!(limit(name), "0", "{name}");
    }
    for name in ["Max address space", "Max cpu time", "Max stack size"] {
        assert_ne!(limit(name), "unlimited", "{name}");
    }
    assert_eq!(ran.status, 130, "{}", ran.all());
}

fn a_killed_worker_is_told() {
    let mut dead = 0;
    let ran = while_it_waits(|id, _, _| {
        kill(Pid::from_raw(id), Signal::SIGKILL).unwrap();
        dead = id;
    });
    assert_eq!(ran.status, 125, "{}", ran.all());
    assert!(ran.stderr.contains("crashed (signal: 9"), "{}", ran.stderr);
    assert!(
        kill(Pid::from_raw(dead), None).is_err(),
        "the worker was not reaped"
    );
}
