//! Formulas over numbered slots, as the automata run them.
//!
//! A *frame* is the slot space of one temporal leaf or one cell. Inside a cell's frame the variables and
//! request paths of the surrounding formula are just slots too, numbered by first occurrence; so two cells
//! that differ only in names are equal, and the place of use says which of its own slots each one stands for.

use super::reread::Plan;
use super::row::{Arith, Cmp, Slot, Sym, Total};
use super::value::Val;
use std::collections::BTreeSet;

pub(crate) type CellId = usize;

/// Number of an (action, kind) that some matcher of the policy names.
pub(crate) type EventTypeId = u32;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    And(Vec<Node>),
    Not(Box<Node>),
    Exists(Slot, Box<Node>),
    Match(Matcher),
    Tp(Slot),
    /// `x == term`: binds `x` where it has no value yet.
    Bind(Slot, Term),
    Compare(Cmp, Term, Term),
    Cell(Use),
    /// The rows of a cell whose column, the slot, compares in this way with terms that are known before.
    Among(Use, Slot, Vec<(Cmp, Term)>),
    /// An unreadable part; the front end has reported it.
    Never,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Matcher {
    pub event: EventTypeId,
    /// Constants first. The number is the place among the fields taken from this type of event.
    pub patterns: Vec<(usize, Pattern)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Pattern {
    Const(Val),
    Slot(Slot),
    Present,
    Never,
}

/// A cell in a formula: for each slot of the cell's frame, the slot of this frame it stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Use {
    pub cell: CellId,
    pub slots: Vec<Slot>,
    /// Seconds it looks back, both ends inside; the cell may keep more.
    pub window: i64,
}

/// In [`Use::slots`], a slot bound inside the cell.
pub(crate) const LOCAL: Slot = Slot::MAX;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Term {
    Known(Sym),
    Slot(Slot),
    Arith(Arith, Box<Term>, Box<Term>),
    /// An aggregate evaluated from its rows.
    Total {
        op: Total,
        vars: Vec<Slot>,
        body: Box<Node>,
    },
    /// An aggregate a window cell keeps up to date.
    Window {
        op: Total,
        vars: Vec<Slot>,
        cell: Use,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CellOp {
    Formerly(Node),
    Previous(Node),
    Since {
        left: Node,
        right: Node,
        breaks: BreakShape,
    },
    /// `count`/`sum` over `formerly body`: the columns counted, those that select, and the summand.
    Window {
        body: Node,
        counted: Vec<Slot>,
        sum: Option<usize>,
        by_time_point: bool,
    },
    /// The rows of one cell that others have, or do not have. The columns are those of the left one, which has
    /// those of all others; leaves ask by those of `group`, a bit each, perhaps for the sum of one; `events` can
    /// change any.
    Pair {
        left: Node,
        others: Vec<Other>,
        group: u64,
        summed: Option<usize>,
        events: BTreeSet<EventTypeId>,
    },
    /// An operator whose parts are told apart by different values of the request: what happened is kept, and
    /// looked through when the operator is asked. Asked by its whole key.
    Nested {
        logs: Vec<Log>,
        test: Test,
    },
    /// An operator of which no rows are kept: the decision goes through what happened.
    Reread(Box<Plan>),
}

/// How the left side of a `since` ends the life of an anchor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BreakShape {
    /// Every anchor is asked at every step where the left side may fail. Comes of rules that no check has seen
    /// only, whose variables come by no value; in all others what happened is gone through (see `reread`).
    General,
    /// The left side is a conjunction of parts that are kept track of one by one: no anchor is looked at
    /// before it is asked for.
    Parts(Vec<Break>),
}

/// What a nested operator keeps the points of, by the values of the slots that each row of the formula binds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Log {
    pub node: Node,
    pub keys: Vec<Slot>,
    /// What is kept of each event beside its time.
    pub vals: Vec<Slot>,
    /// Seconds for which they are kept.
    pub window: i64,
}

/// The events of a log, by its number, at which all of this was so.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct When {
    /// Of this, among all of the operator.
    pub number: usize,
    pub log: usize,
    pub then: Vec<Then>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Then {
    pub negated: bool,
    pub test: Test,
}

