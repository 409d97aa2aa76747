//! What a plan needs to know about the machine: handed in, so that planning is a pure function.

#[cfg(test)]
pub mod fake;

use crate::closure;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The machine and the caller, as seen by [`crate::plan::plan`].
#[derive(Clone)]
pub struct Host {
    pub platform: Platform,
    /// The caller's ids.
    pub uid: u32,
    pub gid: u32,
    /// The ids the sandbox takes instead when the caller is root. Without them a root caller's sandbox
    /// keeps uid 0, with no capability at all, and the plan carries a note.
    pub run_as: Option<(u32, u32)>,
    /// Directories that count as the operator's home when credential stores are looked for.
    pub homes: Vec<PathBuf>,
    /// The Landlock ABI in force; 0 for none.
    pub landlock: u32,
    /// The process shares the caller's terminal: it stays in the caller's session.
    pub terminal: bool,
    pub files: Arc<dyn Files + Send + Sync>,
}

/// Which back end confines, and so what a grant can mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// A view of mounts, Landlock and seccomp.
    Linux,
    /// A Seatbelt profile over the host's own tree.
    MacOs,
}

impl Platform {
    pub const HERE: Platform = if cfg!(target_os = "macos") {
        Platform::MacOs
    } else {
        Platform::Linux
    };
}

/// The host's files, never followed through a symbolic link.
pub trait Files {
    fn node(&self, path: &Path) -> Option<Node>;
    /// Everything besides itself that starting `program` maps or executes: interpreters, loaders, libraries.
    fn closure(&self, program: &Path, search: &str) -> Vec<PathBuf>;
    /// A set-uid or set-gid program at or under `path`.
    fn set_id_program(&self, path: &Path) -> Option<PathBuf>;
    /// The one spelling the kernel has for `path`, where it can be told: on a file system that ignores
    /// case many spellings name one file.
    fn spelling(&self, _path: &Path) -> Option<PathBuf> {
        None
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub kind: Kind,
    /// Permission bits, set-id bits included.
    pub mode: u32,
    pub identity: Identity,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    Symlink(PathBuf),
    CharDevice,
    BlockDevice,
    Socket,
    Fifo,
}

/// Which file a path named when the plan was made; compared again when it is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    pub device: u64,
    pub inode: u64,
}

impl Host {
    /// This machine and this caller. `home` is the home the configuration states, beside the account's own.
    pub fn this_machine(home: Option<PathBuf>) -> Host {
        let mut homes: Vec<PathBuf> = account_home().into_iter().chain(home).collect();
        homes.dedup();
        let (uid, gid) = caller();
        Host {
            platform: Platform::HERE,
            uid,
            gid,
            run_as: None,
            homes,
            landlock: landlock_abi(),
            terminal: false,
            files: Arc::new(Machine),
        }
    }
}

#[cfg(unix)]
fn caller() -> (u32, u32) {
    (
        nix::unistd::geteuid().as_raw(),
        nix::unistd::getegid().as_raw(),
    )
}

#[cfg(not(unix))]
fn caller() -> (u32, u32) {
    (0, 0)
}

#[cfg(unix)]
fn account_home() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok()??;
    (user.dir.parent().is_some()).then_some(user.dir)
}

#[cfg(not(unix))]
fn account_home() -> Option<PathBuf> {
    None
}

#[cfg(target_os = "linux")]
fn landlock_abi() -> u32 {
    crate::linux::landlock_abi()
}

#[cfg(not(target_os = "linux"))]
fn landlock_abi() -> u32 {
    0
}

/// The real file system.
pub struct Machine;

impl Files for Machine {
    #[cfg(unix)]
    fn node(&self, path: &Path) -> Option<Node> {
        use std::os::unix::fs::{FileTypeExt, MetadataExt};
        let found = std::fs::symlink_metadata(path).ok()?;
        let file_type = found.file_type();
        let kind = if file_type.is_symlink() {
            Kind::Symlink(std::fs::read_link(path).ok()?)
        } else if file_type.is_dir() {
            Kind::Directory
        } else if file_type.is_char_device() {
            Kind::CharDevice
        } else if file_type.is_block_device() {
            Kind::BlockDevice
        } else if file_type.is_socket() {
            Kind::Socket
        } else if file_type.is_fifo() {
            Kind::Fifo
        } else {
            Kind::File
        };
        Some(Node {
            kind,
            mode: found.mode() & 0o7777,
            identity: Identity {
                device: found.dev(),
                inode: found.ino(),
            },
        })
    }

    #[cfg(not(unix))]
    fn node(&self, _path: &Path) -> Option<Node> {
        None
    }

    fn spelling(&self, path: &Path) -> Option<PathBuf> {
        std::fs::canonicalize(path).ok()
    }

    fn closure(&self, program: &Path, search: &str) -> Vec<PathBuf> {
        closure::program_closure(program, search)
    }

    fn set_id_program(&self, path: &Path) -> Option<PathBuf> {
        let mut waiting = vec![path.to_path_buf()];
        while let Some(path) = waiting.pop() {
            let Some(node) = self.node(&path) else {
                continue;
            };
            match node.kind {
                Kind::File if node.mode & 0o6000 != 0 && node.mode & 0o111 != 0 => {
                    return Some(path);
                }
                Kind::Directory => {
                    let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
                    waiting.extend(entries.map(|entry| entry.path()));
                }
                _ => {}
            }
        }
        None
    }
}
