//! Where a message of HTTP/1.1 ends, read more strictly than any parser behind it.
//!
//! The bytes of a sandbox pass here before hyper sees them. Whatever two parsers could read in two ways (both
//! lengths, a repeated length, a bare CR or LF, a folded line) is a fault, so that a request which is judged
//! is the request which is forwarded, and no second one hides in its body.

use thiserror::Error;

pub const MAX_HEAD: usize = 64 * 1024;
const MAX_CHUNK_LINE: usize = 8 * 1024;
const MAX_CHUNK_EXTENSIONS: usize = 64 * 1024;
const MAX_TRAILERS: usize = 16 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FramingFault {
    #[error(
        "the request line must be a method, a target and HTTP/1.1 or HTTP/1.0, each after one space"
    )]
    RequestLine,
    #[error("a line ends without CR LF")]
    BareLineEnd,
    #[error("the head holds a NUL or another control character")]
    Control,
    #[error("a header is continued on the next line")]
    Folded,
    #[error("a header has no name, or a name that is no token")]
    HeaderName,
    #[error("Content-Length must stand once, as decimal digits")]
    ContentLength,
    #[error("Transfer-Encoding may only be `chunked`, once, on HTTP/1.1")]
    TransferEncoding,
    #[error("Content-Length and Transfer-Encoding are both there")]
    BothLengths,
    #[error("Host stands more than once")]
    Host,
    #[error("CONNECT has no body")]
    ConnectBody,
    #[error("the head is longer than 64 KiB")]
    HeadTooLong,
    #[error("a chunk is badly framed")]
    Chunk,
}

/// What stands between now and the next message.
#[derive(Debug)]
enum State {
    Head(Vec<u8>),
    Length(u64),
    ChunkLine { line: Vec<u8>, extensions: usize },
    ChunkData { left: u64, extensions: usize },
    ChunkEnd { seen_cr: bool, extensions: usize },
    Trailers(Vec<u8>),
    Tunnel,
}

/// What to do with the bytes just taken.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// A whole head, valid.
    Head(Vec<u8>),
    /// Part of a body, or of a tunnel.
    Body(Vec<u8>),
    /// More is needed.
    Nothing,
}

/// A state machine over the bytes a client sends on one connection.
#[derive(Debug)]
pub struct Framing(State);

impl Default for Framing {
    fn default() -> Framing {
        Framing(State::Head(Vec::new()))
    }
}

