//! The check of one policy, again and again while it is being written.
//!
//! ```text
//! text ── statements ──┬─ as before: kept, wherever it stands now
//!                      └─ another text: read, written out, checked
//!                                └── all together: lints, silenced, in places of the whole
//! ```
//!
//! A statement is read as if it were a file of its own: its tree does not know where it stands, so that what is
//! kept of it stays true when the text before it grows. The answer is that of [`compile::check`], message for
//! message.

use crate::check;
use crate::compile::{self, CheckedRule, Options, Source, about_call, without_mark};
use crate::lint::{self, Subject};
use crate::macros::{CallSite, Expanded, Library, MacroError, MacroProblem, expand_rule};
use crate::schema::Service;
use dogwood_grammar::ast::{Item, PolicyFile, Rule};
use dogwood_grammar::diagnostic::{Diagnostic, Severity, SourceId};
use dogwood_grammar::{Span, parse_policy, statements};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::sync::Arc;

/// More statements than this have no number of their own among sources.
const MOST_STATEMENTS: usize = u16::MAX as usize;

/// What is known of a policy from the last time it was checked.
pub struct Session {
    service: Arc<Service>,
    options: Options,
    /// The text of the macro library, if it is not the built-in one.
    macros: Option<Source>,
    /// The macros that a file without any can call.
    library: Library,
    statements: Vec<Statement>,
    /// The definitions of the file, in order: when they change, so may every rule that calls one.
    defined: Vec<String>,
    /// Its own macros over `library`, and what is wrong with each.
    callable: Library,
    definitions: Vec<Definition>,
}

/// One statement with everything that depends on its text alone.
struct Statement {
    text: String,
    syntax: Vec<Diagnostic>,
    macros: Vec<Item>,
    rules: Vec<Kept>,
}

struct Kept {
    written: Rule,
    checked: CheckedRule,
    calls: Vec<CallSite>,
    /// Of writing the rule out and of checking it.
    found: Vec<Diagnostic>,
    /// It calls macros, or something is wrong with its calls.
    uses_library: bool,
}

/// What is wrong with a definition.
struct Definition {
    found: Vec<Diagnostic>,
    /// Of each label that is in another definition, which one.
    elsewhere: Option<usize>,
}

impl Session {
    /// `macros` is a library to use instead of the built-in one. What is wrong with it is not told here.
    pub fn new(service: Arc<Service>, macros: Option<Source>, options: Options) -> Session {
        let library = match &macros {
            Some(source) => Library::define(&parse_policy(&without_mark(&source.text)).tree).0,
            None => Library::builtin(),
        };
        Session {
            service,
            options,
            macros,
            callable: library.clone(),
            library,
            statements: Vec::new(),
            defined: Vec::new(),
            definitions: Vec::new(),
        }
    }

    /// All messages about this text, as [`compile::check`] would have them.
    pub fn check(&mut self, source: &Source) -> Vec<Diagnostic> {
        let text = without_mark(&source.text);
        let places = statements(&text);
        // A byte-order mark inside the text is wrong; at the start of a text it is not.
        let marked = |place: &Span| place.text(&text).starts_with('\u{feff}');
        if places.len() > MOST_STATEMENTS || places.iter().any(marked) {
            return self.afresh(source);
        }
        let changed = self.read(&text, &places);
        let before = self.names();
        let redefined = self.define().then(|| {
            let mut names = before;
            names.extend(self.names());
            names
        });
        self.recheck(changed, redefined.as_deref());
        self.gather(&places)
    }

    /// Without anything kept.
    fn afresh(&self, source: &Source) -> Vec<Diagnostic> {
        let sources = std::slice::from_ref(source);
        let macros = self.macros.as_ref();
        let checked = compile::check(sources, macros, &self.service, &self.options);
        let mut all = checked.map_or_else(|all| all, |checked| checked.diagnostics);
        all.retain(|found| found.source == SourceId(0));
        all
    }

    /// Reads the statements that are not those of before. They come as a range.
    fn read(&mut self, text: &str, places: &[Span]) -> std::ops::Range<usize> {
        let same = |old: &Statement, place: &Span| old.text == place.text(text);
        let head = self
            .statements
            .iter()
            .zip(places)
            .take_while(|(old, place)| same(old, place))
            .count();
        let old_rest = self.statements.get(head..).unwrap_or_default();
        let rest = places.get(head..).unwrap_or_default();
        let tail = old_rest
            .iter()
            .rev()
            .zip(rest.iter().rev())
            .take_while(|(old, place)| same(old, place))
            .count();
        let gone = head..self.statements.len() - tail;
        let new = head..places.len() - tail;
        let read: Vec<Statement> = places
            .get(new.clone())
            .unwrap_or_default()
            .iter()
            .map(|place| Statement::read(place.text(text)))
            .collect();
        self.statements.splice(gone, read);
        new
    }

