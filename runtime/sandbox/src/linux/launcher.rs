//! The launcher process: ties itself to its parent, makes the namespaces, hands the listeners out, and
//! stays to hold the sandbox's life to the parent's.

use super::channel::{self, Report};
use super::{At, Fault, confine, init, kernel, view};
use crate::launch::Step;
use crate::plan::SandboxPlan;
use crate::spec::announce;
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use nix::unistd::{Gid, Uid, getppid, pipe2, setgroups, sethostname, setresgid, setresuid, setsid};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

/// The statuses of the launcher and of a workload that was never executed; nobody but a debugger sees them.
const FAILED: i32 = 3;

/// Runs the launcher: never returns. Call it first thing in `main` when [`super::is_launcher`] says so.
pub fn launcher_main() -> ! {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|text| text.parse::<i32>().ok());
    let mut number = || arguments.next().flatten().unwrap_or(-1);
    let (plan, control, status, parent) = (number(), number(), number(), number());
    let Ok(control) = kernel::adopt(control) else {
        kernel::exit_now(FAILED);
    };
    match Launcher::start(plan, control.as_raw_fd(), status, parent)
        .and_then(|launcher| launcher.run(control.as_fd()))
    {
        Ok(Process::Launcher(first)) => {
            // Only the workload's side may keep the socket and the status open.
            drop(control);
            kernel::wait_for(first);
            kernel::exit_now(0)
        }
        Ok(Process::First { status, plan, env }) => first_process(&plan, env, control, status),
        Err(fault) => fail(&control, fault),
    }
}

fn fail(control: &OwnedFd, fault: Fault) -> ! {
    let report = Report::Failed {
        step: fault.step,
        path: fault.path,
        errno: fault.errno as i32,
    };
    // With the parent gone there is nobody to tell.
    let _ = channel::send(control.as_fd(), &report, None);
    kernel::exit_now(FAILED)
}

struct Launcher {
    plan: SandboxPlan,
    status: OwnedFd,
}

enum Process {
    /// Still the launcher; the first process of the sandbox is its child.
    Launcher(libc::pid_t),
    /// The first process of the sandbox, with the workload's environment.
    First {
        plan: Box<SandboxPlan>,
        status: OwnedFd,
        env: Vec<(String, String)>,
    },
}

/// Dies when the parent does, now and if it has already.
fn tie_to_parent(parent: i32) -> Result<(), Fault> {
    prctl::set_pdeathsig(Signal::SIGKILL).at(Step::ParentDeath)?;
    if getppid().as_raw() == parent {
        Ok(())
    } else {
        Err(Errno::ESRCH).at(Step::ParentDeath)
    }
}

impl Launcher {
    fn start(plan: RawFd, control: RawFd, status: RawFd, parent: i32) -> Result<Launcher, Fault> {
        tie_to_parent(parent)?;
        kernel::close_all_but(&[plan, control, status]).at(Step::CloseDescriptors)?;
        let status = kernel::adopt(status).at(Step::ReadPlan)?;
        let mut text = Vec::new();
        let mut file = File::from(kernel::adopt(plan).at(Step::ReadPlan)?);
        // The descriptor is shared with the parent, which has written through it.
        std::io::Seek::rewind(&mut file).at(Step::ReadPlan)?;
        file.read_to_end(&mut text).at(Step::ReadPlan)?;
        let plan: SandboxPlan = serde_json::from_slice(&text)
            .map_err(|_| Errno::EBADMSG)
            .at(Step::ReadPlan)?;
        standard_streams()?;
        take_identity(&plan, parent)?;
        Ok(Launcher { plan, status })
    }

    fn run(self, control: std::os::fd::BorrowedFd) -> Result<Process, Fault> {
        let Launcher { plan, status } = self;
        if !plan.terminal {
            // Out of the caller's group, or a key pressed at its terminal would arrive twice.
            setsid().at(Step::Session)?;
        }
        namespaces(&plan)?;
        let announced = announce(plan.env.clone(), listeners(&plan, control)?);
        let env: Vec<(String, String)> = announced.into_iter().collect();
        kernel::block_signals(true).at(Step::Fork)?;
        let (alive, mut life) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)
            .map(|(read, write)| (File::from(read), File::from(write)))
            .at(Step::Fork)?;
        let Some(first) = kernel::fork().at(Step::Fork)? else {
            drop(life);
            await_life(alive)?;
            let plan = Box::new(plan);
            return Ok(Process::First { plan, status, env });
        };
        let descriptor = kernel::process_descriptor(first).at(Step::Fork)?;
        channel::send(control, &Report::Started, Some(descriptor.as_fd())).at(Step::Fork)?;
        life.write_all(b"l").at(Step::Fork)?;
        Ok(Process::Launcher(first))
    }
}

