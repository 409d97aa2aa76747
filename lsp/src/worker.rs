//! What takes longer than typing: replaying a trace, running tests. One thread; its answers carry the revision
//! they are about, and whoever asked drops those that came too late.

use crate::feature::lens::{self, TestRun, Verdicts};
use crate::snapshot::Snapshot;
use crossbeam_channel::{Receiver, Sender, unbounded};
use lsp_server::RequestId;
use std::path::PathBuf;
use std::thread::JoinHandle;

pub enum Job {
    /// Replay the trace beside a policy.
    Verdicts {
        revision: u64,
        snapshot: Box<Snapshot>,
    },
    /// Run tests, and answer a request with what came of it.
    Tests {
        revision: u64,
        snapshot: Box<Snapshot>,
        only: Option<String>,
        request: RequestId,
    },
}

pub enum Done {
    Verdicts {
        revision: u64,
        path: PathBuf,
        verdicts: Option<Verdicts>,
    },
    Tests {
        revision: u64,
        path: PathBuf,
        /// Only some of the tests ran.
        partial: bool,
        runs: Vec<TestRun>,
        request: RequestId,
    },
}

pub struct Worker {
    jobs: Option<Sender<Job>>,
    pub done: Receiver<Done>,
    thread: Option<JoinHandle<()>>,
}

/// Trees are up to 200 levels deep, and walked by recursion.
const STACK: usize = 16 * 1024 * 1024;

impl Worker {
    pub fn start() -> std::io::Result<Worker> {
        let (jobs, waiting) = unbounded();
        let (answers, done) = unbounded();
        let thread = std::thread::Builder::new()
            .name("analysis".to_owned())
            .stack_size(STACK)
            .spawn(move || work(&waiting, &answers))?;
        Ok(Worker {
            jobs: Some(jobs),
            done,
            thread: Some(thread),
        })
    }

    pub fn ask(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // Fails only where the thread is gone, and then there is nobody to tell.
            _ = jobs.send(job);
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

fn work(waiting: &Receiver<Job>, answers: &Sender<Done>) {
    while let Ok(first) = waiting.recv() {
        let mut jobs = vec![first];
        jobs.extend(waiting.try_iter());
        // Of several replays of one policy only the last is still wanted.
        let superseded = |at: usize, path: &PathBuf| {
            jobs.iter().skip(at + 1).any(|later| match later {
                Job::Verdicts { snapshot, .. } => snapshot.document.path == *path,
                Job::Tests { .. } => false,
            })
        };
        let wanted: Vec<bool> = jobs
            .iter()
            .enumerate()
            .map(|(at, job)| match job {
                Job::Verdicts { snapshot, .. } => !superseded(at, &snapshot.document.path),
                Job::Tests { .. } => true,
            })
            .collect();
        for (job, wanted) in jobs.into_iter().zip(wanted) {
            if wanted && answers.send(run(job)).is_err() {
                return;
            }
        }
    }
}

fn run(job: Job) -> Done {
    match job {
        Job::Verdicts { revision, snapshot } => Done::Verdicts {
            revision,
            path: snapshot.document.path.clone(),
            verdicts: lens::verdicts(&snapshot),
        },
        Job::Tests {
            revision,
            snapshot,
            only,
            request,
        } => Done::Tests {
            revision,
            path: snapshot.document.path.clone(),
            partial: only.is_some(),
            runs: lens::run(&snapshot, only.as_deref()),
            request,
        },
    }
}
