//! Generated schema trees.

use super::policies::{amount, annotations, ident, name, string, word};
use crate::ast::action_schema::*;
use crate::ast::event_schema::*;
use crate::ast::{Ident, Name};
use crate::span::Span;
use crate::tree::Cx;
use proptest::prelude::*;
use proptest::sample::select;

const NOWHERE: Span = Span { start: 0, end: 0 };

fn make_ty(kind: TyKind) -> Ty {
    Cx::new("").ty(kind, NOWHERE)
}

fn record_ty(ty: impl Strategy<Value = Ty>) -> impl Strategy<Value = RecordTy> {
    let label = prop_oneof![
        string(),
        word().prop_map(|word| crate::ast::Str {
            value: word.text,
            span: NOWHERE
        })
    ];
    let one =
        (annotations(), label, any::<bool>(), ty).prop_map(|(annotations, name, optional, ty)| {
            AttrDecl {
                annotations,
                name,
                optional,
                ty,
                span: NOWHERE,
            }
        });
    prop::collection::vec(one, 0..3).prop_map(|raw| {
        let mut attrs: Vec<AttrDecl> = Vec::new();
        for attr in raw {
            if attrs
                .iter()
                .all(|before| before.name.value != attr.name.value)
            {
                attrs.push(attr);
            }
        }
        RecordTy {
            attrs,
            span: NOWHERE,
        }
    })
}

fn ty() -> impl Strategy<Value = Ty> {
    name()
        .prop_map(|name| make_ty(TyKind::Name(name)))
        .prop_recursive(4, 16, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(|ty| TyKind::Set(Box::new(ty))),
                record_ty(inner).prop_map(TyKind::Record),
            ]
            .prop_map(make_ty)
        })
}

fn names() -> impl Strategy<Value = Vec<Name>> {
    prop::collection::vec(name(), 0..3)
}

fn own_names() -> impl Strategy<Value = Vec<Ident>> {
    prop::collection::vec(word(), 1..3)
}

fn entity() -> impl Strategy<Value = DeclKind> {
    let standard = (
        names(),
        prop::option::of(record_ty(ty())),
        prop::option::of(ty()),
    )
        .prop_map(|(parents, attrs, tags)| EntityBody::Standard {
            parents,
            attrs,
            tags,
        });
    let body = prop_oneof![
        standard,
        prop::collection::vec(string(), 0..3).prop_map(EntityBody::Enum)
    ];
    (own_names(), body).prop_map(|(names, body)| DeclKind::Entity { names, body })
}

fn action() -> impl Strategy<Value = DeclKind> {
    let parent = (prop::option::of(name()), string()).prop_map(|(ty, id)| ActionRef {
        ty,
        id,
        span: NOWHERE,
    });
    let context = ty().prop_filter("a set is no context", |ty| {
        !matches!(ty.kind, TyKind::Set(_))
    });
    let applies_to = (names(), names(), prop::option::of(context)).prop_map(
        |(principals, resources, context)| AppliesTo {
            principals,
            resources,
            context,
            span: NOWHERE,
        },
    );
    (
        prop::collection::vec(string(), 1..3),
        prop::collection::vec(parent, 0..3),
        prop::option::of(applies_to),
    )
        .prop_map(|(names, parents, applies_to)| DeclKind::Action {
            names,
            parents,
            applies_to,
        })
}

fn decls(least: usize) -> impl Strategy<Value = Vec<Decl>> {
    let kind = prop_oneof![
        entity(),
        action(),
        (word(), ty()).prop_map(|(name, ty)| DeclKind::Type { name, ty })
    ];
    let one = (annotations(), kind).prop_map(|(annotations, kind)| Decl {
        annotations,
        kind,
        span: NOWHERE,
    });
    prop::collection::vec(one, least..4)
}

pub(super) fn action_schema() -> impl Strategy<Value = ActionSchemaFile> {
    let outside = decls(1).prop_map(|decls| Namespace {
        annotations: Vec::new(),
        name: None,
        decls,
        span: NOWHERE,
    });
    let named =
        (annotations(), name(), decls(0)).prop_map(|(annotations, name, decls)| Namespace {
            annotations,
            name: Some(name),
            decls,
            span: NOWHERE,
        });
    (
        prop::option::of(outside),
        prop::collection::vec(named, 0..3),
    )
        .prop_map(|(outside, named)| ActionSchemaFile {
            namespaces: outside.into_iter().chain(named).collect(),
        })
}

// --------------------------------------------------------------------------------- event schemas

/// Members for a declaration whose binder is `A`.
fn member(depth: u32) -> BoxedStrategy<Member> {
    let spread = word().prop_map(|selector| {
        Member::Spread(Spread {
            selector,
            argument: ident("A"),
            span: NOWHERE,
        })
    });
    let leaf = prop_oneof![
        name().prop_map(FieldTyKind::Name),
        word().prop_map(|selector| FieldTyKind::Selector {
            selector,
            argument: ident("A")
        }),
    ];
    let pin = prop_oneof![
        (
            select(vec!["principal", "resource"]),
            prop::collection::vec(word(), 0..3)
        ),
        (Just("context"), prop::collection::vec(word(), 1..3)),
    ]
    .prop_map(|(root, path)| PinRef {
        root: ident(root),
        path,
        span: NOWHERE,
    });
    let field = (word(), leaf, prop::option::of(pin)).prop_map(|(name, kind, value)| {
        let ty = Cx::new("").field_ty(kind, NOWHERE);
        let pin = value.as_ref().map(|_| NOWHERE);
        Member::Field(Field {
            pin,
            name,
            ty,
            value,
            span: NOWHERE,
        })
    });
    if depth == 0 {
        return prop_oneof![spread, field].boxed();
    }
    let group =
        (word(), prop::collection::vec(member(depth - 1), 0..3)).prop_map(|(name, members)| {
            let ty = Cx::new("").field_ty(FieldTyKind::Record(members), NOWHERE);
            Member::Field(Field {
                pin: None,
                name,
                ty,
                value: None,
                span: NOWHERE,
            })
        });
    prop_oneof![spread, field, group].boxed()
}

pub(super) fn event_schema() -> impl Strategy<Value = EventSchemaFile> {
    let event = (
        any::<bool>(),
        word(),
        prop::collection::vec(member(2), 0..4),
    )
        .prop_map(|(decision, kind, members)| EventDecl {
            decision,
            binder: ident("A"),
            kind,
            members,
            span: NOWHERE,
        });
    let small = amount().prop_filter("counts in seconds", |window| window.seconds().is_some());
    (prop::option::of(small), prop::collection::vec(event, 0..3))
        .prop_map(|(max_window, events)| EventSchemaFile { max_window, events })
        .prop_filter("a blank text is no schema", |file| {
            file.max_window.is_some() || !file.events.is_empty()
        })
}
