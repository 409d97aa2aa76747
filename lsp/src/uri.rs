//! `file:` addresses of editors, and the paths they stand for.

use std::path::{Path, PathBuf};

/// The path of a document. What is not a file on disk, like a new text without a name, keeps its address as
/// its path: nothing on disk is called that.
pub fn path(uri: &str) -> PathBuf {
    match uri.strip_prefix("file://") {
        Some(rest) => {
            // The part up to the path is the machine, which is this one.
            let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or(rest);
            PathBuf::from(decoded(path))
        }
        None => PathBuf::from(uri),
    }
}

/// The address of a path.
pub fn of(path: &Path) -> String {
    let text = path.to_string_lossy();
    if !text.starts_with('/') {
        return text.into_owned();
    }
    let mut out = String::from("file://");
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        if byte == b'%'
            && let (Some(high), Some(low)) = (digit(ahead.next()), digit(ahead.next()))
            && let Ok(decoded) = u8::try_from(high * 16 + low)
        {
            bytes.push(decoded);
            rest = ahead;
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_blanks_and_accents_come_back() {
        let path_of = PathBuf::from("/tmp/a b/é#1%.dw");
        assert_eq!(of(&path_of), "file:///tmp/a%20b/%C3%A9%231%25.dw");
        assert_eq!(path(&of(&path_of)), path_of);
    }

    #[test]
    fn what_is_no_file_keeps_its_address() {
        assert_eq!(of(&path("untitled:Untitled-1")), "untitled:Untitled-1");
        assert_eq!(path("file:///a%2"), PathBuf::from("/a%2"));
    }
}
