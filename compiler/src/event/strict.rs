//! Whether an event is exactly what its schema says: every required field there, of its type, and nothing else.
//!
//! The language itself takes any event, and a rule whose field is absent just does not match. Whoever shapes the
//! event could then step round a forbid by leaving the field out; a box therefore takes strict events only.

use super::{Event, RequestPart};
use crate::automaton::parse_decimal;
use crate::schema::{AppliesTo, DerivedEvent, Extension, FieldType, RecordType, Service, Type};
use crate::value::{EntityUid, Record, Value};
use smallvec::SmallVec;
use smol_str::SmolStr;
use std::collections::BTreeMap;
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

/// What the events of a service are, prepared for checking many.
#[derive(Clone, Debug)]
pub struct Strict {
    actions: BTreeMap<EntityUid, Shapes>,
    /// Of entity types that are enumerated.
    choices: BTreeMap<SmolStr, Vec<SmolStr>>,
}

/// The events of one action.
#[derive(Clone, Debug)]
struct Shapes {
    applies: AppliesTo,
    kinds: BTreeMap<SmolStr, Shape>,
}

#[derive(Clone, Debug)]
struct Shape {
    logged: BTreeMap<SmolStr, Expected>,
    decision: bool,
}

/// What stands under a name.
#[derive(Clone, Debug)]
enum Expected {
    /// Nothing is known of the value.
    Any,
    Field {
        ty: Type,
        required: bool,
    },
    Scope(Vec<SmolStr>),
    Group {
        fields: BTreeMap<SmolStr, Expected>,
        /// Of a group that was spread from one, `...inputs(A)`, the type of the whole: a record that may be
        /// absent has fields that may not.
        whole: Option<Type>,
    },
}

type Fits = Result<(), StrictProblem>;

impl Strict {
    pub fn new(service: &Service) -> Strict {
        let mut actions = BTreeMap::new();
        for (uid, action) in &service.actions.actions {
            if let Some(applies) = &action.applies_to {
                let shapes = Shapes {
                    applies: applies.clone(),
                    kinds: BTreeMap::new(),
                };
                actions.insert(uid.clone(), shapes);
            }
        }
        for (id, derived) in &service.events.events {
            if let Some(shapes) = actions.get_mut(&id.action) {
                let known = |name: &str| service.actions.entity_types.contains_key(name);
                let shape = Shape {
                    logged: logged(derived, &shapes.applies, &known),
                    decision: service.events.decision_kinds.contains(&id.kind),
                };
                shapes.kinds.insert(id.kind.clone(), shape);
            }
        }
        let types = service.actions.entity_types.iter();
        let choices = types.filter_map(|(name, declared)| {
            let choices = declared.choices.as_ref()?;
            Some((name.clone(), choices.clone()))
        });
        Strict {
            actions,
            choices: choices.collect(),
        }
    }

    /// Checks an event against the one derived for its action and kind, and a decision also against what the
    /// action applies to.
    pub fn check(&self, event: &Event) -> Result<(), StrictError> {
        let fits = || {
            let shapes = self.actions.get(&event.action);
            let shapes = shapes.ok_or(StrictProblem::UnknownAction)?;
            let shape = shapes.kinds.get(&event.kind);
            let shape = shape.ok_or(StrictProblem::UnknownKind)?;
            self.group(None, &event.logged, &shape.logged)?;
            match shape.decision {
                true => self.request(event.request.as_ref(), &shapes.applies),
                false => Ok(()),
            }
        };
        fits().map_err(|problem| StrictError {
            action: event.action.clone(),
            kind: event.kind.clone(),
            problem,
        })
    }

    /// Only what is declared, and of its type, and all that is required.
    fn group(
        &self,
        path: Option<&Path<'_>>,
        fields: &Record,
        group: &BTreeMap<SmolStr, Expected>,
    ) -> Fits {
        matched(path, fields, group, |path, value, expected| match value {
            Some(value) => self.expected(path, value, expected),
            None => expected.absent(path),
        })
    }

    fn expected(&self, path: &Path<'_>, value: &Value, expected: &Expected) -> Fits {
        match (expected, value) {
            (Expected::Any, _) => Ok(()),
            (Expected::Field { ty, .. }, _) => self.value(path, value, ty),
            (Expected::Scope(types), Value::Entity(uid)) if types.contains(&uid.ty) => {
                self.choice(path, uid)
            }
            (Expected::Scope(types), other) => Err(mistyped(path, types.join(" or "), other)),
            (
                Expected::Group {
                    whole: Some(ty), ..
                },
                _,
            ) => self.value(path, value, ty),
            (Expected::Group { fields, .. }, Value::Object(inner)) => {
                self.group(Some(path), inner, fields)
            }
            (Expected::Group { .. }, other) => Err(mistyped(path, "record".into(), other)),
        }
    }

    fn request(&self, part: Option<&RequestPart>, applies: &AppliesTo) -> Fits {
        let none = RequestPart::default();
        let part = part.unwrap_or(&none);
        let heads = [
            ("principal", &part.principal, &applies.principals),
            ("resource", &part.resource, &applies.resources),
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
            self.choice(&Path::new(None, head), found)?;
        }
        self.record(&Path::new(None, "context"), &part.context, &applies.context)
    }

    fn record(&self, path: &Path<'_>, fields: &Record, ty: &RecordType) -> Fits {
        matched(
            Some(path),
            fields,
            &ty.attrs,
            |path, value, attr| match value {
                Some(value) => self.value(path, value, &attr.ty),
                None if attr.required => Err(missing(path)),
                None => Ok(()),
            },
        )
    }

