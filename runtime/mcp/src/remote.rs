//! A remote server as one sandbox knows it: bodies of requests in, messages of replies in, and what becomes of them.
//!
//! Nothing passes in either direction that was not read as a frame and written anew.

use crate::broker::{Installed, REVISIONS};
use crate::catalogue::{Allowance, Catalogue, CatalogueFault, Gathered, ListNumber, Lists, Tool};
use crate::examine::Accepted;
use crate::frame::{Ending, Frame, Id, strict_json};
use crate::http::{BodyRefusal, Inspected, inspect_request};
use crate::questions::Questions;
use crate::refusal::{UNAVAILABLE, error};
use crate::relay::Policies;
use box_authority::action::Outcome;
use serde_json::Value;
use smol_str::SmolStr;
use std::collections::VecDeque;
use std::sync::Arc;

/// Sessions remembered at most; the oldest is forgotten.
const MAX_SESSIONS: usize = 64;

/// One remote server, for one sandbox.
#[derive(Debug)]
pub struct Remote {
    server: SmolStr,
    allowance: Allowance,
    /// What may be called, in every session.
    accepted: Option<Accepted>,
    /// By the identifier that the requests bring; empty where they bring none. The latest used is the last.
    sessions: VecDeque<(SmolStr, Session)>,
}

#[derive(Debug)]
struct Session {
    lists: Lists,
    questions: Questions,
}

/// What is known of a request whose reply is awaited.
#[derive(Debug)]
pub struct Sent {
    session: SmolStr,
    /// Absent where no reply belongs to it.
    id: Option<Id>,
    method: SmolStr,
    list: Option<ListNumber>,
}

/// What a message of a reply means, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// How the request ended, before the client hears of it.
    Ended(Outcome),
    /// For the client.
    Pass(String),
    /// For the operator.
    Notice(String),
}

impl Sent {
    /// Whether the reply has yet to answer something.
    pub fn waits(&self) -> bool {
        self.id.is_some()
    }

    /// No answer is awaited any more; whether one was.
    pub fn gave_up(&mut self) -> bool {
        self.id.take().is_some()
    }
}

impl Remote {
    pub fn new(server: impl Into<SmolStr>, allowance: Allowance) -> Remote {
        Remote {
            server: server.into(),
            allowance,
            accepted: None,
            sessions: VecDeque::new(),
        }
    }

    fn session(&mut self, name: &str) -> Option<&mut Session> {
        let found = self.sessions.iter().position(|(known, _)| known == name);
        let known = found.and_then(|at| self.sessions.remove(at));
        if known.is_none() && self.sessions.len() >= MAX_SESSIONS {
            self.sessions.pop_front();
        }
        let known = known.unwrap_or_else(|| {
            let session = Session {
                lists: Lists::new(self.allowance.clone()),
                questions: Questions::default(),
            };
            (name.into(), session)
        });
        self.sessions.push_back(known);
        self.sessions.back_mut().map(|(_, session)| session)
    }

    /// The body of a POST.
    pub fn request(
        &mut self,
        session: &str,
        body: &[u8],
    ) -> Result<(Inspected, Sent), Box<BodyRefusal>> {
        let accepted = self.accepted.clone();
        let server = self.server.clone();
        let mut none = Questions::default();
        let questions = match self.session(session) {
            Some(session) => &mut session.questions,
            None => &mut none,
        };
        let inspected = inspect_request(&server, accepted.as_ref(), questions, body)?;
        let list = match &inspected.list {
            Some(cursor) => self
                .session(session)
                .and_then(|session| session.lists.asked(cursor.as_deref())),
            None => None,
        };
        let sent = Sent {
            session: session.into(),
            id: inspected.id.clone(),
            method: inspected.method.clone(),
            list,
        };
        Ok((inspected, sent))
    }

    /// A request for a stream, which carries no message.
    pub fn listening(session: &str) -> Sent {
        Sent {
            session: session.into(),
            id: None,
            method: "(stream)".into(),
            list: None,
        }
    }

    /// The session is over.
    pub fn left(&mut self, session: &str) {
        self.sessions.retain(|(known, _)| known != session);
    }

    /// No reply comes any more, or none that counts.
    pub fn forget(&mut self, sent: &Sent) {
        if let Some(list) = sent.list {
            self.given_up(&sent.session, list);
        }
    }

    fn given_up(&mut self, session: &str, list: ListNumber) {
        let mut sessions = self.sessions.iter_mut();
        if let Some((_, session)) = sessions.find(|(known, _)| known == session) {
            session.lists.forget(list);
        }
    }

    /// One message of a reply, or several at once as an older revision has them.
    pub fn message(
        &mut self,
        sent: &mut Sent,
        bytes: &[u8],
        policies: &dyn Policies,
    ) -> Vec<Heard> {
        match strict_json(bytes) {
            Ok(Value::Array(items)) => {
                let mut heard = Vec::new();
                for item in items {
                    heard.extend(self.frame(sent, item, bytes.len(), policies));
                }
                heard
            }
            Ok(value) => self.frame(sent, value, bytes.len(), policies),
            Err(fault) => vec![self.dropped(&fault.to_string())],
        }
    }

