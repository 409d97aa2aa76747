//! Variables of temporal conditions: which occur free, and which a condition restricts (language
//! reference, 3.8).

use dogwood_grammar::Span;
use dogwood_grammar::ast::{Aggregate, CompareOp, Cond, CondKind, Matcher, Sigil, Term, TermKind};
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};

pub type Names = BTreeSet<SmolStr>;
/// Names with the place of their first occurrence.
pub type Places = BTreeMap<SmolStr, Span>;

/// The free variables of a condition.
pub fn free(cond: &Cond) -> Places {
    let mut walk = Free::default();
    walk.cond(cond);
    walk.found
}

/// The free variables of a term; of an aggregate, those of its body that it does not bind.
pub fn free_in_term(term: &Term) -> Places {
    let mut walk = Free::default();
    walk.term(term);
    walk.found
}

#[derive(Default)]
struct Free {
    bound: Vec<SmolStr>,
    found: Places,
}

impl Free {
    fn occurs(&mut self, name: &SmolStr, span: Span) {
        if !self.bound.contains(name) {
            self.found.entry(name.clone()).or_insert(span);
        }
    }

    fn cond(&mut self, cond: &Cond) {
        match &cond.kind {
            CondKind::And(parts) => parts.iter().for_each(|part| self.cond(part)),
            CondKind::Since { left, right, .. } => {
                self.cond(left);
                self.cond(right);
            }
            CondKind::Not(body)
            | CondKind::Formerly { body, .. }
            | CondKind::Previous { body, .. } => self.cond(body),
            CondKind::Exists { binder, body } => {
                self.bound.push(binder.var.name.clone());
                self.cond(body);
                self.bound.pop();
            }
            CondKind::Tp(var) => self.occurs(&var.name, var.span),
            CondKind::Compare { left, right, .. } => {
                self.term(left);
                self.term(right);
            }
            CondKind::Match(matcher) => {
                matcher.fields().for_each(|field| self.term(&field.term));
            }
            CondKind::Call(_) | CondKind::Param { .. } | CondKind::Error => {}
        }
    }

    fn term(&mut self, term: &Term) {
        match &term.kind {
            TermKind::Var(var) => self.occurs(&var.name, var.span),
            TermKind::Array(items) | TermKind::Product(items) => {
                items.iter().for_each(|item| self.term(item));
            }
            TermKind::Sum { first, rest } => {
                self.term(first);
                rest.iter().for_each(|(_, item)| self.term(item));
            }
            TermKind::Aggregate(aggregate) => {
                let before = self.bound.len();
                self.bound.extend(binder_names(aggregate));
                self.cond(&aggregate.body);
                self.bound.truncate(before);
            }
            _ => {}
        }
    }
}

pub fn binder_names(aggregate: &Aggregate) -> impl Iterator<Item = SmolStr> {
    aggregate
        .binders
        .iter()
        .map(|binder| binder.var.name.clone())
}

/// The variables every row of the condition gives a value to.
pub fn restricted(cond: &Cond) -> Names {
    match &cond.kind {
        CondKind::Match(matcher) => in_patterns(matcher),
        CondKind::Tp(var) => Names::from([var.name.clone()]),
        CondKind::Compare { op, left, right } => binding(*op, left, right)
            .map(|(name, _)| Names::from([name.clone()]))
            .unwrap_or_default(),
        CondKind::And(parts) => parts.iter().flat_map(restricted).collect(),
        CondKind::Formerly { body, .. } | CondKind::Previous { body, .. } => restricted(body),
        CondKind::Since { right, .. } => restricted(right),
        CondKind::Exists { binder, body } => {
            let mut names = restricted(body);
            names.remove(&binder.var.name);
            names
        }
        CondKind::Not(_) | CondKind::Call(_) | CondKind::Param { .. } | CondKind::Error => {
            Names::new()
        }
    }
}

fn in_patterns(matcher: &Matcher) -> Names {
    matcher
        .fields()
        .filter_map(|field| bare(&field.term))
        .cloned()
        .collect()
}

/// The name, if the term is nothing but a variable.
pub fn bare(term: &Term) -> Option<&SmolStr> {
    match &term.kind {
        TermKind::Var(var) if var.sigil == Sigil::Plain => Some(&var.name),
        _ => None,
    }
}

/// Of `x == t` or `t == x` the variable and the value, where exactly one side is a variable and the
/// other has a value of its own.
pub fn binding<'c>(
    op: CompareOp,
    left: &'c Term,
    right: &'c Term,
) -> Option<(&'c SmolStr, &'c Term)> {
    if op != CompareOp::Eq {
        return None;
    }
    match (bare(left), bare(right)) {
        (Some(name), None) if !has_wildcard(right) => Some((name, right)),
        (None, Some(name)) if !has_wildcard(left) => Some((name, left)),
        _ => None,
    }
}

fn has_wildcard(term: &Term) -> bool {
    match &term.kind {
        TermKind::Wildcard | TermKind::Error => true,
        TermKind::Product(items) => items.iter().any(has_wildcard),
        TermKind::Sum { first, rest } => {
            has_wildcard(first) || rest.iter().any(|(_, item)| has_wildcard(item))
        }
        _ => false,
    }
}

/// Whether some part could not be read or expanded; what a condition binds is then not known.
pub fn has_error(cond: &Cond) -> bool {
    match &cond.kind {
        CondKind::And(parts) => parts.iter().any(has_error),
        CondKind::Since { left, right, .. } => has_error(left) || has_error(right),
        CondKind::Not(body)
        | CondKind::Formerly { body, .. }
        | CondKind::Previous { body, .. }
        | CondKind::Exists { body, .. } => has_error(body),
        CondKind::Compare { left, right, .. } => error_in_term(left) || error_in_term(right),
        CondKind::Match(matcher) => matcher.fields().any(|field| error_in_term(&field.term)),
        CondKind::Tp(var) => var.sigil != Sigil::Plain,
        CondKind::Call(_) | CondKind::Param { .. } | CondKind::Error => true,
    }
}

fn error_in_term(term: &Term) -> bool {
    match &term.kind {
        TermKind::Error | TermKind::Call(_) => true,
        TermKind::Var(var) => var.sigil != Sigil::Plain,
        TermKind::Array(items) | TermKind::Product(items) => items.iter().any(error_in_term),
        TermKind::Sum { first, rest } => {
            error_in_term(first) || rest.iter().any(|(_, item)| error_in_term(item))
        }
        TermKind::Aggregate(aggregate) => has_error(&aggregate.body),
        _ => false,
    }
}
