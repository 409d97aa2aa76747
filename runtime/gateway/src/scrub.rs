//! Secrets found in what a server answers, in every form they are likely to come back in, and across the
//! borders of chunks.

use crate::secrets::Secret;
use crate::url_path::escaped;
use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::fmt::{Debug, Formatter};
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

pub const REDACTED: &[u8] = b"[REDACTED]";

/// A base64 fragment shorter than this is too common a text to be taken for a secret.
const SHORTEST_FRAGMENT: usize = 8;

/// The forms of some secrets, ready to be found.
pub struct Needles {
    forms: Vec<Zeroizing<Vec<u8>>>,
    finder: Option<AhoCorasick>,
    longest: usize,
}

impl Debug for Needles {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("Needles(..)")
    }
}

impl Needles {
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s Secret>) -> Needles {
        let mut forms: Vec<Zeroizing<Vec<u8>>> = Vec::new();
        for secret in secrets {
            forms.extend(
                forms_of(secret.expose())
                    .into_iter()
                    .map(|form| Zeroizing::new(form.into_bytes())),
            );
        }
        forms.retain(|form| !form.is_empty());
        forms.sort_by(|a, b| a.as_slice().cmp(b.as_slice()));
        forms.dedup_by(|a, b| a.as_slice() == b.as_slice());
        // Building fails only for more patterns than memory holds; then nothing would be found, so nothing
        // may pass: see `usable`.
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(forms.iter().map(|f| f.as_slice()))
            .ok();
        let longest = forms.iter().map(|form| form.len()).max().unwrap_or(0);
        Needles {
            forms,
            finder,
            longest,
        }
    }

    pub fn usable(&self) -> bool {
        self.finder.is_some()
    }

    pub fn longest(&self) -> usize {
        self.longest
    }

    pub fn found_in(&self, text: &[u8]) -> bool {
        self.finder
            .as_ref()
            .is_none_or(|finder| finder.is_match(text))
    }

    /// The whole text with every form replaced.
    pub fn replace(&self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(text.len());
        let mut from = 0;
        for (start, end) in self.matches(text) {
            out.extend_from_slice(text.get(from..start).unwrap_or_default());
            out.extend_from_slice(REDACTED);
            from = end;
        }
        out.extend_from_slice(text.get(from..).unwrap_or_default());
        out
    }

    fn matches<'n, 't: 'n>(&'n self, text: &'t [u8]) -> impl Iterator<Item = (usize, usize)> + 'n {
        self.finder
            .iter()
            .flat_map(move |finder| finder.find_iter(text))
            .map(|found| (found.start(), found.end()))
    }

    /// Where the longest tail that may be the start of a form begins. Only that much is held back, so that
    /// an event stream is not kept waiting for its next event.
    fn unfinished(&self, text: &[u8]) -> usize {
        let from = text.len().saturating_sub(self.longest.saturating_sub(1));
        (from..text.len())
            .find(|at| {
                let tail = text.get(*at..).unwrap_or_default();
                self.forms
                    .iter()
                    .any(|form| form.len() > tail.len() && form.starts_with(tail))
            })
            .unwrap_or(text.len())
    }
}

fn forms_of(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned(), escaped(secret.as_bytes(), b"")];
    forms.push(escaped(secret.as_bytes(), b"").to_ascii_lowercase());
    forms.push(escaped(secret.as_bytes(), b"").replace("%20", "+"));
    forms.push(secret.bytes().map(|b| format!("{b:02x}")).collect());
    forms.push(secret.bytes().map(|b| format!("{b:02X}")).collect());
    if let Ok(json) = serde_json::to_string(secret) {
        forms.push(json.trim_matches('"').replace('/', "\\/"));
        forms.push(json.trim_matches('"').to_owned());
    }
    // Inside a longer text a secret starts at any of three places of a base64 group; the letters that
    // depend on its neighbours are left out.
    for shift in 0..3_usize {
        let mut bytes = vec![0_u8; shift];
        bytes.extend_from_slice(secret.as_bytes());
        let skip = [0, 2, 3].get(shift).copied().unwrap_or(0);
        let sure = bytes.len() * 8 / 6;
        for text in [
            STANDARD_NO_PAD.encode(&bytes),
            URL_SAFE_NO_PAD.encode(&bytes),
        ] {
            if let Some(fragment) = text
                .get(skip..sure)
                .filter(|fragment| fragment.len() >= SHORTEST_FRAGMENT)
            {
                forms.push(fragment.to_owned());
            }
        }
        bytes.zeroize();
    }
    forms
}

