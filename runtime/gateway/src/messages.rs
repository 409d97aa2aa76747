//! Messages of a protocol inside HTTP: requests to some hosts are read whole, and decided message by message.
//!
//! The gateway knows hosts, bodies and permits. What a message says, and which questions it raises, knows
//! whoever reads the protocol.

use crate::authority::Host;
use box_authority::action::{Action, Outcome};
use box_authority::denial::Denial;
use box_authority::gate::Caller;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// Bytes of a message at most.
pub const LONGEST: usize = 8 * 1024 * 1024;

/// Whoever reads the messages of a protocol. Every call is quick: it asks nobody.
pub trait Messages: Send + Sync {
    /// Whether requests to this host carry messages, whatever their port and path.
    fn at(&self, host: &Host) -> bool;

    /// Reads a request to such a host, about which nothing is decided yet.
    fn read(&self, caller: &Caller, request: &Carrier<'_>) -> Result<Letter, Unreadable>;
}

/// The request that carries a message.
#[derive(Clone, Copy, Debug)]
pub struct Carrier<'r> {
    pub host: &'r Host,
    pub method: &'r Method,
    pub headers: &'r HeaderMap,
    /// Absent where it is longer than [`LONGEST`].
    pub body: Option<&'r [u8]>,
}

/// A message that was read.
pub struct Letter {
    /// To be answered in this order, once the request itself is permitted.
    pub questions: Vec<Question>,
    /// What travels when all of them are: written anew from what was read.
    pub forward: Bytes,
    /// Headers that have to say what was judged: put there, or taken out.
    pub headers: Vec<(HeaderName, Option<HeaderValue>)>,
    pub answer: Box<dyn Answer>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Question {
    Decide(Action),
    /// What no policy permits.
    Refuse(Action, Denial),
}

/// A request that is refused whatever the policy says.
#[derive(Clone, Debug, PartialEq)]
pub struct Unreadable {
    pub action: Action,
    pub denial: Denial,
    pub body: Vec<u8>,
}

/// Makes of the reply to a message what the client hears. One that is dropped is given up.
pub trait Answer: Send {
    /// The body of the answer to a message that was denied, as JSON.
    fn refusal(&self, denial: &Denial) -> Vec<u8>;

    /// A good reply of this media type begins. `None`: it carries no message, and passes as it is.
    fn begin(self: Box<Self>, kind: &str) -> Option<Box<dyn Replies>>;
}

/// Reads a reply as it comes.
pub trait Replies: Send {
    fn push(&mut self, piece: &[u8]) -> Vec<Heard>;

    /// The reply has ended.
    fn finish(&mut self) -> Vec<Heard>;
}

/// What a piece of a reply means, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// How what was asked ended. It is on record before the client hears anything that follows.
    Ended(Outcome),
    Pass(Bytes),
    /// For the operator.
    Notice(String),
}
