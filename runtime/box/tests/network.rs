//! Real programs and servers around a box, over TLS: what reaches them from inside, and what does not.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "network/clients.rs"]
mod clients;
#[path = "network/remote.rs"]
mod remote;
#[path = "network/scene.rs"]
mod scene;