/// What can be so at an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Test {
    /// It is one of these.
    Now(When),
    /// One of these came no more than so many seconds before.
    Formerly(When, i64),
    /// One of the first came no more than so many seconds before, and none of the others since.
    Since(When, Vec<When>, i64),
    /// The event just before is one of these, and no more than so many seconds older.
    Previous(When, i64),
    Number(Box<Number>),
    Compare(Cmp, Side, Side),
    All(Vec<Then>),
}

/// How many of these came no more than so many seconds before, or the sum of what they say, against something.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Number {
    pub when: When,
    pub window: i64,
    /// Which of the values kept of each event is summed.
    pub sum: Option<usize>,
    /// By which of them equal ones are one; nothing, where each event is one.
    pub distinct: Option<Vec<usize>>,
    pub op: Cmp,
    pub than: Side,
}

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Val(Val),
    /// What the request has there.
    Asked(Slot),
    /// One of the values kept of the event at hand.
    Own(usize),
}

/// A cell that has a row of those joined, or has none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Other {
    pub node: Node,
    pub negated: bool,
}

/// A part of the left side of a `since`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Break {
    pub how: How,
    pub node: Node,
    /// The slots by whose values it tells anchors apart: all that each row of the formula binds.
    pub keys: Vec<Slot>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum How {
    /// `!node`: a row ends the anchors that agree with it. An event makes few.
    Hit,
    /// `node`: each event ends the anchors that agree with no row of it.
    Miss,
    /// `node` or `!node`, of a cell over latest times: it holds, or does not, until time passes.
    Lasting { negated: bool },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CellDef {
    pub op: CellOp,
    /// The seconds for which rows are kept, both ends inside.
    pub window: i64,
    /// Slots of the frame, and those of them the surroundings see.
    pub width: usize,
    pub columns: Vec<Slot>,
}

/// The events after which something can have changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Triggers {
    All,
    Types(BTreeSet<EventTypeId>),
}

impl Triggers {
    fn union(self, other: Triggers) -> Triggers {
        match (self, other) {
            (Triggers::Types(mut a), Triggers::Types(b)) => {
                a.extend(b);
                Triggers::Types(a)
            }
            _ => Triggers::All,
        }
    }
}

impl Node {
    /// The types of event at which this can have rows.
    pub fn triggers(&self) -> Triggers {
        match self {
            Node::Match(matcher) => Triggers::Types(BTreeSet::from([matcher.event])),
            Node::Never => Triggers::Types(BTreeSet::new()),
            Node::Exists(_, body) => body.triggers(),
            Node::And(parts) => {
                let finite = parts.iter().filter_map(|part| match part.triggers() {
                    Triggers::All => None,
                    Triggers::Types(types) => Some(types),
                });
                match finite.reduce(|a, b| a.intersection(&b).copied().collect()) {
                    Some(types) => Triggers::Types(types),
                    None => Triggers::All,
                }
            }
            _ => Triggers::All,
        }
    }

    /// Slots that have a value in each row (the range-restricted variables), given the cells.
    pub fn bound(&self, cells: &[CellDef]) -> BTreeSet<Slot> {
        match self {
            Node::And(parts) => parts.iter().flat_map(|part| part.bound(cells)).collect(),
            Node::Exists(slot, body) => {
                let mut bound = body.bound(cells);
                bound.remove(slot);
                bound
            }
            Node::Match(matcher) => matcher
                .patterns
                .iter()
                .filter_map(|(_, pattern)| match pattern {
                    Pattern::Slot(slot) => Some(*slot),
                    _ => None,
                })
                .collect(),
            Node::Tp(slot) | Node::Bind(slot, _) => BTreeSet::from([*slot]),
            Node::Cell(cell) | Node::Among(cell, ..) => {
                let Some(def) = cells.get(cell.cell) else {
                    return BTreeSet::new();
                };
                let inner = match &def.op {
                    CellOp::Formerly(body) | CellOp::Previous(body) => body.bound(cells),
                    CellOp::Since { right, .. } => right.bound(cells),
                    CellOp::Window { .. } | CellOp::Nested { .. } => BTreeSet::new(),
                    CellOp::Reread(plan) => plan.gives.iter().copied().collect(),
                    CellOp::Pair { .. } => def.columns.iter().copied().collect(),
                };
                inner.iter().filter_map(|slot| cell.outer(*slot)).collect()
            }
            Node::Not(_) | Node::Compare(..) | Node::Never => BTreeSet::new(),
        }
    }

