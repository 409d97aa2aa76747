//! Temporal legality (language reference, 3.8): every variable is declared, given a value by something
//! that happened, and not read before that.

use super::Report;
use super::problem::{Early, Problem};
use super::vars::{self, Names, Places, binder_names, binding, free, free_in_term, restricted};
use crate::nearest::nearest;
use dogwood_grammar::Span;
use dogwood_grammar::ast::{
    Aggregate, AggregateOp, Binder, Cond, CondKind, FieldPattern, Matcher, Temporal, Term,
    TermKind, VarRef,
};
use smol_str::SmolStr;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The type a variable would be declared with to hold the value of this field.
pub type FieldType<'a> = dyn Fn(&Matcher, &FieldPattern) -> Option<SmolStr> + 'a;

pub fn check(leaf: &Temporal, arithmetic: bool, field_type: &FieldType, report: &mut Report) {
    if vars::has_error(&leaf.body) {
        return;
    }
    let mut check = Check {
        report,
        arithmetic,
        arithmetic_seen: false,
        excused: Names::new(),
    };
    check.placement(&leaf.body);
    let open = free(&leaf.body);
    check.closed(leaf, &open, field_type);
    check.excused.extend(open.into_keys());
    let seed = check.excused.clone();
    check.chain(&leaf.body, seed);
}

struct Check<'a> {
    report: &'a mut Report,
    arithmetic: bool,
    arithmetic_seen: bool,
    /// Variables already reported; nothing more is said about them.
    excused: Names,
}

// ------------------------------------------------------------------ (a) placement and scoping

impl Check<'_> {
    fn placement(&mut self, cond: &Cond) {
        match &cond.kind {
            CondKind::And(parts) => parts.iter().for_each(|part| self.placement(part)),
            CondKind::Since { left, right, .. } => {
                self.placement(left);
                self.placement(right);
            }
            CondKind::Not(body)
            | CondKind::Formerly { body, .. }
            | CondKind::Previous { body, .. } => self.placement(body),
            CondKind::Exists { binder, body } => {
                self.exists(binder, body);
                self.placement(body);
            }
            CondKind::Tp(var) => self.name(var),
            CondKind::Compare { left, right, .. } => {
                self.operand(left);
                self.operand(right);
            }
            CondKind::Match(matcher) => {
                matcher.fields().for_each(|field| self.pattern(&field.term));
            }
            CondKind::Call(_) | CondKind::Param { .. } | CondKind::Error => {}
        }
    }

    fn exists(&mut self, binder: &Binder, body: &Cond) {
        self.name(&binder.var);
        let name = &binder.var.name;
        if !restricted(body).contains(name) {
            let problem = if free(body).contains_key(name) {
                Problem::NotRestricted {
                    name: name.clone(),
                    list: false,
                }
            } else {
                Problem::UnusedBinder {
                    name: name.clone(),
                    list: false,
                    cut: None,
                }
            };
            self.report.add(binder.var.span, problem);
            self.excused.insert(name.clone());
        }
    }

    fn name(&mut self, var: &VarRef) {
        if matches!(
            var.name.as_str(),
            "principal" | "action" | "resource" | "context"
        ) {
            self.report.add(
                var.span,
                Problem::ReservedBinder {
                    name: var.name.clone(),
                },
            );
        }
    }

    /// A value to be compared: the only place for aggregates and arithmetic.
    fn operand(&mut self, term: &Term) {
        match &term.kind {
            TermKind::Aggregate(aggregate) => self.aggregate(aggregate),
            TermKind::Product(items) => {
                self.gate(term.span);
                items.iter().for_each(|item| self.operand(item));
            }
            TermKind::Sum { first, rest } => {
                self.gate(term.span);
                self.operand(first);
                rest.iter().for_each(|(_, item)| self.operand(item));
            }
            _ => {}
        }
    }

    fn pattern(&mut self, term: &Term) {
        let what = match &term.kind {
            TermKind::Aggregate(_) => "an aggregate",
            TermKind::Product(_) | TermKind::Sum { .. } => "arithmetic",
            _ => return,
        };
        self.report.add(term.span, Problem::Misplaced { what });
    }

    // (d) The arithmetic gate.
    fn gate(&mut self, span: Span) {
        if !self.arithmetic {
            self.report.add(span, Problem::ArithmeticOff);
        } else if !self.arithmetic_seen {
            self.arithmetic_seen = true;
            self.report.add(span, Problem::ArithmeticExperimental);
        }
    }

    fn aggregate(&mut self, aggregate: &Aggregate) {
        let listed: BTreeSet<SmolStr> = binder_names(aggregate).collect();
        if let AggregateOp::Sum(summand) = &aggregate.op
            && !listed.contains(&summand.name)
        {
            let name = summand.name.clone();
            let first = aggregate.binders.first().map(|binder| binder.span);
            self.excused.insert(name.clone());
            self.report
                .add(summand.span, Problem::SummandNotListed { name, first });
        }
        let used = free(&aggregate.body);
        let bound = restricted(&aggregate.body);
        let binders = &aggregate.binders;
        for (at, binder) in binders.iter().enumerate() {
            self.name(&binder.var);
            let name = &binder.var.name;
            let problem = if !used.contains_key(name) {
                let next = binders.get(at + 1).map(|next| Span {
                    start: binder.span.start,
                    end: next.span.start,
                });
                let before = at.checked_sub(1).and_then(|before| binders.get(before));
                let cut = next.or_else(|| {
                    Some(Span {
                        start: before?.span.end,
                        end: binder.span.end,
                    })
                });
                Problem::UnusedBinder {
                    name: name.clone(),
                    list: true,
                    cut,
                }
            } else if !bound.contains(name) {
                Problem::NotRestricted {
                    name: name.clone(),
                    list: true,
                }
            } else {
                continue;
            };
            self.report.add(binder.var.span, problem);
            self.excused.insert(name.clone());
        }
        self.placement(&aggregate.body);
    }
}

