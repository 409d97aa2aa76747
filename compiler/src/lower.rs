//! Rules as plain Cedar (language reference, "Lowering of a rule").
//!
//! ```text
//! rule i: temporal block n   ─► context.policy_<i>__temporal_<n>        a Bool
//!         provider call n    ─► context.providers.policy_<i>_p_<n>      of the declared type
//! ```
//!
//! The schema is widened by the same attributes, for the actions the rule can apply to. What the monitor
//! works out for a request goes into them, and any Cedar engine can take the decision from there.

mod error;
mod hoist;

pub use error::LowerError;

use crate::compile::CheckedRule;
use crate::providers::{Export, chains, exports, home};
use crate::schema::{AttrType, EntityType, Service, Type, write};
use crate::value::EntityUid;
use dogwood_grammar::Span;
use dogwood_grammar::ast::action_schema::{
    ActionSchemaFile, AttrDecl, DeclKind, Namespace, RecordTy, Ty, TyKind,
};
use dogwood_grammar::print::print_cedar_rule;
use hoist::Hoisted;
use smol_str::{SmolStr, format_smolstr};
use std::collections::{BTreeMap, BTreeSet};

/// The attribute of the context that holds the answers of providers.
pub const PROVIDERS: &str = "providers";
/// The type of it.
pub const PROVIDERS_TYPE: &str = "DogwoodProviders";

/// A policy set as Cedar.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// In the order of the rules.
    pub policies: Vec<String>,
    /// The widened schema.
    pub schema: ActionSchemaFile,
    pub temporal: Vec<TemporalField>,
    pub providers: Vec<ProviderField>,
    /// Event kinds that are decided.
    pub decision_kinds: BTreeSet<SmolStr>,
}

/// A temporal block that became an attribute of the context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemporalField {
    pub name: SmolStr,
    pub rule: usize,
    /// What the attribute stands for.
    pub condition: String,
    /// The actions whose context has it.
    pub actions: Vec<EntityUid>,
}

/// A call of a provider that became an attribute of `context.providers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderField {
    pub name: SmolStr,
    pub rule: usize,
    pub call: String,
    pub ty: Type,
    pub actions: Vec<EntityUid>,
}

impl Lowered {
    /// Whether the policies can be decided without anything worked out beforehand.
    pub fn self_contained(&self) -> bool {
        self.temporal.is_empty() && self.providers.is_empty()
    }
}

/// The rules must be without errors. Where one file is lowered among others, `distincter` is the first
/// part of its rules' names; `policy` otherwise.
pub fn lower(
    rules: &[CheckedRule],
    service: &Service,
    distincter: &str,
) -> Result<Lowered, Vec<LowerError>> {
    let providers = &service.providers;
    let calls: Vec<_> = rules.iter().flat_map(|rule| chains(&rule.rule)).collect();
    // A clash of exported names was an error of the check.
    let exports = exports(providers, &service.actions, &calls).unwrap_or_default();
    let mut lowered = Lowered {
        policies: Vec::new(),
        schema: ActionSchemaFile::default(),
        temporal: Vec::new(),
        providers: Vec::new(),
        decision_kinds: service.events.decision_kinds.clone(),
    };
    let mut errors = Vec::new();
    let mut actions = service.actions.clone();
    for checked in rules {
        let key = format_smolstr!("{distincter}_{}", checked.index);
        let Hoisted {
            rule,
            temporal,
            calls,
        } = hoist::hoist(&checked.rule, &key, providers, &exports);
        lowered.policies.push(print_cedar_rule(&rule));
        for (name, block) in temporal {
            for uid in &checked.targets {
                let context = actions
                    .actions
                    .get_mut(uid)
                    .and_then(|a| a.applies_to.as_mut());
                let Some(applies) = context else { continue };
                let attr = AttrType {
                    ty: Type::Bool,
                    required: true,
                };
                if applies.context.attrs.insert(name.clone(), attr).is_some() {
                    errors.push(clash(checked, block.span, &name, uid));
                }
            }
            lowered.temporal.push(TemporalField {
                name,
                rule: checked.index,
                condition: dogwood_grammar::print::print_cond(&block.body),
                actions: checked.targets.clone(),
            });
        }
        for call in calls {
            for uid in &checked.targets {
                let declared = service.actions.actions.get(uid);
                let context = declared
                    .and_then(|a| a.applies_to.as_ref())
                    .map(|a| &a.context);
                if context.is_some_and(|context| context.attrs.contains_key(PROVIDERS)) {
                    errors.push(clash(checked, call.span, PROVIDERS, uid));
                }
            }
            lowered.providers.push(ProviderField {
                name: call.name,
                rule: checked.index,
                call: call.text,
                ty: call.ty,
                actions: checked.targets.clone(),
            });
        }
    }
    let home = home(&service.actions);
    for export in &exports {
        actions.entity_types.remove(&export.declared);
        let ty = EntityType {
            name: export.exported.clone(),
            parents: BTreeSet::new(),
            ancestors: BTreeSet::new(),
            attrs: Default::default(),
            tags: None,
            choices: Some(export.choices.clone()),
        };
        actions.entity_types.insert(export.exported.clone(), ty);
    }
    lowered.schema = write::tree(&actions);
    annotate(&mut lowered.schema, &exports);
    if !lowered.providers.is_empty() {
        let full = qualified(&home, PROVIDERS_TYPE);
        if service.actions.entity_types.contains_key(&full) {
            let rule = lowered.providers.first().map(|field| field.rule);
            let checked = rules.iter().find(|checked| Some(checked.index) == rule);
            errors.extend(checked.map(|checked| LowerError::TypeClash {
                name: full.clone(),
                source: checked.source,
                span: checked.rule.span,
            }));
        }
        widen_by_providers(&mut lowered, &home, &full, &exports, &actions);
    }
    if errors.is_empty() {
        Ok(lowered)
    } else {
        Err(errors)
    }
}

