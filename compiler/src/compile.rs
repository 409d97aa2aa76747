//! From source texts to checked rules: parse, expand, check, in one go, with every error of every text.

use crate::check::{self, Finding};
use crate::lint::{self, Subject};
use crate::macros::{
    CallSite, Expanded, Library, MacroError, expand_builtins, expand_rule, is_plain,
};
use crate::providers::{self, Export, ExportClash};
use crate::schema::{self, SchemaError, Service, box_service, default_events};
use crate::value::EntityUid;
use dogwood_grammar::ast::action_schema::ActionSchemaFile;
use dogwood_grammar::ast::{Item, MacroDef, PolicyFile, Rule};
use dogwood_grammar::diagnostic::{Diagnostic, Edit, Severity, SourceId};
use dogwood_grammar::{
    Parsed, Span, SyntaxError, parse_action_schema, parse_event_schema, parse_policy,
};
use smol_str::SmolStr;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A text and what to call it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub name: String,
    /// May begin with a byte-order mark.
    pub text: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Permit the experimental `+ - *` inside temporal blocks.
    pub arithmetic: bool,
    /// Say nothing about rules that are correct, but hardly mean what their author thinks.
    pub quiet: bool,
}

/// Rules without errors.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// In the order of the sources and within them.
    pub rules: Vec<CheckedRule>,
    /// Warnings, in source order.
    pub diagnostics: Vec<Diagnostic>,
    /// The macros, other than built-in ones, that a rule calls; in the order of their first calls.
    pub macros: Vec<CalledMacro>,
}

/// A macro that a rule calls.
#[derive(Clone, Debug)]
pub struct CalledMacro {
    pub def: MacroDef,
    /// The text that declares it.
    pub source: SourceId,
}

#[derive(Clone, Debug)]
pub struct CheckedRule {
    /// Macros written out: no `Param`, `Fresh` or `Call` is left in temporal parts. Fresh names are
    /// plain ones with a `$` in them.
    pub rule: Rule,
    /// To read aloud, where it is another: the macros its author declared are still called by name.
    pub by_name: Option<Rule>,
    pub source: SourceId,
    /// Position among all rules, from 0; the identity of the rule in verdicts.
    pub index: usize,
    /// The concrete actions the scope stands for; empty where there was no schema.
    pub targets: Vec<EntityUid>,
}

/// Resolves both schemas. Without an action schema the actions are those of a box; without an event
/// schema the events are those of a box, or for other actions the built-in ones.
///
/// The first of the two that is given is source 0.
pub fn load_service(
    action_schema: Option<&Source>,
    event_schema: Option<&Source>,
) -> Result<(Service, Vec<Diagnostic>), Vec<Diagnostic>> {
    let mut found = Found::default();
    let actions = match action_schema {
        None => box_service().actions,
        Some(source) => {
            let tree = found.action_schema(source);
            let (actions, errors) = schema::resolve(&tree);
            found.schema(&errors, SourceId(0));
            actions
        }
    };
    let events = match event_schema {
        None if action_schema.is_none() => box_service().events,
        None => default_events(&actions),
        Some(source) => {
            let id = SourceId(u16::from(action_schema.is_some()));
            let text = without_mark(&source.text);
            let parsed = parse_event_schema(&text);
            found.syntax(&parsed, &text, id);
            let (events, errors) = schema::derive(&parsed.tree, &actions);
            found.schema(&errors, id);
            let broken = found.all.iter().any(|d| d.severity == Severity::Error);
            for warning in lint::pins(&parsed.tree, &events) {
                // What could not be read would be taken for what is not there.
                if !broken {
                    found.add(warning, id);
                }
            }
            events
        }
    };
    let warnings = found.finish()?;
    let service = Service {
        actions,
        events,
        ..Service::default()
    };
    Ok((service, warnings))
}

/// Checks an action schema by itself.
pub fn check_action_schema(source: &Source) -> Vec<Diagnostic> {
    let mut found = Found::default();
    let tree = found.action_schema(source);
    found.schema(&schema::resolve(&tree).1, SourceId(0));
    found.finish().unwrap_or_else(|all| all)
}

/// Checks an event schema by itself, without knowing the actions.
pub fn check_event_schema(source: &Source) -> Vec<Diagnostic> {
    let mut found = Found::default();
    let text = without_mark(&source.text);
    let parsed = parse_event_schema(&text);
    found.syntax(&parsed, &text, SourceId(0));
    found.schema(&schema::check_event_schema(&parsed.tree), SourceId(0));
    found.finish().unwrap_or_else(|all| all)
}

/// Parses, expands and checks against both schemas and the providers. In a diagnostic, `SourceId` counts
/// the policies first, in order, then the macro library, then the declarations of the providers.
pub fn check(
    policies: &[Source],
    macros: Option<&Source>,
    service: &Service,
    options: &Options,
) -> Result<Checked, Vec<Diagnostic>> {
    let mut found = Found::default();
    let exported = exported(policies, service).unwrap_or_else(|clashes| {
        let id = source_id(policies.len() + usize::from(macros.is_some()));
        for clash in clashes {
            found.add(clash.diagnostic(), id);
        }
        Vec::new()
    });
    let service = with_types(service, &exported);
    let lints = (!options.quiet).then_some(service.as_ref());
    run(found, policies, macros, lints, &|rule| {
        check::check_rule(rule, &service, options.arithmetic)
    })
}

