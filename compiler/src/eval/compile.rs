//! From expressions of the syntax tree to conditions.

use super::error::EvalError;
use super::extension::DAY;
use super::guard::{Constructor, Guard, Method};
use crate::providers::{Chain, chain};
use crate::value::EntityUid;
use dogwood_grammar::ast;
use smol_str::SmolStr;

/// Numbers what a condition asks, in the order of the text.
pub(crate) trait Asked {
    fn leaf(&mut self, leaf: &ast::Temporal) -> usize;
    fn call(&mut self, call: &Chain<'_>) -> usize;
}

/// Compiles an expression.
pub(crate) fn compile(expr: &ast::Expr, asked: &mut dyn Asked) -> Guard {
    if let Some(call) = chain(expr) {
        return Guard::Provided(asked.call(&call));
    }
    let mut list =
        |items: &[ast::Expr]| items.iter().map(|e| compile(e, asked)).collect::<Vec<_>>();
    match &expr.kind {
        ast::ExprKind::Bool(b) => Guard::Bool(*b),
        ast::ExprKind::Long(n) => Guard::Long(*n),
        ast::ExprKind::Str(s) => Guard::Str(s.clone()),
        ast::ExprKind::Var(var) => Guard::Var(*var),
        ast::ExprKind::Entity(entity) => Guard::Entity(uid(entity)),
        ast::ExprKind::Slot(_) | ast::ExprKind::Error => Guard::Fail(EvalError::NotEvaluable),
        ast::ExprKind::Set(items) => Guard::Set(list(items)),
        ast::ExprKind::Record(fields) => Guard::Record(
            fields
                .iter()
                .map(|f| (f.key.name.clone(), compile(&f.value, asked)))
                .collect(),
        ),
        ast::ExprKind::If { test, yes, no } => Guard::If(Box::new([
            compile(test, asked),
            compile(yes, asked),
            compile(no, asked),
        ])),
        ast::ExprKind::Or(parts) => Guard::Or(list(parts)),
        ast::ExprKind::And(parts) => Guard::And(list(parts)),
        ast::ExprKind::Compare { op, left, right } => {
            Guard::Compare(*op, Box::new([compile(left, asked), compile(right, asked)]))
        }
        ast::ExprKind::In { left, right } => {
            Guard::In(Box::new([compile(left, asked), compile(right, asked)]))
        }
        ast::ExprKind::Has { target, path } => Guard::Has(
            Box::new(compile(target, asked)),
            path.iter().map(|attr| attr.name.clone()).collect(),
        ),
        ast::ExprKind::Like { target, pattern } => {
            Guard::Like(Box::new(compile(target, asked)), joined(&pattern.parts))
        }
        ast::ExprKind::Is { target, ty, within } => Guard::Is(
            Box::new(compile(target, asked)),
            ty.text(),
            within
                .as_ref()
                .map(|within| Box::new(compile(within, asked))),
        ),
        ast::ExprKind::Sum { first, rest } => Guard::Sum(
            Box::new(compile(first, asked)),
            rest.iter()
                .map(|(op, e)| (*op, compile(e, asked)))
                .collect(),
        ),
        ast::ExprKind::Product(factors) => Guard::Product(list(factors)),
        ast::ExprKind::Not(inner) => Guard::Not(Box::new(compile(inner, asked))),
        ast::ExprKind::Neg(inner) => Guard::Neg(Box::new(compile(inner, asked))),
        ast::ExprKind::Attr { target, attr } => {
            Guard::Attr(Box::new(compile(target, asked)), attr.name.clone())
        }
        ast::ExprKind::Method { target, name, args } => {
            let target = compile(target, asked);
            let mut args: Vec<Guard> = args.iter().map(|e| compile(e, asked)).collect();
            match method(&name.text) {
                None => Guard::Fail(EvalError::UnknownMethod {
                    name: name.text.clone(),
                }),
                Some((method, arity)) if args.len() == arity => {
                    Guard::Method(method, Box::new(target), std::mem::take(&mut args))
                }
                Some(_) => Guard::Fail(EvalError::WrongArity {
                    name: name.text.clone(),
                }),
            }
        }
        ast::ExprKind::Call { name, args } => {
            let mut args: Vec<Guard> = args.iter().map(|e| compile(e, asked)).collect();
            let text = name.text();
            let constructor = match text.as_str() {
                "decimal" => Constructor::Decimal,
                "datetime" => Constructor::Datetime,
                "duration" => Constructor::Duration,
                "ip" => Constructor::Ip,
                _ => return Guard::Fail(EvalError::UnknownFunction { name: text }),
            };
            match (args.pop(), args.is_empty()) {
                (Some(arg), true) => Guard::Construct(constructor, Box::new(arg)),
                _ => Guard::Fail(EvalError::WrongArity { name: text }),
            }
        }
        ast::ExprKind::Temporal(temporal) => Guard::Leaf(asked.leaf(temporal)),
    }
}

fn uid(entity: &ast::EntityRef) -> EntityUid {
    EntityUid::new(entity.ty.text(), entity.id.value.clone())
}

/// Whether every value of some type has a method of this name.
pub(crate) fn is_method(name: &str) -> bool {
    method(name).is_some()
}

/// A method by name, with the number of its arguments.
fn method(name: &str) -> Option<(Method, usize)> {
    Some(match name {
        "isEmpty" => (Method::IsEmpty, 0),
        "isIpv4" => (Method::IsIpv4, 0),
        "isIpv6" => (Method::IsIpv6, 0),
        "isLoopback" => (Method::IsLoopback, 0),
        "isMulticast" => (Method::IsMulticast, 0),
        "toDate" => (Method::ToDate, 0),
        "toTime" => (Method::ToTime, 0),
        "toMilliseconds" => (Method::ToUnits(1), 0),
        "toSeconds" => (Method::ToUnits(1000), 0),
        "toMinutes" => (Method::ToUnits(60_000), 0),
        "toHours" => (Method::ToUnits(3_600_000), 0),
        "toDays" => (Method::ToUnits(DAY), 0),
        "contains" => (Method::Contains, 1),
        "containsAll" => (Method::ContainsAll, 1),
        "containsAny" => (Method::ContainsAny, 1),
        "hasTag" => (Method::HasTag, 1),
        "getTag" => (Method::GetTag, 1),
        "isInRange" => (Method::IsInRange, 1),
        "offset" => (Method::Offset, 1),
        "durationSince" => (Method::DurationSince, 1),
        "lessThan" => (Method::LessThan, 1),
        "lessThanOrEqual" => (Method::LessThanOrEqual, 1),
        "greaterThan" => (Method::GreaterThan, 1),
        "greaterThanOrEqual" => (Method::GreaterThanOrEqual, 1),
        _ => return None,
    })
}

/// The parts of a pattern with adjacent literals made one, as [`like`] wants them.
pub(crate) fn joined(parts: &[ast::PatternPart]) -> Vec<ast::PatternPart> {
    let mut joined: Vec<ast::PatternPart> = Vec::with_capacity(parts.len());
    for part in parts {
        match (joined.last_mut(), part) {
            (Some(ast::PatternPart::Text(before)), ast::PatternPart::Text(text)) => {
                *before = SmolStr::new(format!("{before}{text}"));
            }
            _ => joined.push(part.clone()),
        }
    }
    joined
}