/// The first process of the namespace cannot see its parent's pid, so a byte on a pipe says it still lives.
fn await_life(mut alive: File) -> Result<(), Fault> {
    prctl::set_pdeathsig(Signal::SIGKILL).at(Step::ParentDeath)?;
    let mut byte = [0];
    alive.read_exact(&mut byte).at(Step::ParentDeath)
}

/// A directory handed in as a stream would be a way past the view.
fn standard_streams() -> Result<(), Fault> {
    for raw in 0..3 {
        let path = format!("/proc/self/fd/{raw}");
        if std::fs::metadata(&path).at(Step::StandardStreams)?.is_dir() {
            return Err(Errno::EISDIR).at(Step::StandardStreams);
        }
    }
    Ok(())
}

fn take_identity(plan: &SandboxPlan, parent: i32) -> Result<(), Fault> {
    let (uid, gid) = (
        Uid::from_raw(plan.identity.uid),
        Gid::from_raw(plan.identity.gid),
    );
    if plan.identity.take {
        setgroups(&[]).at(Step::TakeIdentity)?;
        setresgid(gid, gid, gid).at(Step::TakeIdentity)?;
        setresuid(uid, uid, uid).at(Step::TakeIdentity)?;
        // A change of ids clears both the parent-death signal and the right to write our own maps.
        prctl::set_dumpable(true).at(Step::TakeIdentity)?;
        tie_to_parent(parent)?;
    } else if Uid::effective().is_root() {
        // Refused in a container that forbids it; root's groups add nothing to root.
        let _ = setgroups(&[]);
    }
    if Uid::effective() == uid && Gid::effective() == gid {
        Ok(())
    } else {
        Err(Errno::EPERM).at(Step::TakeIdentity)
    }
}

fn namespaces(plan: &SandboxPlan) -> Result<(), Fault> {
    unshare(CloneFlags::CLONE_NEWUSER).at(Step::UserNamespace)?;
    let (uid, gid) = (plan.identity.uid, plan.identity.gid);
    for (file, text) in [
        ("/proc/self/setgroups", "deny".to_string()),
        ("/proc/self/uid_map", format!("{uid} {uid} 1")),
        ("/proc/self/gid_map", format!("{gid} {gid} 1")),
    ] {
        // One write each, as the kernel asks.
        let written = File::options()
            .write(true)
            .open(file)
            .and_then(|mut map| map.write_all(text.as_bytes()));
        written.at(Step::MapIdentity)?;
    }
    let all = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWNET
        | CloneFlags::CLONE_NEWIPC
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWCGROUP;
    unshare(all).at(Step::Namespaces)?;
    sethostname(&plan.hostname).at(Step::Hostname)?;
    let probe = socket(
        AddressFamily::Inet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .at(Step::Loopback)?;
    kernel::loopback_up(probe.as_fd()).at(Step::Loopback)
}

/// Listens for each variable of the plan, hands the listener out, and gives the variables their values.
fn listeners(
    plan: &SandboxPlan,
    control: std::os::fd::BorrowedFd,
) -> Result<Vec<(String, String)>, Fault> {
    let mut variables = Vec::new();
    for name in &plan.listeners {
        let listener = TcpListener::bind("127.0.0.1:0").at(Step::Listener)?;
        let address = listener.local_addr().at(Step::Listener)?;
        let report = Report::Listener {
            port: address.port(),
        };
        channel::send(control, &report, Some(listener.as_fd())).at(Step::PassListener)?;
        variables.push((name.clone(), address.to_string()));
    }
    Ok(variables)
}

/// Builds the view, starts the workload, and becomes the reaper.
fn first_process(
    plan: &SandboxPlan,
    env: Vec<(String, String)>,
    control: OwnedFd,
    status: OwnedFd,
) -> ! {
    let workload = view::build(plan)
        // Nothing in `/proc/1` is the workload's business; executing the program undoes this for it.
        .and_then(|()| prctl::set_dumpable(false).at(Step::Session))
        .and_then(|()| kernel::fork().at(Step::Fork));
    match workload {
        Ok(Some(workload)) => {
            if let Err(fault) = init::confine() {
                fail(&control, fault);
            }
            drop(control);
            init::serve(workload, status, plan.terminal)
        }
        Ok(None) => {
            drop(status);
            let fault = confine::workload(plan, &env, &control);
            fail(&control, fault)
        }
        Err(fault) => fail(&control, fault),
    }
}
