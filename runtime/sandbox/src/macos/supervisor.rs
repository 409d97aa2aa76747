//! The supervisor: leads the sandbox's process group, and ends it with the program or with the box.

use super::descriptors;
use crate::launch::{ExitStatus, Step};
use nix::errno::Errno;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{Pid, getpgrp, getppid, setpgid, setsid, tcgetpgrp, tcsetpgrp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;

/// `argv[0]` of the supervisor.
pub(super) const LAUNCHER_NAME: &str = "box-seatbelt-launch";

/// What to start. It comes over a socket: arguments are shown to every user of the machine.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    pub sandbox_exec: PathBuf,
    pub arguments: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
    pub umask: u32,
    pub terminal: bool,
    /// The user and group the program takes, of a caller who is root.
    pub identity: Option<(u32, u32)>,
    pub parent: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    Running,
    Failed {
        step: Step,
        path: Option<PathBuf>,
        errno: i32,
    },
    Ended(Ended),
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ended {
    Code(i32),
    Signal(i32),
}

impl From<Ended> for ExitStatus {
    fn from(ended: Ended) -> ExitStatus {
        match ended {
            Ended::Code(code) => ExitStatus::Code(code),
            Ended::Signal(signal) => ExitStatus::Signal(signal),
        }
    }
}

/// Whether this process was started to launch a sandbox. Ask before anything else: no thread may exist.
pub fn is_launcher(argv0: &OsStr) -> bool {
    argv0 == LAUNCHER_NAME
}

/// Runs the supervisor: never returns. Call it first thing in `main` when [`is_launcher`] says so.
pub fn launcher_main() -> ! {
    let number = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let control = number
        .ok_or_else(|| io::Error::from(Errno::EBADF))
        .and_then(descriptors::take)
        .map(UnixStream::from);
    // Without the socket there is nobody to tell.
    if let Ok(control) = control {
        supervise(control);
    }
    std::process::exit(3)
}

fn supervise(mut control: UnixStream) {
    let Ok(reader) = control.try_clone().map(BufReader::new) else {
        return;
    };
    match Supervisor::start(reader) {
        Ok(mut supervisor) => {
            tell(&mut control, &Report::Running);
            let ended = supervisor.wait();
            tell(&mut control, &Report::Ended(ended));
            supervisor.end();
        }
        Err((step, path, error)) => {
            let errno = error.raw_os_error().unwrap_or(Errno::EINVAL as i32);
            tell(&mut control, &Report::Failed { step, path, errno });
        }
    }
}

/// With the box gone there is nobody to tell.
fn tell(control: &mut UnixStream, report: &Report) {
    if let Ok(mut line) = serde_json::to_vec(report) {
        line.push(b'\n');
        let _ = control.write_all(&line);
    }
}

type Fault = (Step, Option<PathBuf>, io::Error);

fn at<E: Into<io::Error>>(step: Step) -> impl Fn(E) -> Fault {
    move |error| (step, None, error.into())
}

struct Supervisor {
    program: std::process::Child,
    /// The terminal's group before it was the sandbox's.
    lent: Option<Pid>,
}

impl Supervisor {
    fn start(mut reader: BufReader<UnixStream>) -> Result<Supervisor, Fault> {
        let mut line = String::new();
        reader.read_line(&mut line).map_err(at(Step::ReadPlan))?;
        let order: Order = serde_json::from_str(&line)
            .map_err(|_| Errno::EBADMSG)
            .map_err(at(Step::ReadPlan))?;
        // What is sent to the group is meant for the program; and a member of the group behind the terminal
        // may not take it otherwise.
        SigSet::all().thread_block().map_err(at(Step::Session))?;
        let lent = lead(order.terminal).map_err(at(Step::Session))?;
        let core = setrlimit(Resource::RLIMIT_CORE, 0, 0);
        core.map_err(at(Step::Limits))?;
        umask(Mode::from_bits_truncate(order.umask as nix::libc::mode_t));
        let mut command = Command::new(&order.sandbox_exec);
        command
            .args(&order.arguments)
            .env_clear()
            .envs(&order.env)
            .current_dir(&order.cwd);
        if let Some((uid, gid)) = order.identity {
            use std::os::unix::process::CommandExt;
            // Of root's supplementary groups it keeps none.
            command.uid(uid).gid(gid);
        }
        descriptors::open_to_signals(&mut command, order.terminal);
        let program = command
            .spawn()
            .map_err(|error| (Step::Execute, Some(order.sandbox_exec.clone()), error))?;
        let parent = Pid::from_raw(order.parent.cast_signed());
        let watching = std::thread::Builder::new().spawn(move || {
            await_end(parent, reader);
            end_group();
        });
        let supervisor = Supervisor { program, lent };
        if let Err(error) = watching {
            // Unwatched, the program would outlive the box.
            end_group();
            return Err((Step::ParentDeath, None, error));
        }
        Ok(supervisor)
    }

    fn wait(&mut self) -> Ended {
        match self.program.wait() {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => Ended::Code(code),
                (None, Some(signal)) => Ended::Signal(signal),
                (None, None) => Ended::Signal(Signal::SIGKILL as i32),
            },
            Err(_) => Ended::Signal(Signal::SIGKILL as i32),
        }
    }

    /// Gives the terminal back and ends what the program left behind, and this process with it.
    fn end(&self) {
        if let Some(group) = self.lent {
            // A terminal that has gone needs no giving back.
            let _ = tcsetpgrp(io::stdin(), group);
        }
        end_group();
    }
}

fn end_group() {
    // The group is our own, so that it is there.
    let _ = killpg(getpgrp(), Signal::SIGKILL);
}

/// Makes this process the leader of a group of its own, in front of the terminal if it shares one; returns the
/// group that was in front before.
fn lead(terminal: bool) -> Result<Option<Pid>, Errno> {
    if !terminal {
        setsid()?;
        return Ok(None);
    }
    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    // Standard input may be redirected on a terminal all the same.
    let Ok(before) = tcgetpgrp(io::stdin()) else {
        return Ok(None);
    };
    tcsetpgrp(io::stdin(), getpgrp())?;
    Ok(Some(before))
}

/// Returns when the box has ended, by whatever means.
#[cfg(target_os = "macos")]
fn await_end(parent: Pid, _control: BufReader<UnixStream>) {
    use nix::sys::event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue};
    let Ok(queue) = Kqueue::new() else { return };
    let watch = KEvent::new(
        parent.as_raw().cast_unsigned() as usize,
        EventFilter::EVFILT_PROC,
        EvFlags::EV_ADD | EvFlags::EV_ONESHOT,
        FilterFlag::NOTE_EXIT,
        0,
        0,
    );
    // A process that is gone already cannot be watched, which is an error and means the same.
    if queue.kevent(&[watch], &mut [], None).is_err() || getppid() != parent {
        return;
    }
    let mut seen = [watch];
    while queue.kevent(&[], &mut seen, None) == Err(Errno::EINTR) {}
}

/// Returns when the box has ended: nobody else holds the other end of the socket.
#[cfg(not(target_os = "macos"))]
fn await_end(parent: Pid, mut control: BufReader<UnixStream>) {
    if getppid() == parent {
        // Nothing more is ever sent.
        let _ = control.read_line(&mut String::new());
    }
}
