//! Cedar expressions: what the semantic actions of the grammar build.

use crate::ast::*;
use crate::error::SyntaxErrorKind;
use crate::literal::{self, EscapeFault};
use crate::recovery::Recovered;
use crate::span::Span;
use crate::temporal::{self, Node};
use crate::tree::Cx;

/// A relational operator.
pub(crate) enum Op {
    Compare(CompareOp),
    In,
    /// `=`, which the language does not have.
    Assign,
}

/// A member expression under construction: a name is not an expression until we know that no call
/// follows, and `e.m` is not an attribute.
pub(crate) enum Operand {
    Name(Name),
    /// `e.m`, still open for `(…)`.
    Attribute(Expr),
    Expr(Expr),
}

impl Operand {
    pub(crate) fn error(span: Span) -> Operand {
        Operand::Expr(error(span))
    }

    /// A parenthesised expression; it covers its parentheses, so that it can be replaced as a whole.
    pub(crate) fn paren(mut inner: Expr, span: Span) -> Operand {
        inner.span = span;
        Operand::Expr(inner)
    }

    pub(crate) fn into_expr(self, cx: &mut Cx<'_>) -> Expr {
        let name = match self {
            Operand::Name(name) => name,
            Operand::Attribute(expr) | Operand::Expr(expr) => return expr,
        };
        let span = name.span;
        let kind = match name.path.as_slice() {
            [word] => match word.text.as_str() {
                "true" => Some(ExprKind::Bool(true)),
                "false" => Some(ExprKind::Bool(false)),
                "principal" => Some(ExprKind::Var(Var::Principal)),
                "action" => Some(ExprKind::Var(Var::Action)),
                "resource" => Some(ExprKind::Var(Var::Resource)),
                "context" => Some(ExprKind::Var(Var::Context)),
                _ => None,
            },
            _ => None,
        };
        if kind.is_none() {
            cx.error(SyntaxErrorKind::UnknownVariable { name: name.text() }, span);
        }
        cx.expr(kind.unwrap_or(ExprKind::Error), span)
    }

    fn span(&self) -> Span {
        match self {
            Operand::Name(name) => name.span,
            Operand::Attribute(expr) | Operand::Expr(expr) => expr.span,
        }
    }

    /// The same place, unreadable up to `end`.
    pub(crate) fn broken(self, end: usize) -> Operand {
        Operand::error(self.span().to(Span::at(end)))
    }
}

pub(crate) fn error(span: Span) -> Expr {
    Expr {
        kind: ExprKind::Error,
        span,
        depth: 1,
    }
}

pub(crate) fn broken(cx: &mut Cx<'_>, recovered: Recovered<'_>) -> Expr {
    error(cx.syntax(recovered))
}

pub(crate) fn name(word: Ident) -> Name {
    let span = word.span;
    // Most names have two words or three.
    let mut path = Vec::with_capacity(3);
    path.push(word);
    Name { path, span }
}

pub(crate) fn longer(mut name: Name, word: Ident) -> Name {
    name.span = name.span.to(word.span);
    name.path.push(word);
    name
}

pub(crate) fn attr(word: Ident) -> Attr {
    Attr {
        name: word.text,
        quoted: false,
        span: word.span,
    }
}

pub(crate) fn quoted_attr(cx: &mut Cx<'_>, raw: &str, l: usize, r: usize) -> Attr {
    let text = cx.str(raw, l, r);
    Attr {
        name: text.value,
        quoted: true,
        span: text.span,
    }
}

// ----------------------------------------------------------------------------------------- leaves

pub(crate) fn int(cx: &mut Cx<'_>, digits: &str, span: Span) -> Operand {
    let kind = cx
        .int(digits, false, span)
        .map_or(ExprKind::Error, ExprKind::Long);
    Operand::Expr(cx.expr(kind, span))
}

