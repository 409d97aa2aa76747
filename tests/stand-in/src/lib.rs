//! Servers that tests and examples reach through a box. Nothing here ships.
//!
//! ```text
//! upstream   a port of loopback, TLS under a root of its own or plain, and a log of what reached it
//! sigv4      AWS signatures computed from the request alone, with no part of what signs them in a box
//! example    the one service the examples talk to
//! ```

#![forbid(unsafe_code)]

pub mod example;
pub mod sigv4;
mod upstream;

pub use upstream::{Answer, Identity, Reply, Service, Upstream, echo, heads, reply};
