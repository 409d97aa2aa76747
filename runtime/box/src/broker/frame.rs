//! The frames between an alias in a sandbox and the broker outside: a four-byte big-endian length, then
//! JSON, bytes in base64. Whoever is at the other end is taken to be hostile.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::io::{ErrorKind, Read, Write};

/// The protocol spoken here. Another one is refused by name.
pub const VERSION: u32 = 1;
/// No frame is longer, in bytes; checked before anything is allocated.
pub const LONGEST: usize = 1 << 20;
/// No data frame carries more, in bytes.
pub const CHUNK: usize = 48 * 1024;

/// What an alias says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum FromAlias {
    Open(Open),
    /// Never more than was asked for with [`ToAlias::Want`].
    Stdin {
        data: Bytes,
    },
    StdinEof {},
    Signal {
        name: Signal,
    },
}

/// The first frame of a connection, and only that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    pub version: u32,
    pub mode: Mode,
    pub form: Form,
    /// The commands themselves. A script's file is read by the alias, with the agent's own access.
    pub text: String,
    /// `$0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `$1` and on.
    #[serde(default)]
    pub args: Vec<String>,
    /// Where the alias was started.
    pub cwd: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Shell,
    /// A script for the Python checkpoint.
    Python,
    /// The MCP server whose program has the name in [`Open::name`].
    Mcp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// `-c TEXT`.
    Command,
    /// A script file, or standard input.
    Script,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Signal {
    #[serde(rename = "INT")]
    Int,
    #[serde(rename = "TERM")]
    Term,
    #[serde(rename = "HUP")]
    Hup,
}

/// What the broker says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToAlias {
    Stdout {
        data: Bytes,
    },
    Stderr {
        data: Bytes,
    },
    /// The command reads: up to so many bytes of standard input may be sent.
    Want {
        bytes: u32,
    },
    /// The last frame: the command ended.
    Exit {
        status: i32,
    },
    /// The last frame: nothing was, or is any more, run.
    Refused {
        reason: String,
    },
}

/// Bytes as base64 text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Bytes).map_err(D::Error::custom)
    }
}

/// Why a frame could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of {0} bytes is longer than {LONGEST}")]
    TooLong(usize),
    #[error("a frame is not of the protocol: {0}")]
    Malformed(String),
    #[error("the connection ended inside a frame")]
    Cut,
    #[error("the peer took too long")]
    TimedOut,
    #[error("the connection failed: {0}")]
    Broken(std::io::Error),
}

impl From<std::io::Error> for FrameError {
    fn from(e: std::io::Error) -> FrameError {
        match e.kind() {
            ErrorKind::UnexpectedEof => FrameError::Cut,
            ErrorKind::WouldBlock | ErrorKind::TimedOut => FrameError::TimedOut,
            _ => FrameError::Broken(e),
        }
    }
}

/// The length a header announces.
pub fn length(header: [u8; 4]) -> Result<usize, FrameError> {
    let length = u32::from_be_bytes(header) as usize;
    if length > LONGEST {
        Err(FrameError::TooLong(length))
    } else {
        Ok(length)
    }
}

/// The frame in a body. Every byte of it counts.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    serde_json::from_slice(body).map_err(|e| FrameError::Malformed(e.to_string()))
}

/// The next frame, or nothing where the connection ends between two.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> Result<Option<T>, FrameError> {
    let Some(header) = read_header(from)? else {
        return Ok(None);
    };
    let mut body = vec![0; length(header)?];
    from.read_exact(&mut body)?;
    decode(&body).map(Some)
}

