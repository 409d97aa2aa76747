//! `dogwood fmt`: policy files in the one layout.

use super::{Failure, Findings, Outcome, counted, input, print, remark};
use clap::Args;
use dogwood_compiler::compile::Source;
use dogwood_compiler::diagnostic::printable;
use dogwood_compiler::format::format;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Fmt {
    /// Policy files or macro libraries; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    policies: Vec<PathBuf>,

    /// Print nothing; exit with 2 if a file is laid out differently.
    #[arg(long, conflicts_with = "write")]
    check: bool,

    /// Change the files instead of printing them.
    #[arg(long)]
    write: bool,
}

impl Fmt {
    pub fn run(self) -> Result<Outcome, Failure> {
        input::only_one_stdin(self.policies.iter().map(PathBuf::as_path))?;
        // All are read and laid out before anything is printed or written.
        let mut laid: Vec<(&Path, Source, String)> = Vec::new();
        let mut broken = Vec::new();
        for path in &self.policies {
            let source = input::read(path)?;
            match format(&source.text) {
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
