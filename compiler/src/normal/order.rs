//! In which order conditions stand, where the order says nothing: as people would tell them, the most telling
//! field first.

use super::{print_cond, print_expr};
use crate::grammar::ast::*;
use crate::grammar::print::print_term;
use smol_str::SmolStr;

/// Fields that say which operation it is, before all others.
const TELLING: [&str; 14] = [
    "server",
    "method",
    "tool",
    "operation",
    "program_path",
    "program",
    "command",
    "arg1",
    "arg2",
    "arg_count",
    "cwd",
    "host",
    "port",
    "path",
];

/// Where a field stands among others.
pub(super) fn field(path: &str) -> (usize, String) {
    let name = path.strip_prefix("input.").unwrap_or(path);
    let known = TELLING.iter().position(|telling| *telling == name);
    // What came of it is told last.
    let late = usize::from(path.starts_with("output."));
    (known.unwrap_or(TELLING.len() + late), name.to_owned())
}

pub(super) fn path(words: &[Ident]) -> String {
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    words.join(".")
}

type ExprKey = (u8, u8, (usize, String), u8, String);

/// Simple conditions before combined ones, those of the past last.
pub(super) fn expr(expr: &Expr) -> ExprKey {
    let class = match &expr.kind {
        _ if looks_back(expr) => 2,
        ExprKind::And(_) | ExprKind::Or(_) | ExprKind::If { .. } => 1,
        _ => 0,
    };
    let (root, subject) = match subject(expr) {
        Some((root, path)) => (root, field(&path)),
        None => (4, (0, String::new())),
    };
    (class, root, subject, verb(expr), told(expr))
}

fn told(expr: &Expr) -> String {
    let past = |leaf: &Temporal| {
        let key = cond(&leaf.body);
        format!("{:02} {} {}", key.0, key.1, key.2)
    };
    match &expr.kind {
        ExprKind::Temporal(leaf) => past(leaf),
        ExprKind::Not(inner) => match &inner.kind {
            ExprKind::Temporal(leaf) => format!("not {}", past(leaf)),
            _ => print_expr(expr),
        },
        _ => print_expr(expr),
    }
}

fn verb(expr: &Expr) -> u8 {
    match &expr.kind {
        ExprKind::Is { .. } => 0,
        ExprKind::Has { .. } => 1,
        ExprKind::Compare {
            op: CompareOp::Eq, ..
        } => 2,
        ExprKind::Compare {
            op: CompareOp::Gt | CompareOp::Ge,
            ..
        } => 3,
        ExprKind::Compare { .. } => 4,
        ExprKind::Not(inner) => 10 + verb(inner).min(9),
        _ => 5,
    }
}

/// What the condition is about: the variable, and the path from it.
fn subject(expr: &Expr) -> Option<(u8, String)> {
    let root = |var: &Var| match var {
        Var::Principal => 0,
        Var::Action => 1,
        Var::Resource => 2,
        Var::Context => 3,
    };
    match &expr.kind {
        ExprKind::Var(var) => Some((root(var), String::new())),
        ExprKind::Attr { target, attr } => {
            let (root, mut path) = subject(target)?;
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&attr.name);
            Some((root, path))
        }
        ExprKind::Has { target, path } => {
            let (root, mut whole) = subject(target)?;
            for attr in path {
                if !whole.is_empty() {
                    whole.push('.');
                }
                whole.push_str(&attr.name);
            }
            Some((root, whole))
        }
        ExprKind::Compare { left, right, .. } | ExprKind::In { left, right } => {
            subject(left).or_else(|| subject(right))
        }
        ExprKind::Like { target, .. } | ExprKind::Is { target, .. } => subject(target),
        ExprKind::Method { target, args, .. } => {
            subject(target).or_else(|| args.iter().find_map(subject))
        }
        ExprKind::Not(inner) | ExprKind::Neg(inner) => subject(inner),
        ExprKind::If { test, .. } => subject(test),
        ExprKind::And(parts)
        | ExprKind::Or(parts)
        | ExprKind::Product(parts)
        | ExprKind::Call { args: parts, .. } => parts.iter().find_map(subject),
        ExprKind::Sum { first, rest } => {
            subject(first).or_else(|| rest.iter().find_map(|(_, part)| subject(part)))
        }
        _ => None,
    }
}

fn looks_back(expr: &Expr) -> bool {
    let mut found = matches!(expr.kind, ExprKind::Temporal(_));
    expr.kind
        .each_part(&mut |part| found = found || looks_back(part));
    found
}

/// Whether the condition denies something.
pub(super) fn is_negative(expr: &Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::Not(_)
            | ExprKind::Compare {
                op: CompareOp::Ne,
                ..
            }
    )
}

/// How often it does.
pub(super) fn denials(expr: &Expr) -> usize {
    let mut found = usize::from(is_negative(expr));
    expr.kind.each_part(&mut |part| found += denials(part));
    found
}

/// Whether the opposite of the condition is worded like the condition.
pub(super) fn is_neutral(expr: &Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::Compare {
            op: CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge,
            ..
        } | ExprKind::And(_)
            | ExprKind::If { .. }
    )
}

type CondKey = (u8, String, String);

/// What is so now before what was so, and comparisons last. The names of variables say nothing at first, and
/// those of its own ones nothing at all.
pub(super) fn cond(cond: &Cond) -> CondKey {
    let own = super::cond::by_itself(cond);
    let mut nameless = own.clone();
    super::cond::each_name(&mut nameless, &mut |var| {
        if var.name.starts_with(FOREIGN) {
            unnamed(var);
        }
    });
    let text = match &nameless.kind {
        // What is said of one value stands together, the lower bound first.
        CondKind::Compare { op, left, right } => {
            let op = match op {
                CompareOp::Eq => 0,
                CompareOp::Gt | CompareOp::Ge => 1,
                CompareOp::Lt | CompareOp::Le => 2,
                CompareOp::Ne => 3,
            };
            format!("{} {op} {}", print_term(left), print_term(right))
        }
        _ => print_cond(&nameless),
    };
    (rank(cond), text, print_cond(&own))
}

/// Before the names of variables that are bound outside.
pub(super) const FOREIGN: &str = "o_";

fn rank(cond: &Cond) -> u8 {
    match &cond.kind {
        CondKind::Tp(_) => 0,
        CondKind::Match(_) | CondKind::Param { .. } => 1,
        CondKind::Formerly { .. } | CondKind::Since { .. } | CondKind::Previous { .. } => 3,
        CondKind::Exists { .. } | CondKind::Call(_) | CondKind::And(_) => 4,
        CondKind::Not(inner) => 5 + rank(inner).min(5),
        CondKind::Compare { .. } | CondKind::Error => 11,
    }
}

pub(super) fn term(term: &Term) -> (String, String) {
    let mut blank = term.clone();
    super::cond::each_name_of_term(&mut blank, &mut unnamed);
    (print_term(&blank), print_term(term))
}

fn unnamed(var: &mut VarRef) {
    if var.sigil != Sigil::Param {
        var.sigil = Sigil::Plain;
        var.name = SmolStr::new_static("v");
    }
}
