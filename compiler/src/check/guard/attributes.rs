//! Typing of attribute access and of the tests that guard it.

use super::ty::Ty;
use super::{Capabilities, Guard, Place, Typed};
use crate::check::problem::Problem;
use crate::check::scope::check_entity_type;
use crate::nearest::nearest;
use crate::providers::chain;
use dogwood_grammar::Span;
use dogwood_grammar::ast::{Attr, Expr, ExprKind, Name, Var};
use smol_str::{SmolStr, format_smolstr};
use std::borrow::Cow;

/// An attribute as found on a type.
enum Found<'s> {
    Attr {
        ty: Ty<'s>,
        required: bool,
    },
    Missing,
    /// Not something that has attributes.
    NotRecord,
    Unknown,
}

impl<'s> Guard<'_, 's> {
    fn lookup(&self, of: &Ty<'s>, name: &str) -> Found<'s> {
        let found = match of {
            Ty::Unknown => return Found::Unknown,
            Ty::Record(record) => match record {
                Cow::Borrowed(record) => record
                    .attrs
                    .get(name)
                    .map(|attr| (Ty::of(&attr.ty), attr.required)),
                Cow::Owned(record) => record
                    .attrs
                    .get(name)
                    .map(|attr| (Ty::owned(attr.ty.clone()), attr.required)),
            },
            Ty::Entity(ty) => {
                let entity = self.schema.entity_types.get(ty);
                let attr = entity.and_then(|entity| entity.attrs.attrs.get(name));
                attr.map(|attr| (Ty::of(&attr.ty), attr.required))
            }
            _ => return Found::NotRecord,
        };
        found.map_or(Found::Missing, |(ty, required)| Found::Attr {
            ty,
            required,
        })
    }

    fn attr_names(&self, of: &Ty<'s>) -> Vec<SmolStr> {
        match of {
            Ty::Record(record) => record.attrs.keys().cloned().collect(),
            Ty::Entity(ty) => {
                let entity = self.schema.entity_types.get(ty);
                entity
                    .map(|entity| entity.attrs.attrs.keys().cloned().collect())
                    .unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn attr(
        &mut self,
        target: &Expr,
        attr: &Attr,
        caps: &Capabilities,
        place: Place<'_, 's>,
    ) -> Ty<'s> {
        let (of, _) = self.expr(target, caps, place);
        match self.lookup(&of, &attr.name) {
            Found::Attr { ty, required } => {
                let held = required
                    || key(target).is_some_and(|key| caps.contains(&has_key(&key, &attr.name)));
                if !held {
                    let test = |key: SmolStr| {
                        if is_word(&attr.name) {
                            format!("{key} has {}", attr.name)
                        } else {
                            format!("{key} has {:?}", attr.name)
                        }
                    };
                    let name = attr.name.clone();
                    let problem = if is_answer(target) {
                        Problem::OptionalAnswer { name }
                    } else {
                        Problem::OptionalAttr {
                            name,
                            guard: key(target).map(test),
                            condition: place.condition,
                        }
                    };
                    self.report.add(attr.span, problem);
                }
                ty
            }
            Found::Missing => {
                let known = self.attr_names(&of);
                let problem = Problem::UnknownAttr {
                    of: described(target, &of),
                    name: attr.name.clone(),
                    nearest: nearest(&attr.name, &known),
                    known,
                    action: self.about(place),
                };
                self.report.add(attr.span, problem);
                Ty::Unknown
            }
            Found::NotRecord => {
                let found = of.name();
                let of = described(target, &of);
                self.report.add(attr.span, Problem::NotRecord { of, found });
                Ty::Unknown
            }
            Found::Unknown => Ty::Unknown,
        }
    }

    /// `target has a.b.c`: each step is tested with those before it known to hold.
    pub(super) fn has(
        &mut self,
        target: &Expr,
        path: &[Attr],
        caps: &Capabilities,
        place: Place<'_, 's>,
    ) -> Typed<'s> {
        let (mut of, _) = self.expr(target, caps, place);
        let mut here = key(target);
        let mut gained = Capabilities::new();
        let mut constant = true;
        for attr in path {
            let cap = here.as_ref().map(|key| has_key(key, &attr.name));
            match self.lookup(&of, &attr.name) {
                Found::Unknown => return (Ty::Bool(None), gained),
                Found::NotRecord => {
                    self.expected("a record or an entity", &of, target.span);
                    return (Ty::Bool(None), Capabilities::new());
                }
                Found::Missing => {
                    let known = self.attr_names(&of);
                    let described = described(target, &of);
                    self.tested(attr.span, false, || Problem::HasNever {
                        of: described,
                        name: attr.name.clone(),
                        nearest: nearest(&attr.name, &known),
                    });
                    return (Ty::Bool(Some(false)), Capabilities::new());
                }
                Found::Attr { ty, required } => {
                    self.tested(attr.span, true, || Problem::NeverApplies);
                    // An entity may be missing from the store, and then has nothing.
                    let certain = required && matches!(of, Ty::Record(_));
                    let known = cap.as_ref().is_some_and(|cap| caps.contains(cap));
                    constant &= certain || known;
                    if !certain && let Some(cap) = cap {
                        gained.insert(cap);
                    }
                    here = here.map(|key| attr_key(&key, &attr.name));
                    of = ty;
                }
            }
        }
        (Ty::Bool(constant.then_some(true)), gained)
    }

    pub(super) fn is(
        &mut self,
        span: Span,
        target: &Expr,
        ty: &Name,
        within: Option<&Expr>,
        caps: &Capabilities,
        place: Place<'_, 's>,
    ) -> Typed<'s> {
        let (of, _) = self.expr(target, caps, place);
        let known = check_entity_type(self.schema, ty, self.report);
        let wanted = ty.text();
        let result = match &of {
            Ty::Entity(found) if known => {
                let same = *found == wanted;
                self.tested(ty.span, same, || Problem::NeverIs { wanted });
                Ty::Bool(Some(same))
            }
            Ty::Entity(_) | Ty::Unknown => Ty::Bool(None),
            other => {
                self.expected("an entity", other, target.span);
                Ty::Bool(None)
            }
        };
        let result = match within {
            Some(within) if result != Ty::Bool(Some(false)) => {
                match self.member(span, target, within, caps, place) {
                    Ty::Bool(Some(true)) => result,
                    other => other,
                }
            }
            _ => result,
        };
        (result, Capabilities::new())
    }
}

