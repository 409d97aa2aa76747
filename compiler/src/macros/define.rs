//! Checks of a definition by itself: its name, its parameters, and what its body may not hold.

use super::RESERVED_NAMES;
use super::error::{MacroError, MacroProblem};
use crate::nearest::nearest;
use dogwood_grammar::Span;
use dogwood_grammar::ast::{
    Aggregate, AggregateOp, Cond, CondKind, Expr, ExprKind, FieldPattern, Ident, MacroBody,
    MacroDef, Sigil, Term, TermKind, VarRef, Window, WindowKind,
};
use smol_str::SmolStr;
use std::collections::BTreeMap;

pub(super) fn check(def: &MacroDef, errors: &mut Vec<MacroError>) {
    if RESERVED_NAMES.contains(&def.name.text.as_str()) {
        let problem = MacroProblem::ReservedName {
            name: def.name.text.clone(),
        };
        errors.push(MacroError {
            span: def.name.span,
            problem,
        });
    }
    let mut params: BTreeMap<SmolStr, Span> = BTreeMap::new();
    for param in &def.params {
        if let Some(first) = params.insert(param.text.clone(), param.span) {
            let problem = MacroProblem::DuplicateParam {
                name: param.text.clone(),
                first,
            };
            errors.push(MacroError {
                span: param.span,
                problem,
            });
        }
    }
    let mut body = Body {
        params: params.into_keys().collect(),
        errors,
    };
    match &def.body {
        MacroBody::Expr(expr) => body.expr(expr),
        MacroBody::Cond(cond) => body.cond(cond),
        MacroBody::Value(term) => body.term(term),
        MacroBody::Broken => {}
    }
}

/// Functions of the expression language that are not macros.
pub(crate) fn is_constructor(name: &str) -> bool {
    matches!(name, "decimal" | "datetime" | "duration" | "ip")
}

struct Body<'a> {
    params: Vec<SmolStr>,
    errors: &'a mut Vec<MacroError>,
}

impl Body<'_> {
    fn report(&mut self, span: Span, problem: MacroProblem) {
        self.errors.push(MacroError { span, problem });
    }

    fn param(&mut self, name: &SmolStr, span: Span) {
        if !self.params.contains(name) {
            let nearest = nearest(name, &self.params);
            self.report(
                span,
                MacroProblem::UnknownParam {
                    name: name.clone(),
                    nearest,
                },
            );
        }
    }

    fn ident(&mut self, param: &Ident) {
        self.param(&param.text, param.span);
    }

    fn var(&mut self, var: &VarRef) {
        if var.sigil == Sigil::Param {
            self.param(&var.name, var.span);
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Slot(param) => self.ident(param),
            ExprKind::Temporal(leaf) => self.report(leaf.keyword, MacroProblem::TemporalInCedar),
            ExprKind::Call { name, args } => {
                let text = name.text();
                if name.path.len() > 1 {
                    self.report(name.span, MacroProblem::ProviderInCedar);
                } else if !is_constructor(&text) {
                    self.report(name.span, MacroProblem::CallInBody { name: text });
                }
                args.iter().for_each(|arg| self.expr(arg));
            }
            _ => expr.kind.each_part(&mut |part| self.expr(part)),
        }
    }

    fn cond(&mut self, cond: &Cond) {
        match &cond.kind {
            CondKind::And(parts) => parts.iter().for_each(|part| self.cond(part)),
            CondKind::Since {
                left,
                window,
                right,
            } => {
                self.cond(left);
                self.window(window);
                self.cond(right);
            }
            CondKind::Not(body) => self.cond(body),
            CondKind::Formerly { window, body } | CondKind::Previous { window, body } => {
                self.window(window);
                self.cond(body);
            }
            CondKind::Exists { binder, body } => {
                self.var(&binder.var);
                self.cond(body);
            }
            CondKind::Tp(var) => self.var(var),
            CondKind::Compare { left, right, .. } => {
                self.term(left);
                self.term(right);
            }
            CondKind::Match(matcher) => matcher.groups.iter().for_each(|group| self.fields(group)),
            CondKind::Call(call) => self.call(&call.name),
            CondKind::Param { name, injected } => {
                self.ident(name);
                self.fields(injected);
            }
            CondKind::Error => {}
        }
    }

    fn call(&mut self, name: &Ident) {
        self.report(
            name.span,
            MacroProblem::CallInBody {
                name: name.text.clone(),
            },
        );
    }

    fn fields(&mut self, fields: &[FieldPattern]) {
        fields.iter().for_each(|field| self.term(&field.term));
    }

    fn window(&mut self, window: &Window) {
        if let WindowKind::Param(param) = &window.kind {
            self.ident(param);
        }
    }

    fn term(&mut self, term: &Term) {
        match &term.kind {
            TermKind::Array(items) | TermKind::Product(items) => {
                items.iter().for_each(|item| self.term(item));
            }
            TermKind::Sum { first, rest } => {
                self.term(first);
                rest.iter().for_each(|(_, item)| self.term(item));
            }
            TermKind::Var(var) => self.var(var),
            TermKind::Aggregate(aggregate) => self.aggregate(aggregate),
            TermKind::Call(call) => self.call(&call.name),
            TermKind::Int(_)
            | TermKind::Str(_)
            | TermKind::Bool(_)
            | TermKind::Decimal(_)
            | TermKind::Entity(_)
            | TermKind::Context(_)
            | TermKind::Scope { .. }
            | TermKind::Wildcard
            | TermKind::Error => {}
        }
    }

    fn aggregate(&mut self, aggregate: &Aggregate) {
        if let AggregateOp::Sum(summand) = &aggregate.op {
            self.var(summand);
        }
        aggregate
            .binders
            .iter()
            .for_each(|binder| self.var(&binder.var));
        self.cond(&aggregate.body);
    }
}
