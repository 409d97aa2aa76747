//! Leaves written so that cells keep less and find it quicker, with the same meaning.
//!
//! A variable that is used once says no more than `*`; and a comparison inside `formerly` that says the same
//! whenever it is made stands as well outside, where the request is known.

use dogwood_grammar::ast;

/// Whether a variable occurs once, as what a field of a matcher is.
pub(crate) fn used_once(cond: &ast::Cond, name: &str) -> bool {
    let mut uses = Uses::default();
    uses.of(cond, name);
    uses.in_fields == 1 && uses.elsewhere == 0
}

#[derive(Default)]
struct Uses {
    in_fields: usize,
    elsewhere: usize,
}

impl Uses {
    fn of(&mut self, cond: &ast::Cond, name: &str) {
        match &cond.kind {
            ast::CondKind::And(parts) => parts.iter().for_each(|part| self.of(part, name)),
            ast::CondKind::Since { left, right, .. } => {
                self.of(left, name);
                self.of(right, name);
            }
            ast::CondKind::Not(body)
            | ast::CondKind::Formerly { body, .. }
            | ast::CondKind::Previous { body, .. } => self.of(body, name),
            ast::CondKind::Exists { binder, body } => {
                if binder.var.name != name {
                    self.of(body, name);
                }
            }
            ast::CondKind::Tp(var) => self.elsewhere += usize::from(var.name == name),
            ast::CondKind::Compare { left, right, .. } => {
                self.of_term(left, name);
                self.of_term(right, name);
            }
            ast::CondKind::Match(matcher) => {
                for field in matcher.fields() {
                    match &field.term.kind {
                        ast::TermKind::Var(var) => self.in_fields += usize::from(var.name == name),
                        _ => self.of_term(&field.term, name),
                    }
                }
            }
            ast::CondKind::Call(_) | ast::CondKind::Param { .. } => self.elsewhere += 1,
            ast::CondKind::Error => {}
        }
    }

    fn of_term(&mut self, term: &ast::Term, name: &str) {
        match &term.kind {
            ast::TermKind::Var(var) => self.elsewhere += usize::from(var.name == name),
            ast::TermKind::Sum { first, rest } => {
                self.of_term(first, name);
                rest.iter().for_each(|(_, term)| self.of_term(term, name));
            }
            ast::TermKind::Product(factors) => {
                factors.iter().for_each(|term| self.of_term(term, name));
            }
            ast::TermKind::Aggregate(aggregate) => {
                let mut binders = aggregate.binders.iter();
                if !binders.any(|binder| binder.var.name == name) {
                    // It selects there what is aggregated: more than that something exists.
                    let mut inside = Uses::default();
                    inside.of(&aggregate.body, name);
                    self.elsewhere += inside.in_fields + inside.elsewhere;
                }
            }
            ast::TermKind::Call(_) => self.elsewhere += 1,
            _ => {}
        }
    }
}

/// What a variable has to be equal to wherever this holds.
pub(crate) fn equal_to<'c>(cond: &'c ast::Cond, name: &str) -> Option<&'c ast::Term> {
    let parts = match &cond.kind {
        ast::CondKind::And(parts) => parts.as_slice(),
        _ => std::slice::from_ref(cond),
    };
    let is_it = |term: &ast::Term| match &term.kind {
        ast::TermKind::Var(var) => var.name == name,
        _ => false,
    };
    parts.iter().find_map(|part| match &part.kind {
        ast::CondKind::Compare {
            op: ast::CompareOp::Eq,
            left,
            right,
        } if of_request(left) || of_request(right) => {
            let both = [(left, right), (right, left)];
            let other = both.into_iter().find(|(var, _)| is_it(var));
            other.map(|(_, term)| term)
        }
        _ => None,
    })
}

/// The body of a `formerly` in three: the variables it binds all of, what has to have happened, and the
/// comparisons with the request.
pub(crate) struct Split<'c> {
    /// Each with its scope.
    pub binders: Vec<(&'c ast::Binder, &'c ast::Cond)>,
    pub happened: Vec<&'c ast::Cond>,
    pub compared: Vec<&'c ast::Cond>,
}

/// Nothing, where there is nothing to take apart.
pub(crate) fn split(body: &ast::Cond) -> Option<Split<'_>> {
    let mut binders = Vec::new();
    let mut at = body;
    while let ast::CondKind::Exists { binder, body } = &at.kind {
        binders.push((binder, body.as_ref()));
        at = body;
    }
    let ast::CondKind::And(parts) = &at.kind else {
        return None;
    };
    let (compared, happened): (Vec<_>, Vec<_>) =
        parts.iter().partition(|part| compares_request(part));
    (!compared.is_empty() && !happened.is_empty()).then_some(Split {
        binders,
        happened,
        compared,
    })
}

fn compares_request(cond: &ast::Cond) -> bool {
    let ast::CondKind::Compare { left, right, .. } = &cond.kind else {
        return false;
    };
    is_value(left) && is_value(right) && (of_request(left) || of_request(right))
}

fn is_value(term: &ast::Term) -> bool {
    matches!(
        &term.kind,
        ast::TermKind::Var(_)
            | ast::TermKind::Int(_)
            | ast::TermKind::Bool(_)
            | ast::TermKind::Str(_)
            | ast::TermKind::Decimal(_)
            | ast::TermKind::Entity(_)
            | ast::TermKind::Context(_)
            | ast::TermKind::Scope { .. }
    )
}

fn of_request(term: &ast::Term) -> bool {
    matches!(
        &term.kind,
        ast::TermKind::Context(_) | ast::TermKind::Scope { .. }
    )
}
