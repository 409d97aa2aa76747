//! Stored events, the rows they are stored in, and the seal that tells damage from text.

use dogwood_compiler::event::{Event, RequestPart};
use dogwood_compiler::value::{EntityUid, Record, Value};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// One event as it is stored; [`Entry::event`] is what the policy sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub time: i64,
    pub action: EntityUid,
    pub kind: SmolStr,
    pub request_id: SmolStr,
    pub input: Record,
    #[serde(default)]
    pub output: Option<Record>,
    /// Of a request: an outcome is to come.
    #[serde(default)]
    pub permitted: bool,
    /// With the last event of a transaction: the first permitted request without an outcome.
    #[serde(default)]
    pub open_from: Option<u64>,
}

impl Entry {
    pub fn event(&self) -> Event {
        let principal = EntityUid::new("Box::Agent", "self");
        let resource = EntityUid::new("Box::Resource", "unused");
        let input = Value::Object(self.input.clone());
        let mut logged = Record::from([
            (SmolStr::new_static("input"), input.clone()),
            (
                SmolStr::new_static("callerPrincipal"),
                Value::Entity(principal.clone()),
            ),
            (
                SmolStr::new_static("callerResource"),
                Value::Entity(resource.clone()),
            ),
            (
                SmolStr::new_static("requestId"),
                Value::String(self.request_id.clone()),
            ),
        ]);
        if let Some(output) = &self.output {
            logged.insert(SmolStr::new_static("output"), Value::Object(output.clone()));
        }
        let request = (self.kind == "request").then(|| RequestPart {
            principal: Some(principal),
            resource: Some(resource),
            context: Record::from([(SmolStr::new_static("input"), input)]),
            entities: Vec::new(),
        });
        Event {
            time: self.time,
            action: self.action.clone(),
            kind: self.kind.clone(),
            logged,
            request,
        }
    }
}

/// A checksum over where a value is kept and what it is, then the value as JSON. The place is part of it, so
/// that two rows of a history cannot change places.
pub(super) fn seal(place: &[u8], value: &impl Serialize) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; SUM];
    serde_json::to_writer(&mut bytes, value).map_err(|e| e.to_string())?;
    Ok(sealed(place, bytes))
}

pub(super) fn open_seal<T: DeserializeOwned>(place: &[u8], bytes: &[u8]) -> Result<T, String> {
    serde_json::from_slice(unsealed(place, bytes)?).map_err(|e| e.to_string())
}

/// Events that happened one after the other at one time, stored together: what a transaction touches is what
/// it costs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The number of the first event.
    pub first: u64,
    /// Rows are counted, so that a gap between them shows.
    pub ordinal: u64,
    /// One at least.
    pub events: Vec<Entry>,
}

impl Row {
    /// Formats before 4 have one event in a row, as JSON.
    pub fn read(first: u64, bytes: &[u8]) -> Result<Row, String> {
        let bytes = unsealed(&first.to_le_bytes(), bytes)?;
        let Some(rest) = bytes.strip_prefix(&[COMPACT]) else {
            let entry = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
            return Ok(Row {
                first,
                ordinal: first,
                events: vec![entry],
            });
        };
        let (ordinal, mut rest) = postcard::take_from_bytes(rest).map_err(|e| e.to_string())?;
        let mut events = Vec::new();
        while !rest.is_empty() {
            let (entry, behind) = postcard::take_from_bytes(rest).map_err(|e| e.to_string())?;
            events.push(entry);
            rest = behind;
        }
        match events.is_empty() {
            true => Err("it is empty".into()),
            false => Ok(Row {
                first,
                ordinal,
                events,
            }),
        }
    }

    /// The number of the last event.
    pub fn last(&self) -> u64 {
        let behind = self.events.len().saturating_sub(1);
        self.first.saturating_add(behind as u64)
    }

    /// The time of its events.
    pub fn time(&self) -> i64 {
        self.events.last().map_or(i64::MIN, |entry| entry.time)
    }

    /// The events with their numbers.
    pub fn numbered(self) -> impl Iterator<Item = (u64, Entry)> {
        (self.first..).zip(self.events)
    }
}

/// A row being filled, in the encoding of Postcard behind `COMPACT`.
pub(super) struct Filling {
    pub first: u64,
    pub time: i64,
    bytes: Vec<u8>,
}

impl Filling {
    pub fn new(first: u64, ordinal: u64, time: i64) -> Result<Filling, String> {
        let mut bytes = Vec::with_capacity(USUAL);
        bytes.resize(SUM, 0);
        bytes.push(COMPACT);
        let bytes = postcard::to_extend(&ordinal, bytes).map_err(|e| e.to_string())?;
        Ok(Filling { first, time, bytes })
    }

