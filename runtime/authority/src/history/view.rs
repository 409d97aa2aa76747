//! Reading: the history as it was at one commit, and the state of a policy built from it.

use super::entry::{Entry, Row, open_seal};
use super::{CHUNKS, EVENTS, HEAD, LOST, OPEN};
use crate::engine::{Compiled, Engine};
use redb::{
    Database, Key, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable,
    ReadableTableMetadata, TableDefinition, TableError, Value,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes views; may outlive no writer, since it keeps the file open.
#[derive(Clone)]
pub struct Reader {
    pub(super) db: Arc<Database>,
}

pub struct View {
    tx: ReadTransaction,
}

/// What is known of a snapshot without reading it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub fingerprint: String,
    /// The last event it holds.
    pub sequence: u64,
    /// As [`Built::lost`].
    pub lost: Option<i64>,
    pub chunks: u32,
    pub bytes: u64,
    pub sum: u32,
}

/// The state of a policy over the history.
pub struct Built {
    pub engine: Box<dyn Engine>,
    /// The last event it holds; 0 for none.
    pub through: u64,
    /// The time of the latest event that was dropped before this state began. Windows that reach back to it
    /// may lack events.
    pub lost: Option<i64>,
    /// Events stepped, and whether a snapshot was taken for the rest.
    pub stepped: usize,
    pub from_snapshot: bool,
    /// Why the snapshot that is there could not be used.
    pub passed_over: Option<String>,
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The state of a snapshot, and what it is of.
type Loaded = (Box<dyn Engine>, Head);

impl Reader {
    pub fn view(&self) -> Result<View, String> {
        let tx = self.db.begin_read().map_err(text)?;
        Ok(View { tx })
    }
}

impl View {
    pub(super) fn table<K: Key + 'static, V: Value + 'static>(
        &self,
        table: TableDefinition<'_, K, V>,
    ) -> Result<Option<ReadOnlyTable<K, V>>, String> {
        match self.tx.open_table(table) {
            Ok(table) => Ok(Some(table)),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(e) => Err(e.to_string()),
        }
    }

    /// The time of the latest event that was dropped.
    pub fn lost(&self) -> Result<Option<i64>, String> {
        let Some(lost) = self.table(LOST)? else {
            return Ok(None);
        };
        Ok(lost.get("time").map_err(text)?.map(|row| row.value()))
    }

    /// The oldest and the newest row.
    pub(super) fn ends(&self) -> Result<Option<(Row, Row)>, String> {
        let Some(events) = self.table(EVENTS)? else {
            return Ok(None);
        };
        let (first, last) = (events.first().map_err(text)?, events.last().map_err(text)?);
        let Some(((first, oldest), (last, newest))) = first.zip(last) else {
            return Ok(None);
        };
        let oldest = readable(first.value(), oldest.value())?;
        let newest = readable(last.value(), newest.value())?;
        let many = events.len().map_err(text)?;
        if newest.ordinal.checked_sub(oldest.ordinal) != many.checked_sub(1) {
            return Err("events are missing in its middle".into());
        }
        Ok(Some((oldest, newest)))
    }

    /// The numbers of the oldest and the newest event.
    pub fn bounds(&self) -> Result<Option<(u64, u64)>, String> {
        let ends = self.ends()?;
        Ok(ends.map(|(oldest, newest)| (oldest.first, newest.last())))
    }

    pub fn entry(&self, sequence: u64) -> Result<Option<Entry>, String> {
        let mut found = None;
        self.rows(sequence, |row| {
            found = row.numbered().find(|(number, _)| *number == sequence);
            Ok(false)
        })?;
        Ok(found.map(|(_, entry)| entry))
    }

    /// Every row from that of an event on, until told to stop.
    fn rows(
        &self,
        sequence: u64,
        mut take: impl FnMut(Row) -> Result<bool, String>,
    ) -> Result<(), String> {
        let Some(events) = self.table(EVENTS)? else {
            return Ok(());
        };
        let before = events.range(..=sequence).map_err(text)?.next_back();
        let first = match before.transpose().map_err(text)? {
            Some((first, _)) => first.value(),
            None => sequence,
        };
        for row in events.range(first..).map_err(text)? {
            let (first, bytes) = row.map_err(text)?;
            if !take(readable(first.value(), bytes.value())?)? {
                break;
            }
        }
        Ok(())
    }

    /// Every event from `first` on, in order.
    pub fn each(
        &self,
        first: u64,
        mut take: impl FnMut(u64, Entry) -> Result<(), String>,
    ) -> Result<(), String> {
        let (mut expected, mut time) = (None, i64::MIN);
        self.rows(first, |row| {
            for (sequence, entry) in row.numbered().skip_while(|(number, _)| *number < first) {
                if expected.is_some_and(|expected| expected != sequence) {
                    return Err(format!("events are missing before number {sequence}"));
                }
                if entry.time < time {
                    return Err("its times run backwards".into());
                }
                (expected, time) = (Some(sequence + 1), entry.time);
                take(sequence, entry)?;
            }
            Ok(true)
        })
    }

