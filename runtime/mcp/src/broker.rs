//! The broker as a machine without effects: a line in, steps out.
//!
//! ```text
//! client ──line──▶ examine ─▶ catalogue ─▶ Ask mcp:call ─▶ Ask tool ─▶ ToServer
//!                     └──────────┴─────────────┴────────────┴────────▶ ToClient (error)
//! server ──line──▶ reply:   Complete what was permitted ─▶ [Install a finished list] ─▶ ToClient
//!                  request: remembered by its id ─▶ ToClient, whose one reply is asked about in turn
//! ```
//!
//! Nothing is forwarded that was not read as a frame and written anew.

use crate::catalogue::{Catalogue, CatalogueFault, Gathered, ListNumber, Lists, MAX_CHANGES, Tool};
use crate::examine::{
    Accepted, CatalogueRefusal, Door, call, exact, examine, fixed, harmless, tool_action,
};
use crate::frame::{Ending, Frame, FrameFault, Id, Malformed, strict_json};
use crate::refusal::{REFUSED, UNAVAILABLE, error, refusal};
use box_authority::action::{Action, Outcome};
use box_authority::denial::Denial;
use serde_json::{Map, Value, json};
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// Requests of one side without a reply at most.
const MAX_OUTSTANDING: usize = 1024;
/// Questions of the server inside replies that a client may still answer.
const MAX_QUESTIONS: usize = 256;
/// Revisions of the protocol whose requests this broker knows how to read.
pub const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

/// Names something that was asked, until it is answered or completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// What the outside must do, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    ToServer(String),
    ToClient(String),
    /// Decide this, and tell [`Broker::answered`]. A permit is kept until its [`Step::Complete`].
    Ask {
        ticket: Ticket,
        action: Action,
    },
    Complete {
        ticket: Ticket,
        outcome: Outcome,
    },
    /// A list is finished: put its tools into the policy, and tell [`Broker::installed`].
    Install {
        ticket: Ticket,
        catalogue: Arc<Catalogue>,
    },
    /// Record a refusal that no policy made.
    Refused {
        action: Action,
        denial: Denial,
    },
    /// For the operator.
    Notice(String),
}

/// Whether the tools of a list may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Installed {
    /// The policy has their actions: each call is decided twice.
    Typed,
    /// No rule can speak of them: `mcp:call` alone decides.
    Untyped,
    Refused(String),
}

/// One connection between a client and a stdio server.
#[derive(Debug)]
pub struct Broker {
    /// The name in the configuration, never one from a frame.
    server: SmolStr,
    tickets: u64,
    asking: BTreeMap<Ticket, Asking>,
    /// Ids of requests being decided or with the server.
    busy: BTreeSet<Id>,
    with_server: BTreeMap<Id, Forwarded>,
    /// Cancelled by the client; a late reply is dropped. Oldest first.
    cancelled: VecDeque<Id>,
    /// Requests of the server that the client has not answered.
    with_client: BTreeMap<Id, SmolStr>,
    /// Names of questions inside replies, and their methods. Oldest first.
    questions: VecDeque<(String, SmolStr)>,
    lists: Lists,
    accepted: Option<Accepted>,
    installing: BTreeMap<Ticket, Installing>,
    changes: usize,
    initialised: bool,
    server_gone: bool,
}

/// A frame of the client that waits for decisions.
#[derive(Debug)]
struct Asking {
    frame: Frame,
    method: SmolStr,
    list: Option<ListNumber>,
    granted: Vec<Ticket>,
    left: VecDeque<Action>,
}

/// A request the server has.
#[derive(Debug)]
struct Forwarded {
    method: SmolStr,
    granted: Vec<Ticket>,
    list: Option<ListNumber>,
}

/// A last page that is held back.
#[derive(Debug)]
struct Installing {
    catalogue: Arc<Catalogue>,
    id: Id,
    reply: String,
}

impl Broker {
    pub fn new(server: impl Into<SmolStr>) -> Broker {
        Broker {
            server: server.into(),
            tickets: 0,
            asking: BTreeMap::new(),
            busy: BTreeSet::new(),
            with_server: BTreeMap::new(),
            cancelled: VecDeque::new(),
            with_client: BTreeMap::new(),
            questions: VecDeque::new(),
            lists: Lists::default(),
            accepted: None,
            installing: BTreeMap::new(),
            changes: 0,
            initialised: false,
            server_gone: false,
        }
    }

