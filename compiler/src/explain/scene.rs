//! The variables of a condition while it is put into words.
//!
//! A variable has no name in English. `exists (c: String). (formerly within 1h Q{ crate: c } && M{ crate: c })`
//! becomes "in the last hour there was a `Q` with a `crate`, and this event is an `M` with the same
//! `crate`": the first place a variable is matched introduces it, later ones refer back. What that does
//! not cover keeps its variables by name.

use super::{Speech, words};
use crate::grammar::ast::*;
use smol_str::SmolStr;

/// The variables in view and the time point spoken about.
#[derive(Default)]
pub(super) struct Scene<'t> {
    pub(super) vars: Vec<Variable<'t>>,
    /// Speaking of an earlier time point, no longer of the event being decided.
    pub(super) then: bool,
}

pub(super) struct Variable<'t> {
    pub(super) name: SmolStr,
    pub(super) meaning: Meaning<'t>,
}

pub(super) enum Meaning<'t> {
    /// Not spoken of yet; what is demanded of it: "more than 0".
    New { demands: Vec<String> },
    /// The same, but it is compared with another variable later and needs its name.
    NewNamed,
    /// Introduced under its name.
    Named,
    /// The value of this field, where it was first matched.
    Field(String),
    /// The value this request has in this field.
    Asked(String),
    /// Another spelling of a term.
    Is(&'t Term),
    /// The time point spoken about.
    Now,
    /// A time point other than the one spoken about.
    Earlier,
}

impl<'t> Scene<'t> {
    pub(super) fn add(&mut self, name: &SmolStr) {
        let meaning = Meaning::New {
            demands: Vec::new(),
        };
        self.vars.push(Variable {
            name: name.clone(),
            meaning,
        });
    }