    /// Puts the macros of the file together again, if one of them changed.
    fn define(&mut self) -> bool {
        let defining = || {
            let all = self.statements.iter();
            all.filter(|statement| !statement.macros.is_empty())
        };
        if defining()
            .map(|statement| &statement.text)
            .eq(&self.defined)
        {
            return false;
        }
        let mut own = Library::default();
        let mut first: BTreeMap<SmolStr, (usize, Span)> = BTreeMap::new();
        let mut definitions = Vec::new();
        let mut texts = Vec::new();
        for (number, statement) in defining().enumerate() {
            texts.push(statement.text.clone());
            let file = PolicyFile {
                items: statement.macros.clone(),
            };
            let (library, errors) = Library::define(&file);
            let mut definition = Definition {
                found: errors.iter().map(MacroError::diagnostic).collect(),
                elsewhere: None,
            };
            for item in &statement.macros {
                let Item::Macro(def) = item else { continue };
                match first.get(&def.name.text) {
                    Some((other, place)) => {
                        let error = MacroError {
                            span: def.name.span,
                            problem: MacroProblem::Duplicate {
                                name: def.name.text.clone(),
                                first: *place,
                            },
                        };
                        definition.found.push(error.diagnostic());
                        definition.elsewhere = Some(*other);
                    }
                    None => {
                        first.insert(def.name.text.clone(), (number, def.name.span));
                    }
                }
            }
            // The first of one name stays.
            own = library.overridden_by(own);
            definitions.push(definition);
        }
        self.callable = self.library.overridden_by(own);
        self.definitions = definitions;
        self.defined = texts;
        true
    }

    fn names(&self) -> Vec<SmolStr> {
        self.callable.names().cloned().collect()
    }

    /// Checks what was read, and what may call a macro if they are others now; these are their names, old and
    /// new.
    fn recheck(&mut self, changed: std::ops::Range<usize>, redefined: Option<&[SmolStr]>) {
        for (at, statement) in self.statements.iter_mut().enumerate() {
            let read = changed.contains(&at);
            let text = statement.text.as_str();
            let mentions = redefined
                .is_some_and(|names| names.iter().any(|name| text.contains(name.as_str())));
            for kept in &mut statement.rules {
                if read || mentions || redefined.is_some() && kept.uses_library {
                    kept.check(
                        &statement.text,
                        &self.callable,
                        &self.service,
                        &self.options,
                    );
                }
            }
        }
    }

    /// Everything found, the lints included, in places of the whole text.
    fn gather(&mut self, places: &[Span]) -> Vec<Diagnostic> {
        let mut all: Vec<Diagnostic> = Vec::new();
        let mut defining = Vec::new();
        for (at, statement) in self.statements.iter().enumerate() {
            all.extend(in_source(&statement.syntax, source_id(at)));
            if !statement.macros.is_empty() {
                defining.push(at);
            }
        }
        for (number, definition) in self.definitions.iter().enumerate() {
            let Some(at) = defining.get(number) else {
                continue;
            };
            let from = all.len();
            let statement = self.statements.get(*at);
            let readable = definition
                .found
                .iter()
                .filter(|found| statement.is_none_or(|statement| reads(&statement.syntax, found)));
            let id = source_id(*at);
            all.extend(readable.map(|found| found.clone().in_source(id)));
            if let Some(other) = definition.elsewhere.and_then(|other| defining.get(other)) {
                for found in all.iter_mut().skip(from) {
                    if found.code == "duplicate-macro" {
                        for label in &mut found.labels {
                            label.source = source_id(*other);
                        }
                    }
                }
            }
        }
        let mut number = 0;
        for (at, statement) in self.statements.iter_mut().enumerate() {
            for kept in &mut statement.rules {
                kept.checked.source = source_id(at);
                kept.checked.index = number;
                number += 1;
                let unread = &statement.syntax;
                let readable = kept.found.iter().filter(|found| reads(unread, found));
                let id = source_id(at);
                all.extend(readable.map(|found| found.clone().in_source(id)));
            }
        }
        let broken = all.iter().any(|found| found.severity == Severity::Error);
        if !broken && !self.options.quiet {
            self.lint(&mut all);
        }
        self.silence(&mut all);
        for found in &mut all {
            moved(found, places);
        }
        compile::finish(all).unwrap_or_else(|all| all)
    }

