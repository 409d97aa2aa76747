//! The durable history: what was asked and how it ended, in order, in one crash-safe file.
//!
//! ```text
//! events     number of the first event → Row: what happened in one transaction, with a checksum
//! keys       key → the answer it got; key_order: sequence number → key
//! lost       the time of the latest event that was dropped
//! head       what the snapshot is; chunks: (sequence number, part) → its bytes
//! ```
//!
//! A request says whether it was permitted, and the last event of each transaction which is the first of those
//! without an outcome. So a run that is killed between an effect and its outcome leaves a trace: the next open
//! ends it as indeterminate. That has no table of its own, because each page that a transaction touches is one more to
//! be synced.
//!
//! Events become durable before anything is answered. Snapshots and the dropping of old events do not: they
//! become so with the next events, and until then the file holds what they stand for.

use redb::backends::FileBackend;
use redb::{
    Database, Durability, ReadableTable, StorageBackend, Table, TableDefinition, WriteTransaction,
};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

mod entry;
mod unwritten;
mod view;

#[cfg(test)]
mod tests;

pub use entry::Entry;
use entry::{Filling, Row};
use unwritten::Unwritten;
pub use unwritten::{Answered, MOST_KEYS};
pub use view::{Built, Head, Reader, View};

const EVENTS: TableDefinition<u64, &[u8]> = TableDefinition::new("events");
/// Where format 2 kept the requests without an outcome.
const OPEN: TableDefinition<u64, ()> = TableDefinition::new("open");
const KEYS: TableDefinition<&str, &[u8]> = TableDefinition::new("keys");
const KEY_ORDER: TableDefinition<u64, &str> = TableDefinition::new("key_order");
const LOST: TableDefinition<&str, i64> = TableDefinition::new("lost");
const HEAD: TableDefinition<&str, &[u8]> = TableDefinition::new("head");
const CHUNKS: TableDefinition<(u64, u32), &[u8]> = TableDefinition::new("chunks");
const FORMAT: TableDefinition<&str, u64> = TableDefinition::new("format");
const VERSION: u64 = 4;
/// The oldest format that is taken up.
const OLDEST: u64 = 2;

/// Bytes of one part of a snapshot.
pub const CHUNK: usize = 64 * 1024;
/// The last moment that is a date: the end of the year 9999. No clock that says more is believed.
const LAST_MOMENT: i64 = 253_402_300_799;
/// Bytes of the file kept in memory. The newest pages are what a decision touches.
const CACHE: usize = 64 * 1024 * 1024;

/// Why a history cannot be used. A history that cannot be trusted is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("the box has run before, but its history {} is gone or empty; put it back, or delete the whole box directory to start over", .0.display())]
    Missing(PathBuf),
    #[error("the history {} cannot be read: {reason}", file.display())]
    Damaged { file: PathBuf, reason: String },
    #[error("the history {} was written by another version of box (format {found}, this is {VERSION}); go on with that version, or delete the whole box directory to start over", file.display())]
    OtherFormat { file: PathBuf, found: u64 },
    #[error("the history cannot be written: {0}")]
    Write(String),
}

pub struct History {
    db: Arc<Database>,
    growth: Growth,
    unwritten: Unwritten,
    /// The last event of the oldest row, and its time.
    oldest: Option<(u64, i64)>,
    /// There may be parts of snapshots that are no longer needed.
    stale: bool,
    /// The snapshot that is being stored.
    writing: Option<u64>,
}

/// What changes as events are appended.
struct Growth {
    next: u64,
    time: i64,
    /// Permitted requests without an outcome.
    open: BTreeSet<u64>,
    events: u64,
    bytes: u64,
}

impl Growth {
    fn appended(&mut self, time: i64) {
        self.next += 1;
        self.time = self.time.max(time);
        self.events += 1;
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The file as the layer that histories are written through. Tests have others, which break.
pub fn file(path: &Path) -> Result<FileBackend, HistoryError> {
    let damaged = |reason: String| HistoryError::Damaged {
        file: path.to_path_buf(),
        reason,
    };
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|e| damaged(e.to_string()))?;
    FileBackend::new(file).map_err(|e| damaged(e.to_string()))
}

impl History {
    /// Opens or creates a history and verifies its frame: pages, numbers, requests without an end. Each event
    /// is verified when it is read. `file` is its name in messages.
    pub fn open(storage: impl StorageBackend, file: &Path) -> Result<History, HistoryError> {
        let damaged = |reason: String| HistoryError::Damaged {
            file: file.to_path_buf(),
            reason,
        };
        let db = Database::builder()
            .set_cache_size(CACHE)
            .set_check_integrity_on_open(true)
            .create_with_backend(storage)
            .map_err(|e| damaged(e.to_string()))?;
        let reader = Reader { db: Arc::new(db) };
        let view = reader.view().map_err(damaged)?;
        let version = view
            .table(FORMAT)
            .and_then(|format| match format {
                Some(format) => Ok(format.get("history").map_err(text)?.map(|row| row.value())),
                None => Ok(None),
            })
            .map_err(damaged)?;
        if let Some(found) = version.filter(|found| !(OLDEST..=VERSION).contains(found)) {
            return Err(HistoryError::OtherFormat {
                file: file.to_path_buf(),
                found,
            });
        }
        let ends = view.ends().map_err(damaged)?;
        if version.is_none() && ends.is_some() {
            return Err(damaged("it has events but no format".into()));
        }
        let mut growth = Growth {
            next: 1,
            time: i64::MIN,
            open: BTreeSet::new(),
            events: 0,
            bytes: 0,
        };
        let (mut oldest, mut ordinal) = (None, 1);
        if let Some((first, newest)) = ends {
            growth.next = newest.last().saturating_add(1);
            growth.time = newest.time();
            ordinal = newest.ordinal.saturating_add(1);
            let open_from = newest.events.last().and_then(|entry| entry.open_from);
            if let Some(first) = open_from {
                growth.open = view.open_from(first).map_err(damaged)?;
            }
            oldest = Some((first.last(), first.time()));
        }
        if let Some(lost) = view.lost().map_err(damaged)? {
            growth.time = growth.time.max(lost);
        }
        if version == Some(OLDEST) {
            growth.open = view.open().map_err(damaged)?;
        }
        drop(view);
        let mut history = History {
            db: reader.db,
            growth,
            unwritten: Unwritten::new(ordinal),
            oldest,
            stale: true,
            writing: None,
        };
        if version != Some(VERSION) {
            history.begin().map_err(HistoryError::Write)?;
        }
        Ok(history)
    }

