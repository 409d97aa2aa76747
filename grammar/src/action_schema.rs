//! Reads Cedar schemas in their human syntax (`.cedarschema`).

use crate::ast::action_schema::*;
use crate::ast::{Annotation, Ident, Name};
use crate::error::SyntaxErrorKind;
use crate::grammars::action_schema::ActionSchemaParser;
use crate::span::Span;
use crate::structure;
use crate::token::{self, Key, Language, Lexeme, Start, Token};
use crate::tree::Cx;
use smol_str::SmolStr;
use std::collections::HashMap;
use std::ops::Range;

/// What one parse gives.
#[derive(Debug)]
pub(crate) enum Parsed {
    Decl(Decl),
    Namespace(Vec<Annotation>, Name),
}

/// Reads an action schema.
pub fn parse_action_schema(source: &str) -> crate::Parsed<ActionSchemaFile> {
    let (lexemes, trivia) = token::lex(source, Language::ActionSchema);
    let mut cx = Cx::new(source);
    let mut outside = Namespace {
        annotations: Vec::new(),
        name: None,
        decls: Vec::new(),
        span: Span::default(),
    };
    let mut namespaces: Vec<Namespace> = Vec::new();
    // Namespaces whose `}` has not come: the last of `namespaces`, and any it is wrongly inside of.
    let mut open = 0usize;
    let mut place = 0;
    while let Some(first) = lexemes.get(place) {
        let (part, next) = part(source, &lexemes, place);
        place = next;
        match part {
            Part::Close => {
                if open == 0 {
                    cx.error(SyntaxErrorKind::StrayBrace, first.span);
                } else if let Some(namespace) = namespaces.last_mut() {
                    namespace.span = namespace.span.to(first.span);
                }
                open = open.saturating_sub(1);
            }
            Part::Namespace(range) => {
                let tokens = lexemes.get(range).unwrap_or(&[]);
                let span = covered(tokens);
                if open > 0 {
                    cx.error(SyntaxErrorKind::NestedNamespace, span);
                }
                open += 1;
                let (annotations, name) = match parse(&mut cx, Start::Namespace, tokens) {
                    Some(Parsed::Namespace(annotations, name)) => (annotations, Some(name)),
                    _ => (Vec::new(), None),
                };
                namespaces.push(Namespace {
                    annotations,
                    name,
                    decls: Vec::new(),
                    span,
                });
            }
            Part::Decl(range, semicolon) => {
                let tokens = lexemes.get(range).unwrap_or(&[]);
                if tokens.is_empty() {
                    cx.error(SyntaxErrorKind::StraySemicolon, first.span);
                    continue;
                }
                let decl = decl(&mut cx, tokens, semicolon);
                match namespaces.last_mut().filter(|_| open > 0) {
                    Some(namespace) => namespace.decls.push(decl),
                    None => {
                        let first = outside.decls.is_empty();
                        outside.span = if first {
                            decl.span
                        } else {
                            outside.span.to(decl.span)
                        };
                        outside.decls.push(decl);
                    }
                }
            }
        }
    }
    if open > 0
        && let Some(namespace) = namespaces.last()
    {
        let at = open_brace(&lexemes, namespace.span);
        cx.error(SyntaxErrorKind::Unclosed, at);
    }
    if !outside.decls.is_empty() {
        namespaces.insert(0, outside);
    }
    crate::Parsed::new(ActionSchemaFile { namespaces }, trivia, cx)
}

