//! Everywhere a name is used: in this document, and in those that share what it names.

use super::definition::fields;
use crate::builtin;
use crate::document::{Document, Kind};
use crate::mark::{Mark, What};
use crate::shelf::{Setup, Shelf};
use crate::snapshot::{Place, Snapshot, macros as macros_in};
use dogwood_compiler::grammar::Span;
use dogwood_compiler::value::EntityUid;
use smol_str::SmolStr;
use std::path::PathBuf;
use std::sync::Arc;

/// What a name stands for, so that two names can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// By where it is introduced.
    Local(Span),
    /// With the document that defines it; none where it is built in.
    Macro(SmolStr, Option<PathBuf>),
    /// Of one of these policies.
    Rule(SmolStr, Vec<PathBuf>),
    Type(SmolStr),
    Action(EntityUid),
    Kind(SmolStr),
    Entity(EntityUid),
    Provider(SmolStr),
    /// Declared at one of these places.
    Field(SmolStr, Vec<(PathBuf, Span)>),
}

/// One place of a symbol.
#[derive(Clone, Debug)]
pub struct Found {
    pub place: Place,
    pub defines: bool,
}

/// The symbol at an offset, and its place.
pub fn symbol(snapshot: &Snapshot, offset: usize) -> Option<(Symbol, Span)> {
    let mark = snapshot.document.mark_at(offset)?;
    Some((of(snapshot, mark)?, mark.span))
}

fn of(snapshot: &Snapshot, mark: &Mark) -> Option<Symbol> {
    Some(match &mark.what {
        What::Local(local) => Symbol::Local(local.binder),
        What::Macro(name) => {
            let (_, document, built_in) = snapshot.macro_named(name)?;
            Symbol::Macro(name.clone(), (!built_in).then(|| document.path.clone()))
        }
        What::Rule(id) => Symbol::Rule(id.clone(), policies(snapshot)),
        What::Type(name) => Symbol::Type(name.clone()),
        What::Action(uid) => Symbol::Action(uid.clone()),
        What::Entity(uid) => Symbol::Entity(uid.clone()),
        What::ActionId(id) => Symbol::Action(snapshot.action_called(id)?.clone()),
        What::Provider(name) => {
            snapshot.setup.provider(name)?;
            Symbol::Provider(name.clone())
        }
        What::Attribute(name, _) => {
            let place = (snapshot.document.path.clone(), mark.span);
            Symbol::Field(name.clone(), vec![place])
        }
        What::EventField { path, .. }
        | What::RequestField { path, .. }
        | What::GivenField { path, .. } => {
            let declared = fields(snapshot, &mark.what, mark.span.start as usize)?;
            let places = declared
                .into_iter()
                .map(|place| (place.document.path.clone(), place.span));
            let places: Vec<_> = places.collect();
            (!places.is_empty()).then_some(())?;
            Symbol::Field(path.last()?.clone(), places)
        }
        What::Kind { kind, .. } => Symbol::Kind(kind.clone()),
        _ => return None,
    })
}

/// Whether a test may call an action so.
fn called(uid: &EntityUid, id: &str) -> bool {
    uid.id == id || dogwood_compiler::explain::short_name(uid) == id
}

/// The policies a document is about: itself, or those it tests.
fn policies(snapshot: &Snapshot) -> Vec<PathBuf> {
    match snapshot.document.kind {
        Kind::Tests => {
            let tested = snapshot.shelf.tested(&snapshot.document);
            tested.map_or_else(|_| Vec::new(), |tested| tested.policies)
        }
        _ => vec![snapshot.document.path.clone()],
    }
}

