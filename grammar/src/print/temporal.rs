//! Temporal conditions and terms as text.

use super::{BROKEN, Out, compare_op, sum_op};
use crate::ast::*;
use crate::span::Span;

impl Out {
    pub(super) fn cond(&mut self, cond: &Cond) {
        let broken = !self.fits(cond.span, |out| out.cond(cond));
        match &cond.kind {
            CondKind::And(all) => {
                let last = all.len().saturating_sub(1);
                for (index, conjunct) in all.iter().enumerate() {
                    if index > 0 {
                        self.separate(broken, conjunct.span.start, " && ");
                    }
                    match conjunct.kind {
                        CondKind::And(_) => self.cond_parens(conjunct),
                        // Its body would swallow what follows.
                        CondKind::Exists { .. } if index < last => self.cond_parens(conjunct),
                        _ => self.cond(conjunct),
                    }
                }
            }
            CondKind::Since {
                left,
                window,
                right,
            } => {
                match left.kind {
                    CondKind::Not(_) => self.cond(left),
                    _ => self.atom(left),
                }
                self.separate(broken, window.span.start, " since ");
                self.within(window);
                self.atom(right);
            }
            CondKind::Not(body) => {
                self.push("!");
                match body.kind {
                    CondKind::Not(_) => self.cond(body),
                    _ => self.atom(body),
                }
            }
            CondKind::Formerly { window, body } => {
                self.push("formerly ");
                self.within(window);
                self.atom(body);
            }
            CondKind::Previous { window, body } => {
                self.push("previous ");
                self.within(window);
                self.atom(body);
            }
            CondKind::Exists { binder, body } => {
                self.push("exists ");
                self.binder(binder);
                self.push(". ");
                match body.kind {
                    CondKind::And(_) => self.cond_parens(body),
                    _ => self.cond(body),
                }
            }
            CondKind::Tp(var) => {
                self.push("tp(");
                self.var(var);
                self.push(")");
            }
            CondKind::Compare { op, left, right } => {
                self.term(left);
                self.push(compare_op(*op));
                self.term(right);
            }
            CondKind::Match(matcher) => {
                self.name(&matcher.event.ty);
                self.push("::");
                self.string(&matcher.event.action.value);
                self.push("::");
                self.push(&matcher.event.kind.text);
                for group in &matcher.groups {
                    self.fields(group, matcher.span);
                }
            }
            CondKind::Call(call) => self.macro_call(call),
            CondKind::Param { name, injected } => {
                self.param(name);
                if !injected.is_empty() {
                    self.fields(injected, cond.span);
                }
            }
            CondKind::Error => self.push(BROKEN),
        }
    }

    fn cond_parens(&mut self, cond: &Cond) {
        let fits = self.fits(cond.span, |out| out.cond_parens(cond));
        self.parenthesised(fits, cond.span, |out| out.cond(cond));
    }

    /// An operand of the unary and binary operators: parenthesised unless it is of one piece.
    fn atom(&mut self, cond: &Cond) {
        match cond.kind {
            CondKind::Tp(_)
            | CondKind::Match(_)
            | CondKind::Call(_)
            | CondKind::Param { .. }
            | CondKind::Error => self.cond(cond),
            _ => self.cond_parens(cond),
        }
    }

    fn within(&mut self, window: &Window) {
        self.push("within ");
        self.window(window);
        self.push(" ");
    }

    pub(super) fn window(&mut self, window: &Window) {
        match &window.kind {
            WindowKind::Amount { amount, unit } => {
                self.push(&amount.to_string());
                self.text.push(unit.letter());
            }
            WindowKind::Param(name) => self.param(name),
            WindowKind::Error => self.push(BROKEN),
        }
    }

    fn binder(&mut self, binder: &Binder) {
        self.push("(");
        self.var(&binder.var);
        self.push(": ");
        self.name(&binder.ty);
        self.push(")");
    }

    fn var(&mut self, var: &VarRef) {
        self.push(match var.sigil {
            Sigil::Plain => "",
            Sigil::Param => "?",
            Sigil::Fresh => "$",
        });
        self.push(&var.name);
    }

    fn words(&mut self, words: &[Ident]) {
        for (index, word) in words.iter().enumerate() {
            if index > 0 {
                self.push(".");
            }
            self.push(&word.text);
        }
    }

