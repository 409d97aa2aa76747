//! What can be executed in the view: the program, what it starts with, and aliases.

use super::{Entry, View};
use crate::floor;
use crate::host::{Kind, Node};
use crate::plan::links;
use crate::plan::{Access, Note, Reason, Right};
use crate::spec::Role;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

impl View<'_> {
    /// The program itself, the interpreters and libraries it and the granted programs start with, and for a
    /// tool the libraries installed beside its interpreter.
    pub(super) fn programs(&mut self) {
        let mut roots = vec![self.spec.program.clone()];
        roots.extend(
            self.spec
                .grants
                .exec
                .iter()
                .filter(|path| self.kind(path) == Some(Kind::File))
                .cloned(),
        );
        let mut needed = BTreeSet::new();
        let search = self.spec.env.get("PATH").map_or("", String::as_str);
        self.name();
        for root in roots.iter().chain(self.spec.aliases.values()) {
            needed.extend(self.host.files.closure(root, search));
        }
        if self.access(&self.spec.program) == Access::Write
            || self.access(&self.spec.program) == Access::WriteExecute
        {
            self.notes
                .push(Note::ProgramIsWritable(self.spec.program.clone()));
        }
        for path in roots.into_iter().chain(needed) {
            let Some((real, node)) = self.expand(&path, true) else {
                continue;
            };
            if node.kind != Kind::File {
                continue;
            }
            // A library path written into a binary must not pull a credential store into view.
            if floor::stores(&self.host.homes).any(|(store, _)| real.starts_with(store)) {
                continue;
            }
            self.executable(real.clone(), real.clone(), node);
            if self.spec.role == Role::Leaf {
                self.libraries_beside(&real);
            }
        }
    }

    /// The name the program was found under, where that is a link to it: programs start themselves by it.
    fn name(&mut self) {
        for path in links::names(self.spec) {
            let leads_here = |found: &(PathBuf, Node)| found.0 == self.spec.program;
            if self.expand(&path, false).as_ref().is_some_and(leads_here) {
                self.expand(&path, true);
                return;
            }
        }
    }

    fn executable(&mut self, path: PathBuf, source: PathBuf, node: Node) {
        self.rights(path.clone(), &[Right::ReadFile, Right::Execute]);
        let covered = self
            .cover(&path)
            .is_some_and(|access| access == Access::ReadExecute);
        if path != source || !covered {
            if path == source {
                self.reach("exec", &path);
            }
            self.entries.insert(
                path,
                Entry::Bind {
                    source,
                    node,
                    access: Access::ReadExecute,
                },
            );
        }
    }

    /// `<prefix>/lib` of an interpreter `<prefix>/bin/name` installed outside the system's directories.
    fn libraries_beside(&mut self, program: &Path) {
        use Right::*;
        let Some(library) = links::library_beside(self.host, program) else {
            return;
        };
        if self.entries.contains_key(&library) {
            return;
        }
        if let Some(node) = self
            .host
            .files
            .node(&library)
            .filter(|node| node.kind == Kind::Directory)
        {
            let access = self.access(&library);
            if matches!(access, Access::Write | Access::WriteExecute) {
                return;
            }
            self.rights(library.clone(), &[ReadFile, ReadDir, Execute]);
            self.reach("read, load code", &library);
            self.system.insert(library.clone());
            // Grants inside the tree were placed before it was known to hold code.
            for (path, entry) in &mut self.entries {
                if let Entry::Bind { access, .. } = entry
                    && *access == Access::Read
                    && path.starts_with(&library)
                {
                    *access = Access::ReadExecute;
                }
            }
            self.entries.insert(
                library.clone(),
                Entry::Bind {
                    source: library,
                    node,
                    access: Access::ReadExecute,
                },
            );
        }
    }

    pub(super) fn aliases(&mut self) {
        for (path, source) in &self.spec.aliases {
            let Some(node) = self
                .host
                .files
                .node(source)
                .filter(|node| node.kind == Kind::File)
            else {
                self.reasons.push(Reason::AliasMissing {
                    path: path.clone(),
                    source: source.clone(),
                });
                continue;
            };
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                self.reasons.push(Reason::AliasUnplaceable(path.clone()));
                continue;
            };
            let parent = match self.expand(parent, true) {
                Some((real, _)) => real,
                None => parent.to_path_buf(),
            };
            let path = parent.join(name);
            // Inside a bound tree there must be a plain file to mount over.
            if self.cover(&path).is_some() && self.kind(&path) != Some(Kind::File) {
                self.reasons.push(Reason::AliasUnplaceable(path));
                continue;
            }
            self.executable(path, source.clone(), node);
        }
    }
}
