//! A host with trees to grant and secrets to reach for, and sandboxes in it.

use box_sandbox::host::Host;
use box_sandbox::launch::{ExitStatus, LaunchError};
use box_sandbox::plan::{SandboxPlan, plan};
use box_sandbox::spec::{Grants, ProcessSpec, Role};
use box_sandbox::{Child, launch};
use std::collections::BTreeMap;
use std::fs;
use std::io::{PipeReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub const ROLES: [Role; 2] = [Role::Agent, Role::Leaf];

pub struct World {
    root: TempDir,
    _socket: UnixListener,
}

/// How a workload ended and what it wrote.
#[derive(Debug)]
#[allow(dead_code, reason = "shown when an assertion fails")]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl World {
    pub fn new() -> World {
        // Not below `/tmp`, which every sandbox has of its own.
        let root = tempfile::Builder::new()
            .prefix("world")
            .tempdir_in("/var/tmp")
            .unwrap();
        let at = |name: &str| root.path().join(name);
        for name in [
            "work/keep/hidden",
            "read/sub",
            "list",
            "only",
            "secret",
            "enter",
            "meta",
        ] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for name in [
            "read/file",
            "read/sub/file",
            "list/file",
            "secret/key",
            "work/masked",
            "meta/file",
        ] {
            fs::write(at(name), format!("{name} contents")).unwrap();
        }
        fs::write(at("work/keep/hidden/key"), "hidden").unwrap();
        let own = std::env::current_exe().unwrap();
        for name in ["work/program", "read/program"] {
            fs::copy(&own, at(name)).unwrap();
            fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        symlink(at("secret/key"), at("work/link")).unwrap();
        nix::unistd::mkfifo(
            &at("read/fifo"),
            nix::sys::stat::Mode::from_bits_truncate(0o666),
        )
        .unwrap();
        let socket = UnixListener::bind(at("read/socket")).unwrap();
        World {
            root,
            _socket: socket,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_string()
    }

    /// This executable with `arguments`, in a workspace it may write, with something in every list.
    pub fn spec(&self, role: Role, arguments: &[&str]) -> ProcessSpec {
        let own = std::env::current_exe().unwrap();
        let mut grants = Grants {
            read: vec![self.path("read"), self.path("work")],
            write: vec![self.path("work"), self.path("only")],
            list: vec![self.path("list")],
            deny: vec![self.path("work/keep/hidden"), self.path("work/masked")],
            ..Grants::default()
        };
        if role == Role::Agent {
            grants.metadata = vec![self.path("meta")];
        }
        ProcessSpec {
            name: "probe".into(),
            role,
            argv: [&["probe-name"], arguments]
                .concat()
                .into_iter()
                .map(String::from)
                .collect(),
            program: own,
            cwd: self.path("work"),
            workspace: self.path("work"),
            env: BTreeMap::from([("PLAIN".into(), "1".into())]),
            grants,
            aliases: BTreeMap::new(),
            listeners: Vec::new(),
        }
    }

    pub fn plan(&self, spec: &ProcessSpec) -> SandboxPlan {
        plan(spec, &Host::this_machine(None)).unwrap_or_else(|refusal| panic!("{refusal}"))
    }

    /// Runs `probe` operations in a sandbox; one answer for each.
    pub fn probe(&self, role: Role, operations: &[String]) -> Vec<String> {
        let mut arguments = vec!["probe"];
        arguments.extend(operations.iter().map(String::as_str));
        answers(&run(&self.plan(&self.spec(role, &arguments))))
    }
}

/// One line for each operation of a workload that performed them all.
pub fn answers(ended: &Ended) -> Vec<String> {
    assert_eq!(ended.status, ExitStatus::Code(0), "{ended:?}");
    ended.stdout.lines().map(String::from).collect()
}

pub fn start(plan: &SandboxPlan) -> Result<(Child, PipeReader, PipeReader), LaunchError> {
    let (stdout, out) = std::io::pipe().unwrap();
    let (stderr, err) = std::io::pipe().unwrap();
    let null = OwnedFd::from(fs::File::open("/dev/null").unwrap());
    let own = std::env::current_exe().unwrap();
    let child = launch(plan, [null, out.into(), err.into()], &own)?;
    Ok((child, stdout, stderr))
}

pub fn finish((mut child, mut stdout, mut stderr): (Child, PipeReader, PipeReader)) -> Ended {
    let (mut out, mut err) = (String::new(), String::new());
    stdout.read_to_string(&mut out).unwrap();
    stderr.read_to_string(&mut err).unwrap();
    Ended {
        status: child.wait().unwrap(),
        stdout: out,
        stderr: err,
    }
}

pub fn run(plan: &SandboxPlan) -> Ended {
    finish(start(plan).unwrap_or_else(|error| panic!("{error}")))
}

/// A program on the search path, with every link followed.
pub fn installed(name: &str, search: &str) -> Option<PathBuf> {
    let found = box_sandbox::closure::in_search_path(name, search)?;
    let found = fs::canonicalize(found).ok()?;
    // Its whole path must be open to the user of this run.
    let reachable = fs::File::open(&found).is_ok();
    (reachable && is_program(&found)).then_some(found)
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
}
