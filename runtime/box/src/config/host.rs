//! A draft against the machine: paths become canonical, programs are found, and what is not there is named.
//!
//! Whether a path may be granted at all is the sandbox's question; here it only has to be one exact place.

mod network;

use super::shape::{Draft, DraftProcess, DraftServer, Word};
use super::{BoxConfig, Process, Telemetry};
use box_sandbox::spec::Grants;
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// What a configuration takes from the environment of `box run`.
#[derive(Clone, Debug)]
pub struct Host {
    /// The operator's, canonical.
    pub home: PathBuf,
    pub path: String,
    /// Where box directories go that the file does not place.
    pub state: PathBuf,
    /// The directory `run` started in, canonical.
    pub cwd: PathBuf,
}

/// Where bare program names are looked up when nothing says so.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

pub fn resolve(
    file: &Path,
    draft: &Draft,
    host: &Host,
    problems: &mut Vec<Diagnostic>,
) -> Option<BoxConfig> {
    let folder = file.parent()?;
    let mut resolver = Resolver {
        folder,
        host,
        problems,
    };
    let name = draft
        .name
        .as_ref()
        .map(|word| word.text.clone())
        .unwrap_or_default();
    let policy = draft.policy.as_ref().and_then(|word| resolver.policy(word));
    let agent = match &draft.agent {
        Some(agent) => resolver.process("agent", agent, true),
        // A misspelt `[agent]` has been answered.
        None if resolver
            .problems
            .iter()
            .any(|problem| problem.label.contains("`agent`")) =>
        {
            None
        }
        None => {
            resolver.problems.push(
                Diagnostic::error(
                    "missing-key",
                    Span::at(0),
                    "there is no workload to run: the file has no `[agent]`",
                )
                .help("add an `[agent]` table with a `command`"),
            );
            None
        }
    };
    let mut tools = BTreeMap::new();
    for (label, tool) in &draft.tools {
        if let Some(process) = resolver.process(&format!("tool.{label}"), tool, false) {
            tools.insert(label.clone(), process);
        }
    }
    resolver.same_command(draft, &tools);
    let mcp = resolver.servers(draft);
    let egress = resolver.egress(draft);
    let gateway = resolver.gateway(draft);
    let box_dir = resolver.box_dir(draft, &name, file)?;
    let files = resolver.records(draft, &box_dir);
    let agent = agent?;
    resolver.apart(draft, &box_dir, file, policy.as_deref(), &files, &agent);
    Some(BoxConfig {
        name,
        file: file.to_path_buf(),
        box_dir,
        policy,
        keep_history: draft.keep_history.unwrap_or(0),
        agent,
        tools,
        egress,
        mcp,
        telemetry: Telemetry { files },
        gateway,
        not_yet: draft.not_yet.clone(),
    })
}

struct Resolver<'r> {
    folder: &'r Path,
    host: &'r Host,
    problems: &'r mut Vec<Diagnostic>,
}

