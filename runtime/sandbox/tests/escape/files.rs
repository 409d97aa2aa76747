//! What a workload tries of the file system, and what must come of it, as an agent and as a tool.

use crate::expect::*;
use crate::probe;
use crate::runner::Test;
use crate::world::{ROLES, World, run};
use box_sandbox::spec::Role;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub const TESTS: &[Test] = &[
    ("granted_paths_work", granted_paths_work),
    ("ungranted_paths_are_absent", ungranted_paths_are_absent),
    (
        "the_same_reads_succeed_outside",
        the_same_reads_succeed_outside,
    ),
    (
        "read_grants_cannot_be_changed",
        read_grants_cannot_be_changed,
    ),
    (
        "list_metadata_and_write_are_apart",
        list_metadata_and_write_are_apart,
    ),
    (
        "nothing_written_can_be_executed",
        nothing_written_can_be_executed,
    ),
    ("masks_hold", masks_hold),
    (
        "links_and_climbs_lead_nowhere",
        links_and_climbs_lead_nowhere,
    ),
    (
        "no_set_id_bit_and_no_node_reaches_the_host",
        no_set_id_bit_and_no_node_reaches_the_host,
    ),
    (
        "an_agent_runs_only_its_programs",
        an_agent_runs_only_its_programs,
    ),
    ("an_alias_is_shown_and_runs", an_alias_is_shown_and_runs),
    (
        "an_ungranted_workspace_can_be_entered",
        an_ungranted_workspace_can_be_entered,
    ),
];

fn granted_paths_work() {
    for role in ROLES {
        granted_paths_work_as(role);
    }
}

fn granted_paths_work_as(role: Role) {
    let world = World::new();
    let at = |name: &str| world.text(name);
    expect_as(
        &world,
        role,
        &[
            (
                format!("read {}", at("read/file")),
                &["ok read/file contents"],
            ),
            (format!("list {}", at("read")), FINE),
            (format!("read {}", at("read/sub/file")), FINE),
            (format!("write {}", at("work/made")), FINE),
            (format!("read {}", at("work/made")), &["ok written"]),
            (format!("mkdir {}", at("work/tree")), FINE),
            (
                format!("rename {} {}", at("work/made"), at("work/tree/moved")),
                FINE,
            ),
            (format!("symlink anything {}", at("work/tree/link")), FINE),
            (format!("unlink {}", at("work/tree/link")), FINE),
            (format!("chmod 600 {}", at("work/tree/moved")), FINE),
            ("write /tmp/scratch".into(), FINE),
            ("read /tmp/scratch".into(), &["ok written"]),
            ("write /dev/shm/scratch".into(), FINE),
            ("write /dev/null".into(), FINE),
            ("read /dev/null".into(), FINE),
            ("list /dev/fd".into(), FINE),
            ("user".into(), &["ok box"]),
            ("directory".into(), &[&format!("ok {}", at("work"))]),
        ],
    );
    let made = std::fs::read_to_string(world.path("work/tree/moved")).unwrap();
    assert_eq!(made, "written", "the host sees what was written");
    assert!(
        !Path::new("/tmp/scratch").exists(),
        "scratch is the sandbox's own"
    );
}

/// Paths outside every grant that exist on any Linux host, and the world's own secrets.
fn secrets(world: &World) -> Vec<String> {
    let mut tries: Vec<String> = ["secret/key", "secret", "enter"]
        .iter()
        .map(|name| format!("stat {}", world.text(name)))
        .collect();
    tries.push(format!("read {}", world.text("secret/key")));
    tries.push(format!("reference {}", world.text("secret/key")));
    for path in [
        "/root",
        "/home",
        "/sys",
        "/opt",
        "/etc/shadow",
        "/etc/hostname",
        "/var/log",
        "/var/tmp/../lib",
        "/proc/cpuinfo",
        "/dev/kmsg",
    ] {
        tries.push(format!("stat {path}"));
    }
    tries
}

