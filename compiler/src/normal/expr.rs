//! Expressions in normal form.
//!
//! Trees are as deep as the parser allows at most, so recursion is bounded.

use super::{cond, order};
use crate::explain::words;
use crate::grammar::Span;
use crate::grammar::ast::*;
use crate::grammar::print::print_expr;
use std::collections::BTreeMap;

/// The condition, or, with `holds` false, its negation. Negations stand before single conditions only.
pub(super) fn boolean(expr: &Expr, holds: bool) -> Expr {
    let span = expr.span;
    match &expr.kind {
        ExprKind::Bool(value) => bool_at(*value == holds, span),
        ExprKind::Not(inner) => boolean(inner, !holds),
        ExprKind::And(parts) | ExprKind::Or(parts) => {
            let all = matches!(expr.kind, ExprKind::And(_)) == holds;
            gather(
                all,
                parts.iter().map(|part| boolean(part, holds)).collect(),
                span,
            )
        }
        ExprKind::If { test, yes, no } => choice(
            boolean(test, true),
            boolean(yes, holds),
            boolean(no, holds),
            span,
        ),
        ExprKind::Compare { op, left, right } => compare(*op, left, right, holds, span),
        ExprKind::Temporal(leaf) => temporal(leaf, holds),
        // A pattern without `*` is the text itself.
        ExprKind::Like { target, pattern } if !pattern.parts.contains(&PatternPart::Any) => {
            let text: String = pattern
                .parts
                .iter()
                .filter_map(|part| match part {
                    PatternPart::Text(text) => Some(text.as_str()),
                    PatternPart::Any => None,
                })
                .collect();
            let text = node(ExprKind::Str(text.into()), pattern.span);
            compare(CompareOp::Eq, target, &text, holds, span)
        }
        ExprKind::Method { target, name, args } if name.text == "contains" => {
            match (&target.kind, args.as_slice()) {
                (ExprKind::Set(items), [wanted]) if !items.is_empty() => {
                    let items = items.iter().map(value).collect();
                    one_of(value(wanted), items, holds, span)
                }
                _ => not_unless(holds, value(expr)),
            }
        }
        _ => not_unless(holds, value(expr)),
    }
}

/// The negation of a condition in normal form.
pub(super) fn negate(expr: Expr) -> Expr {
    let span = expr.span;
    match expr.kind {
        ExprKind::Not(inner) => *inner,
        ExprKind::Bool(value) => bool_at(!value, span),
        ExprKind::And(parts) => gather(false, parts.into_iter().map(negate).collect(), span),
        ExprKind::Or(parts) => gather(true, parts.into_iter().map(negate).collect(), span),
        ExprKind::If { test, yes, no } => node(
            ExprKind::If {
                test,
                yes: Box::new(negate(*yes)),
                no: Box::new(negate(*no)),
            },
            span,
        ),
        ExprKind::Compare { op, left, right } => {
            let (op, right) = rounded(words::negated(op), *right);
            node(
                ExprKind::Compare {
                    op,
                    left,
                    right: Box::new(right),
                },
                span,
            )
        }
        ExprKind::Temporal(leaf) => temporal(&leaf, false),
        kind => not_unless(false, node(kind, span)),
    }
}

/// The conditions of one temporal part, each a part of its own.
pub(super) fn temporal(leaf: &Temporal, holds: bool) -> Expr {
    fn split(body: Cond, leaf: &Temporal, holds: bool) -> Expr {
        match body.kind {
            CondKind::Not(inner) => split(*inner, leaf, !holds),
            CondKind::And(parts) => gather(
                holds,
                parts
                    .into_iter()
                    .map(|part| split(part, leaf, holds))
                    .collect(),
                leaf.span,
            ),
            _ => {
                // Numbers its variables from the first, whatever stood beside it.
                let body = cond::closed(&cond::not_unless(holds, body));
                let (body, holds) = match body.kind {
                    CondKind::Not(inner) => (*inner, false),
                    _ => (body, true),
                };
                let part = Temporal {
                    keyword: leaf.keyword,
                    body,
                    span: leaf.span,
                };
                not_unless(holds, node(ExprKind::Temporal(Box::new(part)), leaf.span))
            }
        }
    }
    split(cond::closed(&leaf.body), leaf, holds)
}

