//! Trees back to text. Reading the text again gives the same tree, apart from its spans.
//!
//! Layout is plain: one line for each scope, clause and declaration, parentheses only where the tree
//! asks for them or a reader would stumble. Comments are not in the tree and so not in the text.

use crate::ast::action_schema::ActionSchemaFile;
use crate::ast::event_schema::EventSchemaFile;
use crate::ast::*;

mod expr;
mod schema;
mod temporal;

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
        for annotation in &rule.annotations {
            self.annotation(annotation);
            self.push("\n");
        }
        self.push(match rule.effect {
            Effect::Permit => "permit(",
            Effect::Forbid => "forbid(",
        });
        self.list(&rule.scope.heads, Out::head);
        self.push(")");
        for clause in &rule.clauses {
            self.push(match clause.kind {
                ClauseKind::When => "\nwhen ",
                ClauseKind::Unless => "\nunless ",
            });
            match &clause.body {
                ClauseBody::Expr(expr) => {
                    self.push(if clause.guardrails {
                        "guardrails { "
                    } else {
                        "{ "
                    });
                    self.expr(expr);
                    self.push(" }");
                }
                ClauseBody::Temporal(block) => self.block(block),
            }
        }
        self.push(";");
    }

    fn head(&mut self, head: &Head) {
        self.push(match head.var {
            ScopeVar::Principal => "principal",
            ScopeVar::Action => "action",
            ScopeVar::Resource => "resource",
        });
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
        self.push(") {\n  ");
        match &definition.body {
            MacroBody::Expr(expr) => self.expr(expr),
            MacroBody::Cond(cond) => self.cond(cond),
            MacroBody::Value(term) => self.value(term),
            MacroBody::Broken => self.push(BROKEN),
        }
        self.push("\n};");
    }

    fn block(&mut self, block: &Temporal) {
        self.push("temporal { ");
        self.cond(&block.body);
        self.push(" }");
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
