//! One stored event, and the seal that tells damage from text.

use dogwood_compiler::event::{Event, RequestPart};
use dogwood_compiler::value::{EntityUid, Record, Value};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// One event as it is stored; [`Entry::event`] is what the policy sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    pub time: i64,
    pub action: EntityUid,
    pub kind: SmolStr,
    pub request_id: SmolStr,
    pub input: Record,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Record>,
    /// Of a request: an outcome is to come.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub permitted: bool,
    /// With the last event of a transaction: the first permitted request without an outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
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
    let mut bytes = Vec::with_capacity(USUAL);
    bytes.resize(SUM, 0);
    serde_json::to_writer(&mut bytes, value).map_err(|e| e.to_string())?;
    let sum = sum(place, bytes.get(SUM..).unwrap_or_default());
    if let Some(front) = bytes.first_chunk_mut() {
        *front = sum.to_le_bytes();
    }
    Ok(bytes)
}

pub(super) fn open_seal<T: DeserializeOwned>(place: &[u8], bytes: &[u8]) -> Result<T, String> {
    let Some((front, text)) = bytes.split_first_chunk() else {
        return Err("it is cut short".into());
    };
    if sum(place, text) != u32::from_le_bytes(*front) {
        return Err("its checksum is wrong".into());
    }
    serde_json::from_slice(text).map_err(|e| e.to_string())
}

const SUM: usize = 4;
/// Bytes of most events.
const USUAL: usize = 512;

fn sum(place: &[u8], bytes: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(place);
    sum.update(bytes);
    sum.finalize()
}

#[cfg(test)]
mod tests {
    use super::{open_seal, seal};

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
}
