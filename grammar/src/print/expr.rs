//! Cedar expressions as text.

use super::{BROKEN, Out, compare_op, sum_op};
use crate::ast::*;

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
                self.push("[");
                self.list(all, Out::expr);
                self.push("]");
            }
            ExprKind::Record(fields) if fields.is_empty() => self.push("{}"),
            ExprKind::Record(fields) => {
                self.push("{ ");
                self.list(fields, |out, field| {
                    if field.key.quoted {
                        out.string(&field.key.name);
                    } else {
                        out.push(&field.key.name);
                    }
                    out.push(": ");
                    out.expr(&field.value);
                });
                self.push(" }");
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
            ExprKind::Has { target, path } => {
                self.at_least(target, Level::Sum);
                self.push(" has ");
                for (index, attr) in path.iter().enumerate() {
                    if index > 0 {
                        self.push(".");
                    }
                    if attr.quoted {
                        self.string(&attr.name);
                    } else {
                        self.push(&attr.name);
                    }
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
                    ExprKind::Not(_) => self.expr(operand),
                    _ => self.at_least(operand, Level::Member),
                }
            }
            ExprKind::Neg(operand) => {
                self.push("-");
                match operand.kind {
                    ExprKind::Neg(_) => self.expr(operand),
                    // Two signs: the inner one is the literal's.
                    ExprKind::Long(value) if value < 0 => self.expr(operand),
                    // Without parentheses the sign would be the literal's.
                    ExprKind::Long(_) => self.parens(operand),
                    _ => self.at_least(operand, Level::Member),
                }
            }
            ExprKind::Attr { target, attr } => {
                self.at_least(target, Level::Member);
                if attr.quoted {
                    self.push("[");
                    self.string(&attr.name);
                    self.push("]");
                } else {
                    self.push(".");
                    self.push(&attr.name);
                }
            }
            ExprKind::Method { target, name, args } => {
                self.at_least(target, Level::Member);
                self.push(".");
                self.push(&name.text);
                self.args(args);
            }
            ExprKind::Call { name, args } => {
                self.name(name);
                self.args(args);
            }
            ExprKind::Temporal(block) => self.block(block),
            ExprKind::Error => self.push(BROKEN),
        }
    }

    fn args(&mut self, args: &[Expr]) {
        self.push("(");
        self.list(args, Out::expr);
        self.push(")");
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
    fn relation(&mut self, left: &Expr, operator: &str, right: &Expr) {
        match left.kind {
            ExprKind::Compare { .. } | ExprKind::In { .. } => self.expr(left),
            _ => self.at_least(left, Level::Sum),
        }
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
        self.push("(");
        self.expr(expr);
        self.push(")");
    }
}
