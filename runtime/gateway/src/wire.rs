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

#[cfg(test)]
mod tests {
    use super::{Guarded, MALFORMED};
    use crate::framing::{Framing, Taken};
    use bytes::Bytes;
    use http_body_util::{BodyExt, Empty};
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use proptest::prelude::*;
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Request lines and body lengths as hyper reads them behind the guard.
    fn served(bytes: Vec<u8>, cut: usize) -> Vec<(String, Option<usize>)> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        runtime.block_on(async move {
            let (mut client, server) = tokio::io::duplex(1 << 20);
            let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let log = Arc::clone(&log);
                async move {
                    let (parts, body) = request.into_parts();
                    if !parts.headers.contains_key(MALFORMED) {
                        let line = format!("{} {}", parts.method, parts.uri);
                        let length = body.collect().await.ok().map(|body| body.to_bytes().len());
                        log.lock().unwrap().push((line, length));
                    }
                    Ok::<_, Infallible>(http::Response::new(Empty::<Bytes>::new()))
                }
            });
            let serving = http1::Builder::new()
                .half_close(true)
                .serve_connection(TokioIo::new(Guarded::new(server)), service);
            let client = async move {
                for piece in bytes.chunks(cut) {
                    if client.write_all(piece).await.is_err() {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
                let _ = client.shutdown().await;
                let _ = client.read_to_end(&mut Vec::new()).await;
            };
            let _ = tokio::join!(serving, client);
        });
        seen.lock().unwrap().clone()
    }

    /// The same, as framing alone reads them.
    fn framed(bytes: &[u8]) -> Vec<String> {
        let mut framing = Framing::default();
        let mut lines = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let Ok((taken, what)) = framing.take(rest) else {
                break;
            };
            if let Taken::Head(head) = what {
                let text = String::from_utf8_lossy(&head).into_owned();
                let line = text.lines().next().unwrap_or_default();
                lines.push(
                    line.rsplit_once(' ')
                        .map_or(line, |(line, _)| line)
                        .to_owned(),
                );
            }
            rest = &rest[taken..];
        }
        lines
    }

    const PIECES: [&str; 28] = [
        "GET /a HTTP/1.1\r\n",
        "POST /b HTTP/1.1\r\n",
        "PUT /c HTTP/1.0\r\n",
        "GET /d HTTP/1.1\n",
        "Host: h\r\n",
        "\r\n",
        "\r\n",
        "\n",
        "Content-Length: 5\r\n",
        "Content-Length: 0\r\n",
        "Content-Length: 40\r\n",
        "content-length:5 \r\n",
        "Transfer-Encoding: chunked\r\n",
        "transfer-encoding:\tchunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "X: y\r\n",
        " folded\r\n",
        "hello",
        "5\r\nhello\r\n",
        "0\r\n\r\n",
        "0\r\n",
        "1;x=\"\r\n",
        "a",
        "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n",
        "Connection: close\r\n",
        "\r",
        "\0",
        "00000000005\r\n",
    ];

    #[test]
    fn an_ordinary_stream_is_read_as_it_is() {
        let stream = b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhelloPUT /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\nGET /c HTTP/1.1\r\nHost: h\r\n\r\n";
        for cut in [1, 7, 4096] {
            let seen = served(stream.to_vec(), cut);
            assert_eq!(
                seen,
                [
                    ("POST /a".into(), Some(5)),
                    ("PUT /b".into(), Some(6)),
                    ("GET /c".into(), Some(0))
                ],
                "{cut}"
            );
        }
    }

    #[test]
    fn closing_waits_for_a_client_that_is_still_sending() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let close = |server| tokio::spawn(async move { Guarded::new(server).shutdown().await });
            let (mut client, server) = tokio::io::duplex(64);
            let closing = close(server);
            client
                .write_all(&[b'x'; 10_000])
                .await
                .expect("it reads on");
            drop(client);
            closing.await.unwrap().unwrap();
            // But not for ever.
            let (mut client, server) = tokio::io::duplex(64);
            let closing = close(server);
            while client.write_all(b"x").await.is_ok() {
                tokio::time::sleep(super::LINGER / 10).await;
            }
            closing.await.unwrap().unwrap();
        });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1500))]
        #[test]
        fn hyper_sees_no_request_that_framing_did_not(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 1..16), cut in 1_usize..64) {
            let bytes = pieces.concat().into_bytes();
            let framed = framed(&bytes);
            let served: Vec<String> = served(bytes, cut).into_iter().map(|(line, _)| line).collect();
            prop_assert!(served.len() <= framed.len() && served == framed[..served.len()], "{served:?} {framed:?}");
        }
    }
}
