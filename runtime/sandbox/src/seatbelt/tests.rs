use super::evaluator::{Evaluator, Node, Subject};
use super::*;
use crate::host::fake::Fake;
use crate::plan::{Note, plan};
use crate::spec::{Grants, ProcessSpec};
use std::collections::BTreeMap;

fn paths(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(PathBuf::from).collect()
}

fn mac() -> Fake {
    Fake::mac()
        .file("/Users/me/w/src/main.rs")
        .directory("/Users/me/w/docs")
        .directory("/Users/me/w/stat")
        .directory("/Users/me/w/out/keep")
        .file("/Users/me/w/notes.txt")
        .file("/Users/me/w/log.txt")
        .file("/Users/me/w/.env")
        .directory("/Users/me/.claude")
        .file("/Users/me/.claude/.credentials.json")
        .directory("/Users/me/.ssh")
        .program(
            "/Users/me/.local/share/agent/agent",
            0o755,
            &["/usr/lib/libc++.dylib"],
        )
        .file("/usr/lib/libc++.dylib")
        .link("/Users/me/.local/bin/agent", "../share/agent/agent")
        .directory("/opt/tools/bin")
        .program("/opt/box/bin/box", 0o755, &[])
        .program("/opt/node/bin/node", 0o755, &[])
        .directory("/opt/node/lib")
        .program(
            "/Users/me/servers/issues.js",
            0o755,
            &["/usr/bin/env", "/opt/node/bin/node"],
        )
}

fn agent() -> ProcessSpec {
    ProcessSpec {
        name: "agent".into(),
        role: Role::Agent,
        program: "/Users/me/.local/share/agent/agent".into(),
        argv: vec!["agent".into(), "--yes".into()],
        cwd: "/Users/me/w".into(),
        workspace: "/Users/me/w".into(),
        env: BTreeMap::from([
            ("HOME".into(), "/Users/me".into()),
            ("PATH".into(), "/Users/me/.local/bin:/usr/bin:/bin".into()),
            ("SHELL".into(), "/var/box/names/bash".into()),
        ]),
        grants: Grants {
            read: paths(&["/Users/me/w/src", "/Users/me/w/out", "/Users/me/.claude"]),
            read_file: paths(&["/Users/me/w/notes.txt"]),
            write: paths(&["/Users/me/w/out"]),
            write_file: paths(&["/Users/me/w/log.txt"]),
            list: paths(&["/Users/me/w/docs"]),
            metadata: paths(&["/Users/me/w/stat"]),
            exec: paths(&["/usr/bin/git", "/opt/tools"]),
            deny: paths(&["/Users/me/w/out/keep/private"]),
        },
        aliases: BTreeMap::from([
            ("/bin/sh".into(), "/opt/box/bin/box".into()),
            ("/var/box/names/bash".into(), "/opt/box/bin/box".into()),
        ]),
        listeners: vec!["BOX_BROKER".into(), "BOX_GATEWAY".into()],
    }
}

fn tool() -> ProcessSpec {
    ProcessSpec {
        name: "tool.git".into(),
        role: Role::Leaf,
        program: "/usr/bin/git".into(),
        argv: vec!["git".into(), "status".into()],
        grants: Grants {
            read: paths(&["/Users/me/w"]),
            write: paths(&["/Users/me/w"]),
            deny: paths(&["/Users/me/w/.env"]),
            ..Grants::default()
        },
        aliases: BTreeMap::new(),
        listeners: vec!["BOX_GATEWAY".into()],
        ..agent()
    }
}

fn server() -> ProcessSpec {
    ProcessSpec {
        name: "mcp.issues".into(),
        role: Role::Leaf,
        program: "/Users/me/servers/issues.js".into(),
        argv: vec!["/Users/me/servers/issues.js".into()],
        grants: Grants {
            read: paths(&["/Users/me/servers"]),
            ..Grants::default()
        },
        aliases: BTreeMap::new(),
        listeners: Vec::new(),
        ..agent()
    }
}

fn wiring(ports: &[u16]) -> Wiring {
    Wiring {
        ports: ports.to_vec(),
        private: "/private/var/folders/x/T/box-1".into(),
        streams: Vec::new(),
        grafts: true,
    }
}

