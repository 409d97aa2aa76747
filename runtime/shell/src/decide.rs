//! How this checkpoint words its questions: paths and commands as rules spell them.

#![allow(clippy::result_large_err)] // a `Denial` is what the gate answers with, whole

use box_authority::action::{Action, Command, FsDelete, FsRead, FsResult, FsWrite, Outcome, Spawn};
use box_authority::denial::{Denial, DenyCause};
use box_authority::gate::{Caller, Gate, Permit};
use smol_str::SmolStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Turns host paths into the spelling of rules: `~` and `~/rest` under the operator's home, absolute elsewhere.
#[derive(Clone, Debug)]
pub struct Spelling {
    home: PathBuf,
}

impl Spelling {
    pub fn new(home: PathBuf) -> Self {
        Self { home }
    }

    pub(crate) fn of(&self, path: &Path) -> SmolStr {
        match path.strip_prefix(&self.home) {
            Ok(rest) if rest.as_os_str().is_empty() => SmolStr::new("~"),
            Ok(rest) => SmolStr::new(format!("~/{}", rest.display())),
            Err(_) => SmolStr::new(path.display().to_string()),
        }
    }
}

/// What a file operation asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Read(FsRead),
    Write(FsWrite),
    Delete(FsDelete),
    Move,
}

/// Asks the gate on behalf of one run.
#[derive(Clone)]
pub struct Asker {
    gate: Arc<dyn Gate>,
    caller: Caller,
    pub(crate) spelling: Spelling,
}

impl Asker {
    pub fn new(gate: Arc<dyn Gate>, caller: Caller, spelling: Spelling) -> Self {
        Self {
            gate,
            caller,
            spelling,
        }
    }

    pub fn effect(&self, effect: Effect, path: &Path) -> Result<Box<dyn Permit>, Denial> {
        self.gate
            .decide(&self.caller, self.effect_action(effect, path))
    }

    /// The question itself, for a record of what was refused without asking it.
    pub fn effect_action(&self, effect: Effect, path: &Path) -> Action {
        let path = self.spelling.of(path);
        match effect {
            Effect::Read(operation) => Action::FsRead { path, operation },
            Effect::Write(operation) => Action::FsWrite { path, operation },
            Effect::Delete(operation) => Action::FsDelete { path, operation },
            Effect::Move => Action::FsMove { path },
        }
    }

    /// A command the shell itself implements.
    pub(crate) fn exec(
        &self,
        name: &str,
        args: &[String],
        cwd: &Path,
    ) -> Result<Box<dyn Permit>, Denial> {
        self.gate.decide(
            &self.caller,
            Action::ShellExec(self.command(name, args, cwd)),
        )
    }

    /// A host program.
    pub(crate) fn spawn(
        &self,
        name: &str,
        args: &[String],
        cwd: &Path,
        program: &Path,
        credential_reads: Vec<SmolStr>,
    ) -> Result<Box<dyn Permit>, Denial> {
        let spawn = Spawn {
            command: self.command(name, args, cwd),
            program_path: self.spelling.of(program),
            credential_reads,
        };
        self.gate.decide(&self.caller, Action::ShellSpawn(spawn))
    }

    fn command(&self, name: &str, args: &[String], cwd: &Path) -> Command {
        Command {
            words: std::iter::once(name)
                .chain(args.iter().map(String::as_str))
                .map(SmolStr::new)
                .collect(),
            program: SmolStr::new(name),
            cwd: self.spelling.of(cwd),
        }
    }

    /// The refusal that no permit lifts: trusted box state, and the files this run was loaded from.
    pub fn floor(&self, effect: Effect, path: &Path, reason: &str) -> Denial {
        let action = self.effect_action(effect, path);
        Denial {
            action: SmolStr::new(action.name()),
            target: action.target(),
            cause: DenyCause::Enforcement {
                gate: "reach-floor",
                reason: reason.to_owned(),
            },
        }
    }
}

impl Asker {
    /// Keeps a record of a refusal of this checkpoint's own.
    pub(crate) fn record(&self, effect: Effect, path: &Path, denial: &Denial) {
        let action = self.effect_action(effect, path);
        self.gate.record_refusal(&self.caller, &action, denial);
    }

    /// Keeps a record of a permitted program that no table of the box runs.
    pub(crate) fn record_no_tool(
        &self,
        name: &str,
        args: &[String],
        cwd: &Path,
        program: &Path,
        reason: String,
    ) {
        let action = Action::ShellSpawn(Spawn {
            command: self.command(name, args, cwd),
            program_path: self.spelling.of(program),
            credential_reads: Vec::new(),
        });
        let denial = Denial {
            action: SmolStr::new(action.name()),
            target: action.target(),
            cause: DenyCause::Enforcement {
                gate: "no-tool",
                reason,
            },
        };
        self.gate.record_refusal(&self.caller, &action, &denial);
    }
}

/// The line people and agents read.
pub(crate) fn refusal_text(denial: &Denial) -> String {
    format!("box: {denial}")
}

/// Closes a permitted file operation.
pub fn finish<T, E>(permit: Box<dyn Permit>, result: &Result<T, E>) {
    permit.complete(match result {
        Ok(_) => Outcome::Fs(FsResult::Completed),
        Err(_) => Outcome::Failed,
    });
}

#[cfg(test)]
mod tests {
    use super::Spelling;
    use std::path::Path;

    #[test]
    fn paths_are_spelled_as_rules_spell_them() {
        let spelling = Spelling::new("/home/ana".into());
        assert_eq!(spelling.of(Path::new("/home/ana")), "~");
        assert_eq!(spelling.of(Path::new("/home/ana/")), "~");
        assert_eq!(spelling.of(Path::new("/home/ana/a/b")), "~/a/b");
        assert_eq!(spelling.of(Path::new("/home/anabel/a")), "/home/anabel/a");
        assert_eq!(spelling.of(Path::new("/tmp/x")), "/tmp/x");
    }
}
