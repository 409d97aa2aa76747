//! Another name for a variable, a parameter, a macro or a rule, in every document that says the old one.

use super::references::{Symbol, places, symbol};
use crate::builtin;
use crate::document::Document;
use crate::mark::What;
use crate::snapshot::{Snapshot, item_span, within};
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::ast::Sigil;
use dogwood_compiler::grammar::diagnostic::Edit;
use dogwood_compiler::macros::RESERVED_NAMES;
use std::fmt;
use std::sync::Arc;

/// Edits by document.
pub type Changes = Vec<(Arc<Document>, Vec<Edit>)>;

/// Why a name stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    NothingToRename,
    BuiltIn,
    NotAName(String),
    Reserved(String),
    /// Something here is called so already.
    Taken(String),
    NotAnId,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NothingToRename => f.write_str(
                "only variables, parameters, macros and the ids of rules can be renamed",
            ),
            Refusal::BuiltIn => {
                f.write_str("this is built in; define one of your own to change it")
            }
            Refusal::NotAName(name) => write!(
                f,
                "`{name}` is no name: letters, digits and `_`, and no digit first"
            ),
            Refusal::Reserved(name) => {
                write!(f, "`{name}` means something to the language already")
            }
            Refusal::Taken(name) => write!(f, "`{name}` is in use here already"),
            Refusal::NotAnId => f.write_str("an id is a text without quotes, `\\` and line breaks"),
        }
    }
}

/// What would be renamed: its place and the name it has.
pub fn prepare(snapshot: &Snapshot, offset: usize) -> Result<(Span, String), Refusal> {
    let (symbol, span) = symbol(snapshot, offset).ok_or(Refusal::NothingToRename)?;
    if builtin::is(&snapshot.document.path) {
        return Err(Refusal::BuiltIn);
    }
    match symbol {
        Symbol::Local(_) | Symbol::Macro(_, Some(_)) | Symbol::Rule(..) => {
            Ok((span, span.text(snapshot.text()).to_owned()))
        }
        Symbol::Macro(_, None) => Err(Refusal::BuiltIn),
        _ => Err(Refusal::NothingToRename),
    }
}

pub fn rename(snapshot: &Snapshot, offset: usize, new: &str) -> Result<Changes, Refusal> {
    prepare(snapshot, offset)?;
    let (symbol, span) = symbol(snapshot, offset).ok_or(Refusal::NothingToRename)?;
    let text = match &symbol {
        Symbol::Rule(..) => {
            if new.is_empty() || new.contains(['"', '\'', '\\', '\n', '\r']) {
                return Err(Refusal::NotAnId);
            }
            new.to_owned()
        }
        Symbol::Local(_) => local(snapshot, offset, span, new)?,
        _ => {
            let name = word(new)?;
            if snapshot
                .all_macros()
                .iter()
                .any(|(def, _)| def.name.text == name)
            {
                return Err(Refusal::Taken(name.to_owned()));
            }
            name.to_owned()
        }
    };
    let mut changes: Changes = Vec::new();
    for found in places(snapshot, &symbol) {
        let edit = Edit {
            span: found.place.span,
            text: text.clone(),
        };
        match changes.last_mut() {
            Some((document, edits)) if document.path == found.place.document.path => {
                edits.push(edit);
            }
            _ => changes.push((found.place.document, vec![edit])),
        }
    }
    Ok(changes)
}

/// The name of a variable with its sigil.
fn local(snapshot: &Snapshot, offset: usize, span: Span, new: &str) -> Result<String, Refusal> {
    let sigil = match snapshot.document.mark_at(offset).map(|mark| &mark.what) {
        Some(What::Local(local)) => local.sigil,
        _ => Sigil::Plain,
    };
    let sign = match sigil {
        Sigil::Plain => "",
        Sigil::Param => "?",
        Sigil::Fresh => "$",
    };
    let name = word(new.strip_prefix(sign).unwrap_or(new))?;
    let item = snapshot.item_at(offset).map(item_span);
    let taken = snapshot
        .document
        .marks()
        .iter()
        .any(|mark| match &mark.what {
            What::Local(local) => {
                local.name == name
                    && local.sigil == sigil
                    && item.is_none_or(|item| within(mark.span, item))
            }
            _ => false,
        });
    let renamed = format!("{sign}{name}");
    if taken && renamed != span.text(snapshot.text()) {
        return Err(Refusal::Taken(renamed));
    }
    Ok(renamed)
}

fn word(name: &str) -> Result<&str, Refusal> {
    let mut letters = name.chars();
    let first = letters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !first || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(Refusal::NotAName(name.to_owned()));
    }
    let variables = ["principal", "action", "resource", "context", "_"];
    if RESERVED_NAMES.contains(&name) || variables.contains(&name) {
        return Err(Refusal::Reserved(name.to_owned()));
    }
    Ok(name)
}
