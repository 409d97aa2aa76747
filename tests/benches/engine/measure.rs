//! One cell of the table: an engine, a workload, a length of history.

use crate::ALLOCATED;
use crate::ours::Ours;
use crate::peer::{self, Peer};
use crate::workload::Workload;
use dogwood_compiler::event::Event;
use std::time::{Duration, Instant};

/// Either engine.
pub trait Engine: Sized {
    /// An event as the engine takes it.
    type Event;
    fn new(workload: &Workload, history: usize) -> Result<Self, String>;
    fn event(event: Event) -> Self::Event;
    fn step(&mut self, event: &Self::Event) -> Option<bool>;
}

impl Engine for Ours {
    type Event = Event;

    fn new(workload: &Workload, history: usize) -> Result<Ours, String> {
        Ours::new(workload, history)
    }

    fn event(event: Event) -> Event {
        event
    }

    fn step(&mut self, event: &Event) -> Option<bool> {
        Ours::step(self, event)
    }
}

impl Engine for Peer {
    type Event = dogwood_language::Event;

    fn new(workload: &Workload, history: usize) -> Result<Peer, String> {
        Peer::new(workload, history)
    }

    fn event(event: Event) -> dogwood_language::Event {
        peer::event(&event)
    }

    fn step(&mut self, event: &dogwood_language::Event) -> Option<bool> {
        Peer::step(self, event)
    }
}

/// How long a cell may take.
#[derive(Clone, Copy)]
pub struct Budget {
    pub setup: Duration,
    pub measured: Duration,
    /// Steps of the measured part at most.
    pub steps: usize,
}

pub struct Measured {
    /// Of the decisions.
    pub p50: Duration,
    pub p99: Duration,
    /// Of a decision together with the event of the past before it, per event.
    pub mean: Duration,
    /// What the history takes.
    pub bytes: u64,
    pub verdicts: Vec<bool>,
}

impl Measured {
    pub fn events_per_second(&self) -> f64 {
        1.0 / self.mean.as_secs_f64().max(1e-9)
    }
}

/// Fills the history, then decides. Events are made outside the measured time, one at a time.
pub fn measure<E: Engine>(
    workload: &Workload,
    history: usize,
    budget: Budget,
) -> Result<Measured, String> {
    let begun = Instant::now();
    let mut engine = E::new(workload, history)?;
    if begun.elapsed() > budget.setup {
        return Err(format!("{:.0?} to load the rules", begun.elapsed()));
    }
    let begun = Instant::now();
    let before = ALLOCATED.allocated();
    for n in 0..history {
        engine.step(&E::event((workload.event)(n, false, history)));
        if n % 64 == 0 && begun.elapsed() > budget.setup {
            let part = 100 * n / history;
            return Err(format!("{part} % of the history in {:.0?}", budget.setup));
        }
    }
    let bytes = ALLOCATED.allocated().saturating_sub(before) as u64;
    let mut decisions = Vec::new();
    let mut verdicts = Vec::new();
    let mut total = Duration::ZERO;
    let begun = Instant::now();
    for n in history..history.saturating_add(budget.steps) {
        let past = E::event((workload.event)(n, false, history));
        let asked = E::event((workload.event)(n, true, history));
        let start = Instant::now();
        engine.step(&past);
        let between = Instant::now();
        let verdict = engine.step(&asked);
        let end = Instant::now();
        total += end - start;
        decisions.push(end - between);
        match verdict {
            Some(verdict) => verdicts.push(verdict),
            None => return Err("a request without a verdict".to_owned()),
        }
        if begun.elapsed() > budget.measured {
            break;
        }
    }
    decisions.sort();
    let at = |part: usize| {
        let last = decisions.len().saturating_sub(1);
        decisions
            .get((decisions.len() * part / 100).min(last))
            .copied()
            .unwrap_or_default()
    };
    Ok(Measured {
        p50: at(50),
        p99: at(99),
        mean: total / (2 * decisions.len()).max(1) as u32,
        bytes,
        verdicts,
    })
}

/// Panics unless both decided alike, as far as the shorter of them went. `mixed` asks for both verdicts too.
pub fn agree(name: &str, ours: &[bool], peers: &[bool], mixed: bool) {
    let differ = ours.iter().zip(peers).position(|(a, b)| a != b);
    if let Some(n) = differ {
        panic!("{name}: the verdicts differ at decision {n}");
    }
    let allowed = peers.iter().filter(|allowed| **allowed).count();
    let share = allowed as f64 / peers.len().max(1) as f64;
    if mixed && !(0.02..=0.98).contains(&share) {
        panic!(
            "{name}: {allowed} of {} are allowed: no mixed stream",
            peers.len()
        );
    }
}
