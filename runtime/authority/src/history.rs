//! The durable history: what was asked and how it ended, in order, in one crash-safe file.
//!
//! ```text
//! events   sequence number → Entry, gapless
//! open     sequence numbers of permitted requests whose outcome is not known yet
//! ```
//!
//! An entry of `open` is written in the transaction that makes its request durable, so a run that is
//! killed between an effect and its outcome leaves a trace: the next open ends it as indeterminate.

use dogwood_compiler::event::{Event, RequestPart};
use dogwood_compiler::value::{EntityUid, Record, Value};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableError};
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::path::{Path, PathBuf};

const EVENTS: TableDefinition<u64, &[u8]> = TableDefinition::new("events");
const OPEN: TableDefinition<u64, ()> = TableDefinition::new("open");
const FORMAT: TableDefinition<&str, u64> = TableDefinition::new("format");
const VERSION: u64 = 1;

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

/// Why a history cannot be used. A history that cannot be trusted is left as it is.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    #[error("the box has run before, but its history {} is gone or empty; put it back, or delete the whole box directory to start over", .0.display())]
    Missing(PathBuf),
    #[error("the history {} cannot be read: {reason}", file.display())]
    Damaged { file: PathBuf, reason: String },
    #[error("the history {} was written by another version of box (format {found}, this is {VERSION})", file.display())]
    OtherFormat { file: PathBuf, found: u64 },
    #[error("the history cannot be written: {0}")]
    Write(String),
}

pub struct History {
    db: Database,
    next: u64,
    time: i64,
}

/// What [`History::open`] found.
pub struct Found {
    pub history: History,
    /// Every kept event, oldest first.
    pub entries: Vec<Entry>,
    /// Permitted requests without an outcome.
    pub unfinished: Vec<(u64, Entry)>,
}

impl History {
    /// Opens or creates `file`, verifies all of it, and drops what is older than `horizon` seconds
    /// before the last event.
    pub fn open(file: &Path, horizon: i64) -> Result<Found, HistoryError> {
        let damaged = |reason: String| HistoryError::Damaged {
            file: file.to_path_buf(),
            reason,
        };
        let db = Database::builder()
            .set_check_integrity_on_open(true)
            .create(file)
            .map_err(|e| damaged(e.to_string()))?;
        let version = stored_version(&db).map_err(damaged)?;
        if let Some(found) = version.filter(|found| *found != VERSION) {
            return Err(HistoryError::OtherFormat {
                file: file.to_path_buf(),
                found,
            });
        }
        let (mut rows, open) = read_all(&db).map_err(damaged)?;
        if version.is_none() && !rows.is_empty() {
            return Err(damaged("it has events but no format".into()));
        }
        if let Some(gap) = rows
            .windows(2)
            .find(|pair| matches!(pair, [(a, _), (b, _)] if a + 1 != *b))
        {
            let after = gap.first().map_or(0, |(seq, _)| *seq);
            return Err(damaged(format!("events are missing after number {after}")));
        }
        if rows
            .windows(2)
            .any(|pair| matches!(pair, [(_, a), (_, b)] if a.time > b.time))
        {
            return Err(damaged("its times run backwards".into()));
        }
        let next = rows.last().map_or(1, |(seq, _)| seq + 1);
        let time = rows.last().map_or(i64::MIN, |(_, entry)| entry.time);
        let oldest = time.saturating_sub(horizon);
        let unfinished: Vec<(u64, Entry)> = rows
            .iter()
            .filter(|(seq, _)| open.binary_search(seq).is_ok())
            .cloned()
            .collect();
        if unfinished.len() != open.len() {
            return Err(damaged("a request it calls unfinished is missing".into()));
        }
        // An unfinished request is kept with everything after it: its outcome must find it.
        let first_kept = rows
            .iter()
            .find(|(seq, entry)| entry.time >= oldest || open.binary_search(seq).is_ok())
            .map_or(next, |(seq, _)| *seq);
        rows.retain(|(seq, _)| *seq >= first_kept);
        prune(&db, first_kept.min(next.saturating_sub(1))).map_err(HistoryError::Write)?;
        let entries = rows.into_iter().map(|(_, entry)| entry).collect();
        Ok(Found {
            history: History { db, next, time },
            entries,
            unfinished,
        })
    }

