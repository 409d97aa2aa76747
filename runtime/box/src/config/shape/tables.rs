//! The tables about the network, the servers and the records: keys, types and spellings.

use super::process::{DraftProcess, Owner, is_reserved};
use super::{Entry, Key, Reader, Word, nearest, span};
use box_gateway::Route;
use box_gateway::config::{Inject, PlacementKind, SecretTable};
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};

/// `[egress.<name>]`, or the destinations and secret of a remote MCP server.
#[derive(Clone, Debug, Default)]
pub struct DraftRoute {
    pub title: String,
    pub at: Span,
    pub route: Route,
    /// Nobody has to show a secret to a remote MCP server.
    pub secret: bool,
    pub destinations: Vec<Word>,
    pub allow: Vec<Word>,
    /// Where each key has its value: `protocol`, `secret.ref`.
    pub spans: BTreeMap<String, Span>,
}

#[derive(Clone, Debug)]
pub enum DraftServer {
    Stdio(DraftProcess),
    Http(Box<DraftRoute>),
}

/// `[telemetry.<label>]`.
#[derive(Clone, Debug)]
pub struct DraftTarget {
    pub title: String,
    /// A file, or else a collector.
    pub file: bool,
    pub destination: Word,
}

/// `[gateway]`.
#[derive(Clone, Debug, Default)]
pub struct DraftGateway {
    pub allow_private: Vec<Word>,
    /// A name, and where it leads.
    pub hosts: Vec<(Word, Word)>,
    pub ca_files: Vec<Word>,
}

/// Whose destinations and secret they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Egress,
    Remote,
}

/// Switches by name: what each does when it is turned, and its default.
pub(super) const CONTAINMENT: &[(&str, bool)] = &[("private_proc", true)];
pub(super) const FEATURES: &[(&str, bool)] = &[("tool-grammars", false)];

const EGRESS: &[&str] = &["destinations", "protocol", "allow", "secret"];
const REMOTE: &[&str] = &["type", "destinations", "allow", "secret"];
const SECRET: &[&str] = &[
    "ref",
    "placement",
    "header",
    "prefix",
    "param",
    "inject",
    "phantom_prefix",
    "env",
    "service",
    "region",
];
const PLACEMENTS: &[(&str, PlacementKind)] = &[
    ("header", PlacementKind::Header),
    ("basic_auth", PlacementKind::BasicAuth),
    ("query_param", PlacementKind::QueryParam),
];
const INJECTS: &[(&str, Inject)] = &[("phantom", Inject::Phantom), ("always", Inject::Always)];
const GATEWAY: &[&str] = &["allow_private", "hosts", "ca_files"];
const TARGET: &[&str] = &["kind", "destination", "include", "secret"];
const INCLUDE: &[(&str, ())] = &[
    ("deny", ()),
    ("permit", ()),
    ("trace", ()),
    ("logs", ()),
    ("metrics", ()),
    ("kernel", ()),
];
/// Programs whose names in the agent's view are the box's own.
const NOT_SERVERS: &[&str] = &["zsh", "bash", "sh", "python", "python3"];

impl Reader {
    pub(super) fn not_enforced(&mut self, at: Span, what: &str, help: &str) {
        let message = format!("{what} is not enforced by this build");
        self.not_yet
            .push(Diagnostic::warning("not-enforced", at, message).help(help));
    }

    /// One of a few words.
    fn choice<T: Copy>(&mut self, what: &str, word: &Word, accepted: &[(&str, T)]) -> Option<T> {
        let found = accepted.iter().find(|(name, _)| *name == word.text);
        if let Some((_, value)) = found {
            return Some(*value);
        }
        let names: Vec<&str> = accepted.iter().map(|(name, _)| *name).collect();
        let list = names
            .iter()
            .map(|name| format!("\"{name}\""))
            .collect::<Vec<_>>()
            .join(", ");
        let message = format!("{what} cannot be \"{}\"", word.text);
        let mut refusal = Diagnostic::error("invalid-value", word.span, message)
            .help(format!("accepted here: {list}"));
        if let Some(near) = nearest(&word.text, &names) {
            refusal = refusal.label(format!("did you mean \"{near}\"?")).fix(
                format!("write \"{near}\""),
                word.span,
                format!("\"{near}\""),
            );
        }
        self.refuse(refusal);
        None
    }

