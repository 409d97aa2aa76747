//! Whether an event is exactly what its schema says: every required field there, of its type, and nothing else.
//!
//! The language itself takes any event, and a rule whose field is absent just does not match. Whoever shapes the
//! event could then step round a forbid by leaving the field out; a box therefore takes strict events only.

use super::{Event, RequestPart};
use crate::automaton::parse_decimal;
use crate::schema::{
    ActionSchema, AppliesTo, DerivedEvent, EventId, Extension, FieldType, RecordType, Service, Type,
};
use crate::value::{EntityUid, Record, Value};
use smol_str::SmolStr;
use std::fmt;

/// What is wrong with an event, and of which action and kind it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrictError {
    pub action: EntityUid,
    pub kind: SmolStr,
    pub problem: StrictProblem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrictProblem {
    UnknownAction,
    UnknownKind,
    /// A decision without the part that rule heads read.
    NoScope(&'static str),
    /// A principal or resource of a type the action does not apply to.
    WrongScope {
        head: &'static str,
        found: EntityUid,
        expected: Vec<SmolStr>,
    },
    Missing {
        field: String,
    },
    Undeclared {
        field: String,
    },
    Mistyped {
        field: String,
        expected: String,
        found: String,
    },
    /// An entity that is none of the choices of its enumerated type.
    NoChoice {
        field: String,
        found: EntityUid,
    },
}

impl fmt::Display for StrictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StrictError {
            action,
            kind,
            problem,
        } = self;
        let event = format_args!("the event {action}::{kind}");
        match problem {
            StrictProblem::UnknownAction => write!(f, "no action {action} is declared"),
            StrictProblem::UnknownKind => write!(f, "no event kind `{kind}` is declared"),
            StrictProblem::NoScope(head) => write!(f, "{event} has no {head}"),
            StrictProblem::WrongScope {
                head,
                found,
                expected,
            } => write!(
                f,
                "{event} has the {head} {found}; the action applies to {}",
                expected.join(" or ")
            ),
            StrictProblem::Missing { field } => write!(f, "{event} lacks the field `{field}`"),
            StrictProblem::Undeclared { field } => {
                write!(f, "{event} has a field `{field}`, which is not declared")
            }
            StrictProblem::Mistyped {
                field,
                expected,
                found,
            } => write!(
                f,
                "{event} has {found} in the field `{field}`, which is declared as {expected}"
            ),
            StrictProblem::NoChoice { field, found } => write!(
                f,
                "{event} has {found} in the field `{field}`, which is no choice of its type"
            ),
        }
    }
}

impl std::error::Error for StrictError {}

/// Checks an event against the one derived for its action and kind, and a decision also against what the
/// action applies to.
pub fn check(event: &Event, service: &Service) -> Result<(), StrictError> {
    let fits = || {
        let action = service.actions.actions.get(&event.action);
        let applies = action.and_then(|action| action.applies_to.as_ref());
        let applies = applies.ok_or(StrictProblem::UnknownAction)?;
        let id = EventId {
            action: event.action.clone(),
            kind: event.kind.clone(),
        };
        let derived = service.events.events.get(&id);
        let derived = derived.ok_or(StrictProblem::UnknownKind)?;
        let check = Check {
            actions: &service.actions,
            applies,
            derived,
        };
        check.logged(&event.logged)?;
        if service.events.decision_kinds.contains(&event.kind) {
            check.request(event.request.as_ref())?;
        }
        Ok(())
    };
    fits().map_err(|problem| StrictError {
        action: event.action.clone(),
        kind: event.kind.clone(),
        problem,
    })
}

struct Check<'s> {
    actions: &'s ActionSchema,
    applies: &'s AppliesTo,
    derived: &'s DerivedEvent,
}

type Fits = Result<(), StrictProblem>;

