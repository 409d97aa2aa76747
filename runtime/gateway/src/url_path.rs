//! One spelling of a URL path: what is judged, what routes match and what is forwarded.

use std::fmt::Write;
use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PathFault {
    #[error("the path does not start with `/`")]
    NotAbsolute,
    #[error("a `%` in the path is not followed by two hex digits")]
    Escape,
    #[error("the path holds a control character")]
    Control,
}

/// Decodes escapes of unreserved characters, writes the others in upper case, escapes what a path may not
/// hold, and removes dot segments. `%2F` stays what it is: no escape becomes a separator.
pub fn canonical_path(raw: &str) -> Result<String, PathFault> {
    if !raw.starts_with('/') {
        return Err(PathFault::NotAbsolute);
    }
    let mut decoded = String::with_capacity(raw.len());
    let mut bytes = raw.bytes();
    while let Some(byte) = bytes.next() {
        let (byte, escaped) = match byte {
            b'%' => (hex(bytes.next())? * 16 + hex(bytes.next())?, true),
            plain => (plain, false),
        };
        if byte < 0x20 || byte == 0x7f {
            return Err(PathFault::Control);
        }
        if unreserved(byte) || (!escaped && allowed_raw(byte)) {
            decoded.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(decoded, "%{byte:02X}");
        }
    }
    Ok(without_dot_segments(&decoded))
}

/// Percent-decodes what is well-formed and leaves the rest: for looking at, never for forwarding.
pub fn decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == b'%'
            && let (Ok(high), Ok(low)) = (hex(after.first().copied()), hex(after.get(1).copied()))
        {
            out.push(high * 16 + low);
            rest = after.get(2..).unwrap_or_default();
        } else {
            out.push(*byte);
        }
    }
    out
}

/// Percent-encodes everything but unreserved characters, and those of `keep`.
pub fn escaped(text: &[u8], keep: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text {
        if unreserved(*byte) || keep.contains(byte) {
            out.push(char::from(*byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn hex(byte: Option<u8>) -> Result<u8, PathFault> {
    byte.and_then(|b| char::from(b).to_digit(16))
        .and_then(|d| u8::try_from(d).ok())
        .ok_or(PathFault::Escape)
}

fn unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// What a path may hold unescaped besides unreserved characters (RFC 3986 `pchar` and `/`).
fn allowed_raw(byte: u8) -> bool {
    matches!(
        byte,
        b'/' | b':'
            | b'@'
            | b'!'
            | b'$'
            | b'&'
            | b'\''
            | b'('
            | b')'
            | b'*'
            | b'+'
            | b','
            | b';'
            | b'='
    )
}

fn without_dot_segments(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                // `/a/..` names the folder `/`, not the entry before it.
                if last {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::{PathFault, canonical_path};
    use proptest::prelude::*;

    #[test]
    fn one_spelling() {
        for (raw, canonical) in [
            ("/", "/"),
            ("/%61dmin", "/admin"),
            ("/x/../admin", "/admin"),
            ("/x/%2e%2E/admin", "/admin"),
            ("/x/./y/.", "/x/y/"),
            ("/x/..", "/"),
            ("/../../x", "/x"),
            ("/a%2fb", "/a%2Fb"),
            ("/a%252e", "/a%252e"),
            ("/a;v=1/b", "/a;v=1/b"),
            ("//a//b", "//a//b"),
            ("/a//../b", "/a/b"),
            ("/a\\..\\b", "/a%5C..%5Cb"),
            ("/é", "/%C3%A9"),
            ("/%7euser", "/~user"),
            ("/a b\"{}", "/a%20b%22%7B%7D"),
        ] {
            assert_eq!(canonical_path(raw).as_deref(), Ok(canonical), "{raw}");
        }
    }

    #[test]
    fn refused() {
        assert_eq!(canonical_path("*"), Err(PathFault::NotAbsolute));
        assert_eq!(canonical_path(""), Err(PathFault::NotAbsolute));
        assert_eq!(canonical_path("/%"), Err(PathFault::Escape));
        assert_eq!(canonical_path("/%4"), Err(PathFault::Escape));
        assert_eq!(canonical_path("/%zz"), Err(PathFault::Escape));
        assert_eq!(canonical_path("/%00"), Err(PathFault::Control));
        assert_eq!(canonical_path("/a\tb"), Err(PathFault::Control));
    }

    proptest! {
        #[test]
        fn canonical_is_a_fixed_point(raw in "/[a-z./%0-9A-F\\\\;:é]{0,30}") {
            if let Ok(path) = canonical_path(&raw) {
                prop_assert_eq!(canonical_path(&path), Ok(path.clone()));
                prop_assert!(path.starts_with('/'));
                prop_assert!(!path.split('/').any(|segment| segment == "." || segment == ".."));
            }
        }

        #[test]
        fn escaping_an_unreserved_letter_changes_nothing(before in "/[a-z/]{0,8}", letter in "[a-zA-Z0-9._~-]", after in "[a-z/]{0,8}") {
            let byte = letter.bytes().next().unwrap_or(b'a');
            let plain = canonical_path(&format!("{before}{letter}{after}"));
            prop_assert_eq!(canonical_path(&format!("{before}%{byte:02x}{after}")), plain);
        }
    }
}
