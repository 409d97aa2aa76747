//! One decision: which rules are satisfied, and what follows (language reference, "Run-time evaluation").

use super::dispatch::Dispatch;
use super::families::Known;
use super::policy::{ActionPlan, Policy};
use crate::automaton::build::Leaf;
use crate::automaton::row::{Row, Sym};
use crate::automaton::solve::Moment;
use crate::automaton::value::{Val, Values};
use crate::eval::entities::Entities;
use crate::eval::program::{self, Run, TestId, Truth};
use crate::eval::{EvalError, Request, check_record, is_true};
use crate::event::{Event, RequestPart};
use crate::providers::Call;
use crate::schema::PinValue;
use crate::value::{EntityUid, Value};
use dogwood_grammar::ast::Effect;
use smallvec::SmallVec;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    Allow,
    Deny,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// The rules that determined it, sorted: the satisfied forbids of a denial, the satisfied permits of an
    /// allowance; empty where no permit was satisfied or the request could not be judged.
    pub rules: Vec<usize>,
    pub errors: Vec<RuleError>,
}

/// A rule that was skipped, or (without a rule) why the request could not be judged at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    pub rule: Option<usize>,
    pub error: EvalError,
}

impl Decision {
    /// A denial because the request cannot be judged.
    pub(super) fn refused(error: EvalError) -> Decision {
        let errors = vec![RuleError { rule: None, error }];
        Decision {
            verdict: Verdict::Deny,
            rules: Vec::new(),
            errors,
        }
    }

    pub fn allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }
}

/// What a decision needs room for, kept from one to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    tests: program::Scratch,
    asked: Answers,
}

/// The rules that determine the verdict are few, as a rule.
type Satisfied = SmallVec<[usize; 8]>;

/// Rules with their conditions.
type Concerned = SmallVec<[(usize, TestId); 16]>;

/// Leaves of a family.
type Holding = SmallVec<[usize; 8]>;

/// Decides the event of a moment.
pub(super) fn decide(
    policy: &Policy,
    action: Option<&ActionPlan>,
    moment: &Moment<'_>,
    values: &mut impl Values,
    scratch: &mut Scratch,
    event: &Event,
) -> Decision {
    let provided = match provided(policy, event) {
        Ok(provided) => provided,
        Err(error) => {
            return Decision {
                verdict: Verdict::Deny,
                rules: Vec::new(),
                errors: vec![error],
            };
        }
    };
    let none = RequestPart::default();
    let part = event.request.as_ref().unwrap_or(&none);
    let request = match request(policy, event, part, &provided) {
        Ok(request) => request,
        Err(error) => return Decision::refused(error),
    };
    let mut asked = Asked::new(policy, event, &mut scratch.asked);
    let own = action.map(|plan| &plan.rules);
    let mut concerned = Concerned::new();
    for dispatch in [Some(&policy.everywhere), own].into_iter().flatten() {
        asked.of_families(dispatch, moment, values, &mut concerned);
    }
    let mut leaf = |number: usize| asked.leaf(number, moment, values);
    let mut run = Run::new(&policy.program, &request, &mut scratch.tests, &mut leaf);
    let mut forbids = Satisfied::new();
    let mut permits = Satisfied::new();
    let mut errors = Vec::new();
    let mut visit = |run: &mut Run<'_, '_>, index: usize, condition: TestId| {
        let truth = run.truth(condition);
        if truth == Truth::False {
            return;
        }
        let Some(rule) = policy.rules.get(index) else {
            return;
        };
        let satisfied = match truth {
            Truth::Error => is_true(&rule.guard, &request, &mut |number| run.leaf(number)),
            known => Ok(known == Truth::True),
        };
        match satisfied {
            Ok(true) if rule.effect == Effect::Forbid => forbids.push(index),
            Ok(true) => permits.push(index),
            Ok(false) => {}
            Err(error) => errors.push(RuleError {
                rule: Some(index),
                error,
            }),
        }
    };
    for dispatch in [Some(&policy.everywhere), own].into_iter().flatten() {
        dispatch.each(&mut run, &mut visit);
    }
    for (rule, condition) in concerned {
        visit(&mut run, rule, condition);
    }
    errors.sort_by_key(|error| error.rule);
    let (verdict, mut rules) = if !forbids.is_empty() {
        (Verdict::Deny, forbids)
    } else if !permits.is_empty() {
        (Verdict::Allow, permits)
    } else {
        (Verdict::Deny, Satisfied::new())
    };
    rules.sort_unstable();
    Decision {
        verdict,
        rules: rules.to_vec(),
        errors,
    }
}

/// What the information providers say, for the calls of all rules: whether a rule concerns the event makes no
/// difference to what it asks.
fn provided(policy: &Policy, event: &Event) -> Result<Vec<Value>, RuleError> {
    let providers = &policy.service.providers;
    let calls = policy.calls.iter();
    let answer = |(rule, call): &(usize, Call)| {
        providers.answer(call, event).map_err(|why| RuleError {
            rule: Some(*rule),
            error: EvalError::Provider {
                name: call.provider.clone(),
                why,
            },
        })
    };
    calls.map(answer).collect()
}

fn request<'a>(
    policy: &'a Policy,
    event: &'a Event,
    part: &'a RequestPart,
    provided: &'a [Value],
) -> Result<Request<'a>, EvalError> {
    let principal = part.principal.as_ref().ok_or(EvalError::NoPrincipal)?;
    let resource = part.resource.as_ref().ok_or(EvalError::NoResource)?;
    check_record(&part.context)?;
    let entities = Entities {
        given: &part.entities,
    };
    let schema = &policy.service.actions;
    entities.check(schema).map_err(EvalError::BadEntities)?;
    let (action, context) = (&event.action, &part.context);
    Ok(Request {
        principal,
        action,
        resource,
        context,
        entities,
        schema,
        provided,
    })
}