    /// Recurses as deep as the type does.
    fn value(&self, path: &Path<'_>, value: &Value, ty: &Type) -> Fits {
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
                let mut items = items.iter();
                items.try_for_each(|item| match self.value(path, item, element) {
                    Err(StrictProblem::Mistyped { field, found, .. })
                        if field == path.to_string() =>
                    {
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

    fn choice(&self, path: &Path<'_>, uid: &EntityUid) -> Fits {
        match self.choices.get(&uid.ty) {
            Some(choices) if !choices.contains(&uid.id) => Err(StrictProblem::NoChoice {
                field: path.to_string(),
                found: uid.clone(),
            }),
            _ => Ok(()),
        }
    }
}

impl Expected {
    fn of(field: &FieldType, known: &dyn Fn(&str) -> bool) -> Expected {
        let ty = match field {
            FieldType::Declared { ty, required } => {
                return Expected::Field {
                    ty: ty.clone(),
                    required: *required,
                };
            }
            FieldType::Scope(types) => return Expected::Scope(types.clone()),
            FieldType::Injected(name) => match name.as_str() {
                "String" => Type::String,
                "Long" => Type::Long,
                "Bool" => Type::Bool,
                "decimal" => Type::Ext(Extension::Decimal),
                name if known(name) => Type::Entity(name.into()),
                // A name that says nothing about the value.
                _ => return Expected::Any,
            },
        };
        Expected::Field { ty, required: true }
    }

    /// Nothing stands there.
    fn absent(&self, path: &Path<'_>) -> Fits {
        match self {
            Expected::Field {
                required: false, ..
            } => Ok(()),
            Expected::Any | Expected::Field { .. } | Expected::Scope(_) => Err(missing(path)),
            Expected::Group { fields, .. } => {
                let mut fields = fields.iter();
                fields.try_for_each(|(name, field)| field.absent(&Path::new(Some(path), name)))
            }
        }
    }
}

/// The fields of a derived event as the tree that they are.
fn logged(
    derived: &DerivedEvent,
    applies: &AppliesTo,
    known: &dyn Fn(&str) -> bool,
) -> BTreeMap<SmolStr, Expected> {
    let mut tree = BTreeMap::new();
    // A group stands before those inside it.
    for path in &derived.groups {
        let group = Expected::Group {
            fields: BTreeMap::new(),
            whole: spread(derived, applies, path).map(Type::Record),
        };
        place(&mut tree, path, group);
    }
    for (path, ty) in &derived.fields {
        place(&mut tree, path, Expected::of(ty, known));
    }
    tree
}

fn place(tree: &mut BTreeMap<SmolStr, Expected>, path: &[SmolStr], expected: Expected) {
    let Some((last, groups)) = path.split_last() else {
        return;
    };
    let mut inside = tree;
    for name in groups {
        match inside.get_mut(name) {
            Some(Expected::Group { fields, .. }) => inside = fields,
            _ => return,
        }
    }
    inside.insert(last.clone(), expected);
}

/// The record type that a group was spread from, `...inputs(A)`.
fn spread(derived: &DerivedEvent, applies: &AppliesTo, path: &[SmolStr]) -> Option<RecordType> {
    let last = path
        .last()
        .filter(|last| *last == "input" || *last == "output")?;
    let inside = derived.fields.range(path.to_vec()..).next();
    let declared = match inside {
        Some((field, FieldType::Declared { .. })) => field.starts_with(path),
        Some((field, _)) => !field.starts_with(path),
        None => true,
    };
    match &applies.context.attrs.get(last)?.ty {
        Type::Record(record) if declared => Some(record.clone()),
        _ => None,
    }
}

/// Visits what there is, each with its declaration, then what is declared and not there; both are sorted by name. What
/// is not declared is wrong.
fn matched<T>(
    path: Option<&Path<'_>>,
    fields: &Record,
    declared: &BTreeMap<SmolStr, T>,
    mut visit: impl FnMut(&Path<'_>, Option<&Value>, &T) -> Fits,
) -> Fits {
    let (mut absent, mut rest) = (SmallVec::<[_; 16]>::new(), declared.iter());
    for (name, value) in fields {
        let here = Path::new(path, name);
        loop {
            match rest.next() {
                Some((next, declaration)) if next == name => {
                    visit(&here, Some(value), declaration)?;
                    break;
                }
                Some((next, declaration)) if next < name => absent.push((next, declaration)),
                _ => {
                    let field = here.to_string();
                    return Err(StrictProblem::Undeclared { field });
                }
            }
        }
    }
    let mut absent = absent.into_iter().chain(rest);
    absent.try_for_each(|(name, declaration)| visit(&Path::new(path, name), None, declaration))
}

/// Where a value stands.
struct Path<'p> {
    before: Option<&'p Path<'p>>,
    name: &'p str,
}

impl<'p> Path<'p> {
    fn new(before: Option<&'p Path<'p>>, name: &'p str) -> Path<'p> {
        Path { before, name }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.before {
            Some(before) => write!(f, "{before}.{}", self.name),
            None => f.write_str(self.name),
        }
    }
}

fn missing(path: &Path<'_>) -> StrictProblem {
    StrictProblem::Missing {
        field: path.to_string(),
    }
}

fn mistyped(path: &Path<'_>, expected: String, found: &Value) -> StrictProblem {
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
        field: path.to_string(),
        expected,
        found,
    }
}

#[cfg(test)]
mod tests {
    use super::Strict;
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
        match Strict::new(&service()).check(&event) {
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
