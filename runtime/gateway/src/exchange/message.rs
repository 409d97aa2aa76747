//! A request that carries a message, and the reply to it: read by whoever knows the protocol, decided here.

use super::{Exchange, encoded};
use crate::body::{Body, BodyFault, Load, whole};
use crate::core::{Core, Leave};
use crate::edges::Notice;
use crate::messages::{
    Answer, Carrier, Heard, Letter as Message, Messages, Question, Replies, Unreadable,
};
use crate::placement::Head;
use crate::reply::{Refusal, UpstreamFault};
use box_authority::action::{Action, Outcome};
use box_authority::denial::Denial;
use box_authority::gate::Caller;
use bytes::Bytes;
use http::StatusCode;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue,
};
use http::response::Parts;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use std::sync::Arc;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

/// Pieces of a reply that were read and not yet taken.
const AHEAD: usize = 8;

/// What was read in a request, if it is to a host of messages.
pub(super) struct Letter(Option<Result<Message, Unreadable>>);

/// Leave for a request, and for what it asks.
pub(super) struct Leaves {
    pub request: Leave,
    pub messages: Vec<Leave>,
}

impl Letter {
    pub(super) fn none() -> Letter {
        Letter(None)
    }

    /// The refusal of the request, which speaks the language of its message.
    pub(super) fn refused(&self, denial: Denial) -> Refusal {
        match &self.0 {
            Some(Ok(message)) => Refusal::Message {
                body: message.answer.refusal(&denial),
                denial,
            },
            _ => Refusal::Policy(denial),
        }
    }
}

impl Leaves {
    pub(super) fn of(request: Leave) -> Leaves {
        Leaves {
            request,
            messages: Vec::new(),
        }
    }

    /// Nothing of it happened.
    pub(super) async fn failed(self) {
        completed(self.messages, &Outcome::Failed).await;
        self.request.complete(Outcome::Failed).await;
    }
}

async fn completed(leaves: Vec<Leave>, outcome: &Outcome) {
    for leave in leaves {
        leave.complete(outcome.clone()).await;
    }
}

