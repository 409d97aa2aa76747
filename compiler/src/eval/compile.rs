//! From expressions of the syntax tree to conditions.

use super::error::EvalError;
use super::extension::DAY;
use super::guard::{Constructor, Guard, Method};
use crate::value::EntityUid;
use dogwood_grammar::ast;
use smol_str::SmolStr;

/// Compiles an expression; `leaf` numbers the temporal blocks, in the order of the text.
pub(crate) fn compile(expr: &ast::Expr, leaf: &mut dyn FnMut(&ast::Temporal) -> usize) -> Guard {
    let mut list = |items: &[ast::Expr]| items.iter().map(|e| compile(e, leaf)).collect::<Vec<_>>();
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
                .map(|f| (f.key.name.clone(), compile(&f.value, leaf)))
                .collect(),
        ),
        ast::ExprKind::If { test, yes, no } => Guard::If(Box::new([
            compile(test, leaf),
            compile(yes, leaf),
            compile(no, leaf),
        ])),
        ast::ExprKind::Or(parts) => Guard::Or(list(parts)),
        ast::ExprKind::And(parts) => Guard::And(list(parts)),
        ast::ExprKind::Compare { op, left, right } => {
            Guard::Compare(*op, Box::new([compile(left, leaf), compile(right, leaf)]))
        }
        ast::ExprKind::In { left, right } => {
            Guard::In(Box::new([compile(left, leaf), compile(right, leaf)]))
        }
        ast::ExprKind::Has { target, path } => Guard::Has(
            Box::new(compile(target, leaf)),
            path.iter().map(|attr| attr.name.clone()).collect(),
        ),
        ast::ExprKind::Like { target, pattern } => {
            Guard::Like(Box::new(compile(target, leaf)), joined(&pattern.parts))
        }
        ast::ExprKind::Is { target, ty, within } => Guard::Is(
            Box::new(compile(target, leaf)),
            ty.text(),
            within
                .as_ref()
                .map(|within| Box::new(compile(within, leaf))),
        ),
        ast::ExprKind::Sum { first, rest } => Guard::Sum(
            Box::new(compile(first, leaf)),
            rest.iter().map(|(op, e)| (*op, compile(e, leaf))).collect(),
        ),
        ast::ExprKind::Product(factors) => Guard::Product(list(factors)),
        ast::ExprKind::Not(inner) => Guard::Not(Box::new(compile(inner, leaf))),
        ast::ExprKind::Neg(inner) => Guard::Neg(Box::new(compile(inner, leaf))),
        ast::ExprKind::Attr { target, attr } => {
            Guard::Attr(Box::new(compile(target, leaf)), attr.name.clone())
        }
        ast::ExprKind::Method { target, name, args } => {
            let target = compile(target, leaf);
            let mut args: Vec<Guard> = args.iter().map(|e| compile(e, leaf)).collect();
            match method(&name.text) {
                // A method after a provider call belongs to the provider.
                _ if matches!(target, Guard::Fail(EvalError::NoProvider { .. })) => target,
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
            let mut args: Vec<Guard> = args.iter().map(|e| compile(e, leaf)).collect();
            let text = name.text();
            let constructor = match text.as_str() {
                "decimal" => Constructor::Decimal,
                "datetime" => Constructor::Datetime,
                "duration" => Constructor::Duration,
                "ip" => Constructor::Ip,
                _ if name.path.len() > 1 => {
                    return Guard::Fail(EvalError::NoProvider { name: text });
                }
                _ => return Guard::Fail(EvalError::UnknownFunction { name: text }),
            };
            match (args.pop(), args.is_empty()) {
                (Some(arg), true) => Guard::Construct(constructor, Box::new(arg)),
                _ => Guard::Fail(EvalError::WrongArity { name: text }),
            }
        }
        ast::ExprKind::Temporal(temporal) => Guard::Leaf(leaf(temporal)),
    }
}

fn uid(entity: &ast::EntityRef) -> EntityUid {
    EntityUid::new(entity.ty.text(), entity.id.value.clone())
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
