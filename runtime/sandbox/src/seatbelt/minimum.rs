//! What every process of a Mac reads before it does anything of its own.

use crate::spec::Role;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    ReadTree,
    ReadFile,
    /// A device that is written as well.
    Device,
    /// The entries of a directory, and nothing beneath.
    Entries,
    /// Attributes of one file or link.
    Metadata,
    /// Attributes of everything beneath.
    MetadataTree,
}

impl Access {
    pub fn name(self) -> &'static str {
        match self {
            Access::ReadTree | Access::ReadFile => "read",
            Access::Device => "read, write",
            Access::Entries => "list one",
            Access::Metadata | Access::MetadataTree => "stat",
        }
    }
}

pub struct Cell {
    pub access: Access,
    pub path: &'static str,
    /// Tools and servers only.
    leaf: bool,
}

const fn all(access: Access, path: &'static str) -> Cell {
    Cell {
        access,
        path,
        leaf: false,
    }
}

const fn leaf(access: Access, path: &'static str) -> Cell {
    Cell {
        access,
        path,
        leaf: true,
    }
}

use Access::*;

/// Spelled as the kernel compares them, but for links, which are named to be looked at.
const CELLS: &[Cell] = &[
    all(ReadTree, "/System/Library"),
    all(ReadTree, "/usr/share/icu"),
    all(ReadTree, "/usr/share/zoneinfo"),
    all(ReadTree, "/private/var/db/timezone/zoneinfo"),
    all(ReadTree, "/private/var/db/timezone/icutz"),
    all(ReadFile, "/private/etc/localtime"),
    all(ReadFile, "/usr/lib/libffi-trampolines.dylib"),
    all(Device, "/dev/null"),
    all(Entries, "/"),
    all(Metadata, "/etc"),
    all(Metadata, "/private/etc"),
    all(Metadata, "/var"),
    all(Metadata, "/private/var"),
    all(Metadata, "/tmp"),
    // Language runtimes reserve code ranges by looking here before they start.
    all(MetadataTree, "/private/tmp"),
    leaf(ReadTree, "/usr/share/locale"),
    leaf(ReadTree, "/usr/share/terminfo"),
    leaf(ReadTree, "/System/Cryptexes"),
    leaf(ReadTree, "/System/Volumes/Preboot/Cryptexes"),
    leaf(ReadTree, "/private/preboot/Cryptexes"),
    leaf(ReadTree, "/Library/Frameworks"),
    leaf(ReadTree, "/usr/lib"),
    leaf(ReadTree, "/private/var/db/dyld"),
    leaf(ReadTree, "/private/var/db/timezone"),
    leaf(ReadTree, "/private/var/select"),
    leaf(ReadTree, "/private/etc/ssl"),
    leaf(Device, "/dev/zero"),
    leaf(ReadFile, "/dev/random"),
    leaf(ReadFile, "/dev/urandom"),
];

pub fn of(role: Role) -> impl Iterator<Item = &'static Cell> {
    CELLS
        .iter()
        .filter(move |cell| !cell.leaf || role == Role::Leaf)
}
