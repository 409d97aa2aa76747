//! The grammar of one line of a trace.

use super::{Keep, MAX_DEPTH, Problem, Room};
use crate::event::{EntityData, RequestPart};
use crate::value::{EntityUid, Record, Value};
use smol_str::SmolStr;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::mem::{replace, take};

/// So many keys of one record are compared one by one.
const FEW: usize = 8;

/// Fewer digits than this make a number of 64 bits in any case.
const SAFE: usize = 19;

/// Reads an event. What is not kept is read the same and complained of the same.
///
/// Values are made where they stay and not handed back, since a short text that has just been written is slow
/// to move; and what is there already is left.
pub(super) struct Reader<'t> {
    text: &'t str,
    at: usize,
}

type Read<T> = Result<T, Problem>;

/// The type and the id of an entity.
type Uid<'t> = (Cow<'t, str>, Cow<'t, str>);

enum Number<'t> {
    Whole(i64),
    Decimal(&'t str),
}

/// The bytes that words are made of.
const IN_WORD: [bool; 256] = {
    let mut found = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        found[byte] = (byte as u8).is_ascii_alphanumeric() || byte == b'_' as usize;
        byte += 1;
    }
    found
};

fn in_word(byte: u8) -> bool {
    IN_WORD.get(usize::from(byte)).copied().unwrap_or(false)
}

fn starts_word(byte: u8) -> bool {
    in_word(byte) && !byte.is_ascii_digit()
}

/// How long the word is that the text begins with.
fn word_length(text: &[u8]) -> usize {
    if !text.first().copied().is_some_and(starts_word) {
        return 0;
    }
    let end = text.iter().position(|byte| !in_word(*byte));
    end.unwrap_or(text.len())
}

impl<'t> Reader<'t> {
    pub fn new(text: &'t str) -> Self {
        Reader { text, at: 0 }
    }

    /// Where the reader stands, in characters from 1.
    pub fn column(&self) -> usize {
        let read = self.text.get(..self.at).unwrap_or(self.text);
        read.chars().count() + 1
    }

