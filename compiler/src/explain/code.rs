//! Expressions and conditions written back as source, for what has no plain words.
//!
//! Works from the tree, not from spans: after macro expansion one expression can come from many places.

use crate::grammar::ast::*;
use std::fmt::Write;

pub fn expr(expr: &Expr) -> String {
    let mut out = String::new();
    write_expr(&mut out, expr, Level::Or);
    out
}

pub fn cond(cond: &Cond) -> String {
    let mut out = String::new();
    write_cond(&mut out, cond, Bind::Chain);
    out
}

pub fn term(term: &Term) -> String {
    let mut out = String::new();
    write_term(&mut out, term);
    out
}

pub fn string(text: &str) -> String {
    format!("{text:?}")
}

pub fn entity(entity: &EntityRef) -> String {
    format!("{}::{}", entity.ty.text(), string(&entity.id.value))
}

pub fn compare_op(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Eq => "==",
        CompareOp::Ne => "!=",
        CompareOp::Lt => "<",
        CompareOp::Le => "<=",
        CompareOp::Gt => ">",
        CompareOp::Ge => ">=",
    }
}

pub fn var(var: Var) -> &'static str {
    match var {
        Var::Principal => "principal",
        Var::Action => "action",
        Var::Resource => "resource",
        Var::Context => "context",
    }
}

pub fn pattern(pattern: &Pattern) -> String {
    let mut out = String::from("\"");
    for part in &pattern.parts {
        match part {
            PatternPart::Any => out.push('*'),
            PatternPart::Text(text) => {
                let quoted = string(text).replace('*', "\\*");
                out.push_str(
                    quoted
                        .trim_start_matches('"')
                        .strip_suffix('"')
                        .unwrap_or(&quoted),
                );
            }
        }
    }
    out.push('"');
    out
}

/// How tightly an expression binds; a looser one inside a tighter place needs parentheses.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Level {
    Or,
    And,
    Relation,
    Sum,
    Product,
    Unary,
    Member,
}

fn level(kind: &ExprKind) -> Level {
    match kind {
        ExprKind::If { .. } | ExprKind::Or(_) => Level::Or,
        ExprKind::And(_) => Level::And,
        ExprKind::Compare { .. }
        | ExprKind::In { .. }
        | ExprKind::Has { .. }
        | ExprKind::Like { .. }
        | ExprKind::Is { .. } => Level::Relation,
        ExprKind::Sum { .. } => Level::Sum,
        ExprKind::Product(_) => Level::Product,
        ExprKind::Not(_) | ExprKind::Neg(_) => Level::Unary,
        _ => Level::Member,
    }
}

fn write_expr(out: &mut String, expr: &Expr, place: Level) {
    if level(&expr.kind) < place {
        out.push('(');
        write_expr(out, expr, Level::Or);
        out.push(')');
        return;
    }
    match &expr.kind {
        ExprKind::Bool(value) => _ = write!(out, "{value}"),
        ExprKind::Long(value) => _ = write!(out, "{value}"),
        ExprKind::Str(text) => out.push_str(&string(text)),
        ExprKind::Var(which) => out.push_str(var(*which)),
        ExprKind::Entity(uid) => out.push_str(&entity(uid)),
        ExprKind::Slot(name) => _ = write!(out, "?{}", name.text),
        ExprKind::Set(items) => {
            out.push('[');
            write_list(out, items);
            out.push(']');
        }
        ExprKind::Record(fields) => {
            out.push_str("{ ");
            for (n, field) in fields.iter().enumerate() {
                if n > 0 {
                    out.push_str(", ");
                }
                write_key(out, &field.key);
                out.push_str(": ");
                write_expr(out, &field.value, Level::Or);
            }
            out.push_str(" }");
        }
        ExprKind::If { test, yes, no } => {
            out.push_str("if ");
            write_expr(out, test, Level::Or);
            out.push_str(" then ");
            write_expr(out, yes, Level::Or);
            out.push_str(" else ");
            write_expr(out, no, Level::Or);
        }
        ExprKind::Or(parts) => write_chain(out, parts, " || ", Level::And),
        ExprKind::And(parts) => write_chain(out, parts, " && ", Level::Relation),
        ExprKind::Product(parts) => write_chain(out, parts, " * ", Level::Unary),
        ExprKind::Sum { first, rest } => {
            write_expr(out, first, Level::Product);
            for (op, part) in rest {
                out.push_str(sum_op(*op));
                write_expr(out, part, Level::Product);
            }
        }
        ExprKind::Compare { op, left, right } => {
            write_expr(out, left, Level::Sum);
            _ = write!(out, " {} ", compare_op(*op));
            write_expr(out, right, Level::Sum);
        }
        ExprKind::In { left, right } => {
            write_expr(out, left, Level::Sum);
            out.push_str(" in ");
            write_expr(out, right, Level::Sum);
        }
        ExprKind::Has { target, path } => {
            write_expr(out, target, Level::Sum);
            out.push_str(" has ");
            for (n, attr) in path.iter().enumerate() {
                if n > 0 {
                    out.push('.');
                }
                write_key(out, attr);
            }
        }
        ExprKind::Like {
            target,
            pattern: wanted,
        } => {
            write_expr(out, target, Level::Sum);
            _ = write!(out, " like {}", pattern(wanted));
        }
        ExprKind::Is { target, ty, within } => {
            write_expr(out, target, Level::Sum);
            _ = write!(out, " is {}", ty.text());
            if let Some(within) = within {
                out.push_str(" in ");
                write_expr(out, within, Level::Sum);
            }
        }
        ExprKind::Not(inner) => {
            out.push('!');
            write_expr(out, inner, Level::Member);
        }
        ExprKind::Neg(inner) => {
            out.push('-');
            write_expr(out, inner, Level::Member);
        }
        ExprKind::Attr { target, attr } => {
            write_expr(out, target, Level::Member);
            if is_word(&attr.name) {
                _ = write!(out, ".{}", attr.name);
            } else {
                _ = write!(out, "[{}]", string(&attr.name));
            }
        }
        ExprKind::Method { target, name, args } => {
            write_expr(out, target, Level::Member);
            _ = write!(out, ".{}(", name.text);
            write_list(out, args);
            out.push(')');
        }
        ExprKind::Call { name, args } => {
            _ = write!(out, "{}(", name.text());
            write_list(out, args);
            out.push(')');
        }
        ExprKind::Temporal(temporal) => {
            out.push_str("temporal { ");
            write_cond(out, &temporal.body, Bind::Chain);
            out.push_str(" }");
        }
        ExprKind::Error => out.push_str("<unreadable>"),
    }
}

