//! The processes of a configuration as specs, and every spec as a plan before anything starts.

use crate::alias;
use crate::boxdir::{alias_folder, trust_folder};
use crate::broker::ADDRESS;
use crate::config::{BoxConfig, Process};
use crate::report::Planned;
use box_sandbox::host::Host;
use box_sandbox::plan::{PlanRefusal, plan};
use box_sandbox::spec::{Grants, ProcessSpec, Role};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where hosts keep their shells; in the agent's view each of these names is the alias.
const SHELL_FOLDERS: &[&str] = &["/bin", "/usr/bin"];

/// The agent, with `more` arguments after its own. `alias` is the executable that is a shell in its sandbox.
pub fn agent(config: &BoxConfig, more: &[String], alias: &Path) -> ProcessSpec {
    let Process {
        name,
        program,
        argv,
        env,
        grants,
        ..
    } = &config.agent;
    let workspace = agent_workspace(config);
    let folder = alias_folder(&config.box_dir);
    let mut env = env.clone();
    let path = env.remove("PATH").unwrap_or_default();
    env.insert("PATH".into(), format!("{}:{path}", folder.display()));
    env.entry("SHELL".into())
        .or_insert_with(|| folder.join("bash").display().to_string());
    env.insert("PWD".into(), workspace.display().to_string());
    let folders = SHELL_FOLDERS
        .iter()
        .map(PathBuf::from)
        .chain([folder.clone()]);
    let shells = folders.flat_map(|folder| alias::SHELLS.iter().map(move |name| folder.join(name)));
    let pythons = alias::PYTHONS.iter().map(|name| folder.join(name));
    let servers = config
        .servers()
        .map(|(_, server)| folder.join(server.program_name()));
    let names: Vec<PathBuf> = shells.chain(pythons).chain(servers).collect();
    ProcessSpec {
        name: name.clone(),
        role: Role::Agent,
        program: program.clone(),
        argv: argv.iter().chain(more).cloned().collect(),
        cwd: workspace.to_path_buf(),
        workspace: workspace.to_path_buf(),
        env,
        grants: without_own(grants, config),
        aliases: names
            .into_iter()
            .map(|name| (name, alias.to_path_buf()))
            .collect(),
        listeners: vec![ADDRESS.into()],
    }
}

/// A program of the host in a sandbox of its own, with the environment and the lists of `process`.
pub fn leaf(
    config: &BoxConfig,
    process: &Process,
    grants: &Grants,
    program: &Path,
    argv: Vec<String>,
    (workspace, cwd): (&Path, &Path),
) -> ProcessSpec {
    let mut env = process.env.clone();
    env.insert("PWD".into(), cwd.display().to_string());
    ProcessSpec {
        name: process.name.clone(),
        role: Role::Leaf,
        program: program.to_path_buf(),
        argv,
        cwd: cwd.to_path_buf(),
        workspace: workspace.to_path_buf(),
        env,
        grants: without_own(grants, config),
        aliases: BTreeMap::new(),
        listeners: Vec::new(),
    }
}

/// The command of a table in a sandbox of its own, where its table says: an MCP server, or a tool at rest.
pub fn server(config: &BoxConfig, process: &Process) -> ProcessSpec {
    leaf(
        config,
        process,
        &process.grants,
        &process.program,
        process.argv.clone(),
        server_places(config, process),
    )
}

/// The workspace of such a process, and where it starts.
pub fn server_places<'p>(config: &'p BoxConfig, process: &'p Process) -> (&'p Path, &'p Path) {
    let workspace = process
        .workspace
        .as_deref()
        .unwrap_or_else(|| agent_workspace(config));
    (workspace, workspace)
}

/// A configuration always gives the agent a workspace; the root is never one.
pub fn agent_workspace(config: &BoxConfig) -> &Path {
    config
        .agent
        .workspace
        .as_deref()
        .unwrap_or_else(|| Path::new("/"))
}

/// The lists, less the box's own files where a list would show them, and with the certificates that every
/// process trusts.
fn without_own(grants: &Grants, config: &BoxConfig) -> Grants {
    let mut grants = grants.clone();
    let private = config.box_dir.join("private");
    let trust = trust_folder(&config.box_dir);
    let files = config.own().filter(|path| **path != config.box_dir);
    for own in files.chain([&private]) {
        let Grants {
            read,
            write,
            list,
            metadata,
            exec,
            deny,
            ..
        } = &grants;
        let shown = [read, write, list, metadata, exec]
            .into_iter()
            .flatten()
            .any(|entry| own.starts_with(entry));
        let denied = deny.iter().any(|entry| own.starts_with(entry));
        if shown && !denied && own.exists() {
            grants.deny.push(own.clone());
        }
    }
    // Before the first run there is nothing to show yet.
    let read = grants.read.iter().any(|entry| trust.starts_with(entry));
    if !read && trust.exists() {
        grants.read.push(trust);
    }
    grants
}

/// Every process of the box, the agent last. All refusals of all processes at once.
pub fn plan_all(
    config: &BoxConfig,
    more: &[String],
    alias: &Path,
    host: &Host,
) -> Result<Vec<Planned>, Vec<PlanRefusal>> {
    let leaves = config
        .processes()
        .skip(1)
        .map(|process| server(config, process));
    let mut planned = Vec::new();
    let mut refused = Vec::new();
    for spec in leaves.chain([agent(config, more, alias)]) {
        match plan(&spec, host) {
            Ok(plan) => planned.push(Planned { spec, plan }),
            Err(refusal) => refused.push(refusal),
        }
    }
    if refused.is_empty() {
        Ok(planned)
    } else {
        Err(refused)
    }
}
