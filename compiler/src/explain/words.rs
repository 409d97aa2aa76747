//! Small pieces of English: lists, articles, lengths of time.

use crate::grammar::ast::CompareOp;

/// `a`, `a and b`, `a, b and c`. Where an item is a list of its own, a comma comes before the last `and`.
pub fn list(items: &[String], word: &str) -> String {
    let long = items.iter().any(|item| is_list(item));
    clauses(items, word, long)
}

/// The same, with the comma when `long`.
pub fn clauses(items: &[String], word: &str, long: bool) -> String {
    let Some((last, init)) = items.split_last() else {
        return String::new();
    };
    if init.is_empty() {
        return last.clone();
    }
    let before_last = if long {
        format!(", {word} ")
    } else {
        format!(" {word} ")
    };
    format!("{}{before_last}{last}", init.join(", "))
}

/// Whether the text joins several things, outside quotes.
fn is_list(text: &str) -> bool {
    let unquoted = text.split('"').step_by(2);
    unquoted.into_iter().any(|part| {
        [",", " and ", " or "]
            .iter()
            .any(|joint| part.contains(joint))
    })
}

/// `a` or `an`, as the name is spoken: `fs` and `http` are spelled out letter by letter.
pub fn article(name: &str) -> &'static str {
    let word: String = name
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric())
        .collect();
    let word = word.to_ascii_lowercase();
    let Some(first) = word.chars().next() else {
        return "a";
    };
    let vowel = |c: char| matches!(c, 'a' | 'e' | 'i' | 'o' | 'u');
    let spelled_out = !word.contains(|c| vowel(c) || c == 'y');
    let an = if spelled_out {
        "aefhilmnorsx".contains(first)
    } else {
        vowel(first)
    };
    if an { "an" } else { "a" }
}

/// `15 minutes`, `1 hour`, `24 hours`, `90 seconds`: the largest unit that is exact; days from two on.
pub fn span(seconds: i64) -> String {
    let (amount, unit) = unit(seconds);
    if amount == 1 {
        format!("1 {unit}")
    } else {
        format!("{amount} {unit}s")
    }
}

/// `the last 15 minutes`, `the last hour`.
pub fn last(seconds: i64) -> String {
    format!("the last {}", length(seconds))
}

/// `15 minutes`, `hour`, as said after an article.
pub fn length(seconds: i64) -> String {
    let (amount, unit) = unit(seconds);
    if amount == 1 {
        unit.to_owned()
    } else {
        format!("{amount} {unit}s")
    }
}

fn unit(seconds: i64) -> (i64, &'static str) {
    match seconds {
        s if s >= 172_800 && s % 86_400 == 0 => (s / 86_400, "day"),
        s if s != 0 && s % 3600 == 0 => (s / 3600, "hour"),
        s if s != 0 && s % 60 == 0 => (s / 60, "minute"),
        s => (s, "second"),
    }
}

/// What follows the subject of a comparison.
pub fn compared(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Eq => "is",
        CompareOp::Ne => "is not",
        CompareOp::Lt => "is less than",
        CompareOp::Le => "is at most",
        CompareOp::Gt => "is more than",
        CompareOp::Ge => "is at least",
    }
}

/// The operator that holds exactly when `op` does not.
pub fn negated(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Eq => CompareOp::Ne,
        CompareOp::Ne => CompareOp::Eq,
        CompareOp::Lt => CompareOp::Ge,
        CompareOp::Le => CompareOp::Gt,
        CompareOp::Gt => CompareOp::Le,
        CompareOp::Ge => CompareOp::Lt,
    }
}

/// The operator with its sides exchanged.
pub fn mirrored(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
        same => same,
    }
}

/// The text broken into lines of at most `width` characters, each after `indent`.
pub fn wrap(text: &str, indent: &str, width: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let long = word.chars().count();
        if column == 0 {
            out.push_str(indent);
            column = indent.chars().count();
        } else if column + 1 + long > width {
            out.push('\n');
            out.push_str(indent);
            column = indent.chars().count();
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += long;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        let of = |items: &[&str]| {
            list(
                &items.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>(),
                "and",
            )
        };
        assert_eq!(of(&[]), "");
        assert_eq!(of(&["a"]), "a");
        assert_eq!(of(&["a", "b"]), "a and b");
        assert_eq!(of(&["a", "b", "c"]), "a, b and c");
        assert_eq!(of(&["a, or x", "b"]), "a, or x, and b");
        assert_eq!(of(&["a or x", "b"]), "a or x, and b");
        assert_eq!(of(&["\"a and b\"", "c"]), "\"a and b\" and c");
        assert_eq!(of(&["`x` is \"a, b\"", "c"]), "`x` is \"a, b\" and c");
    }

    #[test]
    fn articles_follow_the_sound() {
        for name in ["fs:read", "http:request", "mcp:call", "error", "Any"] {
            assert_eq!(article(name), "an", "{name}");
        }
        for name in ["shell:spawn", "net:connect", "move", "", "payments::charge"] {
            assert_eq!(article(name), "a", "{name}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(span(1), "1 second");
        assert_eq!(span(90), "90 seconds");
        assert_eq!(span(900), "15 minutes");
        assert_eq!(last(3600), "the last hour");
        assert_eq!(last(86_400), "the last 24 hours");
        assert_eq!(last(172_800), "the last 2 days");
        assert_eq!(span(0), "0 seconds");
    }

    #[test]
    fn wrapping_keeps_long_words_whole() {
        assert_eq!(wrap("aa bb cc", "  ", 7), "  aa bb\n  cc");
        assert_eq!(wrap("aaaaaaaaaa b", " ", 5), " aaaaaaaaaa\n b");
    }
}