fn write_chain(out: &mut String, parts: &[Expr], between: &str, place: Level) {
    for (n, part) in parts.iter().enumerate() {
        if n > 0 {
            out.push_str(between);
        }
        write_expr(out, part, place);
    }
}

fn write_list(out: &mut String, items: &[Expr]) {
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.push_str(", ");
        }
        write_expr(out, item, Level::Or);
    }
}

fn write_key(out: &mut String, attr: &Attr) {
    if is_word(&attr.name) {
        out.push_str(&attr.name)
    } else {
        out.push_str(&string(&attr.name))
    }
}

fn sum_op(op: SumOp) -> &'static str {
    match op {
        SumOp::Add => " + ",
        SumOp::Sub => " - ",
    }
}

fn is_word(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Where a condition stands: in a chain, beside `since` or behind `!`, or as an operator's operand.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Bind {
    Chain,
    Since,
    Not,
    Atom,
}

fn write_cond(out: &mut String, cond: &Cond, place: Bind) {
    let own = match &cond.kind {
        CondKind::And(_) | CondKind::Exists { .. } => Bind::Chain,
        CondKind::Since { .. } => Bind::Since,
        CondKind::Not(_) | CondKind::Formerly { .. } | CondKind::Previous { .. } => Bind::Not,
        _ => Bind::Atom,
    };
    if own < place {
        out.push('(');
        write_cond(out, cond, Bind::Chain);
        out.push(')');
        return;
    }
    match &cond.kind {
        CondKind::And(parts) => {
            for (n, part) in parts.iter().enumerate() {
                if n > 0 {
                    out.push_str(" && ");
                }
                // `exists` reaches as far right as it can, so only the last part may go bare.
                let last = n + 1 == parts.len();
                let bare_exists = matches!(part.kind, CondKind::Exists { .. }) && last;
                write_cond(
                    out,
                    part,
                    if bare_exists {
                        Bind::Chain
                    } else {
                        Bind::Since
                    },
                );
            }
        }
        CondKind::Since {
            left,
            window: within,
            right,
        } => {
            write_cond(out, left, Bind::Not);
            _ = write!(out, " since within {} ", window(within));
            write_cond(out, right, Bind::Atom);
        }
        CondKind::Not(inner) => {
            out.push('!');
            write_cond(out, inner, Bind::Not);
        }
        CondKind::Formerly {
            window: within,
            body,
        } => {
            _ = write!(out, "formerly within {} ", window(within));
            write_cond(out, body, Bind::Atom);
        }
        CondKind::Previous {
            window: within,
            body,
        } => {
            _ = write!(out, "previous within {} ", window(within));
            write_cond(out, body, Bind::Atom);
        }
        CondKind::Exists {
            binder: bound,
            body,
        } => {
            _ = write!(out, "exists {}. ", binder(bound));
            write_cond(out, body, Bind::Chain);
        }
        CondKind::Tp(slot) => _ = write!(out, "tp({})", var_ref(slot)),
        CondKind::Compare { op, left, right } => {
            write_operand(out, left);
            _ = write!(out, " {} ", compare_op(*op));
            write_operand(out, right);
        }
        CondKind::Match(matcher) => {
            let event = &matcher.event;
            _ = write!(
                out,
                "{}::{}::{}",
                event.ty.text(),
                string(&event.action.value),
                event.kind.text
            );
            for group in &matcher.groups {
                write_fields(out, group);
            }
        }
        CondKind::Call(call) => write_call(out, call),
        CondKind::Param { name, injected } => {
            _ = write!(out, "?{}", name.text);
            if !injected.is_empty() {
                write_fields(out, injected);
            }
        }
        CondKind::Error => out.push_str("<unreadable>"),
    }
}

