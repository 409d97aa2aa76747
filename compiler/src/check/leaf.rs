//! A temporal block against the schemas (language reference, 3.10): the events and fields it names, its
//! windows, its entities, the paths it reads, and whether each part looks at the trace at all.

mod types;

use super::Report;
use super::legality::each_cond;
use super::problem::Problem;
use super::scope::{Scope, check_entity, unknown_action};
use crate::nearest::{last_segment, nearest};
use crate::schema::{DerivedEvent, EventId, FieldType, Service, Type};
use crate::value::EntityUid;
use dogwood_grammar::Span;
use dogwood_grammar::ast::{
    Cond, CondKind, FieldPattern, Ident, Matcher, Temporal, Term, TermKind, Window, WindowKind,
};
use smol_str::SmolStr;
use std::collections::BTreeSet;

pub fn check(leaf: &Temporal, service: &Service, scope: &Scope, report: &mut Report) {
    let mut walk = Leaf { service, report };
    each_cond(&leaf.body, &mut |cond| walk.cond(cond));
    dependence(leaf, report);
    types::check(leaf, service, scope, report);
}

/// The event a predicate names.
pub(super) fn event<'s>(service: &'s Service, matcher: &Matcher) -> Option<&'s DerivedEvent> {
    service.events.events.get(&event_id(matcher))
}

fn event_id(matcher: &Matcher) -> EventId {
    let action = EntityUid::new(matcher.event.ty.text(), matcher.event.action.value.clone());
    EventId {
        action,
        kind: matcher.event.kind.text.clone(),
    }
}

fn path_of(words: &[Ident]) -> Vec<SmolStr> {
    words.iter().map(|word| word.text.clone()).collect()
}

/// The type a variable would be declared with to hold this field.
pub fn binder_type(service: &Service, matcher: &Matcher, field: &FieldPattern) -> Option<SmolStr> {
    let event = event(service, matcher)?;
    match event.fields.get(&path_of(&field.path))? {
        FieldType::Declared {
            ty: Type::Ext(extension),
            ..
        } => match extension.name() {
            "decimal" => Some(SmolStr::new("decimal")),
            _ => Some(SmolStr::new("String")),
        },
        FieldType::Declared {
            ty: Type::Set(_) | Type::Record(_),
            ..
        } => None,
        FieldType::Declared { ty, .. } => Some(SmolStr::new(ty.to_string())),
        FieldType::Scope(types) => types.first().cloned(),
        FieldType::Injected(name) => Some(name.clone()),
    }
}

struct Leaf<'a> {
    service: &'a Service,
    report: &'a mut Report,
}

