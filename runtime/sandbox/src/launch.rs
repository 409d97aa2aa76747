//! How a launch can fail, and how a process ended: the same on every platform. All text is made here.

use crate::seatbelt::ProfileRefusal;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// How the confined program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
}

impl ExitStatus {
    /// The status a shell would show: the code, or 128 and the signal.
    pub fn as_code(self) -> i32 {
        match self {
            ExitStatus::Code(code) => code,
            ExitStatus::Signal(signal) => 128 + signal,
        }
    }
}

/// A step of the launch, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    ReadPlan,
    ParentDeath,
    CloseDescriptors,
    StandardStreams,
    TakeIdentity,
    UserNamespace,
    MapIdentity,
    Namespaces,
    Hostname,
    Loopback,
    Listener,
    PassListener,
    Fork,
    PrivateMounts,
    Staging,
    Pivot,
    ViewRoot,
    Directory,
    Link,
    SyntheticFile,
    Tmpfs,
    OpenSource,
    Identity,
    MountPoint,
    CloneMount,
    MountAttributes,
    MoveMount,
    Proc,
    Detach,
    Session,
    Limits,
    WorkingDirectory,
    Capabilities,
    NoNewPrivileges,
    Landlock,
    Seccomp,
    Attest,
    PrivateDirectory,
    Execute,
}

impl Step {
    fn doing(self) -> &'static str {
        match self {
            Step::ReadPlan => "reading the plan",
            Step::ParentDeath => "tying its life to the box",
            Step::CloseDescriptors => "closing inherited descriptors",
            Step::StandardStreams => "checking that standard input and output are no directories",
            Step::TakeIdentity => "taking the configured user and group",
            Step::UserNamespace => "making a user namespace",
            Step::MapIdentity => "writing the user and group maps",
            Step::Namespaces => {
                "making mount, network, IPC, host name, process and cgroup namespaces"
            }
            Step::Hostname => "naming the host",
            Step::Loopback => "bringing the loopback interface up",
            Step::Listener => "listening inside the sandbox's network",
            Step::PassListener => "handing a listener out",
            Step::Fork => "starting a process",
            Step::PrivateMounts => "making mounts private",
            Step::Staging => "mounting the staging file system",
            Step::Pivot => "moving to the new root",
            Step::ViewRoot => "mounting the root of the view",
            Step::Directory => "making a directory of the view",
            Step::Link => "making a link of the view",
            Step::SyntheticFile => "writing a file of the view",
            Step::Tmpfs => "mounting a private file system",
            Step::OpenSource => "opening a granted path",
            Step::Identity => "comparing a granted path with the one that was checked",
            Step::MountPoint => "making a mount point",
            Step::CloneMount => "cloning a mount",
            Step::MountAttributes => "setting mount attributes",
            Step::MoveMount => "attaching a mount",
            Step::Proc => "mounting a fresh /proc",
            Step::Detach => "letting go of the old root",
            Step::Session => "starting a session",
            Step::Limits => "setting resource limits",
            Step::WorkingDirectory => "entering the working directory",
            Step::Capabilities => "dropping capabilities",
            Step::NoNewPrivileges => "refusing new privileges",
            Step::Landlock => "applying Landlock",
            Step::Seccomp => "installing the seccomp filter",
            Step::Attest => "reading back what is enforced",
            Step::PrivateDirectory => "making the sandbox's private directory",
            Step::Execute => "executing the program",
        }
    }

    /// The kernel feature the step needs, with what to do about it.
    fn needs(self) -> Option<&'static str> {
        match self {
            Step::UserNamespace | Step::MapIdentity => Some(
                "unprivileged user namespaces are needed: check sysctl user.max_user_namespaces, \
                 kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, \
                 and the seccomp profile of an outer container",
            ),
            Step::Namespaces => Some(
                "mount, network, IPC, UTS, PID and cgroup namespaces are needed: check sysctl user.max_*_namespaces",
            ),
            Step::OpenSource => Some("openat2 (Linux 5.6) is needed"),
            Step::CloneMount | Step::MountAttributes | Step::MoveMount => {
                Some("open_tree, move_mount and mount_setattr (Linux 5.12) are needed")
            }
            Step::Proc => {
                Some("a container that masks parts of /proc does not let a new one be mounted")
            }
            Step::Landlock => Some("Landlock is needed at the ABI the plan was made for"),
            Step::Seccomp => Some("seccomp filters are needed (CONFIG_SECCOMP_FILTER)"),
            _ => None,
        }
    }
}

/// Why a process did not start. Nothing weaker was started in its place.
#[derive(Debug)]
pub enum LaunchError {
    /// This platform has no launcher.
    Unsupported,
    /// No profile can be written for the plan.
    Profile(ProfileRefusal),
    /// The launcher itself could not be started.
    Spawn(io::Error),
    /// A step of the launcher failed.
    Step {
        step: Step,
        path: Option<PathBuf>,
        error: io::Error,
    },
    /// What the kernel says it enforces is not what the plan says.
    Attestation {
        property: &'static str,
        planned: String,
        found: String,
    },
    /// The launcher ended without saying why.
    Lost,
    /// The launcher sent something that is no report.
    Garbled(String),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::Unsupported => write!(f, "this platform has no sandbox launcher yet"),
            LaunchError::Profile(refusal) => write!(f, "the sandbox was not made: {refusal}"),
            LaunchError::Spawn(error) => {
                write!(f, "the sandbox launcher could not be started: {error}")
            }
            LaunchError::Step { step, path, error } => {
                write!(f, "the sandbox was not made: {} failed", step.doing())?;
                if let Some(path) = path {
                    write!(f, " for {}", path.display())?;
                }
                write!(f, ": {error}")?;
                let absent = matches!(error.raw_os_error(), Some(1 | 22 | 28 | 38 | 95));
                match step.needs().filter(|_| absent) {
                    Some(needs) => write!(f, " ({needs})"),
                    None => Ok(()),
                }
            }
            LaunchError::Attestation {
                property,
                planned,
                found,
            } => write!(
                f,
                "the sandbox was stopped before its program ran: the kernel reports {property} {found}, the plan says {planned}"
            ),
            LaunchError::Lost => write!(f, "the sandbox launcher ended without a report"),
            LaunchError::Garbled(text) => write!(
                f,
                "the sandbox launcher sent a report that cannot be read: {text}"
            ),
        }
    }
}

impl std::error::Error for LaunchError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_step_and_the_missing_feature() {
        let error = LaunchError::Step {
            step: Step::UserNamespace,
            path: None,
            error: io::Error::from_raw_os_error(28),
        };
        insta::assert_snapshot!(error);
        let error = LaunchError::Step {
            step: Step::Identity,
            path: Some("/w/src".into()),
            error: io::Error::from_raw_os_error(116),
        };
        insta::assert_snapshot!(error);
        let error = LaunchError::Attestation {
            property: "CapEff",
            planned: "0".into(),
            found: "1".into(),
        };
        insta::assert_snapshot!(error);
    }
}