    /// Permitted requests without an outcome, the first of which is known.
    pub(super) fn open_from(&self, first: u64) -> Result<BTreeSet<u64>, String> {
        let mut open = BTreeSet::new();
        self.each(first, |sequence, entry| {
            if entry.permitted {
                open.insert(sequence);
            } else if entry.kind != "request"
                && let Ok(ended) = entry.request_id.parse()
            {
                open.remove(&ended);
            }
            Ok(())
        })?;
        Ok(open)
    }

    /// The same where format 2 kept them.
    pub(super) fn open(&self) -> Result<BTreeSet<u64>, String> {
        let Some(open) = self.table(OPEN)? else {
            return Ok(BTreeSet::new());
        };
        let rows = open.iter().map_err(text)?;
        rows.map(|row| row.map(|(sequence, _)| sequence.value()).map_err(text))
            .collect()
    }

    pub fn head(&self) -> Result<Option<Head>, String> {
        let Some(head) = self.table(HEAD)? else {
            return Ok(None);
        };
        let bytes = head.get("head").map_err(text)?;
        bytes
            .map(|bytes| open_seal(b"head", bytes.value()))
            .transpose()
    }

    fn saved(&self, head: &Head) -> Result<Vec<u8>, String> {
        let mut saved = Vec::new();
        let chunks = self.table(CHUNKS)?.ok_or("its parts are gone")?;
        for part in 0..head.chunks {
            let chunk = chunks.get((head.sequence, part)).map_err(text)?;
            let chunk = chunk.ok_or("a part of it is gone")?;
            saved.extend_from_slice(chunk.value());
        }
        if saved.len() as u64 != head.bytes || crc32fast::hash(&saved) != head.sum {
            return Err("its checksum is wrong".into());
        }
        Ok(saved)
    }

    /// The snapshot as an engine, if it is one of this policy and the events after it are there.
    fn restored(
        &self,
        compiled: &dyn Compiled,
        bounds: Option<(u64, u64)>,
    ) -> Result<Option<Loaded>, String> {
        let Some(head) = self.head()? else {
            return Ok(None);
        };
        let (first, last) = bounds.unwrap_or((1, 0));
        // Another policy's is no damage, nor one so old that the events after it have been dropped.
        if head.fingerprint != compiled.fingerprint() || first > head.sequence.saturating_add(1) {
            return Ok(None);
        }
        if head.sequence > last {
            return Err("it holds events that the history does not".into());
        }
        let saved = self.saved(&head)?;
        let engine = catch_unwind(AssertUnwindSafe(|| compiled.load(&saved)));
        let engine = engine.map_err(|_| "reading it broke down".to_owned())??;
        Ok(Some((engine, head)))
    }

    /// The state of this policy after the last event: from the snapshot and what came later, or else from every
    /// event that is kept.
    pub fn build(&self, compiled: &dyn Compiled, stop: &AtomicBool) -> Result<Built, String> {
        let bounds = self.bounds()?;
        let (restored, passed_over) = match self.restored(compiled, bounds) {
            Ok(restored) => (restored, None),
            Err(reason) => (None, Some(reason)),
        };
        let from_snapshot = restored.is_some();
        let (engine, through, lost) = match restored {
            Some((engine, head)) => (engine, head.sequence, head.lost),
            None => {
                let first = bounds.map_or(1, |(first, _)| first);
                (compiled.start(), first.saturating_sub(1), self.lost()?)
            }
        };
        let mut built = Built {
            engine,
            through,
            lost,
            stepped: 0,
            from_snapshot,
            passed_over,
        };
        built.follow(self, stop)?;
        Ok(built)
    }
}

impl Built {
    /// Steps the events that came since.
    pub fn follow(&mut self, view: &View, stop: &AtomicBool) -> Result<(), String> {
        view.each(self.through.saturating_add(1), |sequence, entry| {
            if stop.load(Ordering::Relaxed) {
                return Err("it was not waited for".into());
            }
            if sequence != self.through + 1 {
                return Err(format!("event {} is gone", self.through + 1));
            }
            step(&mut *self.engine, &entry)
                .map_err(|reason| format!("event {sequence} does not fit this policy: {reason}"))?;
            self.through = sequence;
            self.stepped += 1;
            Ok(())
        })
    }
}

/// A panic inside the policy is an answer like any other: a fault.
fn step(engine: &mut dyn Engine, entry: &Entry) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| engine.step(&entry.event())))
        .unwrap_or_else(|_| Err("the evaluation of the policy broke down".into()))
        .map(drop)
}

pub(super) fn readable(first: u64, bytes: &[u8]) -> Result<Row, String> {
    Row::read(first, bytes).map_err(|reason| format!("event {first} is not readable: {reason}"))
}
