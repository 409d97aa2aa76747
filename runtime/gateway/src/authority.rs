//! Hosts and ports, in the one spelling that policy, DNS, certificates and upstreams all see.

use smol_str::SmolStr;
use std::fmt::{Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thiserror::Error;

/// A host after normalising: lower case, no trailing dot, or an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Host {
    Name(SmolStr),
    Ip(IpAddr),
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Authority {
    pub host: Host,
    pub port: u16,
}

/// Why a text is no authority.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AuthorityFault {
    #[error("it has no host")]
    Empty,
    #[error("it holds user information before an `@`; send credentials in a header")]
    UserInfo,
    #[error("it has no port")]
    NoPort,
    #[error("the port must be a decimal number from 1 to 65535")]
    Port,
    #[error("a host may not hold {0:?}")]
    Character(char),
    #[error("the host is not ASCII; write its `xn--` form")]
    NotAscii,
    #[error("the host has an empty label, or one longer than 63 bytes")]
    Label,
    #[error("the host is longer than 253 bytes")]
    Long,
    #[error("the host is an unusual spelling of an IPv4 address; write four decimal numbers")]
    NumericHost,
    #[error("an IPv6 address stands in brackets, without a zone")]
    Brackets,
}

impl Host {
    /// Normalises a host without its port. IPv6 stands in brackets.
    pub fn parse(text: &str) -> Result<Host, AuthorityFault> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(AuthorityFault::Brackets)?;
            return inner
                .parse::<Ipv6Addr>()
                // A mapped address is dialled as the IPv4 it is, so it is named so.
                .map(|ip| Host::Ip(IpAddr::V6(ip).to_canonical()))
                .map_err(|_| AuthorityFault::Brackets);
        }
        if !text.is_ascii() {
            return Err(AuthorityFault::NotAscii);
        }
        let name = text.to_ascii_lowercase();
        let name = name.strip_suffix('.').unwrap_or(&name);
        if name.is_empty() {
            return Err(AuthorityFault::Empty);
        }
        if let Some(bad) = name
            .chars()
            .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_')))
        {
            return Err(AuthorityFault::Character(bad));
        }
        if name.len() > 253 {
            return Err(AuthorityFault::Long);
        }
        if name
            .split('.')
            .any(|label| label.is_empty() || label.len() > 63)
        {
            return Err(AuthorityFault::Label);
        }
        // A resolver reads a name whose last label is a number as an IPv4 address, in decimal, octal or
        // hex and with fewer than four parts. Only the canonical spelling may pass.
        let last = name.rsplit('.').next().unwrap_or(name);
        let hex = last
            .strip_prefix("0x")
            .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
        if hex || last.bytes().all(|b| b.is_ascii_digit()) {
            return name
                .parse::<Ipv4Addr>()
                .map(|ip| Host::Ip(IpAddr::V4(ip)))
                .map_err(|_| AuthorityFault::NumericHost);
        }
        Ok(Host::Name(SmolStr::new(name)))
    }

    /// As policy reads it: no brackets.
    pub fn text(&self) -> SmolStr {
        match self {
            Host::Name(name) => name.clone(),
            Host::Ip(ip) => SmolStr::new(ip.to_string()),
        }
    }
}

/// As URLs write it: brackets around IPv6.
impl Display for Host {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Ip(IpAddr::V4(ip)) => write!(f, "{ip}"),
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
        }
    }
}

impl Display for Authority {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Authority {
    /// Reads `host:port`; without a port, `default` stands for it, or it is missing.
    pub fn parse(text: &str, default: Option<u16>) -> Result<Authority, AuthorityFault> {
        if text.contains('@') {
            return Err(AuthorityFault::UserInfo);
        }
        let (host, port) = match text.rfind(']') {
            Some(end) => match text.split_at_checked(end + 1) {
                Some((host, "")) => (host, None),
                Some((host, rest)) => (
                    host,
                    Some(rest.strip_prefix(':').ok_or(AuthorityFault::Brackets)?),
                ),
                None => return Err(AuthorityFault::Brackets),
            },
            None => match text.split_once(':') {
                Some((_, port)) if port.contains(':') => return Err(AuthorityFault::Brackets),
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        let port = match port {
            Some(port) => parse_port(port)?,
            None => default.ok_or(AuthorityFault::NoPort)?,
        };
        Ok(Authority {
            host: Host::parse(host)?,
            port,
        })
    }

    /// The `Host` header of a request to it.
    pub fn host_header(&self, default_port: u16) -> String {
        if self.port == default_port {
            self.host.to_string()
        } else {
            self.to_string()
        }
    }
}

fn parse_port(text: &str) -> Result<u16, AuthorityFault> {
    if text.is_empty() || text.len() > 5 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(AuthorityFault::Port);
    }
    match text.parse::<u16>() {
        Ok(0) | Err(_) => Err(AuthorityFault::Port),
        Ok(port) => Ok(port),
    }
}

#[cfg(test)]
mod tests {
    use super::{Authority, AuthorityFault, Host};
    use proptest::prelude::*;

