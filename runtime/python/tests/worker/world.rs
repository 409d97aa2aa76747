//! A home, a workspace, a gate that writes down what it is asked, and a network made of words.

use box_authority::action::{Action, FsResult, Outcome};
use box_authority::denial::{Denial, DenyCause, RuleName};
use box_authority::gate::{Caller, Gate, Permit};
use box_python::{
    Clock, Config, Fetch, FetchError, FetchReply, FetchRequest, Limits, Python, Request, Source,
    Streams,
};
use std::io::{self, Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub type Test = (&'static str, fn());

type Log = Arc<Mutex<Vec<String>>>;

/// Permits everything but the targets named, and writes down each question with its outcome.
pub struct Recorder {
    log: Log,
    denied: Vec<(String, String)>,
}

struct Ticket {
    log: Log,
    at: usize,
    done: bool,
}

impl Ticket {
    fn write(&self, outcome: &str) {
        if let Some(line) = self.log.lock().unwrap().get_mut(self.at) {
            line.push_str(outcome);
        }
    }
}

impl Permit for Ticket {
    fn complete(mut self: Box<Self>, outcome: Outcome) {
        self.done = true;
        self.write(match outcome {
            Outcome::Fs(FsResult::Completed) => " completed",
            Outcome::Fs(FsResult::DescriptorIssued) => " descriptor",
            Outcome::Fs(FsResult::Indeterminate) => " indeterminate",
            Outcome::Status(_) => " status",
            Outcome::Done => " done",
            Outcome::Failed => " failed",
        });
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.done {
            self.write(" DROPPED");
        }
    }
}

fn told(action: &Action) -> String {
    match action {
        Action::FsRead { path, operation } => format!("read {} {path}", operation.id()),
        Action::FsWrite { path, operation } => format!("write {} {path}", operation.id()),
        Action::FsDelete { path, operation } => format!("delete {} {path}", operation.id()),
        Action::FsMove { path } => format!("move {path}"),
        other => format!("other {}", other.name()),
    }
}

impl Gate for Recorder {
    fn decide(&self, _: &Caller, action: Action) -> Result<Box<dyn Permit>, Denial> {
        let question = told(&action);
        let mut log = self.log.lock().unwrap();
        let refused = self
            .denied
            .iter()
            .any(|(name, target)| action.name() == name && action.target() == *target);
        if refused {
            log.push(format!("{question} denied"));
            return Err(Denial {
                action: action.name().into(),
                target: action.target(),
                cause: DenyCause::Forbidden {
                    rule: RuleName {
                        id: Some("keep_out".into()),
                        place: "policy.dw:3".into(),
                    },
                    description: Some("Customer data stays where it is.".into()),
                    witness: Vec::new(),
                },
            });
        }
        log.push(question);
        Ok(Box::new(Ticket {
            log: Arc::clone(&self.log),
            at: log.len() - 1,
            done: false,
        }))
    }

    fn record_refusal(&self, _: &Caller, action: &Action, _: &Denial) {
        let line = format!("floor {}", told(action));
        self.log.lock().unwrap().push(line);
    }
}

/// Answers from the URL: `/status/404`, `/long`, `/slow`, `/refused`; anything else is told back.
pub struct Words;

impl Fetch for Words {
    fn fetch(&self, caller: &Caller, request: FetchRequest) -> Result<FetchReply, FetchError> {
        assert_eq!(*caller, Caller::Agent);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let reply = |status, headers, body: &str| {
            Ok(FetchReply {
                status,
                headers,
                body: body.as_bytes().to_vec(),
            })
        };
        if request.url.ends_with("/slow") {
            return Err(FetchError::TimedOut);
        }
        if request.url.ends_with("/long") {
            return reply(200, Vec::new(), &"x".repeat(request.longest_reply + 1));
        }
        if request.url.ends_with("/refused") {
            let headers = vec![pair("X-Box-Egress", "refused")];
            return reply(403, headers, "http:request denied [policy: sealed]");
        }
        let body = format!(
            "{} {} {:?} {:?}",
            request.method,
            request.url,
            request.headers,
            String::from_utf8_lossy(&request.body)
        );
        let headers = vec![pair("Set-Cookie", "a=1"), pair("SET-COOKIE", "b=2")];
        reply(200, headers, &body)
    }
}

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_micros(1_700_000_000_123_456)
    }
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub struct Ran {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
    /// What was asked, and what came of it.
    pub asked: Vec<String>,
}

impl Ran {
    /// Everything a reader of a snapshot wants to see.
    pub fn all(&self) -> String {
        let mut text = format!("status {}\n{}", self.status, self.stdout);
        if !self.stderr.is_empty() {
            text.push_str(&format!("----- stderr\n{}", self.stderr));
        }
        if !self.asked.is_empty() {
            text.push_str(&format!("----- asked\n{}\n", self.asked.join("\n")));
        }
        text
    }
}

pub struct World {
    _dir: tempfile::TempDir,
    pub home: PathBuf,
    pub limits: Limits,
    pub denied: Vec<(String, String)>,
    pub cancel: Option<Arc<AtomicBool>>,
}

impl World {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("ana");
        let work = home.join("work");
        for made in ["data", "empty", "sub/deep"] {
            std::fs::create_dir_all(work.join(made)).unwrap();
        }
        std::fs::create_dir(home.join("box")).unwrap();
        std::fs::write(home.join("box/policy.dw"), "permit").unwrap();
        std::fs::write(work.join("a.txt"), "one\ntwo\n").unwrap();
        std::fs::write(work.join("data/secret.txt"), "secret").unwrap();
        Self {
            _dir: dir,
            home,
            limits: Limits::default(),
            denied: Vec::new(),
            cancel: None,
        }
    }

    pub fn deny(mut self, action: &str, target: &str) -> Self {
        self.denied.push((action.into(), target.into()));
        self
    }

    pub fn work(&self, path: &str) -> PathBuf {
        self.home.join("work").join(path)
    }

    pub fn run(&self, text: &str) -> Ran {
        self.source(Source::Command(text.into()), "")
    }

    pub fn source(&self, source: Source, stdin: &str) -> Ran {
        self.with_worker(source, stdin, &std::env::current_exe().unwrap())
    }

    pub fn with_worker(&self, source: Source, stdin: &str, worker: &Path) -> Ran {
        let log = Log::default();
        let gate = Recorder {
            log: Arc::clone(&log),
            denied: self.denied.clone(),
        };
        let config = Config {
            home: self.home.clone(),
            agent_home: self.home.clone(),
            workspace: self.work(""),
            protected: vec![self.home.join("box")],
            worker: worker.to_path_buf(),
            limits: self.limits.clone(),
        };
        let python =
            Python::new(config, Arc::new(gate), Arc::new(Words)).with_clock(Arc::new(Stopped));
        let request = Request {
            source,
            cwd: self.work(""),
            caller: Caller::Agent,
            cancel: self.cancel.clone(),
        };
        let (stdout, stderr) = (Shared::default(), Shared::default());
        let streams = Streams {
            stdin: Box::new(Cursor::new(stdin.as_bytes().to_vec())),
            stdout: Box::new(stdout.clone()),
            stderr: Box::new(stderr.clone()),
        };
        let status = python.run(request, streams);
        let text = |shared: Shared| {
            String::from_utf8(shared.0.lock().unwrap().clone())
                .unwrap()
                .replace(&self.home.display().to_string(), "HOME")
        };
        let asked = log.lock().unwrap();
        let asked = asked
            .iter()
            .map(|line| line.replace(&self.home.display().to_string(), "HOME"));
        Ran {
            status,
            stdout: text(stdout),
            stderr: text(stderr),
            asked: asked.collect(),
        }
    }
}
