//! One connection: an opening frame, then the streams and signals of one command until it ends.
//!
//! ```text
//! alias ──frames──▶ reader thread ──▶ Input (at most one chunk held), Stop
//!       ◀─frames── Output ◀── the command, on the connection's thread
//! ```
//!
//! Standard input is asked for when the command reads and not before, so a peer can make the box hold one
//! chunk and no more.

use super::frame::{self, Bytes, CHUNK, FrameError, FromAlias, Open, Signal, ToAlias, VERSION};
use box_authority::gate::Caller;
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// For a whole frame, once its first byte is there, and for the opening from the start.
const FRAME_TIME: Duration = Duration::from_secs(5);
/// For the peer to take one frame of output: a pager may hold a command up, a dead peer not for ever.
const OUTPUT_TIME: Duration = Duration::from_secs(300);

/// Runs one command to its end. What a checkpoint is to the broker.
pub trait Runner: Send + Sync {
    /// The exit status, or why the box could not run it.
    fn run(&self, caller: &Caller, open: &Open, streams: Streams) -> Result<i32, String>;
}

/// The ends of one command's streams. They stay usable after the peer has gone: reads end, writes fail.
pub struct Streams {
    pub stdin: Input,
    pub stdout: Output,
    pub stderr: Output,
    pub stop: Stop,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

struct Wire {
    sending: Mutex<TcpStream>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    held: VecDeque<u8>,
    /// Bytes asked for and not yet answered.
    asked: Option<u32>,
    ended: bool,
    signals: VecDeque<Signal>,
    /// The peer has gone, or broke the protocol.
    gone: bool,
    /// The command has ended.
    over: bool,
}

impl Wire {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, frame: &ToAlias) -> Result<(), FrameError> {
        let mut socket = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = frame::write(&mut *socket, frame);
        drop(socket);
        if sent.is_err() {
            self.leave();
        }
        sent
    }

    fn leave(&self) {
        self.state().gone = true;
        self.changed.notify_all();
    }
}

/// Standard input of the command.
pub struct Input(Arc<Wire>);

impl Read for Input {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            let mut state = self.0.state();
            if !state.held.is_empty() {
                return state.held.read(into);
            }
            if state.ended || state.gone || state.over {
                return Ok(0);
            }
            if state.asked.is_none() {
                let bytes = u32::try_from(into.len().min(CHUNK)).unwrap_or(1);
                state.asked = Some(bytes);
                drop(state);
                if self.0.send(&ToAlias::Want { bytes }).is_err() {
                    return Ok(0);
                }
                state = self.0.state();
            }
            let waiting = |state: &mut State| {
                state.held.is_empty()
                    && state.asked.is_some()
                    && !(state.ended || state.gone || state.over)
            };
            drop(
                self.0
                    .changed
                    .wait_while(state, waiting)
                    .unwrap_or_else(PoisonError::into_inner),
            );
        }
    }
}

/// Standard output or standard error of the command. Every write is on its way when it returns.
#[derive(Clone)]
pub struct Output {
    wire: Arc<Wire>,
    stream: Stream,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for chunk in bytes.chunks(CHUNK) {
            let data = Bytes(chunk.to_vec());
            let frame = match self.stream {
                Stream::Stdout => ToAlias::Stdout { data },
                Stream::Stderr => ToAlias::Stderr { data },
            };
            if self.wire.state().gone || self.wire.send(&frame).is_err() {
                return Err(ErrorKind::BrokenPipe.into());
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Why a command is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    Signal(Signal),
    /// The peer has gone, and nobody waits for the command any more.
    Gone,
    /// The command has ended; there is nothing to stop.
    Over,
}

/// Tells of signals and of a peer that leaves.
#[derive(Clone)]
pub struct Stop(Arc<Wire>);

impl Stop {
    /// Waits for the next reason to stop.
    pub fn wait(&self) -> Stopped {
        let idle = |state: &mut State| state.signals.is_empty() && !state.gone && !state.over;
        let state = self.0.changed.wait_while(self.0.state(), idle);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        match state.signals.pop_front() {
            _ if state.over => Stopped::Over,
            Some(signal) => Stopped::Signal(signal),
            None => Stopped::Gone,
        }
    }
}

/// Says why nothing is run. The peer may not listen.
pub fn refuse(connection: &TcpStream, reason: &str) {
    let _ = connection.set_write_timeout(Some(FRAME_TIME));
    let mut to = connection;
    let _ = frame::write(
        &mut to,
        &ToAlias::Refused {
            reason: reason.into(),
        },
    );
}

/// Serves one connection to its end.
pub fn serve(connection: &TcpStream, caller: &Caller, runner: &dyn Runner) {
    let open = match opening(connection) {
        Ok(open) => open,
        Err(reason) => return refuse(connection, &reason),
    };
    let (Ok(sending), Ok(receiving)) = (connection.try_clone(), connection.try_clone()) else {
        return refuse(connection, "the box is out of descriptors");
    };
    let _ = sending.set_nodelay(true);
    let _ = sending.set_write_timeout(Some(OUTPUT_TIME));
    let wire = Arc::new(Wire {
        sending: Mutex::new(sending),
        state: Mutex::default(),
        changed: Condvar::new(),
    });
    let reading = Arc::clone(&wire);
    let reader = std::thread::Builder::new()
        .name("connection input".into())
        .spawn(move || {
            if let Err(e) = listen(&receiving, &reading) {
                let _ = reading.send(&ToAlias::Refused { reason: e });
            }
            reading.leave();
        });
    let Ok(reader) = reader else {
        return refuse(connection, "the box is out of threads");
    };
    let output = |stream| Output {
        wire: Arc::clone(&wire),
        stream,
    };
    let streams = Streams {
        stdin: Input(Arc::clone(&wire)),
        stdout: output(Stream::Stdout),
        stderr: output(Stream::Stderr),
        stop: Stop(Arc::clone(&wire)),
    };
    // A panic in a checkpoint ends this command, not the box.
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        runner.run(caller, &open, streams)
    }));
    let last = match ran {
        Ok(Ok(status)) => ToAlias::Exit { status },
        Ok(Err(reason)) => ToAlias::Refused { reason },
        Err(_) => ToAlias::Refused {
            reason: "the checkpoint broke down".into(),
        },
    };
    let gone = {
        let mut state = wire.state();
        state.over = true;
        state.gone
    };
    wire.changed.notify_all();
    if gone {
        // Its reader may still be telling it what it did wrong, and then ends.
        let _ = reader.join();
        let _ = connection.shutdown(std::net::Shutdown::Both);
        return;
    }
    let _ = wire.send(&last);
    // Closing with unread bytes would take the last frame back: the peer closes first, if it does so soon.
    let _ = connection.shutdown(std::net::Shutdown::Write);
    let here = |state: &mut State| !state.gone;
    drop(
        wire.changed
            .wait_timeout_while(wire.state(), FRAME_TIME, here),
    );
    let _ = connection.shutdown(std::net::Shutdown::Both);
    let _ = reader.join();
}

