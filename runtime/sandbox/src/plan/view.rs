//! The view: which paths exist inside, where they come from, and with which rights.

mod programs;

use super::links::{MOST_LINKS, Walk, beyond, first_link};
use super::{Access, Mount, Note, Reach, Reason, Right};
use crate::floor::{self, Enclosed};
use crate::grants::{List, SCRATCH};
use crate::host::{Host, Kind, Node};
use crate::spec::{ProcessSpec, Role};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub(super) struct Built {
    pub mounts: Vec<Mount>,
    pub cells: BTreeMap<PathBuf, BTreeSet<Right>>,
    pub minimum: Vec<Reach>,
    pub notes: Vec<Note>,
}

/// Where every sandbox's dynamic loader and libraries live.
const LOADER: &[&str] = &["/lib", "/lib64", "/usr/lib", "/usr/lib64"];
/// Programs and their companions, for tools.
const PROGRAMS: &[&str] = &[
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/libexec",
    "/usr/share",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/local/lib",
    "/usr/local/libexec",
    "/usr/local/share",
];
/// Read by tools; each is left out where the host has none.
const CONFIGURATION: &[&str] = &[
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/pki",
    "/etc/ssl",
    "/usr/include",
];
/// Every spelling of a dynamic loader: the agent may execute these and nothing else of `LOADER`.
const LOADERS: &[&str] = &[
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
];
const DEVICES: &[&str] = &["null", "zero", "full", "random", "urandom"];

/// Something at one path of the view.
enum Entry {
    Directory,
    Link(PathBuf),
    File(String),
    Tmpfs {
        kilobytes: u64,
    },
    Proc,
    Bind {
        source: PathBuf,
        node: Node,
        access: Access,
    },
}

struct View<'a> {
    spec: &'a ProcessSpec,
    host: &'a Host,
    entries: BTreeMap<PathBuf, Entry>,
    cells: BTreeMap<PathBuf, BTreeSet<Right>>,
    /// System trees with execute, by their real path.
    system: BTreeSet<PathBuf>,
    minimum: Vec<Reach>,
    notes: Vec<Note>,
    reasons: Vec<Reason>,
}

pub(super) fn build(spec: &ProcessSpec, host: &Host) -> Result<Built, Vec<Reason>> {
    let mut view = View {
        spec,
        host,
        entries: BTreeMap::new(),
        cells: BTreeMap::new(),
        system: BTreeSet::new(),
        minimum: Vec::new(),
        notes: Vec::new(),
        reasons: Vec::new(),
    };
    view.own_trees();
    view.system_trees();
    view.granted();
    view.etc();
    view.programs();
    view.aliases();
    view.places();
    let masks = view.masks();
    view.root_listing();
    if view.reasons.is_empty() {
        Ok(view.finish(masks))
    } else {
        Err(view.reasons)
    }
}

