//! Rules in plain English.
//!
//! In: a checked rule and the schemas. Out: one or two sentences a person can read aloud, made from the normal
//! form of the rule, so that two spellings of one rule read the same. Macros that were left as calls are told
//! by their names. Nothing is left out: what has no wording is shown as code.

mod cause;
mod cedar;
mod claim;
pub(crate) mod code;
pub mod cost;
mod describe;
pub mod graph;
mod macros;
mod noun;
mod pattern;
mod permits;
mod scene;
mod temporal;
mod why;
mod witness;
pub(crate) mod words;

use crate::grammar::ast::*;
use crate::normal;
use crate::schema::Service;
pub use cause::{Cause, Change, cause, changes};
use claim::Group;
pub use describe::describe;
pub use macros::{MacroExplanation, explain_macro};
use scene::Scene;
use serde::Serialize;
use smol_str::SmolStr;
use std::collections::BTreeSet;
use std::fmt;
pub use why::{NamedRule, why, why_after};
pub use witness::{Seen, Witness, length as spoken_span, wait as spoken_wait};
pub use words::span as length_in_words;

/// One rule, explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// As in the `[rules: …]` of a verdict, counted from 0.
    pub rule: usize,
    /// Its `@id`.
    pub id: Option<String>,
    /// `policy.dw:12`.
    pub place: String,
    pub effect: &'static str,
    pub sentences: Vec<String>,
    /// Its `@description`.
    pub description: Option<String>,
}

/// Explains a rule. `place` says where it stands.
pub fn explain(
    rule: &Rule,
    number: usize,
    place: impl Into<String>,
    service: &Service,
) -> Explanation {
    Explanation {
        rule: number,
        id: given(rule.annotation("id")),
        place: place.into(),
        effect: match rule.effect {
            Effect::Permit => "permit",
            Effect::Forbid => "forbid",
        },
        sentences: sentences(rule, service),
        description: given(rule.annotation("description")),
    }
}

fn given(text: Option<&str>) -> Option<String> {
    text.map(str::trim)
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.id {
            Some(id) => writeln!(f, "rule {}: {id} ({})", self.rule, self.place)?,
            None => writeln!(f, "rule {} ({})", self.rule, self.place)?,
        }
        writeln!(f, "{}", words::wrap(&self.sentences.join(" "), "  ", 96))?;
        if let Some(description) = &self.description {
            let says = if self.effect == "forbid" {
                "When it denies, it says"
            } else {
                "Described as"
            };
            writeln!(
                f,
                "{}",
                words::wrap(&format!("{says}: {description}"), "  ", 96)
            )?;
        }
        Ok(())
    }
}

impl Speech<'_> {
    /// What makes a rule without temporal parts apply.
    fn guard(&self, rule: &Rule) -> String {
        let said = rule.clauses.iter().map(|clause| match &clause.body {
            ClauseBody::Expr(expr) => self.expr(expr, clause.kind == ClauseKind::When),
            ClauseBody::Temporal(temporal) => {
                let holds = clause.kind == ClauseKind::When;
                self.cond(&temporal.body, holds, &mut Scene::default())
            }
        });
        match Group::all(said.collect()) {
            Group::All(parts) if parts.is_empty() => {
                format!("it forbids {} without conditions", self.scope(&rule.scope))
            }
            guard => guard.say(),
        }
    }
}

/// What one rule says, sentence by sentence.
pub fn sentences(rule: &Rule, service: &Service) -> Vec<String> {
    let rule = &normal::form(rule);
    let speech = Speech::new(rule, service);
    let (mut whens, mut happened, mut unless) = (Vec::new(), Vec::new(), Vec::new());
    let mut looks_back = false;
    for clause in &rule.clauses {
        let said = match &clause.body {
            ClauseBody::Expr(expr) => {
                looks_back |= has_temporal(expr);
                speech.expr(expr, true)
            }
            ClauseBody::Temporal(temporal) => {
                looks_back = true;
                speech.cond(&temporal.body, true, &mut Scene::default())
            }
        };
        match (clause.kind, &clause.body) {
            (ClauseKind::Unless, _) => unless.push(said),
            (_, ClauseBody::Temporal(_)) => happened.push(said),
            (_, ClauseBody::Expr(_)) => whens.push(said),
        }
    }
    happened.retain(|said| *said != Group::All(Vec::new()));
    unless.retain(|said| *said != Group::Any(Vec::new()));

    let mut text = match rule.effect {
        Effect::Permit => "Permits ".to_owned(),
        Effect::Forbid => "Forbids ".to_owned(),
    };
    text.push_str(&speech.scope(&rule.scope));
    let guard = Group::all(whens);
    let never = Group::Any(Vec::new());
    if guard == never || happened.contains(&never) || unless.contains(&Group::All(Vec::new())) {
        return vec!["Never applies: its condition is always false.".to_owned()];
    }
    let guarded = guard != Group::All(Vec::new());
    if guarded {
        text.push_str(" when ");
        text.push_str(&guard.say());
    }
    if !happened.is_empty() {
        text.push_str(if guarded { ", and " } else { " when " });
        text.push_str(&Group::all(happened).say());
    }
    if !unless.is_empty() {
        text.push_str(if guarded || text.contains(',') {
            ", unless "
        } else {
            " unless "
        });
        text.push_str(&Group::any(unless).say());
    }
    text.push('.');
    let mut sentences = vec![text];
    if looks_back && let Some(pin) = &service.events.universal_pin {
        let field: Vec<&str> = pin.field.iter().map(SmolStr::as_str).collect();
        sentences.push(if field == ["callerPrincipal"] {
            "It sees only earlier events of the same principal.".to_owned()
        } else {
            format!(
                "It sees only earlier events with the same {}.",
                self::field(&field)
            )
        });
    }
    sentences
}

