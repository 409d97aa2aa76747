//! Making the tests of one decision.

use super::{Constant, Parts, Path, PathId, Program, Test, TestId};
use crate::automaton::parse_decimal;
use crate::eval::extension::IpNet;
use crate::eval::guard::{Request, Step, is_true, like};
use crate::value::{EntityUid, Record, Value};
use dogwood_grammar::ast::{CompareOp, Var};
use smallvec::SmallVec;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    False,
    True,
    Error,
}

impl From<bool> for Truth {
    fn from(b: bool) -> Truth {
        if b { Truth::True } else { Truth::False }
    }
}

/// Where a path leads in this request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'a> {
    Value(&'a Value),
    Uid(&'a EntityUid),
    Record(&'a Record),
    /// There is no attribute at this depth.
    Absent(u16),
    /// Nothing on the way can have attributes.
    Wrong,
}

/// What the decision at hand knows already. Marked with the number of the decision, so that nothing has to
/// be cleared for the next one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    number: u32,
    /// The number of the decision times four, and the truth.
    tests: Vec<u32>,
    /// The number of the decision, and the place among what was found.
    paths: Vec<(u32, u32)>,
}

impl Scratch {
    fn begin(&mut self, program: &Program) {
        self.number += 1;
        if self.number >= 1 << 30 || self.tests.len() != program.tests.len() {
            self.number = 1;
            self.tests = vec![0; program.tests.len()];
            self.paths = vec![(0, 0); program.paths.len()];
        }
    }
}

pub(crate) struct Run<'r, 'a> {
    program: &'a Program,
    on: &'r Request<'a>,
    scratch: &'r mut Scratch,
    found: SmallVec<[Found<'a>; 16]>,
    leaf: Step<'r>,
}

impl<'r, 'a> Run<'r, 'a> {
    pub fn new(
        program: &'a Program,
        on: &'r Request<'a>,
        scratch: &'r mut Scratch,
        leaf: Step<'r>,
    ) -> Run<'r, 'a> {
        scratch.begin(program);
        Run {
            program,
            on,
            scratch,
            found: SmallVec::new(),
            leaf,
        }
    }

    pub fn leaf(&mut self, number: usize) -> bool {
        (self.leaf)(number)
    }

    pub fn truth(&mut self, id: TestId) -> Truth {
        let mark = self.scratch.number << 2;
        match self.scratch.tests.get(id as usize) {
            Some(known) if known & !3 == mark => match known & 3 {
                0 => return Truth::False,
                1 => return Truth::True,
                _ => return Truth::Error,
            },
            _ => {}
        }
        let program = self.program;
        let truth = match program.tests.get(id as usize) {
            Some(test) => self.make(test),
            None => Truth::Error,
        };
        if let Some(place) = self.scratch.tests.get_mut(id as usize) {
            *place = mark | truth as u32;
        }
        truth
    }

    fn make(&mut self, test: &'a Test) -> Truth {
        match test {
            Test::Known(known) => Truth::from(*known),
            Test::Leaf(number) => Truth::from((self.leaf)(*number)),
            Test::Not(inner) => match self.truth(*inner) {
                Truth::False => Truth::True,
                Truth::True => Truth::False,
                Truth::Error => Truth::Error,
            },
            Test::All(parts) => self.until(parts, Truth::False, Truth::True),
            Test::Any(parts) => self.until(parts, Truth::True, Truth::False),
            Test::If([test, yes, no]) => match self.truth(*test) {
                Truth::True => self.truth(*yes),
                Truth::False => self.truth(*no),
                Truth::Error => Truth::Error,
            },
            Test::Tree(guard) => {
                is_true(guard, self.on, self.leaf).map_or(Truth::Error, Truth::from)
            }
            Test::Has(path, from) => match self.find(*path) {
                Found::Absent(depth) if depth >= *from => Truth::False,
                Found::Absent(_) | Found::Wrong => Truth::Error,
                _ => Truth::True,
            },
            Test::OrderOf(op, left, right) => {
                let (left, right) = (long(self.find(*left)), long(self.find(*right)));
                match (left, right) {
                    (Some(left), Some(right)) => Truth::from(in_order(*op, left, right)),
                    _ => Truth::Error,
                }
            }
            Test::Holds(path)
            | Test::Same(path, _)
            | Test::OneOf(path, _)
            | Test::Among(path, _)
            | Test::Order(_, path, _)
            | Test::Scaled(_, path, _)
            | Test::Like(path, _)
            | Test::Is(path, _)
            | Test::In(path, _)
            | Test::InRange(path, _) => {
                let found = self.find(*path);
                self.of_found(test, found).map_or(Truth::Error, Truth::from)
            }
        }
    }

    /// A test of one value; nothing where it fails.
    fn of_found(&self, test: &Test, found: Found<'a>) -> Option<bool> {
        if matches!(found, Found::Absent(_) | Found::Wrong) {
            return None;
        }
        match (test, found) {
            (Test::Same(_, constant), found) => Some(same(found, constant)),
            (Test::OneOf(_, constants), found) => {
                Some(constants.iter().any(|constant| same(found, constant)))
            }
            (Test::Holds(_), Found::Value(Value::Bool(b))) => Some(*b),
            (Test::Among(_, constant), Found::Value(Value::Array(items))) => {
                Some(items.iter().any(|item| same(Found::Value(item), constant)))
            }
            (Test::Order(op, _, n), found) => Some(in_order(*op, long(found)?, *n)),
            (Test::Scaled(op, _, n), Found::Value(Value::Decimal(text))) => {
                Some(in_order(*op, parse_decimal(text)?, *n))
            }
            (Test::Like(_, pattern), found) => Some(like(text(found)?, pattern)),
            (Test::InRange(_, net), found) => Some(IpNet::parse(text(found)?)?.is_in_range(*net)),
            (Test::Is(_, ty), found) => Some(entity(found)?.ty == *ty),
            (Test::In(_, groups), found) => {
                let uid = entity(found)?;
                Some(groups.iter().any(|group| self.on.is_in(uid, group)))
            }
            _ => None,
        }
    }

    /// Tests one after another until one says `stop`, else `end`.
    fn until(&mut self, parts: &'a Parts, stop: Truth, end: Truth) -> Truth {
        if !parts.waits {
            for part in &parts.list {
                let truth = self.truth(*part);
                if truth != end {
                    return truth;
                }
            }
            return end;
        }
        let program = self.program;
        let asks = |part: &TestId| program.asks.get(*part as usize).copied().unwrap_or(false);
        let mut failed = None;
        for (at, part) in parts.list.iter().enumerate() {
            if asks(part) {
                continue;
            }
            let truth = self.truth(*part);
            if truth == stop {
                return stop;
            }
            if truth == Truth::Error {
                failed = Some(at);
                break;
            }
        }
        let before = parts.list.get(..failed.unwrap_or(parts.list.len()));
        for part in before.unwrap_or_default() {
            if asks(part) && self.truth(*part) == stop {
                return stop;
            }
        }
        if failed.is_some() { Truth::Error } else { end }
    }

    pub fn find(&mut self, path: PathId) -> Found<'a> {
        let number = self.scratch.number;
        match self.scratch.paths.get(path as usize) {
            Some((decision, place)) if *decision == number => {
                return self
                    .found
                    .get(*place as usize)
                    .copied()
                    .unwrap_or(Found::Wrong);
            }
            _ => {}
        }
        let program = self.program;
        let found = match program.paths.get(path as usize) {
            Some(Path::Root(Var::Principal)) => Found::Uid(self.on.principal),
            Some(Path::Root(Var::Action)) => Found::Uid(self.on.action),
            Some(Path::Root(Var::Resource)) => Found::Uid(self.on.resource),
            Some(Path::Root(Var::Context)) => Found::Record(self.on.context),
            // A path is numbered after the one it goes on from.
            Some(Path::Attr { of, name, depth }) => self.attribute(*of, name, *depth),
            None => Found::Wrong,
        };
        let place = u32::try_from(self.found.len()).unwrap_or(u32::MAX);
        self.found.push(found);
        if let Some(known) = self.scratch.paths.get_mut(path as usize) {
            *known = (number, place);
        }
        found
    }

    fn attribute(&mut self, of: PathId, name: &str, depth: u16) -> Found<'a> {
        let record = |fields: &'a Record| match fields.get(name) {
            Some(value) => Found::Value(value),
            None => Found::Absent(depth),
        };
        let entity = |uid: &EntityUid| {
            let given = self.on.entities.get(uid);
            match given.and_then(|given| given.attrs.get(name)) {
                None | Some(Value::Null) => Found::Absent(depth),
                Some(value) => Found::Value(value),
            }
        };
        match self.find(of) {
            Found::Record(fields) | Found::Value(Value::Object(fields)) => record(fields),
            Found::Uid(uid) | Found::Value(Value::Entity(uid)) => entity(uid),
            Found::Value(_) => Found::Wrong,
            nothing => nothing,
        }
    }
}

