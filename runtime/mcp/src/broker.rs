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

use crate::catalogue::{Allowance, Catalogue, ListNumber, Lists};
use crate::examine::Accepted;
use crate::frame::{Frame, Id};
use crate::questions::Questions;
use crate::refusal::{REFUSED, UNAVAILABLE, error, refusal};
use box_authority::action::{Action, Outcome};
use box_authority::denial::Denial;
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

mod client;
mod server;
#[cfg(test)]
mod tests;

/// Requests of one side without a reply at most.
const MAX_OUTSTANDING: usize = 1024;
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
    /// A request for a list is with the server: after a while, tell [`Broker::overdue`].
    Timed(Ticket),
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
    questions: Questions,
    lists: Lists,
    allowance: Allowance,
    accepted: Option<Accepted>,
    installing: BTreeMap<Ticket, Installing>,
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
    timed: Option<Ticket>,
}

/// A last page that is held back.
#[derive(Debug)]
struct Installing {
    catalogue: Arc<Catalogue>,
    id: Id,
    reply: String,
}

impl Broker {
    /// `allowance` is shared by all connections of the server.
    pub fn new(server: impl Into<SmolStr>, allowance: Allowance) -> Broker {
        Broker {
            server: server.into(),
            tickets: 0,
            asking: BTreeMap::new(),
            busy: BTreeSet::new(),
            with_server: BTreeMap::new(),
            cancelled: VecDeque::new(),
            questions: Questions::default(),
            lists: Lists::new(allowance.clone()),
            allowance,
            accepted: None,
            installing: BTreeMap::new(),
            initialised: false,
            server_gone: false,
        }
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
                let timed = list.map(|_| self.ticket());
                let forwarded = Forwarded {
                    method,
                    granted,
                    list,
                    timed,
                };
                self.with_server.insert(id, forwarded);
                let timed = timed.map(Step::Timed);
                [Step::ToServer(line)].into_iter().chain(timed).collect()
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
}

fn complete(granted: Vec<Ticket>, outcome: &Outcome) -> Vec<Step> {
    let step = |ticket| Step::Complete {
        ticket,
        outcome: outcome.clone(),
    };
    granted.into_iter().map(step).collect()
}
