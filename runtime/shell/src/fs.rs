//! The file system the interpreter sees. Every effect is resolved, decided, checked against the reach floor,
//! acted and reported, in that order, on the handle that was resolved.
//!
//! Under the operator's home, the agent's home and the workspace it is the host's ([`crate::host`]); every
//! other path lives in memory for one run and is decided all the same.
//!
//! The interpreter looks at metadata more often than the script asks for it. Such probes are told apart by who
//! acts: a builtin that reads or changes content looks first whether the file is there, and the operation
//! that follows is decided. A look that the script can see the answer of (`test`, `[[ ]]`, `ls`, `stat`, …) is
//! decided itself.

mod act;
mod probe;
mod reach;

pub use reach::Protected;

use crate::admission::Session;
use crate::decide::Effect;
use crate::host::Host;
use bashkit::{
    DirEntry, FileSystem, FileSystemExt, FileType, FsLimits, InMemoryFs, Metadata, Result,
    async_trait,
};
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Builtins of bashkit that hand a failed operation on as their own end, which would end the whole run. As a
/// usage error it ends only the command.
const HANDS_ERRORS_ON: [&str; 17] = [
    "bunzip2", "bzcat", "bzip2", "du", "file", "gunzip", "gzip", "join", "patch", "rmdir", "split",
    "stat", "tar", "tee", "tree", "unzip", "zip",
];

pub(crate) struct PolicyFs {
    session: Arc<Session>,
    host: Arc<Host>,
    memory: Arc<InMemoryFs>,
    protected: Arc<Vec<Protected>>,
    /// Where programs are looked up: the shell asks there for names, which is not a file effect.
    search: Vec<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Content of an in-place tool's sibling file, until it is renamed onto its target.
    staged: HashMap<PathBuf, Vec<u8>>,
    /// The last component looked at by a walk from the root downwards.
    chain: Option<PathBuf>,
    /// A link was looked at just before; the walk that follows resolves it.
    through_link: bool,
    /// Answers already given to the command that acts now.
    serial: u64,
    refused: Vec<(Effect, PathBuf, String)>,
    written: Vec<PathBuf>,
    looked: Vec<(Effect, PathBuf)>,
}

fn denied(text: String) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, text)
}

fn missing() -> io::Error {
    io::Error::new(ErrorKind::NotFound, "file not found")
}

fn to_io(error: bashkit::Error) -> io::Error {
    match error {
        bashkit::Error::Io(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

fn is_staged_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(".bashkit-") && name.ends_with(".tmp"))
}

fn plain_file(size: u64) -> Metadata {
    Metadata {
        file_type: FileType::File,
        size,
        mode: 0o644,
        modified: UNIX_EPOCH,
        created: UNIX_EPOCH,
    }
}

fn directory() -> Metadata {
    Metadata {
        file_type: FileType::Directory,
        size: 0,
        mode: 0o755,
        modified: UNIX_EPOCH,
        created: UNIX_EPOCH,
    }
}

impl PolicyFs {
    pub(crate) fn new(
        session: Arc<Session>,
        host: Arc<Host>,
        memory: Arc<InMemoryFs>,
        protected: Arc<Vec<Protected>>,
        search: Vec<PathBuf>,
    ) -> Self {
        Self {
            session,
            host,
            memory,
            protected,
            search,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let serial = self.session.serial();
        if state.serial != serial {
            state.serial = serial;
            state.refused.clear();
            state.written.clear();
            state.looked.clear();
            state.chain = None;
            state.through_link = false;
        }
        state
    }

    /// An operation's failure, so that the builtin at work survives it.
    fn said<T>(&self, result: io::Result<T>) -> Result<T> {
        result.map_err(|error| match self.session.tool() {
            Some(tool) if HANDS_ERRORS_ON.contains(&tool.name.as_str()) => {
                bashkit::Error::Execution(format!("{}: {error}", tool.name))
            }
            _ => error.into(),
        })
    }
}

#[async_trait]
impl FileSystemExt for PolicyFs {
    fn limits(&self) -> FsLimits {
        FsLimits::unlimited()
    }
}

#[async_trait]
impl FileSystem for PolicyFs {
    async fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        self.said(self.read(path).await)
    }

    async fn write_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        self.said(self.write(path, content).await)
    }

    async fn append_file(&self, path: &Path, content: &[u8]) -> Result<()> {
        self.said(self.append(path, content).await)
    }

    async fn mkdir(&self, path: &Path, recursive: bool) -> Result<()> {
        self.said(self.make(path, recursive).await)
    }

    async fn remove(&self, path: &Path, recursive: bool) -> Result<()> {
        self.said(self.take_away(path, recursive).await)
    }

    /// Does not follow the last link: the interpreter resolves links itself by asking for each.
    async fn stat(&self, path: &Path) -> Result<Metadata> {
        self.said(self.look(path).await)
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        match self.look(path).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => self.said(Err(error)),
        }
    }

    async fn read_dir(&self, path: &Path) -> Result<Vec<DirEntry>> {
        self.said(self.entries(path).await)
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.said(self.move_to(from, to).await)
    }

    async fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        self.said(self.duplicate(from, to).await)
    }

    async fn symlink(&self, target: &Path, link: &Path) -> Result<()> {
        self.said(self.link(target, link).await)
    }

    async fn read_link(&self, path: &Path) -> Result<PathBuf> {
        self.said(self.link_target(path).await)
    }

    async fn chmod(&self, path: &Path, mode: u32) -> Result<()> {
        self.said(self.set_mode(path, mode).await)
    }

    async fn set_modified_time(&self, path: &Path, time: SystemTime) -> Result<()> {
        self.said(self.set_time(path, time).await)
    }
}