    fn host(text: &str) -> String {
        match Host::parse(text) {
            Ok(host) => host.to_string(),
            Err(fault) => format!("refused: {fault}"),
        }
    }

    #[test]
    fn one_spelling() {
        for (written, read) in [
            ("API.Example.COM.", "api.example.com"),
            ("10.0.0.1", "10.0.0.1"),
            ("[::FFFF:1.2.3.4]", "1.2.3.4"),
            ("[2001:DB8:0:0::1]", "[2001:db8::1]"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("_dmarc.example", "_dmarc.example"),
            ("beef.cafe", "beef.cafe"),
        ] {
            assert_eq!(host(written), read);
        }
    }

    #[test]
    fn odd_hosts_are_refused() {
        for text in [
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "017700000001",
            "127.1",
            "127.0.0.01",
            "1.2.3.4.5",
            "foo.0x1",
        ] {
            assert_eq!(
                Host::parse(text),
                Err(AuthorityFault::NumericHost),
                "{text}"
            );
        }
        assert_eq!(Host::parse("bücher.example"), Err(AuthorityFault::NotAscii));
        assert_eq!(Host::parse("а.example"), Err(AuthorityFault::NotAscii));
        assert_eq!(Host::parse("a..b"), Err(AuthorityFault::Label));
        assert_eq!(Host::parse("a.."), Err(AuthorityFault::Label));
        assert_eq!(Host::parse("."), Err(AuthorityFault::Empty));
        assert_eq!(Host::parse(""), Err(AuthorityFault::Empty));
        assert_eq!(Host::parse("a b"), Err(AuthorityFault::Character(' ')));
        assert_eq!(Host::parse("a%2eb"), Err(AuthorityFault::Character('%')));
        assert_eq!(Host::parse("[fe80::1%eth0]"), Err(AuthorityFault::Brackets));
        assert_eq!(Host::parse("[1.2.3.4]"), Err(AuthorityFault::Brackets));
        assert_eq!(Host::parse("[::1"), Err(AuthorityFault::Brackets));
        assert_eq!(Host::parse(&"a.".repeat(130)), Err(AuthorityFault::Long));
    }

    #[test]
    fn ports() {
        for text in [
            "a:0", "a:65536", "a:443 ", "a:+1", "a:", "a:000443", "a:4_3",
        ] {
            assert_eq!(
                Authority::parse(text, Some(443)),
                Err(AuthorityFault::Port),
                "{text}"
            );
        }
        assert_eq!(Authority::parse("a", None), Err(AuthorityFault::NoPort));
        assert_eq!(
            Authority::parse("::1:443", None),
            Err(AuthorityFault::Brackets)
        );
        assert_eq!(
            Authority::parse("[::1]443", None),
            Err(AuthorityFault::Brackets)
        );
        assert_eq!(
            Authority::parse("u:p@a:443", None),
            Err(AuthorityFault::UserInfo)
        );
        assert_eq!(
            Authority::parse("[::1]:443", None).unwrap().to_string(),
            "[::1]:443"
        );
        assert_eq!(
            Authority::parse("A.", Some(80)).unwrap().to_string(),
            "a:80"
        );
        assert_eq!(Authority::parse("a:80", None).unwrap().host_header(80), "a");
        assert_eq!(
            Authority::parse("a:81", None).unwrap().host_header(80),
            "a:81"
        );
    }

    proptest! {
        #[test]
        fn never_panics_and_what_it_accepts_is_stable(text in "\\PC{0,40}") {
            if let Ok(authority) = Authority::parse(&text, Some(443)) {
                prop_assert_eq!(Authority::parse(&authority.to_string(), None), Ok(authority));
            }
        }

        #[test]
        fn near_misses_too(text in "[a-fxA-F0-9.:@%\\[\\]_-]{0,24}") {
            if let Ok(authority) = Authority::parse(&text, Some(443)) {
                let shown = authority.host.to_string();
                prop_assert_eq!(shown.to_ascii_lowercase(), shown.clone());
                prop_assert_eq!(Host::parse(&shown), Ok(authority.host));
            }
        }
    }
}
