//! The whole state of a monitor as bytes, so that a restart need not take in the history again.
//!
//! ```text
//! magic · version · fingerprint of the policy · SHA-256 of the rest · the rest (postcard)
//! ```
//!
//! What is written is what the cells know, not how they find it: indexes and deadlines are made anew. The
//! digest tells damage from state, before anything is read; what passes it is still read with care.

mod event;

use super::history::{History, RECENT};
use super::{Config, Monitor, Policy};
use crate::automaton::saved::SavedState;
use crate::automaton::store::At;
use crate::automaton::value::{Stored, Val};
use event::SavedEvent;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

const MAGIC: [u8; 4] = *b"dwms";

/// Of what is written here; raised with every change to it.
const VERSION: u16 = 4;

const HEADER: usize = MAGIC.len() + 2 + 32 + 32;

/// Why a snapshot was not taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// Not a snapshot, cut short or damaged.
    Corrupt,
    /// Written by a version of the program with another format.
    OtherVersion { found: u16 },
    /// The state of another policy.
    OtherPolicy,
    /// The snapshot was made for events that are less late; what later ones would need is gone.
    Lateness { saved: i64, wanted: i64 },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Corrupt => write!(f, "the snapshot is damaged"),
            LoadError::OtherVersion { found } => {
                write!(f, "the snapshot has format {found}, expected {VERSION}")
            }
            LoadError::OtherPolicy => write!(f, "the snapshot is that of another policy"),
            LoadError::Lateness { saved, wanted } => write!(
                f,
                "the snapshot allows for events {saved}s late, not for {wanted}s"
            ),
        }
    }
}

impl std::error::Error for LoadError {}

#[derive(Serialize, Deserialize)]
struct Saved {
    lateness: i64,
    clock: i64,
    values: Vec<Option<Stored>>,
    partitions: Vec<(Option<Val>, SavedHistory)>,
}

#[derive(Serialize, Deserialize)]
struct SavedHistory {
    states: Vec<SavedState>,
    next: i64,
    clock: i64,
    at: At,
    event: Option<u32>,
    fields: Vec<Option<Val>>,
    recent: Vec<(u32, Vec<(i64, SavedEvent)>)>,
}

impl Monitor {
    /// The state as bytes, for [`Monitor::load`].
    pub fn save(&self) -> Vec<u8> {
        let partitions = self.partitions.iter();
        let saved = Saved {
            lateness: self.lateness,
            clock: self.clock,
            values: self.values.saved(),
            partitions: partitions
                .map(|(key, history)| (*key, history.saved(&self.policy)))
                .collect(),
        };
        // Every length is known, so this cannot fail; if it did, the empty rest would be refused.
        let rest = postcard::to_allocvec(&saved).unwrap_or_default();
        let mut bytes = Vec::with_capacity(HEADER + rest.len());
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.policy.fingerprint());
        bytes.extend(digest(&rest));
        bytes.extend(rest);
        bytes
    }

    /// A monitor with the state that was saved under the same policy: it decides as the saved one would have.
    pub fn load(policy: Arc<Policy>, config: Config, bytes: &[u8]) -> Result<Monitor, LoadError> {
        let (magic, bytes) = bytes.split_first_chunk().ok_or(LoadError::Corrupt)?;
        if *magic != MAGIC {
            return Err(LoadError::Corrupt);
        }
        let (version, bytes) = bytes.split_first_chunk().ok_or(LoadError::Corrupt)?;
        let found = u16::from_le_bytes(*version);
        if found != VERSION {
            return Err(LoadError::OtherVersion { found });
        }
        let (fingerprint, bytes) = bytes.split_first_chunk().ok_or(LoadError::Corrupt)?;
        let (sum, rest) = bytes.split_first_chunk().ok_or(LoadError::Corrupt)?;
        if digest(rest) != *sum {
            return Err(LoadError::Corrupt);
        }
        if policy.fingerprint() != *fingerprint {
            return Err(LoadError::OtherPolicy);
        }
        let saved: Saved = postcard::from_bytes(rest).map_err(|_| LoadError::Corrupt)?;
        let mut monitor = Monitor::new(policy, config);
        if monitor.lateness > saved.lateness {
            return Err(LoadError::Lateness {
                saved: saved.lateness,
                wanted: monitor.lateness,
            });
        }
        monitor.take(saved).ok_or(LoadError::Corrupt)?;
        Ok(monitor)
    }

    fn take(&mut self, saved: Saved) -> Option<()> {
        self.clock = saved.clock;
        self.values.restore(saved.values)?;
        let pinned = self.policy.service.events.universal_pin.is_some();
        for (key, history) in saved.partitions {
            let history = History::restored(&self.policy, history, self.explained)?;
            if pinned {
                let until = history.clock.saturating_add(self.policy.longest_window);
                self.idle.push(Reverse((until, key)));
            }
            self.partitions.insert(key, history);
        }
        Some(())
    }
}

