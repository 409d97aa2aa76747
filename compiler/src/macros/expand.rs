//! Writing calls out: the rule an author wrote, with every macro call replaced by what it stands for.
//!
//! Arguments are expanded first, in the frame of the caller, and then put where the body uses the
//! parameter; how it is used decides what shape the argument must have. A `$name` of a body becomes
//! `name$n` with a number of its own for each call, which no author can write.

use super::define::is_constructor;
use super::error::{MacroError, MacroProblem, Place};
use super::{Definition, Library};
use crate::nearest::nearest;
use dogwood_grammar::Span;
use dogwood_grammar::ast::{
    Aggregate, AggregateOp, Binder, CallArg, Clause, ClauseBody, Cond, CondKind, Expr, ExprKind,
    FieldPattern, Ident, MAX_DEPTH, MacroBody, MacroCall, MacroKind, Matcher, Name, RecordField,
    Rule, Sigil, Temporal, Term, TermKind, VarRef, Window, WindowKind,
};
use smol_str::{SmolStr, format_smolstr};

/// Most parts one rule may gain by writing out its calls.
pub const MAX_EXPANSION: usize = 50_000;

/// The rule with all calls written out, and what was wrong with them. Where something was wrong the
/// tree has an `Error` node.
pub fn expand_rule(rule: &Rule, library: &Library) -> (Rule, Vec<MacroError>) {
    let mut expander = Expander {
        library,
        errors: Vec::new(),
        built: 0,
        gained: 0,
        calls: 0,
    };
    let clauses = rule
        .clauses
        .iter()
        .map(|clause| expander.clause(clause))
        .collect();
    (
        Rule {
            clauses,
            ..rule.clone()
        },
        expander.errors,
    )
}

struct Expander<'a> {
    library: &'a Library,
    errors: Vec<MacroError>,
    /// Nodes built so far.
    built: usize,
    /// Those of them that come from macro bodies or stand for a parameter.
    gained: usize,
    /// Calls expanded so far; numbers the fresh names.
    calls: u32,
}

/// One call being written out.
struct Frame<'a> {
    name: SmolStr,
    span: Span,
    number: u32,
    params: &'a [Ident],
    args: Vec<Argument>,
}

/// An argument with its own calls written out.
struct Argument {
    value: Value,
    span: Span,
    size: usize,
}

enum Value {
    Window(Window),
    Cond(Cond),
    Term(Term),
    Expr(Expr),
    /// Something was wrong with it and has been reported.
    Wrong,
}

type In<'f> = Option<&'f Frame<'f>>;

fn place(span: Span, frame: In) -> Span {
    frame.map_or(span, |frame| frame.span)
}

impl Frame<'_> {
    fn argument(&self, param: &str) -> Option<&Argument> {
        let at = self
            .params
            .iter()
            .position(|declared| declared.text == param)?;
        self.args.get(at)
    }
}

impl<'a> Expander<'a> {
    fn report(&mut self, span: Span, problem: MacroProblem) {
        let error = MacroError { span, problem };
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    /// Counts `size` nodes; false once the rule has become too large.
    fn gain(&mut self, size: usize, at: Span) -> bool {
        self.built = self.built.saturating_add(size);
        self.gained = self.gained.saturating_add(size);
        if self.gained <= MAX_EXPANSION {
            return true;
        }
        let too_large = |e: &MacroError| matches!(e.problem, MacroProblem::TooLarge { .. });
        if !self.errors.iter().any(too_large) {
            self.report(
                at,
                MacroProblem::TooLarge {
                    limit: MAX_EXPANSION,
                },
            );
        }
        false
    }

    /// Counts one node; false once the rule has become too large.
    fn count(&mut self, frame: In) -> bool {
        match frame {
            Some(frame) => self.gain(1, frame.span),
            None => {
                self.built += 1;
                self.gained <= MAX_EXPANSION
            }
        }
    }

    fn too_deep(&mut self, span: Span) {
        let too_deep = |e: &MacroError| matches!(e.problem, MacroProblem::TooDeep { .. });
        if !self.errors.iter().any(too_deep) {
            self.report(span, MacroProblem::TooDeep { limit: MAX_DEPTH });
        }
    }

    fn clause(&mut self, clause: &Clause) -> Clause {
        let body = match &clause.body {
            ClauseBody::Expr(expr) => ClauseBody::Expr(self.expr(expr, None)),
            ClauseBody::Temporal(leaf) => ClauseBody::Temporal(self.temporal(leaf)),
        };
        Clause {
            body,
            ..clause.clone()
        }
    }

    fn temporal(&mut self, leaf: &Temporal) -> Temporal {
        Temporal {
            keyword: leaf.keyword,
            body: self.cond(&leaf.body, None),
            span: leaf.span,
        }
    }

    /// The definition a call names, once the number of arguments fits.
    fn definition(&mut self, name: &Ident, args: usize) -> Option<&'a Definition> {
        let library: &'a Library = self.library;
        let found = library
            .get(&name.text)
            .filter(|definition| definition.sound)?;
        if found.def.params.len() != args {
            let params = found
                .def
                .params
                .iter()
                .map(|param| param.text.clone())
                .collect();
            let problem = MacroProblem::Arity {
                name: name.text.clone(),
                params,
                found: args,
            };
            self.report(name.span, problem);
            return None;
        }
        Some(found)
    }

