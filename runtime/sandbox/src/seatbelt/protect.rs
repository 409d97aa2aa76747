//! What is taken back: write protection, existence below the operator's home, refusals.

use super::rule::Filter;
use super::{
    EXISTENCE, MAP, METADATA, Profile, REPLACES, SOCKETS, WRITES, all_ancestors, ancestors,
    literals, node, spellings, subpaths,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Every way to learn of a path or to change it. Wildcards for what has no exact rule elsewhere, and the
/// exact names, because an exact rule of a grant would beat the wildcard.
const REFUSED: &[&str] = &[
    "file-read*",
    "file-write*",
    "file-read-data",
    METADATA,
    EXISTENCE,
    "process-exec",
    MAP,
    // These two look at the file copied or linked, not at where the new name goes.
    "file-clone",
    "file-link",
];

impl Profile<'_> {
    /// Everything subtracted, in both names.
    fn refused(&self) -> Vec<PathBuf> {
        let mut refused = self.paths.denied.clone();
        refused.extend(self.paths.stores.iter().cloned());
        refused.dedup();
        spellings(&refused)
    }

    /// Files that decide what the sandbox is, and the directories a refused path could be renamed away with.
    pub(super) fn protections(&mut self) {
        let trees = self.write_trees();
        let inside = |path: &&PathBuf| trees.iter().any(|tree| path.starts_with(tree));
        let sources: BTreeSet<PathBuf> = self
            .paths
            .aliases
            .values()
            .filter(inside)
            .cloned()
            .collect();
        let names = self.wiring.names();
        let mut kept: BTreeSet<PathBuf> = BTreeSet::new();
        let refused = self.paths.denied.iter().chain(&self.paths.stores);
        for path in sources.iter().chain(refused) {
            for tree in trees.iter().filter(|tree| path.starts_with(tree)) {
                kept.extend(
                    ancestors(path)
                        .into_iter()
                        .filter(|above| above.starts_with(tree)),
                );
            }
        }
        self.why("what decides about the sandbox is not written, whatever grant holds it");
        let mut protected = literals(sources);
        protected.push(Filter::Subpath(names));
        self.deny(&["file-write*"], protected.clone());
        self.deny(WRITES, protected.clone());
        self.deny(&["file-link"], protected);
        if !kept.is_empty() {
            self.why("directories around something refused stay where they are");
            self.deny(REPLACES, literals(kept));
        }
    }

    /// The refusal to read a path still tells whether it is there. Below the operator's home that is
    /// nobody's business; a tool may look around, for configuration it expects, but not at credentials.
    pub(super) fn existence(&mut self) {
        let homes = spellings(&self.paths.homes);
        let stores = spellings(&self.paths.stores);
        if self.leaf() {
            self.why("a tool may see what is in the home, but for what holds credentials");
            self.allow(&[EXISTENCE, METADATA], subpaths(&self.paths.homes.clone()));
            let mut hidden = stores;
            hidden.extend(spellings(&self.paths.denied));
            self.deny(&[EXISTENCE, METADATA], subpaths(&hidden));
            return;
        }
        self.why("whether something is in the home shows only at and above a grant");
        self.deny(&[EXISTENCE], subpaths(&homes));
        let mut shown = Vec::new();
        let mut above = Vec::new();
        let mut show = |path: &Path, tree: bool| {
            if self.paths.homes.iter().any(|home| path.starts_with(home)) {
                shown.push(node(path, tree));
                above.push(path.to_path_buf());
            }
        };
        for grant in &self.paths.grants {
            show(&grant.path, grant.tree);
        }
        for program in &self.paths.programs {
            show(&program.path, false);
            for passed in &program.passed {
                show(passed, false);
            }
        }
        for place in &self.paths.places {
            show(place, false);
        }
        show(&self.wiring.scratch(), true);
        let above = all_ancestors(&above)
            .into_iter()
            .filter(|path| homes.iter().any(|home| path.starts_with(home)));
        self.allow(&[EXISTENCE], [literals(above), shown].concat());
        self.deny(&[EXISTENCE], subpaths(&stores));
    }

    /// The `deny` list and the credential stores, after every grant.
    pub(super) fn refusals(&mut self) {
        let refused = subpaths(&self.refused());
        self.why("refused, in every name the path has");
        self.deny(REFUSED, refused.clone());
        self.deny(WRITES, refused.clone());
        self.deny(SOCKETS, refused);
    }

    /// Executing a file looks at every directory above it, refused or not.
    pub(super) fn lookups(&mut self) {
        let programs: Vec<PathBuf> = self
            .paths
            .programs
            .iter()
            .map(|program| program.path.clone())
            .collect();
        self.why("the way to what is executed stays open");
        self.allow(&[METADATA, EXISTENCE], literals(all_ancestors(&programs)));
    }
}
