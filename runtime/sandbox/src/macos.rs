//! The macOS back end: the profile of a plan, handed to the system's `sandbox-exec`, which applies it to
//! itself and becomes the program.
//!
//! Three processes: the box; a supervisor, a fresh execution of our own program, which leads the process
//! group and ends it when the program or the box has ended; and the program. Nothing here but the wait for
//! the box's end is particular to macOS, so that all of it runs in tests with a stand-in for `sandbox-exec`.

mod descriptors;
mod private;
mod supervisor;

pub use supervisor::{is_launcher, launcher_main};

use crate::host::{Files, Identity, Machine};
use crate::launch::{ExitStatus, LaunchError, Step};
use crate::plan::{Paths, SandboxPlan};
use crate::seatbelt::{ProfileRefusal, Wiring, profile};
use crate::spec::announce;
use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use private::Private;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use supervisor::{LAUNCHER_NAME, Order, Report};

/// The system's own, by its full name: whoever can replace it owns the machine.
pub const SANDBOX_EXEC: &str = "/usr/bin/sandbox-exec";

/// How long the supervisor may take to start the program.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running sandbox. Dropping it ends every process of its group.
#[derive(Debug)]
pub struct Child {
    /// One for each of the spec's listeners, in order: whoever connects is this sandbox.
    pub listeners: Vec<TcpListener>,
    supervisor: std::process::Child,
    reports: BufReader<UnixStream>,
    signaller: Signaller,
    ended: Option<ExitStatus>,
    _private: Private,
}

/// Sends signals to a sandbox; may be kept by another thread than the one that waits.
#[derive(Clone, Debug)]
pub struct Signaller {
    group: Arc<Group>,
}

/// The process group the supervisor leads. Its number may be somebody else's once the supervisor is reaped.
#[derive(Debug)]
struct Group {
    leader: Pid,
    alive: Mutex<bool>,
}

impl Group {
    fn alive(&self) -> MutexGuard<'_, bool> {
        // A flag is whole whatever happened to who held it.
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Signaller {
    /// Sends `signal` to the program's process group. A sandbox that has ended takes no signal and is no error.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        let signal = Signal::try_from(signal)?;
        let alive = self.group.alive();
        if !*alive {
            return Ok(());
        }
        match killpg(self.group.leader, signal) {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends every process of the group at once.
    pub fn kill(&self) -> io::Result<()> {
        self.signal(Signal::SIGKILL as i32)
    }
}

impl Child {
    /// Waits for the program to end; when this returns, no process of its group is left.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.ended {
            return Ok(status);
        }
        let status = match report(&mut self.reports) {
            Ok(Some(Report::Ended(status))) => status.into(),
            // The supervisor was killed, and its group with it.
            _ => ExitStatus::Signal(Signal::SIGKILL as i32),
        };
        let mut alive = self.signaller.group.alive();
        self.supervisor.wait()?;
        *alive = false;
        self.ended = Some(status);
        Ok(status)
    }

    /// The status if the program has ended.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_some() {
            return Ok(self.ended);
        }
        let ended = {
            let mut alive = self.signaller.group.alive();
            let ended = self.supervisor.try_wait()?.is_some();
            *alive &= !ended;
            ended
        };
        if ended {
            self.wait().map(Some)
        } else {
            Ok(None)
        }
    }

    pub fn signaller(&self) -> Signaller {
        self.signaller.clone()
    }

    pub fn signal(&self, signal: i32) -> io::Result<()> {
        self.signaller.signal(signal)
    }

    pub fn kill(&self) -> io::Result<()> {
        self.signaller.kill()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // Nothing better can be done here when the kernel refuses.
            let _ = self.kill();
            let _ = self.supervisor.wait();
        }
    }
}

