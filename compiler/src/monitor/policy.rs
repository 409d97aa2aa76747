//! A compiled policy: rules over leaves over cells, and which event concerns which.

use crate::automaton::build::{Leaf, Network};
use crate::automaton::formula::{BreakShape, CellId, CellOp, EventTypeId, Node, Term, Triggers};
use crate::eval::{Asked, Guard, Request, compile};
use crate::event::Event;
use crate::providers::{Call, Chain};
use crate::schema::Service;
use crate::value::EntityUid;
use dogwood_grammar::ast;
use smol_str::SmolStr;
use std::collections::{BTreeSet, HashMap};

#[derive(Clone, Debug)]
pub struct Policy {
    pub(super) service: Service,
    pub(super) network: Network,
    pub(super) rules: Vec<Rule>,
    pub(super) leaves: Vec<Leaf>,
    /// The rules whose scope admits an action of the schema.
    by_action: HashMap<EntityUid, Vec<usize>>,
    event_types: HashMap<EntityUid, HashMap<SmolStr, EventTypeId>>,
    /// The cells an event of a type can change, in order; and an event no matcher names.
    triggers: Vec<Vec<CellId>>,
    triggers_of_others: Vec<CellId>,
    pub(super) longest_window: i64,
    /// What the rules ask of information providers, each call once, with the first rule that has it.
    pub(super) calls: Vec<(usize, Call)>,
}

#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub effect: ast::Effect,
    pub principal: Head,
    action: Head,
    pub resource: Head,
    pub guard: Guard,
    /// Numbers of the leaves, in the order of the text.
    pub leaves: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(super) enum Head {
    Any,
    Eq(EntityUid),
    In(Vec<EntityUid>),
    Is(SmolStr, Option<EntityUid>),
    /// A template slot.
    Never,
}

/// What a cell is, for those who ask what a rule costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CellKind {
    /// The latest time of each key.
    Latest,
    /// The newest anchor of each key and what has broken it.
    Anchor,
    /// The rows of the last event.
    Previous,
    /// A running count or sum of each key.
    Window,
    /// Rows with open conditions, or rows that depend on other cells.
    Relation,
}

/// The work of one event or decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cost {
    Constant,
    /// Grows with the rows the window holds.
    Rows,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellSummary {
    pub kind: CellKind,
    /// Seconds.
    pub window: i64,
    /// The columns by which rows are told apart.
    pub columns: usize,
    /// Of an event that concerns the cell.
    pub update: Cost,
    /// Of a decision that asks it.
    pub lookup: Cost,
    /// The rules that ask it, directly or through other cells.
    pub rules: Vec<usize>,
}

impl Policy {
    /// Compiles checked rules, macros expanded.
    pub fn new(rules: &[ast::Rule], service: &Service) -> Policy {
        let mut network = Network::default();
        let mut leaves = Vec::new();
        let mut calls = Vec::new();
        let rules: Vec<Rule> = rules
            .iter()
            .enumerate()
            .map(|(index, rule)| {
                let mut parts = Parts {
                    service,
                    network: &mut network,
                    leaves: &mut leaves,
                    calls: &mut calls,
                    rule: index,
                    numbers: Vec::new(),
                };
                Rule::new(rule, &mut parts)
            })
            .collect();
        network.values.pin();
        let by_action = service
            .actions
            .actions
            .keys()
            .map(|action| (action.clone(), admitting(&rules, action, service)))
            .collect();
        let mut event_types: HashMap<EntityUid, HashMap<SmolStr, EventTypeId>> = HashMap::new();
        for (number, id) in (0..).zip(&network.event_types) {
            let kinds = event_types.entry(id.action.clone()).or_default();
            kinds.insert(id.kind.clone(), number);
        }
        let mut triggers = vec![Vec::new(); network.event_types.len()];
        let mut triggers_of_others = Vec::new();
        for (cell, def) in network.cells.iter().enumerate() {
            match def.triggers() {
                Triggers::All => {
                    triggers.iter_mut().for_each(|cells| cells.push(cell));
                    triggers_of_others.push(cell);
                }
                Triggers::Types(types) => {
                    for event_type in types {
                        if let Some(cells) = triggers.get_mut(event_type as usize) {
                            cells.push(cell);
                        }
                    }
                }
            }
        }
        let longest_window = network
            .cells
            .iter()
            .map(|def| def.window)
            .max()
            .unwrap_or(0);
        Policy {
            service: service.clone(),
            network,
            rules,
            leaves,
            by_action,
            event_types,
            triggers,
            triggers_of_others,
            longest_window,
            calls,
        }
    }

