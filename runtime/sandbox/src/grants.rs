//! Checks of the filesystem lists, all refusals at once, and the text of each refusal.

#[cfg(test)]
mod tests;

use crate::floor::{self, Class, Enclosed};
use crate::host::{Host, Kind, Platform};
use crate::spec::{Grants, Role};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Component, Path, PathBuf};

/// One of the lists of a `filesystem` table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum List {
    Read,
    Write,
    ReadFile,
    WriteFile,
    List,
    Metadata,
    Exec,
    Deny,
}

impl List {
    pub const ALL: [List; 8] = [
        List::Read,
        List::Write,
        List::ReadFile,
        List::WriteFile,
        List::List,
        List::Metadata,
        List::Exec,
        List::Deny,
    ];

    pub fn name(self) -> &'static str {
        match self {
            List::Read => "read",
            List::Write => "write",
            List::ReadFile => "read_file",
            List::WriteFile => "write_file",
            List::List => "list",
            List::Metadata => "metadata",
            List::Exec => "exec",
            List::Deny => "deny",
        }
    }

    pub fn of(self, grants: &Grants) -> &[PathBuf] {
        match self {
            List::Read => &grants.read,
            List::Write => &grants.write,
            List::ReadFile => &grants.read_file,
            List::WriteFile => &grants.write_file,
            List::List => &grants.list,
            List::Metadata => &grants.metadata,
            List::Exec => &grants.exec,
            List::Deny => &grants.deny,
        }
    }

    /// Lists whose entries may name a credential store.
    fn names_content(self) -> bool {
        matches!(
            self,
            List::Read | List::Write | List::ReadFile | List::WriteFile
        )
    }
}

/// An entry that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrantRefusal {
    pub list: List,
    pub entry: PathBuf,
    pub reason: Refusal,
}

impl GrantRefusal {
    /// The sentence for the table `process`: `agent`, `tool.git`.
    pub fn sentence(&self, process: &str) -> String {
        format!("`[{process}]` filesystem entry {self}")
    }
}

impl fmt::Display for GrantRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (entry, list) = (&self.entry, self.list.name());
        write!(f, "{entry:?} is refused: in `{list}`, it {}", self.reason)
    }
}

/// Why an entry was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    Relative,
    Pattern,
    Parent,
    Duplicate,
    Missing,
    Symlink { target: PathBuf },
    NotCanonical { canonical: PathBuf },
    Directory,
    File,
    NotExecutable,
    SetId { program: PathBuf },
    Special,
    Nested { outer: PathBuf },
    Denied { deny: PathBuf },
    Forbidden { class: Class, path: PathBuf },
    CredentialStore { store: PathBuf },
    AgentOnly,
    OwnInTheView { path: PathBuf },
    NeedsLandlock,
    UnderScratch,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Relative => write!(f, "must be absolute or start with `~/`"),
            Refusal::Pattern => write!(
                f,
                "must be exact and contain no pattern or control character"
            ),
            Refusal::Parent => write!(f, "carries `..`; write the directory it stands for"),
            Refusal::Duplicate => write!(f, "is duplicated"),
            Refusal::Missing => write!(f, "is not there; create it first or remove the entry"),
            Refusal::Symlink { target } => {
                write!(
                    f,
                    "is a symbolic link to {}; name the target instead",
                    target.display()
                )
            }
            Refusal::NotCanonical { canonical } => {
                write!(
                    f,
                    "is not the path the kernel checks, which is {}",
                    canonical.display()
                )
            }
            Refusal::Directory => write!(f, "is a directory; use the list for trees"),
            Refusal::File => write!(f, "is a file; this list takes directories"),
            Refusal::NotExecutable => write!(f, "is not an executable regular file"),
            Refusal::SetId { program } => {
                write!(
                    f,
                    "reaches the set-uid or set-gid program {}",
                    program.display()
                )
            }
            Refusal::Special => write!(f, "is a device, socket or pipe, which no grant reaches"),
            Refusal::Nested { outer } => {
                write!(
                    f,
                    "lies inside {}, which the same list grants already",
                    outer.display()
                )
            }
            Refusal::Denied { deny } => {
                write!(
                    f,
                    "is at or inside {}, which no grant reaches",
                    deny.display()
                )
            }
            Refusal::Forbidden { class, path } => write!(
                f,
                "reaches {} ({}), which is refused beneath every grant; name what is needed inside it",
                path.display(),
                class_name(*class)
            ),
            Refusal::CredentialStore { store } => write!(
                f,
                "reaches the credential store {}, which is refused beneath every grant; name a narrower tree, \
                 or the store itself in `read` or `write`",
                store.display()
            ),
            Refusal::AgentOnly => write!(f, "is refused by name: only `[agent]` has this list"),
            Refusal::OwnInTheView { path } => {
                write!(
                    f,
                    "reaches {}, which every sandbox has of its own",
                    path.display()
                )
            }
            Refusal::NeedsLandlock => {
                write!(
                    f,
                    "needs Landlock, which this kernel does not have enabled; `read` is the nearest list without it"
                )
            }
            Refusal::UnderScratch => write!(
                f,
                "lies in the sandbox's own scratch directory, where this list cannot be held apart from `read`"
            ),
        }
    }
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::WholeFilesystem => "the whole file system",
        Class::HomeNamespace => "every home",
        Class::SystemTree => "a system tree",
        Class::LoaderDirectory => "a loader directory",
        Class::PasswordDatabase => "a password database",
        Class::MachineCredential => "a machine credential",
        Class::PrivilegeConfiguration => "privilege configuration",
        Class::Kernel => "the kernel's own files",
        Class::HostSocket => "a socket of the host's services",
    }
}

