//! `dogwood fmt`: policies and schemas in the one layout.

use super::{Failure, Findings, Outcome, counted, input, print, remark};
use clap::{Args, ValueEnum};
use dogwood_compiler::compile::Source;
use dogwood_compiler::diagnostic::printable;
use dogwood_compiler::format::format;
use dogwood_compiler::grammar::Language;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Fmt {
    /// Policies, macro libraries, action schemas (.cedarschema) or event schemas (.dwschema); `-` is standard input.
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
}

impl Written {
    /// By the ending of the name: a policy where it says nothing else.
    fn of(path: &Path) -> Result<Written, Failure> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("cedarschema") => Ok(Written::Cedarschema),
            Some("dwschema") => Ok(Written::Dwschema),
            Some("toml" | "json") => Err(Failure::NoLayout {
                path: path.display().to_string(),
            }),
            _ => Ok(Written::Dogwood),
        }
    }

    fn language(self) -> Language {
        match self {
            Written::Dogwood => Language::Policy,
            Written::Cedarschema => Language::ActionSchema,
            Written::Dwschema => Language::EventSchema,
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
            match format(&source.text, written.language()) {
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
