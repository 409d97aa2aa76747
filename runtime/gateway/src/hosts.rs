//! Names whose address the operator says, instead of the resolver.
//!
//! Only where a name leads is settled here. What may be reached, by the address floor and by the policy, is
//! asked of the name and of the address as of any other.

use crate::authority::{Authority, Host};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use thiserror::Error;

/// Where one name leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub ip: IpAddr,
    /// None: the port that was asked for.
    pub port: Option<u16>,
}

impl Place {
    pub fn of(self, asked: u16) -> SocketAddr {
        SocketAddr::new(self.ip, self.port.unwrap_or(asked))
    }
}

/// Why an entry of the table is none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostFault {
    #[error("{0:?} is no name: {1}")]
    Name(String, String),
    #[error("{0:?} is an address already, which no table changes")]
    Address(String),
    #[error("{0:?} is the same name as another in the table")]
    Twice(String),
    #[error("{1:?}, where `{0}` is to lead, is neither an address nor `address:port`")]
    Place(String, String),
}

#[derive(Clone, Debug, Default)]
pub struct Hosts(BTreeMap<SmolStr, Place>);

impl Hosts {
    pub fn parse(texts: &BTreeMap<String, String>) -> Result<Hosts, Vec<HostFault>> {
        let mut hosts = BTreeMap::new();
        let mut faults = Vec::new();
        for (name, place) in texts {
            let host = match Host::parse(name) {
                Ok(Host::Name(host)) => host,
                Ok(Host::Ip(_)) => {
                    faults.push(HostFault::Address(name.clone()));
                    continue;
                }
                Err(fault) => {
                    faults.push(HostFault::Name(name.clone(), fault.to_string()));
                    continue;
                }
            };
            let Some(place) = place_of(place) else {
                faults.push(HostFault::Place(name.clone(), place.clone()));
                continue;
            };
            if hosts.insert(host, place).is_some() {
                faults.push(HostFault::Twice(name.clone()));
            }
        }
        if faults.is_empty() {
            Ok(Hosts(hosts))
        } else {
            Err(faults)
        }
    }

    /// Where a name leads, if the table says so.
    pub fn place(&self, name: &str) -> Option<Place> {
        self.0.get(name).copied()
    }
}

/// `127.0.0.1`, `127.0.0.1:8443`, `::1`, `[::1]` or `[::1]:8443`.
fn place_of(text: &str) -> Option<Place> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some(Place { ip, port: None });
    }
    match Authority::parse(text, None) {
        Ok(Authority {
            host: Host::Ip(ip),
            port,
        }) => Some(Place {
            ip,
            port: Some(port),
        }),
        Ok(_) => None,
        Err(_) => match Host::parse(text) {
            Ok(Host::Ip(ip)) => Some(Place { ip, port: None }),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::Hosts;
    use std::collections::BTreeMap;

    fn table(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
        entries
            .iter()
            .map(|(name, place)| ((*name).to_owned(), (*place).to_owned()))
            .collect()
    }

    #[test]
    fn a_name_leads_to_an_address_and_perhaps_a_port() {
        let hosts = Hosts::parse(&table(&[
            ("API.test.", "127.0.0.1"),
            ("b.test", "127.0.0.1:8443"),
            ("c.test", "::1"),
            ("d.test", "[::1]:81"),
            ("e.test", "[2001:db8::1]"),
        ]))
        .unwrap();
        let dialled = |name: &str| hosts.place(name).map(|place| place.of(443).to_string());
        assert_eq!(dialled("api.test").as_deref(), Some("127.0.0.1:443"));
        assert_eq!(dialled("b.test").as_deref(), Some("127.0.0.1:8443"));
        assert_eq!(dialled("c.test").as_deref(), Some("[::1]:443"));
        assert_eq!(dialled("d.test").as_deref(), Some("[::1]:81"));
        assert_eq!(dialled("e.test").as_deref(), Some("[2001:db8::1]:443"));
        assert_eq!(dialled("sub.api.test"), None);
    }

    #[test]
    fn every_fault_at_once() {
        let faults = Hosts::parse(&table(&[
            ("10.0.0.1", "10.0.0.2"),
            ("*.test", "127.0.0.1"),
            ("a.test:443", "127.0.0.1"),
            ("b.test", "localhost"),
            ("c.test", "127.0.0.1:0"),
            ("d.test", ""),
            ("e.test", "127.0.0.1"),
            ("e.test.", "127.0.0.2"),
        ]))
        .unwrap_err();
        let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(told.join("\n"), @r#"
        "*.test" is no name: a host may not hold '*'
        "10.0.0.1" is an address already, which no table changes
        "a.test:443" is no name: a host may not hold ':'
        "localhost", where `b.test` is to lead, is neither an address nor `address:port`
        "127.0.0.1:0", where `c.test` is to lead, is neither an address nor `address:port`
        "", where `d.test` is to lead, is neither an address nor `address:port`
        "e.test." is the same name as another in the table
        "#);
    }
}
