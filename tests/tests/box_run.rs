//! `box run` from end to end, with real programs: the examples, and what must hold around them.

mod box_run {
    mod examples;
}

use dogwood_tests::{has, program, workspace};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

fn box_program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| program("box-run", "box").unwrap())
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// What must be there for a box to run; a reason to skip otherwise.
fn cannot_run() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("`box run` is for Linux so far".into());
    }
    if !has("git") {
        return Some("git is not installed".into());
    }
    let probe = Command::new("unshare")
        .args(["--user", "--map-root-user", "true"])
        .output();
    match probe {
        Ok(output) if !output.status.success() && !is_root() => Some(format!(
            "user namespaces are refused here: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        _ => None,
    }
}

macro_rules! needs_a_box {
    () => {
        if let Some(reason) = cannot_run() {
            println!("skipped: {reason}");
            return;
        }
    };
}

/// A scratch folder that any user may enter, with a home of its own and a copy of the program.
struct Scratch {
    root: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Scratch {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(root.path().join("home")).unwrap();
        fs::copy(box_program(), root.path().join("box")).unwrap();
        Scratch { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.root.path()).unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn command(&self, config: &Path) -> Command {
        let mut command = Command::new(self.path("box"));
        command
            .args(["run", "--config"])
            .arg(config)
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, config: &Path) -> Output {
        self.command(config).output().unwrap()
    }

    /// A box whose agent runs `script` with the shell of the machine, in a workspace of its own.
    fn scripted(&self, policy: &str, script: &str) -> PathBuf {
        self.write("case/work/.keep", "");
        self.write("case/agent/agent.sh", script);
        self.write("case/policy.dw", policy);
        self.write(
            "case/box.toml",
            r#"
name = "case"
policy = "policy.dw"
[agent]
command = ["/bin/sh", "../agent/agent.sh"]
workspace = "work"
[agent.filesystem]
read = ["agent"]
"#,
        )
    }
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn both(output: &Output) -> String {
    format!(
        "status {:?}\n--- stdout\n{}\n--- stderr\n{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    )
}

/// The part of the agent's story under a `== ` heading.
fn chapter<'t>(story: &'t str, heading: &str) -> &'t str {
    let Some(start) = story.find(heading) else {
        panic!("no {heading:?} in {story}")
    };
    let rest = &story[start..];
    let end = rest[2..].find("\n== ").map_or(rest.len(), |end| end + 2);
    &rest[..end]
}

fn copy_example(scratch: &Scratch) -> PathBuf {
    let example = scratch.path("push-after-tests");
    copy_tree(
        &workspace().join("docs/examples/push-after-tests"),
        &example,
    );
    // What an earlier run left in the work tree is no part of the example.
    for name in ["app", "remote.git"] {
        let left = example.join("work").join(name);
        if left.exists() {
            fs::remove_dir_all(left).unwrap();
        }
    }
    example
}

fn check_the_story(output: &Output, example: &Path) {
    let story = text(&output.stdout);
    assert!(output.status.success(), "{}", both(output));

    let early = chapter(&story, "It pushes at once");
    assert!(early.contains("(exit 126)"), "{early}");
    assert!(
        chapter(&story, "The remote is still empty").lines().count() <= 3,
        "{story}"
    );

    let failing = chapter(&story, "It runs the tests, which fail");
    assert!(
        failing.contains("1 failed") && failing.contains("(exit 1)"),
        "{failing}"
    );
    assert!(failing.contains("(exit 126)"), "{failing}");

    assert!(
        chapter(&story, "It mends the bug").contains("1 passed"),
        "{story}"
    );
    let pushed = chapter(&story, "the push goes through");
    assert!(!pushed.contains("(exit"), "{pushed}");
    assert!(
        chapter(&story, "Another git add").contains("(exit 126)"),
        "{story}"
    );

    // Judge the remote with our own eyes, not the agent's.
    let log = Command::new("git")
        .args(["-c", "safe.directory=*", "log", "--format=%s", "main"])
        .current_dir(example.join("work/remote.git"))
        .output()
        .unwrap();
    assert_eq!(
        text(&log.stdout),
        "Greet the one who is named\nGreet\n",
        "{}",
        both(&log)
    );

    let denials = text(&output.stderr);
    for part in [
        "push_after_tests",
        "policy.dw:",
        "Push needs a passing run-tests",
        "shell:spawn",
    ] {
        assert!(denials.contains(part), "no {part:?} in {denials}");
    }
}

#[test]
fn the_example_lets_only_tested_commits_through() {
    needs_a_box!();
    let scratch = Scratch::new();
    let example = copy_example(&scratch);
    let output = scratch.run(&example.join("box.toml"));
    check_the_story(&output, &example);
}

#[test]
fn the_example_runs_without_privileges() {
    needs_a_box!();
    if !is_root() {
        println!("skipped: the other test runs unprivileged already");
        return;
    }
    let scratch = Scratch::new();
    let example = copy_example(&scratch);
    let owner = ["-R", "65534:65534"];
    let chown = Command::new("chown")
        .args(owner)
        .arg(scratch.path(""))
        .status()
        .unwrap();
    assert!(chown.success());
    let mut command = scratch.command(&example.join("box.toml"));
    std::os::unix::process::CommandExt::uid(&mut command, 65534);
    std::os::unix::process::CommandExt::gid(&mut command, 65534);
    let output = command.output().unwrap();
    check_the_story(&output, &example);
}

#[test]
fn a_policy_that_does_not_compile_stops_the_run_before_anything_starts() {
    needs_a_box!();
    let scratch = Scratch::new();
    let config = scratch.scripted(
        r#"permit (principal, action == Box::Action::"shell:spwan", resource);"#,
        "echo started > started",
    );
    let output = scratch.run(&config);
    assert_eq!(output.status.code(), Some(2), "{}", both(&output));
    assert!(!text(&output.stdout).contains("started"));
    let told = text(&output.stderr);
    assert!(
        told.contains("shell:spwan") && told.contains("shell:spawn"),
        "{told}"
    );

    let dogwood = program("dogwood-compiler", "dogwood").unwrap();
    let checked = Command::new(dogwood)
        .arg("check")
        .arg(scratch.path("case/policy.dw"))
        .output()
        .unwrap();
    assert_eq!(checked.status.code(), Some(2), "{}", both(&checked));
    let same = text(&checked.stderr) + text(&checked.stdout).as_str();
    for line in told
        .lines()
        .filter(|line| line.starts_with("error") || line.contains('^'))
    {
        assert!(
            same.contains(line),
            "`dogwood check` does not say {line:?}: {same}"
        );
    }
}

#[test]
fn what_no_rule_permits_is_denied() {
    needs_a_box!();
    let scratch = Scratch::new();
    let config = scratch.scripted(
        r#"@id("echo_only") permit (principal, action == Box::Action::"shell:exec", resource) when { context.input.program == "echo" };"#,
        "bash -c 'echo hello'; bash -c 'cat /etc/passwd'; echo cat=$?; bash -c 'git status'; echo git=$?; /usr/bin/id; echo id=$?; cat /etc/shadow; echo shadow=$?",
    );
    let output = scratch.run(&config);
    let said = text(&output.stdout);
    assert!(
        said.contains("hello\n") && said.contains("cat=126") && said.contains("git=126"),
        "{}",
        both(&output)
    );
    assert!(
        !said.contains("root:") && !said.contains("uid="),
        "{}",
        both(&output)
    );
    assert!(said.contains("id=127"), "{}", both(&output));
}

/// Everything a stream has said so far, read beside the test.
fn collected(mut from: impl std::io::Read + Send + 'static) -> Arc<Mutex<String>> {
    let said = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&said);
    std::thread::spawn(move || {
        let mut bytes = [0u8; 1024];
        while let Ok(n @ 1..) = from.read(&mut bytes) {
            kept.lock().unwrap().push_str(&text(&bytes[..n]));
        }
    });
    said
}

/// A policy is changed while its box runs: what is none changes nothing, and the new one knows the history.
#[test]
fn a_signal_reloads_the_policy_with_its_history() {
    needs_a_box!();
    let scratch = Scratch::new();
    let echo = r#"permit (principal, action == Box::Action::"shell:exec", resource)
when { context.input.program == "echo" };
"#;
    let after_echo = r#"@id("second") permit (principal, action == Box::Action::"shell:exec", resource)
when { context.input.program == "printf" }
when temporal { formerly within 1h Box::Action::"shell:exec"::response{ input.program: "echo", output.status: 0 } };
"#;
    let config = scratch.scripted(
        echo,
        "bash -c 'echo one'; until bash -c 'printf two' 2>&-; do :; done",
    );
    let mut child = scratch
        .command(&config)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = collected(child.stdout.take().unwrap());
    let told = collected(child.stderr.take().unwrap());
    let reload = || {
        let pid = i32::try_from(child.id()).unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGUSR1).unwrap();
    };
    let hears = |from: &Arc<Mutex<String>>, what: &str| {
        wait_until(what, || from.lock().unwrap().contains(what));
    };
    hears(&said, "one\n");
    scratch.write("case/policy.dw", "permit (principal, action, resouce);");
    reload();
    hears(&told, "the policy was not reloaded");
    assert!(told.lock().unwrap().contains("resouce"));
    assert_eq!(*said.lock().unwrap(), "one\n");
    scratch.write("case/policy.dw", &format!("{echo}{after_echo}"));
    reload();
    hears(&told, "reloaded, with its history: policy");
    hears(&said, "two");
    assert_eq!(
        child.wait().unwrap().code(),
        Some(0),
        "{}",
        told.lock().unwrap()
    );
}

