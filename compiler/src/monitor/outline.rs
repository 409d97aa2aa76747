//! The network of a policy as names and numbers, for those who draw it or say what it costs.

use super::policy::{CellKind, Policy, asked};
use crate::automaton::build::Path;
use crate::automaton::formula::{
    Break, BreakShape, CellDef, CellId, CellOp, How, Matcher, Node, Pattern, Term, Test, Triggers,
};
use crate::automaton::reread::Form;
use crate::automaton::row::Slot;
use crate::automaton::value::{Stored, Val};
use crate::schema::EventId;
use crate::value::EntityUid;
use std::collections::BTreeSet;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    pub matchers: Vec<MatcherOutline>,
    /// In the order in which an event reaches them.
    pub cells: Vec<CellOutline>,
    pub leaves: Vec<LeafOutline>,
    /// How many there are; those that do not look back have no leaf.
    pub rules: usize,
}

/// A test of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatcherOutline {
    pub event: EventId,
    pub fields: Vec<(String, FieldTest)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldTest {
    /// Equal to this, as a policy writes it.
    Equals(String),
    /// Taken, to be compared with something else.
    Taken,
    Present,
    /// Equal to nothing.
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Formerly,
    Previous,
    Since,
    /// The common rows of two cells.
    Both,
    Count,
    Sum,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellOutline {
    pub operator: Operator,
    pub kind: CellKind,
    /// Seconds; of rules that share it and look back differently far, the longest.
    pub window: i64,
    /// The seconds for which something is kept: those, and what is looked back from there.
    pub kept: i64,
    /// Whether the time of every event is kept, whatever it is.
    pub every: bool,
    /// By what rows are told apart.
    pub keys: Vec<Key>,
    /// Of an aggregate: what is counted or summed, for each key.
    pub counted: Vec<Key>,
    /// Of a `since` with `!…` or `formerly` on its left: by what each break is told apart.
    pub breaks: Vec<Vec<Key>>,
    /// Numbers of what it reads.
    pub matchers: BTreeSet<usize>,
    pub cells: BTreeSet<usize>,
}

/// What a column of a cell holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A field of the events matched.
    Field(String),
    TimePoint,
    /// A term.
    Computed,
    /// Only known once a request is decided.
    Asked,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafOutline {
    pub rules: BTreeSet<usize>,
    pub matchers: BTreeSet<usize>,
    pub cells: BTreeSet<usize>,
}

impl Policy {
    pub fn outline(&self) -> Outline {
        let mut reader = Reader {
            policy: self,
            matchers: Vec::new(),
        };
        let cells: Vec<CellOutline> = self
            .network
            .cells
            .iter()
            .enumerate()
            .map(|(number, def)| reader.cell(number, def))
            .collect();
        let mut leaves: Vec<LeafOutline> = self
            .leaves
            .iter()
            .map(|leaf| LeafOutline {
                rules: BTreeSet::new(),
                matchers: reader.matchers_of(&leaf.node),
                cells: cells_of(&leaf.node),
            })
            .collect();
        for (number, rule) in self.rules.iter().enumerate() {
            for leaf in &rule.leaves {
                if let Some(leaf) = leaves.get_mut(*leaf) {
                    leaf.rules.insert(number);
                }
            }
        }
        Outline {
            matchers: reader.matchers,
            cells,
            leaves,
            rules: self.rules.len(),
        }
    }
}

struct Reader<'p> {
    policy: &'p Policy,
    matchers: Vec<MatcherOutline>,
}

