//! Ever larger parts of a text around a place: word, operand, condition, clause, rule.

use crate::mark::What;
use crate::snapshot::{Snapshot, contains, item_span};
use crate::walk;
use dogwood_compiler::grammar::ast::Item;
use dogwood_compiler::grammar::ast::action_schema::ActionSchemaFile;
use dogwood_compiler::grammar::{Span, TokenKind};
use dogwood_compiler::json::{Json, JsonKind};

/// Smallest first; each lies in the next.
pub fn selection(snapshot: &Snapshot, offset: usize) -> Vec<Span> {
    let document = &snapshot.document;
    let mut all: Vec<Span> = document
        .piece_at(offset)
        .map(|piece| piece.span)
        .into_iter()
        .collect();
    all.extend(document.marks().iter().map(|mark| mark.span));
    if let Some(item) = snapshot.item_at(offset) {
        walk::item(item, &mut |node| all.push(node.span()));
        all.push(item_span(item));
        if let Item::Rule(rule) = item {
            all.push(rule.scope.span);
            all.extend(rule.annotations.iter().map(|note| note.span));
            all.extend(rule.scope.heads.iter().map(|head| head.span));
        }
    }
    declarations(&document.action_schema().tree, &mut all);
    for event in &document.event_schema().tree.events {
        all.push(event.span);
    }
    all.extend(document.marks().iter().filter_map(|mark| match mark.what {
        What::Attribute(_, span) => Some(span),
        _ => None,
    }));
    let mut open: Vec<u32> = Vec::new();
    for piece in document.pieces() {
        if piece.kind != TokenKind::Bracket {
            continue;
        }
        if matches!(piece.span.text(&document.text), "(" | "[" | "{") {
            open.push(piece.span.start);
        } else if let Some(start) = open.pop() {
            let outer = Span {
                start,
                end: piece.span.end,
            };
            let inner = Span {
                start: start + 1,
                end: piece.span.start,
            };
            all.extend([inner, outer]);
        }
    }
    json(document.tests(), &mut all);
    all.push(Span::new(0, document.text.len()));
    all.retain(|span| !span.is_empty() && contains(*span, offset));
    all.sort_by_key(|span| (span.end - span.start, span.start));
    let mut chain: Vec<Span> = Vec::new();
    for span in all {
        let fits = chain
            .last()
            .is_none_or(|last| span.start <= last.start && last.end <= span.end && span != *last);
        if fits {
            chain.push(span);
        }
    }
    chain
}

fn declarations(file: &ActionSchemaFile, all: &mut Vec<Span>) {
    for namespace in &file.namespaces {
        // Those outside of any have no text of their own.
        all.extend(namespace.name.as_ref().map(|_| namespace.span));
        all.extend(namespace.decls.iter().map(|decl| decl.span));
    }
}

fn json(node: &Json, all: &mut Vec<Span>) {
    all.push(node.span);
    match &node.kind {
        JsonKind::Array(items) => items.iter().for_each(|item| json(item, all)),
        JsonKind::Object(members) => {
            for member in members {
                all.push(member.key.span);
                all.push(member.key.span.to(member.value.span));
                json(&member.value, all);
            }
        }
        _ => {}
    }
}