fn opening(connection: &TcpStream) -> Result<Open, String> {
    let _ = connection.set_write_timeout(Some(FRAME_TIME));
    let mut timed = Timed {
        connection,
        until: Instant::now() + FRAME_TIME,
    };
    match frame::read(&mut timed) {
        Ok(Some(FromAlias::Open(open))) if open.version == VERSION => Ok(open),
        Ok(Some(FromAlias::Open(open))) => Err(format!(
            "this box speaks version {VERSION} of the protocol, not {}",
            open.version
        )),
        Ok(Some(_)) => Err("the first frame must be `open`".into()),
        Ok(None) => Err("nothing was asked".into()),
        Err(e) => Err(e.to_string()),
    }
}

/// Takes frames until the peer is done; an error says how it broke the protocol.
fn listen(connection: &TcpStream, wire: &Wire) -> Result<(), String> {
    while let Some(frame) = next(connection).map_err(|e| e.to_string())? {
        let mut state = wire.state();
        // Under the same lock, so that the command is not served any further.
        let broke = |state: &mut State, how: &str| {
            state.gone = true;
            Err(how.into())
        };
        match frame {
            FromAlias::Open(_) => return broke(&mut state, "`open` comes once"),
            FromAlias::Stdin { data } => match state.asked {
                None => return broke(&mut state, "input came that was not asked for"),
                Some(asked) if data.0.len() > asked as usize => {
                    return broke(&mut state, "more input came than was asked for");
                }
                Some(_) => {
                    state.asked = None;
                    state.held.extend(data.0);
                }
            },
            FromAlias::StdinEof {} => {
                state.asked = None;
                state.ended = true;
            }
            FromAlias::Signal { name } => {
                // Whoever sends more than anybody could heed is not heard.
                if state.signals.len() < 16 {
                    state.signals.push_back(name);
                }
            }
        }
        drop(state);
        wire.changed.notify_all();
    }
    Ok(())
}

/// The next frame: any time until it begins, [`FRAME_TIME`] for the rest.
fn next<T: DeserializeOwned>(connection: &TcpStream) -> Result<Option<T>, FrameError> {
    connection.set_read_timeout(None)?;
    let mut first = [0; 1];
    loop {
        let mut from = connection;
        match from.read(&mut first) {
            Ok(0) => return Ok(None),
            Ok(_) => break,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            // A peer that was killed resets the connection: it has gone like any other.
            Err(e) if e.kind() == ErrorKind::ConnectionReset => return Ok(None),
            Err(e) => return Err(e.into()),
        }
    }
    frame::read(&mut first.chain(Timed {
        connection,
        until: Instant::now() + FRAME_TIME,
    }))
}

/// A connection that has to deliver by a certain time.
struct Timed<'c> {
    connection: &'c TcpStream,
    until: Instant,
}

impl Read for Timed<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.connection.set_read_timeout(Some(left))?;
        let mut from = self.connection;
        from.read(into)
    }
}

#[cfg(test)]
mod tests;
