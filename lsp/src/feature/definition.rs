//! Where a name is introduced.

use super::references::{Symbol, places, symbol};
use crate::document::Document;
use crate::mark::{Root, What};
use crate::snapshot::{Place, Snapshot};
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::ast::Name;
use dogwood_compiler::grammar::ast::action_schema::{
    AttrDecl, DeclKind, EntityBody, RecordTy, Ty, TyKind,
};
use dogwood_compiler::grammar::ast::event_schema::{FieldTyKind, Member};
use dogwood_compiler::value::EntityUid;
use smol_str::{SmolStr, format_smolstr};
use std::sync::Arc;

pub fn definition(snapshot: &Snapshot, offset: usize) -> Vec<Place> {
    let Some(mark) = snapshot.document.mark_at(offset) else {
        return Vec::new();
    };
    if let Some(declared) = fields(snapshot, &mark.what, offset) {
        return declared;
    }
    if let What::File(name) = &mark.what {
        let folder = snapshot.document.path.parent();
        let path = folder.map(|folder| folder.join(name.as_str()));
        let document = path.and_then(|path| snapshot.shelf.file(&path));
        let first = document.map(|document| Place {
            document,
            span: Span::at(0),
        });
        return first.into_iter().collect();
    }
    let Some((symbol, _)) = symbol(snapshot, offset) else {
        return Vec::new();
    };
    let mut all = places(snapshot, &symbol);
    // What a macro introduces has no other beginning than its first mention.
    if matches!(symbol, Symbol::Local(_)) && !all.iter().any(|found| found.defines) {
        all.truncate(1);
        return all.into_iter().map(|found| found.place).collect();
    }
    let all = all.into_iter();
    all.filter(|found| found.defines)
        .map(|found| found.place)
        .collect()
}

/// Where the fields are declared that a name stands for; nothing where it stands for something else.
pub fn fields(snapshot: &Snapshot, what: &What, offset: usize) -> Option<Vec<Place>> {
    let mut found: Vec<Place> = Vec::new();
    match what {
        What::EventField { action, kind, path } => {
            let of_action = in_context(snapshot, action, path);
            found.extend(of_action.or_else(|| member(snapshot, kind, path)));
        }
        What::GivenField { action, path } => {
            let uid = snapshot.action_called(action);
            found.extend(uid.and_then(|uid| in_context(snapshot, uid, path)));
        }
        What::RequestField { root, path } => {
            let rule = snapshot.rule_at(offset).map(|(_, rule)| rule);
            for action in snapshot.actions_of(rule) {
                let types = action.applies_to.as_ref().map(|applies| match root {
                    Root::Principal => applies.principals.as_slice(),
                    Root::Resource => applies.resources.as_slice(),
                    Root::Context | Root::Action => &[],
                });
                if *root == Root::Context {
                    found.extend(in_context(snapshot, &action.uid, path));
                }
                for ty in types.unwrap_or_default() {
                    found.extend(in_entity(snapshot, ty, path));
                }
            }
        }
        _ => return None,
    }
    let mut known: Vec<Span> = Vec::new();
    found.retain(|place| {
        let new = !known.contains(&place.span);
        known.push(place.span);
        new
    });
    Some(found)
}

/// Where the action schema declares a field of an action's context.
fn in_context(snapshot: &Snapshot, action: &EntityUid, path: &[SmolStr]) -> Option<Place> {
    let document = snapshot.setup.actions();
    attribute(document, action, path).map(|attr| Place {
        document: Arc::clone(document),
        span: attr.name.span,
    })
}

/// Where the action schema declares a field of an entity.
fn in_entity(snapshot: &Snapshot, entity: &SmolStr, path: &[SmolStr]) -> Option<Place> {
    let document = snapshot.setup.actions();
    let mut namespaces = document.action_schema().tree.namespaces.iter();
    let (space, attrs) = namespaces.find_map(|namespace| {
        let space = namespace.name.as_ref().map(Name::text);
        let attrs = namespace.decls.iter().find_map(|decl| match &decl.kind {
            DeclKind::Entity {
                names,
                body: EntityBody::Standard { attrs, .. },
            } if names
                .iter()
                .any(|name| within(&space, &name.text) == *entity) =>
            {
                attrs.as_ref()
            }
            _ => None,
        })?;
        Some((space, attrs))
    })?;
    let attr = below(document, space.as_ref(), attrs, path)?;
    Some(Place {
        document: Arc::clone(document),
        span: attr.name.span,
    })
}

