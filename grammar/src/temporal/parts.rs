//! Leaves and other parts: literals, words, event patterns, calls, windows.

use super::{Arg, Group, Node, Shape, error, operand};
use crate::ast::*;
use crate::error::SyntaxErrorKind;
use crate::expr;
use crate::span::Span;
use crate::tree::Cx;

pub(crate) fn window(cx: &mut Cx<'_>, digits: &str, amount: Span, unit: Option<Span>) -> Window {
    let span = unit.map_or(amount, |unit| amount.to(unit));
    let unit = match unit {
        None => {
            cx.error(SyntaxErrorKind::MissingUnit, amount);
            None
        }
        Some(place) => match cx.text(place) {
            "s" => Some(Unit::Second),
            "m" => Some(Unit::Minute),
            "h" => Some(Unit::Hour),
            "d" => Some(Unit::Day),
            _ => {
                cx.error(SyntaxErrorKind::BadUnit, place);
                None
            }
        },
    };
    let value = cx
        .int(digits, false, amount)
        .and_then(|amount| u64::try_from(amount).ok());
    let kind = match (value, unit) {
        (Some(amount), Some(unit)) => WindowKind::Amount { amount, unit },
        _ => WindowKind::Error,
    };
    Window { kind, span }
}

pub(crate) fn variable(cx: &mut Cx<'_>, sigil: Sigil, l: usize, r: usize) -> VarRef {
    let Ident { text: name, span } = match sigil {
        Sigil::Plain => cx.ident(l, r),
        Sigil::Param | Sigil::Fresh => cx.sigil_ident(l, r),
    };
    VarRef { sigil, name, span }
}

pub(crate) fn paren(cx: &mut Cx<'_>, mut inner: Node, span: Span) -> Node {
    inner.drop_tail(cx);
    if !inner.rest.is_empty() {
        inner = Node::cond(inner.into_cond(cx));
    }
    inner.span = span;
    inner.paren = true;
    inner
}

pub(crate) fn int(cx: &mut Cx<'_>, digits: &str, negative: bool, span: Span) -> Node {
    let kind = cx
        .int(digits, negative, span)
        .map_or(TermKind::Error, TermKind::Int);
    Node::term(cx.term(kind, span))
}

pub(crate) fn string(cx: &mut Cx<'_>, raw: &str, l: usize, r: usize) -> Node {
    let text = cx.str(raw, l, r);
    Node::term(cx.term(TermKind::Str(text.value), text.span))
}

pub(crate) fn wildcard(cx: &mut Cx<'_>, span: Span) -> Node {
    Node::term(cx.term(TermKind::Wildcard, span))
}

pub(crate) fn entity(cx: &mut Cx<'_>, ty: Name, id: Str) -> Node {
    let entity = expr::entity_ref(ty, id);
    let span = entity.span;
    Node::term(cx.term(TermKind::Entity(entity), span))
}

pub(crate) fn array(cx: &mut Cx<'_>, all: Vec<Arg>, span: Span) -> Node {
    let mut terms = Vec::with_capacity(all.len());
    for one in all {
        terms.push(match one {
            Arg::Node(node) => node.into_term(cx),
            Arg::Window(window) => {
                cx.error(SyntaxErrorKind::NotATerm, window.span);
                cx.term(TermKind::Error, window.span)
            }
        });
    }
    Node::term(cx.term(TermKind::Array(terms), span))
}

/// A word, perhaps with a path.
pub(crate) fn word(cx: &mut Cx<'_>, word: Ident, path: Vec<Ident>) -> Node {
    let span = path
        .last()
        .map_or(word.span, |last| word.span.to(last.span));
    let kind = match (word.text.as_str(), path.is_empty()) {
        ("context", false) => TermKind::Context(path),
        ("context", true) => {
            cx.error(SyntaxErrorKind::ContextAlone, span);
            TermKind::Error
        }
        ("principal", _) => TermKind::Scope {
            root: ScopeRoot::Principal,
            path,
        },
        ("resource", _) => TermKind::Scope {
            root: ScopeRoot::Resource,
            path,
        },
        (_, false) => {
            cx.error(SyntaxErrorKind::PathRoot { name: word.text }, word.span);
            TermKind::Error
        }
        ("true", true) => TermKind::Bool(true),
        ("false", true) => TermKind::Bool(false),
        ("_", true) => TermKind::Wildcard,
        (_, true) => TermKind::Var(VarRef {
            sigil: Sigil::Plain,
            name: word.text,
            span,
        }),
    };
    Node::term(cx.term(kind, span))
}

