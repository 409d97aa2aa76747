//! Cedar expressions as text.

use super::{BROKEN, Out, compare_op, reserved, sum_op};
use crate::ast::*;
use crate::span::Span;

/// How tightly an expression holds together, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    If,
    Or,
    And,
    Relation,
    Sum,
    Product,
    Unary,
    Member,
}

fn level(expr: &Expr) -> Level {
    match &expr.kind {
        ExprKind::If { .. } => Level::If,
        ExprKind::Or(_) => Level::Or,
        ExprKind::And(_) => Level::And,
        ExprKind::Compare { .. }
        | ExprKind::In { .. }
        | ExprKind::Has { .. }
        | ExprKind::Like { .. }
        | ExprKind::Is { .. } => Level::Relation,
        ExprKind::Sum { .. } => Level::Sum,
        ExprKind::Product(_) => Level::Product,
        ExprKind::Not(_) | ExprKind::Neg(_) => Level::Unary,
        ExprKind::Long(value) if *value < 0 => Level::Unary,
        _ => Level::Member,
    }
}

impl Out {
    pub(super) fn expr(&mut self, expr: &Expr) {
        if !self.fits(expr.span, |out| out.expr(expr)) && self.broken_expr(expr) {
            return;
        }
        match &expr.kind {
            ExprKind::Bool(value) => self.push(if *value { "true" } else { "false" }),
            ExprKind::Long(value) => self.push(&value.to_string()),
            ExprKind::Str(value) => self.string(value),
            ExprKind::Var(var) => self.push(match var {
                Var::Principal => "principal",
                Var::Action => "action",
                Var::Resource => "resource",
                Var::Context => "context",
            }),
            ExprKind::Entity(entity) => self.entity(entity),
            ExprKind::Slot(name) => self.param(name),
            ExprKind::Set(all) => {
                self.enclosed("[", "]", expr.span, all, |part| part.span, Out::expr);
            }
            ExprKind::Record(fields) if fields.is_empty() => self.push("{}"),
            ExprKind::Record(fields) => {
                self.enclosed(
                    "{ ",
                    " }",
                    expr.span,
                    fields,
                    |field| field.key.span,
                    |out, field| {
                        out.attr(&field.key);
                        out.push(": ");
                        out.expr(&field.value);
                    },
                );
            }
            ExprKind::If { test, yes, no } => {
                self.push("if ");
                self.expr(test);
                self.push(" then ");
                self.expr(yes);
                self.push(" else ");
                self.expr(no);
            }
            ExprKind::Or(all) => self.operands(all, " || ", Level::And),
            ExprKind::And(all) => self.operands(all, " && ", Level::Relation),
            ExprKind::Compare { op, left, right } => {
                self.relation(left, compare_op(*op), right);
            }
            ExprKind::In { left, right } => self.relation(left, " in ", right),
            ExprKind::Has { target, path } if self.cedar && path.len() > 1 => {
                self.has_chain(target, path);
            }
            ExprKind::Has { target, path } => {
                self.at_least(target, Level::Sum);
                self.push(" has ");
                for (index, attr) in path.iter().enumerate() {
                    if index > 0 {
                        self.push(".");
                    }
                    self.attr(attr);
                }
            }
            ExprKind::Like { target, pattern } => {
                self.at_least(target, Level::Sum);
                self.push(" like \"");
                for part in &pattern.parts {
                    match part {
                        PatternPart::Text(text) => self.escaped(text, true),
                        PatternPart::Any => self.push("*"),
                    }
                }
                self.push("\"");
            }
            ExprKind::Is { target, ty, within } => {
                self.at_least(target, Level::Sum);
                self.push(" is ");
                self.name(ty);
                if let Some(within) = within {
                    self.push(" in ");
                    self.at_least(within, Level::Sum);
                }
            }
            ExprKind::Sum { first, rest } => {
                self.at_least(first, Level::Product);
                for (op, operand) in rest {
                    self.push(sum_op(*op));
                    self.at_least(operand, Level::Product);
                }
            }
            ExprKind::Product(all) => self.operands(all, " * ", Level::Unary),
            ExprKind::Not(operand) => {
                self.push("!");
                match operand.kind {
                    // Cedar takes four signs in a row at most.
                    ExprKind::Not(_) if !self.cedar => self.expr(operand),
                    _ => self.at_least(operand, Level::Member),
                }
            }
            ExprKind::Neg(operand) => {
                self.push("-");
                match operand.kind {
                    ExprKind::Neg(_) if !self.cedar => self.expr(operand),
                    // Two signs: the inner one is the literal's.
                    ExprKind::Long(value) if value < 0 && !self.cedar => self.expr(operand),
                    // Without parentheses the sign would be the literal's.
                    ExprKind::Long(_) => self.parens(operand),
                    _ => self.at_least(operand, Level::Member),
                }
            }
            ExprKind::Attr { target, attr } => {
                self.at_least(target, Level::Member);
                self.access(attr);
            }
            ExprKind::Method { target, name, args } => {
                self.at_least(target, Level::Member);
                self.push(".");
                self.push(&name.text);
                self.args(args, expr.span);
            }
            ExprKind::Call { name, args } => {
                self.name(name);
                self.args(args, expr.span);
            }
            ExprKind::Temporal(block) => self.block(block),
            ExprKind::Error => self.push(BROKEN),
        }
    }