    pub fn service(&self) -> &Service {
        &self.service
    }

    /// Whether events of this kind are decided.
    pub fn decides(&self, kind: &str) -> bool {
        self.service.events.decision_kinds.contains(kind)
    }

    pub(super) fn event_type(&self, event: &Event) -> Option<EventTypeId> {
        self.event_types
            .get(&event.action)?
            .get(&event.kind)
            .copied()
    }

    pub(super) fn triggered(&self, event: Option<EventTypeId>) -> &[CellId] {
        match event {
            Some(event) => self.triggers.get(event as usize).map_or(&[], Vec::as_slice),
            None => &self.triggers_of_others,
        }
    }

    /// The rules whose scope admits the action, in order.
    pub(super) fn rules_of(&self, action: &EntityUid) -> std::borrow::Cow<'_, [usize]> {
        match self.by_action.get(action) {
            Some(rules) => rules.as_slice().into(),
            None => admitting(&self.rules, action, &self.service).into(),
        }
    }

    /// The cells of the policy, in the order in which an event reaches them.
    pub fn cells(&self) -> Vec<CellSummary> {
        let mut rules: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.network.cells.len()];
        for (index, rule) in self.rules.iter().enumerate() {
            for leaf in rule.leaves.iter().filter_map(|leaf| self.leaves.get(*leaf)) {
                for cell in self.cells_under(&leaf.node) {
                    if let Some(askers) = rules.get_mut(cell) {
                        askers.insert(index);
                    }
                }
            }
        }
        let summaries = self.network.cells.iter().zip(rules).enumerate();
        summaries
            .map(|(cell, (def, rules))| {
                let kind = self.kind(cell);
                let scans = self.network.indexes.get(cell).is_some_and(|masks| {
                    masks
                        .iter()
                        .any(|mask| mask.count_ones() as usize != def.columns.len())
                });
                let rows = |grows: bool| if grows { Cost::Rows } else { Cost::Constant };
                CellSummary {
                    kind,
                    window: def.window,
                    columns: def.columns.len(),
                    update: rows(kind == CellKind::Relation),
                    lookup: rows(kind == CellKind::Relation || scans),
                    rules: rules.into_iter().collect(),
                }
            })
            .collect()
    }

    pub(super) fn kind(&self, cell: CellId) -> CellKind {
        let Some(def) = self.network.cells.get(cell) else {
            return CellKind::Relation;
        };
        match &def.op {
            CellOp::Formerly(_) if def.flat() => CellKind::Latest,
            CellOp::Previous(_) => CellKind::Previous,
            CellOp::Since {
                breaks: BreakShape::Negated(_) | BreakShape::Run(_),
                ..
            } => CellKind::Anchor,
            CellOp::Window { .. } => CellKind::Window,
            CellOp::Formerly(_) | CellOp::Since { .. } => CellKind::Relation,
        }
    }

    /// Every cell a formula asks, directly or through other cells.
    pub(super) fn cells_under(&self, node: &Node) -> BTreeSet<CellId> {
        let mut found = BTreeSet::new();
        asked(node, &mut found);
        let mut work: Vec<CellId> = found.iter().copied().collect();
        while let Some(cell) = work.pop() {
            let Some(def) = self.network.cells.get(cell) else {
                continue;
            };
            let mut inner = BTreeSet::new();
            match &def.op {
                CellOp::Formerly(body) | CellOp::Previous(body) | CellOp::Window { body, .. } => {
                    asked(body, &mut inner);
                }
                CellOp::Since { left, right, .. } => {
                    asked(left, &mut inner);
                    asked(right, &mut inner);
                }
            }
            work.extend(inner.difference(&found));
            found.extend(inner);
        }
        found
    }
}

/// The cells a formula asks directly.
pub(super) fn asked(node: &Node, cells: &mut BTreeSet<CellId>) {
    match node {
        Node::And(parts) => parts.iter().for_each(|part| asked(part, cells)),
        Node::Not(body) | Node::Exists(_, body) => asked(body, cells),
        Node::Bind(_, term) => asked_by_term(term, cells),
        Node::Compare(_, left, right) => {
            asked_by_term(left, cells);
            asked_by_term(right, cells);
        }
        Node::Cell(cell) => {
            cells.insert(cell.cell);
        }
        Node::Match(_) | Node::Tp(_) | Node::Never => {}
    }
}

