//! Real programs at work in a sandbox. One that is not installed is skipped, and says so.

use crate::runner::Test;
use crate::world::{World, installed, run};
use box_sandbox::launch::ExitStatus;
use box_sandbox::spec::Role;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub const TESTS: &[Test] = &[("tools_run", tools_run), ("agents_run", agents_run)];

/// The `PATH` of this test, with the interpreter behind a version manager's shims found first.
fn search_path() -> String {
    static FOUND: OnceLock<String> = OnceLock::new();
    FOUND
        .get_or_init(|| {
            let path = std::env::var("PATH").unwrap_or_default();
            let shown = std::process::Command::new("python3")
                .args(["-c", "import sys; print(sys.executable)"])
                .output();
            let shown =
                shown.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
            let shown = shown.unwrap_or_default();
            match Path::new(&shown).parent() {
                Some(directory) if directory.is_absolute() => {
                    format!("{}:{path}", directory.display())
                }
                _ => path,
            }
        })
        .clone()
}

/// Runs an installed program with `work` as its directory; nothing when it is not installed.
fn program(
    world: &World,
    role: Role,
    name: &str,
    arguments: &[&str],
    exec: &[PathBuf],
) -> Option<String> {
    let search = search_path();
    let Some(program) = installed(name, &search) else {
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
    spec.env = BTreeMap::from([("PATH".into(), search), ("HOME".into(), world.text("work"))]);
    spec.grants.exec.extend(exec.iter().cloned());
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
    if let Some(text) = run("python3", &["-c", PYTHON]) {
        assert_eq!(text, "42 2");
    }
    run("make", &["--version"]);
}

fn agents_run() {
    let world = World::new();
    if let Some(text) = program(&world, Role::Agent, "node", &["-e", NODE], &[]) {
        assert_eq!(text, "42 1");
    }
    // An agent names the tree its interpreter lives in.
    let home = installed("python3", &search_path())
        .and_then(|path| Some(path.parent()?.parent()?.join("lib")));
    let outside = home.filter(|path| path.is_dir() && !path.starts_with("/usr"));
    let exec = Vec::from_iter(outside);
    if let Some(text) = program(&world, Role::Agent, "python3", &["-c", PYTHON], &exec) {
        assert_eq!(text, "42 2");
    }
    if let Some(text) = program(&world, Role::Agent, "bash", &["-c", "echo $((6*7))"], &[]) {
        assert_eq!(text, "42");
    }
}
