//! The syntax tree of a Cedar schema in its human syntax (`.cedarschema`).

use super::{Annotation, Ident, Name, Str};
use crate::span::Span;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActionSchemaFile {
    pub namespaces: Vec<Namespace>,
}

/// `namespace A::B { … }`, or (without a name) the declarations outside any namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    pub annotations: Vec<Annotation>,
    pub name: Option<Name>,
    pub decls: Vec<Decl>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decl {
    pub annotations: Vec<Annotation>,
    pub kind: DeclKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclKind {
    /// `entity A, B in [P] = { … } tags T;` or `entity E enum ["x", "y"];`
    Entity { names: Vec<Ident>, body: EntityBody },
    /// `action a, "b" in [G] appliesTo { … };`
    Action {
        names: Vec<Str>,
        parents: Vec<ActionRef>,
        applies_to: Option<AppliesTo>,
    },
    /// `type T = …;`
    Type { name: Ident, ty: Ty },
    /// Unreadable; an error was reported.
    Broken,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntityBody {
    Standard {
        parents: Vec<Name>,
        attrs: Option<RecordTy>,
        tags: Option<Ty>,
    },
    Enum(Vec<Str>),
}

/// `"read"`, `read`, or `Other::Action::"read"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionRef {
    /// The type in front, `Other::Action`, if written.
    pub ty: Option<Name>,
    pub id: Str,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliesTo {
    pub principals: Vec<Name>,
    pub resources: Vec<Name>,
    pub context: Option<Ty>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ty {
    pub kind: TyKind,
    pub span: Span,
    pub depth: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TyKind {
    Name(Name),
    Set(Box<Ty>),
    Record(RecordTy),
    Error,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordTy {
    pub attrs: Vec<AttrDecl>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttrDecl {
    pub annotations: Vec<Annotation>,
    /// A word or a string literal.
    pub name: Str,
    pub optional: bool,
    pub ty: Ty,
    pub span: Span,
}
