//! What a tool's arguments look like to the policy: JSON Schema in, a shape out, and arguments measured by it.
//!
//! ```text
//! boolean → Bool       string → String       array of T → Set<T>
//! integer, number → Long                     object with properties → record
//! enum, const → the type of its values       a type or null → that type, optional
//! ```
//!
//! Anything else says nothing a rule could be checked against, so it is refused by name.

use dogwood_compiler::value::{Record, Value as PolicyValue};
use serde_json::{Map, Value};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use thiserror::Error;

/// Schemas inside one another at most, references followed.
const MAX_DEPTH: usize = 16;
/// Fields of one tool at most, nested ones counted.
const MAX_FIELDS: usize = 512;
/// Whole numbers beyond this are not exact once they were written with a fraction or an exponent.
const EXACT: f64 = 9_007_199_254_740_992.0;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    Bool,
    Long,
    Text,
    List(Box<Shape>),
    Fields(Fields),
}

pub type Fields = BTreeMap<SmolStr, Field>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    pub shape: Shape,
    pub required: bool,
}

/// A part of a tool's input that no rule could speak of.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{place}: {reason}")]
pub struct Unsupported {
    /// `charge.items[].price`
    pub place: String,
    pub reason: UnsupportedReason,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnsupportedReason {
    #[error("it has no `type`, so a rule could not compare it with anything")]
    NoType,
    #[error("the type {0:?} is not one a rule can speak of")]
    Type(String),
    #[error("it may be one of several types")]
    Union,
    #[error("its values are of several types")]
    MixedValues,
    #[error("an empty `enum` takes no value")]
    NoValues,
    #[error("an array must say what its `items` are, and they must be alike")]
    Items,
    #[error("an object must name its `properties`")]
    OpenObject,
    #[error("the reference {0:?} leads nowhere in this schema")]
    Reference(String),
    #[error("it holds itself, or is nested deeper than {MAX_DEPTH}")]
    Deep,
    #[error("it has more than {MAX_FIELDS} fields")]
    Many,
    #[error("an input schema must be an object schema")]
    NotAnObject,
    #[error("the name {0:?} holds a control character")]
    Name(String),
    #[error("`required` must list names of properties")]
    Required,
}

/// An argument that does not have the shape the policy was given.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Mismatch {
    #[error("the argument `{place}` is missing")]
    Missing { place: String },
    #[error("the tool has no argument `{place}`{}", nearest.as_ref().map(|n| format!("; the nearest is `{n}`")).unwrap_or_default())]
    Unknown {
        place: String,
        nearest: Option<SmolStr>,
    },
    #[error("the argument `{place}` must be {wanted}, and it is {found}")]
    Type {
        place: String,
        wanted: &'static str,
        found: &'static str,
    },
    #[error(
        "the argument `{place}` is {found}, and the policy counts in whole numbers; send a whole number (cents instead of euros, say)"
    )]
    Fraction { place: String, found: String },
    #[error("the argument `{place}` is {found}, which is beyond 64 bits")]
    Large { place: String, found: String },
}

/// The shape of a tool's input, or everything in it that has none.
pub fn input_shape(tool: &str, schema: &Value) -> Result<Fields, Vec<Unsupported>> {
    let mut reading = Reading {
        root: schema,
        fields: 0,
        problems: Vec::new(),
    };
    let empty = schema.as_object().is_some_and(|members| {
        !members.contains_key("properties")
            && members.get("type").is_none_or(|ty| ty == "object")
            && !["$ref", "anyOf", "oneOf", "allOf"]
                .iter()
                .any(|key| members.contains_key(*key))
    });
    if empty {
        return Ok(Fields::new());
    }
    let shape = reading.shape(tool, schema, 0).map(|(shape, _)| shape);
    match shape {
        Some(Shape::Fields(fields)) if reading.problems.is_empty() => Ok(fields),
        Some(Shape::Fields(_)) | None if !reading.problems.is_empty() => Err(reading.problems),
        _ => {
            reading.problem(tool, UnsupportedReason::NotAnObject);
            Err(reading.problems)
        }
    }
}

struct Reading<'s> {
    root: &'s Value,
    fields: usize,
    problems: Vec<Unsupported>,
}

