//! A process spec made into a plan: pure data, the same for equal specs and hosts, applied by a back end.

mod links;
mod paths;
mod view;

#[cfg(test)]
mod tests;

use crate::grants::{self, GrantRefusal, List};
use crate::host::{Host, Identity, Kind, Platform};
use crate::spec::{ProcessSpec, Role};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

pub use paths::{Granted, Paths, Program};

/// Everything a launcher does, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxPlan {
    pub name: String,
    pub role: Role,
    pub program: PathBuf,
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    /// The whole environment, but for the listeners' variables.
    pub env: BTreeMap<String, String>,
    pub identity: IdentityMap,
    pub hostname: String,
    pub umask: u32,
    /// The process stays in the caller's session.
    pub terminal: bool,
    pub limits: Limits,
    /// One variable each, holding `127.0.0.1:<port>`.
    pub listeners: Vec<String>,
    pub seccomp: SeccompProfile,
    pub landlock: Option<Landlock>,
    pub view: Vec<Mount>,
    /// What is reachable besides the grants.
    pub minimum: Vec<Reach>,
    pub notes: Vec<Note>,
    /// What a Seatbelt profile is made from, on a host that confines by paths. Such a host has no `view`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Paths>,
}

/// The ids inside, equal to those outside, and whether they must be taken first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdentityMap {
    pub uid: u32,
    pub gid: u32,
    /// The caller is root and takes these ids before anything else.
    pub take: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub core: u64,
    pub processes: u64,
    pub open_files: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeccompProfile {
    /// The allow-list and the argument rules of every sandboxed program.
    Workload,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Landlock {
    pub abi: u32,
    pub cells: BTreeMap<PathBuf, BTreeSet<Right>>,
}

/// Rights at and beneath a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    ReadFile,
    ReadDir,
    Execute,
    /// Write to and truncate files.
    WriteFile,
    /// Make, remove and rename regular files, directories and links.
    Change,
    /// Control a terminal.
    Control,
}

/// One step of building the view, in a root that starts empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "make", deny_unknown_fields)]
pub enum Mount {
    Directory {
        path: PathBuf,
    },
    Link {
        path: PathBuf,
        target: PathBuf,
    },
    File {
        path: PathBuf,
        contents: String,
    },
    Tmpfs {
        path: PathBuf,
        mode: u32,
        kilobytes: u64,
        inodes: u64,
    },
    Bind {
        path: PathBuf,
        source: PathBuf,
        directory: bool,
        identity: Identity,
        access: Access,
        /// The mount point is to be made, because nothing bound holds it.
        fresh: bool,
    },
    Proc {
        path: PathBuf,
    },
    /// An empty read-only tree or file over whatever is there.
    Mask {
        path: PathBuf,
        directory: bool,
    },
}

/// Flags of a bind; set-uid bits count nowhere, and devices only for `Device`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Read,
    ReadExecute,
    Write,
    WriteExecute,
    Device,
}

/// A path reached without a grant, for the start-up report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    pub access: String,
    pub path: PathBuf,
}

/// Something the operator should know before the process starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    RunsAsRoot,
    NoLandlock,
    WriteAlsoReads(PathBuf),
    WritableAndExecutable(PathBuf),
    ProgramIsWritable(PathBuf),
    StoreMasked(PathBuf),
    /// A mask lies on the file that is there: the kernel takes it off a name that is given another file.
    MaskedFile(PathBuf),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::RunsAsRoot => write!(
                f,
                "the box was started by root: the process keeps uid 0 with no capability; start it as an ordinary user"
            ),
            Note::NoLandlock => write!(
                f,
                "Landlock is not enabled: the mount view and seccomp confine the process alone"
            ),
            Note::WriteAlsoReads(path) => {
                write!(
                    f,
                    "{} is granted for writing only, but is readable here",
                    path.display()
                )
            }
            Note::WritableAndExecutable(path) => {
                write!(f, "{} is both writable and executable", path.display())
            }
            Note::ProgramIsWritable(path) => {
                write!(f, "the program {} lies in a writable grant", path.display())
            }
            Note::MaskedFile(path) => write!(
                f,
                "{} is hidden as the file it is now; if another program replaces it, the new one is visible: \
                 deny the directory around it",
                path.display()
            ),
            Note::StoreMasked(path) => {
                write!(
                    f,
                    "the credential store {} is taken out of the grant around it",
                    path.display()
                )
            }
        }
    }
}

/// Why no plan was made: every reason at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRefusal {
    pub process: String,
    pub reasons: Vec<Reason>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    Grant(GrantRefusal),
    ProgramMissing(PathBuf),
    ProgramNotExecutable(PathBuf),
    ProgramDenied { program: PathBuf, deny: PathBuf },
    NotADirectory { what: &'static str, path: PathBuf },
    AliasMissing { path: PathBuf, source: PathBuf },
    AliasUnplaceable(PathBuf),
    ReservedVariable(String),
}

