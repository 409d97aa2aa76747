//! What a box tells its operator before it starts: the policy, and everything each process reaches without
//! asking it. Made from the very plans that are enforced.

use crate::config::{BoxConfig, Server};
use box_sandbox::grants::{self, List};
use box_sandbox::plan::SandboxPlan;
use box_sandbox::spec::{Grants, ProcessSpec, Role};
use std::path::{Path, PathBuf};

/// A process with the plan of its sandbox.
#[derive(Clone, Debug)]
pub struct Planned {
    pub spec: ProcessSpec,
    pub plan: SandboxPlan,
}

/// How much a report says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Grants, and how many paths come with every sandbox.
    Short,
    /// Every path.
    Full,
}

/// The policy in a line.
pub fn policy(file: Option<&Path>, rules: usize) -> String {
    match (file, rules) {
        (None, _) => "no policy: everything that asks is denied".into(),
        (Some(file), 1) => format!("policy {}: 1 rule", file.display()),
        (Some(file), rules) => format!("policy {}: {rules} rules", file.display()),
    }
}

/// One line for each credential store that a grant names.
pub fn exposures(process: &str, granted: &Grants, homes: &[PathBuf]) -> Vec<String> {
    grants::exposures(granted, homes)
        .into_iter()
        .map(|found| {
            format!(
                "[{process}]: exposes {} ({})",
                found.entry.display().to_string().escape_debug(),
                found.list.name()
            )
        })
        .collect()
}

/// What a process reaches, a line a grant.
pub fn reach(planned: &Planned, detail: Detail) -> Vec<String> {
    let Planned { spec, plan } = planned;
    let name = &spec.name;
    let mut lines = vec![format!(
        "[{name}] runs {} with no policy decision over these paths:",
        spec.program.display().to_string().escape_debug()
    )];
    lines.push(row("exec", &spec.program, " (command, implicit)"));
    for list in List::ALL {
        for path in list.of(&spec.grants) {
            lines.push(row(list.name(), path, ""));
        }
    }
    lines.push(row("enter", &spec.workspace, " (workspace, entry only)"));
    // The program and the workspace stand above already.
    let mut minimum = plan.minimum.clone();
    minimum.retain(|reach| reach.path != spec.program && reach.path != spec.workspace);
    match detail {
        Detail::Short => lines.push(format!(
            "  and the {} paths every sandbox needs; `box check` lists them",
            minimum.len()
        )),
        Detail::Full => {
            lines.push(format!("[{name}] runtime minimum, added by the box:"));
            lines.extend(
                minimum
                    .iter()
                    .map(|reach| row(&reach.access, &reach.path, "")),
            );
        }
    }
    let variable = |name: &str| {
        spec.env
            .get(name)
            .map_or("", String::as_str)
            .escape_debug()
            .to_string()
    };
    lines.push(format!(
        "[{name}] HOME={} PATH={}",
        variable("HOME"),
        variable("PATH")
    ));
    if spec.role == Role::Leaf {
        lines.push(format!(
            "[{name}] reaches the network through the gateway only"
        ));
    }
    lines.extend(
        plan.notes
            .iter()
            .map(|note| format!("[{name}] note: {note}")),
    );
    lines
}

fn row(list: &str, path: &Path, remark: &str) -> String {
    format!(
        "  {list:<12} {}{remark}",
        path.display().to_string().escape_debug()
    )
}

/// The tools by what the agent types to get them.
pub fn tools(config: &BoxConfig) -> String {
    if config.tools.is_empty() {
        return "no tools: the agent's shell starts no program of the host".into();
    }
    let tools: Vec<String> = config
        .tools
        .iter()
        .map(|(label, tool)| format!("{label} (`{}`)", tool.argv.join(" ")))
        .collect();
    format!("tools, each in a sandbox of its own: {}", tools.join(", "))
}

/// That rules may speak of the tools of MCP servers, and where that is from.
pub fn schema(file: &Path) -> String {
    format!("tools of MCP servers as in {}", file.display())
}

/// The network: where secrets go, and what the floor under the policy lets through.
pub fn network(config: &BoxConfig) -> Vec<String> {
    let mut lines: Vec<String> = config
        .egress
        .iter()
        .map(|(name, route)| {
            format!(
                "[egress.{name}] {} may send {} to {}, never seeing its value",
                who(route.allow.as_deref()),
                route.secret.reference.escape_debug(),
                route.destinations.join(", ").escape_debug()
            )
        })
        .collect();
    if !config.gateway.allow_private.is_empty() {
        lines.push(format!(
            "[gateway] the policy may permit the private addresses of {}",
            config.gateway.allow_private.join(", ").escape_debug()
        ));
    }
    for (name, place) in &config.gateway.hosts {
        lines.push(format!(
            "[gateway] {} is at {}, without asking a resolver",
            name.escape_debug(),
            place.escape_debug()
        ));
    }
    for file in &config.gateway.ca_files {
        lines.push(format!(
            "[gateway] servers are also verified against {}",
            file.display().to_string().escape_debug()
        ));
    }
    lines
}

fn who(allow: Option<&[String]>) -> String {
    allow.map_or_else(|| "every process".into(), |allowed| allowed.join(", "))
}

/// The MCP servers by what the agent starts to reach them.
pub fn servers(config: &BoxConfig) -> Vec<String> {
    config
        .mcp
        .iter()
        .map(|(name, server)| match server {
            Server::Stdio(process) => format!(
                "[mcp.{name}] `{}` in a sandbox of its own, started as `{}`",
                process.argv.join(" "),
                process.program_name()
            ),
            Server::Http(remote) => {
                let secret = remote.secret.as_ref().map(|secret| {
                    let reference = secret.reference.escape_debug();
                    format!(", with {reference}, whose value it never sees")
                });
                format!(
                    "[mcp.{name}] remote: {} may ask {}{}; every message is decided",
                    who(remote.allow.as_deref()),
                    remote.destinations.join(", ").escape_debug(),
                    secret.unwrap_or_default()
                )
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