impl View<'_> {
    /// `/proc`, `/dev` and scratch.
    fn own_trees(&mut self) {
        use Right::*;
        for path in ["/run", "/var", "/dev", "/etc"] {
            self.entries.insert(path.into(), Entry::Directory);
        }
        self.entries.insert("/proc".into(), Entry::Proc);
        self.rights("/proc", &[ReadFile, ReadDir]);
        self.rights("/dev", &[ReadDir]);
        for (scratch, kilobytes) in SCRATCH.into_iter().zip([1 << 20, 1 << 18]) {
            self.entries
                .insert(scratch.into(), Entry::Tmpfs { kilobytes });
            self.rights(scratch, &[ReadFile, ReadDir, WriteFile, Change]);
        }
        for (name, target) in [
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
        ] {
            self.entries
                .insert(Path::new("/dev").join(name), Entry::Link(target.into()));
        }
        for name in DEVICES {
            self.device(name, &[ReadFile, WriteFile]);
        }
        if self.host.terminal {
            self.device("tty", &[ReadFile, WriteFile, Control]);
        }
    }

    fn device(&mut self, name: &str, rights: &[Right]) {
        let path = Path::new("/dev").join(name);
        if let Some(node) = self.host.files.node(&path) {
            self.bind(path.clone(), path.clone(), node, Access::Device);
            self.rights(path, rights);
        }
    }

    fn system_trees(&mut self) {
        use Right::*;
        let leaf = self.spec.role == Role::Leaf;
        for path in LOADER {
            let rights: &[Right] = if leaf {
                &[ReadFile, ReadDir, Execute]
            } else {
                &[ReadFile, ReadDir]
            };
            self.system_tree(path, Access::ReadExecute, rights);
        }
        for path in LOADERS {
            if let Some((real, node)) = self.expand(Path::new(path), false)
                && node.kind == Kind::File
            {
                self.rights(real, &[ReadFile, Execute]);
            }
        }
        if leaf {
            for path in PROGRAMS {
                self.system_tree(path, Access::ReadExecute, &[ReadFile, ReadDir, Execute]);
            }
            for path in CONFIGURATION {
                self.system_tree(path, Access::Read, &[ReadFile, ReadDir]);
            }
        }
        self.system_tree("/usr/share/zoneinfo", Access::Read, &[ReadFile, ReadDir]);
    }

    /// A tree of the runtime minimum, if the host has it; its links are made again in the view.
    fn system_tree(&mut self, path: &str, access: Access, rights: &[Right]) {
        let Some((real, node)) = self.expand(Path::new(path), true) else {
            return;
        };
        if node.kind != Kind::Directory {
            return;
        }
        if access == Access::ReadExecute {
            self.system.insert(real.clone());
        }
        let listed = if access == Access::ReadExecute {
            "read, load code"
        } else {
            "read"
        };
        self.reach(listed, &real);
        self.rights(real.clone(), rights);
        // A tree that is read is not mounted apart inside one that may also be executed.
        if access == Access::Read && self.cover(&real).is_some() {
            return;
        }
        if !matches!(
            self.entries.get(&real),
            Some(Entry::Bind {
                access: Access::ReadExecute,
                ..
            })
        ) {
            self.bind(real.clone(), real, node, access);
        }
    }

    /// The lists of the spec. A path takes part in every grant above it.
    fn granted(&mut self) {
        let mut paths = BTreeSet::new();
        for list in List::ALL.into_iter().filter(|list| *list != List::Deny) {
            for path in list.of(&self.spec.grants) {
                if self.grant_rights(list, path) {
                    paths.insert(path.clone());
                }
            }
        }
        for path in paths {
            let Some(node) = self.host.files.node(&path) else {
                continue;
            };
            let access = if node.kind == Kind::CharDevice {
                Access::Device
            } else {
                self.access(&path)
            };
            if access == Access::WriteExecute {
                self.notes.push(Note::WritableAndExecutable(path.clone()));
            }
            self.bind(path.clone(), path, node, access);
        }
    }

    /// The Landlock cell of an entry; whether it is mounted at all.
    fn grant_rights(&mut self, list: List, path: &Path) -> bool {
        use Right::*;
        let directory = self.kind(path) == Some(Kind::Directory);
        let landlock = self.host.landlock > 0;
        let rights: &[Right] = match (list, directory) {
            (List::Read, true) => &[ReadFile, ReadDir],
            (List::Read | List::ReadFile, _) => &[ReadFile],
            (List::Write, true) => &[WriteFile, Change],
            (List::Write | List::WriteFile, _) => &[WriteFile],
            (List::Exec, true) => &[ReadFile, ReadDir, Execute],
            (List::Exec, false) => &[ReadFile, Execute],
            (List::List, _) => &[ReadDir],
            (List::Metadata | List::Deny, _) => &[],
        };
        self.rights(path, rights);
        match list {
            List::Write | List::WriteFile => {
                let scratch = SCRATCH.iter().any(|scratch| path.starts_with(scratch));
                if !self.readable(path) && (!landlock || scratch) {
                    self.notes.push(Note::WriteAlsoReads(path.into()));
                }
                true
            }
            // Without Landlock a tree that may only be looked at is an empty directory.
            List::Metadata if !landlock => {
                self.entries.entry(path.into()).or_insert(Entry::Directory);
                false
            }
            _ => true,
        }
    }

    /// Mount rights of a path: the union of the grants at and above it. A tree of the system lends its
    /// execute right only to what is not writable.
    fn access(&self, path: &Path) -> Access {
        let grants = &self.spec.grants;
        let in_list = |list: List| list.of(grants).iter().any(|entry| path.starts_with(entry));
        let write = in_list(List::Write) || grants.write_file.iter().any(|entry| path == entry);
        let system = self.system.iter().any(|tree| path.starts_with(tree));
        match (write, in_list(List::Exec)) {
            (true, true) => Access::WriteExecute,
            (true, false) => Access::Write,
            (false, exec) if exec || system => Access::ReadExecute,
            (false, _) => Access::Read,
        }
    }

    fn readable(&self, path: &Path) -> bool {
        let grants = &self.spec.grants;
        grants.read.iter().any(|entry| path.starts_with(entry))
            || grants.read_file.iter().any(|entry| path == entry)
    }

    /// The account files, which programs fail without, and nothing else of the host's `/etc` but these.
    fn etc(&mut self) {
        use Right::*;
        let (uid, gid) = self
            .host
            .run_as
            .filter(|_| self.host.uid == 0)
            .unwrap_or((self.host.uid, self.host.gid));
        let plain = |name: &&String| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        };
        let env = &self.spec.env;
        let user = env
            .get("USER")
            .or_else(|| env.get("LOGNAME"))
            .filter(plain)
            .map_or("box", String::as_str);
        let home = env
            .get("HOME")
            .filter(|home| !home.contains([':', '\n']))
            .map_or("/", String::as_str);
        let files = [
            ("passwd", format!("{user}:x:{uid}:{gid}::{home}:/bin/sh\n")),
            ("group", format!("{user}:x:{gid}:\n")),
            (
                "nsswitch.conf",
                "passwd: files\ngroup: files\nhosts: files\n".to_string(),
            ),
            ("hosts", "127.0.0.1 localhost\n::1 localhost\n".to_string()),
            ("resolv.conf", String::new()),
        ];
        for (name, contents) in files {
            // A grant of the host's own file stands.
            self.entries
                .entry(Path::new("/etc").join(name))
                .or_insert(Entry::File(contents));
        }
        self.rights("/etc", &[ReadFile, ReadDir]);
        for path in ["/etc/localtime", "/etc/ld.so.cache"] {
            if let Some((real, node)) = self.expand(Path::new(path), false)
                && node.kind == Kind::File
                && !self.entries.contains_key(Path::new(path))
            {
                self.entries.insert(
                    path.into(),
                    Entry::Bind {
                        source: real,
                        node,
                        access: Access::Read,
                    },
                );
                self.reach("read", Path::new(path));
            }
        }
    }

    /// The workspace and the working directory can be entered even where nothing in them is granted.
    fn places(&mut self) {
        for path in [&self.spec.workspace, &self.spec.cwd] {
            if let Some((real, _)) = self.expand(path, true)
                && self.cover(&real).is_none()
            {
                self.entries.entry(real).or_insert(Entry::Directory);
            }
        }
        self.reach("enter", &self.spec.workspace.clone());
    }

    /// What is subtracted, mounted last; and the directories a mask must not be renamed away with.
    fn masks(&mut self) -> Vec<Mount> {
        let grants = &self.spec.grants;
        let mut masked: BTreeSet<PathBuf> = grants.deny.iter().cloned().collect();
        for (store, enclosed) in floor::stores(&self.host.homes) {
            let named = List::ALL
                .into_iter()
                .filter(|list| *list != List::Deny)
                .any(|list| {
                    list.of(grants)
                        .iter()
                        .any(|entry| entry.starts_with(&store))
                });
            if enclosed != Enclosed::Mask || named {
                continue;
            }
            if let Some((real, _)) = self.expand(&store, false)
                && self.cover(&real).is_some()
            {
                self.notes.push(Note::StoreMasked(store));
                masked.insert(real);
            }
        }
        let mut masks = Vec::new();
        for path in masked {
            let Some(node) = self.host.files.node(&path) else {
                continue;
            };
            let holds = self.entries.keys().any(|entry| entry.starts_with(&path));
            if self.cover(&path).is_none() && !holds {
                continue;
            }
            self.pin_ancestors(&path);
            if node.kind != Kind::Directory {
                self.notes.push(Note::MaskedFile(path.clone()));
            }
            masks.push(Mount::Mask {
                directory: node.kind == Kind::Directory,
                path,
            });
        }
        masks
    }

    /// Binds every directory between a mask and the writable grant around it onto itself, so that none of
    /// them can be renamed aside.
    fn pin_ancestors(&mut self, path: &Path) {
        let ancestors: Vec<PathBuf> = path.ancestors().skip(1).map(Path::to_path_buf).collect();
        for ancestor in ancestors {
            match self.cover(&ancestor) {
                Some(access @ (Access::Write | Access::WriteExecute)) => {
                    if let Some(node) = self.host.files.node(&ancestor) {
                        self.entries.entry(ancestor.clone()).or_insert(Entry::Bind {
                            source: ancestor,
                            node,
                            access,
                        });
                    }
                }
                _ => return,
            }
        }
    }

    /// Listing `/` would list everything below, as Landlock rights are inherited: only where everything
    /// below may be listed.
    fn root_listing(&mut self) {
        let grants = &self.spec.grants;
        let hidden = grants
            .write
            .iter()
            .any(|path| !self.readable(path) && !grants.list.contains(path));
        if grants.metadata.is_empty() && !hidden {
            self.rights("/", &[Right::ReadDir]);
        }
    }

    fn kind(&self, path: &Path) -> Option<Kind> {
        self.host.files.node(path).map(|node| node.kind)
    }

    fn reach(&mut self, access: &str, path: &Path) {
        let reach = Reach {
            access: access.into(),
            path: path.into(),
        };
        if !self.minimum.contains(&reach) {
            self.minimum.push(reach);
        }
    }

    fn rights(&mut self, path: impl Into<PathBuf>, rights: &[Right]) {
        if !rights.is_empty() {
            self.cells.entry(path.into()).or_default().extend(rights);
        }
    }

    /// A bind at `path`, unless the bind around it gives the same.
    fn bind(&mut self, path: PathBuf, source: PathBuf, node: Node, access: Access) {
        if path == source && self.cover(&path) == Some(access) {
            return;
        }
        self.entries.insert(
            path,
            Entry::Bind {
                source,
                node,
                access,
            },
        );
    }

    /// The access of the bind that `path` lies strictly inside of, if one does.
    fn cover(&self, path: &Path) -> Option<Access> {
        path.ancestors()
            .skip(1)
            .find_map(|above| match self.entries.get(above)? {
                Entry::Bind { access, .. } => Some(Some(*access)),
                Entry::Tmpfs { .. } | Entry::Proc => Some(None),
                _ => None,
            })?
    }

    /// Follows the host's links along `path`. With `show`, links outside bound trees are made again.
    fn expand(&mut self, path: &Path, show: bool) -> Option<(PathBuf, Node)> {
        let mut path = path.to_path_buf();
        for _ in 0..MOST_LINKS {
            match first_link(self.host, &path)? {
                Walk::Real(real, node) => return Some((real, node)),
                Walk::Link { at, target, rest } => {
                    path = beyond(&at, &target, &rest);
                    if show && self.cover(&at).is_none() {
                        self.entries.entry(at).or_insert(Entry::Link(target));
                    }
                }
            }
        }
        None
    }

    /// The mounts in order: outer before inner, masks last.
    fn finish(mut self, masks: Vec<Mount>) -> Built {
        let paths: Vec<PathBuf> = self.entries.keys().cloned().collect();
        for path in paths {
            for above in path
                .ancestors()
                .skip(1)
                .filter(|above| above.parent().is_some())
            {
                if self.cover(above).is_none() {
                    self.entries.entry(above.into()).or_insert(Entry::Directory);
                }
            }
        }
        let mut order: Vec<&PathBuf> = self.entries.keys().collect();
        order.sort_by_key(|path| (path.components().count(), *path));
        let mut mounts = Vec::new();
        for path in order {
            let covered = self.cover(path).is_some();
            let made = path.clone();
            let mount = match self.entries.get(path) {
                None | Some(Entry::Directory | Entry::Link(_) | Entry::File(_)) if covered => {
                    continue;
                }
                None => continue,
                Some(Entry::Directory) => Mount::Directory { path: made },
                Some(Entry::Link(target)) => Mount::Link {
                    path: made,
                    target: target.clone(),
                },
                Some(Entry::File(contents)) => Mount::File {
                    path: made,
                    contents: contents.clone(),
                },
                Some(Entry::Tmpfs { kilobytes }) => Mount::Tmpfs {
                    path: made,
                    mode: 0o1777,
                    kilobytes: *kilobytes,
                    inodes: kilobytes / 4,
                },
                Some(Entry::Proc) => Mount::Proc { path: made },
                Some(Entry::Bind {
                    source,
                    node,
                    access,
                }) => Mount::Bind {
                    path: made,
                    source: source.clone(),
                    directory: node.kind == Kind::Directory,
                    identity: node.identity,
                    access: *access,
                    fresh: !covered,
                },
            };
            mounts.push(mount);
        }
        mounts.extend(masks);
        Built {
            mounts,
            cells: self.cells,
            minimum: self.minimum,
            notes: self.notes,
        }
    }
}