impl Reading<'_> {
    fn problem(&mut self, place: &str, reason: UnsupportedReason) {
        self.problems.push(Unsupported {
            place: place.to_owned(),
            reason,
        });
    }

    /// The shape, and whether null may stand for it. Absent when a problem was found.
    fn shape(&mut self, place: &str, schema: &Value, depth: usize) -> Option<(Shape, bool)> {
        if depth > MAX_DEPTH {
            self.problem(place, UnsupportedReason::Deep);
            return None;
        }
        let Some(schema) = schema.as_object() else {
            self.problem(place, UnsupportedReason::NoType);
            return None;
        };
        if let Some(reference) = schema.get("$ref") {
            let text = reference.as_str().unwrap_or_default();
            let root = self.root;
            let Some(target) = text
                .strip_prefix('#')
                .and_then(|pointer| root.pointer(pointer))
            else {
                self.problem(place, UnsupportedReason::Reference(text.to_owned()));
                return None;
            };
            return self.shape(place, target, depth + 1);
        }
        for key in ["anyOf", "oneOf", "allOf"] {
            if let Some(choices) = schema.get(key) {
                return self.choice(place, choices, depth);
            }
        }
        if let Some(values) = schema.get("enum") {
            let values = values.as_array().map(Vec::as_slice).unwrap_or_default();
            return self.values(place, values);
        }
        if let Some(value) = schema.get("const") {
            return self.values(place, std::slice::from_ref(value));
        }
        let (ty, nullable) = match schema.get("type") {
            Some(Value::String(ty)) => (ty.as_str(), false),
            Some(Value::Array(types)) => {
                let mut others = types.iter().filter(|ty| *ty != "null");
                match (others.next().and_then(Value::as_str), others.next()) {
                    (Some(ty), None) => (ty, true),
                    _ => {
                        self.problem(place, UnsupportedReason::Union);
                        return None;
                    }
                }
            }
            Some(other) => {
                self.problem(place, UnsupportedReason::Type(other.to_string()));
                return None;
            }
            None if schema.contains_key("properties") => ("object", false),
            None => {
                self.problem(place, UnsupportedReason::NoType);
                return None;
            }
        };
        let shape = match ty {
            "boolean" => Shape::Bool,
            "integer" | "number" => Shape::Long,
            "string" => Shape::Text,
            "array" => {
                let items = schema.get("items").filter(|items| items.is_object());
                let Some(items) = items.filter(|_| !schema.contains_key("prefixItems")) else {
                    self.problem(place, UnsupportedReason::Items);
                    return None;
                };
                let (item, nullable) = self.shape(&format!("{place}[]"), items, depth + 1)?;
                if nullable {
                    self.problem(&format!("{place}[]"), UnsupportedReason::Union);
                    return None;
                }
                Shape::List(Box::new(item))
            }
            "object" => Shape::Fields(self.object(place, schema, depth)?),
            other => {
                self.problem(place, UnsupportedReason::Type(other.to_owned()));
                return None;
            }
        };
        Some((shape, nullable))
    }

    fn object(&mut self, place: &str, schema: &Map<String, Value>, depth: usize) -> Option<Fields> {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            self.problem(place, UnsupportedReason::OpenObject);
            return None;
        };
        let required: Option<Vec<&str>> = match schema.get("required") {
            None => Some(Vec::new()),
            Some(names) => names
                .as_array()
                .and_then(|names| names.iter().map(Value::as_str).collect()),
        };
        let Some(required) =
            required.filter(|names| names.iter().all(|n| properties.contains_key(*n)))
        else {
            self.problem(place, UnsupportedReason::Required);
            return None;
        };
        self.fields += properties.len();
        if self.fields > MAX_FIELDS {
            self.problem(place, UnsupportedReason::Many);
            return None;
        }
        let mut fields = Fields::new();
        for (name, schema) in properties {
            let place = format!("{place}.{name}");
            if name.chars().any(char::is_control) {
                self.problem(&place, UnsupportedReason::Name(name.clone()));
                continue;
            }
            // Every problem of a tool is told at once.
            if let Some((shape, nullable)) = self.shape(&place, schema, depth + 1) {
                let required = required.contains(&name.as_str()) && !nullable;
                fields.insert(name.into(), Field { shape, required });
            }
        }
        Some(fields)
    }

    /// One schema, or one and null.
    fn choice(&mut self, place: &str, choices: &Value, depth: usize) -> Option<(Shape, bool)> {
        let choices = choices.as_array().map(Vec::as_slice).unwrap_or_default();
        let null = |choice: &&Value| choice.get("type").is_some_and(|ty| ty == "null");
        let nullable = choices.iter().any(|choice| null(&choice));
        let mut others = choices.iter().filter(|choice| !null(choice));
        match (others.next(), others.next()) {
            (Some(only), None) => {
                let (shape, inner) = self.shape(place, only, depth + 1)?;
                Some((shape, nullable || inner))
            }
            _ => {
                self.problem(place, UnsupportedReason::Union);
                None
            }
        }
    }

    fn values(&mut self, place: &str, values: &[Value]) -> Option<(Shape, bool)> {
        let nullable = values.iter().any(Value::is_null);
        let mut found = None;
        for value in values.iter().filter(|value| !value.is_null()) {
            let shape = match value {
                Value::Bool(_) => Shape::Bool,
                Value::Number(_) => Shape::Long,
                Value::String(_) => Shape::Text,
                _ => {
                    self.problem(place, UnsupportedReason::MixedValues);
                    return None;
                }
            };
            if found.as_ref().is_some_and(|other| *other != shape) {
                self.problem(place, UnsupportedReason::MixedValues);
                return None;
            }
            found = Some(shape);
        }
        let Some(shape) = found else {
            self.problem(place, UnsupportedReason::NoValues);
            return None;
        };
        Some((shape, nullable))
    }
}

