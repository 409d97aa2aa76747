//! How much a monitor holds.

use super::Monitor;
use super::history::History;
use crate::automaton::cell::CellState;
use crate::automaton::value::{Val, text_bytes};
use crate::event::Event;
use crate::value::{EntityUid, Record, Value};
use smol_str::SmolStr;
use std::cmp::Reverse;
use std::mem::size_of;

/// What a monitor keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    pub partitions: usize,
    /// Rows, keys and window entries of all cells.
    pub rows: usize,
    pub values: usize,
    /// Held for all of this and for explanations; the policy left out.
    pub bytes: usize,
}

impl Monitor {
    pub fn size(&self) -> Size {
        let histories = || self.partitions.values();
        let states = histories().flat_map(|history| &history.states);
        // A table of partitions has a byte beside each place.
        let places = self.partitions.capacity() * 8 / 7;
        let bytes = places * (size_of::<(Option<Val>, History)>() + 1)
            + self.idle.capacity() * size_of::<Reverse<(i64, Option<Val>)>>()
            + histories().map(bytes).sum::<usize>()
            + self.values.bytes();
        Size {
            partitions: self.partitions.len(),
            rows: states.map(CellState::len).sum(),
            values: self.values.len(),
            bytes,
        }
    }
}

/// Beside the history itself.
fn bytes(history: &History) -> usize {
    let states = history.states.iter().map(CellState::bytes);
    let recent = history.recent.values();
    let recent = recent.map(|events| {
        let held = events.iter().map(|(_, event)| event_bytes(event));
        events.capacity() * size_of::<(i64, usize)>() + held.sum::<usize>()
    });
    history.states.capacity() * size_of::<CellState>()
        + states.sum::<usize>()
        + history.timers_bytes()
        + history.fields.capacity() * size_of::<Option<Val>>()
        + recent.sum::<usize>()
}

fn event_bytes(event: &Event) -> usize {
    let request = event.request.as_ref().map_or(0, |part| {
        let uids = [&part.principal, &part.resource].into_iter().flatten();
        let entities = part.entities.iter().map(|entity| {
            let parents = entity.parents.iter().map(uid_bytes).sum::<usize>();
            uid_bytes(&entity.uid)
                + record_bytes(&entity.attrs)
                + entity.parents.capacity() * size_of::<EntityUid>()
                + parents
        });
        record_bytes(&part.context)
            + uids.map(uid_bytes).sum::<usize>()
            + size_of_val(part.entities.as_slice())
            + entities.sum::<usize>()
    });
    size_of::<Event>()
        + uid_bytes(&event.action)
        + text_bytes(&event.kind)
        + record_bytes(&event.logged)
        + request
}

fn uid_bytes(uid: &EntityUid) -> usize {
    text_bytes(&uid.ty) + text_bytes(&uid.id)
}

/// An ordered map is made of nodes of up to eleven entries, half of them full as a rule.
fn record_bytes(record: &Record) -> usize {
    const NODE: usize = 11 * size_of::<(SmolStr, Value)>() + 16;
    let nodes = match record.len() {
        0 => 0,
        len => len.div_ceil(8),
    };
    let fields = record
        .iter()
        .map(|(name, value)| text_bytes(name) + value_bytes(value));
    nodes * NODE + fields.sum::<usize>()
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) => 0,
        Value::String(text) | Value::Decimal(text) => text_bytes(text),
        Value::Entity(uid) => uid_bytes(uid),
        Value::Array(items) => {
            let inside = items.iter().map(value_bytes).sum::<usize>();
            items.capacity() * size_of::<Value>() + inside
        }
        Value::Object(record) => record_bytes(record),
    }
}
