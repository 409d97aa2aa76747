//! Conditions, compiled from the syntax tree, and their evaluation.

use super::entities::Entities;
use super::error::EvalError;
use super::extension::{DAY, IpNet, parse_datetime, parse_duration};
use super::value::{V, has};
use crate::automaton::parse_decimal;
use crate::schema::ActionSchema;
use crate::value::{EntityUid, Record, Value};
use dogwood_grammar::ast;
use smol_str::SmolStr;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Guard {
    Bool(bool),
    Long(i64),
    Str(SmolStr),
    Entity(EntityUid),
    Var(ast::Var),
    /// A temporal block, by the number of its leaf in the policy.
    Leaf(usize),
    /// What an information provider says, by the number of the call in the policy.
    Provided(usize),
    Set(Vec<Guard>),
    Record(Vec<(SmolStr, Guard)>),
    If(Box<[Guard; 3]>),
    And(Vec<Guard>),
    Or(Vec<Guard>),
    Not(Box<Guard>),
    Neg(Box<Guard>),
    Compare(ast::CompareOp, Box<[Guard; 2]>),
    In(Box<[Guard; 2]>),
    Has(Box<Guard>, Vec<SmolStr>),
    Like(Box<Guard>, Vec<ast::PatternPart>),
    Is(Box<Guard>, SmolStr, Option<Box<Guard>>),
    Sum(Box<Guard>, Vec<(ast::SumOp, Guard)>),
    Product(Vec<Guard>),
    Attr(Box<Guard>, SmolStr),
    Method(Method, Box<Guard>, Vec<Guard>),
    Construct(Constructor, Box<Guard>),
    /// What can only fail.
    Fail(EvalError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Constructor {
    Decimal,
    Datetime,
    Duration,
    Ip,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Method {
    IsEmpty,
    IsIpv4,
    IsIpv6,
    IsLoopback,
    IsMulticast,
    ToDate,
    ToTime,
    /// Whole units of so many milliseconds.
    ToUnits(i64),
    Contains,
    ContainsAll,
    ContainsAny,
    HasTag,
    GetTag,
    IsInRange,
    Offset,
    DurationSince,
    LessThan,
    LessThanOrEqual,
    GreaterThan,
    GreaterThanOrEqual,
}

/// What a condition is evaluated against.
pub(crate) struct Request<'a> {
    pub principal: &'a EntityUid,
    pub action: &'a EntityUid,
    pub resource: &'a EntityUid,
    pub context: &'a Record,
    pub entities: Entities<'a>,
    pub schema: &'a ActionSchema,
    /// The answers of the information providers, by the numbers of the calls.
    pub provided: &'a [Value],
}

/// Answers for the temporal leaves of the policy.
pub(crate) type Step<'s> = &'s mut dyn FnMut(usize) -> bool;

/// The truth of a condition.
pub(crate) fn is_true(guard: &Guard, on: &Request<'_>, leaf: Step<'_>) -> Result<bool, EvalError> {
    on.eval(guard, leaf)?.bool()
}

impl<'a> Request<'a> {
    fn eval(&self, guard: &'a Guard, leaf: Step<'_>) -> Result<V<'a>, EvalError> {
        Ok(match guard {
            Guard::Bool(b) => V::Bool(*b),
            Guard::Long(n) => V::Long(*n),
            Guard::Str(s) => V::Str(s.clone()),
            Guard::Entity(uid) => V::Entity(uid.clone()),
            Guard::Var(ast::Var::Principal) => V::Entity(self.principal.clone()),
            Guard::Var(ast::Var::Action) => V::Entity(self.action.clone()),
            Guard::Var(ast::Var::Resource) => V::Entity(self.resource.clone()),
            Guard::Var(ast::Var::Context) => V::Given(self.context),
            Guard::Leaf(number) => V::Bool(leaf(*number)),
            Guard::Provided(number) => match self.provided.get(*number) {
                Some(value) => V::of(value)?,
                None => return Err(EvalError::NotEvaluable),
            },
            Guard::Set(items) => {
                let items: Result<Vec<V<'a>>, _> =
                    items.iter().map(|item| self.eval(item, leaf)).collect();
                V::Set(Arc::new(items?))
            }
            Guard::Record(fields) => {
                let mut record = BTreeMap::new();
                for (name, value) in fields {
                    record.insert(name.clone(), self.eval(value, leaf)?);
                }
                V::Record(Arc::new(record))
            }
            Guard::If(parts) => {
                let [test, yes, no] = parts.as_ref();
                let chosen = if self.eval(test, leaf)?.bool()? {
                    yes
                } else {
                    no
                };
                self.eval(chosen, leaf)?
            }
            Guard::And(parts) => {
                for part in parts {
                    if !self.eval(part, leaf)?.bool()? {
                        return Ok(V::Bool(false));
                    }
                }
                V::Bool(true)
            }
            Guard::Or(parts) => {
                for part in parts {
                    if self.eval(part, leaf)?.bool()? {
                        return Ok(V::Bool(true));
                    }
                }
                V::Bool(false)
            }
            Guard::Not(inner) => V::Bool(!self.eval(inner, leaf)?.bool()?),
            Guard::Neg(inner) => {
                let n = self.eval(inner, leaf)?.long()?;
                V::Long(
                    n.checked_neg()
                        .ok_or(EvalError::Overflow { operator: "-" })?,
                )
            }
            Guard::Compare(op, sides) => {
                let [left, right] = sides.as_ref();
                let left = self.eval(left, leaf)?;
                let right = self.eval(right, leaf)?;
                V::Bool(match op {
                    ast::CompareOp::Eq => left.same(&right),
                    ast::CompareOp::Ne => !left.same(&right),
                    ast::CompareOp::Lt => order(&left, &right)? == Ordering::Less,
                    ast::CompareOp::Le => order(&left, &right)? != Ordering::Greater,
                    ast::CompareOp::Gt => order(&left, &right)? == Ordering::Greater,
                    ast::CompareOp::Ge => order(&left, &right)? != Ordering::Less,
                })
            }
            Guard::In(sides) => {
                let [left, right] = sides.as_ref();
                let left = self.eval(left, leaf)?;
                let right = self.eval(right, leaf)?;
                V::Bool(self.member(left.entity()?, &right)?)
            }
            Guard::Has(target, path) => {
                let mut value = self.eval(target, leaf)?;
                for name in path {
                    match self.attribute(&value, name) {
                        Ok(Some(next)) => value = next,
                        Ok(None) => return Ok(V::Bool(false)),
                        Err(error) => return Err(error),
                    }
                }
                V::Bool(true)
            }
            Guard::Like(target, pattern) => {
                let value = self.eval(target, leaf)?;
                V::Bool(like(value.string()?, pattern))
            }
            Guard::Is(target, ty, within) => {
                let value = self.eval(target, leaf)?;
                let uid = value.entity()?;
                let is = uid.ty == *ty;
                match within {
                    Some(within) if is => {
                        let within = self.eval(within, leaf)?;
                        V::Bool(self.member(uid, &within)?)
                    }
                    _ => V::Bool(is),
                }
            }
            Guard::Sum(first, rest) => {
                let mut sum = self.eval(first, leaf)?.long()?;
                for (op, operand) in rest {
                    let n = self.eval(operand, leaf)?.long()?;
                    sum = match op {
                        ast::SumOp::Add => sum
                            .checked_add(n)
                            .ok_or(EvalError::Overflow { operator: "+" })?,
                        ast::SumOp::Sub => sum
                            .checked_sub(n)
                            .ok_or(EvalError::Overflow { operator: "-" })?,
                    };
                }
                V::Long(sum)
            }
            Guard::Product(factors) => {
                let mut product = 1i64;
                for factor in factors {
                    let n = self.eval(factor, leaf)?.long()?;
                    product = product
                        .checked_mul(n)
                        .ok_or(EvalError::Overflow { operator: "*" })?;
                }
                V::Long(product)
            }
            Guard::Attr(target, name) => {
                let value = self.eval(target, leaf)?;
                match self.attribute(&value, name)? {
                    Some(found) => found,
                    None => return Err(self.no_attribute(&value, name)),
                }
            }
            Guard::Method(method, target, args) => {
                let target = self.eval(target, leaf)?;
                let arg = args.first().map(|arg| self.eval(arg, leaf)).transpose()?;
                self.method(*method, &target, arg)?
            }
            Guard::Construct(constructor, arg) => {
                let arg = self.eval(arg, leaf)?;
                construct(*constructor, arg.string()?)?
            }
            Guard::Fail(error) => return Err(error.clone()),
        })
    }

    fn attribute(&self, value: &V<'a>, name: &str) -> Result<Option<V<'a>>, EvalError> {
        match value {
            V::Entity(uid) => match self.entities.get(uid) {
                Some(entity) => match entity.attrs.get(name) {
                    None | Some(Value::Null) => Ok(None),
                    Some(value) => V::of(value).map(Some),
                },
                None => Ok(None),
            },
            other => other.field(name),
        }
    }

    fn no_attribute(&self, value: &V<'a>, name: &SmolStr) -> EvalError {
        let name = name.clone();
        match value {
            V::Entity(uid) => {
                let entity = uid.clone();
                // The entities of the scope are always there, if only by name.
                let named = [self.principal, self.resource, self.action].contains(&uid);
                if named || self.entities.get(uid).is_some() {
                    EvalError::NoEntityAttribute { entity, name }
                } else {
                    EvalError::UnknownEntity { entity }
                }
            }
            _ => EvalError::NoAttribute { name },
        }
    }

    fn member(&self, uid: &EntityUid, of: &V<'a>) -> Result<bool, EvalError> {
        match of {
            V::Entity(ancestor) => Ok(self.is_in(uid, ancestor)),
            V::Set(items) => {
                let mut found = false;
                for item in items.iter() {
                    found |= self.is_in(uid, item.entity()?);
                }
                Ok(found)
            }
            other => other.wrong("an entity or a Set of entities"),
        }
    }

    /// Reflexive, transitive membership, of actions by the schema and of others by what was given.
    pub fn is_in(&self, uid: &EntityUid, ancestor: &EntityUid) -> bool {
        self.entities.is_in(uid, ancestor) || {
            let groups = self.schema.actions.get(uid).map(|action| &action.ancestors);
            groups.is_some_and(|groups| groups.contains(ancestor))
        }
    }

    fn method(
        &self,
        method: Method,
        target: &V<'a>,
        arg: Option<V<'a>>,
    ) -> Result<V<'a>, EvalError> {
        let arg = || arg.clone().ok_or(EvalError::NotEvaluable);
        let ip = |value: &V<'a>| match value {
            V::Ip(net) => Ok(*net),
            other => other.wrong("an ipaddr"),
        };
        let decimals = |op: fn(&i64, &i64) -> bool| match (target, arg()?) {
            (V::Decimal(l), V::Decimal(r)) => Ok(V::Bool(op(l, &r))),
            (V::Decimal(_), other) => other.wrong("a decimal"),
            (other, _) => other.wrong("a decimal"),
        };
        let overflow = |operator| EvalError::Overflow { operator };
        Ok(match method {
            Method::IsEmpty => V::Bool(target.set()?.is_empty()),
            Method::IsIpv4 => V::Bool(ip(target)?.is_v4()),
            Method::IsIpv6 => V::Bool(!ip(target)?.is_v4()),
            Method::IsLoopback => V::Bool(ip(target)?.is_loopback()),
            Method::IsMulticast => V::Bool(ip(target)?.is_multicast()),
            Method::IsInRange => V::Bool(ip(target)?.is_in_range(ip(&arg()?)?)),
            Method::ToDate => {
                let at = datetime(target)?;
                let day = at.div_euclid(DAY).checked_mul(DAY);
                V::Datetime(day.ok_or_else(|| overflow("toDate"))?)
            }
            Method::ToTime => V::Duration(datetime(target)?.rem_euclid(DAY)),
            Method::ToUnits(unit) => V::Long(duration(target)? / unit),
            Method::Offset => {
                let moved = datetime(target)?.checked_add(duration(&arg()?)?);
                V::Datetime(moved.ok_or_else(|| overflow("offset"))?)
            }
            Method::DurationSince => {
                let apart = datetime(target)?.checked_sub(datetime(&arg()?)?);
                V::Duration(apart.ok_or_else(|| overflow("durationSince"))?)
            }
            Method::Contains => V::Bool(has(target.set()?, &arg()?)),
            Method::ContainsAll => {
                let (all, wanted) = (target.set()?, arg()?);
                V::Bool(wanted.set()?.iter().all(|item| has(all, item)))
            }
            Method::ContainsAny => {
                let (all, wanted) = (target.set()?, arg()?);
                V::Bool(wanted.set()?.iter().any(|item| has(all, item)))
            }
            Method::HasTag => {
                let entity = target.entity()?;
                V::Bool(self.entities.tag(entity, arg()?.string()?).is_some())
            }
            Method::GetTag => {
                let entity = target.entity()?;
                let name = arg()?.string()?.clone();
                match self.entities.tag(entity, &name) {
                    Some(value) => V::of(value)?,
                    None => {
                        return Err(match self.entities.get(entity) {
                            Some(_) => EvalError::NoTag {
                                entity: entity.clone(),
                                name,
                            },
                            None => EvalError::UnknownEntity {
                                entity: entity.clone(),
                            },
                        });
                    }
                }
            }
            Method::LessThan => decimals(i64::lt)?,
            Method::LessThanOrEqual => decimals(i64::le)?,
            Method::GreaterThan => decimals(i64::gt)?,
            Method::GreaterThanOrEqual => decimals(i64::ge)?,
        })
    }
}

