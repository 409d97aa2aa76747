//! The text of `box.toml` to a draft: keys, types and spellings. Looks at nothing but the text, and finds
//! everything that is wrong with it in one pass.

use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use std::borrow::Cow;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A word of the file and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub span: Span,
}

#[derive(Clone, Debug, Default)]
pub struct Draft {
    pub name: Option<Word>,
    pub box_dir: Option<Word>,
    pub policy: Option<Word>,
    pub agent: Option<DraftProcess>,
    /// By label.
    pub tools: BTreeMap<String, DraftProcess>,
}

#[derive(Clone, Debug, Default)]
pub struct DraftProcess {
    /// `[agent]`, `[tool.git]`.
    pub title: String,
    pub at: Span,
    pub command: Vec<Word>,
    pub workspace: Option<Word>,
    pub env: BTreeMap<String, Word>,
    /// By list name.
    pub filesystem: BTreeMap<&'static str, Vec<Word>>,
}

const TOP: &[&str] = &["name", "box_dir", "policy", "agent", "tool"];
/// Parts of a full `box.toml` that this build does not enforce. Ignoring one would grant more, or protect
/// less, than the file says.
const NOT_YET: &[&str] = &[
    "egress",
    "mcp",
    "telemetry",
    "containment",
    "experimental-features",
];
const PROCESS: &[&str] = &["command", "workspace", "env", "filesystem"];
pub const LISTS: &[&str] = &[
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
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "http_proxy",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
    "NODE_USE_ENV_PROXY",
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "CODEX_CA_CERTIFICATE",
    "AWS_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PWD",
    "USER",
    crate::broker::ADDRESS,
];

/// The draft, as far as it can be read, and everything wrong with the text.
pub fn read(text: &str) -> (Draft, Vec<Diagnostic>) {
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader {
        problems: Vec::new(),
    };
    // What comes after the first error is mostly its echo.
    if let Some(error) = errors
        .iter()
        .min_by_key(|error| error.span().map_or(0, |span| span.start))
    {
        let span = error.span().map_or(Span::at(0), span);
        let message = format!("this is not TOML: {}", error.message());
        reader
            .problems
            .push(Diagnostic::error("config-syntax", span, message));
    }
    let broken = !reader.problems.is_empty();
    let draft = reader.top(root.get_ref());
    // What a broken text lacks may only be lost in the part that could not be read.
    let proposed: Vec<String> = reader
        .problems
        .iter()
        .filter_map(|problem| problem.fix.as_ref())
        .map(|fix| fix.title.clone())
        .collect();
    reader.problems.retain(|problem| {
        let misspelled = || {
            proposed.iter().any(|title| {
                problem
                    .message
                    .ends_with(title.trim_start_matches("rename it to "))
            })
        };
        problem.code != "missing-key" || !(broken || misspelled())
    });
    (draft, reader.problems)
}

fn span(range: std::ops::Range<usize>) -> Span {
    Span::new(range.start, range.end)
}

type Key<'t, 'i> = &'t Spanned<Cow<'i, str>>;
type Entry<'t, 'i> = &'t Spanned<DeValue<'i>>;

struct Reader {
    problems: Vec<Diagnostic>,
}

impl Reader {
    fn refuse(&mut self, diagnostic: Diagnostic) {
        self.problems.push(diagnostic);
    }

    fn top(&mut self, root: &DeTable<'_>) -> Draft {
        let mut draft = Draft::default();
        for (key, value) in root {
            match key.get_ref().as_ref() {
                "name" => {
                    draft.name = self.string(key, value);
                    if let Some(word) = &draft.name {
                        self.label(word, "a box name");
                    }
                }
                "box_dir" => draft.box_dir = self.path(key, value),
                "policy" => draft.policy = self.path(key, value),
                "agent" => {
                    if let Some(table) = self.table(key, value) {
                        draft.agent =
                            Some(self.process("[agent]".into(), span(key.span()), table, true));
                    }
                }
                "tool" => {
                    let Some(tools) = self.table(key, value) else {
                        continue;
                    };
                    for (label, value) in tools {
                        let word = Word {
                            text: label.get_ref().to_string(),
                            span: span(label.span()),
                        };
                        self.label(&word, "the label of a tool");
                        if let Some(table) = self.table(label, value) {
                            let title = format!("[tool.{}]", word.text);
                            let process = self.process(title, word.span, table, false);
                            draft.tools.insert(word.text, process);
                        }
                    }
                }
                name if NOT_YET.contains(&name) => {
                    let message = format!("`[{name}]` is not supported by this build yet");
                    self.refuse(
                        Diagnostic::error("unsupported-table", span(key.span()), message)
                            .help("take the table out to run without it; it is not ignored, because the box would then be weaker than the file says"),
                    );
                }
                _ => self.unknown(key, "at the top level", TOP),
            }
        }
        if draft.name.is_none() && !root.keys().any(|key| key.get_ref() == "name") {
            self.refuse(
                Diagnostic::error("missing-key", Span::at(0), "the box has no `name`")
                    .help("add a line such as `name = \"my-box\"` at the top"),
            );
        }
        draft
    }

