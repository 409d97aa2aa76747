//! The events that can matter to a set of rules: every action they speak of, with the values they compare with
//! and some they do not.

use crate::compile::CheckedRule;
use crate::event::{Event, RequestPart};
use crate::grammar::ast::*;
use crate::schema::{ActionDecl, EventId, RecordType, Service, Type};
use crate::suite::Plain;
use crate::value::{EntityUid, Record, Value, put};
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};

/// Events to make traces of, at time 0, and the steps of time between them.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    pub events: Vec<Template>,
    /// Seconds, 0 first.
    pub steps: Vec<i64>,
    pub agreements: Vec<Agreement>,
    /// The greatest number a count or the like is compared with, if it is one that can be reached one by one.
    pub most: usize,
}

/// A field that a rule wants to be what a field of the request is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Agreement {
    pub event: EventId,
    pub field: Vec<SmolStr>,
    /// From the context of the request.
    pub asked: Vec<SmolStr>,
}

#[derive(Clone, Debug)]
pub struct Template {
    pub event: Event,
    /// Whether a rule looks back at events of this action and kind.
    pub history: bool,
    pub decided: bool,
}

/// At most so many events of one action and kind.
const MOST_OF_A_KIND: usize = 24;
/// At most so many values of one field.
const MOST_VALUES: usize = 6;
/// A rule for every action speaks of the first few.
const MOST_ACTIONS: usize = 3;
const MOST_WINDOWS: usize = 3;
/// Longer runs of one event are not tried.
const LONGEST_RUN: usize = 1000;

type Path = Vec<SmolStr>;

/// What is said of a field.
#[derive(Clone, Debug, Default)]
struct Mention {
    values: BTreeSet<Value>,
    /// Patterns need a text that fits them.
    texts: BTreeSet<SmolStr>,
}

#[derive(Default)]
struct Mentions {
    fields: BTreeMap<EventId, BTreeMap<Path, Mention>>,
    looked_back: BTreeSet<EventId>,
    principals: BTreeSet<EntityUid>,
    resources: BTreeSet<EntityUid>,
    windows: BTreeSet<i64>,
    agreements: BTreeSet<Agreement>,
    most: usize,
    /// Of the rule being read: where each variable is matched.
    places: BTreeMap<SmolStr, Vec<(EventId, Path)>>,
}

/// The vocabulary of the rules; macros written out.
pub fn vocabulary<'r>(
    rules: impl IntoIterator<Item = &'r CheckedRule>,
    service: &Service,
) -> Vocabulary {
    let mut mentions = Mentions::default();
    for checked in rules {
        mentions.rule(checked, service);
    }
    let plain = Plain { service };
    let mut events = Vec::new();
    for (id, fields) in &mentions.fields {
        let Some(action) = service.actions.actions.get(&id.action) else {
            continue;
        };
        let decided = service.events.decision_kinds.contains(&id.kind);
        let history = mentions.looked_back.contains(id);
        for record in variants(action, fields, &plain) {
            for (principal, resource) in mentions.parties(action, &plain) {
                let maker = Maker {
                    service,
                    action,
                    kind: &id.kind,
                };
                events.push(Template {
                    event: maker.event(record.clone(), principal, resource, decided),
                    history,
                    decided,
                });
            }
        }
    }
    let mut steps = vec![0];
    for window in mentions.windows.iter().take(MOST_WINDOWS) {
        steps.extend([*window, window.saturating_add(1)]);
    }
    steps.sort_unstable();
    steps.dedup();
    Vocabulary {
        events,
        steps,
        agreements: mentions.agreements.into_iter().collect(),
        most: mentions.most,
    }
}

