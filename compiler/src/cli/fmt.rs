//! `dogwood fmt`: policies, schemas and test files in the one layout.

use super::{Failure, Findings, Outcome, counted, input, print, remark};
use clap::{Args, ValueEnum};
use dogwood_compiler::compile::Source;
use dogwood_compiler::diagnostic::printable;
use dogwood_compiler::format::{format, format_tests};
use dogwood_compiler::grammar::Language;
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Fmt {
    /// Policies, macro libraries, action schemas (.cedarschema), event schemas (.dwschema) or test files
    /// (.dwtest.toml); `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// What the files are, whatever their names end with.
    #[arg(long)]
    language: Option<Written>,

    /// Print nothing; exit with 2 if a file is laid out differently.
    #[arg(long, conflicts_with = "write")]
    check: bool,

    /// Change the files instead of printing them.
    #[arg(long)]
    write: bool,
}

/// By the names that editors have for them.
#[derive(Clone, Copy, ValueEnum)]
enum Written {
    /// A policy or a macro library.
    Dogwood,
    /// An action schema.
    Cedarschema,
    /// An event schema.
    Dwschema,
    /// A test file.
    Dwtest,
}

impl Written {
    /// By the ending of the name: a policy where it says nothing else.
    fn of(path: &Path) -> Result<Written, Failure> {
        if path
            .to_str()
            .is_some_and(|path| path.ends_with(".dwtest.toml"))
        {
            return Ok(Written::Dwtest);
        }
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("cedarschema") => Ok(Written::Cedarschema),
            Some("dwschema") => Ok(Written::Dwschema),
            Some("toml" | "json") => Err(Failure::NoLayout {
                path: path.display().to_string(),
            }),
            _ => Ok(Written::Dogwood),
        }
    }

    fn format(self, text: &str) -> Result<String, Vec<Diagnostic>> {
        match self {
            Written::Dogwood => format(text, Language::Policy),
            Written::Cedarschema => format(text, Language::ActionSchema),
            Written::Dwschema => format(text, Language::EventSchema),
            Written::Dwtest => format_tests(text),
        }
    }
}

impl Fmt {
    pub fn run(self) -> Result<Outcome, Failure> {
        input::only_one_stdin(self.files.iter().map(PathBuf::as_path))?;
        // All are read and laid out before anything is printed or written.
        let mut laid: Vec<(&Path, Source, String)> = Vec::new();
        let mut broken = Vec::new();
        for path in &self.files {
            let written = self.language.map_or_else(|| Written::of(path), Ok)?;
            let source = input::read(path)?;
            match written.format(&source.text) {
                Ok(text) => laid.push((path, source, text)),
                Err(errors) => {
                    broken.push(Findings::new(&errors, std::slice::from_ref(&source)).drawn())
                }
            }
        }
        if !broken.is_empty() {
            super::policy::remark_drawn(&broken.join("\n"));
            return Ok(Outcome::Rejected);
        }
        let changed = laid.iter().filter(|(_, source, text)| source.text != *text);
        if self.check {
            let changed: Vec<_> = changed.collect();
            for (_, source, _) in &changed {
                remark(&format!("{}: not laid out", printable(&source.name)));
            }
            return Ok(if changed.is_empty() {
                Outcome::Accepted
            } else {
                Outcome::Rejected
            });
        }
        if !self.write {
            return print(
                &laid
                    .iter()
                    .map(|(.., text)| text.as_str())
                    .collect::<String>(),
            )
            .map(|()| Outcome::Accepted);
        }
        let mut written = 0;
        for (path, _, text) in changed {
            // What came from standard input goes to standard output.
            if *path == Path::new("-") {
                print(text)?;
                continue;
            }
            input::replace(path, text)?;
            written += 1;
        }
        remark(&format!("{} changed", counted(written, "file")));
        Ok(Outcome::Accepted)
    }
}