fn ungranted_paths_are_absent() {
    let world = World::new();
    let tries: Vec<Try> = secrets(&world)
        .into_iter()
        .map(|operation| (operation, NOTHING_THERE))
        .collect();
    expect(&world, &tries);
}

fn the_same_reads_succeed_outside() {
    let world = World::new();
    for operation in secrets(&world) {
        let words: Vec<&str> = operation.split(' ').collect();
        let there = probe::perform(&words).is_ok() || !Path::new(words[1]).exists();
        assert!(
            there,
            "{operation} fails outside too, so its failing inside shows nothing"
        );
    }
    assert!(probe::perform(&["read", &world.text("secret/key")]).is_ok());
}

fn read_grants_cannot_be_changed() {
    let world = World::new();
    let at = |name: &str| world.text(name);
    expect(
        &world,
        &[
            (format!("append {}", at("read/file")), NO_CHANGE),
            (format!("read-write {}", at("read/file")), NO_CHANGE),
            (format!("truncate {}", at("read/file")), NO_CHANGE),
            (format!("write {}", at("read/new")), NO_CHANGE),
            (format!("mkdir {}", at("read/new")), NO_CHANGE),
            (format!("unlink {}", at("read/file")), NO_CHANGE),
            (
                format!("rename {} {}", at("read/file"), at("read/other")),
                NO_CHANGE,
            ),
            (
                format!("rename {} {}", at("read/file"), at("work/other")),
                &["EXDEV", "EROFS", "EACCES"],
            ),
            (format!("chmod 777 {}", at("read/file")), NO_CHANGE),
            (format!("write-now {}", at("read/fifo")), NO_ACCESS),
            (
                format!("link {} {}", at("read/file"), at("work/hard")),
                &["EXDEV", "EACCES"],
            ),
            ("mkdir /new".into(), NO_CHANGE),
            ("write /etc/passwd".into(), NO_CHANGE),
            ("write /usr/lib/new".into(), NO_CHANGE),
            ("write /proc/self/comm".into(), NO_CHANGE),
            (
                format!("rename {} {}", at("work"), at("aside")),
                &["EBUSY", "EROFS", "EACCES"],
            ),
        ],
    );
    assert!(world.path("read/file").exists() && !world.path("read/new").exists());
}

fn list_metadata_and_write_are_apart() {
    let world = World::new();
    let at = |name: &str| world.text(name);
    expect(
        &world,
        &[
            (format!("list {}", at("list")), &["ok file"]),
            (format!("stat {}", at("list/file")), FINE),
            (format!("read {}", at("list/file")), NO_ACCESS),
            (format!("write {}", at("list/file")), NO_CHANGE),
            (format!("write {}", at("only/made")), FINE),
            (format!("read {}", at("only/made")), NO_ACCESS),
            (format!("read-write {}", at("only/made")), NO_ACCESS),
            (format!("list {}", at("only")), NO_ACCESS),
            ("list /".into(), NO_ACCESS),
        ],
    );
    expect_as(
        &world,
        Role::Agent,
        &[
            (format!("stat {}", at("meta/file")), FINE),
            (format!("read {}", at("meta/file")), NO_ACCESS),
            (format!("list {}", at("meta")), NO_ACCESS),
            (format!("chmod 777 {}", at("meta/file")), NO_CHANGE),
        ],
    );
}

