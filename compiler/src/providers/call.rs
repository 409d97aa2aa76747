//! Calls as the monitor keeps them: with arguments that need only the request to be known.

use super::Chain;
use crate::automaton::parse_decimal;
use crate::event::{Event, RequestPart};
use crate::schema::PinValue;
use crate::value::Value;
use dogwood_grammar::ast::{Expr, ExprKind, Var};
use smol_str::SmolStr;
use std::borrow::Cow;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub provider: SmolStr,
    /// Nothing where some argument is none that a provider takes.
    pub args: Option<Vec<Arg>>,
    pub methods: Vec<(SmolStr, Option<Vec<Arg>>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arg {
    Path(PinValue),
    Value(Value),
    Set(Vec<Arg>),
}

impl Call {
    pub fn new(chain: &Chain<'_>) -> Call {
        let arguments = |args: &[Expr]| args.iter().map(argument).collect::<Option<Vec<Arg>>>();
        let methods = chain.methods.iter();
        Call {
            provider: chain.name.text(),
            args: arguments(chain.args),
            methods: methods
                .map(|(name, args)| (name.text.clone(), arguments(args)))
                .collect(),
        }
    }
}

/// An argument of a provider: a path of the request, a literal, or a set of these.
pub(crate) fn argument(expr: &Expr) -> Option<Arg> {
    Some(match &expr.kind {
        ExprKind::Str(text) => Arg::Value(Value::String(text.clone())),
        ExprKind::Long(number) => Arg::Value(Value::Int(*number)),
        ExprKind::Bool(value) => Arg::Value(Value::Bool(*value)),
        ExprKind::Call { name, args } if name.text() == "decimal" => match args.as_slice() {
            [
                Expr {
                    kind: ExprKind::Str(text),
                    ..
                },
            ] if parse_decimal(text).is_some() => Arg::Value(Value::Decimal(text.clone())),
            _ => return None,
        },
        ExprKind::Set(items) => Arg::Set(items.iter().map(argument).collect::<Option<_>>()?),
        _ => Arg::Path(path(expr)?),
    })
}

fn path(expr: &Expr) -> Option<PinValue> {
    let mut words = Vec::new();
    let mut at = expr;
    while let ExprKind::Attr { target, attr } = &at.kind {
        words.push(attr.name.clone());
        at = target;
    }
    words.reverse();
    match at.kind {
        ExprKind::Var(Var::Principal) => Some(PinValue::Principal(words)),
        ExprKind::Var(Var::Resource) => Some(PinValue::Resource(words)),
        ExprKind::Var(Var::Context) => Some(PinValue::Context(words)),
        _ => None,
    }
}

impl Arg {
    /// `Null` for what is not there.
    pub fn value(&self, event: &Event) -> Value {
        match self {
            Arg::Value(value) => value.clone(),
            Arg::Set(items) => Value::Array(items.iter().map(|item| item.value(event)).collect()),
            Arg::Path(path) => {
                let Some(part) = &event.request else {
                    return Value::Null;
                };
                let found = part
                    .read(path)
                    .or_else(|| part.read(&without_input(path, part)?));
                found.map_or(Value::Null, Cow::into_owned)
            }
        }
    }
}

/// `context.x` for `context.input.x`, where a request context comes without its `input`: the arguments of the
/// action by themselves. Only providers are asked with these.
fn without_input(path: &PinValue, part: &RequestPart) -> Option<PinValue> {
    match path {
        PinValue::Context(words) if !part.context.contains_key("input") => {
            let (first, rest) = words.split_first()?;
            (first == "input" && !rest.is_empty()).then(|| PinValue::Context(rest.to_vec()))
        }
        _ => None,
    }
}
