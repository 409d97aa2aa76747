//! The MCP checkpoint: every frame between an agent and a tool server is read, decided, and written anew.
//!
//! In: lines of a client and of a server, or the body of a request. Out: frames for either side, questions for the
//! gate, and refusals as JSON-RPC errors. It starts no process and opens no connection; it is handed streams.

#![forbid(unsafe_code)]

pub mod address;
pub mod broker;
pub mod catalogue;
pub mod discover;
pub mod events;
pub mod examine;
pub mod frame;
pub mod http;
pub mod questions;
pub mod refusal;
pub mod relay;
pub mod remote;
pub mod reply;
pub mod schema;
pub mod shape;
