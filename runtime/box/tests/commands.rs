//! The built program from outside: a box with an open policy, and what its agent sees and its operator is told.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

struct Scene {
    scratch: tempfile::TempDir,
}

const BOX: &str = r#"
name = "scene"
policy = "policy.dw"
[agent]
command = ["/bin/sh", "-c"]
workspace = "project"
[tool.cat]
command = ["cat"]
[tool.sleep]
command = ["sleep"]
"#;

const POLICY: &str = r#"
@id("all")
permit (principal, action, resource);

@id("no_rm")
@description("Nothing is removed here.")
forbid (principal, action == Box::Action::"shell:exec", resource)
when { context.input.program == "rm" };
"#;

impl Scene {
    fn new() -> Scene {
        let scratch = tempfile::tempdir().unwrap();
        let scene = Scene { scratch };
        std::fs::create_dir(scene.path("project")).unwrap();
        scene.write("box.toml", BOX);
        scene.write("policy.dw", POLICY);
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().canonicalize().unwrap().join(name)
    }

    fn home(&self) -> String {
        let home = self.scratch.path().canonicalize().unwrap();
        home.display().to_string()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_box"));
        command
            .args(words)
            .current_dir(self.scratch.path())
            .env_clear()
            .env("HOME", self.home())
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null());
        command
    }

    /// What the agent's `sh -c` prints, and how the box exits.
    fn agent(&self, script: &str) -> String {
        let output = self
            .command(&["run", "--config", "box.toml", "--", script])
            .output()
            .unwrap();
        self.shown(&output)
    }

    fn start(&self, script: &str) -> Child {
        let mut command = self.command(&["run", "--config", "box.toml", "--", script]);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Both streams without the box's own lines, and the status.
    fn shown(&self, output: &Output) -> String {
        // What is said before the workload starts, warnings of the policy among it, is tested elsewhere.
        let told_all = String::from_utf8_lossy(&output.stderr);
        let told_agent = told_all
            .split_once("starting workload\n")
            .map_or(&*told_all, |(_, rest)| rest);
        let text = format!("{}{told_agent}", String::from_utf8_lossy(&output.stdout));
        let text = text.replace(&self.home(), "HOME");
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("box: ") || told(line));
        let lines: Vec<&str> = lines.collect();
        format!("{}\nexit {:?}", lines.join("\n"), output.status.code())
    }
}

/// What the shell checkpoint tells its agent.
fn told(line: &str) -> bool {
    line.contains(" denied: ") || line.contains(" no tool runs ")
}

fn soon(what: impl Fn() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(30);
    while Instant::now() < until {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    line
}

/// Whether any process has `word` on its command line.
fn running(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .map(|process| process.path().join("cmdline"))
        .any(|file| {
            std::fs::read(file).is_ok_and(|line| {
                line.split(|b| *b == 0)
                    .any(|argument| argument == word.as_bytes())
            })
        })
}

fn wait(mut child: Child) -> Option<i32> {
    child.wait().unwrap().code()
}

#[test]
fn an_alias_is_a_shell() {
    let scene = Scene::new();
    scene.write("project/script.sh", "#!/bin/bash\necho \"$0 $1\"\n");
    let report = [
        r#"bash -c 'echo $0 $1' name one; sh -lc 'exit 7'; echo $?"#,
        r#"printf 'a\nb\n' | bash -c cat; printf 'c\n' | zsh -c /usr/bin/cat"#,
        r#"printf '1\n2\n' | while read x; do bash -c "echo got $x"; done"#,
        r#"printf 'echo read $1\n' | bash -s one"#,
        r#"bash missing.sh; echo $?; bash -z 2>/dev/null; echo $?"#,
        r#"bash -c 'echo out; echo err >&2' 2>/dev/null"#,
        r#"bash -euo pipefail -c 'false | true; echo not here'; echo $?"#,
        r#"BOX_BROKER=127.0.0.1:1 bash -c true; echo $?"#,
        r#"bash -c 'rm -r x'; echo $?"#,
        r#"bash -c '/usr/bin/id'; echo $?"#,
        r#"exit 5"#,
        r#"kill -KILL $$"#,
    ]
    .map(|script| format!("$ {script}\n{}", scene.agent(script)));
    insta::assert_snapshot!("an_alias_is_a_shell", report.join("\n\n"));
}

#[test]
fn signals_reach_the_workload() {
    let scene = Scene::new();
    let mut child = scene.start("echo up; bash -c '/usr/bin/sleep 401'");
    assert_eq!(first_line(&mut child), "up\n");
    assert!(soon(|| running("401")));
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
    assert_eq!(wait(child), Some(130));
    assert!(!running("401"));

    let mut child = scene.start("trap '' TERM; echo up; while :; do bash -c 'sleep 402'; done");
    assert_eq!(first_line(&mut child), "up\n");
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(wait(child), Some(137));
}

#[test]
fn a_killed_box_leaves_nothing_running_and_its_history_whole() {
    let scene = Scene::new();
    let mut child = scene.start("echo up; bash -c '/usr/bin/sleep 403'");
    assert_eq!(first_line(&mut child), "up\n");
    assert!(soon(|| running("403")));
    child.kill().unwrap();
    wait(child);
    assert!(soon(|| !running("403")));
    let output = scene
        .command(&["run", "--config", "box.toml", "--", "true"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("1 request of an earlier run had no end"),
        "{told}"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_box_runs_once_at_a_time() {
    let scene = Scene::new();
    let mut child = scene.start("echo up; bash -c 'sleep 404'");
    assert_eq!(first_line(&mut child), "up\n");
    let second = scene
        .command(&["run", "--config", "box.toml", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&second.stderr).contains("already running"));
    child.kill().unwrap();
    wait(child);
}

#[test]
fn what_is_rejected_starts_nothing() {
    let scene = Scene::new();
    scene.write(
        "bad.dw",
        "permit (principal, action == Box::Action::\"shell:spwan\", resource);\n",
    );
    scene.write("policy.toml", &BOX.replace("policy.dw", "bad.dw"));
    scene.write("misspelt.toml", &BOX.replace("[agent]", "[agnt]"));
    scene.write(
        "grants.toml",
        &format!("{BOX}[agent.filesystem]\nread = [\"/etc\", \"~\"]\n"),
    );
    let mut report = Vec::new();
    for file in [
        "policy.toml",
        "misspelt.toml",
        "grants.toml",
        "missing.toml",
    ] {
        for verb in ["check", "run"] {
            let output = scene.command(&[verb, "--config", file]).output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr).replace(&scene.home(), "HOME");
            if verb == "check" {
                report.push(format!("{told}exit {:?}", output.status.code()));
            } else {
                assert_eq!(
                    report.last(),
                    Some(&format!("{told}exit {:?}", output.status.code()))
                );
            }
        }
    }
    insta::assert_snapshot!("rejected", report.join("\n\n"));
    assert!(!scene.path(".local").exists());
}
