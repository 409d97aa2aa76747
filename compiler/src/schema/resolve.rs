//! From the syntax tree of an action schema to types with every name resolved.
//!
//! A name inside `namespace N` means, in this order: `N::name`, `name` outside any namespace, a
//! built-in type. A qualified name means exactly what it says. Common types are written out where they
//! are used, so nothing after this phase sees a type name that still needs looking up.

use super::error::SchemaError;
use super::{
    ActionDecl, ActionSchema, AppliesTo, AttrType, EntityType, Extension, Notes, RecordType, Type,
};
use crate::nearest::nearest;
use crate::value::EntityUid;
use dogwood_grammar::Span;
use dogwood_grammar::ast::action_schema::{
    self as ast, ActionSchemaFile, DeclKind, EntityBody, RecordTy, Ty, TyKind,
};
use dogwood_grammar::ast::{Name, Str};
use indexmap::IndexMap;
use smol_str::{SmolStr, format_smolstr};
use std::collections::{BTreeMap, BTreeSet};

/// Deepest nesting of a common type written out.
const MAX_TYPE_DEPTH: usize = 128;
/// Most steps, into a type or to another one, on the way to a built-in or entity type.
const MAX_STEPS: usize = 500;
/// Most type nodes of a whole schema once common types are written out.
const MAX_TYPE_NODES: usize = 500_000;

/// Resolves what can be resolved; the schema is to be used only if there are no errors.
pub fn resolve(file: &ActionSchemaFile) -> (ActionSchema, Vec<SchemaError>) {
    let mut resolver = Resolver {
        declared: Declared::default(),
        ..Resolver::default()
    };
    resolver.collect(file);
    let mut schema = resolver.schema();
    if resolver.errors.is_empty() {
        schema.notes = Notes::of(file);
    }
    (schema, resolver.errors)
}

#[derive(Default)]
struct Declared<'a> {
    types: BTreeMap<SmolStr, Declaration<'a, Ty>>,
    entities: BTreeMap<SmolStr, Declaration<'a, EntityBody>>,
    actions: IndexMap<EntityUid, Declaration<'a, DeclKind>>,
}

struct Declaration<'a, T> {
    namespace: SmolStr,
    body: &'a T,
    span: Span,
}

#[derive(Default)]
struct Resolver<'a> {
    declared: Declared<'a>,
    /// Common types already written out; `None` after an error.
    resolved: BTreeMap<SmolStr, Option<Written>>,
    /// The common types being written out, outermost first.
    open: Vec<SmolStr>,
    depth: usize,
    nodes: usize,
    errors: Vec<SchemaError>,
}

/// A common type written out.
struct Written {
    ty: Type,
    /// Nodes in all.
    size: usize,
}

fn qualified(namespace: &str, name: &str) -> SmolStr {
    if namespace.is_empty() {
        SmolStr::new(name)
    } else {
        format_smolstr!("{namespace}::{name}")
    }
}

fn builtin(name: &str) -> Option<Type> {
    Some(match name.strip_prefix("__cedar::").unwrap_or(name) {
        "Bool" => Type::Bool,
        "Long" => Type::Long,
        "String" => Type::String,
        "decimal" => Type::Ext(Extension::Decimal),
        "ipaddr" => Type::Ext(Extension::IpAddr),
        "datetime" => Type::Ext(Extension::Datetime),
        "duration" => Type::Ext(Extension::Duration),
        _ => return None,
    })
}

const BUILTIN_NAMES: [&str; 7] = [
    "Bool", "Long", "String", "decimal", "ipaddr", "datetime", "duration",
];
const RESERVED_TYPE_NAMES: [&str; 8] = [
    "Bool",
    "Boolean",
    "Long",
    "String",
    "Set",
    "Record",
    "Entity",
    "Extension",
];

// ---------------------------------------------------------------------------- what is declared

