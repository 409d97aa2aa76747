//! Reads event schemas (`.dwschema`).

use crate::ast::event_schema::*;
use crate::ast::{Ident, Window, WindowKind};
use crate::error::SyntaxErrorKind;
use crate::grammars::event_schema::EventSchemaParser;
use crate::span::Span;
use crate::structure;
use crate::token::{self, Key, Language, Lexeme, Start, Token};
use crate::tree::Cx;

/// What one parse gives.
#[derive(Debug)]
pub(crate) enum Parsed {
    Event(EventDecl),
    Window(Window),
}

/// Reads an event schema.
pub fn parse_event_schema(source: &str) -> crate::Parsed<EventSchemaFile> {
    let (lexemes, trivia) = token::lex(source, Language::EventSchema);
    let mut cx = Cx::new(source);
    let mut file = EventSchemaFile::default();
    if lexemes.is_empty() && trivia.comments().next().is_none() {
        cx.error(SyntaxErrorKind::BlankSchema, Span::default());
    }
    let mut start = 0;
    while let Some(first) = lexemes.get(start) {
        let end = (start + 1..lexemes.len())
            .find(|at| starts_part(&lexemes, *at))
            .unwrap_or(lexemes.len());
        let part = lexemes.get(start..end).unwrap_or(&[]);
        let window = first.token == Token::Key(Key::MaxWindow);
        let errors = cx.errors.len();
        match parse(
            &mut cx,
            if window { Start::Window } else { Start::Item },
            part,
        ) {
            Some(Parsed::Event(event)) => file.events.push(event),
            Some(Parsed::Window(window)) => {
                if start > 0 {
                    cx.error(SyntaxErrorKind::LateMaxWindow, first.span);
                } else if cx.errors.len() == errors {
                    max_window(&mut cx, &window);
                }
                if file.max_window.is_none() {
                    file.max_window = Some(window);
                }
            }
            None => {}
        }
        start = end;
    }
    crate::Parsed::new(file, trivia, cx)
}

/// `event <` and `max_window =` stand only at the start of a declaration.
fn starts_part(lexemes: &[Lexeme<'_>], at: usize) -> bool {
    let token = |at: usize| lexemes.get(at).map(|lexeme| lexeme.token);
    let decision = at.checked_sub(1).and_then(token) == Some(Token::Key(Key::Decision));
    match (token(at), token(at + 1)) {
        (Some(Token::Key(Key::Event)), Some(Token::Lt)) => !decision,
        (Some(Token::Key(Key::Decision)), Some(Token::Key(Key::Event))) => {
            token(at + 2) == Some(Token::Lt)
        }
        (Some(Token::Key(Key::MaxWindow)), Some(Token::Assign)) => {
            matches!(token(at + 2), Some(Token::Int(_)))
        }
        _ => false,
    }
}

fn parse<'s>(cx: &mut Cx<'s>, start: Start, lexemes: &[Lexeme<'s>]) -> Option<Parsed> {
    let lexemes = structure::bound_nesting(cx, lexemes);
    let tokens = cx.begin(start, lexemes);
    match EventSchemaParser::new().parse(cx, tokens) {
        Ok(parsed) => Some(parsed),
        Err(error) => {
            cx.failed(error);
            None
        }
    }
}

fn max_window(cx: &mut Cx<'_>, window: &Window) {
    match window.kind {
        WindowKind::Amount { amount: 0, .. } => {
            cx.error(SyntaxErrorKind::ZeroMaxWindow, window.span);
        }
        WindowKind::Amount { .. } if window.seconds().is_none() => {
            cx.error(SyntaxErrorKind::WindowRange, window.span);
        }
        _ => {}
    }
}

// ------------------------------------------------------------------------------- semantic actions

pub(crate) fn event(
    cx: &mut Cx<'_>,
    decision: bool,
    binder: Ident,
    kind: Ident,
    members: Vec<Option<Member>>,
    span: Span,
) -> EventDecl {
    let members: Vec<Member> = members.into_iter().flatten().collect();
    check_selectors(cx, &members, &binder);
    EventDecl {
        decision,
        binder,
        kind,
        members,
        span,
    }
}

/// Every selector names the binder of its declaration. Depth is that of the types, which is bounded.
fn check_selectors(cx: &mut Cx<'_>, members: &[Member], binder: &Ident) {
    let mut check = |argument: &Ident| {
        if argument.text != binder.text {
            let kind = SyntaxErrorKind::SelectorArgument {
                binder: binder.text.clone(),
            };
            cx.error(kind, argument.span);
        }
    };
    for member in members {
        match member {
            Member::Spread(spread) => check(&spread.argument),
            Member::Field(field) => match &field.ty.kind {
                FieldTyKind::Selector { argument, .. } => check(argument),
                FieldTyKind::Record(_) | FieldTyKind::Name(_) | FieldTyKind::Error => {}
            },
        }
    }
    for member in members {
        if let Member::Field(Field {
            ty:
                FieldTy {
                    kind: FieldTyKind::Record(inner),
                    ..
                },
            ..
        }) = member
        {
            check_selectors(cx, inner, binder);
        }
    }
}

pub(crate) fn field(
    cx: &mut Cx<'_>,
    pin: Option<Span>,
    name: Ident,
    ty: FieldTy,
    value: Option<PinRef>,
    span: Span,
) -> Member {
    match (pin, &value) {
        (Some(pin), _) if matches!(ty.kind, FieldTyKind::Record(_)) => {
            cx.error(SyntaxErrorKind::PinOnGroup, pin);
        }
        (Some(pin), None) => cx.error(SyntaxErrorKind::PinWithoutValue, pin.to(name.span)),
        (None, Some(value)) => {
            let field = name.span;
            cx.error(SyntaxErrorKind::ValueWithoutPin { field }, value.span);
        }
        _ => {}
    }
    Member::Field(Field {
        pin,
        name,
        ty,
        value,
        span,
    })
}

pub(crate) fn pin_ref(cx: &mut Cx<'_>, root: Ident, path: Vec<Ident>) -> PinRef {
    let span = path
        .last()
        .map_or(root.span, |last| root.span.to(last.span));
    match root.text.as_str() {
        "principal" | "resource" => {}
        "context" if !path.is_empty() => {}
        _ => cx.error(SyntaxErrorKind::PinRoot, span),
    }
    PinRef { root, path, span }
}
