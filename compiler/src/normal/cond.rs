//! Conditions of the past in normal form.

use super::order;
use crate::explain::words;
use crate::grammar::Span;
use crate::grammar::ast::*;
use smol_str::{SmolStr, format_smolstr};
use std::cmp::Ordering;

/// The condition in normal form, its variables numbered in the order in which they are met.
pub(super) fn closed(cond: &Cond) -> Cond {
    let mut cond = shape(cond, true);
    Names::default().cond(&mut cond);
    // With their new names, parts that looked alike may be told apart.
    shape(&cond, true)
}

/// A value in normal form.
pub(super) fn term(term: &Term) -> Term {
    let mut term = shape_term(term);
    Names::default().term(&mut term);
    shape_term(&term)
}

// ------------------------------------------------------------------------------- all but names

/// The condition, or its negation.
fn shape(cond: &Cond, holds: bool) -> Cond {
    let span = cond.span;
    let inner = |cond: &Cond| Box::new(shape(cond, true));
    let kind = match &cond.kind {
        CondKind::Not(body) => return shape(body, !holds),
        CondKind::And(parts) => {
            let mut flat = Vec::new();
            for part in parts.iter().map(|part| shape(part, true)) {
                match part.kind {
                    CondKind::And(inner) => flat.extend(inner),
                    _ => flat.push(part),
                }
            }
            let mut keyed: Vec<_> = flat
                .into_iter()
                .map(|part| (order::cond(&part), part))
                .collect();
            keyed.sort_by(|a, b| a.0.cmp(&b.0));
            keyed.dedup_by(|a, b| a.0 == b.0);
            let mut parts: Vec<Cond> = keyed.into_iter().map(|(_, part)| part).collect();
            match (parts.len(), parts.pop()) {
                (1, Some(only)) => return not_unless(holds, only),
                (_, last) => parts.extend(last),
            }
            CondKind::And(parts)
        }
        CondKind::Since {
            left,
            window,
            right,
        } => CondKind::Since {
            left: inner(left),
            window: seconds(window),
            right: inner(right),
        },
        CondKind::Formerly { window, body } => CondKind::Formerly {
            window: seconds(window),
            body: inner(body),
        },
        CondKind::Previous { window, body } => CondKind::Previous {
            window: seconds(window),
            body: inner(body),
        },
        CondKind::Exists { binder, body } => {
            let body = shape(body, true);
            if let Some(written_out) = written_out(&binder.var, &body) {
                return shape(&written_out, holds);
            }
            CondKind::Exists {
                binder: binder.clone(),
                body: Box::new(body),
            }
        }
        CondKind::Compare { op, left, right } => {
            let (left, right) = (shape_term(left), shape_term(right));
            let key = |side: &Term| (weight(side), order::term(side));
            let (of_left, of_right) = (key(&left), key(&right));
            let (about_left, about_right) =
                ((of_left.0, &of_left.1.0), (of_right.0, &of_right.1.0));
            // Of two that differ in their names only, the smaller on the left.
            let swaps = match about_right.cmp(&about_left) {
                Ordering::Less => true,
                Ordering::Greater => false,
                Ordering::Equal => match op {
                    CompareOp::Gt | CompareOp::Ge => true,
                    CompareOp::Lt | CompareOp::Le => false,
                    CompareOp::Eq | CompareOp::Ne => of_right < of_left,
                },
            };
            let (op, left, mut right) = if swaps {
                (words::mirrored(*op), right, left)
            } else {
                (*op, left, right)
            };
            // What is absent equals nothing and differs from nothing: only then are the two opposites.
            let opposite = !holds && !can_be_absent(&left) && !can_be_absent(&right);
            let mut op = if opposite { words::negated(op) } else { op };
            if let TermKind::Int(n) = &mut right.kind {
                (op, *n) = rounded(op, *n);
            }
            let kind = CondKind::Compare { op, left, right };
            return not_unless(holds || opposite, node(kind, span));
        }
        CondKind::Match(matcher) => CondKind::Match(Matcher {
            groups: vec![fields(matcher.fields())],
            ..matcher.clone()
        }),
        CondKind::Call(call) => CondKind::Call(shape_call(call)),
        CondKind::Param { name, injected } => CondKind::Param {
            name: name.clone(),
            injected: fields(injected.iter()),
        },
        CondKind::Tp(_) | CondKind::Error => cond.kind.clone(),
    };
    not_unless(holds, node(kind, span))
}

