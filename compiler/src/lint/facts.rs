//! What the Cedar conditions of a rule demand of a request, as far as it can be read off: the constants a
//! context attribute must be one of, and patterns it must match.

use crate::eval::like;
use crate::value::EntityUid;
use dogwood_grammar::ast::{
    Attr, ClauseBody, ClauseKind, CompareOp, Expr, ExprKind, FieldPattern, Ident, Matcher,
    PatternPart, Rule, Term, TermKind, Var,
};
use rustc_hash::FxBuildHasher;
use smol_str::SmolStr;
use std::hash::BuildHasher;

#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    Bool(bool),
    Int(i64),
    Str(SmolStr),
    Entity(EntityUid),
}

enum Fact<'r> {
    OneOf(Vec<Constant>),
    Like(&'r [PatternPart]),
}

/// The facts about each path. Rules are compared in pairs, so a path is told by its hash before its words.
#[derive(Default)]
struct ByPath<'r>(Vec<About<'r>>);

struct About<'r> {
    hash: u64,
    path: Vec<SmolStr>,
    facts: Vec<Fact<'r>>,
}

impl<'r> ByPath<'r> {
    fn add(&mut self, path: Vec<SmolStr>, fact: Fact<'r>) {
        let hash = FxBuildHasher.hash_one(&path);
        let known = self.0.iter_mut().find(|about| about.path == path);
        match known {
            Some(about) => about.facts.push(fact),
            None => self.0.push(About {
                hash,
                path,
                facts: vec![fact],
            }),
        }
    }

    fn get(&self, path: &[SmolStr]) -> Option<&[Fact<'r>]> {
        self.at(FxBuildHasher.hash_one(path), path)
    }

    fn at(&self, hash: u64, path: &[SmolStr]) -> Option<&[Fact<'r>]> {
        let mut all = self.0.iter();
        let about = all.find(|about| about.hash == hash && about.path == path)?;
        Some(&about.facts)
    }
}

#[derive(Default)]
pub struct Facts<'r> {
    by_path: ByPath<'r>,
    /// Context paths any condition reads, temporal ones included.
    pub reads: Vec<Vec<SmolStr>>,
    /// Every string literal of a Cedar condition, and every text of a pattern.
    pub texts: Vec<&'r str>,
}

