//! Traces: one event a line (language reference, "Trace format").
//!
//! ```text
//! @100 scope(principal: Depot::Clerk::"ann", resource: Depot::Bay::"b1")
//!      request_context(input: { crate: "a" }) Depot::Action::"move"::request(input: { crate: "a" })
//! ```
//!
//! (on one line). A line that cannot be read is reported with its number, and the others are read all the
//! same.

use crate::event::{EntityData, Event, RequestPart};
use crate::value::{EntityUid, Record, Value};
use smol_str::SmolStr;
use std::fmt;

/// How deep values may nest.
pub const MAX_DEPTH: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    Expected(&'static str),
    /// A whole number that does not fit 64 bits.
    NumberTooLarge,
    UnclosedString,
    RepeatedKey(SmolStr),
    TooDeep,
    /// Something after the end of the event.
    TrailingText,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Expected(what) => write!(f, "expected {what}"),
            Problem::NumberTooLarge => f.write_str("the number does not fit 64 bits"),
            Problem::UnclosedString => f.write_str("the string is not closed on its line"),
            Problem::RepeatedKey(key) => write!(f, "`{key}` is given twice"),
            Problem::TooDeep => write!(f, "values nest deeper than {MAX_DEPTH}"),
            Problem::TrailingText => f.write_str("there is more after the end of the event"),
        }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, column {}: {}",
            self.line, self.column, self.problem
        )
    }
}

impl std::error::Error for TraceError {}

/// Reads a whole trace. Blank lines are skipped.
pub fn parse(text: &str) -> (Vec<Event>, Vec<TraceError>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut events = Vec::new();
    let mut errors = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        match parse_event(line) {
            Ok(event) => events.push(event),
            Err((column, problem)) => {
                errors.push(TraceError {
                    line: number + 1,
                    column,
                    problem,
                });
            }
        }
    }
    (events, errors)
}

