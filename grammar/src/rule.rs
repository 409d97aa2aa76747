//! Rules, scopes, clauses and macro definitions: what the semantic actions of the grammar build.

use crate::ast::*;
use crate::error::SyntaxErrorKind;
use crate::span::Span;
use crate::temporal::{self, Body, Node};
use crate::tree::Cx;

/// What one parse gives.
#[derive(Debug)]
pub(crate) enum Parsed {
    Item(Box<Item>),
    Expr(Expr),
    Cond(Box<Cond>),
}

/// A scope element as written, before we know that it is one.
pub(crate) struct RawHead {
    var: Ident,
    form: Form,
}

enum Form {
    Any,
    Op {
        op: HeadOp,
        place: Span,
        right: Expr,
    },
    Is {
        place: Span,
        ty: Name,
        within: Option<Expr>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadOp {
    Eq,
    In,
    Assign,
    Colon,
    Other,
}

impl RawHead {
    pub(crate) fn any(var: Ident) -> Box<RawHead> {
        Box::new(RawHead {
            var,
            form: Form::Any,
        })
    }

    pub(crate) fn op(var: Ident, op: HeadOp, place: Span, right: Expr) -> Box<RawHead> {
        Box::new(RawHead {
            var,
            form: Form::Op { op, place, right },
        })
    }

    pub(crate) fn is(var: Ident, place: Span, ty: Name, within: Option<Expr>) -> Box<RawHead> {
        Box::new(RawHead {
            var,
            form: Form::Is { place, ty, within },
        })
    }
}

pub(crate) fn unknown_effect(cx: &mut Cx<'_>, span: Span) -> (Effect, Span) {
    cx.error(SyntaxErrorKind::UnknownEffect, span);
    (Effect::Forbid, span)
}

pub(crate) fn rule(
    annotations: Vec<Annotation>,
    (effect, effect_span): (Effect, Span),
    scope: Scope,
    clauses: impl IntoIterator<Item = Box<Clause>>,
    span: Span,
) -> Rule {
    Rule {
        annotations,
        effect,
        effect_span,
        scope,
        clauses: clauses.into_iter().map(|clause| *clause).collect(),
        span,
    }
}

pub(crate) fn scope(cx: &mut Cx<'_>, raw: Vec<Option<Box<RawHead>>>, span: Span) -> Scope {
    let mut heads: Vec<Head> = Vec::new();
    for raw in raw.into_iter().flatten() {
        let var = match raw.var.text.as_str() {
            "principal" => ScopeVar::Principal,
            "action" => ScopeVar::Action,
            "resource" => ScopeVar::Resource,
            _ => {
                let kind = SyntaxErrorKind::ScopeVariable {
                    name: raw.var.text.clone(),
                };
                cx.error(kind, raw.var.span);
                continue;
            }
        };
        if let Some(first) = heads.iter().find(|head| head.var == var) {
            let first = Span {
                end: first.span.start + raw.var.span.end - raw.var.span.start,
                ..first.span
            };
            let name = raw.var.text.clone();
            cx.error(
                SyntaxErrorKind::Duplicate {
                    what: "scope variable",
                    name,
                    first,
                },
                raw.var.span,
            );
            continue;
        }
        if let Some(head) = head(cx, var, *raw) {
            heads.push(head);
        }
    }
    Scope { heads, span }
}

/// The checked element; nothing where it is wrong, so that the rule is not read as unconstrained by
/// anyone who ignores the errors: a broken rule is never run.
fn head(cx: &mut Cx<'_>, var: ScopeVar, raw: RawHead) -> Option<Head> {
    let start = raw.var.span;
    let (constraint, end) = match raw.form {
        Form::Any => (Constraint::Any, start),
        Form::Is { place, ty, within } => {
            if var == ScopeVar::Action {
                cx.error(SyntaxErrorKind::ActionIs, place);
                return None;
            }
            let end = within.as_ref().map_or(ty.span, |within| within.span);
            let within = match within {
                Some(within) => Some(head_ref(cx, var, within)?),
                None => None,
            };
            (Constraint::Is { ty, within }, end)
        }
        Form::Op { op, place, right } => {
            let end = right.span;
            match op {
                HeadOp::Eq | HeadOp::In => {}
                HeadOp::Assign => cx.error(SyntaxErrorKind::AssignForEq, place),
                HeadOp::Colon => {
                    // The type on its right is no expression; what was said about it is moot.
                    cx.retract(right.span, |kind| {
                        matches!(kind, SyntaxErrorKind::UnknownVariable { .. })
                    });
                    cx.error(SyntaxErrorKind::ScopeColon, place);
                    return None;
                }
                HeadOp::Other => {
                    cx.error(SyntaxErrorKind::ScopeOperator, place);
                    return None;
                }
            }
            let constraint = match right.kind {
                ExprKind::Set(all) if op == HeadOp::In && var == ScopeVar::Action => {
                    let mut entities = Vec::new();
                    for one in all {
                        match head_ref(cx, var, one)? {
                            HeadRef::Entity(entity) => entities.push(entity),
                            HeadRef::Slot(_) => return None,
                        }
                    }
                    Constraint::InAny(entities)
                }
                ExprKind::Set(_) => {
                    cx.error(SyntaxErrorKind::ScopeList, right.span);
                    return None;
                }
                _ => {
                    let target = head_ref(cx, var, right)?;
                    if op == HeadOp::In {
                        Constraint::In(target)
                    } else {
                        Constraint::Eq(target)
                    }
                }
            };
            (constraint, end)
        }
    };
    Some(Head {
        var,
        constraint,
        span: start.to(end),
    })
}

fn head_ref(cx: &mut Cx<'_>, var: ScopeVar, expr: Expr) -> Option<HeadRef> {
    let variable = match var {
        ScopeVar::Principal => "principal",
        ScopeVar::Action => "action",
        ScopeVar::Resource => "resource",
    };
    match expr.kind {
        ExprKind::Entity(entity) => return Some(HeadRef::Entity(entity)),
        ExprKind::Slot(_) if var == ScopeVar::Action => {
            cx.error(SyntaxErrorKind::ActionSlot, expr.span);
        }
        ExprKind::Slot(slot) if slot.text == variable => return Some(HeadRef::Slot(slot)),
        ExprKind::Slot(_) => cx.error(SyntaxErrorKind::ScopeSlot { variable }, expr.span),
        _ => {
            // A bare type name was already called an unknown variable.
            cx.retract(expr.span, |kind| {
                matches!(kind, SyntaxErrorKind::UnknownVariable { .. })
            });
            let silent = expr.kind == ExprKind::Error
                && cx.errors.iter().any(|error| {
                    expr.span.start <= error.span.start && error.span.end <= expr.span.end
                });
            if !silent {
                let kind = SyntaxErrorKind::ScopeNotEntity {
                    action: var == ScopeVar::Action,
                };
                cx.error(kind, expr.span);
            }
        }
    }
    None
}

pub(crate) fn clause(
    kind: ClauseKind,
    keyword: Span,
    guardrails: bool,
    body: ClauseBody,
    span: Span,
) -> Box<Clause> {
    Box::new(Clause {
        kind,
        keyword,
        guardrails,
        body,
        span,
    })
}

/// `{ … }` after a wrong word or none; read as `when`.
pub(crate) fn stray_clause(
    cx: &mut Cx<'_>,
    word: Option<Ident>,
    brace: Span,
    body: Expr,
    span: Span,
) -> Box<Clause> {
    let keyword = match word {
        None => {
            cx.error(SyntaxErrorKind::MissingClauseWord, brace);
            Span::at(brace.start as usize)
        }
        Some(word) => {
            cx.error(
                SyntaxErrorKind::UnknownClauseWord { word: word.text },
                word.span,
            );
            word.span
        }
    };
    clause(
        ClauseKind::When,
        keyword,
        false,
        ClauseBody::Expr(body),
        span,
    )
}

/// `temporal { … }` without a word before it; read as `when temporal { … }`.
pub(crate) fn stray_temporal(
    cx: &mut Cx<'_>,
    keyword: Span,
    body: Node,
    span: Span,
) -> Box<Clause> {
    cx.error(SyntaxErrorKind::MissingClauseWord, keyword);
    let body = temporal::block(cx, keyword, body, span);
    let start = Span::at(keyword.start as usize);
    clause(
        ClauseKind::When,
        start,
        false,
        ClauseBody::Temporal(body),
        span,
    )
}

pub(crate) fn cedar_macro(name: Ident, params: Vec<Ident>, body: Expr, span: Span) -> Item {
    let body = match body.kind {
        ExprKind::Error => MacroBody::Broken,
        _ => MacroBody::Expr(body),
    };
    Item::Macro(MacroDef {
        kind: MacroKind::Cedar,
        name,
        params,
        body,
        span,
    })
}

pub(crate) fn temporal_macro(
    cx: &mut Cx<'_>,
    name: Ident,
    params: Vec<Ident>,
    body: Node,
    span: Span,
) -> Item {
    let body = match body.into_body(cx) {
        Body::Cond(Cond {
            kind: CondKind::Error,
            ..
        })
        | Body::Term(Term {
            kind: TermKind::Error,
            ..
        }) => MacroBody::Broken,
        Body::Cond(cond) => MacroBody::Cond(cond),
        Body::Term(term) => MacroBody::Value(term),
    };
    Item::Macro(MacroDef {
        kind: MacroKind::Temporal,
        name,
        params,
        body,
        span,
    })
}
