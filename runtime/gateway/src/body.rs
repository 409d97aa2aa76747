//! Bodies on their way through: never held whole, watched on the way out, scrubbed on the way in.

use crate::routes::Routes;
use crate::scrub::{Needles, Scrubber};
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use smol_str::SmolStr;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use thiserror::Error;

pub type Body = UnsyncBoxBody<Bytes, BodyFault>;

#[derive(Debug, Error)]
pub enum BodyFault {
    #[error("the connection broke off inside a body: {0}")]
    Wire(#[from] hyper::Error),
    #[error("a real secret was found in the body")]
    Leak,
}

pub fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

pub fn incoming(body: Incoming) -> Body {
    body.map_err(BodyFault::Wire).boxed_unsync()
}

/// A request's body as far as it had to be read before the decision.
pub enum Load {
    Held(Bytes),
    Streaming { length: Option<u64>, body: Body },
}

impl Load {
    /// What a decision is told. A body of unknown length longer than what was read counts as the longest
    /// there can be, so that a rule that bounds uploads refuses it.
    pub fn judged_bytes(&self) -> i64 {
        match self {
            Load::Held(bytes) => i64::try_from(bytes.len()).unwrap_or(i64::MAX),
            Load::Streaming {
                length: Some(length),
                ..
            } => i64::try_from(*length).unwrap_or(i64::MAX),
            Load::Streaming { length: None, .. } => i64::MAX,
        }
    }

    /// Reads up to `limit` bytes, or nothing of a body that says its length and need not be `held`.
    pub async fn read(mut body: Body, limit: usize, held: bool) -> Result<Load, BodyFault> {
        let length = body.size_hint().exact();
        if length == Some(0) || body.is_end_stream() {
            return Ok(Load::Held(Bytes::new()));
        }
        if let Some(known) = length
            && (!held || usize::try_from(known).map_or(true, |known| known > limit))
        {
            return Ok(Load::Streaming { length, body });
        }
        let mut first = VecDeque::new();
        let mut size = 0;
        while size <= limit {
            match body.frame().await {
                None => {
                    let mut bytes = Vec::with_capacity(size);
                    first
                        .iter()
                        .for_each(|piece: &Bytes| bytes.extend_from_slice(piece));
                    return Ok(Load::Held(bytes.into()));
                }
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        size += data.len();
                        first.push_back(data);
                    }
                }
            }
        }
        Ok(Load::Streaming {
            length,
            body: Resumed { first, rest: body }.boxed_unsync(),
        })
    }
}

/// What was read already, then the rest.
struct Resumed {
    first: VecDeque<Bytes>,
    rest: Body,
}

impl HttpBody for Resumed {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        match self.first.pop_front() {
            Some(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
            None => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }
}

/// What was seen in a body that left.
#[derive(Clone, Debug, Default)]
pub struct Sightings(Arc<Mutex<Seen>>);

#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub placeholder: Option<SmolStr>,
    pub leak: bool,
}

impl Sightings {
    pub fn seen(&self) -> Seen {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Looks for placeholders and real secrets, across chunk borders.
pub struct Lookout {
    routes: Arc<Routes>,
    secrets: Arc<Needles>,
    overlap: usize,
    tail: Vec<u8>,
    sightings: Sightings,
}

impl Lookout {
    pub fn new(routes: Arc<Routes>, secrets: Arc<Needles>, sightings: Sightings) -> Lookout {
        let overlap = routes
            .longest_placeholder()
            .max(secrets.longest())
            .saturating_sub(1);
        Lookout {
            routes,
            secrets,
            overlap,
            tail: Vec::new(),
            sightings,
        }
    }

    /// Fails on a real secret. A placeholder is only noted: it opens nothing, and a program that prints its
    /// environment into a conversation with a model would otherwise never get another word out.
    pub fn look(&mut self, data: &[u8]) -> Result<(), BodyFault> {
        if self.overlap == 0 {
            return Ok(());
        }
        let mut text = std::mem::take(&mut self.tail);
        text.extend_from_slice(data);
        let mut seen = self
            .sightings
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if seen.placeholder.is_none() {
            seen.placeholder = self.routes.placeholder_in(&text);
        }
        if self.secrets.found_in(&text) {
            seen.leak = true;
            return Err(BodyFault::Leak);
        }
        drop(seen);
        let keep = text.len().saturating_sub(self.overlap);
        text.drain(..keep);
        self.tail = text;
        Ok(())
    }
}

/// A request's body under a [`Lookout`]. Trailers stay behind.
pub struct Watched {
    inner: Body,
    lookout: Lookout,
}

impl Watched {
    pub fn new(inner: Body, lookout: Lookout) -> Watched {
        Watched { inner, lookout }
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let this = &mut *self;
        loop {
            match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                None => return Poll::Ready(None),
                Some(Err(fault)) => return Poll::Ready(Some(Err(fault))),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        this.lookout.look(&data)?;
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A reply's body, scrubbed if a secret went with the request. Trailers stay behind.
pub struct Returned {
    inner: Body,
    scrubber: Option<Scrubber>,
    ended: bool,
}

impl Returned {
    pub fn new(inner: Body, needles: Option<Arc<Needles>>) -> Returned {
        Returned {
            inner,
            scrubber: needles.map(Scrubber::new),
            ended: false,
        }
    }
}

impl HttpBody for Returned {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let this = &mut *self;
        loop {
            if this.ended {
                return Poll::Ready(None);
            }
            let data = match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                None => {
                    this.ended = true;
                    this.scrubber
                        .as_mut()
                        .map(Scrubber::finish)
                        .unwrap_or_default()
                        .into()
                }
                Some(Err(fault)) => return Poll::Ready(Some(Err(fault))),
                Some(Ok(frame)) => match (frame.into_data(), this.scrubber.as_mut()) {
                    (Ok(data), Some(scrubber)) => scrubber.push(&data).into(),
                    (Ok(data), None) => data,
                    (Err(_), _) => Bytes::new(),
                },
            };
            if !data.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.scrubber.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.scrubber {
            Some(_) => SizeHint::default(),
            None => self.inner.size_hint(),
        }
    }
}
