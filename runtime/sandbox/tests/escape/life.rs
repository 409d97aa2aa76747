//! How sandboxes begin and end: statuses, signals, listeners, refusals, and nothing left behind.

use crate::runner::Test;
use crate::world::{ROLES, World, finish, run, start};
use box_sandbox::launch::{ExitStatus, LaunchError, Step};
use box_sandbox::plan::Mount;
use box_sandbox::spec::Role;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    (
        "a_status_is_the_workloads_own",
        a_status_is_the_workloads_own,
    ),
    (
        "a_signal_reaches_the_workload",
        a_signal_reaches_the_workload,
    ),
    ("dropping_ends_everything", dropping_ends_everything),
    (
        "nothing_outlives_the_workload",
        nothing_outlives_the_workload,
    ),
    (
        "nothing_outlives_a_killed_parent",
        nothing_outlives_a_killed_parent,
    ),
    (
        "the_thread_that_launched_may_end",
        the_thread_that_launched_may_end,
    ),
    (
        "listeners_are_handed_out_in_order",
        listeners_are_handed_out_in_order,
    ),
    (
        "a_swapped_path_is_not_mounted",
        a_swapped_path_is_not_mounted,
    ),
    (
        "a_source_behind_a_new_link_is_not_opened",
        a_source_behind_a_new_link_is_not_opened,
    ),
    ("nothing_is_made_on_the_host", nothing_is_made_on_the_host),
    (
        "what_cannot_be_enforced_does_not_start",
        what_cannot_be_enforced_does_not_start,
    ),
    (
        "a_program_that_cannot_be_executed_says_so",
        a_program_that_cannot_be_executed_says_so,
    ),
    ("a_directory_is_no_stream", a_directory_is_no_stream),
    (
        "a_shared_terminal_cannot_be_typed_into",
        a_shared_terminal_cannot_be_typed_into,
    ),
    (
        "root_takes_the_ids_it_is_given",
        root_takes_the_ids_it_is_given,
    ),
    (
        "starting_is_quick_enough_to_print",
        starting_is_quick_enough_to_print,
    ),
];

fn a_status_is_the_workloads_own() {
    let world = World::new();
    for role in ROLES {
        for (operation, status) in [
            ("exit 0", ExitStatus::Code(0)),
            ("exit 42", ExitStatus::Code(42)),
            ("exit 255", ExitStatus::Code(255)),
            ("die 15", ExitStatus::Signal(15)),
            ("die 9", ExitStatus::Signal(9)),
            ("die 6", ExitStatus::Signal(6)),
            ("die 34", ExitStatus::Signal(34)),
        ] {
            assert_eq!(
                run(&world.plan(&world.spec(role, &["probe", operation]))).status,
                status,
                "{operation}"
            );
        }
    }
}

fn a_signal_reaches_the_workload() {
    let world = World::new();
    for (signal, status) in [
        (15, ExitStatus::Signal(15)),
        (2, ExitStatus::Signal(2)),
        (9, ExitStatus::Signal(9)),
    ] {
        let running =
            start(&world.plan(&world.spec(Role::Agent, &["probe", "sleep 60000"]))).unwrap();
        running.0.signal(signal).unwrap();
        let signaller = running.0.signaller();
        assert_eq!(finish(running).status, status);
        signaller.signal(15).unwrap();
    }
    let running = start(&world.plan(&world.spec(Role::Leaf, &["probe", "sleep 60000"]))).unwrap();
    running.0.kill().unwrap();
    assert_eq!(finish(running).status, ExitStatus::Signal(9));
}

/// Processes of the host whose arguments hold `marker`.
fn marked(marker: &str) -> usize {
    let holds = |path: &Path| {
        std::fs::read(path.join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(marker))
    };
    let own = std::process::id().to_string();
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| {
            entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.parse::<u32>().is_ok() && name != own)
        })
        .filter(|entry| holds(&entry.path()))
        .count()
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "waited in vain until {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn marker(name: &str) -> String {
    format!("marker-{name}-{}", std::process::id())
}

/// A workload with two processes that have left its session.
fn with_daemons(marker: &str) -> [String; 3] {
    [
        "probe".into(),
        format!("daemon {marker}"),
        "sleep 600000".into(),
    ]
}

fn dropping_ends_everything() {
    let (world, marker) = (World::new(), marker("drop"));
    let operations = with_daemons(&marker);
    let running =
        start(&world.plan(&world.spec(Role::Agent, &operations.each_ref().map(String::as_str))))
            .unwrap();
    until("the daemons run", || marked(&marker) >= 3);
    drop(running);
    assert_eq!(marked(&marker), 0);
}