impl Check<'_> {
    fn logged(&self, logged: &Record) -> Fits {
        self.group(&mut Vec::with_capacity(8), logged)?;
        for (path, ty) in &self.derived.fields {
            let required = match ty {
                FieldType::Declared { required, .. } => *required,
                FieldType::Scope(_) | FieldType::Injected(_) => true,
            };
            let (first, rest) = match path.split_first() {
                Some(parts) if required => parts,
                _ => continue,
            };
            if logged.get(first).and_then(|value| value.at(rest)).is_none() {
                let field = path.join(".");
                return Err(StrictProblem::Missing { field });
            }
        }
        Ok(())
    }

    /// What there is in a group: only what is declared, and of its type.
    fn group(&self, path: &mut Vec<SmolStr>, fields: &Record) -> Fits {
        for (name, value) in fields {
            path.push(name.clone());
            if let Some(ty) = self.derived.fields.get(path) {
                self.field(path, value, ty)?;
            } else if self.derived.groups.contains(path) {
                match (value, self.spread(path)) {
                    // Whole, because a record that may be absent has fields that may not.
                    (_, Some(record)) => self.value(path, value, &Type::Record(record.clone()))?,
                    (Value::Object(inner), None) => self.group(path, inner)?,
                    (other, None) => return Err(mistyped(path, "record".into(), other)),
                }
            } else {
                let field = path.join(".");
                return Err(StrictProblem::Undeclared { field });
            }
            path.pop();
        }
        Ok(())
    }

    /// The record type that a group was spread from, `...inputs(A)`.
    fn spread(&self, path: &[SmolStr]) -> Option<&RecordType> {
        let last = path
            .last()
            .filter(|last| *last == "input" || *last == "output")?;
        let inside = self.derived.fields.range(path.to_vec()..).next();
        let declared = match inside {
            Some((field, FieldType::Declared { .. })) => field.starts_with(path),
            Some((field, _)) => !field.starts_with(path),
            None => true,
        };
        match &self.applies.context.attrs.get(last)?.ty {
            Type::Record(record) if declared => Some(record),
            _ => None,
        }
    }

    fn field(&self, path: &mut Vec<SmolStr>, value: &Value, ty: &FieldType) -> Fits {
        match ty {
            FieldType::Declared { ty, .. } => self.value(path, value, ty),
            FieldType::Scope(types) => match value {
                Value::Entity(uid) if types.contains(&uid.ty) => self.choice(path, uid),
                other => Err(mistyped(path, types.join(" or "), other)),
            },
            FieldType::Injected(name) => match name.as_str() {
                "String" => self.value(path, value, &Type::String),
                "Long" => self.value(path, value, &Type::Long),
                "Bool" => self.value(path, value, &Type::Bool),
                "decimal" => self.value(path, value, &Type::Ext(Extension::Decimal)),
                name if self.actions.entity_types.contains_key(name) => {
                    self.value(path, value, &Type::Entity(name.into()))
                }
                // A name that says nothing about the value.
                _ => Ok(()),
            },
        }
    }

    fn request(&self, part: Option<&RequestPart>) -> Fits {
        let none = RequestPart::default();
        let part = part.unwrap_or(&none);
        let heads = [
            ("principal", &part.principal, &self.applies.principals),
            ("resource", &part.resource, &self.applies.resources),
        ];
        for (head, found, expected) in heads {
            let found = found.as_ref().ok_or(StrictProblem::NoScope(head))?;
            if !expected.contains(&found.ty) {
                return Err(StrictProblem::WrongScope {
                    head,
                    found: found.clone(),
                    expected: expected.clone(),
                });
            }
            self.choice(&[SmolStr::new_static(head)], found)?;
        }
        let mut path = vec![SmolStr::new_static("context")];
        self.record(&mut path, &part.context, &self.applies.context)
    }

    fn record(&self, path: &mut Vec<SmolStr>, fields: &Record, ty: &RecordType) -> Fits {
        for (name, value) in fields {
            path.push(name.clone());
            let Some(attr) = ty.attrs.get(name) else {
                let field = path.join(".");
                return Err(StrictProblem::Undeclared { field });
            };
            self.value(path, value, &attr.ty)?;
            path.pop();
        }
        let missing = |(name, attr): &(&SmolStr, &crate::schema::AttrType)| {
            attr.required && !fields.contains_key(*name)
        };
        match ty.attrs.iter().find(missing) {
            Some((name, _)) => {
                path.push(name.clone());
                let field = path.join(".");
                Err(StrictProblem::Missing { field })
            }
            None => Ok(()),
        }
    }

    /// Recurses as deep as the type does.
    fn value(&self, path: &mut Vec<SmolStr>, value: &Value, ty: &Type) -> Fits {
        match (ty, value) {
            (Type::Bool, Value::Bool(_))
            | (Type::Long, Value::Int(_))
            | (Type::String, Value::String(_)) => Ok(()),
            (Type::Ext(Extension::Decimal), Value::Decimal(text))
                if parse_decimal(text).is_some() =>
            {
                Ok(())
            }
            (Type::Entity(name), Value::Entity(uid)) if uid.ty == *name => self.choice(path, uid),
            (Type::Set(element), Value::Array(items)) => {
                let here = path.join(".");
                let mut items = items.iter();
                items.try_for_each(|item| match self.value(path, item, element) {
                    Err(StrictProblem::Mistyped { field, found, .. }) if field == here => {
                        let expected = ty.to_string();
                        Err(StrictProblem::Mistyped {
                            field,
                            expected,
                            found,
                        })
                    }
                    fits => fits,
                })
            }
            (Type::Record(record), Value::Object(fields)) => self.record(path, fields, record),
            (ty, other) => Err(mistyped(path, ty.to_string(), other)),
        }
    }

    fn choice(&self, path: &[SmolStr], uid: &EntityUid) -> Fits {
        let declared = self.actions.entity_types.get(&uid.ty);
        match declared.and_then(|declared| declared.choices.as_ref()) {
            Some(choices) if !choices.contains(&uid.id) => Err(StrictProblem::NoChoice {
                field: path.join("."),
                found: uid.clone(),
            }),
            _ => Ok(()),
        }
    }
}