impl History {
    fn saved(&self, policy: &Policy) -> SavedHistory {
        let states = policy.network.cells.iter().zip(&self.states);
        let recent = self.recent.iter();
        SavedHistory {
            states: states.map(|(def, state)| state.saved(def)).collect(),
            next: self.next,
            clock: self.clock,
            at: self.at,
            event: self.event,
            fields: self.fields.clone(),
            recent: recent
                .map(|(event_type, events)| {
                    let events = events.iter();
                    let saved = events.map(|(pos, event)| (*pos, SavedEvent::of(event)));
                    (*event_type, saved.collect())
                })
                .collect(),
        }
    }

    fn restored(policy: &Policy, saved: SavedHistory, explained: bool) -> Option<History> {
        let mut history = History::new(policy);
        if saved.states.len() != history.states.len() {
            return None;
        }
        let states = history.states.iter_mut().zip(&policy.network.cells);
        for ((state, def), saved) in states.zip(saved.states) {
            state.restore(def, saved)?;
        }
        history.next = saved.next;
        history.clock = saved.clock;
        history.at = saved.at;
        history.event = saved.event;
        history.fields = saved.fields;
        history.arm(policy);
        if explained {
            for (event_type, events) in saved.recent {
                let events = events.into_iter().take(RECENT);
                let events: Option<_> = events
                    .map(|(pos, event)| Some((pos, Arc::new(event.read()?))))
                    .collect();
                history.recent.insert(event_type, events?);
            }
        }
        Some(history)
    }
}

impl Policy {
    /// Tells this compiled policy from any other. It says nothing of where the rules were written, so that
    /// a new comment changes nothing.
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut text = Text(Sha256::new());
        // Writing to a digest cannot fail.
        let _ = self.describe(&mut text);
        text.0.finalize().into()
    }

    fn describe(&self, text: &mut Text) -> fmt::Result {
        use fmt::Write;
        let network = &self.network;
        write!(text, "{VERSION} {:?} ", network.cells)?;
        write!(text, "{:?} {:?} ", network.indexes, network.orders)?;
        write!(text, "{:?} ", network.event_types)?;
        write!(text, "{:?} {:?} ", network.fields, network.params)?;
        write!(text, "{:?} ", network.values.constants())?;
        for leaf in &self.leaves {
            write!(text, "{:?} {} ", leaf.node, leaf.width)?;
            write!(text, "{:?} {:?} ", leaf.params, leaf.constants)?;
        }
        write!(
            text,
            "{:?} {:?} {:?} ",
            self.rules, self.program, self.calls
        )?;
        write!(text, "{:?} {:?}", self.service.events, self.service.actions)
    }
}

/// A text of which only the digest is kept.
struct Text(Sha256);

impl fmt::Write for Text {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.0.update(part.as_bytes());
        Ok(())
    }
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