fn nothing_outlives_the_workload() {
    let (world, marker) = (World::new(), marker("outlive"));
    let operations = [
        "probe".to_string(),
        format!("daemon {marker}"),
        "sleep 100".into(),
    ];
    let (mut child, _out, _err) =
        start(&world.plan(&world.spec(Role::Leaf, &operations.each_ref().map(String::as_str))))
            .unwrap();
    assert_eq!(child.wait().unwrap(), ExitStatus::Code(0));
    assert_eq!(marked(&marker), 0);
    assert_eq!(child.try_wait().unwrap(), Some(ExitStatus::Code(0)));
}

/// A trusted process of its own: launches a workload with daemons and waits.
pub fn hold(arguments: &[String]) -> ! {
    let world = World::new();
    let operations = with_daemons(&arguments[0]);
    let running =
        start(&world.plan(&world.spec(Role::Agent, &operations.each_ref().map(String::as_str))))
            .unwrap();
    println!("{}", world.path("").display());
    let ended = finish(running);
    panic!("the workload ended by itself: {ended:?}")
}

fn nothing_outlives_a_killed_parent() {
    let marker = marker("kill");
    let own = std::env::current_exe().unwrap();
    let mut holder = Command::new(own)
        .args(["hold", &marker])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut place = String::new();
    BufReader::new(holder.stdout.take().unwrap())
        .read_line(&mut place)
        .unwrap();
    // The holder, the workload and its two daemons name the marker.
    until("the daemons run", || marked(&marker) >= 4);
    holder.kill().unwrap();
    holder.wait().unwrap();
    until("every process of the sandbox is gone", || {
        marked(&marker) == 0
    });
    std::fs::remove_dir_all(place.trim()).unwrap();
}

fn the_thread_that_launched_may_end() {
    let world = World::new();
    let plan = world.plan(&world.spec(Role::Agent, &["probe", "sleep 200", "say alive"]));
    let running = std::thread::spawn(move || start(&plan).unwrap())
        .join()
        .unwrap();
    assert_eq!(finish(running).stdout, "ok \nalive\nok \n");
}

fn listeners_are_handed_out_in_order() {
    let world = World::new();
    let mut spec = world.spec(Role::Agent, &["probe", "greet SECOND", "greet FIRST"]);
    spec.listeners = vec!["FIRST".into(), "SECOND".into()];
    let mut running = start(&world.plan(&spec)).unwrap();
    let [first, second] = <[_; 2]>::try_from(std::mem::take(&mut running.0.listeners)).unwrap();
    for listener in [second, first] {
        let mut text = String::new();
        listener
            .accept()
            .unwrap()
            .0
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "hello");
    }
    assert_eq!(finish(running).stdout, "ok \nok \n");
}

fn failed_step(error: &LaunchError) -> Option<Step> {
    match error {
        LaunchError::Step { step, .. } => Some(*step),
        _ => None,
    }
}

fn a_swapped_path_is_not_mounted() {
    let world = World::new();
    let plan = world.plan(&world.spec(Role::Agent, &["probe"]));
    std::fs::rename(world.path("read"), world.path("was-read")).unwrap();
    std::fs::rename(world.path("secret"), world.path("read")).unwrap();
    let error = start(&plan).map(drop).unwrap_err();
    assert_eq!(failed_step(&error), Some(Step::Identity), "{error}");
    assert!(error.to_string().contains("/read"), "{error}");
}

fn a_source_behind_a_new_link_is_not_opened() {
    let world = World::new();
    let plan = world.plan(&world.spec(Role::Agent, &["probe"]));
    std::fs::rename(world.path("read"), world.path("was-read")).unwrap();
    std::os::unix::fs::symlink(world.path("was-read"), world.path("read")).unwrap();
    let error = start(&plan).map(drop).unwrap_err();
    assert!(
        matches!(failed_step(&error), Some(Step::OpenSource | Step::Identity)),
        "{error}"
    );
}

/// A plan that would create something inside a granted tree fails instead.
fn nothing_is_made_on_the_host() {
    let world = World::new();
    let mut plan = world.plan(&world.spec(Role::Agent, &["probe"]));
    for mount in [
        Mount::Directory {
            path: world.path("work/made-by-mistake"),
        },
        Mount::File {
            path: world.path("work/made-by-mistake"),
            contents: "x".into(),
        },
    ] {
        plan.view.push(mount);
        assert!(start(&plan).is_err());
        assert!(!world.path("work/made-by-mistake").exists());
        plan.view.pop();
    }
}

