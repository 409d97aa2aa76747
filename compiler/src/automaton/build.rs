//! From a temporal leaf of the syntax tree to a formula over cells.
//!
//! Names become slots, request paths become parameters, pins become patterns, conjuncts are put in the order
//! in which they are cheapest to join, and each operator over the past becomes a cell, shared with every
//! equal one.

use super::formula::{
    BreakShape, CellDef, CellOp, EventTypeId, LOCAL, Matcher, Node, Pattern, Term, Use,
};
pub(crate) use super::network::{Leaf, Network, Path, Site};
use super::order::{break_shape, conjunction};
use super::rewrite::{Split, equal_to, split, used_once};
use super::row::{Arith, Cmp, Slot, Sym, Total};
use super::value::{Val, Values};
use crate::schema::{EventId, EventSchema, PinValue};
use crate::value::EntityUid;
use dogwood_grammar::Span;
use dogwood_grammar::ast;
use indexmap::IndexSet;
use smol_str::SmolStr;
use std::collections::BTreeSet;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Name {
    Var(u32),
    Param(usize),
}

/// In place of a variable's number: nothing else asks for its value.
const ANYTHING: u32 = 0;

/// The slot space of a leaf or cell under construction.
#[derive(Default)]
struct Frame {
    names: IndexSet<Name>,
    /// Slots bound by an `exists` or `for` of this frame.
    local: BTreeSet<Slot>,
    nested: bool,
    sites: Vec<Site>,
}

impl Frame {
    fn slot(&mut self, name: Name) -> Slot {
        let (at, _) = self.names.insert_full(name);
        Slot::try_from(at).unwrap_or(LOCAL)
    }

    fn params(&self) -> Vec<(Slot, usize)> {
        let named = self.names.iter().enumerate();
        named
            .filter_map(|(at, name)| match name {
                Name::Param(param) => Some((Slot::try_from(at).ok()?, *param)),
                Name::Var(_) => None,
            })
            .collect()
    }
}

struct Builder<'a> {
    network: &'a mut Network,
    events: &'a EventSchema,
    /// Variables in scope, innermost last, each with a number of its own.
    scope: Vec<(SmolStr, u32)>,
    /// Variables no binder declares.
    free: Vec<(SmolStr, u32)>,
    /// Variables that are what the request has there.
    asked: Vec<(u32, PinValue)>,
    next_var: u32,
}

impl Network {
    pub fn leaf(&mut self, temporal: &ast::Temporal, events: &EventSchema) -> Leaf {
        let mut builder = Builder {
            network: self,
            events,
            scope: Vec::new(),
            free: Vec::new(),
            asked: Vec::new(),
            next_var: 0,
        };
        let mut frame = Frame::default();
        let node = builder.condition(&temporal.body, &mut frame);
        let mut leaf = Leaf {
            node,
            width: frame.names.len(),
            params: frame.params(),
            constants: Vec::new(),
            span: temporal.span,
            sites: frame.sites,
        };
        let known = leaf.known();
        self.pair_up(&mut leaf.node, &mut known.clone());
        self.narrow(&mut leaf.node, &mut known.clone());
        self.note_lookups(&leaf.node, &mut known.clone());
        leaf
    }
}

