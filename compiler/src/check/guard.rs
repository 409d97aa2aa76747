//! Cedar's strict typing of the conditions outside temporal blocks.
//!
//! The conditions are typed once for every kind of request the scope admits: a principal type, an
//! action, a resource type. A type says which Booleans are constant, so that a part no request of that
//! kind reaches is not held to be wrong: `context.input has path && …` may be followed by what only some
//! of the actions have.
//!
//! Reading an optional attribute or a tag needs a capability, which `has` and `hasTag` give to what is
//! evaluated after them has held.

mod attributes;
mod call;
mod operators;
mod ty;

pub use operators::literal_of;

pub(crate) use call::is_method;

use super::Report;
use super::problem::Problem;
use super::scope::{Scope, check_entity, check_entity_type};
use crate::providers::{Providers, chain};
use crate::schema::{ActionDecl, ActionSchema, RecordType, Service};
use dogwood_grammar::Span;
use dogwood_grammar::ast::{ClauseBody, ClauseKind, Expr, ExprKind, Rule, Var};
use smol_str::SmolStr;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use ty::Ty;

pub fn check(rule: &Rule, service: &Service, scope: &Scope, report: &mut Report) {
    let schema = &service.actions;
    for clause in &rule.clauses {
        if let ClauseBody::Expr(expr) = &clause.body {
            names(expr, schema, report);
        }
    }
    let before = report.len();
    let mut guard = Guard {
        schema,
        providers: &service.providers,
        report,
        several: scope.targets.len() > 1,
        verdicts: BTreeMap::new(),
    };
    let mut ever = false;
    let mut barriers: BTreeSet<usize> = BTreeSet::new();
    for target in &scope.targets {
        for principal in &target.principals {
            for resource in &target.resources {
                let request = Request {
                    principal,
                    action: target.action,
                    resource,
                    context: &target.applies.context,
                };
                match guard.rule(rule, &request) {
                    Some(clause) => {
                        barriers.insert(clause);
                    }
                    None => ever = true,
                }
            }
        }
    }
    guard.never_true();
    if !ever && !scope.targets.is_empty() && report.len() == before {
        let clause = barriers.first().and_then(|at| rule.clauses.get(*at));
        let span = clause.map_or(rule.effect_span, |clause| clause.span);
        report.add(span, Problem::NeverApplies);
    }
}

/// What is named must be declared, even where no request gets to it.
fn names(expr: &Expr, schema: &ActionSchema, report: &mut Report) {
    match &expr.kind {
        ExprKind::Entity(entity) => {
            check_entity(schema, entity, report);
        }
        ExprKind::Is { ty, .. } => {
            check_entity_type(schema, ty, report);
        }
        _ => {}
    }
    expr.kind.each_part(&mut |part| names(part, schema, report));
}

/// One kind of request.
#[derive(Clone, Copy)]
struct Request<'s> {
    principal: &'s SmolStr,
    action: &'s ActionDecl,
    resource: &'s SmolStr,
    context: &'s RecordType,
}

/// What has been tested so far: `has` and `hasTag`, as text.
type Capabilities = BTreeSet<SmolStr>;

/// A test that some kind of request may pass, or that none can.
struct Verdict {
    possible: bool,
    problem: Problem,
}

struct Guard<'a, 's> {
    schema: &'s ActionSchema,
    providers: &'s Providers,
    report: &'a mut Report,
    /// The rule is about several actions, so a message names the one it is about.
    several: bool,
    verdicts: BTreeMap<Span, Verdict>,
}

/// Where an expression is typed.
#[derive(Clone, Copy)]
struct Place<'p, 's> {
    request: &'p Request<'s>,
    /// The enclosing condition, in front of which a further test can be put.
    condition: Span,
}

impl<'p, 's> Place<'p, 's> {
    /// Inside this part, in front of which a test can be put if it is a condition by its shape.
    fn within(self, part: &Expr) -> Place<'p, 's> {
        let is_condition = matches!(
            part.kind,
            ExprKind::And(_)
                | ExprKind::Or(_)
                | ExprKind::Not(_)
                | ExprKind::Compare { .. }
                | ExprKind::In { .. }
                | ExprKind::Like { .. }
        );
        let condition = if is_condition {
            part.span
        } else {
            self.condition
        };
        Place { condition, ..self }
    }
}

type Typed<'s> = (Ty<'s>, Capabilities);

