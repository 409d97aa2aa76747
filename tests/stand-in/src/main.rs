//! Runs an example beside a server on this machine that stands for the services it talks to.

use stand_in::Upstream;
use stand_in::example::{identity, service};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Where the `box.toml` of every example says its services are.
const SECURE: u16 = 8443;
const PLAIN: u16 = 8080;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let Some(folder) = arguments.next().map(PathBuf::from) else {
        eprintln!(
            "usage: stand-in FOLDER [ARGUMENT…], the folder of an example and what its agent is told"
        );
        return ExitCode::from(2);
    };
    match run(&folder, arguments) {
        Ok(code) => code,
        Err(why) => {
            eprintln!("stand-in: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(folder: &Path, arguments: impl Iterator<Item = OsString>) -> Result<ExitCode, String> {
    let identity = identity();
    let started = |port, identity| {
        Upstream::on(port, identity, service()).map_err(|e| format!("port {port}: {e}"))
    };
    let _servers = (started(SECURE, Some(&identity))?, started(PLAIN, None)?);
    let roots = folder.join("stand-in.pem");
    std::fs::write(&roots, &identity.root_pem).map_err(|e| format!("{}: {e}", roots.display()))?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--bin", "box", "--"])
        .args(["run", "--config"])
        .arg(folder.join("box.toml"))
        .arg("--")
        .args(arguments)
        .status()
        .map_err(|e| format!("cargo does not run: {e}"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
