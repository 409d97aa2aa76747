//! The temporal semantics as the language reference tells it: the table of "Formal semantics", row by row,
//! over the whole trace. Slow on purpose; what the monitor decides is held against it.

use dogwood_compiler::event::Event;
use dogwood_compiler::grammar::ast::{
    Aggregate, AggregateOp, CompareOp, Cond, CondKind, Matcher, ScopeRoot, SumOp, Term, TermKind,
    Window,
};
use dogwood_compiler::schema::{EventId, EventSchema, PinValue};
use dogwood_compiler::value::{EntityUid, Value};
use std::collections::BTreeMap;

/// A valuation of variables.
pub type Env = BTreeMap<String, Value>;

pub struct Naive<'a> {
    /// The events of the decision's partition, in arrival order; the last one is decided.
    trace: Vec<&'a Event>,
    schema: &'a EventSchema,
}

impl<'a> Naive<'a> {
    /// For the decision on the last of these events.
    pub fn new(events: &'a [Event], schema: &'a EventSchema) -> Naive<'a> {
        let mut trace: Vec<&Event> = events.iter().collect();
        if let (Some(pin), Some(last)) = (&schema.universal_pin, events.last()) {
            let key = |event: &Event| at(&Value::Object(event.logged.clone()), &pin.field);
            let wanted = key(last);
            trace.retain(|event| match (key(event), &wanted) {
                (Some(a), Some(b)) => same(&a, b),
                (None, None) => true,
                _ => false,
            });
        }
        Naive { trace, schema }
    }

    /// The truth of a leaf at the decision.
    pub fn truth(&self, leaf: &Cond) -> bool {
        match self.trace.len() {
            0 => false,
            n => self.sat(leaf, n - 1, &Env::new()),
        }
    }

    fn sat(&self, cond: &Cond, i: usize, env: &Env) -> bool {
        !self.rows(cond, i, env).is_empty()
    }

    /// The extensions of `env` that satisfy the condition at point `i`: what they bind anew.
    fn rows(&self, cond: &Cond, i: usize, env: &Env) -> Vec<Env> {
        let holds = |b: bool| if b { vec![Env::new()] } else { Vec::new() };
        let found = match &cond.kind {
            CondKind::Match(matcher) => self.matches(matcher, i, env).into_iter().collect(),
            CondKind::Tp(var) => {
                let now = Value::Int(i as i64);
                match env.get(var.name.as_str()) {
                    Some(bound) => holds(same(bound, &now)),
                    None => vec![Env::from([(var.name.to_string(), now)])],
                }
            }
            CondKind::Compare { op, left, right } => {
                let free = |term: &Term| match &term.kind {
                    TermKind::Var(var) if !env.contains_key(var.name.as_str()) => {
                        Some(var.name.to_string())
                    }
                    _ => None,
                };
                match (op, free(left), free(right)) {
                    (CompareOp::Eq, Some(var), None) => self.bound(var, right, i, env),
                    (CompareOp::Eq, None, Some(var)) => self.bound(var, left, i, env),
                    _ => {
                        let sides = (self.value(left, i, env), self.value(right, i, env));
                        holds(match sides {
                            (Some(l), Some(r)) => compare(*op, &l, &r),
                            _ => false,
                        })
                    }
                }
            }
            CondKind::And(parts) => {
                let mut rows = vec![Env::new()];
                for part in parts {
                    let mut joined = Vec::new();
                    for row in rows {
                        let known = merged(env, &row);
                        for more in self.rows(part, i, &known) {
                            joined.push(merged(&row, &more));
                        }
                    }
                    rows = joined;
                }
                rows
            }
            CondKind::Not(body) => holds(!self.sat(body, i, env)),
            CondKind::Exists { binder, body } => {
                let name = binder.var.name.as_str();
                let mut inner = env.clone();
                inner.remove(name);
                let mut rows = self.rows(body, i, &inner);
                for row in &mut rows {
                    row.remove(name);
                }
                rows
            }
            CondKind::Formerly { window, body } => {
                let points = (0..=i).filter(|j| self.within(window, i, *j));
                points.flat_map(|j| self.rows(body, j, env)).collect()
            }
            CondKind::Previous { window, body } => {
                if i > 0 && self.within(window, i, i - 1) {
                    self.rows(body, i - 1, env)
                } else {
                    Vec::new()
                }
            }
            CondKind::Since {
                left,
                window,
                right,
            } => {
                let points = (0..=i).filter(|j| self.within(window, i, *j));
                points
                    .flat_map(|j| {
                        self.rows(right, j, env)
                            .into_iter()
                            .map(move |row| (j, row))
                    })
                    .filter(|(j, row)| {
                        let known = merged(env, row);
                        (j + 1..=i).all(|k| self.sat(left, k, &known))
                    })
                    .map(|(_, row)| row)
                    .collect()
            }
            CondKind::Call(_) | CondKind::Param { .. } | CondKind::Error => Vec::new(),
        };
        let mut rows: Vec<Env> = Vec::new();
        for row in found {
            if !rows.iter().any(|other| same_row(other, &row)) {
                rows.push(row);
            }
        }
        rows
    }

    fn bound(&self, var: String, term: &Term, i: usize, env: &Env) -> Vec<Env> {
        self.value(term, i, env)
            .map(|value| Env::from([(var, value)]))
            .into_iter()
            .collect()
    }

    fn within(&self, window: &Window, i: usize, j: usize) -> bool {
        let (Some(now), Some(then), Some(w)) =
            (self.trace.get(i), self.trace.get(j), window.seconds())
        else {
            return false;
        };
        let age = now.time.saturating_sub(then.time);
        0 <= age && age <= w
    }

    fn matches(&self, matcher: &Matcher, i: usize, env: &Env) -> Option<Env> {
        let event = self.trace.get(i)?;
        let id = EventId {
            action: EntityUid::new(matcher.event.ty.text(), matcher.event.action.value.clone()),
            kind: matcher.event.kind.text.clone(),
        };
        if event.action != id.action || event.kind != id.kind {
            return None;
        }
        let logged = Value::Object(event.logged.clone());
        let mut row = Env::new();
        for field in matcher.fields() {
            let path: Vec<&str> = field.path.iter().map(|word| word.text.as_str()).collect();
            let value = at(&logged, &path)?;
            match &field.term.kind {
                TermKind::Wildcard => {}
                TermKind::Var(var) => {
                    let name = var.name.as_str();
                    match env.get(name).or_else(|| row.get(name)) {
                        Some(bound) if same(bound, &value) => {}
                        Some(_) => return None,
                        None => {
                            row.insert(name.to_string(), value);
                        }
                    }
                }
                _ => {
                    let wanted = self.value(&field.term, i, env)?;
                    if !same(&wanted, &value) {
                        return None;
                    }
                }
            }
        }
        let pins = self
            .schema
            .events
            .get(&id)
            .map(|event| event.pins.as_slice());
        for pin in pins.unwrap_or_default() {
            let value = at(&logged, &pin.field)?;
            if !same(&self.request(&pin.value)?, &value) {
                return None;
            }
        }
        Some(row)
    }

    /// What a request path means at the decision.
    fn request(&self, path: &PinValue) -> Option<Value> {
        let part = self.trace.last()?.request.as_ref()?;
        let (uid, path) = match path {
            PinValue::Context(path) => return at(&Value::Object(part.context.clone()), path),
            PinValue::Principal(path) => (part.principal.as_ref()?, path),
            PinValue::Resource(path) => (part.resource.as_ref()?, path),
        };
        let Some(first) = path.first() else {
            return Some(Value::Entity(uid.clone()));
        };
        let data = part.entities.iter().find(|entity| entity.uid == *uid);
        match data.filter(|data| data.attrs.contains_key(first)) {
            Some(data) => at(&Value::Object(data.attrs.clone()), path),
            None => match (first.as_str(), path.len()) {
                ("id", 1) => Some(Value::String(uid.id.clone())),
                ("type", 1) => Some(Value::String(uid.ty.clone())),
                _ => None,
            },
        }
    }

    fn value(&self, term: &Term, i: usize, env: &Env) -> Option<Value> {
        let words = |path: &[dogwood_compiler::grammar::ast::Ident]| {
            path.iter()
                .map(|word| word.text.clone())
                .collect::<Vec<_>>()
        };
        match &term.kind {
            TermKind::Int(n) => Some(Value::Int(*n)),
            TermKind::Str(text) => Some(Value::String(text.clone())),
            TermKind::Bool(b) => Some(Value::Bool(*b)),
            TermKind::Decimal(text) => Some(Value::Decimal(text.value.clone())),
            TermKind::Entity(entity) => Some(Value::Entity(EntityUid::new(
                entity.ty.text(),
                entity.id.value.clone(),
            ))),
            TermKind::Array(items) => items
                .iter()
                .map(|item| self.value(item, i, env))
                .collect::<Option<_>>()
                .map(Value::Array),
            TermKind::Context(path) => self.request(&PinValue::Context(words(path))),
            TermKind::Scope {
                root: ScopeRoot::Principal,
                path,
            } => self.request(&PinValue::Principal(words(path))),
            TermKind::Scope {
                root: ScopeRoot::Resource,
                path,
            } => self.request(&PinValue::Resource(words(path))),
            TermKind::Var(var) => env.get(var.name.as_str()).cloned(),
            TermKind::Aggregate(aggregate) => Some(Value::Int(self.total(aggregate, i, env))),
            TermKind::Sum { first, rest } => {
                let mut sum = self.int(first, i, env)?;
                for (op, operand) in rest {
                    let n = self.int(operand, i, env)?;
                    sum = match op {
                        SumOp::Add => sum.saturating_add(n),
                        SumOp::Sub => sum.saturating_sub(n),
                    };
                }
                Some(Value::Int(sum))
            }
            TermKind::Product(factors) => {
                let factors: Option<Vec<i64>> = factors
                    .iter()
                    .map(|factor| self.int(factor, i, env))
                    .collect();
                factors?
                    .into_iter()
                    .reduce(i64::saturating_mul)
                    .map(Value::Int)
            }
            TermKind::Wildcard | TermKind::Call(_) | TermKind::Error => None,
        }
    }

    fn int(&self, term: &Term, i: usize, env: &Env) -> Option<i64> {
        match self.value(term, i, env)? {
            Value::Int(n) => Some(n),
            _ => None,
        }
    }

    fn total(&self, aggregate: &Aggregate, i: usize, env: &Env) -> i64 {
        let names: Vec<&str> = aggregate
            .binders
            .iter()
            .map(|b| b.var.name.as_str())
            .collect();
        let mut inner = env.clone();
        for name in &names {
            inner.remove(*name);
        }
        let mut tuples: Vec<Env> = Vec::new();
        for mut row in self.rows(&aggregate.body, i, &inner) {
            row.retain(|name, _| names.contains(&name.as_str()));
            if !tuples.iter().any(|other| same_row(other, &row)) {
                tuples.push(row);
            }
        }
        let total: i128 = match &aggregate.op {
            AggregateOp::Count => tuples.len() as i128,
            AggregateOp::Sum(var) => tuples
                .iter()
                .filter_map(|tuple| match tuple.get(var.name.as_str()) {
                    Some(Value::Int(n)) => Some(i128::from(*n)),
                    _ => None,
                })
                .sum(),
        };
        total.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }
}