impl<'s> Guard<'_, 's> {
    /// Types the clauses in order. The clause that no such request passes, if there is one.
    fn rule(&mut self, rule: &Rule, request: &Request<'s>) -> Option<usize> {
        let mut caps = Capabilities::new();
        for (at, clause) in rule.clauses.iter().enumerate() {
            let ClauseBody::Expr(expr) = &clause.body else {
                continue;
            };
            let place = Place {
                request,
                condition: expr.span,
            };
            let (ty, gained) = self.condition(expr, &caps, place);
            let barrier = clause.kind == ClauseKind::Unless;
            if ty == Ty::Bool(Some(barrier)) {
                return Some(at);
            }
            if clause.kind == ClauseKind::When {
                caps.extend(gained);
            }
        }
        None
    }

    /// Remembers that a test was reached, and whether it can hold for this kind of request.
    fn tested(&mut self, span: Span, possible: bool, problem: impl FnOnce() -> Problem) {
        match self.verdicts.get_mut(&span) {
            Some(verdict) => verdict.possible |= possible,
            None => {
                self.verdicts.insert(
                    span,
                    Verdict {
                        possible,
                        problem: problem(),
                    },
                );
            }
        }
    }

    /// Warns of every test that no admitted request can pass.
    fn never_true(&mut self) {
        for (span, verdict) in std::mem::take(&mut self.verdicts) {
            if !verdict.possible {
                self.report.add(span, verdict.problem);
            }
        }
    }

    fn about(&self, place: Place<'_, 's>) -> Option<SmolStr> {
        self.several.then(|| place.request.action.uid.id.clone())
    }

    /// Types something that must be a Bool.
    fn condition(&mut self, expr: &Expr, caps: &Capabilities, place: Place<'_, 's>) -> Typed<'s> {
        let (ty, gained) = self.expr(expr, caps, place);
        match ty {
            Ty::Bool(_) => (ty, gained),
            Ty::Unknown => (Ty::Bool(None), gained),
            other => {
                self.expected("a Bool", &other, expr.span);
                (Ty::Bool(None), gained)
            }
        }
    }

    fn expected(&mut self, wanted: &'static str, found: &Ty<'s>, span: Span) {
        let found = found.name();
        self.report.add(span, Problem::Expected { wanted, found });
    }

    fn expr(&mut self, expr: &Expr, caps: &Capabilities, place: Place<'_, 's>) -> Typed<'s> {
        let none = Capabilities::new;
        if let Some(call) = chain(expr) {
            // What is wrong with the call itself has been said.
            let ty = call.output(self.providers).map_or(Ty::Unknown, Ty::of);
            return (ty, none());
        }
        match &expr.kind {
            ExprKind::Bool(value) => (Ty::Bool(Some(*value)), none()),
            ExprKind::Long(_) => (Ty::Long, none()),
            ExprKind::Str(_) => (Ty::Str, none()),
            ExprKind::Var(var) => (self.var(*var, place), none()),
            ExprKind::Entity(entity) => {
                let sound = check_entity(self.schema, entity, self.report);
                (
                    if sound {
                        Ty::Entity(entity.ty.text())
                    } else {
                        Ty::Unknown
                    },
                    none(),
                )
            }
            ExprKind::Slot(slot) => {
                self.report.add(
                    slot.span,
                    Problem::Template {
                        name: slot.text.clone(),
                    },
                );
                (Ty::Unknown, none())
            }
            ExprKind::Temporal(_) => (Ty::Bool(None), none()),
            ExprKind::Error => (Ty::Unknown, none()),
            ExprKind::And(parts) => self.and(parts, caps, place),
            ExprKind::Or(parts) => self.or(parts, caps, place),
            ExprKind::Not(inner) => {
                let (ty, _) = self.condition(inner, caps, place);
                (ty.negated(), none())
            }
            ExprKind::If { test, yes, no } => self.choice(test, yes, no, caps, place),
            ExprKind::Has { target, path } => self.has(target, path, caps, place),
            ExprKind::Attr { target, attr } => (self.attr(target, attr, caps, place), none()),
            ExprKind::Is { target, ty, within } => {
                self.is(expr.span, target, ty, within.as_deref(), caps, place)
            }
            ExprKind::In { left, right } => {
                (self.member(expr.span, left, right, caps, place), none())
            }
            ExprKind::Compare { op, left, right } => (
                self.compare(expr.span, *op, left, right, caps, place),
                none(),
            ),
            ExprKind::Like { target, .. } => {
                self.want_string(target, caps, place);
                (Ty::Bool(None), none())
            }
            ExprKind::Set(items) => (self.set(expr.span, items, caps, place), none()),
            ExprKind::Record(fields) => (self.record(fields, caps, place), none()),
            ExprKind::Sum { first, rest } => {
                self.want_long(first, caps, place);
                rest.iter()
                    .for_each(|(_, item)| self.want_long(item, caps, place));
                (Ty::Long, none())
            }
            ExprKind::Product(items) => {
                items
                    .iter()
                    .for_each(|item| self.want_long(item, caps, place));
                (Ty::Long, none())
            }
            ExprKind::Neg(inner) => {
                self.want_long(inner, caps, place);
                (Ty::Long, none())
            }
            ExprKind::Method { target, name, args } => {
                self.method(expr.span, target, name, args, caps, place)
            }
            ExprKind::Call { name, args } => (self.call(name, args, caps, place), none()),
        }
    }

    fn var(&self, var: Var, place: Place<'_, 's>) -> Ty<'s> {
        match var {
            Var::Principal => Ty::Entity(place.request.principal.clone()),
            Var::Resource => Ty::Entity(place.request.resource.clone()),
            Var::Action => Ty::Entity(place.request.action.uid.ty.clone()),
            Var::Context => Ty::Record(Cow::Borrowed(place.request.context)),
        }
    }
}

