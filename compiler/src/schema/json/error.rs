//! What can be wrong with a schema in the JSON syntax, and how it is said.

use crate::json::{JsonError, JsonProblem};
use dogwood_grammar::Span;
use dogwood_grammar::diagnostic::Diagnostic;
use smol_str::SmolStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonSchemaError {
    pub span: Span,
    pub problem: JsonSchemaProblem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonSchemaProblem {
    Syntax(JsonProblem),
    WrongKind {
        found: &'static str,
        expected: &'static str,
    },
    Repeated {
        name: SmolStr,
        first: Span,
    },
    UnknownKey {
        name: SmolStr,
        nearest: Option<SmolStr>,
        known: &'static [&'static str],
    },
    /// A key that this type does not have.
    UnneededKey {
        name: SmolStr,
        ty: SmolStr,
    },
    Missing {
        key: &'static str,
    },
    NotAName {
        name: SmolStr,
    },
    /// A declaration has a namespace in its name.
    Qualified {
        name: SmolStr,
    },
    UnknownExtension {
        name: SmolStr,
    },
    UnknownEntityType {
        name: SmolStr,
        nearest: Option<SmolStr>,
    },
    UnknownCommonType {
        name: SmolStr,
        /// An entity type has that name.
        entity: bool,
        nearest: Option<SmolStr>,
    },
    ShapeNotRecord,
    OpenRecord,
    ActionAttributes,
}

impl JsonSchemaError {
    pub fn diagnostic(&self) -> Diagnostic {
        use JsonSchemaProblem::*;
        let span = self.span;
        let error = |code, text: String| Diagnostic::error(code, span, text);
        match &self.problem {
            Syntax(problem) => {
                let problem = *problem;
                JsonError { span, problem }.diagnostic()
            }
            WrongKind { found, expected } => error(
                "json-shape",
                format!("here {expected} is needed, not {found}"),
            ),
            Repeated { name, first } => {
                error("duplicate-declaration", format!("`{name}` is given twice"))
                    .label("given again here")
                    .also(*first, "first given here")
                    .help("remove one of the two, or rename it")
            }
            UnknownKey {
                name,
                nearest,
                known,
            } => {
                let found = error("json-shape", format!("there is no key `{name}` here"));
                match nearest {
                    Some(nearest) => found.help(format!("did you mean `{nearest}`?")).fix(
                        format!("change to `{nearest}`"),
                        span,
                        format!("{:?}", nearest.as_str()),
                    ),
                    None => {
                        let known: Vec<String> = known.iter().map(|k| format!("`{k}`")).collect();
                        found.help(format!("the keys are {}", known.join(", ")))
                    }
                }
            }
            UnneededKey { name, ty } => {
                error("json-shape", format!("the type `{ty}` has no `{name}`"))
                    .help("remove the key, or name another `type`")
            }
            Missing { key } => error("json-shape", format!("`{key}` is missing here")),
            NotAName { name } => error("json-shape", format!("`{name}` is not a name"))
                .help("a name is letters, digits and `_`; `::` stands between namespaces"),
            Qualified { name } => error(
                "json-shape",
                format!("`{name}` is declared with a namespace in its name"),
            )
            .help("declare it inside that namespace, by its last word"),
            UnknownExtension { name } => error(
                "unknown-type",
                format!("there is no extension type `{name}`"),
            )
            .help("the extension types are `decimal`, `ipaddr`, `datetime` and `duration`"),
            UnknownEntityType { name, nearest } => proposed(
                error(
                    "unknown-entity-type",
                    format!("there is no entity type `{name}`"),
                ),
                span,
                nearest,
                "declare it in `entityTypes`; a name of another namespace is written in full",
            ),
            UnknownCommonType {
                name, entity: true, ..
            } => error(
                "unknown-type",
                format!("`{name}` is an entity type, not a common type"),
            )
            .help(format!(
                "write `\"type\": \"Entity\", \"name\": \"{name}\"`"
            )),
            UnknownCommonType { name, nearest, .. } => proposed(
                error("unknown-type", format!("there is no common type `{name}`")),
                span,
                nearest,
                "declare it in `commonTypes`; a name of another namespace is written in full",
            ),
            ShapeNotRecord => error(
                "json-shape",
                "the `shape` of an entity type must be a record".to_owned(),
            )
            .help("write `{ \"type\": \"Record\", \"attributes\": { … } }`"),
            OpenRecord => error(
                "json-shape",
                "records with attributes nobody declared are not supported".to_owned(),
            )
            .help("remove `additionalAttributes`; tags hold what is not known beforehand"),
            ActionAttributes => error("json-shape", "actions have no attributes".to_owned()).help(
                "remove `attributes`; what differs between requests belongs into the context",
            ),
        }
    }
}

fn proposed(found: Diagnostic, span: Span, nearest: &Option<SmolStr>, help: &str) -> Diagnostic {
    match nearest {
        Some(name) => found.help(format!("did you mean `{name}`?")).fix(
            format!("change to `{name}`"),
            span,
            format!("{:?}", name.as_str()),
        ),
        None => found.help(help),
    }
}
