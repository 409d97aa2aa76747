//! The `box` program: `box.toml`, the wiring of a box, its broker, its signals and its start-up report.
//!
//! In: a configuration file. Out: a workload that runs confined, with every checkpoint asking one authority.
//! The clock, the environment and the machine enter here and nowhere else.

#![forbid(unsafe_code)]

pub mod alias;
pub mod boxdir;
pub mod broker;
pub mod checkpoint;
pub mod cli;
pub mod config;
pub mod network;
pub mod planning;
pub mod policy;
pub mod programs;
pub mod report;
pub mod signals;
pub mod veil;