/// Four bytes, or nothing at the end of the connection.
pub fn read_header(from: &mut impl Read) -> Result<Option<[u8; 4]>, FrameError> {
    let mut header = [0; 4];
    let (first, rest) = header.split_at_mut(1);
    loop {
        match from.read(first) {
            Ok(0) => return Ok(None),
            Ok(_) => break,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
    from.read_exact(rest)?;
    Ok(Some(header))
}

/// One frame, in one write.
pub fn write<T: Serialize>(to: &mut impl Write, frame: &T) -> Result<(), FrameError> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, frame).map_err(|e| FrameError::Malformed(e.to_string()))?;
    let body = bytes.len() - 4;
    let header = u32::try_from(body)
        .ok()
        .filter(|_| body <= LONGEST)
        .ok_or(FrameError::TooLong(body))?;
    if let Some(start) = bytes.get_mut(..4) {
        start.copy_from_slice(&header.to_be_bytes());
    }
    to.write_all(&bytes)?;
    to.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn framed(body: &str) -> Vec<u8> {
        let mut bytes = u32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
        bytes.extend(body.as_bytes());
        bytes
    }

    fn refusal(bytes: &[u8]) -> String {
        match read::<FromAlias>(&mut &bytes[..]) {
            Ok(frame) => panic!("accepted {frame:?}"),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn frames_look_like_this() {
        let open = FromAlias::Open(Open {
            version: VERSION,
            mode: Mode::Shell,
            form: Form::Command,
            text: "git push".into(),
            name: None,
            args: vec!["a b".into()],
            cwd: "/home/ann/project".into(),
        });
        let mut bytes = Vec::new();
        write(&mut bytes, &open).unwrap();
        write(
            &mut bytes,
            &FromAlias::Stdin {
                data: Bytes(b"x\0".to_vec()),
            },
        )
        .unwrap();
        write(&mut bytes, &FromAlias::StdinEof {}).unwrap();
        write(&mut bytes, &FromAlias::Signal { name: Signal::Int }).unwrap();
        write(&mut bytes, &ToAlias::Exit { status: 126 }).unwrap();
        let mut bodies = Vec::new();
        let mut rest = &bytes[..];
        while let Some(header) = read_header(&mut rest).unwrap() {
            let (body, after) = rest.split_at(length(header).unwrap());
            bodies.push(std::str::from_utf8(body).unwrap());
            rest = after;
        }
        insta::assert_snapshot!(bodies.join("\n"), @r#"
        {"type":"open","version":1,"mode":"shell","form":"command","text":"git push","args":["a b"],"cwd":"/home/ann/project"}
        {"type":"stdin","data":"eAA="}
        {"type":"stdin_eof"}
        {"type":"signal","name":"INT"}
        {"type":"exit","status":126}
        "#);
        let mut rest = &bytes[..];
        assert_eq!(read::<FromAlias>(&mut rest).unwrap(), Some(open));
    }

    #[test]
    fn what_is_not_of_the_protocol_is_refused() {
        let huge = [&[0xff; 4][..], b"x"].concat();
        let cases = [
            ("longer than a frame", huge),
            ("cut header", vec![0, 0]),
            ("cut body", vec![0, 0, 0, 9, b'{']),
            ("empty", framed("")),
            ("not JSON", framed("hello")),
            ("two values", framed(r#"{"type":"stdin_eof"}{}"#)),
            ("unknown type", framed(r#"{"type":"shutdown"}"#)),
            ("unknown field", framed(r#"{"type":"stdin_eof","env":{}}"#)),
            (
                "unknown field of open",
                framed(
                    r#"{"type":"open","version":1,"mode":"shell","form":"command","text":"","args":[],"cwd":"/","env":{}}"#,
                ),
            ),
            (
                "double field",
                framed(r#"{"type":"stdin","data":"","data":""}"#),
            ),
            ("not base64", framed(r#"{"type":"stdin","data":"***"}"#)),
            (
                "unknown mode",
                framed(
                    r#"{"type":"open","version":1,"mode":"perl","form":"command","text":"","cwd":"/"}"#,
                ),
            ),
            (
                "unknown signal",
                framed(r#"{"type":"signal","name":"KILL"}"#),
            ),
            ("deep", framed(&"[".repeat(100_000))),
            ("server's frame", framed(r#"{"type":"exit","status":0}"#)),
        ];
        let report: Vec<String> = cases
            .iter()
            .map(|(what, bytes)| format!("{what}: {}", refusal(bytes)))
            .collect();
        insta::assert_snapshot!(report.join("\n"), @"
        longer than a frame: a frame of 4294967295 bytes is longer than 1048576
        cut header: the connection ended inside a frame
        cut body: the connection ended inside a frame
        empty: a frame is not of the protocol: EOF while parsing a value at line 1 column 0
        not JSON: a frame is not of the protocol: expected value at line 1 column 1
        two values: a frame is not of the protocol: trailing characters at line 1 column 21
        unknown type: a frame is not of the protocol: unknown variant `shutdown`, expected one of `open`, `stdin`, `stdin_eof`, `signal` at line 1 column 18
        unknown field: a frame is not of the protocol: unknown field `env`, there are no fields
        unknown field of open: a frame is not of the protocol: unknown field `env`, expected one of `version`, `mode`, `form`, `text`, `name`, `args`, `cwd`
        double field: a frame is not of the protocol: duplicate field `data`
        not base64: a frame is not of the protocol: Invalid symbol 42, offset 0.
        unknown mode: a frame is not of the protocol: unknown variant `perl`, expected one of `shell`, `python`, `mcp`
        unknown signal: a frame is not of the protocol: unknown variant `KILL`, expected one of `INT`, `TERM`, `HUP`
        deep: a frame is not of the protocol: invalid type: sequence, expected variant identifier at line 1 column 1
        server's frame: a frame is not of the protocol: unknown variant `exit`, expected one of `open`, `stdin`, `stdin_eof`, `signal` at line 1 column 14
        ");
        assert!(matches!(read::<FromAlias>(&mut &b""[..]), Ok(None)));
    }

    proptest! {
        #[test]
        fn garbage_never_breaks_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read::<FromAlias>(&mut &bytes[..]);
            let _ = decode::<FromAlias>(&bytes);
            let _ = decode::<ToAlias>(&bytes);
        }

        #[test]
        fn a_frame_comes_back_as_it_went(data in proptest::collection::vec(any::<u8>(), 0..300), status: i32, text: String) {
            let frames = [
                ToAlias::Stdout { data: Bytes(data) },
                ToAlias::Refused { reason: text },
                ToAlias::Exit { status },
            ];
            let mut bytes = Vec::new();
            for frame in &frames {
                write(&mut bytes, frame).unwrap();
            }
            let mut rest = &bytes[..];
            for frame in frames {
                prop_assert_eq!(read::<ToAlias>(&mut rest).unwrap(), Some(frame));
            }
            prop_assert!(read::<ToAlias>(&mut rest).unwrap().is_none());
        }
    }
}
