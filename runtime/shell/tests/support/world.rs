//! A home, a workspace, a gate that writes down what it is asked, and programs run as plain processes.

#![allow(dead_code)] // each test crate uses its part
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // a broken fixture should stop the test

use box_authority::action::{Action, Outcome};
use box_authority::denial::{Denial, DenyCause, RuleName};
use box_authority::gate::{Caller, Gate, Permit};
use box_shell::{Config, Limits, ProgramRefusal, ProgramRun, Programs, Request, Shell, Streams};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

type Rule = Box<dyn Fn(&str) -> bool + Send + Sync>;
type Log = Arc<Mutex<Vec<String>>>;

/// One line a question: `exec ~/ws: echo hi`.
pub fn line(action: &Action) -> String {
    match action {
        Action::ShellExec(command) => format!("exec {}: {}", command.cwd, command.words.join(" ")),
        Action::ShellSpawn(spawn) => {
            let program = spawn.program_path.rsplit('/').next().unwrap_or_default();
            format!(
                "spawn {}: {} ({program})",
                spawn.command.cwd,
                spawn.command.words.join(" ")
            )
        }
        Action::FsRead { path, operation } => format!("{} {path}", operation.id()),
        Action::FsWrite { path, operation } => format!("{} {path}", operation.id()),
        Action::FsDelete { path, operation } => format!("{} {path}", operation.id()),
        Action::FsMove { path } => format!("rename {path}"),
        other => format!("{other:?}"),
    }
}

struct Recorder {
    log: Log,
    outcomes: Log,
    deny: Rule,
}

struct Leave {
    what: String,
    outcomes: Log,
    done: bool,
}

impl Permit for Leave {
    fn complete(mut self: Box<Self>, outcome: Outcome) {
        self.done = true;
        let outcome = match outcome {
            Outcome::Fs(result) => result.id().to_owned(),
            Outcome::Status(status) => status.to_string(),
            other => format!("{other:?}").to_lowercase(),
        };
        self.outcomes
            .lock()
            .unwrap()
            .push(format!("{} -> {outcome}", self.what));
    }
}

impl Drop for Leave {
    fn drop(&mut self) {
        if !self.done {
            self.outcomes
                .lock()
                .unwrap()
                .push(format!("{} -> dropped", self.what));
        }
    }
}

impl Gate for Recorder {
    fn decide(&self, _: &Caller, action: Action) -> Result<Box<dyn Permit>, Denial> {
        let what = line(&action);
        let denied = (self.deny)(&what);
        self.log.lock().unwrap().push(if denied {
            format!("DENIED {what}")
        } else {
            what.clone()
        });
        if denied {
            return Err(Denial {
                action: action.name().into(),
                target: action.target(),
                cause: DenyCause::Forbidden {
                    rule: RuleName {
                        id: Some("test".into()),
                        place: "policy.dw:1".into(),
                    },
                    description: None,
                    witness: Vec::new(),
                },
            });
        }
        Ok(Box::new(Leave {
            what,
            outcomes: Arc::clone(&self.outcomes),
            done: false,
        }))
    }
}

/// Runs programs as they are, without a sandbox.
struct Plain;

impl Programs for Plain {
    fn describe(&self, program: &Path, _: &[String]) -> Vec<smol_str::SmolStr> {
        if program.ends_with("git") {
            vec!["~/.gitconfig".into()]
        } else {
            Vec::new()
        }
    }

