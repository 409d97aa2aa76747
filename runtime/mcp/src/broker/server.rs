//! What the server says: replies, requests of its own, and its end.

use super::{Broker, Forwarded, Installed, Installing, REVISIONS, Step, Ticket, complete};
use crate::catalogue::{Catalogue, Gathered, Tool};
use crate::examine::Accepted;
use crate::frame::{Ending, Frame, Id, strict_json};
use crate::refusal::error;
use box_authority::action::Outcome;
use serde_json::{Map, Value};
use smol_str::SmolStr;
use std::sync::Arc;

impl Broker {
    /// One line of the server.
    pub fn from_server(&mut self, line: &[u8]) -> Vec<Step> {
        if line.trim_ascii().is_empty() {
            return Vec::new();
        }
        match strict_json(line) {
            // An older revision lets a server answer with several messages at once; each stands for itself.
            Ok(Value::Array(items)) => {
                let mut steps = Vec::new();
                for item in items {
                    steps.extend(self.server_frame(item, line.len()));
                }
                steps
            }
            Ok(value) => self.server_frame(value, line.len()),
            Err(fault) => vec![self.dropped(&fault.to_string())],
        }
    }

    fn server_frame(&mut self, value: Value, bytes: usize) -> Vec<Step> {
        match Frame::read(value) {
            Ok(Frame::Response { id, ending }) => self.server_reply(id, ending, bytes),
            Ok(Frame::Request { id, method, params }) => self.server_request(id, method, params),
            Ok(Frame::Notification { method, params }) => {
                if method == "notifications/cancelled" {
                    let id = params
                        .as_ref()
                        .and_then(|p| p.get("requestId"))
                        .and_then(Id::read);
                    id.map(|id| self.questions.answered(&id));
                }
                vec![Step::ToClient(
                    Frame::Notification { method, params }.line(),
                )]
            }
            Err(malformed) => {
                let mut steps = vec![self.dropped(&malformed.fault.to_string())];
                // The client would wait for ever.
                if let Some(id) = malformed.id.filter(|_| malformed.reply)
                    && let Some(forwarded) = self.taken(&id)
                {
                    steps.extend(complete(forwarded.granted, &Outcome::Done));
                    steps.push(self.failed(&id, &forwarded.method, &malformed.fault.to_string()));
                }
                steps
            }
        }
    }

    fn server_request(
        &mut self,
        id: Id,
        method: SmolStr,
        params: Option<Map<String, Value>>,
    ) -> Vec<Step> {
        if let Err(fault) = self.questions.asked(&id, &method) {
            return vec![Step::ToServer(
                error(Some(&id), -32600, fault, None).to_string(),
            )];
        }
        vec![Step::ToClient(Frame::Request { id, method, params }.line())]
    }

    /// A request of the client that is no longer with the server, without the list it asked for.
    fn taken(&mut self, id: &Id) -> Option<Forwarded> {
        let forwarded = self.with_server.remove(id)?;
        self.busy.remove(id);
        if let Some(list) = forwarded.list {
            self.lists.forget(list);
        }
        Some(forwarded)
    }