/// `exists n. (n == COUNT && n >= 3)` without the name: a count or a sum always has a value. Nothing where the
/// variable is another thing, or stands anywhere but in comparisons.
fn written_out(var: &VarRef, body: &Cond) -> Option<Cond> {
    let CondKind::And(parts) = &body.kind else {
        return None;
    };
    let is_var = |term: &Term| matches!(&term.kind, TermKind::Var(other) if other.name == var.name && other.sigil == var.sigil);
    let (at, value) = parts.iter().enumerate().find_map(|(at, part)| {
        let CondKind::Compare { op, left, right } = &part.kind else {
            return None;
        };
        [(left, right), (right, left)]
            .into_iter()
            .find(|(name, value)| {
                *op == CompareOp::Eq
                    && is_var(name)
                    && matches!(value.kind, TermKind::Aggregate(_))
                    && !names(value, var)
            })
            .map(|(_, value)| (at, value.clone()))
    })?;
    let mut rest = parts.clone();
    rest.remove(at);
    let mut used = false;
    for part in &mut rest {
        let compared = match &mut part.kind {
            CondKind::Not(inner) => &mut inner.kind,
            kind => kind,
        };
        if let CondKind::Compare { left, right, .. } = compared {
            for side in [left, right] {
                if is_var(side) {
                    side.clone_from(&value);
                    used = true;
                }
            }
        }
        let mut left_over = false;
        each_name(part, &mut |other| {
            left_over |= other.name == var.name && other.sigil == var.sigil;
        });
        if left_over {
            return None;
        }
    }
    // Nothing is left out, even where it says nothing.
    used.then(|| node(CondKind::And(rest), body.span))
}

fn names(term: &Term, var: &VarRef) -> bool {
    let mut found = false;
    each_name_of_term(&mut term.clone(), &mut |other| {
        found |= other.name == var.name && other.sigil == var.sigil;
    });
    found
}

fn fields<'t>(fields: impl Iterator<Item = &'t FieldPattern>) -> Vec<FieldPattern> {
    let mut fields: Vec<FieldPattern> = fields
        .map(|field| FieldPattern {
            term: shape_term(&field.term),
            ..field.clone()
        })
        .collect();
    let key = |field: &FieldPattern| {
        (
            order::field(&order::path(&field.path)),
            order::term(&field.term),
        )
    };
    fields.sort_by_cached_key(key);
    fields.dedup_by(|a, b| key(a) == key(b));
    fields
}

fn shape_call(call: &MacroCall) -> MacroCall {
    let arg = |arg: &CallArg| match arg {
        CallArg::Window(window) => CallArg::Window(seconds(window)),
        CallArg::Cond(cond) => CallArg::Cond(shape(cond, true)),
        CallArg::Term(term) => CallArg::Term(shape_term(term)),
    };
    MacroCall {
        args: call.args.iter().map(arg).collect(),
        ..call.clone()
    }
}

fn shape_term(term: &Term) -> Term {
    let all = |items: &[Term]| items.iter().map(shape_term).collect();
    let kind = match &term.kind {
        TermKind::Array(items) => TermKind::Array(all(items)),
        TermKind::Product(items) => TermKind::Product(all(items)),
        TermKind::Sum { first, rest } => TermKind::Sum {
            first: Box::new(shape_term(first)),
            rest: rest
                .iter()
                .map(|(op, part)| (*op, shape_term(part)))
                .collect(),
        },
        TermKind::Aggregate(aggregate) => TermKind::Aggregate(Box::new(Aggregate {
            body: shape(&aggregate.body, true),
            ..aggregate.as_ref().clone()
        })),
        TermKind::Call(call) => TermKind::Call(shape_call(call)),
        other => other.clone(),
    };
    Term {
        kind,
        span: term.span,
        depth: 1,
    }
}

