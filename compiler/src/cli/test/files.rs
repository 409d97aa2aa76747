//! Which test files there are, and which policy each is about.

use super::super::input::OnDisk;
use super::super::{Failure, PolicyArgs};
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use dogwood_compiler::project::{self, TEST_ENDING};
use dogwood_compiler::suite::Header;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Endings of files a policy consists of.
const WATCHED: [&str; 5] = ["dw", "cedarschema", "dwschema", "json", "toml"];
/// Folders below this are not looked into.
const DEEPEST: usize = 64;

/// The test files at and below the paths, in order of name.
pub fn find(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            below(path, 0, &mut found)?;
        } else {
            found.push(path.clone());
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn below(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |error| Failure::Read {
        path: dir.display().to_string(),
        error,
    };
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kind = entry.file_type().map_err(failed)?;
        let path = match dir.to_str() {
            Some(".") => PathBuf::from(entry.file_name()),
            _ => entry.path(),
        };
        if kind.is_dir() && depth < DEEPEST {
            if !name.starts_with('.') && name != "target" && name != "node_modules" {
                below(&path, depth + 1, found)?;
            }
        } else if name.ends_with(TEST_ENDING) {
            found.push(path);
        }
    }
    Ok(())
}

/// The policy of a test file, with its schemas.
pub fn policy(test: &Path, header: &Header) -> Result<PolicyArgs, Box<Diagnostic>> {
    let tested = project::tested(test, header, &OnDisk)?;
    Ok(PolicyArgs {
        policies: tested.policies,
        policy_schema: tested.policy_schema,
        event_schema: tested.event_schema,
        macros: tested.macros,
        providers: tested.providers,
        ..PolicyArgs::default()
    })
}

/// When a file was last written, and how long it is.
type Stamp = Option<(Option<SystemTime>, u64)>;

/// The state of each file; with the files that have come or gone. What stands beside a test file may become its
/// policy or schema, so its folder is watched, too.
pub fn stamps(paths: &[PathBuf], read: &[PathBuf]) -> BTreeMap<PathBuf, Stamp> {
    let found = find(paths).unwrap_or_default();
    let mut beside: Vec<PathBuf> = found
        .iter()
        .filter_map(|path| path.parent())
        .flat_map(|folder| {
            let folder = if folder.as_os_str().is_empty() {
                Path::new(".")
            } else {
                folder
            };
            std::fs::read_dir(folder).into_iter().flatten()
        })
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let ending = path.extension().and_then(|ending| ending.to_str());
            ending.is_some_and(|ending| WATCHED.contains(&ending))
        })
        .collect();
    beside.sort();
    beside.dedup();
    let all = found.iter().chain(read).chain(&beside);
    all.map(|path| {
        let stamp = std::fs::metadata(path).map(|file| (file.modified().ok(), file.len()));
        (path.clone(), stamp.ok())
    })
    .collect()
}
