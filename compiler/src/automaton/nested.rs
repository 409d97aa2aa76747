//! `formerly` over an event and what the past looked like then, where the two are asked by different values of
//! the request.
//!
//! `formerly (A{x: context.a} && formerly B{y: context.b})`: no row can be made of the two before the request is
//! known, but each pair of values. So what is kept is when each of them happened, by its own key; the decision
//! goes through the events of its one key, newest first, and looks for each what had happened by then.

use super::formula::{CellDef, CellOp, Log, Node, Pattern, Test, Then, Use};
use super::index::Key;
use super::keyed::{Flat, Keyed};
use super::open::plain_rows;
use super::row::Slot;
use super::solve::Moment;
use super::store::{At, in_window};
use super::value::Val;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::mem::size_of;

/// The operation for such a body, if it is one.
pub(super) fn nested(body: &Node, window: i64, cells: &[CellDef]) -> Option<CellOp> {
    let Node::And(parts) = body else { return None };
    let mut plan = Plan {
        cells,
        logs: Vec::new(),
        then: Vec::new(),
    };
    let own: Vec<Node> = parts
        .iter()
        .filter(|part| matches!(part, Node::Match(_)))
        .cloned()
        .collect();
    let own = match own.len() {
        0 => return None,
        1 => own.into_iter().next()?,
        _ => Node::And(own),
    };
    let bound: BTreeSet<Slot> = own.free();
    plan.log(own, window, false)?;
    let mut looks_back = false;
    for part in parts {
        let (negated, inner) = match part {
            Node::Match(_) => continue,
            Node::Not(inner) => (true, inner.as_ref()),
            inner => (false, inner),
        };
        looks_back |= matches!(inner, Node::Cell(_));
        let test = plan.test(inner, window)?;
        plan.then.push(Then { negated, test });
    }
    let keys = plan.logs.iter().flat_map(|log| &log.keys);
    let apart = keys.into_iter().any(|key| !bound.contains(key));
    (looks_back && apart).then_some(CellOp::Nested {
        logs: plan.logs,
        then: plan.then,
    })
}

struct Plan<'p> {
    cells: &'p [CellDef],
    logs: Vec<Log>,
    then: Vec<Then>,
}

impl Plan<'_> {
    fn log(&mut self, node: Node, window: i64, ends: bool) -> Option<usize> {
        let keys = plain_rows(&node, &[], &[])?;
        self.logs.push(Log {
            node,
            keys,
            window,
            ends,
        });
        Some(self.logs.len() - 1)
    }

    fn test(&mut self, node: &Node, outer: i64) -> Option<Test> {
        let cell = match node {
            Node::Match(_) => return Some(Test::Now(self.log(node.clone(), outer, false)?)),
            Node::Cell(cell) => cell,
            _ => return None,
        };
        let def = self.cells.get(cell.cell)?;
        let kept = outer.saturating_add(cell.window);
        match &def.op {
            CellOp::Formerly(body) => {
                let log = self.log(renamed(body, cell)?, kept, false)?;
                Some(Test::Formerly(log, cell.window))
            }
            CellOp::Since { left, right, .. } => {
                let anchor = self.log(renamed(right, cell)?, kept, false)?;
                let parts = match left {
                    Node::And(parts) => parts.as_slice(),
                    part => std::slice::from_ref(part),
                };
                let mut breaks = Vec::with_capacity(parts.len());
                for part in parts {
                    let Node::Not(event) = part else { return None };
                    breaks.push(self.log(renamed(event, cell)?, kept, true)?);
                }
                Some(Test::Since(anchor, breaks, cell.window))
            }
            _ => None,
        }
    }
}

