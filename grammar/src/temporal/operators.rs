//! The operators of conditions and terms, and the comparison that is carried to its aggregate.

use super::{Compared, Infix, Node, Past, Shape, Tail, error, operand};
use crate::ast::*;
use crate::error::SyntaxErrorKind;
use crate::span::Span;
use crate::tree::Cx;

pub(crate) fn or(cx: &mut Cx<'_>, left: Node, place: Span, right: Node) -> Node {
    let span = left.span.to(right.span);
    // One message for a chain of them.
    let recent = cx
        .errors
        .iter()
        .rev()
        .take_while(|error| span.start <= error.span.start);
    let said = recent.into_iter().any(|error| {
        error.kind == SyntaxErrorKind::OrInTemporal
            && span.start <= error.span.start
            && error.span.end <= span.end
    });
    if !said {
        cx.error(SyntaxErrorKind::OrInTemporal, place);
    }
    error(cx, span)
}

pub(crate) fn and(cx: &mut Cx<'_>, nodes: Vec<Node>) -> Node {
    let mut nodes = nodes.into_iter();
    let Some(first) = nodes.next() else {
        return error(cx, Span::default());
    };
    if nodes.len() == 0 {
        return first;
    }
    let mut span = first.span;
    let mut tail: Option<Box<Tail>> = None;
    let mut conds = Vec::new();
    for mut node in std::iter::once(first).chain(nodes) {
        let found = node.tail.take();
        let rest = std::mem::take(&mut node.rest);
        match &mut tail {
            // Behind a comparison that ends the aggregate's body: not part of the body.
            Some(tail) => {
                if let Some(found) = found {
                    node.tail = Some(found);
                    node.drop_tail(cx);
                }
                tail.rest.push(node.bare_cond(cx));
                tail.rest.extend(rest);
            }
            None => {
                span = span.to(node.span);
                conds.push(node.bare_cond(cx));
                conds.extend(rest);
                tail = found;
            }
        }
    }
    let cond = match (conds.len(), conds.pop()) {
        (1, Some(only)) => only,
        (_, Some(last)) => {
            span = span.to(last.span);
            conds.push(last);
            cx.cond(CondKind::And(conds), span)
        }
        (_, None) => cx.cond(CondKind::Error, span),
    };
    let mut node = Node::cond(cond);
    node.tail = tail;
    node
}

pub(crate) fn since(
    cx: &mut Cx<'_>,
    left: Node,
    place: Span,
    window: Option<Window>,
    mut right: Node,
) -> Node {
    let window = needed_window(cx, window, place, "since");
    if right.loose() {
        cx.error(
            SyntaxErrorKind::NeedsParens { operator: "since" },
            right.span,
        );
    }
    let (tail, rest) = (right.tail.take(), std::mem::take(&mut right.rest));
    let span = left.span.to(right.span);
    let (left, right) = (Box::new(left.into_cond(cx)), Box::new(right.bare_cond(cx)));
    let mut node = Node::cond(cx.cond(
        CondKind::Since {
            left,
            window,
            right,
        },
        span,
    ));
    (node.tail, node.rest) = (tail, rest);
    node
}

pub(crate) fn not(cx: &mut Cx<'_>, l: usize, count: usize, mut body: Node) -> Node {
    let span = Span::at(l).to(body.span);
    let (tail, rest) = (body.tail.take(), std::mem::take(&mut body.rest));
    let mut cond = body.bare_cond(cx);
    if usize::from(cond.depth) + count > usize::from(MAX_DEPTH) {
        cx.too_deep(span, span);
        cond = cx.cond(CondKind::Error, span);
    } else {
        for _ in 0..count {
            cond = cx.cond(CondKind::Not(Box::new(cond)), span);
        }
    }
    let mut node = Node::cond(cond);
    (node.tail, node.rest) = (tail, rest);
    node
}

pub(crate) fn past(
    cx: &mut Cx<'_>,
    past: Past,
    keyword: Span,
    window: Option<Window>,
    mut body: Node,
) -> Node {
    let operator = match past {
        Past::Formerly => "formerly",
        Past::Previous => "previous",
    };
    let window = needed_window(cx, window, keyword, operator);
    needs_parens(cx, &body, operator);
    let span = keyword.to(body.span);
    let (tail, rest) = (body.tail.take(), std::mem::take(&mut body.rest));
    let body = Box::new(body.bare_cond(cx));
    let kind = match past {
        Past::Formerly => CondKind::Formerly { window, body },
        Past::Previous => CondKind::Previous { window, body },
    };
    let mut node = Node::cond(cx.cond(kind, span));
    (node.tail, node.rest) = (tail, rest);
    node
}

