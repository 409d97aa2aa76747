//! The outline of a text before it is parsed: where its rules end, which brackets belong together,
//! and what nests too deeply.
//!
//! A `;` stands only at the end of a rule or macro, so every item can be cut out and parsed alone:
//! a broken one never hides the next. The outermost brackets of an item (scope, parameters, clause
//! bodies) become tokens of their own, so the parser's recovery cannot mistake an inner bracket for
//! the end of a clause.

use crate::error::SyntaxErrorKind;
use crate::span::Span;
use crate::token::{Key, Lexeme, Token};
use crate::tree::Cx;
use std::ops::Range;

/// Brackets and prefix operators may nest this deep. Trees are bounded by `MAX_DEPTH`; this bound is
/// about what makes no tree node, like parentheses, and spares the parser a long stack.
pub(crate) const MAX_NESTING: usize = 600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bracket {
    Paren,
    Square,
    Brace,
}

pub(crate) fn opens(token: Token<'_>) -> Option<Bracket> {
    match token {
        Token::ParenOpen | Token::OuterParenOpen => Some(Bracket::Paren),
        Token::BracketOpen => Some(Bracket::Square),
        Token::BraceOpen | Token::OuterBraceOpen => Some(Bracket::Brace),
        _ => None,
    }
}

pub(crate) fn closes(token: Token<'_>) -> Option<Bracket> {
    match token {
        Token::ParenClose | Token::OuterParenClose => Some(Bracket::Paren),
        Token::BracketClose => Some(Bracket::Square),
        Token::BraceClose | Token::OuterBraceClose => Some(Bracket::Brace),
        _ => None,
    }
}

fn is_word(token: Option<Token<'_>>) -> bool {
    matches!(token, Some(Token::Word(_) | Token::Key(_)))
}

// ------------------------------------------------------------------------------------------ items

/// The tokens of one rule or macro, without its `;`.
#[derive(Debug)]
pub(crate) struct ItemRange {
    pub(crate) lexemes: Range<usize>,
    pub(crate) semicolon: Option<Span>,
}

