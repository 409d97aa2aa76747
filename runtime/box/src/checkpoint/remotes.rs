//! MCP servers behind URLs: what the gateway is to ask about the messages in requests to them.

use crate::config::BoxConfig;
use box_authority::gate::Caller;
use box_gateway::authority::Host;
use box_gateway::destination::Destination;
use box_gateway::messages::{
    Answer, Carrier, Heard, Letter, Messages, Question, Replies, Unreadable,
};
use box_mcp::catalogue::Allowance;
use box_mcp::frame::FrameFault;
use box_mcp::http::{BodyRefusal, Inspected, refusal_body, unreadable};
use box_mcp::relay::Policies;
use box_mcp::remote::{self, Remote};
use box_mcp::reply::{Correspondence, Reply, Waiting};
use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use smol_str::SmolStr;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// The header that names a session.
const SESSION: &str = "mcp-session-id";
/// Bytes of its value at most.
const LONGEST_SESSION: usize = 1024;
/// Headers that repeat the method of a message, and what it is about.
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const ITEM: HeaderName = HeaderName::from_static("mcp-name");

/// Every remote server of a box.
pub struct Remotes {
    servers: Vec<Known>,
    policies: Arc<dyn Policies>,
    /// Each sandbox has its own dealings with a server.
    correspondences: Mutex<HashMap<(SmolStr, Caller), Correspondence>>,
}

struct Known {
    name: SmolStr,
    /// None: every sandbox may ask it.
    allow: Option<Vec<String>>,
    destinations: Vec<Destination>,
    allowance: Allowance,
}

impl Remotes {
    /// None where the configuration has no remote server.
    pub fn new(
        config: &BoxConfig,
        policies: Arc<dyn Policies>,
        allowances: &BTreeMap<SmolStr, Allowance>,
    ) -> Option<Remotes> {
        let servers: Vec<Known> = config
            .remotes()
            .map(|(name, remote)| Known {
                name: name.into(),
                allow: remote.allow.clone(),
                destinations: remote
                    .destinations
                    .iter()
                    .filter_map(|text| Destination::parse(text).ok())
                    .collect(),
                allowance: allowances.get(name).cloned().unwrap_or_default(),
            })
            .collect();
        (!servers.is_empty()).then(|| Remotes {
            servers,
            policies,
            correspondences: Mutex::default(),
        })
    }

    fn server(&self, host: &Host) -> Option<&Known> {
        let at = |server: &&Known| server.destinations.iter().any(|to| to.is_on(host));
        self.servers.iter().find(at)
    }

    fn correspondence(&self, server: &Known, caller: &Caller) -> Correspondence {
        let mut known = self
            .correspondences
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let begin = || {
            let remote = Remote::new(server.name.clone(), server.allowance.clone());
            Correspondence::new(remote, Arc::clone(&self.policies))
        };
        let key = (server.name.clone(), caller.clone());
        known.entry(key).or_insert_with(begin).clone()
    }
}

impl Messages for Remotes {
    fn at(&self, host: &Host) -> bool {
        self.server(host).is_some()
    }

    fn read(&self, caller: &Caller, request: &Carrier<'_>) -> Result<Letter, Unreadable> {
        let refused = |name: &str, reason: &str| refusal(unreadable(name, reason));
        let Some(server) = self.server(request.host) else {
            return Err(refused("", "there is no such server"));
        };
        let who = crate::network::name(caller);
        if let Some(allow) = &server.allow
            && !allow.iter().any(|name| *name == who)
        {
            let reason = format!("[mcp.{}] is not for {who}", server.name);
            return Err(refused(&server.name, &reason));
        }
        let Some(session) = session(request.headers) else {
            return Err(refused(
                &server.name,
                "`Mcp-Session-Id` must be one text of visible characters",
            ));
        };
        let Some(body) = request.body else {
            return Err(refused(&server.name, &FrameFault::TooLong.to_string()));
        };
        let with = self.correspondence(server, caller);
        if *request.method == Method::POST {
            let read = with.request(session, body).map_err(|found| refusal(*found));
            return read.map(|(inspected, waiting)| letter(request.headers, inspected, waiting));
        }
        let bodiless = [Method::GET, Method::HEAD, Method::OPTIONS, Method::DELETE];
        if !bodiless.contains(request.method) || !body.is_empty() {
            let reason = "a message is sent with POST; other requests ask for a stream, or end a session, and have no body";
            return Err(refused(&server.name, reason));
        }
        if *request.method == Method::DELETE {
            with.left(session);
        }
        Ok(Letter {
            questions: Vec::new(),
            forward: Vec::new().into(),
            headers: Vec::new(),
            answer: Box::new(Listening(with.listening(session))),
        })
    }
}