    fn run(&self, run: ProgramRun) -> Result<i32, ProgramRefusal> {
        use std::os::unix::process::{CommandExt, ExitStatusExt};
        let name = run.argv[0].clone();
        if run.argv.iter().any(|word| word == "--uncovered") {
            return Err(ProgramRefusal::NotCovered {
                program: name,
                reason: "no table".into(),
            });
        }
        let child = Command::new(&run.program)
            .arg0(&name)
            .args(&run.argv[1..])
            .current_dir(&run.cwd)
            .env_clear()
            .envs(&run.env)
            .stdin(Stdio::from(run.stdin))
            .stdout(Stdio::from(run.stdout))
            .stderr(Stdio::from(run.stderr))
            .spawn();
        let mut child = child.map_err(|error| ProgramRefusal::CannotStart(error.to_string()))?;
        let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
        let stop = run.stop;
        std::thread::spawn(move || {
            use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
            use std::os::fd::AsFd;
            let _ = poll(
                &mut [PollFd::new(stop.as_fd(), PollFlags::POLLHUP)],
                PollTimeout::NONE,
            );
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        });
        let status = child
            .wait()
            .map_err(|error| ProgramRefusal::CannotStart(error.to_string()))?;
        Ok(status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
    }
}

#[derive(Clone, Default)]
pub struct Sink(pub Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Sink {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

pub struct Ran {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
    pub asked: Vec<String>,
    pub outcomes: Vec<String>,
}

impl Ran {
    /// The questions, the streams and the status, as a snapshot shows them.
    pub fn report(&self) -> String {
        let mut out = self.asked.join("\n");
        if out.is_empty() {
            out.push_str("(nothing asked)");
        }
        if !self.stdout.is_empty() {
            out.push_str(&format!("\n-- stdout\n{}", self.stdout.trim_end()));
        }
        if !self.stderr.is_empty() {
            out.push_str(&format!("\n-- stderr\n{}", self.stderr.trim_end()));
        }
        out.push_str(&format!("\n-- {}", self.status));
        out
    }
}

pub struct World {
    _dir: tempfile::TempDir,
    pub home: PathBuf,
    pub ws: PathBuf,
    pub limits: Limits,
    pub protected: Vec<PathBuf>,
    deny: Mutex<Option<Rule>>,
    stdin: Mutex<Option<Box<dyn Read + Send>>>,
}

pub fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap().join("ana");
    let ws = home.join("ws");
    std::fs::create_dir_all(&ws).unwrap();
    std::fs::create_dir_all(home.join("bin")).unwrap();
    World {
        _dir: dir,
        home,
        ws,
        limits: Limits::default(),
        protected: Vec::new(),
        deny: Mutex::new(None),
        stdin: Mutex::new(None),
    }
}

impl World {
    pub fn file(self, path: &str, content: &str) -> Self {
        let path = self.ws.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    pub fn program(self, path: &str, content: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let full = self.ws.join(path);
        let world = self.file(path, content);
        std::fs::set_permissions(full, std::fs::Permissions::from_mode(0o755)).unwrap();
        world
    }

    /// A program on the look-up path, run by the host's `/bin/sh`.
    pub fn bin(self, name: &str, script: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let path = self.home.join("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    /// Refuses every question whose line contains one of these.
    pub fn deny(self, parts: &'static [&'static str]) -> Self {
        *self.deny.lock().unwrap() = Some(Box::new(move |line| {
            parts.iter().any(|part| line.contains(part))
        }));
        self
    }

    pub fn stdin(self, stream: impl Read + Send + 'static) -> Self {
        *self.stdin.lock().unwrap() = Some(Box::new(stream));
        self
    }

    pub fn request(&self, text: &str) -> Request {
        Request {
            text: text.into(),
            args: Vec::new(),
            cwd: self.ws.clone(),
            env: BTreeMap::new(),
            caller: Caller::Agent,
            cancel: None,
        }
    }

    pub fn run(&self, text: &str) -> Ran {
        self.run_request(self.request(text), Sink::default())
    }

    pub fn run_request(&self, request: Request, stdout: Sink) -> Ran {
        let (log, outcomes) = (Log::default(), Log::default());
        let deny = self
            .deny
            .lock()
            .unwrap()
            .take()
            .unwrap_or_else(|| Box::new(|_| false));
        let gate = Arc::new(Recorder {
            log: Arc::clone(&log),
            outcomes: Arc::clone(&outcomes),
            deny,
        });
        let mut path = vec![self.home.join("bin")];
        path.extend(["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from));
        let config = Config {
            home: self.home.clone(),
            agent_home: self.home.clone(),
            workspace: self.ws.clone(),
            path,
            protected: self.protected.clone(),
            limits: self.limits.clone(),
        };
        let stderr = Sink::default();
        let io = Streams {
            stdin: self
                .stdin
                .lock()
                .unwrap()
                .take()
                .unwrap_or_else(|| Box::new(std::io::empty())),
            stdout: Box::new(stdout.clone()),
            stderr: Box::new(stderr.clone()),
        };
        let status = Shell::new(config, gate, Arc::new(Plain)).run(request, io);
        let clean = |text: String| text.replace(self.home.to_str().unwrap(), "~");
        let asked = log.lock().unwrap().iter().cloned().map(clean).collect();
        let outcomes = outcomes
            .lock()
            .unwrap()
            .iter()
            .cloned()
            .map(clean)
            .collect();
        Ran {
            status,
            stdout: clean(stdout.text()),
            stderr: clean(stderr.text()),
            asked,
            outcomes,
        }
    }
}
