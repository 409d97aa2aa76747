//! The network checkpoint: every connection and request of a sandbox, decided, credentialed and scrubbed.
//!
//! In: a listener made inside one sandbox's network, and whose it is; HTTP/1.1 proxy requests and CONNECT
//! tunnels on it. Out: requests to servers, each after `net:connect` and `http:request` permits of the
//! [`box_authority::gate::Gate`], with a real secret where a placeholder was bound to the destination.
//! It holds no verdict of its own but the fixed floors: reserved addresses, one host a request, secrets over
//! verified TLS only. The client is hostile, and so is the server.
//!
//! ```text
//!  sandbox ── wire, framing ── gateway ── connect ── addresses         who, where
//!                                 │
//!                              exchange ── head, routes, placement     what, with which secret
//!                                 │           sigv4, scrub, body
//!                               reply                                  every answer of our own
//! ```

#![forbid(unsafe_code)]
// A refusal is the end of a request, and travels a few frames once.
#![allow(clippy::result_large_err)]

pub mod addresses;
pub mod authority;
mod body;
pub mod config;
mod connect;
mod core;
pub mod destination;
pub mod edges;
pub mod environment;
mod exchange;
mod fetch;
pub mod framing;
mod gateway;
mod head;
pub mod hosts;
pub mod messages;
mod placement;
mod reply;
mod routes;
pub mod scrub;
pub mod secrets;
mod sigv4;
mod tls;
pub mod url_path;
mod wire;

pub use self::config::{ConfigProblem, GatewayConfig, Limits, Network, Route, check};
pub use self::edges::{Edges, Notice, System, Watch};
pub use self::fetch::{Fetch, FetchFault, Fetched};
pub use self::gateway::{Gateway, Serving, StartFault};
pub use self::secrets::{HostSecrets, SecretSource};