fn datetime(value: &V<'_>) -> Result<i64, EvalError> {
    match value {
        V::Datetime(ms) => Ok(*ms),
        other => other.wrong("a datetime"),
    }
}

fn duration(value: &V<'_>) -> Result<i64, EvalError> {
    match value {
        V::Duration(ms) => Ok(*ms),
        other => other.wrong("a duration"),
    }
}

fn order(left: &V<'_>, right: &V<'_>) -> Result<Ordering, EvalError> {
    match (left, right) {
        (V::Long(l), V::Long(r))
        | (V::Datetime(l), V::Datetime(r))
        | (V::Duration(l), V::Duration(r)) => Ok(l.cmp(r)),
        (V::Long(_), other) => other.wrong("a Long"),
        (V::Datetime(_), other) => other.wrong("a datetime"),
        (V::Duration(_), other) => other.wrong("a duration"),
        (other, _) => other.wrong("a Long, datetime or duration"),
    }
}

fn construct<'a>(constructor: Constructor, text: &SmolStr) -> Result<V<'a>, EvalError> {
    let (function, value) = match constructor {
        Constructor::Decimal => ("decimal", parse_decimal(text).map(V::Decimal)),
        Constructor::Datetime => ("datetime", parse_datetime(text).map(V::Datetime)),
        Constructor::Duration => ("duration", parse_duration(text).map(V::Duration)),
        Constructor::Ip => ("ip", IpNet::parse(text).map(V::Ip)),
    };
    value.ok_or_else(|| EvalError::BadLiteral {
        function,
        text: text.clone(),
    })
}