pub(crate) fn fresh(cx: &mut Cx<'_>, l: usize, r: usize) -> Node {
    let var = variable(cx, Sigil::Fresh, l, r);
    let span = var.span;
    Node::term(cx.term(TermKind::Var(var), span))
}

fn patterns(groups: Vec<Group>) -> Vec<Vec<FieldPattern>> {
    groups
        .into_iter()
        .map(|(fields, _)| fields.into_iter().flatten().map(|field| *field).collect())
        .collect()
}

pub(crate) fn param(cx: &mut Cx<'_>, name: Ident, groups: Vec<Group>, span: Span) -> Node {
    if groups.is_empty() {
        let var = VarRef {
            sigil: Sigil::Param,
            name: name.text,
            span: name.span,
        };
        return Node::term(cx.term(TermKind::Var(var), span));
    }
    let injected = patterns(groups).into_iter().flatten().collect();
    Node::cond(cx.cond(CondKind::Param { name, injected }, span))
}

pub(crate) fn tp(cx: &mut Cx<'_>, var: VarRef, span: Span) -> Node {
    Node::cond(cx.cond(CondKind::Tp(var), span))
}

pub(crate) fn matcher(
    cx: &mut Cx<'_>,
    ty: Name,
    action: Str,
    kind: Ident,
    groups: Vec<Group>,
    r: usize,
) -> Node {
    let span = ty.span.to(Span::at(r));
    let name_span = ty.span.to(kind.span);
    if groups.is_empty() {
        cx.error(SyntaxErrorKind::MissingBraces, name_span);
    }
    let mut groups = patterns(groups);
    if groups.is_empty() {
        groups.push(Vec::new());
    }
    let event = EventName {
        ty,
        action,
        kind,
        span: name_span,
    };
    Node::cond(cx.cond(
        CondKind::Match(Matcher {
            event,
            groups,
            span,
        }),
        span,
    ))
}

pub(crate) fn missing_kind(
    cx: &mut Cx<'_>,
    ty: Name,
    action: Str,
    groups: Vec<Group>,
    r: usize,
) -> Node {
    drop(groups);
    let name = ty.span.to(action.span);
    cx.error(SyntaxErrorKind::MissingKind, name);
    error(cx, name.to(Span::at(r)))
}

pub(crate) fn field(cx: &mut Cx<'_>, path: Vec<Ident>, value: Node, span: Span) -> FieldPattern {
    let term = operand(cx, value);
    FieldPattern { path, term, span }
}

pub(crate) fn call(cx: &mut Cx<'_>, name: Ident, args: Vec<Arg>, span: Span) -> Node {
    if name.text == "decimal" {
        let text = match args.as_slice() {
            [Arg::Node(node)] if !node.paren => match node.shape.as_ref() {
                Shape::Term(Term {
                    kind: TermKind::Str(value),
                    span,
                    ..
                }) => Some(Str {
                    value: value.clone(),
                    span: *span,
                }),
                _ => None,
            },
            _ => None,
        };
        let kind = match text {
            Some(text) => TermKind::Decimal(text),
            None => {
                if !args
                    .iter()
                    .any(|arg| matches!(arg, Arg::Node(node) if node.is_error()))
                {
                    cx.error(SyntaxErrorKind::DecimalArgument, span);
                }
                TermKind::Error
            }
        };
        return Node::term(cx.term(kind, span));
    }
    if matches!(
        name.text.as_str(),
        "true" | "false" | "principal" | "resource" | "context" | "_"
    ) {
        cx.error(SyntaxErrorKind::ReservedCall { name: name.text }, name.span);
        return error(cx, span);
    }
    let mut read = Vec::with_capacity(args.len());
    for arg in args {
        read.push(match arg {
            Arg::Window(window) => CallArg::Window(window),
            Arg::Node(node) => match *node.shape {
                Shape::Term(_) if node.rest.is_empty() => CallArg::Term(node.into_term(cx)),
                _ => CallArg::Cond(node.into_cond(cx)),
            },
        });
    }
    let call = MacroCall {
        name,
        args: read,
        span,
    };
    Node::term(cx.term(TermKind::Call(call), span))
}