fn write_fields(out: &mut String, fields: &[FieldPattern]) {
    out.push('{');
    for (n, field) in fields.iter().enumerate() {
        out.push_str(if n == 0 { " " } else { ", " });
        _ = write!(out, "{}: ", path(&field.path));
        write_term(out, &field.term);
    }
    out.push_str(if fields.is_empty() { "}" } else { " }" });
}

/// An operand of a comparison: aggregates swallow what follows, so they get parentheses.
fn write_operand(out: &mut String, operand: &Term) {
    if matches!(operand.kind, TermKind::Aggregate(_)) {
        out.push('(');
        write_term(out, operand);
        out.push(')');
    } else {
        write_term(out, operand);
    }
}

fn write_term(out: &mut String, written: &Term) {
    match &written.kind {
        TermKind::Int(value) => _ = write!(out, "{value}"),
        TermKind::Str(text) => out.push_str(&string(text)),
        TermKind::Bool(value) => _ = write!(out, "{value}"),
        TermKind::Decimal(text) => _ = write!(out, "decimal({})", string(&text.value)),
        TermKind::Entity(uid) => out.push_str(&entity(uid)),
        TermKind::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                if n > 0 {
                    out.push_str(", ");
                }
                write_term(out, item);
            }
            out.push(']');
        }
        TermKind::Context(words) => _ = write!(out, "context.{}", path(words)),
        TermKind::Scope { root, path: words } => {
            out.push_str(match root {
                ScopeRoot::Principal => "principal",
                ScopeRoot::Resource => "resource",
            });
            if !words.is_empty() {
                _ = write!(out, ".{}", path(words));
            }
        }
        TermKind::Wildcard => out.push('*'),
        TermKind::Var(slot) => out.push_str(&var_ref(slot)),
        TermKind::Aggregate(aggregate) => {
            match &aggregate.op {
                AggregateOp::Count => out.push_str("count for "),
                AggregateOp::Sum(summed) => _ = write!(out, "sum {} for ", var_ref(summed)),
            }
            let binders: Vec<String> = aggregate.binders.iter().map(binder).collect();
            _ = write!(out, "{}. where ", binders.join(", "));
            write_cond(out, &aggregate.body, Bind::Atom);
        }
        TermKind::Sum { first, rest } => {
            write_factor(out, first);
            for (op, part) in rest {
                out.push_str(sum_op(*op));
                write_factor(out, part);
            }
        }
        TermKind::Product(parts) => {
            for (n, part) in parts.iter().enumerate() {
                if n > 0 {
                    out.push_str(" * ");
                }
                write_factor(out, part);
            }
        }
        TermKind::Call(call) => write_call(out, call),
        TermKind::Error => out.push_str("<unreadable>"),
    }
}

fn write_factor(out: &mut String, part: &Term) {
    let compound = matches!(
        part.kind,
        TermKind::Aggregate(_) | TermKind::Sum { .. } | TermKind::Product(_)
    );
    if compound {
        out.push('(');
        write_term(out, part);
        out.push(')');
    } else {
        write_term(out, part);
    }
}

fn write_call(out: &mut String, call: &MacroCall) {
    _ = write!(out, "{}(", call.name.text);
    for (n, arg) in call.args.iter().enumerate() {
        if n > 0 {
            out.push_str(", ");
        }
        match arg {
            CallArg::Window(within) => out.push_str(&window(within)),
            CallArg::Cond(inner) => write_cond(out, inner, Bind::Chain),
            CallArg::Term(inner) => write_term(out, inner),
        }
    }
    out.push(')');
}

fn window(window: &Window) -> String {
    match &window.kind {
        WindowKind::Amount { amount, unit } => format!("{amount}{}", unit.letter()),
        WindowKind::Param(name) => format!("?{}", name.text),
        WindowKind::Error => "<unreadable>".to_owned(),
    }
}

fn binder(binder: &Binder) -> String {
    format!("({}: {})", var_ref(&binder.var), binder.ty.text())
}

fn var_ref(slot: &VarRef) -> String {
    let sigil = match slot.sigil {
        Sigil::Plain => "",
        Sigil::Param => "?",
        Sigil::Fresh => "$",
    };
    format!("{sigil}{}", slot.name)
}

pub fn path(words: &[Ident]) -> String {
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    words.join(".")
}
