//! What a feature reads: one document at one revision, what it is checked against, and all others.

use crate::builtin;
use crate::document::Document;
use crate::mark::Root;
use crate::shelf::{Setup, Shelf};
use dogwood_compiler::explain::short_name;
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::ast::{Constraint, HeadRef, Item, MacroDef, Rule, ScopeVar};
use dogwood_compiler::macros::{Library, expand_rule};
use dogwood_compiler::schema::{ActionDecl, RecordType, Type};
use dogwood_compiler::value::EntityUid;
use smol_str::SmolStr;
use std::path::Path;
use std::sync::Arc;

#[derive(Clone)]
pub struct Snapshot {
    pub document: Arc<Document>,
    pub setup: Arc<Setup>,
    pub shelf: Shelf,
}

/// A place in some document.
#[derive(Clone, Debug)]
pub struct Place {
    pub document: Arc<Document>,
    pub span: Span,
}

impl Snapshot {
    pub fn new(shelf: &Shelf, path: &Path) -> Option<Snapshot> {
        Some(Snapshot {
            document: shelf.document(path)?,
            setup: shelf.setup(path),
            shelf: shelf.clone(),
        })
    }

    pub fn text(&self) -> &str {
        &self.document.text
    }

    pub fn items(&self) -> &[Item] {
        &self.document.policy().tree.items
    }

    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.items().iter().filter_map(|item| match item {
            Item::Rule(rule) => Some(rule),
            _ => None,
        })
    }

    /// The rule at an offset, with its number among all.
    pub fn rule_at(&self, offset: usize) -> Option<(usize, &Rule)> {
        self.rules()
            .enumerate()
            .find(|(_, rule)| contains(rule.span, offset))
    }

    pub fn item_at(&self, offset: usize) -> Option<&Item> {
        self.items()
            .iter()
            .find(|item| contains(item_span(item), offset))
    }

    /// The macros that the rules of this document can call.
    pub fn library(&self) -> Library {
        let own = Library::define(&self.document.policy().tree).0;
        self.setup.library.overridden_by(own)
    }

    /// A rule with its calls written out; none where something is wrong with them.
    pub fn expanded(&self, rule: &Rule) -> Option<Rule> {
        let expanded = expand_rule(rule, &self.library());
        expanded.errors.is_empty().then_some(expanded.rule)
    }

    /// Where a macro is defined: in this document, in the library, or built in.
    pub fn macro_named(&self, name: &str) -> Option<(&MacroDef, &Document, bool)> {
        let in_library = self.setup.macros.as_deref();
        let built_in = in_library.is_none().then(|| builtin::macros().as_ref());
        let documents = [Some(self.document.as_ref()), in_library, built_in];
        documents.into_iter().flatten().find_map(|document| {
            let def = macros(document).find(|def| def.name.text == name)?;
            let built_in = builtin::is(&document.path);
            Some((def, document, built_in))
        })
    }

    /// Every macro that can be called here, with the document it is in.
    pub fn all_macros(&self) -> Vec<(&MacroDef, &Document)> {
        let mut found: Vec<(&MacroDef, &Document)> = Vec::new();
        let in_library = self.setup.macros.as_deref();
        let built_in = in_library.is_none().then(|| builtin::macros().as_ref());
        for document in [Some(self.document.as_ref()), in_library, built_in]
            .into_iter()
            .flatten()
        {
            for def in macros(document) {
                if found
                    .iter()
                    .all(|(known, _)| known.name.text != def.name.text)
                {
                    found.push((def, document));
                }
            }
        }
        found
    }

    /// The action that a test calls so.
    pub fn action_called(&self, id: &str) -> Option<&EntityUid> {
        let mut actions = self.setup.service.actions.actions.keys();
        actions.find(|uid| uid.id == id || short_name(uid) == id)
    }

    /// The actions a rule can apply to, as its head says.
    pub fn actions_of(&self, rule: Option<&Rule>) -> Vec<&ActionDecl> {
        let schema = &self.setup.service.actions;
        let all = || {
            let concrete = schema.actions.values();
            concrete.filter(|action| action.applies_to.is_some())
        };
        let head = rule.and_then(|rule| rule.scope.head(ScopeVar::Action));
        let uid = |entity: &dogwood_compiler::grammar::ast::EntityRef| {
            EntityUid::new(entity.ty.text(), entity.id.value.clone())
        };
        match head.map(|head| &head.constraint) {
            Some(Constraint::Eq(HeadRef::Entity(entity))) => {
                schema.actions.get(&uid(entity)).into_iter().collect()
            }
            Some(Constraint::In(HeadRef::Entity(entity))) => {
                let group = uid(entity);
                let members =
                    all().filter(|action| action.uid == group || action.ancestors.contains(&group));
                members.collect()
            }
            Some(Constraint::InAny(entities)) => {
                let wanted: Vec<EntityUid> = entities.iter().map(uid).collect();
                let members = all().filter(|action| {
                    wanted
                        .iter()
                        .any(|one| action.uid == *one || action.ancestors.contains(one))
                });
                members.collect()
            }
            _ => all().collect(),
        }
    }

    /// The record an attribute of `root` is looked for in, for each action the rule can apply to.
    pub fn records_of(&self, rule: Option<&Rule>, root: Root) -> Vec<RecordType> {
        let schema = &self.setup.service.actions;
        let mut records: Vec<RecordType> = Vec::new();
        for action in self.actions_of(rule) {
            let Some(applies_to) = &action.applies_to else {
                continue;
            };
            let types = match root {
                Root::Context => {
                    records.push(applies_to.context.clone());
                    continue;
                }
                Root::Principal => &applies_to.principals,
                Root::Resource => &applies_to.resources,
                Root::Action => continue,
            };
            let entities = types
                .iter()
                .filter_map(|name| schema.entity_types.get(name));
            records.extend(entities.map(|entity| entity.attrs.clone()));
        }
        records.dedup();
        records
    }

    /// The types of a field of the request, one for each kind of action that has it, and whether it is always
    /// there.
    pub fn field_types(
        &self,
        rule: Option<&Rule>,
        root: Root,
        path: &[SmolStr],
    ) -> Vec<(Type, bool)> {
        let mut found: Vec<(Type, bool)> = Vec::new();
        for record in self.records_of(rule, root) {
            if let Some(ty) = self.below(&record, path)
                && !found.contains(&ty)
            {
                found.push(ty);
            }
        }
        found
    }

    /// What a path leads to from a record.
    fn below(&self, record: &RecordType, path: &[SmolStr]) -> Option<(Type, bool)> {
        let (last, way) = path.split_last()?;
        let attr = self.inside(record, way)?.attrs.get(last)?;
        Some((attr.ty.clone(), attr.required))
    }

    /// The record a path leads to.
    pub fn inside<'s>(
        &'s self,
        record: &'s RecordType,
        path: &[SmolStr],
    ) -> Option<&'s RecordType> {
        let mut record = record;
        for word in path {
            record = match &record.attrs.get(word)?.ty {
                Type::Record(inner) => inner,
                Type::Entity(name) => {
                    let entity = self.setup.service.actions.entity_types.get(name)?;
                    &entity.attrs
                }
                _ => return None,
            };
        }
        Some(record)
    }
}

pub fn macros(document: &Document) -> impl Iterator<Item = &MacroDef> {
    document
        .policy()
        .tree
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Macro(def) => Some(def),
            _ => None,
        })
}

pub fn item_span(item: &Item) -> Span {
    match item {
        Item::Rule(rule) => rule.span,
        Item::Macro(def) => def.span,
        Item::Broken(span) => *span,
    }
}

pub fn contains(span: Span, offset: usize) -> bool {
    span.start as usize <= offset && offset <= span.end as usize
}

pub fn within(inner: Span, outer: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}
