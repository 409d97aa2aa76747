//! Times of a test: seconds since its start.

/// Seconds in `90s`, `5m`, `1h30m`, `2d`: amounts with units, largest first.
pub fn span(text: &str) -> Option<i64> {
    let mut total: i64 = 0;
    let mut last = i64::MAX;
    let mut rest = text;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let amount: i64 = rest.get(..digits)?.parse().ok()?;
        let unit = match rest.as_bytes().get(digits)? {
            b's' => 1,
            b'm' => 60,
            b'h' => 3600,
            b'd' => 86400,
            _ => return None,
        };
        if unit >= last {
            return None;
        }
        last = unit;
        total = total.checked_add(amount.checked_mul(unit)?)?;
        rest = rest.get(digits + 1..)?;
    }
    Some(total)
}

/// The shortest text [`span`] reads as these seconds.
pub fn text(seconds: i64) -> String {
    let mut left = seconds.max(0);
    let mut out = String::new();
    for (unit, letter) in [(86400, 'd'), (3600, 'h'), (60, 'm')] {
        if left >= unit {
            out.push_str(&format!("{}{letter}", left / unit));
            left %= unit;
        }
    }
    if left > 0 || out.is_empty() {
        out.push_str(&format!("{left}s"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{span, text};
    use proptest::prelude::*;

    #[test]
    fn spans() {
        for (written, seconds) in [
            ("0s", Some(0)),
            ("90s", Some(90)),
            ("5m", Some(300)),
            ("1h30m", Some(5400)),
            ("2d1s", Some(172_801)),
            ("", None),
            ("5", None),
            ("5 m", None),
            ("-5m", None),
            ("5m1h", None),
            ("5m5m", None),
            ("99999999999999999d", None),
            ("1.5h", None),
        ] {
            assert_eq!(span(written), seconds, "{written}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(seconds in 0..i64::MAX) {
            prop_assert_eq!(span(&text(seconds)), Some(seconds));
        }
    }
}