/// A value in normal form.
fn value(expr: &Expr) -> Expr {
    let boxed = |expr: &Expr| Box::new(value(expr));
    let all = |items: &[Expr]| -> Vec<Expr> { items.iter().map(value).collect() };
    let kind = match &expr.kind {
        ExprKind::Bool(_)
        | ExprKind::Long(_)
        | ExprKind::Str(_)
        | ExprKind::Var(_)
        | ExprKind::Entity(_)
        | ExprKind::Slot(_)
        | ExprKind::Error => expr.kind.clone(),
        ExprKind::Not(_)
        | ExprKind::And(_)
        | ExprKind::Or(_)
        | ExprKind::Compare { .. }
        | ExprKind::Temporal(_) => return boolean(expr, true),
        ExprKind::Set(items) => ExprKind::Set(set(all(items))),
        ExprKind::Record(fields) => {
            let mut fields: Vec<RecordField> = fields
                .iter()
                .map(|field| RecordField {
                    key: Attr {
                        quoted: !is_plain(&field.key.name),
                        ..field.key.clone()
                    },
                    value: value(&field.value),
                })
                .collect();
            fields.sort_by(|a, b| a.key.name.cmp(&b.key.name));
            ExprKind::Record(fields)
        }
        ExprKind::If { test, yes, no } => {
            return choice(boolean(test, true), value(yes), value(no), expr.span);
        }
        ExprKind::In { left, right } => {
            let left = boxed(left);
            match value(right) {
                Expr {
                    kind: ExprKind::Set(mut items),
                    ..
                } if items.len() == 1 => match items.pop() {
                    Some(right) => ExprKind::In {
                        left,
                        right: Box::new(right),
                    },
                    None => ExprKind::Error,
                },
                right => ExprKind::In {
                    left,
                    right: Box::new(right),
                },
            }
        }
        ExprKind::Has { target, path } => ExprKind::Has {
            target: boxed(target),
            path: path.iter().map(attr).collect(),
        },
        ExprKind::Like { target, pattern } => ExprKind::Like {
            target: boxed(target),
            pattern: pattern.clone(),
        },
        ExprKind::Is { target, ty, within } => ExprKind::Is {
            target: boxed(target),
            ty: ty.clone(),
            within: within.as_ref().map(|within| boxed(within)),
        },
        ExprKind::Sum { first, rest } => ExprKind::Sum {
            first: boxed(first),
            rest: rest.iter().map(|(op, part)| (*op, value(part))).collect(),
        },
        ExprKind::Product(parts) => ExprKind::Product(all(parts)),
        ExprKind::Neg(inner) => ExprKind::Neg(boxed(inner)),
        ExprKind::Attr { target, attr: own } => ExprKind::Attr {
            target: boxed(target),
            attr: attr(own),
        },
        ExprKind::Method { target, name, args } => ExprKind::Method {
            target: boxed(target),
            name: name.clone(),
            args: all(args),
        },
        ExprKind::Call { name, args } => ExprKind::Call {
            name: name.clone(),
            args: all(args),
        },
    };
    node(kind, expr.span)
}

/// `if test then yes else no`, all three in normal form.
fn choice(test: Expr, yes: Expr, no: Expr, span: Span) -> Expr {
    let constant = |expr: &Expr| match expr.kind {
        ExprKind::Bool(value) => Some(value),
        _ => None,
    };
    match (constant(&test), constant(&yes), constant(&no)) {
        (Some(true), ..) => yes,
        (Some(false), ..) => no,
        (_, Some(true), _) => gather(false, vec![test, no], span),
        (_, Some(false), _) => gather(true, vec![negate(test), no], span),
        (_, _, Some(false)) => gather(true, vec![test, yes], span),
        (_, _, Some(true)) => gather(false, vec![negate(test), yes], span),
        _ if !can_fail(&test) && print_expr(&yes) == print_expr(&no) => yes,
        _ => {
            let opposite = negate(test.clone());
            let denied = |expr: &Expr| (order::denials(expr), print_expr(expr));
            let (test, yes, no) = if denied(&opposite) < denied(&test) {
                (opposite, no, yes)
            } else {
                (test, yes, no)
            };
            node(
                ExprKind::If {
                    test: Box::new(test),
                    yes: Box::new(yes),
                    no: Box::new(no),
                },
                span,
            )
        }
    }
}

