//! Traces: one event a line (language reference, "Trace format").
//!
//! ```text
//! @100 scope(principal: Depot::Clerk::"ann", resource: Depot::Bay::"b1")
//!      request_context(input: { crate: "a" }) Depot::Action::"move"::request(input: { crate: "a" })
//! ```
//!
//! (on one line). A line that cannot be read is reported with its number, and the others are read all the
//! same.

mod keep;
mod reader;
mod stream;

use crate::event::{Event, RequestPart};
use crate::value::{EntityUid, Record};
pub use keep::{Keep, Wanted};
use reader::Reader;
use smol_str::SmolStr;
use std::fmt;
pub use stream::{LineError, Lines, Scan, scan};

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
    let mut room = Room::default();
    room.read(line, |_, _| Keep::All)?;
    Ok(room.event)
}

/// Reads the same without keeping more than the time stamp.
fn skim_event(line: &str) -> Result<i64, (usize, Problem)> {
    let mut room = Room::default();
    let mut reader = Reader::new(line);
    match reader.event(&mut room, Keep::NOTHING, |_, _| Keep::NOTHING) {
        Ok(()) => Ok(room.event.time),
        Err(problem) => Err((reader.column(), problem)),
    }
}

/// Where the events of a trace are read, each in the place of the one before: most have much in common.
#[derive(Debug, Default)]
pub struct Room {
    /// The last one that was read. Of no use after a failure.
    pub event: Event,
    /// Parts that the event does not have, and another had.
    request: RequestPart,
    logged: Record,
}

impl Room {
    /// Reads one event, and of its logged record keeps what is wanted for its action and kind.
    pub fn read<'k>(
        &mut self,
        line: &str,
        logged: impl FnOnce(&EntityUid, &str) -> Keep<'k>,
    ) -> Result<(), (usize, Problem)> {
        let mut reader = Reader::new(line);
        let read = reader.event(self, Keep::All, logged);
        read.map_err(|problem| (reader.column(), problem))
    }

    fn part(&mut self) -> &mut RequestPart {
        let request = &mut self.event.request;
        request.get_or_insert_with(|| std::mem::take(&mut self.request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;
    use proptest::prelude::{Strategy, prop_oneof};

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

    /// What is left of a value of which these paths are kept.
    fn kept(value: &Value, wanted: &[&[SmolStr]]) -> Option<Value> {
        if wanted.iter().any(|path| path.is_empty()) {
            return Some(value.clone());
        }
        let Value::Object(fields) = value else {
            return None;
        };
        (!wanted.is_empty()).then(|| Value::Object(fields_kept(fields, wanted)))
    }

    fn fields_kept(fields: &Record, wanted: &[&[SmolStr]]) -> Record {
        let kept = fields.iter().filter_map(|(name, value)| {
            let below = wanted.iter().filter_map(|path| match path {
                [first, rest @ ..] if first == name => Some(rest),
                _ => None,
            });
            let below: Vec<&[SmolStr]> = below.collect();
            Some((name.clone(), kept(value, &below)?))
        });
        kept.collect()
    }

    fn values() -> impl Strategy<Value = String> {
        let plain = proptest::sample::select(vec![
            "1",
            "-20",
            "1.50",
            "\"u\"",
            "\"v\\n\"",
            "null",
            "true",
            "A::\"a\"",
            "A :: B::\"b\"",
            "word",
        ]);
        plain.prop_map(str::to_owned).prop_recursive(3, 20, 4, |inner| {
            let items = proptest::collection::vec(inner.clone(), 0..3);
            let items = items.prop_map(|items| format!("[{}]", items.join(", ")));
            prop_oneof![3 => fields(inner).prop_map(|fields| format!("{{{fields}}}")), 1 => items]
        })
    }

    /// Now and then a key comes twice.
    fn fields(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
        let name = proptest::sample::select(vec!["a", "b", "c", "d"]);
        let field = (name, value).prop_map(|(name, value)| format!("{name}: {value}"));
        proptest::collection::vec(field, 0..4).prop_map(|fields| fields.join(", "))
    }

    /// Of one line of a trace, as it should be or cut.
    fn lines() -> impl Strategy<Value = String> {
        let scope = proptest::sample::select(vec![
            "",
            "scope() ",
            "scope(principal: A::\"a\") ",
            "scope(resource: A::\"b\", principal: B::C::\"a\") ",
        ]);
        let entities = proptest::sample::select(vec![
            "",
            "",
            "entities(A::\"a\": { a: 1 } in [A::\"b\"] tags { t: 2 }, A::\"b\": {}) ",
        ]);
        let context = proptest::option::of(fields(values()));
        let action = proptest::sample::select(vec!["A::\"x\"::k", "A::\"x\"::l", "B::\"yy\"::k"]);
        let cut = proptest::option::weighted(0.1, 0..80_usize);
        let parts = (scope, entities, context, action, fields(values()), cut);
        parts.prop_map(|(scope, entities, context, action, logged, cut)| {
            let context = context.map_or(String::new(), |fields| {
                format!("request_context({fields}) ")
            });
            let line = format!("@7 {scope}{entities}{context}{action}({logged})");
            let cut = cut.unwrap_or(line.len());
            line.get(..cut).unwrap_or(&line).to_owned()
        })
    }

    fn paths() -> impl Strategy<Value = Option<Vec<Vec<SmolStr>>>> {
        let name = proptest::sample::select(vec!["a", "b", "c"]).prop_map(SmolStr::new);
        let path = proptest::collection::vec(name, 1..4);
        proptest::option::weighted(0.8, proptest::collection::vec(path, 0..4))
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
            for line in text.lines() {
                let time = parse_event(line).map(|event| event.time);
                assert_eq!(skim_event(line), time);
            }
        }

        /// Over whatever event was there before, a line reads as by itself, without what is not wanted.
        #[test]
        fn lines_are_read_over_each_other(lines in proptest::collection::vec((lines(), paths()), 1..12)) {
            let mut room = Room::default();
            for (line, paths) in &lines {
                let wanted = paths.as_ref().map(|paths| Wanted::paths(paths.iter().map(Vec::as_slice)));
                let read = room.read(line, |_, _| wanted.as_deref().map_or(Keep::All, Keep::Only));
                let mut alone = parse_event(line);
                if let (Ok(event), Some(paths)) = (&mut alone, paths) {
                    let paths: Vec<&[SmolStr]> = paths.iter().map(Vec::as_slice).collect();
                    event.logged = fields_kept(&event.logged, &paths);
                }
                assert_eq!(read.map(|()| room.event.clone()), alone);
                assert_eq!(skim_event(line), parse_event(line).map(|event| event.time));
            }
        }
    }
}
