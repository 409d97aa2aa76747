use super::*;
use crate::host::fake::Fake;
use crate::spec::Grants;
use std::path::Path;

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

fn world() -> Fake {
    Fake::merged_usr()
        .file("/w/src/main.rs")
        .directory("/w/docs")
        .directory("/w/out/keep/private")
        .file("/w/.env")
        .directory("/home/me/.claude")
        .file("/home/me/.claude/.credentials.json")
        .program(
            "/home/me/.pyenv/versions/3/bin/python3.11",
            0o755,
            &["/lib64/ld-linux-x86-64.so.2"],
        )
        .directory("/home/me/.pyenv/versions/3/lib")
        .program(
            "/opt/agent/bin/agent",
            0o755,
            &["/usr/bin/env", "/home/me/.pyenv/versions/3/bin/python3.11"],
        )
        .program("/opt/box/bin/box", 0o755, &["/lib64/ld-linux-x86-64.so.2"])
}

fn agent() -> ProcessSpec {
    ProcessSpec {
        name: "agent".into(),
        role: Role::Agent,
        program: "/opt/agent/bin/agent".into(),
        argv: vec!["agent".into(), "--yes".into()],
        cwd: "/w".into(),
        workspace: "/w".into(),
        env: BTreeMap::from([
            ("HOME".into(), "/home/me".into()),
            ("PATH".into(), "/usr/bin:/bin".into()),
            ("USER".into(), "me".into()),
        ]),
        grants: Grants {
            read: paths(&["/w/src", "/w/out", "/home/me/.claude"]),
            write: paths(&["/w/out"]),
            list: paths(&["/w/docs"]),
            deny: paths(&["/w/out/keep/private"]),
            ..Grants::default()
        },
        aliases: BTreeMap::from([("/bin/sh".into(), "/opt/box/bin/box".into())]),
        listeners: vec!["BOX_BROKER".into()],
    }
}

fn tool() -> ProcessSpec {
    ProcessSpec {
        name: "tool.git".into(),
        role: Role::Leaf,
        program: "/usr/bin/git".into(),
        argv: vec!["git".into(), "status".into()],
        grants: Grants {
            read: paths(&["/w"]),
            write: paths(&["/w"]),
            deny: paths(&["/w/.env"]),
            ..Grants::default()
        },
        aliases: BTreeMap::new(),
        listeners: Vec::new(),
        ..agent()
    }
}

/// A plan as a page: one line a mount, one line a cell.
fn shown(plan: &SandboxPlan) -> String {
    let mut lines = vec![format!(
        "{} as {}:{} in {} running {}",
        plan.name,
        plan.identity.uid,
        plan.identity.gid,
        plan.cwd.display(),
        plan.program.display()
    )];
    for mount in &plan.view {
        lines.push(match mount {
            Mount::Directory { path } => format!("dir    {}", path.display()),
            Mount::Link { path, target } => {
                format!("link   {} -> {}", path.display(), target.display())
            }
            Mount::File { path, contents } => format!("file   {} {contents:?}", path.display()),
            Mount::Tmpfs {
                path,
                mode,
                kilobytes,
                inodes,
            } => format!(
                "tmpfs  {} {mode:o} {kilobytes}k {inodes} inodes",
                path.display()
            ),
            Mount::Proc { path } => format!("proc   {}", path.display()),
            Mount::Bind {
                path,
                source,
                access,
                fresh,
                ..
            } => {
                let source = if source == path {
                    String::new()
                } else {
                    format!(" from {}", source.display())
                };
                let fresh = if *fresh { "" } else { " (over)" };
                format!("bind   {} {access:?}{source}{fresh}", path.display())
            }
            Mount::Mask { path, .. } => format!("mask   {}", path.display()),
        });
    }
    for (path, rights) in plan.landlock.iter().flat_map(|landlock| &landlock.cells) {
        lines.push(format!("rights {} {rights:?}", path.display()));
    }
    lines.extend(
        plan.minimum
            .iter()
            .map(|reach| format!("reach  {} {}", reach.access, reach.path.display())),
    );
    lines.extend(plan.notes.iter().map(|note| format!("note   {note}")));
    lines.join("\n")
}

#[test]
fn an_agents_plan() {
    insta::assert_snapshot!(shown(&plan(&agent(), &world().host(7)).unwrap()));
}

#[test]
fn a_tools_plan() {
    insta::assert_snapshot!(shown(&plan(&tool(), &world().host(7)).unwrap()));
}