fn text(spec: &ProcessSpec, wiring: &Wiring) -> String {
    profile(&plan(spec, &mac().mac_host()).unwrap(), wiring).unwrap()
}

fn judged(spec: &ProcessSpec, ports: &[u16]) -> Evaluator {
    Evaluator::new(&text(spec, &wiring(ports)))
}

const HERE: &str = "/Users/me/w";

#[test]
fn an_agents_profile() {
    insta::assert_snapshot!(text(&agent(), &wiring(&[4101, 4102])));
}

#[test]
fn a_tools_profile() {
    insta::assert_snapshot!(text(&tool(), &wiring(&[4103])));
}

#[test]
fn an_mcp_servers_profile() {
    insta::assert_snapshot!(text(&server(), &wiring(&[])));
}

#[test]
fn what_is_reached_besides_the_grants_is_disclosed() {
    let shown = |spec: &ProcessSpec| {
        let plan = plan(spec, &mac().mac_host()).unwrap();
        let reached = plan.minimum.iter();
        let mut lines: Vec<String> = reached
            .map(|reach| format!("{} {}", reach.access, reach.path.display()))
            .collect();
        lines.extend(plan.notes.iter().map(|note| format!("note: {note}")));
        assert!(plan.view.is_empty());
        lines.join("\n")
    };
    insta::assert_snapshot!(shown(&agent()));
    insta::assert_snapshot!(shown(&server()));
}

#[test]
fn an_agent_reaches_each_list_and_no_more() {
    let judged = judged(&agent(), &[4101, 4102]);
    // read
    assert!(judged.reads("/Users/me/w/src/main.rs"));
    assert!(judged.lists("/Users/me/w/src"));
    assert!(!judged.writes("/Users/me/w/src/main.rs"));
    // read_file, write_file
    assert!(judged.reads("/Users/me/w/notes.txt"));
    assert!(!judged.writes("/Users/me/w/notes.txt"));
    assert!(judged.writes("/Users/me/w/log.txt"));
    assert!(!judged.reads("/Users/me/w/log.txt"));
    assert!(!judged.removes("/Users/me/w/log.txt"));
    assert!(!judged.maps("/Users/me/w/log.txt"));
    // write
    assert!(judged.writes("/Users/me/w/out/a") && judged.creates("/Users/me/w/out/a"));
    assert!(!judged.maps("/Users/me/w/out/a"));
    assert!(!judged.executes("/Users/me/w/out/a"));
    // list, metadata
    assert!(judged.lists("/Users/me/w/docs/inner"));
    assert!(!judged.reads("/Users/me/w/docs/a.md"));
    assert!(judged.looks_at("/Users/me/w/docs/a.md"));
    assert!(judged.looks_at("/Users/me/w/stat/a"));
    assert!(!judged.lists("/Users/me/w/stat"));
    // exec
    assert!(judged.executes("/usr/bin/git") && judged.looks_at("/usr/bin/git"));
    assert!(!judged.reads("/usr/bin/git"));
    assert!(judged.executes("/opt/tools/bin/x") && !judged.reads("/opt/tools/bin/x"));
    assert!(!judged.executes("/bin/sh"));
    // The program itself, under the name it was found by too.
    assert!(judged.executes("/Users/me/.local/share/agent/agent"));
    assert!(judged.reads("/Users/me/.local/share/agent/agent"));
    assert!(judged.looks_at("/Users/me/.local/bin/agent"));
    // Nothing else of the workspace, which can be entered all the same.
    assert!(judged.looks_at(HERE) && !judged.lists(HERE));
    assert!(!judged.reads("/Users/me/w/.env"));
    assert!(!judged.looks_at("/Users/me/w/.env"));
}

#[test]
fn an_agents_links_lead_to_the_alias() {
    let judged = judged(&agent(), &[1, 2]);
    let names = wiring(&[]).names();
    for name in ["sh", "bash"] {
        assert!(judged.looks_at(names.join(name).to_str().unwrap()));
    }
    assert!(judged.executes("/opt/box/bin/box"));
    assert!(!judged.reads("/opt/box/bin/box"));
    assert!(!judged.creates(names.join("git").to_str().unwrap()));
    let scratch = wiring(&[]).scratch();
    assert!(judged.creates(scratch.join("a").to_str().unwrap()));
    assert!(!judged.removes(scratch.to_str().unwrap()));
}

