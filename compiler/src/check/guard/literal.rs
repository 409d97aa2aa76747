//! The texts of decimals, addresses, dates and durations, as Cedar reads them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `1.5` as 15000: digits on both sides of the dot, at most four behind it.
pub fn decimal(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.')?;
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || fraction.len() > 4 {
        return None;
    }
    let scale = 10_i128.pow(4 - u32::try_from(fraction.len()).ok()?);
    // Forty digits are more than an `i64` holds and less than an `i128` does.
    let whole = whole.trim_start_matches('0');
    if whole.len() > 30 {
        return None;
    }
    let whole: i128 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let fraction: i128 = fraction.parse().ok()?;
    let value = whole * 10_000 + fraction * scale;
    i64::try_from(if negative { -value } else { value }).ok()
}

/// An address and the length of its prefix.
pub fn ip(text: &str) -> Option<(IpAddr, u8)> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let (address, longest) = if address.contains(':') {
        // Cedar does not read `::ffff:1.2.3.4`.
        if address.contains('.') {
            return None;
        }
        (IpAddr::V6(address.parse::<Ipv6Addr>().ok()?), 128)
    } else {
        (IpAddr::V4(address.parse::<Ipv4Addr>().ok()?), 32)
    };
    let prefix = match prefix {
        None => longest,
        Some(digits) => {
            let plain = digits.bytes().all(|b| b.is_ascii_digit())
                && (digits.len() == 1 || !digits.starts_with('0'));
            if !plain {
                return None;
            }
            digits.parse().ok().filter(|prefix| *prefix <= longest)?
        }
    };
    Some((address, prefix))
}

/// Milliseconds since 1970, from `2024-01-31`, `2024-01-31T10:20:30Z`, with milliseconds, or with an
/// offset such as `+0130`.
pub fn datetime(text: &str) -> Option<i64> {
    let mut rest = text;
    let year = digits(&mut rest, 4)?;
    let month = after(&mut rest, '-', 2)?;
    let day = after(&mut rest, '-', 2)?;
    let days = days_from_civil(year, month, day)?;
    let midnight = days.checked_mul(86_400_000)?;
    if rest.is_empty() {
        return Some(midnight);
    }
    let hour = after(&mut rest, 'T', 2)?;
    let minute = after(&mut rest, ':', 2)?;
    let second = after(&mut rest, ':', 2)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let millis = if rest.starts_with('.') {
        after(&mut rest, '.', 3)?
    } else {
        0
    };
    let offset = match rest.strip_prefix('Z') {
        Some(more) => {
            rest = more;
            0
        }
        None => {
            let sign = match rest.chars().next()? {
                '+' => 1,
                '-' => -1,
                _ => return None,
            };
            rest = rest.get(1..)?;
            let hours = digits(&mut rest, 2)?;
            let minutes = digits(&mut rest, 2)?;
            if hours > 23 || minutes > 59 {
                return None;
            }
            sign * (hours * 60 + minutes) * 60_000
        }
    };
    let time = ((hour * 60 + minute) * 60 + second) * 1000 + millis;
    rest.is_empty().then_some(midnight + time - offset)
}

fn digits(rest: &mut &str, n: usize) -> Option<i64> {
    let (number, more) = rest.split_at_checked(n)?;
    if !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    *rest = more;
    number.parse().ok()
}

fn after(rest: &mut &str, mark: char, n: usize) -> Option<i64> {
    *rest = rest.strip_prefix(mark)?;
    digits(rest, n)
}

/// Days since 1970-01-01 of a date that exists.
fn days_from_civil(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return None,
    };
    if day < 1 || day > length {
        return None;
    }
    // Counted from March, so that the leap day is the last of its year.
    let (y, m) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let day_of_year = (153 * m + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// Milliseconds, from `1d2h3m4s5ms`: each unit at most once, largest first.
pub fn duration(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1_i128, rest),
        None => (1, text),
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
    let mut total: i128 = 0;
    for (unit, millis) in units {
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            break;
        }
        let (number, more) = rest.split_at_checked(length)?;
        let letters = more.bytes().take_while(u8::is_ascii_alphabetic).count();
        let name = if more.starts_with("ms") {
            "ms"
        } else {
            more.get(..letters.min(1))?
        };
        if name != unit {
            continue;
        }
        if length > 25 {
            return None;
        }
        total += number.parse::<i128>().ok()? * millis;
        rest = more.get(unit.len()..)?;
    }
    if !rest.is_empty() {
        return None;
    }
    i64::try_from(sign * total).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals() {
        assert_eq!(decimal("1.5"), Some(15_000));
        assert_eq!(decimal("-0.0001"), Some(-1));
        assert_eq!(decimal("922337203685477.5807"), Some(i64::MAX));
        assert_eq!(decimal("-922337203685477.5808"), Some(i64::MIN));
        for wrong in [
            "922337203685477.5808",
            "1",
            "1.",
            ".5",
            "1.23456",
            "+1.0",
            "1.-5",
            "",
            "a.b",
        ] {
            assert_eq!(decimal(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn addresses() {
        assert_eq!(
            ip("10.0.0.0/8"),
            Some((IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8))
        );
        assert_eq!(ip("::1"), Some((IpAddr::V6(Ipv6Addr::LOCALHOST), 128)));
        for wrong in [
            "10.0.0",
            "10.0.0.0/33",
            "10.0.0.0/08",
            "::ffff:1.2.3.4",
            "::/129",
            "a",
            "",
        ] {
            assert_eq!(ip(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn dates() {
        assert_eq!(datetime("1970-01-01"), Some(0));
        assert_eq!(datetime("1970-01-02T00:00:01Z"), Some(86_401_000));
        assert_eq!(datetime("1970-01-01T01:00:00.250+0100"), Some(250));
        assert_eq!(datetime("2024-02-29"), Some(1_709_164_800_000));
        assert_eq!(datetime("1969-12-31T23:59:59Z"), Some(-1000));
        for wrong in [
            "2023-02-29",
            "2024-13-01",
            "2024-1-1",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00",
            "2024-01-01T00:00:00.5Z",
            "2024-01-01 00:00:00Z",
            "2024-01-01T00:00:00+01:00",
            "",
        ] {
            assert_eq!(datetime(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(duration("1d2h3m4s5ms"), Some(93_784_005));
        assert_eq!(duration("-90m"), Some(-5_400_000));
        assert_eq!(duration("5ms"), Some(5));
        assert_eq!(duration("2h5ms"), Some(7_200_005));
        for wrong in [
            "",
            "-",
            "1",
            "1x",
            "1h1d",
            "1h1h",
            "1.5h",
            "h",
            "9999999999999d",
        ] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }
}
