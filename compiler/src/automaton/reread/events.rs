//! The events of a log that say some values, looked for where a domain has them.

use super::Happened;
use super::ask::{Asked, Known, of};
use super::plan::Form;
use super::spans::Spans;
use crate::automaton::index::Key;
use crate::automaton::row::Slot;
use std::collections::VecDeque;

/// By which columns of a log events are looked for, a bit each, and the values.
pub(super) type Says = (usize, u64, Key);

/// Events of a log, oldest first.
pub(super) struct Events<'h> {
    happened: &'h Happened,
    /// Nothing for all there are.
    numbers: Option<&'h VecDeque<u64>>,
    /// How many events were visited, and searches made.
    looked: usize,
}

impl Events<'_> {
    pub fn len(&self) -> usize {
        self.numbers.map_or(self.happened.at.len(), VecDeque::len)
    }

    /// Where one of them lies in the log.
    fn event(&self, at: usize) -> Option<usize> {
        match self.numbers {
            None => Some(at),
            Some(numbers) => self.happened.number(*numbers.get(at)?),
        }
    }

    fn pos(&self, at: usize) -> Option<i64> {
        self.happened.at.get(self.event(at)?).copied()
    }

    /// How many lie before a position.
    fn before(&mut self, pos: i64) -> usize {
        self.looked += 1;
        let Happened { at, .. } = self.happened;
        let earlier = |number: &u64| {
            let event = self.happened.number(*number);
            event.is_none_or(|event| at.get(event).is_some_and(|own| *own < pos))
        };
        match self.numbers {
            None => at.partition_point(|own| *own < pos),
            Some(numbers) => numbers.partition_point(earlier),
        }
    }

    /// Visits those that lie in a domain, by where they lie in the log, with their positions.
    pub fn each(&mut self, domain: &Spans, visit: &mut dyn FnMut(usize, i64)) {
        let Some(first) = domain.first() else { return };
        let mut at = self.before(first);
        while let Some(pos) = self.pos(at)
            && let Some((from, _)) = domain.next(pos)
        {
            if pos < from {
                at = self.before(from);
                continue;
            }
            self.looked += 1;
            if let Some(event) = self.event(at) {
                visit(event, pos);
            }
            at += 1;
        }
    }

    /// The first position of a range that has one.
    pub fn first(&mut self, from: i64, to: i64) -> Option<i64> {
        let at = self.before(from);
        self.pos(at).filter(|pos| *pos <= to)
    }

    /// The last position of a domain that has one.
    pub fn last(&mut self, domain: &Spans) -> Option<i64> {
        let mut to = domain.last()?;
        loop {
            let at = self.before(to.saturating_add(1)).checked_sub(1)?;
            let pos = self.pos(at)?;
            let (_, end) = domain.before(pos)?;
            if pos <= end {
                return Some(pos);
            }
            to = end;
        }
    }

    /// Whether there is one at each position of a domain.
    pub fn fill(&mut self, domain: &Spans) -> bool {
        let enough = domain.len() <= self.len();
        enough
            && domain.iter().all(|(from, to)| {
                let many = self.before(to.saturating_add(1)) - self.before(from);
                many as u64 > to.abs_diff(from)
            })
    }
}

impl Asked<'_> {
    /// By what events are looked for. Nothing, if one of the slots is equal to nothing.
    pub(super) fn says(log: usize, slots: &[Slot], env: &[Known]) -> Option<Says> {
        let (mut mask, mut key) = (0, Key::new());
        for (at, slot) in slots.iter().enumerate() {
            match of(env, *slot) {
                Known::Val(val) => {
                    mask |= 1 << at;
                    key.push(val);
                }
                Known::Missing => return None,
                Known::Not | Known::Sought => {}
            }
        }
        Some((log, mask, key))
    }

    /// The same where all that the events say has to be known.
    pub(super) fn says_all(log: usize, slots: &[Slot], env: &[Known]) -> Option<Says> {
        let says = Self::says(log, slots, env);
        says.filter(|(_, mask, _)| mask.count_ones() as usize == slots.len())
    }

    /// Gives the events that say these values to `take`, which must not look for others. Nothing, if there are none.
    pub(super) fn with<T>(
        &mut self,
        (log, mask, key): &Says,
        take: impl FnOnce(&mut Events<'_>) -> T,
    ) -> Option<T> {
        let happened = self.state.logs.get(*log)?;
        let mut looked = 1;
        let take = |numbers: Option<&VecDeque<u64>>| {
            let mut events = Events {
                happened,
                numbers,
                looked: 0,
            };
            let taken = take(&mut events);
            looked += events.looked;
            taken
        };
        let taken = match mask {
            0 => Some(take(None)),
            _ => {
                let place = (*log, *mask);
                let take = |found: Option<&VecDeque<u64>>| found.map(|numbers| take(Some(numbers)));
                let indexes = &self.state.indexes;
                let (taken, made) = indexes.look(place, happened, key, take);
                looked += if made { happened.at.len() } else { 0 };
                taken
            }
        };
        self.looked_at(looked);
        taken
    }

    /// How many there are.
    pub(super) fn many(&mut self, says: &Says) -> usize {
        let many = self.with(says, |events| events.len());
        many.unwrap_or(0)
    }

    /// The positions of a domain that have one.
    pub(super) fn positions(&mut self, says: &Says, domain: &Spans) -> Spans {
        let mut found = Spans::default();
        self.with(says, |events| {
            events.each(domain, &mut |_, pos| found.push(pos, pos));
        });
        found
    }

    /// Those events of a conjunction of which there are fewest, and how many there are.
    pub(super) fn fewest(&mut self, parts: &[Form], env: &[Known]) -> Option<(usize, Says)> {
        let mut best: Option<(usize, Says)> = None;
        for part in parts {
            if let Form::Event(log, slots) = part {
                let Some(says) = Self::says(*log, slots, env) else {
                    return Some((0, (*log, 0, Key::new())));
                };
                let many = self.many(&says);
                if best.as_ref().is_none_or(|(few, _)| many < *few) {
                    best = Some((many, says));
                }
            }
        }
        best
    }
}
