//! What an author would otherwise count or look up: the number of a rule, a window in words, the type of a
//! variable where it is used.

use crate::document::Kind;
use crate::mark::What;
use crate::snapshot::Snapshot;
use dogwood_compiler::explain::length_in_words;
use dogwood_compiler::grammar::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintKind {
    Rule,
    Window,
    Type,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    pub offset: usize,
    pub text: String,
    pub kind: HintKind,
}

pub fn hints(snapshot: &Snapshot, range: Span) -> Vec<Hint> {
    let inside = |offset: u32| range.start <= offset && offset <= range.end;
    let mut found = Vec::new();
    for (number, rule) in snapshot.rules().enumerate() {
        if inside(rule.effect_span.start) {
            found.push(Hint {
                offset: rule.effect_span.start as usize,
                text: format!("rule {number}"),
                kind: HintKind::Rule,
            });
        }
    }
    for mark in snapshot.document.marks() {
        if !inside(mark.span.end) {
            continue;
        }
        let hint = match &mark.what {
            What::Window(Some(seconds)) => Some((length_in_words(*seconds), HintKind::Window)),
            // An event schema has but one letter, and says so where it stands.
            What::Local(_) if snapshot.document.kind == Kind::EventSchema => None,
            What::Local(local) if !mark.defines && mark.span != local.binder => {
                let ty = local.ty.as_ref();
                ty.map(|ty| (format!(": {ty}"), HintKind::Type))
            }
            _ => None,
        };
        if let Some((text, kind)) = hint {
            found.push(Hint {
                offset: mark.span.end as usize,
                text,
                kind,
            });
        }
    }
    found.sort_by_key(|hint| hint.offset);
    found
}