fn clash(checked: &CheckedRule, span: Span, field: &str, action: &EntityUid) -> LowerError {
    LowerError::FieldClash {
        field: SmolStr::new(field),
        action: action.clone(),
        source: checked.source,
        span,
    }
}

fn qualified(namespace: &str, name: &str) -> SmolStr {
    if namespace.is_empty() {
        SmolStr::new(name)
    } else {
        format_smolstr!("{namespace}::{name}")
    }
}

/// Puts the annotations of the declarations on the exported types.
fn annotate(schema: &mut ActionSchemaFile, exports: &[Export]) {
    for namespace in &mut schema.namespaces {
        let space = namespace
            .name
            .as_ref()
            .map_or_else(SmolStr::default, |name| name.text());
        for decl in &mut namespace.decls {
            let DeclKind::Entity { names, .. } = &decl.kind else {
                continue;
            };
            let full = names.first().map(|name| qualified(&space, &name.text));
            let export = exports.iter().find(|e| Some(&e.exported) == full.as_ref());
            let notes = export.into_iter().flat_map(|export| &export.annotations);
            // A schema knows annotations by words only.
            let notes = notes.filter(|(key, _)| write::is_word(key));
            let notes = notes.map(|(key, value)| write::annotation(key, value));
            decl.annotations.extend(notes);
        }
    }
}

/// Declares the record of answers, and gives it to every action some rule with a call applies to.
fn widen_by_providers(
    lowered: &mut Lowered,
    home: &SmolStr,
    full: &SmolStr,
    exports: &[Export],
    actions: &crate::schema::ActionSchema,
) {
    let renamed: BTreeMap<&SmolStr, &SmolStr> =
        exports.iter().map(|e| (&e.declared, &e.exported)).collect();
    let attrs = lowered.providers.iter().map(|field| {
        let ty = hoist::renamed(&field.ty, &renamed);
        attr(&field.name, write::ty(actions, &ty))
    });
    let record = RecordTy {
        attrs: attrs.collect(),
        span: Span::default(),
    };
    let mut decl = write::decl(DeclKind::Type {
        name: write::ident(PROVIDERS_TYPE),
        ty: write::ty_of(TyKind::Record(record)),
    });
    decl.annotations
        .push(write::annotation("dogwood", "providers"));
    let fields = &lowered.providers;
    let widened: BTreeSet<&EntityUid> = fields.iter().flat_map(|field| &field.actions).collect();
    for namespace in &mut lowered.schema.namespaces {
        let space = name_of(namespace);
        for decl in &mut namespace.decls {
            let DeclKind::Action {
                names,
                applies_to: Some(applies),
                ..
            } = &mut decl.kind
            else {
                continue;
            };
            let ty = qualified(&space, "Action");
            let is = |uid: &&EntityUid| uid.ty == ty && names.iter().any(|n| n.value == uid.id);
            if widened.iter().copied().any(|uid| is(&uid))
                && let Some(Ty {
                    kind: TyKind::Record(record),
                    ..
                }) = &mut applies.context
            {
                let ty = write::ty_of(TyKind::Name(write::name(full)));
                record.attrs.push(attr(PROVIDERS, ty));
            }
        }
    }
    let at = lowered
        .schema
        .namespaces
        .iter_mut()
        .find(|ns| name_of(ns) == *home);
    if let Some(namespace) = at {
        namespace.decls.insert(0, decl);
    }
}

fn name_of(namespace: &Namespace) -> SmolStr {
    namespace
        .name
        .as_ref()
        .map_or_else(SmolStr::default, |name| name.text())
}

fn attr(name: &str, ty: Ty) -> AttrDecl {
    AttrDecl {
        annotations: Vec::new(),
        name: write::string(name),
        optional: false,
        ty,
        span: Span::default(),
    }
}