    /// One line of the client.
    pub fn from_client(&mut self, line: &[u8]) -> Vec<Step> {
        if line.trim_ascii().is_empty() {
            return Vec::new();
        }
        match Frame::parse(line) {
            Ok(Frame::Request { id, method, params }) => self.client_request(id, method, params),
            Ok(Frame::Notification { method, params }) => self.client_notification(method, params),
            Ok(Frame::Response { id, ending }) => self.client_reply(id, ending),
            Err(malformed) => self.refuse_frame(malformed),
        }
    }

    /// A line of the client that is longer than a frame may be, and was not kept.
    pub fn client_line_too_long(&mut self) -> Vec<Step> {
        self.refuse_frame(Malformed {
            id: None,
            reply: false,
            fault: FrameFault::TooLong,
        })
    }

    fn refuse_frame(&mut self, malformed: Malformed) -> Vec<Step> {
        let action = call(&self.server, "(unreadable frame)");
        let denial = fixed(&action, "mcp-frame", &malformed.fault);
        let id = malformed.id.as_ref().filter(|_| !malformed.reply);
        let text = malformed.fault.to_string();
        let reply = error(id, malformed.fault.code(), &text, None);
        vec![
            Step::Refused { action, denial },
            Step::ToClient(reply.to_string()),
        ]
    }