/// A credential store that an entry names, to be announced at start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exposure {
    pub list: List,
    pub entry: PathBuf,
    pub store: PathBuf,
}

/// The credential stores that entries name.
pub fn exposures(grants: &Grants, homes: &[PathBuf]) -> Vec<Exposure> {
    let mut found = Vec::new();
    for list in List::ALL.into_iter().filter(|list| list.names_content()) {
        for entry in list.of(grants) {
            for (store, _) in floor::stores(homes).filter(|(store, _)| entry.starts_with(store)) {
                found.push(Exposure {
                    list,
                    entry: entry.clone(),
                    store,
                });
            }
        }
    }
    found
}

/// Scratch directories every sandbox has of its own; grants may lie inside.
pub const SCRATCH: [&str; 2] = ["/tmp", "/dev/shm"];

/// A second name that macOS gives to every path outside the system volume, of which the kernel's own
/// spelling of a path never makes use.
pub const DATA_VOLUME: &str = "/System/Volumes/Data";

/// Device files a grant may name.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"];

/// Every refusal of every list, in the order of the lists.
pub fn check_grants(grants: &Grants, role: Role, host: &Host) -> Vec<GrantRefusal> {
    let mut refused = Vec::new();
    for list in List::ALL {
        let entries = list.of(grants);
        for (at, entry) in entries.iter().enumerate() {
            let earlier = entries.get(..at).unwrap_or_default();
            let reason = shape(entry, list, role)
                .or_else(|| earlier.contains(entry).then_some(Refusal::Duplicate))
                .or_else(|| standing(entry, list, host))
                .or_else(|| reach(entry, list, grants, host))
                .or_else(|| {
                    let outer = entries
                        .iter()
                        .find(|outer| *outer != entry && entry.starts_with(outer));
                    outer
                        .filter(|_| list != List::Deny)
                        .cloned()
                        .map(|outer| Refusal::Nested { outer })
                })
                .or_else(|| {
                    let deny = grants.deny.iter().find(|deny| entry.starts_with(deny));
                    deny.filter(|_| list != List::Deny)
                        .map(|deny| Refusal::Denied { deny: deny.clone() })
                });
            refused.extend(reason.map(|reason| GrantRefusal {
                list,
                entry: entry.clone(),
                reason,
            }));
        }
    }
    refused
}

/// What the text alone says.
fn shape(entry: &Path, list: List, role: Role) -> Option<Refusal> {
    let Some(text) = entry.to_str() else {
        return Some(Refusal::Pattern);
    };
    if role == Role::Leaf && matches!(list, List::Exec | List::Metadata) {
        return Some(Refusal::AgentOnly);
    }
    if text.chars().any(|c| c.is_control() || "*?[]{}".contains(c)) {
        return Some(Refusal::Pattern);
    }
    if !entry.is_absolute() {
        return Some(Refusal::Relative);
    }
    entry
        .components()
        .any(|component| component == Component::ParentDir)
        .then_some(Refusal::Parent)
}

