//! Requests to a remote server and their replies, as whoever carries them sees them: bytes in, bytes out.
//!
//! ```text
//! body ─▶ request ─▶ Inspected: questions, forward      reply, a piece at a time ─▶ messages ─▶ Heard
//!            └─ Waiting ───────────────────────────────────────┘
//! ```

use crate::events::{Event, Events};
use crate::frame::MAX_LINE;
use crate::http::{BodyRefusal, Inspected};
use crate::relay::{Policies, locked};
use crate::remote::{Heard, Remote, Sent};
use box_authority::action::Outcome;
use std::sync::{Arc, Mutex};

#[cfg(test)]
mod tests;

/// One remote server, for one sandbox, with whoever knows the policy's tools.
#[derive(Clone)]
pub struct Correspondence {
    remote: Arc<Mutex<Remote>>,
    policies: Arc<dyn Policies>,
}

/// A request whose reply is awaited. One that is dropped is given up.
pub struct Waiting {
    with: Correspondence,
    sent: Sent,
}

impl Correspondence {
    pub fn new(remote: Remote, policies: Arc<dyn Policies>) -> Correspondence {
        Correspondence {
            remote: Arc::new(Mutex::new(remote)),
            policies,
        }
    }

    /// The body of a POST. `session` is the identifier it brings, or empty.
    pub fn request(
        &self,
        session: &str,
        body: &[u8],
    ) -> Result<(Inspected, Waiting), Box<BodyRefusal>> {
        let (inspected, sent) = locked(&self.remote).request(session, body)?;
        Ok((inspected, self.waiting(sent)))
    }

    /// A request for a stream, which carries no message.
    pub fn listening(&self, session: &str) -> Waiting {
        self.waiting(Remote::listening(session))
    }

    /// The session is over.
    pub fn left(&self, session: &str) {
        locked(&self.remote).left(session);
    }

    fn waiting(&self, sent: Sent) -> Waiting {
        Waiting {
            with: self.clone(),
            sent,
        }
    }
}

impl Waiting {
    /// The reply begins; `kind` is its media type.
    pub fn reply(self, kind: &str) -> Reply {
        let body = match kind {
            "text/event-stream" => ReplyBody::Events(Events::default()),
            _ => ReplyBody::Whole(Vec::new()),
        };
        Reply {
            waiting: self,
            body,
        }
    }

    fn message(&mut self, bytes: &[u8]) -> Vec<Heard> {
        let policies = &*self.with.policies;
        locked(&self.with.remote).message(&mut self.sent, bytes, policies)
    }

    fn unanswered(&mut self, reason: &str) -> Vec<Heard> {
        locked(&self.with.remote).unanswered(&mut self.sent, reason)
    }

    fn event(&mut self, event: Event) -> Vec<Heard> {
        let kind = event.kind.as_deref().unwrap_or("message");
        let data = event.data.as_deref().unwrap_or_default();
        // An event without a message tells where the stream can be taken up again.
        if data.trim_ascii().is_empty() {
            return vec![Heard::Pass(event.text())];
        }
        if kind != "message" {
            let reason = format!("an event {kind:?} is no message");
            return vec![locked(&self.with.remote).dropped(&reason)];
        }
        let heard = self.message(data.as_bytes());
        // Its identifier goes with the first of its messages.
        let mut frame = Some(Event {
            data: None,
            ..event
        });
        let written = heard.into_iter().map(|heard| match heard {
            Heard::Pass(line) => Heard::Pass(
                Event {
                    data: Some(line),
                    ..frame.take().unwrap_or_default()
                }
                .text(),
            ),
            other => other,
        });
        written.collect()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        locked(&self.with.remote).forget(&self.sent);
    }
}

/// The body of a reply as it arrives.
pub struct Reply {
    waiting: Waiting,
    body: ReplyBody,
}

/// How messages stand in it.
enum ReplyBody {
    Whole(Vec<u8>),
    Events(Events),
    /// It has ended, or broke the protocol and the client was told.
    Over,
}

impl Reply {
    /// A piece of the body came.
    pub fn push(&mut self, piece: &[u8]) -> Vec<Heard> {
        let long = format!("it answered with more than {MAX_LINE} bytes at once");
        match &mut self.body {
            ReplyBody::Over => Vec::new(),
            ReplyBody::Whole(bytes) => {
                if bytes.len().saturating_add(piece.len()) > MAX_LINE {
                    self.body = ReplyBody::Over;
                    return self.waiting.unanswered(&long);
                }
                bytes.extend_from_slice(piece);
                Vec::new()
            }
            ReplyBody::Events(events) => match events.push(piece) {
                Ok(events) => events
                    .into_iter()
                    .flat_map(|event| self.waiting.event(event))
                    .collect(),
                Err(_) => {
                    self.body = ReplyBody::Over;
                    let heard = self.waiting.unanswered(&long);
                    heard.into_iter().map(as_event).collect()
                }
            },
        }
    }

    /// Whether nothing more of it will be passed.
    pub fn is_over(&self) -> bool {
        matches!(self.body, ReplyBody::Over)
    }

    /// The body has ended.
    pub fn finish(&mut self) -> Vec<Heard> {
        match std::mem::replace(&mut self.body, ReplyBody::Over) {
            ReplyBody::Over => Vec::new(),
            // A stream that ends may be taken up again elsewhere; what was asked may have happened.
            ReplyBody::Events(_) => match self.waiting.sent.gave_up() {
                true => vec![Heard::Ended(Outcome::Done)],
                false => Vec::new(),
            },
            ReplyBody::Whole(bytes) => {
                let mut heard = match bytes.trim_ascii() {
                    [] => Vec::new(),
                    bytes => self.waiting.message(bytes),
                };
                if self.waiting.sent.waits() {
                    let reason = match heard.is_empty() {
                        true => "it answered nothing",
                        false => "its reply holds no answer",
                    };
                    heard.extend(self.waiting.unanswered(reason));
                }
                together(heard)
            }
        }
    }
}

fn as_event(heard: Heard) -> Heard {
    match heard {
        Heard::Pass(line) => Heard::Pass(Event::of(&line).text()),
        other => other,
    }
}

/// The messages of one body as one text: alone, or as the array they came in.
fn together(heard: Vec<Heard>) -> Vec<Heard> {
    let (mut lines, mut others) = (Vec::new(), Vec::new());
    for heard in heard {
        match heard {
            Heard::Pass(line) => lines.push(line),
            other => others.push(other),
        }
    }
    match lines.as_slice() {
        [] => {}
        [one] => others.push(Heard::Pass(one.clone())),
        many => others.push(Heard::Pass(format!("[{}]", many.join(",")))),
    }
    others
}
