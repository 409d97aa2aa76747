//! Where a path leads, and what no permit opens.

use super::{PolicyFs, to_io};
use crate::decide::Effect;
use crate::host::{Found, Identity, Spot, identity_of};
use bashkit::{FileSystem, FileType};
use std::io;
use std::path::{Path, PathBuf};

/// Links between the host and memory followed in one look-up.
const MAX_CROSSINGS: usize = 40;

/// Something no permit opens.
pub struct Protected {
    path: PathBuf,
    identity: Option<Identity>,
    is_dir: bool,
}

impl Protected {
    pub fn new(path: &Path) -> Self {
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        Self {
            identity: identity_of(&path),
            is_dir: path.is_dir(),
            path,
        }
    }

    /// Why `path`, or whatever stands there, is out of reach; `takes_away` when it would be removed or moved.
    pub fn bars(
        &self,
        path: &Path,
        identity: Option<Identity>,
        takes_away: bool,
    ) -> Option<String> {
        let barred = path.starts_with(&self.path)
            || (identity.is_some() && identity == self.identity)
            || (takes_away && self.path.starts_with(path));
        barred.then(|| self.reason())
    }

    fn reason(&self) -> String {
        if self.is_dir {
            "the path resolves into trusted Box state".to_owned()
        } else {
            "the path resolves to an authority source that this run loaded".to_owned()
        }
    }
}

pub(super) enum Target {
    Host(Spot),
    Memory(PathBuf),
}

impl Target {
    pub(super) fn path(&self) -> &Path {
        match self {
            Target::Host(spot) => &spot.path,
            Target::Memory(path) => path,
        }
    }
}

impl PolicyFs {
    pub(super) async fn locate(&self, path: &Path, follow: bool) -> io::Result<Target> {
        let mut path = path.to_path_buf();
        for _ in 0..MAX_CROSSINGS {
            match self.host.find(&path, follow)? {
                Found::Here(spot) => return Ok(Target::Host(spot)),
                Found::Outside(outside) => match self.memory_link(&outside, follow).await? {
                    Some(next) => path = next,
                    None => return Ok(Target::Memory(outside)),
                },
            }
        }
        Err(io::Error::other("Too many levels of symbolic links"))
    }

    /// The path with its first link replaced, if a link in memory lies on it.
    async fn memory_link(&self, path: &Path, follow: bool) -> io::Result<Option<PathBuf>> {
        let mut walked = PathBuf::from("/");
        let mut rest = path.strip_prefix("/").unwrap_or(path).components();
        while let Some(component) = rest.next() {
            walked.push(component);
            let last = rest.as_path().as_os_str().is_empty();
            match self.memory.stat(&walked).await {
                Ok(metadata) if metadata.file_type.is_symlink() && (follow || !last) => {
                    let target = self.memory.read_link(&walked).await.map_err(to_io)?;
                    walked.pop();
                    return Ok(Some(walked.join(target).join(rest.as_path())));
                }
                Ok(_) => {}
                Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }

    pub(super) async fn kind(&self, target: &Target) -> Option<FileType> {
        match target {
            Target::Host(spot) => spot.metadata().ok().map(|metadata| metadata.file_type),
            Target::Memory(path) => self
                .memory
                .stat(path)
                .await
                .ok()
                .map(|metadata| metadata.file_type),
        }
    }

    /// Deny-only, and after the decision: no permit reaches the box's own state or what it was loaded from.
    pub(super) fn below_the_floor(&self, effect: Effect, target: &Target) -> Option<String> {
        let path = target.path();
        let identity = match target {
            Target::Host(spot) => spot.identity(),
            Target::Memory(_) => None,
        };
        let takes_away = matches!(effect, Effect::Delete(_) | Effect::Move);
        self.protected
            .iter()
            .find_map(|protected| protected.bars(path, identity, takes_away))
    }
}
