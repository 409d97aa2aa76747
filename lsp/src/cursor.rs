//! What stands before a cursor, by the tokens alone: a text that is being typed has no tree just where the
//! cursor is.

use crate::document::Document;
use dogwood_compiler::grammar::{Span, TokenKind};

/// A token with its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'t> {
    pub text: &'t str,
    pub kind: TokenKind,
    pub span: Span,
}

/// The tokens of the statement a cursor is in, up to the word under it.
#[derive(Debug)]
pub struct Cursor<'t> {
    /// Without comments, and without the word under the cursor.
    pub before: Vec<Word<'t>>,
    /// The brackets open at the cursor, as positions in `before`, innermost last.
    pub open: Vec<usize>,
    /// What is being written, to be replaced; empty between words.
    pub typed: Span,
    /// It is a string: `typed` is the inside of its quotes.
    pub in_string: bool,
    /// The cursor is in a comment.
    pub in_comment: bool,
}

impl<'t> Cursor<'t> {
    pub fn at(document: &'t Document, offset: usize) -> Cursor<'t> {
        let text = document.text.as_str();
        let mut before: Vec<Word<'t>> = Vec::new();
        let mut typed = Span::at(offset);
        let mut in_string = false;
        let mut in_comment = false;
        for piece in document.pieces() {
            let (start, end) = (piece.span.start as usize, piece.span.end as usize);
            if start >= offset {
                break;
            }
            let word = piece.span.text(text);
            if end < offset || (end == offset && !continues(word, piece.kind)) {
                match piece.kind {
                    TokenKind::Comment => {}
                    TokenKind::Operator if word == ";" => before.clear(),
                    _ => before.push(Word {
                        text: word,
                        kind: piece.kind,
                        span: piece.span,
                    }),
                }
                continue;
            }
            match piece.kind {
                TokenKind::Comment => in_comment = true,
                TokenKind::String => {
                    in_string = true;
                    typed = Span::new(start + 1, (end.max(start + 2)) - 1);
                }
                // A string that is not closed yet.
                TokenKind::Bad if word.starts_with('"') => {
                    in_string = true;
                    typed = Span::new(start + 1, offset);
                }
                TokenKind::Word
                | TokenKind::Keyword
                | TokenKind::Parameter
                | TokenKind::Fresh
                | TokenKind::Number => typed = piece.span,
                _ => {}
            }
        }
        let mut open = Vec::new();
        for (at, word) in before.iter().enumerate() {
            match word.text {
                "(" | "[" | "{" => open.push(at),
                ")" | "]" | "}" => {
                    open.pop();
                }
                _ => {}
            }
        }
        Cursor {
            before,
            open,
            typed,
            in_string,
            in_comment,
        }
    }

    /// The text of the `n`th token before the cursor, counted from 1.
    pub fn back(&self, n: usize) -> &'t str {
        word(&self.before, n)
    }

    /// The bracket the cursor is directly in, with its position in `before`.
    pub fn inside(&self) -> Option<(&'t str, usize)> {
        let at = *self.open.last()?;
        Some((self.before.get(at)?.text, at))
    }

    /// Whether the cursor is in a temporal condition.
    pub fn temporal(&self) -> bool {
        self.open.iter().any(|at| {
            let before = self.before.get(..*at).unwrap_or_default();
            let opens = self.before.get(*at).is_some_and(|word| word.text == "{");
            opens && (word(before, 1) == "temporal" || defines(before) == Some("temporal"))
        })
    }

    /// Whether the cursor is in the head of a rule.
    pub fn in_head(&self) -> bool {
        self.open.first().is_some_and(|at| {
            let before = self.before.get(..*at).unwrap_or_default();
            matches!(word(before, 1), "permit" | "forbid") && self.bracket(*at) == "("
        })
    }

    /// Whether the cursor is inside the braces of a clause or macro.
    pub fn in_body(&self) -> bool {
        self.open.first().is_some_and(|at| self.bracket(*at) == "{")
    }

