//! Calls in temporal conditions, and their arguments.

use super::super::Definition;
use super::super::error::{MacroProblem, Place};
use super::depth::cond_depth;
use super::{Argument, Expander, Frame, In, Value, ident_at, name_at, place};
use dogwood_grammar::Span;
use dogwood_grammar::ast::{
    CallArg, Cond, CondKind, FieldPattern, Ident, MAX_DEPTH, MacroBody, MacroCall, MacroKind,
    Matcher, Term, TermKind,
};

impl<'a> Expander<'a> {
    pub(super) fn cond(&mut self, cond: &Cond, frame: In) -> Cond {
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

    pub(super) fn cond_node(&mut self, kind: CondKind, span: Span) -> Cond {
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

    pub(super) fn boxed_cond(&mut self, cond: &Cond, frame: In) -> Box<Cond> {
        Box::new(self.cond(cond, frame))
    }

    pub(super) fn cond_parts(&mut self, cond: &Cond, frame: In) -> CondKind {
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
                let binder = self.binder(binder, frame);
                let body = self.boxed_cond(body, frame);
                match binder {
                    Some(binder) => CondKind::Exists { binder, body },
                    None => CondKind::Error,
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

    pub(super) fn matcher(&mut self, matcher: &Matcher, frame: In) -> Matcher {
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

    pub(super) fn fields(&mut self, fields: &[FieldPattern], frame: In) -> Vec<FieldPattern> {
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
    pub(super) fn cond_param(
        &mut self,
        param: &Ident,
        injected: &[FieldPattern],
        frame: In,
    ) -> Cond {
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

    pub(super) fn cond_call(&mut self, call: &MacroCall, frame: In) -> Cond {
        let span = place(call.span, frame);
        let wrong = Cond {
            kind: CondKind::Error,
            span,
            depth: 1,
        };
        let Some(definition) = self.temporal_macro(call) else {
            return wrong;
        };
        match &definition.def.body {
            MacroBody::Cond(_) if self.keeps_names && !definition.builtin => {
                let kind = CondKind::Call(self.kept_call(call, frame));
                self.cond_node(kind, span)
            }
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

    /// A call that stays one, its arguments written out.
    pub(super) fn kept_call(&mut self, call: &MacroCall, frame: In) -> MacroCall {
        let mut args = Vec::new();
        for given in &call.args {
            args.push(match self.argument(given, frame).value {
                Value::Window(window) => CallArg::Window(window),
                Value::Cond(cond) => CallArg::Cond(cond),
                Value::Term(term) => CallArg::Term(term),
                Value::Expr(_) | Value::Wrong => given.clone(),
            });
        }
        MacroCall {
            name: ident_at(&call.name, frame),
            args,
            span: place(call.span, frame),
        }
    }

    /// The temporal macro a call names; nothing after an error.
    pub(super) fn temporal_macro(&mut self, call: &MacroCall) -> Option<&'a Definition> {
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

    pub(super) fn call_frame<'f>(
        &mut self,
        call: &MacroCall,
        def: &'f Definition,
        frame: In,
    ) -> Frame<'f> {
        let args: Vec<Argument> = call
            .args
            .iter()
            .map(|arg| self.argument(arg, frame))
            .collect();
        self.frame(&call.name, place(call.span, frame), &def.def.params, args)
    }

    pub(super) fn argument(&mut self, arg: &CallArg, frame: In) -> Argument {
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
    pub(super) fn call_argument(&mut self, call: &MacroCall, span: Span, frame: In) -> Value {
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
