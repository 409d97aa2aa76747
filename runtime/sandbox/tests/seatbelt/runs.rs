//! The tests: an agent, a tool and a server started, signalled and ended through the supervisor.

use box_sandbox::host::{Host, Platform};
use box_sandbox::launch::Step;
use box_sandbox::macos::{Child, launch_with};
use box_sandbox::plan::{SandboxPlan, plan};
use box_sandbox::spec::{Grants, ProcessSpec, Role};
use box_sandbox::{ExitStatus, LaunchError};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, pipe};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

type Test = (&'static str, fn());

const TESTS: &[Test] = &[
    ("an_agent_runs_with_its_listeners_and_links", an_agent_runs),
    ("a_tool_runs_in_its_directory", a_tool_runs),
    ("a_server_answers_over_its_streams", a_server_answers),
    ("a_signal_reaches_the_program", a_signal_reaches),
    ("nothing_the_program_left_behind_lives_on", nothing_lives_on),
    ("the_sandbox_ends_with_the_box", ends_with_the_box),
    ("a_replaced_grant_does_not_start", a_replaced_grant),
    ("what_cannot_start_says_why", what_cannot_start),
    ("a_root_callers_program_takes_its_ids", takes_ids),
    (
        "the_programs_environment_is_not_the_supervisors",
        environments,
    ),
];

pub fn main(arguments: &[String]) -> ! {
    let filters: Vec<&String> = arguments
        .iter()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let list = arguments.iter().any(|argument| argument == "--list");
    let chosen: Vec<&Test> = TESTS
        .iter()
        .filter(|(name, _)| filters.is_empty() || filters.iter().any(|f| name.contains(f.as_str())))
        .collect();
    if list {
        for (name, _) in chosen {
            println!("{name}: test");
        }
        std::process::exit(0);
    }
    println!("\nrunning {} tests", chosen.len());
    let mut failed = 0;
    for (name, test) in &chosen {
        let passed = std::panic::catch_unwind(test).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed += usize::from(!passed);
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {} passed; {failed} failed",
        chosen.len() - failed
    );
    std::process::exit(i32::from(failed > 0))
}

/// A directory with the stand-in, a workspace, and what a test puts there.
struct World {
    place: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let place = tempfile::Builder::new()
            .prefix("seatbelt")
            .tempdir_in("/var/tmp")
            .unwrap();
        let world = World { place };
        std::fs::create_dir(world.at("work")).unwrap();
        let own = std::env::current_exe().unwrap();
        for name in ["sandbox-exec", "box"] {
            std::os::unix::fs::symlink(&own, world.at(name)).unwrap();
        }
        world
    }

    fn at(&self, name: &str) -> PathBuf {
        std::fs::canonicalize(self.place.path()).unwrap().join(name)
    }

    /// A shell script as a process of `role`.
    fn spec(&self, name: &str, role: Role, script: &str) -> ProcessSpec {
        let shell = std::fs::canonicalize("/bin/sh").unwrap();
        ProcessSpec {
            name: name.into(),
            role,
            argv: ["sh", "-c", script, "sh", "an argument"]
                .map(String::from)
                .to_vec(),
            program: shell,
            cwd: self.at("work"),
            workspace: self.at("work"),
            env: BTreeMap::from([
                ("PATH".into(), "/usr/bin:/bin".into()),
                (
                    "PROFILE_COPY".into(),
                    self.at("profile").display().to_string(),
                ),
            ]),
            grants: Grants {
                read: vec![self.at("work")],
                ..Grants::default()
            },
            aliases: BTreeMap::new(),
            listeners: Vec::new(),
        }
    }

    fn start(&self, spec: &ProcessSpec) -> Running {
        self.launch(&planned(spec)).unwrap()
    }

    fn launch(&self, plan: &SandboxPlan) -> Result<Running, LaunchError> {
        let (input, their_input) = pipe().map(|(read, write)| (write, read)).unwrap();
        let (output, their_output) = pipe().unwrap();
        let errors = OwnedFd::from(File::options().write(true).open("/dev/null").unwrap());
        let own = std::env::current_exe().unwrap();
        let stdio = [their_input, their_output, errors];
        launch_with(&self.at("sandbox-exec"), plan, stdio, &own).map(|child| Running {
            child,
            input: Some(File::from(input)),
            output: BufReader::new(File::from(output)),
        })
    }
}

fn planned(spec: &ProcessSpec) -> SandboxPlan {
    let mut host = Host::this_machine(None);
    host.platform = Platform::MacOs;
    plan(spec, &host).unwrap()
}

struct Running {
    child: Child,
    input: Option<File>,
    output: BufReader<File>,
}

impl Running {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().into()
    }

    fn rest(mut self) -> (String, ExitStatus) {
        drop(self.input.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        (text, self.child.wait().unwrap())
    }
}

