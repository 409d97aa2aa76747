//! What a process reaches on a host that confines by paths: the grants with what they name, the programs
//! with the way to them, and what is subtracted.

use super::links::{self, route};
use super::{Note, Reach, Reason};
use crate::floor::{self, Enclosed};
use crate::grants::List;
use crate::host::{Host, Identity, Kind};
use crate::seatbelt::minimum;
use crate::spec::{ProcessSpec, Role};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Every path is the one the kernel compares, links followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paths {
    /// The program as it was found: some find their installation by that name.
    pub invoked: PathBuf,
    pub grants: Vec<Granted>,
    /// The program, what it starts with, and the files behind aliases.
    pub programs: Vec<Program>,
    /// Code installed beside an interpreter.
    pub libraries: Vec<PathBuf>,
    /// Every spelling of the operator's home.
    pub homes: Vec<PathBuf>,
    /// `deny` entries, which need not be there.
    pub denied: Vec<PathBuf>,
    /// Credential stores that no grant names, in every spelling.
    pub stores: Vec<PathBuf>,
    /// Names for other files. There is no view to show them in: the launcher makes links.
    pub aliases: BTreeMap<PathBuf, PathBuf>,
    /// Directories that can be entered, whatever is granted in them.
    pub places: Vec<PathBuf>,
}

/// An entry of a list, `deny` apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Granted {
    pub list: List,
    pub path: PathBuf,
    /// A directory and everything beneath it.
    pub tree: bool,
    pub identity: Identity,
}

/// A file that is executed or mapped. A library is executed by no kernel, so that it need not be told apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    pub path: PathBuf,
    /// Links and directories passed by a lookup of it.
    pub passed: BTreeSet<PathBuf>,
    /// Its bytes are read as well: scripts, and programs that carry their own code.
    pub read: bool,
    pub identity: Identity,
}

pub(super) type Built = (Paths, Vec<Reach>, Vec<Note>);

pub(super) fn build(spec: &ProcessSpec, host: &Host) -> Result<Built, Vec<Reason>> {
    let mut notes = Vec::new();
    let mut reasons = Vec::new();
    let grants = granted(spec, host);
    for grant in &grants {
        let both = grant.list == List::Write && in_list(spec, List::Exec, &grant.path);
        if both {
            notes.push(Note::WritableAndExecutable(grant.path.clone()));
        }
    }
    if in_list(spec, List::Write, &spec.program) || in_list(spec, List::WriteFile, &spec.program) {
        notes.push(Note::ProgramIsWritable(spec.program.clone()));
    }
    let programs = programs(spec, host);
    for (path, source) in &spec.aliases {
        let file = host
            .files
            .node(source)
            .is_some_and(|node| node.kind == Kind::File);
        if !file {
            reasons.push(Reason::AliasMissing {
                path: path.clone(),
                source: source.clone(),
            });
        }
        if path.file_name().is_none() {
            reasons.push(Reason::AliasUnplaceable(path.clone()));
        }
    }
    if !reasons.is_empty() {
        return Err(reasons);
    }
    let libraries: Vec<PathBuf> = programs
        .iter()
        .filter(|_| spec.role == Role::Leaf)
        .filter_map(|program| links::library_beside(host, &program.path))
        .filter(|path| {
            host.files
                .node(path)
                .is_some_and(|node| node.kind == Kind::Directory)
        })
        .filter(|path| !in_list(spec, List::Write, path))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let leads_here =
        |name: &PathBuf| route(host, name).is_some_and(|found| found.real == spec.program);
    let paths = Paths {
        invoked: links::names(spec)
            .into_iter()
            .find(leads_here)
            .unwrap_or_else(|| spec.program.clone()),
        denied: spec
            .grants
            .deny
            .iter()
            .map(|path| links::place(host, path))
            .collect(),
        stores: stores(spec, host, &mut notes),
        homes: both_spellings(host.homes.iter().cloned(), host),
        aliases: spec.aliases.clone(),
        places: [&spec.workspace, &spec.cwd]
            .into_iter()
            .map(|path| links::place(host, path))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect(),
        grants,
        programs,
        libraries,
    };
    let reached = reached(spec, &paths);
    Ok((paths, reached, notes))
}

fn in_list(spec: &ProcessSpec, list: List, path: &Path) -> bool {
    list.of(&spec.grants)
        .iter()
        .any(|entry| path.starts_with(entry))
}