    fn missing(&mut self, at: Span, title: &str, key: &str, help: &str) {
        let message = format!("`{title}` has no `{key}`");
        self.refuse(Diagnostic::error("missing-key", at, message).help(help));
    }

    pub(super) fn route(
        &mut self,
        title: String,
        at: Span,
        table: &DeTable<'_>,
        of: Use,
    ) -> DraftRoute {
        let mut draft = DraftRoute {
            title,
            at,
            ..DraftRoute::default()
        };
        let place = format!("in `{}`", draft.title);
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            draft.spans.insert(name.into(), span(value.span()));
            match (name, of) {
                ("destinations", _) => {
                    draft.destinations = self.strings(key, value).unwrap_or_default();
                }
                ("allow", _) => {
                    draft.allow = self.strings(key, value).unwrap_or_default();
                    draft.route.allow = Some(texts(&draft.allow));
                }
                ("protocol", Use::Egress) => {
                    draft.route.protocol = self.string(key, value).map(|word| word.text);
                }
                ("secret", _) => {
                    draft.secret = true;
                    if let Some(table) = self.table(key, value) {
                        draft.route.secret = self.secret(&place, table, &mut draft.spans);
                    }
                }
                // Read before.
                ("type", Use::Remote) => {}
                (_, Use::Egress) => self.unknown(key, &place, EGRESS),
                (_, Use::Remote) => self.unknown(key, &place, REMOTE),
            }
        }
        draft.route.destinations = texts(&draft.destinations);
        if !draft.spans.contains_key("destinations") {
            let help = "add `destinations = [\"api.example.net\"]`";
            self.missing(at, &draft.title, "destinations", help);
        }
        if of == Use::Egress && !draft.secret {
            let help = "add `secret = { ref = \"env://NAME\" }`; hosts without a secret need no table, only a rule that permits them";
            self.missing(at, &draft.title, "secret", help);
        }
        if draft.secret && !draft.spans.contains_key("secret.ref") {
            let at = draft.spans.get("secret").copied().unwrap_or(at);
            let help = "add `ref = \"env://NAME\"`, `\"file:///PATH\"` or `\"aws://PROFILE\"`";
            self.missing(at, &format!("{}` `secret", draft.title), "ref", help);
        }
        draft
    }

    fn secret(
        &mut self,
        place: &str,
        table: &DeTable<'_>,
        spans: &mut BTreeMap<String, Span>,
    ) -> SecretTable {
        let mut secret = SecretTable::default();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            if !SECRET.contains(&name) {
                self.unknown(key, &format!("in the `secret` {place}"), SECRET);
                continue;
            }
            spans.insert(format!("secret.{name}"), span(value.span()));
            let Some(word) = self.string(key, value) else {
                continue;
            };
            match name {
                "ref" => {
                    let variable = word.text.strip_prefix("env://").unwrap_or_default();
                    if is_reserved(variable) {
                        let message = format!(
                            "`{variable}` is set by the box itself or would change how programs load"
                        );
                        self.refuse(
                            Diagnostic::error("reserved-env", word.span, message)
                                .help("keep the secret in a variable of another name"),
                        );
                    }
                    secret.reference = word.text;
                }
                "placement" => secret.placement = self.choice("`placement`", &word, PLACEMENTS),
                "inject" => secret.inject = self.choice("`inject`", &word, INJECTS),
                "header" => secret.header = Some(word.text),
                "prefix" => secret.prefix = Some(word.text),
                "param" => secret.param = Some(word.text),
                "phantom_prefix" => secret.phantom_prefix = Some(word.text),
                "env" => {
                    if is_reserved(&word.text) {
                        let message = format!(
                            "`{}` is set by the box itself or would change how programs load",
                            word.text
                        );
                        self.refuse(
                            Diagnostic::error("reserved-env", word.span, message)
                                .help("name another variable for the placeholder"),
                        );
                    }
                    secret.env = Some(word.text);
                }
                "service" => secret.service = Some(word.text),
                _ => secret.region = Some(word.text),
            }
        }
        secret
    }

    pub(super) fn server(&mut self, word: &Word, table: &DeTable<'_>) -> Option<DraftServer> {
        let title = format!("[mcp.{}]", word.text);
        let Some((key, value)) = table.iter().find(|(key, _)| key.get_ref() == "type") else {
            let help = "add `type = \"stdio\"` for a program, `type = \"http\"` for a URL";
            self.missing(word.span, &title, "type", help);
            return None;
        };
        let kind = self.string(key, value)?;
        let remote = self.choice("`type`", &kind, &[("stdio", false), ("http", true)])?;
        if remote {
            let route = self.route(title, word.span, table, Use::Remote);
            return Some(DraftServer::Http(Box::new(route)));
        }
        let process = self.process(title, word.span, table, Owner::Server);
        if let Some(program) = process.command.first() {
            self.server_program(program);
        }
        Some(DraftServer::Stdio(process))
    }

    /// The agent's own configuration names the program; what runs under that name is the box's.
    fn server_program(&mut self, program: &Word) {
        let plain = !program.text.is_empty()
            && program
                .text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
            && !matches!(program.text.as_str(), "." | "..");
        if !plain {
            let message = format!(
                "the program of an MCP server cannot be \"{}\"",
                program.text
            );
            self.refuse(
                Diagnostic::error("invalid-command", program.span, message).help(
                    "write its bare name, and say in `env.PATH` where it is: the agent starts it by that name",
                ),
            );
        } else if NOT_SERVERS.contains(&program.text.as_str()) {
            let message = format!(
                "the program of an MCP server cannot be `{}`: that name is a checkpoint of the box",
                program.text
            );
            self.refuse(
                Diagnostic::error("invalid-command", program.span, message)
                    .help("put a script around it, with a name of its own and a `#!` line"),
            );
        }
    }

    /// Two servers under one program name could not be told apart.
    pub(super) fn programs(&mut self, servers: &BTreeMap<String, DraftServer>) {
        let mut seen: Vec<(&str, &Word)> = Vec::new();
        for (name, server) in servers {
            let DraftServer::Stdio(process) = server else {
                continue;
            };
            let Some(program) = process.command.first() else {
                continue;
            };
            if let Some((other, first)) = seen.iter().find(|(_, word)| word.text == program.text) {
                let message = format!("`[mcp.{name}]` has the same program as `[mcp.{other}]`");
                let refusal = Diagnostic::error("duplicate-command", program.span, message)
                    .also(first.span, "the other one")
                    .help("the agent starts a server by its program's name: give one of them a name of its own");
                self.refuse(refusal);
            }
            seen.push((name, program));
        }
    }

    pub(super) fn target(&mut self, word: &Word, table: &DeTable<'_>) -> Option<DraftTarget> {
        let title = format!("[telemetry.{}]", word.text);
        let place = format!("in `{title}`");
        let mut file = None;
        let mut destination = None;
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "kind" => {
                    let kind = self.string(key, value);
                    let kinds = [("file", true), ("otlp", false)];
                    file = kind.and_then(|kind| self.choice("`kind`", &kind, &kinds));
                    if file == Some(false) {
                        self.not_enforced(
                            span(value.span()),
                            "`kind = \"otlp\"`",
                            "write the records to a file, and ship that",
                        );
                    }
                }
                "destination" => destination = self.string(key, value),
                "include" => self.include(key, value),
                "secret" => {
                    if let Some(table) = self.table(key, value) {
                        self.target_secret(&place, table);
                    }
                }
                _ => self.unknown(key, &place, TARGET),
            }
        }
        for (key, help) in [
            ("kind", "add `kind = \"file\"` or `kind = \"otlp\"`"),
            (
                "destination",
                "add `destination = \"/path/to/records.jsonl\"`, or the base URL of a collector",
            ),
        ] {
            if !table.keys().any(|name| name.get_ref() == key) {
                self.missing(word.span, &title, key, help);
            }
        }
        let (file, destination) = (file?, destination?);
        let problem = if file {
            let text = destination.text.as_str();
            let whole = text.starts_with('/') || text.starts_with("~/");
            (!whole
                || text.chars().any(char::is_control)
                || text.split('/').any(|part| part == ".."))
            .then_some("write an absolute path, or one from `~/`, without `..`")
        } else {
            let url = destination.text.strip_prefix("https://");
            let url = url.or(destination.text.strip_prefix("http://"));
            url.is_none_or(|rest| rest.is_empty() || rest.contains(char::is_whitespace))
                .then_some("write the base URL of a collector, `https://…`")
        };
        if let Some(help) = problem {
            let message = format!("records cannot go to \"{}\"", destination.text);
            self.refuse(Diagnostic::error("invalid-value", destination.span, message).help(help));
        }
        Some(DraftTarget {
            title,
            file,
            destination,
        })
    }

    fn include(&mut self, key: Key<'_, '_>, value: Entry<'_, '_>) {
        let Some(words) = self.strings(key, value) else {
            return;
        };
        if let DeValue::Array(elements) = value.get_ref()
            && elements.is_empty()
        {
            self.refuse(
                Diagnostic::error(
                    "invalid-value",
                    span(value.span()),
                    "`include` names nothing",
                )
                .help("take the key out to include everything"),
            );
        }
        let mut seen: Vec<&Word> = Vec::new();
        for word in &words {
            if self.choice("`include`", word, INCLUDE).is_none() {
                continue;
            }
            if let Some(first) = seen.iter().find(|other| other.text == word.text) {
                let message = format!("\"{}\" is included twice", word.text);
                let refusal = Diagnostic::error("invalid-value", word.span, message)
                    .also(first.span, "first named here")
                    .help("take one of them out");
                self.refuse(refusal);
            }
            seen.push(word);
        }
        self.not_enforced(
            span(key.span()),
            "`include`",
            "a target receives every record in this build; take the key out, and choose when reading",
        );
    }

    fn target_secret(&mut self, place: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "ref" => {
                    let Some(word) = self.string(key, value) else {
                        continue;
                    };
                    let name = word.text.strip_prefix("env://");
                    let name = name.or(word.text.strip_prefix("secret://"));
                    if name.is_none_or(str::is_empty) {
                        // Not repeated: it may be the secret itself.
                        self.refuse(
                            Diagnostic::error(
                                "invalid-value",
                                word.span,
                                "the secret of a record target names no source",
                            )
                            .help("write `env://NAME`, never a value"),
                        );
                    }
                }
                "header" => drop(self.string(key, value)),
                _ => self.unknown(key, &format!("in the `secret` {place}"), &["ref", "header"]),
            }
        }
    }

    pub(super) fn gateway(&mut self, table: &DeTable<'_>) -> DraftGateway {
        let mut draft = DraftGateway::default();
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "allow_private" => {
                    draft.allow_private = self.strings(key, value).unwrap_or_default();
                }
                "ca_files" => draft.ca_files = self.strings(key, value).unwrap_or_default(),
                "hosts" => {
                    if let Some(table) = self.table(key, value) {
                        draft.hosts = self.hosts(table);
                    }
                }
                _ => self.unknown(key, "in `[gateway]`", GATEWAY),
            }
        }
        draft
    }

    fn hosts(&mut self, table: &DeTable<'_>) -> Vec<(Word, Word)> {
        let mut hosts = Vec::new();
        for (key, value) in table {
            let name = Word {
                text: key.get_ref().to_string(),
                span: span(key.span()),
            };
            if let Some(place) = self.string(key, value) {
                hosts.push((name, place));
            }
        }
        hosts
    }

    /// A table of switches, of which this build has each in one position.
    pub(super) fn switches(
        &mut self,
        key: Key<'_, '_>,
        value: Entry<'_, '_>,
        accepted: &[(&str, bool)],
    ) {
        let title = format!("`[{}]`", key.get_ref());
        let Some(table) = self.table(key, value) else {
            return;
        };
        let names: Vec<&str> = accepted.iter().map(|(name, _)| *name).collect();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let Some((_, default)) = accepted.iter().find(|(known, _)| *known == name) else {
                self.unknown(key, &format!("in {title}"), &names);
                continue;
            };
            match value.get_ref() {
                DeValue::Boolean(chosen) if chosen == default => {}
                DeValue::Boolean(chosen) => self.not_enforced(
                    span(value.span()),
                    &format!("`{name} = {chosen}`"),
                    &format!("this build runs with `{name} = {default}`; take the key out"),
                ),
                _ => self.wrong_type(key, value, "true or false"),
            }
        }
    }
}

fn texts(words: &[Word]) -> Vec<String> {
    words.iter().map(|word| word.text.clone()).collect()
}
