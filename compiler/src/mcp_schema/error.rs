//! What can be wrong with a manifest, and how it is said.

use crate::json::{JsonError, JsonProblem};
use dogwood_grammar::Span;
use dogwood_grammar::diagnostic::Diagnostic;
use smol_str::SmolStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    pub span: Span,
    pub problem: ManifestProblem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestProblem {
    NotJson(JsonProblem),
    NoTools,
    NotATool {
        found: &'static str,
    },
    NoName,
    NoInput {
        tool: SmolStr,
    },
    Repeated {
        tool: SmolStr,
        first: Span,
    },
    /// The input of a tool is declared as something other than an object.
    NotAnObject {
        tool: SmolStr,
        found: SmolStr,
    },
    EmptyName,
    EmptyEnum,
    RepeatedChoice {
        choice: SmolStr,
    },
    EmptyUnion {
        key: &'static str,
    },
    /// `items` is a list; tuples are written with `prefixItems`.
    ListOfItems,
    WrongKind {
        key: &'static str,
        expected: &'static str,
        found: &'static str,
    },
    UnknownType {
        name: SmolStr,
    },
    UnknownRef {
        target: SmolStr,
    },
    RepeatedProperty {
        name: SmolStr,
        first: Span,
    },
    /// Nothing where the name is one of ours.
    NameTaken {
        name: SmolStr,
        first: Option<Span>,
    },
    TooDeep {
        limit: usize,
    },
    TooLarge {
        limit: usize,
    },
}

impl ManifestError {
    pub fn diagnostic(&self) -> Diagnostic {
        use ManifestProblem::*;
        let span = self.span;
        let error = |code, text: String| Diagnostic::error(code, span, text);
        match &self.problem {
            NotJson(problem) => {
                let problem = *problem;
                JsonError { span, problem }.diagnostic()
            }
            NoTools => error("manifest-tools", "there is no list of tools here".to_owned()).help(
                "a manifest is an array of tools, an object with `tools`, or the reply to `tools/list`",
            ),
            NotATool { found } => error(
                "manifest-tools",
                format!("a tool is an object, but this is {found}"),
            )
            .help("as in `{ \"name\": \"search\", \"inputSchema\": { \"type\": \"object\" } }`"),
            NoName => error("manifest-tools", "this tool has no `name`".to_owned())
                .help("an action is called by the name of its tool"),
            NoInput { tool } => error(
                "manifest-tools",
                format!("the tool `{tool}` has no `inputSchema`"),
            )
            .help("a tool without arguments has `\"inputSchema\": { \"type\": \"object\" }`"),
            Repeated { tool, first } => error(
                "duplicate-declaration",
                format!("the tool `{tool}` is declared twice"),
            )
            .also(*first, "first declared here")
            .help("an action stands for one tool; rename or remove one of the two"),
            NotAnObject { tool, found } => error(
                "manifest-schema",
                format!("the arguments of `{tool}` must be an object, but this is {found}"),
            )
            .help("write `\"type\": \"object\"` with the arguments as `properties`"),
            EmptyName => error("manifest-schema", "a name is empty".to_owned()),
            EmptyEnum => error("empty-enum", "this `enum` has no values".to_owned())
                .help("list at least one value, or remove `enum`"),
            RepeatedChoice { choice } => error(
                "duplicate-declaration",
                format!("the value `{choice}` is listed twice"),
            )
            .help("keep one of them"),
            EmptyUnion { key } => error(
                "manifest-schema",
                format!("`{key}` lists no schema, so no value could be given"),
            )
            .help(format!("list at least one schema, or remove `{key}`")),
            ListOfItems => error(
                "manifest-schema",
                "`items` is one schema for all elements, not a list".to_owned(),
            )
            .help("write the schemas of a tuple as `prefixItems`, and `\"items\": false`"),
            WrongKind {
                key,
                expected,
                found,
            } => error(
                "manifest-schema",
                format!("`{key}` must be {expected}, but this is {found}"),
            ),
            UnknownType { name } => error(
                "unknown-type",
                format!("JSON Schema has no type `{name}`"),
            )
            .help("the types are `object`, `array`, `string`, `number`, `integer`, `boolean` and `null`"),
            UnknownRef { target } => error(
                "unknown-reference",
                format!("`{target}` refers to nothing in this schema"),
            )
            .help("a reference names a definition of the same tool, `#/$defs/Name`"),
            RepeatedProperty { name, first } => error(
                "duplicate-declaration",
                format!("`{name}` is declared twice"),
            )
            .also(*first, "first declared here")
            .help("keep one of them"),
            NameTaken { name, first } => {
                let found = error(
                    "duplicate-declaration",
                    format!("the type made for this is called `{name}`, and there is one already"),
                )
                .help("rename the tool or property; `_` stands for every character that no name may have");
                match first {
                    Some(first) => found.also(*first, "the other one is made for this"),
                    None => found,
                }
            }
            TooDeep { limit } => error(
                "type-too-deep",
                format!("schemas are nested more than {limit} deep here"),
            )
            .help("flatten the objects of the tool"),
            TooLarge { limit } => error(
                "types-too-large",
                format!("the schema of this manifest has more than {limit} parts"),
            )
            .help("make the schema of fewer tools"),
        }
    }
}
