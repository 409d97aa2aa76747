//! What happened when, for each key: how often within any span of time, and the sum.
//!
//! The stamps of a key lie in order, beside each the sum up to there. How many lie in a window, and their sum, is
//! then a difference, whatever the window: rules that look back differently far share what they keep.

use super::keyed::{Flat, Keyed};
use super::store::in_window;
use super::value::Val;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::mem::size_of;

#[derive(Clone, Debug)]
pub(crate) struct Points {
    summed: bool,
    keys: Keyed<Flat, Series>,
    held: usize,
    /// When each key has something to drop: one entry a key.
    deadlines: BinaryHeap<Reverse<(i64, u32)>>,
}

/// Many keys have one stamp each, so one lies in line.
#[derive(Clone, Debug, Default)]
enum Series {
    #[default]
    Empty,
    One {
        time: i64,
        summand: i64,
    },
    Many(Box<Run>),
}

#[derive(Clone, Debug, Default)]
struct Run {
    times: VecDeque<i64>,
    /// The sum of all summands so far, each included; empty where nothing is summed.
    sums: VecDeque<i128>,
    /// The sum before the first.
    before: i128,
}

impl Points {
    pub fn new(keyed: usize, summed: bool) -> Points {
        Points {
            summed,
            keys: Keyed::new(Flat::new(keyed)),
            held: 0,
            deadlines: BinaryHeap::new(),
        }
    }

    pub fn insert(&mut self, key: &[Val], time: i64, summand: i64) {
        let id = match self.keys.find(key) {
            Some(id) => id,
            None => {
                let id = self.keys.insert(key, Series::default());
                self.deadlines.push(Reverse((time, id)));
                id
            }
        };
        if let Some(series) = self.keys.get_mut(id) {
            series.insert(time, summand, self.summed);
            self.held += 1;
        }
    }

    fn series(&self, key: &[Val]) -> Option<&Series> {
        self.keys.get(self.keys.find(key)?)
    }

    /// The number of points of a key in the window that ends at `now`, and their sum.
    pub fn value(&self, key: &[Val], now: i64, window: i64) -> (i64, i128) {
        let Some(series) = self.series(key) else {
            return (0, 0);
        };
        let start = now.saturating_sub(window);
        match series {
            Series::One { time, summand } if start <= *time && *time <= now => {
                (1, i128::from(*summand))
            }
            Series::Empty | Series::One { .. } => (0, 0),
            Series::Many(run) => run.value(start, now),
        }
    }

    /// The stamps of what the window of this key holds now, oldest first.
    pub fn times(&self, key: &[Val], now: i64, window: i64) -> Vec<i64> {
        let mut times = self.series(key).map_or_else(Vec::new, Series::times);
        times.retain(|time| in_window(*time, now, window));
        times
    }

    pub fn expire(&mut self, limit: i64) {
        while let Some(&Reverse((time, id))) = self.deadlines.peek()
            && time < limit
        {
            self.deadlines.pop();
            let Some(series) = self.keys.get_mut(id) else {
                continue;
            };
            self.held -= series.expire(limit);
            match series.first() {
                Some(next) => self.deadlines.push(Reverse((next, id))),
                None => {
                    self.keys.remove(id);
                }
            }
        }
        // What goes next is read ahead of time, so that nothing waits for it then.
        if let Some(&Reverse((_, id))) = self.deadlines.peek() {
            std::hint::black_box(self.keys.get(id).and_then(Series::first));
        }
        if self.keys.is_sparse() {
            self.deadlines = self.keys.rebuilt(Series::first);
        }
    }

    pub fn oldest(&self) -> Option<i64> {
        self.deadlines.peek().map(|Reverse((time, _))| *time)
    }

    pub fn len(&self) -> usize {
        self.held
    }

    pub fn bytes(&self) -> usize {
        let series = self.keys.ids().filter_map(|id| self.keys.get(id));
        let held = series.map(|series| match series {
            Series::Empty | Series::One { .. } => 0,
            Series::Many(run) => {
                let (times, sums) = (run.times.capacity(), run.sums.capacity());
                size_of::<Run>() + times * size_of::<i64>() + sums * size_of::<i128>()
            }
        });
        held.sum::<usize>()
            + self.keys.bytes()
            + self.deadlines.capacity() * size_of::<Reverse<(i64, u32)>>()
    }