impl fmt::Display for PlanRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, reason) in self.reasons.iter().enumerate() {
            let separator = if at == 0 { "" } else { "\n" };
            match reason {
                Reason::Grant(refusal) => {
                    write!(f, "{separator}{}", refusal.sentence(&self.process))?
                }
                reason => write!(f, "{separator}`[{}]` {reason}", self.process)?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for PlanRefusal {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Grant(refusal) => write!(f, "filesystem entry {refusal}"),
            Reason::ProgramMissing(path) => write!(f, "program {} is not there", path.display()),
            Reason::ProgramNotExecutable(path) => {
                write!(
                    f,
                    "program {} is not an executable regular file without set-id bits",
                    path.display()
                )
            }
            Reason::ProgramDenied { program, deny } => {
                write!(
                    f,
                    "program {} is at or inside the `deny` entry {}",
                    program.display(),
                    deny.display()
                )
            }
            Reason::NotADirectory { what, path } => {
                write!(f, "{what} {} is not an existing directory", path.display())
            }
            Reason::AliasMissing { path, source } => {
                write!(
                    f,
                    "alias {} has no file: {} is not a regular file",
                    path.display(),
                    source.display()
                )
            }
            Reason::AliasUnplaceable(path) => {
                write!(
                    f,
                    "alias {} cannot be placed in a tree the process already sees",
                    path.display()
                )
            }
            Reason::ReservedVariable(name) => {
                write!(
                    f,
                    "environment sets {name}, which holds the address of a listener"
                )
            }
        }
    }
}

/// The plan of `spec` on `host`.
pub fn plan(spec: &ProcessSpec, host: &Host) -> Result<SandboxPlan, PlanRefusal> {
    let mut reasons: Vec<Reason> = grants::check_grants(&spec.grants, spec.role, host)
        .into_iter()
        .map(Reason::Grant)
        .collect();
    reasons.extend(process_reasons(spec, host));
    if !reasons.is_empty() {
        return Err(PlanRefusal {
            process: spec.name.clone(),
            reasons,
        });
    }
    let refused = |reasons| PlanRefusal {
        process: spec.name.clone(),
        reasons,
    };
    let (built, paths) = match host.platform {
        Platform::Linux => (view::build(spec, host).map_err(refused)?, None),
        Platform::MacOs => {
            let (paths, minimum, notes) = paths::build(spec, host).map_err(refused)?;
            let built = view::Built {
                mounts: Vec::new(),
                cells: BTreeMap::new(),
                minimum,
                notes,
            };
            (built, Some(paths))
        }
    };
    let take = host.run_as.filter(|_| host.uid == 0);
    let (uid, gid) = take.unwrap_or((host.uid, host.gid));
    let mut notes = built.notes;
    if uid == 0 {
        notes.push(Note::RunsAsRoot);
    }
    let landlock = host.landlock > 0 && host.platform == Platform::Linux;
    if !landlock && host.platform == Platform::Linux {
        notes.push(Note::NoLandlock);
    }
    Ok(SandboxPlan {
        name: spec.name.clone(),
        role: spec.role,
        program: spec.program.clone(),
        argv: spec.argv.clone(),
        cwd: spec.cwd.clone(),
        env: spec.env.clone(),
        identity: IdentityMap {
            uid,
            gid,
            take: take.is_some(),
        },
        hostname: "box".into(),
        umask: 0o022,
        terminal: host.terminal,
        limits: Limits {
            // Not 0: that keeps files from being written, but a host that pipes cores to a program would
            // still be handed one. 1 stops both.
            core: 1,
            processes: 4096,
            open_files: 65536,
        },
        listeners: spec.listeners.clone(),
        seccomp: SeccompProfile::Workload,
        landlock: landlock.then_some(Landlock {
            abi: host.landlock,
            cells: built.cells,
        }),
        view: built.mounts,
        minimum: built.minimum,
        notes,
        paths,
    })
}

/// Refusals of the process itself, apart from its lists.
fn process_reasons(spec: &ProcessSpec, host: &Host) -> Vec<Reason> {
    let mut reasons = Vec::new();
    match host.files.node(&spec.program) {
        None => reasons.push(Reason::ProgramMissing(spec.program.clone())),
        Some(node) => {
            if node.kind != Kind::File || node.mode & 0o111 == 0 || node.mode & 0o6000 != 0 {
                reasons.push(Reason::ProgramNotExecutable(spec.program.clone()));
            }
        }
    }
    if let Some(deny) = List::Deny
        .of(&spec.grants)
        .iter()
        .find(|deny| spec.program.starts_with(deny))
    {
        reasons.push(Reason::ProgramDenied {
            program: spec.program.clone(),
            deny: deny.clone(),
        });
    }
    for (what, path) in [
        ("workspace", &spec.workspace),
        ("working directory", &spec.cwd),
    ] {
        let directory = host
            .files
            .node(path)
            .is_some_and(|node| node.kind == Kind::Directory);
        if !directory || !path.is_absolute() {
            reasons.push(Reason::NotADirectory {
                what,
                path: path.clone(),
            });
        }
    }
    let reserved = spec
        .listeners
        .iter()
        .filter(|name| spec.env.contains_key(*name));
    reasons.extend(reserved.cloned().map(Reason::ReservedVariable));
    reasons
}