// ------------------------------------------------------------------------------------ connectives

impl<'s> Guard<'_, 's> {
    fn and(&mut self, parts: &[Expr], caps: &Capabilities, place: Place<'_, 's>) -> Typed<'s> {
        let mut known = caps.clone();
        let mut gained = Capabilities::new();
        let mut constant = true;
        for part in parts {
            let (ty, more) = self.condition(
                part,
                &known,
                Place {
                    condition: part.span,
                    ..place
                },
            );
            match ty {
                Ty::Bool(Some(false)) => return (Ty::Bool(Some(false)), Capabilities::new()),
                Ty::Bool(Some(true)) => {}
                _ => constant = false,
            }
            known.extend(more.iter().cloned());
            gained.extend(more);
        }
        (Ty::Bool(constant.then_some(true)), gained)
    }

    fn or(&mut self, parts: &[Expr], caps: &Capabilities, place: Place<'_, 's>) -> Typed<'s> {
        let mut shared: Option<Capabilities> = None;
        let mut constant = true;
        for part in parts {
            let (ty, more) = self.condition(
                part,
                caps,
                Place {
                    condition: part.span,
                    ..place
                },
            );
            match ty {
                Ty::Bool(Some(true)) => return (Ty::Bool(Some(true)), Capabilities::new()),
                Ty::Bool(Some(false)) => continue,
                _ => constant = false,
            }
            shared = Some(match shared {
                None => more,
                Some(shared) => shared.intersection(&more).cloned().collect(),
            });
        }
        (
            Ty::Bool(constant.then_some(false)),
            shared.unwrap_or_default(),
        )
    }

    fn choice(
        &mut self,
        test: &Expr,
        yes: &Expr,
        no: &Expr,
        caps: &Capabilities,
        place: Place<'_, 's>,
    ) -> Typed<'s> {
        let (ty, tested) = self.condition(
            test,
            caps,
            Place {
                condition: test.span,
                ..place
            },
        );
        let held: Capabilities = caps.union(&tested).cloned().collect();
        let of_yes = place.within(yes);
        let of_no = place.within(no);
        match ty {
            Ty::Bool(Some(true)) => {
                let (ty, gained) = self.expr(yes, &held, of_yes);
                (ty, gained.union(&tested).cloned().collect())
            }
            Ty::Bool(Some(false)) => self.expr(no, caps, of_no),
            _ => {
                let (left, from_yes) = self.expr(yes, &held, of_yes);
                let (right, from_no) = self.expr(no, caps, of_no);
                let from_yes: Capabilities = from_yes.union(&tested).cloned().collect();
                let gained = from_yes.intersection(&from_no).cloned().collect();
                let Some(ty) = left.join(&right) else {
                    let (left, right) = (left.name(), right.name());
                    let problem = Problem::Incompatible {
                        what: "the two branches",
                        left,
                        right,
                    };
                    self.report.add(yes.span.to(no.span), problem);
                    return (Ty::Unknown, gained);
                };
                (ty, gained)
            }
        }
    }
}
