//! Host programs: a stand-in for each name, which decides, then hands the program and its permit over.
//!
//! The decision is made when the interpreter asks the stand-in for its plan: after expansion, before the
//! command's redirections are opened, with the working directory of the interpreter that runs it.

use crate::admission::{Owner, Session, refused};
use crate::decide::refusal_text;
use crate::host::Host;
use crate::stdin::Stdin;
use crate::{ProgramRefusal, ProgramRun, Programs};
use bashkit::{
    Builtin, BuiltinContext, BuiltinRegistry, Command, CommandContext, CommandInput, CommandOutput,
    CommandResolver, CommandStatus, ExecResult, ExecutionPlan, InMemoryFs, async_trait,
};
use box_authority::action::Outcome;
use box_authority::gate::Permit;
use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

const CHUNK: usize = 16 * 1024;

/// Everything that starting a program needs.
pub(crate) struct Spawner {
    pub(crate) session: Arc<Session>,
    pub(crate) programs: Arc<dyn Programs>,
    pub(crate) search: Vec<PathBuf>,
    pub(crate) stdin: Arc<Stdin>,
    /// Stands in the interpreter's input for [`Self::stdin`].
    pub(crate) stdin_mark: Vec<u8>,
    /// How long a program may run.
    pub(crate) wall: Option<Duration>,
    pub(crate) host: Arc<Host>,
    pub(crate) memory: Arc<InMemoryFs>,
    pub(crate) ready: Mutex<HashMap<u64, Ready>>,
}

/// What the plan found out, waiting for the command's redirections to be open.
pub(crate) enum Ready {
    Go {
        permit: Box<dyn Permit>,
        program: PathBuf,
        cwd: PathBuf,
    },
    /// Ends with this status and text.
    Not { status: i32, text: String },
}

impl Spawner {
    /// The program a bare name stands for.
    pub(crate) fn look_up(&self, name: &str) -> Option<PathBuf> {
        if name.is_empty() || name.contains('/') {
            return None;
        }
        self.search
            .iter()
            .map(|dir| dir.join(name))
            .find(|path| is_executable(path))
    }

    /// Every name in the look-up path.
    pub(crate) fn names(&self) -> impl Iterator<Item = (String, PathBuf)> {
        let mut seen = HashMap::new();
        for dir in self.search.iter().rev() {
            for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
                if let Ok(name) = entry.file_name().into_string() {
                    seen.insert(name, entry.path());
                }
            }
        }
        seen.into_iter()
    }

    pub(crate) fn put(&self, id: Option<u64>, ready: Ready) {
        if let Some(id) = id {
            self.ready
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(id, ready);
        }
    }

    fn take(&self, id: Option<u64>) -> Option<Ready> {
        self.ready
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&id?)
    }

    /// Asks for `program`; nothing starts yet.
    pub(crate) fn ask(&self, name: &str, args: &[String], cwd: &Path, program: PathBuf) -> Ready {
        self.session.settle();
        if let Some(text) = self.session.refused_call() {
            return Ready::Not { status: 126, text };
        }
        let stores = self.programs.describe(&program, args);
        match self.session.ask.spawn(name, args, cwd, &program, stores) {
            Ok(permit) => Ready::Go {
                permit,
                program,
                cwd: cwd.to_path_buf(),
            },
            Err(denial) => Ready::Not {
                status: 126,
                text: refusal_text(&denial),
            },
        }
    }

    /// Asks for an interpreter of the box, which is a command of its own and no program of the host.
    fn ask_interpreter(&self, name: &str, args: &[String], cwd: &Path) -> Ready {
        self.session.settle();
        if let Some(text) = self.session.refused_call() {
            return Ready::Not { status: 126, text };
        }
        match self.session.ask.exec(name, args, cwd) {
            Ok(permit) => Ready::Go {
                permit,
                program: PathBuf::from(name),
                cwd: cwd.to_path_buf(),
            },
            Err(denial) => Ready::Not {
                status: 126,
                text: refusal_text(&denial),
            },
        }
    }

    /// Runs what the plan made ready, on the command's own streams.
    pub(crate) async fn execute(
        self: Arc<Self>,
        name: &str,
        mut ctx: BuiltinContext<'_>,
    ) -> bashkit::Result<ExecResult> {
        self.session.open_redirects_of(None);
        let (id, args) = self.session.unmark(ctx.args);
        ctx.args = args;
        let ready = match self.take(id) {
            Some(ready) => ready,
            None => Ready::Not {
                status: 126,
                text: "box: the command was not decided".to_owned(),
            },
        };
        let inherits = ctx.stdin_bytes() == Some(self.stdin_mark.as_slice());
        let _held = id.map(|id| EndGrants {
            session: Arc::clone(&self.session),
            owner: Owner::Program(id),
        });
        let started = Started {
            spawner: Arc::clone(&self),
            ready: Mutex::new(Some(ready)),
            inherits,
        };
        // The interpreter wires streams only for commands it wrapped itself.
        let registry = BuiltinRegistry::new();
        registry.insert_command(name, started);
        match registry.lookup(name) {
            Some(wrapped) => wrapped.execute(ctx).await,
            None => Ok(refused("box: the command could not be wired")),
        }
    }

    /// Permits whose command never got as far as running.
    pub(crate) fn close(&self) {
        let ready = std::mem::take(&mut *self.ready.lock().unwrap_or_else(PoisonError::into_inner));
        for ready in ready.into_values() {
            if let Ready::Go { permit, .. } = ready {
                permit.complete(Outcome::Failed);
            }
        }
    }
}

