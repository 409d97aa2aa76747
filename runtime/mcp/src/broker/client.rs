//! What the client says: requests, notifications, and replies to what the server asked.

use super::{Asking, Broker, MAX_OUTSTANDING, Step, complete};
use crate::examine::{CatalogueRefusal, Door, call, exact, examine, fixed, harmless, tool_action};
use crate::frame::{Ending, Frame, FrameFault, Id, Malformed};
use crate::refusal::{REFUSED, UNAVAILABLE, error, refusal};
use box_authority::action::{Action, Outcome};
use serde_json::{Map, Value, json};
use smol_str::SmolStr;
use std::collections::{BTreeSet, VecDeque};

impl Broker {
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
            let Some(question) = self.questions.method(&name) else {
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
        self.never_mind(id);
        if let Some(list) = forwarded.list {
            self.lists.forget(list);
        }
        if forwarded.method == "initialize" {
            self.initialised = false;
        }
        complete(forwarded.granted, &Outcome::Done)
    }

    /// A reply under this id is dropped when it comes.
    pub(super) fn never_mind(&mut self, id: &Id) {
        self.cancelled.push_back(id.clone());
        if self.cancelled.len() > MAX_OUTSTANDING {
            self.cancelled.pop_front();
        }
    }

    fn client_reply(&mut self, id: Id, ending: Ending) -> Vec<Step> {
        let Some(method) = self.questions.answered(&id) else {
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

    /// The client is gone: whatever the server has may happen, and nobody will hear of it.
    pub fn client_ended(&mut self) -> Vec<Step> {
        self.busy.clear();
        let forwarded = std::mem::take(&mut self.with_server).into_values();
        forwarded
            .flat_map(|forwarded| complete(forwarded.granted, &Outcome::Done))
            .collect()
    }
}
