//! The one way from a script to the network, and what is refused before anybody is asked.

use box_authority::gate::Caller;
use http::Uri;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thiserror::Error;

/// Makes requests under the network checkpoint's decisions.
pub trait Fetch: Send + Sync {
    /// Makes one request. A refusal of the network checkpoint is a reply: 403, with its header.
    ///
    /// # Errors
    /// When there is no reply.
    fn fetch(&self, caller: &Caller, request: FetchRequest) -> Result<FetchReply, FetchError>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchRequest {
    /// `http://` or `https://`.
    pub url: String,
    pub method: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// A longer reply is an error.
    pub longest_reply: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchReply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FetchError {
    /// A fixed refusal.
    #[error("access denied: {0}")]
    Refused(String),
    #[error("the reply is longer than {0} bytes")]
    Long(usize),
    #[error("timed out")]
    TimedOut,
    #[error("{0}")]
    Failed(String),
}

/// Refuses URLs that no rule could open: another scheme, no host, and hosts of this machine or a private
/// network written as themselves. Names that resolve to such are the gateway's to refuse.
pub(crate) fn reachable(url: &str) -> Result<(), FetchError> {
    let refused = |what: &str| Err(FetchError::Refused(what.to_owned()));
    let text = url.split('#').next().unwrap_or_default();
    let Ok(uri) = text.parse::<Uri>() else {
        return refused(url);
    };
    let Some(host) = uri.host().filter(|host| !host.is_empty()) else {
        return refused(url);
    };
    if !matches!(uri.scheme_str(), Some("http" | "https")) || is_local(host) {
        return refused(host);
    }
    Ok(())
}

fn is_local(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if host == "localhost" || host.ends_with(".localhost") {
        return true;
    }
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    match literal.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => is_local_v4(address),
        Ok(IpAddr::V6(address)) => is_local_v6(address),
        // `127.1`, `2130706433`, `0x7f.1`: addresses to some resolvers, names to none.
        Err(_) => host.rsplit('.').next().is_some_and(|last| {
            last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit())
        }),
    }
}

fn is_local_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    first == 0
        || address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_multicast()
        || (first == 100 && (64..128).contains(&second))
}

fn is_local_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = address.to_ipv4() {
        return is_local_v4(inner);
    }
    address.is_unique_local() || address.is_unicast_link_local() || address.is_multicast()
}

/// Headers as the script sees them: lower-case names, repeats joined.
pub(crate) fn joined(headers: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut joined: Vec<(String, String)> = Vec::new();
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        match joined.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => {
                values.push_str(if name == "set-cookie" { "\n" } else { ", " });
                values.push_str(&value);
            }
            None => joined.push((name, value)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::{joined, reachable};

    #[test]
    fn hosts_of_this_machine_and_private_networks_are_refused() {
        for url in [
            "ftp://example.com/",
            "file:///etc/passwd",
            "example.com",
            "/path",
            "http://",
            "http://localhost/",
            "http://LOCALHOST.:80/",
            "http://a.localhost/",
            "http://127.0.0.1:8080/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://10.1.2.3/",
            "http://169.254.169.254/latest/meta-data",
            "http://100.64.0.1/",
            "http://0.0.0.0/",
            "http://[::1]/",
            "http://[::]/",
            "http://[::ffff:10.0.0.1]/",
            "http://[fd00::1]/",
            "http://[fe80::1]/",
            "http://user:pass@127.0.0.1/",
        ] {
            assert!(reachable(url).is_err(), "{url}");
        }
        for url in [
            "http://example.com",
            "https://EXAMPLE.com:8443/a?b#c",
            "https://93.184.216.34/",
            "https://[2606:4700::1]/",
            "https://1.example/",
        ] {
            assert_eq!(reachable(url), Ok(()), "{url}");
        }
    }

    #[test]
    fn repeated_headers_are_joined() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = vec![
            pair("Vary", "a"),
            pair("Set-Cookie", "x=1"),
            pair("vary", "b"),
            pair("set-cookie", "y=2"),
        ];
        assert_eq!(
            joined(headers),
            [pair("vary", "a, b"), pair("set-cookie", "x=1\ny=2")]
        );
    }
}