    fn frame<'f>(
        &mut self,
        name: &Ident,
        span: Span,
        params: &'f [Ident],
        args: Vec<Argument>,
    ) -> Frame<'f> {
        self.calls = self.calls.saturating_add(1);
        Frame {
            name: name.text.clone(),
            span,
            number: self.calls,
            params,
            args,
        }
    }
}

// ---------------------------------------------------------------------------------- expressions

impl Expander<'_> {
    fn expr(&mut self, expr: &Expr, frame: In) -> Expr {
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

    fn expr_node(&mut self, kind: ExprKind, span: Span) -> Expr {
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

    fn exprs(&mut self, items: &[Expr], frame: In) -> Vec<Expr> {
        items.iter().map(|item| self.expr(item, frame)).collect()
    }

    fn boxed(&mut self, expr: &Expr, frame: In) -> Box<Expr> {
        Box::new(self.expr(expr, frame))
    }

    fn expr_parts(&mut self, expr: &Expr, frame: In) -> ExprKind {
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

    fn expr_param(&mut self, param: &Ident, frame: In) -> Expr {
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

    fn expr_call(&mut self, expr: &Expr, name: &Name, args: &[Expr], frame: In) -> Expr {
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
        let args = expanded.into_iter().map(|(value, size)| Argument {
            span: value.span,
            value: Value::Expr(value),
            size,
        });
        let call = self.frame(plain, span, &definition.def.params, args.collect());
        self.expr(body, Some(&call))
    }

    fn nearest_macro(&self, name: &str, kind: MacroKind) -> Option<SmolStr> {
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

// ------------------------------------------------------------------------- temporal conditions

impl<'a> Expander<'a> {
    fn cond(&mut self, cond: &Cond, frame: In) -> Cond {
        let span = place(cond.span, frame);
        if !self.count(frame) {
            return Cond {
                kind: CondKind::Error,
                span,
                depth: 1,
            };
        }
        match &cond.kind {
            CondKind::Call(call) => self.cond_call(call, frame),
            CondKind::Param { name, injected } => self.cond_param(name, injected, frame),
            _ => {
                let kind = self.cond_parts(cond, frame);
                self.cond_node(kind, span)
            }
        }
    }

    fn cond_node(&mut self, kind: CondKind, span: Span) -> Cond {
        let depth = cond_depth(&kind);
        if depth > MAX_DEPTH {
            self.too_deep(span);
            return Cond {
                kind: CondKind::Error,
                span,
                depth: 1,
            };
        }
        Cond { kind, span, depth }
    }

    fn boxed_cond(&mut self, cond: &Cond, frame: In) -> Box<Cond> {
        Box::new(self.cond(cond, frame))
    }

    fn cond_parts(&mut self, cond: &Cond, frame: In) -> CondKind {
        match &cond.kind {
            CondKind::And(parts) => {
                CondKind::And(parts.iter().map(|part| self.cond(part, frame)).collect())
            }
            CondKind::Since {
                left,
                window,
                right,
            } => CondKind::Since {
                left: self.boxed_cond(left, frame),
                window: self.window(window, frame),
                right: self.boxed_cond(right, frame),
            },
            CondKind::Not(body) => CondKind::Not(self.boxed_cond(body, frame)),
            CondKind::Formerly { window, body } => CondKind::Formerly {
                window: self.window(window, frame),
                body: self.boxed_cond(body, frame),
            },
            CondKind::Previous { window, body } => CondKind::Previous {
                window: self.window(window, frame),
                body: self.boxed_cond(body, frame),
            },
            CondKind::Exists { binder, body } => {
                let Some(binder) = self.binder(binder, frame) else {
                    return CondKind::Error;
                };
                CondKind::Exists {
                    binder,
                    body: self.boxed_cond(body, frame),
                }
            }
            CondKind::Tp(var) => self.name(var, frame).map_or(CondKind::Error, CondKind::Tp),
            CondKind::Compare { op, left, right } => CondKind::Compare {
                op: *op,
                left: self.term(left, frame),
                right: self.term(right, frame),
            },
            CondKind::Match(matcher) => CondKind::Match(self.matcher(matcher, frame)),
            CondKind::Call(_) | CondKind::Param { .. } | CondKind::Error => CondKind::Error,
        }
    }

    fn matcher(&mut self, matcher: &Matcher, frame: In) -> Matcher {
        let mut event = matcher.event.clone();
        event.ty = name_at(&event.ty, frame);
        event.action.span = place(event.action.span, frame);
        event.kind = ident_at(&event.kind, frame);
        event.span = place(event.span, frame);
        let groups = matcher
            .groups
            .iter()
            .map(|group| self.fields(group, frame))
            .collect();
        Matcher {
            event,
            groups,
            span: place(matcher.span, frame),
        }
    }

    fn fields(&mut self, fields: &[FieldPattern], frame: In) -> Vec<FieldPattern> {
        let copy = |field: &FieldPattern| FieldPattern {
            path: field
                .path
                .iter()
                .map(|word| ident_at(word, frame))
                .collect(),
            term: self.term(&field.term, frame),
            span: place(field.span, frame),
        };
        fields.iter().map(copy).collect()
    }

    /// A macro parameter used as a condition, perhaps with fields added to it.
    fn cond_param(&mut self, param: &Ident, injected: &[FieldPattern], frame: In) -> Cond {
        let wrong = Cond {
            kind: CondKind::Error,
            span: place(param.span, frame),
            depth: 1,
        };
        let Some(frame) = frame else {
            let (name, place) = (param.text.clone(), Place::Condition);
            self.report(param.span, MacroProblem::StrayParam { name, place });
            return wrong;
        };
        let Some(argument) = frame.argument(&param.text) else {
            return wrong;
        };
        let cond = match &argument.value {
            Value::Cond(cond) => cond,
            Value::Wrong => return wrong,
            _ => {
                let (name, param) = (frame.name.clone(), param.text.clone());
                self.report(argument.span, MacroProblem::NotCondition { name, param });
                return wrong;
            }
        };
        if !self.gain(argument.size, frame.span) {
            return wrong;
        }
        if injected.is_empty() {
            return cond.clone();
        }
        match &cond.kind {
            CondKind::Match(matcher) => {
                let mut matcher = matcher.clone();
                matcher.groups.push(self.fields(injected, Some(frame)));
                self.cond_node(CondKind::Match(matcher), cond.span)
            }
            CondKind::Error => wrong,
            _ => {
                let (name, param) = (frame.name.clone(), param.text.clone());
                self.report(argument.span, MacroProblem::NotMatcher { name, param });
                wrong
            }
        }
    }

    fn cond_call(&mut self, call: &MacroCall, frame: In) -> Cond {
        let wrong = Cond {
            kind: CondKind::Error,
            span: place(call.span, frame),
            depth: 1,
        };
        let Some(definition) = self.temporal_macro(call) else {
            return wrong;
        };
        match &definition.def.body {
            MacroBody::Cond(body) => {
                let inner = self.call_frame(call, definition, frame);
                self.cond(body, Some(&inner))
            }
            MacroBody::Value(_) => {
                let problem = MacroProblem::ValueAsCondition {
                    name: call.name.text.clone(),
                };
                self.report(call.name.span, problem);
                wrong
            }
            MacroBody::Expr(_) | MacroBody::Broken => wrong,
        }
    }

    /// The temporal macro a call names; nothing after an error.
    fn temporal_macro(&mut self, call: &MacroCall) -> Option<&'a Definition> {
        let name = &call.name;
        match self
            .library
            .get(&name.text)
            .map(|definition| definition.def.kind)
        {
            None => {
                let nearest = self.nearest_macro(&name.text, MacroKind::Temporal);
                let problem = MacroProblem::UnknownMacro {
                    name: name.text.clone(),
                    nearest,
                };
                self.report(name.span, problem);
                None
            }
            Some(MacroKind::Cedar) => {
                let problem = MacroProblem::CedarInTemporal {
                    name: name.text.clone(),
                };
                self.report(name.span, problem);
                None
            }
            Some(MacroKind::Temporal) => self.definition(name, call.args.len()),
        }
    }

    fn call_frame<'f>(&mut self, call: &MacroCall, def: &'f Definition, frame: In) -> Frame<'f> {
        let args: Vec<Argument> = call
            .args
            .iter()
            .map(|arg| self.argument(arg, frame))
            .collect();
        self.frame(&call.name, place(call.span, frame), &def.def.params, args)
    }

    fn argument(&mut self, arg: &CallArg, frame: In) -> Argument {
        let before = self.built;
        let (value, span) = match arg {
            CallArg::Window(window) => (Value::Window(window.clone()), window.span),
            CallArg::Cond(cond) => (Value::Cond(self.cond(cond, frame)), cond.span),
            CallArg::Term(Term {
                kind: TermKind::Call(call),
                span,
                ..
            }) => (self.call_argument(call, *span, frame), *span),
            CallArg::Term(term) => (Value::Term(self.term(term, frame)), term.span),
        };
        Argument {
            value,
            span,
            size: self.built - before,
        }
    }

    /// A call given as an argument is a condition or a value, by what the macro stands for.
    fn call_argument(&mut self, call: &MacroCall, span: Span, frame: In) -> Value {
        let Some(definition) = self.temporal_macro(call) else {
            return Value::Wrong;
        };
        match definition.def.body {
            MacroBody::Cond(_) => Value::Cond(self.cond_call(call, frame)),
            MacroBody::Value(_) => Value::Term(self.value_call(call, span, frame)),
            MacroBody::Expr(_) | MacroBody::Broken => Value::Wrong,
        }
    }
}

// ---------------------------------------------------------------------- windows, names, terms

impl Expander<'_> {
    fn window(&mut self, window: &Window, frame: In) -> Window {
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

    fn binder(&mut self, binder: &Binder, frame: In) -> Option<Binder> {
        let var = self.name(&binder.var, frame)?;
        Some(Binder {
            var,
            ty: name_at(&binder.ty, frame),
            span: place(binder.span, frame),
        })
    }

    /// A variable where only the name of one can stand.
    fn name(&mut self, var: &VarRef, frame: In) -> Option<VarRef> {
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

    fn term(&mut self, term: &Term, frame: In) -> Term {
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

    fn term_node(&mut self, kind: TermKind, span: Span) -> Term {
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

    fn terms(&mut self, items: &[Term], frame: In) -> Vec<Term> {
        items.iter().map(|item| self.term(item, frame)).collect()
    }

    fn term_param(&mut self, var: &VarRef, frame: In) -> Term {
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

    fn aggregate(&mut self, aggregate: &Aggregate, frame: In) -> Option<Aggregate> {
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

    fn value_call(&mut self, call: &MacroCall, span: Span, frame: In) -> Term {
        let wrong = Term {
            kind: TermKind::Error,
            span,
            depth: 1,
        };
        let Some(definition) = self.temporal_macro(call) else {
            return wrong;
        };
        match &definition.def.body {
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

fn ident_at(word: &Ident, frame: In) -> Ident {
    Ident {
        text: word.text.clone(),
        span: place(word.span, frame),
    }
}

fn name_at(name: &Name, frame: In) -> Name {
    let path = name.path.iter().map(|word| ident_at(word, frame)).collect();
    Name {
        path,
        span: place(name.span, frame),
    }
}

// ---------------------------------------------------------------------------------------- depth

fn expr_depth(kind: &ExprKind) -> u16 {
    let mut deepest = 0;
    // The parts of a node are those `each_part` names, plus a temporal body.
    if let ExprKind::Temporal(leaf) = kind {
        deepest = leaf.body.depth;
    }
    super::define::each_part_of(kind, &mut |part| deepest = deepest.max(part.depth));
    deepest.saturating_add(1)
}

fn cond_depth(kind: &CondKind) -> u16 {
    let fields = |groups: &[Vec<FieldPattern>]| {
        groups
            .iter()
            .flatten()
            .map(|field| field.term.depth)
            .max()
            .unwrap_or(0)
    };
    let deepest = match kind {
        CondKind::And(parts) => parts.iter().map(|part| part.depth).max().unwrap_or(0),
        CondKind::Since { left, right, .. } => left.depth.max(right.depth),
        CondKind::Not(body)
        | CondKind::Formerly { body, .. }
        | CondKind::Previous { body, .. }
        | CondKind::Exists { body, .. } => body.depth,
        CondKind::Compare { left, right, .. } => left.depth.max(right.depth),
        CondKind::Match(matcher) => fields(&matcher.groups),
        CondKind::Tp(_) | CondKind::Call(_) | CondKind::Param { .. } | CondKind::Error => 0,
    };
    deepest.saturating_add(1)
}

fn term_depth(kind: &TermKind) -> u16 {
    let deepest = match kind {
        TermKind::Array(items) | TermKind::Product(items) => {
            items.iter().map(|item| item.depth).max().unwrap_or(0)
        }
        TermKind::Sum { first, rest } => rest
            .iter()
            .map(|(_, item)| item.depth)
            .max()
            .unwrap_or(0)
            .max(first.depth),
        TermKind::Aggregate(aggregate) => aggregate.body.depth,
        _ => 0,
    };
    deepest.saturating_add(1)
}