/// A window in seconds.
fn seconds(window: &Window) -> Window {
    let mut window = window.clone();
    let all = window.seconds().and_then(|all| u64::try_from(all).ok());
    if let (WindowKind::Amount { amount, unit }, Some(all)) = (&mut window.kind, all) {
        (*amount, *unit) = (all, Unit::Second);
    }
    window
}

/// What a comparison is about stands on the left.
fn weight(term: &Term) -> u8 {
    match &term.kind {
        TermKind::Aggregate(_) => 0,
        TermKind::Sum { .. } | TermKind::Product(_) | TermKind::Call(_) => 1,
        TermKind::Var(_) => 2,
        TermKind::Context(_) | TermKind::Scope { .. } => 3,
        _ => 4,
    }
}

fn can_be_absent(term: &Term) -> bool {
    match &term.kind {
        TermKind::Int(_)
        | TermKind::Str(_)
        | TermKind::Bool(_)
        | TermKind::Decimal(_)
        | TermKind::Entity(_)
        | TermKind::Var(_)
        | TermKind::Aggregate(_) => false,
        TermKind::Scope { path, .. } => !path.is_empty(),
        _ => true,
    }
}

/// Of `> 59` and `>= 60`, the one with the rounder number; where neither is, "at least" and "at most".
pub(super) fn rounded(op: CompareOp, n: i64) -> (CompareOp, i64) {
    let (other, m) = match op {
        CompareOp::Gt => (CompareOp::Ge, n.checked_add(1)),
        CompareOp::Ge => (CompareOp::Gt, n.checked_sub(1)),
        CompareOp::Lt => (CompareOp::Le, n.checked_sub(1)),
        CompareOp::Le => (CompareOp::Lt, n.checked_add(1)),
        CompareOp::Eq | CompareOp::Ne => return (op, n),
    };
    let Some(m) = m else { return (op, n) };
    let roundness = |op: CompareOp, n: i64| {
        let zeros = if n == 0 {
            20
        } else {
            n.to_string()
                .bytes()
                .rev()
                .take_while(|b| *b == b'0')
                .count()
        };
        (zeros, matches!(op, CompareOp::Ge | CompareOp::Le))
    };
    if roundness(other, m) > roundness(op, n) {
        (other, m)
    } else {
        (op, n)
    }
}

pub(super) fn not_unless(holds: bool, cond: Cond) -> Cond {
    if holds {
        return cond;
    }
    let span = cond.span;
    match cond.kind {
        CondKind::Not(inner) => *inner,
        kind => node(CondKind::Not(Box::new(node(kind, span))), span),
    }
}

/// Nobody asks a normal form how deep it is.
fn node(kind: CondKind, span: Span) -> Cond {
    Cond {
        kind,
        span,
        depth: 1,
    }
}

// --------------------------------------------------------------------------------------- names

/// Every variable of a condition, binders included.
pub(super) fn each_name(cond: &mut Cond, change: &mut dyn FnMut(&mut VarRef)) {
    match &mut cond.kind {
        CondKind::And(parts) => parts.iter_mut().for_each(|part| each_name(part, change)),
        CondKind::Since { left, right, .. } => {
            each_name(left, change);
            each_name(right, change);
        }
        CondKind::Not(body) | CondKind::Formerly { body, .. } | CondKind::Previous { body, .. } => {
            each_name(body, change)
        }
        CondKind::Exists { binder, body } => {
            change(&mut binder.var);
            each_name(body, change);
        }
        CondKind::Tp(var) => change(var),
        CondKind::Compare { left, right, .. } => {
            each_name_of_term(left, change);
            each_name_of_term(right, change);
        }
        CondKind::Match(matcher) => {
            let fields = matcher.groups.iter_mut().flatten();
            fields.for_each(|field| each_name_of_term(&mut field.term, change));
        }
        CondKind::Param { injected, .. } => injected
            .iter_mut()
            .for_each(|field| each_name_of_term(&mut field.term, change)),
        CondKind::Call(call) => each_name_of_call(call, change),
        CondKind::Error => {}
    }
}