    /// Every slot that occurs and is not bound by an `exists` or `for` inside.
    pub fn free(&self) -> BTreeSet<Slot> {
        match self {
            Node::And(parts) => parts.iter().flat_map(Node::free).collect(),
            Node::Not(body) => body.free(),
            Node::Exists(slot, body) => {
                let mut free = body.free();
                free.remove(slot);
                free
            }
            Node::Match(matcher) => matcher
                .patterns
                .iter()
                .filter_map(|(_, pattern)| match pattern {
                    Pattern::Slot(slot) => Some(*slot),
                    _ => None,
                })
                .collect(),
            Node::Tp(slot) => BTreeSet::from([*slot]),
            Node::Bind(slot, term) => {
                let mut free = term.free();
                free.insert(*slot);
                free
            }
            Node::Compare(_, left, right) => {
                let mut free = left.free();
                free.extend(right.free());
                free
            }
            Node::Cell(cell) => cell.outer_slots().collect(),
            Node::Among(cell, _, bounds) => {
                let mut free: BTreeSet<Slot> = cell.outer_slots().collect();
                free.extend(bounds.iter().flat_map(|(_, term)| term.free()));
                free
            }
            Node::Never => BTreeSet::new(),
        }
    }

    /// Whether it reads cells.
    pub fn has_cells(&self) -> bool {
        match self {
            Node::And(parts) => parts.iter().any(Node::has_cells),
            Node::Not(body) | Node::Exists(_, body) => body.has_cells(),
            Node::Bind(_, term) => term.has_cells(),
            Node::Compare(_, left, right) => left.has_cells() || right.has_cells(),
            Node::Cell(_) | Node::Among(..) => true,
            Node::Match(_) | Node::Tp(_) | Node::Never => false,
        }
    }

    /// For a *flat* formula, which depends on one event only and leaves nothing open, the slots each of
    /// its rows binds: matchers, `tp` and comparisons of what these bind.
    pub fn flat(&self) -> Option<BTreeSet<Slot>> {
        let mut bound = BTreeSet::new();
        self.flat_into(&mut bound).then_some(bound)
    }

    fn flat_into(&self, bound: &mut BTreeSet<Slot>) -> bool {
        match self {
            Node::And(parts) => parts.iter().all(|part| part.flat_into(bound)),
            Node::Exists(slot, body) => {
                let flat = body.flat_into(bound);
                bound.remove(slot);
                flat
            }
            Node::Match(_) | Node::Tp(_) => {
                bound.extend(self.free());
                true
            }
            Node::Bind(slot, term) => {
                let flat = term.flat(bound);
                bound.insert(*slot);
                flat
            }
            Node::Compare(_, left, right) => left.flat(bound) && right.flat(bound),
            Node::Not(body) => {
                let mut inner = bound.clone();
                body.flat_into(&mut inner) && inner == *bound
            }
            Node::Never => true,
            Node::Cell(_) | Node::Among(..) => false,
        }
    }

    /// Whether some `tp` in a flat formula binds one of these slots.
    pub fn time_point_in(&self, slots: &[Slot]) -> bool {
        match self {
            Node::And(parts) => parts.iter().any(|part| part.time_point_in(slots)),
            Node::Exists(_, body) => body.time_point_in(slots),
            Node::Tp(slot) => slots.contains(slot),
            _ => false,
        }
    }
}

impl Term {
    pub fn free(&self) -> BTreeSet<Slot> {
        match self {
            Term::Known(_) => BTreeSet::new(),
            Term::Slot(slot) => BTreeSet::from([*slot]),
            Term::Arith(_, left, right) => {
                let mut free = left.free();
                free.extend(right.free());
                free
            }
            Term::Total { vars, body, .. } => body
                .free()
                .into_iter()
                .filter(|slot| !vars.contains(slot))
                .collect(),
            Term::Window { vars, cell, .. } => cell
                .outer_slots()
                .filter(|slot| !vars.contains(slot))
                .collect(),
        }
    }

    pub fn has_cells(&self) -> bool {
        match self {
            Term::Known(_) | Term::Slot(_) => false,
            Term::Arith(_, left, right) => left.has_cells() || right.has_cells(),
            Term::Total { .. } | Term::Window { .. } => true,
        }
    }

