//! MCP servers that are programs: each connection of the agent's starts one in a sandbox of its own, after a
//! `shell:spawn` permit, and every frame in between is decided.

use crate::broker::frame::Open;
use crate::broker::{Stop, Stopped, Streams};
use crate::config::{BoxConfig, Process};
use crate::network::Network;
use crate::planning::server;
use box_authority::action::{Action, Command, Outcome, Spawn};
use box_authority::gate::{Caller, Gate};
use box_mcp::catalogue::Allowance;
use box_mcp::relay::{Deciders, Ends, PATIENCE, Policies, relay};
use box_sandbox::host::Host;
use box_sandbox::plan::plan;
use box_sandbox::{Child, Signaller, launch};
use nix::sys::signal::Signal;
use smol_str::{SmolStr, format_smolstr};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Between asking a server to end and ending it.
const GRACE: Duration = Duration::from_secs(2);
/// No server of that name, and no permit.
const NOT_FOUND: i32 = 127;
const REFUSED: i32 = 126;

pub struct Servers {
    pub config: Arc<BoxConfig>,
    pub host: Host,
    pub launcher: PathBuf,
    /// The operator's.
    pub home: PathBuf,
    pub gate: Arc<dyn Gate>,
    pub network: Arc<Network>,
    pub policies: Arc<dyn Policies>,
    /// What listing the tools of each server may still cost, by its name.
    pub allowances: BTreeMap<SmolStr, Allowance>,
}

impl Servers {
    /// Runs the server whose program has the name of the alias, until either end is through.
    pub fn run(&self, caller: &Caller, open: &Open, streams: Streams) -> Result<i32, String> {
        let Streams {
            stdin,
            stdout,
            mut stderr,
            stop,
        } = streams;
        let asked = open.name.as_deref().unwrap_or_default();
        let found = self
            .config
            .servers()
            .find(|(_, process)| process.program_name() == asked);
        // Whoever reads nothing of its standard error is not told.
        let Some((name, process)) = found else {
            let _ = writeln!(stderr, "there is no MCP server `{asked}` in this box");
            return Ok(NOT_FOUND);
        };
        let permit = match self.gate.decide(caller, self.question(process)) {
            Ok(permit) => permit,
            Err(denial) => {
                let _ = writeln!(stderr, "box: {denial}");
                return Ok(REFUSED);
            }
        };
        let identity = Caller::McpServer(name.into());
        let started = self.start(process, &identity);
        let (mut child, ends, errors) = match started {
            Ok(started) => started,
            Err(reason) => {
                permit.complete(Outcome::Failed);
                let _ = writeln!(
                    stderr,
                    "box: the MCP server `{name}` did not start: {reason}"
                );
                return Ok(REFUSED);
            }
        };
        let served = self.network.serve(&mut child, identity);
        let signaller = child.signaller();
        let watching = std::thread::Builder::new()
            .name("server stop".into())
            .spawn(move || end_with(&stop, &signaller));
        let mut operator = stderr.clone();
        let passing = std::thread::Builder::new()
            .name("server errors".into())
            .spawn(move || pass_on(errors, &mut operator));
        let notices = stderr.clone();
        let relayed = match (&served, &watching, &passing) {
            (Ok(_), Ok(_), Ok(_)) => relay(
                name,
                Ends {
                    reader: Box::new(stdin),
                    writer: Box::new(stdout),
                },
                ends,
                Deciders {
                    gate: Arc::clone(&self.gate),
                    caller: caller.clone(),
                    policies: Arc::clone(&self.policies),
                    allowance: self.allowances.get(name).cloned().unwrap_or_default(),
                    patience: PATIENCE,
                    notice: Box::new(move |line| {
                        let _ = writeln!(notices.clone(), "box: {line}");
                    }),
                },
            ),
            _ => Err(std::io::Error::other("the box is out of threads")),
        };
        // Its output has ended; what it still does, it does for nobody.
        let _ = child.signal(Signal::SIGTERM as i32);
        let status = wait(&mut child).map_err(|e| e.to_string())?;
        drop(served);
        permit.complete(Outcome::Status(i64::from(status)));
        relayed.map_err(|e| e.to_string())?;
        Ok(0)
    }

    fn question(&self, process: &Process) -> Action {
        let spelled = |path: &Path| match path.strip_prefix(&self.home) {
            Ok(rest) if rest.as_os_str().is_empty() => SmolStr::new("~"),
            Ok(rest) => format_smolstr!("~/{}", rest.display()),
            Err(_) => format_smolstr!("{}", path.display()),
        };
        let (workspace, _) = crate::planning::server_places(&self.config, process);
        Action::ShellSpawn(Spawn {
            command: Command {
                words: process.argv.iter().map(SmolStr::new).collect(),
                program: process.program_name().into(),
                cwd: spelled(workspace),
            },
            program_path: spelled(&process.program),
            credential_reads: crate::programs::stores(&process.grants, &self.host),
        })
    }

    /// The server, its two ends, and its standard error.
    fn start(&self, process: &Process, identity: &Caller) -> Result<(Child, Ends, File), String> {
        let mut spec = server(&self.config, process);
        self.network.equip(&mut spec, identity);
        let plan = plan(&spec, &self.host).map_err(|e| e.to_string())?;
        let pipe = || std::io::pipe().map_err(|e| e.to_string());
        let ((from_us, to_it), (from_it, to_us), (errors, its_errors)) =
            (pipe()?, pipe()?, pipe()?);
        let stdio: [OwnedFd; 3] = [from_us.into(), to_us.into(), its_errors.into()];
        let child = launch(&plan, stdio, &self.launcher).map_err(|e| e.to_string())?;
        let ends = Ends {
            reader: Box::new(from_it),
            writer: Box::new(to_it),
        };
        Ok((child, ends, File::from(OwnedFd::from(errors))))
    }
}

/// Waits for it to end, and ends it when it takes too long.
fn wait(child: &mut Child) -> std::io::Result<i32> {
    let steps = 100;
    for _ in 0..steps {
        if let Some(status) = child.try_wait()? {
            return Ok(status.as_code());
        }
        std::thread::sleep(GRACE / steps);
    }
    child.kill()?;
    child.wait().map(|status| status.as_code())
}

/// Ends the server when the agent's side has gone or asks for it.
fn end_with(stop: &Stop, signaller: &Signaller) {
    match stop.wait() {
        Stopped::Over => {}
        Stopped::Gone | Stopped::Signal(_) => {
            // One that has ended takes no signal.
            let _ = signaller.signal(Signal::SIGTERM as i32);
            std::thread::sleep(GRACE);
            let _ = signaller.kill();
        }
    }
}

fn pass_on(mut from: File, to: &mut impl Write) {
    let mut chunk = [0; 4096];
    loop {
        match from.read(&mut chunk) {
            Ok(0) | Err(_) => return,
            Ok(read) => {
                // What nobody takes is read all the same, or the server would wait.
                let _ = to.write_all(chunk.get(..read).unwrap_or_default());
            }
        }
    }
}
