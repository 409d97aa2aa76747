//! The address floor: networks no permit opens, unless the configuration lifts one by exact name.
//!
//! A box's gateway dials from the host's network, where loopback, the local network and the cloud's
//! metadata service answer. None of them is what "may reach the internet" means.

use crate::authority::{Authority, AuthorityFault, Host};
use std::collections::BTreeSet;
use std::fmt::{Display, Formatter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What kind of network an address is kept back for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    Loopback,
    Private,
    /// Link-local, and every place a cloud serves instance credentials.
    Metadata,
    /// Nothing a client has business with: multicast, documentation, unassigned.
    Special,
}

impl Display for Reserved {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Reserved::Loopback => "the host's own loopback",
            Reserved::Private => "a private network",
            Reserved::Metadata => "link-local or cloud metadata",
            Reserved::Special => "a special-purpose network",
        })
    }
}

const IPV4: [(Ipv4Addr, u32, Reserved); 16] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, Reserved::Loopback),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Reserved::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Reserved::Metadata),
    // Inside carrier-grade space, so it stands before it.
    (Ipv4Addr::new(100, 100, 100, 200), 32, Reserved::Metadata),
    (Ipv4Addr::new(168, 63, 129, 16), 32, Reserved::Metadata),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Reserved::Private),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Reserved::Private),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Reserved::Private),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Reserved::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Reserved::Special),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Reserved::Special),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Reserved::Special),
    (Ipv4Addr::new(198, 51, 100, 0), 24, Reserved::Special),
    (Ipv4Addr::new(203, 0, 113, 0), 24, Reserved::Special),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Reserved::Special),
    (Ipv4Addr::new(240, 0, 0, 0), 4, Reserved::Special),
];

const IPV6: [(Ipv6Addr, u32, Reserved); 11] = [
    (Ipv6Addr::UNSPECIFIED, 128, Reserved::Loopback),
    (Ipv6Addr::LOCALHOST, 128, Reserved::Loopback),
    (
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0),
        10,
        Reserved::Metadata,
    ),
    (
        Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0),
        32,
        Reserved::Metadata,
    ),
    (
        Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0),
        32,
        Reserved::Metadata,
    ),
    (
        Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0),
        7,
        Reserved::Private,
    ),
    (
        Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0),
        10,
        Reserved::Private,
    ),
    // Translation prefixes of a local operator: where the IPv4 sits in them is theirs to choose.
    (
        Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0),
        48,
        Reserved::Private,
    ),
    (
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0),
        32,
        Reserved::Special,
    ),
    (
        Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0),
        64,
        Reserved::Special,
    ),
    (
        Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0),
        8,
        Reserved::Special,
    ),
];

const METADATA_NAMES: [&str; 5] = [
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "instance-data",
    "metadata",
];

/// The IPv4 addresses an IPv6 address may carry to: every one a translator or tunnel could reach.
fn carried(ip: Ipv6Addr) -> Vec<Ipv4Addr> {
    let bits = ip.to_bits();
    let at =
        |shift: u32| Ipv4Addr::from_bits(u32::try_from((bits >> shift) & 0xffff_ffff).unwrap_or(0));
    let [a, b, c, d, e, f, _, _] = ip.segments();
    match [a, b, c, d, e, f] {
        // Compatible; `::` and `::1` are themselves.
        [0, 0, 0, 0, 0, 0] if bits > 1 => vec![at(0)],
        // Mapped, and translated (`::ffff:0:a.b.c.d`).
        [0, 0, 0, 0, 0, 0xffff] | [0, 0, 0, 0, 0xffff, 0] => vec![at(0)],
        // NAT64.
        [0x64, 0xff9b, 0, 0, 0, 0] => vec![at(0)],
        // 6to4.
        [0x2002, ..] => vec![at(80)],
        // Teredo: the client, inverted, then the server.
        [0x2001, 0, ..] => vec![Ipv4Addr::from_bits(!at(0).to_bits()), at(64)],
        // ISATAP.
        [_, _, _, _, 0 | 0x200, 0x5efe] => vec![at(0)],
        _ => Vec::new(),
    }
}

/// As `net:connect` names it: the IPv4 it carries to if any, else compressed lower case.
pub fn canonical_ip(ip: IpAddr) -> String {
    match ip {
        IpAddr::V6(v6) => match carried(v6).first() {
            Some(v4) => v4.to_string(),
            None => v6.to_string(),
        },
        IpAddr::V4(v4) => v4.to_string(),
    }
}