/// Matchers of a cell in the slots of the place that asks it.
fn renamed(node: &Node, cell: &Use) -> Option<Node> {
    match node {
        Node::And(parts) => {
            let parts = parts.iter().map(|part| renamed(part, cell));
            Some(Node::And(parts.collect::<Option<_>>()?))
        }
        Node::Match(matcher) => {
            let mut matcher = matcher.clone();
            for (_, pattern) in &mut matcher.patterns {
                if let Pattern::Slot(slot) = pattern {
                    *slot = cell.outer(*slot)?;
                }
            }
            Some(Node::Match(matcher))
        }
        _ => None,
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Nested {
    logs: Vec<Happened>,
    /// The latest stamp when the last event that came late was taken in, while anything from then is kept.
    late: Option<i64>,
}

/// When something happened, for each key in order of arrival.
#[derive(Clone, Debug)]
struct Happened {
    keys: Keyed<Flat, VecDeque<At>>,
    held: usize,
    /// When each key has something to drop: one entry a key.
    deadlines: BinaryHeap<Reverse<(i64, u32)>>,
}

pub(crate) type SavedLog = Vec<(Vec<Val>, Vec<At>)>;

/// What happened with the values of one request.
struct Asked<'n> {
    outer: Option<&'n VecDeque<At>>,
    logs: Vec<Option<&'n VecDeque<At>>>,
}

impl Nested {
    pub fn new(logs: &[Log]) -> Nested {
        let logs = logs.iter();
        Nested {
            logs: logs.map(|log| Happened::new(log.keys.len())).collect(),
            late: None,
        }
    }

    pub fn update(&mut self, logs: &[Log], width: usize, moment: &Moment<'_>, clock: i64) {
        let mut any = false;
        for (happened, log) in self.logs.iter_mut().zip(logs) {
            let at = At {
                time: if log.ends { clock } else { moment.at.time },
                ..moment.at
            };
            moment.keys(&log.node, width, &log.keys, |key| {
                any = true;
                happened.insert(&key, at);
            });
        }
        if any && moment.late {
            self.late = Some(clock);
        }
    }

    fn asked(&self, logs: &[Log], known: &dyn Fn(Slot) -> Option<Val>) -> Asked<'_> {
        let found = self.logs.iter().zip(logs).map(|(happened, log)| {
            // What the request does not have has never happened.
            let key: Option<Key> = log.keys.iter().map(|slot| known(*slot)).collect();
            happened.keys.get(happened.keys.find(&key?)?)
        });
        let logs: Vec<Option<&VecDeque<At>>> = found.collect();
        Asked {
            outer: logs.first().copied().flatten(),
            logs,
        }
    }

    /// The events that make it hold now, newest first, until told to stop.
    pub fn find(
        &self,
        (logs, then): (&[Log], &[Then]),
        moment: &Moment<'_>,
        window: i64,
        known: &dyn Fn(Slot) -> Option<Val>,
        mut visit: impl FnMut(At) -> bool,
    ) -> bool {
        let asked = self.asked(logs, known);
        let Some(outer) = asked.outer else {
            return false;
        };
        let now = moment.at.time;
        if moment.late || self.late.is_some() {
            let mut events = outer.iter().rev();
            return events.any(|at| {
                in_window(at.time, now, window)
                    && then.iter().all(|then| asked.holds_slowly(then, *at))
                    && visit(*at)
            });
        }
        let mut left = outer.len();
        while let Some(at) = left.checked_sub(1).and_then(|last| outer.get(last))
            && in_window(at.time, now, window)
        {
            left -= 1;
            // The first event after those that fail as this one does.
            let mut skipped = None;
            for then in then {
                if let Err(until) = asked.holds(then, *at) {
                    skipped = Some(until);
                    break;
                }
            }
            match skipped {
                None => {
                    if visit(*at) {
                        return true;
                    }
                }
                Some(until) => left = left.min(outer.partition_point(|at| until.keeps(at))),
            }
        }
        false
    }

    pub fn expire(&mut self, floor: i64, logs: &[Log]) {
        let mut longest = 0;
        for (happened, log) in self.logs.iter_mut().zip(logs) {
            happened.expire(floor.saturating_sub(log.window));
            longest = longest.max(log.window);
        }
        let gone = |clock: i64| clock < floor.saturating_sub(longest);
        if self.late.is_some_and(gone) {
            self.late = None;
        }
    }

    /// The clock after which something may be dropped.
    pub fn deadline(&self, logs: &[Log]) -> Option<i64> {
        let logs = self.logs.iter().zip(logs);
        let deadlines = logs.filter_map(|(happened, log)| {
            let Reverse((time, _)) = happened.deadlines.peek()?;
            Some(time.saturating_add(log.window))
        });
        deadlines.min()
    }

    pub fn len(&self) -> usize {
        self.logs.iter().map(|happened| happened.held).sum()
    }

    pub fn bytes(&self) -> usize {
        self.logs.iter().map(Happened::bytes).sum()
    }

    pub fn each_val(&self, seen: &mut dyn FnMut(Val)) {
        for happened in &self.logs {
            for key in happened.keys.ids().filter_map(|id| happened.keys.key(id)) {
                key.iter().for_each(|val| seen(*val));
            }
        }
    }

    pub fn saved(&self) -> (Option<i64>, Vec<SavedLog>) {
        let logs = self.logs.iter().map(|happened| {
            let ids = happened.keys.ids();
            let keys = ids.filter_map(|id| {
                let times = happened.keys.get(id)?.iter().copied();
                Some((happened.keys.key(id)?.to_vec(), times.collect()))
            });
            keys.collect()
        });
        (self.late, logs.collect())
    }

    /// Takes over what was saved. Nothing, where it does not fit.
    pub fn restore(&mut self, (late, saved): (Option<i64>, Vec<SavedLog>)) -> Option<()> {
        if saved.len() != self.logs.len() {
            return None;
        }
        self.late = late;
        for (happened, saved) in self.logs.iter_mut().zip(saved) {
            for (key, times) in saved {
                if key.len() != happened.keys.width() {
                    return None;
                }
                for at in times {
                    happened.insert(&key, at);
                }
            }
        }
        Some(())
    }
}

/// Which earlier events are still worth asking.
enum Until {
    /// Those stamped no later.
    Time(i64),
    /// Those that came before.
    Pos(i64),
    All,
    None,
}