#[test]
fn a_denial_wins_over_every_grant_around_it() {
    let judged = judged(&agent(), &[]);
    for path in [
        "/Users/me/w/out/keep/private",
        "/Users/me/w/out/keep/private/a",
        "/System/Volumes/Data/Users/me/w/out/keep/private/a",
    ] {
        assert!(
            !judged.reads(path) && !judged.looks_at(path) && !judged.sees(path),
            "{path}"
        );
        assert!(
            !judged.writes(path) && !judged.creates(path) && !judged.removes(path),
            "{path}"
        );
        for operation in ["file-write-mode", "file-write-times", "file-write-xattr"]
            .into_iter()
            .chain(["file-link", "file-clone", "file-read-xattr", "network-bind"])
        {
            assert!(
                !judged.allows(operation, Subject::Path(path, Node::File)),
                "{operation}"
            );
        }
    }
    // Nor can it be carried away with the directory it is in.
    assert!(!judged.removes("/Users/me/w/out/keep"));
    assert!(!judged.removes("/Users/me/w/out"));
    assert!(judged.writes("/Users/me/w/out/keep/other"));
    assert!(judged.removes("/Users/me/w/out/other"));
}

#[test]
fn a_grant_of_writing_carries_nothing_but_its_six_operations() {
    let judged = judged(&tool(), &[]);
    let may = |operation| judged.allows(operation, Subject::Path("/Users/me/w/a", Node::File));
    for operation in WRITES {
        assert!(may(operation), "{operation}");
    }
    for operation in [
        "file-write-flags",
        "file-write-owner",
        "file-write-acl",
        "file-write-setugid",
    ] {
        assert!(!may(operation), "{operation}");
    }
    assert!(!judged.removes(HERE) && !judged.creates(HERE));
}

#[test]
fn credential_stores_are_refused_in_a_grant_around_them_and_unseen_without_one() {
    let judged = judged(&agent(), &[]);
    assert!(judged.reads("/Users/me/.claude/settings.json"));
    assert!(!judged.reads("/Users/me/.claude/.credentials.json"));
    assert!(!judged.sees("/Users/me/.claude/.credentials.json"));
    for path in ["/Users/me/.ssh", "/Users/me/.ssh/id", "/Users/me/Documents"] {
        assert!(!judged.sees(path) && !judged.looks_at(path), "{path}");
        let other = format!("{DATA_VOLUME}{path}");
        assert!(!judged.sees(&other), "{other}");
    }
    assert!(judged.sees("/Users/me/w/src/main.rs"));
    assert!(judged.sees("/Users/me/w") && judged.sees("/Users/me"));
    assert!(judged.sees("/usr/bin/absent"));
    let noted = plan(&agent(), &mac().mac_host()).unwrap().notes;
    assert!(noted.contains(&Note::StoreMasked(
        "/Users/me/.claude/.credentials.json".into()
    )));
}

#[test]
fn a_store_that_a_grant_names_is_given() {
    let mut spec = agent();
    spec.grants.read.push("/Users/me/.ssh".into());
    let judged = judged(&spec, &[]);
    assert!(judged.reads("/Users/me/.ssh/id") && judged.sees("/Users/me/.ssh/id"));
    assert!(!judged.reads("/Users/me/.claude/.credentials.json"));
}

#[test]
fn a_tool_looks_around_but_not_at_credentials() {
    let judged = judged(&tool(), &[]);
    assert!(judged.sees("/Users/me/Documents") && judged.looks_at("/Users/me/Documents"));
    assert!(!judged.reads("/Users/me/Documents/a"));
    assert!(!judged.sees("/Users/me/.ssh/id") && !judged.looks_at("/Users/me/.ssh/id"));
    assert!(!judged.reads("/Users/me/w/.env") && !judged.looks_at("/Users/me/w/.env"));
    assert!(judged.executes("/usr/libexec/git-core/git-status"));
    assert!(judged.executes("/Users/me/w/built") && judged.maps("/Users/me/w/built"));
    assert!(!judged.executes("/Users/me/w/.env") && !judged.maps("/Users/me/w/.env"));
}

