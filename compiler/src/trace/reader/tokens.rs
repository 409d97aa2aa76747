//! The tokens of a trace.

use super::{Read, Reader};
use crate::trace::Problem;
use std::borrow::Cow;

/// Fewer digits than this make a number of 64 bits in any case.
const SAFE: usize = 19;

pub(super) enum Number<'t> {
    Whole(i64),
    Decimal(&'t str),
}

/// The bytes that words are made of.
const IN_WORD: [bool; 256] = {
    let mut found = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        found[byte] = (byte as u8).is_ascii_alphanumeric() || byte == b'_' as usize;
        byte += 1;
    }
    found
};

fn in_word(byte: u8) -> bool {
    IN_WORD.get(usize::from(byte)).copied().unwrap_or(false)
}

pub(super) fn starts_word(byte: u8) -> bool {
    in_word(byte) && !byte.is_ascii_digit()
}

/// How long the word is that the text begins with.
fn word_length(text: &[u8]) -> usize {
    if !text.first().copied().is_some_and(starts_word) {
        return 0;
    }
    let end = text.iter().position(|byte| !in_word(*byte));
    end.unwrap_or(text.len())
}

impl<'t> Reader<'t> {
    /// Words with `::` behind each, without the last `::`; nothing where no word stands.
    pub(super) fn path(&mut self) -> Read<Option<Cow<'t, str>>> {
        self.blanks();
        let start = self.at;
        let mut end = start;
        let mut length = 0;
        while let Some(word) = self.word() {
            if !self.take_colons() {
                return Err(Problem::Expected("`::`"));
            }
            length += word.len() + 2;
            end = self.at;
        }
        if length == 0 {
            return Ok(None);
        }
        let written = self.text.get(start..end - 2).unwrap_or("");
        // Without blanks inside, the path is as it is written.
        Ok(Some(if end - start == length {
            Cow::Borrowed(written)
        } else {
            Cow::Owned(written.replace([' ', '\t', '\r'], ""))
        }))
    }

    pub(super) fn number(&mut self) -> Read<Number<'t>> {
        self.blanks();
        let tail = self.tail();
        let sign = usize::from(tail.first() == Some(&b'-'));
        let mut end = sign;
        let mut number = 0_i64;
        while let Some(digit @ b'0'..=b'9') = tail.get(end) {
            number = number
                .wrapping_mul(10)
                .wrapping_add(i64::from(digit - b'0'));
            end += 1;
        }
        let whole = end - sign;
        if whole == 0 {
            return Err(Problem::Expected("a value"));
        }
        let text = |end| self.text.get(self.at..self.at + end).unwrap_or("");
        if tail.get(end) == Some(&b'.') {
            let behind = tail.get(end + 1..).unwrap_or_default();
            let digits = behind.iter().take_while(|byte| byte.is_ascii_digit());
            let fraction = digits.count();
            if fraction > 0 {
                let number = text(end + 1 + fraction);
                self.at += number.len();
                return Ok(Number::Decimal(number));
            }
        }
        let number = match (whole, sign) {
            (..SAFE, 0) => number,
            (..SAFE, _) => -number,
            _ => text(end).parse().map_err(|_| Problem::NumberTooLarge)?,
        };
        self.at += end;
        Ok(Number::Whole(number))
    }

    /// A quoted string, escapes decoded; nothing if there is none here. An escape that means nothing stands
    /// for itself.
    #[inline]
    pub(super) fn quoted(&mut self) -> Read<Option<Cow<'t, str>>> {
        if !self.take(b'"') {
            return Ok(None);
        }
        let rest = self.rest();
        let special = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\'));
        let (plain, tail) = rest
            .split_at_checked(special.unwrap_or(rest.len()))
            .unwrap_or_default();
        if tail.as_bytes().first() == Some(&b'"') {
            self.at += plain.len() + 1;
            return Ok(Some(Cow::Borrowed(plain)));
        }
        Ok(Some(Cow::Owned(self.decoded(plain, tail)?)))
    }

    /// The text of a string in which a backslash stands, or which has no end.
    #[cold]
    fn decoded(&mut self, plain: &str, tail: &str) -> Read<String> {
        let mut decoded = String::from(plain);
        let mut chars = tail.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += plain.len() + at + 1;
                    return Ok(decoded);
                }
                '\\' => {
                    let tail = chars.as_str();
                    let (meant, length) = escape(tail);
                    match meant {
                        Some(meant) => decoded.push(meant),
                        None => {
                            decoded.push('\\');
                            decoded.push_str(tail.get(..length).unwrap_or(""));
                        }
                    }
                    for _ in tail.get(..length).unwrap_or("").chars() {
                        chars.next();
                    }
                }
                c => decoded.push(c),
            }
        }
        self.at -= 1;
        Err(Problem::UnclosedString)
    }

    #[inline]
    pub(super) fn word(&mut self) -> Option<&'t str> {
        self.blanks();
        let length = word_length(self.tail());
        if length == 0 {
            return None;
        }
        let start = self.at;
        self.at += length;
        self.text.get(start..self.at)
    }

    pub(super) fn colon(&mut self) -> Read<()> {
        if self.take(b':') {
            Ok(())
        } else {
            Err(Problem::Expected("`:`"))
        }
    }

    /// The word of an envelope and the `(` behind it.
    pub(super) fn take_call(&mut self, word: &str) -> bool {
        let before = self.at;
        let found = self.take_word(word) && self.take(b'(');
        if !found {
            self.at = before;
        }
        found
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        self.blanks();
        let tail = self.tail();
        let found = tail.starts_with(word.as_bytes()) && word_length(tail) == word.len();
        if found {
            self.at += word.len();
        }
        found
    }

    #[inline]
    pub(super) fn take(&mut self, sign: u8) -> bool {
        // Most signs stand right behind what was read.
        if self.byte() != Some(sign) {
            self.blanks();
            if self.byte() != Some(sign) {
                return false;
            }
        }
        self.at += 1;
        true
    }

    #[inline]
    pub(super) fn take_colons(&mut self) -> bool {
        let found = self.stands(b"::") || {
            self.blanks();
            self.stands(b"::")
        };
        self.at += 2 * usize::from(found);
        found
    }

    fn stands(&self, signs: &[u8; 2]) -> bool {
        self.text.as_bytes().get(self.at..self.at + 2) == Some(signs)
    }

    #[inline]
    pub(super) fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r') = self.byte() {
            self.at += 1;
        }
    }

    pub(super) fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn tail(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }
}

/// What follows a backslash: the character meant, if any, and how many bytes were read.
fn escape(tail: &str) -> (Option<char>, usize) {
    let Some(first) = tail.chars().next() else {
        return (None, 0);
    };
    let simple = match first {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        '0' => Some('\0'),
        '\\' | '"' | '\'' => Some(first),
        _ => None,
    };
    if simple.is_some() {
        return (simple, 1);
    }
    let hex = |digits: &str| -> Option<char> {
        let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
        plain
            .then(|| u32::from_str_radix(digits, 16).ok())
            .flatten()
            .and_then(char::from_u32)
    };
    match first {
        'x' => {
            let code = tail.get(1..3).and_then(hex).filter(char::is_ascii);
            if let Some(code) = code {
                return (Some(code), 3);
            }
        }
        'u' => {
            let inner = tail
                .get(1..)
                .and_then(|t| t.strip_prefix('{'))
                .and_then(|t| t.split_once('}'));
            if let Some((digits, _)) = inner {
                let plain = digits.replace('_', "");
                if (1..=6).contains(&plain.len())
                    && let Some(code) = hex(&plain)
                {
                    return (Some(code), digits.len() + 3);
                }
            }
        }
        _ => {}
    }
    (None, first.len_utf8())
}