    fn client_request(
        &mut self,
        id: Id,
        method: SmolStr,
        mut params: Option<Map<String, Value>>,
    ) -> Vec<Step> {
        if self.server_gone {
            return vec![self.gone(&id)];
        }
        let general = call(&self.server, &method);
        let refuse = |code: i64, action: &Action, gate: &'static str, reason: String| {
            let denial = fixed(action, gate, reason);
            let reply = refusal(Some(&id), code, &denial, &method).to_string();
            let action = action.clone();
            vec![Step::Refused { action, denial }, Step::ToClient(reply)]
        };
        if self.busy.contains(&id) || self.cancelled.contains(&id) {
            let reason = format!("the id {id} is in use");
            return refuse(-32600, &general, "mcp-frame", reason);
        }
        if self.busy.len() >= MAX_OUTSTANDING {
            let reason = format!("{MAX_OUTSTANDING} requests are waiting for their replies");
            return refuse(UNAVAILABLE, &general, "mcp-frame", reason);
        }
        if method == "initialize" && self.initialised {
            let reason = "the connection is initialised already".to_owned();
            return refuse(-32600, &general, "mcp-frame", reason);
        }
        let asked = match examine(&self.server, Door::Stdio, &method, &mut params) {
            Ok(asked) => asked,
            Err(fault) => return refuse(-32602, &general, "mcp-frame", fault.to_string()),
        };
        let mut left: VecDeque<Action> = asked.call.iter().cloned().collect();
        let mut answered = BTreeSet::new();
        for name in asked.answers {
            let Some((_, question)) = self.questions.iter().rev().find(|(key, _)| *key == name)
            else {
                let reason = format!("the server did not ask the question {name:?}");
                return refuse(-32602, &general, "mcp-frame", reason);
            };
            answered.insert(question.clone());
        }
        left.extend(answered.iter().map(|question| call(&self.server, question)));
        if let (Some(tool), Some(action)) = (&asked.tool, &asked.call) {
            let listed = self.during_install(tool);
            match listed.and_then(|()| tool_action(self.accepted.as_ref(), tool, params.as_ref())) {
                Ok(own) => left.extend(own),
                Err(reason) => return refuse(REFUSED, action, reason.gate(), reason.to_string()),
            }
        }
        let list = if method == "tools/list" {
            self.lists.asked(asked.cursor.as_deref())
        } else {
            None
        };
        self.initialised |= method == "initialize";
        self.busy.insert(id.clone());
        self.ask(Asking {
            frame: Frame::Request {
                id,
                method: method.clone(),
                params,
            },
            method,
            list,
            granted: Vec::new(),
            left,
        })
    }

    /// While a changed list is being put into the policy, only what both lists name alike can be called.
    fn during_install(&self, tool: &str) -> Result<(), CatalogueRefusal> {
        let Some(accepted) = &self.accepted else {
            return Ok(());
        };
        let alike = self
            .installing
            .values()
            .all(|new| new.catalogue.shares(&accepted.catalogue, tool));
        if alike {
            Ok(())
        } else {
            Err(CatalogueRefusal::NotListed)
        }
    }

    fn client_notification(
        &mut self,
        method: SmolStr,
        params: Option<Map<String, Value>>,
    ) -> Vec<Step> {
        let action = call(&self.server, &method);
        let refused = |reason: String| {
            let denial = fixed(&action, "mcp-frame", reason);
            let action = action.clone();
            vec![Step::Refused { action, denial }]
        };
        if let Err(fault) = exact(params.as_ref()) {
            return refused(fault.to_string());
        }
        if !method.starts_with("notifications/") {
            return refused("a request needs an id".to_owned());
        }
        let mut steps = Vec::new();
        if method == "notifications/cancelled" {
            let id = params
                .as_ref()
                .and_then(|p| p.get("requestId"))
                .and_then(Id::read);
            let Some(id) = id else {
                return refused("it names no request".to_owned());
            };
            steps.extend(self.cancel(&id));
        }
        let frame = Frame::Notification {
            method: method.clone(),
            params,
        };
        if harmless(&method) {
            steps.push(Step::ToServer(frame.line()));
            return steps;
        }
        self.ask(Asking {
            frame,
            method,
            list: None,
            granted: Vec::new(),
            left: VecDeque::from([action]),
        })
    }

    /// A cancelled request may have happened, and its reply may come all the same.
    fn cancel(&mut self, id: &Id) -> Vec<Step> {
        let Some(forwarded) = self.with_server.remove(id) else {
            return Vec::new();
        };
        self.busy.remove(id);
        self.cancelled.push_back(id.clone());
        if self.cancelled.len() > MAX_OUTSTANDING {
            self.cancelled.pop_front();
        }
        if let Some(list) = forwarded.list {
            self.lists.forget(list);
        }
        if forwarded.method == "initialize" {
            self.initialised = false;
        }
        complete(forwarded.granted, &Outcome::Done)
    }

    fn client_reply(&mut self, id: Id, ending: Ending) -> Vec<Step> {
        let Some(method) = self.with_client.remove(&id) else {
            let action = call(&self.server, "(reply)");
            let denial = fixed(
                &action,
                "mcp-frame",
                format!("the server has no request {id}"),
            );
            return vec![Step::Refused { action, denial }];
        };
        if method == "ping" {
            let ending = Ending::Result(json!({}));
            return vec![Step::ToServer(Frame::Response { id, ending }.line())];
        }
        let action = call(&self.server, &method);
        self.ask(Asking {
            frame: Frame::Response { id, ending },
            method,
            list: None,
            granted: Vec::new(),
            left: VecDeque::from([action]),
        })
    }

    /// Asks the next question about a frame, or lets it through.
    fn ask(&mut self, mut asking: Asking) -> Vec<Step> {
        match asking.left.pop_front() {
            Some(action) => {
                let ticket = self.ticket();
                self.asking.insert(ticket, asking);
                vec![Step::Ask { ticket, action }]
            }
            None => self.forward(asking),
        }
    }

    fn forward(&mut self, asking: Asking) -> Vec<Step> {
        let Asking {
            frame,
            method,
            list,
            granted,
            ..
        } = asking;
        let line = frame.line();
        match frame {
            Frame::Request { id, .. } if self.server_gone => {
                self.busy.remove(&id);
                let mut steps = complete(granted, &Outcome::Failed);
                steps.push(self.gone(&id));
                steps
            }
            _ if self.server_gone => complete(granted, &Outcome::Failed),
            Frame::Request { id, .. } => {
                let forwarded = Forwarded {
                    method,
                    granted,
                    list,
                };
                self.with_server.insert(id, forwarded);
                vec![Step::ToServer(line)]
            }
            Frame::Notification { .. } | Frame::Response { .. } => {
                let mut steps = vec![Step::ToServer(line)];
                steps.extend(complete(granted, &Outcome::Done));
                steps
            }
        }
    }

    /// The verdict on something asked. The permit, if there is one, is kept under the ticket.
    pub fn answered(&mut self, ticket: Ticket, verdict: Result<(), Denial>) -> Vec<Step> {
        let Some(mut asking) = self.asking.remove(&ticket) else {
            return Vec::new();
        };
        let denial = match verdict {
            Ok(()) => {
                asking.granted.push(ticket);
                return self.ask(asking);
            }
            Err(denial) => denial,
        };
        // What was permitted of it certainly does not happen.
        let mut steps = complete(asking.granted, &Outcome::Failed);
        if let Some(list) = asking.list {
            self.lists.forget(list);
        }
        match asking.frame {
            Frame::Request { id, method, .. } => {
                self.busy.remove(&id);
                let reply = refusal(Some(&id), REFUSED, &denial, &method);
                steps.push(Step::ToClient(reply.to_string()));
            }
            // A reply has no reply: it is the server that waits.
            Frame::Response { id, .. } => {
                let reply = refusal(Some(&id), REFUSED, &denial, &asking.method);
                steps.push(Step::ToServer(reply.to_string()));
            }
            Frame::Notification { .. } => {}
        }
        steps
    }

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
                    id.map(|id| self.with_client.remove(&id));
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
        let fault = if self.with_client.contains_key(&id) {
            Some("the id is in use")
        } else if self.with_client.len() >= MAX_OUTSTANDING {
            Some("too many requests are waiting for their replies")
        } else {
            None
        };
        if let Some(fault) = fault {
            return vec![Step::ToServer(
                error(Some(&id), -32600, fault, None).to_string(),
            )];
        }
        self.with_client.insert(id.clone(), method.clone());
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
        let mut steps = complete(forwarded.granted, &outcome(&ending));
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
        self.remember_questions(&result);
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
        if let Some(accepted) = &self.accepted {
            if accepted.catalogue.fingerprint() == catalogue.fingerprint() {
                return vec![Step::ToClient(reply)];
            }
            self.changes += 1;
            if self.changes > MAX_CHANGES {
                let fault = CatalogueFault::Changes.to_string();
                return vec![self.failed(&id, "tools/list", &fault)];
            }
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

    /// Questions a reply asks back, which a later request may answer in its parameters.
    fn remember_questions(&mut self, result: &Value) {
        let Some(asked) = result.get("inputRequests").and_then(Value::as_object) else {
            return;
        };
        for (name, question) in asked.iter().take(MAX_QUESTIONS) {
            // One without a method is answered under a name no rule permits by accident.
            let method = question
                .get("method")
                .and_then(Value::as_str)
                .unwrap_or("(question)");
            if self.questions.len() >= MAX_QUESTIONS {
                self.questions.pop_front();
            }
            self.questions.push_back((name.clone(), method.into()));
        }
    }

    /// The server is gone: whatever it had may have happened, and will not be answered.
    pub fn server_ended(&mut self) -> Vec<Step> {
        self.server_gone = true;
        self.busy.clear();
        self.with_client.clear();
        let mut steps = Vec::new();
        for (id, forwarded) in std::mem::take(&mut self.with_server) {
            steps.extend(complete(forwarded.granted, &Outcome::Done));
            steps.push(self.gone(&id));
        }
        steps
    }

    /// The client is gone: whatever the server has may happen, and nobody will hear of it.
    pub fn client_ended(&mut self) -> Vec<Step> {
        self.busy.clear();
        let forwarded = std::mem::take(&mut self.with_server).into_values();
        forwarded
            .flat_map(|forwarded| complete(forwarded.granted, &Outcome::Done))
            .collect()
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    fn gone(&self, id: &Id) -> Step {
        let text = format!("MCP server {:?} ended before it answered", self.server);
        Step::ToClient(error(Some(id), UNAVAILABLE, &text, None).to_string())
    }

    fn failed(&self, id: &Id, step: &str, reason: &str) -> Step {
        let text = format!(
            "MCP server {:?} failed during {step}: {reason}",
            self.server
        );
        Step::ToClient(error(Some(id), UNAVAILABLE, &text, None).to_string())
    }

    fn dropped(&self, reason: &str) -> Step {
        Step::Notice(format!(
            "a frame of the MCP server {:?} was dropped: {reason}",
            self.server
        ))
    }
}

fn complete(granted: Vec<Ticket>, outcome: &Outcome) -> Vec<Step> {
    let step = |ticket| Step::Complete {
        ticket,
        outcome: outcome.clone(),
    };
    granted.into_iter().map(step).collect()
}

/// A server that could not read the request or has no such method did nothing. Any other error may come from the
/// middle of the work, "invalid params" too, for tools say it of what they find out late.
fn outcome(ending: &Ending) -> Outcome {
    let code = match ending {
        Ending::Result(_) => return Outcome::Done,
        Ending::Error(error) => error.get("code").and_then(Value::as_i64),
    };
    match code {
        Some(-32700 | -32600 | -32601) => Outcome::Failed,
        _ => Outcome::Done,
    }
}