/// The enumerated types of the providers that the policies ask.
fn exported(policies: &[Source], service: &Service) -> Result<Vec<Export>, Vec<ExportClash>> {
    if service.providers.names().next().is_none() {
        return Ok(Vec::new());
    }
    let texts = policies.iter().map(|policy| without_mark(&policy.text));
    let files: Vec<PolicyFile> = texts.map(|text| parse_policy(&text).tree).collect();
    let items = files.iter().flat_map(|file| &file.items);
    let calls: Vec<providers::Chain> = items
        .filter_map(|item| match item {
            Item::Rule(rule) => Some(providers::chains(rule)),
            _ => None,
        })
        .flatten()
        .collect();
    providers::exports(&service.providers, &service.actions, &calls)
}

/// The service with these types beside those of its action schema.
fn with_types<'s>(service: &'s Service, exported: &[Export]) -> Cow<'s, Service> {
    if exported.is_empty() {
        return Cow::Borrowed(service);
    }
    let mut service = service.clone();
    for export in exported {
        let ty = export.entity_type();
        service.actions.entity_types.insert(ty.name.clone(), ty);
    }
    Cow::Owned(service)
}

/// Diagnostics of one text in its order: the warnings if there is nothing worse, else all.
pub(crate) fn finish(all: Vec<Diagnostic>) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
    let found = Found {
        all,
        ..Found::default()
    };
    found.finish()
}

/// Parses, expands and checks what needs no schema.
pub fn parse_only(
    policies: &[Source],
    macros: Option<&Source>,
    options: &Options,
) -> Result<Checked, Vec<Diagnostic>> {
    run(Found::default(), policies, macros, None, &|rule| {
        (
            check::check_without_schema(rule, options.arithmetic),
            Vec::new(),
        )
    })
}

type CheckRule<'a> = dyn Fn(&Rule) -> (Vec<Finding>, Vec<EntityUid>) + 'a;

fn run(
    mut found: Found,
    policies: &[Source],
    macros: Option<&Source>,
    lints: Option<&Service>,
    check_rule: &CheckRule,
) -> Result<Checked, Vec<Diagnostic>> {
    let library = match macros {
        None => Library::builtin(),
        Some(source) => {
            let id = source_id(policies.len());
            let text = without_mark(&source.text);
            let parsed = parse_policy(&text);
            found.syntax(&parsed, &text, id);
            found.define(&parsed.tree, id)
        }
    };
    let mut rules = Vec::new();
    let mut macros: Vec<CalledMacro> = Vec::new();
    // Of each rule its calls, and the text it is in.
    let mut origins: Vec<(Vec<CallSite>, usize)> = Vec::new();
    let texts: Vec<Cow<str>> = policies
        .iter()
        .map(|source| without_mark(&source.text))
        .collect();
    for (at, text) in texts.iter().enumerate() {
        let id = source_id(at);
        let parsed = parse_policy(text);
        found.syntax(&parsed, text, id);
        let library = library.overridden_by(found.define(&parsed.tree, id));
        let own: BTreeSet<SmolStr> = parsed.tree.items.iter().filter_map(macro_name).collect();
        // A tree with calls is gone once its rule is written out, and its memory serves the next.
        for item in parsed.tree.items {
            let Item::Rule(written) = item else { continue };
            let (expanded, by_name) = if is_plain(&written, text) {
                let (errors, calls) = (Vec::new(), Vec::new());
                let rule = written;
                (
                    Expanded {
                        rule,
                        errors,
                        calls,
                    },
                    None,
                )
            } else {
                let expanded = expand_rule(&written, &library);
                let by_name = (!expanded.calls.is_empty())
                    .then(|| expand_builtins(&written, &library))
                    .flatten();
                (expanded, by_name)
            };
            let Expanded {
                rule,
                errors,
                calls,
            } = expanded;
            found.macros(&errors, id);
            let (findings, targets) = check_rule(&rule);
            for finding in findings {
                found.add(about_call(finding.diagnostic(text), &calls), id);
            }
            let declared = calls.iter().filter_map(|call| library.declared(&call.name));
            for def in declared {
                let source = if own.contains(&def.name.text) {
                    id
                } else {
                    source_id(policies.len())
                };
                let known =
                    |found: &CalledMacro| found.source == source && found.def.name == def.name;
                if !macros.iter().any(known) {
                    macros.push(CalledMacro {
                        def: def.clone(),
                        source,
                    });
                }
            }
            rules.push(CheckedRule {
                by_name,
                rule,
                source: id,
                index: rules.len(),
                targets,
            });
            origins.push((calls, at));
        }
    }
    let broken = found.all.iter().any(|d| d.severity == Severity::Error);
    if let Some(service) = lints.filter(|_| !broken) {
        let subjects: Vec<Subject> = rules
            .iter()
            .zip(&origins)
            .filter(|(rule, _)| !lint::does_nothing(rule, &found.all))
            .map(|(rule, (calls, at))| {
                let text = texts.get(*at).map_or("", |text| text.as_ref());
                Subject::new(rule, text, calls)
            })
            .collect();
        found.all.extend(lint::lint(&subjects, service));
        found.all.extend(rules.iter().flat_map(lint::allowed));
    }
    lint::silence(&mut found.all, &rules);
    let diagnostics = found.finish()?;
    Ok(Checked {
        rules,
        diagnostics,
        macros,
    })
}

