//! `dogwood repl`: events by hand, each with its verdict and why.

mod complete;
mod session;

use super::policy::Set;
use super::{Failure, Format, Outcome, PolicyArgs, counted, print};
use clap::Args;
use complete::Words;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};
use session::{Answer, Session};
use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

#[derive(Args)]
pub struct Repl {
    #[command(flatten)]
    policy: PolicyArgs,
}

const PROMPT: &str = "dogwood> ";

impl Repl {
    pub fn run(self) -> Result<Outcome, Failure> {
        self.policy.only_one_stdin(None)?;
        let set = Set::check(&self.policy)?;
        let rules = match set.rules_or_reject(Format::Human)? {
            Ok(rules) => rules,
            Err(outcome) => return Ok(outcome),
        };
        let (policy, named) = set.compiled(rules);
        let files = self.policy.policies.iter();
        let files = files.map(|path| path.display().to_string()).collect();
        let mut session = Session::new(&set.service, policy, named, files);
        print(&format!(
            "{}; type an event, as `$ git push` or `action = \"fs:read\", input.path = \"/etc/hosts\"`; `:help` says more\n",
            counted(rules.len(), "rule")
        ))?;
        if std::io::stdin().is_terminal() {
            interactive(&mut session)
        } else {
            piped(&mut session)
        }
    }
}

/// Lines of a script: what is typed is shown, so that the answers can be read.
fn piped(session: &mut Session<'_>) -> Result<Outcome, Failure> {
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| Failure::Read {
            path: "standard input".to_owned(),
            error,
        })?;
        print(&format!("{PROMPT}{line}\n"))?;
        match session.line(&line) {
            Answer::Text(text) => print(&text)?,
            Answer::Save { path, text } => print(&save(&path, &text))?,
            Answer::End => break,
        }
    }
    Ok(Outcome::Accepted)
}

fn interactive(session: &mut Session<'_>) -> Result<Outcome, Failure> {
    let failed = |error: ReadlineError| Failure::Read {
        path: "the terminal".to_owned(),
        error: std::io::Error::other(error.to_string()),
    };
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .build();
    let mut editor: Editor<Words, FileHistory> = Editor::with_config(config).map_err(failed)?;
    editor.set_helper(Some(Words::new(session.service())));
    let history = history_file();
    if let Some(file) = &history {
        // There is none the first time.
        _ = editor.load_history(file);
    }
    loop {
        match editor.readline(PROMPT) {
            Ok(line) => {
                _ = editor.add_history_entry(&line);
                match session.line(&line) {
                    Answer::Text(text) => print(&text)?,
                    Answer::Save { path, text } => print(&save(&path, &text))?,
                    Answer::End => break,
                }
            }
            // Ctrl-C drops the line.
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(error)),
        }
    }
    if let Some(file) = &history {
        if let Some(folder) = file.parent() {
            _ = std::fs::create_dir_all(folder);
        }
        // A history that cannot be kept is no reason to fail.
        _ = editor.save_history(file);
    }
    Ok(Outcome::Accepted)
}

fn save(path: &str, text: &str) -> String {
    // Never over a file that is there.
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
    match written {
        Ok(()) => format!("saved as {path}; run it with `dogwood test {path}`\n"),
        Err(error) => format!("cannot write {path}: {error}\n"),
    }
}

fn history_file() -> Option<PathBuf> {
    let state = match std::env::var_os("XDG_STATE_HOME") {
        Some(dir) if !dir.is_empty() => PathBuf::from(dir),
        _ => PathBuf::from(std::env::var_os("HOME")?).join(".local/state"),
    };
    Some(state.join("dogwood/repl-history"))
}
