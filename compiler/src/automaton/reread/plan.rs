//! An operator with those inside it as one formula, and how its variables come by their values.

use super::super::formula::{
    CellDef, CellOp, EventTypeId, LOCAL, Matcher, Node, Pattern, Term, Use,
};
use super::super::row::{Arith, Cmp, Slot, Sym, Total};
use super::super::value::Val;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// What is kept, and what is asked of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Plan {
    /// The matchers whose events are kept, each with a slot for every value that is.
    pub logs: Vec<Node>,
    pub form: Form,
    /// How many slots the formula has; the first are those of the operator's frame.
    pub width: usize,
    /// The slots that the operator gives values to, where they have none.
    pub gives: Vec<Slot>,
    /// Seconds, and how many operators look back from within each other.
    pub reach: i64,
    pub depth: i64,
}

/// In one slot space, each binder with slots of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    All(Vec<Form>),
    Not(Box<Form>),
    Exists(Vec<Slot>, Box<Form>, Memo),
    /// An event of a log, whose values the slots have.
    Event(usize, Vec<Slot>),
    /// The slot is the time point.
    Now(Slot),
    Compare(Cmp, Value, Value),
    Formerly(Box<Form>, i64, Memo),
    Previous(Box<Form>, i64, Memo),
    Since(Box<(Form, Form)>, i64, Memo),
    Never,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    /// Nothing for what is equal to nothing.
    Known(Option<Val>),
    Slot(Slot),
    Arith(Arith, Box<Value>, Box<Value>),
    Total(Total, Vec<Slot>, Box<Form>, Memo),
}

/// By what an answer is remembered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Memo {
    pub number: usize,
    pub free: Vec<Slot>,
    /// Whether it can be asked again with the same values.
    pub shared: bool,
}

impl Form {
    pub fn free(&self) -> BTreeSet<Slot> {
        match self {
            Form::All(parts) => parts.iter().flat_map(Form::free).collect(),
            Form::Not(body) => body.free(),
            Form::Event(_, slots) => slots.iter().copied().collect(),
            Form::Now(slot) => BTreeSet::from([*slot]),
            Form::Compare(_, left, right) => &left.free() | &right.free(),
            Form::Exists(.., memo)
            | Form::Formerly(.., memo)
            | Form::Previous(.., memo)
            | Form::Since(.., memo) => memo.free.iter().copied().collect(),
            Form::Never => BTreeSet::new(),
        }
    }

    /// Whether it takes only a few searches to say that it holds, or does not hold, somewhere in a range.
    pub fn is_quick(&self, holds: bool) -> bool {
        match self {
            Form::Event(..) | Form::Now(_) | Form::Never => true,
            Form::Not(body) => body.is_quick(!holds),
            Form::All(parts) => !holds && parts.iter().all(|part| part.is_quick(false)),
            Form::Formerly(body, ..) => holds && body.is_quick(true),
            Form::Since(sides, ..) => {
                let (left, right) = &**sides;
                holds && matches!(right, Form::Event(..)) && left.is_quick(false)
            }
            Form::Exists(..) | Form::Compare(..) | Form::Previous(..) => false,
        }
    }

    /// Whether what a slot can be is found by going through events, where these slots are known. What it can be
    /// must not be said by what is still looked for.
    fn gives(&self, slot: Slot, known: &BTreeSet<Slot>, sought: &BTreeSet<Slot>) -> bool {
        match self {
            Form::Event(_, slots) => slots.contains(&slot),
            Form::Now(own) => *own == slot,
            Form::Compare(..) => self
                .needs(slot)
                .iter()
                .any(|needs| needs.is_subset(known) && needs.is_disjoint(sought)),
            Form::All(parts) => {
                let inner = &(sought | &BTreeSet::from([slot]));
                let found = |needs: &BTreeSet<Slot>| {
                    let mut missing = needs.difference(known);
                    needs.is_disjoint(inner) && missing.all(|need| self.gives(*need, known, inner))
                };
                let mut each = parts.iter();
                each.any(|part| {
                    part.gives(slot, known, sought) || part.needs(slot).iter().any(found)
                })
            }
            Form::Exists(_, body, _) | Form::Formerly(body, ..) | Form::Previous(body, ..) => {
                body.gives(slot, known, sought)
            }
            Form::Since(sides, ..) => sides.1.gives(slot, known, sought),
            Form::Not(_) | Form::Never => false,
        }
    }

