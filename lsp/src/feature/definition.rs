//! Where a name is introduced.

use super::references::{places, symbol};
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
    match &mark.what {
        What::EventField { action, kind, path } => {
            let own = field(snapshot, action, path);
            if own.is_empty() {
                return member(snapshot, kind, path).into_iter().collect();
            }
            return own;
        }
        What::RequestField { root, path } => {
            let rule = snapshot.rule_at(offset).map(|(_, rule)| rule);
            let mut found: Vec<Place> = Vec::new();
            for action in snapshot.actions_of(rule) {
                let declared = match root {
                    Root::Context => field(snapshot, &action.uid, path),
                    _ => Vec::new(),
                };
                for place in declared {
                    if found.iter().all(|known| known.span != place.span) {
                        found.push(place);
                    }
                }
            }
            return found;
        }
        What::File(name) => {
            let folder = snapshot.document.path.parent();
            let path = folder.map(|folder| folder.join(name.as_str()));
            let document = path.and_then(|path| snapshot.shelf.document(&path));
            let first = document.map(|document| Place {
                document,
                span: Span::at(0),
            });
            return first.into_iter().collect();
        }
        _ => {}
    }
    let Some((symbol, _)) = symbol(snapshot, offset) else {
        return Vec::new();
    };
    let all = places(snapshot, &symbol).into_iter();
    all.filter(|found| found.defines)
        .map(|found| found.place)
        .collect()
}

/// Where the action schema declares a field of an action's context.
fn field(snapshot: &Snapshot, action: &EntityUid, path: &[SmolStr]) -> Vec<Place> {
    let document = snapshot.setup.actions();
    let found = attribute(document, action, path).map(|attr| Place {
        document: Arc::clone(document),
        span: attr.name.span,
    });
    found.into_iter().collect()
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
        let ty = match &space {
            Some(space) => format_smolstr!("{space}::Action"),
            None => SmolStr::new_static("Action"),
        };
        for decl in &namespace.decls {
            if let DeclKind::Action {
                names, applies_to, ..
            } = &decl.kind
                && ty == action.ty
                && names.iter().any(|name| name.value == action.id)
            {
                let context = applies_to.as_ref()?.context.as_ref()?;
                let mut record = record(document, space.as_ref(), context)?;
                let (last, way) = path.split_last()?;
                for word in way {
                    let attr = record.attrs.iter().find(|attr| attr.name.value == *word)?;
                    record = self::record(document, space.as_ref(), &attr.ty)?;
                }
                return record.attrs.iter().find(|attr| attr.name.value == *last);
            }
        }
    }
    None
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
                        let full = |word: &SmolStr| match &namespace.name {
                            Some(space) => format_smolstr!("{}::{word}", space.text()),
                            None => word.clone(),
                        };
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