impl Reader<'_> {
    fn cell(&mut self, number: CellId, def: &CellDef) -> CellOutline {
        let (operator, parts) = match &def.op {
            CellOp::Formerly(body) => (Operator::Formerly, vec![body]),
            CellOp::Previous(body) => (Operator::Previous, vec![body]),
            CellOp::Since { left, right, .. } => (Operator::Since, vec![left, right]),
            CellOp::Pair { .. } => (Operator::Both, def.nodes()),
            CellOp::Nested { test, .. } => {
                let operator = match test {
                    Test::Since(..) => Operator::Since,
                    Test::Previous(..) => Operator::Previous,
                    Test::Formerly(..)
                    | Test::Now(_)
                    | Test::Number(_)
                    | Test::Compare(..)
                    | Test::All(_) => Operator::Formerly,
                };
                (operator, def.nodes())
            }
            CellOp::Reread(plan) => {
                let operator = match plan.form {
                    Form::Since(..) => Operator::Since,
                    Form::Previous(..) => Operator::Previous,
                    _ => Operator::Formerly,
                };
                (operator, def.nodes())
            }
            CellOp::Window { body, sum, .. } => match sum {
                None => (Operator::Count, vec![body]),
                Some(_) => (Operator::Sum, vec![body]),
            },
        };
        let mut counted = Vec::new();
        let mut breaks = Vec::new();
        // What gives the columns their values.
        let binding = match &def.op {
            CellOp::Formerly(body) | CellOp::Previous(body) | CellOp::Window { body, .. } => body,
            CellOp::Since { right, .. } => right,
            CellOp::Pair { left, .. } => left,
            CellOp::Nested { logs, .. } => logs.first().map_or(&Node::Never, |log| &log.node),
            CellOp::Reread(_) => &Node::Never,
        };
        let mut columns = def.columns.clone();
        match &def.op {
            CellOp::Window { counted: slots, .. } => {
                columns.retain(|column| !slots.contains(column));
                counted = slots.iter().map(|slot| self.key(*slot, binding)).collect();
            }
            CellOp::Since {
                breaks: BreakShape::Parts(parts),
                ..
            } => {
                let keys = |part: &Break| {
                    let slots = part.keys.iter();
                    slots.map(|slot| self.key(*slot, &part.node)).collect()
                };
                let hits = parts.iter().filter(|part| part.how != How::Miss);
                breaks = hits.map(keys).collect();
            }
            _ => {}
        }
        let mut keys: Vec<Key> = columns
            .iter()
            .map(|slot| self.key(*slot, binding))
            .collect();
        let mut kept = def.window;
        let mut every = false;
        if let CellOp::Nested { logs, .. } = &def.op {
            let all = logs.iter().flat_map(|log| {
                let slots = log.keys.iter();
                slots.map(|slot| self.key(*slot, &log.node))
            });
            keys = all.collect();
            keys.sort();
            keys.dedup();
            every = logs.iter().any(|log| log.node.triggers() == Triggers::All);
            kept = def.reach();
        }
        if let CellOp::Reread(plan) = &def.op {
            let all = plan.logs.iter().flat_map(|log| {
                let slots = log.free().into_iter();
                slots.map(|slot| self.key(slot, log))
            });
            keys = all.collect();
            keys.sort();
            keys.dedup();
            every = true;
            kept = def.reach();
        }
        CellOutline {
            kept,
            every,
            operator,
            kind: self.policy.kind(number),
            window: def.window,
            keys,
            counted,
            breaks,
            matchers: parts
                .iter()
                .flat_map(|part| self.matchers_of(part))
                .collect(),
            cells: parts.iter().flat_map(|part| cells_of(part)).collect(),
        }
    }

    /// What a slot holds, by where the formula gives it its value.
    fn key(&self, slot: Slot, node: &Node) -> Key {
        self.bound_by(slot, node).unwrap_or(Key::Asked)
    }

    fn bound_by(&self, slot: Slot, node: &Node) -> Option<Key> {
        match node {
            Node::And(parts) => {
                let found = parts.iter().filter_map(|part| self.bound_by(slot, part));
                found.min()
            }
            Node::Exists(_, body) => self.bound_by(slot, body),
            Node::Match(matcher) => {
                let taken = |(_, pattern): &&(usize, Pattern)| *pattern == Pattern::Slot(slot);
                let (place, _) = matcher.patterns.iter().find(taken)?;
                Some(Key::Field(self.field(matcher, *place)))
            }
            Node::Tp(bound) => (*bound == slot).then_some(Key::TimePoint),
            Node::Bind(bound, _) => (*bound == slot).then_some(Key::Computed),
            Node::Cell(cell) | Node::Among(cell, ..) => {
                let def = self.policy.network.cells.get(cell.cell)?;
                let inner = def
                    .columns
                    .iter()
                    .find(|column| cell.outer(**column) == Some(slot))?;
                match &def.op {
                    CellOp::Formerly(body)
                    | CellOp::Previous(body)
                    | CellOp::Window { body, .. } => self.bound_by(*inner, body),
                    CellOp::Since { right, .. } => self.bound_by(*inner, right),
                    CellOp::Pair { left, .. } => self.bound_by(*inner, left),
                    CellOp::Nested { .. } | CellOp::Reread(_) => None,
                }
            }
            Node::Not(_) | Node::Compare(..) | Node::Never => None,
        }
    }

    fn matchers_of(&mut self, node: &Node) -> BTreeSet<usize> {
        let mut found = Vec::new();
        matchers(node, &mut found);
        found
            .into_iter()
            .filter_map(|matcher| self.matcher(matcher))
            .collect()
    }

    fn matcher(&mut self, matcher: &Matcher) -> Option<usize> {
        let network = &self.policy.network;
        let event = network.event_types.get_index(matcher.event as usize)?;
        let test = |pattern: &Pattern| match pattern {
            Pattern::Const(val) => FieldTest::Equals(self.text(*val)),
            Pattern::Slot(_) => FieldTest::Taken,
            Pattern::Present => FieldTest::Present,
            Pattern::Never => FieldTest::Never,
        };
        let outline = MatcherOutline {
            event: event.clone(),
            fields: matcher
                .patterns
                .iter()
                .map(|(place, pattern)| (self.field(matcher, *place), test(pattern)))
                .collect(),
        };
        let known = self.matchers.iter().position(|known| *known == outline);
        Some(known.unwrap_or_else(|| {
            self.matchers.push(outline);
            self.matchers.len() - 1
        }))
    }

    fn field(&self, matcher: &Matcher, place: usize) -> String {
        let fields = self.policy.network.fields.get(matcher.event as usize);
        let path: Option<&Path> = fields.and_then(|fields| fields.get_index(place));
        path.map_or_else(String::new, |path| path.join("."))
    }

    /// A constant of the policy, as a policy writes it.
    fn text(&self, val: Val) -> String {
        let number = match val {
            Val::Null => return "null".to_owned(),
            Val::Bool(b) => return b.to_string(),
            Val::Int(n) => return n.to_string(),
            Val::Decimal(scaled) => return decimal(scaled),
            Val::Short(text) => return format!("{:?}", text.text()),
            Val::Entity(number, _) | Val::Ref(number) => number,
        };
        let constants = self.policy.network.values.constants();
        let Some(Some(stored)) = constants.get(number as usize) else {
            return String::new();
        };
        let list =
            |vals: &[Val]| -> Vec<String> { vals.iter().map(|val| self.text(*val)).collect() };
        match stored {
            Stored::Str(text) => format!("{text:?}"),
            Stored::BadDecimal(text) => text.to_string(),
            Stored::Entity(uid) => uid.to_string(),
            Stored::Type(name) => match val {
                Val::Entity(_, id) => EntityUid::new(name.clone(), id.text()).to_string(),
                _ => name.to_string(),
            },
            Stored::Array(items) => format!("[{}]", list(items).join(", ")),
            Stored::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(name, val)| format!("{name}: {}", self.text(*val)));
                format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

fn decimal(scaled: i64) -> String {
    let sign = if scaled < 0 { "-" } else { "" };
    let (whole, part) = (
        scaled.unsigned_abs() / 10_000,
        scaled.unsigned_abs() % 10_000,
    );
    let part = format!("{part:04}");
    let part = part.trim_end_matches('0');
    format!("{sign}{whole}.{}", if part.is_empty() { "0" } else { part })
}

fn cells_of(node: &Node) -> BTreeSet<CellId> {
    let mut found = BTreeSet::new();
    asked(node, &mut found);
    found
}

/// The matchers of a formula, those inside its cells left out.
fn matchers<'n>(node: &'n Node, found: &mut Vec<&'n Matcher>) {
    match node {
        Node::And(parts) => parts.iter().for_each(|part| matchers(part, found)),
        Node::Not(body) | Node::Exists(_, body) => matchers(body, found),
        Node::Match(matcher) => found.push(matcher),
        Node::Bind(_, term) => matchers_of_term(term, found),
        Node::Compare(_, left, right) => {
            matchers_of_term(left, found);
            matchers_of_term(right, found);
        }
        Node::Tp(_) | Node::Cell(_) | Node::Among(..) | Node::Never => {}
    }
}

fn matchers_of_term<'n>(term: &'n Term, found: &mut Vec<&'n Matcher>) {
    match term {
        Term::Known(_) | Term::Slot(_) | Term::Window { .. } => {}
        Term::Arith(_, left, right) => {
            matchers_of_term(left, found);
            matchers_of_term(right, found);
        }
        Term::Total { body, .. } => matchers(body, found),
    }
}