/// A comparison, the literal on the right.
fn compare(op: CompareOp, left: &Expr, right: &Expr, holds: bool, span: Span) -> Expr {
    if let CompareOp::Eq | CompareOp::Ne = op {
        for (side, other) in [(left, right), (right, left)] {
            if let ExprKind::Bool(value) = side.kind {
                return boolean(other, (value == (op == CompareOp::Eq)) == holds);
            }
        }
    }
    let (left, right) = (value(left), value(right));
    let key = |side: &Expr| (is_literal(side), order::expr(side));
    let (op, left, right) = if key(&right) < key(&left) {
        (words::mirrored(op), right, left)
    } else {
        (op, left, right)
    };
    let op = if holds { op } else { words::negated(op) };
    let (op, right) = rounded(op, right);
    node(
        ExprKind::Compare {
            op,
            left: Box::new(left),
            right: Box::new(right),
        },
        span,
    )
}

/// Of `> 59` and `>= 60`, which say the same of whole numbers, one.
fn rounded(op: CompareOp, bound: Expr) -> (CompareOp, Expr) {
    match bound.kind {
        ExprKind::Long(n) => {
            let (op, n) = cond::rounded(op, n);
            (op, node(ExprKind::Long(n), bound.span))
        }
        _ => (op, bound),
    }
}

/// `wanted` is one of these; items in normal form.
fn one_of(wanted: Expr, items: Vec<Expr>, holds: bool, span: Span) -> Expr {
    let mut items = set(items);
    match (items.len(), items.pop()) {
        (1, Some(item)) => compare(CompareOp::Eq, &wanted, &item, holds, span),
        (_, last) => {
            items.extend(last);
            let contains = ExprKind::Method {
                target: Box::new(node(ExprKind::Set(items), span)),
                name: Ident {
                    text: "contains".into(),
                    span,
                },
                args: vec![wanted],
            };
            not_unless(holds, node(contains, span))
        }
    }
}

/// The members of a set in order, each once.
fn set(items: Vec<Expr>) -> Vec<Expr> {
    let mut keyed: Vec<(String, Expr)> = items
        .into_iter()
        .map(|item| (print_expr(&item), item))
        .collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    keyed.dedup_by(|a, b| a.0 == b.0);
    keyed.into_iter().map(|(_, item)| item).collect()
}

/// Conditions in normal form that must all hold, or, with `all` false, one of which must.
pub(super) fn gather(all: bool, parts: Vec<Expr>, span: Span) -> Expr {
    let mut flat = Vec::new();
    for part in parts {
        match part.kind {
            ExprKind::And(inner) if all => flat.extend(inner),
            ExprKind::Or(inner) if !all => flat.extend(inner),
            ExprKind::Bool(value) if value == all => {}
            _ => flat.push(part),
        }
    }
    let mut out: Vec<Expr> = Vec::new();
    let mut run = Vec::new();
    let mut decided = false;
    for part in flat {
        if matches!(part.kind, ExprKind::Bool(_)) {
            // What stands before it may still fail; what stands behind is never asked.
            decided = true;
            break;
        }
        if can_fail(&part) {
            out.append(&mut in_order(all, std::mem::take(&mut run)));
            out.push(part);
        } else {
            run.push(part);
        }
    }
    if decided {
        if out.is_empty() {
            return bool_at(!all, span);
        }
        out.push(bool_at(!all, span));
    } else {
        out.append(&mut in_order(all, run));
    }
    match (out.len(), out.pop()) {
        (0, _) | (_, None) => bool_at(all, span),
        (1, Some(only)) => only,
        (_, Some(last)) => {
            out.push(last);
            let kind = if all {
                ExprKind::And(out)
            } else {
                ExprKind::Or(out)
            };
            node(kind, span)
        }
    }
}