impl Resolver<'_> {
    fn refuse(&mut self, code: &'static str, at: Span, message: String, help: &str) {
        self.problems
            .push(Diagnostic::error(code, at, message).help(help));
    }

    /// The absolute spelling of a path of the file, without `.` components.
    fn absolute(&self, text: &str) -> PathBuf {
        let path = match text.strip_prefix('~') {
            Some("") => self.host.home.clone(),
            Some(rest) if rest.starts_with('/') => {
                self.host.home.join(rest.trim_start_matches('/'))
            }
            _ => self.folder.join(text),
        };
        path.components()
            .filter(|part| *part != Component::CurDir)
            .collect()
    }

    fn policy(&mut self, word: &Word) -> Option<PathBuf> {
        let path = self.absolute(&word.text);
        let found = match path.canonicalize() {
            Ok(found) => found,
            Err(e) => {
                let message = format!(
                    "the policy {} cannot be read: {}",
                    path.display(),
                    reason(&e)
                );
                self.refuse(
                    "path-missing",
                    word.span,
                    message,
                    "name the `.dw` file, relative to this file",
                );
                return None;
            }
        };
        match std::fs::metadata(&found) {
            Ok(file) if file.is_file() && file.nlink() == 1 => Some(found),
            Ok(file) => {
                let what = if file.is_file() {
                    "has a second name (a hard link)"
                } else {
                    "is not a regular file"
                };
                let message = format!("the policy {} {what}", found.display());
                self.refuse(
                    "path-kind",
                    word.span,
                    message,
                    "make it a plain file of its own",
                );
                None
            }
            Err(e) => {
                let message = format!(
                    "the policy {} cannot be read: {}",
                    found.display(),
                    reason(&e)
                );
                self.refuse(
                    "path-missing",
                    word.span,
                    message,
                    "name the `.dw` file, relative to this file",
                );
                None
            }
        }
    }

    fn process(&mut self, name: &str, draft: &DraftProcess, agent: bool) -> Option<Process> {
        let mut env: BTreeMap<String, String> = draft
            .env
            .iter()
            .map(|(name, word)| (name.clone(), word.text.clone()))
            .collect();
        for name in ["HOME", "TMPDIR"] {
            if let Some(value) = env.get_mut(name) {
                *value = self.absolute(value).display().to_string();
            }
        }
        env.entry("HOME".into())
            .or_insert_with(|| self.host.home.display().to_string());
        env.entry("PATH".into())
            .or_insert_with(|| self.host.path.clone());
        let workspace = match &draft.workspace {
            Some(word) => self.workspace(word),
            None if agent => Some(self.host.cwd.clone()),
            None => None,
        };
        if agent && draft.workspace.is_none() && self.host.cwd == self.host.home {
            self.refuse(
                "invalid-workspace",
                draft.at,
                "the agent's workspace would be the home directory, where `box run` was started"
                    .into(),
                "add `workspace = \"…\"` to `[agent]`, or start in the project's directory",
            );
        }
        let grants = self.grants(draft);
        let program = self.program(draft, env.get("PATH").map_or("", String::as_str));
        Some(Process {
            name: name.into(),
            program: program?,
            argv: draft.command.iter().map(|word| word.text.clone()).collect(),
            workspace,
            env,
            pass_env: draft
                .pass_env
                .iter()
                .map(|word| word.text.clone())
                .collect(),
            grants,
        })
    }

    fn workspace(&mut self, word: &Word) -> Option<PathBuf> {
        let path = self.absolute(&word.text);
        let found = match path.canonicalize() {
            Ok(found) if found.is_dir() => found,
            Ok(_) => {
                let message = format!("the workspace {} is not a directory", path.display());
                self.refuse(
                    "path-kind",
                    word.span,
                    message,
                    "name the directory the process works in",
                );
                return None;
            }
            Err(e) => {
                let message = format!(
                    "the workspace {} cannot be entered: {}",
                    path.display(),
                    reason(&e)
                );
                self.refuse(
                    "path-missing",
                    word.span,
                    message,
                    "create the directory, or name another",
                );
                return None;
            }
        };
        if found == self.host.home {
            let message = format!(
                "the workspace {} is the whole home directory",
                found.display()
            );
            self.refuse(
                "invalid-workspace",
                word.span,
                message,
                "name the directory of one project",
            );
            return None;
        }
        Some(found)
    }

    fn program(&mut self, draft: &DraftProcess, search: &str) -> Option<PathBuf> {
        let word = draft.command.first()?;
        let path = if word.text.contains('/') || word.text == "~" {
            self.absolute(&word.text)
        } else {
            let search = [search, DEFAULT_PATH]
                .into_iter()
                .find(|path| !path.is_empty())
                .unwrap_or_default();
            let Some(found) = find_program(&word.text, search) else {
                let message = format!(
                    "`{}` command: there is no program `{}` on {search}",
                    draft.title, word.text
                );
                let help = if draft.title.starts_with("[mcp.") {
                    "say in `env.PATH` of this table where it is"
                } else {
                    "write the path of the program"
                };
                self.refuse("program-missing", word.span, message, help);
                return None;
            };
            found
        };
        let found = match path.canonicalize() {
            Ok(found) => found,
            Err(e) => {
                let message = format!(
                    "`{}` command: {}: {}",
                    draft.title,
                    path.display(),
                    reason(&e)
                );
                self.refuse(
                    "program-missing",
                    word.span,
                    message,
                    "write the path of a program that is there",
                );
                return None;
            }
        };
        let executable = std::fs::metadata(&found)
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
        if !executable {
            let message = format!(
                "`{}` command: {} is not an executable file",
                draft.title,
                found.display()
            );
            let help = format!(
                "chmod +x {}, if it is a script that begins with `#!`",
                found.display()
            );
            self.refuse("program-missing", word.span, message, &help);
            return None;
        }
        Some(found)
    }

    fn grants(&mut self, draft: &DraftProcess) -> Grants {
        let mut grants = Grants::default();
        for (list, words) in &draft.filesystem {
            let into = match *list {
                "read" => &mut grants.read,
                "write" => &mut grants.write,
                "read_file" => &mut grants.read_file,
                "write_file" => &mut grants.write_file,
                "list" => &mut grants.list,
                "metadata" => &mut grants.metadata,
                "exec" => &mut grants.exec,
                _ => &mut grants.deny,
            };
            for word in words {
                into.extend(self.entry(&draft.title, word));
            }
        }
        grants
    }

    fn entry(&mut self, title: &str, word: &Word) -> Option<PathBuf> {
        let path = self.absolute(&word.text);
        let refused = |reason: String| {
            format!(
                "`{title}` filesystem entry \"{}\" is refused: {reason}",
                word.text
            )
        };
        let found = match std::fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(e) => {
                let message = refused(format!("{}: {}", path.display(), reason(&e)));
                self.refuse(
                    "path-missing",
                    word.span,
                    message,
                    "create it before the box starts, or take the entry out",
                );
                return None;
            }
        };
        let Ok(canonical) = path.canonicalize() else {
            let message = refused("it is a symbolic link that leads nowhere".into());
            self.refuse(
                "path-missing",
                word.span,
                message,
                "name the file or directory itself",
            );
            return None;
        };
        if canonical != path {
            let why = if found.is_symlink() {
                format!("it is a symbolic link to {}", canonical.display())
            } else {
                format!(
                    "it is not the path the kernel checks, which is {}",
                    canonical.display()
                )
            };
            let text = format!("{:?}", canonical.display().to_string());
            let refusal = Diagnostic::error("path-spelling", word.span, refused(why))
                .help(format!("write {text}"))
                .fix(format!("write {text}"), word.span, text);
            self.problems.push(refusal);
            return None;
        }
        Some(path)
    }

    /// Two tools with one command: which one a spawn would get is not said.
    fn same_command(&mut self, draft: &Draft, tools: &BTreeMap<String, Process>) {
        let mut seen: Vec<(&str, &Process)> = Vec::new();
        for (label, tool) in tools {
            let same = |other: &&(&str, &Process)| {
                other.1.program == tool.program && other.1.argv.get(1..) == tool.argv.get(1..)
            };
            if let (Some((other, _)), Some(at)) = (seen.iter().find(same), draft.tools.get(label)) {
                let message = format!("`[tool.{label}]` has the same command as `[tool.{other}]`");
                let first = draft.tools.get(*other).map_or(at.at, |other| other.at);
                self.problems.push(
                    Diagnostic::error("duplicate-command", at.at, message)
                        .also(first, "the other one")
                        .help("give one of them more fixed arguments, or take it out"),
                );
            }
            seen.push((label, tool));
        }
    }

    fn box_dir(&mut self, draft: &Draft, name: &str, file: &Path) -> Option<PathBuf> {
        let Some(word) = &draft.box_dir else {
            return Some(self.host.state.join(format!("{name}-{:016x}", hash(file))));
        };
        let path = self.absolute(&word.text);
        let (Some(parent), Some(last)) = (path.parent(), path.file_name()) else {
            let message = format!("{} cannot be a box directory", path.display());
            self.refuse(
                "invalid-path",
                word.span,
                message,
                "name a directory of its own",
            );
            return None;
        };
        match parent.canonicalize() {
            Ok(parent) => Some(parent.join(last)),
            Err(e) => {
                let message = format!(
                    "the box directory cannot be made in {}: {}",
                    parent.display(),
                    reason(&e)
                );
                self.refuse(
                    "path-missing",
                    word.span,
                    message,
                    "create the parent directory first",
                );
                None
            }
        }
    }

    /// The agent's files and the box's own files may not meet.
    fn apart(
        &mut self,
        draft: &Draft,
        box_dir: &Path,
        file: &Path,
        policy: Option<&Path>,
        records: &[PathBuf],
        agent: &Process,
    ) {
        let at = draft
            .box_dir
            .as_ref()
            .or(draft.name.as_ref())
            .map_or(Span::at(0), |word| word.span);
        let help = "put the box directory elsewhere with `box_dir`";
        let workspace = agent
            .workspace
            .as_deref()
            .filter(|workspace| *workspace != self.host.home);
        if workspace.is_some_and(|workspace| box_dir.starts_with(workspace)) {
            let message = format!(
                "the box directory {} lies in the agent's workspace",
                box_dir.display()
            );
            self.refuse("invalid-box-dir", at, message, help);
        }
        for (what, path) in [("this file", Some(file)), ("the policy", policy)] {
            if path.is_some_and(|path| path.starts_with(box_dir)) {
                let message = format!("{what} lies in the box directory {}", box_dir.display());
                self.refuse("invalid-box-dir", at, message, help);
            }
        }
        let servers = || {
            draft.mcp.values().filter_map(|server| match server {
                DraftServer::Stdio(process) => Some(process),
                DraftServer::Http(_) => None,
            })
        };
        let processes = || {
            draft
                .agent
                .iter()
                .chain(draft.tools.values())
                .chain(servers())
        };
        let written = |process: &DraftProcess| {
            let lists = ["write", "write_file"]
                .into_iter()
                .filter_map(|list| process.filesystem.get(list));
            lists
                .flatten()
                .cloned()
                .map(|word| (process.title.clone(), word))
                .collect::<Vec<_>>()
        };
        for (title, word) in processes().flat_map(written) {
            let entry = self.absolute(&word.text);
            let own = [
                ("this configuration", Some(file)),
                ("this box's policy file", policy),
                ("the box directory", Some(box_dir)),
            ];
            let records = records
                .iter()
                .map(|path| ("the decision records", Some(path.as_path())));
            let reached = own.into_iter().chain(records).find_map(|(what, path)| {
                let path = path?;
                (path.starts_with(&entry) || entry.starts_with(path)).then_some((what, path))
            });
            if let Some((what, path)) = reached {
                let message = format!(
                    "`{title}` filesystem entry \"{}\" is refused: it reaches {what}, {}",
                    word.text,
                    path.display()
                );
                let help = "grant the directories the process works in, one by one";
                self.refuse("path-own", word.span, message, help);
            }
        }
        for word in processes().filter_map(|process| process.env.get("HOME")) {
            let home = self.absolute(&word.text);
            if home != self.host.home && (home.starts_with(box_dir) || box_dir.starts_with(&home)) {
                let message = format!(
                    "`HOME` and the box directory {} lie in one another",
                    box_dir.display()
                );
                self.refuse("invalid-box-dir", word.span, message, "name another home");
            }
        }
    }
}

/// The first executable `name` on a search path.
pub fn find_program(name: &str, search: &str) -> Option<PathBuf> {
    search
        .split(':')
        .filter(|folder| folder.starts_with('/'))
        .map(|folder| Path::new(folder).join(name))
        .find(|path| {
            std::fs::metadata(path)
                .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
        })
}

pub(super) fn reason(e: &std::io::Error) -> String {
    match e.kind() {
        std::io::ErrorKind::NotFound => "it is not there".into(),
        std::io::ErrorKind::PermissionDenied => "permission is denied".into(),
        std::io::ErrorKind::NotADirectory => "a part of the path is not a directory".into(),
        _ => e.to_string(),
    }
}

/// FNV-1a, so that the directory of a box is the same on every run and every build.
pub fn hash(path: &Path) -> u64 {
    path.as_os_str()
        .as_encoded_bytes()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

#[cfg(test)]
mod tests;
