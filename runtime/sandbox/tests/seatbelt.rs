//! The macOS launcher end to end, with a stand-in for the system's `sandbox-exec`. This executable is the
//! test, the supervisor, the stand-in and the confined program: `main` looks at how it was called. What a
//! profile means is not tried here, as only a Mac can.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test, which clippy does not see in one that brings its own main"
)]

#[cfg(unix)]
#[path = "seatbelt/programs.rs"]
mod programs;
#[cfg(unix)]
#[path = "seatbelt/runs.rs"]
mod runs;

#[cfg(unix)]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let name = arguments.first().map_or("", String::as_str);
    if box_sandbox::macos::is_launcher(name.as_ref()) {
        box_sandbox::macos::launcher_main();
    }
    if name.ends_with("/sandbox-exec") {
        programs::stand_in(&arguments);
    }
    if name.ends_with("/box") {
        runs::hold();
    }
    runs::main(&arguments);
}

#[cfg(not(unix))]
fn main() {
    println!("test result: ok. 0 passed; this platform has no processes to supervise");
}
