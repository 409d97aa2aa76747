//! Process tables: `[agent]`, `[tool.<label>]`, and `[mcp.<name>]` of a server that is a program.

use super::{Entry, Key, Reader, Word, span};
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};

#[derive(Clone, Debug, Default)]
pub struct DraftProcess {
    /// `[agent]`, `[tool.git]`.
    pub title: String,
    pub at: Span,
    pub command: Vec<Word>,
    pub workspace: Option<Word>,
    pub env: BTreeMap<String, Word>,
    /// Variables of the agent's command that reach a tool.
    pub pass_env: Vec<Word>,
    /// By list name.
    pub filesystem: BTreeMap<&'static str, Vec<Word>>,
}

/// Whose table it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Agent,
    Tool,
    Server,
}

impl Owner {
    fn keys(self) -> &'static [&'static str] {
        match self {
            Owner::Agent => &["command", "workspace", "env", "filesystem"],
            Owner::Tool => &[
                "command",
                "workspace",
                "env",
                "filesystem",
                "network",
                "pass_env",
            ],
            Owner::Server => &[
                "type",
                "command",
                "workspace",
                "env",
                "filesystem",
                "network",
            ],
        }
    }
}

const LISTS: &[&str] = &[
    "read",
    "write",
    "read_file",
    "write_file",
    "list",
    "metadata",
    "exec",
    "deny",
];
/// Lists only the agent may have.
const AGENT_LISTS: &[&str] = &["metadata", "exec"];

const RESERVED_PREFIXES: &[&str] = &["LD_", "DYLD_", "PYTHON", "OTEL_EXPORTER_OTLP_"];
const RESERVED: &[&str] = &[
    "NODE_OPTIONS",
    "BASH_ENV",
    "ENV",
    "RUBYOPT",
    "PERL5LIB",
    "PERL5OPT",
    "GEM_PATH",
    "CLASSPATH",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "PWD",
    "USER",
    crate::broker::ADDRESS,
    crate::network::ADDRESS,
];
/// Where a tool finds its files and programs is the table's to say.
const TABLE_ONLY: &[&str] = &["HOME", "PATH", "TMPDIR", "SHELL"];

/// Names the box sets itself, and names that change what a program loads.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
        || RESERVED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
        || box_gateway::environment::is_own(name)
}

