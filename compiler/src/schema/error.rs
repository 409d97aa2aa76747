//! What can be wrong with a schema, and how it is said.

use crate::value::EntityUid;
use dogwood_grammar::Span;
use dogwood_grammar::diagnostic::Diagnostic;
use smol_str::SmolStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SchemaError {
    // Action schemas.
    ReservedNamespace {
        span: Span,
    },
    ReservedTypeName {
        name: SmolStr,
        span: Span,
    },
    Duplicate {
        what: &'static str,
        name: SmolStr,
        span: Span,
        first: Span,
    },
    Shadows {
        name: SmolStr,
        span: Span,
        first: Span,
    },
    UnknownType {
        name: SmolStr,
        span: Span,
        nearest: Option<SmolStr>,
    },
    UnknownEntityType {
        name: SmolStr,
        span: Span,
        nearest: Option<SmolStr>,
    },
    UnknownAction {
        name: SmolStr,
        span: Span,
        nearest: Option<SmolStr>,
    },
    CyclicType {
        cycle: Vec<SmolStr>,
        span: Span,
    },
    CyclicAction {
        action: EntityUid,
        span: Span,
    },
    TypeTooDeep {
        span: Span,
        limit: usize,
    },
    TypesTooLarge {
        span: Span,
        limit: usize,
    },
    ContextNotRecord {
        found: SmolStr,
        span: Span,
    },
    EmptyAppliesTo {
        what: &'static str,
        span: Span,
    },
    EmptyEnum {
        name: SmolStr,
        span: Span,
    },
    // Event schemas.
    DuplicateKind {
        kind: SmolStr,
        span: Span,
        first: Span,
    },
    DuplicateMember {
        name: SmolStr,
        span: Span,
        first: Span,
    },
    UnknownSelector {
        name: SmolStr,
        span: Span,
        nearest: Option<SmolStr>,
        known: String,
    },
    SpreadAsType {
        selector: SmolStr,
        span: Span,
    },
    TypeAsSpread {
        selector: SmolStr,
        span: Span,
    },
    NestingTooDeep {
        span: Span,
        limit: usize,
    },
    TooManyFields {
        action: EntityUid,
        span: Span,
        limit: usize,
    },
}

