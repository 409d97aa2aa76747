//! Cedar expressions in words where a pattern is known, and as code otherwise.

use super::claim::{Claim, Group};
use super::scene::Scene;
use super::{Speech, code, words};
use crate::grammar::ast::*;

impl Speech<'_> {
    /// What the expression says, or, with `holds` false, what its negation says.
    pub(super) fn expr(&self, expr: &Expr, holds: bool) -> Group {
        match &expr.kind {
            ExprKind::Bool(value) if *value == holds => Group::All(Vec::new()),
            ExprKind::Bool(_) => Group::Any(Vec::new()),
            ExprKind::And(parts) | ExprKind::Or(parts) => {
                let said = parts.iter().map(|part| self.expr(part, holds)).collect();
                if matches!(expr.kind, ExprKind::And(_)) == holds {
                    Group::all(said)
                } else {
                    Group::any(said)
                }
            }
            ExprKind::Not(inner) => self.expr(inner, !holds),
            ExprKind::Temporal(temporal) => self.cond(&temporal.body, holds, &mut Scene::default()),
            ExprKind::If { test, yes, no } => {
                let [test, yes, no] = [(test, true), (yes, holds), (no, holds)]
                    .map(|(part, holds)| self.expr(part, holds).say());
                Group::text(format!("(if {test}, then {yes}; if not, {no})"))
            }
            _ => self.atom(expr, holds).map_or_else(
                || {
                    let verb = if holds { "holds" } else { "does not hold" };
                    match &expr.kind {
                        ExprKind::Call { name, args } => {
                            self.called(name, args).map(|(name, with)| {
                                let mut claim = Claim::new(name, format!("{verb}{with}"));
                                // A field that may be absent is given where it is handed over.
                                claim.implies = args.iter().flat_map(present).collect();
                                Group::Claim(claim)
                            })
                        }
                        _ => None,
                    }
                    .unwrap_or_else(|| Group::claim(format!("`{}`", code::expr(expr)), verb))
                },
                Group::Claim,
            ),
        }
    }

    /// What the expression says, if it is a condition by its shape.
    pub(super) fn truth(&self, expr: &Expr) -> Option<Group> {
        let combined = matches!(
            expr.kind,
            ExprKind::Bool(_)
                | ExprKind::And(_)
                | ExprKind::Or(_)
                | ExprKind::Not(_)
                | ExprKind::If { .. }
        );
        let judged = combined
            || (!matches!(expr.kind, ExprKind::Attr { .. }) && self.atom(expr, true).is_some());
        judged.then(|| self.expr(expr, true))
    }

    /// A claim without parts. Nothing where no wording is known.
    fn atom(&self, expr: &Expr, holds: bool) -> Option<Claim> {
        let mut claim = match &expr.kind {
            ExprKind::Compare { op, left, right } => {
                let swap = is_literal(left) && !is_literal(right);
                let (op, left, right) = if swap {
                    (words::mirrored(*op), right, left)
                } else {
                    (*op, left, right)
                };
                let op = if holds { op } else { words::negated(op) };
                let mut claim = self.claim(
                    left,
                    format!("{} {}", words::compared(op), self.noun(right)),
                );
                if op == CompareOp::Ne {
                    claim.implies.clear();
                } else {
                    claim.implies.extend(present(right));
                }
                claim
            }
            ExprKind::In { left, right } => {
                let is = if holds { "is" } else { "is not" };
                match &right.kind {
                    ExprKind::Set(items) => {
                        let of = if is_action(left) { "one of" } else { "in" };
                        self.claim(left, format!("{is} {of} {}", self.one_of(items)))
                    }
                    _ => self.claim(left, format!("{is} in {}", self.noun(right))),
                }
            }
            ExprKind::Has { target, path } => self.presence(target, path, holds)?,
            ExprKind::Like { target, pattern } => self.claim(target, like(pattern, holds)),
            ExprKind::Is { target, ty, within } => {
                let is = if holds { "is" } else { "is not" };
                let within = within
                    .as_ref()
                    .map(|e| format!(" in {}", self.noun(e)))
                    .unwrap_or_default();
                let name = ty.text();
                self.claim(
                    target,
                    format!("{is} {} `{name}`{within}", words::article(&name)),
                )
            }
            ExprKind::Method { target, name, args } => {
                self.method(target, &name.text, args, holds)?
            }
            // A Boolean attribute.
            ExprKind::Attr { .. } => self.claim(expr, if holds { "is true" } else { "is false" }),
            _ => return None,
        };
        // "Is not x" and "does not start with x" sound as if they held for an absent field too.
        if !holds && !matches!(expr.kind, ExprKind::Compare { .. }) {
            claim.implies.clear();
        }
        Some(claim)
    }

    fn claim(&self, subject: &Expr, predicate: impl Into<String>) -> Claim {
        let mut claim = Claim::new(self.noun(subject), predicate);
        claim.implies = present(subject);
        claim
    }

    fn presence(&self, target: &Expr, path: &[Attr], holds: bool) -> Option<Claim> {
        let words: Vec<&str> = path.iter().map(|attr| attr.name.as_str()).collect();
        if let Some(mut full) = context_path(target) {
            full.extend(&words);
            let says = if holds { "is given" } else { "is not given" };
            let mut claim = Claim::new(super::field(&full), says);
            claim.presence_of = holds.then(|| full.join("."));
            return Some(claim);
        }
        let verb = if holds { "has" } else { "does not have" };
        Some(Claim::new(
            self.noun(target),
            format!("{verb} `{}`", words.join(".")),
        ))
    }

    fn method(&self, target: &Expr, name: &str, args: &[Expr], holds: bool) -> Option<Claim> {
        let is = if holds { "is" } else { "is not" };
        let verb = |yes: &str, no: &str| if holds { yes.to_owned() } else { no.to_owned() };
        let claim = match (name, args) {
            ("contains", [wanted]) => match &target.kind {
                ExprKind::Set(items) => {
                    let one_of = if items.len() == 1 {
                        items
                            .first()
                            .map(|item| self.noun(item))
                            .unwrap_or_default()
                    } else {
                        format!("one of {}", self.one_of(items))
                    };
                    self.claim(wanted, format!("{is} {one_of}"))
                }
                _ => self.claim(
                    target,
                    format!(
                        "{} {}",
                        verb("contains", "does not contain"),
                        self.noun(wanted)
                    ),
                ),
            },
            ("containsAll", [wanted]) => {
                let verb = verb("contains all of", "does not contain all of");
                self.claim(target, format!("{verb} {}", self.noun(wanted)))
            }
            ("containsAny", [wanted]) => {
                let verb = verb("contains any of", "contains none of");
                let wanted = match &wanted.kind {
                    ExprKind::Set(items) => self.one_of(items),
                    _ => self.noun(wanted),
                };
                self.claim(target, format!("{verb} {wanted}"))
            }
            ("isEmpty", []) => self.claim(target, format!("{is} empty")),
            ("isIpv4", []) => self.claim(target, format!("{is} an IPv4 address")),
            ("isIpv6", []) => self.claim(target, format!("{is} an IPv6 address")),
            ("isLoopback", []) => self.claim(target, format!("{is} a loopback address")),
            ("isMulticast", []) => self.claim(target, format!("{is} a multicast address")),
            ("isInRange", [range]) => {
                self.claim(target, format!("{is} in the range {}", self.noun(range)))
            }
            ("hasTag", [tag]) => self.claim(
                target,
                format!(
                    "{} {}",
                    verb("has the tag", "does not have the tag"),
                    self.noun(tag)
                ),
            ),
            (_, [other]) => {
                let op = match name {
                    "lessThan" => CompareOp::Lt,
                    "lessThanOrEqual" => CompareOp::Le,
                    "greaterThan" => CompareOp::Gt,
                    "greaterThanOrEqual" => CompareOp::Ge,
                    _ => return None,
                };
                let op = if holds { op } else { words::negated(op) };
                self.claim(
                    target,
                    format!("{} {}", words::compared(op), self.noun(other)),
                )
            }
            _ => return None,
        };
        Some(claim)
    }

    fn one_of(&self, items: &[Expr]) -> String {
        let items: Vec<String> = items.iter().map(|item| self.noun(item)).collect();
        if items.is_empty() {
            "an empty set".to_owned()
        } else {
            words::list(&items, "or")
        }
    }

    /// The value an expression stands for.
    pub(super) fn noun(&self, expr: &Expr) -> String {
        if let Some(path) = context_path(expr) {
            if path.is_empty() {
                return "the context".to_owned();
            }
            return super::field(&path);
        }
        match &expr.kind {
            ExprKind::Bool(value) => value.to_string(),
            ExprKind::Long(value) => value.to_string(),
            ExprKind::Str(text) => code::string(text),
            ExprKind::Entity(uid) => self.entity(uid),
            ExprKind::Var(var) => format!("the {}", code::var(*var)),
            ExprKind::Slot(name) => format!("`?{}`", name.text),
            ExprKind::Set(items) if !items.is_empty() => {
                let items: Vec<String> = items.iter().map(|item| self.noun(item)).collect();
                words::list(&items, "and")
            }
            ExprKind::Attr { target, attr } => match &target.kind {
                ExprKind::Var(var) => format!("the {}'s `{}`", code::var(*var), attr.name),
                _ => format!("`{}`", code::expr(expr)),
            },
            ExprKind::Call { name, args } => match (name.text().as_str(), args.as_slice()) {
                (
                    "decimal" | "ip" | "datetime" | "duration",
                    [
                        Expr {
                            kind: ExprKind::Str(text),
                            ..
                        },
                    ],
                ) => text.to_string(),
                _ => match self.called(name, args) {
                    Some((name, with)) => format!("{name}{with}"),
                    None => format!("`{}`", code::expr(expr)),
                },
            },
            ExprKind::Sum { first, rest }
                if rest.iter().all(|(_, part)| is_simple(part)) && is_simple(first) =>
            {
                let mut out = self.noun(first);
                for (op, part) in rest {
                    out.push_str(if *op == SumOp::Add {
                        " plus "
                    } else {
                        " minus "
                    });
                    out.push_str(&self.noun(part));
                }
                out
            }
            ExprKind::Product(parts) if parts.iter().all(is_simple) => {
                let parts: Vec<String> = parts.iter().map(|part| self.noun(part)).collect();
                parts.join(" times ")
            }
            ExprKind::Method { target, name, args } => {
                match (name.text.as_str(), args.as_slice()) {
                    ("getTag", [tag]) => {
                        format!("the tag {} of {}", self.noun(tag), self.noun(target))
                    }
                    _ => format!("`{}`", code::expr(expr)),
                }
            }
            _ => format!("`{}`", code::expr(expr)),
        }
    }

    /// `field == literal` tests that hold whenever the rule's guard does: path and literal as source.
    pub(super) fn facts(&self, guard: &Expr, facts: &mut Vec<(String, String)>) {
        match &guard.kind {
            ExprKind::And(parts) => parts.iter().for_each(|part| self.facts(part, facts)),
            ExprKind::Compare {
                op: CompareOp::Eq,
                left,
                right,
            } => {
                for (field, value) in [(left, right), (right, left)] {
                    if let (Some(path), true) = (context_path(field), is_literal(value)) {
                        facts.push((path.join("."), code::expr(value)));
                    }
                }
            }
            _ => {}
        }
    }
}