fn each_name_of_call(call: &mut MacroCall, change: &mut dyn FnMut(&mut VarRef)) {
    for arg in &mut call.args {
        match arg {
            CallArg::Window(_) => {}
            CallArg::Cond(cond) => each_name(cond, change),
            CallArg::Term(term) => each_name_of_term(term, change),
        }
    }
}

pub(super) fn each_name_of_term(term: &mut Term, change: &mut dyn FnMut(&mut VarRef)) {
    match &mut term.kind {
        TermKind::Var(var) => change(var),
        TermKind::Array(items) | TermKind::Product(items) => items
            .iter_mut()
            .for_each(|item| each_name_of_term(item, change)),
        TermKind::Sum { first, rest } => {
            each_name_of_term(first, change);
            rest.iter_mut()
                .for_each(|(_, part)| each_name_of_term(part, change));
        }
        TermKind::Aggregate(aggregate) => {
            aggregate
                .binders
                .iter_mut()
                .for_each(|binder| change(&mut binder.var));
            if let AggregateOp::Sum(var) = &mut aggregate.op {
                change(var);
            }
            each_name(&mut aggregate.body, change);
        }
        TermKind::Call(call) => each_name_of_call(call, change),
        _ => {}
    }
}

/// The condition with names that say which variables are its own, whatever they were called.
pub(super) fn by_itself(cond: &Cond) -> Cond {
    let mut cond = cond.clone();
    each_name(&mut cond, &mut |var| {
        if var.sigil != Sigil::Param {
            var.name = format_smolstr!("{}{}", order::FOREIGN, var.name);
        }
    });
    Names::default().cond(&mut cond);
    sides(&mut cond);
    cond
}

/// Puts the sides of equations between variables in the order of their names.
fn sides(cond: &mut Cond) {
    match &mut cond.kind {
        CondKind::And(parts) => parts.iter_mut().for_each(sides),
        CondKind::Since { left, right, .. } => {
            sides(left);
            sides(right);
        }
        CondKind::Not(body)
        | CondKind::Formerly { body, .. }
        | CondKind::Previous { body, .. }
        | CondKind::Exists { body, .. } => sides(body),
        CondKind::Compare {
            op: CompareOp::Eq | CompareOp::Ne,
            left,
            right,
        } => {
            if let (TermKind::Var(one), TermKind::Var(other)) = (&left.kind, &right.kind)
                && other.name < one.name
            {
                std::mem::swap(left, right);
            }
        }
        _ => {}
    }
}

/// New names of the variables in sight, given where each is first met, which no order of binders can change.
#[derive(Default)]
struct Names {
    known: Vec<Known>,
    next: usize,
}

struct Known {
    old: (Sigil, SmolStr),
    number: Option<usize>,
}

impl Names {
    fn open(&mut self, binders: &[Binder]) -> usize {
        let depth = self.known.len();
        self.known.extend(binders.iter().map(|binder| Known {
            old: (binder.var.sigil, binder.var.name.clone()),
            number: None,
        }));
        depth
    }

    /// The binders opened at a depth, renamed and in the order of their numbers.
    fn close(&mut self, depth: usize, binders: Vec<Binder>) -> Vec<Binder> {
        let mut numbered: Vec<(usize, Binder)> = Vec::new();
        for (at, mut binder) in binders.into_iter().enumerate() {
            let number = self.number(depth + at);
            binder.var = renamed(&binder.var, number);
            numbered.push((number, binder));
        }
        self.known.truncate(depth);
        numbered.sort_by_key(|(number, _)| *number);
        numbered.into_iter().map(|(_, binder)| binder).collect()
    }