impl Framing {
    /// Takes some of `input`, at most to the end of the current head or body. Never takes nothing of a
    /// non-empty input.
    pub fn take(&mut self, input: &[u8]) -> Result<(usize, Taken), FramingFault> {
        match &mut self.0 {
            State::Tunnel => Ok((input.len(), Taken::Body(input.to_vec()))),
            State::Head(head) => {
                let mut taken = 0;
                for byte in input {
                    taken += 1;
                    head.push(*byte);
                    if head.as_slice() == b"\r\n" {
                        // An empty line before a request is to be ignored.
                        head.clear();
                    } else if head.ends_with(b"\r\n\r\n") {
                        let head = std::mem::take(head);
                        self.0 = after_head(&head)?;
                        return Ok((taken, Taken::Head(head)));
                    } else if head.ends_with(b"\n\n") {
                        return Err(FramingFault::BareLineEnd);
                    } else if head.len() >= MAX_HEAD {
                        return Err(FramingFault::HeadTooLong);
                    }
                }
                Ok((taken, Taken::Nothing))
            }
            State::Length(left) => {
                let (bytes, rest) = split(input, *left);
                *left = rest;
                let taken = bytes.to_vec();
                if rest == 0 {
                    self.0 = State::Head(Vec::new());
                }
                Ok((taken.len(), Taken::Body(taken)))
            }
            State::ChunkLine { line, extensions } => {
                let mut taken = 0;
                for byte in input {
                    taken += 1;
                    line.push(*byte);
                    if *byte == b'\n' {
                        let line = std::mem::take(line);
                        let (size, extra) = chunk_line(&line)?;
                        let extensions = *extensions + extra;
                        if extensions > MAX_CHUNK_EXTENSIONS {
                            return Err(FramingFault::Chunk);
                        }
                        self.0 = match size {
                            0 => State::Trailers(Vec::new()),
                            left => State::ChunkData { left, extensions },
                        };
                        return Ok((taken, Taken::Body(line)));
                    }
                    if line.len() >= MAX_CHUNK_LINE {
                        return Err(FramingFault::Chunk);
                    }
                }
                Ok((taken, Taken::Nothing))
            }
            State::ChunkData { left, extensions } => {
                let (bytes, rest) = split(input, *left);
                *left = rest;
                let taken = bytes.to_vec();
                if rest == 0 {
                    self.0 = State::ChunkEnd {
                        seen_cr: false,
                        extensions: *extensions,
                    };
                }
                Ok((taken.len(), Taken::Body(taken)))
            }
            State::ChunkEnd {
                seen_cr,
                extensions,
            } => match (input.first(), *seen_cr) {
                (Some(b'\r'), false) => {
                    *seen_cr = true;
                    Ok((1, Taken::Body(b"\r".to_vec())))
                }
                (Some(b'\n'), true) => {
                    self.0 = State::ChunkLine {
                        line: Vec::new(),
                        extensions: *extensions,
                    };
                    Ok((1, Taken::Body(b"\n".to_vec())))
                }
                (None, _) => Ok((0, Taken::Nothing)),
                _ => Err(FramingFault::Chunk),
            },
            State::Trailers(trailers) => {
                let mut taken = 0;
                for byte in input {
                    taken += 1;
                    trailers.push(*byte);
                    if trailers.as_slice() == b"\r\n" || trailers.ends_with(b"\r\n\r\n") {
                        let trailers = std::mem::take(trailers);
                        if trailers.len() > 2 {
                            header_lines(trailers.strip_suffix(b"\r\n").unwrap_or(&trailers))?;
                        }
                        self.0 = State::Head(Vec::new());
                        return Ok((taken, Taken::Body(trailers)));
                    }
                    if trailers.len() >= MAX_TRAILERS {
                        return Err(FramingFault::Chunk);
                    }
                }
                Ok((taken, Taken::Nothing))
            }
        }
    }
}

fn split(input: &[u8], left: u64) -> (&[u8], u64) {
    let take = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
    let bytes = input.get(..take).unwrap_or(input);
    (bytes, left - u64::try_from(take).unwrap_or(left))
}

fn after_head(head: &[u8]) -> Result<State, FramingFault> {
    let head = head.strip_suffix(b"\r\n").unwrap_or(head);
    let end = head
        .windows(2)
        .position(|pair| pair == b"\r\n")
        .ok_or(FramingFault::RequestLine)?;
    let (line, headers) = head
        .split_at_checked(end)
        .ok_or(FramingFault::RequestLine)?;
    let headers = headers.strip_prefix(b"\r\n").unwrap_or(headers);

    if line.iter().any(|b| matches!(b, b'\r' | b'\n')) {
        return Err(FramingFault::BareLineEnd);
    }
    if line.iter().any(|b| *b < 0x20 || *b == 0x7f) {
        return Err(FramingFault::Control);
    }
    let mut words = line.split(|b| *b == b' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let (Some(method), Some(target), Some(version), None) = (method, target, version, words.next())
    else {
        return Err(FramingFault::RequestLine);
    };
    let modern = version == b"HTTP/1.1";
    if !(modern || version == b"HTTP/1.0")
        || method.is_empty()
        || target.is_empty()
        || !method.iter().all(token)
    {
        return Err(FramingFault::RequestLine);
    }

    let mut length = None;
    let mut chunked = false;
    let mut hosts = 0;
    for (name, value) in header_lines(headers)? {
        if name.eq_ignore_ascii_case(b"content-length") {
            if length.is_some()
                || value.is_empty()
                || value.len() > 18
                || !value.iter().all(u8::is_ascii_digit)
            {
                return Err(FramingFault::ContentLength);
            }
            length = Some(
                value
                    .iter()
                    .fold(0_u64, |sum, digit| sum * 10 + u64::from(digit - b'0')),
            );
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if chunked || !modern || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(FramingFault::TransferEncoding);
            }
            chunked = true;
        } else if name.eq_ignore_ascii_case(b"host") {
            hosts += 1;
        }
    }
    if hosts > 1 {
        return Err(FramingFault::Host);
    }
    match (method, length, chunked) {
        (_, Some(_), true) => Err(FramingFault::BothLengths),
        (b"CONNECT", None | Some(0), false) => Ok(State::Tunnel),
        (b"CONNECT", ..) => Err(FramingFault::ConnectBody),
        (_, None, true) => Ok(State::ChunkLine {
            line: Vec::new(),
            extensions: 0,
        }),
        (_, None | Some(0), false) => Ok(State::Head(Vec::new())),
        (_, Some(length), false) => Ok(State::Length(length)),
    }
}

