//! Where nothing permits a request: the permit that came nearest, and the condition it failed by.

use super::cedar::context_path;
use super::claim::Group;
use super::why::{Case, NamedRule, asked_for, name_of};
use super::witness::Witness;
use super::{Speech, action_name, pattern};
use crate::check::leaves;
use crate::eval::{Asked, EvalError, Request, compile, entities::Entities, is_true};
use crate::event::RequestPart;
use crate::grammar::ast::*;
use crate::providers::Chain;
use crate::value::Value;

pub(super) fn nearest(case: &Case<'_>, found: &mut Vec<Witness>) {
    let action = action_name(&case.event.action.ty, &case.event.action.id);
    let named = name_of(case.event);
    let what = if named.contains(&format!("`{action}`")) {
        named
    } else {
        format!("`{action}` of {named}")
    };
    found.push(Witness::NoPermit { what });
    let permits = case
        .rules
        .iter()
        .enumerate()
        .filter(|(_, named)| named.rule.effect == Effect::Permit && admits(&named.rule, case));
    let failing = permits.map(|(number, named)| (number, named, Failing::of(number, named, case)));
    // Of two that fail by as much, the one of which more holds.
    let nearest = failing.min_by_key(|(_, _, failing)| {
        let holding = std::cmp::Reverse(failing.holding);
        (failing.count(), failing.guard.len(), holding)
    });
    let Some((number, named, failing)) = nearest.filter(|(_, _, failing)| failing.is_near()) else {
        return;
    };
    let speech = case.speech(&named.rule);
    if !failing.guard.is_empty() {
        found.push(failing.witness(&speech, named, case));
    }
    let reports = case.monitor.report(case.event, number);
    for (at, temporal) in leaves(&named.rule).into_iter().enumerate() {
        let report = reports.get(at);
        let Some(wanted) = asked_for(&named.rule, temporal) else {
            continue;
        };
        if report.is_some_and(|report| report.truth != wanted) {
            if failing.guard.is_empty() {
                found.push(Witness::NearestRule(named.name.clone()));
            }
            case.leaf(&speech, temporal, wanted, report, found);
        }
    }
}

/// Whether the scope names the action, or does not ask for one.
fn admits(rule: &Rule, case: &Case<'_>) -> bool {
    let action = &case.event.action;
    let is = |uid: &EntityRef| uid.id.value == action.id && uid.ty.text() == action.ty;
    match rule
        .scope
        .head(ScopeVar::Action)
        .map(|head| &head.constraint)
    {
        None | Some(Constraint::Any) => true,
        Some(Constraint::Eq(HeadRef::Entity(uid))) => is(uid),
        Some(Constraint::InAny(uids)) => uids.iter().any(is),
        Some(Constraint::In(HeadRef::Entity(group))) => {
            let declared = case.monitor.policy().service().actions.actions.get(action);
            is(group)
                || declared.is_some_and(|declared| {
                    let mut above = declared.ancestors.iter();
                    above.any(|above| group.id.value == above.id && group.ty.text() == above.ty)
                })
        }
        _ => false,
    }
}

