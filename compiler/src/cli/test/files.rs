//! Which test files there are, and which policy each is about.

use super::super::input::OnDisk;
use super::super::{Failure, PolicyArgs};
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use dogwood_compiler::project::{self, TEST_ENDING};
use dogwood_compiler::suite::Header;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

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

/// When each file was last written; with the files that have come or gone.
pub fn stamps(paths: &[PathBuf], read: &[PathBuf]) -> BTreeMap<PathBuf, Option<SystemTime>> {
    let found = find(paths).unwrap_or_default();
    let all = found.iter().chain(read);
    all.map(|path| {
        let stamp = std::fs::metadata(path).and_then(|file| file.modified());
        (path.clone(), stamp.ok())
    })
    .collect()
}