impl Mentions {
    fn rule(&mut self, checked: &CheckedRule, service: &Service) {
        let scope = &checked.rule.scope;
        for (var, found) in [
            (ScopeVar::Principal, &mut self.principals),
            (ScopeVar::Resource, &mut self.resources),
        ] {
            if let Some(Constraint::Eq(HeadRef::Entity(entity))) =
                scope.head(var).map(|head| &head.constraint)
            {
                found.insert(EntityUid::new(entity.ty.text(), entity.id.value.clone()));
            }
        }
        let ids: Vec<EventId> = checked
            .targets
            .iter()
            .take(MOST_ACTIONS)
            .flat_map(|action| {
                service.events.decision_kinds.iter().map(|kind| EventId {
                    action: action.clone(),
                    kind: kind.clone(),
                })
            })
            .filter(|id| service.events.events.contains_key(id))
            .collect();
        for id in &ids {
            self.fields.entry(id.clone()).or_default();
        }
        for clause in &checked.rule.clauses {
            match &clause.body {
                ClauseBody::Expr(expr) => self.expr(expr, &ids),
                ClauseBody::Temporal(temporal) => self.cond(&temporal.body, &ids),
            }
        }
        // One variable in two places: what the request has there, an earlier event should have.
        for places in std::mem::take(&mut self.places).into_values() {
            for (of_request, asked) in places.iter().filter(|(id, _)| ids.contains(id)) {
                let others = places
                    .iter()
                    .filter(|(id, field)| (id, field) != (of_request, asked));
                self.agreements
                    .extend(others.map(|(event, field)| Agreement {
                        event: event.clone(),
                        field: field.clone(),
                        asked: asked.clone(),
                    }));
                self.agreements.insert(Agreement {
                    event: of_request.clone(),
                    field: asked.clone(),
                    asked: asked.clone(),
                });
            }
        }
    }

    fn mention(&mut self, ids: &[EventId], path: &[SmolStr]) -> Vec<&mut Mention> {
        let mut found = Vec::new();
        for (id, fields) in &mut self.fields {
            if ids.contains(id) {
                found.push(fields.entry(path.to_vec()).or_default());
            }
        }
        found
    }

    fn value(&mut self, ids: &[EventId], path: &[SmolStr], value: Value) {
        for mention in self.mention(ids, path) {
            mention.values.insert(value.clone());
        }
    }

    fn expr(&mut self, expr: &Expr, ids: &[EventId]) {
        match &expr.kind {
            ExprKind::Compare { left, right, .. } => {
                for (side, other) in [(left, right), (right, left)] {
                    if let (Some(path), Some(value)) = (context_path(side), literal(other)) {
                        self.value(ids, &path, value);
                    } else {
                        self.expr(side, ids);
                    }
                }
            }
            ExprKind::Like { target, pattern } => {
                if let Some(path) = context_path(target) {
                    let fits: String = pattern
                        .parts
                        .iter()
                        .map(|part| match part {
                            PatternPart::Text(text) => text.as_str(),
                            PatternPart::Any => "a",
                        })
                        .collect();
                    for mention in self.mention(ids, &path) {
                        mention.texts.insert(SmolStr::new(&fits));
                    }
                }
            }
            ExprKind::Has { target, path } => {
                let mut whole = match context_path(target) {
                    Some(path) => path,
                    None => return,
                };
                for attr in path {
                    whole.push(attr.name.clone());
                    self.mention(ids, &whole);
                }
            }
            ExprKind::Method { target, args, .. } => {
                for (side, other) in args.iter().map(|arg| (arg, target.as_ref())) {
                    let paths = [(side, other), (other, side)];
                    for (path, values) in paths {
                        if let (Some(path), ExprKind::Set(items)) =
                            (context_path(path), &values.kind)
                        {
                            for value in items.iter().filter_map(literal) {
                                self.value(ids, &path, value);
                            }
                        }
                    }
                }
                self.expr(target, ids);
                args.iter().for_each(|arg| self.expr(arg, ids));
            }
            ExprKind::In { left, right } => {
                if let (Some(path), Some(value)) = (context_path(left), literal(right)) {
                    self.value(ids, &path, value);
                }
            }
            ExprKind::Attr { .. } => {
                if let Some(path) = context_path(expr) {
                    self.mention(ids, &path);
                }
            }
            ExprKind::Or(parts)
            | ExprKind::And(parts)
            | ExprKind::Set(parts)
            | ExprKind::Product(parts) => {
                parts.iter().for_each(|part| self.expr(part, ids));
            }
            ExprKind::If { test, yes, no } => {
                for part in [test, yes, no] {
                    self.expr(part, ids);
                }
            }
            ExprKind::Not(inner) | ExprKind::Neg(inner) => self.expr(inner, ids),
            ExprKind::Sum { first, rest } => {
                self.expr(first, ids);
                rest.iter().for_each(|(_, part)| self.expr(part, ids));
            }
            ExprKind::Record(fields) => {
                fields.iter().for_each(|field| self.expr(&field.value, ids))
            }
            ExprKind::Is { target, .. } => self.expr(target, ids),
            ExprKind::Call { args, .. } => args.iter().for_each(|arg| self.expr(arg, ids)),
            ExprKind::Temporal(temporal) => self.cond(&temporal.body, ids),
            ExprKind::Bool(_)
            | ExprKind::Long(_)
            | ExprKind::Str(_)
            | ExprKind::Var(_)
            | ExprKind::Entity(_)
            | ExprKind::Slot(_)
            | ExprKind::Error => {}
        }
    }

