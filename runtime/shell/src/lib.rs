//! The shell checkpoint of a box: runs shell text in process and asks the [`Gate`] before every command and
//! every effect.
//!
//! In: a [`Request`], its [`Streams`], a gate to ask, and [`Programs`] to start what is not the shell's own.
//! Out: an exit status, and the text people and agents read on the streams. It holds no verdict, starts no
//! program without a permit, and touches no file that was not decided.
//!
//! The interpreter is bashkit, kept behind the modules below. Statuses: 126 refused or cannot start, 127 not
//! found, 125 the checkpoint itself failed, 130 cancelled; else the command's own.

#![forbid(unsafe_code)]

mod admission;
mod by_path;
mod decide;
pub mod files;
mod fs;
mod host;
mod run;
mod spawn;
mod stdin;

use box_authority::gate::{Caller, Gate};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Where the shell lives and what it may reach.
#[derive(Clone, Debug)]
pub struct Config {
    /// The operator's home: paths below it are spelled `~/…`.
    pub home: PathBuf,
    /// `HOME` of the scripts.
    pub agent_home: PathBuf,
    pub workspace: PathBuf,
    /// Directories in which bare program names are looked up.
    pub path: Vec<PathBuf>,
    /// Refused whatever the policy says: the box directory, the loaded configuration and policy.
    pub protected: Vec<PathBuf>,
    pub limits: Limits,
}

#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of one command text.
    pub command_bytes: usize,
    /// Bytes of one file in memory, and files and directories there.
    pub memory_file: u64,
    pub memory_entries: u64,
    /// Bytes of one host file that is read whole, and of standard input a builtin reads.
    pub host_file: u64,
    /// Bytes a run holds at once.
    pub live_bytes: u64,
    /// How long a whole run, and one program in it, may take. Nothing ends them otherwise.
    pub run_wall: Option<Duration>,
    pub program_wall: Option<Duration>,
    /// How long to wait for the end of standard input when a nested script may read it.
    pub stdin_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            command_bytes: 1 << 20,
            memory_file: 10 << 20,
            memory_entries: 10_000,
            host_file: 256 << 20,
            live_bytes: 1 << 30,
            run_wall: None,
            program_wall: None,
            stdin_grace: Duration::from_secs(1),
        }
    }
}

/// One command text to run, start to end: nothing of it survives.
#[derive(Clone, Debug)]
pub struct Request {
    pub text: String,
    /// `$0`, `$1`, …; empty for a bare `-c`.
    pub args: Vec<String>,
    pub cwd: PathBuf,
    /// Variables exported beside `HOME`, `PATH`, `USER` and `SHELL`.
    pub env: BTreeMap<String, String>,
    pub caller: Caller,
    /// Ends the run when set: programs are told to stop, the status is 130.
    pub cancel: Option<Arc<AtomicBool>>,
}

pub struct Streams {
    pub stdin: Box<dyn Read + Send>,
    pub stdout: Box<dyn Write + Send>,
    pub stderr: Box<dyn Write + Send>,
}

/// Starts host programs: the box's tool tables and sandboxes.
pub trait Programs: Send + Sync {
    /// Credential stores that the tool table matching this start names; part of the question.
    fn describe(&self, program: &Path, args: &[String]) -> Vec<SmolStr>;

    /// Bare names the box interprets itself. Typed in the shell they are decided as `shell:exec`, and
    /// [`Programs::run`] gets the name where it else gets a file.
    fn interpreters(&self) -> &[&str] {
        &[]
    }

    /// Runs a permitted program to its end: its exit status, or 128+N on a signal. Called on its own thread.
    ///
    /// # Errors
    /// When nothing was started.
    fn run(&self, run: ProgramRun) -> Result<i32, ProgramRefusal>;
}

/// A permitted start.
#[derive(Debug)]
pub struct ProgramRun {
    /// The canonical file that was decided, or the bare name of an interpreter.
    pub program: PathBuf,
    /// `argv[0]` is the word as typed.
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    /// What the script exported.
    pub env: BTreeMap<String, String>,
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    /// Hangs up (`POLLHUP`) when the command was abandoned: killed, timed out, or the run is over. Whoever
    /// waits for the program must watch this too and end the program then.
    pub stop: OwnedFd,
}

/// Why a permitted program did not start; the command ends with 126.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramRefusal {
    #[error("no tool runs {program}: {reason}")]
    NotCovered { program: String, reason: String },
    #[error("cannot start: {0}")]
    CannotStart(String),
}

/// Runs shell text for one box. Cheap to clone, usable from any thread; each run is its own world.
#[derive(Clone)]
pub struct Shell {
    config: Arc<Config>,
    gate: Arc<dyn Gate>,
    programs: Arc<dyn Programs>,
}

impl Shell {
    pub fn new(config: Config, gate: Arc<dyn Gate>, programs: Arc<dyn Programs>) -> Self {
        let canonical = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let config = Config {
            home: canonical(&config.home),
            agent_home: canonical(&config.agent_home),
            workspace: canonical(&config.workspace),
            ..config
        };
        Self {
            config: Arc::new(config),
            gate,
            programs,
        }
    }

    /// Runs the request to its end and gives its status. Blocks.
    pub fn run(&self, request: Request, io: Streams) -> i32 {
        run::run(self, request, io)
    }
}
