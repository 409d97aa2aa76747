//! Policies in the one layout: a whole file, some of its statements, or the one just finished.

use crate::document::{Document, Kind};
use crate::snapshot::{contains, item_span};
use dogwood_compiler::format;
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::ast::Item;
use dogwood_compiler::grammar::diagnostic::Edit;
use dogwood_compiler::grammar::print::lay_out;

/// Edits that lay out the whole text; none where it does not parse.
pub fn document(document: &Document) -> Vec<Edit> {
    if document.kind != Kind::Policy {
        return Vec::new();
    }
    match format::format(&document.text) {
        Ok(laid) => difference(&document.text, 0, &laid).into_iter().collect(),
        Err(_) => Vec::new(),
    }
}

/// Edits that lay out the statements touching a range.
pub fn range(document: &Document, range: Span) -> Vec<Edit> {
    let items = document.policy().tree.items.iter();
    items
        .filter(|item| {
            let span = item_span(item);
            span.start < range.end.max(range.start + 1) && range.start < span.end
        })
        .filter_map(|item| statement(document, item))
        .collect()
}

/// Edits that lay out the statement that ends at the cursor, after its `;` or `}` was typed.
pub fn on_type(document: &Document, offset: usize) -> Vec<Edit> {
    let items = document.policy().tree.items.iter();
    items
        .filter(|item| item_span(item).end as usize == offset)
        .filter_map(|item| statement(document, item))
        .collect()
}

fn statement(document: &Document, item: &Item) -> Option<Edit> {
    let span = item_span(item);
    let parsed = document.policy();
    let wrong = |at: Span| contains(span, at.start as usize);
    if matches!(item, Item::Broken(_)) || parsed.errors.iter().any(|error| wrong(error.span)) {
        return None;
    }
    let laid = lay_out(item, &document.text, &parsed.trivia)?;
    difference(span.text(&document.text), span.start as usize, &laid)
}

/// The one edit that makes `new` of `old`, without what both begin and end with.
fn difference(old: &str, start: usize, new: &str) -> Option<Edit> {
    if old == new {
        return None;
    }
    let common = |a: &mut dyn Iterator<Item = char>, b: &mut dyn Iterator<Item = char>| -> usize {
        a.zip(b)
            .take_while(|(a, b)| a == b)
            .map(|(a, _)| a.len_utf8())
            .sum()
    };
    let head = common(&mut old.chars(), &mut new.chars());
    let old_rest = old.get(head..).unwrap_or("");
    let new_rest = new.get(head..).unwrap_or("");
    let tail = common(&mut old_rest.chars().rev(), &mut new_rest.chars().rev());
    let text = new_rest.get(..new_rest.len() - tail).unwrap_or("");
    Some(Edit {
        span: Span::new(start + head, start + old.len() - tail),
        text: text.to_owned(),
    })
}
