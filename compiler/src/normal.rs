//! The normal form of a rule: what is left of it when spelling is taken away.
//!
//! ```text
//! clauses ── expr: negations inwards, `if`s opened, sides and sets in order ──┐
//!    └ temporal ── cond: windows in seconds, variables numbered, fields sorted ┤
//!                                                                 conjuncts, sorted
//!                                            text, to compare ◄──────────┴──► a rule, to read aloud
//! ```
//!
//! A step is taken only where it keeps the meaning, errors included: a condition that can fail (sums that
//! overflow, attributes of entities nobody has sent) stays on its side of those around it, and a comparison
//! of the past with a field that may be absent is not the negation of its opposite.

mod cond;
mod expr;
mod order;

use crate::grammar::Span;
use crate::grammar::ast::*;
use crate::grammar::print::{print_cond, print_expr, print_rule};
use expr::{boolean, gather, negate};
use smol_str::SmolStr;

/// A text equal for two rules that differ in layout, comments, annotations, names of variables, units of
/// windows, or the order and the negations of their conditions.
pub fn text(rule: &Rule) -> String {
    let mut bare = Rule {
        clauses: Vec::new(),
        ..rule.clone()
    };
    bare.annotations.clear();
    scope(&mut bare.scope);
    let mut out = print_rule(&bare);
    for part in conjuncts(rule) {
        out.push('\n');
        out.push_str(&print_expr(&part));
    }
    out
}

/// The same as a rule that reads well: what must hold, what must have happened, and then, after `unless`, what
/// must not have.
pub fn form(rule: &Rule) -> Rule {
    let mut form = rule.clone();
    scope(&mut form.scope);
    let (mut whens, mut unless) = (Vec::new(), Vec::new());
    for part in conjuncts(rule) {
        let span = part.span;
        match part.kind {
            ExprKind::Not(inner) if matches!(inner.kind, ExprKind::Temporal(_)) => {
                unless.push(clause(ClauseKind::Unless, *inner, span));
            }
            ExprKind::Or(parts) if is_mostly_negative(&parts) => {
                let parts = parts.into_iter().map(negate).collect();
                unless.push(clause(ClauseKind::Unless, gather(true, parts, span), span));
            }
            _ => whens.push(clause(ClauseKind::When, part, span)),
        }
    }
    whens.append(&mut unless);
    form.clauses = whens;
    form
}

/// A condition of the past in normal form: what the body of a macro says.
pub fn condition(cond: &Cond) -> Cond {
    cond::closed(cond)
}

/// A value of the past in normal form.
pub fn value(term: &Term) -> Term {
    cond::term(term)
}

/// An expression in normal form.
pub fn expression(expr: &Expr) -> Expr {
    boolean(expr, true)
}

/// Where a field stands among others: those that say most come first.
pub(crate) fn place_of(path: &[SmolStr]) -> usize {
    order::field(&path.join(".")).0
}

/// The fields in that order.
pub(crate) fn in_order<T>(fields: &mut [T], path: impl Fn(&T) -> &str) {
    fields.sort_by_cached_key(|field| order::field(path(field)));
}

fn scope(scope: &mut Scope) {
    for head in &mut scope.heads {
        if let Constraint::InAny(actions) = &mut head.constraint {
            let text = |uid: &EntityRef| (uid.ty.text(), uid.id.value.clone());
            actions.sort_by_key(text);
            actions.dedup_by_key(|uid| text(uid));
            if let [one] = actions.as_slice() {
                head.constraint = Constraint::In(HeadRef::Entity(one.clone()));
            }
        }
    }
    scope.heads.sort_by_key(|head| head.var as u8);
    scope
        .heads
        .retain(|head| head.constraint != Constraint::Any);
}

/// What must all hold for the rule to apply.
fn conjuncts(rule: &Rule) -> Vec<Expr> {
    let parts = rule.clauses.iter().map(|clause| {
        let holds = clause.kind == ClauseKind::When;
        match &clause.body {
            ClauseBody::Expr(expr) => boolean(expr, holds),
            ClauseBody::Temporal(temporal) => expr::temporal(temporal, holds),
        }
    });
    let all = gather(true, parts.collect(), rule.span);
    match all.kind {
        ExprKind::And(parts) => parts,
        ExprKind::Bool(true) => Vec::new(),
        _ => vec![all],
    }
}

fn clause(kind: ClauseKind, expr: Expr, span: Span) -> Clause {
    let body = match expr.kind {
        ExprKind::Temporal(temporal) => ClauseBody::Temporal(*temporal),
        _ => ClauseBody::Expr(expr),
    };
    Clause {
        kind,
        keyword: span,
        guardrails: false,
        body,
        span,
    }
}

/// "Unless a and b" says it better than "when not a or not b".
fn is_mostly_negative(parts: &[Expr]) -> bool {
    let negative = parts.iter().filter(|part| order::is_negative(part)).count();
    let neutral = parts.iter().filter(|part| order::is_neutral(part)).count();
    negative > parts.len() - negative - neutral
}

#[cfg(test)]
mod tests;