fn mistyped(path: &[SmolStr], expected: String, found: &Value) -> StrictProblem {
    let found = match found {
        Value::Null => "nothing".to_owned(),
        Value::Bool(_) => "a Bool".to_owned(),
        Value::Int(_) => "a Long".to_owned(),
        Value::String(_) => "a String".to_owned(),
        Value::Decimal(_) => "a decimal".to_owned(),
        Value::Entity(uid) => uid.to_string(),
        Value::Array(_) => "a Set".to_owned(),
        Value::Object(_) => "a record".to_owned(),
    };
    StrictProblem::Mistyped {
        field: path.join("."),
        expected,
        found,
    }
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::schema::{Service, derive, resolve};
    use crate::trace::parse_event;
    use dogwood_grammar::{parse_action_schema, parse_event_schema};

    const ACTIONS: &str = r#"namespace Pay {
      entity Clerk;
      entity Desk;
      entity Way enum ["card", "cash"];
      type Receipt = { number: Long, note?: String };
      action "charge" appliesTo {
        principal: [Clerk], resource: [Desk],
        context: {
          input: { amount: Long, way: Way, rate?: decimal, tags?: Set<String>, receipt?: Receipt },
          output?: { ok: Bool }
        }
      };
      action "pause" appliesTo { principal: [Clerk], resource: [Desk], context: { input: {} } };
      action "any";
    }
    "#;
    const EVENTS: &str = "decision event <A>::request { ...inputs(A), who: principalType(A), id: String, at: { floor: Long, by: Pay::Clerk, of: Thing } }
    event <A>::response { ...inputs(A), ...outputs(A), who: principalType(A) }";

    fn service() -> Service {
        let actions = resolve(&parse_action_schema(ACTIONS).tree).0;
        let events = derive(&parse_event_schema(EVENTS).tree, &actions).0;
        Service {
            actions,
            events,
            ..Service::default()
        }
    }

    fn said(line: &str) -> String {
        let event = parse_event(line).unwrap();
        match check(&event, &service()) {
            Ok(()) => "fits".into(),
            Err(error) => error.to_string(),
        }
    }

    /// A request, with the input, what stands beside it, and the scope.
    fn request(input: &str, beside: &str, scope: &str) -> String {
        said(&format!(
            r#"@1 scope({scope}) request_context(input: {input}) Pay::Action::"charge"::request(input: {input}{beside})"#
        ))
    }

    const SCOPE: &str = r#"principal: Pay::Clerk::"ann", resource: Pay::Desk::"d""#;
    const BESIDE: &str =
        r#", who: Pay::Clerk::"ann", id: "7", at: { floor: 1, by: Pay::Clerk::"bob", of: 3 }"#;
    const INPUT: &str = r#"{ amount: 5, way: Pay::Way::"card" }"#;

    #[test]
    fn what_is_declared_fits() {
        assert_eq!(request(INPUT, BESIDE, SCOPE), "fits");
        let all = r#"{ amount: 5, way: Pay::Way::"cash", rate: 1.5, tags: ["a", "b"], receipt: { number: 1 } }"#;
        assert_eq!(request(all, BESIDE, SCOPE), "fits");
        assert_eq!(
            said(&format!(
                r#"@1 Pay::Action::"charge"::response(input: {INPUT}, output: {{ ok: true }}, who: Pay::Clerk::"ann")"#
            )),
            "fits"
        );
        assert_eq!(
            said(&format!(
                r#"@1 Pay::Action::"charge"::response(input: {INPUT}, who: Pay::Clerk::"ann")"#
            )),
            "fits",
            "the output may be absent"
        );
        assert_eq!(
            said(r#"@1 Pay::Action::"pause"::response(input: {}, who: Pay::Clerk::"ann")"#),
            "fits"
        );
    }

    #[test]
    fn every_misfit_names_its_field() {
        let inputs = [
            r#"{ way: Pay::Way::"card" }"#,
            r#"{ amount: "5", way: Pay::Way::"card" }"#,
            r#"{ amount: 5, way: Pay::Way::"cheque" }"#,
            r#"{ amount: 5, way: Pay::Clerk::"card" }"#,
            r#"{ amount: 5, way: Pay::Way::"card", colour: "red" }"#,
            r#"{ amount: 5, way: Pay::Way::"card", rate: 2 }"#,
            r#"{ amount: 5, way: Pay::Way::"card", tags: ["a", 2] }"#,
            r#"{ amount: 5, way: Pay::Way::"card", receipt: { note: "x" } }"#,
            r#"{ amount: 5, way: Pay::Way::"card", receipt: 4 }"#,
            "3",
        ];
        let mut found: Vec<String> = inputs
            .iter()
            .map(|input| request(input, BESIDE, SCOPE))
            .collect();
        let besides = [
            r#", id: "7", at: { floor: 1, by: Pay::Clerk::"bob", of: 3 }"#,
            r#", who: Pay::Desk::"d", id: "7", at: { floor: 1, by: Pay::Clerk::"bob", of: 3 }"#,
            r#", who: Pay::Clerk::"ann", id: 7, at: { floor: 1, by: Pay::Clerk::"bob", of: 3 }"#,
            r#", who: Pay::Clerk::"ann", id: "7", at: { by: Pay::Clerk::"bob", of: 3 }"#,
            r#", who: Pay::Clerk::"ann", id: "7", at: { floor: 1, by: Pay::Desk::"d", of: 3 }"#,
            r#", who: Pay::Clerk::"ann", id: "7", at: "here""#,
            r#", who: Pay::Clerk::"ann", id: "7""#,
        ];
        found.extend(besides.iter().map(|beside| request(INPUT, beside, SCOPE)));
        let scopes = [
            r#"principal: Pay::Clerk::"ann""#,
            r#"principal: Pay::Desk::"d", resource: Pay::Desk::"d""#,
        ];
        found.extend(scopes.iter().map(|scope| request(INPUT, BESIDE, scope)));
        found.extend([
            said(&format!(r#"@1 Pay::Action::"charge"::request(input: {INPUT}{BESIDE})"#)),
            said(r#"@1 Pay::Action::"refund"::request(input: {})"#),
            said(r#"@1 Pay::Action::"any"::request(input: {})"#),
            said(&format!(r#"@1 Pay::Action::"charge"::reply(input: {INPUT})"#)),
            said(&format!(
                r#"@1 Pay::Action::"charge"::response(input: {INPUT}, output: {{}}, who: Pay::Clerk::"ann")"#
            )),
            said(&format!(
                r#"@1 scope({SCOPE}) request_context(input: {{ way: Pay::Way::"card" }}) Pay::Action::"charge"::request(input: {INPUT}{BESIDE})"#
            )),
            said(&format!(
                r#"@1 scope({SCOPE}) request_context(input: {INPUT}, mood: 1) Pay::Action::"charge"::request(input: {INPUT}{BESIDE})"#
            )),
        ]);
        insta::assert_snapshot!(found.join("\n"), @r#"
        the event Pay::Action::"charge"::request lacks the field `input.amount`
        the event Pay::Action::"charge"::request has a String in the field `input.amount`, which is declared as Long
        the event Pay::Action::"charge"::request has Pay::Way::"cheque" in the field `input.way`, which is no choice of its type
        the event Pay::Action::"charge"::request has Pay::Clerk::"card" in the field `input.way`, which is declared as Pay::Way
        the event Pay::Action::"charge"::request has a field `input.colour`, which is not declared
        the event Pay::Action::"charge"::request has a Long in the field `input.rate`, which is declared as decimal
        the event Pay::Action::"charge"::request has a Long in the field `input.tags`, which is declared as Set<String>
        the event Pay::Action::"charge"::request lacks the field `input.receipt.number`
        the event Pay::Action::"charge"::request has a Long in the field `input.receipt`, which is declared as record
        the event Pay::Action::"charge"::request has a Long in the field `input`, which is declared as record
        the event Pay::Action::"charge"::request lacks the field `who`
        the event Pay::Action::"charge"::request has Pay::Desk::"d" in the field `who`, which is declared as Pay::Clerk
        the event Pay::Action::"charge"::request has a Long in the field `id`, which is declared as String
        the event Pay::Action::"charge"::request lacks the field `at.floor`
        the event Pay::Action::"charge"::request has Pay::Desk::"d" in the field `at.by`, which is declared as Pay::Clerk
        the event Pay::Action::"charge"::request has a String in the field `at`, which is declared as record
        the event Pay::Action::"charge"::request lacks the field `at.by`
        the event Pay::Action::"charge"::request has no resource
        the event Pay::Action::"charge"::request has the principal Pay::Desk::"d"; the action applies to Pay::Clerk
        the event Pay::Action::"charge"::request has no principal
        no action Pay::Action::"refund" is declared
        no action Pay::Action::"any" is declared
        no event kind `reply` is declared
        the event Pay::Action::"charge"::response lacks the field `output.ok`
        the event Pay::Action::"charge"::request lacks the field `context.input.amount`
        the event Pay::Action::"charge"::request has a field `context.mood`, which is not declared
        "#);
    }
}
