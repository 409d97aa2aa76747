//! Which test files there are, and which policy each is about.

use super::super::{Failure, PolicyArgs};
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::ast::Str;
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use dogwood_compiler::suite::Header;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const ENDING: &str = ".dwtest.toml";
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
        } else if name.ends_with(ENDING) {
            found.push(path);
        }
    }
    Ok(())
}

/// The policy of a test file: what it names, else the policy of its own name, else the only one beside it.
pub fn policy(test: &Path, header: &Header) -> Result<PolicyArgs, Box<Diagnostic>> {
    let folder = test.parent().unwrap_or(Path::new(""));
    let beside = |name: &Str| folder.join(name.value.as_str());
    let mut policies: Vec<PathBuf> = header.policies.iter().map(beside).collect();
    if policies.is_empty() {
        let name = test
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let own = folder.join(format!("{}.dw", name.trim_end_matches(ENDING)));
        if own.is_file() {
            policies.push(own);
        } else {
            let here = if folder.as_os_str().is_empty() {
                Path::new(".")
            } else {
                folder
            };
            let all: Vec<PathBuf> = std::fs::read_dir(here)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| folder.join(entry.file_name()))
                .filter(|path| path.extension().is_some_and(|ending| ending == "dw"))
                .collect();
            match all.as_slice() {
                [only] => policies.push(only.clone()),
                _ => {
                    let message = "this file does not say which policy it tests";
                    return Err(Box::new(
                        Diagnostic::error("test-policy", Span::at(0), message)
                            .help("add a line such as `policy = \"policy.dw\"` at the top"),
                    ));
                }
            }
        }
    }
    Ok(PolicyArgs {
        policies,
        policy_schema: header.policy_schema.as_ref().map(beside),
        event_schema: header.event_schema.as_ref().map(beside),
        macros: header.macros.as_ref().map(beside),
        providers: header.providers.as_ref().map(beside),
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