fn has_temporal(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Temporal(_) => true,
        ExprKind::And(parts) | ExprKind::Or(parts) => parts.iter().any(has_temporal),
        ExprKind::Not(inner) => has_temporal(inner),
        ExprKind::If { test, yes, no } => {
            [test, yes, no].into_iter().any(|part| has_temporal(part))
        }
        ExprKind::Compare { left, right, .. } => has_temporal(left) || has_temporal(right),
        _ => false,
    }
}

/// A field's name in backquotes; `input.` goes without saying.
pub(crate) fn field(words: &[&str]) -> String {
    match words {
        ["input", rest @ ..] if !rest.is_empty() => format!("`{}`", rest.join(".")),
        all => format!("`{}`", all.join(".")),
    }
}

/// The name of an action as people say it: without the namespace of a box.
pub fn short_name(action: &crate::value::EntityUid) -> String {
    action_name(&action.ty, &action.id)
}

/// `shell:spawn` for a Box action, `payments::charge` for one of another namespace.
pub(crate) fn action_name(ty: &str, id: &str) -> String {
    let namespace = ty
        .strip_suffix("Action")
        .unwrap_or(ty)
        .trim_end_matches(':');
    match namespace {
        "" | "Box" => id.to_owned(),
        other => format!("{other}::{id}"),
    }
}

/// How to speak about one rule: its schemas, and what is known wherever it applies.
struct Speech<'a> {
    service: &'a Service,
    /// Type and id of the actions the scope names one by one; empty where it does not.
    actions: Vec<(SmolStr, SmolStr)>,
    decision_kinds: BTreeSet<SmolStr>,
    /// `field == literal` tests of the guard.
    facts: Vec<(String, String)>,
}

impl<'a> Speech<'a> {
    fn new(rule: &Rule, service: &'a Service) -> Speech<'a> {
        let actions = match rule
            .scope
            .head(ScopeVar::Action)
            .map(|head| &head.constraint)
        {
            Some(Constraint::Eq(HeadRef::Entity(action))) => vec![action],
            Some(Constraint::InAny(actions)) => actions.iter().collect(),
            _ => Vec::new(),
        };
        let actions = actions
            .into_iter()
            .map(|uid| (uid.ty.text(), uid.id.value.clone()))
            .collect();
        let decision_kinds = service.events.decision_kinds.clone();
        let mut speech = Speech {
            service,
            actions,
            decision_kinds,
            facts: Vec::new(),
        };
        let mut facts = Vec::new();
        for clause in &rule.clauses {
            if let (ClauseKind::When, ClauseBody::Expr(guard)) = (clause.kind, &clause.body) {
                speech.facts(guard, &mut facts);
            }
        }
        speech.facts = facts;
        speech
    }

    /// Without knowing which rule it is about.
    fn anywhere(service: &'a Service) -> Speech<'a> {
        Speech {
            service,
            actions: Vec::new(),
            decision_kinds: BTreeSet::new(),
            facts: Vec::new(),
        }
    }

    fn scope(&self, scope: &Scope) -> String {
        let head = |var| {
            scope
                .head(var)
                .map_or(&Constraint::Any, |head| &head.constraint)
        };
        let mut out = match head(ScopeVar::Action) {
            Constraint::Any => "every action".to_owned(),
            Constraint::Eq(action) => self.reference(action),
            Constraint::In(group) => format!("every action in {}", self.reference(group)),
            Constraint::InAny(actions) => {
                let names: Vec<String> = actions.iter().map(|uid| self.entity(uid)).collect();
                words::list(&names, "and")
            }
            Constraint::Is { ty, .. } => format!("every action of type `{}`", ty.text()),
        };
        for (var, before, any) in [
            (ScopeVar::Principal, "by", "anyone"),
            (ScopeVar::Resource, "on", "anything"),
        ] {
            let said = match head(var) {
                Constraint::Any | Constraint::InAny(_) => continue,
                Constraint::Eq(entity) => self.reference(entity),
                Constraint::In(group) => format!("{any} in {}", self.reference(group)),
                Constraint::Is { ty, within } => {
                    let name = ty.text();
                    let article = words::article(&name);
                    let within = within
                        .as_ref()
                        .map(|group| format!(" in {}", self.reference(group)));
                    format!("{article} `{name}`{}", within.unwrap_or_default())
                }
            };
            out.push_str(&format!(" {before} {said}"));
        }
        out
    }

    fn reference(&self, reference: &HeadRef) -> String {
        match reference {
            HeadRef::Entity(entity) => self.entity(entity),
            HeadRef::Slot(name) => format!("`?{}`", name.text),
        }
    }

    /// An action by its short name, a choice of an enumeration by its id, another entity in full.
    fn entity(&self, entity: &EntityRef) -> String {
        let ty = entity.ty.text();
        if entity
            .ty
            .path
            .last()
            .is_some_and(|word| word.text == "Action")
        {
            return format!("`{}`", action_name(&ty, &entity.id.value));
        }
        match self.service.actions.entity_types.get(&ty) {
            Some(declared) if declared.choices.is_some() => format!("`{}`", entity.id.value),
            _ => format!("`{}`", code::entity(entity)),
        }
    }

    fn action(&self, event: &EventName) -> String {
        action_name(&event.ty.text(), &event.action.value)
    }
}

#[cfg(test)]
mod tests;
