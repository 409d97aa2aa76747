//! One stored event, and the seal that tells damage from text.

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

/// The same for events, which are many: behind `COMPACT` in the encoding of Postcard.
pub(super) fn seal_event(sequence: u64, entry: &Entry) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(USUAL);
    bytes.resize(SUM, 0);
    bytes.push(COMPACT);
    let bytes = postcard::to_extend(entry, bytes).map_err(|e| e.to_string())?;
    Ok(sealed(&sequence.to_le_bytes(), bytes))
}

/// Formats before 4 have events as JSON.
pub(super) fn open_event(sequence: u64, bytes: &[u8]) -> Result<Entry, String> {
    let event = unsealed(&sequence.to_le_bytes(), bytes)?;
    match event.strip_prefix(&[COMPACT]) {
        Some(event) => postcard::from_bytes(event).map_err(|e| e.to_string()),
        None => serde_json::from_slice(event).map_err(|e| e.to_string()),
    }
}

/// No JSON begins with it.
const COMPACT: u8 = 1;
const SUM: usize = 4;
/// Bytes of most events.
const USUAL: usize = 256;

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
    use super::{Entry, open_event, open_seal, seal, seal_event};
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
        let sealed = seal_event(7, &event()).unwrap();
        assert_eq!(open_event(7, &sealed), Ok(event()));
        assert!(open_event(8, &sealed).is_err());
        insta::assert_snapshot!(sealed.escape_ascii(), @r"\xd3\x98\x04\'\x01\x80\xa4\xe6\xb0\r\x0bBox::Action\x07fs:read\x07request\x017\x07\x05array\x06\x01\x00\x04bool\x01\x01\x07decimal\x04\x041.50\x06entity\x05\x01T\x02\xc3\xa9\x03int\x02\x01\x06object\x07\x00\x06string\x03\x04text\x01\x00\x01\x01\x05");
    }

    #[test]
    fn events_of_older_formats_are_read() {
        let json = r#"{"time":1796000000,"action":{"ty":"Box::Action","id":"fs:read"},"kind":"response","request_id":"7","input":{"path":{"string":"~/a"}}}"#;
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        let before = seal(&7u64.to_le_bytes(), &json).unwrap();
        let read = open_event(7, &before).unwrap();
        let expected = Entry {
            kind: "response".into(),
            input: Record::from([("path".into(), Value::str("~/a"))]),
            output: None,
            permitted: false,
            open_from: None,
            ..event()
        };
        assert_eq!(read, expected);
    }
}
