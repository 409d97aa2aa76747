//! Where a policy asks a provider: `Ns::F(…)` and the run of the provider's methods right behind it.

use super::Providers;
use crate::eval::is_method;
use crate::schema::Type;
use dogwood_grammar::Span;
use dogwood_grammar::ast::{ClauseBody, Expr, ExprKind, Ident, Name, Rule};

/// What behind it is the language's own: projections, and methods that every value has.
#[derive(Clone, Debug)]
pub struct Chain<'e> {
    pub name: &'e Name,
    pub args: &'e [Expr],
    pub methods: Vec<(&'e Ident, &'e [Expr])>,
    pub span: Span,
}

/// Reads an expression as a call of a provider, up to its last method.
pub fn chain(expr: &Expr) -> Option<Chain<'_>> {
    let mut methods = Vec::new();
    let mut at = expr;
    while let ExprKind::Method { target, name, args } = &at.kind
        && !is_method(&name.text)
    {
        methods.push((name, args.as_slice()));
        at = target;
    }
    let ExprKind::Call { name, args } = &at.kind else {
        return None;
    };
    methods.reverse();
    (name.path.len() > 1).then_some(Chain {
        name,
        args,
        methods,
        span: expr.span,
    })
}

/// The calls of a rule, in the order of the text.
pub fn chains(rule: &Rule) -> Vec<Chain<'_>> {
    let mut found = Vec::new();
    for clause in &rule.clauses {
        if let ClauseBody::Expr(expr) = &clause.body {
            chains_in(expr, &mut found);
        }
    }
    found
}

fn chains_in<'e>(expr: &'e Expr, found: &mut Vec<Chain<'e>>) {
    match chain(expr) {
        Some(chain) => found.push(chain),
        None => expr.kind.each_part(&mut |part| chains_in(part, found)),
    }
}

impl Chain<'_> {
    /// The type of what it gives, where the declarations tell.
    pub fn output<'p>(&self, providers: &'p Providers) -> Option<&'p Type> {
        let provider = providers.get(&self.name.text())?;
        match self.methods.last() {
            None => Some(&provider.output),
            Some((method, _)) => Some(&provider.methods.get(&method.text)?.output),
        }
    }
}