    pub fn push(&mut self, entry: &Entry) -> Result<(), String> {
        let bytes = std::mem::take(&mut self.bytes);
        self.bytes = postcard::to_extend(entry, bytes).map_err(|e| e.to_string())?;
        Ok(())
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn seal(self) -> Vec<u8> {
        sealed(&self.first.to_le_bytes(), self.bytes)
    }
}

/// No JSON begins with it.
const COMPACT: u8 = 1;
const SUM: usize = 4;
/// Bytes of most rows.
const USUAL: usize = 512;

/// Writes the checksum into the place that is left for it.
fn sealed(place: &[u8], mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = sum(place, bytes.get(SUM..).unwrap_or_default());
    if let Some(front) = bytes.first_chunk_mut() {
        *front = sum.to_le_bytes();
    }
    bytes
}

fn unsealed<'b>(place: &[u8], bytes: &'b [u8]) -> Result<&'b [u8], String> {
    let Some((front, rest)) = bytes.split_first_chunk() else {
        return Err("it is cut short".into());
    };
    if sum(place, rest) != u32::from_le_bytes(*front) {
        return Err("its checksum is wrong".into());
    }
    Ok(rest)
}

fn sum(place: &[u8], bytes: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(place);
    sum.update(bytes);
    sum.finalize()
}

#[cfg(test)]
mod tests {
    use super::{Entry, Filling, Row, open_seal, seal};
    use dogwood_compiler::value::{EntityUid, Record, Value};

    #[test]
    fn a_seal_knows_its_place_and_every_bit() {
        let sealed = seal(b"7", &"text").unwrap();
        assert_eq!(open_seal::<String>(b"7", &sealed).as_deref(), Ok("text"));
        assert!(open_seal::<String>(b"8", &sealed).is_err());
        for at in 0..sealed.len() {
            for bit in 0..8 {
                let mut changed = sealed.clone();
                changed[at] ^= 1 << bit;
                assert!(open_seal::<String>(b"7", &changed).is_err());
            }
            assert!(open_seal::<String>(b"7", &sealed[..at]).is_err());
        }
    }

    fn event() -> Entry {
        let input = Record::from([
            ("array".into(), Value::Array(vec![Value::Null])),
            ("bool".into(), Value::Bool(true)),
            ("decimal".into(), Value::Decimal("1.50".into())),
            ("entity".into(), Value::Entity(EntityUid::new("T", "é"))),
            ("int".into(), Value::Int(-1)),
            ("object".into(), Value::Object(Record::new())),
            ("string".into(), Value::str("text")),
        ]);
        Entry {
            time: 1_796_000_000,
            action: EntityUid::new("Box::Action", "fs:read"),
            kind: "request".into(),
            request_id: "7".into(),
            input,
            output: Some(Record::new()),
            permitted: true,
            open_from: Some(5),
        }
    }

    /// What is written once has to be readable for good.
    #[test]
    fn the_encoding_of_events_stays() {
        let mut row = Filling::new(7, 6, 0).unwrap();
        row.push(&event()).unwrap();
        row.push(&event()).unwrap();
        let sealed = row.seal();
        let read = Row::read(7, &sealed).unwrap();
        assert_eq!((read.ordinal, read.last()), (6, 8));
        assert_eq!(read.events, [event(), event()]);
        assert!(Row::read(8, &sealed).is_err());
        insta::assert_snapshot!(sealed.escape_ascii(), @r"s\xddR\x8c\x01\x06\x80\xa4\xe6\xb0\r\x0bBox::Action\x07fs:read\x07request\x017\x07\x05array\x06\x01\x00\x04bool\x01\x01\x07decimal\x04\x041.50\x06entity\x05\x01T\x02\xc3\xa9\x03int\x02\x01\x06object\x07\x00\x06string\x03\x04text\x01\x00\x01\x01\x05\x80\xa4\xe6\xb0\r\x0bBox::Action\x07fs:read\x07request\x017\x07\x05array\x06\x01\x00\x04bool\x01\x01\x07decimal\x04\x041.50\x06entity\x05\x01T\x02\xc3\xa9\x03int\x02\x01\x06object\x07\x00\x06string\x03\x04text\x01\x00\x01\x01\x05");
    }

    #[test]
    fn events_of_older_formats_are_read() {
        let json = r#"{"time":1796000000,"action":{"ty":"Box::Action","id":"fs:read"},"kind":"response","request_id":"7","input":{"path":{"string":"~/a"}}}"#;
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        let before = seal(&7u64.to_le_bytes(), &json).unwrap();
        let expected = Entry {
            kind: "response".into(),
            input: Record::from([("path".into(), Value::str("~/a"))]),
            output: None,
            permitted: false,
            open_from: None,
            ..event()
        };
        let expected = Row {
            first: 7,
            ordinal: 7,
            events: vec![expected],
        };
        assert_eq!(Row::read(7, &before), Ok(expected));
    }
}
