//! Destination patterns of `[egress.<name>]`: `host`, `host:port`, `host/prefix`, `host/*suffix`, `*.domain`.

use crate::authority::{Authority, AuthorityFault, Host};
use crate::url_path::{PathFault, canonical_path};
use std::fmt::{Display, Formatter};
use thiserror::Error;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    hosts: Hosts,
    /// Absent: 443 and 80.
    port: Option<u16>,
    paths: Paths,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    One(Host),
    /// Strictly below it.
    Below(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Paths {
    Any,
    /// `/v1` holds `/v1` and `/v1/x`, not `/v12`.
    Below(String),
    EndingIn(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DestinationFault {
    #[error("it is empty")]
    Empty,
    #[error("it would match every host; name the hosts the secret belongs to")]
    EveryHost,
    #[error("a `*` may only stand as `*.domain` or `host/*suffix`")]
    Star,
    #[error("{0}")]
    Host(#[from] AuthorityFault),
    #[error("{0}")]
    Path(#[from] PathFault),
    #[error("paths are matched in their canonical spelling: write `{0}`")]
    Spelling(String),
    #[error("a destination has no scheme, query or fragment")]
    Url,
}

impl Destination {
    pub fn parse(text: &str) -> Result<Destination, DestinationFault> {
        if text.is_empty() {
            return Err(DestinationFault::Empty);
        }
        if text.contains("://") || text.contains(['?', '#']) {
            return Err(DestinationFault::Url);
        }
        let (place, path) = match text.find('/').and_then(|at| text.split_at_checked(at)) {
            Some((place, path)) => (place, Some(path)),
            None => (text, None),
        };
        let (place, below) = match place.strip_prefix('*') {
            Some(rest) => match rest.strip_prefix('.') {
                Some(domain) if !domain.is_empty() => (domain, true),
                _ => return Err(DestinationFault::EveryHost),
            },
            None => (place, false),
        };
        if place.contains('*') {
            return Err(DestinationFault::Star);
        }
        // 0 cannot be written, so it can stand for "no port".
        let authority = Authority::parse(place, Some(0))?;
        let hosts = match (below, authority.host) {
            (false, host) => Hosts::One(host),
            (true, Host::Name(name)) => Hosts::Below(format!(".{name}")),
            (true, Host::Ip(_)) => return Err(DestinationFault::Star),
        };
        let paths = match path {
            None | Some("/") => Paths::Any,
            Some(path) => match path.strip_prefix("/*") {
                Some("") => Paths::Any,
                Some(suffix) if suffix.contains('*') => return Err(DestinationFault::Star),
                Some(suffix) => {
                    let whole = format!("/x{suffix}");
                    check_spelling(&whole, canonical_path(&whole)?)?;
                    Paths::EndingIn(suffix.to_owned())
                }
                None if path.contains('*') => return Err(DestinationFault::Star),
                None => {
                    check_spelling(path, canonical_path(path)?)?;
                    Paths::Below(path.strip_suffix('/').unwrap_or(path).to_owned())
                }
            },
        };
        Ok(Destination {
            hosts,
            port: Some(authority.port).filter(|port| *port != 0),
            paths,
        })
    }

    /// Whether a request to `to` with this canonical path is meant.
    pub fn matches(&self, to: &Authority, path: &str) -> bool {
        self.matches_authority(to) && self.paths.holds(path)
    }

    /// Whether it is about this host, whatever the port and path.
    pub fn is_on(&self, host: &Host) -> bool {
        match (&self.hosts, host) {
            (Hosts::One(own), host) => own == host,
            (Hosts::Below(domain), Host::Name(name)) => name.ends_with(domain.as_str()),
            (Hosts::Below(_), Host::Ip(_)) => false,
        }
    }

    pub fn matches_authority(&self, to: &Authority) -> bool {
        self.is_on(&to.host)
            && match self.port {
                Some(port) => port == to.port,
                None => to.port == 443 || to.port == 80,
            }
    }

    /// Whether both are about some host.
    pub fn shares_host(&self, other: &Destination) -> bool {
        match (&self.hosts, &other.hosts) {
            (Hosts::Below(a), Hosts::Below(b)) => {
                a.ends_with(b.as_str()) || b.ends_with(a.as_str())
            }
            (Hosts::One(host), _) => other.is_on(host),
            (_, Hosts::One(host)) => self.is_on(host),
        }
    }

    /// Whether some request could match both.
    pub fn overlaps(&self, other: &Destination) -> bool {
        let ports = match (self.port, other.port) {
            (None, None) => true,
            (Some(a), Some(b)) => a == b,
            (Some(port), None) | (None, Some(port)) => port == 443 || port == 80,
        };
        self.shares_host(other) && ports && self.paths.overlaps(&other.paths)
    }

    /// Absent: 443 and 80.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The path that everything it is about lies at or below, if it names one.
    pub fn prefix(&self) -> Option<&str> {
        match &self.paths {
            Paths::Below(prefix) => Some(prefix),
            Paths::Any | Paths::EndingIn(_) => None,
        }
    }

    /// The host, if it is one, for messages and for deriving a service from it.
    pub fn host(&self) -> Option<&Host> {
        match &self.hosts {
            Hosts::One(host) => Some(host),
            Hosts::Below(_) => None,
        }
    }
}

impl Paths {
    fn holds(&self, path: &str) -> bool {
        match self {
            Paths::Any => true,
            Paths::Below(prefix) => path
                .strip_prefix(prefix.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            Paths::EndingIn(suffix) => path.ends_with(suffix.as_str()),
        }
    }

    fn overlaps(&self, other: &Paths) -> bool {
        match (self, other) {
            (Paths::Below(a), Paths::Below(b)) => self.holds(b) || other.holds(a),
            (Paths::EndingIn(a), Paths::EndingIn(b)) => {
                a.ends_with(b.as_str()) || b.ends_with(a.as_str())
            }
            // Any prefix can be followed by any suffix.
            _ => true,
        }
    }
}

impl Display for Destination {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match &self.hosts {
            Hosts::One(host) => write!(f, "{host}")?,
            Hosts::Below(domain) => write!(f, "*{domain}")?,
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        match &self.paths {
            Paths::Any => Ok(()),
            Paths::Below(prefix) => f.write_str(prefix),
            Paths::EndingIn(suffix) => write!(f, "/*{suffix}"),
        }
    }
}

fn check_spelling(written: &str, canonical: String) -> Result<(), DestinationFault> {
    if written == canonical {
        Ok(())
    } else {
        Err(DestinationFault::Spelling(canonical))
    }
}

#[cfg(test)]
mod tests {
    use super::{Destination, DestinationFault};
    use crate::authority::Authority;

    fn destination(text: &str) -> Destination {
        Destination::parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}"))
    }

    fn meets(pattern: &str, to: &str, path: &str) -> bool {
        destination(pattern).matches(&Authority::parse(to, None).unwrap(), path)
    }

    #[test]
    fn patterns_match_what_they_say() {
        for (pattern, to, path, expected) in [
            ("API.example.com", "api.example.com:443", "/", true),
            ("api.example.com", "api.example.com:80", "/", true),
            ("api.example.com", "api.example.com:8443", "/", false),
            ("api.example.com", "x.api.example.com:443", "/", false),
            ("api.example.com:8443", "api.example.com:8443", "/", true),
            ("api.example.com:8443", "api.example.com:443", "/", false),
            ("*.example.com", "api.example.com:443", "/", true),
            ("*.example.com", "example.com:443", "/", false),
            ("*.example.com", "badexample.com:443", "/", false),
            ("a.test/v1", "a.test:443", "/v1", true),
            ("a.test/v1", "a.test:443", "/v1/x", true),
            ("a.test/v1", "a.test:443", "/v12", false),
            ("a.test/v1", "a.test:443", "/V1", false),
            ("a.test/v1/", "a.test:443", "/v1", true),
            ("a.test/*/invoke", "a.test:443", "/model/7/invoke", true),
            ("a.test/*/invoke", "a.test:443", "/invoke/x", false),
            ("[::1]:9/x", "[::1]:9", "/x", true),
        ] {
            assert_eq!(meets(pattern, to, path), expected, "{pattern} {to}{path}");
        }
    }

    #[test]
    fn refused() {
        for (text, fault) in [
            ("", DestinationFault::Empty),
            ("*", DestinationFault::EveryHost),
            ("*:443", DestinationFault::EveryHost),
            ("*.", DestinationFault::EveryHost),
            ("a.*.test", DestinationFault::Star),
            ("a.test/x*", DestinationFault::Star),
            ("https://a.test", DestinationFault::Url),
            ("a.test/x?y", DestinationFault::Url),
            ("a.test/a/../b", DestinationFault::Spelling("/b".into())),
        ] {
            assert_eq!(Destination::parse(text), Err(fault), "{text}");
        }
        assert!(Destination::parse("a.test:0").is_err());
    }

    #[test]
    fn hosts_are_shared_whatever_the_ports_and_paths() {
        for (a, b, expected) in [
            ("a.test/v1", "a.test:8443/v2", true),
            ("*.test", "a.test:1", true),
            ("*.a.test", "a.test", false),
            ("10.0.0.1", "*.test", false),
            ("*.a.test", "*.b.test", false),
        ] {
            assert_eq!(destination(a).shares_host(&destination(b)), expected);
            assert_eq!(destination(b).shares_host(&destination(a)), expected);
        }
    }

    #[test]
    fn overlaps() {
        for (a, b, expected) in [
            ("a.test", "a.test", true),
            ("a.test", "a.test:443", true),
            ("a.test", "a.test:8443", false),
            ("*.test", "a.test", true),
            ("*.test", "test", false),
            ("*.a.test", "*.test", true),
            ("*.a.test", "*.b.test", false),
            ("a.test/v1", "a.test/v2", false),
            ("a.test/v1", "a.test/v1/x", true),
            ("a.test/v1", "a.test/v12", false),
            ("a.test/v1", "a.test/*/invoke", true),
            ("a.test/*/invoke", "a.test/*/stream", false),
        ] {
            assert_eq!(
                destination(a).overlaps(&destination(b)),
                expected,
                "{a} {b}"
            );
            assert_eq!(
                destination(b).overlaps(&destination(a)),
                expected,
                "{b} {a}"
            );
        }
    }
}