    /// Writes the format, and what of it an older one kept elsewhere.
    fn begin(&mut self) -> Result<(), String> {
        let tx = self.db.begin_write().map_err(text)?;
        {
            let mut format = tx.open_table(FORMAT).map_err(text)?;
            format.insert("history", VERSION).map_err(text)?;
            let mut events = tx.open_table(EVENTS).map_err(text)?;
            let newest = events.last().map_err(text)?;
            let newest = newest.map(|(sequence, _)| sequence.value());
            let mut changed = self.growth.open.clone();
            changed.extend(newest);
            for sequence in changed {
                let bytes = events.get(sequence).map_err(text)?;
                let row = bytes.map(|bytes| view::readable(sequence, bytes.value()));
                let Some(mut row) = row.transpose()? else {
                    return Err(format!("request {sequence} has no end and is gone"));
                };
                let mut filling = Filling::new(row.first, row.ordinal, row.time())?;
                for entry in &mut row.events {
                    entry.permitted = self.growth.open.contains(&sequence);
                    if Some(sequence) == newest {
                        entry.open_from = self.growth.open.first().copied();
                    }
                    filling.push(entry)?;
                }
                let bytes = filling.seal();
                events.insert(sequence, bytes.as_slice()).map_err(text)?;
            }
            tx.delete_table(OPEN).map_err(text)?;
        }
        tx.commit().map_err(text)
    }

    pub fn reader(&self) -> Reader {
        Reader {
            db: Arc::clone(&self.db),
        }
    }

    /// The time to stamp on an event that happens at `now` by the wall clock: never before an earlier event.
    pub fn stamp(&self, now: i64) -> Result<i64, String> {
        if now > LAST_MOMENT {
            return Err(format!(
                "the clock cannot be right: it says {now} seconds after 1970"
            ));
        }
        Ok(self.growth.time.max(now))
    }

    /// The time of the last event.
    pub fn time(&self) -> i64 {
        self.growth.time
    }

    /// The number the next event gets.
    pub fn next(&self) -> u64 {
        self.growth.next
    }

    /// Numbers of permitted requests without an outcome.
    pub fn open_requests(&self) -> impl Iterator<Item = u64> {
        self.growth.open.iter().copied()
    }

    /// Events and bytes appended since this was opened.
    pub fn appended(&self) -> (u64, u64) {
        (self.growth.events, self.growth.bytes)
    }

    /// Takes an event in. It is durable, with all others, after `commit`.
    pub fn append(&mut self, entry: Entry) -> Result<u64, String> {
        let (sequence, time) = (self.growth.next, entry.time);
        self.growth.appended(time);
        self.oldest.get_or_insert((sequence, time));
        let size = self.unwritten.append(sequence, entry)?;
        self.growth.bytes += size as u64;
        Ok(sequence)
    }

    /// Notes that the last event is a request that is permitted, and its outcome not known.
    pub fn leave_open(&mut self) {
        self.growth.open.extend(self.unwritten.permit());
    }

    /// Whether the request had not ended yet.
    pub fn close(&mut self, sequence: u64) -> bool {
        self.growth.open.remove(&sequence)
    }

    /// What the request with this key was answered.
    pub fn answered(&self, key: &str) -> Result<Option<Answered>, String> {
        if let Some(sealed) = self.unwritten.answer(key) {
            return unwritten::answered(key, sealed).map(Some);
        }
        let Some(keys) = self.reader().view()?.table(KEYS)? else {
            return Ok(None);
        };
        let sealed = keys.get(key).map_err(text)?;
        sealed
            .map(|sealed| unwritten::answered(key, sealed.value()))
            .transpose()
    }

