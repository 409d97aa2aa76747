//! Reads policy files, and single expressions and conditions.

use crate::Parsed;
use crate::ast::{Cond, CondKind, Expr, ExprKind, Item, PolicyFile};
use crate::error::SyntaxErrorKind;
use crate::grammars::policy::PolicyParser;
use crate::rule;
use crate::span::Span;
use crate::structure;
use crate::token::{self, Language, Lexeme, Start};
use crate::tree::Cx;

/// Reads a policy file or a macro library.
pub fn parse_policy(source: &str) -> Parsed<PolicyFile> {
    let (lexemes, trivia) = token::lex(source, Language::Policy);
    let mut cx = Cx::new(source);
    let mut file = PolicyFile::default();
    for item in structure::items(source, &lexemes) {
        let lexemes = lexemes.get(item.lexemes).unwrap_or(&[]);
        let (Some(first), Some(last)) = (lexemes.first(), lexemes.last()) else {
            cx.error(
                SyntaxErrorKind::StraySemicolon,
                item.semicolon.unwrap_or_default(),
            );
            continue;
        };
        let span = first.span.to(item.semicolon.unwrap_or(last.span));
        let errors = cx.errors.len();
        let mut read = match parse(&mut cx, Start::Item, lexemes) {
            Some(rule::Parsed::Item(item)) => *item,
            _ => Item::Broken(span),
        };
        if item.semicolon.is_none() && cx.errors.len() == errors {
            cx.error(
                SyntaxErrorKind::MissingSemicolon,
                Span::at(last.span.end as usize),
            );
        }
        match &mut read {
            Item::Rule(rule) => rule.span = span,
            Item::Macro(definition) => definition.span = span,
            Item::Broken(_) => {}
        }
        file.items.push(read);
    }
    Parsed::new(file, trivia, cx)
}

/// Reads one expression.
pub fn parse_expr(source: &str) -> Parsed<Expr> {
    let (lexemes, trivia) = token::lex(source, Language::Policy);
    let mut cx = Cx::new(source);
    let tree = match parse(&mut cx, Start::Expr, &lexemes) {
        Some(rule::Parsed::Expr(expr)) => expr,
        _ => Expr {
            kind: ExprKind::Error,
            span: Span::new(0, source.len()),
            depth: 1,
        },
    };
    Parsed::new(tree, trivia, cx)
}

/// Reads one temporal condition, without `temporal { … }`.
pub fn parse_condition(source: &str) -> Parsed<Cond> {
    let (lexemes, trivia) = token::lex(source, Language::Policy);
    let mut cx = Cx::new(source);
    let tree = match parse(&mut cx, Start::Cond, &lexemes) {
        Some(rule::Parsed::Cond(cond)) => *cond,
        _ => Cond {
            kind: CondKind::Error,
            span: Span::new(0, source.len()),
            depth: 1,
        },
    };
    Parsed::new(tree, trivia, cx)
}

fn parse<'s>(cx: &mut Cx<'s>, start: Start, lexemes: &[Lexeme<'s>]) -> Option<rule::Parsed> {
    let lexemes = structure::bound_nesting(cx, lexemes);
    let lexemes = match start {
        Start::Item => structure::mark_outer(cx, lexemes),
        _ => lexemes,
    };
    let tokens = cx.begin(start, lexemes);
    match PolicyParser::new().parse(cx, tokens) {
        Ok(parsed) => Some(parsed),
        Err(error) => {
            cx.failed(error);
            None
        }
    }
}
