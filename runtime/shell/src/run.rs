//! One run: builds an interpreter around the checkpoint, runs it on a thread of its own, and ends it.

use crate::admission::{REFUSED, Refused, Session};
use crate::decide::{Asker, Spelling};
use crate::fs::{PolicyFs, Protected};
use crate::host::{Host, lexical};
use crate::spawn::{External, Late, Spawner};
use crate::stdin::{Reader, Stdin, reader};
use crate::{Config, Request, Shell, Streams};
use bashkit::{
    Bash, BuiltinRegistry, Error, ExecOptions, ExecutionLimits, FsLimits, InMemoryFs,
    LimitExceeded, MemoryLimits, SessionLimits, TraceMode,
};
use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Builtins that stand for programs of the host: network clients, interpreters, version control, editors. Under
/// those names the real program is spawned and decided as such.
const HOST_NAMES: [&str; 31] = [
    "git", "ssh", "scp", "sftp", "curl", "wget", "http", "https", "python", "python3", "node",
    "deno", "bun", "ts-node", "sqlite", "sqlite3", "make", "sudo", "doas", "su", "busybox", "vi",
    "vim", "nano", "more", "less", "man", "openssl", "flock", "ps", "kubectl",
];

/// Stack of the thread a run lives on.
const STACK: usize = 32 << 20;

/// As good as no time limit, and small enough to add to a clock.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

const MAX_AST_DEPTH: usize = 100;
const MAX_PARSER_OPERATIONS: usize = 5_000_000;

const CANCELLED: i32 = 130;
const FAILED: i32 = 125;

type Sink = Arc<Mutex<Box<dyn Write + Send>>>;

pub(crate) fn run(shell: &Shell, request: Request, io: Streams) -> i32 {
    let shell = shell.clone();
    let Streams {
        stdin,
        stdout,
        stderr,
    } = io;
    let stderr: Sink = Arc::new(Mutex::new(stderr));
    let say = Arc::clone(&stderr);
    let life = std::thread::Builder::new()
        .name("shell".into())
        .stack_size(STACK)
        .spawn(move || {
            live(
                &shell,
                request,
                Stdin::new(stdin),
                Arc::new(Mutex::new(stdout)),
                stderr,
            )
        });
    match life.map(std::thread::JoinHandle::join) {
        Ok(Ok(status)) => status,
        Ok(Err(_)) => {
            tell(&say, "box: the shell failed unexpectedly\n");
            FAILED
        }
        Err(error) => {
            tell(&say, &format!("box: the shell could not start: {error}\n"));
            FAILED
        }
    }
}

fn tell(sink: &Sink, text: &str) {
    let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
    // Nowhere is left to say that the last stream is gone.
    let _ = sink.write_all(text.as_bytes());
    let _ = sink.flush();
}

fn live(shell: &Shell, request: Request, stdin: Stdin, stdout: Sink, stderr: Sink) -> i32 {
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            tell(
                &stderr,
                &format!("box: the shell could not start: {error}\n"),
            );
            return FAILED;
        }
    };
    let status = runtime.block_on(execute(shell, request, stdin, stdout, stderr));
    runtime.shutdown_background();
    status
}

async fn execute(shell: &Shell, request: Request, stdin: Stdin, stdout: Sink, stderr: Sink) -> i32 {
    let config = &shell.config;
    if request.text.len() > config.limits.command_bytes {
        tell(&stderr, "box: input too large\n");
        return 1;
    }
    let cwd = lexical(&request.cwd);
    let registry = BuiltinRegistry::new();
    let asker = Asker::new(
        Arc::clone(&shell.gate),
        request.caller.clone(),
        Spelling::new(config.home.clone()),
    );
    let session = Arc::new(Session::new(asker, registry.clone(), cwd.clone()));
    let host = Arc::new(Host::new(
        &[&config.home, &config.agent_home, &config.workspace],
        config.limits.host_file,
    ));
    let memory = Arc::new(InMemoryFs::with_limits(
        FsLimits::unlimited()
            .max_file_size(config.limits.memory_file)
            .max_file_count(config.limits.memory_entries)
            .max_dir_count(config.limits.memory_entries)
            .max_total_bytes(config.limits.live_bytes),
    ));
    let stdin = Arc::new(stdin);
    let (input, mark) = standard_input(&request.text, &stdin, config).await;
    let spawner = Arc::new(Spawner {
        session: Arc::clone(&session),
        programs: Arc::clone(&shell.programs),
        search: config.path.clone(),
        stdin: Arc::clone(&stdin),
        stdin_mark: mark,
        wall: config.limits.program_wall,
        host: Arc::clone(&host),
        memory: Arc::clone(&memory),
        ready: Mutex::default(),
    });
    let protected = Arc::new(
        config
            .protected
            .iter()
            .map(|path| Protected::new(path))
            .collect::<Vec<_>>(),
    );
    let policy = PolicyFs::new(
        Arc::clone(&session),
        host,
        memory,
        protected,
        config.path.clone(),
    );
    let mut bash = interpreter(
        config,
        &request,
        &cwd,
        policy,
        &session,
        &spawner,
        registry.clone(),
    );

    let names: HashSet<String> = bash.builtin_names().into_iter().collect();
    let mut programs = HashSet::new();
    for name in spawner.programs.interpreters() {
        registry.insert(*name, Arc::new(External::interpreter(name, &spawner)));
        programs.insert((*name).to_owned());
    }
    for (name, file) in spawner.names() {
        if !names.contains(&name) && !programs.contains(&name) {
            registry.insert(name.clone(), Arc::new(External::new(&name, file, &spawner)));
            programs.insert(name);
        }
    }
    registry.insert(
        REFUSED,
        Arc::new(Refused {
            text: None,
            session: Some(Arc::downgrade(&session)),
        }),
    );
    session.ends_with(bash.cancellation_token());
    session.furnish(names, &spawner, programs);
    session.learn(&request.text);

    let mut options = ExecOptions::new().stdin(input);
    if let Some((arg0, rest)) = request.args.split_first() {
        options = options.arg0(arg0.clone()).positional(rest.to_vec());
    }
    let out = Arc::clone(&stdout);
    let err = Arc::clone(&stderr);
    let (for_out, for_err) = (Arc::clone(&session), Arc::clone(&session));
    let execution = bash
        .execute(&request.text)
        .options(options)
        .stdout_fn(move |bytes| std::future::ready(deliver(&out, &for_out, bytes)))
        .stderr_fn(move |bytes| std::future::ready(deliver(&err, &for_err, bytes)));
    let execution = match &request.cancel {
        Some(cancel) => execution.cancel_with(Arc::clone(cancel)),
        None => execution,
    };
    let status = match execution.await {
        Ok(result) => result.exit_code,
        Err(Error::Cancelled) if session.is_exhausted() => {
            tell(&stderr, "box: the run had too many commands\n");
            1
        }
        Err(error) => {
            let (status, text) = failure(&error, &request);
            tell(&stderr, &text);
            status
        }
    };
    drop(bash);
    spawner.close();
    session.close();
    status
}

