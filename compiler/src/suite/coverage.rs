//! Which parts of a policy a run of tests saw hold, and which it saw fail.
//!
//! Every part becomes a permit of its own, with the scope of its rule: a second monitor over the same events
//! then says of each decision which parts hold. A part that cannot be evaluated (an attribute that another
//! part tests for is missing) counts as neither.

use crate::check::leaves;
use crate::check::vars::free;
use crate::event::Event;
use crate::grammar::Span;
use crate::grammar::ast::*;
use crate::monitor::{Config, Monitor, Policy};
use crate::schema::Service;
use std::sync::Arc;

/// A part of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Position of its rule in the policy.
    pub rule: usize,
    pub kind: PartKind,
    /// Where it stands; inside the rule.
    pub span: Span,
    /// How often it held at a decision its rule's scope admits.
    pub held: u64,
    /// How often it did not.
    pub failed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PartKind {
    /// The rule as a whole.
    Rule,
    /// One condition of a `when` or `unless`.
    Condition,
    /// An operator over the past.
    Cell,
}

pub struct Coverage {
    policy: Arc<Policy>,
    monitor: Monitor,
    parts: Vec<Part>,
    /// For each rule its scope's own entry among the synthetic rules.
    scopes: Vec<usize>,
}

impl Coverage {
    /// For checked rules, macros written out.
    pub fn new(rules: &[Rule], service: &Service) -> Coverage {
        let mut made = Vec::new();
        let mut parts = Vec::new();
        // Parts first, so that their numbers are those of the synthetic rules.
        for (number, rule) in rules.iter().enumerate() {
            let mut add = |kind, span: Span, clauses: Vec<Clause>| {
                let inside = span.start >= rule.span.start && span.end <= rule.span.end;
                parts.push(Part {
                    rule: number,
                    kind,
                    span: if inside { span } else { rule.effect_span },
                    held: 0,
                    failed: 0,
                });
                made.push(Rule {
                    effect: Effect::Permit,
                    clauses,
                    ..rule.clone()
                });
            };
            add(PartKind::Rule, rule.effect_span, rule.clauses.clone());
            for clause in &rule.clauses {
                let mut one = |span, body| {
                    let clause = Clause {
                        kind: ClauseKind::When,
                        body,
                        ..clause.clone()
                    };
                    add(PartKind::Condition, span, vec![clause]);
                };
                match &clause.body {
                    ClauseBody::Temporal(temporal) => {
                        one(temporal.body.span, ClauseBody::Temporal(temporal.clone()));
                    }
                    ClauseBody::Expr(expr) => {
                        for part in conjuncts(expr) {
                            one(part.span, ClauseBody::Expr(part.clone()));
                        }
                    }
                }
            }
            let Some(any) = rule.clauses.first() else {
                continue;
            };
            for leaf in leaves(rule) {
                let mut found = Vec::new();
                operators(&leaf.body, true, &mut found);
                for cond in found {
                    let clause = Clause {
                        kind: ClauseKind::When,
                        body: ClauseBody::Temporal(Temporal {
                            body: cond.clone(),
                            ..leaf.clone()
                        }),
                        ..any.clone()
                    };
                    add(PartKind::Cell, cond.span, vec![clause]);
                }
            }
        }
        let scopes = (made.len()..).take(rules.len()).collect();
        made.extend(rules.iter().map(|rule| Rule {
            effect: Effect::Permit,
            clauses: Vec::new(),
            ..rule.clone()
        }));
        let policy = Arc::new(Policy::new(&made, service));
        Coverage {
            monitor: Monitor::new(Arc::clone(&policy), Config::default()),
            policy,
            parts,
            scopes,
        }
    }

    /// A new history begins.
    pub fn begin(&mut self) {
        self.monitor = Monitor::new(Arc::clone(&self.policy), Config::default());
    }

    pub fn step(&mut self, event: &Event) {
        let Ok(Some(decision)) = self.monitor.step(event) else {
            return;
        };
        let held = |number: usize| decision.rules.binary_search(&number).is_ok();
        for (number, part) in self.parts.iter_mut().enumerate() {
            let concerned = self.scopes.get(part.rule).is_some_and(|scope| held(*scope));
            let broken = decision
                .errors
                .iter()
                .any(|error| error.rule == Some(number));
            if concerned && !broken {
                if held(number) {
                    part.held += 1;
                } else {
                    part.failed += 1;
                }
            }
        }
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

/// The conditions of a guard that all must hold.
fn conjuncts(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::And(parts) => parts.iter().collect(),
        _ => vec![expr],
    }
}

/// The operators of a leaf whose truth can be asked by itself, but for the leaf as a whole.
fn operators<'c>(cond: &'c Cond, whole: bool, found: &mut Vec<&'c Cond>) {
    let mut add = || {
        if !whole && free(cond).is_empty() {
            found.push(cond);
        }
    };
    match &cond.kind {
        CondKind::And(parts) => parts.iter().for_each(|part| operators(part, false, found)),
        // What it denies is judged with it.
        CondKind::Not(body) => operators(body, whole, found),
        CondKind::Exists { body, .. } => operators(body, false, found),
        CondKind::Formerly { body, .. } | CondKind::Previous { body, .. } => {
            add();
            operators(body, false, found);
        }
        CondKind::Since { left, right, .. } => {
            add();
            operators(left, false, found);
            operators(right, false, found);
        }
        CondKind::Compare { .. } => add(),
        CondKind::Tp(_)
        | CondKind::Match(_)
        | CondKind::Call(_)
        | CondKind::Param { .. }
        | CondKind::Error => {}
    }
}
