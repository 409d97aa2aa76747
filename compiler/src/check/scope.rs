//! What the head of a rule admits: its actions, and for each the entity types that can ask for it.

use super::Report;
use super::problem::Problem;
use crate::nearest::nearest;
use crate::schema::{ActionDecl, ActionSchema, AppliesTo};
use crate::value::EntityUid;
use dogwood_grammar::Span;
use dogwood_grammar::ast::{Constraint, EntityRef, Head, HeadRef, Name, Rule, ScopeVar};
use smol_str::SmolStr;
use std::collections::BTreeSet;

pub struct Scope<'s> {
    /// The concrete actions the head names, whoever asks.
    pub actions: Vec<EntityUid>,
    /// Those of them for which some type of principal and of resource remains.
    pub targets: Vec<Target<'s>>,
}

pub struct Target<'s> {
    pub action: &'s ActionDecl,
    pub applies: &'s AppliesTo,
    /// The declared principal types the head admits; not empty.
    pub principals: Vec<&'s SmolStr>,
    pub resources: Vec<&'s SmolStr>,
}

pub fn resolve<'s>(rule: &Rule, schema: &'s ActionSchema, report: &mut Report) -> Scope<'s> {
    let before = report.len();
    let mut heads = Heads { schema, report };
    let principals = heads.entity_types(rule.scope.head(ScopeVar::Principal));
    let resources = heads.entity_types(rule.scope.head(ScopeVar::Resource));
    let actions = heads.actions(rule.scope.head(ScopeVar::Action));
    let mut targets = Vec::new();
    for action in &actions {
        let Some(applies) = &action.applies_to else {
            continue;
        };
        let admitted = |declared: &'s [SmolStr], by: &Admitted| -> Vec<&'s SmolStr> {
            declared
                .iter()
                .filter(|ty| by.as_ref().is_none_or(|by| by.contains(*ty)))
                .collect()
        };
        let principals = admitted(&applies.principals, &principals);
        let resources = admitted(&applies.resources, &resources);
        if !principals.is_empty() && !resources.is_empty() {
            targets.push(Target {
                action,
                applies,
                principals,
                resources,
            });
        }
    }
    if targets.is_empty() && report.len() == before {
        impossible(rule, &actions, [&principals, &resources], report);
    }
    let concrete = actions.iter().filter(|action| action.applies_to.is_some());
    Scope {
        actions: concrete.map(|action| action.uid.clone()).collect(),
        targets,
    }
}

type Admitted = Option<BTreeSet<SmolStr>>;

fn impossible(
    rule: &Rule,
    actions: &[&ActionDecl],
    [principals, resources]: [&Admitted; 2],
    report: &mut Report,
) {
    let head = rule.scope.head(ScopeVar::Action);
    let concrete = actions.iter().any(|action| action.applies_to.is_some());
    match head {
        Some(Head {
            constraint: Constraint::Eq(HeadRef::Entity(group)),
            span,
            ..
        }) if !concrete => {
            let problem = Problem::GroupAction {
                name: group.id.value.clone(),
                head: *span,
            };
            report.add(group.span, problem);
        }
        _ => {
            let first = actions.iter().find_map(|action| {
                let applies = action.applies_to.as_ref()?;
                Some((
                    action.uid.id.clone(),
                    applies.principals.clone(),
                    applies.resources.clone(),
                ))
            });
            // One part may be wrong by itself; otherwise it is how they go together.
            let applies = || {
                actions
                    .iter()
                    .filter_map(|action| action.applies_to.as_ref())
            };
            let never = |declared: &dyn Fn(&AppliesTo) -> bool| !applies().any(declared);
            let admits = |by: &Admitted, types: &[SmolStr]| {
                by.as_ref()
                    .is_none_or(|by| types.iter().any(|ty| by.contains(ty)))
            };
            let wrong = if !concrete {
                None
            } else if never(&|applies| admits(principals, &applies.principals)) {
                rule.scope.head(ScopeVar::Principal)
            } else if never(&|applies| admits(resources, &applies.resources)) {
                rule.scope.head(ScopeVar::Resource)
            } else {
                None
            };
            let span = wrong.map_or(rule.scope.span, |head| head.span);
            report.add(span, Problem::ImpossibleScope { first });
        }
    }
}