#[test]
fn a_server_brings_its_interpreter_and_libraries() {
    let judged = judged(&server(), &[]);
    assert!(judged.executes("/opt/node/bin/node") && judged.reads("/opt/node/bin/node"));
    assert!(judged.reads("/opt/node/lib/node_modules/x.js"));
    assert!(judged.reads("/Users/me/servers/issues.js"));
    assert!(!judged.reads("/opt/node/include/x.h"));
    assert!(!judged.writes("/Users/me/servers/issues.js"));
    assert!(!judged.reads("/Users/me/w/src/main.rs"));
}

#[test]
fn the_network_is_the_ports_of_this_sandbox() {
    let judged = judged(&agent(), &[4101]);
    let connects = |host, port| judged.allows("network-outbound", Subject::Port(host, port));
    assert!(connects("localhost", 4101));
    assert!(!connects("localhost", 4102));
    assert!(!connects("example.com", 4101));
    assert!(!judged.allows("network-bind", Subject::Port("localhost", 4101)));
    // Sockets of its own, where it writes.
    let bound = |path| judged.allows("network-bind", Subject::Path(path, Node::File));
    assert!(bound("/Users/me/w/out/s") && !bound("/Users/me/w/src/s"));
    assert!(!judged.allows(
        "network-outbound",
        Subject::Path("/private/var/run/docker.sock", Node::File)
    ));
}

#[test]
fn the_system_is_what_the_role_needs() {
    let (agent, tool) = (judged(&agent(), &[]), judged(&tool(), &[]));
    let asks = |of: &Evaluator, name| of.allows("sysctl-read", Subject::Name(name));
    assert!(asks(&agent, "hw.ncpu") && asks(&tool, "hw.ncpu"));
    assert!(!asks(&agent, "net.routetable") && asks(&tool, "net.routetable"));
    assert!(!asks(&tool, "kern.bootargs"));
    let talks = |name| agent.allows("mach-lookup", Subject::Name(name));
    assert!(talks("com.apple.system.opendirectoryd.libinfo"));
    assert!(!talks("com.apple.SecurityServer") && !talks("com.apple.securityd"));
    let socket = |of: &Evaluator| of.allows("system-socket", Subject::Name("AF_ROUTE"));
    assert!(!socket(&agent) && socket(&tool));
    assert!(agent.allows("process-fork", Subject::Nothing));
    assert!(agent.allows("process-info-pidinfo", Subject::Oneself));
    assert!(!agent.allows("process-info-pidinfo", Subject::Nothing));
    assert!(!agent.allows("signal", Subject::Nothing));
    for operation in [
        "file-mount",
        "fs-snapshot-mount",
        "file-graft",
        "file-ungraft",
        "file-mknod",
    ] {
        assert!(
            !tool.allows(operation, Subject::Path("/Users/me/w/a", Node::File)),
            "{operation}"
        );
    }
}

#[test]
fn grafts_are_named_only_where_they_are_known() {
    let mut wiring = wiring(&[]);
    wiring.grafts = false;
    assert!(!text(&tool(), &wiring).contains("graft"));
}

#[test]
fn a_terminal_and_redirected_streams_are_told_apart_by_what_they_are() {
    let mut host = mac().mac_host();
    host.terminal = true;
    let mut wiring = wiring(&[]);
    wiring.streams = paths(&["/Users/me/out.log"]);
    let plan = plan(&agent(), &host).unwrap();
    let judged = Evaluator::new(&profile(&plan, &wiring).unwrap());
    let controls = |path| judged.allows("file-ioctl", Subject::Path(path, Node::File));
    assert!(controls("/dev/ttys003") && !controls("/dev/ttys") && !controls("/dev/ptmx"));
    let looks = |node| {
        judged.allows(
            "file-read-metadata",
            Subject::Path("/Users/me/out.log", node),
        )
    };
    assert!(looks(Node::File) && !looks(Node::Directory));
    assert!(!judged.reads("/Users/me/out.log"));
}