    /// Keeps an answer, together with the events.
    pub fn keep_answer(&mut self, key: &str, answered: &Answered) -> Result<(), String> {
        self.unwritten.keep_answer(key, answered)
    }

    /// Whether there are events that are not durable yet.
    pub fn unwritten(&self) -> bool {
        self.unwritten.first().is_some()
    }

    /// One transaction: everything taken in becomes durable together, or not at all. After an error nothing
    /// more can be written.
    pub fn commit(&mut self) -> Result<(), String> {
        if !self.unwritten() {
            return Ok(());
        }
        let open_from = self.growth.open.first().copied();
        self.growth.bytes += self.unwritten.end(open_from)? as u64;
        let tx = self.db.begin_write().map_err(text)?;
        self.unwritten.write(&tx)?;
        tx.commit().map_err(text)
    }

    /// A transaction whose loss does no harm: it becomes durable with the next events.
    fn tidily(
        &self,
        work: impl FnOnce(&WriteTransaction) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut tx = self.db.begin_write().map_err(text)?;
        tx.set_durability(Durability::None).map_err(text)?;
        work(&tx)?;
        tx.commit().map_err(text)
    }

    /// Whether there is something to drop, given how many seconds are kept.
    pub fn untidy(&self, keep: i64) -> bool {
        self.stale || self.droppable(keep).is_some()
    }

    /// Before which event old ones may go, if the oldest are older than what is kept and no request without an end
    /// stands before or at them.
    fn droppable(&self, keep: i64) -> Option<u64> {
        let (sequence, time) = self.oldest?;
        let old = time < self.growth.time.saturating_sub(keep);
        let bound = self.growth.open.first().copied();
        // The last event that is written always stays: numbers go on from it.
        let behind = self.unwritten.first().unwrap_or(self.growth.next);
        let bound = bound.unwrap_or(u64::MAX).min(behind.saturating_sub(1));
        (old && sequence < bound).then_some(bound)
    }

    /// Drops about `rows` old events and some parts of old snapshots.
    pub fn tidy(&mut self, keep: i64, rows: usize) -> Result<(), String> {
        let bound = self.droppable(keep);
        let since = self.growth.time.saturating_sub(keep);
        let (mut oldest, mut stale) = (self.oldest, self.stale);
        self.tidily(|tx| {
            if let Some(bound) = bound {
                let mut events = tx.open_table(EVENTS).map_err(text)?;
                let (mut lost, mut dropped) = (None, 0);
                oldest = loop {
                    let Some(row) = oldest_row(&events)? else {
                        break None;
                    };
                    let (last, time) = (row.last(), row.time());
                    if time >= since || last >= bound || dropped >= rows {
                        break Some((last, time));
                    }
                    events.remove(row.first).map_err(text)?;
                    lost = Some(time);
                    dropped += row.events.len();
                };
                if let Some(time) = lost {
                    let mut table = tx.open_table(LOST).map_err(text)?;
                    table.insert("time", time).map_err(text)?;
                }
            }
            if stale {
                stale = drop_chunks(tx, self.writing, rows / 16 + 1)?;
            }
            Ok(())
        })?;
        (self.oldest, self.stale) = (oldest, stale);
        Ok(())
    }

    /// Stores one part of a snapshot; with the last one it takes the place of the one before.
    pub fn put_snapshot(&mut self, head: &Head, part: u32, bytes: &[u8]) -> Result<(), String> {
        let last = part.saturating_add(1) == head.chunks;
        self.tidily(|tx| {
            let mut chunks = tx.open_table(CHUNKS).map_err(text)?;
            chunks.insert((head.sequence, part), bytes).map_err(text)?;
            if last {
                let sealed = entry::seal(b"head", head)?;
                let mut table = tx.open_table(HEAD).map_err(text)?;
                table.insert("head", sealed.as_slice()).map_err(text)?;
            }
            Ok(())
        })?;
        self.stale |= last;
        self.writing = (!last).then_some(head.sequence);
        Ok(())
    }
}

fn oldest_row(events: &Table<'_, u64, &'static [u8]>) -> Result<Option<Row>, String> {
    let row = events.first().map_err(text)?;
    row.map(|(first, bytes)| view::readable(first.value(), bytes.value()))
        .transpose()
}

/// Removes parts that are not the snapshot's; whether there may be more.
fn drop_chunks(tx: &WriteTransaction, writing: Option<u64>, most: usize) -> Result<bool, String> {
    let head = tx.open_table(HEAD).map_err(text)?;
    let current = match head.get("head").map_err(text)? {
        Some(bytes) => entry::open_seal::<Head>(b"head", bytes.value())
            .ok()
            .map(|head| head.sequence),
        None => None,
    };
    let mut chunks = tx.open_table(CHUNKS).map_err(text)?;
    let mut stale = Vec::new();
    for row in chunks.iter().map_err(text)? {
        let key = row.map_err(text)?.0.value();
        if Some(key.0) != current && Some(key.0) != writing {
            stale.push(key);
        }
        if stale.len() > most {
            break;
        }
    }
    for key in stale.iter().take(most) {
        chunks.remove(*key).map_err(text)?;
    }
    Ok(stale.len() > most)
}