    fn window(&mut self, window: &Window) {
        self.windows.extend(window.seconds());
    }

    fn cond(&mut self, cond: &Cond, ids: &[EventId]) {
        match &cond.kind {
            CondKind::And(parts) => parts.iter().for_each(|part| self.cond(part, ids)),
            CondKind::Since {
                left,
                window,
                right,
            } => {
                self.window(window);
                self.cond(left, ids);
                self.cond(right, ids);
            }
            CondKind::Not(body) | CondKind::Exists { body, .. } => self.cond(body, ids),
            CondKind::Formerly { window, body } | CondKind::Previous { window, body } => {
                self.window(window);
                self.cond(body, ids);
            }
            CondKind::Compare { left, right, .. } => {
                for (side, other) in [(left, right), (right, left)] {
                    if let TermKind::Int(n) = side.kind
                        && let Ok(n) = usize::try_from(n)
                        && n <= LONGEST_RUN
                    {
                        self.most = self.most.max(n);
                    }
                    if let (TermKind::Context(words), Some(value)) =
                        (&side.kind, term_literal(other))
                    {
                        let path: Path = words.iter().map(|word| word.text.clone()).collect();
                        self.value(ids, &path, value);
                    }
                    self.term(side, ids);
                }
            }
            CondKind::Match(matcher) => {
                let id = EventId {
                    action: EntityUid::new(
                        matcher.event.ty.text(),
                        matcher.event.action.value.clone(),
                    ),
                    kind: matcher.event.kind.text.clone(),
                };
                self.looked_back.insert(id.clone());
                self.fields.entry(id.clone()).or_default();
                for field in matcher.groups.iter().flatten() {
                    let path: Path = field.path.iter().map(|word| word.text.clone()).collect();
                    let own = std::slice::from_ref(&id);
                    match term_literal(&field.term) {
                        Some(value) => self.value(own, &path, value),
                        None => {
                            self.mention(own, &path);
                        }
                    }
                    // What must agree can also differ.
                    if let TermKind::Context(words) = &field.term.kind {
                        let asked: Path = words.iter().map(|word| word.text.clone()).collect();
                        self.mention(ids, &asked);
                        self.agreements.insert(Agreement {
                            event: id.clone(),
                            field: path.clone(),
                            asked,
                        });
                    }
                    if let TermKind::Var(var) = &field.term.kind {
                        let places = self.places.entry(var.name.clone()).or_default();
                        places.push((id.clone(), path));
                    }
                }
            }
            CondKind::Tp(_) | CondKind::Call(_) | CondKind::Param { .. } | CondKind::Error => {}
        }
    }

    fn term(&mut self, term: &Term, ids: &[EventId]) {
        match &term.kind {
            TermKind::Aggregate(aggregate) => self.cond(&aggregate.body, ids),
            TermKind::Sum { first, rest } => {
                self.term(first, ids);
                rest.iter().for_each(|(_, part)| self.term(part, ids));
            }
            TermKind::Product(parts) => parts.iter().for_each(|part| self.term(part, ids)),
            _ => {}
        }
    }

