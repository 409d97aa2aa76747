//! Opening: the lock, the history, the state of the policy, and the ends that an earlier run left untold.

use super::inbox::Inbox;
use super::judge::{Live, Waiting};
use super::writer::{Pace, Writer};
use super::{Authority, Recovered, outcome_entry, unknown_end};
use crate::clock::Clock;
use crate::engine::PolicySet;
use crate::history::{self, Entry, History, HistoryError};
use crate::records::Records;
use redb::StorageBackend;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// Why a box cannot open its authority.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("this box is already running: {} holds the history in {}", holder(*pid), dir.display())]
    AlreadyRunning { dir: PathBuf, pid: Option<u32> },
    #[error("{} cannot be used: {reason}", path.display())]
    Directory { path: PathBuf, reason: String },
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error("the history in {} cannot be followed: {reason}", dir.display())]
    Replay { dir: PathBuf, reason: String },
    #[error("the decision records cannot be written: {0}")]
    Records(std::io::Error),
}

fn holder(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!("process {pid}"),
        None => "another process".into(),
    }
}

impl Authority {
    /// Opens the history under `dir`, which must exist, and brings the policy up to its last event.
    pub fn open(
        dir: &Path,
        policy: PolicySet,
        clock: Arc<dyn Clock>,
        records: Records,
    ) -> Result<Authority, OpenError> {
        let lock = lock(dir)?;
        let file = dir.join("history.redb");
        let ran_before = dir.join("ran");
        let empty = match std::fs::metadata(&file) {
            Ok(found) => found.len() == 0,
            Err(e) if e.kind() == ErrorKind::NotFound => true,
            Err(e) => return Err(unusable(&file, &e)),
        };
        if empty && ran_before.exists() {
            return Err(HistoryError::Missing(file).into());
        }
        let history = History::open(history::file(&file)?, &file)?;
        File::create(&ran_before)
            .and_then(|mark| mark.sync_all())
            .map_err(|e| unusable(&ran_before, &e))?;
        let place = Place {
            dir: dir.to_path_buf(),
            lock: Some(lock),
        };
        start(history, place, policy, clock, records, Pace::default())
    }

    /// The same over another layer than a file. Who may open it, and whether it was there before, is the
    /// caller's to know.
    pub fn over(
        storage: impl StorageBackend,
        policy: PolicySet,
        clock: Arc<dyn Clock>,
        records: Records,
    ) -> Result<Authority, OpenError> {
        Authority::paced(storage, policy, clock, records, Pace::default())
    }

    pub(super) fn paced(
        storage: impl StorageBackend,
        policy: PolicySet,
        clock: Arc<dyn Clock>,
        records: Records,
        pace: Pace,
    ) -> Result<Authority, OpenError> {
        let place = Place {
            dir: PathBuf::from("storage"),
            lock: None,
        };
        let history = History::open(storage, &place.dir)?;
        start(history, place, policy, clock, records, pace)
    }
}

struct Place {
    /// As messages name it.
    dir: PathBuf,
    lock: Option<File>,
}

fn start(
    mut history: History,
    place: Place,
    mut policy: PolicySet,
    clock: Arc<dyn Clock>,
    mut records: Records,
    pace: Pace,
) -> Result<Authority, OpenError> {
    let Place { dir, lock } = place;
    let replay = |reason: String| OpenError::Replay {
        dir: dir.clone(),
        reason,
    };
    let reader = history.reader();
    let view = reader.view().map_err(replay)?;
    let built = view
        .build(&*policy.compiled, &AtomicBool::new(false))
        .map_err(replay)?;
    let (stepped, passed_over) = (built.stepped, built.passed_over.clone());
    let snapshot = built.from_snapshot.then(|| built.through - stepped as u64);
    records.quote(std::mem::take(&mut policy.text));
    let mut live = Live::new(policy, built);
    let events = match view.bounds().map_err(replay)? {
        Some((first, last)) => usize::try_from(last - first + 1).unwrap_or(usize::MAX),
        None => 0,
    };
    let mut unfinished = Vec::new();
    for sequence in history.open_requests() {
        let request = view.entry(sequence).map_err(replay)?;
        let gone = || replay(format!("request {sequence} has no end and is gone"));
        unfinished.push((sequence, request.ok_or_else(gone)?));
    }
    drop(view);
    let now = clock.now();
    end_unfinished(&mut history, &mut live, &unfinished, now).map_err(|failed| match failed {
        Ended::Write(reason) => HistoryError::Write(reason).into(),
        Ended::Step(reason) => replay(reason),
    })?;
    let waiting: Vec<Waiting> = live.waiting(history.time().max(now));
    let recovered = Recovered {
        events,
        unfinished: unfinished.len(),
        stepped,
        passed_over,
        waiting,
    };
    records
        .control(now, "box_started", "ok", &dir.to_string_lossy())
        .and_then(|()| match &recovered.passed_over {
            Some(reason) => records.control(now, "snapshot_passed_over", "refused", reason),
            None => Ok(()),
        })
        .map_err(OpenError::Records)?;
    let inbox = Inbox::new(Writer::new(
        history, live, clock, records, lock, pace, snapshot,
    ));
    let shared = Arc::clone(&inbox);
    let thread = std::thread::Builder::new()
        .name("authority".into())
        .spawn(move || shared.run())
        .map_err(|e| unusable(&dir, &e))?;
    Ok(Authority {
        inbox,
        thread: Mutex::new(Some(thread)),
        reader: Mutex::new(Some(reader)),
        recovered,
    })
}

fn unusable(path: &Path, error: &std::io::Error) -> OpenError {
    OpenError::Directory {
        path: path.to_path_buf(),
        reason: error.to_string(),
    }
}

/// Holds the directory for this process, and says in the file which one that is.
fn lock(dir: &Path) -> Result<File, OpenError> {
    let path = dir.join("lock");
    let mut file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&path)
        .map_err(|e| unusable(&path, &e))?;
    match file.try_lock() {
        Ok(()) => {
            // For people only: a number that cannot be written is no reason not to run.
            let _ = file
                .set_len(0)
                .and_then(|()| write!(file, "{}", std::process::id()));
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let read = file.take(16).read_to_string(&mut text);
            Err(OpenError::AlreadyRunning {
                dir: dir.to_path_buf(),
                pid: read.ok().and_then(|_| text.trim().parse().ok()),
            })
        }
        Err(TryLockError::Error(e)) => Err(unusable(&path, &e)),
    }
}

enum Ended {
    Write(String),
    Step(String),
}

/// Requests that an earlier run permitted and did not see end may have happened.
fn end_unfinished(
    history: &mut History,
    live: &mut Live,
    unfinished: &[(u64, Entry)],
    now: i64,
) -> Result<(), Ended> {
    if unfinished.is_empty() {
        return Ok(());
    }
    let time = history.stamp(now).map_err(Ended::Write)?;
    for (sequence, request) in unfinished {
        let outcome = unknown_end(&request.action);
        let (action, id) = (request.action.clone(), request.request_id.clone());
        let end = outcome_entry(time, action, id, request.input.clone(), &outcome);
        live.step(&end.event()).map_err(Ended::Step)?;
        history.append(end).map_err(Ended::Write)?;
        history.close(*sequence);
    }
    history.commit().map_err(Ended::Write)
}