/// What an address is kept back for, whichever way it is written.
pub fn reserved(ip: IpAddr) -> Option<Reserved> {
    match ip {
        IpAddr::V4(v4) => reserved_v4(v4),
        IpAddr::V6(v6) => {
            let own = IPV6
                .iter()
                .find(|(net, len, _)| {
                    (v6.to_bits() ^ net.to_bits())
                        .checked_shr(128 - len)
                        .unwrap_or(0)
                        == 0
                })
                .map(|(_, _, why)| *why);
            own.or_else(|| carried(v6).into_iter().find_map(reserved_v4))
        }
    }
}

fn reserved_v4(ip: Ipv4Addr) -> Option<Reserved> {
    IPV4.iter()
        .find(|(net, len, _)| {
            (ip.to_bits() ^ net.to_bits())
                .checked_shr(32 - len)
                .unwrap_or(0)
                == 0
        })
        .map(|(_, _, why)| *why)
}

/// What a name is kept back for before it is looked up.
fn reserved_name(name: &str) -> Option<Reserved> {
    if name == "localhost" || name.ends_with(".localhost") {
        return Some(Reserved::Loopback);
    }
    METADATA_NAMES.contains(&name).then_some(Reserved::Metadata)
}

/// The destinations the configuration lets below the floor, each by exact `name:port`.
#[derive(Clone, Debug, Default)]
pub struct Lifts(BTreeSet<Authority>);

impl Lifts {
    pub fn parse(texts: &[String]) -> Result<Lifts, Vec<(String, AuthorityFault)>> {
        let mut lifts = BTreeSet::new();
        let mut faults = Vec::new();
        for text in texts {
            match Authority::parse(text, None) {
                Ok(authority) => {
                    lifts.insert(authority);
                }
                Err(fault) => faults.push((text.clone(), fault)),
            }
        }
        if faults.is_empty() {
            Ok(Lifts(lifts))
        } else {
            Err(faults)
        }
    }

    /// Before the lookup.
    pub fn check_name(&self, to: &Authority) -> Result<(), Reserved> {
        match &to.host {
            Host::Name(name) => match reserved_name(name) {
                Some(why) if !self.0.contains(to) => Err(why),
                _ => Ok(()),
            },
            Host::Ip(ip) => self.check_address(to, *ip),
        }
    }

