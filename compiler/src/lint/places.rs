//! The temporal conditions of a rule that are tested at the request itself, each with the way it pulls
//! when it is true, and the aggregates that are compared with a number.

use dogwood_grammar::Span;
use dogwood_grammar::ast::{
    Aggregate, ClauseBody, ClauseKind, CompareOp, Cond, CondKind, Effect, Expr, ExprKind, Matcher,
    Rule, Sigil, Term, TermKind,
};
use smol_str::SmolStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pull {
    Allow,
    Deny,
}

pub struct Place<'r> {
    pub cond: &'r Cond,
    /// What its being true speaks for.
    pub pull: Pull,
    /// The rule cannot pull that way without it: it stands in no `||`, and under no `!`.
    pub needed: bool,
}

/// An aggregate compared with a number, written with the aggregate on the left.
pub struct Limit<'r> {
    pub aggregate: &'r Aggregate,
    pub op: CompareOp,
    pub number: i64,
    /// Sides as written: the operator stands between them.
    pub sides: (Span, Span),
    pub span: Span,
    /// The number stands on the left.
    pub turned: bool,
    pub pull: Pull,
    pub needed: bool,
}

#[derive(Default)]
pub struct Reading<'r> {
    pub places: Vec<Place<'r>>,
    pub limits: Vec<Limit<'r>>,
}

impl<'r> Reading<'r> {
    pub fn of(rule: &'r Rule) -> Reading<'r> {
        let mut reading = Reading::default();
        for clause in &rule.clauses {
            let for_it = match rule.effect {
                Effect::Permit => Pull::Allow,
                Effect::Forbid => Pull::Deny,
            };
            let pull = match clause.kind {
                ClauseKind::When => for_it,
                ClauseKind::Unless => for_it.turned(),
            };
            match &clause.body {
                ClauseBody::Temporal(leaf) => reading.cond(&leaf.body, pull, true, &mut Vec::new()),
                ClauseBody::Expr(expr) => reading.expr(expr, pull, true),
            }
        }
        reading
    }

    fn expr(&mut self, expr: &'r Expr, pull: Pull, needed: bool) {
        match &expr.kind {
            ExprKind::Temporal(leaf) => self.cond(&leaf.body, pull, needed, &mut Vec::new()),
            ExprKind::And(parts) => parts.iter().for_each(|part| self.expr(part, pull, needed)),
            ExprKind::Or(parts) => parts.iter().for_each(|part| self.expr(part, pull, false)),
            ExprKind::Not(inner) => self.expr(inner, pull.turned(), false),
            _ => {}
        }
    }

    fn cond(
        &mut self,
        cond: &'r Cond,
        pull: Pull,
        needed: bool,
        names: &mut Vec<(&'r SmolStr, &'r Aggregate)>,
    ) {
        match &cond.kind {
            CondKind::And(parts) => {
                let before = names.len();
                names.extend(parts.iter().filter_map(named));
                for part in parts {
                    self.cond(part, pull, needed, names);
                }
                names.truncate(before);
            }
            CondKind::Not(inner) => self.cond(inner, pull.turned(), false, names),
            CondKind::Exists { body, .. } => self.cond(body, pull, needed, names),
            _ => {
                if let Some(limit) = limit(cond, pull, needed, names) {
                    self.limits.push(limit);
                }
                self.places.push(Place { cond, pull, needed });
            }
        }
    }
}

impl Pull {
    fn turned(self) -> Pull {
        match self {
            Pull::Allow => Pull::Deny,
            Pull::Deny => Pull::Allow,
        }
    }
}

/// `n == (count …)`.
fn named(cond: &Cond) -> Option<(&SmolStr, &Aggregate)> {
    let CondKind::Compare {
        op: CompareOp::Eq,
        left,
        right,
    } = &cond.kind
    else {
        return None;
    };
    match (&left.kind, &right.kind) {
        (TermKind::Var(var), TermKind::Aggregate(aggregate))
        | (TermKind::Aggregate(aggregate), TermKind::Var(var))
            if var.sigil == Sigil::Plain =>
        {
            Some((&var.name, aggregate))
        }
        _ => None,
    }
}

fn limit<'r>(
    cond: &'r Cond,
    pull: Pull,
    needed: bool,
    names: &[(&'r SmolStr, &'r Aggregate)],
) -> Option<Limit<'r>> {
    let CondKind::Compare { op, left, right } = &cond.kind else {
        return None;
    };
    let aggregate = |term: &'r Term| match &term.kind {
        TermKind::Aggregate(aggregate) => Some(&**aggregate),
        TermKind::Var(var) => names
            .iter()
            .rev()
            .find(|(name, _)| **name == var.name)
            .map(|(_, aggregate)| *aggregate),
        _ => None,
    };
    let (aggregate, number, op, turned) = match (&left.kind, &right.kind) {
        (_, TermKind::Int(number)) => (aggregate(left)?, *number, *op, false),
        (TermKind::Int(number), _) => (aggregate(right)?, *number, mirrored(*op), true),
        _ => return None,
    };
    Some(Limit {
        aggregate,
        op,
        number,
        sides: (left.span, right.span),
        span: cond.span,
        turned,
        pull,
        needed,
    })
}

/// The operator with its sides exchanged.
pub fn mirrored(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Lt => CompareOp::Gt,
        CompareOp::Le => CompareOp::Ge,
        CompareOp::Gt => CompareOp::Lt,
        CompareOp::Ge => CompareOp::Le,
        same => same,
    }
}

impl<'r> Limit<'r> {
    /// Holds only where something was counted.
    fn asks_for_one(&self) -> bool {
        match self.op {
            CompareOp::Ge | CompareOp::Eq => self.number >= 1,
            CompareOp::Gt => self.number >= 0,
            _ => false,
        }
    }
}

impl<'r> Reading<'r> {
    /// The events that must have happened before the rule lets a request through.
    pub fn prerequisites(&self) -> Vec<&'r Matcher> {
        let mut found = Vec::new();
        for place in &self.places {
            if place.pull != Pull::Allow || !place.needed {
                continue;
            }
            match &place.cond.kind {
                CondKind::Formerly { body, .. } | CondKind::Previous { body, .. } => {
                    demanded(body, &mut found);
                }
                CondKind::Since { right, .. } => demanded(right, &mut found),
                _ => {}
            }
        }
        for limit in &self.limits {
            if limit.pull == Pull::Allow && limit.needed && limit.asks_for_one() {
                demanded(&limit.aggregate.body, &mut found);
            }
        }
        found
    }
}

/// The predicates a condition cannot hold without.
pub fn demanded<'r>(cond: &'r Cond, found: &mut Vec<&'r Matcher>) {
    match &cond.kind {
        CondKind::And(parts) => parts.iter().for_each(|part| demanded(part, found)),
        CondKind::Formerly { body, .. }
        | CondKind::Previous { body, .. }
        | CondKind::Exists { body, .. } => demanded(body, found),
        CondKind::Since { right, .. } => demanded(right, found),
        CondKind::Match(matcher) => found.push(matcher),
        _ => {}
    }
}
