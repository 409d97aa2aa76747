//! Counts and sums over a window, per key, without looking at the rows again.

use super::cell::key_of;
use super::formula::CellDef;
use super::row::{Row, Slot, clamp};
use super::saved::{SavedCount, SavedKey, points};
use super::store::{At, Times, in_window, note};
use super::value::Val;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Counts {
    /// Columns that select, in the order of the cell's columns.
    pub keyed: Vec<Slot>,
    counted: Vec<Slot>,
    sum: Option<usize>,
    by_time_point: bool,
    keys: HashMap<Arc<[Val]>, Count>,
    deadlines: BinaryHeap<Reverse<(i64, Arc<[Val]>)>>,
}

#[derive(Clone, Debug)]
enum Count {
    /// Each event is a row of its own: stamp and summand, by stamp.
    Points {
        queue: VecDeque<(i64, i64)>,
        total: i128,
    },
    /// Equal rows are one: a row to its points, and the rows by their latest stamp.
    Rows {
        rows: HashMap<Arc<[Val]>, Times>,
        order: BTreeSet<(i64, Arc<[Val]>)>,
        total: i128,
    },
}

impl Counts {
    pub fn new(def: &CellDef, counted: &[Slot], sum: Option<usize>, by_time_point: bool) -> Counts {
        let keyed = def
            .columns
            .iter()
            .copied()
            .filter(|column| !counted.contains(column));
        Counts {
            keyed: keyed.collect(),
            counted: counted.to_vec(),
            sum,
            by_time_point,
            keys: HashMap::new(),
            deadlines: BinaryHeap::new(),
        }
    }

    pub fn insert(&mut self, row: &Row, at: At, floor: i64) {
        let (Some(key), Some(counted)) = (key_of(row, &self.keyed), key_of(row, &self.counted))
        else {
            return;
        };
        if self.by_time_point {
            let summand = self.summand(&counted);
            self.insert_point(&key, at.time, summand);
        } else {
            self.insert_row(&key, &counted, at, floor);
        }
    }

    fn insert_point(&mut self, key: &Arc<[Val]>, time: i64, summand: i64) {
        if let Count::Points { queue, total } = self.count(key, time) {
            let place = match queue.back() {
                Some((last, _)) if *last > time => {
                    queue.partition_point(|(before, _)| *before <= time)
                }
                _ => queue.len(),
            };
            queue.insert(place, (time, summand));
            *total += i128::from(summand);
        }
    }

    fn insert_row(&mut self, key: &Arc<[Val]>, counted: &Arc<[Val]>, at: At, floor: i64) {
        let summand = self.summand(counted);
        if let Count::Rows { rows, order, total } = self.count(key, at.time) {
            let times = rows.entry(Arc::clone(counted)).or_default();
            match newest(times) {
                Some(before) => {
                    order.remove(&(before, Arc::clone(counted)));
                }
                None => *total += i128::from(summand),
            }
            note(times, at, floor);
            order.insert((newest(times).unwrap_or(at.time), Arc::clone(counted)));
        }
    }

    /// The count of a key, which has had an event at this time.
    fn count(&mut self, key: &Arc<[Val]>, time: i64) -> &mut Count {
        let (deadlines, by_time_point) = (&mut self.deadlines, self.by_time_point);
        self.keys.entry(Arc::clone(key)).or_insert_with(|| {
            deadlines.push(Reverse((time, Arc::clone(key))));
            if by_time_point {
                Count::Points {
                    queue: VecDeque::new(),
                    total: 0,
                }
            } else {
                Count::Rows {
                    rows: HashMap::new(),
                    order: BTreeSet::new(),
                    total: 0,
                }
            }
        })
    }

    fn summand(&self, counted: &[Val]) -> i64 {
        match self.sum.and_then(|column| counted.get(column)) {
            Some(Val::Int(n)) => *n,
            _ => 0,
        }
    }

    /// The count or sum of a key in the window that ends at `now`.
    pub fn value(&self, key: &[Val], now: i64, window: i64) -> i64 {
        let start = now.saturating_sub(window);
        let (count, total) = match self.keys.get(key) {
            None => (0, 0),
            Some(Count::Points { queue, total }) => {
                let from = queue.partition_point(|(time, _)| *time < start);
                let to = queue.partition_point(|(time, _)| *time <= now);
                if from == 0 && to == queue.len() {
                    (to, *total)
                } else {
                    let inside = queue.range(from..to.max(from));
                    (inside.len(), inside.map(|(_, n)| i128::from(*n)).sum())
                }
            }
            Some(Count::Rows { rows, order, total }) => {
                let whole = order.first().is_none_or(|(time, _)| *time >= start)
                    && order.last().is_none_or(|(time, _)| *time <= now);
                if whole {
                    (rows.len(), *total)
                } else {
                    let inside = rows.iter().filter(|(_, times)| {
                        times.iter().any(|at| in_window(at.time, now, window))
                    });
                    inside.fold((0, 0), |(count, total), (row, _)| {
                        (count + 1, total + i128::from(self.summand(row)))
                    })
                }
            }
        };
        match self.sum {
            None => i64::try_from(count).unwrap_or(i64::MAX),
            Some(_) => clamp(total),
        }
    }

