//! The conditions of all rules as one program of shared tests.
//!
//! Equal tests, whichever rules they come from, are one, and a decision makes each at most once. A test says
//! true, false or *error*; which error, the tree evaluator (`guard`) is asked, which is the definition that
//! this program must equal. What has no quick form here is a test that runs the tree.
//!
//! Temporal leaves cannot fail and may cost more than anything else, so a conjunction or disjunction makes its
//! other tests first, as far as that changes nothing: see [`Parts`].

mod run;
mod select;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use run::{Found, Run, Scratch, Truth};
pub(crate) use select::Selection;

use super::extension::IpNet;
use super::guard::{Constructor, Guard, Method};
use crate::automaton::parse_decimal;
use crate::value::EntityUid;
use dogwood_grammar::ast::{CompareOp, PatternPart, Var};
use indexmap::IndexSet;
use smol_str::SmolStr;

pub(crate) type TestId = u32;
pub(crate) type PathId = u32;

/// A way into the request: a variable, or an attribute of what another path leads to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Path {
    Root(Var),
    Attr {
        of: PathId,
        name: SmolStr,
        /// Attributes from the root to here.
        depth: u16,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constant {
    Bool(bool),
    Long(i64),
    Str(SmolStr),
    Entity(EntityUid),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Test {
    Known(bool),
    /// A temporal leaf, by its number in the policy.
    Leaf(usize),
    Not(TestId),
    All(Parts),
    Any(Parts),
    If([TestId; 3]),
    /// A path to a Bool that is true.
    Holds(PathId),
    /// Whether the attributes from this depth on are there.
    Has(PathId, u16),
    Same(PathId, Constant),
    OneOf(PathId, Vec<Constant>),
    /// Whether a set has this element.
    Among(PathId, Constant),
    Order(CompareOp, PathId, i64),
    OrderOf(CompareOp, PathId, PathId),
    /// Of decimals, the constant scaled.
    Scaled(CompareOp, PathId, i64),
    Like(PathId, Vec<PatternPart>),
    Is(PathId, SmolStr),
    In(PathId, Vec<EntityUid>),
    InRange(PathId, IpNet),
    Tree(Guard),
}

/// Tests in the order of the text. Where some but not all of them only ask leaves, these wait: of
/// `leaf && test`, a test that is false settles the conjunction whatever the leaf says; after a test that
/// fails, the leaves before it have to be asked all the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Parts {
    pub list: Vec<TestId>,
    pub waits: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    tests: Vec<Test>,
    /// For each test, whether it only asks leaves.
    asks: Vec<bool>,
    paths: Vec<Path>,
}

#[derive(Debug, Default)]
pub(crate) struct Builder {
    tests: IndexSet<Test>,
    asks: Vec<bool>,
    paths: IndexSet<Path>,
}

impl Builder {
    pub fn finish(self) -> Program {
        Program {
            tests: self.tests.into_iter().collect(),
            asks: self.asks,
            paths: self.paths.into_iter().collect(),
        }
    }

    fn get(&self, id: TestId) -> Option<&Test> {
        self.tests.get_index(id as usize)
    }

    fn only_asks(&self, id: TestId) -> bool {
        self.asks.get(id as usize).copied().unwrap_or(false)
    }

    pub fn test(&mut self, test: Test) -> TestId {
        let asks = match &test {
            Test::Leaf(_) => true,
            Test::Not(inner) => self.only_asks(*inner),
            Test::If(parts) => parts.iter().all(|part| self.only_asks(*part)),
            Test::All(parts) | Test::Any(parts) => {
                !parts.list.is_empty() && parts.list.iter().all(|part| self.only_asks(*part))
            }
            _ => false,
        };
        let (at, new) = self.tests.insert_full(test);
        if new {
            self.asks.push(asks);
        }
        TestId::try_from(at).unwrap_or(TestId::MAX)
    }

    /// A conjunction. Inner ones are made part of it, and a test that comes twice is made once.
    pub fn all(&mut self, parts: Vec<TestId>) -> TestId {
        let list = self.flat(parts, true);
        match list.as_slice() {
            [] => self.test(Test::Known(true)),
            [one] => *one,
            _ => {
                let parts = self.parts(list);
                self.test(Test::All(parts))
            }
        }
    }

    fn any(&mut self, parts: Vec<TestId>) -> TestId {
        let list = self.flat(parts, false);
        match list.as_slice() {
            [] => self.test(Test::Known(false)),
            [one] => *one,
            _ => {
                let parts = self.parts(list);
                self.test(Test::Any(parts))
            }
        }
    }

    fn flat(&self, parts: Vec<TestId>, all: bool) -> Vec<TestId> {
        let mut list = IndexSet::with_capacity(parts.len());
        for part in parts {
            match self.get(part) {
                Some(Test::Known(known)) if *known == all => {}
                Some(Test::All(inner)) if all => list.extend(inner.list.iter().copied()),
                Some(Test::Any(inner)) if !all => list.extend(inner.list.iter().copied()),
                _ => {
                    list.insert(part);
                }
            }
        }
        list.into_iter().collect()
    }

    fn parts(&self, list: Vec<TestId>) -> Parts {
        let asking = list.iter().filter(|part| self.only_asks(**part)).count();
        let waits = asking > 0 && asking < list.len();
        Parts { list, waits }
    }

    pub fn root(&mut self, var: Var) -> PathId {
        self.path_id(Path::Root(var))
    }

    fn path_id(&mut self, path: Path) -> PathId {
        let (at, _) = self.paths.insert_full(path);
        PathId::try_from(at).unwrap_or(PathId::MAX)
    }

    fn depth(&self, path: PathId) -> u16 {
        match self.paths.get_index(path as usize) {
            Some(Path::Attr { depth, .. }) => *depth,
            _ => 0,
        }
    }

    fn attribute(&mut self, of: PathId, name: &SmolStr) -> Option<PathId> {
        let depth = self.depth(of).checked_add(1)?;
        let name = name.clone();
        Some(self.path_id(Path::Attr { of, name, depth }))
    }

    fn path(&mut self, guard: &Guard) -> Option<PathId> {
        let mut names = Vec::new();
        let mut at = guard;
        while let Guard::Attr(target, name) = at {
            names.push(name);
            at = target;
        }
        let Guard::Var(var) = at else { return None };
        let root = self.root(*var);
        let mut names = names.into_iter().rev();
        names.try_fold(root, |path, name| self.attribute(path, name))
    }

    /// The test that a condition is true, in the quick form where it has one.
    pub fn condition(&mut self, guard: &Guard) -> TestId {
        match self.quick(guard) {
            Some(id) => id,
            None => self.test(Test::Tree(guard.clone())),
        }
    }

    fn conditions(&mut self, guards: &[Guard]) -> Vec<TestId> {
        guards.iter().map(|guard| self.condition(guard)).collect()
    }

    fn quick(&mut self, guard: &Guard) -> Option<TestId> {
        let test = match guard {
            Guard::Bool(known) => Test::Known(*known),
            Guard::Leaf(number) => Test::Leaf(*number),
            Guard::Var(_) | Guard::Attr(..) => Test::Holds(self.path(guard)?),
            Guard::Not(inner) => Test::Not(self.condition(inner)),
            Guard::And(parts) => {
                let parts = self.conditions(parts);
                return Some(self.all(parts));
            }
            Guard::Or(parts) => {
                let parts = self.conditions(parts);
                return Some(self.any(parts));
            }
            Guard::If(parts) => {
                let [test, yes, no] = parts.as_ref();
                Test::If([test, yes, no].map(|part| self.condition(part)))
            }
            Guard::Compare(op, sides) => {
                let [left, right] = sides.as_ref();
                return self.comparison(*op, left, right);
            }
            Guard::In(sides) => {
                let [left, right] = sides.as_ref();
                Test::In(self.path(left)?, entities(right)?)
            }
            Guard::Has(target, names) => {
                let target = self.path(target)?;
                let from = self.depth(target).checked_add(1)?;
                let mut names = names.iter();
                let whole = names.try_fold(target, |path, name| self.attribute(path, name))?;
                Test::Has(whole, from)
            }
            Guard::Like(target, pattern) => Test::Like(self.path(target)?, pattern.clone()),
            Guard::Is(target, ty, within) => {
                let target = self.path(target)?;
                let groups = within.as_deref().map(entities);
                let is = self.test(Test::Is(target, ty.clone()));
                let Some(groups) = groups else {
                    return Some(is);
                };
                let within = self.test(Test::In(target, groups?));
                return Some(self.all(vec![is, within]));
            }
            Guard::Method(method, target, args) => self.method(*method, target, args.first()?)?,
            _ => return None,
        };
        Some(self.test(test))
    }

    fn comparison(&mut self, op: CompareOp, left: &Guard, right: &Guard) -> Option<TestId> {
        let (path, other, op) = match self.path(left) {
            Some(path) => (path, right, op),
            None => (self.path(right)?, left, turned(op)),
        };
        let test = match (op, constant(other)) {
            (CompareOp::Eq, Some(constant)) => Test::Same(path, constant),
            (CompareOp::Ne, Some(constant)) => {
                let same = self.test(Test::Same(path, constant));
                Test::Not(same)
            }
            (CompareOp::Eq | CompareOp::Ne, None) => return None,
            (op, Some(Constant::Long(n))) => Test::Order(op, path, n),
            (op, _) => Test::OrderOf(op, path, self.path(other)?),
        };
        Some(self.test(test))
    }

    fn method(&mut self, method: Method, target: &Guard, arg: &Guard) -> Option<Test> {
        let op = match method {
            Method::Contains => {
                return match (target, constant(arg)) {
                    (Guard::Set(items), _) => {
                        let items = items.iter().map(constant).collect::<Option<_>>()?;
                        Some(Test::OneOf(self.path(arg)?, items))
                    }
                    (_, Some(constant)) => Some(Test::Among(self.path(target)?, constant)),
                    _ => None,
                };
            }
            Method::IsInRange => {
                let (
                    Guard::Construct(Constructor::Ip, text),
                    Guard::Construct(Constructor::Ip, net),
                ) = (target, arg)
                else {
                    return None;
                };
                let Guard::Str(net) = net.as_ref() else {
                    return None;
                };
                let net = IpNet::parse(net)?;
                return Some(Test::InRange(self.path(text)?, net));
            }
            Method::LessThan => CompareOp::Lt,
            Method::LessThanOrEqual => CompareOp::Le,
            Method::GreaterThan => CompareOp::Gt,
            Method::GreaterThanOrEqual => CompareOp::Ge,
            _ => return None,
        };
        let Guard::Construct(Constructor::Decimal, text) = arg else {
            return None;
        };
        let Guard::Str(text) = text.as_ref() else {
            return None;
        };
        let scaled = parse_decimal(text)?;
        Some(Test::Scaled(op, self.path(target)?, scaled))
    }
}

/// The comparison with its sides changed over.
fn turned(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
        same => same,
    }
}

fn constant(guard: &Guard) -> Option<Constant> {
    Some(match guard {
        Guard::Bool(b) => Constant::Bool(*b),
        Guard::Long(n) => Constant::Long(*n),
        Guard::Str(text) => Constant::Str(text.clone()),
        Guard::Entity(uid) => Constant::Entity(uid.clone()),
        Guard::Neg(inner) => match inner.as_ref() {
            Guard::Long(n) => Constant::Long(n.checked_neg()?),
            _ => return None,
        },
        _ => return None,
    })
}

fn entities(guard: &Guard) -> Option<Vec<EntityUid>> {
    match guard {
        Guard::Entity(uid) => Some(vec![uid.clone()]),
        Guard::Set(items) => items
            .iter()
            .map(|item| match item {
                Guard::Entity(uid) => Some(uid.clone()),
                _ => None,
            })
            .collect(),
        _ => None,
    }
}
