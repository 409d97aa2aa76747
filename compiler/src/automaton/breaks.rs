//! What has ended the anchors of a `since`, by key: compared with an anchor when the cell is asked.

use super::formula::{Break, How, Node};
use super::index::Key;
use super::keyed::Flat;
use super::lasting::{Lasting, SavedLasting};
use super::solve::Moment;
use super::store::{At, Store};
use super::value::Val;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug)]
pub(crate) enum Ended {
    /// By key the last point at which a row ended what agrees with it. The time is the clock then, not the
    /// stamp: a break outlives every anchor before it.
    Hit(Store<Flat>),
    /// The keys with rows at the last event that had any, and since when without a gap.
    Miss(Vec<Run>),
    Lasting(Lasting),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    key: Vec<Val>,
    first: i64,
    last: i64,
}

#[derive(Serialize, Deserialize)]
pub(crate) enum SavedEnded {
    Hit(Vec<(Vec<Val>, Vec<At>)>),
    Miss(Vec<Run>),
    Lasting(SavedLasting),
}

impl Ended {
    pub fn new(part: &Break) -> Ended {
        match part.how {
            How::Hit => Ended::Hit(Store::new(Flat::new(part.keys.len()))),
            How::Miss => Ended::Miss(Vec::new()),
            How::Lasting { negated } => {
                let window = match &part.node {
                    Node::Cell(cell) => cell.window,
                    _ => 0,
                };
                Ended::Lasting(Lasting::new(negated, window, part.keys.len()))
            }
        }
    }

    pub fn update(&mut self, part: &Break, width: usize, moment: &Moment<'_>, clock: i64) {
        let pos = moment.at.pos;
        match self {
            Ended::Hit(store) => {
                let at = At { pos, time: clock };
                moment.keys(&part.node, width, &part.keys, |key| {
                    store.insert(&key, at, clock);
                });
            }
            Ended::Miss(runs) => {
                moment.keys(&part.node, width, &part.keys, |key| extend(runs, &key, pos));
                runs.retain(|run| run.last == pos);
            }
            Ended::Lasting(lasting) => {
                if let Node::Cell(cell) = &part.node
                    && let Some(state) = moment.states.get(cell.cell)
                    && let Some(table) = state.table()
                {
                    lasting.update(table, moment.at, clock);
                }
            }
        }
    }

    /// The position before which anchors with this key have ended; nothing for a key that does not exist.
    pub fn until(&self, key: Option<Key>, now: i64) -> i64 {
        match self {
            Ended::Hit(store) => {
                let last = key.and_then(|key| Some(store.get(&key)?.last().pos));
                last.unwrap_or(i64::MIN)
            }
            Ended::Miss(runs) => {
                let run = runs
                    .iter()
                    .find(|run| run.last == now && key.as_deref() == Some(run.key.as_slice()));
                run.map_or(now, |run| run.first - 1)
            }
            Ended::Lasting(lasting) => lasting.broken(key.as_deref(), now),
        }
    }

    /// The stamp of the last break of this key, where breaks are events.
    pub fn last_break(&self, key: &[Val]) -> Option<i64> {
        match self {
            Ended::Hit(store) => Some(store.get(key)?.last().time),
            Ended::Miss(_) | Ended::Lasting(_) => None,
        }
    }

    /// Forgets what no anchor in a window of so many seconds can have met.
    pub fn expire(&mut self, floor: i64, window: i64) {
        match self {
            // Anchors before a break may be stamped up to the clock at the break.
            Ended::Hit(store) => {
                store.expire(floor.saturating_sub(window), |_, _| {});
                store.give_back();
            }
            Ended::Miss(_) => {}
            Ended::Lasting(lasting) => lasting.expire(floor, window),
        }
    }

    /// The clock after which something may be forgotten.
    pub fn deadline(&self, window: i64) -> Option<i64> {
        match self {
            Ended::Hit(store) => Some(store.oldest()?.saturating_add(window)),
            Ended::Miss(_) => None,
            Ended::Lasting(lasting) => lasting.deadline(window),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Ended::Hit(store) => store.len(),
            Ended::Miss(runs) => runs.len(),
            Ended::Lasting(lasting) => lasting.len(),
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            Ended::Hit(store) => store.bytes(),
            Ended::Miss(runs) => runs.capacity() * size_of::<Run>(),
            Ended::Lasting(lasting) => lasting.bytes(),
        }
    }

    pub fn each_val(&self, seen: &mut dyn FnMut(Val)) {
        match self {
            Ended::Hit(store) => {
                let keys = store.iter().flat_map(|(key, _)| key);
                keys.for_each(|val| seen(*val));
            }
            Ended::Miss(runs) => {
                let keys = runs.iter().flat_map(|run| &run.key);
                keys.for_each(|val| seen(*val));
            }
            Ended::Lasting(lasting) => lasting.each_val(seen),
        }
    }

    pub fn saved(&self) -> SavedEnded {
        match self {
            Ended::Hit(store) => {
                let rows = store.iter();
                let saved =
                    rows.map(|(key, times)| (key.to_vec(), times.iter().copied().collect()));
                SavedEnded::Hit(saved.collect())
            }
            Ended::Miss(runs) => SavedEnded::Miss(runs.clone()),
            Ended::Lasting(lasting) => SavedEnded::Lasting(lasting.saved()),
        }
    }

    /// Takes over what was saved. Nothing, where it does not fit.
    pub fn restore(&mut self, saved: SavedEnded, keys: usize) -> Option<()> {
        match (self, saved) {
            (Ended::Hit(store), SavedEnded::Hit(saved)) => {
                for (key, times) in saved {
                    if key.len() != keys {
                        return None;
                    }
                    for at in times {
                        store.insert(&key, at, i64::MIN);
                    }
                }
                Some(())
            }
            (Ended::Miss(runs), SavedEnded::Miss(saved)) => {
                *runs = saved;
                Some(())
            }
            (Ended::Lasting(lasting), SavedEnded::Lasting(saved)) => lasting.restore(saved),
            _ => None,
        }
    }
}

fn extend(runs: &mut Vec<Run>, key: &[Val], pos: i64) {
    match runs.iter_mut().find(|run| run.key == key) {
        Some(run) if run.last == pos - 1 => run.last = pos,
        Some(run) if run.last == pos => {}
        Some(run) => (run.first, run.last) = (pos, pos),
        None => runs.push(Run {
            key: key.to_vec(),
            first: pos,
            last: pos,
        }),
    }
}