    fn flat(&self, bound: &BTreeSet<Slot>) -> bool {
        match self {
            Term::Known(sym) => matches!(sym, Sym::Val(_)),
            Term::Slot(slot) => bound.contains(slot),
            Term::Arith(..) | Term::Total { .. } | Term::Window { .. } => false,
        }
    }
}

impl Use {
    /// The slot of the using frame a slot of the cell stands for.
    pub fn outer(&self, slot: Slot) -> Option<Slot> {
        self.slots
            .get(slot as usize)
            .copied()
            .filter(|outer| *outer != LOCAL)
    }

    pub fn outer_slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.slots.iter().copied().filter(|slot| *slot != LOCAL)
    }
}

impl CellDef {
    /// The seconds after which it holds nothing any more.
    pub fn reach(&self) -> i64 {
        match &self.op {
            CellOp::Nested { logs, .. } => {
                let windows = logs.iter().map(|log| log.window);
                windows.fold(self.window, i64::max)
            }
            CellOp::Reread(plan) => plan.reach,
            _ => self.window,
        }
    }

    pub fn triggers(&self) -> Triggers {
        match &self.op {
            CellOp::Formerly(body) | CellOp::Previous(body) | CellOp::Window { body, .. } => {
                body.triggers()
            }
            CellOp::Since {
                left,
                right,
                breaks,
            } => {
                let may_break = match breaks {
                    BreakShape::Parts(parts) => parts
                        .iter()
                        .map(|part| part.node.triggers())
                        .fold(Triggers::Types(BTreeSet::new()), Triggers::union),
                    BreakShape::General => failure_triggers(left),
                };
                right.triggers().union(may_break)
            }
            CellOp::Pair { events, .. } => Triggers::Types(events.clone()),
            CellOp::Nested { logs, .. } => logs
                .iter()
                .map(|log| log.node.triggers())
                .fold(Triggers::Types(BTreeSet::new()), Triggers::union),
            // The stamp of every event is kept.
            CellOp::Reread(_) => Triggers::All,
        }
    }

    /// The formulas it is made of.
    pub fn nodes(&self) -> Vec<&Node> {
        match &self.op {
            CellOp::Formerly(body) | CellOp::Previous(body) | CellOp::Window { body, .. } => {
                vec![body]
            }
            CellOp::Since {
                left,
                right,
                breaks,
            } => {
                let mut nodes = vec![left, right];
                if let BreakShape::Parts(parts) = breaks {
                    nodes.extend(parts.iter().map(|part| &part.node));
                }
                nodes
            }
            CellOp::Pair { left, others, .. } => {
                let others = others.iter().map(|other| &other.node);
                std::iter::once(left).chain(others).collect()
            }
            CellOp::Nested { logs, .. } => logs.iter().map(|log| &log.node).collect(),
            CellOp::Reread(plan) => plan.logs.iter().collect(),
        }
    }

    pub fn nodes_mut(&mut self) -> Vec<&mut Node> {
        match &mut self.op {
            CellOp::Formerly(body) | CellOp::Previous(body) | CellOp::Window { body, .. } => {
                vec![body]
            }
            CellOp::Since {
                left,
                right,
                breaks,
            } => {
                let mut nodes = vec![left, right];
                if let BreakShape::Parts(parts) = breaks {
                    nodes.extend(parts.iter_mut().map(|part| &mut part.node));
                }
                nodes
            }
            CellOp::Pair { left, others, .. } => {
                let others = others.iter_mut().map(|other| &mut other.node);
                std::iter::once(left).chain(others).collect()
            }
            CellOp::Nested { logs, .. } => logs.iter_mut().map(|log| &mut log.node).collect(),
            CellOp::Reread(plan) => plan.logs.iter_mut().collect(),
        }
    }

    /// Whether its rows bind all columns and leave nothing open.
    pub fn flat(&self) -> bool {
        match &self.op {
            CellOp::Formerly(body) => body
                .flat()
                .is_some_and(|bound| self.columns.iter().all(|c| bound.contains(c))),
            _ => false,
        }
    }
}

/// The types of event at which a left side can fail to hold.
fn failure_triggers(left: &Node) -> Triggers {
    match left {
        Node::Not(body) => body.triggers(),
        Node::And(parts) => parts
            .iter()
            .map(failure_triggers)
            .fold(Triggers::Types(BTreeSet::new()), Triggers::union),
        _ => Triggers::All,
    }
}