/// Conditions that cannot fail, in order, each once; tests of one value for several texts as one.
fn in_order(all: bool, parts: Vec<Expr>) -> Vec<Expr> {
    let mut choices: BTreeMap<String, (Expr, Vec<Expr>)> = BTreeMap::new();
    let mut rest = Vec::new();
    for part in parts {
        match listed(&part, all) {
            Some((subject, items)) => choices
                .entry(print_expr(&subject))
                .or_insert_with(|| (subject, Vec::new()))
                .1
                .extend(items),
            None => rest.push(part),
        }
    }
    for (subject, items) in choices.into_values() {
        let span = subject.span;
        rest.push(one_of(subject, items, !all, span));
    }
    let mut keyed: Vec<_> = rest
        .into_iter()
        .map(|part| (order::expr(&part), part))
        .collect();
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    keyed.dedup_by(|a, b| a.0 == b.0);
    keyed.into_iter().map(|(_, part)| part).collect()
}

/// The texts or numbers a value is tested for: one of several alternatives, or, with `not`, one of several
/// exclusions.
fn listed(part: &Expr, not: bool) -> Option<(Expr, Vec<Expr>)> {
    let (wanted_op, inner) = match &part.kind {
        ExprKind::Not(inner) if not => (None, inner.as_ref()),
        _ if not => (Some(CompareOp::Ne), part),
        _ => (Some(CompareOp::Eq), part),
    };
    match &inner.kind {
        ExprKind::Compare { op, left, right }
            if Some(*op) == wanted_op && is_literal(right) && !is_literal(left) =>
        {
            Some((left.as_ref().clone(), vec![right.as_ref().clone()]))
        }
        ExprKind::Method { target, name, args }
            if name.text == "contains" && (wanted_op != Some(CompareOp::Ne)) =>
        {
            match (&target.kind, args.as_slice()) {
                (ExprKind::Set(items), [wanted]) if items.iter().all(is_literal) => {
                    Some((wanted.clone(), items.clone()))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether judging it can go wrong in a checked rule: then what stands before it protects it.
fn can_fail(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Sum { .. } | ExprKind::Product(_) | ExprKind::Error => true,
        ExprKind::Neg(inner) => !is_literal(inner),
        ExprKind::Attr { target, .. } if !is_of_context(target) => true,
        ExprKind::Method { name, .. } if name.text == "getTag" => true,
        _ => {
            let mut found = false;
            expr.kind
                .each_part(&mut |part| found = found || can_fail(part));
            found
        }
    }
}

fn is_of_context(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Var(Var::Context) => true,
        ExprKind::Attr { target, .. } => is_of_context(target),
        _ => false,
    }
}

fn is_literal(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Bool(_) | ExprKind::Long(_) | ExprKind::Str(_) | ExprKind::Entity(_) => true,
        ExprKind::Neg(inner) => matches!(inner.kind, ExprKind::Long(_)),
        ExprKind::Set(items) => items.iter().all(is_literal),
        // `decimal("1.5")`.
        ExprKind::Call { name, args } => {
            crate::macros::is_constructor(&name.text()) && args.iter().all(is_literal)
        }
        _ => false,
    }
}

fn attr(attr: &Attr) -> Attr {
    Attr {
        quoted: attr.quoted && !is_plain(&attr.name),
        ..attr.clone()
    }
}

fn is_plain(name: &str) -> bool {
    let mut chars = name.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn not_unless(holds: bool, expr: Expr) -> Expr {
    if holds {
        return expr;
    }
    let span = expr.span;
    match expr.kind {
        ExprKind::Not(inner) => *inner,
        kind => node(ExprKind::Not(Box::new(node(kind, span))), span),
    }
}

fn bool_at(value: bool, span: Span) -> Expr {
    node(ExprKind::Bool(value), span)
}

/// Nobody asks a normal form how deep it is.
fn node(kind: ExprKind, span: Span) -> Expr {
    Expr {
        kind,
        span,
        depth: 1,
    }
}