/// Whether the whole text fits the pattern. Each literal part between two wildcards takes its first place,
/// so the time is that of searching, never exponential.
pub(crate) fn like(text: &str, pattern: &[ast::PatternPart]) -> bool {
    let mut rest = text;
    let mut free = false;
    let last = pattern
        .iter()
        .rposition(|part| matches!(part, ast::PatternPart::Text(_)));
    for (at, part) in pattern.iter().enumerate() {
        match part {
            ast::PatternPart::Any => free = true,
            ast::PatternPart::Text(literal) if !free => match rest.strip_prefix(literal.as_str()) {
                Some(tail) => rest = tail,
                None => return false,
            },
            ast::PatternPart::Text(literal) if Some(at) == last && at + 1 == pattern.len() => {
                return rest.ends_with(literal.as_str());
            }
            ast::PatternPart::Text(literal) => {
                let Some(found) = rest.find(literal.as_str()) else {
                    return false;
                };
                rest = rest.get(found + literal.len()..).unwrap_or("");
                free = false;
            }
        }
    }
    free || rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::compile::joined;
    use super::*;

    #[test]
    fn like_matches_the_whole_text() {
        let any = || ast::PatternPart::Any;
        let text = |s: &str| ast::PatternPart::Text(s.into());
        assert!(like("git push", &[text("git "), any()]));
        assert!(like("", &[]) && like("", &[any()]) && !like("x", &[]));
        assert!(like("abcabc", &[text("abc"), any(), text("abc")]));
        assert!(!like("abc", &[text("abc"), any(), text("abc")]));
        assert!(like("a.b.c.rs", &[any(), text("."), any(), text(".rs")]));
        assert!(like("aab", &[any(), text("ab")]) && !like("abx", &[any(), text("ab")]));
        assert!(!like("abab", &[text("ab")]));
        assert!(like(
            "xaxab",
            &joined(&[any(), text("a"), text("b"), any(), any()])
        ));
    }
}