impl Exchange<'_> {
    pub(super) fn letter(&self, messages: &dyn Messages, head: &Head, load: &Load) -> Letter {
        let body = match load {
            Load::Held(bytes) => Some(bytes.as_ref()),
            Load::Streaming { .. } => None,
        };
        let carrier = Carrier {
            host: &self.origin.authority.host,
            method: &head.method,
            headers: &head.headers,
            body,
        };
        Letter(Some(messages.read(self.caller, &carrier)))
    }

    async fn record(&self, action: Action, denial: &Denial) {
        let gate = Arc::clone(&self.core.gate);
        let (caller, denial) = (self.caller.clone(), denial.clone());
        // The refusal stands whether or not anybody keeps the record.
        let _ = tokio::task::spawn_blocking(move || gate.record_refusal(&caller, &action, &denial))
            .await;
    }

    /// Asks what the message raises. The load is then what was judged.
    pub(super) async fn decided(
        &self,
        letter: Letter,
        leaves: &mut Leaves,
        head: &mut Head,
        load: Load,
    ) -> Result<(Load, Option<Box<dyn Answer>>), Refusal> {
        let message = match letter.0 {
            None => return Ok((load, None)),
            Some(Err(Unreadable {
                action,
                denial,
                body,
            })) => {
                self.record(action, &denial).await;
                return Err(Refusal::Message { denial, body });
            }
            Some(Ok(message)) => message,
        };
        let Message {
            questions,
            forward,
            headers,
            answer,
        } = message;
        for question in questions {
            let denial = match question {
                Question::Decide(action) => match self.core.decide(self.caller, action).await {
                    Ok(leave) => {
                        leaves.messages.push(leave);
                        continue;
                    }
                    Err(denial) => denial,
                },
                Question::Refuse(action, denial) => {
                    self.record(action, &denial).await;
                    denial
                }
            };
            let body = answer.refusal(&denial);
            return Err(Refusal::Message { denial, body });
        }
        // What was spelled another way stands plain only now.
        if self.core.secrets.found_in(&forward) {
            return Err(self.leak("the body".into()));
        }
        if !forward.is_empty() {
            head.headers
                .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        head.headers.remove(CONTENT_ENCODING);
        head.headers
            .insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for (name, value) in headers {
            head.headers.remove(&name);
            if let Some(value) = value {
                head.headers.insert(name, value);
            }
        }
        Ok((Load::Held(forward), Some(answer)))
    }

    /// What the client hears of a reply, and how what was asked ended.
    pub(super) async fn heard(
        &self,
        answer: Box<dyn Answer>,
        leaves: Vec<Leave>,
        mut parts: Parts,
        body: Body,
        target: &str,
    ) -> Result<(Parts, Body), Refusal> {
        if !parts.status.is_success() || parts.status == StatusCode::NO_CONTENT {
            completed(leaves, &unheard(parts.status)).await;
            return Ok((parts, body));
        }
        if encoded(&parts.headers) {
            return Err(self.compressed(target, "its messages could not be read"));
        }
        let Some(kind) = media_type(&parts.headers) else {
            let fault = "the reply has several media types".into();
            return Err(self.broken(target, UpstreamFault::Broken(fault)));
        };
        let Some(replies) = answer.begin(&kind) else {
            completed(leaves, &Outcome::Done).await;
            return Ok((parts, body));
        };
        let mut listening = Listening {
            core: Arc::clone(self.core),
            caller: self.caller.clone(),
            replies,
            leaves,
        };
        parts.headers.remove(CONTENT_LENGTH);
        if kind == "text/event-stream" {
            parts
                .headers
                .insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            let (to_client, pieces) = channel(AHEAD);
            tokio::spawn(async move { listening.stream(body, to_client).await });
            return Ok((parts, StreamBody::new(Pieces(pieces)).boxed_unsync()));
        }
        let read = timeout(self.core.limits.reply, listening.whole(body)).await;
        let text = match read {
            Ok(Ok(text)) => text,
            Ok(Err(fault)) => {
                let fault = UpstreamFault::Broken(fault.to_string());
                return Err(self.broken(target, fault));
            }
            Err(_) => return Err(self.broken(target, UpstreamFault::Slow)),
        };
        if !text.is_empty() {
            parts.status = StatusCode::OK;
            parts
                .headers
                .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        Ok((parts, whole(text)))
    }
}

/// How a message ended whose server did not take it. It may have acted before it said so, save where it says that
/// the request was none it could act upon.
fn unheard(status: StatusCode) -> Outcome {
    match status.as_u16() {
        401 | 403 | 404 | 405 | 406 | 413 | 415 | 429 => Outcome::Failed,
        _ => Outcome::Done,
    }
}

/// In lower case and without parameters; empty where there is none.
fn media_type(headers: &HeaderMap) -> Option<String> {
    let mut kinds = headers.get_all(CONTENT_TYPE).iter();
    let Some(kind) = kinds.next() else {
        return Some(String::new());
    };
    let text = String::from_utf8_lossy(kind.as_bytes()).to_ascii_lowercase();
    let kind = text.split(';').next().unwrap_or_default().trim().to_owned();
    kinds.next().is_none().then_some(kind)
}

/// A reply being read.
struct Listening {
    core: Arc<Core>,
    caller: Caller,
    replies: Box<dyn Replies>,
    /// Given back as soon as the reply says how what was asked ended.
    leaves: Vec<Leave>,
}

impl Listening {
    async fn act(&mut self, heard: Vec<Heard>) -> Vec<Bytes> {
        let mut passed = Vec::new();
        for heard in heard {
            match heard {
                Heard::Ended(outcome) => {
                    completed(std::mem::take(&mut self.leaves), &outcome).await;
                }
                Heard::Pass(text) => passed.push(text),
                Heard::Notice(text) => self.core.notice(&self.caller, Notice::Message(text)),
            }
        }
        passed
    }

    /// The whole reply.
    async fn whole(&mut self, mut body: Body) -> Result<Vec<u8>, BodyFault> {
        let mut passed = Vec::new();
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data() {
                let heard = self.replies.push(&data);
                passed.extend(self.act(heard).await);
            }
        }
        let heard = self.replies.finish();
        passed.extend(self.act(heard).await);
        completed(std::mem::take(&mut self.leaves), &Outcome::Done).await;
        Ok(passed.concat())
    }

    /// The reply as it comes, until the client has gone. Whatever it leaves open is indeterminate.
    async fn stream(&mut self, mut body: Body, to_client: Sender<Piece>) {
        loop {
            let frame = tokio::select! {
                frame = body.frame() => frame,
                () = to_client.closed() => return,
            };
            let heard = match frame {
                None => break,
                Some(Err(fault)) => {
                    // A client that has gone does not hear of it.
                    let _ = to_client.send(Err(fault)).await;
                    return;
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.replies.push(&data),
                    Err(_) => continue,
                },
            };
            if !self.pass(heard, &to_client).await {
                return;
            }
        }
        let heard = self.replies.finish();
        if self.pass(heard, &to_client).await {
            completed(std::mem::take(&mut self.leaves), &Outcome::Done).await;
        }
    }

    async fn pass(&mut self, heard: Vec<Heard>, to_client: &Sender<Piece>) -> bool {
        for text in self.act(heard).await {
            if to_client.send(Ok(Frame::data(text))).await.is_err() {
                return false;
            }
        }
        true
    }
}

type Piece = Result<Frame<Bytes>, BodyFault>;

struct Pieces(Receiver<Piece>);

impl futures_core::Stream for Pieces {
    type Item = Piece;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Piece>> {
        self.0.poll_recv(cx)
    }
}
