//! The shells, Pythons and MCP servers an agent finds on its `PATH`: carries what is to be run, its streams and
//! its signals over the broker's socket, and exits as it did. It runs inside the sandbox and decides nothing.

mod arguments;

use crate::broker::ADDRESS;
use crate::broker::frame::{
    self, Bytes, CHUNK, Form, FromAlias, Mode, Open, Signal, ToAlias, VERSION,
};
use arguments::{Refused, Source, USAGE};
use nix::sys::signal as kernel;
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Names under which the `box` program is a shell.
pub const SHELLS: &[&str] = &["sh", "bash", "zsh"];
/// Names under which it runs Python.
pub const PYTHONS: &[&str] = &["python", "python3"];
/// The program's own names.
const OWN: &[&str] = &["box", "strands-box"];
/// No text is longer, in bytes: it has to fit a frame, escaped.
const LONGEST_TEXT: u64 = 256 * 1024;

/// The box could not do its part.
const BOX_FAILED: i32 = 125;
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;
const USAGE_ERROR: i32 = 2;
/// 128 and `SIGPIPE`.
const OUTPUT_GONE: i32 = 141;

/// Whether this process stands for a shell, an interpreter or a server in a sandbox. Inside one, every name but
/// the program's own is an alias: the box gives it the names of its servers.
pub fn is_alias(argv0: &OsStr) -> bool {
    let name = base(argv0);
    SHELLS.contains(&&*name)
        || PYTHONS.contains(&&*name)
        || (!OWN.contains(&&*name) && std::env::var_os(ADDRESS).is_some())
}

fn base(argv0: &OsStr) -> std::borrow::Cow<'_, str> {
    Path::new(argv0)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
}

/// A refusal before or instead of running: what to print, and how to exit.
struct Failure {
    status: i32,
    message: String,
}

fn fail<T>(status: i32, message: impl Into<String>) -> Result<T, Failure> {
    Err(Failure {
        status,
        message: message.into(),
    })
}

/// Runs as `argv0`; the exit status of the process.
pub fn main(argv0: &OsStr, words: impl IntoIterator<Item = OsString>) -> i32 {
    let name = base(argv0);
    let ran = if SHELLS.contains(&&*name) {
        shell(words)
    } else if PYTHONS.contains(&&*name) {
        python(words)
    } else {
        server(&name)
    };
    match ran {
        Ok(status) => status,
        Err(Failure { status, message }) => {
            let _ = writeln!(std::io::stderr(), "{name}: {message}");
            status
        }
    }
}

fn shell(words: impl IntoIterator<Item = OsString>) -> Result<i32, Failure> {
    let invocation = match arguments::parse(words) {
        Ok(invocation) => invocation,
        Err(Refused::Version) => {
            let _ = writeln!(
                std::io::stdout(),
                "box {} shell checkpoint, bash dialect",
                env!("CARGO_PKG_VERSION")
            );
            return Ok(0);
        }
        Err(Refused::Usage(reason)) => return fail(USAGE_ERROR, format!("{reason}\n{USAGE}")),
    };
    let (form, text) = match &invocation.source {
        Source::Command(text) => (Form::Command, text.clone()),
        Source::File(file) => (Form::Script, script(file)?),
        Source::Stdin => (
            Form::Script,
            on_stdin(&format!("there is no interactive shell in a box\n{USAGE}"))?,
        ),
    };
    relay(&Open {
        version: VERSION,
        mode: Mode::Shell,
        form,
        text: arguments::with_options(&invocation.set, text),
        name: invocation.name,
        args: invocation.args,
        cwd: cwd(),
    })
}

fn python(words: impl IntoIterator<Item = OsString>) -> Result<i32, Failure> {
    use box_python::Invocation;
    let words: Vec<String> = words
        .into_iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let invocation = match box_python::arguments(words) {
        Ok(invocation) => invocation,
        Err(refused) => {
            let _ = writeln!(std::io::stderr(), "{refused}");
            return Ok(USAGE_ERROR);
        }
    };
    let (form, name, text) = match invocation {
        Invocation::Version | Invocation::Help => {
            let text = if invocation == Invocation::Version {
                format!("{}\n", box_python::VERSION)
            } else {
                box_python::HELP.to_owned()
            };
            let _ = std::io::stdout().write_all(text.as_bytes());
            return Ok(0);
        }
        Invocation::Command(text) => (Form::Command, None, text),
        Invocation::File(file) => (Form::Script, Some(file.clone()), script(file.as_ref())?),
        Invocation::Input => (
            Form::Script,
            Some("<stdin>".to_owned()),
            on_stdin("there is no interactive Python in a box: give -c SOURCE or a script")?,
        ),
    };
    relay(&Open {
        version: VERSION,
        mode: Mode::Python,
        form,
        text,
        name,
        args: Vec::new(),
        cwd: cwd(),
    })
}

/// Stands for the MCP server of this name. Its arguments are the configuration's, whatever was given here.
fn server(name: &str) -> Result<i32, Failure> {
    relay(&Open {
        version: VERSION,
        mode: Mode::Mcp,
        form: Form::Command,
        text: String::new(),
        name: Some(name.to_owned()),
        args: Vec::new(),
        cwd: cwd(),
    })
}

fn cwd() -> String {
    std::env::current_dir().map_or_else(|_| "/".into(), |cwd| cwd.to_string_lossy().into_owned())
}