/// The lists in order. Their entries were checked to be what the kernel calls them.
fn granted(spec: &ProcessSpec, host: &Host) -> Vec<Granted> {
    let mut granted = Vec::new();
    for list in List::ALL.into_iter().filter(|list| *list != List::Deny) {
        for path in list.of(&spec.grants) {
            let Some(node) = host.files.node(path) else {
                continue;
            };
            granted.push(Granted {
                list,
                path: path.clone(),
                tree: node.kind == Kind::Directory,
                identity: node.identity,
            });
        }
    }
    granted
}

/// The program first, then what starts with it or with a granted program, then the files behind aliases.
fn programs(spec: &ProcessSpec, host: &Host) -> Vec<Program> {
    let search = spec.env.get("PATH").map_or("", String::as_str);
    let files = |path: &&PathBuf| {
        let kind = host.files.node(path).map(|node| node.kind);
        kind == Some(Kind::File)
    };
    let granted: Vec<&PathBuf> = spec.grants.exec.iter().filter(files).collect();
    let sources: Vec<&PathBuf> = spec.aliases.values().collect();
    let mut found: Vec<Program> = Vec::new();
    let mut add = |path: &Path, read: bool| {
        let Some(route) = route(host, path).filter(|route| route.node.kind == Kind::File) else {
            return;
        };
        // A library path written into a binary must not open what no grant may.
        if floor::hit(&route.real, List::ReadFile).is_some()
            || floor::stores(&host.homes).any(|(store, _)| route.real.starts_with(store))
        {
            return;
        }
        match found.iter_mut().find(|program| program.path == route.real) {
            Some(program) => {
                program.passed.extend(route.passed);
                program.read |= read;
            }
            None => found.push(Program {
                passed: route.passed.into_iter().collect(),
                path: route.real,
                read,
                identity: route.node.identity,
            }),
        }
    };
    add(&spec.program, true);
    for name in links::names(spec) {
        let same = |route: &links::Route| route.real == spec.program;
        if route(host, &name).as_ref().is_some_and(same) {
            add(&name, true);
            break;
        }
    }
    for root in [&spec.program]
        .into_iter()
        .chain(granted)
        .chain(sources.iter().copied())
    {
        for needed in host.files.closure(root, search) {
            add(&needed, true);
        }
    }
    for source in sources {
        add(source, false);
    }
    found
}

/// Credential stores that no grant names, and a note for each that lies in a grant.
fn stores(spec: &ProcessSpec, host: &Host, notes: &mut Vec<Note>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (store, enclosed) in floor::stores(&host.homes) {
        let entries = || List::ALL.into_iter().filter(|list| *list != List::Deny);
        let named = entries().any(|list| {
            list.of(&spec.grants)
                .iter()
                .any(|entry| entry.starts_with(&store))
        });
        if named {
            continue;
        }
        let inside = entries().any(|list| in_list(spec, list, &store));
        if inside && enclosed == Enclosed::Mask && host.files.node(&store).is_some() {
            notes.push(Note::StoreMasked(store.clone()));
        }
        found.push(store);
    }
    both_spellings(found.into_iter(), host)
}

/// Each path, and where its links lead.
fn both_spellings(paths: impl Iterator<Item = PathBuf>, host: &Host) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in paths {
        let real = links::place(host, &path);
        for spelling in [path, real] {
            if !found.contains(&spelling) {
                found.push(spelling);
            }
        }
    }
    found
}

/// What is reached without a grant.
fn reached(spec: &ProcessSpec, paths: &Paths) -> Vec<Reach> {
    let reach = |access: &str, path: &Path| Reach {
        access: access.into(),
        path: path.into(),
    };
    let mut reached: Vec<Reach> = minimum::of(spec.role)
        .map(|cell| reach(cell.access.name(), Path::new(cell.path)))
        .collect();
    reached.extend(
        paths
            .libraries
            .iter()
            .map(|path| reach("read, load code", path)),
    );
    for program in &paths.programs {
        let access = if program.read { "read, exec" } else { "exec" };
        reached.push(reach(access, &program.path));
    }
    if spec.role == Role::Leaf {
        reached.push(reach("exec", Path::new("/")));
        reached.extend(paths.homes.iter().map(|home| reach("stat", home)));
    }
    reached.extend(paths.places.iter().map(|path| reach("enter", path)));
    reached
}