/// What the decision at hand has looked up already, marked with its number.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    number: u32,
    /// Request paths that leaves read; nothing where one leads nowhere.
    params: Vec<(u32, Option<Val>)>,
    /// The truths of leaves, by the first of equal ones.
    truths: Vec<(u32, bool)>,
    /// Whether one lookup has answered for a family.
    families: Vec<(u32, bool)>,
}

/// What leaves say of one event.
pub(super) struct Asked<'a> {
    policy: &'a Policy,
    event: &'a Event,
    known: &'a mut Answers,
}

impl<'a> Asked<'a> {
    pub fn new(policy: &'a Policy, event: &'a Event, known: &'a mut Answers) -> Asked<'a> {
        let (params, leaves) = (policy.network.params.len(), policy.leaves.len());
        known.number = known.number.wrapping_add(1);
        if known.number == 0 || known.params.len() != params || known.truths.len() != leaves {
            *known = Answers {
                number: 1,
                params: vec![(0, None); params],
                truths: vec![(0, false); leaves],
                families: vec![(0, false); policy.families.len()],
            };
        }
        Asked {
            policy,
            event,
            known,
        }
    }

    pub fn leaf(&mut self, number: usize, moment: &Moment<'_>, values: &mut impl Values) -> bool {
        match self.known.truths.get(number) {
            Some((decision, truth)) if *decision == self.known.number => return *truth,
            _ => {}
        }
        if let Some(truth) = self.of_family(number, moment, values) {
            return truth;
        }
        let Some(leaf) = self.policy.leaves.get(number) else {
            return false;
        };
        let policy = self.policy;
        let truth = match policy.asks.get(number) {
            Some(Some(ask)) => {
                let mut param = |param: usize| self.param(param, values);
                ask.holds(moment, &mut param)
            }
            _ => {
                let row = self.row(leaf, values);
                moment.holds(&leaf.node, row)
            }
        };
        if let Some(place) = self.known.truths.get_mut(number) {
            *place = (self.known.number, truth);
        }
        truth
    }

    /// The truth of a leaf that asks a family of cells as others do: one lookup answers for all of them.
    fn of_family(
        &mut self,
        number: usize,
        moment: &Moment<'_>,
        values: &mut impl Values,
    ) -> Option<bool> {
        let (at, _) = self.policy.families.of(number)?;
        let decision = self.known.number;
        if let Some((known, answered)) = self.known.families.get(at)
            && *known == decision
        {
            // Those that hold have been marked.
            return answered.then_some(false);
        }
        let holding = self.family(at, moment, values)?;
        Some(holding.contains(&number))
    }

    /// The leaves of a family that hold; nothing where they have to be asked one by one.
    fn family(
        &mut self,
        at: usize,
        moment: &Moment<'_>,
        values: &mut impl Values,
    ) -> Option<Holding> {
        let family = self.policy.families.get(at)?;
        let mut key = Known::new();
        let mut open = false;
        for param in &family.columns {
            let val = param.map(|param| self.param(param, values));
            open |= val == Some(None);
            key.push(val.flatten());
        }
        let mut holding = Holding::new();
        // What the request does not have equals nothing.
        let answered = open
            || family.each(moment, &key, &mut |leaf| {
                holding.push(leaf);
            });
        for leaf in &holding {
            if let Some(place) = self.known.truths.get_mut(*leaf) {
                *place = (self.known.number, true);
            }
        }
        if let Some(place) = self.known.families.get_mut(at) {
            *place = (self.known.number, answered);
        }
        answered.then_some(holding)
    }

    /// The rules of a dispatch whose leaves of families hold.
    fn of_families(
        &mut self,
        dispatch: &'a Dispatch,
        moment: &Moment<'_>,
        values: &mut impl Values,
        rules: &mut Concerned,
    ) {
        for group in &dispatch.families {
            match self.family(group.family, moment, values) {
                None => rules.extend_from_slice(&group.rules),
                Some(holding) => {
                    let found = holding.iter().filter_map(|leaf| group.by_leaf.get(leaf));
                    found.for_each(|of_leaf| rules.extend_from_slice(of_leaf));
                }
            }
        }
    }

    /// The leaf's slots with all request paths filled in.
    pub fn row(&mut self, leaf: &Leaf, values: &mut impl Values) -> Row {
        let mut row = Row::unknown(leaf.width);
        for (slot, param) in &leaf.params {
            let val = self.param(*param, values);
            row.set(*slot, Some(val.map_or(Sym::Bottom, Sym::Val)));
        }
        for (slot, val) in &leaf.constants {
            row.set(*slot, Some(Sym::Val(*val)));
        }
        row
    }

    /// The value at a path of the request; nothing where it leads nowhere.
    fn param(&mut self, number: usize, values: &mut impl Values) -> Option<Val> {
        match self.known.params.get(number) {
            Some((decision, val)) if *decision == self.known.number => return *val,
            _ => {}
        }
        let path = self.policy.network.params.get_index(number);
        let part = self.event.request.as_ref();
        let val = path.and_then(|path| read(part?, path, values));
        if let Some(place) = self.known.params.get_mut(number) {
            *place = (self.known.number, val);
        }
        val
    }
}

fn read(part: &RequestPart, path: &PinValue, values: &mut impl Values) -> Option<Val> {
    let of_scope = |uid: &Option<EntityUid>, values: &mut _| {
        uid.as_ref().map(|uid| Values::entity(values, uid))
    };
    match path {
        PinValue::Principal(path) if path.is_empty() => of_scope(&part.principal, values),
        PinValue::Resource(path) if path.is_empty() => of_scope(&part.resource, values),
        path => part.read(path).map(|value| values.value(&value)),
    }
}
