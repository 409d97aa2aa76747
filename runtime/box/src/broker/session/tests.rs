//! A broker on a real loopback connection, with peers that behave and peers that do not.

use super::{Runner, Stopped, Streams};
use crate::broker::frame::{self, Bytes, Form, FromAlias, Mode, Open, Signal, ToAlias, VERSION};
use crate::broker::serve;
use box_authority::gate::Caller;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// A checkpoint that understands a few words.
struct Words(Mutex<Sender<Stopped>>);

impl Runner for Words {
    fn run(&self, caller: &Caller, open: &Open, mut streams: Streams) -> Result<i32, String> {
        match open.text.as_str() {
            "who" => {
                let who = format!("{caller:?} {} {:?}", open.cwd, open.args);
                streams.stdout.write_all(who.as_bytes()).unwrap();
                Ok(0)
            }
            "copy" => {
                let copied = std::io::copy(&mut streams.stdin, &mut streams.stdout).unwrap();
                streams
                    .stderr
                    .write_all(copied.to_string().as_bytes())
                    .unwrap();
                Ok(3)
            }
            "one" => {
                let mut byte = [0; 1];
                let read = streams.stdin.read(&mut byte).unwrap();
                streams.stdout.write_all(&byte[..read]).unwrap();
                Ok(0)
            }
            "wait" => {
                let _ = streams.stdout.write_all(b"waiting");
                let stopped = streams.stop.wait();
                let _ = self.0.lock().unwrap().send(stopped);
                Ok(if let Stopped::Signal(signal) = stopped {
                    100 + signal as i32
                } else {
                    50
                })
            }
            "panic" => panic!("asked to"),
            _ => Err("no such word".into()),
        }
    }
}

fn broker() -> (SocketAddr, Receiver<Stopped>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (stopped, stops) = channel();
    serve(
        listener,
        Caller::Agent,
        Arc::new(Words(Mutex::new(stopped))),
    )
    .unwrap();
    (address, stops)
}

fn connect() -> TcpStream {
    TcpStream::connect(broker().0).unwrap()
}

fn open(text: &str) -> FromAlias {
    FromAlias::Open(Open {
        version: VERSION,
        mode: Mode::Shell,
        form: Form::Command,
        text: text.into(),
        name: None,
        args: vec!["x".into()],
        cwd: "/project".into(),
    })
}

fn say(peer: &mut TcpStream, frame: &FromAlias) {
    frame::write(peer, frame).unwrap();
}

/// Everything the broker says until it is done, one line a frame.
fn hear(peer: &mut TcpStream) -> String {
    let mut heard = Vec::new();
    while let Ok(Some(frame)) = frame::read::<ToAlias>(peer) {
        heard.push(match frame {
            ToAlias::Stdout { data } => format!("out {}", String::from_utf8_lossy(&data.0)),
            ToAlias::Stderr { data } => format!("err {}", String::from_utf8_lossy(&data.0)),
            frame => format!("{frame:?}"),
        });
    }
    heard.join("\n")
}

fn talk(frames: &[FromAlias]) -> String {
    let mut peer = connect();
    frames.iter().for_each(|frame| say(&mut peer, frame));
    hear(&mut peer)
}

