//! Texts that fit into a value: found without looking them up first, as a number would be.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The bytes of a text, then zeros, then how many bytes it has: so many in all, from eight to sixteen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "SmolStr", into = "SmolStr")]
pub(crate) struct Short<const SIZE: usize>([u8; SIZE]);

impl<const SIZE: usize> Short<SIZE> {
    /// Nothing where it is too long.
    pub fn new(text: &str) -> Option<Short<SIZE>> {
        let mut bytes = [0; SIZE];
        let (len, place) = bytes.split_last_mut()?;
        let place = place.get_mut(..text.len())?;
        place.copy_from_slice(text.as_bytes());
        *len = u8::try_from(text.len()).ok()?;
        Some(Short(bytes))
    }

    pub fn text(&self) -> &str {
        let len = self.0.last().map_or(0, |len| usize::from(*len));
        let bytes = self.0.get(..len).unwrap_or(&[]);
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

/// In two words, which overlap, rather than byte by byte.
impl<const SIZE: usize> Hash for Short<SIZE> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let words = [self.0.first_chunk(), self.0.last_chunk()];
        for word in words.into_iter().flatten() {
            hasher.write_u64(u64::from_le_bytes(*word));
        }
    }
}

impl<const SIZE: usize> fmt::Debug for Short<SIZE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text())
    }
}

impl<const SIZE: usize> From<Short<SIZE>> for SmolStr {
    fn from(short: Short<SIZE>) -> SmolStr {
        short.text().into()
    }
}

impl<const SIZE: usize> TryFrom<SmolStr> for Short<SIZE> {
    type Error = &'static str;

    fn try_from(text: SmolStr) -> Result<Short<SIZE>, &'static str> {
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
        let shorts = texts.map(|text| Short::<15>::new(text).expect(text));
        assert_eq!(shorts.each_ref().map(Short::text), texts);
        for (n, short) in shorts.iter().enumerate() {
            assert_eq!(shorts.iter().position(|other| other == short), Some(n));
            let bytes = postcard::to_allocvec(short).expect("written");
            assert_eq!(
                postcard::from_bytes::<Short<15>>(&bytes).as_ref(),
                Ok(short)
            );
        }
        assert_eq!(Short::<15>::new("fifteen bytes.."), None);
        assert_eq!(size_of::<Val>(), 16);
    }

    #[test]
    fn a_long_text_is_not_read_back_as_a_short_one() {
        let bytes = postcard::to_allocvec("fifteen bytes..").expect("written");
        assert!(postcard::from_bytes::<Short<15>>(&bytes).is_err());
    }
}
