//! One decision: which rules are satisfied, and what follows (language reference, "Run-time evaluation").

use super::history::History;
use super::policy::Policy;
use crate::automaton::build::Leaf;
use crate::automaton::row::{Row, Sym};
use crate::automaton::value::Interner;
use crate::eval::entities::Entities;
use crate::eval::{EvalError, Request, check_record, is_true};
use crate::event::{Event, RequestPart};
use crate::providers::Call;
use crate::value::Value;
use dogwood_grammar::ast::Effect;

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

/// Decides the last event of a history.
pub(super) fn decide(
    policy: &Policy,
    history: &History,
    values: &mut Interner,
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
    let mut asked = Asked::new(policy, event);
    let mut forbids = Vec::new();
    let mut permits = Vec::new();
    let mut errors = Vec::new();
    for &index in policy.rules_of(&event.action).iter() {
        let Some(rule) = policy.rules.get(index) else {
            continue;
        };
        if !rule.principal.admits(request.principal, &request)
            || !rule.resource.admits(request.resource, &request)
        {
            continue;
        }
        let mut leaf = |number: usize| {
            let leaf = rule
                .leaves
                .get(number)
                .and_then(|leaf| policy.leaves.get(*leaf));
            leaf.is_some_and(|leaf| asked.leaf(leaf, history, values))
        };
        match is_true(&rule.guard, &request, &mut leaf) {
            Ok(true) if rule.effect == Effect::Forbid => forbids.push(index),
            Ok(true) => permits.push(index),
            Ok(false) => {}
            Err(error) => errors.push(RuleError {
                rule: Some(index),
                error,
            }),
        }
    }
    let (verdict, rules) = if !forbids.is_empty() {
        (Verdict::Deny, forbids)
    } else if !permits.is_empty() {
        (Verdict::Allow, permits)
    } else {
        (Verdict::Deny, Vec::new())
    };
    Decision {
        verdict,
        rules,
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

/// The request paths that leaves read, each looked up once a decision.
pub(super) struct Asked<'a> {
    policy: &'a Policy,
    event: &'a Event,
    params: Vec<Option<Sym>>,
}

impl<'a> Asked<'a> {
    pub fn new(policy: &'a Policy, event: &'a Event) -> Asked<'a> {
        Asked {
            policy,
            event,
            params: vec![None; policy.network.params.len()],
        }
    }

    pub fn leaf(&mut self, leaf: &Leaf, history: &History, values: &mut Interner) -> bool {
        let row = self.row(leaf, values);
        history.moment(self.policy).holds(&leaf.node, row)
    }

    /// The leaf's slots with all request paths filled in.
    pub fn row(&mut self, leaf: &Leaf, values: &mut Interner) -> Row {
        let mut row = Row::unknown(leaf.width);
        for (slot, param) in &leaf.params {
            row.set(*slot, Some(self.param(*param, values)));
        }
        row
    }

    fn param(&mut self, number: usize, values: &mut Interner) -> Sym {
        if let Some(Some(known)) = self.params.get(number) {
            return known.clone();
        }
        let path = self.policy.network.params.get_index(number);
        let part = self.event.request.as_ref();
        let value = path.and_then(|path| part?.read(path));
        let sym = value.map_or(Sym::Bottom, |value| Sym::Val(values.value(&value)));
        if let Some(place) = self.params.get_mut(number) {
            *place = Some(sym.clone());
        }
        sym
    }
}
