//! Shared parts of the tests: nothing of this crate ships.

#![forbid(unsafe_code)]

pub mod naive;
pub mod state;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

/// Builds a binary of the workspace in the profile of this test run and tells where it is.
pub fn program(package: &str, name: &str) -> Result<PathBuf, String> {
    build(package, name, &[])
}

/// The same in the release profile, to be timed.
pub fn release_program(package: &str, name: &str) -> Result<PathBuf, String> {
    build(package, name, &["--release"])
}

fn build(package: &str, name: &str, profile: &[&str]) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--locked", "--quiet", "--message-format=json"])
        .args(["--package", package, "--bin", name])
        .args(profile)
        .current_dir(workspace())
        .output()
        .map_err(|error| format!("cargo does not run: {error}"))?;
    let built = String::from_utf8_lossy(&output.stdout);
    let executable = built.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_it = message["target"]["name"] == name && message["target"]["kind"][0] == "bin";
        is_it
            .then(|| message["executable"].as_str().map(PathBuf::from))
            .flatten()
    });
    executable.ok_or_else(|| {
        let why = String::from_utf8_lossy(&output.stderr);
        format!("cargo built no {name}: {why}")
    })
}

/// Whether a program answers on this machine.
pub fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
}
