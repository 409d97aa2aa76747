//! For how long `formerly …` has held, or not held, on the left side of a `since`, for each key.
//!
//! It begins to hold at an event and ends as time passes. What ends next is found by deadline, so an event
//! visits the keys that change. An event that comes late, and the one after it, ask every key: rows may lie in
//! their future.

use super::keyed::{Ends, Flat, Keyed, Linked, Links};
use super::store::{At, Times, in_window};
use super::table::Table;
use super::value::Val;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem::size_of;

#[derive(Clone, Debug)]
pub(crate) struct Lasting {
    negated: bool,
    /// Seconds for which a row of the cell counts.
    window: i64,
    keys: Keyed<Flat, Entry>,
    /// The keys that do not hold, in the order in which that was seen.
    ended: Ends,
    /// When what holds may end: one entry for each key that holds.
    deadlines: BinaryHeap<Reverse<(i64, u32)>>,
    /// Whether the last event was the latest of all.
    steady: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spell {
    holds: bool,
    /// Where it holds, the first position at which it has held since; else the last at which it did.
    pos: i64,
    /// The clock when it was seen to have ended.
    seen: i64,
    /// The last second at which it can hold.
    until: i64,
}

#[derive(Clone, Debug, Default)]
struct Entry {
    spell: Spell,
    links: Links,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct SavedLasting {
    steady: bool,
    /// What has ended in its order.
    keys: Vec<(Vec<Val>, Spell)>,
}

impl Linked for Keyed<Flat, Entry> {
    fn links(&self, id: u32) -> Links {
        self.get(id).map(|entry| entry.links).unwrap_or_default()
    }

    fn links_mut(&mut self, id: u32) -> Option<&mut Links> {
        self.get_mut(id).map(|entry| &mut entry.links)
    }
}

impl Lasting {
    pub fn new(negated: bool, window: i64, width: usize) -> Lasting {
        Lasting {
            negated,
            window,
            keys: Keyed::new(Flat::new(width)),
            ended: Ends::default(),
            deadlines: BinaryHeap::new(),
            steady: true,
        }
    }

    /// Takes in an event that the cell has taken in before.
    pub fn update(&mut self, table: &Table, at: At, clock: i64) {
        let on_time = at.time == clock;
        if on_time && self.steady {
            while let Some(&Reverse((until, id))) = self.deadlines.peek()
                && until < at.time
            {
                self.deadlines.pop();
                if let Some(until) = self.ask(id, table, at, clock) {
                    self.deadlines.push(Reverse((until, id)));
                }
            }
        } else {
            self.deadlines.clear();
            let ids: Vec<u32> = self.keys.ids().collect();
            for id in ids {
                if let Some(until) = self.ask(id, table, at, clock) {
                    self.deadlines.push(Reverse((until, id)));
                }
            }
        }
        self.steady = on_time;
        for (key, times) in table.fresh(at.pos) {
            let until = times.newest().saturating_add(self.window);
            let id = match self.keys.find(key) {
                Some(id) => id,
                None => {
                    let id = self.keys.insert(key, Entry::default());
                    self.ended.insert_after(&mut self.keys, self.ended.last, id);
                    id
                }
            };
            if self.begin(id, at.pos, until) {
                self.deadlines.push(Reverse((until, id)));
            }
        }
    }

    /// Whether a key holds at this event: until when at most, if it does.
    fn ask(&mut self, id: u32, table: &Table, at: At, clock: i64) -> Option<i64> {
        let times = self.keys.key(id).and_then(|key| table.times(key));
        let inside = |times: &&Times| {
            let mut points = times.iter();
            points.any(|point| in_window(point.time, at.time, self.window))
        };
        match times.filter(inside) {
            Some(times) => {
                let until = times.newest().saturating_add(self.window);
                self.begin(id, at.pos, until);
                Some(until)
            }
            None => {
                // It may hold again for an event that comes late.
                let until = times.map(|times| times.newest().saturating_add(self.window));
                self.end(id, at.pos, until, clock);
                None
            }
        }
    }

