//! Texts that fit into a value: found without looking them up first, as a number would be.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The longest.
const LONGEST: usize = 14;

/// The bytes of the text, then zeros, then how many bytes it has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "SmolStr", into = "SmolStr")]
pub(crate) struct Short([u8; LONGEST + 1]);

impl Short {
    /// Nothing where it is too long.
    pub fn new(text: &str) -> Option<Short> {
        let mut bytes = [0; LONGEST + 1];
        let (place, len) = bytes.split_at_mut(LONGEST);
        place
            .get_mut(..text.len())?
            .copy_from_slice(text.as_bytes());
        *len.first_mut()? = u8::try_from(text.len()).ok()?;
        Some(Short(bytes))
    }

    pub fn text(&self) -> &str {
        let [bytes @ .., len] = &self.0;
        let bytes = bytes.get(..usize::from(*len)).unwrap_or(bytes);
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

/// In two words rather than byte by byte.
impl Hash for Short {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let [a, b, c, d, e, f, g, h, rest @ ..] = self.0;
        hasher.write_u64(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
        let [i, j, k, l, m, n, len] = rest;
        hasher.write_u64(u64::from_le_bytes([i, j, k, l, m, n, len, 0]));
    }
}

impl fmt::Debug for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text())
    }
}

impl From<Short> for SmolStr {
    fn from(short: Short) -> SmolStr {
        short.text().into()
    }
}

impl TryFrom<SmolStr> for Short {
    type Error = &'static str;

    fn try_from(text: SmolStr) -> Result<Short, &'static str> {
        Short::new(&text).ok_or("a text that is not short")
    }
}

#[cfg(test)]
mod tests {
    use super::super::Val;
    use super::*;

    #[test]
    fn short_texts_are_told_apart_and_read_back() {
        let texts = [
            "",
            "\0",
            "\0\0",
            "a",
            "a\0",
            "b",
            "fourteen bytes",
            "ein\u{20ac}n\u{20ac}un\u{e4}",
        ];
        let shorts = texts.map(|text| Short::new(text).expect(text));
        assert_eq!(shorts.each_ref().map(Short::text), texts);
        for (n, short) in shorts.iter().enumerate() {
            assert_eq!(shorts.iter().position(|other| other == short), Some(n));
            let bytes = postcard::to_allocvec(short).expect("written");
            assert_eq!(postcard::from_bytes::<Short>(&bytes).as_ref(), Ok(short));
        }
        assert_eq!(Short::new("fifteen bytes.."), None);
        assert_eq!(size_of::<Val>(), 16);
    }

    #[test]
    fn a_long_text_is_not_read_back_as_a_short_one() {
        let bytes = postcard::to_allocvec("fifteen bytes..").expect("written");
        assert!(postcard::from_bytes::<Short>(&bytes).is_err());
    }
}