    fn fields(&mut self, fields: &[FieldPattern], within: Span) {
        if fields.is_empty() {
            self.push("{}");
            return;
        }
        let span = match (fields.first(), fields.last()) {
            // Of several groups of braces, these.
            (Some(first), Some(last)) => Span {
                start: first.span.start,
                end: last.span.end.saturating_add(1).min(within.end),
            },
            _ => within,
        };
        self.enclosed(
            "{ ",
            " }",
            span,
            fields,
            |field| field.span,
            |out, field| {
                out.words(&field.path);
                out.push(": ");
                out.term(&field.term);
            },
        );
    }

    fn macro_call(&mut self, call: &MacroCall) {
        self.push(&call.name.text);
        let place = |arg: &CallArg| match arg {
            CallArg::Window(window) => window.span,
            CallArg::Cond(cond) => cond.span,
            CallArg::Term(term) => term.span,
        };
        self.enclosed(
            "(",
            ")",
            call.span,
            &call.args,
            place,
            |out, arg| match arg {
                CallArg::Window(window) => out.window(window),
                CallArg::Cond(cond) => out.cond(cond),
                CallArg::Term(term) => out.term(term),
            },
        );
    }

    /// A term that nothing stands beside: an aggregate needs no parentheses.
    pub(super) fn value(&mut self, term: &Term) {
        match &term.kind {
            TermKind::Aggregate(aggregate) => self.aggregate(aggregate),
            _ => self.term(term),
        }
    }

    fn aggregate(&mut self, aggregate: &Aggregate) {
        let broken = !self.fits(aggregate.span, |out| out.aggregate(aggregate));
        match &aggregate.op {
            AggregateOp::Count => self.push("count"),
            AggregateOp::Sum(var) => {
                self.push("sum ");
                self.var(var);
            }
        }
        self.push(" for ");
        self.list(&aggregate.binders, Out::binder);
        if broken {
            self.push(". where");
            self.indented(|out| {
                out.line(aggregate.body.span.start);
                out.cond(&aggregate.body);
            });
        } else {
            self.push(". where ");
            self.cond(&aggregate.body);
        }
    }

    pub(super) fn term(&mut self, term: &Term) {
        match &term.kind {
            TermKind::Int(value) => self.push(&value.to_string()),
            TermKind::Str(value) => self.string(value),
            TermKind::Bool(value) => self.push(if *value { "true" } else { "false" }),
            TermKind::Decimal(value) => {
                self.push("decimal(");
                self.string(&value.value);
                self.push(")");
            }
            TermKind::Entity(entity) => self.entity(entity),
            TermKind::Array(all) => {
                self.enclosed("[", "]", term.span, all, |part| part.span, Out::term);
            }
            TermKind::Context(path) => {
                self.push("context.");
                self.words(path);
            }
            TermKind::Scope { root, path } => {
                self.push(match root {
                    ScopeRoot::Principal => "principal",
                    ScopeRoot::Resource => "resource",
                });
                if !path.is_empty() {
                    self.push(".");
                    self.words(path);
                }
            }
            TermKind::Wildcard => self.push("*"),
            TermKind::Var(var) => self.var(var),
            TermKind::Aggregate(aggregate) => {
                let fits = self.fits(term.span, |out| out.term(term));
                self.parenthesised(fits, term.span, |out| out.aggregate(aggregate));
            }
            TermKind::Sum { first, rest } => {
                self.summand(first);
                for (op, operand) in rest {
                    self.push(sum_op(*op));
                    self.summand(operand);
                }
            }
            TermKind::Product(all) => {
                for (index, operand) in all.iter().enumerate() {
                    if index > 0 {
                        self.push(" * ");
                    }
                    match operand.kind {
                        TermKind::Sum { .. } | TermKind::Product(_) => self.term_parens(operand),
                        _ => self.term(operand),
                    }
                }
            }
            TermKind::Call(call) => self.macro_call(call),
            TermKind::Error => self.push(BROKEN),
        }
    }

    fn summand(&mut self, term: &Term) {
        match term.kind {
            TermKind::Sum { .. } => self.term_parens(term),
            _ => self.term(term),
        }
    }

    fn term_parens(&mut self, term: &Term) {
        self.push("(");
        self.term(term);
        self.push(")");
    }
}
