//! The text of `box.toml` to a draft: keys, types and spellings. Looks at nothing but the text, and finds
//! everything that is wrong with it in one pass.

mod process;
mod tables;

pub use process::DraftProcess;
pub use tables::{DraftGateway, DraftRoute, DraftServer, DraftTarget};

use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use process::Owner;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tables::{CONTAINMENT, FEATURES, Use};
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
    /// Seconds.
    pub keep_history: Option<i64>,
    pub agent: Option<DraftProcess>,
    /// By label.
    pub tools: BTreeMap<String, DraftProcess>,
    pub egress: BTreeMap<String, DraftRoute>,
    pub mcp: BTreeMap<String, DraftServer>,
    pub telemetry: BTreeMap<String, DraftTarget>,
    pub gateway: DraftGateway,
    /// What is well said and not enforced by this build: to run without it would be weaker than the file says.
    pub not_yet: Vec<Diagnostic>,
}

const TOP: &[&str] = &[
    "name",
    "box_dir",
    "policy",
    "keep_history",
    "agent",
    "tool",
    "egress",
    "gateway",
    "mcp",
    "telemetry",
    "containment",
    "experimental-features",
];

/// The draft, as far as it can be read, and everything wrong with the text.
pub fn read(text: &str) -> (Draft, Vec<Diagnostic>) {
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut reader = Reader {
        problems: Vec::new(),
        not_yet: Vec::new(),
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
    not_yet: Vec<Diagnostic>,
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
                "keep_history" => draft.keep_history = self.length(key, value),
                "agent" => {
                    if let Some(table) = self.table(key, value) {
                        draft.agent = Some(self.process(
                            "[agent]".into(),
                            span(key.span()),
                            table,
                            Owner::Agent,
                        ));
                    }
                }
                "tool" => {
                    for (word, table) in self.labelled(key, value, "the label of a tool") {
                        let title = format!("[tool.{}]", word.text);
                        let process = self.process(title, word.span, table, Owner::Tool);
                        draft.tools.insert(word.text, process);
                    }
                }
                "egress" => {
                    for (word, table) in self.labelled(key, value, "the name of an egress route") {
                        let title = format!("[egress.{}]", word.text);
                        let route = self.route(title, word.span, table, Use::Egress);
                        draft.egress.insert(word.text, route);
                    }
                }
                "mcp" => {
                    for (word, table) in self.labelled(key, value, "the name of an MCP server") {
                        if let Some(server) = self.server(&word, table) {
                            draft.mcp.insert(word.text, server);
                        }
                    }
                }
                "telemetry" => {
                    for (word, table) in self.labelled(key, value, "the label of a record target") {
                        if let Some(target) = self.target(&word, table) {
                            draft.telemetry.insert(word.text, target);
                        }
                    }
                }
                "gateway" => {
                    if let Some(table) = self.table(key, value) {
                        draft.gateway = self.gateway(table);
                    }
                }
                "containment" => self.switches(key, value, CONTAINMENT),
                "experimental-features" => self.switches(key, value, FEATURES),
                _ => self.unknown(key, "at the top level", TOP),
            }
        }
        if draft.name.is_none() && !root.keys().any(|key| key.get_ref() == "name") {
            self.refuse(
                Diagnostic::error("missing-key", Span::at(0), "the box has no `name`")
                    .help("add a line such as `name = \"my-box\"` at the top"),
            );
        }
        self.programs(&draft.mcp);
        draft.not_yet = std::mem::take(&mut self.not_yet);
        draft
    }

    /// The tables of a table of tables, each with the word that names it.
    fn labelled<'t, 'i>(
        &mut self,
        key: Key<'_, '_>,
        value: Entry<'t, 'i>,
        what: &str,
    ) -> Vec<(Word, &'t DeTable<'i>)> {
        let Some(tables) = self.table(key, value) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for (label, value) in tables {
            let word = Word {
                text: label.get_ref().to_string(),
                span: span(label.span()),
            };
            self.label(&word, what);
            if let Some(table) = self.table(label, value) {
                found.push((word, table));
            }
        }
        found
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

    /// A length of time as rules write it: `30d`.
    fn length(&mut self, key: Key<'_, '_>, value: Entry<'_, '_>) -> Option<i64> {
        let word = self.string(key, value)?;
        let seconds = || {
            let unit = word.text.chars().last()?;
            let scale = match unit {
                's' => 1,
                'm' => 60,
                'h' => 3600,
                'd' => 86_400,
                _ => return None,
            };
            let amount: u32 = word.text.strip_suffix(unit)?.parse().ok()?;
            i64::from(amount).checked_mul(scale)
        };
        let seconds = seconds();
        if seconds.is_none() {
            let message = format!("\"{}\" is not a length of time", word.text);
            self.refuse(
                Diagnostic::error("invalid-length", word.span, message)
                    .help("write a number and one of `s`, `m`, `h` and `d`, such as \"30d\""),
            );
        }
        seconds
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
