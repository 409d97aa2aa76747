//! What a workload tries, and what must come of it, as an agent and as a tool.

use crate::probe;
use crate::runner::Test;
use crate::world::{ROLES, World, installed, run};
use box_sandbox::launch::ExitStatus;
use box_sandbox::spec::Role;
use std::collections::BTreeMap;
use std::net::TcpListener;
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
    ("proc_shows_the_sandbox_alone", proc_shows_the_sandbox_alone),
    ("kernel_calls_are_refused", kernel_calls_are_refused),
    (
        "sockets_are_internet_or_nothing",
        sockets_are_internet_or_nothing,
    ),
    ("no_network_but_its_own", no_network_but_its_own),
    (
        "the_terminal_cannot_be_typed_into",
        the_terminal_cannot_be_typed_into,
    ),
    ("no_signal_leaves", no_signal_leaves),
    (
        "the_process_gets_what_was_given",
        the_process_gets_what_was_given,
    ),
    ("every_mount_is_harmless", every_mount_is_harmless),
    (
        "an_agent_runs_only_its_programs",
        an_agent_runs_only_its_programs,
    ),
    ("an_alias_is_shown_and_runs", an_alias_is_shown_and_runs),
    (
        "an_ungranted_workspace_can_be_entered",
        an_ungranted_workspace_can_be_entered,
    ),
    ("tools_run", tools_run),
    ("agents_run", agents_run),
];

const NOTHING_THERE: &[&str] = &["ENOENT"];
const NO_CHANGE: &[&str] = &["EROFS", "EACCES"];
const NO_PERMISSION: &[&str] = &["EPERM"];
const NO_ACCESS: &[&str] = &["EACCES"];
const UNKNOWN: &[&str] = &["ENOSYS"];
const FINE: &[&str] = &["ok"];