pub(crate) fn string(cx: &mut Cx<'_>, raw: &str, l: usize, r: usize) -> Operand {
    let text = cx.str(raw, l, r);
    Operand::Expr(cx.expr(ExprKind::Str(text.value), text.span))
}

pub(crate) fn slot(cx: &mut Cx<'_>, slot: Ident) -> Operand {
    let span = slot.span;
    Operand::Expr(cx.expr(ExprKind::Slot(slot), span))
}

pub(crate) fn entity_ref(ty: Name, id: Str) -> EntityRef {
    let span = ty.span.to(id.span);
    EntityRef { ty, id, span }
}

pub(crate) fn entity(cx: &mut Cx<'_>, ty: Name, id: Str) -> Operand {
    let entity = entity_ref(ty, id);
    let span = entity.span;
    Operand::Expr(cx.expr(ExprKind::Entity(entity), span))
}

pub(crate) fn entity_record(cx: &mut Cx<'_>, ty: Name, r: usize) -> Operand {
    let span = ty.span.to(Span::at(r));
    cx.error(SyntaxErrorKind::EntityRecord, span);
    Operand::error(span)
}

pub(crate) fn temporal(cx: &mut Cx<'_>, keyword: Span, body: Node, span: Span) -> Operand {
    let block = temporal::block(cx, keyword, body, span);
    Operand::Expr(cx.expr(ExprKind::Temporal(Box::new(block)), span))
}

pub(crate) fn set(cx: &mut Cx<'_>, all: Vec<Expr>, span: Span) -> Operand {
    Operand::Expr(cx.expr(ExprKind::Set(all), span))
}

pub(crate) fn record(
    cx: &mut Cx<'_>,
    fields: Vec<Option<Box<RecordField>>>,
    span: Span,
) -> Operand {
    let fields: Vec<RecordField> = fields.into_iter().flatten().map(|field| *field).collect();
    let mut seen = std::collections::HashMap::new();
    for field in &fields {
        if let Some(first) = seen.insert(field.key.name.clone(), field.key.span) {
            let kind = SyntaxErrorKind::Duplicate {
                what: "record key",
                name: field.key.name.clone(),
                first,
            };
            cx.error(kind, field.key.span);
        }
    }
    Operand::Expr(cx.expr(ExprKind::Record(fields), span))
}

// -------------------------------------------------------------------------------------- operators

pub(crate) fn choice(cx: &mut Cx<'_>, test: Expr, yes: Expr, no: Expr, span: Span) -> Expr {
    let kind = ExprKind::If {
        test: Box::new(test),
        yes: Box::new(yes),
        no: Box::new(no),
    };
    cx.expr(kind, span)
}

/// `first` alone, or with more operands the flat chain of all.
pub(crate) fn chain(
    cx: &mut Cx<'_>,
    first: Expr,
    rest: Vec<Expr>,
    kind: fn(Vec<Expr>) -> ExprKind,
) -> Expr {
    let Some(last) = rest.last() else {
        return first;
    };
    let span = first.span.to(last.span);
    let mut all = Vec::with_capacity(rest.len() + 1);
    all.push(first);
    all.extend(rest);
    cx.expr(kind(all), span)
}

pub(crate) fn relation(cx: &mut Cx<'_>, left: Expr, op: Op, place: Span, right: Expr) -> Expr {
    let span = left.span.to(right.span);
    let (left, right) = (Box::new(left), Box::new(right));
    let kind = match op {
        Op::Compare(op) => ExprKind::Compare { op, left, right },
        Op::In => ExprKind::In { left, right },
        Op::Assign => {
            cx.error(SyntaxErrorKind::AssignForEq, place);
            ExprKind::Compare {
                op: CompareOp::Eq,
                left,
                right,
            }
        }
    };
    cx.expr(kind, span)
}

pub(crate) fn has(cx: &mut Cx<'_>, target: Expr, path: Vec<Attr>, r: usize) -> Expr {
    let span = target.span.to(Span::at(r));
    cx.expr(
        ExprKind::Has {
            target: Box::new(target),
            path,
        },
        span,
    )
}

