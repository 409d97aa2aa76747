//! The Python checkpoint of a box: runs a script in a worker process that can do nothing by itself, asks the
//! [`Gate`] before every effect the script wants, and performs only what was permitted.
//!
//! In: a [`Request`], its [`Streams`], a gate to ask, and a [`Fetch`] for the one way to the network. Out: an
//! exit status, and the text people and agents read on the streams. It holds no verdict, and no line of the
//! script is interpreted in this process.
//!
//! The interpreter is monty, a subset of Python; what it cannot run is refused before anything of the script
//! has run. Statuses: 0 done, 1 an exception or a limit that is one, 2 refused, 125 not run to its end, 130
//! cancelled.

#![forbid(unsafe_code)]

mod arguments;
mod fetch;
mod protocol;
mod session;
mod subset;
mod worker;

pub use arguments::{HELP, Invocation, UsageError, VERSION, arguments};
pub use box_shell::Streams;
pub use fetch::{Fetch, FetchError, FetchReply, FetchRequest};
pub use worker::{WORKER, is_worker, worker_main};

use box_authority::gate::{Caller, Gate};
use box_shell::files::Protected;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

/// Counts what the worker holds, and ends it at its limit. It must serve the whole executable, because the
/// worker is that executable started again; elsewhere it only counts.
#[global_allocator]
static COUNTED: monty_alloc::LimitedAllocator = monty_alloc::LimitedAllocator;

/// Where scripts live and what they may reach.
#[derive(Clone, Debug)]
pub struct Config {
    /// The operator's home: paths below it are spelled `~/…`.
    pub home: PathBuf,
    /// `HOME` of the agent.
    pub agent_home: PathBuf,
    pub workspace: PathBuf,
    /// Refused whatever the policy says: the box directory, the loaded configuration and policy.
    pub protected: Vec<PathBuf>,
    /// This executable, whose `main` calls [`worker_main`] when [`is_worker`] says so.
    pub worker: PathBuf,
    pub limits: Limits,
}

#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of one script.
    pub source: usize,
    /// Bytes a script holds at once.
    pub memory: usize,
    /// Nested calls.
    pub recursion: usize,
    /// Effects of one script.
    pub effects: usize,
    /// Time the interpreter works, time a script sleeps, and time from its start to its end.
    pub execution: Duration,
    pub sleep: Duration,
    pub wall: Duration,
    /// Bytes of one file that is read or written.
    pub file: usize,
    /// Bytes of standard output.
    pub output: u64,
    /// Bytes of one reply from the network.
    pub reply: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            source: 1 << 20,
            memory: 256 << 20,
            recursion: 1000,
            effects: 10_000,
            execution: Duration::from_secs(120),
            sleep: Duration::from_secs(180),
            wall: Duration::from_secs(300),
            file: 32 << 20,
            output: 1 << 30,
            reply: 1 << 20,
        }
    }
}

/// One script to run, start to end: nothing of it survives.
#[derive(Clone, Debug)]
pub struct Request {
    pub source: Source,
    pub cwd: PathBuf,
    pub caller: Caller,
    /// Ends the run when set; the status is 130.
    pub cancel: Option<Arc<AtomicBool>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `-c`.
    Command(String),
    /// A script somebody else has read, with the name tracebacks give it.
    Script { name: String, text: String },
    /// A script to read from here: one decision.
    File(PathBuf),
    /// Standard input, to its end.
    Input,
}

/// Tells the time.
pub trait Clock: Send + Sync {
    fn now(&self) -> SystemTime;
}

struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// Runs scripts for one box. Cheap to clone, usable from any thread; each run is its own process.
#[derive(Clone)]
pub struct Python {
    config: Arc<Config>,
    protected: Arc<Vec<Protected>>,
    gate: Arc<dyn Gate>,
    web: Arc<dyn Fetch>,
    clock: Arc<dyn Clock>,
}

impl Python {
    pub fn new(config: Config, gate: Arc<dyn Gate>, web: Arc<dyn Fetch>) -> Self {
        let canonical = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let config = Config {
            home: canonical(&config.home),
            agent_home: canonical(&config.agent_home),
            workspace: canonical(&config.workspace),
            ..config
        };
        let protected = config.protected.iter().map(|path| Protected::new(path));
        Self {
            protected: Arc::new(protected.collect()),
            config: Arc::new(config),
            gate,
            web,
            clock: Arc::new(SystemClock),
        }
    }

    /// Tells scripts another time than the machine's.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Runs the script to its end and gives its status. Blocks.
    pub fn run(&self, request: Request, io: Streams) -> i32 {
        session::run(self, request, io)
    }
}
