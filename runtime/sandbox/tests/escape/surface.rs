//! What a workload tries of the kernel, the network and other processes, and what must come of it.

use crate::expect::*;
use crate::probe;
use crate::runner::Test;
use crate::world::{ROLES, World, answers, run};
use box_sandbox::host::Host;
use box_sandbox::plan::plan;
use std::net::TcpListener;

pub const TESTS: &[Test] = &[
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
    (
        "without_landlock_the_rest_holds",
        without_landlock_the_rest_holds,
    ),
    ("no_signal_leaves", no_signal_leaves),
    (
        "the_process_gets_what_was_given",
        the_process_gets_what_was_given,
    ),
    ("every_mount_is_harmless", every_mount_is_harmless),
];

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

/// With the view and the filter alone: what Landlock would refuse a second time is refused once.
fn without_landlock_the_rest_holds() {
    let world = World::new();
    let at = |name: &str| world.text(name);
    let tries: &[Try] = &[
        (format!("read {}", at("read/file")), FINE),
        (format!("read {}", at("secret/key")), NOTHING_THERE),
        (format!("append {}", at("read/file")), NO_CHANGE),
        (
            format!("execute {} probe ids", at("work/program")),
            NO_ACCESS,
        ),
        ("memory-program 11".into(), NO_ACCESS),
        ("list /proc/1/root".into(), NO_ACCESS),
        ("read /proc/1/environ".into(), NO_ACCESS),
        ("read /proc/1/mem".into(), NO_ACCESS),
        ("read /proc/1/fd/0".into(), NO_ACCESS),
        ("read-write /proc/self/mem".into(), NO_CHANGE),
        ("kill 1 9".into(), &["ok"]),
        ("pids".into(), &["ok [1, 2]"]),
    ];
    let mut host = Host::this_machine(None);
    host.landlock = 0;
    for role in ROLES {
        let mut spec = world.spec(role, &["probe"]);
        (spec.grants.list, spec.grants.metadata) = (Vec::new(), Vec::new());
        spec.argv
            .extend(tries.iter().map(|(operation, _)| operation.clone()));
        let plan = plan(&spec, &host).unwrap();
        assert_eq!(plan.landlock, None);
        check(role, tries, &answers(&run(&plan)));
    }
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
            (format!("limit {}", libc::RLIMIT_CORE), &["ok 1 1"]),
            (
                format!("call {} 0 {} 0x1 0", libc::SYS_prlimit64, libc::RLIMIT_CORE),
                UNKNOWN,
            ),
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