impl SchemaError {
    pub fn diagnostic(&self) -> Diagnostic {
        use SchemaError::*;
        match self {
            ReservedNamespace { span } => Diagnostic::error(
                "reserved-name",
                *span,
                "`__cedar` is kept for the built-in types",
            )
            .help("choose another name for this namespace"),
            ReservedTypeName { name, span } => Diagnostic::error(
                "reserved-name",
                *span,
                format!("`{name}` is a built-in type and cannot be declared"),
            )
            .help("choose another name for this type"),
            Duplicate {
                what,
                name,
                span,
                first,
            } => Diagnostic::error(
                "duplicate-declaration",
                *span,
                format!("the {what} `{name}` is declared twice"),
            )
            .label("declared again here")
            .also(*first, "first declared here")
            .help("remove one of the two, or rename it"),
            Shadows { name, span, first } => Diagnostic::error(
                "shadowed-declaration",
                *span,
                format!("this hides the `{name}` declared outside any namespace"),
            )
            .also(*first, "the declaration it hides")
            .help("rename one of the two: inside this namespace nobody could name the outer one"),
            UnknownType {
                name,
                span,
                nearest,
            } => {
                let text = format!("there is no type `{name}`");
                let help = "a type is a built-in one (`Bool`, `Long`, `String`, `decimal`, `ipaddr`, \
                            `datetime`, `duration`), a `type`, or an `entity` of this schema";
                propose(
                    Diagnostic::error("unknown-type", *span, text),
                    *span,
                    nearest,
                    help,
                )
            }
            UnknownEntityType {
                name,
                span,
                nearest,
            } => {
                let text = format!("there is no entity type `{name}`");
                let help =
                    "declare it with `entity`; a name of another namespace is written in full";
                propose(
                    Diagnostic::error("unknown-entity-type", *span, text),
                    *span,
                    nearest,
                    help,
                )
            }
            UnknownAction {
                name,
                span,
                nearest,
            } => {
                let text = format!("there is no action `{name}` to be a member of");
                let help = "declare it with `action`; one of another namespace is written \
                            `Other::Action::\"name\"`";
                let quoted = nearest
                    .as_ref()
                    .map(|id| SmolStr::new(format!("{:?}", id.as_str())));
                propose(
                    Diagnostic::error("unknown-action", *span, text),
                    *span,
                    &quoted,
                    help,
                )
            }
            CyclicType { cycle, span } => Diagnostic::error(
                "cyclic-type",
                *span,
                format!("the type `{}` contains itself", first_of(cycle)),
            )
            .help(format!("it is reached through {}", chain(cycle))),
            CyclicAction { action, span } => Diagnostic::error(
                "cyclic-action",
                *span,
                format!("the action `{}` is a member of itself", action.id),
            )
            .help("remove one of the `in` that lead back to it"),
            TypeTooDeep { span, limit } => Diagnostic::error(
                "type-too-deep",
                *span,
                format!("this type is nested more than {limit} deep"),
            )
            .help("flatten the records, or refer to fewer common types in a row"),
            TypesTooLarge { span, limit } => Diagnostic::error(
                "types-too-large",
                *span,
                format!("with this type written out the schema has more than {limit} parts"),
            )
            .help("common types that use others several times grow fast; use entity types instead"),
            ContextNotRecord { found, span } => Diagnostic::error(
                "context-not-a-record",
                *span,
                format!("a context must be a record, but this is {found}"),
            )
            .help("write `{ … }` or name a `type` that is a record"),
            EmptyAppliesTo { what, span } => Diagnostic::error(
                "incomplete-applies-to",
                *span,
                format!("`appliesTo` names no {what} type"),
            )
            .help("an action nobody can ask for is a group: leave `appliesTo` out altogether"),
            EmptyEnum { name, span } => Diagnostic::error(
                "empty-enum",
                *span,
                format!("the enumerated type `{name}` has no values"),
            )
            .help("list at least one value"),
            DuplicateKind { kind, span, first } => Diagnostic::error(
                "duplicate-event",
                *span,
                format!("the event kind `{kind}` is declared twice"),
            )
            .label("declared again here")
            .also(*first, "first declared here")
            .help("one declaration serves every action; put all fields into it"),
            DuplicateMember { name, span, first } => Diagnostic::error(
                "duplicate-field",
                *span,
                format!("the event has two members called `{name}`"),
            )
            .also(*first, "the first one")
            .help("`...inputs(A)` makes a group `input`, `...outputs(A)` a group `output`"),
            UnknownSelector {
                name,
                span,
                nearest,
                known,
            } => {
                let text = format!("`{name}` does not select anything of an action here");
                let help = format!("here `{known}` can be used");
                propose(
                    Diagnostic::error("unknown-selector", *span, text),
                    *span,
                    nearest,
                    &help,
                )
            }
            SpreadAsType { selector, span } => Diagnostic::error(
                "spread-as-type",
                *span,
                format!("`{selector}` is a group of fields, not the type of one"),
            )
            .help(format!("write `...{selector}(A)` as a member of its own")),
            TypeAsSpread { selector, span } => Diagnostic::error(
                "type-as-spread",
                *span,
                format!("`{selector}` is the type of one field and cannot be spread"),
            )
            .help(format!("give the field a name: `caller: {selector}(A)`")),
            NestingTooDeep { span, limit } => Diagnostic::error(
                "nesting-too-deep",
                *span,
                format!("the records of an event may be nested {limit} deep at most"),
            )
            .help("flatten the record, or spread less of it"),
            TooManyFields {
                action,
                span,
                limit,
            } => Diagnostic::error(
                "too-many-fields",
                *span,
                format!(
                    "for the action `{}` this event has more than {limit} fields",
                    action.id
                ),
            )
            .help("give the action a smaller input or output record"),
        }
    }
}

/// Says which name was probably meant, with the edit; else what could be written.
fn propose(found: Diagnostic, at: Span, nearest: &Option<SmolStr>, help: &str) -> Diagnostic {
    match nearest {
        Some(name) => found.help(format!("did you mean `{name}`?")).fix(
            format!("change to `{name}`"),
            at,
            name.as_str(),
        ),
        None => found.help(help),
    }
}

fn first_of(cycle: &[SmolStr]) -> &str {
    cycle.first().map_or("", SmolStr::as_str)
}

fn chain(cycle: &[SmolStr]) -> String {
    let mut names: Vec<String> = cycle.iter().map(|name| format!("`{name}`")).collect();
    names.push(format!("`{}` again", first_of(cycle)));
    names.join(", then ")
}
