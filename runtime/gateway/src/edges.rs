//! What the gateway is handed from outside: names to addresses, addresses to connections, secrets, time,
//! randomness, and somewhere to say what it saw.

use crate::addresses::Reserved;
use crate::messages::Messages;
use crate::secrets::SecretSource;
use async_trait::async_trait;
use box_authority::gate::Caller;
use smol_str::SmolStr;
use std::fmt::{Display, Formatter};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::net::TcpStream;

#[async_trait]
pub trait Resolver: Send + Sync {
    async fn resolve(&self, name: &str) -> std::io::Result<Vec<IpAddr>>;
}

#[async_trait]
pub trait Dialer: Send + Sync {
    async fn dial(&self, address: SocketAddr) -> std::io::Result<TcpStream>;
}

pub trait Clock: Send + Sync {
    fn now(&self) -> SystemTime;
}

pub trait Random: Send + Sync {
    fn fill(&self, bytes: &mut [u8]) -> std::io::Result<()>;
}

/// Hears of what the gateway refused or noticed on its own account, beside the authority's records.
pub trait Watch: Send + Sync {
    fn notice(&self, caller: &Caller, notice: Notice);
}

/// Something an operator wants to know. Holds no secret and no placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A destination below the address floor.
    Floor { target: String, why: Reserved },
    /// A placeholder in a request it is not bound to.
    Stray {
        variable: SmolStr,
        target: String,
        place: String,
    },
    /// A real secret in what a sandbox sent. It should not have it.
    Leak { target: String, place: String },
    /// An `always` route gave its secret to a request without placeholder.
    Unshown { route: SmolStr, target: String },
    /// TLS inside a tunnel that did not come about: another server name, no TLS, an untrusting client.
    Handshake { target: String, reason: String },
    /// A route's secret could not be read.
    Secret { route: SmolStr, reason: String },
    /// A server's reply was kept back.
    Reply { target: String, reason: String },
    /// Whoever reads messages noticed it.
    Message(String),
}

impl Display for Notice {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Notice::Floor { target, why } => write!(f, "refused {target}: {why}"),
            Notice::Stray {
                variable,
                target,
                place,
            } => {
                write!(
                    f,
                    "the placeholder of {variable} was sent to {target} in {place}, which it is not bound to"
                )
            }
            Notice::Leak { target, place } => write!(
                f,
                "a real secret was found in {place} on its way to {target}, and stopped"
            ),
            Notice::Unshown { route, target } => {
                write!(
                    f,
                    "[{route}] gave its secret to a request to {target} that did not show the placeholder"
                )
            }
            Notice::Handshake { target, reason } => write!(
                f,
                "no TLS came about inside the tunnel to {target}: {reason}"
            ),
            Notice::Secret { route, reason } => {
                write!(f, "the secret of [{route}] cannot be read: {reason}")
            }
            Notice::Reply { target, reason } => {
                write!(f, "the reply of {target} was kept back: {reason}")
            }
            Notice::Message(text) => f.write_str(text),
        }
    }
}

/// All of them.
#[derive(Clone)]
pub struct Edges {
    pub resolver: Arc<dyn Resolver>,
    pub dialer: Arc<dyn Dialer>,
    pub secrets: Arc<dyn SecretSource>,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub watch: Arc<dyn Watch>,
    /// Whoever reads the messages in requests to some hosts, if there are such hosts.
    pub messages: Option<Arc<dyn Messages>>,
}

/// The host's own resolver, sockets, clock and randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

#[async_trait]
impl Resolver for System {
    async fn resolve(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0))
            .await?
            .map(|address| address.ip())
            .collect())
    }
}

#[async_trait]
impl Dialer for System {
    async fn dial(&self, address: SocketAddr) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

impl Clock for System {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

impl Random for System {
    fn fill(&self, bytes: &mut [u8]) -> std::io::Result<()> {
        getrandom::fill(bytes).map_err(|fault| std::io::Error::other(fault.to_string()))
    }
}

impl Edges {
    pub fn system(secrets: Arc<dyn SecretSource>, watch: Arc<dyn Watch>) -> Edges {
        Edges {
            resolver: Arc::new(System),
            dialer: Arc::new(System),
            secrets,
            clock: Arc::new(System),
            random: Arc::new(System),
            watch,
            messages: None,
        }
    }
}
