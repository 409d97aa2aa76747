//! The Seatbelt profile of a plan, as text: pure, so that it is tested on every platform.
//!
//! The order of the rules is their meaning. The last rule that matches wins, but a rule for one exact
//! operation beats every rule for a wildcard; and what the system's own preamble grants can only be taken
//! back by the exact name of the operation. Hence the pairs of wildcard and leaves below.

#[cfg(test)]
pub(crate) mod evaluator;
pub mod minimum;
mod protect;
mod rule;
#[cfg(test)]
mod tests;

pub use rule::ProfileRefusal;

use crate::grants::{DATA_VOLUME, List};
use crate::plan::{Granted, Paths, SandboxPlan};
use crate::spec::Role;
use minimum::Access;
use rule::{Filter, Line, render};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What is only known when a process starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wiring {
    /// Loopback ports of this sandbox and no other: whoever connects there is this sandbox.
    pub ports: Vec<u16>,
    /// A directory of this start alone, canonical: links for the aliases in `names`, scratch in `tmp`.
    pub private: PathBuf,
    /// Regular files among the standard streams.
    pub streams: Vec<PathBuf>,
    /// This release has operations on grafts. A profile that names an unknown operation is refused whole.
    pub grafts: bool,
}

impl Wiring {
    /// Where the links for the aliases are.
    pub fn names(&self) -> PathBuf {
        self.private.join("names")
    }

    pub fn scratch(&self) -> PathBuf {
        self.private.join("tmp")
    }
}

/// The operations of writing that a tree grant carries. Not their wildcard: that one also carries flags,
/// access lists, owners, and whatever else attributes can set.
const WRITES: &[&str] = &[
    "file-write-data",
    "file-write-create",
    "file-write-unlink",
    "file-write-xattr",
    "file-write-mode",
    "file-write-times",
];
/// Against renaming a directory away, or putting another in its place.
const REPLACES: &[&str] = &["file-write-unlink", "file-write-create"];
const SOCKETS: &[&str] = &["network-bind", "network-inbound", "network-outbound"];
const METADATA: &str = "file-read-metadata";
const EXISTENCE: &str = "file-test-existence";
const MAP: &str = "file-map-executable";

/// The profile of `plan`'s process, started with `wiring`.
pub fn profile(plan: &SandboxPlan, wiring: &Wiring) -> Result<String, ProfileRefusal> {
    let paths = plan.paths.as_ref().ok_or(ProfileRefusal::NoPaths)?;
    let mut profile = Profile {
        plan,
        paths,
        wiring,
        lines: Vec::new(),
    };
    profile.start();
    profile.executables();
    profile.process();
    profile.streams();
    profile.minimum();
    profile.reading();
    profile.writing();
    profile.protections();
    profile.leaf_overlay();
    profile.system();
    profile.network();
    profile.existence();
    profile.refusals();
    profile.lookups();
    profile.never();
    render(&profile.lines)
}

struct Profile<'a> {
    plan: &'a SandboxPlan,
    paths: &'a Paths,
    wiring: &'a Wiring,
    lines: Vec<Line>,
}