/// Reads one event; on failure the column, from 1, and the problem.
pub fn parse_event(line: &str) -> Result<Event, (usize, Problem)> {
    let mut reader = Reader { text: line, at: 0 };
    reader.event().map_err(|problem| {
        let read = line.get(..reader.at).unwrap_or(line);
        (read.chars().count() + 1, problem)
    })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

type Read<T> = Result<T, Problem>;

impl<'t> Reader<'t> {
    fn event(&mut self) -> Read<Event> {
        if !self.take("@") {
            return Err(Problem::Expected("`@` and a time stamp"));
        }
        let time = match self.number()? {
            Value::Int(time) => time,
            _ => return Err(Problem::Expected("a time stamp in whole seconds")),
        };
        let mut request = None;
        if self.take_call("scope") {
            self.scope(request.get_or_insert_default())?;
        }
        if self.take_call("entities") {
            self.entities(request.get_or_insert_default())?;
        }
        if self.take_call("request_context") {
            let context = self.pairs(")", 1)?;
            request.get_or_insert_with(RequestPart::default).context = context;
        }
        let mut ty = Vec::new();
        while let Some(word) = self.word() {
            ty.push(word);
            if !self.take("::") {
                return Err(Problem::Expected("`::`"));
            }
        }
        let id = self.string()?.ok_or(Problem::Expected(
            "an action, as `Ns::Action::\"id\"::kind`",
        ))?;
        if !self.take("::") {
            return Err(Problem::Expected("`::` and the kind of event"));
        }
        let kind = self.word().ok_or(Problem::Expected("the kind of event"))?;
        if !self.take("(") {
            return Err(Problem::Expected("`(` and the logged record"));
        }
        let logged = self.pairs(")", 1)?;
        self.blanks();
        if !self.rest().is_empty() {
            return Err(Problem::TrailingText);
        }
        let action = EntityUid::new(ty.join("::"), id);
        Ok(Event {
            time,
            action,
            kind: kind.into(),
            logged,
            request,
        })
    }

    fn scope(&mut self, request: &mut RequestPart) -> Read<()> {
        self.list(")", |reader| {
            let name = reader.word();
            let place = match name {
                Some("principal") => &mut request.principal,
                Some("resource") => &mut request.resource,
                _ => return Err(Problem::Expected("`principal` or `resource`")),
            };
            if place.is_some() {
                return Err(Problem::RepeatedKey(name.unwrap_or_default().into()));
            }
            reader.colon()?;
            *place = Some(reader.entity()?);
            Ok(())
        })
    }

    fn entities(&mut self, request: &mut RequestPart) -> Read<()> {
        self.list(")", |reader| {
            let uid = reader.entity()?;
            reader.colon()?;
            if !reader.take("{") {
                return Err(Problem::Expected("`{` and the attributes"));
            }
            let attrs = reader.pairs("}", 1)?;
            let mut parents = Vec::new();
            if reader.take_word("in") {
                if !reader.take("[") {
                    return Err(Problem::Expected("`[` and the parents"));
                }
                reader.list("]", |reader| {
                    parents.push(reader.entity()?);
                    Ok(())
                })?;
            }
            let mut tags = Record::new();
            if reader.take_word("tags") {
                if !reader.take("{") {
                    return Err(Problem::Expected("`{` and the tags"));
                }
                tags = reader.tags()?;
            }
            request.entities.push(EntityData {
                uid,
                attrs,
                parents,
                tags,
            });
            Ok(())
        })
    }

    /// Elements separated by commas up to the closing sign, which is taken.
    fn list(&mut self, close: &str, mut element: impl FnMut(&mut Self) -> Read<()>) -> Read<()> {
        if self.take(close) {
            return Ok(());
        }
        loop {
            element(self)?;
            if self.take(close) {
                return Ok(());
            }
            if !self.take(",") {
                return Err(Problem::Expected(match close {
                    ")" => "`,` or `)`",
                    "]" => "`,` or `]`",
                    _ => "`,` or `}`",
                }));
            }
        }
    }

    fn pairs(&mut self, close: &str, depth: usize) -> Read<Record> {
        self.keyed(close, depth, |reader| {
            let word = reader.word().map(SmolStr::new);
            word.ok_or(Problem::Expected("a field name"))
        })
    }

    /// Unlike attributes, tags may be called anything.
    fn tags(&mut self) -> Read<Record> {
        self.keyed("}", 1, |reader| match reader.string()? {
            Some(name) => Ok(name),
            None => {
                let word = reader.word().map(SmolStr::new);
                word.ok_or(Problem::Expected("the name of a tag"))
            }
        })
    }

    fn keyed(
        &mut self,
        close: &str,
        depth: usize,
        key: impl Fn(&mut Self) -> Read<SmolStr>,
    ) -> Read<Record> {
        let mut record = Record::new();
        self.list(close, |reader| {
            reader.blanks();
            let start = reader.at;
            let key = key(reader)?;
            if record.contains_key(&key) {
                reader.at = start;
                return Err(Problem::RepeatedKey(key));
            }
            reader.colon()?;
            let value = reader.value(depth)?;
            record.insert(key, value);
            Ok(())
        })?;
        Ok(record)
    }

    fn value(&mut self, depth: usize) -> Read<Value> {
        if depth > MAX_DEPTH {
            return Err(Problem::TooDeep);
        }
        if self.take("{") {
            return Ok(Value::Object(self.pairs("}", depth + 1)?));
        }
        if self.take("[") {
            let mut items = Vec::new();
            self.list("]", |reader| {
                items.push(reader.value(depth + 1)?);
                Ok(())
            })?;
            return Ok(Value::Array(items));
        }
        if let Some(text) = self.string()? {
            return Ok(Value::String(text));
        }
        let before = self.at;
        if let Some(word) = self.word() {
            if self.rest().trim_start().starts_with("::") {
                self.at = before;
                return Ok(Value::Entity(self.entity()?));
            }
            return Ok(match word {
                "null" => Value::Null,
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                word => Value::str(word),
            });
        }
        self.number()
    }

    fn entity(&mut self) -> Read<EntityUid> {
        let mut ty = Vec::new();
        loop {
            if let Some(word) = self.word() {
                ty.push(word);
            } else {
                let id = self.string()?;
                return match id {
                    Some(id) if !ty.is_empty() => Ok(EntityUid::new(ty.join("::"), id)),
                    _ => Err(Problem::Expected("an entity, as `Ns::Type::\"id\"`")),
                };
            }
            if !self.take("::") {
                return Err(Problem::Expected("`::`"));
            }
        }
    }

    fn number(&mut self) -> Read<Value> {
        self.blanks();
        let rest = self.rest();
        let digits_from = |from: usize| {
            let tail = rest.get(from..).unwrap_or("");
            tail.bytes().take_while(u8::is_ascii_digit).count()
        };
        let sign = usize::from(rest.starts_with('-'));
        let whole = digits_from(sign);
        if whole == 0 {
            return Err(Problem::Expected("a value"));
        }
        let end = sign + whole;
        let fraction = match rest.as_bytes().get(end) {
            Some(b'.') => digits_from(end + 1),
            _ => 0,
        };
        if fraction > 0 {
            let end = end + 1 + fraction;
            self.at += end;
            return Ok(Value::Decimal(rest.get(..end).unwrap_or("").into()));
        }
        let number = rest.get(..end).and_then(|digits| digits.parse().ok());
        let number = number.ok_or(Problem::NumberTooLarge)?;
        self.at += end;
        Ok(Value::Int(number))
    }

    /// A quoted string, escapes decoded; nothing if there is none here. An escape that means nothing stands
    /// for itself.
    fn string(&mut self) -> Read<Option<SmolStr>> {
        if !self.take("\"") {
            return Ok(None);
        }
        let mut decoded = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    return Ok(Some(decoded.into()));
                }
                '\\' => {
                    let tail = chars.as_str();
                    let (meant, length) = escape(tail);
                    match meant {
                        Some(meant) => decoded.push(meant),
                        None => {
                            decoded.push('\\');
                            decoded.push_str(tail.get(..length).unwrap_or(""));
                        }
                    }
                    for _ in tail.get(..length).unwrap_or("").chars() {
                        chars.next();
                    }
                }
                c => decoded.push(c),
            }
        }
        self.at -= 1;
        Err(Problem::UnclosedString)
    }

    fn word(&mut self) -> Option<&'t str> {
        self.blanks();
        let rest = self.rest();
        let starts = rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let length = rest
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
            .count();
        if !starts {
            return None;
        }
        self.at += length;
        rest.get(..length)
    }

    fn colon(&mut self) -> Read<()> {
        if self.take(":") {
            Ok(())
        } else {
            Err(Problem::Expected("`:`"))
        }
    }

    /// An envelope: its word and the opening parenthesis.
    fn take_call(&mut self, name: &str) -> bool {
        let before = self.at;
        let found = self.word() == Some(name) && self.take("(");
        if !found {
            self.at = before;
        }
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let before = self.at;
        let found = self.word() == Some(word);
        if !found {
            self.at = before;
        }
        found
    }

    fn take(&mut self, sign: &str) -> bool {
        self.blanks();
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }
}