#[test]
fn the_form_a_launcher_reads() {
    let mut spec = tool();
    spec.grants = Grants::default();
    let mut plan = plan(&spec, &world().host(7)).unwrap();
    plan.view.truncate(4);
    plan.minimum.truncate(1);
    if let Some(landlock) = &mut plan.landlock {
        landlock.cells.retain(|path, _| path == Path::new("/tmp"));
    }
    insta::assert_json_snapshot!(plan);
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<SandboxPlan>(&text).unwrap(), plan);
}

#[test]
fn a_tools_interpreter_brings_its_libraries() {
    let mut spec = tool();
    spec.program = "/home/me/.pyenv/versions/3/bin/python3.11".into();
    let plan = plan(&spec, &world().host(7)).unwrap();
    let bound = |path: &str| {
        plan.view.iter().find_map(|mount| match mount {
            Mount::Bind {
                path: at, access, ..
            } if at == Path::new(path) => Some(*access),
            _ => None,
        })
    };
    assert_eq!(
        bound("/home/me/.pyenv/versions/3/lib"),
        Some(Access::ReadExecute)
    );
    assert_eq!(
        bound("/home/me/.pyenv/versions/3/bin/python3.11"),
        Some(Access::ReadExecute)
    );
    assert_eq!(bound("/home/me/.pyenv"), None);
}

#[test]
fn an_agent_finds_its_interpreter_by_name() {
    let mut spec = agent();
    spec.program = "/usr/bin/git".into();
    spec.argv = vec!["version-control".into()];
    let fake = world().link("/usr/bin/version-control", "git");
    let plan = plan(&spec, &fake.host(7)).unwrap();
    assert!(plan.view.contains(&Mount::Link {
        path: "/usr/bin/version-control".into(),
        target: "git".into(),
    }));
}

#[test]
fn without_landlock_what_needs_it_is_refused_or_emptied() {
    let refusal = plan(&agent(), &world().host(0)).unwrap_err();
    insta::assert_snapshot!(refusal);
    let mut spec = agent();
    spec.grants = Grants {
        write: paths(&["/w/out"]),
        metadata: paths(&["/w/docs"]),
        ..Grants::default()
    };
    let plan = plan(&spec, &world().host(0)).unwrap();
    assert_eq!(plan.landlock, None);
    assert!(plan.view.contains(&Mount::Directory {
        path: "/w/docs".into()
    }));
    assert_eq!(
        plan.notes,
        [Note::WriteAlsoReads("/w/out".into()), Note::NoLandlock]
    );
}

#[test]
fn every_reason_at_once() {
    let mut spec = agent();
    spec.program = "/opt/none".into();
    spec.cwd = "/nowhere".into();
    spec.grants.read = paths(&["/usr", "/w/absent"]);
    spec.env.insert("BOX_BROKER".into(), "127.0.0.1:1".into());
    insta::assert_snapshot!(plan(&spec, &world().host(7)).unwrap_err());
    let mut spec = agent();
    spec.grants = Grants::default();
    spec.aliases = BTreeMap::from([
        ("/usr/lib/sh".into(), "/opt/box/bin/box".into()),
        ("/bin/x".into(), "/opt/none".into()),
    ]);
    insta::assert_snapshot!(plan(&spec, &world().host(7)).unwrap_err());
}

#[test]
fn root_takes_the_configured_ids_or_a_note() {
    let mut host = world().host(7);
    (host.uid, host.gid) = (0, 0);
    let kept = plan(&agent(), &host).unwrap();
    assert!(kept.notes.contains(&Note::RunsAsRoot));
    host.run_as = Some((4242, 4243));
    let taken = plan(&agent(), &host).unwrap();
    assert_eq!(
        (taken.identity.uid, taken.identity.gid, taken.identity.take),
        (4242, 4243, true)
    );
    assert!(!taken.notes.contains(&Note::RunsAsRoot));
}

#[test]
fn a_writable_tree_is_never_executable_by_being_inside_a_system_tree() {
    let mut spec = tool();
    spec.grants = Grants {
        write: paths(&["/usr/local/lib/cache"]),
        read: paths(&["/usr/local/lib/code"]),
        ..Grants::default()
    };
    let fake = world()
        .directory("/usr/local/lib/cache")
        .directory("/usr/local/lib/code");
    let plan = plan(&spec, &fake.host(7)).unwrap();
    let accesses: Vec<(&PathBuf, Access)> = plan
        .view
        .iter()
        .filter_map(|mount| match mount {
            Mount::Bind { path, access, .. } if path.starts_with("/usr/local/lib") => {
                Some((path, *access))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        accesses,
        [
            (&PathBuf::from("/usr/local/lib"), Access::ReadExecute),
            (&PathBuf::from("/usr/local/lib/cache"), Access::Write),
        ]
    );
}