fn macro_name(item: &Item) -> Option<SmolStr> {
    match item {
        Item::Macro(def) => Some(def.name.text.clone()),
        _ => None,
    }
}

fn source_id(at: usize) -> SourceId {
    SourceId(u16::try_from(at).unwrap_or(u16::MAX))
}

/// The text with a byte-order mark blanked out, so that places stay what they are.
pub(crate) fn without_mark(text: &str) -> Cow<'_, str> {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => Cow::Owned(format!("   {rest}")),
        None => Cow::Borrowed(text),
    }
}

/// What is wrong with the body of a macro is said at the call. The text there is not the wrong one, so
/// no edit of it can be offered.
pub(crate) fn about_call(mut diagnostic: Diagnostic, calls: &[CallSite]) -> Diagnostic {
    if let Some(call) = calls.iter().find(|call| call.span == diagnostic.span) {
        diagnostic.label = format!("in what `{}` stands for", call.name);
    }
    let foreign = |edit: &Edit| {
        let covers =
            |call: &CallSite| edit.span.start <= call.span.start && call.span.end <= edit.span.end;
        calls.iter().any(covers)
    };
    if let Some(fix) = &diagnostic.fix
        && fix.edits.iter().any(foreign)
    {
        diagnostic.fix = None;
    }
    diagnostic
}

/// Everything found so far, in any order.
#[derive(Default)]
struct Found {
    all: Vec<Diagnostic>,
    /// Places that could not be read; nothing more is said about them.
    unreadable: BTreeSet<(SourceId, Span)>,
}

impl Found {
    fn syntax<T>(&mut self, parsed: &Parsed<T>, text: &str, id: SourceId) {
        for error in &parsed.errors {
            let diagnostic = SyntaxError::diagnostic(error, text).in_source(id);
            self.unreadable.insert((id, diagnostic.span));
            self.all.push(diagnostic);
        }
    }

    fn add(&mut self, diagnostic: Diagnostic, id: SourceId) {
        if !self.unreadable.contains(&(id, diagnostic.span)) {
            self.all.push(diagnostic.in_source(id));
        }
    }

    fn schema(&mut self, errors: &[SchemaError], id: SourceId) {
        for error in errors {
            // What seems to be missing may be what could not be read.
            if let SchemaError::EmptyAppliesTo { span, .. } = error
                && self.unreadable_within(*span, id)
            {
                continue;
            }
            self.add(error.diagnostic(), id);
        }
    }

    fn unreadable_within(&self, span: Span, id: SourceId) -> bool {
        let inside = |at: &Span| span.start <= at.start && at.end <= span.end;
        self.unreadable
            .iter()
            .any(|(source, at)| *source == id && inside(at))
    }

    /// The tree of an action schema in either syntax.
    fn action_schema(&mut self, source: &Source) -> ActionSchemaFile {
        let text = without_mark(&source.text);
        if schema::json::is_json(&source.name, &text) {
            let (tree, errors) = schema::json::read(&text);
            for error in errors {
                let diagnostic = error.diagnostic().in_source(SourceId(0));
                self.unreadable.insert((SourceId(0), diagnostic.span));
                self.all.push(diagnostic);
            }
            return tree;
        }
        let parsed = parse_action_schema(&text);
        self.syntax(&parsed, &text, SourceId(0));
        parsed.tree
    }

    fn macros(&mut self, errors: &[MacroError], id: SourceId) {
        for error in errors {
            self.add(error.diagnostic(), id);
        }
    }

    fn define(&mut self, file: &PolicyFile, id: SourceId) -> Library {
        let (library, errors) = Library::define(file);
        self.macros(&errors, id);
        library
    }

    /// The warnings if there is nothing worse, else everything; in source order, one message of a kind
    /// for a place.
    fn finish(mut self) -> Result<Vec<Diagnostic>, Vec<Diagnostic>> {
        self.all
            .sort_by_key(|d| (d.source, d.span.start, d.severity, d.span.end));
        let mut seen = BTreeSet::new();
        self.all.retain(|d| seen.insert((d.source, d.span, d.code)));
        if self.all.iter().any(|d| d.severity == Severity::Error) {
            Err(self.all)
        } else {
            Ok(self.all)
        }
    }
}