/// Starts the program of `plan` in its sandbox. `launcher` is the executable whose `main` calls
/// [`launcher_main`] when [`is_launcher`] says so. Returns when `sandbox-exec` has been started; a profile
/// it refuses ends it before the program.
pub fn launch(
    plan: &SandboxPlan,
    stdio: [OwnedFd; 3],
    launcher: &Path,
) -> Result<Child, LaunchError> {
    launch_with(Path::new(SANDBOX_EXEC), plan, stdio, launcher)
}

/// [`launch`] by another `sandbox-exec` than the system's.
pub fn launch_with(
    sandbox_exec: &Path,
    plan: &SandboxPlan,
    stdio: [OwnedFd; 3],
    launcher: &Path,
) -> Result<Child, LaunchError> {
    let paths = plan
        .paths
        .as_ref()
        .ok_or(LaunchError::Profile(ProfileRefusal::NoPaths))?;
    let identity = plan
        .identity
        .take
        .then_some((plan.identity.uid, plan.identity.gid));
    let private = Private::make(paths, identity)?;
    let mut listeners = Vec::new();
    let mut ports = Vec::new();
    for _ in &plan.listeners {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(at(Step::Listener))?;
        let address = listener.local_addr().map_err(at(Step::Listener))?;
        ports.push(address.port());
        listeners.push(listener);
    }
    let mut streams = Vec::new();
    for stream in &stdio {
        streams
            .extend(descriptors::regular_file(stream.as_fd()).map_err(at(Step::StandardStreams))?);
    }
    let wiring = Wiring {
        private: private.path.clone(),
        ports,
        streams,
        grafts: defines_grafts(sandbox_exec),
    };
    let text = profile(plan, &wiring).map_err(LaunchError::Profile)?;
    let order = Order {
        sandbox_exec: sandbox_exec.into(),
        arguments: arguments(plan, paths, &text),
        env: environment(plan, paths, &wiring),
        cwd: plan.cwd.clone(),
        umask: plan.umask,
        terminal: plan.terminal,
        identity,
        parent: std::process::id(),
    };
    // At the last moment: what was checked is what the profile names.
    same_files(paths)?;
    start(&order, stdio, launcher, listeners, private)
}

fn at(step: Step) -> impl Fn(io::Error) -> LaunchError {
    move |error| LaunchError::Step {
        step,
        path: None,
        error,
    }
}

/// The arguments of `sandbox-exec`. It names the program by the path it executes, so that is the spelling the
/// program was found under.
pub fn arguments(plan: &SandboxPlan, paths: &Paths, profile: &str) -> Vec<String> {
    let mut arguments = vec!["-p".into(), profile.into(), "--".into()];
    arguments.push(paths.invoked.display().to_string());
    arguments.extend(plan.argv.iter().skip(1).cloned());
    arguments
}

/// The whole environment: the plan's, with the listeners' addresses, the links for the aliases found before
/// anything else, and the sandbox's own scratch directory.
pub fn environment(plan: &SandboxPlan, paths: &Paths, wiring: &Wiring) -> BTreeMap<String, String> {
    let mut env = plan.env.clone();
    let names = wiring.names();
    for value in env.values_mut() {
        let alias = paths.aliases.contains_key(Path::new(value.as_str()));
        if let Some(name) = Path::new(value.as_str()).file_name().filter(|_| alias) {
            *value = names.join(name).display().to_string();
        }
    }
    if !paths.aliases.is_empty() {
        let path = env.entry("PATH".into()).or_default();
        let separator = if path.is_empty() { "" } else { ":" };
        *path = format!("{}{separator}{path}", names.display());
    }
    env.insert("TMPDIR".into(), wiring.scratch().display().to_string());
    let ports = wiring.ports.iter();
    let announced = plan.listeners.iter().zip(ports);
    announce(
        env,
        announced.map(|(name, port)| (name.clone(), format!("127.0.0.1:{port}"))),
    )
}

