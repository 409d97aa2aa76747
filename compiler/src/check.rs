//! Checks of a rule whose macros are written out.
//!
//! ```text
//! legality   §3.8: every variable is bound before it is read        (no schema)
//! scope      what the head admits: target actions and entity types
//! leaf       §3.10: names, windows, paths, types of a temporal block
//! provider   5.5: what information providers are asked
//! guard      Cedar's strict typing of everything else
//! ```
//!
//! A check reports [`Finding`]s and goes on; `problem` turns them into text in one place.

mod guard;
mod leaf;
mod legality;
mod problem;
mod provider;
mod scope;
pub(crate) mod vars;

pub(crate) use guard::is_method;
pub(crate) use legality::each_cond;
pub use problem::{Finding, Problem};

use crate::schema::Service;
use crate::value::EntityUid;
use dogwood_grammar::Span;
use dogwood_grammar::ast::{ClauseBody, Expr, ExprKind, FieldPattern, Matcher, Rule, Temporal};
use smol_str::SmolStr;
use std::collections::{BTreeMap, HashSet};
use std::mem::Discriminant;

/// Gathers what is wrong with one rule.
#[derive(Default)]
pub(crate) struct Report {
    findings: Vec<Finding>,
    seen: HashSet<(Span, Discriminant<Problem>)>,
}

impl Report {
    /// One problem of a kind is enough for a place: a rule is looked at once for each kind of request.
    pub fn add(&mut self, span: Span, problem: Problem) {
        if self.seen.insert((span, std::mem::discriminant(&problem))) {
            self.findings.push(Finding { span, problem });
        }
    }

    pub fn len(&self) -> usize {
        self.findings.len()
    }
}

/// The checks that need no schema: legality of every temporal block.
pub fn check_without_schema(rule: &Rule, arithmetic: bool) -> Vec<Finding> {
    let mut report = Report::default();
    annotations(rule, &mut report);
    scope::templates(rule, &mut report);
    for leaf in leaves(rule) {
        legality::check(leaf, arithmetic, &|_, _| None, &mut report);
    }
    report.findings
}

/// All checks, and the concrete actions the scope stands for.
pub fn check_rule(
    rule: &Rule,
    service: &Service,
    arithmetic: bool,
) -> (Vec<Finding>, Vec<EntityUid>) {
    let mut report = Report::default();
    annotations(rule, &mut report);
    let field_type = |matcher: &Matcher, field: &FieldPattern| -> Option<SmolStr> {
        leaf::binder_type(service, matcher, field)
    };
    let scope = scope::resolve(rule, &service.actions, &mut report);
    for temporal in leaves(rule) {
        legality::check(temporal, arithmetic, &field_type, &mut report);
        leaf::check(temporal, service, &scope, &mut report);
    }
    provider::check(rule, service, &scope, &mut report);
    guard::check(rule, service, &scope, &mut report);
    (report.findings, scope.actions)
}

/// Of two annotations with one name only the last means anything.
fn annotations(rule: &Rule, report: &mut Report) {
    let mut first: BTreeMap<&SmolStr, Span> = BTreeMap::new();
    // Codes may be allowed in several annotations.
    let single = rule
        .annotations
        .iter()
        .filter(|note| note.key.text != "allow");
    for note in single {
        let key = &note.key.text;
        match first.get(key) {
            Some(first) => {
                let (name, first) = (key.clone(), *first);
                report.add(note.span, Problem::DuplicateAnnotation { name, first });
            }
            None => {
                first.insert(key, note.span);
            }
        }
    }
}

/// The temporal blocks of a rule, left to right.
pub fn leaves(rule: &Rule) -> Vec<&Temporal> {
    fn inside<'r>(expr: &'r Expr, found: &mut Vec<&'r Temporal>) {
        match &expr.kind {
            ExprKind::Temporal(leaf) => found.push(leaf),
            _ => expr.kind.each_part(&mut |part| inside(part, found)),
        }
    }
    let mut found = Vec::new();
    for clause in &rule.clauses {
        match &clause.body {
            ClauseBody::Temporal(leaf) => found.push(leaf),
            ClauseBody::Expr(expr) => inside(expr, &mut found),
        }
    }
    found
}
