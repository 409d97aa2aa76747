//! From an event schema to one derived event for each action and kind (language reference, section 4).

use super::error::SchemaError;
use super::{
    ActionDecl, ActionSchema, DEFAULT_MAX_WINDOW, DerivedEvent, EventId, EventSchema, FieldType,
    Pin, PinValue, RecordType, Type,
};
use crate::nearest::nearest;
use dogwood_grammar::Span;
use dogwood_grammar::ast::Ident;
use dogwood_grammar::ast::event_schema::{
    EventDecl, EventSchemaFile, Field, FieldTyKind, Member, PinRef, Spread,
};
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};

/// Deepest nesting of records in an event.
pub const MAX_NESTING: usize = 64;
/// Most fields and groups of one derived event.
pub const MAX_FIELDS: usize = 10_000;

const SPREADS: [&str; 2] = ["inputs", "outputs"];
const TYPES: [&str; 2] = ["principalType", "resourceType"];

/// Derives what can be derived; the schema is to be used only if there are no errors.
pub fn derive(file: &EventSchemaFile, actions: &ActionSchema) -> (EventSchema, Vec<SchemaError>) {
    let mut errors = check_event_schema(file);
    let max_window = match &file.max_window {
        Some(window) => window.seconds().unwrap_or(DEFAULT_MAX_WINDOW),
        None => DEFAULT_MAX_WINDOW,
    };
    let mut schema = EventSchema {
        max_window,
        ..EventSchema::default()
    };
    for decl in &file.events {
        if decl.decision {
            schema.decision_kinds.insert(decl.kind.text.clone());
        }
    }
    if !errors.is_empty() {
        return (schema, errors);
    }
    for action in actions.actions.values() {
        for decl in &file.events {
            let id = EventId {
                action: action.uid.clone(),
                kind: decl.kind.text.clone(),
            };
            let mut event = DerivedEvent {
                id: id.clone(),
                fields: BTreeMap::new(),
                groups: BTreeSet::new(),
                pins: Vec::new(),
            };
            let mut deriver = Deriver {
                action,
                event: &mut event,
                decl,
                error: None,
            };
            deriver.members(&decl.members, &mut Vec::new());
            if let Some(error) = deriver.error {
                if !errors.contains(&error) {
                    errors.push(error);
                }
                continue;
            }
            schema.events.insert(id, event);
        }
    }
    schema.universal_pin = universal_pin(&schema);
    (schema, errors)
}

struct Deriver<'a> {
    action: &'a ActionDecl,
    decl: &'a EventDecl,
    event: &'a mut DerivedEvent,
    error: Option<SchemaError>,
}

impl Deriver<'_> {
    fn members(&mut self, members: &[Member], path: &mut Vec<SmolStr>) {
        for member in members {
            match member {
                Member::Spread(spread) => self.spread(&spread.selector, path),
                Member::Field(field) => self.field(field, path),
            }
        }
    }

    fn spread(&mut self, selector: &Ident, path: &mut Vec<SmolStr>) {
        let group = if selector.text == "inputs" {
            "input"
        } else {
            "output"
        };
        let Some(applies) = &self.action.applies_to else {
            return;
        };
        let Some(attr) = applies.context.attrs.get(group) else {
            return;
        };
        if let Type::Record(record) = &attr.ty {
            path.push(SmolStr::new(group));
            self.record(record, attr.required, selector.span, path);
            path.pop();
        }
    }

    fn record(&mut self, record: &RecordType, present: bool, at: Span, path: &mut Vec<SmolStr>) {
        if self.full(at, path) {
            return;
        }
        self.event.groups.insert(path.clone());
        for (name, attr) in &record.attrs {
            path.push(name.clone());
            let required = present && attr.required;
            match &attr.ty {
                Type::Record(inner) => self.record(inner, required, at, path),
                // One wide record fills an event as well as many small ones.
                _ if self.full(at, &[]) => {}
                ty => {
                    let field = FieldType::Declared {
                        ty: ty.clone(),
                        required,
                    };
                    self.event.fields.insert(path.clone(), field);
                }
            }
            path.pop();
        }
    }

    fn field(&mut self, field: &Field, path: &mut Vec<SmolStr>) {
        path.push(field.name.text.clone());
        if !self.full(field.span, path) {
            let applies = self.action.applies_to.as_ref();
            let ty = match &field.ty.kind {
                FieldTyKind::Selector { selector, .. } if selector.text == "principalType" => {
                    FieldType::Scope(applies.map(|a| a.principals.clone()).unwrap_or_default())
                }
                FieldTyKind::Selector { .. } => {
                    FieldType::Scope(applies.map(|a| a.resources.clone()).unwrap_or_default())
                }
                FieldTyKind::Record(members) => {
                    self.event.groups.insert(path.clone());
                    self.members(members, path);
                    path.pop();
                    return;
                }
                FieldTyKind::Name(name) => FieldType::Injected(name.text()),
                FieldTyKind::Error => FieldType::Injected(SmolStr::default()),
            };
            self.event.fields.insert(path.clone(), ty);
            if let (Some(_), Some(value)) = (field.pin, field.value.as_ref().and_then(pin_value)) {
                self.event.pins.push(Pin {
                    field: path.clone(),
                    value,
                });
            }
        }
        path.pop();
    }

    /// Whether the event has reached a limit; the first time this is an error.
    fn full(&mut self, at: Span, path: &[SmolStr]) -> bool {
        let nodes = self.event.fields.len() + self.event.groups.len();
        if self.error.is_none() && path.len() > MAX_NESTING {
            self.error = Some(SchemaError::NestingTooDeep {
                span: at,
                limit: MAX_NESTING,
            });
        } else if self.error.is_none() && nodes >= MAX_FIELDS {
            self.error = Some(SchemaError::TooManyFields {
                action: self.action.uid.clone(),
                span: self.decl.kind.span,
                limit: MAX_FIELDS,
            });
        }
        self.error.is_some()
    }
}