impl Builder<'_> {
    fn condition(&mut self, cond: &ast::Cond, frame: &mut Frame) -> Node {
        match &cond.kind {
            ast::CondKind::And(parts) => {
                let parts: Vec<&ast::Cond> = parts.iter().collect();
                self.conjunction(&parts, frame)
            }
            ast::CondKind::Not(body) => Node::Not(Box::new(self.condition(body, frame))),
            ast::CondKind::Exists { binder, body } if used_once(body, &binder.var.name) => {
                self.scope.push((binder.var.name.clone(), ANYTHING));
                let body = self.condition(body, frame);
                self.scope.pop();
                body
            }
            ast::CondKind::Exists { binder, body } => {
                let var = self.fresh();
                self.scope.push((binder.var.name.clone(), var));
                // Where the request is known, a variable that equals it is no variable.
                let equal = equal_to(body, &binder.var.name).filter(|_| frame.is_leaf());
                if let Some(path) = equal.and_then(of_request) {
                    self.asked.push((var, path));
                    let body = self.condition(body, frame);
                    self.scope.pop();
                    return body;
                }
                let slot = frame.slot(Name::Var(var));
                frame.local.insert(slot);
                let body = self.condition(body, frame);
                self.scope.pop();
                Node::Exists(slot, Box::new(body))
            }
            ast::CondKind::Tp(var) => Node::Tp(self.variable(var, frame)),
            ast::CondKind::Compare { op, left, right } => self.comparison(*op, left, right, frame),
            ast::CondKind::Match(matcher) => self.matcher(matcher, frame),
            ast::CondKind::Formerly { window, body } => {
                let Some(window) = window.seconds() else {
                    return Node::Never;
                };
                match split(body) {
                    Some(split) => self.split_formerly(cond.span, window, &split, frame),
                    None => self.operator(cond.span, window, frame, |builder, inner| {
                        CellOp::Formerly(builder.condition(body, inner))
                    }),
                }
            }
            ast::CondKind::Previous { window, body } => {
                let Some(window) = window.seconds() else {
                    return Node::Never;
                };
                self.operator(cond.span, window, frame, |builder, inner| {
                    CellOp::Previous(builder.condition(body, inner))
                })
            }
            ast::CondKind::Since {
                left,
                window,
                right,
            } => {
                let Some(window) = window.seconds() else {
                    return Node::Never;
                };
                self.operator(cond.span, window, frame, |builder, inner| {
                    // The anchor comes first: it gives the left side its values.
                    let right = builder.condition(right, inner);
                    let left = builder.condition(left, inner);
                    CellOp::Since {
                        left,
                        right,
                        breaks: BreakShape::General,
                    }
                })
            }
            ast::CondKind::Call(_) | ast::CondKind::Param { .. } | ast::CondKind::Error => {
                Node::Never
            }
        }
    }

    /// `formerly` of what has happened, and beside it what compares that with the request.
    fn split_formerly(
        &mut self,
        span: Span,
        window: i64,
        split: &Split<'_>,
        frame: &mut Frame,
    ) -> Node {
        let depth = self.scope.len();
        let mut slots = Vec::with_capacity(split.binders.len());
        for (binder, body) in &split.binders {
            if used_once(body, &binder.var.name) {
                self.scope.push((binder.var.name.clone(), ANYTHING));
                continue;
            }
            let var = self.fresh();
            self.scope.push((binder.var.name.clone(), var));
            let slot = frame.slot(Name::Var(var));
            frame.local.insert(slot);
            slots.push(slot);
        }
        let happened = self.operator(span, window, frame, |builder, inner| {
            CellOp::Formerly(builder.conjunction(&split.happened, inner))
        });
        let compared = split.compared.iter();
        let mut parts = vec![happened];
        parts.extend(compared.map(|part| self.condition(part, frame)));
        self.scope.truncate(depth);
        let known = frame.params().iter().map(|(slot, _)| *slot).collect();
        let mut node = conjunction(parts, known, &self.network.cells);
        for slot in slots.into_iter().rev() {
            node = Node::Exists(slot, Box::new(node));
        }
        if !frame.nested
            && let Some(site) = frame.sites.last_mut()
        {
            site.whole = Some(node.clone());
        }
        node
    }

    fn conjunction(&mut self, parts: &[&ast::Cond], frame: &mut Frame) -> Node {
        match parts {
            [one] => self.condition(one, frame),
            parts => {
                let parts = parts
                    .iter()
                    .map(|part| self.condition(part, frame))
                    .collect();
                let known = frame.params().iter().map(|(slot, _)| *slot).collect();
                conjunction(parts, known, &self.network.cells)
            }
        }
    }

    fn fresh(&mut self) -> u32 {
        self.next_var += 1;
        self.next_var
    }

    fn number(&self, var: &ast::VarRef) -> Option<u32> {
        let mut names = self.scope.iter().rev().chain(&self.free);
        let found = names.find(|(name, _)| *name == var.name);
        found.map(|(_, number)| *number)
    }

    fn variable(&mut self, var: &ast::VarRef, frame: &mut Frame) -> Slot {
        let number = match self.number(var) {
            Some(number) => number,
            None => {
                // Free in the whole leaf: the check has rejected it; it binds nothing here.
                let number = self.fresh();
                self.free.push((var.name.clone(), number));
                number
            }
        };
        let asked = self.asked.iter().find(|(var, _)| *var == number);
        match asked.map(|(_, path)| path.clone()) {
            Some(path) => self.param(path, frame),
            None => frame.slot(Name::Var(number)),
        }
    }

    fn param(&mut self, path: PinValue, frame: &mut Frame) -> Slot {
        let (param, _) = self.network.params.insert_full(path);
        frame.slot(Name::Param(param))
    }

    fn operator(
        &mut self,
        span: Span,
        window: i64,
        frame: &mut Frame,
        op: impl FnOnce(&mut Self, &mut Frame) -> CellOp,
    ) -> Node {
        let nested = !frame.is_leaf();
        let mut inner = Frame {
            nested: true,
            ..Frame::default()
        };
        let mut op = op(self, &mut inner);
        if let CellOp::Since {
            left,
            right,
            breaks,
        } = &mut op
        {
            let network = &*self.network;
            *breaks = break_shape(left, right, !nested, &network.cells, &network.open);
        }
        if !nested
            && inner.asks_only_the_request()
            && let Some(by_log) =
                super::nested::nested(&op, window, inner.names.len(), &self.network.cells)
        {
            op = by_log;
        }
        let cell = self.finish(op, window, inner, frame);
        if !nested {
            frame.sites.push(Site {
                span,
                cell: cell.clone(),
                total: None,
                whole: None,
            });
        }
        Node::Cell(cell)
    }

    /// Makes the cell of a finished frame and links its slots to those of the surrounding frame.
    fn finish(&mut self, op: CellOp, window: i64, inner: Frame, frame: &mut Frame) -> Use {
        let mut slots = Vec::with_capacity(inner.names.len());
        let mut columns = Vec::new();
        for (at, name) in inner.names.iter().enumerate() {
            let slot = Slot::try_from(at).unwrap_or(LOCAL);
            if inner.local.contains(&slot) {
                slots.push(LOCAL);
            } else {
                columns.push(slot);
                slots.push(frame.slot(*name));
            }
        }
        let def = CellDef {
            op,
            window,
            width: inner.names.len(),
            columns,
        };
        Use {
            window,
            cell: self.network.cell(def),
            slots,
        }
    }

    fn matcher(&mut self, matcher: &ast::Matcher, frame: &mut Frame) -> Node {
        let id = EventId {
            action: EntityUid::new(matcher.event.ty.text(), matcher.event.action.value.clone()),
            kind: matcher.event.kind.text.clone(),
        };
        let event = self.event_type(&id);
        let mut patterns = Vec::new();
        for field in matcher.fields() {
            let path = field.path.iter().map(|word| word.text.clone()).collect();
            let place = self.field(event, path);
            let pattern = self.pattern(&field.term, frame);
            patterns.push((place, pattern));
        }
        if let Some(derived) = self.events.events.get(&id) {
            for pin in &derived.pins {
                let place = self.field(event, pin.field.clone());
                let slot = self.param(pin.value.clone(), frame);
                patterns.push((place, Pattern::Slot(slot)));
            }
        }
        patterns.sort_by_key(|(_, pattern)| match pattern {
            Pattern::Never => 0,
            Pattern::Const(_) => 1,
            Pattern::Present | Pattern::Slot(_) => 2,
        });
        Node::Match(Matcher { event, patterns })
    }

    fn event_type(&mut self, id: &EventId) -> EventTypeId {
        let at = match self.network.event_types.get_index_of(id) {
            Some(at) => at,
            None => {
                self.network.fields.push(IndexSet::new());
                self.network.event_types.insert_full(id.clone()).0
            }
        };
        EventTypeId::try_from(at).unwrap_or(EventTypeId::MAX)
    }

    fn field(&mut self, event: EventTypeId, path: Path) -> usize {
        match self.network.fields.get_mut(event as usize) {
            Some(fields) => fields.insert_full(path).0,
            None => usize::MAX,
        }
    }

    fn pattern(&mut self, term: &ast::Term, frame: &mut Frame) -> Pattern {
        if matches!(term.kind, ast::TermKind::Wildcard) {
            return Pattern::Present;
        }
        if let ast::TermKind::Var(var) = &term.kind
            && self.number(var) == Some(ANYTHING)
        {
            return Pattern::Present;
        }
        match self.term(term, frame) {
            Term::Known(Sym::Val(val)) => Pattern::Const(val),
            Term::Slot(slot) => Pattern::Slot(slot),
            _ => Pattern::Never,
        }
    }

    fn comparison(
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

    fn term(&mut self, term: &ast::Term, frame: &mut Frame) -> Term {
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
fn of_request(term: &ast::Term) -> Option<PinValue> {
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

impl Frame {
    fn is_leaf(&self) -> bool {
        !self.nested
    }

    /// Whether every value that comes from outside is of the request.
    fn asks_only_the_request(&self) -> bool {
        let mut names = (0..).zip(&self.names);
        names.all(|(slot, name)| matches!(name, Name::Param(_)) || self.local.contains(&slot))
    }
}