type Try<'a> = (String, &'a [&'a str]);

/// Each operation in one sandbox of each role; each answer begins with one of those expected.
fn expect(world: &World, tries: &[Try]) {
    for role in ROLES {
        expect_as(world, role, tries);
    }
}

fn expect_as(world: &World, role: Role, tries: &[Try]) {
    let operations: Vec<String> = tries
        .iter()
        .map(|(operation, _)| operation.clone())
        .collect();
    let answers = world.probe(role, &operations);
    assert_eq!(answers.len(), tries.len(), "{answers:#?}");
    let mut wrong = Vec::new();
    for ((operation, expected), answer) in tries.iter().zip(&answers) {
        let word = answer.split(' ').next().unwrap_or_default();
        if !expected.contains(&answer.trim()) && !expected.contains(&word) {
            wrong.push(format!(
                "{operation}: expected one of {expected:?}, got {answer}"
            ));
        }
    }
    assert!(wrong.is_empty(), "as {role:?}: {wrong:#?}");
}

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

fn proc_shows_the_sandbox_alone() {
    let world = World::new();
    let host = std::process::id();
    expect(
        &world,
        &[
            ("pids".into(), &["ok [1, 2]"]),
            (format!("stat /proc/{host}"), NOTHING_THERE),
            ("list /proc/1/root".into(), NO_ACCESS),
            ("read /proc/1/environ".into(), NO_ACCESS),
            ("read /proc/1/mem".into(), NO_ACCESS),
            ("read /proc/1/fd/0".into(), NO_ACCESS),
            ("read-write /proc/self/mem".into(), NO_CHANGE),
            ("stat /proc/kcore".into(), NOTHING_THERE),
            ("stat /proc/sysrq-trigger".into(), NOTHING_THERE),
            ("stat /proc/sys/kernel/core_pattern".into(), NOTHING_THERE),
            ("stat /proc/keys".into(), NOTHING_THERE),
            ("host".into(), &["ok box"]),
        ],
    );
}

fn kernel_calls_are_refused() {
    let world = World::new();
    let refused = [
        libc::SYS_mount,
        libc::SYS_umount2,
        libc::SYS_pivot_root,
        libc::SYS_chroot,
        libc::SYS_fsopen,
        libc::SYS_fsmount,
        libc::SYS_open_tree,
        libc::SYS_move_mount,
        libc::SYS_mount_setattr,
        libc::SYS_setns,
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_pidfd_getfd,
        libc::SYS_kcmp,
        libc::SYS_keyctl,
        libc::SYS_add_key,
        libc::SYS_request_key,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
        libc::SYS_io_uring_register,
        libc::SYS_seccomp,
        libc::SYS_landlock_create_ruleset,
        libc::SYS_fanotify_init,
        libc::SYS_memfd_secret,
        libc::SYS_syslog,
        libc::SYS_reboot,
        libc::SYS_init_module,
        libc::SYS_kexec_load,
        libc::SYS_swapon,
        libc::SYS_quotactl,
        libc::SYS_acct,
        libc::SYS_clock_settime,
        libc::SYS_sethostname,
        libc::SYS_setgroups,
        457,
        467,
    ];
    let mut tries: Vec<Try> = refused
        .iter()
        .map(|number| (format!("call {number}"), NO_PERMISSION))
        .collect();
    for flag in [
        0x2_0000,
        0x200_0000,
        0x400_0000,
        0x800_0000,
        0x1000_0000,
        0x2000_0000,
        0x4000_0000,
    ] {
        tries.push((format!("clone {flag}"), NO_PERMISSION));
        tries.push((format!("call {} {flag}", libc::SYS_unshare), NO_PERMISSION));
    }
    tries.push(("clone 0".into(), FINE));
    tries.push((format!("call {} 0 88", libc::SYS_clone3), UNKNOWN));
    tries.push(("call 9999".into(), UNKNOWN));
    tries.push((format!("call {} 0 0", libc::SYS_personality), FINE));
    tries.push((
        format!("call {} 0x0440000", libc::SYS_personality),
        NO_PERMISSION,
    ));
    tries.push((format!("call {} 22 2 0", libc::SYS_prctl), NO_PERMISSION));
    tries.push((format!("call {} 35 1 0", libc::SYS_prctl), NO_PERMISSION));
    tries.push((
        format!("call {} 0x59616d61 -1", libc::SYS_prctl),
        NO_PERMISSION,
    ));
    tries.push((format!("call {} 4242", libc::SYS_setuid), NO_PERMISSION));
    tries.push((
        format!("call {} 4242 4242 4242", libc::SYS_setresgid),
        NO_PERMISSION,
    ));
    tries.push((format!("call {} -1 -1 -1", libc::SYS_setresuid), FINE));
    #[cfg(target_arch = "x86_64")]
    {
        tries.push(("killed-by-32-bit-call".into(), &["ok signal 31"]));
        // The x32 number of getpid.
        tries.push((format!("call {}", 0x4000_0000 + libc::SYS_getpid), UNKNOWN));
        for number in [
            libc::SYS_iopl,
            libc::SYS_ioperm,
            libc::SYS_modify_ldt,
            libc::SYS_uselib,
        ] {
            tries.push((format!("call {number}"), NO_PERMISSION));
        }
    }
    expect(&world, &tries);
}

fn sockets_are_internet_or_nothing() {
    let world = World::new();
    let [stream, datagram, raw, sequenced] = [1, 2, 3, 5];
    let socket =
        |family: i32, kind: i32, protocol: i32| format!("socket {family} {kind} {protocol}");
    expect(
        &world,
        &[
            (socket(libc::AF_INET, stream, 0), FINE),
            (socket(libc::AF_INET, datagram, 0), FINE),
            (
                socket(
                    libc::AF_INET6,
                    stream | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
                    6,
                ),
                FINE,
            ),
            (socket(libc::AF_NETLINK, raw, 0), FINE),
            (socket(libc::AF_INET, raw, 1), NO_PERMISSION),
            (
                socket(libc::AF_INET, raw | libc::SOCK_CLOEXEC, 255),
                NO_PERMISSION,
            ),
            (socket(libc::AF_INET6, raw, 58), NO_PERMISSION),
            (socket(libc::AF_INET, datagram, 1), NO_PERMISSION),
            (socket(libc::AF_INET, stream, 262), NO_PERMISSION),
            (socket(libc::AF_PACKET, raw, 3), NO_PERMISSION),
            (socket(libc::AF_UNIX, stream, 0), NO_PERMISSION),
            (socket(libc::AF_UNIX, datagram, 0), NO_PERMISSION),
            (socket(libc::AF_VSOCK, stream, 0), NO_PERMISSION),
            (socket(38, sequenced, 0), NO_PERMISSION),
            (socket(libc::AF_NETLINK, raw, 9), NO_PERMISSION),
            (socket(libc::AF_NETLINK, raw, 16), NO_PERMISSION),
            (socket(31, stream, 0), NO_PERMISSION),
            (format!("pair {} {stream}", libc::AF_UNIX), FINE),
            (
                format!("pair {} {}", libc::AF_UNIX, stream | libc::SOCK_CLOEXEC),
                FINE,
            ),
            (format!("pair {} {datagram}", libc::AF_UNIX), NO_PERMISSION),
            (
                format!("pair {} {}", libc::AF_UNIX, datagram | libc::SOCK_CLOEXEC),
                NO_PERMISSION,
            ),
            (format!("pair {} {stream}", libc::AF_INET), NO_PERMISSION),
        ],
    );
}

fn no_network_but_its_own() {
    let world = World::new();
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = host.local_addr().unwrap();
    assert!(probe::perform(&["connect", &host.to_string()]).is_ok());
    expect(
        &world,
        &[
            ("connect 192.0.2.1:80".into(), &["ENETUNREACH"]),
            ("connect 169.254.169.254:80".into(), &["ENETUNREACH"]),
            ("connect 10.0.0.1:22".into(), &["ENETUNREACH"]),
            (
                "connect [2001:db8::1]:80".into(),
                &["ENETUNREACH", "EADDRNOTAVAIL"],
            ),
            (format!("connect {host}"), &["ECONNREFUSED"]),
            ("interfaces".into(), &["ok lo"]),
            ("serve".into(), FINE),
        ],
    );
}

fn the_terminal_cannot_be_typed_into() {
    let world = World::new();
    let requests = ["0x5412", "0x541c", "0x5423", "0x541d", "0x4b49"];
    let tries: Vec<Try> = requests
        .iter()
        .map(|request| (format!("terminal {request}"), NO_PERMISSION))
        .collect();
    expect(&world, &tries);
}

fn no_signal_leaves() {
    let world = World::new();
    let mut bystander = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["probe", "sleep 60000"])
        .spawn()
        .unwrap();
    expect(
        &world,
        &[
            (format!("kill {} 9", bystander.id()), &["ESRCH"]),
            (format!("kill {} 0", std::process::id()), &["ESRCH"]),
            ("kill 1 9".into(), &["ok", "EPERM"]),
            ("kill 1 19".into(), &["ok", "EPERM"]),
            ("pids".into(), &["ok [1, 2]"]),
        ],
    );
    assert!(bystander.try_wait().unwrap().is_none());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

fn the_process_gets_what_was_given() {
    let world = World::new();
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let (secret, _kept) = std::io::pipe().unwrap();
    // A descriptor that is not closed on exec, as a careless caller has it.
    nix::fcntl::fcntl(
        &secret,
        nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()),
    )
    .unwrap();
    let none = "ok 0000000000000000";
    expect(
        &world,
        &[
            ("environment".into(), &[r#"ok [("PLAIN", "1")]"#]),
            ("arguments".into(), &[r#"ok Some("probe-name")"#]),
            ("descriptors".into(), &["ok [0, 1, 2]"]),
            ("umask".into(), &["ok 22"]),
            (format!("limit {}", libc::RLIMIT_CORE), &["ok 0 0"]),
            (format!("limit {}", libc::RLIMIT_NPROC), &["ok 4096 4096"]),
            ("ids".into(), &[&format!("ok {uid} {uid} {gid} {gid}")]),
            ("status NoNewPrivs".into(), &["ok 1"]),
            ("status Seccomp".into(), &["ok 2"]),
            ("status CapEff".into(), &[none]),
            ("status CapPrm".into(), &[none]),
            ("status CapBnd".into(), &[none]),
            ("status CapAmb".into(), &[none]),
            ("status CapInh".into(), &[none]),
            ("signals-default".into(), &["ok 0 0000000000000000"]),
            // A second execution regains nothing.
            ("execute /proc/self/exe probe status CapEff".into(), FINE),
        ],
    );
}

fn every_mount_is_harmless() {
    let world = World::new();
    expect(&world, &[("mounts".into(), &["ok"])]);
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

/// Runs an installed program with `work` as its directory; nothing when it is not installed.
fn program(
    world: &World,
    role: Role,
    name: &str,
    arguments: &[&str],
    read: &[PathBuf],
) -> Option<String> {
    let Some(program) = installed(name) else {
        println!("skipped: {name} is not installed or not readable by this user");
        return None;
    };
    let mut spec = world.spec(role, &[]);
    spec.argv = [&[name], arguments]
        .concat()
        .into_iter()
        .map(String::from)
        .collect();
    spec.program = program;
    spec.env = BTreeMap::from([
        ("PATH".into(), std::env::var("PATH").unwrap()),
        ("HOME".into(), world.text("work")),
    ]);
    match role {
        Role::Agent => spec.grants.exec.extend(read.iter().cloned()),
        Role::Leaf => {}
    }
    let ended = run(&world.plan(&spec));
    assert_eq!(
        ended.status,
        ExitStatus::Code(0),
        "{name} {arguments:?}: {ended:?}"
    );
    Some(ended.stdout.trim().to_string())
}

const NODE: &str = "
const os = require('os'), fs = require('fs'), { Worker } = require('worker_threads'), { execFileSync } = require('child_process');
os.userInfo(); os.networkInterfaces(); fs.writeFileSync('node.txt', 'x');
const child = execFileSync(process.execPath, ['-e', 'console.log(6*7)']).toString().trim();
new Worker('require(\"worker_threads\").parentPort.postMessage(1)', { eval: true }).on('message', n => {
  const server = require('net').createServer().listen(0, '127.0.0.1', () => { console.log(child, n); server.close(); });
});";

const PYTHON: &str = "
import os, socket, subprocess, threading, math, json, tempfile, select, sys
t = threading.Thread(target=lambda: None); t.start(); t.join()
out = subprocess.run([sys.executable, '-c', 'print(6*7)'], capture_output=True, text=True)
s = socket.socket(); s.bind(('127.0.0.1', 0)); a, b = socket.socketpair()
open('python.txt', 'w').write('x'); tempfile.mkdtemp()
print(out.stdout.strip(), math.floor(2.5), out.stderr)";

fn tools_run() {
    let world = World::new();
    let run = |name: &str, arguments: &[&str]| program(&world, Role::Leaf, name, arguments, &[]);
    if let Some(text) = run(
        "bash",
        &[
            "-c",
            "set -o pipefail; for i in 1 2 3; do echo $i; done | sort -r | head -1; cat <(echo sub) <<< here; echo $((6*7)) > /dev/stdout",
        ],
    ) {
        assert_eq!(text, "3\nsub\n42");
    }
    if let Some(text) = run("git", &["init", "--quiet", "repo"]) {
        assert_eq!(text, "");
        std::fs::write(world.path("work/repo/file"), "x").unwrap();
        run("git", &["-C", "repo", "add", "."]);
        run(
            "git",
            &[
                "-C",
                "repo",
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b",
                "commit",
                "--quiet",
                "-m",
                "one",
            ],
        );
        assert_eq!(
            run("git", &["-C", "repo", "log", "--format=%s"]).as_deref(),
            Some("one")
        );
    }
    if let Some(text) = run("node", &["-e", NODE]) {
        assert_eq!(text, "42 1");
    }
    for python in pythons() {
        assert_eq!(
            run(&python, &["-c", PYTHON]).unwrap_or("42 2".into()),
            "42 2"
        );
    }
    run("make", &["--version"]);
}

/// The interpreter behind a version manager's shims, when there is one.
fn pythons() -> Vec<String> {
    let shim = installed("python3")
        .is_some_and(|path| path.ends_with("python3") && path.to_string_lossy().contains("shims"));
    if !shim {
        return vec!["python3".into()];
    }
    let found = std::process::Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output();
    let found = found
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string())
        .unwrap_or_default();
    let directory = Path::new(&found)
        .parent()
        .map(|path| path.display().to_string())
        .unwrap_or_default();
    // A search path that finds the interpreter first; tests run one after another in one thread.
    let path = std::env::var("PATH").unwrap_or_default();
    unsafe_set_path(&format!("{directory}:{path}"));
    vec!["python3".into()]
}

#[allow(unsafe_code)]
fn unsafe_set_path(path: &str) {
    // Nothing else runs: the runner has one thread, and the spawner's never reads the environment.
    unsafe { std::env::set_var("PATH", path) }
}

fn agents_run() {
    let world = World::new();
    if let Some(text) = program(&world, Role::Agent, "node", &["-e", NODE], &[]) {
        assert_eq!(text, "42 1");
    }
    for python in pythons() {
        // An agent names the tree its interpreter lives in.
        let home = installed(&python).and_then(|path| Some(path.parent()?.parent()?.join("lib")));
        let outside = home.filter(|path| path.is_dir() && !path.starts_with("/usr"));
        let text = program(
            &world,
            Role::Agent,
            &python,
            &["-c", PYTHON],
            &Vec::from_iter(outside),
        );
        assert_eq!(text.unwrap_or("42 2".into()), "42 2");
    }
    if let Some(text) = program(&world, Role::Agent, "bash", &["-c", "echo $((6*7))"], &[]) {
        assert_eq!(text, "42");
    }
}
