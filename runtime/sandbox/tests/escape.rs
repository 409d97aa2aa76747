//! Tries to get out of real sandboxes. This executable is the test, the launcher, and the workload: `main`
//! looks at how it was called. As root the whole suite runs a second time as an ordinary user.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test, which clippy does not see in one that brings its own main"
)]

#[cfg(target_os = "linux")]
#[path = "escape/expect.rs"]
mod expect;
#[cfg(target_os = "linux")]
#[path = "escape/files.rs"]
mod files;
#[cfg(target_os = "linux")]
#[path = "escape/life.rs"]
mod life;
#[cfg(target_os = "linux")]
#[path = "escape/probe.rs"]
mod probe;
#[cfg(target_os = "linux")]
#[path = "escape/programs.rs"]
mod programs;
#[cfg(target_os = "linux")]
#[path = "escape/runner.rs"]
mod runner;
#[cfg(target_os = "linux")]
#[path = "escape/surface.rs"]
mod surface;
#[cfg(target_os = "linux")]
#[path = "escape/world.rs"]
mod world;

#[cfg(target_os = "linux")]
fn main() {
    let mut arguments = std::env::args_os();
    if arguments
        .next()
        .is_some_and(|name| box_sandbox::is_launcher(&name))
    {
        box_sandbox::launcher_main();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((mode, rest)) if mode == "probe" => probe::main(rest),
        Some((mode, rest)) if mode == "hold" => life::hold(rest),
        _ => runner::main(&arguments),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("test result: ok. 0 passed; these are ways out of a Linux sandbox");
}
