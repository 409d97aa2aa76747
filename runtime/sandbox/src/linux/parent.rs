//! The trusted side: starts the launcher, checks what it attests, opens the gate, and holds the process.

use super::channel::{self, Attestation, Report};
use super::{LAUNCHER_NAME, kernel};
use crate::launch::{ExitStatus, LaunchError};
use crate::plan::SandboxPlan;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};
use nix::sys::time::TimeVal;
use nix::unistd::pipe2;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};

/// Seconds without a report after which a launch has failed.
const PATIENCE: i64 = 60;

/// A running sandbox. Dropping it ends every process in it.
#[derive(Debug)]
pub struct Child {
    /// One for each of the spec's listeners, in order: whoever connects is this sandbox.
    pub listeners: Vec<TcpListener>,
    launcher: std::process::Child,
    signaller: Signaller,
    status: File,
    ended: Option<ExitStatus>,
}

/// Sends signals to a sandbox; may be kept by another thread than the one that waits.
#[derive(Clone, Debug)]
pub struct Signaller {
    init: Arc<OwnedFd>,
}

impl Signaller {
    /// Sends `signal` to the program's process group. A sandbox that has ended takes no signal and is no error.
    pub fn signal(&self, signal: i32) -> io::Result<()> {
        match kernel::signal_process(self.init.as_fd(), signal) {
            Ok(()) | Err(Errno::ESRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends every process of the sandbox at once.
    pub fn kill(&self) -> io::Result<()> {
        self.signal(libc::SIGKILL)
    }
}

impl Child {
    /// Waits for the program to end; when this returns, no process of the sandbox is left.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.ended {
            return Ok(status);
        }
        self.launcher.wait()?;
        self.read_status()
    }

    /// The status if the program has ended.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_some() {
            return Ok(self.ended);
        }
        match self.launcher.try_wait()? {
            Some(_) => self.read_status().map(Some),
            None => Ok(None),
        }
    }

    fn read_status(&mut self) -> io::Result<ExitStatus> {
        let mut bytes = Vec::new();
        self.status.read_to_end(&mut bytes)?;
        let status = match <[u8; 5]>::try_from(bytes.as_slice()) {
            Ok([b'c', a, b, c, d]) => ExitStatus::Code(i32::from_le_bytes([a, b, c, d])),
            Ok([b's', a, b, c, d]) => ExitStatus::Signal(i32::from_le_bytes([a, b, c, d])),
            // The first process was killed before it could write one.
            _ => ExitStatus::Signal(libc::SIGKILL),
        };
        self.ended = Some(status);
        Ok(status)
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
            let _ = self.launcher.wait();
        }
    }
}

/// Starts the program of `plan` in its sandbox. `launcher` is the executable whose `main` calls
/// [`super::launcher_main`] when [`super::is_launcher`] says so. Returns when the kernel attests the plan
/// and the program has been executed.
pub fn launch(
    plan: &SandboxPlan,
    stdio: [OwnedFd; 3],
    launcher: &Path,
) -> Result<Child, LaunchError> {
    let [stdin, stdout, stderr] = stdio;
    let (control, theirs) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )
    .map_err(spawn)?;
    setsockopt(
        &control,
        sockopt::ReceiveTimeout,
        &TimeVal::new(PATIENCE, 0),
    )
    .map_err(spawn)?;
    let (status, status_writer) = pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(spawn)?;
    let plan_file = sealed(plan)?;
    let numbers = [&plan_file, &theirs, &status_writer].map(|fd| fd.as_raw_fd().to_string());
    let own = std::process::id().to_string();
    let mut command = Command::new(launcher);
    command
        .arg0(LAUNCHER_NAME)
        .args(numbers)
        .arg(own)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr));
    kernel::pass_descriptors(&mut command, vec![plan_file, theirs, status_writer]);
    let started = spawner().start(command)?;
    Starting {
        plan,
        control,
        status,
        started,
    }
    .finish()
}

fn spawn(error: Errno) -> LaunchError {
    LaunchError::Spawn(error.into())
}

/// The plan in a memory file that nobody can change any more.
fn sealed(plan: &SandboxPlan) -> Result<OwnedFd, LaunchError> {
    let file =
        memfd_create("plan", MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING).map_err(spawn)?;
    // In one piece: written as it is serialised, each mark would be a system call.
    let text = serde_json::to_vec(plan).map_err(|error| LaunchError::Spawn(error.into()))?;
    let mut file = File::from(file);
    file.write_all(&text).map_err(LaunchError::Spawn)?;
    let seals = SealFlag::F_SEAL_SEAL
        | SealFlag::F_SEAL_SHRINK
        | SealFlag::F_SEAL_GROW
        | SealFlag::F_SEAL_WRITE;
    fcntl(&file, FcntlArg::F_ADD_SEALS(seals)).map_err(spawn)?;
    Ok(file.into())
}

type Order = (Command, Sender<io::Result<std::process::Child>>);

/// The one thread that starts launchers. A parent-death signal is tied to the thread that forked, so a
/// thread that may end before the sandbox does must not be it.
struct Spawner {
    orders: Option<Sender<Order>>,
}

