//! What the worker and the trusted process say to each other: length-prefixed frames of a small JSON head and
//! raw bytes, over one socket. The trusted process believes nothing a worker says; it only reads it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use thiserror::Error;

/// Something outside the script, asked for one at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Effect {
    Look {
        path: String,
        aspect: Aspect,
    },
    Stat {
        path: String,
    },
    List {
        path: String,
    },
    /// `Path.resolve` and `Path.absolute`.
    Locate {
        path: String,
        call: String,
    },
    Read {
        path: String,
    },
    /// The content is the frame's bytes.
    Write {
        path: String,
        append: bool,
    },
    Open {
        path: String,
        mode: Mode,
    },
    MakeDir {
        path: String,
        parents: bool,
        exist_ok: bool,
    },
    RemoveFile {
        path: String,
    },
    RemoveDir {
        path: String,
    },
    Rename {
        from: String,
        to: String,
    },
    Environment,
    Now,
    Sleep {
        seconds: f64,
    },
    /// The body is the frame's bytes.
    Fetch {
        url: String,
        method: String,
        headers: Vec<(String, String)>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Aspect {
    Exists,
    File,
    Dir,
    Link,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    Read,
    Write,
    Append,
}

/// What came of an effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    Done,
    Truth(bool),
    /// The frame's bytes.
    Content,
    Stat(Stat),
    Names(Vec<String>),
    /// Microseconds since 1970, UTC.
    Time(i64),
    /// The body is the frame's bytes.
    Fetched {
        status: u16,
        headers: Vec<(String, String)>,
    },
    /// The script can catch it.
    Raise(Raised),
    /// The script cannot catch it.
    End(Raised),
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stat {
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    /// Seconds since 1970.
    pub(crate) modified: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    File,
    Dir,
    Link,
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Raised {
    pub(crate) exception: Exception,
    pub(crate) text: String,
}

/// The exceptions an effect can end in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Exception {
    Permission,
    NotFound,
    Exists,
    IsADirectory,
    NotADirectory,
    Os,
    Timeout,
    Value,
    Runtime,
}

impl Exception {
    pub(crate) fn says(self, text: impl Into<String>) -> Raised {
        Raised {
            exception: self,
            text: text.into(),
        }
    }
}

/// To the worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// The source is the frame's bytes.
    Run {
        name: String,
        limits: WorkerLimits,
    },
    Answer(Reply),
}

/// What the worker enforces on itself, before it reads the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerLimits {
    pub(crate) memory: usize,
    pub(crate) recursion: usize,
    /// Milliseconds of the interpreter's own work.
    pub(crate) execution: u64,
    /// Bytes that go with one effect.
    pub(crate) content: usize,
}

/// From the worker.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Report {
    /// Standard output: the frame's bytes.
    Output,
    Ask(Effect),
    /// The script ended; what there is to say about it is the frame's bytes.
    Ended {
        status: i32,
    },
    /// Nothing of the script was run; why is the frame's bytes.
    Refused,
    /// The worker could not take away its own rights.
    NotConfined(String),
}

/// How long a head and the bytes after it may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Longest {
    pub(crate) head: usize,
    pub(crate) bytes: usize,
}

#[derive(Debug, Error)]
pub(crate) enum FrameFault {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("a message of {0} bytes is too long")]
    Long(usize),
    #[error("a message cannot be read: {0}")]
    Garbled(#[from] serde_json::Error),
}

pub(crate) fn send(
    to: &mut impl Write,
    head: &impl Serialize,
    bytes: &[u8],
) -> Result<(), FrameFault> {
    let head = serde_json::to_vec(head)?;
    let length = |len: usize| u32::try_from(len).map_err(|_| FrameFault::Long(len));
    let mut start = Vec::with_capacity(8 + head.len());
    start.extend_from_slice(&length(head.len())?.to_be_bytes());
    start.extend_from_slice(&length(bytes.len())?.to_be_bytes());
    start.extend_from_slice(&head);
    to.write_all(&start)?;
    to.write_all(bytes)?;
    Ok(())
}

pub(crate) fn receive<T: DeserializeOwned>(
    from: &mut impl Read,
    longest: Longest,
) -> Result<(T, Vec<u8>), FrameFault> {
    let head = length(from, longest.head)?;
    let bytes = length(from, longest.bytes)?;
    let head = exactly(from, head)?;
    let bytes = exactly(from, bytes)?;
    Ok((serde_json::from_slice(&head)?, bytes))
}

fn length(from: &mut impl Read, longest: usize) -> Result<usize, FrameFault> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > longest {
        return Err(FrameFault::Long(length));
    }
    Ok(length)
}

/// Grows with what arrives, not with what was announced.
fn exactly(from: &mut impl Read, length: usize) -> Result<Vec<u8>, FrameFault> {
    let mut bytes = Vec::new();
    from.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{Effect, FrameFault, Longest, Report, receive, send};

    const SHORT: Longest = Longest {
        head: 100,
        bytes: 10,
    };

    #[test]
    fn a_frame_arrives_as_it_was_sent() {
        let mut wire = Vec::new();
        let asked = Report::Ask(Effect::Write {
            path: "a\n\u{0}é".into(),
            append: true,
        });
        send(&mut wire, &asked, b"\xff\0x").unwrap();
        send(&mut wire, &Report::Output, b"").unwrap();
        let mut from = wire.as_slice();
        let (report, bytes) = receive::<Report>(&mut from, SHORT).unwrap();
        assert_eq!((report, bytes.as_slice()), (asked, &b"\xff\0x"[..]));
        let (report, bytes) = receive::<Report>(&mut from, SHORT).unwrap();
        assert_eq!((report, bytes.as_slice()), (Report::Output, &b""[..]));
    }

    #[test]
    fn what_is_long_cut_or_no_frame_is_a_fault() {
        let mut wire = Vec::new();
        send(&mut wire, &Report::Output, &[0; 11]).unwrap();
        let long = receive::<Report>(&mut wire.as_slice(), SHORT);
        assert!(matches!(long, Err(FrameFault::Long(11))));
        wire.truncate(12);
        let longest = Longest {
            head: 100,
            bytes: 11,
        };
        let cut = receive::<Report>(&mut wire.as_slice(), longest);
        assert!(matches!(cut, Err(FrameFault::Io(_))));
        let garbled = [0, 0, 0, 2, 0, 0, 0, 0, b'{', b'x'];
        let garbled = receive::<Report>(&mut garbled.as_slice(), SHORT);
        assert!(matches!(garbled, Err(FrameFault::Garbled(_))));
        let claims = [0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff];
        let claims = receive::<Report>(&mut claims.as_slice(), SHORT);
        assert!(matches!(claims, Err(FrameFault::Long(_))));
    }
}