fn at<S: AsRef<str>>(value: &Value, path: &[S]) -> Option<Value> {
    value.at(path).cloned()
}

fn merged(a: &Env, b: &Env) -> Env {
    let mut all = a.clone();
    all.extend(b.iter().map(|(name, value)| (name.clone(), value.clone())));
    all
}

fn same_row(a: &Env, b: &Env) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|((name, value), (other, to))| name == other && same(value, to))
}

/// Domain equality.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Decimal(a), Value::Decimal(b)) => match (scaled(a), scaled(b)) {
            (Some(a), Some(b)) => a == b,
            (None, None) => a == b,
            _ => false,
        },
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((k, a), (l, b))| k == l && same(a, b))
        }
        (a, b) => a == b,
    }
}

/// A well-formed decimal in ten-thousandths.
fn scaled(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.')?;
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let plain = |s: &str| !s.is_empty() && s.chars().all(|c| c.is_ascii_digit());
    if !plain(digits) || !plain(fraction) || fraction.len() > 4 {
        return None;
    }
    format!("{whole}{fraction:0<4}").parse().ok()
}

fn compare(op: CompareOp, left: &Value, right: &Value) -> bool {
    match (op, left, right) {
        (CompareOp::Eq, ..) => same(left, right),
        (CompareOp::Ne, ..) => !same(left, right),
        (CompareOp::Lt, Value::Int(l), Value::Int(r)) => l < r,
        (CompareOp::Le, Value::Int(l), Value::Int(r)) => l <= r,
        (CompareOp::Gt, Value::Int(l), Value::Int(r)) => l > r,
        (CompareOp::Ge, Value::Int(l), Value::Int(r)) => l >= r,
        _ => false,
    }
}
