//! Which looks at metadata are the script's own, and which only prepare an operation decided itself.

use super::reach::Target;
use super::{PolicyFs, missing, plain_file};
use crate::admission::Tool;
use crate::decide::Effect;
use bashkit::Metadata;
use box_authority::action::FsRead;
use std::io;
use std::path::Path;

/// Builtins whose output shows metadata.
const SHOWS_METADATA: [&str; 11] = [
    "test", "[", "ls", "stat", "du", "tree", "file", "realpath", "readlink", "pushd", "popd",
];

/// `find` predicates and actions that look at more than names and types.
const FIND_METADATA: [&str; 22] = [
    "-size",
    "-mtime",
    "-mmin",
    "-atime",
    "-amin",
    "-ctime",
    "-cmin",
    "-newer",
    "-perm",
    "-empty",
    "-user",
    "-group",
    "-uid",
    "-gid",
    "-inum",
    "-links",
    "-ls",
    "-printf",
    "-fprintf",
    "-executable",
    "-readable",
    "-writable",
];

impl PolicyFs {
    /// True for a look that only prepares an operation which is decided itself.
    pub(super) fn is_probe(&self, path: &Path, tool: Option<&Tool>) -> bool {
        let mut state = self.state();
        let parent = path.parent();
        let starts = parent == Some(Path::new("/"));
        if starts || (state.chain.is_some() && state.chain.as_deref() == parent) {
            state.chain = Some(path.to_path_buf());
            return true;
        }
        let again = state.chain.as_deref() == Some(path) && !state.through_link;
        state.chain = None;
        state.through_link = false;
        drop(state);
        if again && tool.is_none_or(|tool| tool.runs_text) {
            return true;
        }
        if self.host.leads_to_a_root(path) {
            return !tool.is_some_and(changes_dir);
        }
        match tool {
            None => false,
            Some(tool) if tool.runs_text => false,
            Some(tool) if shows_metadata(tool) || changes_dir(tool) => false,
            Some(tool) if tool.main => true,
            // The next look in a copy may be the script's own, so only what the builtin was given counts.
            Some(tool) => tool.args.iter().any(|word| names(word, path)),
        }
    }

    pub(super) fn note_link(&self, path: &Path) {
        let mut state = self.state();
        state.through_link = true;
        state.chain = path.parent().map(Path::to_path_buf);
    }

    /// The look-up of programs: answered from the host's directories, for those who only look names up.
    pub(super) fn program_look_up(
        &self,
        path: &Path,
        tool: Option<&Tool>,
    ) -> Option<io::Result<Metadata>> {
        if !self
            .search
            .iter()
            .any(|searched| Some(searched.as_path()) == path.parent())
        {
            return None;
        }
        match tool {
            // The interpreter's own search: what it would find it would read as a script. Programs are reached
            // through their stand-ins and the resolver instead.
            None => Some(Err(missing())),
            Some(tool) if tool.runs_text && tool.name != "command" => Some(Err(missing())),
            Some(tool) if ["command", "type", "which", "hash"].contains(&tool.name.as_str()) => {
                Some(match std::fs::metadata(path) {
                    Ok(metadata) if metadata.is_file() => Ok(Metadata {
                        mode: 0o755,
                        ..plain_file(metadata.len())
                    }),
                    _ => Err(missing()),
                })
            }
            Some(_) => None,
        }
    }

    /// True for a name outside the reach, in a directory where programs are looked up.
    pub(super) fn is_searched(&self, target: &Target) -> bool {
        match target {
            Target::Memory(path) => self
                .search
                .iter()
                .any(|dir| Some(dir.as_path()) == path.parent()),
            Target::Host(_) => false,
        }
    }
}

pub(super) fn program_metadata(path: &Path) -> io::Result<Metadata> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(Metadata {
            mode: 0o755,
            ..plain_file(metadata.len())
        }),
        _ => Err(missing()),
    }
}

pub(super) fn changes_dir(tool: &Tool) -> bool {
    ["cd", "pushd", "popd"].contains(&tool.name.as_str())
}

pub(super) fn shows_metadata(tool: &Tool) -> bool {
    SHOWS_METADATA.contains(&tool.name.as_str())
        || (tool.name == "find"
            && tool
                .args
                .iter()
                .any(|word| FIND_METADATA.contains(&word.as_str())))
}

/// Looks at the link itself rather than where it leads.
pub(super) fn shows_links(tool: &Tool) -> bool {
    match tool.name.as_str() {
        "test" | "[" => tool.args.iter().any(|word| word == "-L" || word == "-h"),
        name => ["ls", "stat", "readlink", "realpath"].contains(&name),
    }
}

pub(super) fn looked_for(tool: Option<&Tool>) -> Effect {
    Effect::Read(match tool {
        Some(tool) if changes_dir(tool) => FsRead::ChangeDir,
        Some(tool)
            if ["test", "["].contains(&tool.name.as_str())
                && tool.args.iter().any(|w| w == "-x") =>
        {
            FsRead::Exec
        }
        _ => FsRead::ReadMetadata,
    })
}

/// True when `path` is what the word names, lies below it, or leads to it.
fn names(word: &str, path: &Path) -> bool {
    let word = Path::new(word.strip_prefix("./").unwrap_or(word));
    let named = |part: &Path| {
        !part.as_os_str().is_empty() && path.ancestors().any(|ancestor| ancestor.ends_with(part))
    };
    named(word)
        || word
            .ancestors()
            .skip(1)
            .any(|part| !part.as_os_str().is_empty() && path.ends_with(part))
}

#[cfg(test)]
mod tests {
    use super::names;
    use std::path::Path;

    #[test]
    fn a_word_names_itself_what_is_below_and_what_leads_to_it() {
        let path = Path::new("/h/ws/a/b");
        assert!(names("a/b", path));
        assert!(names("./a", path));
        assert!(names("a/b/c", path));
        assert!(names("/h/ws", path));
        assert!(!names("c/a", path));
        assert!(!names("", path));
        assert!(!names("x", path));
    }
}
