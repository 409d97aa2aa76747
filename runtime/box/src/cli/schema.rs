//! `box policy generate-schema`: the tools of the MCP servers as actions a rule can name.

mod remote;

use super::Failure;
use super::prepare::{Configuration, configuration, machine, program};
use crate::config::{BoxConfig, Process, Server};
use crate::planning::server;
use crate::policy::SCHEMA;
use box_mcp::catalogue::Catalogue;
use box_mcp::discover::list_tools;
use box_mcp::relay::Ends;
use box_mcp::schema::generate_schema;
use box_sandbox::host::Host;
use box_sandbox::{launch, plan::plan};
use dogwood_compiler::schema::BOX_EVENTS;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// For one server to list all its tools.
const PATIENCE: Duration = Duration::from_secs(30);
const EVENTS: &str = "events.dwschema";

pub fn generate(file: &Path, output: &Path) -> Result<i32, Failure> {
    let Configuration { config, home, .. } = configuration(file)?;
    let host = machine(&config, &home);
    let launcher = program()?;
    let mut catalogues = Vec::new();
    let mut failed = Vec::new();
    for (name, server) in &config.mcp {
        match server {
            Server::Stdio(process) => match listed(&config, name, process, &host, &launcher) {
                Ok(catalogue) => catalogues.push(catalogue),
                Err(reason) => failed.push(format!("[mcp.{name}] {reason}")),
            },
            Server::Http(remote) => {
                let (config, remote, home) = (config.clone(), remote.clone(), home.clone());
                let asked = name.clone();
                let ask = move || remote::listed(&config, &asked, &remote, &home);
                match in_time(ask) {
                    Ok(catalogue) => catalogues.push(catalogue),
                    Err(reason) => failed.push(format!("[mcp.{name}] {reason}")),
                }
            }
        }
    }
    if !failed.is_empty() {
        return Err(Failure::failed(failed.join("\n")));
    }
    let actions = generate_schema(&catalogues).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Failure::failed(faults.join("\n"))
    })?;
    std::fs::create_dir_all(output)
        .map_err(|e| Failure::failed(format!("{}: {e}", output.display())))?;
    for (name, text) in [(SCHEMA, actions.as_str()), (EVENTS, BOX_EVENTS)] {
        let path = write(output, name, text)?;
        println(&format!("Generated {}", path.display()));
    }
    Ok(0)
}

/// A whole file or the old one, under its absolute name.
fn write(folder: &Path, name: &str, text: &str) -> Result<PathBuf, Failure> {
    let wrote = || {
        let folder = folder.canonicalize()?;
        let (path, new) = (folder.join(name), folder.join(format!(".{name}.new")));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&new)?;
        file.write_all(text.as_bytes())?;
        std::fs::rename(&new, &path)?;
        Ok::<_, std::io::Error>(path)
    };
    wrote().map_err(|e| Failure::failed(format!("{}: {e}", folder.join(name).display())))
}

fn println(line: &str) {
    // A closed standard output is the caller's choice.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// The tools of one server. It runs as it will in the box, but without any network: it only has to list.
fn listed(
    config: &BoxConfig,
    name: &str,
    process: &Process,
    host: &Host,
    launcher: &Path,
) -> Result<Catalogue, String> {
    let plan = plan(&server(config, process), host).map_err(|e| e.to_string())?;
    let pipe = || std::io::pipe().map_err(|e| e.to_string());
    let ((from_us, to_it), (from_it, to_us)) = (pipe()?, pipe()?);
    let errors = std::io::stderr()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|e| e.to_string())?;
    let stdio: [OwnedFd; 3] = [from_us.into(), to_us.into(), errors];
    let mut child = launch(&plan, stdio, launcher).map_err(|e| e.to_string())?;
    let ends = Ends {
        reader: Box::new(from_it),
        writer: Box::new(to_it),
    };
    let asked = name.to_owned();
    let found = in_time(move || list_tools(&asked, ends).map_err(|e| e.to_string()));
    let _ = child.kill();
    let _ = child.wait();
    found
}

/// The tools, if they are listed soon enough.
fn in_time(
    ask: impl FnOnce() -> Result<Catalogue, String> + Send + 'static,
) -> Result<Catalogue, String> {
    let (answer, answered) = channel();
    std::thread::Builder::new()
        .name("server tools".into())
        .spawn(move || {
            // Nobody waits for an answer that comes too late.
            let _ = answer.send(ask());
        })
        .map_err(|e| e.to_string())?;
    match answered.recv_timeout(PATIENCE) {
        Ok(listed) => listed,
        Err(RecvTimeoutError::Timeout) => Err(format!(
            "it listed no tools in {} seconds",
            PATIENCE.as_secs()
        )),
        Err(RecvTimeoutError::Disconnected) => Err("its answer could not be read".into()),
    }
}