/// What follows a backslash: the character meant, if any, and how many bytes were read.
fn escape(tail: &str) -> (Option<char>, usize) {
    let Some(first) = tail.chars().next() else {
        return (None, 0);
    };
    let simple = match first {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        '0' => Some('\0'),
        '\\' | '"' | '\'' => Some(first),
        _ => None,
    };
    if simple.is_some() {
        return (simple, 1);
    }
    let hex = |digits: &str| -> Option<char> {
        let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
        plain
            .then(|| u32::from_str_radix(digits, 16).ok())
            .flatten()
            .and_then(char::from_u32)
    };
    match first {
        'x' => {
            let code = tail.get(1..3).and_then(hex).filter(char::is_ascii);
            if let Some(code) = code {
                return (Some(code), 3);
            }
        }
        'u' => {
            let inner = tail
                .get(1..)
                .and_then(|t| t.strip_prefix('{'))
                .and_then(|t| t.split_once('}'));
            if let Some((digits, _)) = inner {
                let plain = digits.replace('_', "");
                if (1..=6).contains(&plain.len())
                    && let Some(code) = hex(&plain)
                {
                    return (Some(code), digits.len() + 3);
                }
            }
        }
        _ => {}
    }
    (None, first.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Event {
        parse_event(line).unwrap_or_else(|error| panic!("{line}: {error:?}"))
    }

    #[test]
    fn a_request_with_all_envelopes() {
        let event = one(
            r#"@100 scope(principal: Depot::Clerk::"ann", resource: Depot::Bay::"b1") entities(Depot::Clerk::"ann": { rank: 3 } in [Depot::Crew::"day"]) request_context(input: { crate: "a", kg: 3 }) Depot::Action::"move"::request(input: { crate: "a", kg: 3 }, callerPrincipal: Depot::Clerk::"ann")"#,
        );
        assert_eq!(event.time, 100);
        assert_eq!(event.action, EntityUid::new("Depot::Action", "move"));
        assert_eq!(event.kind, "request");
        let request = event.request.expect("a request part");
        assert_eq!(
            request.principal,
            Some(EntityUid::new("Depot::Clerk", "ann"))
        );
        assert_eq!(
            request.entities[0].parents,
            vec![EntityUid::new("Depot::Crew", "day")]
        );
        assert_eq!(request.context["input"], event.logged["input"]);
        assert_eq!(event.logged["input"].at(&["kg"]), Some(&Value::Int(3)));
    }

    #[test]
    fn entities_have_tags() {
        let event = one(
            r#"@1 entities(A::"a": {} tags { team: "red", "due date": 3 }, A::"b": { tags: 1 } in [A::"a"] tags {}) A::"x"::k()"#,
        );
        let entities = event.request.expect("a request part").entities;
        let tags: Record = [
            ("due date".into(), Value::Int(3)),
            ("team".into(), "red".into()),
        ]
        .into();
        assert_eq!(entities[0].tags, tags);
        assert_eq!(entities[1].attrs["tags"], Value::Int(1));
        assert!(entities[1].tags.is_empty());
        for (tags, problem) in [
            ("tags { t: 1, \"t\": 2 }", Problem::RepeatedKey("t".into())),
            ("tags [1]", Problem::Expected("`{` and the tags")),
            ("tags { 1: 2 }", Problem::Expected("the name of a tag")),
        ] {
            let line = format!("@1 entities(A::\"a\": {{}} {tags}) A::\"x\"::k()");
            assert_eq!(parse_event(&line).map_err(|(_, found)| found), Err(problem));
        }
    }

    #[test]
    fn every_kind_of_value() {
        let event = one(
            r#"@-5 A::"x"::k(a: null, b: true, c: -7, d: 1.50, e: "q\n\u{e9}\q", f: N::T::"i", g: [1, [2]], h: {i: word}, j: {})"#,
        );
        let at = |name: &str| event.logged[name].clone();
        assert_eq!((event.time, event.request), (-5, None));
        assert_eq!(at("a"), Value::Null);
        assert_eq!(at("b"), Value::Bool(true));
        assert_eq!(at("c"), Value::Int(-7));
        assert_eq!(at("d"), Value::Decimal("1.50".into()));
        assert_eq!(at("e"), Value::str("q\né\\q"));
        assert_eq!(at("f"), EntityUid::new("N::T", "i").into());
        assert_eq!(
            at("g"),
            Value::Array(vec![1.into(), Value::Array(vec![2.into()])])
        );
        assert_eq!(at("h").at(&["i"]), Some(&Value::str("word")));
        assert_eq!(at("j"), Value::Object(Record::new()));
    }

    #[test]
    fn errors_say_where_and_what() {
        let text = "@1 A::\"x\"::k()\n\nA::\"x\"::k()\n@2 A::\"x\"::k(a: 1, a: 2)\n@3 A::\"x\"::k(a: \"é\n@99999999999999999999 A::\"x\"::k()\n@4 A::\"x\"::k() more\n@5 A::\"x\"::k(a: )\n";
        let (events, errors) = parse(text);
        assert_eq!(events.len(), 1);
        let shown: Vec<String> = errors.iter().map(TraceError::to_string).collect();
        assert_eq!(
            shown,
            [
                "line 3, column 1: expected `@` and a time stamp",
                "line 4, column 20: `a` is given twice",
                "line 5, column 17: the string is not closed on its line",
                "line 6, column 2: the number does not fit 64 bits",
                "line 7, column 16: there is more after the end of the event",
                "line 8, column 17: expected a value",
            ]
        );
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |n: usize| format!("@1 A::\"x\"::k(a: {}1{})", "[".repeat(n), "]".repeat(n));
        assert!(parse_event(&nested(127)).is_ok());
        assert!(matches!(
            parse_event(&nested(128)),
            Err((_, Problem::TooDeep))
        ));
        assert!(matches!(
            parse_event(&nested(1_000_000)),
            Err((_, Problem::TooDeep))
        ));
    }

    proptest::proptest! {
        /// Pieces of events in any order, and cut anywhere: each line is an event or an error.
        #[test]
        fn no_line_is_lost(
            pieces in proptest::collection::vec(
                proptest::sample::select(vec![
                    "@", "1", "-5", ".5", " ", "scope", "entities", "request_context", "(", ")", "{",
                    "}", "[", "]", ":", "::", ",", "\"", "\\", "\\u{e9}", "\\x4", "é", "a", "in",
                    "principal", "null", "A::\"x\"::k(", "A::T::\"i\"", "\n", "\r\n", "\u{feff}",
                    "@1 A::\"x\"::k(a: 1)",
                ]),
                0..60,
            )
        ) {
            let text = pieces.concat();
            let (events, errors) = parse(&text);
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
            assert_eq!(events.len() + errors.len(), lines);
        }
    }
}
