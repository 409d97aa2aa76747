//! Comparisons, terms and aggregates of a leaf.

use super::super::formula::{CellOp, Node, Term};
use super::super::network::{Path, Site};
use super::super::row::{Arith, Cmp, Slot, Sym, Total};
use super::super::value::{Val, Values};
use super::{Builder, Frame, Name};
use crate::schema::PinValue;
use crate::value::EntityUid;
use dogwood_grammar::ast;

impl Builder<'_> {
    pub(super) fn comparison(
        &mut self,
        op: ast::CompareOp,
        left: &ast::Term,
        right: &ast::Term,
        frame: &mut Frame,
    ) -> Node {
        let op = match op {
            ast::CompareOp::Eq => Cmp::Eq,
            ast::CompareOp::Ne => Cmp::Ne,
            ast::CompareOp::Lt => Cmp::Lt,
            ast::CompareOp::Le => Cmp::Le,
            ast::CompareOp::Gt => Cmp::Gt,
            ast::CompareOp::Ge => Cmp::Ge,
        };
        let is_var = |term: &ast::Term| matches!(term.kind, ast::TermKind::Var(_));
        match (op, is_var(left), is_var(right)) {
            (Cmp::Eq, true, false) => self.binding(left, right, frame),
            (Cmp::Eq, false, true) => self.binding(right, left, frame),
            _ => {
                let left = self.term(left, frame);
                let right = self.term(right, frame);
                Node::Compare(op, left, right)
            }
        }
    }

    fn binding(&mut self, var: &ast::Term, value: &ast::Term, frame: &mut Frame) -> Node {
        match self.term(var, frame) {
            Term::Slot(slot) => Node::Bind(slot, self.term(value, frame)),
            _ => Node::Never,
        }
    }

    pub(super) fn term(&mut self, term: &ast::Term, frame: &mut Frame) -> Term {
        let known = |val: Val| Term::Known(Sym::Val(val));
        match &term.kind {
            ast::TermKind::Int(n) => known(Val::Int(*n)),
            ast::TermKind::Bool(b) => known(Val::Bool(*b)),
            ast::TermKind::Str(text) => known(self.network.values.string(text)),
            ast::TermKind::Decimal(text) => known(self.network.values.decimal(&text.value)),
            ast::TermKind::Entity(entity) => {
                let uid = EntityUid::new(entity.ty.text(), entity.id.value.clone());
                known(self.network.values.entity(&uid))
            }
            ast::TermKind::Array(items) => {
                let mut vals = Vec::with_capacity(items.len());
                for item in items {
                    match self.term(item, frame) {
                        Term::Known(Sym::Val(val)) => vals.push(val),
                        _ => return Term::Known(Sym::Bottom),
                    }
                }
                known(self.network.values.array(&vals))
            }
            ast::TermKind::Context(_) | ast::TermKind::Scope { .. } => match of_request(term) {
                Some(path) => Term::Slot(self.param(path, frame)),
                None => Term::Known(Sym::Bottom),
            },
            ast::TermKind::Var(var) => Term::Slot(self.variable(var, frame)),
            ast::TermKind::Aggregate(aggregate) => self.aggregate(aggregate, frame),
            ast::TermKind::Sum { rest, .. } if rest.len() > ast::MAX_DEPTH as usize => {
                Term::Known(Sym::Bottom)
            }
            ast::TermKind::Product(factors) if factors.len() > ast::MAX_DEPTH as usize => {
                Term::Known(Sym::Bottom)
            }
            ast::TermKind::Sum { first, rest } => {
                let mut sum = self.term(first, frame);
                for (op, operand) in rest {
                    let op = match op {
                        ast::SumOp::Add => Arith::Add,
                        ast::SumOp::Sub => Arith::Sub,
                    };
                    let operand = self.term(operand, frame);
                    sum = Term::Arith(op, Box::new(sum), Box::new(operand));
                }
                sum
            }
            ast::TermKind::Product(factors) => {
                let mut factors = factors.iter();
                let Some(first) = factors.next() else {
                    return Term::Known(Sym::Bottom);
                };
                let mut product = self.term(first, frame);
                for factor in factors {
                    let factor = self.term(factor, frame);
                    product = Term::Arith(Arith::Mul, Box::new(product), Box::new(factor));
                }
                product
            }
            ast::TermKind::Wildcard | ast::TermKind::Call(_) | ast::TermKind::Error => {
                Term::Known(Sym::Bottom)
            }
        }
    }

    fn aggregate(&mut self, aggregate: &ast::Aggregate, frame: &mut Frame) -> Term {
        let depth = self.scope.len();
        let mut vars = Vec::new();
        for binder in &aggregate.binders {
            let var = self.fresh();
            self.scope.push((binder.var.name.clone(), var));
            vars.push(var);
        }
        let op = match &aggregate.op {
            ast::AggregateOp::Count => Total::Count,
            ast::AggregateOp::Sum(summand) => Total::Sum(
                // The innermost of two binders of one name is meant.
                aggregate
                    .binders
                    .iter()
                    .rposition(|binder| binder.var.name == summand.name)
                    .unwrap_or(usize::MAX),
            ),
        };
        let term = match self.window_cell(aggregate, &vars, op, frame) {
            Some(term) => term,
            None => {
                let slots: Vec<Slot> = vars.iter().map(|var| frame.slot(Name::Var(*var))).collect();
                frame.local.extend(slots.iter().copied());
                let body = self.condition(&aggregate.body, frame);
                Term::Total {
                    op,
                    vars: slots,
                    body: Box::new(body),
                }
            }
        };
        self.scope.truncate(depth);
        term
    }

    /// The aggregate as one cell with a running total, if its body is `formerly` over a flat formula.
    fn window_cell(
        &mut self,
        aggregate: &ast::Aggregate,
        vars: &[u32],
        op: Total,
        frame: &mut Frame,
    ) -> Option<Term> {
        let ast::CondKind::Formerly { window, body } = &aggregate.body.kind else {
            return None;
        };
        if !frame.is_leaf() {
            return None;
        }
        let window = window.seconds()?;
        let mut inner = Frame {
            nested: true,
            ..Frame::default()
        };
        // A cell of an abandoned body would stay behind; a flat body has none.
        if !is_plain(body) {
            return None;
        }
        let body = self.condition(body, &mut inner);
        let bound = body.flat()?;
        let counted: Vec<Slot> = vars
            .iter()
            .map(|var| {
                inner
                    .names
                    .get_index_of(&Name::Var(*var))
                    .map(|at| at as Slot)
            })
            .collect::<Option<_>>()?;
        let outside = |slot: &Slot| !inner.local.contains(slot);
        let all: Vec<Slot> = (0..inner.names.len() as Slot).filter(outside).collect();
        if !all.iter().all(|slot| bound.contains(slot)) {
            return None;
        }
        let sum = match op {
            Total::Count => None,
            Total::Sum(column) => Some(column),
        };
        let by_time_point = body.time_point_in(&counted);
        let op_def = CellOp::Window {
            body,
            counted,
            sum,
            by_time_point,
        };
        let cell = self.finish(op_def, window, inner, frame);
        let vars: Vec<Slot> = vars.iter().map(|var| frame.slot(Name::Var(*var))).collect();
        frame.local.extend(vars.iter().copied());
        frame.sites.push(Site {
            span: aggregate.span,
            cell: cell.clone(),
            total: Some(op),
            whole: None,
        });
        Some(Term::Window { op, vars, cell })
    }
}

