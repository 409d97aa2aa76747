//! Why rules cannot be written as plain Cedar, and how it is said.

use crate::value::EntityUid;
use dogwood_grammar::Span;
use dogwood_grammar::diagnostic::{Diagnostic, SourceId};
use smol_str::SmolStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LowerError {
    /// The context of an action has an attribute of that name already.
    FieldClash {
        field: SmolStr,
        action: EntityUid,
        source: SourceId,
        span: Span,
    },
    /// The schema has a type of that name already.
    TypeClash {
        name: SmolStr,
        source: SourceId,
        span: Span,
    },
}

impl LowerError {
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            LowerError::FieldClash {
                field,
                action,
                source,
                span,
            } => Diagnostic::error(
                "hoisted-name",
                *span,
                format!(
                    "in Cedar this becomes `context.{field}`, which the context of `{}` declares itself",
                    action.id
                ),
            )
            .help("rename that attribute of the schema")
            .in_source(*source),
            LowerError::TypeClash { name, source, span } => Diagnostic::error(
                "hoisted-name",
                *span,
                format!("the answers of providers become a `{name}`, which the schema declares itself"),
            )
            .help("rename that type of the schema")
            .in_source(*source),
        }
    }
}
