//! A compiled policy: rules over leaves over cells, and which event concerns which.

use super::ask::Ask;
use super::dispatch::Dispatch;
use super::families::Families;
use super::trigger::{self, EventPlan};
use crate::automaton::build::{Leaf, Network};
use crate::automaton::cost::costs;
use crate::automaton::family::{self, each_use};
use crate::automaton::formula::{BreakShape, CellDef, CellId, CellOp, EventTypeId, Node, Term};
use crate::automaton::row::Slot;
use crate::eval::program::{Builder, Constant, Program, Test, TestId};
use crate::eval::{Asked, Guard, compile};
use crate::providers::{Call, Chain};
use crate::schema::Service;
use crate::trace::{Keep, Wanted};
use crate::value::EntityUid;
use dogwood_grammar::ast;
use foldhash::quality::RandomState;
use smol_str::SmolStr;
use std::collections::{BTreeSet, HashMap};

#[derive(Clone, Debug)]
pub struct Policy {
    pub(super) service: Service,
    pub(super) network: Network,
    pub(super) rules: Vec<Rule>,
    pub(super) leaves: Vec<Leaf>,
    /// The quick forms of the leaves that have one.
    pub(super) asks: Vec<Option<Ask>>,
    pub(super) families: Families,
    /// The conditions of all rules.
    pub(super) program: Program,
    /// What concerns an action of the schema, of a rule or of a matcher.
    actions: HashMap<EntityUid, ActionPlan, RandomState>,
    /// The rules for any action whatever.
    pub(super) everywhere: Dispatch,
    events: Vec<EventPlan>,
    /// The cells that an event no matcher names can change, in order.
    cells_of_others: Vec<CellId>,
    /// What is taken from the logged record of such an event.
    of_others: Vec<Wanted>,
    pub(super) longest_window: i64,
    /// What the rules ask of information providers, each call once, with the first rule that has it.
    pub(super) calls: Vec<(usize, Call)>,
}

/// What concerns one action.
#[derive(Clone, Debug, Default)]
pub(super) struct ActionPlan {
    /// The rules whose scope names the action or a group it is in.
    pub rules: Dispatch,
    kinds: Vec<(SmolStr, EventTypeId)>,
}

