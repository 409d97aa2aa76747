//! Windows, names and values.

use super::super::error::{MacroProblem, Place};
use super::depth::term_depth;
use super::{Argument, Expander, Frame, In, Value, ident_at, name_at, place};
use dogwood_grammar::Span;
use dogwood_grammar::ast::{
    Aggregate, AggregateOp, Binder, MAX_DEPTH, MacroBody, MacroCall, Sigil, Term, TermKind, VarRef,
    Window, WindowKind,
};
use smol_str::format_smolstr;

impl Expander<'_> {
    pub(super) fn window(&mut self, window: &Window, frame: In) -> Window {
        let span = place(window.span, frame);
        let WindowKind::Param(param) = &window.kind else {
            return Window {
                kind: window.kind.clone(),
                span,
            };
        };
        let wrong = Window {
            kind: WindowKind::Error,
            span,
        };
        let Some(frame) = frame else {
            let (name, place) = (param.text.clone(), Place::Window);
            self.report(param.span, MacroProblem::StrayParam { name, place });
            return wrong;
        };
        match frame.argument(&param.text) {
            Some(Argument {
                value: Value::Window(window),
                ..
            }) => window.clone(),
            Some(Argument {
                value: Value::Wrong,
                ..
            })
            | None => wrong,
            Some(argument) => {
                let (name, param) = (frame.name.clone(), param.text.clone());
                self.report(argument.span, MacroProblem::NotWindow { name, param });
                wrong
            }
        }
    }

    pub(super) fn binder(&mut self, binder: &Binder, frame: In) -> Option<Binder> {
        let var = self.name(&binder.var, frame)?;
        Some(Binder {
            var,
            ty: name_at(&binder.ty, frame),
            span: place(binder.span, frame),
        })
    }

    /// A variable where only the name of one can stand.
    pub(super) fn name(&mut self, var: &VarRef, frame: In) -> Option<VarRef> {
        match (var.sigil, frame) {
            (Sigil::Plain, _) => Some(VarRef {
                span: place(var.span, frame),
                ..var.clone()
            }),
            (Sigil::Fresh, Some(frame)) => Some(fresh(var, frame)),
            (Sigil::Fresh, None) => {
                self.report(
                    var.span,
                    MacroProblem::StrayFresh {
                        name: var.name.clone(),
                    },
                );
                None
            }
            (Sigil::Param, None) => {
                let (name, place) = (var.name.clone(), Place::Binder);
                self.report(var.span, MacroProblem::StrayParam { name, place });
                None
            }
            (Sigil::Param, Some(frame)) => match frame.argument(&var.name) {
                Some(Argument {
                    value:
                        Value::Term(Term {
                            kind: TermKind::Var(given),
                            ..
                        }),
                    ..
                }) => Some(given.clone()),
                Some(Argument {
                    value: Value::Wrong,
                    ..
                })
                | None => None,
                Some(argument) => {
                    let (name, param) = (frame.name.clone(), var.name.clone());
                    self.report(argument.span, MacroProblem::NotVariable { name, param });
                    None
                }
            },
        }
    }

    pub(super) fn term(&mut self, term: &Term, frame: In) -> Term {
        let span = place(term.span, frame);
        if !self.count(frame) {
            return Term {
                kind: TermKind::Error,
                span,
                depth: 1,
            };
        }
        let kind = match &term.kind {
            TermKind::Call(call) => return self.value_call(call, span, frame),
            TermKind::Var(var) if var.sigil == Sigil::Param => return self.term_param(var, frame),
            TermKind::Var(var) => self.name(var, frame).map_or(TermKind::Error, TermKind::Var),
            TermKind::Array(items) => TermKind::Array(self.terms(items, frame)),
            TermKind::Product(items) => TermKind::Product(self.terms(items, frame)),
            TermKind::Sum { first, rest } => TermKind::Sum {
                first: Box::new(self.term(first, frame)),
                rest: rest
                    .iter()
                    .map(|(op, item)| (*op, self.term(item, frame)))
                    .collect(),
            },
            TermKind::Aggregate(aggregate) => match self.aggregate(aggregate, frame) {
                Some(aggregate) => TermKind::Aggregate(Box::new(aggregate)),
                None => TermKind::Error,
            },
            TermKind::Entity(entity) => {
                let mut entity = entity.clone();
                entity.ty = name_at(&entity.ty, frame);
                entity.id.span = place(entity.id.span, frame);
                entity.span = span;
                TermKind::Entity(entity)
            }
            TermKind::Context(path) => {
                TermKind::Context(path.iter().map(|word| ident_at(word, frame)).collect())
            }
            TermKind::Scope { root, path } => TermKind::Scope {
                root: *root,
                path: path.iter().map(|word| ident_at(word, frame)).collect(),
            },
            other => other.clone(),
        };
        self.term_node(kind, span)
    }

    pub(super) fn term_node(&mut self, kind: TermKind, span: Span) -> Term {
        let depth = term_depth(&kind);
        if depth > MAX_DEPTH {
            self.too_deep(span);
            return Term {
                kind: TermKind::Error,
                span,
                depth: 1,
            };
        }
        Term { kind, span, depth }
    }

    pub(super) fn terms(&mut self, items: &[Term], frame: In) -> Vec<Term> {
        items.iter().map(|item| self.term(item, frame)).collect()
    }

    pub(super) fn term_param(&mut self, var: &VarRef, frame: In) -> Term {
        let wrong = Term {
            kind: TermKind::Error,
            span: place(var.span, frame),
            depth: 1,
        };
        let Some(frame) = frame else {
            let (name, place) = (var.name.clone(), Place::Term);
            self.report(var.span, MacroProblem::StrayParam { name, place });
            return wrong;
        };
        match frame.argument(&var.name) {
            Some(Argument {
                value: Value::Term(term),
                size,
                ..
            }) => {
                if self.gain(*size, frame.span) {
                    term.clone()
                } else {
                    wrong
                }
            }
            Some(Argument {
                value: Value::Wrong,
                ..
            })
            | None => wrong,
            Some(argument) => {
                let (name, param) = (frame.name.clone(), var.name.clone());
                self.report(argument.span, MacroProblem::NotTerm { name, param });
                wrong
            }
        }
    }

    pub(super) fn aggregate(&mut self, aggregate: &Aggregate, frame: In) -> Option<Aggregate> {
        let op = match &aggregate.op {
            AggregateOp::Count => AggregateOp::Count,
            AggregateOp::Sum(summand) => AggregateOp::Sum(self.name(summand, frame)?),
        };
        let binders: Option<Vec<Binder>> = aggregate
            .binders
            .iter()
            .map(|binder| self.binder(binder, frame))
            .collect();
        let body = self.cond(&aggregate.body, frame);
        Some(Aggregate {
            op,
            binders: binders?,
            body,
            span: place(aggregate.span, frame),
        })
    }

    pub(super) fn value_call(&mut self, call: &MacroCall, span: Span, frame: In) -> Term {
        let wrong = Term {
            kind: TermKind::Error,
            span,
            depth: 1,
        };
        let Some(definition) = self.temporal_macro(call) else {
            return wrong;
        };
        match &definition.def.body {
            MacroBody::Value(_) if self.keeps_names && !definition.builtin => {
                let kind = TermKind::Call(self.kept_call(call, frame));
                self.term_node(kind, span)
            }
            MacroBody::Value(body) => {
                let inner = self.call_frame(call, definition, frame);
                self.term(body, Some(&inner))
            }
            MacroBody::Cond(_) => {
                let problem = MacroProblem::ConditionAsValue {
                    name: call.name.text.clone(),
                };
                self.report(call.name.span, problem);
                wrong
            }
            MacroBody::Expr(_) | MacroBody::Broken => wrong,
        }
    }
}

fn fresh(var: &VarRef, frame: &Frame) -> VarRef {
    let name = format_smolstr!("{}${}", var.name, frame.number);
    VarRef {
        sigil: Sigil::Plain,
        name,
        span: frame.span,
    }
}
