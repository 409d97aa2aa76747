//! The one decoder of string literals and `like` patterns.

use crate::ast::{Pattern, PatternPart};
use crate::span::Span;
use smol_str::SmolStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EscapeFault {
    /// No such escape, or one that names no character.
    Unknown,
    /// `\*` outside a `like` pattern.
    Star,
}

/// A decoded piece of a literal.
enum Piece {
    Char(char),
    /// An unescaped `*`.
    Star,
    /// `\*`.
    EscapedStar,
}

/// The value of the literal `raw` (with quotes) that stands at `span`.
pub(crate) fn string(raw: &str, span: Span, fault: &mut impl FnMut(EscapeFault, Span)) -> SmolStr {
    if !raw.contains('\\') {
        return SmolStr::new(inside(raw));
    }
    let mut value = String::new();
    pieces(raw, span, fault, |piece, at, fault| match piece {
        Piece::Char(c) => value.push(c),
        Piece::Star => value.push('*'),
        Piece::EscapedStar => fault(EscapeFault::Star, at),
    });
    SmolStr::new(value)
}

/// The pattern of the literal `raw` on the right of `like`. Adjacent text is one part, and so are
/// adjacent wildcards, which match the same strings as one.
pub(crate) fn pattern(raw: &str, span: Span, fault: &mut impl FnMut(EscapeFault, Span)) -> Pattern {
    let mut parts = Vec::new();
    let mut text = String::new();
    pieces(raw, span, fault, |piece, _, _| match piece {
        Piece::Char(c) => text.push(c),
        Piece::EscapedStar => text.push('*'),
        Piece::Star => {
            if !text.is_empty() {
                parts.push(PatternPart::Text(SmolStr::new(&text)));
                text.clear();
            }
            if parts.last() != Some(&PatternPart::Any) {
                parts.push(PatternPart::Any);
            }
        }
    });
    if !text.is_empty() {
        parts.push(PatternPart::Text(SmolStr::new(&text)));
    }
    Pattern { parts, span }
}

fn inside(raw: &str) -> &str {
    raw.strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(raw)
}

fn pieces<F: FnMut(EscapeFault, Span)>(
    raw: &str,
    span: Span,
    fault: &mut F,
    mut each: impl FnMut(Piece, Span, &mut F),
) {
    let text = inside(raw);
    let offset = span.start as usize + 1;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let (length, piece) = match rest.strip_prefix('\\') {
            None => {
                let c = rest.chars().next().unwrap_or('\0');
                (
                    c.len_utf8(),
                    Some(if c == '*' {
                        Piece::Star
                    } else {
                        Piece::Char(c)
                    }),
                )
            }
            Some(escape) => {
                let (length, piece) = decode(escape);
                (length + 1, piece)
            }
        };
        let place = Span::new(offset + at, offset + at + length);
        match piece {
            Some(piece) => each(piece, place, fault),
            None => fault(EscapeFault::Unknown, place),
        }
        at += length;
    }
}

/// Reads an escape after its backslash: its length, and what it stands for.
fn decode(escape: &str) -> (usize, Option<Piece>) {
    let Some(first) = escape.chars().next() else {
        return (0, None);
    };
    let plain = |c| (1, Some(Piece::Char(c)));
    match first {
        'n' => plain('\n'),
        'r' => plain('\r'),
        't' => plain('\t'),
        '0' => plain('\0'),
        '\\' | '"' | '\'' => plain(first),
        '*' => (1, Some(Piece::EscapedStar)),
        'x' => {
            let digits: String = escape
                .chars()
                .skip(1)
                .take(2)
                .take_while(char::is_ascii_hexdigit)
                .collect();
            let code = u8::from_str_radix(&digits, 16).ok();
            let c = code
                .filter(|code| digits.len() == 2 && *code <= 0x7f)
                .map(char::from);
            (1 + digits.len(), c.map(Piece::Char))
        }
        'u' => match escape.get(1..).and_then(|rest| rest.strip_prefix('{')) {
            None => (1, None),
            Some(rest) => {
                let inner = rest
                    .chars()
                    .take_while(|c| c.is_ascii_hexdigit() || *c == '_')
                    .count();
                let closed = rest.get(inner..).is_some_and(|rest| rest.starts_with('}'));
                let word = rest.get(..inner).unwrap_or("");
                let digits: String = word.chars().filter(|c| *c != '_').collect();
                let fits = closed && !word.starts_with('_') && (1..=6).contains(&digits.len());
                let code = u32::from_str_radix(&digits, 16).ok().filter(|_| fits);
                (
                    2 + inner + usize::from(closed),
                    code.and_then(char::from_u32).map(Piece::Char),
                )
            }
        },
        other => (other.len_utf8(), None),
    }
}