fn pin_value(reference: &PinRef) -> Option<PinValue> {
    let path = reference
        .path
        .iter()
        .map(|word| word.text.clone())
        .collect();
    match reference.root.text.as_str() {
        "principal" => Some(PinValue::Principal(path)),
        "resource" => Some(PinValue::Resource(path)),
        "context" => Some(PinValue::Context(path)),
        _ => None,
    }
}

/// The pin every event carries, if it says of the decision event what it says of the past one.
fn universal_pin(schema: &EventSchema) -> Option<Pin> {
    let first = schema.events.values().next()?;
    let universal = |pin: &&Pin| schema.events.values().all(|event| event.pins.contains(pin));
    first
        .pins
        .iter()
        .filter(|pin| is_symmetric(pin))
        .find(universal)
        .cloned()
}

fn is_symmetric(pin: &Pin) -> bool {
    match &pin.value {
        PinValue::Principal(path) => path.is_empty() && pin.field == ["callerPrincipal"],
        PinValue::Resource(path) => path.is_empty() && pin.field == ["callerResource"],
        PinValue::Context(path) => *path == pin.field,
    }
}

// ------------------------------------------------------------------- what needs no action schema

/// The errors an event schema has whatever the actions are.
pub fn check_event_schema(file: &EventSchemaFile) -> Vec<SchemaError> {
    let mut check = Check::default();
    let mut kinds: BTreeMap<&SmolStr, Span> = BTreeMap::new();
    for decl in &file.events {
        if let Some(first) = kinds.insert(&decl.kind.text, decl.kind.span) {
            check.errors.push(SchemaError::DuplicateKind {
                kind: decl.kind.text.clone(),
                span: decl.kind.span,
                first,
            });
        }
        check.members(&decl.members, decl.kind.span, 0);
    }
    check.errors
}

#[derive(Default)]
struct Check {
    errors: Vec<SchemaError>,
}

impl Check {
    fn members(&mut self, members: &[Member], at: Span, depth: usize) {
        if depth > MAX_NESTING {
            let span = members.first().map_or(at, |member| match member {
                Member::Spread(spread) => spread.span,
                Member::Field(field) => field.span,
            });
            self.errors.push(SchemaError::NestingTooDeep {
                span,
                limit: MAX_NESTING,
            });
            return;
        }
        let mut names: BTreeMap<SmolStr, Span> = BTreeMap::new();
        for member in members {
            let (name, span) = match member {
                Member::Spread(spread) => {
                    if !self.spread(spread) {
                        continue;
                    }
                    let group = if spread.selector.text == "inputs" {
                        "input"
                    } else {
                        "output"
                    };
                    (SmolStr::new(group), spread.span)
                }
                Member::Field(field) => {
                    self.field(field, at, depth);
                    (field.name.text.clone(), field.name.span)
                }
            };
            if let Some(first) = names.insert(name.clone(), span) {
                self.errors
                    .push(SchemaError::DuplicateMember { name, span, first });
            }
        }
    }

    /// Whether the spread means something.
    fn spread(&mut self, spread: &Spread) -> bool {
        let word = &spread.selector;
        if SPREADS.contains(&word.text.as_str()) {
            return true;
        }
        if TYPES.contains(&word.text.as_str()) {
            let (selector, span) = (word.text.clone(), word.span);
            self.errors
                .push(SchemaError::TypeAsSpread { selector, span });
        } else {
            self.unknown_selector(word, &SPREADS);
        }
        false
    }

    fn field(&mut self, field: &Field, at: Span, depth: usize) {
        match &field.ty.kind {
            FieldTyKind::Selector { selector, .. } => {
                if SPREADS.contains(&selector.text.as_str()) {
                    let (selector, span) = (selector.text.clone(), field.ty.span);
                    self.errors
                        .push(SchemaError::SpreadAsType { selector, span });
                } else if !TYPES.contains(&selector.text.as_str()) {
                    self.unknown_selector(selector, &TYPES);
                }
            }
            FieldTyKind::Record(members) => self.members(members, at, depth + 1),
            FieldTyKind::Name(_) | FieldTyKind::Error => {}
        }
    }

    fn unknown_selector(&mut self, word: &Ident, known: &[&'static str]) {
        let names: Vec<SmolStr> = known.iter().map(SmolStr::new).collect();
        self.errors.push(SchemaError::UnknownSelector {
            name: word.text.clone(),
            span: word.span,
            nearest: nearest(&word.text, &names),
            known: known.join("` and `"),
        });
    }
}
