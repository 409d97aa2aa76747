//! Taking temporal blocks and provider calls out of a rule.

use crate::providers::{Export, Providers, chain};
use crate::schema::{AttrType, RecordType, Type, write};
use dogwood_grammar::Span;
use dogwood_grammar::ast::{
    Attr, Clause, ClauseBody, Constraint, EntityRef, Expr, ExprKind, HeadRef, Name, RecordField,
    Rule, Temporal, Var,
};
use dogwood_grammar::print::print_expr;
use smol_str::{SmolStr, format_smolstr};
use std::collections::BTreeMap;

/// A rule with attribute reads in place of what was taken out.
pub struct Hoisted<'r> {
    pub rule: Rule,
    pub temporal: Vec<(SmolStr, &'r Temporal)>,
    pub calls: Vec<HoistedCall>,
}

pub struct HoistedCall {
    pub name: SmolStr,
    pub text: String,
    pub ty: Type,
    pub span: Span,
}

pub fn hoist<'r>(
    rule: &'r Rule,
    key: &SmolStr,
    providers: &Providers,
    exports: &[Export],
) -> Hoisted<'r> {
    let mut hoister = Hoister {
        key,
        providers,
        renamed: exports.iter().map(|e| (&e.declared, &e.exported)).collect(),
        temporal: Vec::new(),
        calls: Vec::new(),
    };
    let mut lowered = Rule {
        clauses: Vec::new(),
        ..rule.clone()
    };
    for head in &mut lowered.scope.heads {
        hoister.constraint(&mut head.constraint);
    }
    for clause in &rule.clauses {
        let body = match &clause.body {
            ClauseBody::Expr(expr) => hoister.expr(expr),
            ClauseBody::Temporal(block) => hoister.block(block),
        };
        lowered.clauses.push(Clause {
            body: ClauseBody::Expr(body),
            ..clause.clone()
        });
    }
    Hoisted {
        rule: lowered,
        temporal: hoister.temporal,
        calls: hoister.calls,
    }
}

/// The type with the names that Cedar knows.
pub fn renamed(ty: &Type, names: &BTreeMap<&SmolStr, &SmolStr>) -> Type {
    match ty {
        Type::Entity(name) => Type::Entity(names.get(name).map_or(name, |name| *name).clone()),
        Type::Set(element) => Type::Set(Box::new(renamed(element, names))),
        Type::Record(record) => {
            let attrs = record.attrs.iter().map(|(label, attr)| {
                let ty = renamed(&attr.ty, names);
                let required = attr.required;
                (label.clone(), AttrType { ty, required })
            });
            Type::Record(RecordType {
                attrs: attrs.collect(),
            })
        }
        other => other.clone(),
    }
}

struct Hoister<'a, 'r> {
    key: &'a SmolStr,
    providers: &'a Providers,
    /// Enumerated types of providers have another name in Cedar.
    renamed: BTreeMap<&'a SmolStr, &'a SmolStr>,
    temporal: Vec<(SmolStr, &'r Temporal)>,
    calls: Vec<HoistedCall>,
}

impl<'r> Hoister<'_, 'r> {
    fn block(&mut self, block: &'r Temporal) -> Expr {
        let name = format_smolstr!("{}__temporal_{}", self.key, self.temporal.len());
        self.temporal.push((name.clone(), block));
        read(&[name], block.span)
    }

    fn constraint(&self, constraint: &mut Constraint) {
        let target = |target: &mut HeadRef| {
            if let HeadRef::Entity(entity) = target {
                self.entity(entity);
            }
        };
        match constraint {
            Constraint::Any => {}
            Constraint::Eq(found) | Constraint::In(found) => target(found),
            Constraint::InAny(all) => all.iter_mut().for_each(|entity| self.entity(entity)),
            Constraint::Is { ty, within } => {
                self.name(ty);
                within.iter_mut().for_each(target);
            }
        }
    }

    fn name(&self, name: &mut Name) {
        if let Some(exported) = self.renamed.get(&name.text()) {
            *name = write::name(exported);
        }
    }

    fn entity(&self, entity: &mut EntityRef) {
        self.name(&mut entity.ty);
    }

