//! One run, seen from the trusted process: starts a worker, performs what it asks for and is permitted, and
//! ends it when it takes too much of anything.

mod files;
mod perform;

use crate::protocol::{
    Exception, FrameFault, Longest, Order, Reply, Report, WorkerLimits, receive, send,
};
use crate::{Limits, Python, Request, Source, Streams};
use files::Files;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use perform::Performer;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thiserror::Error;

const REFUSED: i32 = 2;
const NOT_RUN_TO_THE_END: i32 = 125;
const CANCELLED: i32 = 130;

/// How often a wait looks whether it should go on.
const TICK: Duration = Duration::from_millis(100);

/// Bytes of one frame's head: paths and headers.
const HEAD: usize = 1 << 20;

/// Why a run ended before its script did.
#[derive(Debug, Error)]
pub(crate) enum Stop {
    #[error("cancelled")]
    Cancelled,
    #[error("the script ran longer than {} seconds and was stopped", .0.as_secs_f64())]
    Wall(Duration),
    #[error("the script worked longer than {} seconds and was stopped", .0.as_secs_f64())]
    Execution(Duration),
    #[error("the script wrote more than {0} bytes and was stopped")]
    Output(u64),
    #[error("the script went on asking after its {0} effects were used up, and was stopped")]
    Effects(usize),
    #[error("the reader of standard output has gone")]
    NoReader,
    #[error("MemoryError: the script held more than {0} bytes")]
    Memory(usize),
    #[error("the Python worker could not be started: {0}")]
    Start(io::Error),
    #[error("the Python worker could not give up its rights, so nothing was run: {0}")]
    NotConfined(String),
    #[error("the Python worker broke its protocol: {0}")]
    Protocol(FrameFault),
    #[error("the Python worker crashed ({0}); what the script did before that stays done")]
    Crashed(ExitStatus),
}

impl Stop {
    fn status(&self) -> i32 {
        match self {
            Stop::Cancelled => CANCELLED,
            // What Python's own exceptions would end in.
            Stop::Memory(_) | Stop::NoReader => 1,
            _ => NOT_RUN_TO_THE_END,
        }
    }
}

/// When a run has to be over.
#[derive(Clone)]
pub(crate) struct Until {
    deadline: Option<Instant>,
    wall: Duration,
    cancel: Option<Arc<AtomicBool>>,
}

impl Until {
    fn new(wall: Duration, cancel: Option<Arc<AtomicBool>>) -> Self {
        Self {
            deadline: Instant::now().checked_add(wall),
            wall,
            cancel,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Stop> {
        if self
            .cancel
            .as_ref()
            .is_some_and(|cancel| cancel.load(Ordering::Relaxed))
        {
            return Err(Stop::Cancelled);
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Stop::Wall(self.wall)),
            _ => Ok(()),
        }
    }

    /// Waits, unless the run is over first.
    pub(crate) fn wait(&self, time: Duration) -> Result<(), Stop> {
        let start = Instant::now();
        loop {
            self.check()?;
            match time.checked_sub(start.elapsed()) {
                None | Some(Duration::ZERO) => return Ok(()),
                Some(rest) => std::thread::sleep(rest.min(TICK)),
            }
        }
    }
}

pub(crate) fn run(python: &Python, request: Request, mut io: Streams) -> i32 {
    let ran = ready(python, &request, &mut io).and_then(|(name, text)| {
        let until = Until::new(python.config.limits.wall, request.cancel.clone());
        Run::start(python, &request, &until)
            .and_then(|mut run| run.script(&mut io, name, &text))
            .map_err(|stop| (stop.status(), format!("box: python: {stop}")))
    });
    let status = match ran {
        Ok(status) => status,
        Err((status, text)) => {
            // Nobody is left to tell when this fails.
            let _ = writeln!(io.stderr, "{text}");
            status
        }
    };
    let _ = io.stdout.flush();
    let _ = io.stderr.flush();
    status
}

/// The script's name and text.
fn ready(
    python: &Python,
    request: &Request,
    io: &mut Streams,
) -> Result<(String, String), (i32, String)> {
    let longest = python.config.limits.source;
    let (name, bytes) = match &request.source {
        Source::Command(text) => ("<string>".to_owned(), text.clone().into_bytes()),
        Source::Script { name, text } => (name.clone(), text.clone().into_bytes()),
        Source::Input => {
            let mut bytes = Vec::new();
            let most = u64::try_from(longest).unwrap_or(u64::MAX).saturating_add(1);
            (&mut io.stdin)
                .take(most)
                .read_to_end(&mut bytes)
                .map_err(|error| {
                    let text = format!("python3: can't read standard input: {error}");
                    (NOT_RUN_TO_THE_END, text)
                })?;
            ("<stdin>".to_owned(), bytes)
        }
        Source::File(path) => {
            let name = path.display().to_string();
            let bytes = Files::new(python, request).read(&name).map_err(|raised| {
                let text = format!("python3: can't open file '{name}': {}", raised.text);
                (REFUSED, text)
            })?;
            (name, bytes)
        }
    };
    if bytes.len() > longest {
        let text = format!("python3: {name}: the script is longer than {longest} bytes");
        return Err((REFUSED, text));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((name, text)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let text = format!("python3: {name}: the script is not UTF-8: see byte {at}");
            Err((REFUSED, text))
        }
    }
}

struct Run<'p> {
    worker: Worker,
    socket: UnixStream,
    until: Until,
    performer: Performer<'p>,
    limits: &'p Limits,
    effects: usize,
    output: u64,
}