fn spawner() -> &'static Spawner {
    static SPAWNER: OnceLock<Spawner> = OnceLock::new();
    SPAWNER.get_or_init(|| {
        let (orders, taken) = channel::<Order>();
        let thread = std::thread::Builder::new().name("sandbox-spawner".into());
        let running = thread.spawn(move || {
            for (mut command, answer) in taken {
                // Whoever asked is waiting; if not, the child is dropped and its gate stays shut.
                let _ = answer.send(command.spawn());
            }
        });
        Spawner {
            orders: running.is_ok().then_some(orders),
        }
    })
}

impl Spawner {
    fn start(&self, command: Command) -> Result<std::process::Child, LaunchError> {
        let (answer, started) = channel();
        let gone =
            || LaunchError::Spawn(io::Error::other("the thread that starts sandboxes is gone"));
        self.orders
            .as_ref()
            .and_then(|orders| orders.send((command, answer)).ok())
            .ok_or_else(gone)?;
        started
            .recv()
            .map_err(|_| gone())?
            .map_err(LaunchError::Spawn)
    }
}

/// A launcher at work.
struct Starting<'a> {
    plan: &'a SandboxPlan,
    control: OwnedFd,
    status: OwnedFd,
    started: std::process::Child,
}

impl Starting<'_> {
    fn finish(mut self) -> Result<Child, LaunchError> {
        match self.listen() {
            Ok((listeners, init)) => Ok(Child {
                listeners,
                launcher: self.started,
                signaller: Signaller {
                    init: Arc::new(init),
                },
                status: File::from(self.status),
                ended: None,
            }),
            Err(error) => {
                // Everything below it dies with the launcher.
                let _ = self.started.kill();
                let _ = self.started.wait();
                Err(error)
            }
        }
    }

    fn listen(&mut self) -> Result<(Vec<TcpListener>, OwnedFd), LaunchError> {
        let mut listeners = Vec::new();
        let mut init = None;
        let attestation = loop {
            match self.report()? {
                (Some(Report::Listener { .. }), Some(descriptor)) => {
                    listeners.push(TcpListener::from(descriptor));
                }
                (Some(Report::Started), Some(descriptor)) => init = Some(descriptor),
                (Some(Report::Attested(attestation)), _) => break attestation,
                (Some(other), _) => return Err(LaunchError::Garbled(format!("{other:?}"))),
                (None, _) => return Err(LaunchError::Lost),
            }
        };
        check(self.plan, &attestation)?;
        if listeners.len() != self.plan.listeners.len() {
            return Err(LaunchError::Attestation {
                property: "listeners",
                planned: self.plan.listeners.len().to_string(),
                found: listeners.len().to_string(),
            });
        }
        let init = init.ok_or(LaunchError::Lost)?;
        nix::unistd::write(&self.control, b"g").map_err(spawn)?;
        // The socket closes when the program has been executed; a report instead says why it was not.
        match self.report()? {
            (None, _) => Ok((listeners, init)),
            (Some(other), _) => Err(LaunchError::Garbled(format!("{other:?}"))),
        }
    }

    /// The next report; none once every process of the launcher has let go of the socket.
    fn report(&self) -> Result<(Option<Report>, Option<OwnedFd>), LaunchError> {
        let (packet, descriptor) = loop {
            match channel::receive(self.control.as_fd()) {
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Err(LaunchError::Lost),
                other => break other.map_err(spawn)?,
            }
        };
        if packet.is_empty() {
            return Ok((None, None));
        }
        match serde_json::from_slice(&packet) {
            Ok(Report::Failed { step, path, errno }) => Err(LaunchError::Step {
                step,
                path,
                error: io::Error::from_raw_os_error(errno),
            }),
            Ok(report) => Ok((Some(report), descriptor)),
            Err(_) => Err(LaunchError::Garbled(
                String::from_utf8_lossy(&packet).chars().take(200).collect(),
            )),
        }
    }
}

/// Compares what the kernel says with what was planned.
fn check(plan: &SandboxPlan, attestation: &Attestation) -> Result<(), LaunchError> {
    let none = "0000000000000000";
    let expected = [
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
        ("Pid", "2"),
        ("CapInh", none),
        ("CapPrm", none),
        ("CapEff", none),
        ("CapBnd", none),
        ("CapAmb", none),
    ];
    let differs = |property, planned: String, found: String| {
        if planned == found {
            Ok(())
        } else {
            Err(LaunchError::Attestation {
                property,
                planned,
                found,
            })
        }
    };
    for (name, planned) in expected {
        let found = attestation.status.get(name).cloned().unwrap_or_default();
        differs(name, planned.into(), found)?;
    }
    differs("interfaces", "lo".into(), attestation.interfaces.join(" "))?;
    differs(
        "open descriptors",
        format!("{:?}", [0, 1, 2]),
        format!("{:?}", attestation.descriptors),
    )?;
    let abi = plan.landlock.as_ref().map_or(0, |landlock| landlock.abi);
    differs(
        "Landlock ABI",
        abi.to_string(),
        attestation.landlock.to_string(),
    )
}
