//! Trees back to text. Reading the text again gives the same tree, apart from its spans.
//!
//! Without a layout, text is plain: one line for each scope, clause and declaration, parentheses only
//! where the tree asks for them or a reader would stumble, no comments. [`lay_out`] breaks what is too
//! wide and puts comments back.

use crate::ast::action_schema::ActionSchemaFile;
use crate::ast::event_schema::EventSchemaFile;
use crate::ast::*;
use crate::span::Span;
use crate::token::Language;

mod expr;
mod layout;
mod schema;
mod schema_layout;
mod temporal;

pub use layout::{WIDTH, lay_out};
pub use schema_layout::{lay_out_declaration, lay_out_schema};

#[cfg(test)]
mod tests;

pub fn print_policy(file: &PolicyFile) -> String {
    let mut out = Out::default();
    for (index, item) in file.items.iter().enumerate() {
        if index > 0 {
            out.push("\n");
        }
        match item {
            Item::Rule(rule) => out.rule(rule),
            Item::Macro(definition) => out.macro_def(definition),
            Item::Broken(_) => out.push(BROKEN),
        }
        out.push("\n");
    }
    out.text
}

/// One rule with its `;`, without a line end.
pub fn print_rule(rule: &Rule) -> String {
    let mut out = Out::default();
    out.rule(rule);
    out.text
}

/// One rule as Cedar reads it: the scope in full, and nothing that only our grammar is lenient about.
/// The rule has no temporal block and no call of a provider left.
pub fn print_cedar_rule(rule: &Rule) -> String {
    let mut out = Out {
        cedar: true,
        ..Out::default()
    };
    out.rule(rule);
    out.text
}

pub fn print_expr(expr: &Expr) -> String {
    let mut out = Out::default();
    out.expr(expr);
    out.text
}

pub fn print_cond(cond: &Cond) -> String {
    let mut out = Out::default();
    out.cond(cond);
    out.text
}

pub fn print_term(term: &Term) -> String {
    let mut out = Out::default();
    out.term(term);
    out.text
}

pub fn print_action_schema(file: &ActionSchemaFile) -> String {
    let mut out = Out::default();
    out.action_schema(file);
    out.text
}

/// As [`print_action_schema`], with what is too wide over several lines.
pub fn lay_out_action_schema(file: &ActionSchemaFile) -> String {
    let text = print_action_schema(file);
    lay_out_schema(&text, Language::ActionSchema).unwrap_or(text)
}

pub fn print_event_schema(file: &EventSchemaFile) -> String {
    let mut out = Out::default();
    out.event_schema(file);
    out.text
}

/// Stands for what could not be read. It is no valid text in any of the languages.
const BROKEN: &str = "<unreadable>";

#[derive(Default)]
struct Out {
    text: String,
    /// Only what Cedar's own parser reads.
    cedar: bool,
    /// Blanks before the text of a new line.
    indent: usize,
    /// Where lines are to be broken; without it everything stays on one.
    layout: Option<layout::Layout>,
}

impl Out {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn list<T>(&mut self, all: &[T], mut one: impl FnMut(&mut Out, &T)) {
        for (index, item) in all.iter().enumerate() {
            if index > 0 {
                self.push(", ");
            }
            one(self, item);
        }
    }

    fn name(&mut self, name: &Name) {
        self.push(&name.text());
    }

    fn string(&mut self, value: &str) {
        self.push("\"");
        self.escaped(value, false);
        self.push("\"");
    }

    fn escaped(&mut self, value: &str, pattern: bool) {
        for c in value.chars() {
            match c {
                '\n' => self.push("\\n"),
                '\r' => self.push("\\r"),
                '\t' => self.push("\\t"),
                '\0' => self.push("\\0"),
                '\\' => self.push("\\\\"),
                '"' => self.push("\\\""),
                '*' if pattern => self.push("\\*"),
                c if c.is_control() => self.push(&format!("\\u{{{:x}}}", u32::from(c))),
                c => self.text.push(c),
            }
        }
    }

    fn entity(&mut self, entity: &EntityRef) {
        self.name(&entity.ty);
        self.push("::");
        self.string(&entity.id.value);
    }

    fn annotation(&mut self, annotation: &Annotation) {
        self.push("@");
        self.push(&annotation.key.text);
        if let Some(value) = &annotation.value {
            self.push("(");
            self.string(&value.value);
            self.push(")");
        }
    }

    // ------------------------------------------------------------------------- rules and macros

    fn rule(&mut self, rule: &Rule) {
        for (index, annotation) in self.annotations(rule).into_iter().enumerate() {
            if index > 0 {
                self.line(annotation.span.start);
            }
            self.annotation(annotation);
        }
        if !self.text.is_empty() {
            self.line(rule.effect_span.start);
        }
        self.push(match rule.effect {
            Effect::Permit => "permit",
            Effect::Forbid => "forbid",
        });
        self.scope(&rule.scope);
        for clause in &rule.clauses {
            self.line(clause.span.start);
            self.clause(clause);
        }
        self.push(";");
    }