    /// The stamps of what the window of this key holds now, oldest first.
    pub fn times(&self, key: &[Val], now: i64, window: i64) -> Vec<i64> {
        let inside = |time: &i64| in_window(*time, now, window);
        match self.keys.get(key) {
            None => Vec::new(),
            Some(Count::Points { queue, .. }) => {
                queue.iter().map(|(time, _)| *time).filter(inside).collect()
            }
            Some(Count::Rows { order, .. }) => {
                order.iter().map(|(time, _)| *time).filter(inside).collect()
            }
        }
    }

    pub fn expire(&mut self, limit: i64) {
        while let Some(Reverse((time, key))) = self.deadlines.peek()
            && *time < limit
        {
            let key = Arc::clone(key);
            self.deadlines.pop();
            let Some(count) = self.keys.get_mut(&key) else {
                continue;
            };
            let next = match count {
                Count::Points { queue, total } => {
                    while let Some((time, summand)) = queue.front().copied()
                        && time < limit
                    {
                        queue.pop_front();
                        *total -= i128::from(summand);
                    }
                    if queue.len() * 4 < queue.capacity() && queue.capacity() > 64 {
                        queue.shrink_to(queue.len() * 2);
                    }
                    queue.front().map(|(time, _)| *time)
                }
                Count::Rows { rows, order, total } => {
                    while let Some((time, _)) = order.first()
                        && *time < limit
                    {
                        let Some((_, row)) = order.pop_first() else {
                            break;
                        };
                        rows.remove(&row);
                        if let Some(Val::Int(n)) = self.sum.and_then(|column| row.get(column)) {
                            *total -= i128::from(*n);
                        }
                    }
                    order.first().map(|(time, _)| *time)
                }
            };
            match next {
                Some(time) => self.deadlines.push(Reverse((time, key))),
                None => {
                    self.keys.remove(&key);
                }
            }
        }
    }

    pub fn oldest(&self) -> Option<i64> {
        self.deadlines.peek().map(|Reverse((time, _))| *time)
    }

    pub fn len(&self) -> usize {
        let held = |count: &Count| match count {
            Count::Points { queue, .. } => queue.len(),
            Count::Rows { rows, .. } => rows.len(),
        };
        self.keys.values().map(held).sum()
    }

    pub fn saved(&self) -> Vec<(SavedKey, SavedCount)> {
        let count = |count: &Count| match count {
            Count::Points { queue, .. } => SavedCount::Points(queue.iter().copied().collect()),
            Count::Rows { rows, .. } => {
                let rows = rows.iter();
                SavedCount::Rows(
                    rows.map(|(row, times)| (row.to_vec(), times.to_vec()))
                        .collect(),
                )
            }
        };
        let keys = self.keys.iter();
        keys.map(|(key, held)| (key.to_vec(), count(held)))
            .collect()
    }

    /// Takes saved counts in. Nothing, where they do not fit.
    pub fn restore(&mut self, saved: Vec<(SavedKey, SavedCount)>) -> Option<()> {
        for (key, count) in saved {
            if key.len() != self.keyed.len() {
                return None;
            }
            let key: Arc<[Val]> = Arc::from(key);
            match count {
                SavedCount::Points(points) if self.by_time_point => {
                    for (time, summand) in points {
                        self.insert_point(&key, time, summand);
                    }
                }
                SavedCount::Rows(rows) if !self.by_time_point => {
                    for (row, times) in rows {
                        if row.len() != self.counted.len() {
                            return None;
                        }
                        let row: Arc<[Val]> = Arc::from(row);
                        for at in points(times)? {
                            self.insert_row(&key, &row, at, i64::MIN);
                        }
                    }
                }
                _ => return None,
            }
        }
        Some(())
    }

    pub fn each_val(&self, seen: &mut dyn FnMut(Val)) {
        for (key, count) in &self.keys {
            key.iter().for_each(|val| seen(*val));
            if let Count::Rows { rows, .. } = count {
                rows.keys()
                    .flat_map(|row| row.iter())
                    .for_each(|val| seen(*val));
            }
        }
    }
}

fn newest(times: &Times) -> Option<i64> {
    times.iter().map(|at| at.time).max()
}