    fn frame(
        &mut self,
        sent: &mut Sent,
        value: Value,
        bytes: usize,
        policies: &dyn Policies,
    ) -> Vec<Heard> {
        match Frame::read(value) {
            Ok(Frame::Response { id, ending }) if sent.id.as_ref() == Some(&id) => {
                sent.id = None;
                self.answer(sent, id, ending, bytes, policies)
            }
            // On a stream of its own a server may finish what it owed elsewhere.
            Ok(Frame::Response { id, ending }) if sent.method == "(stream)" => {
                vec![Heard::Pass(Frame::Response { id, ending }.line())]
            }
            Ok(Frame::Response { id, .. }) => {
                vec![self.dropped(&format!("nobody asked under the id {id}"))]
            }
            Ok(Frame::Request { id, method, params }) => {
                let asked = match self.session(&sent.session) {
                    Some(session) => session.questions.asked(&id, &method),
                    None => Ok(()),
                };
                match asked {
                    Ok(()) => vec![Heard::Pass(Frame::Request { id, method, params }.line())],
                    Err(fault) => vec![self.dropped(fault)],
                }
            }
            Ok(Frame::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    let id = params.as_ref().and_then(|p| p.get("requestId"));
                    let id = id.and_then(Id::read);
                    if let (Some(id), Some(session)) = (id, self.session(&sent.session)) {
                        session.questions.answered(&id);
                    }
                }
                vec![Heard::Pass(Frame::Notification { method, params }.line())]
            }
            Err(malformed) => {
                let fault = malformed.fault.to_string();
                let mut heard = vec![self.dropped(&fault)];
                // The client would wait for ever.
                if malformed.reply && malformed.id.is_some() && malformed.id == sent.id {
                    heard.extend(self.unanswered(sent, &fault));
                }
                heard
            }
        }
    }

    fn answer(
        &mut self,
        sent: &mut Sent,
        id: Id,
        ending: Ending,
        bytes: usize,
        policies: &dyn Policies,
    ) -> Vec<Heard> {
        let mut heard = vec![Heard::Ended(ending.outcome())];
        // What the list is waiting for now is its next request.
        let list = sent.list.take();
        let reply = Frame::Response {
            id: id.clone(),
            ending: ending.clone(),
        };
        let Ending::Result(result) = ending else {
            if let Some(list) = list {
                self.accepted = None;
                self.given_up(&sent.session, list);
            }
            heard.push(Heard::Pass(reply.line()));
            return heard;
        };
        if sent.method == "initialize" {
            let revision = result.get("protocolVersion").and_then(Value::as_str);
            let revision = revision.unwrap_or_default();
            if !REVISIONS.contains(&revision) {
                let reason = format!(
                    "it speaks revision {revision:?} of the protocol, and this box reads {}",
                    REVISIONS.join(", ")
                );
                heard.push(self.failed(&id, "initialize", &reason));
                return heard;
            }
        }
        let gathered = self.session(&sent.session).map(|session| {
            session.questions.remember(&result);
            let list = list?;
            Some(session.lists.answered(list, &result, bytes))
        });
        let listed = match gathered.flatten() {
            None | Some(Ok(Gathered::Page)) => Ok(()),
            Some(Ok(Gathered::Finished(tools))) => self.finish(tools, policies),
            Some(Err(fault)) => Err(fault.to_string()),
        };
        match listed {
            Ok(()) => heard.push(Heard::Pass(reply.line())),
            // What it had listed before can no longer be trusted to be what it does.
            Err(reason) => {
                self.accepted = None;
                heard.push(self.failed(&id, "tools/list", &reason));
            }
        }
        heard
    }

    /// A list is complete: the policy has its tools before the client has its last page.
    fn finish(&mut self, tools: Vec<Tool>, policies: &dyn Policies) -> Result<(), String> {
        let text = |fault: CatalogueFault| fault.to_string();
        let catalogue = Arc::new(Catalogue::new(self.server.clone(), tools).map_err(text)?);
        let known = self.accepted.as_ref();
        if known.is_some_and(|known| known.catalogue.fingerprint() == catalogue.fingerprint()) {
            return Ok(());
        }
        self.allowance.change(&catalogue).map_err(text)?;
        let typed = match policies.install(&catalogue) {
            Installed::Typed => true,
            Installed::Untyped => false,
            Installed::Refused(reason) => return Err(reason),
        };
        self.accepted = Some(Accepted { catalogue, typed });
        Ok(())
    }

    /// The request will have no reply of the server: the client hears why.
    pub fn unanswered(&mut self, sent: &mut Sent, reason: &str) -> Vec<Heard> {
        self.forget(sent);
        let Some(id) = sent.id.take() else {
            return Vec::new();
        };
        let failed = self.failed(&id, &sent.method, reason);
        vec![Heard::Ended(Outcome::Done), failed]
    }

    fn failed(&self, id: &Id, step: &str, reason: &str) -> Heard {
        let text = format!(
            "MCP server {:?} failed during {step}: {reason}",
            self.server
        );
        Heard::Pass(error(Some(id), UNAVAILABLE, &text, None).to_string())
    }

    pub fn dropped(&self, reason: &str) -> Heard {
        Heard::Notice(format!(
            "a frame of the MCP server {:?} was dropped: {reason}",
            self.server
        ))
    }
}