fn nothing_written_can_be_executed() {
    let world = World::new();
    let at = |name: &str| world.text(name);
    let loader = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    let loader = loader
        .into_iter()
        .find(|path| Path::new(path).exists())
        .unwrap();
    expect(
        &world,
        &[
            (
                format!("execute {} probe ids", at("work/program")),
                NO_ACCESS,
            ),
            (
                format!("execute {} probe ids", at("read/program")),
                NO_ACCESS,
            ),
            (format!("map-code {}", at("work/program")), NO_PERMISSION),
            (format!("map-code {}", at("read/program")), NO_PERMISSION),
            // The loader runs and cannot map the program.
            (
                format!("execute {loader} {} probe ids", at("work/program")),
                &["ok Some(127)"],
            ),
            ("memory-program 1".into(), NO_PERMISSION),
            ("memory-program 11".into(), NO_ACCESS),
            (
                format!("call {} 3 0 0 0 0x1000", libc::SYS_execveat),
                NO_PERMISSION,
            ),
            ("execute /proc/self/exe probe ids".into(), FINE),
        ],
    );
    // The controls: outside, each of them runs.
    assert!(probe::perform(&["execute", &at("work/program"), "probe", "ids"]).is_ok());
    assert!(
        probe::perform(&["execute", loader, &at("work/program"), "probe", "ids"])
            .is_ok_and(|text| text.starts_with("Some(0)"))
    );
    assert!(probe::perform(&["memory-program", "1"]).is_ok());
}

fn masks_hold() {
    let world = World::new();
    let at = |name: &str| world.text(name);
    expect(
        &world,
        &[
            (format!("list {}", at("work/keep/hidden")), &["ok"]),
            (
                format!("read {}", at("work/keep/hidden/key")),
                NOTHING_THERE,
            ),
            (format!("write {}", at("work/keep/hidden/new")), NO_CHANGE),
            (format!("read {}", at("work/masked")), &["ok"]),
            (format!("append {}", at("work/masked")), NO_CHANGE),
            (format!("unlink {}", at("work/masked")), &["EBUSY"]),
            (
                format!(
                    "rename {} {}",
                    at("work/keep/hidden"),
                    at("work/keep/aside")
                ),
                &["EBUSY"],
            ),
            (
                format!("rename {} {}", at("work/keep/hidden"), at("work/aside")),
                &["EBUSY", "EXDEV"],
            ),
            (
                format!("rename {} {}", at("work/keep"), at("work/aside")),
                &["EBUSY"],
            ),
            (format!("call {} 0 0", libc::SYS_umount2), NO_PERMISSION),
            (format!("write {}", at("work/keep/plain")), FINE),
        ],
    );
    assert_eq!(
        std::fs::read_to_string(world.path("work/keep/hidden/key")).unwrap(),
        "hidden"
    );
}

fn links_and_climbs_lead_nowhere() {
    let world = World::new();
    let at = |name: &str| world.text(name);
    expect(
        &world,
        &[
            (format!("read {}", at("work/link")), NOTHING_THERE),
            (format!("read {}/../secret/key", at("work")), NOTHING_THERE),
            (
                format!("read /proc/self/root{}", at("secret/key")),
                NOTHING_THERE,
            ),
            (
                format!("read /proc/self/cwd/../secret/key{}", ""),
                NOTHING_THERE,
            ),
            (format!("read /..{}", at("secret/key")), NOTHING_THERE),
            (
                format!("symlink {} {}", at("secret"), at("work/tunnel")),
                FINE,
            ),
            (format!("read {}", at("work/tunnel/key")), NOTHING_THERE),
            (format!("unlink {}", at("work/tunnel")), FINE),
            (
                format!("call {} -100 0 0 0 0", libc::SYS_name_to_handle_at),
                NO_PERMISSION,
            ),
            (
                format!("call {} 3 0 0", libc::SYS_open_by_handle_at),
                NO_PERMISSION,
            ),
            (format!("call {} -100 0 0 24", libc::SYS_openat2), UNKNOWN),
        ],
    );
}

fn no_set_id_bit_and_no_node_reaches_the_host() {
    let world = World::new();
    let at = |name: &str| world.text(name);
    expect(
        &world,
        &[
            (format!("chmod 4755 {}", at("work/program")), NO_PERMISSION),
            (format!("chmod 2755 {}", at("work/program")), NO_PERMISSION),
            (format!("create 4755 {}", at("work/planted")), NO_PERMISSION),
            (format!("create 2755 {}", at("work/planted")), NO_PERMISSION),
            (format!("node 20600 {}", at("work/device")), NO_PERMISSION),
            (format!("node 60600 {}", at("work/device")), NO_PERMISSION),
            (
                format!("node 140600 {}", at("work/planted-socket")),
                NO_PERMISSION,
            ),
            (format!("node 104755 {}", at("work/planted")), NO_PERMISSION),
            (format!("capability {}", at("work/program")), NO_PERMISSION),
            (format!("create 755 {}", at("work/plain")), FINE),
        ],
    );
    for name in ["planted", "device", "planted-socket"] {
        assert!(!world.path(&format!("work/{name}")).exists());
    }
}