    /// What has to be known before a comparison says what the slot is, for each side that can be the slot.
    pub fn needs(&self, slot: Slot) -> Vec<BTreeSet<Slot>> {
        let sides = self.says(slot).into_iter();
        sides.map(Value::free).collect()
    }

    /// What the slot has to be equal to, where this is a comparison with something else.
    pub fn says(&self, slot: Slot) -> Vec<&Value> {
        let Form::Compare(Cmp::Eq, left, right) = self else {
            return Vec::new();
        };
        let both = [(left, right), (right, left)].into_iter();
        let others = both.filter(|(side, _)| **side == Value::Slot(slot));
        let others = others.map(|(_, other)| other);
        others
            .filter(|other| !other.free().contains(&slot))
            .collect()
    }

    /// Whether all of these are found, one after the other.
    fn gives_all(&self, slots: &[Slot], known: &BTreeSet<Slot>) -> bool {
        let mut known = known.clone();
        let mut left: Vec<Slot> = slots.to_vec();
        let none = BTreeSet::new();
        while !left.is_empty() {
            let found = |slot: &Slot| self.gives(*slot, &known, &none);
            let Some(at) = left.iter().position(found) else {
                return false;
            };
            known.insert(left.swap_remove(at));
        }
        true
    }
}

impl Value {
    pub fn free(&self) -> BTreeSet<Slot> {
        match self {
            Value::Known(_) => BTreeSet::new(),
            Value::Slot(slot) => BTreeSet::from([*slot]),
            Value::Arith(_, left, right) => &left.free() | &right.free(),
            Value::Total(.., memo) => memo.free.iter().copied().collect(),
        }
    }

    /// Whether it is the same at every event.
    pub fn is_steady(&self) -> bool {
        match self {
            Value::Known(_) | Value::Slot(_) => true,
            Value::Arith(_, left, right) => left.is_steady() && right.is_steady(),
            Value::Total(..) => false,
        }
    }
}

/// How many values of an event it can be looked up by: a bit each.
const VALUES: usize = 64;

/// The plan for an operator whose columns are these. Nothing, where a variable comes by no value: in rules that no
/// check has seen.
pub(in super::super) fn plan(
    op: &CellOp,
    (window, width): (i64, usize),
    columns: &[Slot],
    cells: &[CellDef],
) -> Option<Plan> {
    let mut planner = Planner {
        cells,
        logs: Vec::new(),
        width: Slot::try_from(width).ok()?,
        known: columns.iter().copied().collect(),
        numbers: 0,
        depth: 0,
    };
    let names: Vec<Slot> = (0..planner.width).collect();
    let bound = match op {
        CellOp::Formerly(body) | CellOp::Previous(body) => body.bound(cells),
        CellOp::Since { right, .. } => right.bound(cells),
        CellOp::Window { .. } | CellOp::Pair { .. } | CellOp::Nested { .. } | CellOp::Reread(_) => {
            return None;
        }
    };
    let (form, reach) = planner.operator(op, window, &names, 1)?;
    let columns = columns.iter().copied();
    let (gives, given): (Vec<Slot>, Vec<Slot>) = columns.partition(|slot| bound.contains(slot));
    form.gives_all(&gives, &given.into_iter().collect())
        .then_some(Plan {
            logs: planner.logs,
            form,
            width: usize::from(planner.width),
            gives,
            reach,
            depth: planner.depth,
        })
}

struct Planner<'p> {
    cells: &'p [CellDef],
    logs: Vec<Node>,
    width: Slot,
    /// The slots that have a value where the formula at hand is asked.
    known: BTreeSet<Slot>,
    numbers: usize,
    depth: i64,
}

/// A formula, and how far it looks back.
type Reaching<T> = Option<(T, i64)>;