    fn server_reply(&mut self, id: Id, ending: Ending, bytes: usize) -> Vec<Step> {
        let Some(forwarded) = self.with_server.remove(&id) else {
            if let Some(at) = self.cancelled.iter().position(|cancelled| *cancelled == id) {
                self.cancelled.remove(at);
                return Vec::new();
            }
            return vec![self.dropped(&format!("nobody asked under the id {id}"))];
        };
        self.busy.remove(&id);
        let mut steps = complete(forwarded.granted, &ending.outcome());
        let reply = Frame::Response {
            id: id.clone(),
            ending: ending.clone(),
        };
        let result = match ending {
            Ending::Result(result) => result,
            Ending::Error(_) => {
                if let Some(list) = forwarded.list {
                    self.lists.forget(list);
                }
                self.initialised &= forwarded.method != "initialize";
                steps.push(Step::ToClient(reply.line()));
                return steps;
            }
        };
        if forwarded.method == "initialize" {
            let revision = result
                .get("protocolVersion")
                .and_then(Value::as_str)
                .unwrap_or_default();
            if !REVISIONS.contains(&revision) {
                self.initialised = false;
                let reason = format!(
                    "it speaks revision {revision:?} of the protocol, and this box reads {}",
                    REVISIONS.join(", ")
                );
                steps.push(self.failed(&id, "initialize", &reason));
                return steps;
            }
        }
        self.questions.remember(&result);
        match forwarded.list {
            Some(list) => match self.lists.answered(list, &result, bytes) {
                Ok(Gathered::Page) => steps.push(Step::ToClient(reply.line())),
                Ok(Gathered::Finished(tools)) => steps.extend(self.finish(tools, id, reply.line())),
                Err(fault) => steps.push(self.failed(&id, "tools/list", &fault.to_string())),
            },
            None => steps.push(Step::ToClient(reply.line())),
        }
        steps
    }

    /// A list is complete: its last page waits until the policy has its tools.
    fn finish(&mut self, tools: Vec<Tool>, id: Id, reply: String) -> Vec<Step> {
        let catalogue = match Catalogue::new(self.server.clone(), tools) {
            Ok(catalogue) => Arc::new(catalogue),
            Err(fault) => return vec![self.failed(&id, "tools/list", &fault.to_string())],
        };
        if let Some(accepted) = &self.accepted
            && accepted.catalogue.fingerprint() == catalogue.fingerprint()
        {
            return vec![Step::ToClient(reply)];
        }
        if let Err(fault) = self.allowance.change(&catalogue) {
            return vec![self.failed(&id, "tools/list", &fault.to_string())];
        }
        let ticket = self.ticket();
        let held = Installing {
            catalogue: Arc::clone(&catalogue),
            id,
            reply,
        };
        self.installing.insert(ticket, held);
        vec![Step::Install { ticket, catalogue }]
    }

    /// Whether the policy took the tools of a list.
    pub fn installed(&mut self, ticket: Ticket, installed: Installed) -> Vec<Step> {
        let Some(held) = self.installing.remove(&ticket) else {
            return Vec::new();
        };
        let typed = match installed {
            Installed::Typed => true,
            Installed::Untyped => false,
            Installed::Refused(reason) => {
                return vec![self.failed(&held.id, "tools/list", &reason)];
            }
        };
        self.accepted = Some(Accepted {
            catalogue: held.catalogue,
            typed,
        });
        vec![Step::ToClient(held.reply)]
    }

    /// The time for a page of a list is up. The client is answered; what still comes is dropped.
    pub fn overdue(&mut self, page: Ticket) -> Vec<Step> {
        let mut waiting = self.with_server.iter();
        let late = waiting.find_map(|(id, sent)| (sent.timed == Some(page)).then(|| id.clone()));
        let Some((id, forwarded)) = late.and_then(|id| Some((id.clone(), self.taken(&id)?))) else {
            return Vec::new();
        };
        self.never_mind(&id);
        let mut steps = complete(forwarded.granted, &Outcome::Done);
        steps.push(self.failed(&id, "tools/list", "it did not answer in time"));
        steps
    }

    /// The server is gone: whatever it had may have happened, and will not be answered.
    pub fn server_ended(&mut self) -> Vec<Step> {
        self.server_gone = true;
        self.busy.clear();
        self.questions.gone();
        let mut steps = Vec::new();
        for (id, forwarded) in std::mem::take(&mut self.with_server) {
            steps.extend(complete(forwarded.granted, &Outcome::Done));
            steps.push(self.gone(&id));
        }
        steps
    }

    fn dropped(&self, reason: &str) -> Step {
        Step::Notice(format!(
            "a frame of the MCP server {:?} was dropped: {reason}",
            self.server
        ))
    }
}