    /// Notes that a key holds; whether it did not before.
    fn begin(&mut self, id: u32, pos: i64, until: i64) -> bool {
        let Some(entry) = self.keys.get_mut(id) else {
            return false;
        };
        entry.spell.until = entry.spell.until.max(until);
        if entry.spell.holds {
            return false;
        }
        entry.spell.holds = true;
        entry.spell.pos = pos;
        self.ended.remove(&mut self.keys, id);
        true
    }

    fn end(&mut self, id: u32, pos: i64, until: Option<i64>, clock: i64) {
        let Some(entry) = self.keys.get_mut(id) else {
            return;
        };
        if let Some(until) = until {
            entry.spell.until = entry.spell.until.max(until);
        }
        if entry.spell.holds {
            entry.spell.holds = false;
            entry.spell.pos = pos - 1;
            entry.spell.seen = clock;
            self.ended.insert_after(&mut self.keys, self.ended.last, id);
        }
    }

    /// The last position at which it was not as the `since` asks.
    pub fn broken(&self, key: Option<&[Val]>, now: i64) -> i64 {
        let id = key.and_then(|key| self.keys.find(key));
        let spell = id.and_then(|id| self.keys.get(id)).map(|entry| entry.spell);
        match (spell, self.negated) {
            (None, true) => i64::MIN,
            (None, false) => now,
            (Some(spell), negated) => match (spell.holds, negated) {
                (true, true) | (false, false) => now,
                (true, false) => spell.pos - 1,
                (false, true) => spell.pos,
            },
        }
    }

    /// Forgets what ended so long ago that no anchor is older, `window` being that of the anchors.
    pub fn expire(&mut self, floor: i64, window: i64) {
        let window = self.reach(window);
        while let Some(entry) = self.keys.get(self.ended.first)
            && let Spell { seen, until, .. } = entry.spell
            && seen.saturating_add(window).max(until) < floor
        {
            let id = self.ended.first;
            self.ended.remove(&mut self.keys, id);
            self.keys.remove(id);
        }
        if self.keys.is_sparse() {
            let saved = self.saved();
            let fresh = Lasting::new(self.negated, self.window, self.keys.width());
            *self = fresh;
            self.restore(saved);
        }
    }

    /// A key that is not known has not held: what does not hold now matters only where that is asked for.
    fn reach(&self, window: i64) -> i64 {
        if self.negated { window } else { 0 }
    }

    /// The clock after which something may be forgotten.
    pub fn deadline(&self, window: i64) -> Option<i64> {
        let spell = self.keys.get(self.ended.first)?.spell;
        let seen = spell.seen.saturating_add(self.reach(window));
        Some(seen.max(spell.until))
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn bytes(&self) -> usize {
        self.keys.bytes() + self.deadlines.capacity() * size_of::<Reverse<(i64, u32)>>()
    }

    pub fn each_val(&self, seen: &mut dyn FnMut(Val)) {
        for key in self.keys.ids().filter_map(|id| self.keys.key(id)) {
            key.iter().for_each(|val| seen(*val));
        }
    }

    pub fn saved(&self) -> SavedLasting {
        let entry = |id: u32| {
            let spell = self.keys.get(id)?.spell;
            Some((self.keys.key(id)?.to_vec(), spell))
        };
        let holding = self.keys.ids().filter_map(entry);
        let mut keys: Vec<_> = holding.filter(|(_, spell)| spell.holds).collect();
        let mut at = self.ended.first;
        while let Some(ended) = entry(at) {
            keys.push(ended);
            at = self.keys.links(at).next;
        }
        SavedLasting {
            steady: self.steady,
            keys,
        }
    }

    /// Takes saved keys in. Nothing, where they do not fit.
    pub fn restore(&mut self, saved: SavedLasting) -> Option<()> {
        self.steady = saved.steady;
        for (key, spell) in saved.keys {
            if key.len() != self.keys.width() || self.keys.find(&key).is_some() {
                return None;
            }
            let entry = Entry {
                spell,
                links: Links::default(),
            };
            let id = self.keys.insert(&key, entry);
            if spell.holds {
                self.deadlines.push(Reverse((spell.until, id)));
            } else {
                self.ended.insert_after(&mut self.keys, self.ended.last, id);
            }
        }
        Some(())
    }
}