fn processes_with(marker: &str) -> usize {
    let Ok(entries) = fs::read_dir("/proc") else {
        return 0;
    };
    entries
        .flatten()
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| text(line).contains(marker))
        .count()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "waited 30 s for: {what}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn killing_the_box_leaves_no_process_and_keeps_the_history() {
    needs_a_box!();
    let scratch = Scratch::new();
    // The first run writes `mark`; a second run may do so only if it does not remember the first.
    let policy = r#"
@id("shell") permit (principal, action == Box::Action::"shell:exec", resource);
@id("once") forbid (principal, action == Box::Action::"shell:exec", resource)
when { context.input.program == "printf" }
when temporal {
  formerly within 24h Box::Action::"shell:exec"::response{ input.program: "printf" }
};
"#;
    let marker = format!("dogwood-marker-{}", std::process::id());
    let config = scratch.scripted(
        policy,
        &format!("bash -c 'printf first'; echo \" status=$?\"; while :; do : {marker}; done"),
    );
    let agent = scratch.path("case/agent/agent.sh");
    let mut child = scratch
        .command(&config)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut said = String::new();
    wait_until("the first command", || {
        let mut byte = [0u8; 1];
        if std::io::Read::read(&mut stdout, &mut byte).unwrap() == 1 {
            said.push(byte[0] as char);
        }
        said.contains("status=")
    });
    let agent_name = agent.file_name().unwrap().to_string_lossy().into_owned();
    assert!(processes_with(&agent_name) > 0);
    child.kill().unwrap();
    child.wait().unwrap();
    let box_path = scratch.path("box").to_string_lossy().into_owned();
    wait_until("the box's processes to be gone", || {
        processes_with(&box_path) == 0
    });
    wait_until("the agent to be gone", || {
        !fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            fs::read_link(entry.path().join("cwd"))
                .is_ok_and(|cwd| cwd.starts_with(scratch.path("case")))
        })
    });

    scratch.write(
        "case/agent/agent.sh",
        "bash -c 'printf second'; echo \" status=$?\"",
    );
    let again = scratch.run(&config);
    let told = text(&again.stdout);
    assert!(
        told.contains("status=126") && !told.contains("second"),
        "{}",
        both(&again)
    );
    assert!(text(&again.stderr).contains("once"), "{}", both(&again));
}