/// The session a request belongs to, or empty. None where two readers could take it for two.
fn session(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(SESSION).iter();
    let Some(value) = values.next() else {
        return Some("");
    };
    let text = value.to_str().ok()?;
    (values.next().is_none() && text.len() <= LONGEST_SESSION).then_some(text)
}

fn refusal(found: BodyRefusal) -> Unreadable {
    let BodyRefusal {
        action,
        denial,
        body,
    } = found;
    Unreadable {
        action,
        denial,
        body,
    }
}

fn letter(headers: &HeaderMap, mut inspected: Inspected, waiting: Waiting) -> Letter {
    let calls = std::mem::take(&mut inspected.calls);
    let call = calls.first().cloned();
    let mut questions: Vec<Question> = calls.into_iter().map(Question::Decide).collect();
    questions.extend(match (inspected.tool.take(), call) {
        (Some(Ok(own)), _) => Some(Question::Decide(own)),
        (Some(Err(denial)), Some(call)) => Some(Question::Refuse(call, denial)),
        _ => None,
    });
    // Where they repeat what the message says, they say what was judged, or nothing.
    let judged = [
        (METHOD, Some(&inspected.method)),
        (ITEM, inspected.item.as_ref()),
    ];
    let headers = judged
        .into_iter()
        .filter(|(name, _)| headers.contains_key(name))
        .map(|(name, text)| {
            let value = text.and_then(|text| HeaderValue::from_str(text).ok());
            (name, value)
        })
        .collect();
    Letter {
        questions,
        forward: std::mem::take(&mut inspected.forward).into(),
        headers,
        answer: Box::new(Awaited { inspected, waiting }),
    }
}

/// A request for a stream, or none that carries messages.
struct Listening(Waiting);

impl Answer for Listening {
    fn refusal(&self, denial: &box_authority::denial::Denial) -> Vec<u8> {
        box_mcp::http::refusal_text(None, denial, "stream")
    }

    fn begin(self: Box<Self>, kind: &str) -> Option<Box<dyn Replies>> {
        // A page that somebody publishes on the same host, such as where to authenticate.
        (kind == "text/event-stream").then(|| boxed(self.0.reply(kind)))
    }
}

/// A message that was sent.
struct Awaited {
    inspected: Inspected,
    waiting: Waiting,
}

impl Answer for Awaited {
    fn refusal(&self, denial: &box_authority::denial::Denial) -> Vec<u8> {
        refusal_body(&self.inspected, denial)
    }

    fn begin(self: Box<Self>, kind: &str) -> Option<Box<dyn Replies>> {
        Some(boxed(self.waiting.reply(kind)))
    }
}

struct Read(Reply);

fn boxed(reply: Reply) -> Box<dyn Replies> {
    Box::new(Read(reply))
}

impl Replies for Read {
    fn push(&mut self, piece: &[u8]) -> Vec<Heard> {
        self.0.push(piece).into_iter().map(heard).collect()
    }

    fn finish(&mut self) -> Vec<Heard> {
        self.0.finish().into_iter().map(heard).collect()
    }
}

fn heard(heard: remote::Heard) -> Heard {
    match heard {
        remote::Heard::Ended(outcome) => Heard::Ended(outcome),
        remote::Heard::Pass(text) => Heard::Pass(text.into()),
        remote::Heard::Notice(text) => Heard::Notice(text),
    }
}