    fn kept(&self) -> impl Iterator<Item = (&Kept, &str)> {
        self.statements.iter().flat_map(|statement| {
            let text = statement.text.as_str();
            statement.rules.iter().map(move |kept| (kept, text))
        })
    }

    fn lint(&self, all: &mut Vec<Diagnostic>) {
        let subjects: Vec<Subject> = self
            .kept()
            .filter(|(kept, _)| {
                // What the checks said of a rule is kept with it.
                !lint::does_nothing(&kept.checked, &in_source(&kept.found, kept.checked.source))
            })
            .map(|(kept, text)| Subject::new(&kept.checked, text, &kept.calls))
            .collect();
        all.extend(lint::lint(&subjects, &self.service));
        all.extend(
            self.kept()
                .flat_map(|(kept, _)| lint::allowed(&kept.checked)),
        );
    }

    fn silence(&self, all: &mut Vec<Diagnostic>) {
        let allowing: Vec<CheckedRule> = self
            .kept()
            .filter(|(kept, _)| kept.written.annotation("allow").is_some())
            .map(|(kept, _)| kept.checked.clone())
            .collect();
        lint::silence(all, &allowing);
    }
}

fn in_source(found: &[Diagnostic], source: SourceId) -> Vec<Diagnostic> {
    found
        .iter()
        .map(|found| found.clone().in_source(source))
        .collect()
}

fn source_id(at: usize) -> SourceId {
    SourceId(u16::try_from(at).unwrap_or(u16::MAX))
}

/// From places of a statement to those of the whole.
fn moved(found: &mut Diagnostic, places: &[Span]) {
    let start = |source: SourceId| {
        places
            .get(usize::from(source.0))
            .map_or(0, |place| place.start)
    };
    let by = start(found.source);
    let shift = |span: &mut Span, by: u32| {
        span.start = span.start.saturating_add(by);
        span.end = span.end.saturating_add(by);
    };
    shift(&mut found.span, by);
    for edit in found.fix.iter_mut().flat_map(|fix| &mut fix.edits) {
        shift(&mut edit.span, by);
    }
    for label in &mut found.labels {
        let by = start(label.source);
        shift(&mut label.span, by);
        label.source = SourceId(0);
    }
    found.source = SourceId(0);
}

/// Nothing more is said about a place that could not be read.
fn reads(syntax: &[Diagnostic], found: &Diagnostic) -> bool {
    syntax.iter().all(|error| error.span != found.span)
}

impl Statement {
    fn read(text: &str) -> Statement {
        let parsed = parse_policy(text);
        let mut statement = Statement {
            text: text.to_owned(),
            syntax: parsed
                .errors
                .iter()
                .map(|error| error.diagnostic(text))
                .collect(),
            macros: Vec::new(),
            rules: Vec::new(),
        };
        for item in parsed.tree.items {
            match item {
                Item::Rule(rule) => statement.rules.push(Kept::unchecked(rule)),
                Item::Macro(_) => statement.macros.push(item),
                Item::Broken(_) => {}
            }
        }
        statement
    }
}

impl Kept {
    fn unchecked(written: Rule) -> Kept {
        Kept {
            checked: CheckedRule {
                rule: written.clone(),
                by_name: None,
                source: SourceId(0),
                index: 0,
                targets: Vec::new(),
            },
            written,
            calls: Vec::new(),
            found: Vec::new(),
            uses_library: false,
        }
    }

    fn check(&mut self, text: &str, library: &Library, service: &Service, options: &Options) {
        let Expanded {
            rule,
            errors,
            calls,
        } = expand_rule(&self.written, library);
        let (findings, targets) = check::check_rule(&rule, service, options.arithmetic);
        self.uses_library = !calls.is_empty() || !errors.is_empty();
        self.found = errors.iter().map(MacroError::diagnostic).collect();
        let findings = findings.into_iter();
        self.found
            .extend(findings.map(|finding| about_call(finding.diagnostic(text), &calls)));
        self.checked.rule = rule;
        self.checked.targets = targets;
        self.calls = calls;
    }
}

#[cfg(test)]
mod tests;