/// Whether this release knows the operations on grafts; a profile with an operation it does not know is
/// refused whole.
fn defines_grafts(sandbox_exec: &Path) -> bool {
    let probe = "(version 1)\n(allow default)\n(deny file-graft)\n(deny file-ungraft)\n";
    Command::new(sandbox_exec)
        .args(["-p", probe, "--", "/usr/bin/true"])
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn same_files(paths: &Paths) -> Result<(), LaunchError> {
    let grants = paths
        .grants
        .iter()
        .map(|grant| (&grant.path, grant.identity));
    let programs = paths
        .programs
        .iter()
        .map(|file| (&file.path, file.identity));
    for (path, planned) in grants.chain(programs) {
        let found: Option<Identity> = Machine.node(path).map(|node| node.identity);
        if found != Some(planned) {
            return Err(LaunchError::Step {
                step: Step::Identity,
                path: Some(path.clone()),
                error: io::Error::from(Errno::ESTALE),
            });
        }
    }
    Ok(())
}

fn start(
    order: &Order,
    [stdin, stdout, stderr]: [OwnedFd; 3],
    launcher: &Path,
    listeners: Vec<TcpListener>,
    private: Private,
) -> Result<Child, LaunchError> {
    let (control, theirs) = UnixStream::pair().map_err(LaunchError::Spawn)?;
    let mut command = Command::new(launcher);
    // An empty environment: what is meant for the program must not change what our own code loads.
    command
        .arg0(LAUNCHER_NAME)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr));
    descriptors::pass(&mut command, theirs.into());
    let mut supervisor = command.spawn().map_err(LaunchError::Spawn)?;
    // Our copy of their end; with it open, their end would not be seen.
    drop(command);
    match running(&control, order) {
        Ok(reports) => Ok(Child {
            listeners,
            signaller: Signaller {
                group: Arc::new(Group {
                    leader: Pid::from_raw(supervisor.id().cast_signed()),
                    alive: Mutex::new(true),
                }),
            },
            supervisor,
            reports,
            ended: None,
            _private: private,
        }),
        Err(error) => {
            // It ends by itself when the socket closes; this only hastens it.
            let _ = supervisor.kill();
            let _ = supervisor.wait();
            Err(error)
        }
    }
}

/// Gives the order and waits until the program runs.
fn running(control: &UnixStream, order: &Order) -> Result<BufReader<UnixStream>, LaunchError> {
    let mut line = serde_json::to_vec(order).map_err(|error| LaunchError::Spawn(error.into()))?;
    line.push(b'\n');
    let mut writer = control;
    writer.write_all(&line).map_err(LaunchError::Spawn)?;
    let reader = control.try_clone().map_err(LaunchError::Spawn)?;
    reader
        .set_read_timeout(Some(PATIENCE))
        .map_err(LaunchError::Spawn)?;
    let mut reader = BufReader::new(reader);
    let first = report(&mut reader)?;
    reader
        .get_ref()
        .set_read_timeout(None)
        .map_err(LaunchError::Spawn)?;
    match first {
        Some(Report::Running) => Ok(reader),
        Some(Report::Failed { step, path, errno }) => Err(LaunchError::Step {
            step,
            path,
            error: io::Error::from_raw_os_error(errno),
        }),
        Some(other) => Err(LaunchError::Garbled(format!("{other:?}"))),
        None => Err(LaunchError::Lost),
    }
}

/// The next report; none once the supervisor has ended.
fn report(reader: &mut BufReader<UnixStream>) -> Result<Option<Report>, LaunchError> {
    let mut line = String::new();
    match reader.read_line(&mut line) {
        Ok(0) => Ok(None),
        Ok(_) => serde_json::from_str(&line)
            .map(Some)
            .map_err(|_| LaunchError::Garbled(line.chars().take(200).collect())),
        Err(_) => Err(LaunchError::Lost),
    }
}

/// What a private directory is made in: the caller's own, by the kernel's name for it.
fn temporary() -> io::Result<PathBuf> {
    std::fs::canonicalize(std::env::temp_dir())
}
