//! Programs of the host, each start in a sandbox of its own under the table that names it.

pub mod select;

use crate::alias;
use crate::checkpoint::Interpreter;
use crate::config::BoxConfig;
use crate::network::Network;
use crate::planning::{agent_workspace, leaf};
use box_authority::gate::Caller;
use box_sandbox::host::Host;
use box_sandbox::plan::plan;
use box_sandbox::spec::{Grants, ProcessSpec};
use box_sandbox::{Child, Signaller, grants, launch};
use box_shell::{ProgramRefusal, ProgramRun, Programs};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use select::{Choice, choose, leaf_grants, places};
use smol_str::{SmolStr, format_smolstr};
use std::io::PipeReader;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Milliseconds between asking an abandoned program to end and ending it.
const GRACE: u16 = 1000;

/// Starts programs for the shell checkpoint, which has asked the policy already.
pub struct Sandboxed {
    pub config: Arc<BoxConfig>,
    pub host: Host,
    /// The executable that launches sandboxes: this one.
    pub launcher: PathBuf,
    pub network: Arc<Network>,
    pub python: Arc<Interpreter>,
}

impl Programs for Sandboxed {
    fn describe(&self, program: &Path, args: &[String]) -> Vec<SmolStr> {
        let granted = match choose(&self.config, program, args) {
            Choice::Tool { tool, .. } => &tool.grants,
            Choice::AgentExec => &self.config.agent.grants,
            Choice::Refused(_) => return Vec::new(),
        };
        stores(granted, &self.host)
    }

    fn interpreters(&self) -> &[&str] {
        alias::PYTHONS
    }

    fn run(&self, run: ProgramRun) -> Result<i32, ProgramRefusal> {
        if run.program.is_relative() {
            return self
                .interpret(run)
                .map_err(|error| ProgramRefusal::CannotStart(error.to_string()));
        }
        let (mut spec, caller) = self.spec(&run)?;
        self.network.equip(&mut spec, &caller);
        let plan = plan(&spec, &self.host)
            .map_err(|refusal| ProgramRefusal::CannotStart(refusal.to_string()))?;
        let ProgramRun {
            stdin,
            stdout,
            stderr,
            stop,
            ..
        } = run;
        let mut child = launch(&plan, [stdin, stdout, stderr], &self.launcher)
            .map_err(|error| ProgramRefusal::CannotStart(error.to_string()))?;
        let _served = self
            .network
            .serve(&mut child, caller)
            .map_err(|error| ProgramRefusal::CannotStart(error.to_string()))?;
        wait(child, stop).map_err(|error| ProgramRefusal::CannotStart(error.to_string()))
    }
}

/// The credential stores that lists name, as rules spell them.
pub fn stores(granted: &Grants, host: &Host) -> Vec<SmolStr> {
    let mut stores: Vec<SmolStr> = grants::exposures(granted, &host.homes)
        .iter()
        .map(|found| {
            let below = |home: &PathBuf| found.store.strip_prefix(home).ok();
            match host.homes.iter().find_map(below) {
                Some(rest) => format_smolstr!("~/{}", rest.display()),
                None => format_smolstr!("{}", found.store.display()),
            }
        })
        .collect();
    stores.sort();
    stores.dedup();
    stores
}

impl Sandboxed {
    /// Runs a script typed in the shell, in the checkpoint; ends it when nobody waits for its command any more.
    fn interpret(&self, run: ProgramRun) -> std::io::Result<i32> {
        let (over, tell) = std::io::pipe()?;
        let stop = run.stop.try_clone()?;
        let cancel = Arc::new(AtomicBool::new(false));
        let heeding = Arc::clone(&cancel);
        let watcher = std::thread::Builder::new()
            .name("script stop".into())
            .spawn(move || {
                if first(&stop, &over, PollTimeout::NONE) {
                    heeding.store(true, Ordering::Release);
                }
            })?;
        let status = self.python.typed(run, &cancel);
        drop(tell);
        let _ = watcher.join();
        Ok(status)
    }

    /// The sandbox of a start, and who it is to the checkpoints.
    fn spec(&self, run: &ProgramRun) -> Result<(ProcessSpec, Caller), ProgramRefusal> {
        let config = &self.config;
        let agent = agent_workspace(config);
        let arguments = run.argv.get(1..).unwrap_or_default();
        let argv = run.argv.clone();
        match choose(config, &run.program, arguments) {
            Choice::Tool { label, tool } => {
                let places = places(tool, agent, &run.cwd);
                let mut spec = leaf(config, tool, &tool.grants, &run.program, argv, places);
                for name in &tool.pass_env {
                    if let Some(value) = run.env.get(name) {
                        spec.env.insert(name.clone(), value.clone());
                    }
                }
                Ok((spec, Caller::Tool(label.into())))
            }
            Choice::AgentExec => {
                let process = &config.agent;
                let places = places(process, agent, &run.cwd);
                let grants = leaf_grants(&process.grants);
                let spec = leaf(config, process, &grants, &run.program, argv, places);
                Ok((spec, Caller::Agent))
            }
            Choice::Refused(reason) => Err(ProgramRefusal::NotCovered {
                program: run.program.display().to_string(),
                reason,
            }),
        }
    }
}

/// Waits for the program to end; ends it when nobody waits for its command any more.
fn wait(mut child: Child, stop: OwnedFd) -> std::io::Result<i32> {
    let (over, tell) = std::io::pipe()?;
    let signaller = child.signaller();
    let watcher = std::thread::Builder::new()
        .name("program stop".into())
        .spawn(move || watch(&stop, &over, &signaller))?;
    let ended = child.wait();
    drop(tell);
    let _ = watcher.join();
    ended.map(|status| status.as_code())
}

fn watch(stop: &OwnedFd, over: &PipeReader, signaller: &Signaller) {
    if first(stop, over, PollTimeout::NONE) {
        let _ = signaller.signal(Signal::SIGTERM as i32);
        let mut only = [PollFd::new(over.as_fd(), PollFlags::POLLIN)];
        if !matches!(poll(&mut only, PollTimeout::from(GRACE)), Ok(n) if n > 0) {
            let _ = signaller.kill();
        }
    }
}

/// Waits for either end to hang up; whether it was `stop`.
fn first(stop: &OwnedFd, over: &PipeReader, timeout: PollTimeout) -> bool {
    loop {
        let mut both = [
            PollFd::new(stop.as_fd(), PollFlags::POLLIN),
            PollFd::new(over.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut both, timeout) {
            Err(nix::errno::Errno::EINTR) => {}
            Err(_) => return false,
            Ok(_) => {
                let [stop, over] = both;
                return stop.any().unwrap_or(false) && !over.any().unwrap_or(false);
            }
        }
    }
}