/// A header's name and value, as they stand.
type Line<'l> = (&'l [u8], &'l [u8]);

/// `lines` ends with the CR LF of the last one.
fn header_lines(lines: &[u8]) -> Result<Vec<Line<'_>>, FramingFault> {
    let mut found = Vec::new();
    let mut rest = lines;
    while !rest.is_empty() {
        let end = rest
            .iter()
            .position(|b| matches!(b, b'\r' | b'\n'))
            .ok_or(FramingFault::BareLineEnd)?;
        let (line, after) = rest
            .split_at_checked(end)
            .ok_or(FramingFault::BareLineEnd)?;
        rest = after
            .strip_prefix(b"\r\n")
            .ok_or(FramingFault::BareLineEnd)?;
        if line
            .iter()
            .any(|b| (*b < 0x20 && *b != b'\t') || *b == 0x7f)
        {
            return Err(FramingFault::Control);
        }
        if matches!(line.first(), Some(b' ' | b'\t')) {
            return Err(FramingFault::Folded);
        }
        let colon = line
            .iter()
            .position(|b| *b == b':')
            .ok_or(FramingFault::HeaderName)?;
        let (name, value) = line
            .split_at_checked(colon)
            .ok_or(FramingFault::HeaderName)?;
        if name.is_empty() || !name.iter().all(token) {
            return Err(FramingFault::HeaderName);
        }
        let value = value.strip_prefix(b":").unwrap_or(value);
        found.push((name, value.trim_ascii()));
    }
    Ok(found)
}

fn token(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte)
}

/// Size, and how many bytes of extension follow it.
fn chunk_line(line: &[u8]) -> Result<(u64, usize), FramingFault> {
    let line = line.strip_suffix(b"\r\n").ok_or(FramingFault::Chunk)?;
    let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let (size, extension) = line.split_at_checked(digits).ok_or(FramingFault::Chunk)?;
    if size.is_empty() || size.len() > 15 || extension.iter().any(|b| *b < 0x20 && *b != b'\t') {
        return Err(FramingFault::Chunk);
    }
    if !(extension.is_empty() || extension.starts_with(b";")) {
        return Err(FramingFault::Chunk);
    }
    let size = size.iter().fold(0_u64, |sum, digit| {
        sum * 16 + u64::from(char::from(*digit).to_digit(16).unwrap_or(0))
    });
    Ok((size, extension.len()))
}

#[cfg(test)]
mod tests {
    use super::{Framing, FramingFault, Taken};
    use proptest::prelude::*;

    /// Heads and bodies, as they come out of a stream cut at the given sizes.
    fn read(bytes: &[u8], cuts: &[usize]) -> Result<Vec<(bool, Vec<u8>)>, FramingFault> {
        let mut framing = Framing::default();
        let mut seen: Vec<(bool, Vec<u8>)> = Vec::new();
        let mut rest = bytes;
        let mut cuts = cuts.iter().copied().cycle();
        while !rest.is_empty() {
            let cut = cuts.next().unwrap_or(usize::MAX).clamp(1, rest.len());
            let (mut piece, after) = rest.split_at(cut);
            rest = after;
            while !piece.is_empty() {
                let (taken, what) = framing.take(piece)?;
                assert!(taken > 0);
                piece = &piece[taken..];
                match what {
                    Taken::Head(head) => seen.push((true, head)),
                    Taken::Body(body) => match seen.last_mut() {
                        Some((false, whole)) => whole.extend(body),
                        _ => seen.push((false, body)),
                    },
                    Taken::Nothing => {}
                }
            }
        }
        Ok(seen)
    }

