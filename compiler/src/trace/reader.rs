//! The grammar of one line of a trace.

mod tokens;

use super::{Keep, MAX_DEPTH, Problem, Room};
use crate::event::{EntityData, RequestPart};
use crate::value::{EntityUid, Record, Value};
use smol_str::SmolStr;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::mem::{replace, take};
use tokens::{Number, starts_word};

/// So many keys of one record are compared one by one.
const FEW: usize = 8;

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
