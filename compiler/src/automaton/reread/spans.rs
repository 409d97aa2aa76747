//! Sets of positions as ranges, both ends inside, in order and with gaps between them.

use smallvec::SmallVec;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans(SmallVec<[(i64, i64); 2]>);

impl Spans {
    pub fn of(from: i64, to: i64) -> Spans {
        let mut spans = Spans::default();
        if from <= to {
            spans.0.push((from, to));
        }
        spans
    }

    /// In whatever order they come.
    pub fn all_of(mut ranges: Vec<(i64, i64)>) -> Spans {
        ranges.sort_unstable();
        let mut spans = Spans::default();
        for (from, to) in ranges {
            spans.push(from, to);
        }
        spans
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (i64, i64)> + '_ {
        self.0.iter().copied()
    }

    pub fn first(&self) -> Option<i64> {
        self.0.first().map(|(from, _)| *from)
    }

    pub fn last(&self) -> Option<i64> {
        self.0.last().map(|(_, to)| *to)
    }

    /// How many ranges there are.
    pub fn ranges(&self) -> usize {
        self.0.len()
    }

    /// How many positions there are.
    pub fn len(&self) -> usize {
        let lengths = self.iter().map(|(from, to)| to.abs_diff(from));
        let total = lengths.fold(0u64, |sum, gap| sum.saturating_add(gap).saturating_add(1));
        usize::try_from(total).unwrap_or(usize::MAX)
    }

    pub fn contains(&self, pos: i64) -> bool {
        self.around(pos).is_some()
    }

    /// The range that a position lies in.
    pub fn around(&self, pos: i64) -> Option<(i64, i64)> {
        self.next(pos).filter(|(from, _)| *from <= pos)
    }

    /// The first range that ends there or behind.
    pub fn next(&self, pos: i64) -> Option<(i64, i64)> {
        let at = self.0.partition_point(|(_, to)| *to < pos);
        self.0.get(at).copied()
    }

    /// The last range that begins there or before.
    pub fn before(&self, pos: i64) -> Option<(i64, i64)> {
        let behind = self.0.partition_point(|(from, _)| *from <= pos);
        self.0.get(behind.checked_sub(1)?).copied()
    }

    /// Adds a range that begins no earlier than all before.
    pub fn push(&mut self, from: i64, to: i64) {
        if from > to {
            return;
        }
        match self.0.last_mut() {
            Some((_, end)) if from <= end.saturating_add(1) => *end = (*end).max(to),
            _ => self.0.push((from, to)),
        }
    }

    /// The ranges that reach into one.
    fn inside(&self, from: i64, to: i64) -> impl Iterator<Item = (i64, i64)> + '_ {
        let at = self.0.partition_point(|(_, end)| *end < from);
        let rest = self.0.get(at..).unwrap_or(&[]);
        let rest = rest.iter().copied();
        rest.take_while(move |(start, _)| *start <= to)
    }

    /// What both have. The time is that of the one of fewer ranges, with a search for each.
    pub fn and(&self, other: &Spans) -> Spans {
        let (few, many) = match self.ranges() <= other.ranges() {
            true => (self, other),
            false => (other, self),
        };
        let mut both = Spans::default();
        for (from, to) in few.iter() {
            for (start, end) in many.inside(from, to) {
                both.push(from.max(start), to.min(end));
            }
        }
        both
    }

    pub fn minus(&self, other: &Spans) -> Spans {
        let mut left = Spans::default();
        for (from, to) in self.iter() {
            let mut next = Some(from);
            for (start, end) in other.inside(from, to) {
                if let Some(next) = next
                    && next < start
                {
                    left.0.push((next, start - 1));
                }
                next = end.checked_add(1);
            }
            if let Some(next) = next
                && next <= to
            {
                left.0.push((next, to));
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn spans(of: &BTreeSet<i64>) -> Spans {
        let mut spans = Spans::default();
        of.iter().for_each(|pos| spans.push(*pos, *pos));
        spans
    }

    proptest! {
        #[test]
        fn ranges_are_sets(
            one in prop::collection::btree_set(0i64..24, 0..16),
            other in prop::collection::btree_set(0i64..24, 0..16),
        ) {
            let (left, right) = (spans(&one), spans(&other));
            prop_assert_eq!(left.and(&right), spans(&(&one & &other)));
            let both = right.iter().chain(left.iter()).collect();
            prop_assert_eq!(Spans::all_of(both), spans(&(&one | &other)));
            prop_assert_eq!(left.minus(&right), spans(&(&one - &other)));
            prop_assert_eq!(left.len(), one.len());
            for pos in 0..24 {
                prop_assert_eq!(left.contains(pos), one.contains(&pos));
                let range = left.around(pos);
                prop_assert_eq!(range.is_some(), one.contains(&pos));
                let next = one.range(pos..).next();
                prop_assert_eq!(left.next(pos).map(|(from, _)| from.max(pos)), next.copied());
                let last = one.range(..=pos).next_back();
                prop_assert_eq!(left.before(pos).map(|(_, to)| to.min(pos)), last.copied());
            }
        }
    }
}
