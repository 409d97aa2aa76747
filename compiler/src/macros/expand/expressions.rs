//! Calls in expressions.

use super::super::define::is_constructor;
use super::super::error::{MacroProblem, Place};
use super::depth::expr_depth;
use super::{Argument, Expander, In, Value, ident_at, name_at, place};
use crate::nearest::nearest;
use dogwood_grammar::Span;
use dogwood_grammar::ast::{
    Expr, ExprKind, Ident, MAX_DEPTH, MacroBody, MacroKind, Name, RecordField,
};
use smol_str::SmolStr;

impl Expander<'_> {
    pub(super) fn expr(&mut self, expr: &Expr, frame: In) -> Expr {
        let span = place(expr.span, frame);
        if !self.count(frame) {
            return Expr {
                kind: ExprKind::Error,
                span,
                depth: 1,
            };
        }
        let kind = match &expr.kind {
            ExprKind::Slot(param) => return self.expr_param(param, frame),
            ExprKind::Call { name, args } => return self.expr_call(expr, name, args, frame),
            ExprKind::Temporal(leaf) => ExprKind::Temporal(Box::new(self.temporal(leaf))),
            _ => self.expr_parts(expr, frame),
        };
        self.expr_node(kind, span)
    }

    pub(super) fn expr_node(&mut self, kind: ExprKind, span: Span) -> Expr {
        let depth = expr_depth(&kind);
        if depth > MAX_DEPTH {
            self.too_deep(span);
            return Expr {
                kind: ExprKind::Error,
                span,
                depth: 1,
            };
        }
        Expr { kind, span, depth }
    }

    pub(super) fn exprs(&mut self, items: &[Expr], frame: In) -> Vec<Expr> {
        items.iter().map(|item| self.expr(item, frame)).collect()
    }

    pub(super) fn boxed(&mut self, expr: &Expr, frame: In) -> Box<Expr> {
        Box::new(self.expr(expr, frame))
    }

    pub(super) fn expr_parts(&mut self, expr: &Expr, frame: In) -> ExprKind {
        match &expr.kind {
            ExprKind::Set(items) => ExprKind::Set(self.exprs(items, frame)),
            ExprKind::Or(items) => ExprKind::Or(self.exprs(items, frame)),
            ExprKind::And(items) => ExprKind::And(self.exprs(items, frame)),
            ExprKind::Product(items) => ExprKind::Product(self.exprs(items, frame)),
            ExprKind::Record(fields) => {
                let fields = fields.iter().map(|field| RecordField {
                    key: field.key.clone(),
                    value: self.expr(&field.value, frame),
                });
                ExprKind::Record(fields.collect())
            }
            ExprKind::If { test, yes, no } => ExprKind::If {
                test: self.boxed(test, frame),
                yes: self.boxed(yes, frame),
                no: self.boxed(no, frame),
            },
            ExprKind::Compare { op, left, right } => ExprKind::Compare {
                op: *op,
                left: self.boxed(left, frame),
                right: self.boxed(right, frame),
            },
            ExprKind::In { left, right } => ExprKind::In {
                left: self.boxed(left, frame),
                right: self.boxed(right, frame),
            },
            ExprKind::Has { target, path } => {
                let mut path = path.clone();
                path.iter_mut()
                    .for_each(|attr| attr.span = place(attr.span, frame));
                ExprKind::Has {
                    target: self.boxed(target, frame),
                    path,
                }
            }
            ExprKind::Like { target, pattern } => ExprKind::Like {
                target: self.boxed(target, frame),
                pattern: pattern.clone(),
            },
            ExprKind::Is { target, ty, within } => ExprKind::Is {
                target: self.boxed(target, frame),
                ty: name_at(ty, frame),
                within: within.as_ref().map(|within| self.boxed(within, frame)),
            },
            ExprKind::Sum { first, rest } => ExprKind::Sum {
                first: self.boxed(first, frame),
                rest: rest
                    .iter()
                    .map(|(op, item)| (*op, self.expr(item, frame)))
                    .collect(),
            },
            ExprKind::Not(inner) => ExprKind::Not(self.boxed(inner, frame)),
            ExprKind::Neg(inner) => ExprKind::Neg(self.boxed(inner, frame)),
            ExprKind::Attr { target, attr } => {
                let mut attr = attr.clone();
                attr.span = place(attr.span, frame);
                ExprKind::Attr {
                    target: self.boxed(target, frame),
                    attr,
                }
            }
            ExprKind::Method { target, name, args } => ExprKind::Method {
                target: self.boxed(target, frame),
                name: ident_at(name, frame),
                args: self.exprs(args, frame),
            },
            ExprKind::Entity(entity) => {
                let mut entity = entity.clone();
                entity.ty = name_at(&entity.ty, frame);
                entity.id.span = place(entity.id.span, frame);
                entity.span = place(entity.span, frame);
                ExprKind::Entity(entity)
            }
            other => other.clone(),
        }
    }

    pub(super) fn expr_param(&mut self, param: &Ident, frame: In) -> Expr {
        let Some(frame) = frame else {
            let (name, place) = (param.text.clone(), Place::Expression);
            self.report(param.span, MacroProblem::StrayParam { name, place });
            return Expr {
                kind: ExprKind::Error,
                span: param.span,
                depth: 1,
            };
        };
        if let Some(Argument {
            value: Value::Expr(expr),
            size,
            ..
        }) = frame.argument(&param.text)
            && self.gain(*size, frame.span)
        {
            return expr.clone();
        }
        Expr {
            kind: ExprKind::Error,
            span: frame.span,
            depth: 1,
        }
    }

    pub(super) fn expr_call(&mut self, expr: &Expr, name: &Name, args: &[Expr], frame: In) -> Expr {
        let span = place(expr.span, frame);
        let mut expanded = Vec::new();
        for arg in args {
            let before = self.built;
            let value = self.expr(arg, frame);
            let size = self.built - before;
            expanded.push((value, size));
        }
        let plain = match name.path.as_slice() {
            [word] if !is_constructor(&word.text) => word,
            _ => {
                let args = expanded.into_iter().map(|(value, _)| value).collect();
                return self.expr_node(
                    ExprKind::Call {
                        name: name_at(name, frame),
                        args,
                    },
                    span,
                );
            }
        };
        let wrong = Expr {
            kind: ExprKind::Error,
            span,
            depth: 1,
        };
        match self
            .library
            .get(&plain.text)
            .map(|definition| definition.def.kind)
        {
            None => {
                let nearest = self.nearest_macro(&plain.text, MacroKind::Cedar);
                let problem = MacroProblem::UnknownFunction {
                    name: plain.text.clone(),
                    nearest,
                };
                self.report(plain.span, problem);
                return wrong;
            }
            Some(MacroKind::Temporal) => {
                let problem = MacroProblem::TemporalInExpression {
                    name: plain.text.clone(),
                };
                self.report(plain.span, problem);
                return wrong;
            }
            Some(MacroKind::Cedar) => {}
        }
        let Some(definition) = self.definition(plain, args.len()) else {
            return wrong;
        };
        let MacroBody::Expr(body) = &definition.def.body else {
            return wrong;
        };
        if self.keeps_names && !definition.builtin {
            let args = expanded.into_iter().map(|(value, _)| value).collect();
            let name = name_at(name, frame);
            return self.expr_node(ExprKind::Call { name, args }, span);
        }
        let args = expanded.into_iter().map(|(value, size)| Argument {
            span: value.span,
            value: Value::Expr(value),
            size,
        });
        let call = self.frame(plain, span, &definition.def.params, args.collect());
        self.expr(body, Some(&call))
    }

    pub(super) fn nearest_macro(&self, name: &str, kind: MacroKind) -> Option<SmolStr> {
        let of_kind = self
            .library
            .macros
            .values()
            .filter(|found| found.def.kind == kind);
        let mut names: Vec<SmolStr> = of_kind.map(|found| found.def.name.text.clone()).collect();
        if kind == MacroKind::Cedar {
            names.extend(["decimal", "datetime", "duration", "ip"].map(SmolStr::new));
        }
        nearest(name, &names)
    }
}
