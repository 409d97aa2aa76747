//! Paths followed through the host's links, one link at a time: lookups pass through every one of them.

use crate::host::{Host, Kind, Node};
use crate::spec::ProcessSpec;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows.
pub(super) const MOST_LINKS: usize = 40;

pub(super) enum Walk {
    Real(PathBuf, Node),
    Link {
        at: PathBuf,
        target: PathBuf,
        rest: PathBuf,
    },
}

/// The first link on the way along `path`, or what is at its end.
pub(super) fn first_link(host: &Host, path: &Path) -> Option<Walk> {
    let mut at = PathBuf::from("/");
    let mut components = path.components();
    while let Some(component) = components.next() {
        match component {
            Component::RootDir | Component::Prefix(_) | Component::CurDir => {}
            Component::ParentDir => {
                at.pop();
            }
            Component::Normal(name) => {
                at.push(name);
                if let Kind::Symlink(target) = host.files.node(&at)?.kind {
                    let rest = components.as_path().to_path_buf();
                    return Some(Walk::Link { at, target, rest });
                }
            }
        }
    }
    let node = host.files.node(&at)?;
    Some(Walk::Real(at, node))
}

/// Where a link leads, with what followed it on the path.
pub(super) fn beyond(at: &Path, target: &Path, rest: &Path) -> PathBuf {
    at.parent()
        .unwrap_or(Path::new("/"))
        .join(target)
        .join(rest)
}

/// A path with every link and directory its lookup passes.
pub(super) struct Route {
    pub real: PathBuf,
    pub node: Node,
    pub passed: Vec<PathBuf>,
}

pub(super) fn route(host: &Host, path: &Path) -> Option<Route> {
    let mut path = path.to_path_buf();
    let mut passed = Vec::new();
    for _ in 0..MOST_LINKS {
        match first_link(host, &path)? {
            Walk::Real(real, node) => {
                passed.extend(real.ancestors().map(Path::to_path_buf));
                return Some(Route { real, node, passed });
            }
            Walk::Link { at, target, rest } => {
                passed.extend(at.ancestors().map(Path::to_path_buf));
                path = beyond(&at, &target, &rest);
            }
        }
    }
    None
}

/// Where `path` is or would be, by the links of those of its ancestors that are there.
pub(super) fn place(host: &Host, path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let Some(found) = route(host, above) {
            let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
            // Joined to nothing, a path would end in a separator.
            return if rest.as_os_str().is_empty() {
                found.real
            } else {
                found.real.join(rest)
            };
        }
    }
    path.to_path_buf()
}

/// The spellings under which the program may have been found: programs start themselves by them.
pub(super) fn names(spec: &ProcessSpec) -> Vec<PathBuf> {
    let search = spec.env.get("PATH").map_or("", String::as_str);
    match spec.argv.first() {
        None => Vec::new(),
        Some(name) if name.starts_with('/') => vec![PathBuf::from(name)],
        Some(name) => search
            .split(':')
            .filter(|directory| directory.starts_with('/'))
            .map(|directory| Path::new(directory).join(name))
            .collect(),
    }
}

/// `<prefix>/lib` of an interpreter `<prefix>/bin/name` installed outside the system's directories.
pub(super) fn library_beside(host: &Host, program: &Path) -> Option<PathBuf> {
    let bin = program.parent().filter(|bin| bin.ends_with("bin"))?;
    let prefix = bin.parent()?;
    let encloses_home = host.homes.iter().any(|home| home.starts_with(prefix));
    let ordinary = prefix.components().count() > 2 && !prefix.starts_with("/usr");
    (ordinary && !encloses_home).then(|| prefix.join("lib"))
}
