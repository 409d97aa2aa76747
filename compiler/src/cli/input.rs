//! Reading what a command is given: files, standard input, and the schema that goes with a policy.

use super::Failure;
use dogwood_compiler::compile::Source;
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use dogwood_compiler::project::{self, Files};
use dogwood_compiler::providers::{Providers, load_providers};
use dogwood_compiler::trace::LineError;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
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

/// A text that may be larger than memory, to be read more than once.
pub enum Text {
    File(PathBuf),
    /// Standard input, or a pipe: read once and held.
    Held(Source),
}

impl Text {
    pub fn open(path: &Path) -> Result<Text, Failure> {
        // Asked without opening: a pipe is opened only once.
        let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
        if is_file && path != Path::new("-") {
            return Ok(Text::File(path.to_path_buf()));
        }
        read(path).map(Text::Held)
    }

    /// From the start.
    pub fn reader(&self) -> Result<Box<dyn BufRead + '_>, Failure> {
        match self {
            Text::File(path) => {
                let file = File::open(path).map_err(|error| self.unreadable(error))?;
                Ok(Box::new(BufReader::with_capacity(1 << 16, file)))
            }
            Text::Held(source) => Ok(Box::new(source.text.as_bytes())),
        }
    }

    /// All of it.
    pub fn source(&self) -> Result<Source, Failure> {
        match self {
            Text::File(path) => read(path),
            Text::Held(source) => Ok(source.clone()),
        }
    }

    fn name(&self) -> String {
        match self {
            Text::File(path) => path.display().to_string(),
            Text::Held(source) => source.name.clone(),
        }
    }

    fn unreadable(&self, error: std::io::Error) -> Failure {
        let path = self.name();
        Failure::Read { path, error }
    }

    pub fn failure(&self, error: LineError) -> Failure {
        let path = self.name();
        match error {
            LineError::Read(error) => Failure::Read { path, error },
            LineError::NotText { line, byte } => Failure::NotText { path, line, byte },
        }
    }

    /// It reads differently from before.
    pub fn changed(&self) -> Failure {
        Failure::Changed { path: self.name() }
    }
}

/// Reads declarations of information providers, with the scripts they name. What is wrong with them comes with
/// the text.
pub fn read_providers(path: &Path) -> Result<(Source, Loaded), Failure> {
    let source = read(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let loaded = load_providers(&source, &|script| {
        std::fs::read_to_string(folder.join(script)).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
            std::io::ErrorKind::InvalidData => "it is not UTF-8 text".to_owned(),
            _ => error.to_string(),
        })
    });
    Ok((source, loaded))
}

/// Providers with warnings, or everything that is wrong.
pub type Loaded = Result<(Providers, Vec<Diagnostic>), Vec<Diagnostic>>;

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
    let folder = if policy == Path::new("-") {
        std::env::current_dir().ok()?
    } else {
        policy.canonicalize().ok()?.parent()?.to_path_buf()
    };
    project::nearest_box(&folder, &OnDisk)
}

/// The file system as it is.
pub struct OnDisk;

impl Files for OnDisk {
    fn is_file(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn list(&self, folder: &Path) -> Vec<PathBuf> {
        let here = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        let entries = std::fs::read_dir(here).into_iter().flatten().flatten();
        entries
            .map(|entry| folder.join(entry.file_name()))
            .collect()
    }
}

/// Writes a file anew. Whoever reads it meanwhile sees the old text or the new one, not a part of it.
pub fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error| Failure::Replace {
        path: path.display().to_string(),
        error,
    };
    // Through a link, so that the link stays one.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    let write = || {
        std::fs::write(&beside, text)?;
        if let Ok(old) = std::fs::metadata(&path) {
            std::fs::set_permissions(&beside, old.permissions())?;
        }
        std::fs::rename(&beside, &path)
    };
    write().map_err(|error| {
        _ = std::fs::remove_file(&beside);
        failed(error)
    })
}
