//! How far back a rule looks, and the rule without its past (language reference, "Retention").

use dogwood_grammar::ast::{
    Clause, ClauseBody, Cond, CondKind, Expr, ExprKind, Rule, Term, TermKind,
};

/// Seconds. No event older than this, by the stamp of the event that is decided, makes a difference to the rule.
pub fn of_rule(rule: &Rule) -> i64 {
    let clauses = rule.clauses.iter().map(|clause| match &clause.body {
        ClauseBody::Temporal(temporal) => of_cond(&temporal.body),
        ClauseBody::Expr(expr) => of_expr(expr).unwrap_or(0),
    });
    clauses.max().unwrap_or(0)
}

/// The rule without the conditions that look back: it matches every request that the rule could match,
/// whatever the history says.
pub fn without_past(rule: &Rule) -> Rule {
    let looks_back = |clause: &Clause| match &clause.body {
        ClauseBody::Temporal(_) => true,
        ClauseBody::Expr(expr) => of_expr(expr).is_some(),
    };
    let mut present = rule.clone();
    present.clauses.retain(|clause| !looks_back(clause));
    present
}

/// Nothing where the expression has no temporal part.
fn of_expr(expr: &Expr) -> Option<i64> {
    let all = |parts: &[&Expr]| parts.iter().filter_map(|part| of_expr(part)).max();
    match &expr.kind {
        ExprKind::Temporal(temporal) => Some(of_cond(&temporal.body)),
        ExprKind::Bool(_)
        | ExprKind::Long(_)
        | ExprKind::Str(_)
        | ExprKind::Var(_)
        | ExprKind::Entity(_)
        | ExprKind::Slot(_)
        | ExprKind::Error => None,
        ExprKind::Set(parts)
        | ExprKind::Or(parts)
        | ExprKind::And(parts)
        | ExprKind::Product(parts)
        | ExprKind::Call { args: parts, .. } => parts.iter().filter_map(of_expr).max(),
        ExprKind::Record(fields) => fields
            .iter()
            .filter_map(|field| of_expr(&field.value))
            .max(),
        ExprKind::If { test, yes, no } => all(&[test, yes, no]),
        ExprKind::Compare { left, right, .. } | ExprKind::In { left, right } => all(&[left, right]),
        ExprKind::Is { target, within, .. } => {
            of_expr(target).max(within.as_ref().and_then(|within| of_expr(within)))
        }
        ExprKind::Has { target, .. }
        | ExprKind::Like { target, .. }
        | ExprKind::Attr { target, .. } => of_expr(target),
        ExprKind::Not(target) | ExprKind::Neg(target) => of_expr(target),
        ExprKind::Sum { first, rest } => {
            of_expr(first).max(rest.iter().filter_map(|(_, part)| of_expr(part)).max())
        }
        ExprKind::Method { target, args, .. } => {
            of_expr(target).max(args.iter().filter_map(of_expr).max())
        }
    }
}

fn of_cond(cond: &Cond) -> i64 {
    match &cond.kind {
        CondKind::And(parts) => parts.iter().map(of_cond).max().unwrap_or(0),
        CondKind::Since {
            left,
            window,
            right,
        } => {
            let inner = of_cond(left).max(of_cond(right));
            window.seconds().unwrap_or(0).saturating_add(inner)
        }
        CondKind::Formerly { window, body } | CondKind::Previous { window, body } => {
            window.seconds().unwrap_or(0).saturating_add(of_cond(body))
        }
        CondKind::Not(body) | CondKind::Exists { body, .. } => of_cond(body),
        CondKind::Compare { left, right, .. } => of_term(left).max(of_term(right)),
        CondKind::Tp(_)
        | CondKind::Match(_)
        | CondKind::Call(_)
        | CondKind::Param { .. }
        | CondKind::Error => 0,
    }
}

fn of_term(term: &Term) -> i64 {
    match &term.kind {
        TermKind::Aggregate(aggregate) => of_cond(&aggregate.body),
        TermKind::Sum { first, rest } => {
            let rest = rest.iter().map(|(_, term)| of_term(term)).max();
            of_term(first).max(rest.unwrap_or(0))
        }
        TermKind::Product(items) => items.iter().map(of_term).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::{of_rule, without_past};
    use crate::compile::{Options, Source, check, load_service};
    use dogwood_grammar::ast::Rule;

    fn rule(clauses: &str) -> Rule {
        let text =
            format!("permit (principal, action == Box::Action::\"fs:read\", resource) {clauses};");
        let source = Source {
            name: "policy.dw".into(),
            text,
        };
        let (service, _) = load_service(None, None).unwrap();
        let checked = check(&[source], None, &service, &Options::default()).unwrap();
        checked.rules.into_iter().next().unwrap().rule
    }

    const READ: &str = r#"Box::Action::"fs:read"::request{ input.path: "a" }"#;

    #[test]
    fn windows_add_up_along_the_nesting() {
        assert_eq!(of_rule(&rule("")), 0);
        assert_eq!(of_rule(&rule(r#"when { context.input.path == "a" }"#)), 0);
        assert_eq!(of_rule(&rule(&format!("when temporal {{ {READ} }}"))), 0);
        let nested = format!(
            "when temporal {{ !(formerly within 10m ({READ})) since within 1h (formerly within 5m ({READ})) }}"
        );
        assert_eq!(of_rule(&rule(&nested)), 3600 + 600);
        let counted = format!(
            "unless temporal {{ exists (n: Long). ((count for (t: Timepoint). where (formerly within 2h ({READ} && tp(t)))) == n && n > 3) }}"
        );
        assert_eq!(of_rule(&rule(&counted)), 7200);
        let inside = format!(
            r#"when {{ context.input.path == "b" || temporal {{ previous within 90s ({READ}) }} }}"#
        );
        assert_eq!(of_rule(&rule(&inside)), 90);
    }

    #[test]
    fn without_its_past_a_rule_keeps_the_conditions_on_the_request() {
        let both = rule(&format!(
            r#"when {{ context.input.path == "a" }} when temporal {{ formerly within 1h ({READ}) }} unless {{ context.input.path == "b" || temporal {{ {READ} }} }}"#
        ));
        let present = without_past(&both);
        assert_eq!((both.clauses.len(), present.clauses.len()), (3, 1));
        assert_eq!(of_rule(&present), 0);
    }
}
