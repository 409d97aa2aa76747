//! The temporal language: conditions and terms told apart.
//!
//! The grammar reads both as one family. A [`Node`] is what it has so far: a condition or a term.
//! Calls and `?x` can be either; they are terms until a condition is asked for.
//!
//! An aggregate reaches as far to the right as it can, so in `count for … where formerly within 1m
//! (φ) <= 3` the comparison is first read with `(φ)` on its left. A condition cannot be compared:
//! the comparison is carried outwards ([`Tail`]) to the aggregate around it, whose it must be.

use crate::ast::*;
use crate::error::SyntaxErrorKind;
use crate::recovery::Recovered;
use crate::span::Span;
use crate::tree::Cx;

mod operators;
mod parts;

pub(crate) use operators::*;
pub(crate) use parts::*;

pub(crate) struct Node {
    /// Boxed, because a node passes through every level of the grammar.
    shape: Box<Shape>,
    span: Span,
    paren: bool,
    /// A comparison whose left side is not in this node but around it.
    tail: Option<Box<Tail>>,
    /// Conjuncts behind a comparison that found its aggregate; they belong to the chain around it.
    rest: Vec<Cond>,
}

enum Shape {
    Cond(Cond),
    Term(Term),
}

struct Tail {
    op: CompareOp,
    place: Span,
    right: Term,
    /// Conjuncts that follow the comparison.
    rest: Vec<Cond>,
}

/// A macro body.
pub(crate) enum Body {
    Cond(Cond),
    Term(Term),
}

pub(crate) enum Arg {
    Node(Box<Node>),
    Window(Window),
}

/// A brace group of field patterns, with its place.
pub(crate) type Group = (Vec<Option<Box<FieldPattern>>>, Span);

/// A comparison chain as written.
pub(crate) type Compared = (Node, Vec<(Infix, Span, Node)>);

#[derive(Clone, Copy)]
pub(crate) enum Infix {
    Op(CompareOp),
    Assign,
}

#[derive(Clone, Copy)]
pub(crate) enum Past {
    Formerly,
    Previous,
}

impl Node {
    fn cond(cond: Cond) -> Node {
        let span = cond.span;
        Node {
            shape: Box::new(Shape::Cond(cond)),
            span,
            paren: false,
            tail: None,
            rest: Vec::new(),
        }
    }

    fn term(term: Term) -> Node {
        let span = term.span;
        Node {
            shape: Box::new(Shape::Term(term)),
            span,
            paren: false,
            tail: None,
            rest: Vec::new(),
        }
    }

    fn is_error(&self) -> bool {
        match self.shape.as_ref() {
            Shape::Cond(cond) => cond.kind == CondKind::Error,
            Shape::Term(term) => term.kind == TermKind::Error,
        }
    }

    /// The operator at the top, if it must be parenthesised to be an operand of `formerly`.
    fn loose(&self) -> bool {
        let Shape::Cond(cond) = self.shape.as_ref() else {
            return false;
        };
        let loose = matches!(
            cond.kind,
            CondKind::Not(_)
                | CondKind::Exists { .. }
                | CondKind::Formerly { .. }
                | CondKind::Previous { .. }
        );
        loose && !self.paren
    }

    /// The condition without its tail and rest.
    fn bare_cond(self, cx: &mut Cx<'_>) -> Cond {
        let span = self.span;
        let kind = match *self.shape {
            Shape::Cond(mut cond) => {
                cond.span = span;
                return cond;
            }
            Shape::Term(term) => match term.kind {
                TermKind::Call(call) => CondKind::Call(call),
                TermKind::Var(VarRef {
                    sigil: Sigil::Param,
                    name,
                    span,
                }) => CondKind::Param {
                    name: Ident { text: name, span },
                    injected: Vec::new(),
                },
                TermKind::Error => CondKind::Error,
                TermKind::Entity(entity) => {
                    cx.error(SyntaxErrorKind::MissingKind, entity.span);
                    CondKind::Error
                }
                _ => {
                    cx.error(SyntaxErrorKind::NotACondition, span);
                    CondKind::Error
                }
            },
        };
        cx.cond(kind, span)
    }

    /// The whole condition, where nothing around it can take a comparison left over.
    pub(crate) fn into_cond(mut self, cx: &mut Cx<'_>) -> Cond {
        self.drop_tail(cx);
        let rest = std::mem::take(&mut self.rest);
        let first = self.bare_cond(cx);
        conjunction(cx, first, rest)
    }

    fn into_term(mut self, cx: &mut Cx<'_>) -> Term {
        self.drop_tail(cx);
        let span = self.span;
        match *self.shape {
            Shape::Term(mut term) if self.rest.is_empty() => {
                term.span = span;
                term
            }
            shape => {
                let silent = matches!(&shape, Shape::Cond(cond) if cond.kind == CondKind::Error);
                if !silent {
                    cx.error(SyntaxErrorKind::NotATerm, span);
                }
                cx.term(TermKind::Error, span)
            }
        }
    }

    pub(crate) fn into_body(mut self, cx: &mut Cx<'_>) -> Body {
        self.drop_tail(cx);
        let alone = self.rest.is_empty();
        match *self.shape {
            Shape::Term(Term {
                kind:
                    TermKind::Call(_)
                    | TermKind::Var(VarRef {
                        sigil: Sigil::Param,
                        ..
                    }),
                ..
            })
            | Shape::Cond(_) => Body::Cond(self.into_cond(cx)),
            Shape::Term(_) if alone => Body::Term(self.into_term(cx)),
            Shape::Term(_) => Body::Cond(self.into_cond(cx)),
        }
    }

    /// Nothing around this node is an aggregate, so its comparison compares a condition.
    fn drop_tail(&mut self, cx: &mut Cx<'_>) {
        if let Some(tail) = self.tail.take() {
            cx.error(SyntaxErrorKind::NotATerm, self.span);
            *self.shape = Shape::Cond(cx.cond(CondKind::Error, self.span.to(tail.right.span)));
            self.span = self.span.to(tail.right.span);
        }
    }
}

fn conjunction(cx: &mut Cx<'_>, first: Cond, rest: Vec<Cond>) -> Cond {
    let Some(last) = rest.last() else {
        return first;
    };
    let span = first.span.to(last.span);
    let mut all = match first {
        Cond {
            kind: CondKind::And(all),
            ..
        } => all,
        first => vec![first],
    };
    all.extend(rest);
    cx.cond(CondKind::And(all), span)
}

// ---------------------------------------------------------------------------------- whole bodies

pub(crate) fn block(cx: &mut Cx<'_>, keyword: Span, body: Node, span: Span) -> Temporal {
    let body = body.into_cond(cx);
    Temporal {
        keyword,
        body,
        span,
    }
}

pub(crate) fn error(cx: &mut Cx<'_>, span: Span) -> Node {
    Node::cond(cx.cond(CondKind::Error, span))
}

pub(crate) fn broken(cx: &mut Cx<'_>, recovered: Recovered<'_>) -> Node {
    let span = cx.syntax(recovered);
    error(cx, span)
}

pub(crate) fn let_word(cx: &mut Cx<'_>, span: Span) -> Node {
    cx.error(SyntaxErrorKind::LetInTemporal, span);
    error(cx, span)
}

/// One side of a comparison.
fn operand(cx: &mut Cx<'_>, node: Node) -> Term {
    let term = node.into_term(cx);
    if matches!(term.kind, TermKind::Array(_)) {
        cx.error(SyntaxErrorKind::ArrayTerm, term.span);
    }
    term
}
