//! The gateway from outside: real sockets, real TLS, a scripted authority, hostile clients and servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::result_large_err
)]

mod clients;
mod credentials;
mod flows;
mod messages;
mod policy;
mod refusals;
mod signing;
mod support;
