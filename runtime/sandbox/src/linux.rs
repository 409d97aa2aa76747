//! The Linux back end: namespaces and a constructed view, then Landlock, then seccomp.
//!
//! Three processes make one sandbox. The launcher, a fresh execution of our own program, makes the
//! namespaces; the first process in them builds the view, reaps, and passes signals on; the workload
//! confines itself, attests what the kernel says, waits for the gate, and executes the program.

mod attest;
mod channel;
mod confine;
mod init;
mod kernel;
mod launcher;
mod parent;
mod seccomp;
mod view;

pub use launcher::launcher_main;
pub use parent::{Child, Signaller, launch};

use crate::launch::Step;
use nix::errno::Errno;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// `argv[0]` of the launcher.
const LAUNCHER_NAME: &str = "box-sandbox-launch";

/// Whether this process was started to launch a sandbox. Ask before anything else: no thread may exist.
pub fn is_launcher(argv0: &OsStr) -> bool {
    argv0 == LAUNCHER_NAME
}

/// The Landlock ABI whose rights this build knows and this kernel has; 0 without Landlock.
pub fn landlock_abi() -> u32 {
    kernel::landlock_abi().min(confine::NEWEST_LANDLOCK)
}

/// A step that failed, before it becomes a report.
#[derive(Debug)]
struct Fault {
    step: Step,
    path: Option<PathBuf>,
    errno: Errno,
}

/// Names the step, and the path where there is one, of a system call that failed.
trait At<T> {
    fn at(self, step: Step) -> Result<T, Fault>;
    fn at_path(self, step: Step, path: &Path) -> Result<T, Fault>;
}

impl<T> At<T> for Result<T, Errno> {
    fn at(self, step: Step) -> Result<T, Fault> {
        self.map_err(|errno| Fault {
            step,
            path: None,
            errno,
        })
    }

    fn at_path(self, step: Step, path: &Path) -> Result<T, Fault> {
        self.map_err(|errno| Fault {
            step,
            path: Some(path.into()),
            errno,
        })
    }
}

impl<T> At<T> for std::io::Result<T> {
    fn at(self, step: Step) -> Result<T, Fault> {
        self.map_err(errno_of).at(step)
    }

    fn at_path(self, step: Step, path: &Path) -> Result<T, Fault> {
        self.map_err(errno_of).at_path(step, path)
    }
}

fn errno_of(error: std::io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EINVAL))
}