pub(crate) fn items(source: &str, lexemes: &[Lexeme<'_>]) -> Vec<ItemRange> {
    let mut items = Vec::new();
    let mut start = 0;
    while start < lexemes.len() {
        let (mut end, depth) = item_end(source, lexemes, start, false);
        if depth != 0 {
            (end, _) = item_end(source, lexemes, start, true);
        }
        let semicolon = lexemes
            .get(end)
            .filter(|next| next.token == Token::Semicolon)
            .map(|next| next.span);
        items.push(ItemRange {
            lexemes: start..end,
            semicolon,
        });
        start = end + usize::from(semicolon.is_some());
    }
    items
}

/// Where the item that begins at `start` ends, and how many brackets are open there. Inside an open
/// bracket another item is only looked for where the brackets are known to be `unbalanced`.
fn item_end(
    source: &str,
    lexemes: &[Lexeme<'_>],
    start: usize,
    unbalanced: bool,
) -> (usize, usize) {
    let token = |at: usize| lexemes.get(at).map(|lexeme| lexeme.token);
    let mut depth = 0usize;
    // Past the annotations.
    let mut begun = false;
    let mut at = start;
    while let Some(now) = token(at) {
        let before = at
            .checked_sub(1)
            .filter(|before| *before >= start)
            .and_then(token);
        let stray = depth == 0 && closes(now).is_some();
        match now {
            Token::Semicolon => break,
            _ if opens(now).is_some() => depth += 1,
            _ if closes(now).is_some() => depth = depth.saturating_sub(1),
            _ => {}
        }
        if (begun || before == Some(Token::At))
            && starts_item(lexemes, at, depth > 0)
            && (depth == 0 || (unbalanced && first_on_line(source, lexemes, at)))
        {
            break;
        }
        let noted = at
            .checked_sub(2)
            .filter(|two| *two >= start)
            .and_then(token);
        begun |= match now {
            Token::At => false,
            // The end of an annotation, unless nothing was open.
            Token::ParenClose => stray,
            Token::ParenOpen => noted != Some(Token::At),
            Token::Word(_) | Token::Key(_) => before != Some(Token::At) && depth == 0,
            _ => depth == 0 || opens(now).is_some(),
        };
        at += 1;
    }
    (at, depth)
}

/// Whether only blanks stand before the token at `at` on its line.
pub(crate) fn first_on_line(source: &str, lexemes: &[Lexeme<'_>], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| lexemes.get(before));
    before.zip(lexemes.get(at)).is_none_or(|(before, now)| {
        let between = before.span.end as usize..now.span.start as usize;
        source.get(between).is_some_and(|text| text.contains('\n'))
    })
}

/// Whether the token at `at` looks like the first of a rule, macro or annotation. Inside an open
/// bracket, where the text is known to be `broken`, what stands before it counts for nothing.
fn starts_item(lexemes: &[Lexeme<'_>], at: usize, broken: bool) -> bool {
    let token = |at: usize| lexemes.get(at).map(|lexeme| lexeme.token);
    let joined = match at.checked_sub(1).and_then(token) {
        _ if broken => false,
        // The name of a macro.
        Some(Token::Key(Key::Cedar | Key::Temporal)) => {
            at.checked_sub(2).and_then(token) == Some(Token::Key(Key::Def))
        }
        _ => false,
    };
    match token(at) {
        _ if joined => false,
        Some(Token::At) => is_word(token(at + 1)),
        Some(Token::Key(Key::Permit | Key::Forbid)) => {
            token(at + 1) == Some(Token::ParenOpen)
                && match token(at + 2) {
                    Some(Token::ParenClose | Token::Comma) => true,
                    Some(Token::Word(word)) => matches!(word, "principal" | "action" | "resource"),
                    _ => false,
                }
        }
        Some(Token::Key(Key::Def)) => {
            matches!(token(at + 1), Some(Token::Key(Key::Cedar | Key::Temporal)))
                && is_word(token(at + 2))
        }
        _ => false,
    }
}

// --------------------------------------------------------------------------------- outer brackets

/// Makes the outermost brackets of an item tokens of their own. A scope that is never closed is
/// closed before the clause that follows it.
pub(crate) fn mark_outer<'s>(cx: &mut Cx<'s>, lexemes: Vec<Lexeme<'s>>) -> Vec<Lexeme<'s>> {
    struct Open {
        bracket: Bracket,
        outer: bool,
        span: Span,
    }
    let mut marked: Vec<Lexeme<'s>> = Vec::with_capacity(lexemes.len() + 1);
    let mut open: Vec<Open> = Vec::new();
    for (at, lexeme) in lexemes.iter().enumerate() {
        let mut lexeme = *lexeme;
        let next = lexemes.get(at + 1).map(|next| next.token);
        if let [
            Open {
                bracket: Bracket::Paren,
                outer: true,
                span,
            },
        ] = open.as_slice()
            && starts_clause(lexeme.token, next)
        {
            cx.error(SyntaxErrorKind::Unclosed, *span);
            let end = marked
                .last()
                .map_or(lexeme.span.start, |last| last.span.end);
            let span = Span::at(end as usize);
            marked.push(Lexeme {
                token: Token::OuterParenClose,
                span,
            });
            open.clear();
        }
        if let Some(bracket) = opens(lexeme.token) {
            let mut before = marked.iter().rev().map(|before| before.token);
            let annotation = is_word(before.next()) && before.next() == Some(Token::At);
            let outer = match lexeme.token {
                Token::ParenOpen if open.is_empty() && !annotation => Some(Token::OuterParenOpen),
                Token::BraceOpen if open.is_empty() => Some(Token::OuterBraceOpen),
                _ => None,
            };
            open.push(Open {
                bracket,
                outer: outer.is_some(),
                span: lexeme.span,
            });
            lexeme.token = outer.unwrap_or(lexeme.token);
        } else if let Some(bracket) = closes(lexeme.token)
            && let Some(partner) = open.iter().rposition(|open| open.bracket == bracket)
        {
            let outer = open.get(partner).is_some_and(|open| open.outer);
            // What was opened inside and never closed ends here too.
            open.truncate(partner);
            lexeme.token = match lexeme.token {
                Token::ParenClose if outer => Token::OuterParenClose,
                Token::BraceClose if outer => Token::OuterBraceClose,
                other => other,
            };
        }
        marked.push(lexeme);
    }
    marked
}

fn starts_clause(token: Token<'_>, next: Option<Token<'_>>) -> bool {
    matches!(token, Token::Key(Key::When | Key::Unless))
        && matches!(
            next,
            Some(Token::BraceOpen | Token::Key(Key::Temporal | Key::Guardrails))
        )
}

// ---------------------------------------------------------------------------------------- nesting

/// What is open around a token.
#[derive(Default)]
struct Frame {
    /// Prefix words since the bracket was opened or since the last comma.
    prefixes: usize,
    /// Those that `&&` ends.
    steps: usize,
}

/// Replaces every part that nests too deeply by one token, and reports it.
pub(crate) fn bound_nesting<'s>(cx: &mut Cx<'s>, lexemes: &[Lexeme<'s>]) -> Vec<Lexeme<'s>> {
    let mut bounded = Vec::with_capacity(lexemes.len());
    let mut frames = vec![Frame::default()];
    let mut nesting = 0usize;
    let mut at = 0;
    while let Some(lexeme) = lexemes.get(at) {
        let opening = opens(lexeme.token).is_some();
        let deeper = opening || prefix(lexemes, at).is_some();
        if deeper && nesting >= MAX_NESTING {
            let end = frame_end(lexemes, at);
            let last = lexemes
                .get(end.saturating_sub(1))
                .map_or(lexeme.span, |last| last.span);
            cx.too_deep(lexeme.span, lexeme.span.to(last));
            bounded.push(Lexeme {
                token: Token::TooDeep,
                span: lexeme.span.to(last),
            });
            at = end;
            continue;
        }
        if opening {
            frames.push(Frame::default());
            nesting += 1;
        } else if closes(lexeme.token).is_some() {
            if frames.len() > 1
                && let Some(frame) = frames.pop()
            {
                nesting = nesting.saturating_sub(1 + frame.prefixes + frame.steps);
            }
        } else if let Some(frame) = frames.last_mut() {
            match (lexeme.token, prefix(lexemes, at)) {
                (_, Some(Prefix::Step)) => {
                    frame.steps += 1;
                    nesting += 1;
                }
                (_, Some(Prefix::Long)) => {
                    frame.prefixes += 1;
                    nesting += 1;
                }
                (Token::And | Token::Or, None) => {
                    nesting = nesting.saturating_sub(frame.steps);
                    frame.steps = 0;
                }
                (Token::Comma | Token::Semicolon, None) => {
                    nesting = nesting.saturating_sub(frame.prefixes + frame.steps);
                    *frame = Frame::default();
                }
                _ => {}
            }
        }
        bounded.push(*lexeme);
        at += 1;
    }
    bounded
}

enum Prefix {
    /// Reaches to the end of the bracket.
    Long,
    /// Ends at `&&`.
    Step,
}

/// Whether the token is a prefix operator that nests what follows it.
fn prefix(lexemes: &[Lexeme<'_>], at: usize) -> Option<Prefix> {
    let token = |at: usize| lexemes.get(at).map(|lexeme| lexeme.token);
    let Some(Token::Key(key)) = token(at) else {
        return None;
    };
    let before = at.checked_sub(1).and_then(token);
    let next = token(at + 1);
    if matches!(before, Some(Token::Dot | Token::PathSep | Token::At))
        || matches!(next, Some(Token::PathSep | Token::Colon | Token::Dot))
    {
        return None;
    }
    match key {
        Key::If | Key::Exists | Key::Count | Key::Sum => Some(Prefix::Long),
        Key::Formerly | Key::Previous => Some(Prefix::Step),
        Key::Set if next == Some(Token::Lt) => Some(Prefix::Long),
        _ => None,
    }
}

/// The end of the part that begins at `at` inside its bracket.
fn frame_end(lexemes: &[Lexeme<'_>], at: usize) -> usize {
    let mut depth = 0usize;
    for (place, lexeme) in lexemes.iter().enumerate().skip(at) {
        if opens(lexeme.token).is_some() {
            depth += 1;
        } else if closes(lexeme.token).is_some() {
            if depth == 0 {
                return place;
            }
            depth -= 1;
        }
    }
    lexemes.len()
}