pub(crate) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

struct EndGrants {
    session: Arc<Session>,
    owner: Owner,
}

impl Drop for EndGrants {
    fn drop(&mut self) {
        self.session.end_grants(self.owner);
    }
}

/// Stands for a program found on the look-up path.
pub(crate) struct External {
    name: String,
    /// None: an interpreter of the box.
    file: Option<PathBuf>,
    spawner: Weak<Spawner>,
}

impl External {
    pub(crate) fn new(name: &str, file: PathBuf, spawner: &Arc<Spawner>) -> Self {
        Self {
            name: name.to_owned(),
            file: Some(file),
            spawner: Arc::downgrade(spawner),
        }
    }

    pub(crate) fn interpreter(name: &str, spawner: &Arc<Spawner>) -> Self {
        Self {
            name: name.to_owned(),
            file: None,
            spawner: Arc::downgrade(spawner),
        }
    }
}

#[async_trait]
impl Builtin for External {
    /// Where a loop reads lines, the interpreter keeps the input and lends it; otherwise the program has it.
    fn streams_io(&self) -> bool {
        self.spawner
            .upgrade()
            .is_none_or(|spawner| !spawner.session.is_reading())
    }

    async fn execution_plan(
        &self,
        ctx: &BuiltinContext<'_>,
    ) -> bashkit::Result<Option<ExecutionPlan>> {
        let Some(spawner) = self.spawner.upgrade() else {
            return Err(bashkit::Error::Cancelled);
        };
        let (id, args) = spawner.session.unmark(ctx.args);
        let ready = match self.file.as_ref().map(|file| file.canonicalize()) {
            None => spawner.ask_interpreter(&self.name, args, ctx.cwd),
            Some(Ok(program)) if is_executable(&program) => {
                spawner.ask(&self.name, args, ctx.cwd, program)
            }
            _ => Ready::Not {
                status: 127,
                text: format!("{}: command not found", self.name),
            },
        };
        spawner.session.open_redirects_of(id.map(Owner::Program));
        spawner.put(id, ready);
        Ok(None)
    }

    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let Some(spawner) = self.spawner.upgrade() else {
            return Err(bashkit::Error::Cancelled);
        };
        spawner.execute(&self.name, ctx).await
    }
}

/// Programs that came to be after the run began.
pub(crate) struct Late {
    pub(crate) spawner: Weak<Spawner>,
}

impl CommandResolver for Late {
    fn resolve(&self, name: &str) -> Option<Arc<dyn Builtin>> {
        let spawner = self.spawner.upgrade()?;
        let file = spawner.look_up(name)?;
        spawner.session.add_program(name);
        Some(Arc::new(External::new(name, file, &spawner)))
    }
}

/// One permitted start, wired to the streams of its command.
struct Started {
    spawner: Arc<Spawner>,
    ready: Mutex<Option<Ready>>,
    inherits: bool,
}

#[async_trait]
impl Command for Started {
    async fn execute(&self, ctx: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        let ready = self
            .ready
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let (status, text) = match ready {
            Some(Ready::Go {
                permit,
                program,
                cwd,
            }) => match self.run(permit, program.clone(), cwd.clone(), &ctx).await? {
                Ok(status) => return Ok(CommandStatus::with_code(status)),
                Err(refusal) => {
                    if matches!(refusal, ProgramRefusal::NotCovered { .. }) {
                        let ask = &self.spawner.session.ask;
                        ask.record_no_tool(ctx.name, ctx.args, &cwd, &program, refusal.to_string());
                    }
                    (126, format!("box: {}: {refusal}", ctx.name))
                }
            },
            Some(Ready::Not { status, text }) => (status, text),
            None => (126, String::new()),
        };
        if !text.is_empty() {
            ctx.stderr.write_all(format!("{text}\n").as_bytes()).await?;
        }
        Ok(CommandStatus::with_code(status))
    }
}