    /// Cedar takes no annotation twice; of two, the last one counts.
    fn annotations<'r>(&self, rule: &'r Rule) -> Vec<&'r Annotation> {
        let all = rule.annotations.iter().enumerate();
        all.filter(|(at, note)| {
            let later = rule.annotations.iter().skip(at + 1);
            !self.cedar
                || !later
                    .into_iter()
                    .any(|other| other.key.text == note.key.text)
        })
        .map(|(_, note)| note)
        .collect()
    }

    fn scope(&mut self, scope: &Scope) {
        if self.cedar {
            self.push("(");
            for (var, after) in [
                (ScopeVar::Principal, ", "),
                (ScopeVar::Action, ", "),
                (ScopeVar::Resource, ")"),
            ] {
                match scope.head(var) {
                    Some(head) => self.head(head),
                    None => self.push(scope_var(var)),
                }
                self.push(after);
            }
            return;
        }
        if self.layout.is_some() {
            self.push(" ");
        }
        self.enclosed(
            "(",
            ")",
            scope.span,
            &scope.heads,
            |head| head.span,
            Out::head,
        );
    }

    fn clause(&mut self, clause: &Clause) {
        let fits = self.fits(clause.span, |out| out.clause(clause));
        self.push(match clause.kind {
            ClauseKind::When => "when ",
            ClauseKind::Unless => "unless ",
        });
        match &clause.body {
            ClauseBody::Expr(expr) => {
                if clause.guardrails && !self.cedar {
                    self.push("guardrails ");
                }
                self.braced(fits, clause.span, expr.span, |out| out.expr(expr));
            }
            ClauseBody::Temporal(block) => self.block(block),
        }
    }

    fn head(&mut self, head: &Head) {
        self.push(scope_var(head.var));
        match &head.constraint {
            Constraint::Any => {}
            Constraint::Eq(target) => {
                self.push(" == ");
                self.head_ref(target);
            }
            Constraint::In(target) => {
                self.push(" in ");
                self.head_ref(target);
            }
            Constraint::InAny(entities) => {
                self.push(" in [");
                self.list(entities, Out::entity);
                self.push("]");
            }
            Constraint::Is { ty, within } => {
                self.push(" is ");
                self.name(ty);
                if let Some(within) = within {
                    self.push(" in ");
                    self.head_ref(within);
                }
            }
        }
    }

    fn head_ref(&mut self, target: &HeadRef) {
        match target {
            HeadRef::Entity(entity) => self.entity(entity),
            HeadRef::Slot(slot) => self.param(slot),
        }
    }

    fn param(&mut self, name: &Ident) {
        self.push("?");
        self.push(&name.text);
    }

    fn macro_def(&mut self, definition: &MacroDef) {
        self.push(match definition.kind {
            MacroKind::Cedar => "def cedar ",
            MacroKind::Temporal => "def temporal ",
        });
        self.push(&definition.name.text);
        self.push("(");
        self.list(&definition.params, Out::param);
        self.push(") ");
        let body = match &definition.body {
            MacroBody::Expr(expr) => expr.span,
            MacroBody::Cond(cond) => cond.span,
            MacroBody::Value(term) => term.span,
            MacroBody::Broken => definition.span,
        };
        // Before the closing brace and the `;`.
        let inside = Span {
            end: definition.span.end.saturating_sub(1),
            ..definition.span
        };
        self.braced(false, inside, body, |out| match &definition.body {
            MacroBody::Expr(expr) => out.expr(expr),
            MacroBody::Cond(cond) => out.cond(cond),
            MacroBody::Value(term) => out.value(term),
            MacroBody::Broken => out.push(BROKEN),
        });
        self.push(";");
    }

    fn block(&mut self, block: &Temporal) {
        let fits = self.fits(block.span, |out| out.block(block));
        self.push("temporal ");
        self.braced(fits, block.span, block.body.span, |out| {
            out.cond(&block.body)
        });
    }
}

fn scope_var(var: ScopeVar) -> &'static str {
    match var {
        ScopeVar::Principal => "principal",
        ScopeVar::Action => "action",
        ScopeVar::Resource => "resource",
    }
}

fn compare_op(op: CompareOp) -> &'static str {
    match op {
        CompareOp::Eq => " == ",
        CompareOp::Ne => " != ",
        CompareOp::Lt => " < ",
        CompareOp::Le => " <= ",
        CompareOp::Gt => " > ",
        CompareOp::Ge => " >= ",
    }
}

fn sum_op(op: SumOp) -> &'static str {
    match op {
        SumOp::Add => " + ",
        SumOp::Sub => " - ",
    }
}

/// Words that Cedar does not take as the name of an attribute without quotes.
fn reserved(word: &str) -> bool {
    const WORDS: [&str; 10] = [
        "true", "false", "if", "then", "else", "in", "is", "like", "has", "__cedar",
    ];
    WORDS.contains(&word)
}
