//! The grammar of one line of a trace.

use super::{MAX_DEPTH, Problem};
use crate::event::{EntityData, Event, RequestPart};
use crate::value::{EntityUid, Record, Value};
use smallvec::SmallVec;
use smol_str::SmolStr;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// So many keys of one record are compared one by one.
const FEW: usize = 8;

/// Reads an event. Without `KEEP` it reads the same and complains of the same, but what it returns holds no
/// more than the time stamp.
pub(super) struct Reader<'t, const KEEP: bool> {
    text: &'t str,
    at: usize,
}

type Read<T> = Result<T, Problem>;

impl<'t, const KEEP: bool> Reader<'t, KEEP> {
    pub fn new(text: &'t str) -> Self {
        Reader { text, at: 0 }
    }

    /// Where the reader stands, in characters from 1.
    pub fn column(&self) -> usize {
        let read = self.text.get(..self.at).unwrap_or(self.text);
        read.chars().count() + 1
    }

    pub fn event(&mut self) -> Read<Event> {
        if !self.take("@") {
            return Err(Problem::Expected("`@` and a time stamp"));
        }
        let time = match self.number()? {
            Value::Int(time) => time,
            _ => return Err(Problem::Expected("a time stamp in whole seconds")),
        };
        let mut request = None;
        let mut ahead = self.call();
        if let Some(("scope", inside)) = ahead {
            self.at = inside;
            self.scope(request.get_or_insert_default())?;
            ahead = self.call();
        }
        if let Some(("entities", inside)) = ahead {
            self.at = inside;
            self.entities(request.get_or_insert_default())?;
            ahead = self.call();
        }
        if let Some(("request_context", inside)) = ahead {
            self.at = inside;
            let context = self.pairs(")", 1)?;
            request.get_or_insert_with(RequestPart::default).context = context;
        }
        let ty = self.path()?.unwrap_or_default();
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
        if self.at < self.text.len() {
            return Err(Problem::TrailingText);
        }
        Ok(Event {
            time,
            action: EntityUid { ty, id },
            kind: self.kept(kind),
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
                    let parent = reader.entity()?;
                    if KEEP {
                        parents.push(parent);
                    }
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
            if KEEP {
                request.entities.push(EntityData {
                    uid,
                    attrs,
                    parents,
                    tags,
                });
            }
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
        let mut record = Record::new();
        let mut keys = Keys::default();
        self.list(close, |reader| {
            reader.blanks();
            let start = reader.at;
            let key = reader.word().ok_or(Problem::Expected("a field name"))?;
            if !keys.add(key) {
                reader.at = start;
                return Err(Problem::RepeatedKey(key.into()));
            }
            reader.colon()?;
            let value = reader.value(depth)?;
            if KEEP {
                record.insert(key.into(), value);
            }
            Ok(())
        })?;
        Ok(record)
    }

    /// Unlike attributes, tags may be called anything.
    fn tags(&mut self) -> Read<Record> {
        let mut record = Record::new();
        let mut names = BTreeSet::new();
        self.list("}", |reader| {
            reader.blanks();
            let start = reader.at;
            let name = match reader.quoted()? {
                Some(name) => name,
                None => {
                    let word = reader.word().map(Cow::Borrowed);
                    word.ok_or(Problem::Expected("the name of a tag"))?
                }
            };
            if !names.insert(name.clone()) {
                reader.at = start;
                return Err(Problem::RepeatedKey(name.into()));
            }
            reader.colon()?;
            let value = reader.value(1)?;
            if KEEP {
                record.insert(name.into(), value);
            }
            Ok(())
        })?;
        Ok(record)
    }

    fn value(&mut self, depth: usize) -> Read<Value> {
        if depth > MAX_DEPTH {
            return Err(Problem::TooDeep);
        }
        self.blanks();
        match self.byte() {
            Some(b'{') => {
                self.at += 1;
                return Ok(Value::Object(self.pairs("}", depth + 1)?));
            }
            Some(b'[') => {
                self.at += 1;
                let mut items = Vec::new();
                self.list("]", |reader| {
                    let item = reader.value(depth + 1)?;
                    if KEEP {
                        items.push(item);
                    }
                    Ok(())
                })?;
                return Ok(Value::Array(items));
            }
            _ => {}
        }
        if let Some(text) = self.string()? {
            return Ok(Value::String(text));
        }
        let before = self.at;
        if let Some(word) = self.word() {
            let mut behind = self.rest();
            if !behind.starts_with([':', ',', ')', '}', ']']) {
                behind = behind.trim_start();
            }
            if behind.starts_with("::") {
                self.at = before;
                return Ok(Value::Entity(self.entity()?));
            }
            return Ok(match word {
                "null" => Value::Null,
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                word => Value::String(self.kept(word)),
            });
        }
        self.number()
    }

    fn entity(&mut self) -> Read<EntityUid> {
        let ty = self.path()?;
        match (ty, self.string()?) {
            (Some(ty), Some(id)) => Ok(EntityUid { ty, id }),
            _ => Err(Problem::Expected("an entity, as `Ns::Type::\"id\"`")),
        }
    }

    /// Words with `::` behind each, without the last `::`; nothing where no word stands.
    fn path(&mut self) -> Read<Option<SmolStr>> {
        let mut words: SmallVec<[&str; 4]> = SmallVec::new();
        let mut length = 0;
        self.blanks();
        let start = self.at;
        let mut end = start;
        while let Some(word) = self.word() {
            words.push(word);
            length += word.len();
            end = self.at;
            if !self.take("::") {
                return Err(Problem::Expected("`::`"));
            }
            length += 2;
        }
        if words.is_empty() {
            return Ok(None);
        }
        // Without blanks inside, the path is as it is written.
        let together = end + 2 == start + length;
        Ok(Some(match self.text.get(start..end) {
            Some(written) if together => self.kept(written),
            _ => self.kept(&words.join("::")),
        }))
    }

    fn number(&mut self) -> Read<Value> {
        self.blanks();
        let rest = self.rest();
        let digits_from = |from: usize| {
            let tail = rest.as_bytes().get(from..).unwrap_or_default();
            tail.iter().take_while(|byte| byte.is_ascii_digit()).count()
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
            return Ok(Value::Decimal(self.kept(rest.get(..end).unwrap_or(""))));
        }
        let number = rest.get(..end).and_then(|digits| digits.parse().ok());
        let number = number.ok_or(Problem::NumberTooLarge)?;
        self.at += end;
        Ok(Value::Int(number))
    }

    /// A quoted string, escapes decoded; nothing if there is none here. An escape that means nothing stands
    /// for itself.
    fn string(&mut self) -> Read<Option<SmolStr>> {
        Ok(self.quoted()?.map(|text| self.kept(&text)))
    }

    fn quoted(&mut self) -> Read<Option<Cow<'t, str>>> {
        if !self.take("\"") {
            return Ok(None);
        }
        let rest = self.rest();
        let mut bytes = rest.bytes();
        let special = bytes.position(|byte| byte == b'"' || byte == b'\\');
        let Some(special) = special else {
            self.at -= 1;
            return Err(Problem::UnclosedString);
        };
        let plain = rest.get(..special).unwrap_or("");
        if rest.as_bytes().get(special) == Some(&b'"') {
            self.at += special + 1;
            return Ok(Some(Cow::Borrowed(plain)));
        }
        let mut decoded = String::from(plain);
        let tail = rest.get(special..).unwrap_or("");
        let mut chars = tail.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += special + at + 1;
                    return Ok(Some(Cow::Owned(decoded)));
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
        let bytes = rest.as_bytes();
        let starts = bytes
            .first()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
        if !starts {
            return None;
        }
        let length = bytes
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_')
            .count();
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

    /// The word of an envelope that stands here, and where its inside begins. Nothing is taken.
    fn call(&mut self) -> Option<(&'t str, usize)> {
        let before = self.at;
        let word = self.word();
        let inside = self.take("(").then_some(self.at);
        self.at = before;
        Some((word?, inside?))
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
        let found = self.rest().as_bytes().starts_with(sign.as_bytes());
        if found {
            self.at += sign.len();
        }
        found
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r') = self.byte() {
            self.at += 1;
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn kept(&self, text: &str) -> SmolStr {
        match KEEP {
            true => text.into(),
            false => SmolStr::default(),
        }
    }
}

/// The keys of a record so far.
#[derive(Default)]
struct Keys<'t> {
    few: SmallVec<[&'t str; FEW]>,
    many: BTreeSet<&'t str>,
}

impl<'t> Keys<'t> {
    /// Whether the key is new.
    fn add(&mut self, key: &'t str) -> bool {
        if self.few.contains(&key) {
            return false;
        }
        if self.few.len() < FEW {
            self.few.push(key);
            return true;
        }
        self.many.insert(key)
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