    /// The time to stamp on an event that happens at `now` by the wall clock: never before an earlier event.
    pub fn stamp(&mut self, now: i64) -> i64 {
        self.time = self.time.max(now);
        self.time
    }

    /// The number the next event gets.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// One transaction: everything `fill` appends becomes durable together, or not at all.
    pub fn transact(
        &mut self,
        fill: impl FnOnce(&mut Batch<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        let text = |e: &dyn std::fmt::Display| e.to_string();
        let tx = self.db.begin_write().map_err(|e| text(&e))?;
        {
            let events = tx.open_table(EVENTS).map_err(|e| text(&e))?;
            let open = tx.open_table(OPEN).map_err(|e| text(&e))?;
            let mut batch = Batch {
                events,
                open,
                next: &mut self.next,
            };
            fill(&mut batch)?;
        }
        tx.commit().map_err(|e| text(&e))
    }
}

/// A transaction being filled.
pub struct Batch<'h> {
    events: redb::Table<'h, u64, &'static [u8]>,
    open: redb::Table<'h, u64, ()>,
    next: &'h mut u64,
}

impl Batch<'_> {
    /// The number the next event gets.
    pub fn next(&self) -> u64 {
        *self.next
    }

    pub fn append(&mut self, entry: &Entry) -> Result<u64, String> {
        let bytes = serde_json::to_vec(entry).map_err(|e| e.to_string())?;
        let seq = *self.next;
        self.events
            .insert(seq, bytes.as_slice())
            .map_err(|e| e.to_string())?;
        *self.next += 1;
        Ok(seq)
    }

    /// Notes that the request `seq` is permitted and its outcome not known.
    pub fn leave_open(&mut self, seq: u64) -> Result<(), String> {
        self.open
            .insert(seq, ())
            .map(drop)
            .map_err(|e| e.to_string())
    }

    pub fn close(&mut self, seq: u64) -> Result<(), String> {
        self.open.remove(seq).map(drop).map_err(|e| e.to_string())
    }
}

fn stored_version(db: &Database) -> Result<Option<u64>, String> {
    let tx = db.begin_read().map_err(|e| e.to_string())?;
    match tx.open_table(FORMAT) {
        Ok(table) => Ok(table
            .get("history")
            .map_err(|e| e.to_string())?
            .map(|row| row.value())),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(e) => Err(e.to_string()),
    }
}

type Rows = (Vec<(u64, Entry)>, Vec<u64>);

fn read_all(db: &Database) -> Result<Rows, String> {
    let tx = db.begin_read().map_err(|e| e.to_string())?;
    let mut rows = Vec::new();
    match tx.open_table(EVENTS) {
        Ok(table) => {
            for row in table.iter().map_err(|e| e.to_string())? {
                let (seq, bytes) = row.map_err(|e| e.to_string())?;
                let entry = serde_json::from_slice(bytes.value())
                    .map_err(|e| format!("event {} is not readable: {e}", seq.value()))?;
                rows.push((seq.value(), entry));
            }
        }
        Err(TableError::TableDoesNotExist(_)) => {}
        Err(e) => return Err(e.to_string()),
    }
    let mut open = Vec::new();
    match tx.open_table(OPEN) {
        Ok(table) => {
            for row in table.iter().map_err(|e| e.to_string())? {
                open.push(row.map_err(|e| e.to_string())?.0.value());
            }
        }
        Err(TableError::TableDoesNotExist(_)) => {}
        Err(e) => return Err(e.to_string()),
    }
    Ok((rows, open))
}

/// Writes the format and deletes events before `first`. The last event always stays: time and numbers
/// go on from it.
fn prune(db: &Database, first: u64) -> Result<(), String> {
    let tx = db.begin_write().map_err(|e| e.to_string())?;
    {
        let mut format = tx.open_table(FORMAT).map_err(|e| e.to_string())?;
        format
            .insert("history", VERSION)
            .map_err(|e| e.to_string())?;
        let mut events = tx.open_table(EVENTS).map_err(|e| e.to_string())?;
        events
            .retain_in(..first, |_, _| false)
            .map_err(|e| e.to_string())?;
        tx.open_table(OPEN).map_err(|e| e.to_string())?;
    }
    tx.commit().map_err(|e| e.to_string())
}