impl Until {
    fn keeps(&self, at: &At) -> bool {
        match self {
            Until::Time(time) => at.time <= *time,
            Until::Pos(pos) => at.pos < *pos,
            Until::All => true,
            Until::None => false,
        }
    }
}

impl<'n> Asked<'n> {
    fn log(&self, log: usize) -> Option<&'n VecDeque<At>> {
        self.logs.get(log).copied().flatten()
    }

    /// The last time something happened that is no later than this event.
    fn last(&self, log: usize, at: At) -> Option<At> {
        let times = self.log(log)?;
        let past = times.partition_point(|other| other.pos <= at.pos);
        times.get(past.checked_sub(1)?).copied()
    }

    /// Whether it was so at this event, and if not, which events before are worth asking. Stamps are in order.
    fn holds(&self, then: &Then, at: At) -> Result<(), Until> {
        let (truth, until) = match &then.test {
            Test::Now(log) => {
                let last = self.last(*log, at);
                (last.is_some_and(|last| last.pos == at.pos), Until::All)
            }
            Test::Formerly(log, window) => match self.last(*log, at) {
                None => (false, Until::None),
                Some(last) if in_window(last.time, at.time, *window) => {
                    (true, Until::Pos(last.pos))
                }
                Some(last) => (false, Until::Time(last.time.saturating_add(*window))),
            },
            Test::Since(anchor, breaks, window) => {
                let broken = breaks.iter().filter_map(|log| self.last(*log, at));
                let broken = broken.map(|at| at.pos).max().unwrap_or(i64::MIN);
                let holds = self.last(*anchor, at).is_some_and(|last| {
                    last.pos >= broken && in_window(last.time, at.time, *window)
                });
                (holds, Until::All)
            }
        };
        match (truth, then.negated) {
            (true, false) | (false, true) => Ok(()),
            _ => Err(until),
        }
    }

    /// The same, in whatever order stamps are.
    fn holds_slowly(&self, then: &Then, at: At) -> bool {
        let before = |log: usize| {
            let times = self.log(log).into_iter().flatten();
            times.take_while(move |other| other.pos <= at.pos)
        };
        let truth = match &then.test {
            Test::Now(log) => before(*log).any(|other| other.pos == at.pos),
            Test::Formerly(log, window) => {
                before(*log).any(|other| in_window(other.time, at.time, *window))
            }
            Test::Since(anchor, breaks, window) => {
                let broken = breaks.iter().filter_map(|log| before(*log).last());
                let broken = broken.map(|at| at.pos).max().unwrap_or(i64::MIN);
                before(*anchor)
                    .any(|other| other.pos >= broken && in_window(other.time, at.time, *window))
            }
        };
        truth != then.negated
    }
}

impl Happened {
    fn new(width: usize) -> Happened {
        Happened {
            keys: Keyed::new(Flat::new(width)),
            held: 0,
            deadlines: BinaryHeap::new(),
        }
    }

    fn insert(&mut self, key: &[Val], at: At) {
        let id = match self.keys.find(key) {
            Some(id) => id,
            None => {
                let id = self.keys.insert(key, VecDeque::new());
                self.deadlines.push(Reverse((at.time, id)));
                id
            }
        };
        if let Some(times) = self.keys.get_mut(id) {
            if times.len() == times.capacity() {
                times.reserve_exact((times.len() / 4).max(2));
            }
            times.push_back(at);
            self.held += 1;
        }
    }

    /// Where stamps step back, something may stay as much longer.
    fn expire(&mut self, limit: i64) {
        while let Some(&Reverse((time, id))) = self.deadlines.peek()
            && time < limit
        {
            self.deadlines.pop();
            let Some(times) = self.keys.get_mut(id) else {
                continue;
            };
            while times.front().is_some_and(|at| at.time < limit) {
                times.pop_front();
                self.held = self.held.saturating_sub(1);
            }
            if times.capacity() > 64 && times.len() * 4 < times.capacity() {
                times.shrink_to(times.len() * 2);
            }
            match times.front() {
                Some(next) => self.deadlines.push(Reverse((next.time, id))),
                None => {
                    self.keys.remove(id);
                }
            }
        }
        if self.keys.is_sparse() {
            let keys = &mut self.keys;
            let ids: Vec<u32> = keys.ids().collect();
            let kept = ids.into_iter().filter_map(|id| {
                let key = keys.key(id)?.to_vec();
                Some((key, std::mem::take(keys.get_mut(id)?)))
            });
            let kept: Vec<(Vec<Val>, VecDeque<At>)> = kept.collect();
            *self = Happened::new(self.keys.width());
            for (key, times) in kept {
                times.into_iter().for_each(|at| self.insert(&key, at));
            }
        }
    }

    fn bytes(&self) -> usize {
        let times = self.keys.ids().filter_map(|id| self.keys.get(id));
        let times = times.map(|times| times.capacity() * size_of::<At>());
        times.sum::<usize>()
            + self.keys.bytes()
            + self.deadlines.capacity() * size_of::<Reverse<(i64, u32)>>()
    }
}
