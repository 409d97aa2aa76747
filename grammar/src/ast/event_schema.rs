//! The syntax tree of an event schema (`.dwschema`).

use super::{Ident, Name, Window};
use crate::span::Span;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventSchemaFile {
    /// `max_window = 24h`.
    pub max_window: Option<Window>,
    pub events: Vec<EventDecl>,
}

/// `decision event <A>::kind { … }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventDecl {
    pub decision: bool,
    pub binder: Ident,
    pub kind: Ident,
    pub members: Vec<Member>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    Spread(Spread),
    Field(Field),
}

/// `...inputs(A)`. Any selector word is read; which ones may be spread is for the compiler to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    pub selector: Ident,
    pub argument: Ident,
    pub span: Span,
}

/// `pin name: type = ref`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub pin: Option<Span>,
    pub name: Ident,
    pub ty: FieldTy,
    pub value: Option<PinRef>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTy {
    pub kind: FieldTyKind,
    pub span: Span,
    pub depth: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldTyKind {
    /// `principalType(A)`, `resourceType(A)`; any selector word is read.
    Selector {
        selector: Ident,
        argument: Ident,
    },
    Record(Vec<Member>),
    Name(Name),
    Error,
}

/// `principal.a`, `context.sessionId`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinRef {
    pub root: Ident,
    pub path: Vec<Ident>,
    pub span: Span,
}