impl Started {
    async fn run(
        &self,
        permit: Box<dyn Permit>,
        program: PathBuf,
        cwd: PathBuf,
        ctx: &CommandContext<'_>,
    ) -> bashkit::Result<Result<i32, ProgramRefusal>> {
        let pipes = match Pipes::open() {
            Ok(pipes) => pipes,
            Err(error) => {
                permit.complete(Outcome::Failed);
                return Ok(Err(ProgramRefusal::CannotStart(error.to_string())));
            }
        };
        let run = ProgramRun {
            program,
            argv: std::iter::once(ctx.name.to_owned())
                .chain(ctx.args.iter().cloned())
                .collect(),
            cwd,
            env: ctx
                .env
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            stdin: pipes.stdin,
            stdout: pipes.stdout,
            stderr: pipes.stderr,
            stop: pipes.stop,
        };
        let mut ended = start(permit, Arc::clone(&self.spawner.programs), run);
        let feed = feed(
            pipes.feed,
            ctx.stdin.clone(),
            self.inherits.then(|| Arc::clone(&self.spawner.stdin)),
        );
        let work = async {
            let outputs = async {
                tokio::try_join!(
                    pass_on(pipes.out, &ctx.stdout),
                    pass_on(pipes.err, &ctx.stderr)
                )
            };
            let (outputs, status) = tokio::join!(outputs, &mut ended);
            outputs.map(|_| status)
        };
        tokio::pin!(work);
        let mut guard = Some(pipes.guard);
        let feeding = async {
            feed.await;
            std::future::pending::<()>().await;
        };
        tokio::pin!(feeding);
        let late = async {
            match self.spawner.wall {
                Some(wall) => tokio::time::sleep(wall).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(late);
        let status = loop {
            tokio::select! {
                biased;
                status = &mut work => break status?,
                () = &mut feeding => {}
                () = &mut late, if guard.is_some() => guard = None,
            }
        };
        if guard.is_none() {
            return Ok(Ok(124));
        }
        Ok(status.unwrap_or_else(|_| {
            Err(ProgramRefusal::CannotStart(
                "the program's keeper ended early".to_owned(),
            ))
        }))
    }
}

/// The only way a program starts: the permit goes in by value and comes back as an outcome.
fn start(
    permit: Box<dyn Permit>,
    programs: Arc<dyn Programs>,
    run: ProgramRun,
) -> oneshot::Receiver<Result<i32, ProgramRefusal>> {
    let (tell, told) = oneshot::channel();
    let keeper = std::thread::Builder::new()
        .name("program".into())
        .spawn(move || {
            let result = programs.run(run);
            permit.complete(match &result {
                Ok(status) => Outcome::Status(i64::from(*status)),
                Err(_) => Outcome::Failed,
            });
            // Nobody listens when the command was abandoned; the outcome is recorded all the same.
            let _ = tell.send(result);
        });
    drop(keeper);
    told
}

struct Pipes {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    stop: OwnedFd,
    feed: pipe::Sender,
    out: pipe::Receiver,
    err: pipe::Receiver,
    /// Closed when the command is abandoned: the other end of `stop` hangs up.
    guard: std::io::PipeWriter,
}

impl Pipes {
    fn open() -> std::io::Result<Self> {
        let (stdin, feed) = std::io::pipe()?;
        let (out, stdout) = std::io::pipe()?;
        let (err, stderr) = std::io::pipe()?;
        let (stop, guard) = std::io::pipe()?;
        Ok(Self {
            stdin: stdin.into(),
            stdout: stdout.into(),
            stderr: stderr.into(),
            stop: stop.into(),
            feed: pipe::Sender::from_owned_fd(feed.into())?,
            out: pipe::Receiver::from_owned_fd(out.into())?,
            err: pipe::Receiver::from_owned_fd(err.into())?,
            guard,
        })
    }
}

/// Passes bytes on as they come. When nobody reads them any more, the program's end of the pipe breaks too.
async fn pass_on(mut from: pipe::Receiver, to: &CommandOutput) -> bashkit::Result<()> {
    let mut buffer = vec![0; CHUNK];
    loop {
        let n = from.read(&mut buffer).await?;
        let bytes = buffer.get(..n).unwrap_or_default();
        if bytes.is_empty() {
            return Ok(());
        }
        match to.write_all(bytes).await {
            Ok(()) => {}
            Err(bashkit::Error::Io(error)) if error.kind() == ErrorKind::BrokenPipe => {
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
}

async fn feed(mut to: pipe::Sender, input: CommandInput, inherited: Option<Arc<Stdin>>) {
    loop {
        let chunk = match &inherited {
            Some(stdin) => stdin.next().await,
            None => input.read_chunk().await.ok().flatten(),
        };
        match chunk {
            Some(bytes) if to.write_all(&bytes).await.is_ok() => {}
            _ => return,
        }
    }
}