/// What the host says about the path.
fn standing(entry: &Path, list: List, host: &Host) -> Option<Refusal> {
    let spelled: PathBuf = entry.components().collect();
    if spelled.as_os_str() != entry.as_os_str() {
        return Some(Refusal::NotCanonical { canonical: spelled });
    }
    let mac = host.platform == Platform::MacOs;
    if let Ok(rest) = entry.strip_prefix(DATA_VOLUME)
        && mac
    {
        return Some(Refusal::NotCanonical {
            canonical: Path::new("/").join(rest),
        });
    }
    let mut walked = PathBuf::new();
    for component in entry.components() {
        walked.push(component);
        let Some(Kind::Symlink(target)) = host.files.node(&walked).map(|node| node.kind) else {
            continue;
        };
        if walked == entry {
            let parent = entry.parent().unwrap_or(Path::new("/"));
            return Some(Refusal::Symlink {
                target: parent.join(target),
            });
        }
        let rest = entry.strip_prefix(&walked).unwrap_or(Path::new(""));
        let parent = walked.parent().unwrap_or(Path::new("/"));
        return Some(Refusal::NotCanonical {
            canonical: parent.join(target).join(rest),
        });
    }
    let Some(node) = host.files.node(entry) else {
        // A profile denies a name; a mask needs a file to lie on.
        return (!mac || list != List::Deny).then_some(Refusal::Missing);
    };
    if let Some(canonical) = host.files.spelling(entry).filter(|_| mac)
        && canonical.as_os_str() != entry.as_os_str()
    {
        return Some(Refusal::NotCanonical { canonical });
    }
    match (list, &node.kind) {
        (_, Kind::CharDevice) if DEVICES.iter().any(|device| entry == Path::new(device)) => None,
        (List::Deny, _) => None,
        (
            _,
            Kind::CharDevice | Kind::BlockDevice | Kind::Socket | Kind::Fifo | Kind::Symlink(_),
        ) => Some(Refusal::Special),
        (List::ReadFile | List::WriteFile, Kind::Directory) => Some(Refusal::Directory),
        (List::List | List::Metadata, Kind::File) => Some(Refusal::File),
        (List::Exec, kind) => {
            if *kind == Kind::File && node.mode & 0o111 == 0 {
                return Some(Refusal::NotExecutable);
            }
            let program = host.files.set_id_program(entry)?;
            Some(Refusal::SetId { program })
        }
        _ => None,
    }
}

/// What the entry would reach.
fn reach(entry: &Path, list: List, grants: &Grants, host: &Host) -> Option<Refusal> {
    if list == List::Deny {
        return None;
    }
    if let Some(floor) = floor::hit(entry, list) {
        return Some(Refusal::Forbidden {
            class: floor.class,
            path: PathBuf::from(floor.path),
        });
    }
    if host.platform == Platform::MacOs && Path::new(DATA_VOLUME).starts_with(entry) {
        return Some(Refusal::Forbidden {
            class: Class::WholeFilesystem,
            path: DATA_VOLUME.into(),
        });
    }
    let device = DEVICES.iter().any(|device| entry == Path::new(device));
    for own in ["/dev", "/dev/shm"].map(Path::new) {
        let inside_scratch = entry.starts_with("/dev/shm") && entry != Path::new("/dev/shm");
        if entry.starts_with(own) && !device && !inside_scratch {
            return Some(Refusal::OwnInTheView { path: own.into() });
        }
    }
    for (store, enclosed) in floor::stores(&host.homes) {
        let inside = entry.starts_with(&store) && !list.names_content();
        let above = enclosed == Enclosed::Refuse && store.starts_with(entry) && store != *entry;
        if inside || above {
            return Some(Refusal::CredentialStore { store });
        }
    }
    if host.platform == Platform::MacOs {
        return None;
    }
    if list == List::List && host.landlock == 0 {
        return Some(Refusal::NeedsLandlock);
    }
    let read = grants.read.iter().any(|read| entry.starts_with(read));
    let scratch = SCRATCH.iter().any(|scratch| entry.starts_with(scratch));
    (matches!(list, List::List | List::Metadata) && scratch && !read)
        .then_some(Refusal::UnderScratch)
}
