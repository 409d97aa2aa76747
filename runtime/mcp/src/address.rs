//! One spelling of a resource address: what is judged and what the server reads.

use thiserror::Error;
use url::Url;

/// Why a resource address is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AddressFault {
    #[error("the address holds a blank or a control character")]
    Character,
    #[error("the address is no URL: {0}")]
    NotUrl(String),
    #[error("a file address may not hide a separator behind `%2F`, `%5C` or `%00`")]
    HiddenSeparator,
}

/// `file`, `http` and `https` addresses in their canonical spelling; any other as it stands.
pub fn canonical(text: &str) -> Result<String, AddressFault> {
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(AddressFault::Character);
    }
    let scheme = text.split(':').next().unwrap_or_default().to_lowercase();
    if !matches!(scheme.as_str(), "file" | "http" | "https") {
        return Ok(text.to_owned());
    }
    // Decoding may uncover a dot segment, and removing one may not uncover anything more.
    let once = plain_escapes(parse(text)?.as_str());
    let mut url = parse(&once)?;
    if scheme == "file" {
        let upper = url.path().to_ascii_uppercase();
        if ["%2F", "%5C", "%00"]
            .iter()
            .any(|hidden| upper.contains(hidden))
        {
            return Err(AddressFault::HiddenSeparator);
        }
        let path: Vec<&str> = url
            .path()
            .split('/')
            .filter(|part| !part.is_empty())
            .collect();
        let end = if url.path().ends_with('/') && !path.is_empty() {
            "/"
        } else {
            ""
        };
        let path = format!("/{}{end}", path.join("/"));
        url.set_path(&path);
    }
    Ok(url.into())
}

fn parse(text: &str) -> Result<Url, AddressFault> {
    Url::parse(text).map_err(|e| AddressFault::NotUrl(e.to_string()))
}

/// Escapes of unreserved characters decoded, all others in upper case.
fn plain_escapes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let byte = escape
            .get(1..3)
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let Some(byte) = byte else {
            // A lone `%` is a `%`.
            out.push_str("%25");
            rest = escape.get(1..).unwrap_or_default();
            continue;
        };
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
        rest = escape.get(3..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::{AddressFault, canonical};
    use proptest::prelude::*;

    #[test]
    fn spellings_of_one_address_are_one() {
        for text in [
            "file:///srv/customer-data/a.txt",
            "FILE:///srv/customer-data/a.txt",
            "file:///srv/x/../customer-data/a.txt",
            "file:///srv/x/%2e%2E/customer-data/%61.txt",
            "file:///srv//./customer%2ddata/a%2etxt",
            "file://localhost/srv/customer-data/a.txt",
        ] {
            assert_eq!(
                canonical(text).as_deref(),
                Ok("file:///srv/customer-data/a.txt"),
                "{text}"
            );
        }
        assert_eq!(
            canonical("HTTPS://Example.COM:443/a/../b%7e?q=%2f").as_deref(),
            Ok("https://example.com/b~?q=%2F")
        );
    }

    #[test]
    fn other_schemes_stand_as_they_are() {
        assert_eq!(canonical("note://A/../b").as_deref(), Ok("note://A/../b"));
        assert_eq!(
            canonical("just words".replace(' ', "-").as_str()).as_deref(),
            Ok("just-words")
        );
    }

    #[test]
    fn what_two_readers_would_read_differently_is_refused() {
        assert_eq!(
            canonical("file:///a/..%2f..%2fetc"),
            Err(AddressFault::HiddenSeparator)
        );
        assert_eq!(
            canonical("file:///a%00b"),
            Err(AddressFault::HiddenSeparator)
        );
        assert_eq!(canonical(" file:///a"), Err(AddressFault::Character));
        assert_eq!(canonical("fi\tle:///a"), Err(AddressFault::Character));
        assert!(matches!(
            canonical("http://[::1"),
            Err(AddressFault::NotUrl(_))
        ));
    }

    proptest! {
        #[test]
        fn canonical_is_a_fixed_point(tail in "[a-z./%0-9A-F\\\\:;é?#]{0,30}", scheme in "file|http|https") {
            if let Ok(once) = canonical(&format!("{scheme}://h/{tail}")) {
                prop_assert_eq!(canonical(&once), Ok(once));
            }
        }
    }
}
