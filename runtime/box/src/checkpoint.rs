//! The checkpoints behind the broker: what an alias asks for becomes one run of the shell, one script, or one
//! connection to an MCP server.

mod python;
mod remotes;
mod servers;

pub use python::Interpreter;
pub use remotes::Remotes;
pub use servers::Servers;

use crate::broker::frame::{Form, Mode, Open, Signal};
use crate::broker::{Runner, Stop, Stopped, Streams};
use box_authority::gate::Caller;
use box_shell::{Request, Shell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// What the shell and Python answer for a run that was cancelled.
const CANCELLED: i32 = 130;

pub struct ShellCheckpoint {
    pub shell: Shell,
    /// Where commands run that name no directory of their own.
    pub workspace: PathBuf,
    /// Exported to every command.
    pub env: BTreeMap<String, String>,
}

/// All of them, by what the alias is.
pub struct Checkpoints {
    pub shell: ShellCheckpoint,
    pub python: Arc<Interpreter>,
    pub servers: Servers,
}

impl Runner for Checkpoints {
    fn run(&self, caller: &Caller, open: &Open, streams: Streams) -> Result<i32, String> {
        if open.mode == Mode::Mcp {
            return self.servers.run(caller, open, streams);
        }
        let cancel = Arc::new(AtomicBool::new(false));
        let signal = Arc::new(AtomicI32::new(0));
        let Streams {
            stdin,
            stdout,
            stderr,
            stop,
        } = streams;
        let heeding = (Arc::clone(&cancel), Arc::clone(&signal));
        std::thread::Builder::new()
            .name("command stop".into())
            .spawn(move || heed(&stop, &heeding.0, &heeding.1))
            .map_err(|e| format!("the box is out of threads: {e}"))?;
        let io = box_shell::Streams {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
        };
        let cwd = self.shell.cwd(&open.cwd);
        let status = if open.mode == Mode::Python {
            self.python
                .run(source(open), cwd, caller.clone(), &cancel, io)
        } else {
            let request = Request {
                text: open.text.clone(),
                args: arguments(open),
                cwd,
                env: self.shell.env.clone(),
                caller: caller.clone(),
                cancel: Some(Arc::clone(&cancel)),
            };
            self.shell.shell.run(request, io)
        };
        let signal = signal.load(Ordering::Acquire);
        Ok(if status == CANCELLED && signal != 0 {
            128 + signal
        } else {
            status
        })
    }
}

/// The script of an alias, which has read its file with the agent's own access.
fn source(open: &Open) -> box_python::Source {
    match &open.name {
        Some(name) => box_python::Source::Script {
            name: name.clone(),
            text: open.text.clone(),
        },
        None => box_python::Source::Command(open.text.clone()),
    }
}

impl ShellCheckpoint {
    /// Only a spelling: whether the directory can be entered, and what can be seen there, the shell asks.
    fn cwd(&self, named: &str) -> PathBuf {
        let path = Path::new(named);
        if path.is_absolute() && !named.contains('\0') {
            path.to_path_buf()
        } else {
            self.workspace.clone()
        }
    }
}

/// `$0` and on.
fn arguments(open: &Open) -> Vec<String> {
    match (&open.name, open.form) {
        (Some(name), _) => std::iter::once(name).chain(&open.args).cloned().collect(),
        (None, _) if open.args.is_empty() => Vec::new(),
        (None, Form::Command | Form::Script) => std::iter::once("sh".to_owned())
            .chain(open.args.iter().cloned())
            .collect(),
    }
}

/// Cancels the run on the first signal, or when its alias has gone.
fn heed(stop: &Stop, cancel: &AtomicBool, signal: &AtomicI32) {
    loop {
        match stop.wait() {
            Stopped::Over => return,
            Stopped::Gone => {
                cancel.store(true, Ordering::Release);
                return;
            }
            Stopped::Signal(sent) => {
                let number = match sent {
                    Signal::Hup => 1,
                    Signal::Int => 2,
                    Signal::Term => 15,
                };
                signal.store(number, Ordering::Release);
                cancel.store(true, Ordering::Release);
            }
        }
    }
}