impl<'a> Resolver<'a> {
    fn collect(&mut self, file: &'a ActionSchemaFile) {
        let mut namespaces: BTreeMap<SmolStr, Span> = BTreeMap::new();
        for namespace in &file.namespaces {
            let name = namespace
                .name
                .as_ref()
                .map_or_else(SmolStr::default, Name::text);
            if let Some(written) = &namespace.name {
                if written.path.iter().any(|word| word.text == "__cedar") {
                    self.errors
                        .push(SchemaError::ReservedNamespace { span: written.span });
                }
                if let Some(first) = namespaces.insert(name.clone(), written.span) {
                    self.duplicate("namespace", &name, written.span, first);
                }
            }
            for decl in &namespace.decls {
                self.collect_decl(&name, &decl.kind);
            }
        }
        self.find_shadowing();
    }

    fn collect_decl(&mut self, namespace: &SmolStr, decl: &'a DeclKind) {
        match decl {
            DeclKind::Type { name, ty } => {
                if RESERVED_TYPE_NAMES.contains(&name.text.as_str()) {
                    self.errors.push(SchemaError::ReservedTypeName {
                        name: name.text.clone(),
                        span: name.span,
                    });
                }
                let full = qualified(namespace, &name.text);
                let earlier = self.declared.types.get(&full).map(|d| d.span);
                let entity = self.declared.entities.get(&full).map(|d| d.span);
                if let Some(first) = earlier.or(entity) {
                    return self.duplicate("type", &full, name.span, first);
                }
                let declaration = Declaration {
                    namespace: namespace.clone(),
                    body: ty,
                    span: name.span,
                };
                self.declared.types.insert(full, declaration);
            }
            DeclKind::Entity { names, body } => {
                for name in names {
                    let full = qualified(namespace, &name.text);
                    let earlier = self.declared.entities.get(&full).map(|d| d.span);
                    let common = self.declared.types.get(&full).map(|d| d.span);
                    if let Some(first) = earlier.or(common) {
                        self.duplicate("entity type", &full, name.span, first);
                        continue;
                    }
                    let declaration = Declaration {
                        namespace: namespace.clone(),
                        body,
                        span: name.span,
                    };
                    self.declared.entities.insert(full, declaration);
                }
            }
            DeclKind::Action { names, .. } => {
                let ty = qualified(namespace, "Action");
                for name in names {
                    let uid = EntityUid::new(ty.clone(), name.value.clone());
                    if let Some(first) = self.declared.actions.get(&uid) {
                        let first = first.span;
                        self.duplicate("action", &name.value, name.span, first);
                        continue;
                    }
                    let declaration = Declaration {
                        namespace: namespace.clone(),
                        body: decl,
                        span: name.span,
                    };
                    self.declared.actions.insert(uid, declaration);
                }
            }
            DeclKind::Broken => {}
        }
    }

    /// A name of a namespace may not hide one declared outside any namespace.
    fn find_shadowing(&mut self) {
        let spans: BTreeMap<&SmolStr, Span> =
            (self.declared.types.iter().map(|(n, d)| (n, d.span)))
                .chain(self.declared.entities.iter().map(|(n, d)| (n, d.span)))
                .collect();
        for (name, span) in &spans {
            let Some((_, bare)) = name.rsplit_once("::") else {
                continue;
            };
            if let Some(first) = spans.get(&SmolStr::new(bare)) {
                self.errors.push(SchemaError::Shadows {
                    name: SmolStr::new(bare),
                    span: *span,
                    first: *first,
                });
            }
        }
    }

    fn duplicate(&mut self, what: &'static str, name: &str, span: Span, first: Span) {
        self.errors.push(SchemaError::Duplicate {
            what,
            name: SmolStr::new(name),
            span,
            first,
        });
    }
}

// -------------------------------------------------------------------------------- what it means

