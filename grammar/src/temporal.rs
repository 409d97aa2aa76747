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
use crate::expr;
use crate::recovery::Recovered;
use crate::span::Span;
use crate::tree::Cx;

pub(crate) struct Node {
    shape: Shape,
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
    Node(Node),
    Window(Window),
}

/// A brace group of field patterns, with its place.
pub(crate) type Group = (Vec<Option<FieldPattern>>, Span);

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
            shape: Shape::Cond(cond),
            span,
            paren: false,
            tail: None,
            rest: Vec::new(),
        }
    }

    fn term(term: Term) -> Node {
        let span = term.span;
        Node {
            shape: Shape::Term(term),
            span,
            paren: false,
            tail: None,
            rest: Vec::new(),
        }
    }

    fn is_error(&self) -> bool {
        match &self.shape {
            Shape::Cond(cond) => cond.kind == CondKind::Error,
            Shape::Term(term) => term.kind == TermKind::Error,
        }
    }

    /// The operator at the top, if it must be parenthesised to be an operand of `formerly`.
    fn loose(&self) -> bool {
        let Shape::Cond(cond) = &self.shape else {
            return false;
        };
        let loose = match cond.kind {
            CondKind::Not(_)
            | CondKind::Exists { .. }
            | CondKind::Formerly { .. }
            | CondKind::Previous { .. } => true,
            _ => false,
        };
        loose && !self.paren
    }

    /// The condition without its tail and rest.
    fn bare_cond(self, cx: &mut Cx<'_>) -> Cond {
        let span = self.span;
        let kind = match self.shape {
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
        match self.shape {
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
        match self.shape {
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
            self.shape = Shape::Cond(cx.cond(CondKind::Error, self.span.to(tail.right.span)));
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

pub(crate) fn whole(cx: &mut Cx<'_>, node: Node) -> Cond {
    node.into_cond(cx)
}

pub(crate) fn block(cx: &mut Cx<'_>, keyword: Span, body: Node, span: Span) -> Temporal {
    Temporal {
        keyword,
        body: node_body(cx, body),
        span,
    }
}

fn node_body(cx: &mut Cx<'_>, body: Node) -> Cond {
    body.into_cond(cx)
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

// -------------------------------------------------------------------------------------- operators

pub(crate) fn or(cx: &mut Cx<'_>, left: Node, place: Span, right: Node) -> Node {
    let span = left.span.to(right.span);
    // One message for a chain of them.
    let said = cx.errors.iter().rev().any(|error| {
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
    match left.shape {
        Shape::Cond(ref cond) if cond.kind != CondKind::Error => {
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
    if !matches!(node.shape, Shape::Term(_)) {
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

/// One side of a comparison.
fn operand(cx: &mut Cx<'_>, node: Node) -> Term {
    let term = node.into_term(cx);
    if matches!(term.kind, TermKind::Array(_)) {
        cx.error(SyntaxErrorKind::ArrayTerm, term.span);
    }
    term
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

// ------------------------------------------------------------------------------------------ parts

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
        .map(|(fields, _)| fields.into_iter().flatten().collect())
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
            [
                Arg::Node(Node {
                    shape: Shape::Term(term),
                    paren: false,
                    ..
                }),
            ] => match &term.kind {
                TermKind::Str(value) => Some(Str {
                    value: value.clone(),
                    span: term.span,
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
            Arg::Node(node) => match node.shape {
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