    /// Before a dial. A lifted name reaches private networks; link-local and metadata open only to who
    /// lifted that very address, or a metadata service's own name.
    pub fn check_address(&self, to: &Authority, ip: IpAddr) -> Result<(), Reserved> {
        let Some(why) = reserved(ip) else {
            return Ok(());
        };
        let lifted = self.0.contains(to)
            && match (&to.host, why) {
                (Host::Ip(_), _) | (_, Reserved::Loopback | Reserved::Private) => true,
                (Host::Name(name), Reserved::Metadata) => METADATA_NAMES.contains(&name.as_str()),
                (Host::Name(_), Reserved::Special) => false,
            };
        if lifted { Ok(()) } else { Err(why) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Lifts, Reserved, canonical_ip, reserved};
    use crate::authority::Authority;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn public_addresses_pass() {
        for text in [
            "8.8.8.8",
            "1.1.1.1",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
        ] {
            assert_eq!(reserved(ip(text)), None, "{text}");
        }
    }

    #[test]
    fn every_disguise_of_metadata_is_seen_through() {
        let [a, b, c, d] = [169_u16, 254, 169, 254];
        let (hi, lo) = (a << 8 | b, c << 8 | d);
        for v6 in [
            Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, hi, lo),
            Ipv6Addr::new(0, 0, 0, 0, 0, 0, hi, lo),
            Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, hi, lo),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, hi, lo),
            Ipv6Addr::new(0x2002, hi, lo, 0, 0, 0, 0, 1),
            Ipv6Addr::new(0x2001, 0, 0x808, 0x808, 0, 0, !hi, !lo),
            Ipv6Addr::new(0x2606, 1, 2, 3, 0, 0x5efe, hi, lo),
            Ipv6Addr::new(0x2606, 1, 2, 3, 0x200, 0x5efe, hi, lo),
        ] {
            assert_eq!(reserved(IpAddr::V6(v6)), Some(Reserved::Metadata), "{v6}");
            assert_eq!(canonical_ip(IpAddr::V6(v6)), "169.254.169.254", "{v6}");
        }
        // A Teredo relay to a private server, around a public client.
        assert_eq!(
            reserved(ip("2001:0:a00:1::f7f7:f7f7")),
            Some(Reserved::Private)
        );
        assert_eq!(
            reserved(ip("64:ff9b:1::a9fe:a9fe")),
            Some(Reserved::Private)
        );
    }

    #[test]
    fn every_reserved_network_is_kept_back() {
        for (text, why) in [
            ("0.0.0.0", Reserved::Loopback),
            ("0.1.2.3", Reserved::Loopback),
            ("127.9.9.9", Reserved::Loopback),
            ("169.254.169.254", Reserved::Metadata),
            ("100.100.100.200", Reserved::Metadata),
            ("168.63.129.16", Reserved::Metadata),
            ("10.255.0.1", Reserved::Private),
            ("172.31.255.255", Reserved::Private),
            ("192.168.0.1", Reserved::Private),
            ("100.64.0.1", Reserved::Private),
            ("192.0.0.8", Reserved::Special),
            ("192.0.2.1", Reserved::Special),
            ("198.19.0.1", Reserved::Special),
            ("198.51.100.1", Reserved::Special),
            ("203.0.113.9", Reserved::Special),
            ("224.0.0.1", Reserved::Special),
            ("239.255.255.255", Reserved::Special),
            ("255.255.255.255", Reserved::Special),
            ("::", Reserved::Loopback),
            ("::1", Reserved::Loopback),
            ("fe80::1", Reserved::Metadata),
            ("febf::1", Reserved::Metadata),
            ("fd00:ec2::254", Reserved::Metadata),
            ("fd20:ce::254", Reserved::Metadata),
            ("fc00::1", Reserved::Private),
            ("fdff::1", Reserved::Private),
            ("fec0::1", Reserved::Private),
            ("ff02::1", Reserved::Special),
            ("2001:db8::1", Reserved::Special),
            ("::ffff:127.0.0.1", Reserved::Loopback),
        ] {
            assert_eq!(reserved(ip(text)), Some(why), "{text}");
        }
        assert_eq!(canonical_ip(ip("2606:4700:0:0::1")), "2606:4700::1");
        assert_eq!(canonical_ip(IpAddr::V4(Ipv4Addr::LOCALHOST)), "127.0.0.1");
    }

    #[test]
    fn lifts_are_exact() {
        let lifts = Lifts::parse(&[
            "build.corp:8443".into(),
            "127.0.0.1:9".into(),
            "localhost:3000".into(),
            "metadata.google.internal:80".into(),
        ])
        .unwrap();
        let to = |text: &str| Authority::parse(text, None).unwrap();
        assert_eq!(
            lifts.check_address(&to("build.corp:8443"), ip("10.0.0.1")),
            Ok(())
        );
        assert_eq!(
            lifts.check_address(&to("build.corp:8444"), ip("10.0.0.1")),
            Err(Reserved::Private)
        );
        assert_eq!(
            lifts.check_address(&to("sub.build.corp:8443"), ip("10.0.0.1")),
            Err(Reserved::Private)
        );
        assert_eq!(
            lifts.check_address(&to("build.corp:8443"), ip("169.254.169.254")),
            Err(Reserved::Metadata)
        );
        assert_eq!(lifts.check_name(&to("127.0.0.1:9")), Ok(()));
        assert_eq!(
            lifts.check_name(&to("127.0.0.1:10")),
            Err(Reserved::Loopback)
        );
        assert_eq!(lifts.check_name(&to("localhost:3000")), Ok(()));
        assert_eq!(
            lifts.check_name(&to("a.localhost:3000")),
            Err(Reserved::Loopback)
        );
        assert_eq!(lifts.check_name(&to("metadata.google.internal:80")), Ok(()));
        assert_eq!(
            lifts.check_address(&to("metadata.google.internal:80"), ip("169.254.169.254")),
            Ok(())
        );
        assert_eq!(
            lifts.check_name(&to("metadata.azure.internal:80")),
            Err(Reserved::Metadata)
        );
        assert!(Lifts::parse(&["build.corp".into(), "*:443".into()]).is_err());
    }
}
