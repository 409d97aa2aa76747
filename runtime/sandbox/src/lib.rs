//! Process specs to kernel-enforced sandboxes.
//!
//! In: a [`spec::ProcessSpec`]. Out: a plan, which is pure data and the same on every platform, and a
//! running process confined by it. Nothing here decides policy; what cannot be enforced refuses to start.

pub mod closure;
pub mod floor;
pub mod grants;
pub mod host;
pub mod launch;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(unix)]
pub mod macos;
pub mod plan;
pub mod seatbelt;
pub mod spec;

pub use launch::{ExitStatus, LaunchError};
#[cfg(target_os = "linux")]
pub use linux::{Child, Signaller, is_launcher, launch, launcher_main};
#[cfg(target_os = "macos")]
pub use macos::{Child, Signaller, is_launcher, launch, launcher_main};
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub use unsupported::{Child, Signaller, is_launcher, launch, launcher_main};

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod unsupported {
    //! A platform without a back end: everything type-checks and nothing runs.

    use crate::launch::{ExitStatus, LaunchError};
    use crate::plan::SandboxPlan;
    use std::convert::Infallible;
    use std::ffi::OsStr;
    use std::io;
    use std::net::TcpListener;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    /// Never made here.
    #[derive(Debug)]
    pub struct Child {
        pub listeners: Vec<TcpListener>,
        never: Infallible,
    }

    #[derive(Clone, Debug)]
    pub struct Signaller {
        never: Infallible,
    }

    impl Signaller {
        pub fn signal(&self, _signal: i32) -> io::Result<()> {
            match self.never {}
        }

        pub fn kill(&self) -> io::Result<()> {
            match self.never {}
        }
    }

    impl Child {
        pub fn wait(&mut self) -> io::Result<ExitStatus> {
            match self.never {}
        }

        pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
            match self.never {}
        }

        pub fn signaller(&self) -> Signaller {
            match self.never {}
        }

        pub fn signal(&self, _signal: i32) -> io::Result<()> {
            match self.never {}
        }

        pub fn kill(&self) -> io::Result<()> {
            match self.never {}
        }
    }

    pub fn is_launcher(_argv0: &OsStr) -> bool {
        false
    }

    pub fn launcher_main() -> ! {
        std::process::exit(3)
    }

    pub fn launch(
        _plan: &SandboxPlan,
        _stdio: [OwnedFd; 3],
        _launcher: &Path,
    ) -> Result<Child, LaunchError> {
        Err(LaunchError::Unsupported)
    }
}