pub(crate) fn like(cx: &mut Cx<'_>, target: Expr, right: Expr) -> Expr {
    let span = target.span.to(right.span);
    let raw = cx.text(right.span);
    if !matches!(right.kind, ExprKind::Str(_)) || !raw.starts_with('"') {
        if !matches!(right.kind, ExprKind::Error) {
            cx.error(SyntaxErrorKind::PatternNotLiteral, right.span);
        }
        return error(span);
    }
    // It was read as a string first, where `\*` is wrong.
    cx.retract(right.span, |kind| {
        matches!(
            kind,
            SyntaxErrorKind::StarEscape | SyntaxErrorKind::InvalidEscape
        )
    });
    let errors = &mut cx.errors;
    let pattern = literal::pattern(raw, right.span, &mut |fault, span| {
        let kind = match fault {
            EscapeFault::Unknown => SyntaxErrorKind::InvalidEscape,
            EscapeFault::Star => SyntaxErrorKind::StarEscape,
        };
        errors.push(crate::error::SyntaxError { kind, span });
    });
    cx.expr(
        ExprKind::Like {
            target: Box::new(target),
            pattern,
        },
        span,
    )
}

pub(crate) fn is(cx: &mut Cx<'_>, target: Expr, ty: Name, within: Option<Expr>, r: usize) -> Expr {
    let span = target.span.to(Span::at(r));
    let within = within.map(Box::new);
    cx.expr(
        ExprKind::Is {
            target: Box::new(target),
            ty,
            within,
        },
        span,
    )
}

pub(crate) fn sum(cx: &mut Cx<'_>, first: Expr, rest: Vec<(SumOp, Expr)>) -> Expr {
    let Some((_, last)) = rest.last() else {
        return first;
    };
    let span = first.span.to(last.span);
    cx.expr(
        ExprKind::Sum {
            first: Box::new(first),
            rest,
        },
        span,
    )
}

pub(crate) fn product(cx: &mut Cx<'_>, first: Expr, rest: Vec<(usize, char, usize, Expr)>) -> Expr {
    let mut foreign = false;
    let mut operands = Vec::with_capacity(rest.len());
    for (l, operator, r, operand) in rest {
        if operator != '*' {
            foreign = true;
            cx.error(
                SyntaxErrorKind::UnsupportedOperator { operator },
                Span::new(l, r),
            );
        }
        operands.push(operand);
    }
    let product = chain(cx, first, operands, ExprKind::Product);
    if foreign {
        error(product.span)
    } else {
        product
    }
}

pub(crate) fn unary(
    cx: &mut Cx<'_>,
    mut ops: Vec<(char, Span)>,
    operand: Operand,
    l: usize,
) -> Expr {
    let operand = operand.into_expr(cx);
    let whole = Span::at(l).to(operand.span);
    let first = ops.first().map_or('!', |(op, _)| *op);
    if let Some((_, span)) = ops.iter().find(|(op, _)| *op != first) {
        cx.error(SyntaxErrorKind::MixedUnary, *span);
        return error(whole);
    }
    let mut expr = operand;
    if first == '-'
        && let Some(literal) = negative(cx, &expr, ops.last().map(|(_, span)| *span))
    {
        ops.pop();
        expr = literal;
    }
    if usize::from(expr.depth) + ops.len() > usize::from(MAX_DEPTH) {
        cx.too_deep(whole, whole);
        return error(whole);
    }
    for (_, span) in ops.into_iter().rev() {
        let span = span.to(expr.span);
        let kind = match first {
            '-' => ExprKind::Neg(Box::new(expr)),
            _ => ExprKind::Not(Box::new(expr)),
        };
        expr = cx.expr(kind, span);
    }
    expr
}

