//! JSON with the place of every part, for files whose mistakes are shown to their author.
//!
//! Values are read elsewhere with `serde_json`; it keeps no places.

use dogwood_grammar::Span;
use dogwood_grammar::ast::Str;
use dogwood_grammar::diagnostic::Diagnostic;
use smol_str::SmolStr;

/// How deep arrays and objects may nest.
pub const MAX_DEPTH: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json {
    pub kind: JsonKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonKind {
    Null,
    Bool(bool),
    /// As written.
    Number(SmolStr),
    String(SmolStr),
    Array(Vec<Json>),
    /// In the order of the text, repeated keys included.
    Object(Vec<Member>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub key: Str,
    pub value: Json,
}

/// Where a text stops being JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    pub span: Span,
    pub problem: JsonProblem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonProblem {
    Expected(&'static str),
    OpenString,
    BadString,
    BadNumber,
    TooDeep,
}

impl JsonError {
    pub fn diagnostic(&self) -> Diagnostic {
        let found = Diagnostic::error("not-json", self.span, "this is not JSON");
        match self.problem {
            JsonProblem::Expected(what) => found.label(format!("expected {what}")),
            JsonProblem::OpenString => found.label("this string has no closing quote"),
            JsonProblem::BadString => found.label("not a string of JSON").help(
                "a string is on one line, and has the escapes `\\n \\t \\\" \\\\ \\u0041` and their like only",
            ),
            JsonProblem::BadNumber => found.label("not a number of JSON"),
            JsonProblem::TooDeep => found.label(format!("nests more than {MAX_DEPTH} levels deep")),
        }
    }
}

impl Json {
    pub fn as_str(&self) -> Option<&SmolStr> {
        match &self.kind {
            JsonKind::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self.kind {
            JsonKind::Bool(value) => Some(value),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&[Json]> {
        match &self.kind {
            JsonKind::Array(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_object(&self) -> Option<&[Member]> {
        match &self.kind {
            JsonKind::Object(members) => Some(members),
            _ => None,
        }
    }

    /// The value of a key of an object; of a repeated one, the first.
    pub fn get(&self, key: &str) -> Option<&Json> {
        let members = self.as_object()?;
        let member = members.iter().find(|member| member.key.value == key);
        member.map(|member| &member.value)
    }

    /// `a string`, `an object`, …
    pub fn what(&self) -> &'static str {
        match &self.kind {
            JsonKind::Null => "null",
            JsonKind::Bool(_) => "a Boolean",
            JsonKind::Number(_) => "a number",
            JsonKind::String(_) => "a string",
            JsonKind::Array(_) => "an array",
            JsonKind::Object(_) => "an object",
        }
    }
}

pub fn parse(text: &str) -> Result<Json, JsonError> {
    let mut reader = Reader { text, at: 0 };
    let node = reader.value(0)?;
    reader.blanks();
    match reader.peek() {
        None => Ok(node),
        Some(_) => Err(reader.expected("nothing more behind the value")),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    fn span_from(&self, start: usize) -> Span {
        Span::new(start, self.at)
    }

    /// At the character that is there instead, or at the end of the text.
    fn expected(&self, expected: &'static str) -> JsonError {
        let width = self.rest().chars().next().map_or(0, char::len_utf8);
        JsonError {
            span: Span::new(self.at, self.at + width),
            problem: JsonProblem::Expected(expected),
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn value(&mut self, depth: usize) -> Result<Json, JsonError> {
        if depth > MAX_DEPTH {
            let problem = JsonProblem::TooDeep;
            let span = Span::new(self.at, self.at + 1);
            return Err(JsonError { span, problem });
        }
        self.blanks();
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => JsonKind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Json {
            kind,
            span: self.span_from(start),
        })
    }

    fn word(&mut self) -> Result<JsonKind, JsonError> {
        let words = [
            ("true", JsonKind::Bool(true)),
            ("false", JsonKind::Bool(false)),
            ("null", JsonKind::Null),
        ];
        for (word, kind) in words {
            if self.rest().starts_with(word) {
                self.at += word.len();
                return Ok(kind);
            }
        }
        Err(self.expected("a value"))
    }

    fn number(&mut self) -> Result<JsonKind, JsonError> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c));
        let written = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        if serde_json::from_str::<serde_json::Number>(written).is_err() {
            return Err(JsonError {
                span: Span::new(self.at, self.at + written.len()),
                problem: JsonProblem::BadNumber,
            });
        }
        self.at += written.len();
        Ok(JsonKind::Number(written.into()))
    }

    fn string(&mut self) -> Result<SmolStr, JsonError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                Some(b'\\') => end += 2,
                Some(b'"') => break,
                Some(_) => end += 1,
                None => {
                    return Err(JsonError {
                        span: Span::new(start, start + 1),
                        problem: JsonProblem::OpenString,
                    });
                }
            }
        }
        let written = self.text.get(start..=end).unwrap_or_default();
        let decoded = serde_json::from_str::<String>(written).map_err(|_| JsonError {
            span: Span::new(start, end + 1),
            problem: JsonProblem::BadString,
        })?;
        self.at = end + 1;
        Ok(decoded.into())
    }

    fn array(&mut self, depth: usize) -> Result<JsonKind, JsonError> {
        self.at += 1;
        let mut items = Vec::new();
        self.blanks();
        if self.eat(b']') {
            return Ok(JsonKind::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.blanks();
            if self.eat(b']') {
                return Ok(JsonKind::Array(items));
            }
            if !self.eat(b',') {
                return Err(self.expected("`,` or `]`"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<JsonKind, JsonError> {
        self.at += 1;
        let mut members = Vec::new();
        self.blanks();
        if self.eat(b'}') {
            return Ok(JsonKind::Object(members));
        }
        loop {
            self.blanks();
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.expected("a key between quotes"));
            }
            let key = self.string()?;
            let span = self.span_from(start);
            self.blanks();
            if !self.eat(b':') {
                return Err(self.expected("`:`"));
            }
            let value = self.value(depth + 1)?;
            members.push(Member {
                key: Str { value: key, span },
                value,
            });
            self.blanks();
            if self.eat(b'}') {
                return Ok(JsonKind::Object(members));
            }
            if !self.eat(b',') {
                return Err(self.expected("`,` or `}`"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(node: &Json) -> serde_json::Value {
        match &node.kind {
            JsonKind::Null => serde_json::Value::Null,
            JsonKind::Bool(value) => (*value).into(),
            JsonKind::Number(text) => serde_json::from_str(text).unwrap(),
            JsonKind::String(text) => text.as_str().into(),
            JsonKind::Array(items) => items.iter().map(plain).collect(),
            JsonKind::Object(members) => members
                .iter()
                .map(|member| (member.key.value.to_string(), plain(&member.value)))
                .collect(),
        }
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            (-1_000_000..1_000_000i64).prop_map(|n| (n as f64 / 64.0).into()),
            ".*".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
                prop::collection::hash_map(".*", inner, 0..5)
                    .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn reads_what_serde_json_writes(value in any_json(), pretty in any::<bool>()) {
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            prop_assert_eq!(plain(&parse(&text).unwrap()), value);
        }

        /// A text is JSON for both readers or for none.
        #[test]
        fn accepts_what_serde_json_accepts(text in r#"[\[\]{}:,"a1.e\-\\ tnull]{0,12}"#) {
            let theirs = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            prop_assert_eq!(parse(&text).is_ok(), theirs, "{}", text);
        }
    }

    #[test]
    fn keeps_places_and_repeated_keys() {
        let text = r#"{ "a": 1, "a": ["é", true] }"#;
        let JsonKind::Object(members) = parse(text).unwrap().kind else {
            panic!("not an object");
        };
        let places: Vec<_> = members
            .iter()
            .map(|member| (member.key.span.text(text), member.value.span.text(text)))
            .collect();
        assert_eq!(places, [("\"a\"", "1"), ("\"a\"", "[\"é\", true]")]);
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        assert!(parse(&nested(100_000)).is_err());
    }
}