/// The brace that opens the namespace whose head is at `head`.
fn open_brace(lexemes: &[Lexeme<'_>], head: Span) -> Span {
    lexemes
        .iter()
        .find(|lexeme| lexeme.token == Token::BraceOpen && lexeme.span.start >= head.start)
        .map_or(head, |lexeme| lexeme.span)
}

fn covered(lexemes: &[Lexeme<'_>]) -> Span {
    match (lexemes.first(), lexemes.last()) {
        (Some(first), Some(last)) => first.span.to(last.span),
        _ => Span::default(),
    }
}

fn decl<'s>(cx: &mut Cx<'s>, tokens: &[Lexeme<'s>], semicolon: Option<Span>) -> Decl {
    let errors = cx.errors.len();
    let whole = covered(tokens);
    let span = semicolon.map_or(whole, |semicolon| whole.to(semicolon));
    let read = match parse(cx, Start::Item, tokens) {
        Some(Parsed::Decl(decl)) => Decl { span, ..decl },
        _ => Decl {
            annotations: Vec::new(),
            kind: DeclKind::Broken,
            span,
        },
    };
    if semicolon.is_none() && cx.errors.len() == errors {
        cx.error(
            SyntaxErrorKind::MissingSemicolon,
            Span::at(whole.end as usize),
        );
    }
    read
}

fn parse<'s>(cx: &mut Cx<'s>, start: Start, lexemes: &[Lexeme<'s>]) -> Option<Parsed> {
    let lexemes = structure::bound_nesting(cx, lexemes);
    let tokens = cx.begin(start, lexemes);
    match ActionSchemaParser::new().parse(cx, tokens) {
        Ok(parsed) => Some(parsed),
        Err(error) => {
            cx.failed(error);
            None
        }
    }
}

// ---------------------------------------------------------------------------------------- outline

enum Part {
    /// Up to and with its `{`.
    Namespace(Range<usize>),
    Decl(Range<usize>, Option<Span>),
    /// The `}` of a namespace.
    Close,
}

/// The part of the file that begins at `start`, and where the next one does.
fn part(source: &str, lexemes: &[Lexeme<'_>], start: usize) -> (Part, usize) {
    if lexemes
        .get(start)
        .is_some_and(|first| first.token == Token::BraceClose)
    {
        return (Part::Close, start + 1);
    }
    let (mut end, depth) = part_end(source, lexemes, start, false);
    if depth != 0 {
        (end, _) = part_end(source, lexemes, start, true);
    }
    match lexemes.get(end) {
        Some(Lexeme {
            token: Token::Semicolon,
            span,
        }) => (Part::Decl(start..end, Some(*span)), end + 1),
        Some(Lexeme {
            token: Token::BraceOpen,
            ..
        }) => (Part::Namespace(start..end + 1), end + 1),
        _ => (Part::Decl(start..end, None), end),
    }
}

/// Where the part that begins at `start` ends, and how many brackets are open there. The end is its
/// `;`, the `{` of a namespace, or the first token of what follows.
fn part_end(
    source: &str,
    lexemes: &[Lexeme<'_>],
    start: usize,
    unbalanced: bool,
) -> (usize, usize) {
    let token = |at: usize| lexemes.get(at).map(|lexeme| lexeme.token);
    let mut depth = 0usize;
    // Past the annotations, and whether what follows is the head of a namespace.
    let mut begun = false;
    let mut namespace = false;
    let mut at = start;
    while let Some(now) = token(at) {
        let before = at
            .checked_sub(1)
            .filter(|before| *before >= start)
            .and_then(token);
        match now {
            Token::Semicolon => break,
            Token::BraceOpen if namespace && depth == 0 => break,
            Token::BraceClose if depth == 0 => break,
            _ if begun
                && (depth == 0 || unbalanced)
                && starts_part(lexemes, at, before, depth)
                && structure::first_on_line(source, lexemes, at) =>
            {
                break;
            }
            _ if structure::opens(now).is_some() => depth += 1,
            _ if structure::closes(now).is_some() => depth = depth.saturating_sub(1),
            Token::Key(key) if !begun && depth == 0 && before != Some(Token::At) => {
                begun = true;
                namespace = key == Key::Namespace;
            }
            Token::Word(_) if !begun && depth == 0 && before != Some(Token::At) => begun = true,
            _ => {}
        }
        at += 1;
    }
    (at, depth)
}

/// Whether the token at `at` looks like the first of a declaration.
fn starts_part(lexemes: &[Lexeme<'_>], at: usize, before: Option<Token<'_>>, depth: usize) -> bool {
    let token = |at: usize| lexemes.get(at).map(|lexeme| lexeme.token);
    let word = matches!(token(at + 1), Some(Token::Word(_) | Token::Key(_)));
    let joined = matches!(
        before,
        Some(
            Token::Comma
                | Token::PathSep
                | Token::At
                | Token::Colon
                | Token::Assign
                | Token::BracketOpen
                | Token::Key(
                    Key::Entity | Key::Action | Key::Type | Key::Namespace | Key::In | Key::Tags
                )
        )
    );
    match token(at) {
        _ if joined => false,
        Some(Token::At) => depth == 0 && word,
        Some(Token::Key(Key::Entity | Key::Type | Key::Namespace)) => word,
        Some(Token::Key(Key::Action)) => word || matches!(token(at + 1), Some(Token::Str(_))),
        _ => false,
    }
}

// ------------------------------------------------------------------------------- semantic actions

pub(crate) enum PartValue {
    List(Vec<Name>, Span),
    Ty(Ty),
}

pub(crate) fn applies_to(
    cx: &mut Cx<'_>,
    parts: Vec<Option<(Ident, PartValue)>>,
    span: Span,
) -> AppliesTo {
    let mut read = AppliesTo {
        principals: Vec::new(),
        resources: Vec::new(),
        context: None,
        span,
    };
    let mut seen: HashMap<SmolStr, Span> = HashMap::new();
    for (key, value) in parts.into_iter().flatten() {
        if let Some(first) = seen.insert(key.text.clone(), key.span) {
            let kind = SyntaxErrorKind::Duplicate {
                what: "`appliesTo` part",
                name: key.text,
                first,
            };
            cx.error(kind, key.span);
            continue;
        }
        match key.text.as_str() {
            "principal" => read.principals = types(cx, &key, value),
            "resource" => read.resources = types(cx, &key, value),
            "context" => match value {
                PartValue::Ty(ty) if !matches!(ty.kind, TyKind::Set(_)) => read.context = Some(ty),
                PartValue::Ty(Ty { span, .. }) | PartValue::List(_, span) => {
                    cx.error(SyntaxErrorKind::AppliesToContext, span);
                }
            },
            _ => cx.error(SyntaxErrorKind::AppliesToKey { name: key.text }, key.span),
        }
    }
    read
}

fn types(cx: &mut Cx<'_>, key: &Ident, value: PartValue) -> Vec<Name> {
    match value {
        PartValue::List(names, _) => names,
        PartValue::Ty(Ty {
            kind: TyKind::Name(name),
            ..
        }) => vec![name],
        PartValue::Ty(ty) => {
            if ty.kind != TyKind::Error {
                cx.error(
                    SyntaxErrorKind::AppliesToTypes {
                        key: key.text.clone(),
                    },
                    ty.span,
                );
            }
            Vec::new()
        }
    }
}

pub(crate) fn named(cx: &mut Cx<'_>, name: Name) -> Ty {
    let span = name.span;
    cx.ty(TyKind::Name(name), span)
}

pub(crate) fn set(cx: &mut Cx<'_>, name: Name, argument: Ty, r: usize) -> Ty {
    let span = name.span.to(Span::at(r));
    if name.text() != "Set" {
        cx.error(
            SyntaxErrorKind::TypeArgument { name: name.text() },
            name.span,
        );
        return cx.ty(TyKind::Error, span);
    }
    cx.ty(TyKind::Set(Box::new(argument)), span)
}

pub(crate) fn record(cx: &mut Cx<'_>, attrs: Vec<Option<AttrDecl>>, span: Span) -> RecordTy {
    let attrs: Vec<AttrDecl> = attrs.into_iter().flatten().collect();
    let mut seen: HashMap<SmolStr, Span> = HashMap::new();
    for attr in &attrs {
        if let Some(first) = seen.insert(attr.name.value.clone(), attr.name.span) {
            let name = attr.name.value.clone();
            cx.error(
                SyntaxErrorKind::Duplicate {
                    what: "attribute",
                    name,
                    first,
                },
                attr.name.span,
            );
        }
    }
    RecordTy { attrs, span }
}