/// The literal that a minus directly before the digits of `expr` makes.
fn negative(cx: &mut Cx<'_>, expr: &Expr, minus: Option<Span>) -> Option<Expr> {
    let digits = cx.text(expr.span);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let span = minus?.to(expr.span);
    cx.retract(expr.span, |kind| *kind == SyntaxErrorKind::IntegerRange);
    let kind = cx
        .int(digits, true, span)
        .map_or(ExprKind::Error, ExprKind::Long);
    Some(cx.expr(kind, span))
}

// ------------------------------------------------------------------------------- members and calls

pub(crate) fn attribute(cx: &mut Cx<'_>, target: Operand, word: Ident, r: usize) -> Operand {
    let target = target.into_expr(cx);
    let span = target.span.to(Span::at(r));
    let kind = ExprKind::Attr {
        target: Box::new(target),
        attr: attr(word),
    };
    Operand::Attribute(cx.expr(kind, span))
}

pub(crate) fn index(cx: &mut Cx<'_>, target: Operand, key: Expr, r: usize) -> Operand {
    let target = target.into_expr(cx);
    let span = target.span.to(Span::at(r));
    let ExprKind::Str(name) = key.kind else {
        if key.kind != ExprKind::Error {
            cx.error(SyntaxErrorKind::IndexNotString, key.span);
        }
        return Operand::error(span);
    };
    let attr = Attr {
        name,
        quoted: true,
        span: key.span,
    };
    Operand::Expr(cx.expr(
        ExprKind::Attr {
            target: Box::new(target),
            attr,
        },
        span,
    ))
}

/// `target(args)`, where `list` covers the parentheses.
pub(crate) fn call(cx: &mut Cx<'_>, target: Operand, args: Vec<Expr>, list: Span) -> Operand {
    let span = target.span().to(list);
    match target {
        Operand::Name(name) => {
            if let [word] = name.path.as_slice() {
                match word.text.as_str() {
                    "decimal" | "datetime" | "duration" | "ip" => {
                        arity(cx, word, 1, args.len(), list, false);
                    }
                    "principal" | "action" | "resource" | "context" | "true" | "false" => {
                        cx.error(SyntaxErrorKind::CallOfNonName, name.span);
                        return Operand::error(span);
                    }
                    _ => {}
                }
            }
            Operand::Expr(cx.expr(ExprKind::Call { name, args }, span))
        }
        Operand::Attribute(Expr {
            kind: ExprKind::Attr { target, attr },
            ..
        }) => {
            let name = Ident {
                text: attr.name,
                span: attr.span,
            };
            if let Some(expected) = method_arity(&name.text) {
                arity(cx, &name, expected, args.len(), list, true);
            }
            Operand::Expr(cx.expr(ExprKind::Method { target, name, args }, span))
        }
        // The attribute was too deep.
        Operand::Attribute(_) => Operand::error(span),
        Operand::Expr(callee) => {
            if callee.kind != ExprKind::Error {
                cx.error(SyntaxErrorKind::CallOfNonName, callee.span);
            }
            Operand::error(span)
        }
    }
}

fn arity(cx: &mut Cx<'_>, name: &Ident, expected: usize, found: usize, list: Span, method: bool) {
    if expected != found {
        let name = name.text.clone();
        cx.error(
            SyntaxErrorKind::Arity {
                name,
                expected,
                found,
                method,
            },
            list,
        );
    }
}

fn method_arity(name: &str) -> Option<usize> {
    match name {
        "isEmpty" | "isIpv4" | "isIpv6" | "isLoopback" | "isMulticast" | "toDate" | "toTime"
        | "toMilliseconds" | "toSeconds" | "toMinutes" | "toHours" | "toDays" => Some(0),
        "contains" | "containsAll" | "containsAny" | "hasTag" | "getTag" | "isInRange"
        | "offset" | "durationSince" | "lessThan" | "lessThanOrEqual" | "greaterThan"
        | "greaterThanOrEqual" => Some(1),
        _ => None,
    }
}