    /// Of the event's logged record as much is kept as `logged` says for its action and kind; all of the rest
    /// goes by `rest`.
    pub fn event<'k>(
        &mut self,
        room: &mut Room,
        rest: Keep<'_>,
        logged: impl FnOnce(&EntityUid, &str) -> Keep<'k>,
    ) -> Read<()> {
        if !self.take(b'@') {
            return Err(Problem::Expected("`@` and a time stamp"));
        }
        let Number::Whole(time) = self.number()? else {
            return Err(Problem::Expected("a time stamp in whole seconds"));
        };
        room.event.time = time;
        if let Some(part) = room.event.request.take() {
            room.request = part;
        }
        let scope = self.take_call("scope");
        if scope {
            self.scope(room.part(), rest)?;
        }
        let entities = self.take_call("entities");
        if entities {
            self.entities(room.part(), rest)?;
        }
        let context = self.take_call("request_context");
        if context {
            self.record(b')', 1, rest, &mut room.part().context)?;
        }
        let event = &mut room.event;
        if let Some(part) = &mut event.request {
            if !scope {
                (part.principal, part.resource) = (None, None);
            }
            if !entities {
                part.entities.clear();
            }
            if !context {
                part.context.clear();
            }
        }
        let ty = self.path()?.unwrap_or_default();
        let id = self.quoted()?.ok_or(Problem::Expected(
            "an action, as `Ns::Action::\"id\"::kind`",
        ))?;
        if !self.take_colons() {
            return Err(Problem::Expected("`::` and the kind of event"));
        }
        let kind = self.word().ok_or(Problem::Expected("the kind of event"))?;
        if !self.take(b'(') {
            return Err(Problem::Expected("`(` and the logged record"));
        }
        if rest.all() {
            renew(&mut event.action.ty, &ty);
            renew(&mut event.action.id, &id);
            renew(&mut event.kind, kind);
        }
        let keep = logged(&event.action, kind);
        let mut record = take(&mut event.logged);
        if record.is_empty() {
            record = take(&mut room.logged);
        }
        if keep.nothing() {
            room.logged = take(&mut record);
        }
        self.record(b')', 1, keep, &mut record)?;
        event.logged = record;
        self.blanks();
        if self.at < self.text.len() {
            return Err(Problem::TrailingText);
        }
        Ok(())
    }

    fn scope(&mut self, request: &mut RequestPart, keep: Keep<'_>) -> Read<()> {
        let (mut principal, mut resource) = (false, false);
        self.list(b')', |reader| {
            let name = reader.word();
            let (place, given) = match name {
                Some("principal") => (&mut request.principal, &mut principal),
                Some("resource") => (&mut request.resource, &mut resource),
                _ => return Err(Problem::Expected("`principal` or `resource`")),
            };
            if replace(given, true) {
                return Err(Problem::RepeatedKey(name.unwrap_or_default().into()));
            }
            reader.colon()?;
            let uid = reader.entity()?;
            if keep.all() {
                renew_uid(place.get_or_insert_default(), &uid);
            }
            Ok(())
        })?;
        if !principal {
            request.principal = None;
        }
        if !resource {
            request.resource = None;
        }
        Ok(())
    }

    fn entities(&mut self, request: &mut RequestPart, keep: Keep<'_>) -> Read<()> {
        request.entities.clear();
        self.list(b')', |reader| {
            let (ty, id) = reader.entity()?;
            reader.colon()?;
            if !reader.take(b'{') {
                return Err(Problem::Expected("`{` and the attributes"));
            }
            let mut attrs = Record::new();
            reader.record(b'}', 1, keep, &mut attrs)?;
            let mut parents = Vec::new();
            if reader.take_word("in") {
                if !reader.take(b'[') {
                    return Err(Problem::Expected("`[` and the parents"));
                }
                reader.list(b']', |reader| {
                    let (ty, id) = reader.entity()?;
                    if keep.all() {
                        parents.push(EntityUid::new(ty, id));
                    }
                    Ok(())
                })?;
            }
            let mut tags = Record::new();
            if reader.take_word("tags") {
                if !reader.take(b'{') {
                    return Err(Problem::Expected("`{` and the tags"));
                }
                tags = reader.tags(keep)?;
            }
            if keep.all() {
                request.entities.push(EntityData {
                    uid: EntityUid::new(ty, id),
                    attrs,
                    parents,
                    tags,
                });
            }
            Ok(())
        })
    }

    /// Elements separated by commas up to the closing sign, which is taken.
    fn list(&mut self, close: u8, mut element: impl FnMut(&mut Self) -> Read<()>) -> Read<()> {
        if self.take(close) {
            return Ok(());
        }
        loop {
            element(self)?;
            self.blanks();
            match self.byte() {
                Some(b',') => self.at += 1,
                Some(byte) if byte == close => {
                    self.at += 1;
                    return Ok(());
                }
                _ => {
                    return Err(Problem::Expected(match close {
                        b')' => "`,` or `)`",
                        b']' => "`,` or `]`",
                        _ => "`,` or `}`",
                    }));
                }
            }
        }
    }

    /// The record comes out as read, whatever it held before.
    fn record(&mut self, close: u8, depth: usize, keep: Keep<'_>, record: &mut Record) -> Read<()> {
        let mut keys = Keys::default();
        let mut kept = 0;
        let mut unread = Value::Null;
        self.list(close, |reader| {
            reader.blanks();
            let start = reader.at;
            let key = reader.word().ok_or(Problem::Expected("a field name"))?;
            if !keys.add(key) {
                reader.at = start;
                return Err(Problem::RepeatedKey(key.into()));
            }
            reader.colon()?;
            let keep = keep.below(key);
            if keep.nothing() {
                return reader.value(depth, keep, &mut unread);
            }
            let place = match record.get_mut(key) {
                Some(place) => place,
                None => record.entry(key.into()).or_insert(Value::Null),
            };
            reader.value(depth, keep, place)?;
            if keep.keeps(place) {
                kept += 1;
            } else {
                record.remove(key);
            }
            Ok(())
        })?;
        if record.len() > kept {
            record.retain(|name, _| keys.has(name) && !keep.below(name).nothing());
        }
        Ok(())
    }

    /// Unlike attributes, tags may be called anything.
    fn tags(&mut self, keep: Keep<'_>) -> Read<Record> {
        let mut record = Record::new();
        let mut names = BTreeSet::new();
        self.list(b'}', |reader| {
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
            let mut value = Value::Null;
            reader.value(1, keep, &mut value)?;
            if keep.all() {
                record.insert(name.into(), value);
            }
            Ok(())
        })?;
        Ok(record)
    }

    /// Null where nothing is kept.
    fn value(&mut self, depth: usize, keep: Keep<'_>, place: &mut Value) -> Read<()> {
        if depth > MAX_DEPTH {
            return Err(Problem::TooDeep);
        }
        if self.take(b'{') {
            let mut record = match replace(place, Value::Null) {
                Value::Object(record) => record,
                _ => Record::new(),
            };
            self.record(b'}', depth + 1, keep, &mut record)?;
            if !keep.nothing() {
                *place = Value::Object(record);
            }
            return Ok(());
        }
        let all = keep.all();
        if !all {
            *place = Value::Null;
        }
        match self.byte() {
            Some(b'"') => {
                let text = self.quoted()?.unwrap_or_default();
                match place {
                    Value::String(known) => renew(known, &text),
                    place if all => *place = Value::String(text.into()),
                    _ => {}
                }
            }
            Some(b'[') => {
                self.at += 1;
                let keep = keep.whole();
                let mut items = Vec::new();
                self.list(b']', |reader| {
                    let mut item = Value::Null;
                    reader.value(depth + 1, keep, &mut item)?;
                    if all {
                        items.push(item);
                    }
                    Ok(())
                })?;
                if all {
                    *place = Value::Array(items);
                }
            }
            Some(byte) if starts_word(byte) => self.word_or_entity(keep, place)?,
            _ => {
                let number = self.number()?;
                if all {
                    *place = match number {
                        Number::Whole(n) => Value::Int(n),
                        Number::Decimal(text) => Value::Decimal(text.into()),
                    };
                }
            }
        }
        Ok(())
    }

    fn word_or_entity(&mut self, keep: Keep<'_>, place: &mut Value) -> Read<()> {
        let before = self.at;
        let word = self.word().unwrap_or_default();
        let behind = self.rest();
        let is_entity = match behind.as_bytes().first() {
            Some(b',' | b')' | b'}' | b']') => false,
            Some(b':') => behind.starts_with("::"),
            _ => behind.trim_start().starts_with("::"),
        };
        if is_entity {
            self.at = before;
            let uid = self.entity()?;
            match place {
                Value::Entity(known) => renew_uid(known, &uid),
                place if keep.all() => *place = EntityUid::new(uid.0, uid.1).into(),
                _ => {}
            }
        } else if keep.all() {
            *place = match word {
                "null" => Value::Null,
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                word => Value::String(word.into()),
            };
        }
        Ok(())
    }

    fn entity(&mut self) -> Read<Uid<'t>> {
        let ty = self.path()?;
        match (ty, self.quoted()?) {
            (Some(ty), Some(id)) => Ok((ty, id)),
            _ => Err(Problem::Expected("an entity, as `Ns::Type::\"id\"`")),
        }
    }

    /// Words with `::` behind each, without the last `::`; nothing where no word stands.
    fn path(&mut self) -> Read<Option<Cow<'t, str>>> {
        self.blanks();
        let start = self.at;
        let mut end = start;
        let mut length = 0;
        while let Some(word) = self.word() {
            if !self.take_colons() {
                return Err(Problem::Expected("`::`"));
            }
            length += word.len() + 2;
            end = self.at;
        }
        if length == 0 {
            return Ok(None);
        }
        let written = self.text.get(start..end - 2).unwrap_or("");
        // Without blanks inside, the path is as it is written.
        Ok(Some(if end - start == length {
            Cow::Borrowed(written)
        } else {
            Cow::Owned(written.replace([' ', '\t', '\r'], ""))
        }))
    }

    fn number(&mut self) -> Read<Number<'t>> {
        self.blanks();
        let tail = self.tail();
        let sign = usize::from(tail.first() == Some(&b'-'));
        let mut end = sign;
        let mut number = 0_i64;
        while let Some(digit @ b'0'..=b'9') = tail.get(end) {
            number = number
                .wrapping_mul(10)
                .wrapping_add(i64::from(digit - b'0'));
            end += 1;
        }
        let whole = end - sign;
        if whole == 0 {
            return Err(Problem::Expected("a value"));
        }
        let text = |end| self.text.get(self.at..self.at + end).unwrap_or("");
        if tail.get(end) == Some(&b'.') {
            let behind = tail.get(end + 1..).unwrap_or_default();
            let digits = behind.iter().take_while(|byte| byte.is_ascii_digit());
            let fraction = digits.count();
            if fraction > 0 {
                let number = text(end + 1 + fraction);
                self.at += number.len();
                return Ok(Number::Decimal(number));
            }
        }
        let number = match (whole, sign) {
            (..SAFE, 0) => number,
            (..SAFE, _) => -number,
            _ => text(end).parse().map_err(|_| Problem::NumberTooLarge)?,
        };
        self.at += end;
        Ok(Number::Whole(number))
    }

    /// A quoted string, escapes decoded; nothing if there is none here. An escape that means nothing stands
    /// for itself.
    #[inline]
    fn quoted(&mut self) -> Read<Option<Cow<'t, str>>> {
        if !self.take(b'"') {
            return Ok(None);
        }
        let rest = self.rest();
        let special = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\'));
        let (plain, tail) = rest
            .split_at_checked(special.unwrap_or(rest.len()))
            .unwrap_or_default();
        if tail.as_bytes().first() == Some(&b'"') {
            self.at += plain.len() + 1;
            return Ok(Some(Cow::Borrowed(plain)));
        }
        Ok(Some(Cow::Owned(self.decoded(plain, tail)?)))
    }

    /// The text of a string in which a backslash stands, or which has no end.
    #[cold]
    fn decoded(&mut self, plain: &str, tail: &str) -> Read<String> {
        let mut decoded = String::from(plain);
        let mut chars = tail.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += plain.len() + at + 1;
                    return Ok(decoded);
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

    #[inline]
    fn word(&mut self) -> Option<&'t str> {
        self.blanks();
        let length = word_length(self.tail());
        if length == 0 {
            return None;
        }
        let start = self.at;
        self.at += length;
        self.text.get(start..self.at)
    }

    fn colon(&mut self) -> Read<()> {
        if self.take(b':') {
            Ok(())
        } else {
            Err(Problem::Expected("`:`"))
        }
    }

    /// The word of an envelope and the `(` behind it.
    fn take_call(&mut self, word: &str) -> bool {
        let before = self.at;
        let found = self.take_word(word) && self.take(b'(');
        if !found {
            self.at = before;
        }
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        self.blanks();
        let tail = self.tail();
        let found = tail.starts_with(word.as_bytes()) && word_length(tail) == word.len();
        if found {
            self.at += word.len();
        }
        found
    }

    #[inline]
    fn take(&mut self, sign: u8) -> bool {
        // Most signs stand right behind what was read.
        if self.byte() != Some(sign) {
            self.blanks();
            if self.byte() != Some(sign) {
                return false;
            }
        }
        self.at += 1;
        true
    }

    #[inline]
    fn take_colons(&mut self) -> bool {
        let found = self.stands(b"::") || {
            self.blanks();
            self.stands(b"::")
        };
        self.at += 2 * usize::from(found);
        found
    }

    fn stands(&self, signs: &[u8; 2]) -> bool {
        self.text.as_bytes().get(self.at..self.at + 2) == Some(signs)
    }

    #[inline]
    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r') = self.byte() {
            self.at += 1;
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn tail(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }
}

/// Most events have much in common with the one before.
fn renew(place: &mut SmolStr, text: &str) {
    if *place != text {
        *place = text.into();
    }
}

fn renew_uid(place: &mut EntityUid, (ty, id): &Uid<'_>) {
    renew(&mut place.ty, ty);
    renew(&mut place.id, id);
}

/// The keys of a record so far.
#[derive(Default)]
struct Keys<'t> {
    few: [&'t str; FEW],
    len: usize,
    many: BTreeSet<&'t str>,
}

impl<'t> Keys<'t> {
    /// Whether the key is new.
    fn add(&mut self, key: &'t str) -> bool {
        if self.is_few(key) {
            return false;
        }
        let Some(place) = self.few.get_mut(self.len) else {
            return self.many.insert(key);
        };
        *place = key;
        self.len += 1;
        true
    }

    fn has(&self, key: &str) -> bool {
        self.is_few(key) || self.many.contains(key)
    }

    fn is_few(&self, key: &str) -> bool {
        let first = key.as_bytes().first();
        let is = |known: &&str| known.as_bytes().first() == first && **known == *key;
        self.few.iter().take(self.len).any(is)
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