    fn all(&mut self, all: &'r [Expr]) -> Vec<Expr> {
        all.iter().map(|expr| self.expr(expr)).collect()
    }

    fn boxed(&mut self, expr: &'r Expr) -> Box<Expr> {
        Box::new(self.expr(expr))
    }

    fn expr(&mut self, expr: &'r Expr) -> Expr {
        if let Some(call) = chain(expr)
            && let Some(ty) = call.output(self.providers)
        {
            let name = format_smolstr!("{}_p_{}", self.key, self.calls.len());
            self.calls.push(HoistedCall {
                name: name.clone(),
                text: print_expr(expr),
                ty: ty.clone(),
                span: expr.span,
            });
            return read(&[SmolStr::new_static(super::PROVIDERS), name], expr.span);
        }
        let kind = match &expr.kind {
            ExprKind::Temporal(block) => return self.block(block),
            ExprKind::Entity(entity) => {
                let mut entity = entity.clone();
                self.entity(&mut entity);
                ExprKind::Entity(entity)
            }
            ExprKind::Set(all) => ExprKind::Set(self.all(all)),
            ExprKind::Record(fields) => {
                let field = |field: &'r RecordField| RecordField {
                    key: field.key.clone(),
                    value: self.expr(&field.value),
                };
                ExprKind::Record(fields.iter().map(field).collect())
            }
            ExprKind::If { test, yes, no } => ExprKind::If {
                test: self.boxed(test),
                yes: self.boxed(yes),
                no: self.boxed(no),
            },
            ExprKind::Or(all) => ExprKind::Or(self.all(all)),
            ExprKind::And(all) => ExprKind::And(self.all(all)),
            ExprKind::Compare { op, left, right } => ExprKind::Compare {
                op: *op,
                left: self.boxed(left),
                right: self.boxed(right),
            },
            ExprKind::In { left, right } => ExprKind::In {
                left: self.boxed(left),
                right: self.boxed(right),
            },
            ExprKind::Has { target, path } => ExprKind::Has {
                target: self.boxed(target),
                path: path.clone(),
            },
            ExprKind::Like { target, pattern } => ExprKind::Like {
                target: self.boxed(target),
                pattern: pattern.clone(),
            },
            ExprKind::Is { target, ty, within } => {
                let mut ty = ty.clone();
                self.name(&mut ty);
                ExprKind::Is {
                    target: self.boxed(target),
                    ty,
                    within: within.as_ref().map(|within| self.boxed(within)),
                }
            }
            ExprKind::Sum { first, rest } => ExprKind::Sum {
                first: self.boxed(first),
                rest: rest
                    .iter()
                    .map(|(op, operand)| (*op, self.expr(operand)))
                    .collect(),
            },
            ExprKind::Product(all) => ExprKind::Product(self.all(all)),
            ExprKind::Not(operand) => ExprKind::Not(self.boxed(operand)),
            ExprKind::Neg(operand) => ExprKind::Neg(self.boxed(operand)),
            ExprKind::Attr { target, attr } => ExprKind::Attr {
                target: self.boxed(target),
                attr: attr.clone(),
            },
            ExprKind::Method { target, name, args } => ExprKind::Method {
                target: self.boxed(target),
                name: name.clone(),
                args: self.all(args),
            },
            ExprKind::Call { name, args } => ExprKind::Call {
                name: name.clone(),
                args: self.all(args),
            },
            ExprKind::Bool(_)
            | ExprKind::Long(_)
            | ExprKind::Str(_)
            | ExprKind::Var(_)
            | ExprKind::Slot(_)
            | ExprKind::Error => expr.kind.clone(),
        };
        Expr {
            kind,
            span: expr.span,
            depth: expr.depth,
        }
    }
}

/// `context.a.b`.
fn read(path: &[SmolStr], span: Span) -> Expr {
    let context = Expr {
        kind: ExprKind::Var(Var::Context),
        span,
        depth: 1,
    };
    path.iter().fold(context, |target, name| Expr {
        depth: target.depth.saturating_add(1),
        kind: ExprKind::Attr {
            target: Box::new(target),
            attr: Attr {
                name: name.clone(),
                quoted: false,
                span,
            },
        },
        span,
    })
}