fn script(file: &OsStr) -> Result<String, Failure> {
    let shown = file.to_string_lossy();
    match std::fs::File::open(file) {
        Ok(opened) => read_text(opened, &shown),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            fail(NOT_FOUND, format!("{shown}: No such file or directory"))
        }
        Err(e) => fail(NOT_EXECUTABLE, format!("{shown}: {e}")),
    }
}

fn on_stdin(no_terminal: &str) -> Result<String, Failure> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return fail(USAGE_ERROR, no_terminal);
    }
    read_text(stdin.lock(), "standard input")
}

fn read_text(from: impl Read, shown: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    if let Err(e) = from.take(LONGEST_TEXT + 1).read_to_end(&mut bytes) {
        return fail(NOT_EXECUTABLE, format!("{shown}: {e}"));
    }
    if bytes.len() as u64 > LONGEST_TEXT {
        return fail(
            NOT_EXECUTABLE,
            format!("{shown}: longer than {LONGEST_TEXT} bytes"),
        );
    }
    if bytes.contains(&0) {
        return fail(
            NOT_EXECUTABLE,
            format!("{shown}: cannot execute binary file"),
        );
    }
    String::from_utf8(bytes)
        .or_else(|_| fail(NOT_EXECUTABLE, format!("{shown}: is not UTF-8 text")))
}

fn relay(open: &Open) -> Result<i32, Failure> {
    let unreachable = |why: String| Failure {
        status: BOX_FAILED,
        message: format!("the box cannot be reached, so nothing was run: {why}"),
    };
    let address =
        std::env::var(ADDRESS).map_err(|_| unreachable(format!("{ADDRESS} is not set")))?;
    let mut socket =
        TcpStream::connect(&address).map_err(|e| unreachable(format!("{address}: {e}")))?;
    let _ = socket.set_nodelay(true);
    let sending = socket.try_clone().map_err(|e| unreachable(e.to_string()))?;
    let sending = Arc::new(Mutex::new(sending));
    // Blocked before any thread starts, so that only the thread that waits for them gets them.
    forward_signals(&sending).map_err(|e| unreachable(e.to_string()))?;
    send(&sending, &FromAlias::Open(open.clone())).map_err(|e| unreachable(e.to_string()))?;
    let (want, wanted) = channel();
    let to_box = Arc::clone(&sending);
    std::thread::spawn(move || send_input(&to_box, &wanted));
    let (mut stdout, mut stderr) = (std::io::stdout().lock(), std::io::stderr().lock());
    loop {
        match frame::read(&mut socket) {
            Ok(Some(ToAlias::Stdout { data })) => {
                if stdout
                    .write_all(&data.0)
                    .and_then(|()| stdout.flush())
                    .is_err()
                {
                    return Ok(OUTPUT_GONE);
                }
            }
            Ok(Some(ToAlias::Stderr { data })) => {
                if stderr.write_all(&data.0).is_err() {
                    return Ok(OUTPUT_GONE);
                }
            }
            Ok(Some(ToAlias::Want { bytes })) => {
                // The other end is gone only where standard input failed, which it was told.
                let _ = want.send(bytes);
            }
            Ok(Some(ToAlias::Exit { status })) => return Ok(status),
            Ok(Some(ToAlias::Refused { reason })) => {
                return fail(BOX_FAILED, format!("the box refused: {reason}"));
            }
            Ok(None) => return fail(BOX_FAILED, "the box ended before the command did"),
            Err(e) => {
                return fail(
                    BOX_FAILED,
                    format!("the box ended before the command did: {e}"),
                );
            }
        }
    }
}

fn send(to: &Mutex<TcpStream>, frame: &FromAlias) -> Result<(), frame::FrameError> {
    let mut socket = to.lock().unwrap_or_else(PoisonError::into_inner);
    frame::write(&mut *socket, frame)
}

/// Reads standard input only when the command does: what it does not read is left to whoever is next.
fn send_input(to: &Mutex<TcpStream>, wanted: &Receiver<u32>) {
    let mut stdin = std::io::stdin().lock();
    while let Ok(bytes) = wanted.recv() {
        let mut chunk = vec![0; CHUNK.min(bytes as usize)];
        let sent = match stdin.read(&mut chunk) {
            Ok(0) => send(to, &FromAlias::StdinEof {}),
            Ok(read) => {
                chunk.truncate(read);
                send(to, &FromAlias::Stdin { data: Bytes(chunk) })
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => send(
                to,
                &FromAlias::Stdin {
                    data: Bytes::default(),
                },
            ),
            Err(_) => send(to, &FromAlias::StdinEof {}),
        };
        if sent.is_err() {
            return;
        }
    }
}

fn forward_signals(to: &Arc<Mutex<TcpStream>>) -> nix::Result<()> {
    let mut signals = kernel::SigSet::empty();
    for signal in [kernel::SIGINT, kernel::SIGTERM, kernel::SIGHUP] {
        signals.add(signal);
    }
    signals.thread_block()?;
    let to = Arc::clone(to);
    std::thread::spawn(move || {
        while let Ok(signal) = signals.wait() {
            let name = match signal {
                kernel::SIGINT => Signal::Int,
                kernel::SIGHUP => Signal::Hup,
                _ => Signal::Term,
            };
            if send(&to, &FromAlias::Signal { name }).is_err() {
                return;
            }
        }
    });
    Ok(())
}
