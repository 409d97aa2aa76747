//! `box.toml`: from its text and the machine to one configuration, or to everything that is wrong with it.
//!
//! ```text
//! text ── shape ──▶ Draft (spelled, with spans) ── host ──▶ BoxConfig (canonical paths)
//! ```
//!
//! A relative path means relative to the folder of the file, `~/` the operator's home.

mod host;
mod shape;

pub use host::{Host, hash};

use box_sandbox::spec::Grants;
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A box as it will run. Every path is absolute and canonical; `box_dir` may not exist yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxConfig {
    pub name: String,
    pub file: PathBuf,
    pub box_dir: PathBuf,
    /// None: nothing is permitted.
    pub policy: Option<PathBuf>,
    pub agent: Process,
    /// By label.
    pub tools: BTreeMap<String, Process>,
}

/// A process table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// `agent`, `tool.git`.
    pub name: String,
    /// Canonical.
    pub program: PathBuf,
    /// The first as the file spells it.
    pub argv: Vec<String>,
    /// The agent always has one.
    pub workspace: Option<PathBuf>,
    /// As written, plus `HOME` and `PATH`.
    pub env: BTreeMap<String, String>,
    pub grants: Grants,
}

/// The configuration that `text`, the contents of `file`, describes. `file` is canonical.
pub fn read(file: &std::path::Path, text: &str, host: &Host) -> Result<BoxConfig, Vec<Diagnostic>> {
    let (draft, mut problems) = shape::read(text);
    let config = host::resolve(file, &draft, host, &mut problems);
    match config {
        Some(config) if problems.is_empty() => Ok(config),
        _ => Err(problems),
    }
}