impl Leaf<'_> {
    fn cond(&mut self, cond: &Cond) {
        match &cond.kind {
            CondKind::Match(matcher) => self.matcher(matcher),
            CondKind::Formerly { window, .. }
            | CondKind::Previous { window, .. }
            | CondKind::Since { window, .. } => self.window(window),
            CondKind::Compare { left, right, .. } => {
                self.entities(left);
                self.entities(right);
            }
            CondKind::Exists { binder, .. } => self.binder_type(&binder.ty.text(), binder.ty.span),
            _ => {}
        }
    }

    fn matcher(&mut self, matcher: &Matcher) {
        for field in matcher.fields() {
            self.entities(&field.term);
        }
        let id = event_id(matcher);
        if !self.service.actions.actions.contains_key(&id.action) {
            let name = &matcher.event;
            unknown_action(
                &self.service.actions,
                &name.ty,
                &name.action.value,
                name.action.span,
                self.report,
            );
            return;
        }
        let Some(event) = self.service.events.events.get(&id) else {
            let events = self.service.events.events.keys();
            let of_action = events.filter(|known| known.action == id.action);
            let kinds: Vec<SmolStr> = of_action.map(|known| known.kind.clone()).collect();
            let problem = Problem::UnknownKind {
                name: id.kind.clone(),
                nearest: nearest(&id.kind, &kinds),
                known: kinds,
            };
            return self.report.add(matcher.event.kind.span, problem);
        };
        for field in matcher.fields() {
            self.field(event, &field.path);
        }
    }

    fn field(&mut self, event: &DerivedEvent, words: &[Ident]) {
        let path = path_of(words);
        if event.fields.contains_key(&path) {
            return;
        }
        let span = words
            .iter()
            .map(|word| word.span)
            .reduce(Span::to)
            .unwrap_or_default();
        let below = |prefix: &[SmolStr]| -> Vec<SmolStr> {
            let paths = event.fields.keys().chain(&event.groups);
            let children =
                paths.filter(|path| path.len() > prefix.len() && path.starts_with(prefix));
            let names: BTreeSet<SmolStr> = children
                .filter_map(|path| path.get(prefix.len()).cloned())
                .collect();
            names.into_iter().collect()
        };
        let label = format!("{}::{}", event.id.action.id, event.id.kind);
        if event.groups.contains(&path) {
            let name = SmolStr::new(path.join("."));
            let known = below(&path);
            return self.report.add(span, Problem::FieldGroup { name, known });
        }
        // The first word that leads nowhere is the wrong one.
        for (at, word) in words.iter().enumerate() {
            let prefix = path.get(..at).unwrap_or_default();
            let so_far = path.get(..=at).unwrap_or_default();
            let known = below(prefix);
            if event.fields.contains_key(so_far) {
                let name = SmolStr::new(so_far.join("."));
                let rest = words.get(at + 1..).unwrap_or_default();
                let span = rest
                    .iter()
                    .map(|word| word.span)
                    .reduce(Span::to)
                    .unwrap_or(span);
                return self.report.add(span, Problem::FieldHasNoParts { name });
            }
            if !known.contains(&word.text) {
                let elsewhere = event
                    .fields
                    .keys()
                    .find(|field| field.last() == path.last());
                let moved = elsewhere.filter(|_| prefix.is_empty());
                let problem = match moved {
                    Some(field) => Problem::FieldElsewhere {
                        name: SmolStr::new(path.join(".")),
                        event: label,
                        home: SmolStr::new(field.join(".")),
                    },
                    None => Problem::UnknownField {
                        name: word.text.clone(),
                        group: SmolStr::new(prefix.join(".")),
                        event: label,
                        nearest: nearest(&word.text, &known),
                        known,
                    },
                };
                let span = if moved.is_some() { span } else { word.span };
                return self.report.add(span, problem);
            }
        }
    }

    fn window(&mut self, window: &Window) {
        let max = self.service.events.max_window;
        match (&window.kind, window.seconds()) {
            (WindowKind::Amount { amount: 0, .. }, _) => {
                self.report.add(window.span, Problem::ZeroWindow);
            }
            (WindowKind::Amount { .. }, None) => {
                self.report.add(window.span, Problem::LongWindow { max });
            }
            (_, Some(seconds)) if seconds > max => {
                self.report.add(window.span, Problem::LongWindow { max });
            }
            _ => {}
        }
    }

    fn entities(&mut self, term: &Term) {
        match &term.kind {
            TermKind::Entity(entity) => {
                check_entity(&self.service.actions, entity, self.report);
            }
            TermKind::Array(items) | TermKind::Product(items) => {
                items.iter().for_each(|item| self.entities(item));
            }
            TermKind::Sum { first, rest } => {
                self.entities(first);
                rest.iter().for_each(|(_, item)| self.entities(item));
            }
            TermKind::Aggregate(aggregate) => {
                for binder in &aggregate.binders {
                    self.binder_type(&binder.ty.text(), binder.ty.span);
                }
            }
            _ => {}
        }
    }

    /// A binder's type is taken as written; one that nothing can have is at least worth a warning.
    fn binder_type(&mut self, name: &SmolStr, span: Span) {
        const KNOWN: [&str; 7] = [
            "Timepoint",
            "Long",
            "String",
            "Bool",
            "Boolean",
            "decimal",
            "Decimal",
        ];
        let types = &self.service.actions.entity_types;
        let is_entity = types
            .keys()
            .any(|ty| last_segment(ty) == last_segment(name));
        if !KNOWN.contains(&name.as_str()) && !is_entity {
            let known: Vec<SmolStr> = KNOWN
                .iter()
                .map(SmolStr::new)
                .chain(types.keys().cloned())
                .collect();
            let nearest = nearest(name, &known);
            self.report.add(
                span,
                Problem::UnknownBinderType {
                    name: name.clone(),
                    nearest,
                },
            );
        }
    }
}