fn an_agent_runs_only_its_programs() {
    let world = World::new();
    expect_as(
        &world,
        Role::Agent,
        &[
            ("execute /usr/bin/id".into(), NOTHING_THERE),
            ("execute /bin/sh -c :".into(), NOTHING_THERE),
            ("list /usr/bin".into(), &["ENOENT", "EACCES"]),
        ],
    );
    expect_as(
        &world,
        Role::Leaf,
        &[("execute /usr/bin/id -u".into(), FINE)],
    );
    // A program of a loader directory: there to be mapped, not to be executed.
    let inside = walk(Path::new("/usr/lib"), 3)
        .into_iter()
        .find(|path| runs(path));
    match inside {
        Some(program) => expect_as(
            &world,
            Role::Agent,
            &[(format!("execute {}", program.display()), NO_ACCESS)],
        ),
        None => println!("skipped: no program below /usr/lib"),
    }
}

fn runs(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let Ok(found) = path.symlink_metadata() else {
        return false;
    };
    let elf = std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF"));
    found.is_file()
        && found.permissions().mode() & 0o7111 == 0o111
        && elf
        && !path.to_string_lossy().contains(".so")
}

fn walk(directory: &Path, depth: usize) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if directory && depth > 0 {
            found.extend(walk(&entry.path(), depth - 1));
        } else if !directory {
            found.push(entry.path());
        }
    }
    found
}

fn an_alias_is_shown_and_runs() {
    let world = World::new();
    let own = std::env::current_exe().unwrap();
    let mut spec = world.spec(
        Role::Agent,
        &[
            "probe",
            "execute /bin/sh probe ids",
            "execute /usr/bin/tool probe ids",
            "write /bin/sh",
        ],
    );
    spec.aliases = BTreeMap::from([
        ("/bin/sh".into(), own.clone()),
        ("/usr/bin/tool".into(), own),
    ]);
    let ended = run(&world.plan(&spec));
    let answers: Vec<&str> = ended.stdout.lines().collect();
    assert!(
        answers.len() == 3
            && answers[0].starts_with("ok Some(0)")
            && answers[1].starts_with("ok Some(0)"),
        "{ended:?}"
    );
    assert!(NO_CHANGE.contains(&answers[2]), "{ended:?}");
}

fn an_ungranted_workspace_can_be_entered() {
    let world = World::new();
    for role in ROLES {
        let mut spec = world.spec(
            role,
            &[
                "probe",
                "directory",
                "list .",
                "write new",
                &format!("read {}", world.text("enter/grant/file")),
            ],
        );
        std::fs::create_dir_all(world.path("enter/grant")).unwrap();
        std::fs::write(world.path("enter/grant/file"), "inside").unwrap();
        std::fs::write(world.path("enter/other"), "hidden").unwrap();
        (spec.workspace, spec.cwd) = (world.path("enter"), world.path("enter"));
        spec.grants.read.push(world.path("enter/grant"));
        let ended = run(&world.plan(&spec));
        let answers: Vec<&str> = ended.stdout.lines().collect();
        assert_eq!(
            answers.first(),
            Some(&format!("ok {}", world.text("enter")).as_str()),
            "{ended:?}"
        );
        assert_eq!(answers.get(1), Some(&"EACCES"), "{ended:?}");
        assert!(
            answers
                .get(2)
                .is_some_and(|answer| NO_CHANGE.contains(answer)),
            "{ended:?}"
        );
        assert_eq!(answers.get(3), Some(&"ok inside"), "{ended:?}");
    }
}
