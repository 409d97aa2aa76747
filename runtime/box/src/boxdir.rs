//! The directory of a box: its history, its records, and the names under which it shows the alias.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A directory that is the box's own: nobody else can read it.
#[derive(Clone, Debug)]
pub struct BoxDir {
    root: PathBuf,
    /// It was made by this run.
    pub created: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum BoxDirError {
    #[error("the box directory {} cannot be made: {reason}", path.display())]
    Unmade { path: PathBuf, reason: io::Error },
    #[error("unsafe box directory {}: {reason}; name another with `box_dir`", path.display())]
    Unsafe { path: PathBuf, reason: String },
}

impl BoxDir {
    /// Makes or checks the directory at `path`. `uid` is the caller's.
    pub fn prepare(path: &Path, uid: u32) -> Result<BoxDir, BoxDirError> {
        let unmade = |reason| BoxDirError::Unmade {
            path: path.to_path_buf(),
            reason,
        };
        let created = match std::fs::symlink_metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                private().recursive(true).create(path).map_err(unmade)?;
                true
            }
            Err(e) => return Err(unmade(e)),
            Ok(found) => {
                let reason = if !found.is_dir() {
                    Some("it is not a directory".to_owned())
                } else if found.uid() != uid {
                    Some(format!("it belongs to user {}", found.uid()))
                } else if found.mode() & 0o077 != 0 {
                    Some(format!(
                        "others can reach it (its mode is {:o})",
                        found.mode() & 0o777
                    ))
                } else if !path.join("private").is_dir()
                    && std::fs::read_dir(path).map_err(unmade)?.next().is_some()
                {
                    Some("it holds files that are not a box's".to_owned())
                } else {
                    None
                };
                if let Some(reason) = reason {
                    return Err(BoxDirError::Unsafe {
                        path: path.to_path_buf(),
                        reason,
                    });
                }
                false
            }
        };
        // From here on the name leads where it leads: what the sandboxes are told is this spelling.
        let root = path.canonicalize().map_err(unmade)?;
        let made = BoxDir { root, created };
        for folder in [made.private(), made.private().join("telemetry")] {
            match private().create(&folder) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(unmade(e)),
                _ => std::fs::set_permissions(&folder, Permissions::from_mode(0o700))
                    .map_err(unmade)?,
            }
        }
        // Every sandbox reads it, under whichever identity it runs.
        let trust = trust_folder(&made.root);
        match std::fs::create_dir(&trust) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(unmade(e)),
            _ => std::fs::set_permissions(&trust, Permissions::from_mode(0o755)).map_err(unmade)?,
        }
        Ok(made)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What no sandbox ever sees.
    pub fn private(&self) -> PathBuf {
        self.root.join("private")
    }

    /// Where decision records go unless the file says otherwise.
    pub fn records(&self) -> PathBuf {
        self.private().join("telemetry/records.jsonl")
    }

    /// What the network checkpoint notices by itself.
    pub fn notices(&self) -> PathBuf {
        self.private().join("telemetry/network.log")
    }
}

/// Opens a file that only grows and that nobody else reads.
pub fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(nix::libc::O_NOFOLLOW)
        .open(path)
}

fn private() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.mode(0o700);
    builder
}

/// Where the names of the alias are in the agent's view, under the box directory.
pub fn alias_folder(box_dir: &Path) -> PathBuf {
    box_dir.join("bin")
}

/// What every sandbox trusts, in its view under the same name.
pub fn trust_folder(box_dir: &Path) -> PathBuf {
    box_dir.join("trust")
}

/// Writes the certificate of this run's gateway; its path. It is another one each run, and never a key.
pub fn write_certificate(box_dir: &Path, pem: &str) -> io::Result<PathBuf> {
    if pem.contains("PRIVATE KEY") {
        return Err(io::Error::other("it came with a private key"));
    }
    let path = trust_folder(box_dir).join("cert.pem");
    let made = trust_folder(box_dir).join("cert.pem.new");
    for old in [&made, &path] {
        match std::fs::remove_file(old) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    std::fs::write(&made, pem)?;
    std::fs::set_permissions(&made, Permissions::from_mode(0o444))?;
    std::fs::rename(&made, &path)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_directory_is_the_boxes_own() {
        let scratch = tempfile::tempdir().unwrap();
        let uid = std::fs::metadata(scratch.path()).unwrap().uid();
        let path = scratch.path().join("state/box/x");
        assert!(BoxDir::prepare(&path, uid).unwrap().created);
        let again = BoxDir::prepare(&path, uid).unwrap();
        assert!(!again.created);
        assert_eq!(
            std::fs::metadata(again.private()).unwrap().mode() & 0o777,
            0o700
        );
        assert!(append(&again.records()).is_ok());
        for _ in 0..2 {
            let certificate = write_certificate(again.root(), "PEM").unwrap();
            let found = std::fs::metadata(&certificate).unwrap();
            assert_eq!(found.mode() & 0o777, 0o444);
            assert_eq!(std::fs::read_to_string(certificate).unwrap(), "PEM");
        }
        assert!(write_certificate(again.root(), "-----BEGIN PRIVATE KEY-----").is_err());

        let refusal = |path: &Path, uid| {
            BoxDir::prepare(path, uid)
                .unwrap_err()
                .to_string()
                .replace(&scratch.path().display().to_string(), "DIR")
        };
        let mut report = vec![refusal(&path, uid + 1)];
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        report.push(refusal(&path, uid));
        let other = scratch.path().join("other");
        private().create(&other).unwrap();
        std::fs::write(other.join("notes"), "").unwrap();
        report.push(refusal(&other, uid));
        report.push(refusal(&other.join("notes"), uid));
        report.push(refusal(&other.join("notes/x"), uid));
        insta::assert_snapshot!(
            "refused_directories",
            report
                .join("\n")
                .replace(&format!("user {uid}"), "user UID")
        );
    }
}