#[test]
fn a_path_cannot_write_a_rule() {
    let name = r#"/Users/me/w/x") (subpath "/") (literal "\"#;
    let fake = mac().file(&format!("{name}/a"));
    let mut spec = tool();
    spec.grants.read = vec![name.into()];
    spec.grants.write.clear();
    let plan = plan(&spec, &fake.mac_host()).unwrap();
    let judged = Evaluator::new(&profile(&plan, &wiring(&[])).unwrap());
    assert!(judged.reads(&format!("{name}/a")));
    assert!(!judged.reads("/Users/me/w/src/main.rs"));
    assert!(!judged.reads("/private/etc/master.passwd"));
}

#[test]
fn a_private_directory_with_a_mark_in_its_name_is_refused() {
    let mut wiring = wiring(&[]);
    wiring.private = "/tmp/a\nb".into();
    let plan = plan(&agent(), &mac().mac_host()).unwrap();
    assert!(matches!(
        profile(&plan, &wiring),
        Err(ProfileRefusal::Control(_))
    ));
}

#[test]
fn nested_grants_of_two_lists_add_up() {
    let mut spec = agent();
    spec.grants = Grants {
        read: paths(&["/Users/me/w"]),
        write: paths(&["/Users/me/w/out"]),
        exec: paths(&["/Users/me/w/out/keep"]),
        deny: paths(&["/Users/me/w/src"]),
        ..Grants::default()
    };
    let judged = judged(&spec, &[]);
    assert!(judged.reads("/Users/me/w/out/a") && judged.writes("/Users/me/w/out/a"));
    assert!(!judged.writes("/Users/me/w/a"));
    assert!(judged.executes("/Users/me/w/out/keep/x") && judged.maps("/Users/me/w/out/keep/x"));
    assert!(!judged.maps("/Users/me/w/out/x"));
    assert!(!judged.reads("/Users/me/w/src/main.rs"));
}

#[test]
fn a_box_program_in_a_written_tree_is_not_written() {
    let mut spec = agent();
    spec.grants = Grants {
        write: paths(&["/Users/me/w"]),
        ..Grants::default()
    };
    spec.aliases = BTreeMap::from([("/bin/sh".into(), "/Users/me/w/out/box".into())]);
    let fake = mac().program("/Users/me/w/out/box", 0o755, &[]);
    let plan = plan(&spec, &fake.mac_host()).unwrap();
    let judged = Evaluator::new(&profile(&plan, &wiring(&[])).unwrap());
    let file = Subject::Path("/Users/me/w/out/box", Node::File);
    for operation in WRITES.iter().chain(&["file-link", "file-write-flags"]) {
        assert!(!judged.allows(operation, file), "{operation}");
    }
    assert!(!judged.removes("/Users/me/w/out"));
    assert!(judged.writes("/Users/me/w/out/other"));
}

#[test]
fn refusals_of_a_mac() {
    let refused = |grants: Grants| {
        let fake = mac()
            .directory("/System/Volumes/Data")
            .directory("/private/var/db/dslocal/x")
            .directory("/Users/me/w/Src")
            .spelled("/Users/me/w/Src", "/Users/me/w/src");
        let spec = ProcessSpec { grants, ..agent() };
        plan(&spec, &fake.mac_host()).unwrap_err().to_string()
    };
    insta::assert_snapshot!(refused(Grants {
        read: paths(&[
            "/System/Volumes/Data/Users/me/w",
            "/System/Volumes",
            "/tmp/x",
            "/Users/me",
            "/Users/me/w/Src",
            "/Users",
            "/private/var/db/dslocal/x",
        ]),
        exec: paths(&["/usr/bin/sudo"]),
        ..Grants::default()
    }));
}

#[test]
fn a_plan_for_a_view_has_no_profile() {
    let spec = ProcessSpec {
        grants: Grants::default(),
        aliases: BTreeMap::new(),
        ..agent()
    };
    let plan = plan(&spec, &mac().host(7)).unwrap();
    assert_eq!(profile(&plan, &wiring(&[])), Err(ProfileRefusal::NoPaths));
}