    /// Who asks for what, in the events of an action.
    fn parties(
        &self,
        action: &ActionDecl,
        plain: &Plain<'_>,
    ) -> Vec<(Option<EntityUid>, Option<EntityUid>)> {
        let Some(applies) = &action.applies_to else {
            return vec![(None, None)];
        };
        let all = |types: &[SmolStr], named: &BTreeSet<EntityUid>, usual: Option<EntityUid>| {
            let mut found: Vec<Option<EntityUid>> = vec![usual];
            let fits = named.iter().filter(|uid| types.contains(&uid.ty));
            found.extend(fits.map(|uid| Some(uid.clone())));
            found.dedup();
            found
        };
        let principals = all(
            &applies.principals,
            &self.principals,
            plain.principal(action),
        );
        let resources = all(&applies.resources, &self.resources, plain.resource(action));
        principals
            .iter()
            .flat_map(|principal| {
                resources
                    .iter()
                    .map(move |resource| (principal.clone(), resource.clone()))
            })
            .collect()
    }
}

/// `context.input.arg1` as words.
fn context_path(expr: &Expr) -> Option<Path> {
    match &expr.kind {
        ExprKind::Var(Var::Context) => Some(Vec::new()),
        ExprKind::Attr { target, attr } => {
            let mut path = context_path(target)?;
            path.push(attr.name.clone());
            Some(path)
        }
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<Value> {
    match &expr.kind {
        ExprKind::Bool(yes) => Some(Value::Bool(*yes)),
        ExprKind::Long(n) => Some(Value::Int(*n)),
        ExprKind::Neg(inner) => match literal(inner)? {
            Value::Int(n) => Some(Value::Int(n.checked_neg()?)),
            _ => None,
        },
        ExprKind::Str(text) => Some(Value::String(text.clone())),
        ExprKind::Entity(entity) => Some(Value::Entity(EntityUid::new(
            entity.ty.text(),
            entity.id.value.clone(),
        ))),
        _ => None,
    }
}

fn term_literal(term: &Term) -> Option<Value> {
    match &term.kind {
        TermKind::Int(n) => Some(Value::Int(*n)),
        TermKind::Str(text) => Some(Value::String(text.clone())),
        TermKind::Bool(yes) => Some(Value::Bool(*yes)),
        TermKind::Decimal(text) => Some(Value::Decimal(text.value.clone())),
        TermKind::Entity(entity) => Some(Value::Entity(EntityUid::new(
            entity.ty.text(),
            entity.id.value.clone(),
        ))),
        _ => None,
    }
}

/// The records (`input`, `output` and what else the context has) an event can carry.
fn variants(
    action: &ActionDecl,
    fields: &BTreeMap<Path, Mention>,
    plain: &Plain<'_>,
) -> Vec<Record> {
    let Some(applies) = &action.applies_to else {
        return vec![Record::new()];
    };
    let mut whole = applies.context.clone();
    for (name, attr) in &mut whole.attrs {
        // An output is there once the action has ended.
        attr.required |= name == "output";
    }
    let base = plain.record(&whole);
    let mut choices: Vec<(Path, Vec<Option<Value>>)> = Vec::new();
    for (path, mention) in fields {
        let Some((ty, required)) = typed(&whole, path) else {
            continue;
        };
        // A record that may be absent is left out, not half filled.
        let within = path
            .split_last()
            .and_then(|(_, within)| within.split_first());
        if within
            .is_some_and(|(first, rest)| base.get(first).and_then(|value| value.at(rest)).is_none())
        {
            continue;
        }
        let mut values = candidates(&ty, mention, plain);
        values.truncate(MOST_VALUES);
        let mut values: Vec<Option<Value>> = values.into_iter().map(Some).collect();
        if !required {
            values.push(None);
        }
        choices.push((path.clone(), values));
    }
    let all: usize = choices
        .iter()
        .map(|(_, values)| values.len())
        .try_fold(1_usize, usize::checked_mul)
        .unwrap_or(usize::MAX);
    let mut records = Vec::new();
    if all <= MOST_OF_A_KIND {
        for number in 0..all {
            let mut left = number;
            let mut record = base.clone();
            for (path, values) in &choices {
                let value = values.get(left % values.len().max(1)).cloned().flatten();
                left /= values.len().max(1);
                put(&mut record, path, value);
            }
            records.push(record);
        }
    } else {
        // Too many to combine: all fields as a rule wants them first, and then one field at a time.
        let mut wanted = base.clone();
        for (path, values) in &choices {
            put(&mut wanted, path, values.first().cloned().flatten());
        }
        records.push(wanted.clone());
        for (path, values) in &choices {
            for value in values.iter().skip(1) {
                let mut record = wanted.clone();
                put(&mut record, path, value.clone());
                records.push(record);
            }
        }
        records.push(base);
        records.truncate(MOST_OF_A_KIND);
    }
    let mut seen = BTreeSet::new();
    records.retain(|record| seen.insert(record.clone()));
    records
}

/// The type of the field at a path, and whether it is always there.
fn typed(record: &RecordType, path: &[SmolStr]) -> Option<(Type, bool)> {
    let (first, rest) = path.split_first()?;
    let attr = record.attrs.get(first)?;
    match (&attr.ty, rest) {
        (Type::Record(_), []) => None,
        (ty, []) => Some((ty.clone(), attr.required)),
        (Type::Record(inner), rest) => {
            typed(inner, rest).map(|(ty, required)| (ty, required && attr.required))
        }
        _ => None,
    }
}

fn candidates(ty: &Type, mention: &Mention, plain: &Plain<'_>) -> Vec<Value> {
    let mut values: Vec<Value> = mention.values.iter().cloned().collect();
    match ty {
        Type::String => {
            values.extend(mention.texts.iter().map(|text| Value::String(text.clone())));
            values.push(plain.value(ty));
            if mention.values.is_empty() {
                values.push(Value::str("other"));
            }
        }
        Type::Long => {
            let around: Vec<i64> = values
                .iter()
                .filter_map(|value| match value {
                    Value::Int(n) => Some([n.saturating_add(1), n.saturating_sub(1)]),
                    _ => None,
                })
                .flatten()
                .collect();
            values.extend(around.into_iter().map(Value::Int));
            values.push(Value::Int(0));
            values.push(Value::Int(1));
        }
        Type::Bool => values = vec![Value::Bool(true), Value::Bool(false)],
        Type::Entity(name) => {
            let choices = plain
                .service
                .actions
                .entity_types
                .get(name)
                .and_then(|ty| ty.choices.clone());
            values.extend(
                choices
                    .into_iter()
                    .flatten()
                    .map(|id| Value::Entity(EntityUid::new(name.clone(), id))),
            );
            values.push(plain.value(ty));
        }
        _ => values.push(plain.value(ty)),
    }
    let mut seen = BTreeSet::new();
    values.retain(|value| seen.insert(value.clone()));
    values
}

/// Makes events of one action and kind.
struct Maker<'a> {
    service: &'a Service,
    action: &'a ActionDecl,
    kind: &'a SmolStr,
}

impl Maker<'_> {
    fn event(
        &self,
        mut record: Record,
        principal: Option<EntityUid>,
        resource: Option<EntityUid>,
        decided: bool,
    ) -> Event {
        let id = EventId {
            action: self.action.uid.clone(),
            kind: self.kind.clone(),
        };
        let logged = Plain {
            service: self.service,
        }
        .logged(&id, &record, principal.as_ref(), resource.as_ref(), "r");
        record.remove("output");
        Event {
            time: 0,
            action: self.action.uid.clone(),
            kind: self.kind.clone(),
            logged,
            request: decided.then(|| RequestPart {
                principal,
                resource,
                context: record,
                ..RequestPart::default()
            }),
        }
    }
}