/// A process that does not outlive its run.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl<'p> Run<'p> {
    fn start(python: &'p Python, request: &Request, until: &Until) -> Result<Self, Stop> {
        until.check()?;
        let (socket, theirs) = UnixStream::pair().map_err(Stop::Start)?;
        let child = Command::new(&python.config.worker)
            .arg0(crate::worker::WORKER)
            .env_clear()
            .current_dir(Path::new("/"))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Stop::Start)?;
        socket
            .set_read_timeout(Some(TICK))
            .and_then(|()| socket.set_write_timeout(Some(TICK)))
            .map_err(Stop::Start)?;
        Ok(Self {
            worker: Worker(child),
            socket,
            until: until.clone(),
            performer: Performer::new(python, request, until.clone()),
            limits: &python.config.limits,
            effects: 0,
            output: 0,
        })
    }

    fn script(&mut self, io: &mut Streams, name: String, text: &str) -> Result<i32, Stop> {
        let limits = WorkerLimits {
            memory: self.limits.memory,
            recursion: self.limits.recursion,
            execution: u64::try_from(self.limits.execution.as_millis()).unwrap_or(u64::MAX),
            content: self.limits.file,
        };
        self.send(&Order::Run { name, limits }, text.as_bytes())?;
        loop {
            let (report, bytes) = self.receive()?;
            match report {
                Report::Output => self.print(io, &bytes)?,
                Report::Ask(effect) => {
                    self.effects += 1;
                    let (reply, bytes) = match self.effects.checked_sub(self.limits.effects) {
                        None | Some(0) => self.performer.perform(effect, bytes)?,
                        Some(1) => {
                            let most = self.limits.effects;
                            let text = format!("a script may ask for {most} effects, no more");
                            (Reply::End(Exception::Runtime.says(text)), Vec::new())
                        }
                        Some(_) => return Err(Stop::Effects(self.limits.effects)),
                    };
                    self.send(&Order::Answer(reply), &bytes)?;
                }
                Report::Ended { status } => {
                    self.say(io, &bytes);
                    return Ok(status & 0xff);
                }
                Report::Refused => {
                    self.say(io, &bytes);
                    return Ok(REFUSED);
                }
                Report::NotConfined(reason) => return Err(Stop::NotConfined(reason)),
            }
        }
    }

    fn print(&mut self, io: &mut Streams, bytes: &[u8]) -> Result<(), Stop> {
        self.output = self.output.saturating_add(bytes.len() as u64);
        if self.output > self.limits.output {
            return Err(Stop::Output(self.limits.output));
        }
        io.stdout
            .write_all(bytes)
            .and_then(|()| io.stdout.flush())
            .map_err(|_| Stop::NoReader)
    }

    /// What is said about the script's end. It has its place on the error stream, and nowhere else to fail to.
    fn say(&self, io: &mut Streams, bytes: &[u8]) {
        let _ = io.stdout.flush();
        let _ = io.stderr.write_all(bytes);
    }

    fn send(&mut self, order: &Order, bytes: &[u8]) -> Result<(), Stop> {
        let mut wire = Wire::new(&self.socket, &self.until);
        let sent = send(&mut wire, order, bytes);
        let stop = wire.stop.take();
        sent.map_err(|fault| self.over(fault, stop))
    }

    fn receive(&mut self) -> Result<(Report, Vec<u8>), Stop> {
        let longest = Longest {
            head: HEAD,
            // A file's content, or what is said about the end of a script.
            bytes: self.limits.file.saturating_add(HEAD),
        };
        let mut wire = Wire::new(&self.socket, &self.until);
        let received = receive(&mut wire, longest);
        let stop = wire.stop.take();
        received.map_err(|fault| self.over(fault, stop))
    }

    /// Why the worker does not talk any more.
    fn over(&mut self, fault: FrameFault, stop: Option<Stop>) -> Stop {
        if let Some(stop) = stop {
            return stop;
        }
        let FrameFault::Io(_) = &fault else {
            return Stop::Protocol(fault);
        };
        // It has hung up, so it is ending; one that pretends to is ended.
        let ended = self.until.wait_for(&mut self.worker.0);
        match ended {
            Some(status) if status.code() == Some(monty_types::OOM_EXIT_CODE) => {
                Stop::Memory(self.limits.memory)
            }
            Some(status) if status.signal() == Some(Signal::SIGXCPU as i32) => {
                Stop::Execution(self.limits.execution)
            }
            Some(status) => Stop::Crashed(status),
            None => Stop::Protocol(fault),
        }
    }
}

impl Until {
    /// The status of a process that should be ending: given one second, then killed.
    fn wait_for(&self, child: &mut Child) -> Option<ExitStatus> {
        for _ in 0..100 {
            match child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) => std::thread::sleep(Duration::from_millis(10)),
                Err(_) => return None,
            }
        }
        let id = i32::try_from(child.id()).ok()?;
        let _ = kill(Pid::from_raw(id), Signal::SIGKILL);
        None
    }
}

/// The socket, with every wait on it cut into ticks.
struct Wire<'s> {
    socket: &'s UnixStream,
    until: &'s Until,
    stop: Option<Stop>,
}

impl<'s> Wire<'s> {
    fn new(socket: &'s UnixStream, until: &'s Until) -> Self {
        Self {
            socket,
            until,
            stop: None,
        }
    }

    fn tried(
        &mut self,
        mut act: impl FnMut(&UnixStream) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            if let Err(stop) = self.until.check() {
                self.stop = Some(stop);
                return Err(io::Error::from(ErrorKind::TimedOut));
            }
            match act(self.socket) {
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) => {}
                done => return done,
            }
        }
    }
}

impl Read for Wire<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.tried(|mut socket| socket.read(buffer))
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.tried(|mut socket| socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
