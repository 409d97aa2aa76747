//! Temporal conditions and terms as text.

use super::{BROKEN, Out, compare_op, sum_op};
use crate::ast::*;

impl Out {
    pub(super) fn cond(&mut self, cond: &Cond) {
        match &cond.kind {
            CondKind::And(all) => {
                let last = all.len().saturating_sub(1);
                for (index, conjunct) in all.iter().enumerate() {
                    if index > 0 {
                        self.push(" && ");
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
                self.push(" since ");
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
                    self.fields(group);
                }
            }
            CondKind::Call(call) => self.macro_call(call),
            CondKind::Param { name, injected } => {
                self.param(name);
                if !injected.is_empty() {
                    self.fields(injected);
                }
            }
            CondKind::Error => self.push(BROKEN),
        }
    }

    fn cond_parens(&mut self, cond: &Cond) {
        self.push("(");
        self.cond(cond);
        self.push(")");
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

    fn fields(&mut self, fields: &[FieldPattern]) {
        if fields.is_empty() {
            self.push("{}");
            return;
        }
        self.push("{ ");
        self.list(fields, |out, field| {
            out.words(&field.path);
            out.push(": ");
            out.term(&field.term);
        });
        self.push(" }");
    }

    fn macro_call(&mut self, call: &MacroCall) {
        self.push(&call.name.text);
        self.push("(");
        self.list(&call.args, |out, arg| match arg {
            CallArg::Window(window) => out.window(window),
            CallArg::Cond(cond) => out.cond(cond),
            CallArg::Term(term) => out.term(term),
        });
        self.push(")");
    }

    /// A term that nothing stands beside: an aggregate needs no parentheses.
    pub(super) fn value(&mut self, term: &Term) {
        match &term.kind {
            TermKind::Aggregate(aggregate) => self.aggregate(aggregate),
            _ => self.term(term),
        }
    }

    fn aggregate(&mut self, aggregate: &Aggregate) {
        match &aggregate.op {
            AggregateOp::Count => self.push("count"),
            AggregateOp::Sum(var) => {
                self.push("sum ");
                self.var(var);
            }
        }
        self.push(" for ");
        self.list(&aggregate.binders, Out::binder);
        self.push(". where ");
        self.cond(&aggregate.body);
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
                self.push("[");
                self.list(all, Out::term);
                self.push("]");
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
                self.push("(");
                self.aggregate(aggregate);
                self.push(")");
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
