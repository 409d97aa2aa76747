//! Cedar's strict typing of the conditions outside temporal blocks.
//!
//! The conditions are typed once for every kind of request the scope admits: a principal type, an
//! action, a resource type. A type says which Booleans are constant, so that a part no request of that
//! kind reaches is not held to be wrong: `context.input has path && …` may be followed by what only some
//! of the actions have.
//!
//! Reading an optional attribute or a tag needs a capability, which `has` and `hasTag` give to what is
//! evaluated after them has held.

mod call;
pub mod literal;
mod operators;
mod ty;

pub use operators::literal_of;

use super::Report;
use super::problem::Problem;
use super::scope::{Scope, check_entity, check_entity_type};
use crate::nearest::nearest;
use crate::schema::{ActionDecl, ActionSchema, RecordType};
use dogwood_grammar::Span;
use dogwood_grammar::ast::{Attr, ClauseBody, ClauseKind, Expr, ExprKind, Rule, Var};
use smol_str::{SmolStr, format_smolstr};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use ty::Ty;

pub fn check(rule: &Rule, schema: &ActionSchema, scope: &Scope, report: &mut Report) {
    let before = report.len();
    let mut guard = Guard {
        schema,
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

// ------------------------------------------------------------------------- attributes and tests

/// An attribute as found on a type.
enum Found<'s> {
    Attr {
        ty: Ty<'s>,
        required: bool,
    },
    Missing,
    /// Not something that has attributes.
    NotRecord,
    Unknown,
}

impl<'s> Guard<'_, 's> {
    fn lookup(&self, of: &Ty<'s>, name: &str) -> Found<'s> {
        let found = match of {
            Ty::Unknown => return Found::Unknown,
            Ty::Record(record) => match record {
                Cow::Borrowed(record) => record
                    .attrs
                    .get(name)
                    .map(|attr| (Ty::of(&attr.ty), attr.required)),
                Cow::Owned(record) => record
                    .attrs
                    .get(name)
                    .map(|attr| (Ty::owned(attr.ty.clone()), attr.required)),
            },
            Ty::Entity(ty) => {
                let entity = self.schema.entity_types.get(ty);
                let attr = entity.and_then(|entity| entity.attrs.attrs.get(name));
                attr.map(|attr| (Ty::of(&attr.ty), attr.required))
            }
            _ => return Found::NotRecord,
        };
        found.map_or(Found::Missing, |(ty, required)| Found::Attr {
            ty,
            required,
        })
    }

    fn attr_names(&self, of: &Ty<'s>) -> Vec<SmolStr> {
        match of {
            Ty::Record(record) => record.attrs.keys().cloned().collect(),
            Ty::Entity(ty) => {
                let entity = self.schema.entity_types.get(ty);
                entity
                    .map(|entity| entity.attrs.attrs.keys().cloned().collect())
                    .unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    fn attr(
        &mut self,
        target: &Expr,
        attr: &Attr,
        caps: &Capabilities,
        place: Place<'_, 's>,
    ) -> Ty<'s> {
        let (of, _) = self.expr(target, caps, place);
        match self.lookup(&of, &attr.name) {
            Found::Attr { ty, required } => {
                let held = required
                    || key(target).is_some_and(|key| caps.contains(&has_key(&key, &attr.name)));
                if !held {
                    let test = |key: SmolStr| {
                        if is_word(&attr.name) {
                            format!("{key} has {}", attr.name)
                        } else {
                            format!("{key} has {:?}", attr.name)
                        }
                    };
                    let problem = Problem::OptionalAttr {
                        name: attr.name.clone(),
                        guard: key(target).map(test),
                        condition: place.condition,
                    };
                    self.report.add(attr.span, problem);
                }
                ty
            }
            Found::Missing => {
                let known = self.attr_names(&of);
                let problem = Problem::UnknownAttr {
                    of: described(target, &of),
                    name: attr.name.clone(),
                    nearest: nearest(&attr.name, &known),
                    known,
                    action: self.about(place),
                };
                self.report.add(attr.span, problem);
                Ty::Unknown
            }
            Found::NotRecord => {
                let found = of.name();
                let of = described(target, &of);
                self.report.add(attr.span, Problem::NotRecord { of, found });
                Ty::Unknown
            }
            Found::Unknown => Ty::Unknown,
        }
    }

    /// `target has a.b.c`: each step is tested with those before it known to hold.
    fn has(
        &mut self,
        target: &Expr,
        path: &[Attr],
        caps: &Capabilities,
        place: Place<'_, 's>,
    ) -> Typed<'s> {
        let (mut of, _) = self.expr(target, caps, place);
        let mut here = key(target);
        let mut gained = Capabilities::new();
        let mut constant = true;
        for attr in path {
            let cap = here.as_ref().map(|key| has_key(key, &attr.name));
            match self.lookup(&of, &attr.name) {
                Found::Unknown => return (Ty::Bool(None), gained),
                Found::NotRecord => {
                    self.expected("a record or an entity", &of, target.span);
                    return (Ty::Bool(None), Capabilities::new());
                }
                Found::Missing => {
                    let known = self.attr_names(&of);
                    let described = described(target, &of);
                    self.tested(attr.span, false, || Problem::HasNever {
                        of: described,
                        name: attr.name.clone(),
                        nearest: nearest(&attr.name, &known),
                    });
                    return (Ty::Bool(Some(false)), Capabilities::new());
                }
                Found::Attr { ty, required } => {
                    self.tested(attr.span, true, || Problem::NeverApplies);
                    // An entity may be missing from the store, and then has nothing.
                    let certain = required && matches!(of, Ty::Record(_));
                    let known = cap.as_ref().is_some_and(|cap| caps.contains(cap));
                    constant &= certain || known;
                    if !certain && let Some(cap) = cap {
                        gained.insert(cap);
                    }
                    here = here.map(|key| attr_key(&key, &attr.name));
                    of = ty;
                }
            }
        }
        (Ty::Bool(constant.then_some(true)), gained)
    }

    fn is(
        &mut self,
        span: Span,
        target: &Expr,
        ty: &dogwood_grammar::ast::Name,
        within: Option<&Expr>,
        caps: &Capabilities,
        place: Place<'_, 's>,
    ) -> Typed<'s> {
        let (of, _) = self.expr(target, caps, place);
        let known = check_entity_type(self.schema, ty, self.report);
        let wanted = ty.text();
        let result = match &of {
            Ty::Entity(found) if known => {
                let same = *found == wanted;
                self.tested(ty.span, same, || Problem::NeverIs { wanted });
                Ty::Bool(Some(same))
            }
            Ty::Entity(_) | Ty::Unknown => Ty::Bool(None),
            other => {
                self.expected("an entity", other, target.span);
                Ty::Bool(None)
            }
        };
        let result = match within {
            Some(within) if result != Ty::Bool(Some(false)) => {
                match self.member(span, target, within, caps, place) {
                    Ty::Bool(Some(true)) => result,
                    other => other,
                }
            }
            _ => result,
        };
        (result, Capabilities::new())
    }
}

/// `context.input`, as the author wrote it, or what kind of thing it is.
fn described(expr: &Expr, ty: &Ty) -> SmolStr {
    match (key(expr), ty) {
        (Some(key), Ty::Entity(name)) => format_smolstr!("`{key}` of type {name}"),
        (Some(key), _) => format_smolstr!("`{key}`"),
        (None, Ty::Entity(name)) => format_smolstr!("an entity of type {name}"),
        (None, _) => SmolStr::new("this record"),
    }
}

fn has_key(target: &str, attr: &str) -> SmolStr {
    format_smolstr!("{target} has {attr:?}")
}

fn attr_key(target: &str, attr: &str) -> SmolStr {
    if is_word(attr) {
        format_smolstr!("{target}.{attr}")
    } else {
        format_smolstr!("{target}[{attr:?}]")
    }
}

fn is_word(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A text that two expressions share only if they are the same; nothing for those that capabilities
/// are not kept about.
fn key(expr: &Expr) -> Option<SmolStr> {
    Some(match &expr.kind {
        ExprKind::Var(Var::Principal) => SmolStr::new("principal"),
        ExprKind::Var(Var::Action) => SmolStr::new("action"),
        ExprKind::Var(Var::Resource) => SmolStr::new("resource"),
        ExprKind::Var(Var::Context) => SmolStr::new("context"),
        ExprKind::Str(text) => format_smolstr!("{text:?}"),
        ExprKind::Long(number) => format_smolstr!("{number}"),
        ExprKind::Bool(value) => format_smolstr!("{value}"),
        ExprKind::Entity(entity) => {
            format_smolstr!("{}::{:?}", entity.ty.text(), entity.id.value)
        }
        ExprKind::Attr { target, attr } => attr_key(&key(target)?, &attr.name),
        ExprKind::Method { target, name, args } => {
            let args: Option<Vec<SmolStr>> = args.iter().map(key).collect();
            format_smolstr!("{}.{}({})", key(target)?, name.text, args?.join(", "))
        }
        _ => return None,
    })
}
