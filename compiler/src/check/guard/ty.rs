//! Types of expressions.

use crate::schema::{AttrType, Extension, RecordType, Type};
use smol_str::{SmolStr, format_smolstr};
use std::borrow::Cow;

#[derive(Clone, Debug, PartialEq)]
pub enum Ty<'s> {
    /// Something was wrong with the expression and has been reported.
    Unknown,
    /// A Boolean, and which one where no request can change it.
    Bool(Option<bool>),
    Long,
    Str,
    Ext(Extension),
    Entity(SmolStr),
    Set(Box<Ty<'s>>),
    Record(Cow<'s, RecordType>),
}

impl<'s> Ty<'s> {
    pub fn of(ty: &'s Type) -> Ty<'s> {
        match ty {
            Type::Set(element) => Ty::Set(Box::new(Ty::of(element))),
            Type::Record(record) => Ty::Record(Cow::Borrowed(record)),
            other => Ty::plain(other),
        }
    }

    pub fn owned(ty: Type) -> Ty<'s> {
        match ty {
            Type::Set(element) => Ty::Set(Box::new(Ty::owned(*element))),
            Type::Record(record) => Ty::Record(Cow::Owned(record)),
            other => Ty::plain(&other),
        }
    }

    fn plain(ty: &Type) -> Ty<'s> {
        match ty {
            Type::Bool => Ty::Bool(None),
            Type::Long => Ty::Long,
            Type::String => Ty::Str,
            Type::Ext(extension) => Ty::Ext(*extension),
            Type::Entity(name) => Ty::Entity(name.clone()),
            Type::Set(_) | Type::Record(_) => Ty::Unknown,
        }
    }

    pub fn to_type(&self) -> Option<Type> {
        Some(match self {
            Ty::Unknown => return None,
            Ty::Bool(_) => Type::Bool,
            Ty::Long => Type::Long,
            Ty::Str => Type::String,
            Ty::Ext(extension) => Type::Ext(*extension),
            Ty::Entity(name) => Type::Entity(name.clone()),
            Ty::Set(element) => Type::Set(Box::new(element.to_type()?)),
            Ty::Record(record) => Type::Record(record.as_ref().clone()),
        })
    }

    /// The type of a record literal; unknown if one of its values is.
    pub fn record(fields: impl IntoIterator<Item = (SmolStr, Ty<'s>)>) -> Ty<'s> {
        let mut record = RecordType::default();
        for (name, ty) in fields {
            let Some(ty) = ty.to_type() else {
                return Ty::Unknown;
            };
            record.attrs.insert(name, AttrType { ty, required: true });
        }
        Ty::Record(Cow::Owned(record))
    }

    pub fn negated(self) -> Ty<'s> {
        match self {
            Ty::Bool(value) => Ty::Bool(value.map(|value| !value)),
            other => other,
        }
    }

    /// The type that both are, where they are alike.
    pub fn join(&self, other: &Ty<'s>) -> Option<Ty<'s>> {
        match (self, other) {
            (Ty::Unknown, ty) | (ty, Ty::Unknown) => Some(ty.clone()),
            (Ty::Bool(a), Ty::Bool(b)) => Some(Ty::Bool(if a == b { *a } else { None })),
            (Ty::Set(a), Ty::Set(b)) => Some(Ty::Set(Box::new(a.join(b)?))),
            (a, b) => (a == b).then(|| a.clone()),
        }
    }

    /// As a message names it.
    pub fn name(&self) -> SmolStr {
        match self {
            Ty::Unknown => SmolStr::new("something unknown"),
            Ty::Bool(_) => SmolStr::new("a Bool"),
            Ty::Long => SmolStr::new("a Long"),
            Ty::Str => SmolStr::new("a String"),
            Ty::Ext(Extension::IpAddr) => SmolStr::new("an ipaddr"),
            Ty::Ext(extension) => format_smolstr!("a {}", extension.name()),
            Ty::Entity(name) => format_smolstr!("an entity of type {name}"),
            Ty::Set(element) => match element.as_ref() {
                Ty::Unknown => SmolStr::new("a set"),
                element => format_smolstr!("a set, each element {}", element.name()),
            },
            Ty::Record(_) => SmolStr::new("a record"),
        }
    }
}
