//! The file system as it is.

use crate::shelf::Disk;
use dogwood_compiler::project::Files;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, Default)]
pub struct OnDisk;

/// Larger files are not looked into.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

impl Files for OnDisk {
    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn list(&self, folder: &Path) -> Vec<PathBuf> {
        entries(folder, false)
    }
}

impl Disk for OnDisk {
    fn read(&self, path: &Path) -> Option<String> {
        let about = std::fs::metadata(path).ok()?;
        if !about.is_file() || about.len() > MOST_BYTES {
            return None;
        }
        std::fs::read_to_string(path).ok()
    }

    fn folders(&self, folder: &Path) -> Vec<PathBuf> {
        entries(folder, true)
    }
}

fn entries(folder: &Path, folders: bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let wanted = entries.filter(|entry| {
        // A link to a folder is not followed, so that no circle is.
        entry.file_type().is_ok_and(|kind| kind.is_dir() == folders)
    });
    let mut paths: Vec<PathBuf> = wanted.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}