fn needs_parens(cx: &mut Cx<'_>, operand: &Node, operator: &'static str) {
    // One message for a run of them, about the innermost.
    let said = cx.errors.last().is_some_and(|error| {
        matches!(error.kind, SyntaxErrorKind::NeedsParens { .. })
            && operand.span.start <= error.span.start
            && error.span.end <= operand.span.end
    });
    if operand.loose() && !said {
        cx.error(SyntaxErrorKind::NeedsParens { operator }, operand.span);
    }
}

pub(crate) fn exists(cx: &mut Cx<'_>, l: usize, binder: Binder, mut body: Node) -> Node {
    let tail = body.tail.take();
    let body = body.into_cond(cx);
    let span = Span::at(l).to(body.span);
    let mut node = Node::cond(cx.cond(
        CondKind::Exists {
            binder,
            body: Box::new(body),
        },
        span,
    ));
    node.tail = tail;
    node
}

pub(crate) fn compare(cx: &mut Cx<'_>, (first, mut rest): Compared) -> Node {
    let chained = rest.get(1).map(|(_, place, _)| *place);
    if let Some(place) = chained {
        let end = rest.last().map_or(first.span, |(_, _, node)| node.span);
        cx.error(SyntaxErrorKind::ChainedCompare, place);
        return error(cx, first.span.to(end));
    }
    let Some((infix, place, right)) = rest.pop() else {
        return settle(cx, first);
    };
    let op = match infix {
        Infix::Op(op) => op,
        Infix::Assign => {
            if !first.is_error() {
                cx.error(SyntaxErrorKind::AssignForEq, place);
            }
            CompareOp::Eq
        }
    };
    if let Some(tail) = &right.tail {
        cx.error(SyntaxErrorKind::ChainedCompare, tail.place);
        let span = first.span.to(tail.right.span);
        return error(cx, span);
    }
    let (left, right) = (first, operand(cx, right));
    match left.shape.as_ref() {
        Shape::Cond(cond) if cond.kind != CondKind::Error => {
            let mut node = left;
            let rest = Vec::new();
            node.tail = Some(Box::new(Tail {
                op,
                place,
                right,
                rest,
            }));
            node
        }
        _ => {
            let left = operand(cx, left);
            let span = left.span.to(right.span);
            Node::cond(cx.cond(CondKind::Compare { op, left, right }, span))
        }
    }
}

/// Gives the comparison at the end of an aggregate's body to the aggregate, or to the arithmetic
/// that it ends.
fn settle(cx: &mut Cx<'_>, mut node: Node) -> Node {
    if !matches!(*node.shape, Shape::Term(_)) {
        return node;
    }
    let Some(tail) = node.tail.take() else {
        return node;
    };
    let left = operand(cx, node);
    let span = left.span.to(tail.right.span);
    let kind = CondKind::Compare {
        op: tail.op,
        left,
        right: tail.right,
    };
    let mut node = Node::cond(cx.cond(kind, span));
    node.rest = tail.rest;
    node
}

pub(crate) fn sum(cx: &mut Cx<'_>, (first, mut rest): (Node, Vec<(SumOp, Node)>)) -> Node {
    let Some((_, last)) = rest.last_mut() else {
        return first;
    };
    let tail = last.tail.take();
    let span = first.span.to(last.span);
    let first = Box::new(first.into_term(cx));
    let rest = rest
        .into_iter()
        .map(|(op, node)| (op, node.into_term(cx)))
        .collect();
    let mut node = Node::term(cx.term(TermKind::Sum { first, rest }, span));
    node.tail = tail;
    node
}

pub(crate) fn product(cx: &mut Cx<'_>, mut nodes: Vec<Node>) -> Node {
    let Some(mut last) = nodes.pop() else {
        return error(cx, Span::default());
    };
    let Some(first) = nodes.first() else {
        return last;
    };
    let span = first.span.to(last.span);
    let tail = last.tail.take();
    nodes.push(last);
    let all = nodes.into_iter().map(|node| node.into_term(cx)).collect();
    let mut node = Node::term(cx.term(TermKind::Product(all), span));
    node.tail = tail;
    node
}

pub(crate) fn aggregate(
    cx: &mut Cx<'_>,
    l: usize,
    op: AggregateOp,
    binders: Vec<Binder>,
    mut body: Node,
) -> Node {
    let tail = body.tail.take();
    let body = body.into_cond(cx);
    let span = Span::at(l).to(body.span);
    let aggregate = Aggregate {
        op,
        binders,
        body,
        span,
    };
    let mut node = Node::term(cx.term(TermKind::Aggregate(Box::new(aggregate)), span));
    node.tail = tail;
    node
}

fn needed_window(
    cx: &mut Cx<'_>,
    window: Option<Window>,
    keyword: Span,
    operator: &'static str,
) -> Window {
    window.unwrap_or_else(|| {
        cx.error(SyntaxErrorKind::MissingWindow { operator }, keyword);
        Window {
            kind: WindowKind::Error,
            span: Span::at(keyword.end as usize),
        }
    })
}