/// `context.input`, as the author wrote it, or what kind of thing it is.
fn described(expr: &Expr, ty: &Ty) -> SmolStr {
    match (key(expr), ty) {
        (Some(key), Ty::Entity(name)) => format_smolstr!("`{key}` of type {name}"),
        (Some(key), _) => format_smolstr!("`{key}`"),
        (None, Ty::Entity(name)) => format_smolstr!("an entity of type {name}"),
        (None, _) => SmolStr::new("this record"),
    }
}

/// Whether this is a part of what a provider gives.
fn is_answer(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Attr { target, .. } => is_answer(target),
        _ => chain(expr).is_some(),
    }
}

fn has_key(target: &str, attr: &str) -> SmolStr {
    format_smolstr!("{target} has {attr:?}")
}

fn attr_key(target: &str, attr: &str) -> SmolStr {
    if is_word(attr) {
        format_smolstr!("{target}.{attr}")
    } else {
        format_smolstr!("{target}[{attr:?}]")
    }
}

fn is_word(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// A text that two expressions share only if they are the same; nothing for those that capabilities
/// are not kept about.
pub(super) fn key(expr: &Expr) -> Option<SmolStr> {
    Some(match &expr.kind {
        ExprKind::Var(Var::Principal) => SmolStr::new("principal"),
        ExprKind::Var(Var::Action) => SmolStr::new("action"),
        ExprKind::Var(Var::Resource) => SmolStr::new("resource"),
        ExprKind::Var(Var::Context) => SmolStr::new("context"),
        ExprKind::Str(text) => format_smolstr!("{text:?}"),
        ExprKind::Long(number) => format_smolstr!("{number}"),
        ExprKind::Bool(value) => format_smolstr!("{value}"),
        ExprKind::Entity(entity) => {
            format_smolstr!("{}::{:?}", entity.ty.text(), entity.id.value)
        }
        ExprKind::Attr { target, attr } => attr_key(&key(target)?, &attr.name),
        ExprKind::Method { target, name, args } => {
            let args: Option<Vec<SmolStr>> = args.iter().map(key).collect();
            format_smolstr!("{}.{}({})", key(target)?, name.text, args?.join(", "))
        }
        _ => return None,
    })
}