/// The conditions of a permit that do not hold, each with whether it should.
struct Failing<'t> {
    guard: Vec<(&'t Expr, bool)>,
    /// Conditions that cannot be judged because one of `guard` does not hold.
    behind: Vec<(&'t Expr, bool)>,
    leaves: usize,
    /// Tests that hold, other than for presence.
    holding: usize,
}

impl<'t> Failing<'t> {
    fn of(number: usize, named: &'t NamedRule, case: &Case<'_>) -> Failing<'t> {
        let mut guard = Vec::new();
        for clause in &named.rule.clauses {
            if let ClauseBody::Expr(expr) = &clause.body {
                conjuncts(expr, clause.kind == ClauseKind::When, &mut guard);
            }
        }
        let judged = guard
            .into_iter()
            .filter(|(expr, _)| !matches!(expr.kind, ExprKind::Temporal(_)));
        let judged: Vec<_> = judged
            .map(|(expr, wanted)| (expr, wanted, holds(expr, case)))
            .collect();
        // After a failed presence test the tests of the field cannot be judged: that is one failure.
        let (mut guard, mut behind, mut holding) = (Vec::new(), Vec::new(), 0);
        for (expr, wanted, holds) in judged {
            match holds {
                Some(holds) if holds != wanted => guard.push((expr, wanted)),
                Some(_) => holding += usize::from(!matches!(expr.kind, ExprKind::Has { .. })),
                None => behind.push((expr, wanted)),
            }
        }
        if guard.is_empty() {
            guard.append(&mut behind);
        }
        let leaves = leaves(&named.rule);
        let reports = if leaves.is_empty() {
            Vec::new()
        } else {
            case.monitor.report(case.event, number)
        };
        let wrong = leaves.into_iter().enumerate().filter(|(at, temporal)| {
            let wanted = asked_for(&named.rule, temporal);
            reports
                .get(*at)
                .is_some_and(|report| wanted.is_some_and(|wanted| wanted != report.truth))
        });
        Failing {
            guard,
            behind,
            leaves: wrong.count(),
            holding,
        }
    }

    fn count(&self) -> usize {
        self.guard.len() + self.leaves
    }

    /// One thing is amiss, or two where more is right.
    fn is_near(&self) -> bool {
        match self.count() {
            1 => true,
            2 => self.holding >= 2,
            _ => false,
        }
    }

    fn witness(&self, speech: &Speech<'_>, named: &NamedRule, case: &Case<'_>) -> Witness {
        let said = self
            .guard
            .iter()
            .chain(&self.behind)
            .map(|(expr, wanted)| speech.expr(expr, *wanted))
            .collect();
        let here: Vec<String> = match self.guard.as_slice() {
            [(expr, _)] => reads(expr)
                .map(|path| here(&path, case))
                .into_iter()
                .collect(),
            _ => Vec::new(),
        };
        Witness::NearestPermit {
            rule: named.name.clone(),
            needs: Group::all(said).say(),
            here: here.into_iter().next(),
        }
    }
}

fn conjuncts<'t>(expr: &'t Expr, wanted: bool, found: &mut Vec<(&'t Expr, bool)>) {
    match &expr.kind {
        ExprKind::And(parts) if wanted => {
            parts.iter().for_each(|part| conjuncts(part, wanted, found))
        }
        ExprKind::Or(parts) if !wanted => {
            parts.iter().for_each(|part| conjuncts(part, wanted, found))
        }
        ExprKind::Not(inner) => conjuncts(inner, !wanted, found),
        _ => found.push((expr, wanted)),
    }
}

/// Whether a condition asks anything but the request.
struct Elsewhere(bool);

impl Asked for Elsewhere {
    fn leaf(&mut self, _: &Temporal) -> usize {
        self.0 = true;
        0
    }

    fn call(&mut self, _: &Chain<'_>) -> usize {
        self.0 = true;
        0
    }
}

/// Whether a condition that asks the request only holds for it; nothing where it cannot be judged.
fn holds(expr: &Expr, case: &Case<'_>) -> Option<bool> {
    let mut asked = Elsewhere(false);
    let guard = compile(expr, &mut asked);
    if asked.0 {
        return None;
    }
    let none = RequestPart::default();
    let part = case.event.request.as_ref().unwrap_or(&none);
    let request = Request {
        principal: part.principal.as_ref()?,
        action: &case.event.action,
        resource: part.resource.as_ref()?,
        context: &part.context,
        entities: Entities {
            given: &part.entities,
        },
        schema: &case.monitor.policy().service().actions,
        provided: &[],
    };
    let judged: Result<bool, EvalError> = is_true(&guard, &request, &mut |_| false);
    judged.ok()
}

/// The first context field a condition reads.
fn reads(expr: &Expr) -> Option<Vec<&str>> {
    if let Some(path) = context_path(expr) {
        return (!path.is_empty()).then_some(path);
    }
    match &expr.kind {
        ExprKind::Compare { left, right, .. } | ExprKind::In { left, right } => {
            reads(left).or_else(|| reads(right))
        }
        ExprKind::Like { target, .. } | ExprKind::Is { target, .. } => reads(target),
        ExprKind::And(parts) | ExprKind::Or(parts) => parts.iter().find_map(reads),
        ExprKind::Not(inner) => reads(inner),
        ExprKind::Has { target, path } => {
            let mut full = context_path(target)?;
            full.extend(path.iter().map(|attr| attr.name.as_str()));
            Some(full)
        }
        ExprKind::Method { target, args, .. } => {
            reads(target).or_else(|| args.iter().find_map(reads))
        }
        _ => None,
    }
}

/// "it is \"test\"", "it is not given".
fn here(path: &[&str], case: &Case<'_>) -> String {
    let context = case.event.request.as_ref().map(|part| &part.context);
    let value: Option<&Value> = path
        .split_first()
        .and_then(|(first, rest)| context?.get(*first)?.at(rest));
    match value {
        Some(value) => format!("it is {}", pattern::show(value)),
        None => "it is not given".to_owned(),
    }
}
