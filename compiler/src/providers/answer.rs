//! The answer to one call: the host's or the script's value, through the methods, as declared.

use super::call::{Arg, Call};
use super::script::{Base, ScriptError, Stage};
use super::{Provider, Providers, entities_in};
use crate::automaton::parse_decimal;
use crate::event::Event;
use crate::schema::Type;
use crate::value::{EntityUid, Record, Value};
use smol_str::SmolStr;
use std::fmt;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderError {
    Undeclared,
    /// Something that no provider can be given, or a method that is not declared.
    BadCall,
    /// Neither the host nor a script answers.
    NoImplementation,
    Host(String),
    Script(ScriptError),
    /// Not one of the values of the enumerated type that was declared.
    NotAChoice {
        ty: SmolStr,
        found: SmolStr,
    },
    /// Another kind of value where the declared type holds an enumerated one.
    WrongShape {
        wanted: &'static str,
        found: &'static str,
    },
    MissingField {
        name: SmolStr,
    },
    /// More digits than a decimal of the language has.
    Decimal {
        text: SmolStr,
    },
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProviderError::Undeclared => f.write_str("it is not declared"),
            ProviderError::BadCall => f.write_str("it cannot be asked like this"),
            ProviderError::NoImplementation => f.write_str("nothing answers for it"),
            ProviderError::Host(why) => f.write_str(why),
            ProviderError::Script(error) => error.fmt(f),
            ProviderError::NotAChoice { ty, found } => {
                write!(f, "its answer {found:?} is not one of the values of `{ty}`")
            }
            ProviderError::WrongShape { wanted, found } => {
                write!(f, "its answer has {found} where {wanted} is declared")
            }
            ProviderError::MissingField { name } => {
                write!(f, "its answer lacks the field `{name}`")
            }
            ProviderError::Decimal { text } => {
                write!(f, "its answer {text} does not fit a decimal")
            }
        }
    }
}

impl std::error::Error for ProviderError {}

impl Providers {
    /// Asks for one value, for the decision on this event.
    pub(crate) fn answer(&self, call: &Call, event: &Event) -> Result<Value, ProviderError> {
        let provider = self.get(&call.provider).ok_or(ProviderError::Undeclared)?;
        let values = |args: &Option<Vec<Arg>>| -> Result<Vec<Value>, ProviderError> {
            let args = args.as_ref().ok_or(ProviderError::BadCall)?;
            Ok(args.iter().map(|arg| arg.value(event)).collect())
        };
        let args = values(&call.args)?;
        // Of the base and of each stage.
        let mut outputs = vec![&provider.output];
        let mut stages = Vec::with_capacity(call.methods.len());
        for (name, args) in &call.methods {
            let method = provider.methods.get(name).ok_or(ProviderError::BadCall)?;
            stages.push(Stage {
                function: name,
                args: passed(values(args)?, &method.args),
            });
            outputs.push(&method.output);
        }
        let given = self
            .resolver
            .as_ref()
            .and_then(|host| host.resolve(&call.provider, &args));
        let mut base = match given.transpose().map_err(ProviderError::Host)? {
            Some(base) => Base::Given(base),
            None => Base::Evaluate(passed(args, &provider.args)),
        };
        // Values between two stages are left to the script, save those that are insisted on.
        let mut run = 0;
        for (at, output) in outputs.iter().enumerate() {
            let last = at == stages.len();
            if !last && !holds_enums(output) {
                continue;
            }
            let through = stages.get(run..at).unwrap_or_default();
            let value = match base {
                Base::Given(value) if through.is_empty() => value,
                base => provider.run(base, through)?,
            };
            let value = self.declared(value, output)?;
            if last {
                decimals(&value)?;
                return Ok(value);
            }
            base = Base::Given(plain(value, Some(output)));
            run = at;
        }
        Err(ProviderError::BadCall)
    }