// ----------------------------------------------------------------------------- (b) closedness

impl Check<'_> {
    fn closed(&mut self, leaf: &Temporal, open: &Places, field_type: &FieldType) {
        if open.is_empty() {
            return;
        }
        let mut declared = Vec::new();
        declared_names(&leaf.body, &mut declared);
        let bound = restricted(&leaf.body);
        let open = open
            .iter()
            .filter(|(name, _)| !self.excused.contains(*name));
        for (at, (name, span)) in open.enumerate() {
            let problem = Problem::FreeVariable {
                name: name.clone(),
                // Comparing names is quadratic; nobody reads twenty proposals.
                nearest: (at < 20).then(|| nearest(name, &declared)).flatten(),
                ty: use_type(&leaf.body, name, field_type)
                    .unwrap_or_else(|| SmolStr::new("String")),
                wrap: bound.contains(name).then_some(leaf.body.span),
            };
            self.report.add(*span, problem);
        }
    }
}

fn declared_names(cond: &Cond, found: &mut Vec<SmolStr>) {
    each_cond(cond, &mut |cond| match &cond.kind {
        CondKind::Exists { binder, .. } => found.push(binder.var.name.clone()),
        CondKind::Compare { left, right, .. } => {
            for term in [left, right] {
                if let TermKind::Aggregate(aggregate) = &term.kind {
                    found.extend(binder_names(aggregate));
                }
            }
        }
        _ => {}
    });
}

/// The type by how a variable is used.
fn use_type(cond: &Cond, name: &SmolStr, field_type: &FieldType) -> Option<SmolStr> {
    let mut found = None;
    each_cond(cond, &mut |cond| match &cond.kind {
        CondKind::Tp(var) if var.name == *name => found = Some(SmolStr::new("Timepoint")),
        CondKind::Match(matcher) => {
            for field in matcher.fields() {
                if vars::bare(&field.term) == Some(name) && found.is_none() {
                    found = field_type(matcher, field);
                }
            }
        }
        CondKind::Compare { op, left, right } => {
            let aggregate = |term: &Term| matches!(term.kind, TermKind::Aggregate(_));
            if let Some((bound, value)) = binding(*op, left, right)
                && bound == name
                && aggregate(value)
            {
                found = Some(SmolStr::new("Long"));
            }
        }
        _ => {}
    });
    found
}

/// Every condition of a leaf, those inside aggregates included.
pub fn each_cond<'c>(cond: &'c Cond, visit: &mut dyn FnMut(&'c Cond)) {
    visit(cond);
    match &cond.kind {
        CondKind::And(parts) => parts.iter().for_each(|part| each_cond(part, visit)),
        CondKind::Since { left, right, .. } => {
            each_cond(left, visit);
            each_cond(right, visit);
        }
        CondKind::Not(body)
        | CondKind::Formerly { body, .. }
        | CondKind::Previous { body, .. }
        | CondKind::Exists { body, .. } => each_cond(body, visit),
        CondKind::Compare { left, right, .. } => {
            in_term(left, visit);
            in_term(right, visit);
        }
        CondKind::Match(matcher) => matcher
            .fields()
            .for_each(|field| in_term(&field.term, visit)),
        CondKind::Tp(_) | CondKind::Call(_) | CondKind::Param { .. } | CondKind::Error => {}
    }
}

