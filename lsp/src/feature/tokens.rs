//! Colours by meaning: what the grammar of an editor cannot know.

use crate::document::{Document, Kind};
use crate::mark::{Mark, What};
use dogwood_compiler::grammar::ast::Sigil;
use dogwood_compiler::grammar::{Span, TokenKind};

/// The kinds, in the order of the legend.
pub const TYPES: &[&str] = &[
    "keyword",
    "comment",
    "string",
    "number",
    "operator",
    "variable",
    "parameter",
    "property",
    "macro",
    "function",
    "method",
    "type",
    "enumMember",
    "event",
    "decorator",
    "namespace",
];
pub const MODIFIERS: &[&str] = &["declaration", "readonly", "defaultLibrary"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub span: Span,
    /// A position in [`TYPES`].
    pub kind: u32,
    /// One bit for each of [`MODIFIERS`].
    pub modifiers: u32,
}

const DECLARATION: u32 = 1;
const READONLY: u32 = 2;
const LIBRARY: u32 = 4;

/// The tokens that begin in `range`, in order; none overlap.
pub fn tokens(document: &Document, range: Span) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::new();
    let marks = document.marks();
    let inside = |span: Span| range.start <= span.start && span.start < range.end;
    if document.kind == Kind::Tests {
        for mark in marks.iter().filter(|mark| inside(mark.span)) {
            found.extend(meant(mark, mark.span));
        }
        return found;
    }
    for piece in document.pieces().iter().filter(|piece| inside(piece.span)) {
        let word = piece.span.text(&document.text);
        let kind = match piece.kind {
            TokenKind::Comment => Some("comment"),
            TokenKind::Number => Some("number"),
            TokenKind::Operator if !matches!(word, ";" | "," | "." | ":" | "::") => {
                Some("operator")
            }
            TokenKind::String => Some("string"),
            TokenKind::Keyword => Some("keyword"),
            TokenKind::Parameter | TokenKind::Fresh => Some("parameter"),
            TokenKind::Word if matches!(word, "true" | "false") => Some("keyword"),
            _ => None,
        };
        let wordy = matches!(
            piece.kind,
            TokenKind::Word
                | TokenKind::Keyword
                | TokenKind::Parameter
                | TokenKind::Fresh
                | TokenKind::String
                | TokenKind::Number
        );
        let token = wordy
            .then(|| mark_over(marks, piece.span))
            .flatten()
            .and_then(|mark| meant(mark, piece.span))
            .or_else(|| plain(kind?, piece.span, 0));
        found.extend(token);
    }
    // A string may go over several lines; editors take tokens of one line only.
    found
        .into_iter()
        .flat_map(|token| lines(document, token))
        .collect()
}

fn lines(document: &Document, token: Token) -> Vec<Token> {
    let text = token.span.text(&document.text);
    let mut start = token.span.start;
    let mut parts = Vec::new();
    for line in text.split_inclusive('\n') {
        let length = u32::try_from(line.len()).unwrap_or(0);
        let kept = u32::try_from(line.trim_end_matches(['\n', '\r']).len()).unwrap_or(0);
        if kept > 0 {
            let span = Span {
                start,
                end: start + kept,
            };
            parts.push(Token { span, ..token });
        }
        start += length;
    }
    parts
}

/// The smallest mark that a token lies in, or that lies in the token.
fn mark_over(marks: &[Mark], span: Span) -> Option<&Mark> {
    let end = marks.partition_point(|mark| mark.span.start < span.end);
    let near = marks.get(..end).unwrap_or_default().iter().rev();
    // Marks are short: the ones that reach this far begin not far before.
    near.take_while(|mark| mark.span.start + 4096 > span.start)
        .filter(|mark| {
            let over = mark.span.start <= span.start && span.end <= mark.span.end;
            let within = span.start <= mark.span.start && mark.span.end <= span.end;
            over || within
        })
        .min_by_key(|mark| mark.span.end - mark.span.start)
}

fn plain(kind: &str, span: Span, modifiers: u32) -> Option<Token> {
    let at = TYPES.iter().position(|known| *known == kind)?;
    Some(Token {
        span,
        kind: u32::try_from(at).ok()?,
        modifiers,
    })
}

fn meant(mark: &Mark, span: Span) -> Option<Token> {
    let (kind, modifiers) = match &mark.what {
        What::Annotation(_) => ("decorator", 0),
        What::Rule(_) | What::Code(_) | What::Test(_) | What::File(_) => ("string", 0),
        What::Type(_) => ("type", 0),
        What::Entity(_) => ("enumMember", READONLY),
        What::Action(_) | What::ActionId(_) => ("event", READONLY),
        What::Kind { .. } => ("event", 0),
        What::EventField { .. }
        | What::RequestField { .. }
        | What::GivenField { .. }
        | What::Attribute(..) => ("property", 0),
        What::Variable(_) => ("variable", READONLY | LIBRARY),
        What::Macro(_) => ("macro", 0),
        What::Constructor(_) | What::Selector(_) => ("function", LIBRARY),
        What::Provider(_) => ("function", 0),
        What::Method(_) => ("method", 0),
        What::Local(local) if local.sigil == Sigil::Param => ("parameter", 0),
        What::Local(_) => ("variable", 0),
        What::Window(_) => ("number", 0),
        What::Key(_) => ("property", 0),
    };
    let declares = if mark.defines { DECLARATION } else { 0 };
    plain(kind, span, modifiers | declares)
}