/// The arguments as the policy sees them. What it could not see is refused.
pub fn measure(fields: &Fields, arguments: &Map<String, Value>) -> Result<Record, Mismatch> {
    record("", fields, arguments)
}

fn record(within: &str, fields: &Fields, members: &Map<String, Value>) -> Result<Record, Mismatch> {
    let place = |name: &str| {
        if within.is_empty() {
            name.to_owned()
        } else {
            format!("{within}.{name}")
        }
    };
    if let Some(name) = members
        .keys()
        .find(|name| !fields.contains_key(name.as_str()))
    {
        let nearest = fields
            .keys()
            .map(|field| (strsim::damerau_levenshtein(field, name), field))
            .filter(|(distance, _)| *distance <= 2)
            .min();
        return Err(Mismatch::Unknown {
            place: place(name),
            nearest: nearest.map(|(_, field)| field.clone()),
        });
    }
    let mut out = Record::new();
    for (name, field) in fields {
        match members.get(name.as_str()) {
            None | Some(Value::Null) if !field.required => {}
            None => return Err(Mismatch::Missing { place: place(name) }),
            Some(value) => {
                out.insert(name.clone(), converted(&place(name), &field.shape, value)?);
            }
        }
    }
    Ok(out)
}

fn converted(place: &str, shape: &Shape, value: &Value) -> Result<PolicyValue, Mismatch> {
    Ok(match (shape, value) {
        (Shape::Bool, Value::Bool(b)) => PolicyValue::Bool(*b),
        (Shape::Text, Value::String(text)) => PolicyValue::str(text.as_str()),
        (Shape::Long, Value::Number(number)) => PolicyValue::Int(long(place, number)?),
        (Shape::List(item), Value::Array(values)) => {
            let place = format!("{place}[]");
            let items = values.iter().map(|value| converted(&place, item, value));
            PolicyValue::Array(items.collect::<Result<_, _>>()?)
        }
        (Shape::Fields(fields), Value::Object(members)) => {
            PolicyValue::Object(record(place, fields, members)?)
        }
        _ => {
            return Err(Mismatch::Type {
                place: place.to_owned(),
                wanted: shape.words(),
                found: words(value),
            });
        }
    })
}

fn long(place: &str, number: &serde_json::Number) -> Result<i64, Mismatch> {
    if let Some(n) = number.as_i64() {
        return Ok(n);
    }
    let (place, found) = (place.to_owned(), number.to_string());
    match number.as_f64() {
        // 5.0 is the whole number 5, in JSON Schema too.
        #[allow(clippy::cast_possible_truncation)]
        Some(n) if n.fract() == 0.0 && n.abs() <= EXACT => Ok(n as i64),
        Some(n) if n.fract() != 0.0 => Err(Mismatch::Fraction { place, found }),
        _ => Err(Mismatch::Large { place, found }),
    }
}