/// All places of a symbol, by document.
pub fn places(snapshot: &Snapshot, symbol: &Symbol) -> Vec<Found> {
    let here = Arc::clone(&snapshot.document);
    let shelf = &snapshot.shelf;
    let mut documents: Vec<Arc<Document>> = vec![here];
    let mut found = Vec::new();
    match symbol {
        Symbol::Local(_) => {}
        Symbol::Macro(_, None) => documents.push(Arc::clone(builtin::macros())),
        Symbol::Macro(name, Some(home)) => {
            // Where this is the library of others, they call it; the macro of a policy is its own.
            let all = shelf.all();
            let others = all.iter().filter_map(|path| {
                let setup = shelf.setup(path);
                let macros = setup.macros.as_ref();
                let uses = path == home || macros.is_some_and(|macros| macros.path == *home);
                let document = uses.then(|| shelf.document(path)).flatten()?;
                let own = document.path != *home
                    && macros_in(&document).any(|def| def.name.text == *name);
                (!own).then_some(document)
            });
            documents.extend(others);
        }
        Symbol::Provider(name) => {
            let declared = snapshot.setup.provider(name);
            found.extend(declared.map(|(document, span)| Found {
                place: Place { document, span },
                defines: true,
            }));
            let named = |setup: &Setup| setup.providers.as_ref().map(|from| from.name.clone());
            let from = named(&snapshot.setup);
            let all = shelf.all();
            let asking = all.iter().filter(|path| named(&shelf.setup(path)) == from);
            documents.extend(asking.filter_map(|path| shelf.document(path)));
        }
        Symbol::Rule(_, policies) => {
            for path in policies {
                documents.extend(shelf.document(path));
                documents.extend(shelf.tests_of(path));
            }
        }
        Symbol::Type(_)
        | Symbol::Action(_)
        | Symbol::Kind(_)
        | Symbol::Entity(_)
        | Symbol::Field(..) => {
            let setup = &snapshot.setup;
            documents.push(Arc::clone(setup.actions()));
            documents.push(Arc::clone(setup.events()));
            for path in shelf.all().iter() {
                // Kinds are the event schema's business, everything else the action schema's; fields are both's.
                let theirs = shelf.setup(path);
                let actions = theirs.actions().path == setup.actions().path;
                let events = theirs.events().path == setup.events().path;
                let shared = match symbol {
                    Symbol::Kind(_) => events,
                    Symbol::Field(..) => actions || events,
                    _ => actions,
                };
                if shared {
                    documents.extend(shelf.document(path));
                }
            }
        }
    }
    documents.sort_by(|a, b| a.path.cmp(&b.path));
    documents.dedup_by(|a, b| a.path == b.path);
    for document in documents {
        if let Symbol::Field(name, declared) = symbol {
            of_field(shelf, &document, name, declared, &mut found);
            continue;
        }
        for mark in document.marks() {
            if stands_for(&mark.what, symbol) {
                let place = Place {
                    document: Arc::clone(&document),
                    span: mark.span,
                };
                let defines = mark.defines;
                found.push(Found { place, defines });
            }
        }
    }
    found
}

/// The places of a field in one document.
fn of_field(
    shelf: &Shelf,
    document: &Arc<Document>,
    name: &SmolStr,
    declared: &[(PathBuf, Span)],
    found: &mut Vec<Found>,
) {
    let mut snapshot = None;
    for mark in document.marks() {
        let is = match &mark.what {
            What::Attribute(..) => declared.contains(&(document.path.clone(), mark.span)),
            What::EventField { path, .. }
            | What::RequestField { path, .. }
            | What::GivenField { path, .. }
                if path.last() == Some(name) =>
            {
                let snapshot = snapshot.get_or_insert_with(|| Snapshot::new(shelf, &document.path));
                let at = mark.span.start as usize;
                let places = snapshot.as_ref().and_then(|s| fields(s, &mark.what, at));
                places.into_iter().flatten().any(|place| {
                    declared
                        .iter()
                        .any(|(path, span)| *path == place.document.path && *span == place.span)
                })
            }
            _ => false,
        };
        if is {
            found.push(Found {
                place: Place {
                    document: Arc::clone(document),
                    span: mark.span,
                },
                defines: mark.defines,
            });
        }
    }
}

pub fn stands_for(what: &What, symbol: &Symbol) -> bool {
    match (what, symbol) {
        (What::Local(local), Symbol::Local(binder)) => local.binder == *binder,
        (What::Macro(name), Symbol::Macro(wanted, _)) => name == wanted,
        (What::Rule(id), Symbol::Rule(wanted, _)) => id == wanted,
        (What::Type(name), Symbol::Type(wanted)) => name == wanted,
        (What::Action(uid), Symbol::Action(wanted)) => uid == wanted,
        (What::Entity(uid), Symbol::Entity(wanted)) => uid == wanted,
        (What::ActionId(id), Symbol::Action(wanted)) => called(wanted, id),
        (What::Kind { kind, .. }, Symbol::Kind(wanted)) => kind == wanted,
        (What::Provider(name), Symbol::Provider(wanted)) => name == wanted,
        _ => false,
    }
}

pub fn references(snapshot: &Snapshot, offset: usize, declaration: bool) -> Vec<Place> {
    let Some((symbol, _)) = symbol(snapshot, offset) else {
        return Vec::new();
    };
    let all = places(snapshot, &symbol).into_iter();
    all.filter(|found| declaration || !found.defines)
        .map(|found| found.place)
        .collect()
}
