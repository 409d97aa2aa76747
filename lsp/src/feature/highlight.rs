//! The other places of a name in the same document.

use super::references::{Symbol, stands_for, symbol};
use crate::mark::What;
use crate::snapshot::Snapshot;
use dogwood_compiler::grammar::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Highlight {
    pub span: Span,
    /// It is introduced here.
    pub writes: bool,
}

pub fn highlights(snapshot: &Snapshot, offset: usize) -> Vec<Highlight> {
    let Some(mark) = snapshot.document.mark_at(offset) else {
        return Vec::new();
    };
    let symbol = symbol(snapshot, offset).map(|(symbol, _)| symbol);
    // A field is the same name of the same rule: what it is elsewhere is for references.
    let symbol = symbol.filter(|symbol| !matches!(symbol, Symbol::Field(..)));
    let rule = snapshot.item_at(offset).map(crate::snapshot::item_span);
    let same = |what: &What, span: Span| match (&symbol, &mark.what) {
        // A macro of unknown place is still a name.
        (Some(symbol), _) => stands_for(what, symbol),
        (None, What::RequestField { .. } | What::EventField { .. } | What::Variable(_)) => {
            *what == mark.what && rule.is_some_and(|rule| crate::snapshot::within(span, rule))
        }
        (None, _) => *what == mark.what,
    };
    let mut found: Vec<Highlight> = snapshot
        .document
        .marks()
        .iter()
        .filter(|other| same(&other.what, other.span))
        .map(|other| Highlight {
            span: other.span,
            writes: other.defines,
        })
        .collect();
    if let Some(Symbol::Local(_)) = symbol {
        found.dedup();
    }
    found
}