fn interpreter(
    config: &Config,
    request: &Request,
    cwd: &Path,
    policy: PolicyFs,
    session: &Arc<Session>,
    spawner: &Arc<Spawner>,
    registry: BuiltinRegistry,
) -> Bash {
    let hooked = Arc::clone(session);
    let traced = Arc::clone(session);
    let user = config
        .home
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("agent")
        .to_owned();
    let path = config
        .path
        .iter()
        .map(|dir| dir.display().to_string())
        .collect::<Vec<_>>()
        .join(":");
    let mut builder = Bash::builder()
        .fs(Arc::new(policy))
        .rootfs(false)
        .username(user)
        .env("HOME", config.agent_home.display().to_string())
        .env("PATH", path)
        .env("SHELL", "/bin/bash");
    for (name, value) in &request.env {
        builder = builder.env(name, value);
    }
    builder
        .cwd(cwd.to_path_buf())
        .limits(limits(config))
        .session_limits(SessionLimits::unlimited())
        .memory_limits(MemoryLimits::unlimited())
        .builtin_filter(|name| !HOST_NAMES.contains(&name))
        .builtin_registry(registry)
        .command_resolver(Arc::new(Late {
            spawner: Arc::downgrade(spawner),
        }))
        .trace_mode(TraceMode::Full)
        .on_trace_event(Box::new(move |event| traced.on_trace(event)))
        .before_tool(Box::new(move |event| hooked.on_tool(event)))
        .build()
}

fn limits(config: &Config) -> ExecutionLimits {
    let wall = config.limits.run_wall.unwrap_or(FOREVER).min(FOREVER);
    ExecutionLimits::cli()
        .timeout(wall)
        .max_work_units(u64::MAX / 4)
        .max_aggregate_input_bytes(u64::MAX / 4)
        .max_live_intermediate_bytes(config.limits.live_bytes)
        .max_stdout_bytes(usize::MAX / 4)
        .max_stderr_bytes(usize::MAX / 4)
        .max_input_bytes(config.limits.command_bytes)
        .max_ast_depth(MAX_AST_DEPTH)
        .max_parser_operations(MAX_PARSER_OPERATIONS)
        .max_word_split_fields(1_000_000)
        .max_word_split_bytes(256 << 20)
}

/// What the interpreter gets as its input, and the mark that stands for the stream if it does not get that.
async fn standard_input(text: &str, stdin: &Stdin, config: &Config) -> (Vec<u8>, Vec<u8>) {
    let mark = crate::admission::nonce().into_bytes();
    let limit = usize::try_from(config.limits.host_file).unwrap_or(usize::MAX);
    match reader(text, MAX_AST_DEPTH, MAX_PARSER_OPERATIONS) {
        Reader::Nobody => (mark.clone(), mark),
        Reader::Builtin => (stdin.rest(limit).await, mark),
        Reader::Perhaps => match stdin.rest_within(config.limits.stdin_grace, limit).await {
            Some(bytes) => (bytes, mark),
            None => (mark.clone(), mark),
        },
    }
}

/// Writes what the run says; a refusal in somebody else's words gets ours.
fn deliver(sink: &Sink, session: &Session, bytes: Vec<u8>) -> bashkit::Result<()> {
    let bytes = match std::str::from_utf8(&bytes) {
        Ok(text) if session.has_to_reword() => session.reword(text).into_bytes(),
        _ => bytes,
    };
    let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
    sink.write_all(&bytes)?;
    sink.flush()?;
    Ok(())
}

fn failure(error: &Error, request: &Request) -> (i32, String) {
    let who = request.args.first().map_or("bash", String::as_str);
    match error {
        Error::Cancelled => (CANCELLED, "box: cancelled\n".to_owned()),
        Error::ResourceLimit(LimitExceeded::Timeout(_)) => {
            (124, "box: execution timeout exceeded\n".to_owned())
        }
        Error::Parse { .. } => {
            let text = error
                .syntax_report(who, &request.text)
                .unwrap_or_else(|| format!("{who}: {error}\n"));
            (
                2,
                if text.ends_with('\n') {
                    text
                } else {
                    format!("{text}\n")
                },
            )
        }
        Error::ResourceLimit(limit) => (1, format!("{who}: {limit}\n")),
        Error::Io(error) if error.kind() == std::io::ErrorKind::BrokenPipe => (141, String::new()),
        other => (FAILED, format!("box: the shell failed: {other}\n")),
    }
}