    /// Each key with its stamps and summands, in order of stamps.
    pub fn iter(&self) -> impl Iterator<Item = (&[Val], Vec<(i64, i64)>)> {
        self.keys.ids().filter_map(|id| {
            let (key, series) = (self.keys.key(id)?, self.keys.get(id)?);
            Some((key, series.points()))
        })
    }

    pub fn each_val(&self, seen: &mut dyn FnMut(Val)) {
        for key in self.keys.ids().filter_map(|id| self.keys.key(id)) {
            key.iter().for_each(|val| seen(*val));
        }
    }
}

impl Series {
    fn insert(&mut self, time: i64, summand: i64, summed: bool) {
        match self {
            Series::Empty => *self = Series::One { time, summand },
            Series::One {
                time: first,
                summand: its,
            } => {
                let mut run = Box::<Run>::default();
                run.insert(*first, summed.then_some(*its));
                run.insert(time, summed.then_some(summand));
                *self = Series::Many(run);
            }
            Series::Many(run) => run.insert(time, summed.then_some(summand)),
        }
    }

    fn first(&self) -> Option<i64> {
        match self {
            Series::Empty => None,
            Series::One { time, .. } => Some(*time),
            Series::Many(run) => run.times.front().copied(),
        }
    }

    fn times(&self) -> Vec<i64> {
        self.points().into_iter().map(|(time, _)| time).collect()
    }

    /// The stamps with their summands, in order.
    fn points(&self) -> Vec<(i64, i64)> {
        match self {
            Series::Empty => Vec::new(),
            Series::One { time, summand } => vec![(*time, *summand)],
            Series::Many(run) => {
                let points = run.times.iter().enumerate().map(|(at, time)| {
                    let summand = run.sum_before(at + 1) - run.sum_before(at);
                    (*time, i64::try_from(summand).unwrap_or(0))
                });
                points.collect()
            }
        }
    }

    /// Drops what is stamped before `limit`; how many that were.
    fn expire(&mut self, limit: i64) -> usize {
        match self {
            Series::One { time, .. } if *time < limit => {
                *self = Series::Empty;
                1
            }
            Series::Empty | Series::One { .. } => 0,
            Series::Many(run) => run.expire(limit),
        }
    }
}

impl Run {
    /// How many lie from `start` to `now`, and their sum.
    fn value(&self, start: i64, now: i64) -> (i64, i128) {
        // Past the last that is not later, and the first inside: at the ends as a rule.
        let times = &self.times;
        let end = match times.back() {
            Some(last) if *last > now => times.partition_point(|time| *time <= now),
            _ => times.len(),
        };
        let first = match times.front() {
            Some(first) if *first < start => times.partition_point(|time| *time < start),
            _ => 0,
        };
        if end <= first {
            return (0, 0);
        }
        let count = i64::try_from(end - first).unwrap_or(i64::MAX);
        (count, self.sum_before(end) - self.sum_before(first))
    }

    fn insert(&mut self, time: i64, summand: Option<i64>) {
        let len = self.times.len();
        if len == self.times.capacity() {
            let more = (len / 4).max(2);
            self.times.reserve_exact(more);
            if summand.is_some() {
                self.sums.reserve_exact(more);
            }
        }
        let at = match self.times.back() {
            Some(last) if *last > time => self.times.partition_point(|other| *other <= time),
            _ => len,
        };
        if let Some(summand) = summand {
            let summand = i128::from(summand);
            let before = self.sum_before(at);
            self.sums.insert(at, before + summand);
            self.sums
                .iter_mut()
                .skip(at + 1)
                .for_each(|sum| *sum += summand);
        }
        self.times.insert(at, time);
    }

    /// The sum of all that come before this place.
    fn sum_before(&self, at: usize) -> i128 {
        match at.checked_sub(1) {
            Some(last) => self.sums.get(last).copied().unwrap_or(0),
            None => self.before,
        }
    }

    /// Drops what is stamped before `limit`; how many that were.
    fn expire(&mut self, limit: i64) -> usize {
        let mut dropped = 0;
        while self.times.front().is_some_and(|time| *time < limit) {
            self.times.pop_front();
            if let Some(sum) = self.sums.pop_front() {
                self.before = sum;
            }
            dropped += 1;
        }
        if self.times.capacity() > 64 && self.times.len() * 4 < self.times.capacity() {
            self.times.shrink_to(self.times.len() * 2);
            self.sums.shrink_to(self.sums.len() * 2);
        }
        dropped
    }
}