    fn bracket(&self, at: usize) -> &'t str {
        self.before.get(at).map_or("", |word| word.text)
    }

    /// The qualified name directly before the cursor, `Ns::Action` where it is followed by `::`.
    pub fn path(&self) -> Option<String> {
        if self.back(1) != "::" {
            return None;
        }
        let mut words = Vec::new();
        let mut n = 1;
        while self.back(n) == "::" && is_name(self.back(n + 1)) {
            words.push(self.back(n + 1));
            n += 2;
        }
        words.reverse();
        (!words.is_empty()).then(|| words.join("::"))
    }

    /// `Ns::Action` and `id` of `Ns::Action::"id"` that ends before the last `skip` tokens.
    pub fn action(&self, skip: usize) -> Option<(String, String)> {
        let id = self.back(skip + 1).strip_prefix('"')?.strip_suffix('"')?;
        if self.back(skip + 2) != "::" {
            return None;
        }
        let mut words = Vec::new();
        let mut n = skip + 2;
        while self.back(n) == "::" && is_name(self.back(n + 1)) {
            words.push(self.back(n + 1));
            n += 2;
        }
        words.reverse();
        (!words.is_empty()).then(|| (words.join("::"), id.to_owned()))
    }

    /// The event whose fields stand in the braces around the cursor: type, id and kind.
    pub fn matcher(&self) -> Option<(String, String, &'t str)> {
        let (bracket, mut at) = self.inside()?;
        if bracket != "{" {
            return None;
        }
        // `M{ … }{ … }`: further groups belong to the same event.
        while at > 0 && self.bracket(at - 1) == "}" {
            let mut depth = 0usize;
            let mut back = at - 1;
            loop {
                match self.bracket(back) {
                    "}" => depth += 1,
                    "{" => depth -= 1,
                    _ => {}
                }
                if depth == 0 || back == 0 {
                    break;
                }
                back -= 1;
            }
            if back == 0 {
                return None;
            }
            at = back;
        }
        let skip = self.before.len() - at;
        let kind = self.back(skip + 1);
        if self.back(skip + 2) != "::" || !is_name(kind) {
            return None;
        }
        let (ty, id) = self.action(skip + 2)?;
        Some((ty, id, kind))
    }

    /// The words of a dotted path that ends before the cursor with a dot: `["context", "input"]`.
    pub fn dotted(&self, skip: usize) -> Vec<&'t str> {
        let mut words = Vec::new();
        let mut n = skip + 1;
        while self.back(n) == "." && is_name(self.back(n + 1)) {
            words.push(self.back(n + 1));
            n += 2;
        }
        words.reverse();
        words
    }

    /// The words of a dotted path that ends before the last `skip` tokens with a word.
    pub fn dotted_name(&self, skip: usize) -> Vec<&'t str> {
        let last = self.back(skip + 1);
        if !is_name(last) {
            return Vec::new();
        }
        let mut words = self.dotted(skip + 1);
        words.push(last);
        words
    }

    /// The names introduced before the cursor in this statement, with their types.
    pub fn variables(&self) -> Vec<(&'t str, &'t str)> {
        let mut found: Vec<(&str, &str)> = Vec::new();
        for four in self.before.windows(4) {
            let [open, name, colon, ty] = four else {
                continue;
            };
            let named = matches!(
                name.kind,
                TokenKind::Word | TokenKind::Parameter | TokenKind::Fresh
            );
            if open.text == "(" && named && colon.text == ":" {
                found.retain(|(known, _)| *known != name.text);
                found.push((name.text, ty.text));
            }
        }
        found
    }

    /// The parameters of the macro that is being defined.
    pub fn parameters(&self) -> Vec<&'t str> {
        if self.before.first().is_none_or(|word| word.text != "def") {
            return Vec::new();
        }
        let params = self
            .before
            .iter()
            .skip(3)
            .take_while(|word| word.text != ")")
            .filter(|word| word.kind == TokenKind::Parameter);
        params.map(|word| word.text).collect()
    }

    /// The call around the cursor: the place of its name, and how many commas stand before the cursor.
    pub fn call(&self) -> Option<(usize, usize)> {
        let at = self.open.iter().rev().find(|at| {
            self.bracket(**at) == "("
                && at
                    .checked_sub(1)
                    .is_some_and(|name| is_name(self.bracket(name)))
        })?;
        let mut depth = 0usize;
        let mut commas = 0;
        for word in self.before.get(at + 1..).unwrap_or_default() {
            match word.text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                "," if depth == 0 => commas += 1,
                _ => {}
            }
        }
        Some((at - 1, commas))
    }
}

/// Whether more letters would make another word of this one.
fn continues(word: &str, kind: TokenKind) -> bool {
    match kind {
        TokenKind::Word
        | TokenKind::Keyword
        | TokenKind::Parameter
        | TokenKind::Fresh
        | TokenKind::Number
        | TokenKind::Comment => true,
        TokenKind::Bad => word.starts_with('"'),
        _ => false,
    }
}

fn word<'t>(before: &[Word<'t>], n: usize) -> &'t str {
    let at = before.len().checked_sub(n);
    at.and_then(|at| before.get(at))
        .map_or("", |word| word.text)
}

/// `cedar` or `temporal`, where these tokens are the head of a macro.
fn defines<'t>(before: &[Word<'t>]) -> Option<&'t str> {
    let [def, kind, ..] = before else { return None };
    (def.text == "def").then_some(kind.text)
}

pub fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}