fn an_agent_runs() {
    let world = World::new();
    let script = r#"echo "$BOX_BROKER"; echo "$SHELL"; command -v git; readlink "$SHELL"
        echo "$TMPDIR"; echo x > "$TMPDIR/a" && echo scratch; echo "$#:$1"; exit 7"#;
    let mut spec = world.spec("agent", Role::Agent, script);
    let own = std::fs::canonicalize(std::env::current_exe().unwrap()).unwrap();
    spec.aliases = BTreeMap::from([
        ("/nowhere/bash".into(), own.clone()),
        ("/nowhere/git".into(), own.clone()),
    ]);
    spec.env.insert("SHELL".into(), "/nowhere/bash".into());
    spec.listeners = vec!["BOX_BROKER".into()];
    let running = world.start(&spec);
    let port = running.child.listeners[0].local_addr().unwrap().port();
    let (text, status) = running.rest();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(status, ExitStatus::Code(7));
    assert_eq!(lines[0], format!("127.0.0.1:{port}"));
    let names = Path::new(lines[1]).parent().unwrap();
    assert_eq!(lines[1], names.join("bash").display().to_string());
    assert_eq!(lines[2], names.join("git").display().to_string());
    assert_eq!(lines[3], own.display().to_string());
    assert_eq!(lines[4], names.with_file_name("tmp").display().to_string());
    assert_eq!(lines[5..], ["scratch", "1:an argument"]);
    // The profile opens this port and no other, and the start left nothing behind.
    let profile = std::fs::read_to_string(world.at("profile")).unwrap();
    let ports: Vec<&str> = profile
        .lines()
        .filter(|line| line.contains("localhost"))
        .collect();
    assert_eq!(ports.len(), 1);
    assert!(ports[0].contains(&format!("localhost:{port}\"")));
    assert!(!names.exists());
}

fn a_tool_runs() {
    let world = World::new();
    let mut spec = world.spec("tool.sh", Role::Leaf, "pwd; env; ls /dev/fd | wc -l");
    spec.grants.write = vec![world.at("work")];
    let (text, status) = world.start(&spec).rest();
    assert_eq!(status, ExitStatus::Code(0));
    assert_eq!(text.lines().next(), world.at("work").to_str());
    let names: Vec<&str> = text
        .lines()
        .skip(1)
        .filter_map(|l| l.split_once('='))
        .map(|l| l.0)
        .collect();
    let mut names: Vec<&str> = names.into_iter().filter(|name| *name != "_").collect();
    names.sort_unstable();
    let own = ["OLDPWD", "PWD", "SHLVL"];
    names.retain(|name| !own.contains(name));
    assert_eq!(names, ["PATH", "PROFILE_COPY", "TMPDIR"]);
    // Three streams, and the directory that `ls` reads.
    assert_eq!(text.lines().last().map(str::trim), Some("4"));
    let profile = std::fs::read_to_string(world.at("profile")).unwrap();
    assert!(profile.contains("(allow process-exec*)"));
}

fn a_server_answers() {
    let world = World::new();
    let script = "while read -r line; do echo \"got $line\"; done; echo end";
    let mut running = world.start(&world.spec("mcp.echo", Role::Leaf, script));
    for word in ["one", "two"] {
        use std::io::Write;
        writeln!(running.input.as_mut().unwrap(), "{word}").unwrap();
        assert_eq!(running.line(), format!("got {word}"));
    }
    assert_eq!(running.child.try_wait().unwrap(), None);
    assert_eq!(running.rest(), ("end\n".into(), ExitStatus::Code(0)));
}

fn a_signal_reaches() {
    let world = World::new();
    let script = "trap 'echo caught; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let mut running = world.start(&world.spec("agent", Role::Agent, script));
    assert_eq!(running.line(), "ready");
    let signaller = running.child.signaller();
    signaller.signal(Signal::SIGTERM as i32).unwrap();
    assert_eq!(running.line(), "caught");
    assert_eq!(running.child.wait().unwrap(), ExitStatus::Code(3));
    // Nobody is left to take it, which is no fault.
    signaller.kill().unwrap();
    let mut killed = world.start(&world.spec("agent", Role::Agent, "echo ready; exec sleep 1000"));
    assert_eq!(killed.line(), "ready");
    killed.child.kill().unwrap();
    assert_eq!(killed.child.wait().unwrap(), ExitStatus::Signal(9));
}

fn nothing_lives_on() {
    let world = World::new();
    let mut running =
        world.start(&world.spec("tool.sh", Role::Leaf, "sleep 1000 & echo $!; exit 5"));
    let left: i32 = running.line().parse().unwrap();
    assert_eq!(running.child.wait().unwrap(), ExitStatus::Code(5));
    gone(left);
    let mut dropped = world.start(&world.spec("tool.sh", Role::Leaf, "echo $$; exec sleep 1000"));
    let left: i32 = dropped.line().parse().unwrap();
    drop(dropped);
    gone(left);
}