impl Profile<'_> {
    fn why(&mut self, why: &'static str) {
        self.lines.push(Line::Why(why));
    }

    /// A rule without a filter would hold everywhere, so a rule about no path is no rule.
    fn allow(&mut self, operations: &[&'static str], filters: Vec<Filter>) {
        if !filters.is_empty() {
            self.lines.push(Line::allow(operations, once(filters)));
        }
    }

    fn deny(&mut self, operations: &[&'static str], filters: Vec<Filter>) {
        if !filters.is_empty() {
            self.lines.push(Line::deny(operations, once(filters)));
        }
    }

    fn leaf(&self) -> bool {
        self.plan.role == Role::Leaf
    }

    fn of(&self, lists: &[List], tree: bool) -> Vec<PathBuf> {
        let chosen = |grant: &&Granted| lists.contains(&grant.list) && grant.tree == tree;
        let grants = self.paths.grants.iter().filter(chosen);
        grants.map(|grant| grant.path.clone()).collect()
    }

    /// Trees that may be written: the grants and the scratch directory.
    fn write_trees(&self) -> Vec<PathBuf> {
        let mut trees = self.of(&[List::Write], true);
        trees.push(self.wiring.scratch());
        trees
    }

    fn start(&mut self) {
        // Another version has another preamble, and the rules below are written against this one.
        self.lines.push(Line::Version);
        self.lines.push(Line::DenyDefault);
        self.why("other processes are not looked at; the preamble would let them be");
        self.lines.push(Line::deny(&["process-info*"], Vec::new()));
        self.allow(&["process-info*"], vec![Filter::Itself]);
    }

    /// Executing needs no byte of the file, but a search of `PATH` looks at it and at all it passes.
    fn executables(&mut self) {
        let files: BTreeSet<PathBuf> = self
            .paths
            .programs
            .iter()
            .map(|program| program.path.clone())
            .chain(self.of(&[List::Exec], false))
            .collect();
        let mut passed: BTreeSet<PathBuf> = self
            .paths
            .programs
            .iter()
            .flat_map(|program| program.passed.clone())
            .collect();
        passed.extend(files.iter().flat_map(|file| ancestors(file)));
        if !self.paths.aliases.is_empty() {
            let names = self.wiring.names();
            for alias in self.paths.aliases.keys() {
                passed.extend(alias.file_name().map(|name| names.join(name)));
            }
            passed.extend(ancestors(&names));
            passed.insert(names);
        }
        passed.extend(files.iter().cloned());
        self.why("programs that can be executed, and the way to them");
        self.allow(&["process-exec"], literals(files));
        self.allow(&[METADATA], literals(passed));
        let trees = self.of(&[List::Exec], true);
        if !trees.is_empty() {
            self.why("trees of programs: executed and looked at, not read");
            self.allow(&[METADATA], literals(all_ancestors(&trees)));
            self.allow(&["process-exec"], subpaths(&trees));
            self.allow(&[METADATA], subpaths(&trees));
        }
    }

    fn process(&mut self) {
        self.why("new processes, which no filter can count");
        self.lines.push(Line::allow(&["process-fork"], Vec::new()));
        if self.plan.terminal {
            // No rule lets a new terminal be made.
            self.why("the terminal the process was started on");
            self.allow(&["file-ioctl"], vec![Filter::Terminals]);
        }
    }

    fn streams(&mut self) {
        let files = self.wiring.streams.iter().cloned();
        let files: Vec<Filter> = files.map(Filter::Regular).collect();
        if !files.is_empty() {
            self.why("attributes of the files the streams were redirected to");
            self.allow(&[METADATA], files);
        }
    }

    fn minimum(&mut self) {
        let cells = |access: Access| -> Vec<PathBuf> {
            let cells = minimum::of(self.plan.role).filter(|cell| cell.access == access);
            cells.map(|cell| PathBuf::from(cell.path)).collect()
        };
        let trees = cells(Access::ReadTree);
        let mut files = cells(Access::ReadFile);
        let devices = cells(Access::Device);
        files.extend(devices.iter().cloned());
        let metadata = cells(Access::Metadata);
        let looked_at = cells(Access::MetadataTree);
        let entries = cells(Access::Entries);
        let above: Vec<PathBuf> = [&trees, &files, &metadata, &looked_at]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        let mut above = all_ancestors(&above);
        above.extend(metadata);
        self.why("what every program starts with");
        self.allow(&[METADATA], literals(above));
        self.allow(
            &["file-read*"],
            [subpaths(&trees), literals(files)].concat(),
        );
        self.allow(&["file-write-data"], literals(devices));
        self.allow(&["file-read-data", METADATA], literals(entries));
        self.allow(&[METADATA], subpaths(&looked_at));
    }

    fn reading(&mut self) {
        let own: Vec<PathBuf> = self
            .paths
            .programs
            .iter()
            .filter(|program| program.read)
            .map(|program| program.path.clone())
            .collect();
        self.why("the code the process starts with");
        self.allow(&["file-read*"], literals(own));
        let libraries = self.paths.libraries.clone();
        self.allow(&[METADATA], literals(all_ancestors(&libraries)));
        self.allow(&["file-read*"], subpaths(&libraries));

        let scratch = self.wiring.scratch();
        let mut trees = self.of(&[List::Read], true);
        trees.push(scratch);
        let files = self.of(&[List::Read, List::ReadFile], false);
        self.why("what may be read");
        let named: Vec<PathBuf> = trees.iter().chain(&files).cloned().collect();
        self.allow(&[METADATA], literals(all_ancestors(&named)));
        self.allow(
            &["file-read*"],
            [subpaths(&trees), literals(files)].concat(),
        );

        let listed = self.of(&[List::List], true);
        let looked_at = self.of(&[List::Metadata], true);
        let places = self.paths.places.clone();
        let named: Vec<PathBuf> = [&listed, &looked_at, &places]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        self.why(
            "what may be listed, looked at, or entered: the bytes of a directory are its entries",
        );
        self.allow(
            &[METADATA],
            [literals(all_ancestors(&named)), literals(places)].concat(),
        );
        self.allow(
            &[METADATA],
            [subpaths(&listed), subpaths(&looked_at)].concat(),
        );
        let directories = listed.into_iter().map(Filter::Directories).collect();
        self.allow(&["file-read-data"], directories);
    }

    fn writing(&mut self) {
        let files = self.of(&[List::Write, List::WriteFile], false);
        let trees = self.write_trees();
        let named: Vec<PathBuf> = files.iter().chain(&trees).cloned().collect();
        self.why("files that may be written: their bytes, and nothing of what they are");
        self.allow(&[METADATA], literals(all_ancestors(&named)));
        self.allow(&["file-write-data"], literals(files.clone()));
        self.why("trees that may be written, each operation by its name");
        self.allow(WRITES, subpaths(&trees));
        self.why("their roots stay: a link in the place of one would move the grant");
        self.deny(REPLACES, literals(trees.clone()));
        self.why("nothing written is mapped as code");
        self.deny(&[MAP], [literals(files), subpaths(&trees)].concat());
        let both: Vec<Filter> = self
            .paths
            .grants
            .iter()
            .filter(|grant| grant.list == List::Exec)
            .filter_map(|grant| {
                let inside = trees.iter().any(|tree| grant.path.starts_with(tree));
                let around = trees.iter().any(|tree| tree.starts_with(&grant.path));
                (inside || around).then(|| node(&grant.path, grant.tree))
            })
            .collect();
        if !both.is_empty() {
            self.why("but where the operator grants both");
            self.allow(&[MAP], both);
        }
    }

    /// A toolchain runs helpers that nobody can list, and loads what it has built.
    fn leaf_overlay(&mut self) {
        if self.leaf() {
            self.why("a tool runs its helpers, and loads what it builds");
            self.lines.push(Line::allow(&["process-exec*"], Vec::new()));
            let trees = self.write_trees();
            self.allow(&[MAP], subpaths(&trees));
        }
    }

    fn system(&mut self) {
        let mut names: Vec<Filter> = [
            "hw.machine",
            "hw.ncpu",
            "hw.pagesize_compat",
            "kern.hostname",
            "kern.osrelease",
            "kern.ostype",
            "kern.version",
        ]
        .into_iter()
        .map(Filter::Sysctl)
        .collect();
        self.why("what language runtimes ask about the machine");
        if self.leaf() {
            names.push(Filter::SysctlPrefix("net."));
        }
        self.allow(&["sysctl-read"], names);
        if self.leaf() {
            // Bundled runtimes list the interfaces, and fail without an answer.
            self.allow(&["system-socket"], vec![Filter::RoutingSocket]);
        }
        self.why("the account's own entry; every other service stays out of reach");
        let accounts = Filter::Service("com.apple.system.opendirectoryd.libinfo");
        self.allow(&["mach-lookup"], vec![accounts]);
    }

    fn network(&mut self) {
        self.why("no network but sockets in written trees and the checkpoints' ports");
        self.lines.push(Line::deny(&["network*"], Vec::new()));
        let trees = self.write_trees();
        self.allow(SOCKETS, subpaths(&trees));
        for port in &self.wiring.ports {
            self.allow(&["network-outbound"], vec![Filter::LocalPort(*port)]);
        }
    }

    /// Names that no process may be given.
    fn never(&mut self) {
        self.why("never, by exact name: the preamble grants some of these");
        let mut names = vec![
            "file-mknod",
            "file-mount",
            "file-mount-update",
            "file-unmount",
            "file-chroot",
            "fs-snapshot-create",
            "fs-snapshot-delete",
            "fs-snapshot-mount",
            "fs-snapshot-revert",
        ];
        if self.wiring.grafts {
            names.extend(["file-graft", "file-ungraft"]);
        }
        for name in names {
            self.lines.push(Line::deny(&[name], Vec::new()));
        }
    }
}

fn once(filters: Vec<Filter>) -> Vec<Filter> {
    let mut seen = BTreeSet::new();
    let new = |filter: &Filter| seen.insert(filter.clone());
    filters.into_iter().filter(new).collect()
}

fn literals(paths: impl IntoIterator<Item = PathBuf>) -> Vec<Filter> {
    paths.into_iter().map(Filter::Literal).collect()
}

fn subpaths(paths: &[PathBuf]) -> Vec<Filter> {
    paths.iter().cloned().map(Filter::Subpath).collect()
}

fn node(path: &Path, tree: bool) -> Filter {
    if tree {
        Filter::Subpath(path.into())
    } else {
        Filter::Literal(path.into())
    }
}

/// Every directory above. Named one by one: the language's own word for them fails on the root.
fn ancestors(path: &Path) -> Vec<PathBuf> {
    path.ancestors().skip(1).map(Path::to_path_buf).collect()
}

fn all_ancestors(paths: &[PathBuf]) -> BTreeSet<PathBuf> {
    paths.iter().flat_map(|path| ancestors(path)).collect()
}

/// Both names of a path: links can be followed before a rule is made, but a firmlink's two names are equally
/// real, and a denial by one does not hold for the other.
fn spellings(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in paths {
        let other = match path.strip_prefix(DATA_VOLUME) {
            Ok(rest) => Path::new("/").join(rest),
            Err(_) => {
                let rest = path.strip_prefix("/").unwrap_or(path);
                Path::new(DATA_VOLUME).join(rest)
            }
        };
        for spelling in [path.clone(), other] {
            if !found.contains(&spelling) {
                found.push(spelling);
            }
        }
    }
    found
}