/// Reports the slots of a template.
pub fn templates(rule: &Rule, report: &mut Report) {
    for head in &rule.scope.heads {
        let reference = match &head.constraint {
            Constraint::Eq(reference) | Constraint::In(reference) => reference,
            Constraint::Is {
                within: Some(reference),
                ..
            } => reference,
            _ => continue,
        };
        if let HeadRef::Slot(slot) = reference {
            let name = slot.text.clone();
            report.add(slot.span, Problem::Template { name });
        }
    }
}

struct Heads<'a, 's> {
    schema: &'s ActionSchema,
    report: &'a mut Report,
}

impl<'s> Heads<'_, 's> {
    /// The types a head admits; nothing for all of them.
    fn entity_types(&mut self, head: Option<&Head>) -> Option<BTreeSet<SmolStr>> {
        match &head?.constraint {
            Constraint::Any | Constraint::InAny(_) => None,
            Constraint::Eq(reference) => {
                let entity = self.entity(reference)?;
                Some(BTreeSet::from([entity.ty.text()]))
            }
            Constraint::In(reference) => self.below(reference),
            Constraint::Is { ty, within } => {
                let mut admitted = BTreeSet::from([self.entity_type(ty)?]);
                if let Some(within) = within {
                    let below = self.below(within)?;
                    admitted.retain(|ty| below.contains(ty));
                }
                Some(admitted)
            }
        }
    }

    /// The types of which an entity can be in this one.
    fn below(&mut self, reference: &HeadRef) -> Option<BTreeSet<SmolStr>> {
        let ty = self.entity(reference)?.ty.text();
        Some(
            self.schema
                .types_in(&ty)
                .map(|entity| entity.name.clone())
                .collect(),
        )
    }

    fn entity<'r>(&mut self, reference: &'r HeadRef) -> Option<&'r EntityRef> {
        match reference {
            HeadRef::Slot(slot) => {
                self.report.add(
                    slot.span,
                    Problem::Template {
                        name: slot.text.clone(),
                    },
                );
                None
            }
            HeadRef::Entity(entity) => {
                check_entity(self.schema, entity, self.report).then_some(entity)
            }
        }
    }

    fn entity_type(&mut self, name: &Name) -> Option<SmolStr> {
        check_entity_type(self.schema, name, self.report).then(|| name.text())
    }

    fn actions(&mut self, head: Option<&Head>) -> Vec<&'s ActionDecl> {
        match head.map(|head| &head.constraint) {
            None | Some(Constraint::Any | Constraint::Is { .. }) => {
                self.schema.actions.values().collect()
            }
            Some(Constraint::Eq(reference)) => {
                let found = self.action(reference);
                found.into_iter().collect()
            }
            Some(Constraint::In(HeadRef::Entity(group))) => self.members([group]),
            Some(Constraint::In(HeadRef::Slot(slot))) => {
                self.report.add(
                    slot.span,
                    Problem::Template {
                        name: slot.text.clone(),
                    },
                );
                Vec::new()
            }
            Some(Constraint::InAny(groups)) => self.members(groups),
        }
    }

    fn action(&mut self, reference: &HeadRef) -> Option<&'s ActionDecl> {
        let HeadRef::Entity(entity) = reference else {
            if let HeadRef::Slot(slot) = reference {
                self.report.add(
                    slot.span,
                    Problem::Template {
                        name: slot.text.clone(),
                    },
                );
            }
            return None;
        };
        let uid = EntityUid::new(entity.ty.text(), entity.id.value.clone());
        let found = self.schema.actions.get(&uid);
        if found.is_none() {
            unknown_action(
                self.schema,
                &entity.ty,
                &entity.id.value,
                entity.id.span,
                self.report,
            );
        }
        found
    }

    fn members<'r>(
        &mut self,
        groups: impl IntoIterator<Item = &'r EntityRef>,
    ) -> Vec<&'s ActionDecl> {
        let mut wanted: BTreeSet<EntityUid> = BTreeSet::new();
        for group in groups {
            let uid = EntityUid::new(group.ty.text(), group.id.value.clone());
            if self.schema.actions.contains_key(&uid) {
                wanted.insert(uid);
            } else {
                unknown_action(
                    self.schema,
                    &group.ty,
                    &group.id.value,
                    group.id.span,
                    self.report,
                );
            }
        }
        let member = |action: &&ActionDecl| {
            wanted.contains(&action.uid) || !action.ancestors.is_disjoint(&wanted)
        };
        self.schema.actions.values().filter(member).collect()
    }
}

