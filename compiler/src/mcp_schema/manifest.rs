//! The tools of a manifest: a bare array, an object with `tools`, or the reply to `tools/list`.

use super::error::{ManifestError, ManifestProblem};
use crate::json::Json;
use dogwood_grammar::Span;
use smol_str::SmolStr;
use std::collections::BTreeMap;

pub struct Tool<'m> {
    pub name: SmolStr,
    /// Of the name.
    pub span: Span,
    pub input: &'m Json,
    pub output: Option<&'m Json>,
}

pub fn tools<'m>(manifest: &'m Json, errors: &mut Vec<ManifestError>) -> Vec<Tool<'m>> {
    let list = manifest
        .as_array()
        .or_else(|| manifest.get("tools")?.as_array())
        .or_else(|| manifest.get("result")?.get("tools")?.as_array());
    let Some(list) = list else {
        errors.push(ManifestError {
            span: first_place(manifest.span),
            problem: ManifestProblem::NoTools,
        });
        return Vec::new();
    };
    let mut found: Vec<Tool> = Vec::new();
    let mut first: BTreeMap<&SmolStr, Span> = BTreeMap::new();
    for node in list {
        let mut report = |span: Span, problem| errors.push(ManifestError { span, problem });
        if node.as_object().is_none() {
            report(node.span, ManifestProblem::NotATool { found: node.what() });
            continue;
        }
        let name = node
            .get("name")
            .and_then(|name| Some((name.as_str()?, name.span)));
        let Some((name, span)) = name else {
            let span = node
                .get("name")
                .map_or(first_place(node.span), |name| name.span);
            report(span, ManifestProblem::NoName);
            continue;
        };
        let Some(input) = node.get("inputSchema") else {
            report(span, ManifestProblem::NoInput { tool: name.clone() });
            continue;
        };
        if let Some(first) = first.insert(name, span) {
            let tool = name.clone();
            report(span, ManifestProblem::Repeated { tool, first });
            continue;
        }
        found.push(Tool {
            name: name.clone(),
            span,
            input,
            output: node.get("outputSchema"),
        });
    }
    found
}

/// The opening bracket.
fn first_place(span: Span) -> Span {
    Span {
        start: span.start,
        end: span.start.saturating_add(1),
    }
}