fn within(space: &Option<SmolStr>, name: &str) -> SmolStr {
    match space {
        Some(space) => format_smolstr!("{space}::{name}"),
        None => SmolStr::new(name),
    }
}

/// Where the event schema declares a field of its own.
fn member(snapshot: &Snapshot, kind: &SmolStr, path: &[SmolStr]) -> Option<Place> {
    let document = snapshot.setup.events();
    let mut events = document.event_schema().tree.events.iter();
    let mut members = &events.find(|event| event.kind.text == *kind)?.members;
    let mut found = None;
    for word in path {
        let field = members.iter().find_map(|member| match member {
            Member::Field(field) if field.name.text == *word => Some(field),
            _ => None,
        })?;
        found = Some(field.name.span);
        members = match &field.ty.kind {
            FieldTyKind::Record(inner) => inner,
            // What is asked for further is in no group.
            _ => NO_MEMBERS,
        };
    }
    Some(Place {
        document: Arc::clone(document),
        span: found?,
    })
}

const NO_MEMBERS: &Vec<Member> = &Vec::new();

/// The declaration of a field of an action's context.
pub fn attribute<'d>(
    document: &'d Document,
    action: &EntityUid,
    path: &[SmolStr],
) -> Option<&'d AttrDecl> {
    let tree = &document.action_schema().tree;
    for namespace in &tree.namespaces {
        let space = namespace.name.as_ref().map(Name::text);
        let ty = within(&space, "Action");
        for decl in &namespace.decls {
            if let DeclKind::Action {
                names, applies_to, ..
            } = &decl.kind
                && ty == action.ty
                && names.iter().any(|name| name.value == action.id)
            {
                let context = applies_to.as_ref()?.context.as_ref()?;
                let record = record(document, space.as_ref(), context)?;
                return below(document, space.as_ref(), record, path);
            }
        }
    }
    None
}

/// The declaration that a path leads to from a record.
fn below<'d>(
    document: &'d Document,
    space: Option<&SmolStr>,
    record: &'d RecordTy,
    path: &[SmolStr],
) -> Option<&'d AttrDecl> {
    let mut record = record;
    let (last, way) = path.split_last()?;
    for word in way {
        let attr = record.attrs.iter().find(|attr| attr.name.value == *word)?;
        record = self::record(document, space, &attr.ty)?;
    }
    record.attrs.iter().find(|attr| attr.name.value == *last)
}

/// The record a type is, if need be by way of names.
fn record<'d>(document: &'d Document, space: Option<&SmolStr>, ty: &'d Ty) -> Option<&'d RecordTy> {
    let mut ty = ty;
    // A schema may have circles while it is being written.
    for _ in 0..64 {
        match &ty.kind {
            TyKind::Record(record) => return Some(record),
            TyKind::Name(name) => {
                let text = name.text();
                let near = space.map(|space| format_smolstr!("{space}::{text}"));
                let wanted = [near, Some(text)];
                let tree = &document.action_schema().tree;
                let mut next = None;
                for namespace in &tree.namespaces {
                    for decl in &namespace.decls {
                        let home = namespace.name.as_ref().map(Name::text);
                        let full = |word: &SmolStr| within(&home, word);
                        let is = |word: &SmolStr| wanted.contains(&Some(full(word)));
                        match &decl.kind {
                            DeclKind::Type { name, ty } if is(&name.text) => next = Some(ty),
                            DeclKind::Entity {
                                names,
                                body: EntityBody::Standard { attrs, .. },
                            } if names.iter().any(|name| is(&name.text)) => {
                                return attrs.as_ref();
                            }
                            _ => {}
                        }
                    }
                }
                ty = next?;
            }
            TyKind::Set(_) | TyKind::Error => return None,
        }
    }
    None
}
