//! Reports about an invented machine, so that they read the same everywhere.

use super::{Detail, Planned, exposures, policy, reach, tools};
use crate::config::{BoxConfig, Process};
use crate::planning::{agent, plan_all};
use box_sandbox::host::{Files, Host, Identity, Kind, Node};
use box_sandbox::spec::Grants;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Programs and directories, and nothing else.
struct Invented;

const PROGRAMS: &[&str] = &["/opt/agent/run", "/usr/bin/git", "/opt/box"];
const FOLDERS: &[&str] = &[
    "/",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/opt",
    "/opt/agent",
    "/home",
    "/home/ann",
    "/home/ann/.ssh",
    "/home/ann/project",
    "/home/ann/project/src",
];

impl Files for Invented {
    fn node(&self, path: &Path) -> Option<Node> {
        let is = |list: &[&str]| list.iter().position(|known| Path::new(known) == path);
        let (kind, at) = match (is(PROGRAMS), is(FOLDERS)) {
            (Some(at), _) => (Kind::File, at),
            (_, Some(at)) => (Kind::Directory, 100 + at),
            _ => return None,
        };
        Some(Node {
            kind,
            mode: 0o755,
            identity: Identity {
                device: 1,
                inode: at as u64,
            },
        })
    }

    fn closure(&self, _: &Path, _: &str) -> Vec<PathBuf> {
        Vec::new()
    }

    fn set_id_program(&self, _: &Path) -> Option<PathBuf> {
        None
    }
}

fn host() -> Host {
    Host {
        platform: box_sandbox::host::Platform::Linux,
        uid: 1000,
        gid: 1000,
        run_as: None,
        homes: vec!["/home/ann".into()],
        landlock: 7,
        terminal: false,
        files: Arc::new(Invented),
    }
}

fn config() -> BoxConfig {
    let env = |path: &str| {
        BTreeMap::from([
            ("HOME".to_owned(), "/home/ann".to_owned()),
            ("PATH".to_owned(), path.to_owned()),
        ])
    };
    let list = Grants {
        list: vec!["/home/ann/project".into()],
        ..Grants::default()
    };
    let git = Grants {
        read: vec!["/home/ann/project".into(), "/home/ann/.ssh".into()],
        write: vec!["/home/ann/project/src".into()],
        ..Grants::default()
    };
    BoxConfig {
        name: "ledger".into(),
        file: "/home/ann/boxes/box.toml".into(),
        box_dir: "/home/ann/.local/state/box/ledger".into(),
        policy: Some("/home/ann/boxes/rules.dw".into()),
        agent: Process {
            name: "agent".into(),
            program: "/opt/agent/run".into(),
            argv: vec!["run".into(), "--fast".into()],
            workspace: Some("/home/ann/project".into()),
            env: env("/usr/bin"),
            pass_env: Vec::new(),
            grants: list,
        },
        tools: BTreeMap::from([(
            "git".to_owned(),
            Process {
                name: "tool.git".into(),
                program: "/usr/bin/git".into(),
                argv: vec!["git".into()],
                workspace: None,
                env: env("/usr/bin"),
                pass_env: Vec::new(),
                grants: git,
            },
        )]),
        egress: BTreeMap::new(),
        mcp: BTreeMap::new(),
        telemetry: crate::config::Telemetry::default(),
        gateway: crate::config::GatewayTable::default(),
        keep_history: 0,
        not_yet: Vec::new(),
    }
}

fn planned() -> Vec<Planned> {
    plan_all(&config(), &["more".into()], Path::new("/opt/box"), &host()).unwrap()
}

#[test]
fn the_report_of_a_box() {
    let config = config();
    let mut lines = vec![
        policy(config.policy.as_deref(), 3),
        policy(config.policy.as_deref(), 1),
        policy(None, 0),
    ];
    for planned in planned() {
        lines.extend(exposures(
            &planned.spec.name,
            &planned.spec.grants,
            &host().homes,
        ));
    }
    lines.push(tools(&config));
    lines.push(tools(&BoxConfig {
        tools: BTreeMap::new(),
        ..config
    }));
    for planned in planned() {
        lines.extend(reach(&planned, Detail::Short));
    }
    insta::assert_snapshot!("short", lines.join("\n"));
    let full: Vec<String> = planned()
        .iter()
        .flat_map(|planned| reach(planned, Detail::Full))
        .collect();
    insta::assert_snapshot!("full", full.join("\n"));
}

#[test]
fn the_agent_finds_the_alias_wherever_it_looks_for_a_shell() {
    let spec = agent(&config(), &["more".into()], Path::new("/opt/box"));
    assert_eq!(spec.argv, ["run", "--fast", "more"]);
    insta::assert_debug_snapshot!("agent", (spec.env, spec.aliases, spec.listeners));
}

#[test]
fn every_refusal_of_every_process_comes_at_once() {
    let mut config = config();
    config.agent.grants.read = vec!["/home".into()];
    if let Some(git) = config.tools.get_mut("git") {
        git.program = "/usr/bin/gone".into();
    }
    let refused = plan_all(&config, &[], Path::new("/opt/box"), &host()).unwrap_err();
    let lines: Vec<String> = refused.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!("refused", lines.join("\n"));
}