/// The words after `context`, where the expression is a chain of attributes from it.
pub(super) fn context_path(expr: &Expr) -> Option<Vec<&str>> {
    match &expr.kind {
        ExprKind::Var(Var::Context) => Some(Vec::new()),
        ExprKind::Attr { target, attr } => {
            let mut path = context_path(target)?;
            path.push(&attr.name);
            Some(path)
        }
        _ => None,
    }
}

/// The context field that is read, if the expression is one; and those around it.
fn present(expr: &Expr) -> Vec<String> {
    let Some(path) = context_path(expr) else {
        return Vec::new();
    };
    (1..=path.len())
        .filter_map(|n| path.get(..n))
        .map(|words| words.join("."))
        .collect()
}

fn is_action(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Var(Var::Action))
}

fn is_literal(expr: &Expr) -> bool {
    matches!(
        expr.kind,
        ExprKind::Bool(_)
            | ExprKind::Long(_)
            | ExprKind::Str(_)
            | ExprKind::Entity(_)
            | ExprKind::Set(_)
    )
}

fn is_simple(expr: &Expr) -> bool {
    is_literal(expr) || matches!(expr.kind, ExprKind::Attr { .. } | ExprKind::Var(_))
}

fn like(pattern: &Pattern, holds: bool) -> String {
    let verb = |yes: &str, no: &str| if holds { yes.to_owned() } else { no.to_owned() };
    use PatternPart::{Any, Text};
    match pattern.parts.as_slice() {
        [Text(text)] => format!("{} {}", verb("is", "is not"), code::string(text)),
        [Text(start), Any] => {
            format!(
                "{} {}",
                verb("starts with", "does not start with"),
                code::string(start)
            )
        }
        [Any, Text(end)] => format!(
            "{} {}",
            verb("ends in", "does not end in"),
            code::string(end)
        ),
        [Any, Text(part), Any] => {
            format!(
                "{} {}",
                verb("contains", "does not contain"),
                code::string(part)
            )
        }
        [Any] => verb("is any text", "is no text"),
        _ => format!(
            "{} `{}`",
            verb("matches", "does not match"),
            code::pattern(pattern)
        ),
    }
}