/// No operator over the past and no aggregate inside.
fn is_plain(cond: &ast::Cond) -> bool {
    match &cond.kind {
        ast::CondKind::And(parts) => parts.iter().all(is_plain),
        ast::CondKind::Not(body) | ast::CondKind::Exists { body, .. } => is_plain(body),
        ast::CondKind::Compare { left, right, .. } => !has_aggregate(left) && !has_aggregate(right),
        ast::CondKind::Tp(_) | ast::CondKind::Match(_) => true,
        _ => false,
    }
}

fn has_aggregate(term: &ast::Term) -> bool {
    match &term.kind {
        ast::TermKind::Aggregate(_) | ast::TermKind::Call(_) => true,
        ast::TermKind::Sum { first, rest } => {
            has_aggregate(first) || rest.iter().any(|(_, operand)| has_aggregate(operand))
        }
        ast::TermKind::Product(factors) => factors.iter().any(has_aggregate),
        _ => false,
    }
}

/// What a term reads of the request.
pub(super) fn of_request(term: &ast::Term) -> Option<PinValue> {
    match &term.kind {
        ast::TermKind::Context(path) => Some(PinValue::Context(words(path))),
        ast::TermKind::Scope {
            root: ast::ScopeRoot::Principal,
            path,
        } => Some(PinValue::Principal(words(path))),
        ast::TermKind::Scope {
            root: ast::ScopeRoot::Resource,
            path,
        } => Some(PinValue::Resource(words(path))),
        _ => None,
    }
}

fn words(path: &[ast::Ident]) -> Path {
    path.iter().map(|word| word.text.clone()).collect()
}
