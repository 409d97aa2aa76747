//! What is wrong with a document: the very findings of `dogwood check`, with the same codes and fixes.

use crate::document::{Document, Kind};
use crate::shelf::Setup;
use crate::snapshot::Snapshot;
use dogwood_compiler::compile::{self, Options, Source};
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::{Diagnostic, Severity, SourceId};
use dogwood_compiler::incremental::Session;
use dogwood_compiler::project::Files;
use dogwood_compiler::{providers, suite};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What checking a document found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// About this document, in its order.
    pub diagnostics: Vec<Diagnostic>,
    /// The documents that labels are in, by source.
    pub sources: Vec<PathBuf>,
}

/// Codes of what could as well not be there.
const POINTLESS: &[&str] = &[
    "forbid-without-permit",
    "never-applies",
    "shadowed-rule",
    "unused-variable",
];
/// Codes of what may still change.
const UNSETTLED: &[&str] = &["experimental-arithmetic"];

/// How an editor may show a message beside its severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    Unnecessary,
    Deprecated,
}

pub fn tag(code: &str) -> Option<Tag> {
    match code {
        _ if POINTLESS.contains(&code) => Some(Tag::Unnecessary),
        _ if UNSETTLED.contains(&code) => Some(Tag::Deprecated),
        _ => None,
    }
}

/// Checks documents again and again, and of a policy only the statements that changed.
#[derive(Default)]
pub struct Checker {
    /// With what each policy is checked against.
    sessions: BTreeMap<PathBuf, (Arc<Setup>, Session)>,
}

impl Checker {
    /// What [`diagnostics`] says, sooner.
    pub fn diagnostics(&mut self, snapshot: &Snapshot) -> Findings {
        let document = &snapshot.document;
        let setup = &snapshot.setup;
        // Providers add types that depend on every call of them.
        let whole =
            document.kind != Kind::Policy || !setup.broken.is_empty() || setup.providers.is_some();
        if whole {
            return diagnostics(snapshot);
        }
        let macros = library(snapshot);
        let session = match self.sessions.get_mut(&document.path) {
            Some((known, session)) if Arc::ptr_eq(known, setup) => session,
            _ => {
                let service = Arc::clone(&setup.service);
                let session = Session::new(service, macros.map(source), options(setup));
                self.sessions.remove(&document.path);
                let entry = self.sessions.entry(document.path.clone());
                &mut entry.or_insert((Arc::clone(setup), session)).1
            }
        };
        Findings {
            diagnostics: session.check(&source(document)),
            sources: vec![document.path.clone()],
        }
    }

    pub fn forget(&mut self, path: &Path) {
        self.sessions.remove(path);
    }
}

fn options(setup: &Setup) -> Options {
    Options {
        arithmetic: setup.arithmetic,
        quiet: false,
    }
}

fn source(document: &Document) -> Source {
    Source {
        name: document.path.display().to_string(),
        text: document.text.clone(),
    }
}

/// The macro library of a policy. A library is none to itself.
fn library(snapshot: &Snapshot) -> Option<&Document> {
    let macros = snapshot.setup.macros.as_deref();
    macros.filter(|library| library.path != snapshot.document.path)
}

pub fn diagnostics(snapshot: &Snapshot) -> Findings {
    let document = &snapshot.document;
    let source = source(document);
    match document.kind {
        Kind::Policy => policy(snapshot, source),
        Kind::ActionSchema => Findings {
            diagnostics: compile::check_action_schema(&source),
            sources: vec![document.path.clone()],
        },
        Kind::EventSchema => event_schema(snapshot, &source),
        Kind::Other => Findings::default(),
        Kind::Tests => Findings {
            diagnostics: tests(snapshot),
            sources: vec![document.path.clone()],
        },
    }
}

