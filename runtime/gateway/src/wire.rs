//! A client's connection with [`Framing`] in front of it, as a stream hyper can serve.

use crate::framing::{Framing, FramingFault, Taken};
use std::io::{Error, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// The head put in place of a malformed one, so that the answer comes in its turn. A client that sends it
/// itself gets the answer it asks for.
pub const MALFORMED: &str = "x-strands-box-malformed";

pub struct Guarded<S> {
    stream: S,
    framing: Framing,
    /// Read, not yet examined.
    raw: Vec<u8>,
    /// Examined, not yet read by hyper.
    passed: Vec<u8>,
    at: usize,
    /// After a malformed head nothing more is read.
    dead: bool,
    /// Runs while the connection is being closed.
    closing: Option<Pin<Box<Sleep>>>,
}

/// How long a closed connection goes on reading what the client is still sending. Closing at once would
/// make the system throw away the answer the client has not read yet.
const LINGER: Duration = Duration::from_secs(2);

impl<S> Guarded<S> {
    pub fn new(stream: S) -> Guarded<S> {
        Guarded {
            stream,
            framing: Framing::default(),
            raw: Vec::new(),
            passed: Vec::new(),
            at: 0,
            dead: false,
            closing: None,
        }
    }

    /// Examines what was read until something may pass.
    fn examine(&mut self) -> Result<bool, Error> {
        let mut used = 0;
        while let Some(input) = self.raw.get(used..).filter(|input| !input.is_empty()) {
            match self.framing.take(input) {
                Ok((taken, what)) => {
                    used += taken;
                    match what {
                        Taken::Head(bytes) | Taken::Body(bytes) => {
                            self.raw.drain(..used);
                            self.passed = bytes;
                            self.at = 0;
                            return Ok(true);
                        }
                        Taken::Nothing => {}
                    }
                }
                Err(FramingFault::Chunk) => {
                    return Err(Error::new(ErrorKind::InvalidData, FramingFault::Chunk));
                }
                Err(fault) => {
                    self.dead = true;
                    self.raw.clear();
                    self.passed = format!(
                        "GET / HTTP/1.1\r\n{MALFORMED}: {fault}\r\nConnection: close\r\n\r\n"
                    )
                    .into_bytes();
                    self.at = 0;
                    return Ok(true);
                }
            }
        }
        self.raw.clear();
        Ok(false)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        loop {
            let this = &mut *self;
            if let Some(ready) = this.passed.get(this.at..).filter(|bytes| !bytes.is_empty()) {
                let give = ready.len().min(out.remaining());
                out.put_slice(ready.get(..give).unwrap_or(ready));
                this.at += give;
                return Poll::Ready(Ok(()));
            }
            if !this.dead && this.examine()? {
                continue;
            }
            let mut space = [0_u8; 16 * 1024];
            let mut piece = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut piece))?;
            if piece.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            // An early end would look like a client that is gone, and leave it without its answer.
            if !this.dead {
                this.raw.extend_from_slice(piece.filled());
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let this = &mut *self;
        if this.closing.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        }
        let deadline = this
            .closing
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(LINGER)));
        if deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut space = [0_u8; 16 * 1024];
        loop {
            let mut piece = ReadBuf::new(&mut space);
            match ready!(Pin::new(&mut this.stream).poll_read(cx, &mut piece)) {
                Ok(()) if !piece.filled().is_empty() => {}
                // The end, or a client that is gone: nothing is left to answer.
                Ok(()) | Err(_) => return Poll::Ready(Ok(())),
            }
        }
    }
}
