//! Rules that expansion leaves as they are: most of them. They need not be built a second time.

use dogwood_grammar::ast::{ClauseBody, Cond, CondKind, Expr, ExprKind, Rule, Term, TermKind};

/// Whether expanding the rule, which stands in `text`, gives just the rule. It may be so where this says no.
pub fn is_plain(rule: &Rule, text: &str) -> bool {
    // Parameters and fresh names have signs of their own.
    let named = !rule.span.text(text).contains(['?', '$']);
    named
        && rule.clauses.iter().all(|clause| match &clause.body {
            ClauseBody::Expr(body) => expr(body),
            ClauseBody::Temporal(leaf) => cond(&leaf.body),
        })
}

fn expr(body: &Expr) -> bool {
    match &body.kind {
        ExprKind::Call { .. } | ExprKind::Slot(_) | ExprKind::Error => false,
        ExprKind::Temporal(leaf) => cond(&leaf.body),
        kind => {
            let mut plain = true;
            kind.each_part(&mut |part| plain = plain && expr(part));
            plain
        }
    }
}

fn cond(body: &Cond) -> bool {
    match &body.kind {
        CondKind::And(parts) => parts.iter().all(cond),
        CondKind::Since { left, right, .. } => cond(left) && cond(right),
        CondKind::Not(body)
        | CondKind::Formerly { body, .. }
        | CondKind::Previous { body, .. }
        | CondKind::Exists { body, .. } => cond(body),
        CondKind::Compare { left, right, .. } => term(left) && term(right),
        CondKind::Match(matcher) => matcher.fields().all(|field| term(&field.term)),
        CondKind::Tp(_) => true,
        CondKind::Call(_) | CondKind::Param { .. } | CondKind::Error => false,
    }
}

fn term(value: &Term) -> bool {
    match &value.kind {
        TermKind::Int(_)
        | TermKind::Str(_)
        | TermKind::Bool(_)
        | TermKind::Decimal(_)
        | TermKind::Entity(_)
        | TermKind::Context(_)
        | TermKind::Scope { .. }
        | TermKind::Wildcard
        | TermKind::Var(_) => true,
        TermKind::Array(items) | TermKind::Product(items) => items.iter().all(term),
        TermKind::Sum { first, rest } => term(first) && rest.iter().all(|(_, item)| term(item)),
        TermKind::Aggregate(aggregate) => cond(&aggregate.body),
        TermKind::Call(_) | TermKind::Error => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::macros::{Library, expand_rule};
    use dogwood_grammar::ast::Item;
    use dogwood_grammar::parse_policy;

    /// One rule of each shape; those with `?`, `$` or a call in them are not plain.
    const RULES: &str = r#"
permit (principal is A::B, action in [A::Action::"a", A::Action::"b"], resource == A::C::"c");
permit (principal, action, resource)
when { if context.a has b.c then [1, -2].contains(context.a.b.c) else {"x y": true}.k == A::B::"b" }
unless { !(principal in resource) || context.s like "a*" && context.n + 1 - 2 * 3 > 4 };
forbid (principal, action, resource) when { principal is A::B in A::C::"c" && context["a b"] }
when temporal {
  exists (x: String). (formerly within 1h A::Action::"a"::request{ input.p: x, q.r: 1, s: "s", b: true, w: *, d: decimal("1.5") }
    && !A::Action::"b"::response{ e: A::B::"b", p: principal.id } since within 2m (previous within 3s A::Action::"c"::k{ c: context.n } && x != "y"))
};
forbid (principal, action, resource) when { temporal { (count for (n: Long), (t: Timepoint). where
  formerly within 1d (A::Action::"a"::request{ n: n } && tp(t) && n < 3)) >= 5 } && context.b };
forbid (principal, action, resource) when temporal { (sum n for (n: Long). where formerly within 1d A::Action::"a"::k{ n: n }) + 1 * 2 > 3 };
permit (principal == ?principal, action, resource);
permit (principal, action, resource) when { ip("1.2.3.4").isLoopback() };
permit (principal, action, resource) when temporal { formerly within 1h f(1) };
permit (principal, action, resource) when temporal { formerly within 1h A::Action::"a"::k{ n: g() } };
permit (principal, action, resource) when temporal { exists ($x: Long). formerly within 1h A::Action::"a"::k{ n: $x } };
"#;

    #[test]
    fn what_is_plain_is_expanded_to_itself() {
        let parsed = parse_policy(RULES);
        assert_eq!(parsed.errors, []);
        let library = Library::builtin();
        let mut plain = 0;
        for item in &parsed.tree.items {
            let Item::Rule(rule) = item else {
                panic!("{item:?}")
            };
            if is_plain(rule, RULES) {
                plain += 1;
                let expanded = expand_rule(rule, &library);
                assert_eq!(&expanded.rule, rule);
                assert!(expanded.errors.is_empty() && expanded.calls.is_empty());
            }
        }
        assert_eq!((plain, parsed.tree.items.len()), (5, 10));
    }
}