    /// A word where the author wrote one and it can stand for itself, else a string.
    fn attr(&mut self, attr: &Attr) {
        if attr.quoted || (self.cedar && reserved(&attr.name)) {
            self.string(&attr.name);
        } else {
            self.push(&attr.name);
        }
    }

    fn access(&mut self, attr: &Attr) {
        if attr.quoted || (self.cedar && reserved(&attr.name)) {
            self.push("[");
            self.string(&attr.name);
            self.push("]");
        } else {
            self.push(".");
            self.push(&attr.name);
        }
    }

    /// `x has a && x.a has b`, which is what `x has a.b` means.
    fn has_chain(&mut self, target: &Expr, path: &[Attr]) {
        self.push("(");
        for (index, attr) in path.iter().enumerate() {
            if index > 0 {
                self.push(" && ");
            }
            self.at_least(target, Level::Member);
            for before in path.iter().take(index) {
                self.access(before);
            }
            self.push(" has ");
            self.attr(attr);
        }
        self.push(")");
    }

    fn args(&mut self, args: &[Expr], call: Span) {
        self.enclosed("(", ")", call, args, |arg| arg.span, Out::expr);
    }

    /// Lays an expression out that is too wide for its line. False where it has no better place to break
    /// than its parts have.
    fn broken_expr(&mut self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::If { test, yes, no } => {
                for (index, (word, part)) in [("if ", test), ("then ", yes), ("else ", no)]
                    .into_iter()
                    .enumerate()
                {
                    if index > 0 {
                        self.line(part.span.start);
                    }
                    self.push(word);
                    self.indented(|out| out.expr(part));
                }
            }
            ExprKind::Or(all) => self.broken_operands(all, "|| ", Level::And),
            ExprKind::And(all) => self.broken_operands(all, "&& ", Level::Relation),
            ExprKind::Product(all) => self.broken_operands(all, "* ", Level::Unary),
            ExprKind::Sum { first, rest } => {
                self.at_least(first, Level::Product);
                for (op, operand) in rest {
                    self.line(operand.span.start);
                    self.push(sum_op(*op).trim_start());
                    self.at_least(operand, Level::Product);
                }
            }
            ExprKind::Compare { op, left, right } => {
                self.broken_relation(left, compare_op(*op), right);
            }
            ExprKind::In { left, right } => self.broken_relation(left, " in ", right),
            _ => return false,
        }
        true
    }

    fn broken_operands(&mut self, all: &[Expr], operator: &str, least: Level) {
        for (index, operand) in all.iter().enumerate() {
            if index > 0 {
                self.line(operand.span.start);
                self.push(operator);
            }
            self.at_least(operand, least);
        }
    }

    fn broken_relation(&mut self, left: &Expr, operator: &str, right: &Expr) {
        self.relation_left(left);
        // What has brackets breaks inside them.
        let bracketed = matches!(
            right.kind,
            ExprKind::Set(_)
                | ExprKind::Record(_)
                | ExprKind::Call { .. }
                | ExprKind::Method { .. }
        );
        if bracketed {
            self.push(operator);
            self.at_least(right, Level::Sum);
        } else {
            self.indented(|out| {
                out.line(right.span.start);
                out.push(operator.trim_start());
                out.at_least(right, Level::Sum);
            });
        }
    }

    fn operands(&mut self, all: &[Expr], operator: &str, least: Level) {
        for (index, operand) in all.iter().enumerate() {
            if index > 0 {
                self.push(operator);
            }
            self.at_least(operand, least);
        }
    }

    /// Relations chain to the left.
    fn relation_left(&mut self, left: &Expr) {
        match left.kind {
            // Cedar takes one relation at a time.
            ExprKind::Compare { .. } | ExprKind::In { .. } if !self.cedar => self.expr(left),
            _ => self.at_least(left, Level::Sum),
        }
    }

    fn relation(&mut self, left: &Expr, operator: &str, right: &Expr) {
        self.relation_left(left);
        self.push(operator);
        self.at_least(right, Level::Sum);
    }

    fn at_least(&mut self, expr: &Expr, least: Level) {
        if level(expr) < least {
            self.parens(expr)
        } else {
            self.expr(expr)
        }
    }

    fn parens(&mut self, expr: &Expr) {
        let fits = self.fits(expr.span, |out| out.parens(expr));
        self.parenthesised(fits, expr.span, |out| out.expr(expr));
    }
}
