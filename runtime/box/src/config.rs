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

use box_gateway::Route;
use box_gateway::config::SecretTable;
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
    /// Seconds of history that are kept whatever the rules need.
    pub keep_history: i64,
    pub agent: Process,
    /// By label.
    pub tools: BTreeMap<String, Process>,
    /// `[egress.<name>]`: secrets by where they may go.
    pub egress: BTreeMap<String, Route>,
    pub mcp: BTreeMap<String, Server>,
    pub telemetry: Telemetry,
    pub gateway: GatewayTable,
    /// What the file says well and this build does not enforce. A box with any of these does not run.
    pub not_yet: Vec<Diagnostic>,
}

/// `[gateway]`, an addition of ours: what the network checkpoint refuses and trusts unless told otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayTable {
    /// `host:port` of services on private, loopback or link-local addresses that the policy may permit.
    pub allow_private: Vec<String>,
    /// A name to the address, or `address:port`, it leads to instead of asking the resolver.
    pub hosts: BTreeMap<String, String>,
    /// PEM files of roots that servers are verified against, beside the public ones. Canonical.
    pub ca_files: Vec<PathBuf>,
}

/// `[mcp.<name>]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// A program the box starts, with `mcp.<name>` as its name.
    Stdio(Process),
    Http(Remote),
}

/// A remote MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// Every request to their hosts is read as a message; the secret goes to them alone.
    pub destinations: Vec<String>,
    pub secret: Option<SecretTable>,
    /// The processes that may ask it. None: every one.
    pub allow: Option<Vec<String>>,
}

/// `[telemetry.<label>]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Telemetry {
    /// Where records go instead of the box directory, each file receiving all of them.
    pub files: Vec<PathBuf>,
}

/// A process table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// `agent`, `tool.git`, `mcp.tickets`.
    pub name: String,
    /// Canonical.
    pub program: PathBuf,
    /// The first as the file spells it.
    pub argv: Vec<String>,
    /// The agent always has one.
    pub workspace: Option<PathBuf>,
    /// As written, plus `HOME` and `PATH`.
    pub env: BTreeMap<String, String>,
    /// Variables of the agent's command that reach it too, where it sets them.
    pub pass_env: Vec<String>,
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

impl Process {
    /// The program as the file spells it; a server's is the name the agent starts it by.
    pub fn program_name(&self) -> &str {
        self.argv.first().map_or("", String::as_str)
    }
}

impl BoxConfig {
    /// The MCP servers that are programs, by name.
    pub fn servers(&self) -> impl Iterator<Item = (&str, &Process)> {
        self.mcp.iter().filter_map(|(name, server)| match server {
            Server::Stdio(process) => Some((name.as_str(), process)),
            Server::Http(_) => None,
        })
    }

    /// The MCP servers behind URLs, by name.
    pub fn remotes(&self) -> impl Iterator<Item = (&str, &Remote)> {
        self.mcp.iter().filter_map(|(name, server)| match server {
            Server::Http(remote) => Some((name.as_str(), remote)),
            Server::Stdio(_) => None,
        })
    }

    /// Every process table of the file, the agent's first.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        let servers = self.servers().map(|(_, process)| process);
        [&self.agent]
            .into_iter()
            .chain(self.tools.values())
            .chain(servers)
    }

    /// The box's own files, which no process of it reaches.
    pub fn own(&self) -> impl Iterator<Item = &PathBuf> {
        [Some(&self.box_dir), Some(&self.file), self.policy.as_ref()]
            .into_iter()
            .flatten()
            .chain(&self.telemetry.files)
    }
}
