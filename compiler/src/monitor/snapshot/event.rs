//! Events of the near past as a snapshot holds them. Values nest; they are written in postfix order, so that
//! reading them takes no stack.

use crate::event::{EntityData, Event, RequestPart};
use crate::value::{EntityUid, Record, Value};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// Values nested deeper than this are not read back: letting go of one takes stack, too.
const DEEPEST: u32 = 1024;

#[derive(Serialize, Deserialize)]
enum Piece {
    Null,
    Bool(bool),
    Int(i64),
    String(SmolStr),
    Decimal(SmolStr),
    Entity(EntityUid),
    Array(u32),
    /// The names of the fields; their values come before.
    Object(Vec<SmolStr>),
}

#[derive(Serialize, Deserialize)]
struct SavedRecord(Vec<Piece>);

#[derive(Serialize, Deserialize)]
pub(super) struct SavedEvent {
    time: i64,
    action: EntityUid,
    kind: SmolStr,
    logged: SavedRecord,
    request: Option<SavedRequest>,
}

#[derive(Serialize, Deserialize)]
struct SavedRequest {
    principal: Option<EntityUid>,
    resource: Option<EntityUid>,
    context: SavedRecord,
    entities: Vec<(EntityUid, SavedRecord, Vec<EntityUid>, SavedRecord)>,
}

impl SavedEvent {
    pub fn of(event: &Event) -> SavedEvent {
        SavedEvent {
            time: event.time,
            action: event.action.clone(),
            kind: event.kind.clone(),
            logged: SavedRecord::of(&event.logged),
            request: event.request.as_ref().map(|part| SavedRequest {
                principal: part.principal.clone(),
                resource: part.resource.clone(),
                context: SavedRecord::of(&part.context),
                entities: part
                    .entities
                    .iter()
                    .map(|entity| {
                        let attrs = SavedRecord::of(&entity.attrs);
                        let tags = SavedRecord::of(&entity.tags);
                        (entity.uid.clone(), attrs, entity.parents.clone(), tags)
                    })
                    .collect(),
            }),
        }
    }

    pub fn read(self) -> Option<Event> {
        let request = match self.request {
            None => None,
            Some(part) => {
                let entities = part.entities.into_iter();
                let entities: Option<Vec<EntityData>> = entities
                    .map(|(uid, attrs, parents, tags)| {
                        let attrs = attrs.read()?;
                        let tags = tags.read()?;
                        Some(EntityData {
                            uid,
                            attrs,
                            parents,
                            tags,
                        })
                    })
                    .collect();
                Some(RequestPart {
                    principal: part.principal,
                    resource: part.resource,
                    context: part.context.read()?,
                    entities: entities?,
                })
            }
        };
        Some(Event {
            time: self.time,
            action: self.action,
            kind: self.kind,
            logged: self.logged.read()?,
            request,
        })
    }
}

impl SavedRecord {
    fn of(record: &Record) -> SavedRecord {
        let mut pieces = Vec::new();
        write_record(record, &mut pieces);
        SavedRecord(pieces)
    }

    fn read(self) -> Option<Record> {
        let mut stack: Vec<(Value, u32)> = Vec::new();
        for piece in self.0 {
            let value = match piece {
                Piece::Null => Value::Null,
                Piece::Bool(b) => Value::Bool(b),
                Piece::Int(n) => Value::Int(n),
                Piece::String(text) => Value::String(text),
                Piece::Decimal(text) => Value::Decimal(text),
                Piece::Entity(uid) => Value::Entity(uid),
                Piece::Array(len) => {
                    let (items, depth) = last(&mut stack, len as usize)?;
                    stack.push((Value::Array(items), depth));
                    continue;
                }
                Piece::Object(names) => {
                    let (items, depth) = last(&mut stack, names.len())?;
                    let record = names.into_iter().zip(items).collect();
                    stack.push((Value::Object(record), depth));
                    continue;
                }
            };
            stack.push((value, 0));
        }
        match (stack.pop(), stack.pop()) {
            (Some((Value::Object(record), _)), None) => Some(record),
            _ => None,
        }
    }
}

fn write_record(record: &Record, pieces: &mut Vec<Piece>) {
    record.values().for_each(|value| write(value, pieces));
    pieces.push(Piece::Object(record.keys().cloned().collect()));
}

fn write(value: &Value, pieces: &mut Vec<Piece>) {
    let piece = match value {
        Value::Null => Piece::Null,
        Value::Bool(b) => Piece::Bool(*b),
        Value::Int(n) => Piece::Int(*n),
        Value::String(text) => Piece::String(text.clone()),
        Value::Decimal(text) => Piece::Decimal(text.clone()),
        Value::Entity(uid) => Piece::Entity(uid.clone()),
        Value::Array(items) => {
            items.iter().for_each(|item| write(item, pieces));
            Piece::Array(u32::try_from(items.len()).unwrap_or(u32::MAX))
        }
        Value::Object(record) => return write_record(record, pieces),
    };
    pieces.push(piece);
}

/// Takes the last values off, in order, with the depth of what holds them.
fn last(stack: &mut Vec<(Value, u32)>, len: usize) -> Option<(Vec<Value>, u32)> {
    let from = stack.len().checked_sub(len)?;
    let depth = stack.iter().skip(from).map(|(_, depth)| depth + 1).max();
    let depth = depth.unwrap_or(0);
    let items = stack.drain(from..).map(|(value, _)| value).collect();
    (depth < DEEPEST).then_some((items, depth))
}
