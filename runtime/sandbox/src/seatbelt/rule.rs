//! Rules of a profile as values, and the one place where they become text.
//!
//! A path enters the text as a quoted string and in no other way, so that none can end its rule.

use std::fmt;
use std::path::{Path, PathBuf};

/// Something in a profile, one a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Says why, in words that are no rule.
    Why(&'static str),
    Version,
    DenyDefault,
    Rule {
        allow: bool,
        operations: Vec<&'static str>,
        /// Any of these; none means everywhere.
        filters: Vec<Filter>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Filter {
    Literal(PathBuf),
    Subpath(PathBuf),
    /// Directories at and beneath.
    Directories(PathBuf),
    /// The path, if a regular file.
    Regular(PathBuf),
    /// Terminals; never made from a path.
    Terminals,
    Itself,
    Sysctl(&'static str),
    SysctlPrefix(&'static str),
    RoutingSocket,
    Service(&'static str),
    LocalPort(u16),
}

/// A path that cannot be written into a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileRefusal {
    NotUtf8(PathBuf),
    Control(PathBuf),
    NotCanonical(PathBuf),
    /// The plan was made for a host that confines in another way.
    NoPaths,
}

impl fmt::Display for ProfileRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProfileRefusal::NotUtf8(path) => write!(
                f,
                "{path:?} is not valid UTF-8, which a sandbox profile cannot name"
            ),
            ProfileRefusal::Control(path) => write!(
                f,
                "{path:?} contains a control character, which a sandbox profile cannot name"
            ),
            ProfileRefusal::NotCanonical(path) => write!(
                f,
                "{path:?} is not an absolute path without `.` and `..`, so no rule would match it"
            ),
            ProfileRefusal::NoPaths => {
                write!(f, "the plan was made for a host without sandbox profiles")
            }
        }
    }
}

impl std::error::Error for ProfileRefusal {}

impl Line {
    pub fn allow(operations: &[&'static str], filters: Vec<Filter>) -> Line {
        Line::Rule {
            allow: true,
            operations: operations.to_vec(),
            filters,
        }
    }

    pub fn deny(operations: &[&'static str], filters: Vec<Filter>) -> Line {
        Line::Rule {
            allow: false,
            operations: operations.to_vec(),
            filters,
        }
    }
}

/// The text of `lines`.
pub fn render(lines: &[Line]) -> Result<String, ProfileRefusal> {
    let mut text = String::new();
    for line in lines {
        match line {
            Line::Why(why) => {
                text.push_str("\n; ");
                text.push_str(why);
            }
            Line::Version => text.push_str("(version 1)"),
            Line::DenyDefault => text.push_str("(deny default)"),
            Line::Rule {
                allow,
                operations,
                filters,
            } => {
                text.push_str(if *allow { "(allow" } else { "(deny" });
                for operation in operations {
                    text.push(' ');
                    text.push_str(operation);
                }
                for filter in filters {
                    text.push_str("\n  ");
                    text.push_str(&filter.text()?);
                }
                text.push(')');
            }
        }
        text.push('\n');
    }
    Ok(text)
}

impl Filter {
    fn text(&self) -> Result<String, ProfileRefusal> {
        Ok(match self {
            Filter::Literal(path) => format!("(literal {})", quoted(path)?),
            Filter::Subpath(path) => format!("(subpath {})", quoted(path)?),
            Filter::Directories(path) => format!(
                "(require-all (subpath {}) (vnode-type DIRECTORY))",
                quoted(path)?
            ),
            Filter::Regular(path) => format!(
                "(require-all (literal {}) (vnode-type REGULAR-FILE))",
                quoted(path)?
            ),
            Filter::Terminals => r#"(regex #"^/dev/ttys[0-9]+$")"#.into(),
            Filter::Itself => "(target self)".into(),
            Filter::Sysctl(name) => format!("(sysctl-name \"{name}\")"),
            Filter::SysctlPrefix(name) => format!("(sysctl-name-prefix \"{name}\")"),
            Filter::RoutingSocket => "(socket-domain AF_ROUTE)".into(),
            Filter::Service(name) => format!("(global-name \"{name}\")"),
            Filter::LocalPort(port) => format!("(remote tcp \"localhost:{port}\")"),
        })
    }
}

/// A path as a string of the profile language.
fn quoted(path: &Path) -> Result<String, ProfileRefusal> {
    let Some(text) = path.to_str() else {
        return Err(ProfileRefusal::NotUtf8(path.into()));
    };
    if text.chars().any(char::is_control) {
        return Err(ProfileRefusal::Control(path.into()));
    }
    let plain = text == "/"
        || text.strip_prefix('/').is_some_and(|rest| {
            rest.split('/')
                .all(|name| !name.is_empty() && name != "." && name != "..")
        });
    if !plain {
        return Err(ProfileRefusal::NotCanonical(path.into()));
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        if matches!(letter, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted.push('"');
    Ok(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(path: &str) -> Result<String, ProfileRefusal> {
        quoted(Path::new(path))
    }

    #[test]
    fn quotes_and_backslashes_are_escaped() {
        assert_eq!(one(r#"/a"b\c"#).unwrap(), r#""/a\"b\\c""#);
        assert_eq!(one("/ä ö;(x)").unwrap(), r#""/ä ö;(x)""#);
        assert_eq!(one("/").unwrap(), r#""/""#);
    }

    #[test]
    fn what_no_rule_can_name_is_refused() {
        for path in ["/a\nb", "/a\0b", "/a\u{7f}", "/a\u{85}b"] {
            assert_eq!(one(path), Err(ProfileRefusal::Control(path.into())));
        }
        for path in ["", "a", "//", "/a/", "/a//b", "/a/../b", "/./a"] {
            assert_eq!(one(path), Err(ProfileRefusal::NotCanonical(path.into())));
        }
        #[cfg(unix)]
        {
            use std::os::unix::ffi::OsStrExt;
            let path = Path::new(std::ffi::OsStr::from_bytes(b"/a\xff"));
            assert_eq!(quoted(path), Err(ProfileRefusal::NotUtf8(path.into())));
        }
    }
}