fn in_term<'c>(term: &'c Term, visit: &mut dyn FnMut(&'c Cond)) {
    match &term.kind {
        TermKind::Aggregate(aggregate) => each_cond(&aggregate.body, visit),
        TermKind::Array(items) | TermKind::Product(items) => {
            items.iter().for_each(|item| in_term(item, visit));
        }
        TermKind::Sum { first, rest } => {
            in_term(first, visit);
            rest.iter().for_each(|(_, item)| in_term(item, visit));
        }
        _ => {}
    }
}

// -------------------------------------------------------------------------------- (c) demands

/// The conjuncts of a chain, nested chains flattened.
fn conjuncts<'c>(cond: &'c Cond, found: &mut Vec<&'c Cond>) {
    match &cond.kind {
        CondKind::And(parts) => parts.iter().for_each(|part| conjuncts(part, found)),
        _ => found.push(cond),
    }
}

impl Check<'_> {
    /// Walks a chain left to right; `known` are the variables that have a value where it starts.
    fn chain(&mut self, cond: &Cond, mut known: Names) {
        let mut parts = Vec::new();
        conjuncts(cond, &mut parts);
        for (at, part) in parts.iter().enumerate() {
            let chain = Chain { parts: &parts, at };
            self.conjunct(part, &known, chain);
            known.extend(restricted(part));
        }
    }

    fn conjunct(&mut self, cond: &Cond, known: &Names, chain: Chain) {
        match &cond.kind {
            CondKind::Match(_)
            | CondKind::Tp(_)
            | CondKind::Call(_)
            | CondKind::Param { .. }
            | CondKind::Error => {}
            CondKind::Compare { op, left, right } => {
                let demands = match binding(*op, left, right) {
                    Some((_, value)) => (free_in_term(value), Early::Value),
                    None => (free(cond), Early::Filter),
                };
                let known = self.demand(&demands.0, known, demands.1, chain);
                self.inside(left, &known);
                self.inside(right, &known);
            }
            CondKind::Not(body) => {
                let known = self.demand(&free(body), known, Early::Negation, chain);
                self.chain(body, known.into_owned());
            }
            CondKind::Since { left, right, .. } => {
                let anchor = restricted(right);
                let mut demands = free(left);
                demands.retain(|name, _| !anchor.contains(name));
                let mut known = self
                    .demand(&demands, known, Early::SinceLeft, chain)
                    .into_owned();
                self.chain(right, known.clone());
                known.extend(anchor);
                self.chain(left, known);
            }
            CondKind::Formerly { body, .. } | CondKind::Previous { body, .. } => {
                self.chain(body, known.clone());
            }
            CondKind::Exists { binder, body } => {
                let mut known = known.clone();
                if !self.excused.contains(&binder.var.name) {
                    known.remove(&binder.var.name);
                }
                self.chain(body, known);
            }
            CondKind::And(_) => self.chain(cond, known.clone()),
        }
    }

    /// Bodies of aggregates.
    fn inside(&mut self, term: &Term, known: &Names) {
        match &term.kind {
            TermKind::Aggregate(aggregate) => {
                let mut known = known.clone();
                for name in binder_names(aggregate) {
                    if !self.excused.contains(&name) {
                        known.remove(&name);
                    }
                }
                self.chain(&aggregate.body, known);
            }
            TermKind::Product(items) => items.iter().for_each(|item| self.inside(item, known)),
            TermKind::Sum { first, rest } => {
                self.inside(first, known);
                rest.iter().for_each(|(_, item)| self.inside(item, known));
            }
            _ => {}
        }
    }

    /// Reports the demands that are not met, and returns what is known with them taken as met.
    fn demand<'k>(
        &mut self,
        demands: &Places,
        known: &'k Names,
        early: Early,
        chain: Chain,
    ) -> Cow<'k, Names> {
        let mut known = Cow::Borrowed(known);
        for (name, span) in demands {
            if known.contains(name) {
                continue;
            }
            known.to_mut().insert(name.clone());
            let problem = Problem::TooEarly {
                name: name.clone(),
                early,
                later: chain.binder_of(name),
                reordered: chain.reordered(name),
            };
            self.report.add(*span, problem);
        }
        known
    }
}

/// A conjunct in its chain.
#[derive(Clone, Copy)]
struct Chain<'c> {
    parts: &'c [&'c Cond],
    at: usize,
}

impl Chain<'_> {
    /// The later conjunct that gives the variable a value.
    fn binder_of(&self, name: &SmolStr) -> Option<Span> {
        let later = self.parts.iter().skip(self.at + 1);
        later
            .into_iter()
            .find(|part| restricted(part).contains(name))
            .map(|part| part.span)
    }

    /// This conjunct, the one behind it, and the one it should follow.
    fn reordered(&self, name: &SmolStr) -> Option<(Span, Span, Span)> {
        let here = self.parts.get(self.at)?.span;
        let next = self.parts.get(self.at + 1)?.span;
        Some((here, next, self.binder_of(name)?))
    }
}