impl Reader {
    pub(super) fn process(
        &mut self,
        title: String,
        at: Span,
        table: &DeTable<'_>,
        owner: Owner,
    ) -> DraftProcess {
        let mut process = DraftProcess {
            title,
            at,
            ..DraftProcess::default()
        };
        let mut commanded = false;
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "command" => {
                    commanded = true;
                    process.command = self.command(key, value);
                }
                "workspace" => process.workspace = self.path(key, value),
                "env" => {
                    if let Some(table) = self.table(key, value) {
                        process.env = self.env(table);
                    }
                }
                "filesystem" => {
                    if let Some(table) = self.table(key, value) {
                        process.filesystem = self.filesystem(&process.title, table, owner);
                    }
                }
                "network" => self.network(key, value, owner),
                "pass_env" if owner == Owner::Tool => {
                    process.pass_env = self.pass_env(key, value);
                }
                // Read before.
                "type" if owner == Owner::Server => {}
                _ => {
                    let title = process.title.clone();
                    self.unknown(key, &format!("in `{title}`"), owner.keys());
                }
            }
        }
        if !commanded {
            let message = format!("`{}` has no `command`", process.title);
            self.refuse(
                Diagnostic::error("missing-key", at, message)
                    .help("add `command = [\"/path/to/program\"]`"),
            );
        }
        for word in &process.pass_env {
            if process.env.contains_key(&word.text) {
                let message = format!("`{}` is in `env` and in `pass_env`", word.text);
                self.refuse(
                    Diagnostic::error("invalid-env", word.span, message)
                        .help("take it out of one of them"),
                );
            }
        }
        process
    }

    fn command(&mut self, key: Key<'_, '_>, value: Entry<'_, '_>) -> Vec<Word> {
        let words = self.strings(key, value).unwrap_or_default();
        let empty = match value.get_ref() {
            DeValue::Array(elements) => elements.is_empty(),
            _ => false,
        };
        if empty {
            self.refuse(
                Diagnostic::error("invalid-command", span(value.span()), "`command` is empty")
                    .help("the first element is the program, the others are its arguments"),
            );
        }
        for (position, word) in words.iter().enumerate() {
            if word.text.contains('\0') || (position == 0 && word.text.is_empty()) {
                self.refuse(Diagnostic::error(
                    "invalid-command",
                    word.span,
                    "this is not a word a program can be started with",
                ));
            } else if word.text.contains("${") {
                self.refuse(
                    Diagnostic::error(
                        "invalid-command",
                        word.span,
                        "`${…}` is not expanded in `command`",
                    )
                    .help("write the value itself, or pass it through `env`"),
                );
            }
        }
        words
    }

    fn env(&mut self, table: &DeTable<'_>) -> BTreeMap<String, Word> {
        let mut env = BTreeMap::new();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let at = span(key.span());
            let Some(word) = self.string(key, value) else {
                continue;
            };
            if !self.variable(name, at) {
                continue;
            }
            if word.text.contains('\0') {
                self.refuse(Diagnostic::error(
                    "invalid-env",
                    word.span,
                    "an environment value cannot hold a NUL",
                ));
            } else if matches!(name, "HOME" | "TMPDIR")
                && !word.text.starts_with('/')
                && !word.text.starts_with("~/")
            {
                let message = format!("`{name}` must be an absolute path");
                self.refuse(
                    Diagnostic::error("invalid-env", word.span, message)
                        .help("write it out from `/`, or from `~/`"),
                );
            } else {
                env.insert(name.to_owned(), word);
            }
        }
        env
    }

    /// Whether a table may speak of the variable; if not, that has been said.
    fn variable(&mut self, name: &str, at: Span) -> bool {
        let well_formed = name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
            && name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric());
        if !well_formed {
            let message = format!("`{name}` is not the name of an environment variable");
            self.refuse(
                Diagnostic::error("invalid-env", at, message)
                    .help("a name is letters, digits and `_`, and does not begin with a digit"),
            );
        } else if is_reserved(name) {
            let message = format!(
                "`env` name \"{name}\" is set by the box itself or would change how programs load"
            );
            self.refuse(
                Diagnostic::error("reserved-env", at, message)
                    .help("take it out; a wrapper script can set it for one program"),
            );
        } else {
            return true;
        }
        false
    }

    fn pass_env(&mut self, key: Key<'_, '_>, value: Entry<'_, '_>) -> Vec<Word> {
        let words = self.strings(key, value).unwrap_or_default();
        let mut names: Vec<Word> = Vec::new();
        for word in words {
            if TABLE_ONLY.contains(&word.text.as_str()) {
                let message = format!("`{}` is never taken from a command", word.text);
                self.refuse(
                    Diagnostic::error("reserved-env", word.span, message)
                        .help("set it in the `env` of this tool, where it is fixed"),
                );
            } else if names.iter().any(|other| other.text == word.text) {
                let message = format!("`{}` is named twice", word.text);
                self.refuse(
                    Diagnostic::error("invalid-env", word.span, message)
                        .help("take one of them out"),
                );
            } else if self.variable(&word.text, word.span) {
                names.push(word);
            }
        }
        names
    }

    fn filesystem(
        &mut self,
        title: &str,
        table: &DeTable<'_>,
        owner: Owner,
    ) -> BTreeMap<&'static str, Vec<Word>> {
        let mut lists = BTreeMap::new();
        for (key, value) in table {
            let Some(list) = LISTS.iter().find(|list| **list == key.get_ref().as_ref()) else {
                self.unknown(key, &format!("in the `filesystem` of `{title}`"), LISTS);
                continue;
            };
            if owner != Owner::Agent && AGENT_LISTS.contains(list) {
                let message = format!("`{list}` is refused on `{title}`: only the agent has it");
                let help = if *list == "exec" {
                    "a tool runs its own command and the system's programs; take the list out"
                } else {
                    "use `list` or `read`"
                };
                self.refuse(
                    Diagnostic::error("invalid-list", span(key.span()), message).help(help),
                );
                continue;
            }
            let words = self.strings(key, value).unwrap_or_default();
            let mut seen: Vec<Word> = Vec::new();
            for word in words {
                if let Some(reason) = pattern(&word.text) {
                    let message = format!(
                        "`{title}` filesystem entry \"{}\" is refused: {reason}",
                        word.text
                    );
                    self.refuse(
                        Diagnostic::error("invalid-path", word.span, message)
                            .help("name one directory or file; a directory in `read` or `write` stands for everything in it"),
                    );
                } else if let Some(first) = seen.iter().find(|other| other.text == word.text) {
                    let message =
                        format!("`{title}` filesystem entry \"{}\" is duplicated", word.text);
                    let first = first.span;
                    self.refuse(
                        Diagnostic::error("duplicate-path", word.span, message)
                            .also(first, "first named here")
                            .help("take one of them out"),
                    );
                } else {
                    seen.push(word);
                }
            }
            lists.insert(*list, seen);
        }
        lists
    }

    fn network(&mut self, key: Key<'_, '_>, value: Entry<'_, '_>, owner: Owner) {
        if owner == Owner::Agent {
            self.refuse(
                Diagnostic::error(
                    "unknown-key",
                    span(key.span()),
                    "`network` is refused on `[agent]`",
                )
                .help("the agent has no network of its own; take the table out"),
            );
            return;
        }
        let Some(table) = self.table(key, value) else {
            return;
        };
        for (key, value) in table {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("contain_egress", DeValue::Boolean(true)) => {}
                ("contain_egress", DeValue::Boolean(false)) => self.not_enforced(
                    span(value.span()),
                    "`contain_egress = false`",
                    "every process goes through the gateway in this build; take the key out",
                ),
                ("contain_egress", _) => self.wrong_type(key, value, "true or false"),
                _ => self.unknown(key, "in `network`", &["contain_egress"]),
            }
        }
    }
}

/// Why a list entry is not one exact path.
fn pattern(entry: &str) -> Option<&'static str> {
    if entry.is_empty() {
        return Some("it is empty");
    }
    if entry
        .chars()
        .any(|c| "*?[]{}".contains(c) || c.is_control())
    {
        return Some("it must be exact and contain no pattern or control character");
    }
    if entry.split('/').any(|part| part == "..") {
        return Some("it carries `..`");
    }
    if entry.starts_with('~') && entry != "~" && !entry.starts_with("~/") {
        return Some("only `~/` stands for a home");
    }
    None
}