impl ActionPlan {
    pub fn event_type(&self, kind: &str) -> Option<EventTypeId> {
        let mut kinds = self.kinds.iter();
        Some(kinds.find(|(known, _)| known == kind)?.1)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub effect: ast::Effect,
    action: Head,
    /// Scope and conditions as one test, the action left out.
    pub condition: TestId,
    /// The conditions alone: the definition, asked where the test fails.
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
    /// The common rows of two others.
    Pair,
    /// When each of several things happened, each by a key of its own.
    Nested,
    /// What happened, gone through at each decision.
    Reread,
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
    /// Why one of them is more than constant.
    pub why: Option<&'static str>,
    /// The rules that ask it, directly or through other cells.
    pub rules: Vec<usize>,
}

impl Policy {
    /// Compiles checked rules, macros expanded.
    pub fn new(rules: &[ast::Rule], service: &Service) -> Policy {
        let mut parts = Parts {
            service,
            network: Network::default(),
            leaves: Vec::new(),
            equal: HashMap::new(),
            calls: Vec::new(),
            tests: Builder::default(),
            rule: 0,
            numbers: Vec::new(),
        };
        let rules: Vec<Rule> = rules
            .iter()
            .enumerate()
            .map(|(index, rule)| {
                parts.rule = index;
                Rule::new(rule, &mut parts)
            })
            .collect();
        let Parts {
            mut network,
            mut leaves,
            calls,
            tests,
            ..
        } = parts;
        network.drop_unasked(&mut leaves);
        network.share_windows(&mut leaves);
        family::merge(&mut network, &mut leaves);
        let families = Families::new(&network, &leaves);
        let asks = leaves.iter().map(|leaf| Ask::new(&network, leaf)).collect();
        network.values.pin();
        let program = tests.finish();
        let (mut actions, everywhere) = dispatch(&rules, service, &program, &families);
        for (number, id) in (0..).zip(&network.event_types) {
            let plan = actions.entry(id.action.clone()).or_default();
            plan.kinds.push((id.kind.clone(), number));
        }
        let pin = service.events.universal_pin.as_ref();
        let pin = pin.map(|pin| pin.field.as_slice());
        let (events, cells_of_others) = trigger::plans(&network, pin);
        let of_others = Wanted::paths(pin);
        let longest_window = network.cells.iter().map(CellDef::reach).max().unwrap_or(0);
        Policy {
            service: service.clone(),
            network,
            rules,
            leaves,
            asks,
            families,
            program,
            actions,
            everywhere,
            events,
            cells_of_others,
            of_others,
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

    pub(super) fn action(&self, action: &EntityUid) -> Option<&ActionPlan> {
        self.actions.get(action)
    }

    /// What it takes from the logged record of such an event. Explanations take more.
    pub(super) fn reads(&self, action: &EntityUid, kind: &str) -> Keep<'_> {
        let event_type = self.action(action).and_then(|plan| plan.event_type(kind));
        let plan = event_type.and_then(|event| self.event_plan(event));
        Keep::Only(plan.map_or(&self.of_others, EventPlan::wanted))
    }

    pub(super) fn event_plan(&self, event: EventTypeId) -> Option<&EventPlan> {
        self.events.get(event as usize)
    }

    /// The cells that an event of no known type can change, in order.
    pub(super) fn cells_of_others(&self) -> &[CellId] {
        &self.cells_of_others
    }

    /// The rules whose scope admits the action, in order.
    pub(super) fn rules_of(&self, action: &EntityUid) -> Vec<usize> {
        let own = self.action(action).map(|plan| plan.rules.rules.as_slice());
        let mut rules = self.everywhere.rules.clone();
        rules.extend(own.unwrap_or_default());
        rules.sort_unstable();
        rules
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
        let costs = costs(&self.network, &self.leaves);
        let summaries = self.network.cells.iter().zip(rules).enumerate();
        summaries
            .map(|(cell, (def, rules))| {
                let kind = self.kind(cell);
                let cost = costs.get(cell).copied().unwrap_or_default();
                let rows = |why: Option<_>| match why {
                    Some(_) => Cost::Rows,
                    None => Cost::Constant,
                };
                CellSummary {
                    kind,
                    window: def.window,
                    columns: def.columns.len(),
                    update: rows(cost.update),
                    lookup: rows(cost.lookup),
                    why: cost.update.or(cost.lookup),
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
                breaks: BreakShape::Parts(_),
                ..
            } => CellKind::Anchor,
            CellOp::Window { .. } => CellKind::Window,
            CellOp::Pair { .. } => CellKind::Pair,
            CellOp::Nested { .. } => CellKind::Nested,
            CellOp::Reread(_) => CellKind::Reread,
            CellOp::Formerly(_) | CellOp::Since { .. } => CellKind::Relation,
        }
    }

    /// The cells that the cells of a formula ask, each with how far it is looked back.
    pub(super) fn inner_uses(&self, node: &Node) -> BTreeSet<(CellId, i64)> {
        let mut found = BTreeSet::new();
        for cell in self.cells_under(node) {
            let nodes = self.network.cells.get(cell).map(|def| def.nodes());
            for node in nodes.into_iter().flatten() {
                each_use(node, &mut |cell| {
                    found.insert((cell.cell, cell.window));
                });
            }
        }
        found
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
                CellOp::Since { .. }
                | CellOp::Pair { .. }
                | CellOp::Nested { .. }
                | CellOp::Reread(_) => {
                    let nodes = def.nodes();
                    nodes.into_iter().for_each(|node| asked(node, &mut inner));
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
        Node::Among(cell, _, bounds) => {
            cells.insert(cell.cell);
            for (_, term) in bounds {
                asked_by_term(term, cells);
            }
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

/// The rules by action. An action that is in none of these has the rules for any action only.
fn dispatch(
    rules: &[Rule],
    service: &Service,
    program: &Program,
    families: &Families,
) -> (HashMap<EntityUid, ActionPlan, RandomState>, Dispatch) {
    let actions = &service.actions.actions;
    let mut members: HashMap<&EntityUid, Vec<&EntityUid>> = HashMap::new();
    for (uid, action) in actions {
        for group in &action.ancestors {
            members.entry(group).or_default().push(uid);
        }
    }
    let mut everywhere = Vec::new();
    let mut own: HashMap<&EntityUid, Vec<(usize, TestId)>> = HashMap::new();
    for (index, rule) in rules.iter().enumerate() {
        let rule_of = (index, rule.condition);
        match &rule.action {
            Head::Any => everywhere.push(rule_of),
            Head::Eq(uid) => own.entry(uid).or_default().push(rule_of),
            Head::In(groups) => {
                let mut admitted: Vec<&EntityUid> = Vec::new();
                for group in groups {
                    admitted.push(group);
                    admitted.extend(members.get(group).into_iter().flatten());
                }
                admitted.sort_unstable();
                admitted.dedup();
                for uid in admitted {
                    own.entry(uid).or_default().push(rule_of);
                }
            }
            Head::Is(..) | Head::Never => {}
        }
    }
    let plan = |rules| ActionPlan {
        rules: Dispatch::new(rules, program, families),
        kinds: Vec::new(),
    };
    let mut plans: HashMap<EntityUid, ActionPlan, RandomState> = HashMap::default();
    plans.extend(
        own.into_iter()
            .map(|(uid, rules)| (uid.clone(), plan(rules))),
    );
    (plans, Dispatch::new(everywhere, program, families))
}

/// What makes two leaves one: the formula, its width, and the request paths of its slots.
type LeafForm = (Node, usize, Vec<(Slot, usize)>);

/// The policy as rules add to it.
struct Parts<'p> {
    service: &'p Service,
    network: Network,
    leaves: Vec<Leaf>,
    /// The first of equal leaves, which stands for all of them.
    equal: HashMap<LeafForm, usize>,
    calls: Vec<(usize, Call)>,
    tests: Builder,
    /// The rule, and its leaves so far.
    rule: usize,
    numbers: Vec<usize>,
}

impl Asked for Parts<'_> {
    fn leaf(&mut self, temporal: &ast::Temporal) -> usize {
        let number = self.leaves.len();
        let leaf = self.network.leaf(temporal, &self.service.events);
        let asked = (leaf.node.clone(), leaf.width, leaf.params.clone());
        self.numbers.push(number);
        self.leaves.push(leaf);
        *self.equal.entry(asked).or_insert(number)
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
        let mut tests = Vec::with_capacity(3);
        for var in [ast::ScopeVar::Principal, ast::ScopeVar::Resource] {
            head(var).tests(var, &mut parts.tests, &mut tests);
        }
        tests.push(parts.tests.condition(&guard));
        Rule {
            effect: rule.effect,
            action: head(ast::ScopeVar::Action),
            condition: parts.tests.all(tests),
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
    /// The tests that the scope admits the principal or the resource. None of them can fail.
    fn tests(self, var: ast::ScopeVar, builder: &mut Builder, tests: &mut Vec<TestId>) {
        let path = builder.root(match var {
            ast::ScopeVar::Principal => ast::Var::Principal,
            ast::ScopeVar::Action => ast::Var::Action,
            ast::ScopeVar::Resource => ast::Var::Resource,
        });
        match self {
            Head::Any => {}
            Head::Eq(uid) => tests.push(builder.test(Test::Same(path, Constant::Entity(uid)))),
            Head::In(groups) => tests.push(builder.test(Test::In(path, groups))),
            Head::Is(ty, within) => {
                tests.push(builder.test(Test::Is(path, ty)));
                if let Some(group) = within {
                    tests.push(builder.test(Test::In(path, vec![group])));
                }
            }
            Head::Never => tests.push(builder.test(Test::Known(false))),
        }
    }
}