// ------------------------------------------------------------------------ time-point dependence

/// Every part that is evaluated at a time point must look at the trace there.
fn dependence(leaf: &Temporal, report: &mut Report) {
    if super::vars::has_error(&leaf.body) {
        return;
    }
    let mut positive = BTreeSet::new();
    bound_by_events(&leaf.body, true, &mut positive);
    let mut check = Dependence {
        positive,
        exists: Vec::new(),
        report,
    };
    let parts: &[Cond] = match &leaf.body.kind {
        CondKind::And(parts) => parts,
        _ => std::slice::from_ref(&leaf.body),
    };
    for part in parts {
        check.required(part);
    }
}

/// The variables that predicates outside negations give a value to.
fn bound_by_events(cond: &Cond, positive: bool, found: &mut BTreeSet<SmolStr>) {
    match &cond.kind {
        CondKind::Match(matcher) if positive => {
            found.extend(
                matcher
                    .fields()
                    .filter_map(|f| super::vars::bare(&f.term))
                    .cloned(),
            );
        }
        CondKind::And(parts) => {
            parts
                .iter()
                .for_each(|part| bound_by_events(part, positive, found));
        }
        CondKind::Since { left, right, .. } => {
            bound_by_events(left, positive, found);
            bound_by_events(right, positive, found);
        }
        CondKind::Not(body) => bound_by_events(body, false, found),
        CondKind::Formerly { body, .. }
        | CondKind::Previous { body, .. }
        | CondKind::Exists { body, .. } => bound_by_events(body, positive, found),
        _ => {}
    }
}

struct Dependence<'a> {
    positive: BTreeSet<SmolStr>,
    /// Variables of the enclosing `exists`.
    exists: Vec<SmolStr>,
    report: &'a mut Report,
}

impl Dependence<'_> {
    fn required(&mut self, cond: &Cond) {
        if !self.depends(cond) {
            self.report.add(cond.span, Problem::NotTemporal);
        }
        self.inner(cond);
    }

    fn depends(&self, cond: &Cond) -> bool {
        match &cond.kind {
            CondKind::Compare { left, right, .. } => self.term(left) || self.term(right),
            CondKind::Not(body) => self.depends(body),
            CondKind::And(parts) => parts.iter().any(|part| self.depends(part)),
            _ => true,
        }
    }

    fn term(&self, term: &Term) -> bool {
        match &term.kind {
            TermKind::Aggregate(_) | TermKind::Error => true,
            TermKind::Var(var) => {
                self.positive.contains(&var.name) || self.exists.contains(&var.name)
            }
            TermKind::Product(items) => items.iter().any(|item| self.term(item)),
            TermKind::Sum { first, rest } => {
                self.term(first) || rest.iter().any(|(_, item)| self.term(item))
            }
            _ => false,
        }
    }

    /// The bodies inside a condition.
    fn inner(&mut self, cond: &Cond) {
        match &cond.kind {
            CondKind::And(parts) => parts.iter().for_each(|part| self.inner(part)),
            CondKind::Not(body) => self.inner(body),
            CondKind::Formerly { body, .. } | CondKind::Previous { body, .. } => {
                self.required(body);
            }
            CondKind::Since { left, right, .. } => {
                self.required(left);
                self.required(right);
            }
            CondKind::Exists { binder, body } => {
                self.exists.push(binder.var.name.clone());
                self.required(body);
                self.exists.pop();
            }
            CondKind::Compare { left, right, .. } => {
                self.bodies(left);
                self.bodies(right);
            }
            _ => {}
        }
    }

    fn bodies(&mut self, term: &Term) {
        match &term.kind {
            TermKind::Aggregate(aggregate) => self.required(&aggregate.body),
            TermKind::Product(items) => items.iter().for_each(|item| self.bodies(item)),
            TermKind::Sum { first, rest } => {
                self.bodies(first);
                rest.iter().for_each(|(_, item)| self.bodies(item));
            }
            _ => {}
        }
    }
}
