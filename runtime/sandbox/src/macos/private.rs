//! The directory of one start: links for the aliases, which only its own sandbox is told of, and scratch.

use super::{at, temporary};
use crate::launch::{LaunchError, Step};
use crate::plan::Paths;
use std::path::PathBuf;

#[derive(Debug)]
pub struct Private {
    pub path: PathBuf,
}

impl Private {
    /// `owner` is who the program will be, if not the caller.
    pub fn make(paths: &Paths, owner: Option<(u32, u32)>) -> Result<Private, LaunchError> {
        let place = temporary().map_err(at(Step::PrivateDirectory))?;
        let path = nix::unistd::mkdtemp(&place.join("box-XXXXXX"))
            .map_err(|error| at(Step::PrivateDirectory)(error.into()))?;
        let private = Private { path };
        private
            .fill(paths, owner)
            .map_err(at(Step::PrivateDirectory))?;
        Ok(private)
    }

    fn fill(&self, paths: &Paths, owner: Option<(u32, u32)>) -> std::io::Result<()> {
        let (names, scratch) = (self.path.join("names"), self.path.join("tmp"));
        std::fs::create_dir(&names)?;
        std::fs::create_dir(&scratch)?;
        if let Some((uid, gid)) = owner {
            for directory in [&self.path, &names, &scratch] {
                std::os::unix::fs::chown(directory, Some(uid), Some(gid))?;
            }
        }
        for (alias, source) in &paths.aliases {
            let Some(name) = alias.file_name() else {
                continue;
            };
            match std::os::unix::fs::symlink(source, names.join(name)) {
                // One name in several directories: the first is found, as in a search of `PATH`.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                other => other?,
            }
        }
        Ok(())
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // What cannot be removed is the operator's to find in the temporary directory.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
