//! Parts of a policy as source, for what has no plain words.

use crate::grammar::ast::*;
use crate::grammar::print::print_expr;
use crate::grammar::{Span, print};

pub use print::{print_cond as cond, print_expr as expr, print_term as term};

pub fn string(text: &str) -> String {
    leaf(ExprKind::Str(text.into()))
}

pub fn entity(entity: &EntityRef) -> String {
    leaf(ExprKind::Entity(entity.clone()))
}

fn leaf(kind: ExprKind) -> String {
    print_expr(&Expr {
        kind,
        span: Span::default(),
        depth: 1,
    })
}

pub fn var(var: Var) -> &'static str {
    match var {
        Var::Principal => "principal",
        Var::Action => "action",
        Var::Resource => "resource",
        Var::Context => "context",
    }
}

/// The right side of `like`, with its quotes.
pub fn pattern(pattern: &Pattern) -> String {
    let mut out = String::from("\"");
    for part in &pattern.parts {
        match part {
            PatternPart::Any => out.push('*'),
            PatternPart::Text(text) => {
                let quoted = string(text).replace('*', "\\*");
                let inner = quoted
                    .strip_prefix('"')
                    .and_then(|rest| rest.strip_suffix('"'));
                out.push_str(inner.unwrap_or(&quoted));
            }
        }
    }
    out.push('"');
    out
}

pub fn path(words: &[Ident]) -> String {
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    words.join(".")
}
