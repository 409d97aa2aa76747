//! Cedar's extension values: addresses, points in time and durations.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An address with the length of its network prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct IpNet {
    addr: IpAddr,
    prefix: u8,
}

impl IpNet {
    pub fn parse(text: &str) -> Option<IpNet> {
        let (addr, prefix) = match text.split_once('/') {
            Some((addr, prefix)) => (addr, Some(prefix)),
            None => (text, None),
        };
        // An IPv4 address inside an IPv6 one is not taken.
        let addr: IpAddr = if addr.contains(':') {
            if addr.contains('.') {
                return None;
            }
            addr.parse::<Ipv6Addr>().ok()?.into()
        } else {
            addr.parse::<Ipv4Addr>().ok()?.into()
        };
        let longest = if addr.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => longest,
            Some(digits) => {
                let plain = !digits.is_empty()
                    && digits.len() <= 3
                    && digits.bytes().all(|b| b.is_ascii_digit())
                    && (digits.len() == 1 || !digits.starts_with('0'));
                plain
                    .then(|| digits.parse::<u8>().ok())
                    .flatten()
                    .filter(|n| *n <= longest)?
            }
        };
        Some(IpNet { addr, prefix })
    }

    pub fn is_v4(self) -> bool {
        self.addr.is_ipv4()
    }

    /// First and last address of the network, as numbers.
    fn range(self) -> (u128, u128) {
        let (bits, width) = match self.addr {
            IpAddr::V4(v4) => (u128::from(u32::from(v4)), 32u32),
            IpAddr::V6(v6) => (u128::from(v6), 128),
        };
        let host_bits = width.saturating_sub(u32::from(self.prefix));
        let hosts = match host_bits {
            128 => u128::MAX,
            n => (1u128 << n) - 1,
        };
        (bits & !hosts, bits | hosts)
    }

    pub fn is_in_range(self, of: IpNet) -> bool {
        let ((first, last), (low, high)) = (self.range(), of.range());
        self.is_v4() == of.is_v4() && low <= first && last <= high
    }

    pub fn is_loopback(self) -> bool {
        self.addr.is_loopback() && self.prefix >= if self.is_v4() { 8 } else { 128 }
    }

    pub fn is_multicast(self) -> bool {
        self.addr.is_multicast() && self.prefix >= if self.is_v4() { 4 } else { 8 }
    }
}

pub(crate) const DAY: i64 = 86_400_000;

/// `2024-10-15`, `2024-10-15T11:35:00Z`, with `.000` milliseconds, and with `+0130` for `Z`.
pub(crate) fn parse_datetime(text: &str) -> Option<i64> {
    let number = |from: usize, len: usize| -> Option<i64> {
        let digits = text.get(from..from + len)?;
        digits
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| digits.parse().ok())
            .flatten()
    };
    let is = |at: usize, byte: u8| text.as_bytes().get(at) == Some(&byte);
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let month_of = time::Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = time::Date::from_calendar_date(
        i32::try_from(year).ok()?,
        month_of,
        u8::try_from(day).ok()?,
    )
    .ok()?;
    if !is(4, b'-') || !is(7, b'-') {
        return None;
    }
    let days =
        i64::from(date.to_julian_day()) - i64::from(time::UtcDateTime::UNIX_EPOCH.to_julian_day());
    let midnight = days.checked_mul(DAY)?;
    if text.len() == 10 {
        return Some(midnight);
    }
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    if !is(10, b'T') || !is(13, b':') || !is(16, b':') {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (millis, zone) = if is(19, b'.') {
        (number(20, 3)?, 23)
    } else {
        (0, 19)
    };
    let offset = match text.as_bytes().get(zone)? {
        b'Z' if text.len() == zone + 1 => 0,
        sign @ (b'+' | b'-') if text.len() == zone + 5 => {
            let (hours, minutes) = (number(zone + 1, 2)?, number(zone + 3, 2)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let millis = (hours * 60 + minutes) * 60_000;
            if *sign == b'+' { millis } else { -millis }
        }
        _ => return None,
    };
    let within = ((hour * 60 + minute) * 60 + second) * 1000 + millis;
    midnight.checked_add(within)?.checked_sub(offset)
}

/// `1d2h3m4s5ms`: at least one part, in this order, with one sign for all.
pub(crate) fn parse_duration(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if rest.is_empty() {
        return None;
    }
    let units: [(&str, i128); 5] = [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1000),
        ("ms", 1),
    ];
    let mut units = units.iter();
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        let (digits, tail) = rest.split_at(end);
        let amount: i128 = digits.parse().ok()?;
        let unit_end = tail
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(tail.len());
        let (name, tail) = tail.split_at(unit_end);
        // Each unit at most once, larger before smaller.
        let (_, length) = units.find(|(unit, _)| *unit == name)?;
        total = total.checked_add(amount.checked_mul(*length)?)?;
        rest = tail;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let ip = |text| IpNet::parse(text).expect(text);
        assert!(ip("10.1.2.3").is_in_range(ip("10.0.0.0/8")));
        assert!(!ip("10.0.0.0/7").is_in_range(ip("10.0.0.0/8")));
        assert!(ip("::1").is_in_range(ip("::/0")) && !ip("1.2.3.4").is_in_range(ip("::/0")));
        assert!(ip("127.0.0.2").is_loopback() && !ip("127.0.0.0/7").is_loopback());
        assert!(ip("ff00::1").is_multicast() && ip("224.0.0.1").is_multicast());
        assert_ne!(ip("10.0.0.1"), ip("10.0.0.1/24"));
        for bad in [
            "1.2.3",
            "1.2.3.4/33",
            "1.2.3.4/01",
            "::1/129",
            "::ffff:1.2.3.4",
            "01.2.3.4",
            "/8",
            "",
        ] {
            assert_eq!(IpNet::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn points_in_time() {
        assert_eq!(parse_datetime("1970-01-01"), Some(0));
        assert_eq!(parse_datetime("1970-01-02T00:00:01Z"), Some(DAY + 1000));
        assert_eq!(parse_datetime("1970-01-01T01:00:00.250+0100"), Some(250));
        assert_eq!(parse_datetime("1969-12-31T23:59:59.999Z"), Some(-1));
        for bad in [
            "1970-1-1",
            "1970-02-30",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:00:00",
            "1970-01-01T00:00:60Z",
            "1970-01-01T00:00:00+01:00",
            "1970-01-01é",
        ] {
            assert_eq!(parse_datetime(bad), None, "{bad}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(parse_duration("1d2h3m4s5ms"), Some(DAY + 7_384_005));
        assert_eq!(parse_duration("-90s"), Some(-90_000));
        assert_eq!(parse_duration("2m5ms"), Some(120_005));
        for bad in [
            "",
            "-",
            "1",
            "1s1m",
            "1s2s",
            "h",
            "1 h",
            "99999999999999999999d",
        ] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }
}