    fn process(
        &mut self,
        title: String,
        at: Span,
        table: &DeTable<'_>,
        agent: bool,
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
                        process.filesystem = self.filesystem(&process.title, table, agent);
                    }
                }
                "network" => self.network(key, value, agent),
                _ => {
                    let title = process.title.clone();
                    self.unknown(key, &format!("in `{title}`"), PROCESS);
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
            let well_formed = name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
                && name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric());
            if !well_formed {
                let message = format!("`{name}` is not the name of an environment variable");
                self.refuse(
                    Diagnostic::error("invalid-env", at, message)
                        .help("a name is letters, digits and `_`, and does not begin with a digit"),
                );
            } else if RESERVED.contains(&name)
                || RESERVED_PREFIXES
                    .iter()
                    .any(|prefix| name.starts_with(prefix))
            {
                let message = format!(
                    "`env` name \"{name}\" is set by the box itself or would change how programs load"
                );
                self.refuse(
                    Diagnostic::error("reserved-env", at, message)
                        .help("take it out; a wrapper script can set it for one program"),
                );
            } else if word.text.contains('\0') {
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

    fn filesystem(
        &mut self,
        title: &str,
        table: &DeTable<'_>,
        agent: bool,
    ) -> BTreeMap<&'static str, Vec<Word>> {
        let mut lists = BTreeMap::new();
        for (key, value) in table {
            let Some(list) = LISTS.iter().find(|list| **list == key.get_ref().as_ref()) else {
                self.unknown(key, &format!("in the `filesystem` of `{title}`"), LISTS);
                continue;
            };
            if !agent && AGENT_LISTS.contains(list) {
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

    fn network(&mut self, key: Key<'_, '_>, value: Entry<'_, '_>, agent: bool) {
        if agent {
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
                ("contain_egress", DeValue::Boolean(false)) => self.refuse(
                    Diagnostic::error(
                        "unsupported-table",
                        span(value.span()),
                        "`contain_egress = false` is not supported by this build yet",
                    )
                    .help("tools have no network in this build; take the key out"),
                ),
                ("contain_egress", _) => self.wrong_type(key, value, "true or false"),
                _ => self.unknown(key, "in `network`", &["contain_egress"]),
            }
        }
    }

    /// Names and labels: they become parts of file names, record lines and rule texts.
    fn label(&mut self, word: &Word, what: &str) {
        let fits = (1..=32).contains(&word.text.len())
            && word
                .text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
            && !matches!(word.text.as_str(), "." | "..");
        if !fits {
            let message = format!("{what} cannot be \"{}\"", word.text);
            self.refuse(
                Diagnostic::error("invalid-name", word.span, message)
                    .help("use 1 to 32 letters, digits, `.`, `_` or `-`"),
            );
        }
    }

    fn path(&mut self, key: Key<'_, '_>, value: Entry<'_, '_>) -> Option<Word> {
        let word = self.string(key, value)?;
        if word.text.is_empty() || word.text.chars().any(char::is_control) {
            let message = format!("`{}` is not a path", key.get_ref());
            self.refuse(Diagnostic::error("invalid-path", word.span, message).help(
                "write an absolute path, one from `~/`, or one from the folder of this file",
            ));
            return None;
        }
        Some(word)
    }

    fn string(&mut self, key: Key<'_, '_>, value: Entry<'_, '_>) -> Option<Word> {
        match value.get_ref() {
            DeValue::String(text) => Some(Word {
                text: text.to_string(),
                span: span(value.span()),
            }),
            _ => {
                self.wrong_type(key, value, "a string");
                None
            }
        }
    }

    fn strings(&mut self, key: Key<'_, '_>, value: Entry<'_, '_>) -> Option<Vec<Word>> {
        let DeValue::Array(elements) = value.get_ref() else {
            self.wrong_type(key, value, "an array of strings");
            return None;
        };
        Some(
            elements
                .iter()
                .filter_map(|element| self.string(key, element))
                .collect(),
        )
    }

    fn table<'t, 'i>(&mut self, key: Key<'_, '_>, value: Entry<'t, 'i>) -> Option<&'t DeTable<'i>> {
        match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => {
                self.wrong_type(key, value, "a table");
                None
            }
        }
    }

    fn wrong_type(&mut self, key: Key<'_, '_>, value: Entry<'_, '_>, wanted: &str) {
        let message = format!(
            "`{}` wants {wanted}, and this is {}",
            key.get_ref(),
            kind(value.get_ref())
        );
        let example = match wanted {
            "a string" => "\"…\"",
            "an array of strings" => "[\"…\", \"…\"]",
            "a table" => "{ … = … }",
            other => other,
        };
        let help = format!("write `{} = {example}`", key.get_ref());
        let mut refusal = Diagnostic::error("wrong-type", span(value.span()), message).help(help);
        if wanted == "an array of strings"
            && let DeValue::String(text) = value.get_ref()
        {
            refusal = refusal.fix(
                "put it in brackets",
                span(value.span()),
                format!("[{text:?}]"),
            );
        }
        self.refuse(refusal);
    }

    fn unknown(&mut self, key: Key<'_, '_>, place: &str, accepted: &[&str]) {
        let name = key.get_ref().as_ref();
        let at = span(key.span());
        let refusal = Diagnostic::error("unknown-key", at, format!("there is no `{name}` {place}"));
        let refusal = match nearest(name, accepted) {
            Some(near) => refusal.label(format!("did you mean `{near}`?")).fix(
                format!("rename it to `{near}`"),
                at,
                near,
            ),
            None => refusal,
        };
        let list = accepted
            .iter()
            .map(|key| format!("`{key}`"))
            .collect::<Vec<_>>()
            .join(", ");
        self.refuse(refusal.help(format!("accepted here: {list}")));
    }
}

/// The accepted name that is a slip of the finger away.
fn nearest<'a>(name: &str, accepted: &[&'a str]) -> Option<&'a str> {
    let distance = |other: &str| strsim::damerau_levenshtein(name, other);
    let near = accepted.iter().min_by_key(|other| distance(other))?;
    (distance(near) <= near.len().div_ceil(3)).then_some(*near)
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

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests;
