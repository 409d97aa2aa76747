//! The entities that come with a decision: what is known of them, and whether they fit the schema.

use crate::automaton::parse_decimal;
use crate::event::EntityData;
use crate::schema::{ActionSchema, Extension, RecordType, Type};
use crate::value::{EntityUid, Record, Value};
use smallvec::SmallVec;
use smol_str::SmolStr;
use std::collections::HashMap;
use std::fmt;

/// Why the entities of a decision were not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntityError {
    UnknownType {
        entity: EntityUid,
    },
    /// Not one of the ids of an enumerated type.
    NotAChoice {
        entity: EntityUid,
    },
    /// Given twice, with different contents.
    GivenTwice {
        entity: EntityUid,
    },
    MissingAttribute {
        entity: EntityUid,
        name: SmolStr,
    },
    UndeclaredAttribute {
        entity: EntityUid,
        name: SmolStr,
    },
    WrongType {
        entity: EntityUid,
        name: SmolStr,
    },
    /// The type of the entity declares no tags.
    UndeclaredTags {
        entity: EntityUid,
    },
    WrongTagType {
        entity: EntityUid,
        name: SmolStr,
    },
    /// The schema does not let this type be in that one.
    WrongParent {
        entity: EntityUid,
        parent: EntityUid,
    },
    /// An entity is its own ancestor.
    Cycle {
        entity: EntityUid,
    },
}

impl fmt::Display for EntityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntityError::UnknownType { entity } => {
                write!(f, "the schema has no entity type `{}`", entity.ty)
            }
            EntityError::NotAChoice { entity } => {
                write!(
                    f,
                    "{:?} is not one of the ids of `{}`",
                    entity.id.as_str(),
                    entity.ty
                )
            }
            EntityError::GivenTwice { entity } => {
                write!(f, "{entity} is given twice with different contents")
            }
            EntityError::MissingAttribute { entity, name } => {
                write!(f, "{entity} lacks its required attribute `{name}`")
            }
            EntityError::UndeclaredAttribute { entity, name } => {
                write!(
                    f,
                    "{entity} has an attribute `{name}` that its type does not declare"
                )
            }
            EntityError::WrongType { entity, name } => {
                write!(
                    f,
                    "attribute `{name}` of {entity} has another type than declared"
                )
            }
            EntityError::UndeclaredTags { entity } => {
                write!(f, "{entity} has tags, which its type does not declare")
            }
            EntityError::WrongTagType { entity, name } => {
                write!(f, "tag `{name}` of {entity} has another type than declared")
            }
            EntityError::WrongParent { entity, parent } => {
                write!(f, "{entity} cannot be in {parent}")
            }
            EntityError::Cycle { entity } => write!(f, "{entity} is among its own ancestors"),
        }
    }
}

impl std::error::Error for EntityError {}

/// The entities of one decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entities<'a> {
    pub given: &'a [EntityData],
}

impl<'a> Entities<'a> {
    pub fn get(&self, uid: &EntityUid) -> Option<&'a EntityData> {
        self.given.iter().find(|entity| entity.uid == *uid)
    }

    /// A tag of an entity. A null tag is the same as none.
    pub fn tag(&self, uid: &EntityUid, name: &str) -> Option<&'a Value> {
        let value = self.get(uid)?.tags.get(name)?;
        (*value != Value::Null).then_some(value)
    }

    /// Whether an entity is another one or below it.
    pub fn is_in(&self, uid: &EntityUid, ancestor: &EntityUid) -> bool {
        if uid == ancestor {
            return true;
        }
        let mut seen: SmallVec<[&EntityUid; 16]> = SmallVec::new();
        let mut work: SmallVec<[&EntityUid; 16]> = self.parents(uid).iter().collect();
        while let Some(next) = work.pop() {
            if next == ancestor {
                return true;
            }
            if !seen.contains(&next) {
                seen.push(next);
                work.extend(self.parents(next));
            }
        }
        false
    }

    fn parents(&self, uid: &EntityUid) -> &'a [EntityUid] {
        self.get(uid).map_or(&[], |entity| &entity.parents)
    }

    pub fn check(&self, schema: &ActionSchema) -> Result<(), EntityError> {
        if let [only] = self.given {
            check_entity(only, schema)?;
            let own = only.parents.contains(&only.uid);
            let entity = only.uid.clone();
            return if own {
                Err(EntityError::Cycle { entity })
            } else {
                Ok(())
            };
        }
        if self.given.is_empty() {
            return Ok(());
        }
        let mut seen: HashMap<&EntityUid, &EntityData> = HashMap::new();
        for entity in self.given {
            if let Some(before) = seen.insert(&entity.uid, entity)
                && before != entity
            {
                return Err(EntityError::GivenTwice {
                    entity: entity.uid.clone(),
                });
            }
            check_entity(entity, schema)?;
        }
        self.check_cycles(&seen)
    }

    /// Peels off entities without open parents; what is left runs in circles.
    fn check_cycles(&self, seen: &HashMap<&EntityUid, &EntityData>) -> Result<(), EntityError> {
        let mut open: HashMap<&EntityUid, usize> = HashMap::new();
        let mut below: HashMap<&EntityUid, Vec<&EntityUid>> = HashMap::new();
        for (uid, entity) in seen {
            let parents = entity
                .parents
                .iter()
                .filter(|parent| seen.contains_key(parent));
            let mut count = 0;
            for parent in parents {
                count += 1;
                below.entry(parent).or_default().push(uid);
            }
            open.insert(uid, count);
        }
        let mut done: Vec<&EntityUid> = open
            .iter()
            .filter(|(_, count)| **count == 0)
            .map(|(uid, _)| *uid)
            .collect();
        while let Some(uid) = done.pop() {
            open.remove(uid);
            for child in below.get(uid).into_iter().flatten() {
                if let Some(count) = open.get_mut(child) {
                    *count -= 1;
                    if *count == 0 {
                        done.push(child);
                    }
                }
            }
        }
        match open.into_keys().min() {
            Some(uid) => Err(EntityError::Cycle {
                entity: uid.clone(),
            }),
            None => Ok(()),
        }
    }
}