fn what_cannot_be_enforced_does_not_start() {
    let world = World::new();
    let spec = world.spec(Role::Agent, &["probe"]);
    let mut plan = world.plan(&spec);
    if let Some(landlock) = &mut plan.landlock {
        landlock.abi = 99;
        let error = start(&plan).map(drop).unwrap_err();
        assert_eq!(failed_step(&error), Some(Step::Landlock), "{error}");
        assert!(error.to_string().contains("Landlock is needed"), "{error}");
    }
    let mut plan = world.plan(&spec);
    plan.identity.uid += 1;
    let error = start(&plan).map(drop).unwrap_err();
    assert_eq!(failed_step(&error), Some(Step::TakeIdentity), "{error}");
    let mut plan = world.plan(&spec);
    plan.cwd = "/nowhere".into();
    let error = start(&plan).map(drop).unwrap_err();
    assert_eq!(failed_step(&error), Some(Step::WorkingDirectory), "{error}");
    // The same plan untouched does start.
    assert_eq!(run(&world.plan(&spec)).status, ExitStatus::Code(0));
}

fn a_program_that_cannot_be_executed_says_so() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let script = world.path("work/script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut spec = world.spec(Role::Agent, &[]);
    spec.program = script;
    let error = start(&world.plan(&spec)).map(drop).unwrap_err();
    assert_eq!(failed_step(&error), Some(Step::Execute), "{error}");
}

fn a_directory_is_no_stream() {
    let world = World::new();
    let plan = world.plan(&world.spec(Role::Leaf, &["probe"]));
    let open = |path: &Path| OwnedFd::from(std::fs::File::open(path).unwrap());
    let streams = [
        open(&world.path("secret")),
        open(Path::new("/dev/null")),
        open(Path::new("/dev/null")),
    ];
    let own = std::env::current_exe().unwrap();
    let error = box_sandbox::launch(&plan, streams, &own)
        .map(drop)
        .unwrap_err();
    assert_eq!(failed_step(&error), Some(Step::StandardStreams), "{error}");
}

/// The operator's terminal handed in as standard input: it works as one, and nothing can be put into it.
fn a_shared_terminal_cannot_be_typed_into() {
    let world = World::new();
    for terminal in [true, false] {
        let pty = nix::pty::openpty(None, None).unwrap();
        let plan = {
            let mut host = box_sandbox::host::Host::this_machine(None);
            host.terminal = terminal;
            let operations = [
                "probe",
                "is-terminal",
                "terminal 0x5412",
                "status NoNewPrivs",
            ];
            box_sandbox::plan::plan(&world.spec(Role::Agent, &operations), &host).unwrap()
        };
        let (mut stdout, out) = std::io::pipe().unwrap();
        let err = OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let own = std::env::current_exe().unwrap();
        let mut child = box_sandbox::launch(&plan, [pty.slave, out.into(), err], &own).unwrap();
        let mut text = String::new();
        stdout.read_to_string(&mut text).unwrap();
        assert_eq!(text, "ok true\nEPERM\nok 1\n");
        assert_eq!(child.wait().unwrap(), ExitStatus::Code(0));
    }
}

fn root_takes_the_ids_it_is_given() {
    use box_sandbox::host::Host;
    use std::os::unix::fs::PermissionsExt;
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: not root");
        return;
    }
    let world = World::new();
    // The configured user must be able to reach what is granted.
    for name in ["", "read", "work", "only", "list", "meta"] {
        std::fs::set_permissions(world.path(name), std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let mut host = Host::this_machine(None);
    host.run_as = Some((4242, 4243));
    let own = world.path("read/program");
    let mut spec = world.spec(
        Role::Leaf,
        &[
            "probe",
            "ids",
            &format!("write {}", world.text("work/owned")),
        ],
    );
    // The program must be readable by that user too.
    spec.program = own;
    let plan = box_sandbox::plan::plan(&spec, &host).unwrap();
    let ended = run(&plan);
    assert_eq!(ended.stdout, "ok 4242 4242 4243 4243\nok \n", "{ended:?}");
    let owner =
        std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(world.path("work/owned")).unwrap());
    assert_eq!(owner, 4242);
}

/// Prints what one launch costs; asserts nothing about time.
fn starting_is_quick_enough_to_print() {
    let world = World::new();
    for role in ROLES {
        let spec = world.spec(role, &["probe"]);
        let planning = Instant::now();
        let plan = world.plan(&spec);
        let planning = planning.elapsed();
        let mut times: Vec<Duration> = (0..50)
            .map(|_| {
                let start = Instant::now();
                assert_eq!(run(&plan).status, ExitStatus::Code(0));
                start.elapsed()
            })
            .collect();
        times.sort();
        println!(
            "{role:?}: plan {planning:?}, launch to exit median {:?}, fastest {:?}, 95th percentile {:?}",
            times[25], times[0], times[47]
        );
    }
}
