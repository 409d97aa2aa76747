//! Snapshots, made beside the writer: from the snapshot before and the events since, never from the state
//! that decides. So no decision waits for one, and what a restart will do has been done once already.

use super::inbox::Inbox;
use crate::engine::Compiled;
use crate::history::{CHUNK, Head, Reader};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::JoinHandle;

/// When a snapshot is due: after so many events or bytes, and not before a quarter of its own size was appended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub events: u64,
    pub bytes: u64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            events: 10_000,
            bytes: 16 * 1024 * 1024,
        }
    }
}

pub(super) struct Snapshots {
    pace: Pace,
    /// What had been appended when the last one was begun, and how large it was.
    taken_at: (u64, u64),
    size: u64,
    /// One is due whatever was appended.
    overdue: bool,
    making: Option<Making>,
    made: Option<Made>,
    pub failed: Option<String>,
}

struct Making {
    stop: Arc<AtomicBool>,
    result: Receiver<Result<Made, String>>,
    thread: JoinHandle<()>,
}

struct Made {
    head: Head,
    saved: Vec<u8>,
    next: u32,
}

impl Snapshots {
    /// `behind` is how many events there are that no snapshot holds.
    pub fn new(pace: Pace, behind: u64) -> Snapshots {
        Snapshots {
            pace,
            taken_at: (0, 0),
            size: 0,
            overdue: behind >= pace.events,
            making: None,
            made: None,
            failed: None,
        }
    }

    /// The one there is does not fit the policy any more.
    pub fn hurry(&mut self) {
        self.abandon();
        self.overdue = true;
    }

    fn due(&self, (events, bytes): (u64, u64)) -> bool {
        let events = events - self.taken_at.0;
        let bytes = bytes - self.taken_at.1;
        let enough = events >= self.pace.events || bytes >= self.pace.bytes;
        self.overdue || (enough && bytes >= self.size / 4)
    }

    /// Whether there is a part to store, or one to begin.
    pub fn waiting(&mut self, appended: (u64, u64)) -> bool {
        self.collect();
        self.made.is_some() || (self.making.is_none() && self.due(appended))
    }

    /// Begins one if one is due.
    pub fn begin(
        &mut self,
        appended: (u64, u64),
        reader: Reader,
        compiled: Arc<dyn Compiled>,
        inbox: Arc<Inbox>,
    ) {
        if self.making.is_some() || self.made.is_some() || !self.due(appended) {
            return;
        }
        self.taken_at = appended;
        self.overdue = false;
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, result) = channel();
        let stopped = Arc::clone(&stop);
        let made = std::thread::Builder::new()
            .name("snapshot".into())
            .spawn(move || {
                let made = make(&reader, &*compiled, &stopped);
                // Before anybody is told: who is told may close the file.
                drop(reader);
                let _ = sender.send(made);
                inbox.look();
            });
        match made {
            Ok(thread) => {
                self.making = Some(Making {
                    stop,
                    result,
                    thread,
                });
            }
            Err(e) => self.failed = Some(e.to_string()),
        }
    }

    fn collect(&mut self) {
        let Some(making) = &self.making else { return };
        match making.result.try_recv() {
            Ok(Ok(made)) => {
                self.size = made.head.bytes;
                self.made = Some(made);
            }
            Ok(Err(reason)) => self.failed = Some(reason),
            Err(TryRecvError::Empty) => return,
            Err(TryRecvError::Disconnected) => self.failed = Some("making it broke down".into()),
        }
        if let Some(making) = self.making.take() {
            let _ = making.thread.join();
        }
    }

    /// The next part to be stored, if one was made.
    pub fn next_part(&mut self) -> Option<(&Head, u32, &[u8])> {
        let made = self.made.as_mut()?;
        let part = made.next;
        made.next += 1;
        let start = CHUNK * part as usize;
        let end = made.saved.len().min(start + CHUNK);
        Some((
            &made.head,
            part,
            made.saved.get(start..end).unwrap_or_default(),
        ))
    }

    /// Forgets one that is stored whole.
    pub fn put(&mut self) {
        if self
            .made
            .as_ref()
            .is_some_and(|made| made.next >= made.head.chunks)
        {
            self.made = None;
        }
    }

    /// Ends the thread, if there is one, and waits for that.
    pub fn abandon(&mut self) {
        self.made = None;
        if let Some(making) = self.making.take() {
            making.stop.store(true, Ordering::Relaxed);
            let _ = making.thread.join();
        }
    }
}

fn make(reader: &Reader, compiled: &dyn Compiled, stop: &AtomicBool) -> Result<Made, String> {
    let built = reader.view()?.build(compiled, stop)?;
    let saved = built.engine.save().ok_or("this policy cannot be stored")?;
    let parts = saved.len().div_ceil(CHUNK).max(1);
    Ok(Made {
        head: Head {
            fingerprint: compiled.fingerprint(),
            sequence: built.through,
            lost: built.lost,
            chunks: u32::try_from(parts).map_err(|_| "it is too large")?,
            bytes: saved.len() as u64,
            sum: crc32fast::hash(&saved),
        },
        saved,
        next: 0,
    })
}