    /// The value as one of the declared type. Only enumerated types are insisted on: whatever else is
    /// wrong shows when the value is read.
    fn declared(&self, value: Value, ty: &Type) -> Result<Value, ProviderError> {
        if !holds_enums(ty) {
            return Ok(value);
        }
        match ty {
            Type::Entity(name) => self.choice(value, name),
            Type::Set(element) => match value {
                Value::Array(items) => {
                    let items = items.into_iter().map(|item| self.declared(item, element));
                    Ok(Value::Array(items.collect::<Result<_, _>>()?))
                }
                other => wrong_shape("a set", &other),
            },
            Type::Record(record) => {
                let Value::Object(mut given) = value else {
                    return wrong_shape("a record", &value);
                };
                let mut found = Record::new();
                for (name, attr) in &record.attrs {
                    let matters = attr.required && holds_enums(&attr.ty);
                    match given.remove(name) {
                        Some(value) => {
                            found.insert(name.clone(), self.declared(value, &attr.ty)?);
                        }
                        None if matters => {
                            let name = name.clone();
                            return Err(ProviderError::MissingField { name });
                        }
                        None => {}
                    }
                }
                found.append(&mut given);
                Ok(Value::Object(found))
            }
            _ => Ok(value),
        }
    }

    fn choice(&self, value: Value, ty: &SmolStr) -> Result<Value, ProviderError> {
        let id = match &value {
            Value::String(id) => id,
            Value::Entity(uid) if uid.ty == *ty => &uid.id,
            other => return wrong_shape("a value of an enumerated type", other),
        };
        let known = self.enums.get(ty);
        if known.is_some_and(|known| known.choices.contains(id)) {
            Ok(Value::Entity(EntityUid::new(ty.clone(), id.clone())))
        } else {
            let (ty, found) = (ty.clone(), id.clone());
            Err(ProviderError::NotAChoice { ty, found })
        }
    }
}

impl Provider {
    fn run(&self, base: Base, stages: &[Stage<'_>]) -> Result<Value, ProviderError> {
        let script = self
            .script
            .as_ref()
            .ok_or(ProviderError::NoImplementation)?;
        script.run(base, stages).map_err(ProviderError::Script)
    }
}

/// Whether values of this type are insisted on.
fn holds_enums(ty: &Type) -> bool {
    let mut found = false;
    entities_in(ty, &mut |_| found = true);
    found
}

/// Arguments as a script takes them: an entity is its id where one is declared, and its full name
/// elsewhere.
fn passed(args: Vec<Value>, types: &[Type]) -> Vec<Value> {
    let types = types.iter().map(Some).chain(std::iter::repeat(None));
    args.into_iter()
        .zip(types)
        .map(|(value, ty)| plain(value, ty))
        .collect()
}

fn plain(value: Value, ty: Option<&Type>) -> Value {
    match value {
        Value::Entity(uid) => match ty {
            Some(Type::Entity(_)) => Value::String(uid.id),
            _ => Value::str(uid.to_string()),
        },
        Value::Array(items) => {
            let element = match ty {
                Some(Type::Set(element)) => Some(element.as_ref()),
                _ => None,
            };
            let items = items.into_iter().map(|item| plain(item, element));
            Value::Array(items.collect())
        }
        Value::Object(fields) => {
            let field = |name: &SmolStr| match ty {
                Some(Type::Record(record)) => record.attrs.get(name).map(|attr| &attr.ty),
                _ => None,
            };
            let fields = fields.into_iter().map(|(name, value)| {
                let ty = field(&name);
                (name, plain(value, ty))
            });
            Value::Object(fields.collect())
        }
        other => other,
    }
}

fn decimals(value: &Value) -> Result<(), ProviderError> {
    match value {
        Value::Decimal(text) if parse_decimal(text).is_none() => {
            Err(ProviderError::Decimal { text: text.clone() })
        }
        Value::Array(items) => items.iter().try_for_each(decimals),
        Value::Object(fields) => fields.values().try_for_each(decimals),
        _ => Ok(()),
    }
}

fn wrong_shape<T>(wanted: &'static str, found: &Value) -> Result<T, ProviderError> {
    let found = match found {
        Value::Null => "nothing",
        Value::Bool(_) => "a Boolean",
        Value::Int(_) => "a number",
        Value::String(_) => "a string",
        Value::Decimal(_) => "a decimal",
        Value::Entity(_) => "another entity",
        Value::Array(_) => "a set",
        Value::Object(_) => "a record",
    };
    Err(ProviderError::WrongShape { wanted, found })
}