impl<'a> Resolver<'a> {
    fn schema(&mut self) -> ActionSchema {
        let types: Vec<SmolStr> = self.declared.types.keys().cloned().collect();
        for name in types {
            self.common(&name);
        }
        let mut schema = ActionSchema {
            common_types: self.declared.types.keys().cloned().collect(),
            ..ActionSchema::default()
        };
        let entities: Vec<(SmolStr, SmolStr, &'a EntityBody, Span)> =
            (self.declared.entities.iter())
                .map(|(name, d)| (name.clone(), d.namespace.clone(), d.body, d.span))
                .collect();
        for (name, namespace, body, span) in entities {
            let entity = self.entity(name.clone(), &namespace, body, span);
            schema.entity_types.insert(name, entity);
        }
        let parents: BTreeMap<SmolStr, BTreeSet<SmolStr>> = schema
            .entity_types
            .iter()
            .map(|(n, e)| (n.clone(), e.parents.clone()))
            .collect();
        for (name, entity) in &mut schema.entity_types {
            entity.ancestors = closure(name, &parents);
            entity.ancestors.remove(name);
        }
        self.actions(&mut schema);
        schema
    }

    fn entity(&mut self, name: SmolStr, ns: &str, body: &'a EntityBody, span: Span) -> EntityType {
        let mut entity = EntityType {
            name,
            parents: BTreeSet::new(),
            ancestors: BTreeSet::new(),
            attrs: RecordType::default(),
            tags: None,
            choices: None,
        };
        match body {
            EntityBody::Enum(choices) => {
                if choices.is_empty() {
                    self.errors.push(SchemaError::EmptyEnum {
                        name: entity.name.clone(),
                        span,
                    });
                }
                let mut seen: BTreeMap<&SmolStr, Span> = BTreeMap::new();
                for choice in choices {
                    if let Some(first) = seen.insert(&choice.value, choice.span) {
                        self.duplicate("value", &choice.value, choice.span, first);
                    }
                }
                entity.choices = Some(seen_in_order(choices));
            }
            EntityBody::Standard {
                parents,
                attrs,
                tags,
            } => {
                for parent in parents {
                    if let Some(found) = self.entity_name(ns, parent) {
                        entity.parents.insert(found);
                    }
                }
                if let Some(attrs) = attrs {
                    entity.attrs = self.record(ns, attrs).unwrap_or_default();
                }
                if let Some(tags) = tags {
                    entity.tags = self.ty(ns, tags);
                }
            }
        }
        entity
    }

    fn actions(&mut self, schema: &mut ActionSchema) {
        let declared: Vec<(EntityUid, SmolStr, &'a DeclKind)> = (self.declared.actions.iter())
            .map(|(uid, d)| (uid.clone(), d.namespace.clone(), d.body))
            .collect();
        for (uid, namespace, body) in declared {
            let DeclKind::Action {
                parents,
                applies_to,
                ..
            } = body
            else {
                continue;
            };
            let parents = parents
                .iter()
                .filter_map(|p| self.action_ref(&namespace, p))
                .collect();
            let applies_to = applies_to.as_ref().map(|a| self.applies_to(&namespace, a));
            let action = ActionDecl {
                uid: uid.clone(),
                parents,
                ancestors: BTreeSet::new(),
                applies_to,
            };
            schema.actions.insert(uid, action);
        }
        let parents: BTreeMap<EntityUid, BTreeSet<EntityUid>> = schema
            .actions
            .values()
            .map(|a| (a.uid.clone(), a.parents.clone()))
            .collect();
        // Of each cycle its first action; the others only come round to it.
        let mut told: BTreeMap<EntityUid, BTreeSet<EntityUid>> = BTreeMap::new();
        for (uid, action) in &mut schema.actions {
            action.ancestors = closure(uid, &parents);
            let groups = action.ancestors.iter();
            let known = groups
                .filter_map(|group| told.get(group))
                .any(|ancestors| ancestors.contains(uid));
            if action.ancestors.contains(uid) && !known {
                told.insert(uid.clone(), action.ancestors.clone());
                let span = self
                    .declared
                    .actions
                    .get(uid)
                    .map_or(Span::default(), |d| d.span);
                self.errors.push(SchemaError::CyclicAction {
                    action: uid.clone(),
                    span,
                });
            }
        }
    }

    fn applies_to(&mut self, ns: &str, written: &'a ast::AppliesTo) -> AppliesTo {
        let mut kinds = |what: &'static str, names: &[Name]| {
            if names.is_empty() {
                self.errors.push(SchemaError::EmptyAppliesTo {
                    what,
                    span: written.span,
                });
            }
            let mut found: Vec<SmolStr> = Vec::new();
            for name in names {
                if let Some(ty) = self.entity_name(ns, name)
                    && !found.contains(&ty)
                {
                    found.push(ty);
                }
            }
            found
        };
        let principals = kinds("principal", &written.principals);
        let resources = kinds("resource", &written.resources);
        let context = match &written.context {
            None => RecordType::default(),
            Some(ty) => match self.ty(ns, ty) {
                Some(Type::Record(record)) => record,
                None => RecordType::default(),
                Some(other) => {
                    let found = SmolStr::new(other.to_string());
                    self.errors.push(SchemaError::ContextNotRecord {
                        found,
                        span: ty.span,
                    });
                    RecordType::default()
                }
            },
        };
        AppliesTo {
            principals,
            resources,
            context,
        }
    }

    fn action_ref(&mut self, ns: &str, written: &ast::ActionRef) -> Option<EntityUid> {
        let id = written.id.value.clone();
        let here = EntityUid::new(qualified(ns, "Action"), id.clone());
        let candidates: Vec<EntityUid> = match &written.ty {
            None => vec![here],
            Some(ty) if ty.path.len() == 1 => vec![here, EntityUid::new(ty.text(), id)],
            Some(ty) => vec![EntityUid::new(ty.text(), id)],
        };
        if let Some(found) = candidates
            .iter()
            .find(|uid| self.declared.actions.contains_key(*uid))
        {
            return Some(found.clone());
        }
        let ids: Vec<SmolStr> = self
            .declared
            .actions
            .keys()
            .map(|uid| uid.id.clone())
            .collect();
        self.errors.push(SchemaError::UnknownAction {
            name: written.id.value.clone(),
            span: written.id.span,
            nearest: nearest(&written.id.value, &ids),
        });
        None
    }

    fn entity_name(&mut self, ns: &str, name: &Name) -> Option<SmolStr> {
        let written = name.text();
        let mut candidates = vec![written.clone()];
        if name.path.len() == 1 {
            candidates.insert(0, qualified(ns, &written));
        }
        let found = candidates
            .into_iter()
            .find(|c| self.declared.entities.contains_key(c));
        if found.is_none() {
            self.errors.push(SchemaError::UnknownEntityType {
                nearest: nearest(&written, self.declared.entities.keys()),
                name: written,
                span: name.span,
            });
        }
        found
    }

    fn record(&mut self, ns: &str, record: &'a RecordTy) -> Option<RecordType> {
        let mut attrs = BTreeMap::new();
        let mut whole = true;
        for attr in &record.attrs {
            match self.ty(ns, &attr.ty) {
                Some(ty) => {
                    let attr_type = AttrType {
                        ty,
                        required: !attr.optional,
                    };
                    attrs.insert(attr.name.value.clone(), attr_type);
                }
                None => whole = false,
            }
        }
        whole.then_some(RecordType { attrs })
    }

    fn ty(&mut self, ns: &str, ty: &'a Ty) -> Option<Type> {
        self.nodes += 1;
        if self.depth >= MAX_STEPS {
            self.errors.push(SchemaError::TypeTooDeep {
                span: ty.span,
                limit: MAX_TYPE_DEPTH,
            });
            return None;
        }
        self.depth += 1;
        let found = match &ty.kind {
            TyKind::Name(name) => self.named(ns, name),
            TyKind::Set(element) => self
                .ty(ns, element)
                .map(|element| Type::Set(Box::new(element))),
            TyKind::Record(record) => self.record(ns, record).map(Type::Record),
            TyKind::Error => None,
        };
        self.depth -= 1;
        found
    }

    fn named(&mut self, ns: &str, name: &Name) -> Option<Type> {
        let written = name.text();
        let mut candidates = vec![written.clone()];
        if name.path.len() == 1 && !ns.is_empty() {
            candidates.insert(0, qualified(ns, &written));
        }
        for candidate in candidates {
            if self.declared.types.contains_key(&candidate) {
                return self.reference(&candidate, name.span);
            }
            if self.declared.entities.contains_key(&candidate) {
                return Some(Type::Entity(candidate));
            }
            // An action is an entity too, of a type nobody declares.
            let mut actions = self.declared.actions.keys();
            if actions.any(|uid| uid.ty == candidate) {
                return Some(Type::Entity(candidate));
            }
        }
        if let Some(found) = builtin(&written) {
            return Some(found);
        }
        let known: Vec<SmolStr> = (self.declared.types.keys())
            .chain(self.declared.entities.keys())
            .cloned()
            .chain(BUILTIN_NAMES.iter().map(SmolStr::new))
            .collect();
        let nearest = nearest(&written, &known);
        self.errors.push(SchemaError::UnknownType {
            name: written,
            span: name.span,
            nearest,
        });
        None
    }

    /// A use of a common type.
    fn reference(&mut self, name: &SmolStr, at: Span) -> Option<Type> {
        if let Some(start) = self.open.iter().position(|open| open == name) {
            let cycle: Vec<SmolStr> = self.open.get(start..).unwrap_or_default().to_vec();
            self.errors
                .push(SchemaError::CyclicType { cycle, span: at });
            return None;
        }
        self.common(name);
        let written = self.resolved.get(name)?.as_ref()?;
        if self.nodes.saturating_add(written.size) > MAX_TYPE_NODES {
            let limit = MAX_TYPE_NODES;
            self.errors
                .push(SchemaError::TypesTooLarge { span: at, limit });
            return None;
        }
        self.nodes += written.size;
        Some(written.ty.clone())
    }

    fn common(&mut self, name: &SmolStr) {
        if self.resolved.contains_key(name) {
            return;
        }
        let Some(declaration) = self.declared.types.get(name) else {
            return;
        };
        let (namespace, body) = (declaration.namespace.clone(), declaration.body);
        let span = declaration.span;
        self.open.push(name.clone());
        let ty = self.ty(&namespace, body);
        self.open.pop();
        let written = ty.and_then(|ty| {
            let (size, depth) = extent(&ty);
            if depth > MAX_TYPE_DEPTH {
                let limit = MAX_TYPE_DEPTH;
                self.errors.push(SchemaError::TypeTooDeep { span, limit });
                return None;
            }
            Some(Written { ty, size })
        });
        self.resolved.insert(name.clone(), written);
    }
}

/// The nodes of a type, in all and on the longest way down.
fn extent(ty: &Type) -> (usize, usize) {
    let (size, depth) = match ty {
        Type::Set(element) => extent(element),
        Type::Record(record) => {
            let parts = record.attrs.values().map(|attr| extent(&attr.ty));
            parts.fold((0, 0), |(size, depth), part| {
                (size + part.0, depth.max(part.1))
            })
        }
        _ => (0, 0),
    };
    (size + 1, depth + 1)
}

fn seen_in_order(choices: &[Str]) -> Vec<SmolStr> {
    let mut ids: Vec<SmolStr> = Vec::new();
    let mut seen = BTreeSet::new();
    for choice in choices {
        if seen.insert(&choice.value) {
            ids.push(choice.value.clone());
        }
    }
    ids
}

/// Everything reachable from `start` by at least one step.
fn closure<K: Ord + Clone>(start: &K, parents: &BTreeMap<K, BTreeSet<K>>) -> BTreeSet<K> {
    let mut found = BTreeSet::new();
    let mut queue: Vec<&K> = parents.get(start).into_iter().flatten().collect();
    while let Some(next) = queue.pop() {
        if found.insert(next.clone()) {
            queue.extend(parents.get(next).into_iter().flatten());
        }
    }
    found
}
