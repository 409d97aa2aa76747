//! What can be folded away: statements, brackets over several lines, runs of comments, tests.

use crate::document::Kind;
use crate::snapshot::Snapshot;
use dogwood_compiler::grammar::TokenKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fold {
    /// Lines from 0; both stay in the fold.
    pub first: usize,
    pub last: usize,
    pub comment: bool,
}

pub fn folds(snapshot: &Snapshot) -> Vec<Fold> {
    let document = &snapshot.document;
    let mut found = Vec::new();
    let mut add = |first: usize, last: usize, comment: bool| {
        if first < last {
            found.push(Fold {
                first,
                last,
                comment,
            });
        }
    };
    let line = |offset: u32| document.lines.line(offset as usize);
    if document.kind == Kind::Tests {
        let mut begun: Option<usize> = None;
        let mut last_text = 0;
        for at in 0..document.lines.count() {
            let written = document.lines.text(&document.text, at).trim();
            if written.starts_with("[[") {
                if let Some(first) = begun {
                    add(first, last_text, false);
                }
                begun = Some(at);
            }
            if !written.is_empty() {
                last_text = at;
            }
        }
        if let Some(first) = begun {
            add(first, last_text, false);
        }
    }
    let mut open: Vec<usize> = Vec::new();
    let mut comments: Option<(usize, usize)> = None;
    for piece in document.pieces() {
        let first = line(piece.span.start);
        if piece.kind == TokenKind::Comment {
            comments = match comments {
                Some((from, to)) if first == to + 1 => Some((from, first)),
                other => {
                    if let Some((from, to)) = other {
                        add(from, to, true);
                    }
                    Some((first, first))
                }
            };
        }
        if piece.kind != TokenKind::Bracket {
            continue;
        }
        match piece.span.text(&document.text) {
            "(" | "[" | "{" => open.push(first),
            _ => {
                // The line of the closing bracket stays in sight.
                if let Some(from) = open.pop() {
                    add(from, first.saturating_sub(1), false);
                }
            }
        }
    }
    if let Some((from, to)) = comments {
        add(from, to, true);
    }
    for item in snapshot.items() {
        let span = crate::snapshot::item_span(item);
        add(line(span.start), line(span.end), false);
    }
    found.sort();
    // Of what begins on one line an editor shows one fold: the longest.
    found.dedup_by(|later, earlier| {
        let same = later.first == earlier.first;
        if same {
            earlier.last = earlier.last.max(later.last);
        }
        same
    });
    found
}