fn policy(snapshot: &Snapshot, source: Source) -> Findings {
    let setup = &snapshot.setup;
    let options = options(setup);
    let mut sources = vec![snapshot.document.path.clone()];
    let macros = library(snapshot).map(|library| {
        sources.push(library.path.clone());
        self::source(library)
    });
    if let Some(declarations) = &setup.providers {
        sources.push(PathBuf::from(&declarations.name));
    }
    let policies = [source];
    let checked = if setup.broken.is_empty() {
        compile::check(&policies, macros.as_ref(), &setup.service, &options)
    } else {
        // What the broken schema declares would be missing; it has its own messages.
        compile::parse_only(&policies, macros.as_ref(), &options)
    };
    let mut diagnostics = checked.map_or_else(|all| all, |checked| checked.diagnostics);
    diagnostics.retain(|diagnostic| diagnostic.source == SourceId(0));
    diagnostics.extend(unchecked(snapshot));
    Findings {
        diagnostics,
        sources,
    }
}

/// Why rules are not checked: the first error of each schema that is broken, at the start of the policy.
fn unchecked(snapshot: &Snapshot) -> Vec<Diagnostic> {
    let setup = &snapshot.setup;
    let mut found = Vec::new();
    for path in &setup.broken {
        let of = |document: &Option<Arc<Document>>| {
            let document = document.as_deref()?;
            (document.path == *path).then(|| self::source(document))
        };
        let declarations = setup.providers.as_ref();
        let errors = if let Some(text) = of(&setup.action_schema) {
            compile::check_action_schema(&text)
        } else if let Some(text) = of(&setup.event_schema) {
            event_schema(snapshot, &text).diagnostics
        } else if let Some(text) = declarations.filter(|text| Path::new(&text.name) == path) {
            providers::check(text)
        } else {
            continue;
        };
        let first = errors
            .iter()
            .find(|error| error.severity == Severity::Error);
        if let Some(first) = first {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let message = format!("rules are not checked: in {name}, {}", first.message);
            found.push(Diagnostic::warning(first.code, Span::default(), message));
        }
    }
    found
}

fn event_schema(snapshot: &Snapshot, source: &Source) -> Findings {
    let setup = &snapshot.setup;
    let own = snapshot.document.path.clone();
    let actions = setup.action_schema.as_ref();
    let actions = actions.filter(|actions| !setup.broken.contains(&actions.path));
    let Some(actions) = actions else {
        return Findings {
            diagnostics: compile::check_event_schema(source),
            sources: vec![own],
        };
    };
    let declared = Source {
        name: actions.path.display().to_string(),
        text: actions.text.clone(),
    };
    let loaded = compile::load_service(Some(&declared), Some(source));
    let mut diagnostics = loaded.map_or_else(|all| all, |(_, warnings)| warnings);
    diagnostics.retain(|diagnostic| diagnostic.source == SourceId(1));
    Findings {
        diagnostics,
        sources: vec![actions.path.clone(), own],
    }
}

fn tests(snapshot: &Snapshot) -> Vec<Diagnostic> {
    let test = &snapshot.document;
    let header = match suite::header(&test.text) {
        Ok(header) => header,
        Err(problems) => return problems,
    };
    let tested = match snapshot.shelf.tested(test) {
        Ok(tested) => tested,
        Err(problem) => return vec![*problem],
    };
    let mut names = BTreeSet::new();
    for (at, path) in tested.policies.iter().enumerate() {
        let Some(policy) = snapshot.shelf.document(path) else {
            let span = header
                .policies
                .get(at)
                .map_or_else(Default::default, |name| name.span);
            let message = format!("there is no policy {}", path.display());
            return vec![
                Diagnostic::error("test-policy", span, message)
                    .help("the path is relative to the folder of the test file"),
            ];
        };
        names.extend(super::lens::names(&policy));
    }
    let named = [
        (&header.policy_schema, &tested.policy_schema),
        (&header.event_schema, &tested.event_schema),
        (&header.macros, &tested.macros),
        (&header.providers, &tested.providers),
    ];
    for (name, path) in named {
        if let (Some(name), Some(path)) = (name, path)
            && !Files::is_file(&snapshot.shelf, path)
        {
            let message = format!("there is no file {}", path.display());
            return vec![
                Diagnostic::error("test-policy", name.span, message)
                    .help("the path is relative to the folder of the test file"),
            ];
        }
    }
    match suite::read(&test.text, &snapshot.setup.service, &names) {
        Ok(_) => Vec::new(),
        Err(problems) => problems,
    }
}
