//! The normal form of a rule: what is left of its text when spelling is taken away.

use crate::grammar::ast::*;
use crate::grammar::print::print_rule;
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// A text equal for two rules that differ in layout, comments, annotations, names of variables, units of
/// windows, order of the fields of a predicate, doubled negations, or `unless` for `when !`.
pub fn normal(rule: &Rule) -> String {
    let mut rule = rule.clone();
    rule.annotations.clear();
    rule.scope.heads.sort_by_key(|head| head.var as u8);
    rule.scope
        .heads
        .retain(|head| head.constraint != Constraint::Any);
    for clause in &mut rule.clauses {
        clause.guardrails = false;
        let negated = clause.kind == ClauseKind::Unless;
        clause.kind = ClauseKind::When;
        match &mut clause.body {
            ClauseBody::Expr(expr) => {
                if negated {
                    *expr = not(expr.clone());
                }
                expression(expr);
            }
            ClauseBody::Temporal(temporal) => {
                if negated {
                    temporal.body = not_cond(temporal.body.clone());
                }
                Names::default().cond(&mut temporal.body);
            }
        }
    }
    print_rule(&rule)
}

fn not(expr: Expr) -> Expr {
    Expr {
        span: expr.span,
        depth: expr.depth.saturating_add(1),
        kind: ExprKind::Not(Box::new(expr)),
    }
}

fn not_cond(cond: Cond) -> Cond {
    Cond {
        span: cond.span,
        depth: cond.depth.saturating_add(1),
        kind: CondKind::Not(Box::new(cond)),
    }
}

// The depth of a tree is bounded by the parser, so recursion is.

fn expression(expr: &mut Expr) {
    if let ExprKind::Not(inner) = &expr.kind
        && let ExprKind::Not(twice) = &inner.kind
    {
        *expr = twice.as_ref().clone();
        return expression(expr);
    }
    match &mut expr.kind {
        ExprKind::Bool(_)
        | ExprKind::Long(_)
        | ExprKind::Str(_)
        | ExprKind::Var(_)
        | ExprKind::Entity(_)
        | ExprKind::Slot(_)
        | ExprKind::Error => {}
        ExprKind::Set(items) | ExprKind::Product(items) => items.iter_mut().for_each(expression),
        ExprKind::Record(fields) => {
            for field in fields.iter_mut() {
                field.key.quoted = false;
                expression(&mut field.value);
            }
            fields.sort_by(|a, b| a.key.name.cmp(&b.key.name));
        }
        ExprKind::If { test, yes, no } => {
            for part in [test, yes, no] {
                expression(part);
            }
        }
        ExprKind::Or(parts) => {
            *parts = flat(std::mem::take(parts), |kind| match kind {
                ExprKind::Or(inner) => Ok(inner),
                other => Err(other),
            });
            parts.iter_mut().for_each(expression);
        }
        ExprKind::And(parts) => {
            *parts = flat(std::mem::take(parts), |kind| match kind {
                ExprKind::And(inner) => Ok(inner),
                other => Err(other),
            });
            parts.iter_mut().for_each(expression);
        }
        ExprKind::Compare { left, right, .. } | ExprKind::In { left, right } => {
            expression(left);
            expression(right);
        }
        ExprKind::Has { target, path } => {
            path.iter_mut()
                .for_each(|attr| attr.quoted &= !plain(&attr.name));
            expression(target);
        }
        ExprKind::Like { target, .. } => expression(target),
        ExprKind::Is { target, within, .. } => {
            expression(target);
            if let Some(within) = within {
                expression(within);
            }
        }
        ExprKind::Sum { first, rest } => {
            expression(first);
            rest.iter_mut().for_each(|(_, operand)| expression(operand));
        }
        ExprKind::Not(inner) | ExprKind::Neg(inner) => expression(inner),
        ExprKind::Attr { target, attr } => {
            attr.quoted &= !plain(&attr.name);
            expression(target);
        }
        ExprKind::Method { target, args, .. } => {
            expression(target);
            args.iter_mut().for_each(expression);
        }
        ExprKind::Call { args, .. } => args.iter_mut().for_each(expression),
        ExprKind::Temporal(temporal) => Names::default().cond(&mut temporal.body),
    }
}