fn same(found: Found<'_>, constant: &Constant) -> bool {
    match (found, constant) {
        (Found::Value(Value::String(text)), Constant::Str(other)) => text == other,
        // Null reads as the empty string.
        (Found::Value(Value::Null), Constant::Str(other)) => other.is_empty(),
        (Found::Value(Value::Int(n)), Constant::Long(other)) => n == other,
        (Found::Value(Value::Bool(b)), Constant::Bool(other)) => b == other,
        (Found::Value(Value::Entity(uid)) | Found::Uid(uid), Constant::Entity(other)) => {
            uid == other
        }
        _ => false,
    }
}

fn text(found: Found<'_>) -> Option<&str> {
    match found {
        Found::Value(Value::String(text)) => Some(text),
        Found::Value(Value::Null) => Some(""),
        _ => None,
    }
}

fn long(found: Found<'_>) -> Option<i64> {
    match found {
        Found::Value(Value::Int(n)) => Some(*n),
        _ => None,
    }
}

fn entity(found: Found<'_>) -> Option<&EntityUid> {
    match found {
        Found::Value(Value::Entity(uid)) | Found::Uid(uid) => Some(uid),
        _ => None,
    }
}

fn in_order(op: CompareOp, left: i64, right: i64) -> bool {
    match op {
        CompareOp::Eq => left == right,
        CompareOp::Ne => left != right,
        CompareOp::Lt => left < right,
        CompareOp::Le => left <= right,
        CompareOp::Gt => left > right,
        CompareOp::Ge => left >= right,
    }
}