// --------------------------------------------------------------------------- names of entities

/// Whether an entity literal can exist: its type is declared, and its id is one of the choices of an
/// enumerated type. Actions must be declared.
pub fn check_entity(schema: &ActionSchema, entity: &EntityRef, report: &mut Report) -> bool {
    let ty = entity.ty.text();
    if schema.is_action_type(&ty) {
        let known = schema
            .actions
            .contains_key(&EntityUid::new(ty, entity.id.value.clone()));
        if !known {
            unknown_action(schema, &entity.ty, &entity.id.value, entity.id.span, report);
        }
        return known;
    }
    if !check_entity_type(schema, &entity.ty, report) {
        return false;
    }
    let Some(choices) = schema
        .entity_types
        .get(&ty)
        .and_then(|ty| ty.choices.as_ref())
    else {
        return true;
    };
    if choices.contains(&entity.id.value) {
        return true;
    }
    let problem = Problem::UnknownChoice {
        ty,
        name: entity.id.value.clone(),
        nearest: nearest(&entity.id.value, choices),
        choices: choices.clone(),
    };
    report.add(entity.id.span, problem);
    false
}

pub fn check_entity_type(schema: &ActionSchema, name: &Name, report: &mut Report) -> bool {
    let text = name.text();
    if schema.entity_types.contains_key(&text) || schema.is_action_type(&text) {
        return true;
    }
    let nearest = nearest(&text, schema.entity_types.keys());
    report.add(
        name.span,
        Problem::UnknownEntityType {
            name: text,
            nearest,
        },
    );
    false
}

/// Says that there is no such action: the type in front is wrong, or the name.
pub fn unknown_action(
    schema: &ActionSchema,
    ty: &Name,
    id: &SmolStr,
    span: Span,
    report: &mut Report,
) {
    let written = ty.text();
    let homes: Vec<SmolStr> = schema
        .actions
        .keys()
        .filter(|uid| uid.id == *id)
        .map(|uid| uid.ty.clone())
        .collect();
    if let Some(home) = homes.first() {
        let problem = Problem::ActionElsewhere {
            name: id.clone(),
            written,
            home: home.clone(),
        };
        return report.add(ty.span, problem);
    }
    let same: Vec<SmolStr> = schema
        .actions
        .keys()
        .filter(|uid| uid.ty == written)
        .map(|uid| uid.id.clone())
        .collect();
    if same.is_empty() {
        let types: Vec<SmolStr> = schema.actions.keys().map(|uid| uid.ty.clone()).collect();
        let nearest = nearest(&written, &types);
        let problem = Problem::UnknownActionType {
            name: written,
            nearest,
        };
        return report.add(ty.span, problem);
    }
    let proposed = nearest(id, &same);
    report.add(
        span,
        Problem::UnknownAction {
            name: id.clone(),
            nearest: proposed,
            known: same,
        },
    );
}