impl Shape {
    fn words(&self) -> &'static str {
        match self {
            Shape::Bool => "true or false",
            Shape::Long => "a whole number",
            Shape::Text => "a text",
            Shape::List(_) => "an array",
            Shape::Fields(_) => "an object",
        }
    }
}

fn words(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::{Fields, input_shape, measure};
    use serde_json::{Value, json};

    fn fields(schema: &Value) -> Fields {
        input_shape("t", schema).expect("a shape")
    }

    fn problems(schema: &Value) -> String {
        let problems = input_shape("t", schema).expect_err("problems");
        problems
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn object(properties: Value) -> Value {
        json!({"type": "object", "properties": properties})
    }

    #[test]
    fn every_supported_shape_is_measured() {
        let schema = json!({
            "type": "object",
            "properties": {
                "flag": {"type": "boolean"},
                "amount": {"type": "number"},
                "count": {"type": "integer"},
                "kind": {"enum": ["a", "b"]},
                "level": {"const": 3},
                "tags": {"type": "array", "items": {"type": "string"}},
                "who": {"$ref": "#/$defs/Person"},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "memo": {"type": ["string", "null"]},
            },
            "required": ["amount", "memo"],
            "$defs": {"Person": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}},
        });
        let arguments = json!({
            "flag": true, "amount": 5.0, "count": -2, "kind": "a", "level": 3,
            "tags": ["x", "x"], "who": {"name": "ann"}, "note": null,
        });
        let record = measure(&fields(&schema), arguments.as_object().unwrap()).unwrap();
        insta::assert_snapshot!(format!("{record:?}"));
    }

    #[test]
    fn what_no_rule_could_speak_of_is_refused_all_at_once() {
        let schema = json!({
            "type": "object",
            "properties": {
                "any": {},
                "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "types": {"type": ["string", "integer"]},
                "nothing": {"type": "null"},
                "mixed": {"enum": ["a", 1]},
                "none": {"enum": []},
                "list": {"type": "array"},
                "tuple": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "string"}},
                "holes": {"type": "array", "items": {"type": ["string", "null"]}},
                "open": {"type": "object"},
                "lost": {"$ref": "#/$defs/Nobody"},
                "far": {"$ref": "https://example.com/schema"},
                "loop": {"$ref": "#/properties/loop"},
                "strange": {"type": "decimal"},
                "demanding": {"type": "object", "properties": {}, "required": ["x"]},
            },
        });
        insta::assert_snapshot!(problems(&schema));
        insta::assert_snapshot!(problems(&json!({"type": "string"})));
    }

    #[test]
    fn a_tool_without_arguments_takes_none() {
        for schema in [json!({}), json!({"type": "object"}), object(json!({}))] {
            assert_eq!(
                measure(&fields(&schema), &serde_json::Map::new()),
                Ok(Default::default())
            );
        }
    }

    #[test]
    fn arguments_that_do_not_fit_are_refused_with_words() {
        let fields = fields(&json!({
            "type": "object",
            "properties": {"amount": {"type": "number"}, "who": object(json!({"name": {"type": "string"}})), "tags": {"type": "array", "items": {"type": "string"}}},
            "required": ["amount"],
        }));
        let faults: Vec<String> = [
            json!({}),
            json!({"amount": null}),
            json!({"amount": "5"}),
            json!({"amount": 19.99}),
            json!({"amount": 9_223_372_036_854_775_808_u64}),
            json!({"amount": 1e300}),
            json!({"amount": true}),
            json!({"amount": 1, "Amount": 2}),
            json!({"amount": 1, "other": 2}),
            json!({"amount": 1, "who": {"nmae": "ann"}}),
            json!({"amount": 1, "who": {"name": 3}}),
            json!({"amount": 1, "tags": ["a", {}]}),
        ]
        .iter()
        .map(|arguments| {
            measure(&fields, arguments.as_object().unwrap())
                .expect_err("a mismatch")
                .to_string()
        })
        .collect();
        insta::assert_snapshot!(faults.join("\n"));
    }
}