/// Fails unless the process ends: a killed process is there until whoever inherits it has looked.
fn gone(pid: i32) {
    for _ in 0..2000 {
        let zombie = std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .is_ok_and(|stat| stat.contains(") Z "));
        if zombie || kill(Pid::from_raw(pid), None).is_err() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("{pid} lives on");
}

/// A box of its own process, which says the program's pid and waits to be killed.
pub fn hold() -> ! {
    let world = World::new();
    let mut running =
        world.start(&world.spec("agent", Role::Agent, "sleep 1000 & echo $! $$; wait"));
    println!("{} {}", running.line(), world.place.path().display());
    let _ = running.child.wait();
    std::process::exit(0)
}

fn ends_with_the_box() {
    let world = World::new();
    let mut held = Command::new(world.at("box"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(held.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let mut words = line.split_whitespace();
    let mut pid = || words.next().unwrap().parse::<i32>().unwrap();
    let (background, shell) = (pid(), pid());
    assert!(kill(Pid::from_raw(shell), None).is_ok());
    held.kill().unwrap();
    held.wait().unwrap();
    gone(shell);
    gone(background);
    std::fs::remove_dir_all(words.next().unwrap()).unwrap();
}

fn a_replaced_grant() {
    let world = World::new();
    let plan = planned(&world.spec("tool.sh", Role::Leaf, "true"));
    std::fs::rename(world.at("work"), world.at("old")).unwrap();
    std::fs::create_dir(world.at("work")).unwrap();
    match world.launch(&plan).map(|_| ()) {
        Err(LaunchError::Step {
            step: Step::Identity,
            path,
            ..
        }) => {
            assert_eq!(path, Some(world.at("work")));
        }
        other => panic!("{other:?}"),
    }
}

fn what_cannot_start() {
    let world = World::new();
    let plan = planned(&world.spec("tool.sh", Role::Leaf, "true"));
    std::fs::remove_file(world.at("sandbox-exec")).unwrap();
    match world.launch(&plan).map(|_| ()) {
        Err(LaunchError::Step {
            step: Step::Execute,
            path,
            error,
        }) => {
            assert_eq!(path, Some(world.at("sandbox-exec")));
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
        }
        other => panic!("{other:?}"),
    }
    // A directory among the streams would be a way past the profile.
    let streams = [
        OwnedFd::from(File::open("/").unwrap()),
        OwnedFd::from(File::options().write(true).open("/dev/null").unwrap()),
        OwnedFd::from(File::options().write(true).open("/dev/null").unwrap()),
    ];
    let own = std::env::current_exe().unwrap();
    let refused = launch_with(&world.at("sandbox-exec"), &plan, streams, &own).map(|_| ());
    assert!(matches!(
        refused,
        Err(LaunchError::Step {
            step: Step::StandardStreams,
            ..
        })
    ));
    // A plan for a view of mounts has no profile.
    let mut host = Host::this_machine(None);
    host.platform = Platform::Linux;
    let other = box_sandbox::plan::plan(&world.spec("tool.sh", Role::Leaf, "true"), &host).unwrap();
    assert!(matches!(
        world.launch(&other).map(|_| ()),
        Err(LaunchError::Profile(_))
    ));
}

/// A root caller's program is who the configuration says, with nothing of root's.
fn takes_ids() {
    use std::os::unix::fs::PermissionsExt;
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let world = World::new();
    let everybody = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(world.place.path(), everybody).unwrap();
    let stand_in = world.at("sandbox-exec");
    std::fs::remove_file(&stand_in).unwrap();
    std::fs::copy(std::env::current_exe().unwrap(), &stand_in).unwrap();
    let script = "id -u; id -G; echo x > \"$TMPDIR/a\" && echo scratch";
    let mut spec = world.spec("tool.sh", Role::Leaf, script);
    spec.env.remove("PROFILE_COPY");
    let mut host = Host::this_machine(None);
    host.platform = Platform::MacOs;
    host.run_as = Some((12345, 12346));
    let running = world.launch(&plan(&spec, &host).unwrap()).unwrap();
    let (text, status) = running.rest();
    assert_eq!(
        (text.as_str(), status),
        ("12345\n12346\nscratch\n", ExitStatus::Code(0))
    );
}

/// What the program is given must not change what the supervisor, which nothing confines, loads.
fn environments() {
    let world = World::new();
    let script = "echo $PPID; read line; exit 0";
    let mut spec = world.spec("tool.sh", Role::Leaf, script);
    spec.env.insert("LD_PRELOAD".into(), "/nowhere.so".into());
    spec.env.insert("SECRET".into(), "kept".into());
    let mut running = world.start(&spec);
    let supervisor = running.line();
    if cfg!(target_os = "linux") {
        for part in ["environ", "cmdline"] {
            let text = std::fs::read(format!("/proc/{supervisor}/{part}")).unwrap();
            let text = String::from_utf8_lossy(&text).into_owned();
            assert!(
                !text.contains("LD_PRELOAD") && !text.contains("kept"),
                "{text}"
            );
        }
    }
    assert_eq!(running.rest().1, ExitStatus::Code(0));
}
