//! From a temporal leaf of the syntax tree to a formula over cells.
//!
//! Names become slots, request paths become parameters, pins become patterns, conjuncts are put in the order
//! in which they are cheapest to join, and each operator over the past becomes a cell, shared with every
//! equal one.

mod terms;

use super::formula::{
    BreakShape, CellDef, CellOp, EventTypeId, LOCAL, Matcher, Node, Pattern, Term, Use,
};
use super::linear::Kept;
pub(crate) use super::network::{Leaf, Network, Path, Site};
use super::order::{break_shape, conjunction};
use super::reread::{self, Plan};
use super::rewrite::{Split, equal_to, split, used_once};
use super::row::{Slot, Sym};
use crate::schema::{EventId, EventSchema, PinValue};
use crate::value::EntityUid;
use dogwood_grammar::Span;
use dogwood_grammar::ast;
use indexmap::IndexSet;
use smol_str::SmolStr;
use std::collections::BTreeSet;
use terms::of_request;

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
    fn is_leaf(&self) -> bool {
        !self.nested
    }

    /// Whether every value that comes from outside is of the request.
    fn asks_only_the_request(&self) -> bool {
        let mut names = (0..).zip(&self.names);
        names.all(|(slot, name)| matches!(name, Name::Param(_)) || self.local.contains(&slot))
    }

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
        if !nested && let Some(plan) = self.reread(&op, window, &inner) {
            op = CellOp::Reread(Box::new(plan));
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

    /// What is asked of the events themselves, where rows would be too many to be kept.
    fn reread(&self, op: &CellOp, window: i64, inner: &Frame) -> Option<Plan> {
        let width = inner.names.len();
        let slots = (0..width).filter_map(|slot| Slot::try_from(slot).ok());
        let columns: Vec<Slot> = slots.filter(|slot| !inner.local.contains(slot)).collect();
        let (cells, open) = (&self.network.cells, &self.network.open);
        let def = CellDef {
            op: op.clone(),
            window,
            width,
            columns,
        };
        if (Kept { cells, open }).is_linear(&def) {
            return None;
        }
        reread::plan(op, (window, width), &def.columns, cells)
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
}