    fn number(&mut self, at: usize) -> usize {
        let next = self.next;
        let Some(known) = self.known.get_mut(at) else {
            return next;
        };
        *known.number.get_or_insert_with(|| {
            self.next += 1;
            next
        })
    }

    fn used(&mut self, var: &mut VarRef) {
        let of = |known: &Known| known.old.0 == var.sigil && known.old.1 == var.name;
        if let Some(at) = self.known.iter().rposition(of) {
            let number = self.number(at);
            *var = renamed(var, number);
        }
    }

    fn cond(&mut self, cond: &mut Cond) {
        match &mut cond.kind {
            CondKind::Exists { .. } => self.chain(cond),
            CondKind::And(parts) => parts.iter_mut().for_each(|part| self.cond(part)),
            // The anchor comes first in time and in words.
            CondKind::Since { left, right, .. } => {
                self.cond(right);
                self.cond(left);
            }
            CondKind::Not(body)
            | CondKind::Formerly { body, .. }
            | CondKind::Previous { body, .. } => self.cond(body),
            CondKind::Tp(var) => self.used(var),
            CondKind::Compare { left, right, .. } => {
                self.term(left);
                self.term(right);
            }
            CondKind::Match(matcher) => {
                let fields = matcher.groups.iter_mut().flatten();
                fields.for_each(|field| self.term(&mut field.term));
            }
            CondKind::Param { injected, .. } => injected
                .iter_mut()
                .for_each(|field| self.term(&mut field.term)),
            CondKind::Call(call) => self.call(call),
            CondKind::Error => {}
        }
    }

    /// An `exists` and those directly inside it, which could as well stand in another order.
    fn chain(&mut self, cond: &mut Cond) {
        let mut binders: Vec<Binder> = Vec::new();
        let mut spans = Vec::new();
        let mut inner = std::mem::replace(cond, node(CondKind::Error, cond.span));
        loop {
            match inner.kind {
                CondKind::Exists { binder, body }
                    if binders
                        .iter()
                        .all(|other| other.var.name != binder.var.name) =>
                {
                    binders.push(binder);
                    spans.push(inner.span);
                    inner = *body;
                }
                _ => break,
            }
        }
        let depth = self.open(&binders);
        self.cond(&mut inner);
        let binders = self.close(depth, binders);
        for (binder, span) in binders.into_iter().zip(spans).rev() {
            let body = Box::new(inner);
            inner = node(CondKind::Exists { binder, body }, span);
        }
        *cond = inner;
    }

    fn call(&mut self, call: &mut MacroCall) {
        for arg in &mut call.args {
            match arg {
                CallArg::Window(_) => {}
                CallArg::Cond(cond) => self.cond(cond),
                CallArg::Term(term) => self.term(term),
            }
        }
    }

    fn term(&mut self, term: &mut Term) {
        match &mut term.kind {
            TermKind::Var(var) => self.used(var),
            TermKind::Array(items) | TermKind::Product(items) => {
                items.iter_mut().for_each(|item| self.term(item));
            }
            TermKind::Sum { first, rest } => {
                self.term(first);
                rest.iter_mut().for_each(|(_, part)| self.term(part));
            }
            TermKind::Aggregate(aggregate) => {
                let binders = std::mem::take(&mut aggregate.binders);
                let depth = self.open(&binders);
                self.cond(&mut aggregate.body);
                if let AggregateOp::Sum(var) = &mut aggregate.op {
                    self.used(var);
                }
                aggregate.binders = self.close(depth, binders);
            }
            TermKind::Call(call) => self.call(call),
            _ => {}
        }
    }
}

/// `x`, `y`, `z`, `x1`, …
fn renamed(var: &VarRef, number: usize) -> VarRef {
    let letter = ["x", "y", "z"].get(number % 3).copied().unwrap_or("x");
    let name = match number / 3 {
        0 => SmolStr::new_static(letter),
        round => format_smolstr!("{letter}{round}"),
    };
    VarRef {
        sigil: Sigil::Plain,
        name,
        span: var.span,
    }
}