/// Replaces secrets in a body as it streams.
#[derive(Debug)]
pub struct Scrubber {
    needles: Arc<Needles>,
    held: Vec<u8>,
}

impl Scrubber {
    pub fn new(needles: Arc<Needles>) -> Scrubber {
        Scrubber {
            needles,
            held: Vec::new(),
        }
    }

    /// What may be passed on now.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(chunk);
        let unfinished = self.needles.unfinished(&text);
        let mut out = Vec::with_capacity(text.len());
        let mut from = 0;
        for (start, end) in self.needles.matches(&text) {
            if start >= unfinished {
                break;
            }
            out.extend_from_slice(text.get(from..start).unwrap_or_default());
            out.extend_from_slice(REDACTED);
            from = end;
        }
        let until = unfinished.max(from);
        out.extend_from_slice(text.get(from..until).unwrap_or_default());
        self.held = text.get(until..).unwrap_or_default().to_vec();
        out
    }

    /// What was held back, at the end.
    pub fn finish(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        self.needles.replace(&held)
    }
}

#[cfg(test)]
mod tests {
    use super::{Needles, Scrubber};
    use crate::secrets::Secret;
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use proptest::prelude::*;
    use std::sync::Arc;

    const SECRET: &str = "sk-live/9f+8 \"Z\"é-0123456789";

    fn needles() -> Arc<Needles> {
        Arc::new(Needles::new([&Secret::new(SECRET.into(), "X").unwrap()]))
    }

    fn streamed(chunks: &[&[u8]]) -> Vec<u8> {
        let mut scrubber = Scrubber::new(needles());
        let mut out: Vec<u8> = chunks
            .iter()
            .flat_map(|chunk| scrubber.push(chunk))
            .collect();
        out.extend(scrubber.finish());
        out
    }

    #[test]
    fn every_form_goes() {
        let percent = super::escaped(SECRET.as_bytes(), b"");
        for (form, left) in [
            (SECRET.to_owned(), "a[REDACTED]z"),
            (percent.clone(), "a[REDACTED]z"),
            (percent.to_lowercase(), "a[REDACTED]z"),
            (
                serde_json::to_string(SECRET)
                    .unwrap()
                    .trim_matches('"')
                    .to_owned(),
                "a[REDACTED]z",
            ),
            (
                SECRET.bytes().map(|b| format!("{b:02x}")).collect(),
                "a[REDACTED]z",
            ),
        ] {
            assert_eq!(
                String::from_utf8_lossy(&needles().replace(format!("a{form}z").as_bytes())),
                left,
                "{form}"
            );
        }
        for before in ["", "u", "us", "user:", "Bearer "] {
            for text in [
                STANDARD.encode(format!("{before}{SECRET} end")),
                URL_SAFE.encode(format!("{before}{SECRET} end")),
            ] {
                let out = String::from_utf8_lossy(&needles().replace(text.as_bytes())).into_owned();
                assert!(out.contains("[REDACTED]"), "{before} {text} {out}");
                let rest: String = out.replace("[REDACTED]", "");
                assert!(rest.len() < before.len() * 2 + 16, "{out}");
            }
        }
    }

    #[test]
    fn nothing_waits_that_cannot_become_a_secret() {
        let mut scrubber = Scrubber::new(needles());
        assert_eq!(scrubber.push(b"data: one\n\n"), b"data: one\n\n");
        assert_eq!(scrubber.push(b"data: sk-l"), b"data: ");
        assert_eq!(scrubber.push(b"ong"), b"sk-long");
    }

    proptest! {
        #[test]
        fn chunk_borders_do_not_matter(cut in prop::collection::vec(1_usize..12, 1..20), before in "[a-z -]{0,12}", after in "[a-z -]{0,12}") {
            let text = format!("{before}{SECRET}{after}{SECRET}{SECRET}");
            let mut chunks: Vec<&[u8]> = Vec::new();
            let mut rest = text.as_bytes();
            for size in cut.iter().cycle() {
                if rest.is_empty() { break; }
                let (chunk, more) = rest.split_at((*size).min(rest.len()));
                chunks.push(chunk);
                rest = more;
            }
            prop_assert_eq!(
                String::from_utf8(streamed(&chunks)).unwrap(),
                format!("{before}[REDACTED]{after}[REDACTED][REDACTED]")
            );
        }
    }
}