    fn fault(text: &str) -> Option<FramingFault> {
        read(text.as_bytes(), &[4096]).err()
    }

    #[test]
    fn smuggling_is_refused() {
        for (text, why) in [
            (
                "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
                FramingFault::BothLengths,
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
                FramingFault::BothLengths,
            ),
            (
                "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
                FramingFault::ContentLength,
            ),
            (
                "POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
                FramingFault::ContentLength,
            ),
            (
                "POST / HTTP/1.1\r\nContent-Length: 5,5\r\n\r\n",
                FramingFault::ContentLength,
            ),
            (
                "POST / HTTP/1.1\r\nContent-Length:\r\n\r\n",
                FramingFault::ContentLength,
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                FramingFault::TransferEncoding,
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
                FramingFault::TransferEncoding,
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n",
                FramingFault::TransferEncoding,
            ),
            (
                "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
                FramingFault::TransferEncoding,
            ),
            (
                "GET / HTTP/1.1\r\nTransfer-Encoding : chunked\r\n\r\n",
                FramingFault::HeaderName,
            ),
            (
                "GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
                FramingFault::Folded,
            ),
            ("GET / HTTP/1.1\r\n A: b\r\n\r\n", FramingFault::Folded),
            (
                "GET / HTTP/1.1\r\nA: b\rC: d\r\n\r\n",
                FramingFault::BareLineEnd,
            ),
            ("GET / HTTP/1.1\nA: b\r\n\r\n", FramingFault::BareLineEnd),
            (
                "GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n",
                FramingFault::BareLineEnd,
            ),
            ("GET / HTTP/1.1\n\n", FramingFault::BareLineEnd),
            ("GET / HTTP/1.1\r\nA: b\0\r\n\r\n", FramingFault::Control),
            ("GET\t/ HTTP/1.1\r\n\r\n", FramingFault::Control),
            ("GET  / HTTP/1.1\r\n\r\n", FramingFault::RequestLine),
            ("GET / HTTP/1.1 x\r\n\r\n", FramingFault::RequestLine),
            ("GET / HTTP/2.0\r\n\r\n", FramingFault::RequestLine),
            (
                "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                FramingFault::RequestLine,
            ),
            ("G(T / HTTP/1.1\r\n\r\n", FramingFault::RequestLine),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
                FramingFault::Host,
            ),
            (
                "CONNECT a:443 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
                FramingFault::ConnectBody,
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\n",
                FramingFault::Chunk,
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x5\r\n",
                FramingFault::Chunk,
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n",
                FramingFault::Chunk,
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
                FramingFault::Chunk,
            ),
            (
                "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
                FramingFault::Chunk,
            ),
        ] {
            assert_eq!(fault(text), Some(why), "{text:?}");
        }
        assert_eq!(
            fault(&format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(70_000))),
            Some(FramingFault::HeadTooLong)
        );
        let flood = format!(
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{}",
            format!("1;{}\r\na\r\n", "x".repeat(4000)).repeat(20)
        );
        assert_eq!(fault(&flood), Some(FramingFault::Chunk));
    }

    const STREAM: &[u8] = b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\nPOST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nGET PUT /y HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n3;q=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: v\r\n\r\nGET /z HTTP/1.0\r\n\r\nCONNECT a:443 HTTP/1.1\r\n\r\n\x16\x03\x01anything\n\n";

    #[test]
    fn messages_end_where_they_end() {
        let seen = read(STREAM, &[STREAM.len()]).unwrap();
        let text: Vec<String> = seen
            .iter()
            .map(|(head, bytes)| {
                format!(
                    "{}{}",
                    if *head { "# " } else { "" },
                    String::from_utf8_lossy(bytes).escape_debug()
                )
            })
            .collect();
        insta::assert_snapshot!(text.join("\n"));
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(cuts in prop::collection::vec(1_usize..40, 1..12)) {
            prop_assert_eq!(read(STREAM, &cuts), read(STREAM, &[STREAM.len()]));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes, &[7]);
        }
    }
}
