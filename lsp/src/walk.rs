//! Every node of a statement, outermost first.

use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::ast::*;

#[derive(Clone, Copy, Debug)]
pub enum Node<'t> {
    Clause(&'t Clause),
    Temporal(&'t Temporal),
    Expr(&'t Expr),
    Cond(&'t Cond),
    Term(&'t Term),
    Matcher(&'t Matcher),
    Field(&'t FieldPattern),
    Aggregate(&'t Aggregate),
}

impl Node<'_> {
    pub fn span(&self) -> Span {
        match self {
            Node::Clause(node) => node.span,
            Node::Temporal(node) => node.span,
            Node::Expr(node) => node.span,
            Node::Cond(node) => node.span,
            Node::Term(node) => node.span,
            Node::Matcher(node) => node.span,
            Node::Field(node) => node.span,
            Node::Aggregate(node) => node.span,
        }
    }
}

type Visit<'v, 't> = &'v mut dyn FnMut(Node<'t>);

pub fn item<'t>(item: &'t Item, visit: Visit<'_, 't>) {
    match item {
        Item::Rule(rule) => {
            for clause in &rule.clauses {
                visit(Node::Clause(clause));
                match &clause.body {
                    ClauseBody::Expr(body) => expr(body, visit),
                    ClauseBody::Temporal(body) => temporal(body, visit),
                }
            }
        }
        Item::Macro(def) => definition(def, visit),
        Item::Broken(_) => {}
    }
}

pub fn definition<'t>(def: &'t MacroDef, visit: Visit<'_, 't>) {
    match &def.body {
        MacroBody::Expr(body) => expr(body, visit),
        MacroBody::Cond(body) => cond(body, visit),
        MacroBody::Value(body) => term(body, visit),
        MacroBody::Broken => {}
    }
}

fn temporal<'t>(node: &'t Temporal, visit: Visit<'_, 't>) {
    visit(Node::Temporal(node));
    cond(&node.body, visit);
}

pub fn expr<'t>(node: &'t Expr, visit: Visit<'_, 't>) {
    visit(Node::Expr(node));
    match &node.kind {
        ExprKind::Temporal(inner) => temporal(inner, visit),
        kind => kind.each_part(&mut |part| expr(part, visit)),
    }
}

pub fn cond<'t>(node: &'t Cond, visit: Visit<'_, 't>) {
    visit(Node::Cond(node));
    match &node.kind {
        CondKind::And(parts) => parts.iter().for_each(|part| cond(part, visit)),
        CondKind::Since { left, right, .. } => {
            cond(left, visit);
            cond(right, visit);
        }
        CondKind::Not(body)
        | CondKind::Formerly { body, .. }
        | CondKind::Previous { body, .. }
        | CondKind::Exists { body, .. } => cond(body, visit),
        CondKind::Compare { left, right, .. } => {
            term(left, visit);
            term(right, visit);
        }
        CondKind::Match(matcher) => {
            visit(Node::Matcher(matcher));
            fields(matcher.fields(), visit);
        }
        CondKind::Call(inner) => call(inner, visit),
        CondKind::Param { injected, .. } => fields(injected.iter(), visit),
        CondKind::Tp(_) | CondKind::Error => {}
    }
}

fn fields<'t>(all: impl Iterator<Item = &'t FieldPattern>, visit: Visit<'_, 't>) {
    for field in all {
        visit(Node::Field(field));
        term(&field.term, visit);
    }
}

fn call<'t>(node: &'t MacroCall, visit: Visit<'_, 't>) {
    for arg in &node.args {
        match arg {
            CallArg::Window(_) => {}
            CallArg::Cond(inner) => cond(inner, visit),
            CallArg::Term(inner) => term(inner, visit),
        }
    }
}

fn term<'t>(node: &'t Term, visit: Visit<'_, 't>) {
    visit(Node::Term(node));
    match &node.kind {
        TermKind::Array(items) | TermKind::Product(items) => {
            items.iter().for_each(|item| term(item, visit));
        }
        TermKind::Aggregate(aggregate) => {
            visit(Node::Aggregate(aggregate));
            cond(&aggregate.body, visit);
        }
        TermKind::Sum { first, rest } => {
            term(first, visit);
            rest.iter().for_each(|(_, item)| term(item, visit));
        }
        TermKind::Call(inner) => call(inner, visit),
        _ => {}
    }
}