    pub(super) fn find(&self, name: &SmolStr) -> Option<&Variable<'t>> {
        self.vars.iter().rev().find(|var| var.name == *name)
    }

    pub(super) fn find_mut(&mut self, name: &SmolStr) -> Option<&mut Variable<'t>> {
        self.vars.iter_mut().rev().find(|var| var.name == *name)
    }

    pub(super) fn restore(&mut self, name: &SmolStr, meaning: Meaning<'t>) {
        if let Some(known) = self.find_mut(name) {
            known.meaning = meaning;
        }
    }

    /// Variables of the chain that are still compared with one another keep their names.
    pub(super) fn name_compared(&mut self, parts: &[&Cond], depth: usize) {
        for part in parts {
            let CondKind::Compare { left, right, .. } = &part.kind else {
                continue;
            };
            for side in [left, right] {
                let TermKind::Var(var) = &side.kind else {
                    continue;
                };
                let known = self
                    .vars
                    .iter_mut()
                    .skip(depth)
                    .rev()
                    .find(|known| known.name == var.name);
                if let Some(known) = known
                    && matches!(&known.meaning, Meaning::New { demands } if demands.is_empty())
                {
                    known.meaning = Meaning::NewNamed;
                }
            }
        }
    }

    /// "some `x` of more than 3", for variables with demands that no event description has introduced.
    pub(super) fn unspoken(&self, depth: usize) -> Option<String> {
        let some: Vec<String> = self
            .vars
            .iter()
            .skip(depth)
            .filter_map(|var| match &var.meaning {
                Meaning::New { demands } if !demands.is_empty() => Some(format!(
                    "some `{}` {}",
                    var.name,
                    words::list(demands, "and")
                )),
                _ => None,
            })
            .collect();
        (!some.is_empty()).then(|| words::list(&some, "and"))
    }

    /// Of two sides of an equation that defines one of them, the other.
    pub(super) fn defined(&self, left: &'t Term, right: &'t Term) -> Option<&'t Term> {
        [(left, right), (right, left)]
            .into_iter()
            .find_map(|(side, value)| {
                let TermKind::Var(var) = &side.kind else {
                    return None;
                };
                match self.find(&var.name)?.meaning {
                    Meaning::Is(term) if std::ptr::eq(term, value) => Some(value),
                    _ => None,
                }
            })
    }

    /// The aggregate a term is, by itself or under a name.
    pub(super) fn aggregate(&self, term: &'t Term) -> Option<&'t Aggregate> {
        match &term.kind {
            TermKind::Aggregate(aggregate) => Some(aggregate),
            TermKind::Var(var) => match self.find(&var.name).map(|var| &var.meaning) {
                Some(Meaning::Is(Term {
                    kind: TermKind::Aggregate(aggregate),
                    ..
                })) => Some(aggregate),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the term names a variable that has been introduced by nothing but its binder.
    pub(super) fn is_new(&self, term: &Term) -> bool {
        match &term.kind {
            TermKind::Var(var) => {
                let new =
                    |var: &Variable| matches!(var.meaning, Meaning::New { .. } | Meaning::NewNamed);
                self.find(&var.name).is_some_and(new)
            }
            TermKind::Sum { first, rest } => {
                self.is_new(first) || rest.iter().any(|(_, part)| self.is_new(part))
            }
            TermKind::Product(parts) => parts.iter().any(|part| self.is_new(part)),
            _ => false,
        }
    }
}

/// Variables spoken of together; further ones are left to sentences of their own.
const VARIABLES: usize = 32;

/// The conjuncts of a condition, with the variables of its own `exists` added to the scene. An `exists`
/// that hides a variable opened just now stays closed.
pub(super) fn open<'t>(
    cond: &'t Cond,
    depth: usize,
    scene: &mut Scene<'t>,
    parts: &mut Vec<&'t Cond>,
) {
    match &cond.kind {
        CondKind::And(conjuncts) => conjuncts
            .iter()
            .for_each(|part| open(part, depth, scene, parts)),
        CondKind::Exists { binder, body } => {
            let many = scene.vars.len() >= depth + VARIABLES;
            let hides = scene
                .vars
                .iter()
                .skip(depth)
                .any(|var| var.name == binder.var.name);
            if many || (hides && !parts.is_empty()) {
                parts.push(cond);
            } else {
                scene.add(&binder.var.name);
                open(body, depth, scene, parts);
            }
        }
        _ => parts.push(cond),
    }
}

fn can_be_absent(term: &Term) -> bool {
    match &term.kind {
        TermKind::Context(_) => true,
        TermKind::Scope { path, .. } => !path.is_empty(),
        _ => false,
    }
}

/// Whether the condition mentions the variable; or, with `asserted`, cannot hold unless it has a value.
fn mentions(cond: &Cond, name: &SmolStr, asserted: bool) -> bool {
    let inside = |cond: &Cond| mentions(cond, name, asserted);
    let of = |term: &Term| term_mentions(term, name, asserted);
    match &cond.kind {
        CondKind::And(parts) => parts.iter().any(inside),
        CondKind::Since { left, right, .. } => (!asserted && inside(left)) || inside(right),
        CondKind::Not(body) => !asserted && inside(body),
        CondKind::Formerly { body, .. } | CondKind::Previous { body, .. } => inside(body),
        CondKind::Exists { binder, body } => binder.var.name != *name && inside(body),
        CondKind::Tp(var) => var.name == *name,
        CondKind::Compare { left, right, .. } => of(left) || of(right),
        CondKind::Match(matcher) => matcher.fields().any(|field| of(&field.term)),
        CondKind::Call(call) => call.args.iter().any(|arg| match arg {
            CallArg::Window(_) => false,
            CallArg::Cond(cond) => inside(cond),
            CallArg::Term(term) => of(term),
        }),
        CondKind::Param { .. } | CondKind::Error => false,
    }
}

fn term_mentions(term: &Term, name: &SmolStr, asserted: bool) -> bool {
    let of = |term: &Term| term_mentions(term, name, asserted);
    match &term.kind {
        TermKind::Var(var) => var.name == *name,
        TermKind::Sum { first, rest } => of(first) || rest.iter().any(|(_, part)| of(part)),
        TermKind::Product(parts) | TermKind::Array(parts) => parts.iter().any(of),
        // Nothing to count is a count, too.
        TermKind::Aggregate(aggregate) => {
            let hidden = aggregate
                .binders
                .iter()
                .any(|binder| binder.var.name == *name);
            !asserted && !hidden && mentions(&aggregate.body, name, asserted)
        }
        _ => false,
    }
}

/// Takes out the conjuncts that only say something about variables, and notes what they say. With
/// `marks_now`, `tp(t)` is one of them: it calls the time point spoken about `t`.
pub(super) fn settle<'t>(
    speech: &Speech<'_>,
    parts: Vec<&'t Cond>,
    depth: usize,
    marks_now: bool,
    scene: &mut Scene<'t>,
) -> Vec<&'t Cond> {
    let own = |scene: &Scene<'t>, name: &SmolStr| {
        scene.vars.iter().skip(depth).any(|var| var.name == *name)
    };
    // Equations first: they say what a variable is, wherever they stand.
    let mut rest = Vec::new();
    for &part in &parts {
        if let CondKind::Compare {
            op: CompareOp::Eq,
            left,
            right,
        } = &part.kind
        {
            let mut solved = None;
            for (side, value) in [(left, right), (right, left)] {
                if let TermKind::Var(var) = &side.kind
                    && own(scene, &var.name)
                    && scene.is_new(side)
                    && !scene.is_new(value)
                    && let Some(known) = scene.find_mut(&var.name)
                {
                    known.meaning = Meaning::Is(value);
                    solved = Some((&var.name, value));
                    break;
                }
            }
            // It goes without saying if what is said of the variable cannot hold without it.
            if let Some((name, value)) = solved {
                let mut others = parts.iter().filter(|other| !std::ptr::eq(**other, part));
                if others.any(|other| mentions(other, name, can_be_absent(value))) {
                    continue;
                }
            }
        }
        rest.push(part);
    }
    let mut kept = Vec::new();
    for part in rest {
        match &part.kind {
            CondKind::Tp(var) if marks_now && own(scene, &var.name) => {
                match scene.find_mut(&var.name) {
                    Some(
                        known @ Variable {
                            meaning: Meaning::New { .. },
                            ..
                        },
                    ) => known.meaning = Meaning::Now,
                    _ => kept.push(part),
                }
            }
            CondKind::Compare { op, left, right } => {
                let is_now = |scene: &Scene<'t>, term: &Term| match &term.kind {
                    TermKind::Var(var) => matches!(
                        scene.find(&var.name),
                        Some(Variable {
                            meaning: Meaning::Now,
                            ..
                        })
                    ),
                    _ => false,
                };
                let mut noted = false;
                for (side, value, op) in [(left, right, *op), (right, left, words::mirrored(*op))] {
                    let TermKind::Var(var) = &side.kind else {
                        continue;
                    };
                    // A variable of an outer `exists` may be spoken of here for the first time, too.
                    if !scene.is_new(side) || scene.is_new(value) {
                        continue;
                    }
                    let now = is_now(scene, value);
                    let said = speech.term(value, scene);
                    let Some(known) = scene.find_mut(&var.name) else {
                        continue;
                    };
                    if now && op == CompareOp::Ne {
                        known.meaning = Meaning::Earlier;
                        noted = true;
                        break;
                    }
                    if let Meaning::New { demands } = &mut known.meaning {
                        demands.push(demanded(op, &said));
                        noted = true;
                        break;
                    }
                }
                if !noted {
                    kept.push(part);
                }
            }
            _ => kept.push(part),
        }
    }
    kept
}

/// "more than 0", as said after a field's name.
fn demanded(op: CompareOp, value: &str) -> String {
    match op {
        CompareOp::Eq => format!("equal to {value}"),
        CompareOp::Ne => format!("other than {value}"),
        CompareOp::Lt => format!("less than {value}"),
        CompareOp::Le => format!("of at most {value}"),
        CompareOp::Gt => format!("of more than {value}"),
        CompareOp::Ge => format!("of at least {value}"),
    }
}