impl Planner<'_> {
    fn memo(&mut self, free: BTreeSet<Slot>) -> Memo {
        self.numbers += 1;
        Memo {
            number: self.numbers,
            shared: !self.known.is_subset(&free),
            free: free.into_iter().collect(),
        }
    }

    fn operator(&mut self, op: &CellOp, window: i64, names: &[Slot], depth: i64) -> Reaching<Form> {
        self.depth = self.depth.max(depth);
        match op {
            CellOp::Formerly(body) => {
                let (body, inner) = self.node(body, names, depth + 1)?;
                let memo = self.memo(body.free());
                let form = Form::Formerly(Box::new(body), window, memo);
                Some((form, window.saturating_add(inner)))
            }
            CellOp::Previous(body) => {
                let (body, inner) = self.node(body, names, depth + 1)?;
                let memo = self.memo(body.free());
                let form = Form::Previous(Box::new(body), window, memo);
                Some((form, window.saturating_add(inner)))
            }
            CellOp::Since { left, right, .. } => {
                let (right, one) = self.node(right, names, depth + 1)?;
                let (left, other) = self.node(left, names, depth + 1)?;
                let memo = self.memo(&left.free() | &right.free());
                let form = Form::Since(Box::new((left, right)), window, memo);
                Some((form, window.saturating_add(one.max(other))))
            }
            CellOp::Window { .. }
            | CellOp::Pair { .. }
            | CellOp::Nested { .. }
            | CellOp::Reread(_) => None,
        }
    }

    fn node(&mut self, node: &Node, names: &[Slot], depth: i64) -> Reaching<Form> {
        match node {
            Node::And(parts) => {
                let mut flat = Vec::with_capacity(parts.len());
                let mut reach = 0;
                for part in parts {
                    let (part, inner) = self.node(part, names, depth)?;
                    reach = reach.max(inner);
                    match part {
                        Form::All(inner) => flat.extend(inner),
                        part => flat.push(part),
                    }
                }
                // A time point that is known leaves one event to look at, and of what says most there is least.
                flat.sort_by_cached_key(|part| {
                    let is_point = matches!(part, Form::Now(_));
                    (!is_point, Reverse(part.free().len()))
                });
                Some((Form::All(flat), reach))
            }
            Node::Not(body) => {
                let (body, reach) = self.node(body, names, depth)?;
                Some((Form::Not(Box::new(body)), reach))
            }
            Node::Exists(..) => {
                let mut slots = Vec::new();
                let mut body = node;
                while let Node::Exists(slot, inner) = body {
                    slots.push(*names.get(*slot as usize)?);
                    body = inner;
                }
                let outside = self.known.clone();
                self.known.extend(&slots);
                let (body, reach) = self.node(body, names, depth)?;
                self.known = outside;
                Some((self.exists(slots, body)?, reach))
            }
            Node::Match(matcher) => Some((self.event(matcher, names)?, 0)),
            Node::Tp(slot) => Some((Form::Now(*names.get(*slot as usize)?), 0)),
            Node::Bind(slot, term) => {
                let slot = Value::Slot(*names.get(*slot as usize)?);
                let (term, reach) = self.term(term, names, depth)?;
                Some((Form::Compare(Cmp::Eq, slot, term), reach))
            }
            Node::Compare(op, left, right) => {
                let (left, one) = self.term(left, names, depth)?;
                let (right, other) = self.term(right, names, depth)?;
                Some((Form::Compare(*op, left, right), one.max(other)))
            }
            Node::Cell(cell) => self.cell(cell, names, depth),
            Node::Never => Some((Form::Never, 0)),
            Node::Among(..) => None,
        }
    }

    /// What does not speak of the variables stands beside them, and is asked once for all their values.
    fn exists(&mut self, slots: Vec<Slot>, body: Form) -> Option<Form> {
        let parts = match body {
            Form::All(parts) => parts,
            one => vec![one],
        };
        let own = |part: &Form| slots.iter().any(|slot| part.free().contains(slot));
        let (mut inside, mut beside): (Vec<Form>, Vec<Form>) = parts.into_iter().partition(own);
        let body = match inside.len() {
            1 => inside.pop()?,
            _ => Form::All(inside),
        };
        if !body.gives_all(&slots, &self.known) {
            return None;
        }
        let mut free = body.free();
        free.retain(|slot| !slots.contains(slot));
        let memo = self.memo(free);
        let form = Form::Exists(slots, Box::new(body), memo);
        if beside.is_empty() {
            return Some(form);
        }
        beside.push(form);
        Some(Form::All(beside))
    }

    /// With more values than an event is looked up by, several matchers of one event.
    fn event(&mut self, matcher: &Matcher, names: &[Slot]) -> Option<Form> {
        let mut slots = Vec::new();
        let (mut fixed, mut open) = (Vec::new(), Vec::new());
        for (place, pattern) in &matcher.patterns {
            match pattern {
                Pattern::Slot(slot) => {
                    let column = Slot::try_from(slots.len() % VALUES).ok()?;
                    slots.push(*names.get(*slot as usize)?);
                    open.push((*place, Pattern::Slot(column)));
                }
                Pattern::Never => return Some(Form::Never),
                Pattern::Const(_) | Pattern::Present => fixed.push((*place, pattern.clone())),
            }
        }
        if slots.len() <= VALUES {
            return Some(self.happened(matcher.event, fixed, &open, slots));
        }
        let parts = open.chunks(VALUES).zip(slots.chunks(VALUES));
        let parts = parts
            .map(|(open, slots)| self.happened(matcher.event, fixed.clone(), open, slots.to_vec()));
        Some(Form::All(parts.collect()))
    }

    fn happened(
        &mut self,
        event: EventTypeId,
        mut patterns: Vec<(usize, Pattern)>,
        open: &[(usize, Pattern)],
        slots: Vec<Slot>,
    ) -> Form {
        patterns.extend_from_slice(open);
        let kept = Node::Match(Matcher { event, patterns });
        let log = match self.logs.iter().position(|log| *log == kept) {
            Some(log) => log,
            None => {
                self.logs.push(kept);
                self.logs.len() - 1
            }
        };
        Form::Event(log, slots)
    }

    fn cell(&mut self, cell: &Use, names: &[Slot], depth: i64) -> Reaching<Form> {
        let def = self.cells.get(cell.cell)?;
        let mut inner = Vec::with_capacity(cell.slots.len());
        for slot in &cell.slots {
            inner.push(match *slot {
                LOCAL => {
                    let fresh = self.width;
                    self.width = fresh.checked_add(1).filter(|width| *width < LOCAL)?;
                    fresh
                }
                outer => *names.get(outer as usize)?,
            });
        }
        self.operator(&def.op, cell.window, &inner, depth)
    }

    fn term(&mut self, term: &Term, names: &[Slot], depth: i64) -> Reaching<Value> {
        match term {
            Term::Known(Sym::Val(val)) => Some((Value::Known(Some(*val)), 0)),
            Term::Known(Sym::Bottom) => Some((Value::Known(None), 0)),
            Term::Known(Sym::Slot(_) | Sym::Term(_)) | Term::Window { .. } => None,
            Term::Slot(slot) => Some((Value::Slot(*names.get(*slot as usize)?), 0)),
            Term::Arith(op, left, right) => {
                let (left, one) = self.term(left, names, depth)?;
                let (right, other) = self.term(right, names, depth)?;
                let value = Value::Arith(*op, Box::new(left), Box::new(right));
                Some((value, one.max(other)))
            }
            Term::Total { op, vars, body } => {
                let vars: Option<Vec<Slot>> = vars
                    .iter()
                    .map(|var| names.get(*var as usize).copied())
                    .collect();
                let vars = vars?;
                let outside = self.known.clone();
                self.known.extend(&vars);
                let (body, reach) = self.node(body, names, depth)?;
                self.known = outside;
                if !body.gives_all(&vars, &self.known) {
                    return None;
                }
                let mut free = body.free();
                free.retain(|slot| !vars.contains(slot));
                let memo = self.memo(free);
                Some((Value::Total(*op, vars, Box::new(body), memo), reach))
            }
        }
    }
}
