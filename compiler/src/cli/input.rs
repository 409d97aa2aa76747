//! Reading what a command is given: files, standard input, and the schema that goes with a policy.

use super::Failure;
use dogwood_compiler::compile::Source;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Reads one text, named as the user named it; `-` is standard input. A byte-order mark at its start is dropped.
pub fn read(path: &Path) -> Result<Source, Failure> {
    let (name, bytes) = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::Read {
                path: "standard input".to_owned(),
                error,
            })?;
        ("<stdin>".to_owned(), bytes)
    } else {
        let name = path.display().to_string();
        let bytes = std::fs::read(path).map_err(|error| Failure::Read {
            path: name.clone(),
            error,
        })?;
        (name, bytes)
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..at).unwrap_or_default();
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Failure::NotText {
            path: name.clone(),
            line,
            byte: at,
        }
    })?;
    let text = match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    };
    Ok(Source { name, text })
}

/// Standard input can be only one of the files of a command.
pub fn only_one_stdin<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Result<(), Failure> {
    let named = paths
        .into_iter()
        .filter(|path| *path == Path::new("-"))
        .count();
    if named > 1 {
        Err(Failure::StdinTwice)
    } else {
        Ok(())
    }
}

/// The nearest `box.toml` at or above the directory of a policy file.
pub fn nearest_box(policy: &Path) -> Option<PathBuf> {
    let start = if policy == Path::new("-") {
        std::env::current_dir().ok()?
    } else {
        policy.canonicalize().ok()?.parent()?.to_path_buf()
    };
    start
        .ancestors()
        .map(|dir| dir.join("box.toml"))
        .find(|file| file.is_file())
}