fn asked_by_term(term: &Term, cells: &mut BTreeSet<CellId>) {
    match term {
        Term::Known(_) | Term::Slot(_) => {}
        Term::Arith(_, left, right) => {
            asked_by_term(left, cells);
            asked_by_term(right, cells);
        }
        Term::Total { body, .. } => asked(body, cells),
        Term::Window { cell, .. } => {
            cells.insert(cell.cell);
        }
    }
}

fn admitting(rules: &[Rule], action: &EntityUid, service: &Service) -> Vec<usize> {
    let groups = service
        .actions
        .actions
        .get(action)
        .map(|action| &action.ancestors);
    let is_in =
        |group: &EntityUid| group == action || groups.is_some_and(|groups| groups.contains(group));
    let admits = |rule: &Rule| match &rule.action {
        Head::Any => true,
        Head::Eq(uid) => uid == action,
        Head::In(groups) => groups.iter().any(is_in),
        Head::Is(..) | Head::Never => false,
    };
    rules
        .iter()
        .enumerate()
        .filter(|(_, rule)| admits(rule))
        .map(|(index, _)| index)
        .collect()
}

/// The policy's parts as one rule adds to them.
struct Parts<'p> {
    service: &'p Service,
    network: &'p mut Network,
    leaves: &'p mut Vec<Leaf>,
    calls: &'p mut Vec<(usize, Call)>,
    /// The rule, and its leaves so far.
    rule: usize,
    numbers: Vec<usize>,
}

impl Asked for Parts<'_> {
    fn leaf(&mut self, temporal: &ast::Temporal) -> usize {
        self.numbers.push(self.leaves.len());
        let leaf = self.network.leaf(temporal, &self.service.events);
        self.leaves.push(leaf);
        self.numbers.len() - 1
    }

    fn call(&mut self, chain: &Chain<'_>) -> usize {
        let call = Call::new(chain);
        let known = self.calls.iter().position(|(_, known)| *known == call);
        known.unwrap_or_else(|| {
            self.calls.push((self.rule, call));
            self.calls.len() - 1
        })
    }
}

impl Rule {
    fn new(rule: &ast::Rule, parts: &mut Parts<'_>) -> Rule {
        let clauses = rule.clauses.iter().map(|clause| {
            let body = match &clause.body {
                ast::ClauseBody::Expr(expr) => compile(expr, parts),
                ast::ClauseBody::Temporal(temporal) => Guard::Leaf(parts.leaf(temporal)),
            };
            match clause.kind {
                ast::ClauseKind::When => body,
                ast::ClauseKind::Unless => Guard::Not(Box::new(body)),
            }
        });
        let guard = Guard::And(clauses.collect());
        let head = |var| {
            rule.scope
                .head(var)
                .map_or(Head::Any, |head| match &head.constraint {
                    ast::Constraint::Any => Head::Any,
                    ast::Constraint::Eq(of) => uid(of).map_or(Head::Never, Head::Eq),
                    ast::Constraint::In(of) => {
                        uid(of).map_or(Head::Never, |uid| Head::In(vec![uid]))
                    }
                    ast::Constraint::InAny(of) => Head::In(of.iter().map(entity).collect()),
                    ast::Constraint::Is { ty, within: None } => Head::Is(ty.text(), None),
                    ast::Constraint::Is {
                        ty,
                        within: Some(of),
                    } => uid(of).map_or(Head::Never, |uid| Head::Is(ty.text(), Some(uid))),
                })
        };
        Rule {
            effect: rule.effect,
            principal: head(ast::ScopeVar::Principal),
            action: head(ast::ScopeVar::Action),
            resource: head(ast::ScopeVar::Resource),
            guard,
            leaves: std::mem::take(&mut parts.numbers),
        }
    }
}

fn uid(of: &ast::HeadRef) -> Option<EntityUid> {
    match of {
        ast::HeadRef::Entity(of) => Some(entity(of)),
        ast::HeadRef::Slot(_) => None,
    }
}

fn entity(of: &ast::EntityRef) -> EntityUid {
    EntityUid::new(of.ty.text(), of.id.value.clone())
}

impl Head {
    pub fn admits(&self, uid: &EntityUid, request: &Request<'_>) -> bool {
        match self {
            Head::Any => true,
            Head::Eq(only) => only == uid,
            Head::In(groups) => groups.iter().any(|group| request.is_in(uid, group)),
            Head::Is(ty, within) => {
                uid.ty == *ty
                    && within
                        .as_ref()
                        .is_none_or(|group| request.is_in(uid, group))
            }
            Head::Never => false,
        }
    }
}