fn check_entity(entity: &EntityData, schema: &ActionSchema) -> Result<(), EntityError> {
    let uid = || entity.uid.clone();
    let Some(ty) = schema.entity_types.get(&entity.uid.ty) else {
        return Err(EntityError::UnknownType { entity: uid() });
    };
    if let Some(choices) = &ty.choices
        && !choices.contains(&entity.uid.id)
    {
        return Err(EntityError::NotAChoice { entity: uid() });
    }
    for parent in &entity.parents {
        // A type may be among its own parents, but is not listed among its ancestors.
        if !ty.ancestors.contains(&parent.ty) && !ty.parents.contains(&parent.ty) {
            return Err(EntityError::WrongParent {
                entity: uid(),
                parent: parent.clone(),
            });
        }
    }
    for (name, value) in &entity.tags {
        let Some(tag) = &ty.tags else {
            return Err(EntityError::UndeclaredTags { entity: uid() });
        };
        if *value != Value::Null && !conforms(value, tag) {
            return Err(EntityError::WrongTagType {
                entity: uid(),
                name: name.clone(),
            });
        }
    }
    for (name, attr) in &ty.attrs.attrs {
        // A null attribute is the same as none.
        let given = entity
            .attrs
            .get(name)
            .filter(|value| **value != Value::Null);
        match given {
            None if attr.required => {
                return Err(EntityError::MissingAttribute {
                    entity: uid(),
                    name: name.clone(),
                });
            }
            Some(value) if !conforms(value, &attr.ty) => {
                return Err(EntityError::WrongType {
                    entity: uid(),
                    name: name.clone(),
                });
            }
            _ => {}
        }
    }
    let undeclared = entity
        .attrs
        .iter()
        .find(|(name, value)| **value != Value::Null && !ty.attrs.attrs.contains_key(*name));
    match undeclared {
        Some((name, _)) => Err(EntityError::UndeclaredAttribute {
            entity: uid(),
            name: name.clone(),
        }),
        None => Ok(()),
    }
}

fn conforms(value: &Value, ty: &Type) -> bool {
    match (value, ty) {
        (Value::Bool(_), Type::Bool)
        | (Value::Int(_), Type::Long)
        | (Value::String(_) | Value::Null, Type::String) => true,
        (Value::Decimal(text), Type::Ext(Extension::Decimal)) => parse_decimal(text).is_some(),
        (Value::Entity(uid), Type::Entity(name)) => uid.ty == *name,
        (Value::Array(items), Type::Set(item)) => items.iter().all(|value| conforms(value, item)),
        (Value::Object(fields), Type::Record(record)) => record_conforms(fields, record),
        _ => false,
    }
}

fn record_conforms(fields: &Record, record: &RecordType) -> bool {
    let declared = record
        .attrs
        .iter()
        .all(|(name, attr)| match fields.get(name) {
            None => !attr.required,
            Some(value) => conforms(value, &attr.ty),
        });
    declared && fields.keys().all(|name| record.attrs.contains_key(name))
}