#[test]
fn a_command_runs_and_exits() {
    insta::assert_snapshot!(talk(&[open("who")]), @r#"
    out Agent /project ["x"]
    Exit { status: 0 }
    "#);
    insta::assert_snapshot!(talk(&[open("nonsense")]), @r#"Refused { reason: "no such word" }"#);
    insta::assert_snapshot!(talk(&[open("panic")]), @r#"Refused { reason: "the checkpoint broke down" }"#);
}

#[test]
fn input_is_asked_for_when_it_is_read() {
    let mut peer = connect();
    say(&mut peer, &open("one"));
    let Some(ToAlias::Want { bytes: 1 }) = frame::read(&mut peer).unwrap() else {
        panic!("not asked")
    };
    say(
        &mut peer,
        &FromAlias::Stdin {
            data: Bytes(b"a".to_vec()),
        },
    );
    insta::assert_snapshot!(hear(&mut peer), @r"
    out a
    Exit { status: 0 }
    ");

    let mut peer = connect();
    say(&mut peer, &open("copy"));
    for word in ["ab", "", "cde"] {
        let Some(ToAlias::Want { .. }) = frame::read(&mut peer).unwrap() else {
            panic!("not asked")
        };
        say(
            &mut peer,
            &FromAlias::Stdin {
                data: Bytes(word.into()),
            },
        );
        if !word.is_empty() {
            let Some(ToAlias::Stdout { data }) = frame::read(&mut peer).unwrap() else {
                panic!("no output")
            };
            assert_eq!(data.0, word.as_bytes());
        }
    }
    let Some(ToAlias::Want { .. }) = frame::read(&mut peer).unwrap() else {
        panic!("not asked")
    };
    say(&mut peer, &FromAlias::StdinEof {});
    insta::assert_snapshot!(hear(&mut peer), @r"
    err 5
    Exit { status: 3 }
    ");
}

#[test]
fn signals_and_a_peer_that_leaves_stop_a_command() {
    for (signal, status) in [(Signal::Int, 100), (Signal::Term, 101), (Signal::Hup, 102)] {
        let mut peer = connect();
        say(&mut peer, &open("wait"));
        say(&mut peer, &FromAlias::Signal { name: signal });
        assert_eq!(
            hear(&mut peer),
            format!("out waiting\nExit {{ status: {status} }}")
        );
    }
    let (address, stops) = broker();
    let mut peer = TcpStream::connect(address).unwrap();
    say(&mut peer, &open("wait"));
    drop(peer);
    assert_eq!(
        stops
            .recv_timeout(std::time::Duration::from_secs(20))
            .unwrap(),
        Stopped::Gone
    );
}

#[test]
fn a_peer_that_breaks_the_protocol_is_told_once() {
    let stdin = |text: &str| FromAlias::Stdin {
        data: Bytes(text.into()),
    };
    let mut report = Vec::new();
    let other_version = match open("who") {
        FromAlias::Open(open) => FromAlias::Open(Open { version: 6, ..open }),
        other => other,
    };
    report.push(talk(&[other_version]));
    report.push(talk(&[stdin("early")]));
    for late in [open("wait"), stdin("unasked")] {
        let mut peer = connect();
        say(&mut peer, &open("wait"));
        let Some(ToAlias::Stdout { .. }) = frame::read(&mut peer).unwrap() else {
            panic!("not running")
        };
        say(&mut peer, &late);
        report.push(hear(&mut peer));
    }
    let mut peer = connect();
    say(&mut peer, &open("one"));
    let Some(ToAlias::Want { .. }) = frame::read(&mut peer).unwrap() else {
        panic!("not asked")
    };
    say(&mut peer, &stdin("more than one"));
    report.push(hear(&mut peer));
    for bytes in [
        &b""[..],
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0, 0, 0, 2, b'{', b'}'],
        &[0, 0],
        &[0xff; 64],
    ] {
        let mut peer = connect();
        peer.write_all(bytes).unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        report.push(hear(&mut peer));
    }
    insta::assert_snapshot!(report.join("\n--\n"), @r#"
    Refused { reason: "this box speaks version 1 of the protocol, not 6" }
    --
    Refused { reason: "the first frame must be `open`" }
    --
    Refused { reason: "`open` comes once" }
    --
    Refused { reason: "input came that was not asked for" }
    --
    Refused { reason: "more input came than was asked for" }
    --
    Refused { reason: "nothing was asked" }
    --
    Refused { reason: "a frame of 1195725856 bytes is longer than 1048576" }
    --
    Refused { reason: "a frame is not of the protocol: missing field `type` at line 1 column 2" }
    --
    Refused { reason: "the connection ended inside a frame" }
    --
    Refused { reason: "a frame of 4294967295 bytes is longer than 1048576" }
    "#);
}

#[test]
fn too_many_at_once_are_refused_and_places_come_back() {
    let (address, _stops) = broker();
    let mut held: Vec<TcpStream> = (0..64)
        .map(|_| {
            let mut peer = TcpStream::connect(address).unwrap();
            say(&mut peer, &open("wait"));
            let Some(ToAlias::Stdout { .. }) = frame::read(&mut peer).unwrap() else {
                panic!("not running")
            };
            peer
        })
        .collect();
    let mut late = TcpStream::connect(address).unwrap();
    insta::assert_snapshot!(hear(&mut late), @r#"Refused { reason: "too many commands run at once" }"#);
    let mut first = held.pop().unwrap();
    say(&mut first, &FromAlias::Signal { name: Signal::Int });
    assert_eq!(hear(&mut first), "Exit { status: 100 }");
    drop(first);
    // The place is given back when its thread ends, a moment after the last frame.
    let answered = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let mut peer = TcpStream::connect(address).unwrap();
        say(&mut peer, &open("who"));
        hear(&mut peer).contains("Exit")
    });
    assert!(answered);
}