fn plain(name: &str) -> bool {
    let mut chars = name.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Operands of the same operator, written with parentheses or without.
fn flat(
    parts: Vec<Expr>,
    open: impl Fn(ExprKind) -> Result<Vec<Expr>, ExprKind> + Copy,
) -> Vec<Expr> {
    let mut out = Vec::new();
    for part in parts {
        let (span, depth) = (part.span, part.depth);
        match open(part.kind) {
            Ok(inner) => out.extend(flat(inner, open)),
            Err(kind) => out.push(Expr { kind, span, depth }),
        }
    }
    out
}

/// New names of the variables in sight: numbered in the order in which they are introduced.
#[derive(Clone, Default)]
struct Names {
    known: BTreeMap<(Sigil8, SmolStr), SmolStr>,
    next: usize,
}

/// A sigil as a number, which can be ordered.
type Sigil8 = u8;

impl Names {
    fn introduce(&mut self, var: &mut VarRef) {
        let name = SmolStr::new(format!("v{}", self.next));
        self.next += 1;
        self.known
            .insert((var.sigil as Sigil8, var.name.clone()), name.clone());
        var.sigil = Sigil::Plain;
        var.name = name;
    }

    fn used(&self, var: &mut VarRef) {
        if let Some(name) = self.known.get(&(var.sigil as Sigil8, var.name.clone())) {
            var.sigil = Sigil::Plain;
            var.name = name.clone();
        }
    }

    fn cond(&self, cond: &mut Cond) {
        if let CondKind::Not(inner) = &cond.kind
            && let CondKind::Not(twice) = &inner.kind
        {
            *cond = twice.as_ref().clone();
            return self.cond(cond);
        }
        match &mut cond.kind {
            CondKind::And(parts) => {
                let mut all = Vec::new();
                for part in std::mem::take(parts) {
                    match part.kind {
                        CondKind::And(inner) => all.extend(inner),
                        _ => all.push(part),
                    }
                }
                *parts = all;
                parts.iter_mut().for_each(|part| self.cond(part));
            }
            CondKind::Since {
                left,
                window,
                right,
            } => {
                seconds(window);
                self.cond(left);
                self.cond(right);
            }
            CondKind::Not(body) => self.cond(body),
            CondKind::Formerly { window, body } | CondKind::Previous { window, body } => {
                seconds(window);
                self.cond(body);
            }
            CondKind::Exists { binder, body } => {
                let mut inner = self.clone();
                inner.introduce(&mut binder.var);
                inner.cond(body);
            }
            CondKind::Tp(var) => self.used(var),
            CondKind::Compare { left, right, .. } => {
                self.term(left);
                self.term(right);
            }
            CondKind::Match(matcher) => {
                let mut fields: Vec<FieldPattern> = std::mem::take(&mut matcher.groups).concat();
                for field in &mut fields {
                    self.term(&mut field.term);
                }
                let path = |field: &FieldPattern| -> Vec<SmolStr> {
                    field.path.iter().map(|word| word.text.clone()).collect()
                };
                fields.sort_by_key(path);
                matcher.groups = vec![fields];
            }
            CondKind::Call(_) | CondKind::Param { .. } | CondKind::Error => {}
        }
    }

    fn term(&self, term: &mut Term) {
        match &mut term.kind {
            TermKind::Var(var) => self.used(var),
            TermKind::Array(items) | TermKind::Product(items) => {
                items.iter_mut().for_each(|item| self.term(item));
            }
            TermKind::Sum { first, rest } => {
                self.term(first);
                rest.iter_mut().for_each(|(_, operand)| self.term(operand));
            }
            TermKind::Aggregate(aggregate) => {
                let mut inner = self.clone();
                for binder in &mut aggregate.binders {
                    inner.introduce(&mut binder.var);
                }
                if let AggregateOp::Sum(var) = &mut aggregate.op {
                    inner.used(var);
                }
                inner.cond(&mut aggregate.body);
            }
            _ => {}
        }
    }
}

fn seconds(window: &mut Window) {
    let all = window.seconds().and_then(|all| u64::try_from(all).ok());
    if let (WindowKind::Amount { amount, unit }, Some(all)) = (&mut window.kind, all) {
        (*amount, *unit) = (all, Unit::Second);
    }
}

#[cfg(test)]
mod tests {
    use super::normal;
    use crate::grammar::ast::Item;
    use crate::grammar::parse_policy;

    fn of(text: &str) -> String {
        let parsed = parse_policy(text);
        assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
        match parsed.tree.items.into_iter().next() {
            Some(Item::Rule(rule)) => normal(&rule),
            other => panic!("no rule: {other:?}"),
        }
    }

    #[test]
    fn spelling_goes() {
        let one = r#"
            @id("a") // comment
            forbid (principal, action == B::Action::"x", resource)
            unless { !(context.a == 1 && (context["b"] == 2 && context has c)) }
            unless temporal { exists (u: String). formerly within 15m B::Action::"y"::k{ b: 1, a: u } };"#;
        let other = r#"
            forbid (action == B::Action::"x", principal, resource)
            when { context.a == 1 && context.b == 2 && context has "c" }
            when temporal { !(exists (v: String). formerly within 900s B::Action::"y"::k{ a: v }{ b: 1 }) };"#;
        assert_eq!(of(one), of(other));
    }

    #[test]
    fn meaning_stays() {
        let base = r#"forbid (principal, action, resource) when temporal { formerly within 15m B::Action::"y"::k{ a: 1 } };"#;
        for other in [
            r#"permit (principal, action, resource) when temporal { formerly within 15m B::Action::"y"::k{ a: 1 } };"#,
            r#"forbid (principal, action, resource) unless temporal { formerly within 15m B::Action::"y"::k{ a: 1 } };"#,
            r#"forbid (principal, action, resource) when temporal { formerly within 16m B::Action::"y"::k{ a: 1 } };"#,
            r#"forbid (principal, action, resource) when temporal { previous within 15m B::Action::"y"::k{ a: 1 } };"#,
            r#"forbid (principal, action, resource) when temporal { formerly within 15m B::Action::"y"::k{ a: 2 } };"#,
            r#"forbid (principal == B::U::"a", action, resource) when temporal { formerly within 15m B::Action::"y"::k{ a: 1 } };"#,
        ] {
            assert_ne!(of(base), of(other), "{other}");
        }
    }
}