impl<'r> Facts<'r> {
    pub fn of(rule: &'r Rule) -> Facts<'r> {
        let mut facts = Facts::default();
        for clause in &rule.clauses {
            match &clause.body {
                ClauseBody::Expr(expr) => {
                    facts.read(expr);
                    if clause.kind == ClauseKind::When {
                        facts.demand(expr);
                    }
                }
                ClauseBody::Temporal(leaf) => facts.read_leaf(&leaf.body),
            }
        }
        facts
    }

    fn demand(&mut self, expr: &'r Expr) {
        if let ExprKind::And(parts) = &expr.kind {
            return parts.iter().for_each(|part| self.demand(part));
        }
        if let ExprKind::Like { target, pattern } = &expr.kind {
            if let Some(path) = context_path(target) {
                let fact = Fact::Like(&pattern.parts);
                self.by_path.add(path, fact);
            }
            return;
        }
        if let Some((path, constants)) = choice(expr) {
            let fact = Fact::OneOf(constants);
            self.by_path.add(path, fact);
        }
    }

    fn read(&mut self, expr: &'r Expr) {
        if let Some(path) = context_path(expr) {
            self.reads.push(path);
            return;
        }
        match &expr.kind {
            ExprKind::Str(text) => self.texts.push(text),
            ExprKind::Like { pattern, .. } => {
                for part in &pattern.parts {
                    if let PatternPart::Text(text) = part {
                        self.texts.push(text);
                    }
                }
            }
            ExprKind::Temporal(leaf) => self.read_leaf(&leaf.body),
            _ => {}
        }
        expr.kind.each_part(&mut |part| self.read(part));
    }

    fn read_leaf(&mut self, body: &'r dogwood_grammar::ast::Cond) {
        use dogwood_grammar::ast::CondKind;
        let mut reads = Vec::new();
        let mut term = |term: &Term| {
            if let TermKind::Context(path) = &term.kind {
                reads.push(words(path));
            }
        };
        crate::check::each_cond(body, &mut |cond| match &cond.kind {
            CondKind::Match(matcher) => matcher.fields().for_each(|field| term(&field.term)),
            CondKind::Compare { left, right, .. } => {
                term(left);
                term(right);
            }
            _ => {}
        });
        self.reads.append(&mut reads);
    }

    /// Whether no request that meets the rule has this value there.
    pub fn rules_out(&self, path: &[SmolStr], value: &Constant) -> bool {
        self.by_path
            .get(path)
            .is_some_and(|facts| rule_out(facts, value))
    }

    /// Whether every request that meets the rule has this value there.
    pub fn demands(&self, path: &[SmolStr], value: &Constant) -> bool {
        let facts = self.by_path.get(path);
        facts.into_iter().flatten().any(
            |fact| matches!(fact, Fact::OneOf(constants) if constants.iter().all(|c| c == value)),
        )
    }

    /// Whether no request meets both rules.
    pub fn excludes(&self, other: &Facts) -> bool {
        // No constant of one is possible for the other.
        let disjoint = |some: &[Fact], others: &[Fact]| {
            some.iter().any(|fact| match fact {
                Fact::OneOf(constants) => constants.iter().all(|c| rule_out(others, c)),
                Fact::Like(_) => false,
            })
        };
        self.by_path.0.iter().any(|ours| {
            let theirs = other.by_path.at(ours.hash, &ours.path);
            theirs.is_some_and(|theirs| {
                disjoint(&ours.facts, theirs) || disjoint(theirs, &ours.facts)
            })
        })
    }

    /// Whether a pattern for a field of a predicate can match no request that meets the rule.
    pub fn contradicts(&self, matcher: &Matcher) -> bool {
        matcher.fields().any(|field| {
            constant(&field.term).is_some_and(|value| self.rules_out(&field_path(field), &value))
        })
    }
}

/// Whether a value meets not all of these facts about one attribute.
fn rule_out(facts: &[Fact], value: &Constant) -> bool {
    facts.iter().any(|fact| match fact {
        Fact::OneOf(constants) => !constants.contains(value),
        Fact::Like(pattern) => match value {
            Constant::Str(text) => !like(text, pattern),
            _ => true,
        },
    })
}

/// The constants a condition asks one context attribute to be among.
fn choice(expr: &Expr) -> Option<(Vec<SmolStr>, Vec<Constant>)> {
    match &expr.kind {
        ExprKind::Compare {
            op: CompareOp::Eq,
            left,
            right,
        } => {
            let one = |path, value| Some((context_path(path)?, vec![literal(value)?]));
            one(left, right).or_else(|| one(right, left))
        }
        ExprKind::Method { target, name, args } if name.text == "contains" => {
            let (ExprKind::Set(items), [argument]) = (&target.kind, args.as_slice()) else {
                return None;
            };
            let constants: Option<Vec<Constant>> = items.iter().map(literal).collect();
            Some((context_path(argument)?, constants?))
        }
        ExprKind::Or(parts) => {
            let mut parts = parts.iter().map(choice);
            let (path, mut constants) = parts.next()??;
            for part in parts {
                let (other, more) = part?;
                if other != path {
                    return None;
                }
                constants.extend(more);
            }
            Some((path, constants))
        }
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<Constant> {
    Some(match &expr.kind {
        ExprKind::Bool(b) => Constant::Bool(*b),
        ExprKind::Long(n) => Constant::Int(*n),
        ExprKind::Str(text) => Constant::Str(text.clone()),
        ExprKind::Entity(entity) => {
            Constant::Entity(EntityUid::new(entity.ty.text(), entity.id.value.clone()))
        }
        _ => return None,
    })
}

/// The constant a term of a temporal condition stands for.
pub fn constant(term: &Term) -> Option<Constant> {
    Some(match &term.kind {
        TermKind::Bool(b) => Constant::Bool(*b),
        TermKind::Int(n) => Constant::Int(*n),
        TermKind::Str(text) => Constant::Str(text.clone()),
        TermKind::Entity(entity) => {
            Constant::Entity(EntityUid::new(entity.ty.text(), entity.id.value.clone()))
        }
        _ => return None,
    })
}

/// `["input", "path"]` of `context.input.path`.
pub fn context_path(expr: &Expr) -> Option<Vec<SmolStr>> {
    let mut path = Vec::new();
    let mut here = expr;
    while let ExprKind::Attr {
        target,
        attr: Attr { name, .. },
    } = &here.kind
    {
        path.push(name.clone());
        here = target;
    }
    path.reverse();
    (matches!(here.kind, ExprKind::Var(Var::Context)) && !path.is_empty()).then_some(path)
}

pub fn words(path: &[Ident]) -> Vec<SmolStr> {
    path.iter().map(|word| word.text.clone()).collect()
}

pub fn field_path(field: &FieldPattern) -> Vec<SmolStr> {
    words(&field.path)
}
