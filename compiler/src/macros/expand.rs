//! Writing calls out: the rule an author wrote, with every macro call replaced by what it stands for.
//!
//! Arguments are expanded first, in the frame of the caller, and then put where the body uses the
//! parameter; how it is used decides what shape the argument must have. A `$name` of a body becomes
//! `name$n` with a number of its own for each call, which no author can write.

mod conditions;
mod depth;
mod expressions;
mod terms;

use super::error::{MacroError, MacroProblem};
use super::{Definition, Library};
use dogwood_grammar::Span;
use dogwood_grammar::ast::{
    Clause, ClauseBody, Cond, Expr, Ident, MAX_DEPTH, Name, Rule, Temporal, Term, Window,
};
use smol_str::SmolStr;
use std::collections::HashSet;
use std::mem::Discriminant;

/// Most parts one rule may gain by writing out its calls.
pub const MAX_EXPANSION: usize = 50_000;

/// A rule with its calls written out.
pub struct Expanded {
    /// Where something was wrong the tree has an `Error` node.
    pub rule: Rule,
    pub errors: Vec<MacroError>,
    /// The calls: what stands at one of these places is not what the author wrote there.
    pub calls: Vec<CallSite>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    pub name: SmolStr,
    pub span: Span,
}

pub fn expand_rule(rule: &Rule, library: &Library) -> Expanded {
    expand(rule, library, false)
}

/// The rule with only the calls of built-in macros written out: the names that its author chose stay. Nothing
/// where a name cannot stay, since another macro needs to see what it stands for.
pub fn expand_builtins(rule: &Rule, library: &Library) -> Option<Rule> {
    let expanded = expand(rule, library, true);
    expanded.errors.is_empty().then_some(expanded.rule)
}

fn expand(rule: &Rule, library: &Library, keeps_names: bool) -> Expanded {
    let mut expander = Expander {
        library,
        keeps_names,
        errors: Vec::new(),
        seen: HashSet::new(),
        built: 0,
        gained: 0,
        calls: Vec::new(),
    };
    let clauses = rule
        .clauses
        .iter()
        .map(|clause| expander.clause(clause))
        .collect();
    Expanded {
        rule: Rule {
            annotations: rule.annotations.clone(),
            effect: rule.effect,
            effect_span: rule.effect_span,
            scope: rule.scope.clone(),
            clauses,
            span: rule.span,
        },
        errors: expander.errors,
        calls: expander.calls,
    }
}

struct Expander<'a> {
    library: &'a Library,
    /// Calls of macros that are not built in are left as they are.
    keeps_names: bool,
    errors: Vec<MacroError>,
    /// What has been said, and where: a parameter may be used many times.
    seen: HashSet<(Span, Discriminant<MacroProblem>)>,
    /// Nodes built so far.
    built: usize,
    /// Those of them that come from macro bodies or stand for a parameter.
    gained: usize,
    /// Calls expanded so far; their number tells fresh names apart.
    calls: Vec<CallSite>,
}

/// One call being written out.
struct Frame<'a> {
    name: SmolStr,
    span: Span,
    number: usize,
    params: &'a [Ident],
    args: Vec<Argument>,
}

/// An argument with its own calls written out.
struct Argument {
    value: Value,
    span: Span,
    size: usize,
}

enum Value {
    Window(Window),
    Cond(Cond),
    Term(Term),
    Expr(Expr),
    /// Something was wrong with it and has been reported.
    Wrong,
}

type In<'f> = Option<&'f Frame<'f>>;

fn place(span: Span, frame: In) -> Span {
    frame.map_or(span, |frame| frame.span)
}

impl Frame<'_> {
    fn argument(&self, param: &str) -> Option<&Argument> {
        let at = self
            .params
            .iter()
            .position(|declared| declared.text == param)?;
        self.args.get(at)
    }
}

impl<'a> Expander<'a> {
    fn report(&mut self, span: Span, problem: MacroProblem) {
        if self.seen.insert((span, std::mem::discriminant(&problem))) {
            self.errors.push(MacroError { span, problem });
        }
    }

    /// Counts `size` nodes; false once the rule has become too large.
    fn gain(&mut self, size: usize, at: Span) -> bool {
        self.built = self.built.saturating_add(size);
        self.gained = self.gained.saturating_add(size);
        if self.gained <= MAX_EXPANSION {
            return true;
        }
        let too_large = |e: &MacroError| matches!(e.problem, MacroProblem::TooLarge { .. });
        if !self.errors.iter().any(too_large) {
            self.report(
                at,
                MacroProblem::TooLarge {
                    limit: MAX_EXPANSION,
                },
            );
        }
        false
    }

    /// Counts one node; false once the rule has become too large.
    fn count(&mut self, frame: In) -> bool {
        match frame {
            Some(frame) => self.gain(1, frame.span),
            None => {
                self.built += 1;
                self.gained <= MAX_EXPANSION
            }
        }
    }

    fn too_deep(&mut self, span: Span) {
        let too_deep = |e: &MacroError| matches!(e.problem, MacroProblem::TooDeep { .. });
        if !self.errors.iter().any(too_deep) {
            self.report(span, MacroProblem::TooDeep { limit: MAX_DEPTH });
        }
    }

    fn clause(&mut self, clause: &Clause) -> Clause {
        let body = match &clause.body {
            ClauseBody::Expr(expr) => ClauseBody::Expr(self.expr(expr, None)),
            ClauseBody::Temporal(leaf) => ClauseBody::Temporal(self.temporal(leaf)),
        };
        Clause {
            body,
            ..clause.clone()
        }
    }

    fn temporal(&mut self, leaf: &Temporal) -> Temporal {
        Temporal {
            keyword: leaf.keyword,
            body: self.cond(&leaf.body, None),
            span: leaf.span,
        }
    }

    /// The definition a call names, once the number of arguments fits.
    fn definition(&mut self, name: &Ident, args: usize) -> Option<&'a Definition> {
        let library: &'a Library = self.library;
        let found = library
            .get(&name.text)
            .filter(|definition| definition.sound)?;
        if found.def.params.len() != args {
            let params = found
                .def
                .params
                .iter()
                .map(|param| param.text.clone())
                .collect();
            let problem = MacroProblem::Arity {
                name: name.text.clone(),
                params,
                found: args,
            };
            self.report(name.span, problem);
            return None;
        }
        Some(found)
    }

    fn frame<'f>(
        &mut self,
        name: &Ident,
        span: Span,
        params: &'f [Ident],
        args: Vec<Argument>,
    ) -> Frame<'f> {
        self.calls.push(CallSite {
            name: name.text.clone(),
            span,
        });
        Frame {
            name: name.text.clone(),
            span,
            number: self.calls.len(),
            params,
            args,
        }
    }
}

fn ident_at(word: &Ident, frame: In) -> Ident {
    Ident {
        text: word.text.clone(),
        span: place(word.span, frame),
    }
}

fn name_at(name: &Name, frame: In) -> Name {
    let path = name.path.iter().map(|word| ident_at(word, frame)).collect();
    Name {
        path,
        span: place(name.span, frame),
    }
}
