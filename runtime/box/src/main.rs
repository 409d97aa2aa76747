//! One program under several names: the command `box`, the launcher of sandboxes, the worker that runs Python,
//! and the shells, Pythons and MCP servers inside a sandbox.

#![forbid(unsafe_code)]

use std::process::exit;

fn main() {
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_default();
    // Before anything else: the launcher must run while there is one thread.
    if box_sandbox::is_launcher(&name) {
        box_sandbox::launcher_main();
    }
    if box_python::is_worker(&name) {
        box_python::worker_main();
    }
    if box_run::alias::is_alias(&name) {
        exit(box_run::alias::main(&name, words));
    }
    exit(box_run::cli::main());
}
