//! The names of a policy file.

use super::{Local, Marks, Root, What};
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::ast::*;
use dogwood_compiler::value::EntityUid;
use smol_str::SmolStr;
use std::collections::BTreeMap;

/// No schema has longer paths; a text may.
const LONGEST: usize = 64;

pub fn collect(file: &PolicyFile, marks: &mut Marks) {
    for item in &file.items {
        let mut walk = Walk {
            marks,
            scope: Vec::new(),
            call: None,
        };
        match item {
            Item::Rule(rule) => walk.rule(rule),
            Item::Macro(def) => walk.definition(def),
            Item::Broken(_) => {}
        }
    }
}

struct Walk<'m, 't> {
    marks: &'m mut Marks<'t>,
    /// Innermost last.
    scope: Vec<Local>,
    /// Inside the arguments of a macro: the names that the macro introduces, by their first place.
    call: Option<BTreeMap<SmolStr, Span>>,
}

/// The field an expression reads, by its root and the words on the way.
pub fn field(expr: &Expr) -> Option<(Root, Vec<SmolStr>)> {
    match &expr.kind {
        ExprKind::Var(var) => Some((Root::from(*var), Vec::new())),
        ExprKind::Attr { target, attr } => {
            let (root, mut path) = field(target)?;
            path.push(attr.name.clone());
            Some((root, path))
        }
        _ => None,
    }
}

fn uid(entity: &EntityRef) -> EntityUid {
    EntityUid::new(entity.ty.text(), entity.id.value.clone())
}

impl Walk<'_, '_> {
    fn rule(&mut self, rule: &Rule) {
        for note in &rule.annotations {
            self.marks
                .uses(note.key.span, What::Annotation(note.key.text.clone()));
            let Some(value) = &note.value else { continue };
            let inside = self.marks.inside(value);
            match note.key.text.as_str() {
                "id" => self.marks.defines(inside, What::Rule(value.value.clone())),
                "allow" => self.marks.uses(inside, What::Code(value.value.clone())),
                _ => {}
            }
        }
        for head in &rule.scope.heads {
            let (root, word) = match head.var {
                ScopeVar::Principal => (Root::Principal, "principal"),
                ScopeVar::Action => (Root::Action, "action"),
                ScopeVar::Resource => (Root::Resource, "resource"),
            };
            let start = head.span.start as usize;
            self.marks
                .uses(Span::new(start, start + word.len()), What::Variable(root));
            match &head.constraint {
                Constraint::Any => {}
                Constraint::Eq(reference) | Constraint::In(reference) => self.reference(reference),
                Constraint::InAny(all) => all.iter().for_each(|entity| self.entity(entity)),
                Constraint::Is { ty, within } => {
                    self.ty(ty);
                    within
                        .iter()
                        .for_each(|reference| self.reference(reference));
                }
            }
        }
        for clause in &rule.clauses {
            match &clause.body {
                ClauseBody::Expr(expr) => self.expr(expr),
                ClauseBody::Temporal(temporal) => self.cond(&temporal.body),
            }
        }
    }

    fn definition(&mut self, def: &MacroDef) {
        self.marks
            .defines(def.name.span, What::Macro(def.name.text.clone()));
        for param in &def.params {
            let local = Local {
                name: param.text.clone(),
                sigil: Sigil::Param,
                binder: param.span,
                ty: None,
            };
            self.marks.defines(param.span, What::Local(local.clone()));
            self.scope.push(local);
        }
        match &def.body {
            MacroBody::Expr(expr) => self.expr(expr),
            MacroBody::Cond(cond) => self.cond(cond),
            MacroBody::Value(term) => self.term(term),
            MacroBody::Broken => {}
        }
    }

    fn reference(&mut self, reference: &HeadRef) {
        if let HeadRef::Entity(entity) = reference {
            self.entity(entity);
        }
    }

    fn ty(&mut self, name: &Name) {
        self.marks.uses(name.span, What::Type(name.text()));
    }

    fn entity(&mut self, entity: &EntityRef) {
        let is_action = entity
            .ty
            .path
            .last()
            .is_some_and(|word| word.text == "Action");
        if is_action {
            self.marks.uses(entity.span, What::Action(uid(entity)));
        } else {
            self.ty(&entity.ty);
            self.marks.uses(entity.id.span, What::Entity(uid(entity)));
        }
    }

    fn param(&mut self, name: &Ident) {
        let var = VarRef {
            sigil: Sigil::Param,
            name: name.text.clone(),
            span: name.span,
        };
        self.var(&var);
    }

    fn var(&mut self, var: &VarRef) {
        let known = self
            .scope
            .iter()
            .rev()
            .find(|local| local.name == var.name && local.sigil == var.sigil)
            .cloned();
        let local = known.unwrap_or_else(|| Local {
            name: var.name.clone(),
            sigil: var.sigil,
            binder: match &mut self.call {
                Some(names) => *names.entry(var.name.clone()).or_insert(var.span),
                None => var.span,
            },
            ty: None,
        });
        self.marks.uses(var.span, What::Local(local));
    }

    /// Introduces the variables for as long as `inside` walks.
    fn binding(&mut self, binders: &[Binder], inside: impl FnOnce(&mut Self)) {
        let before = self.scope.len();
        for binder in binders {
            self.ty(&binder.ty);
            if binder.var.sigil == Sigil::Param {
                // The caller chooses the name.
                self.var(&binder.var);
                continue;
            }
            let local = Local {
                name: binder.var.name.clone(),
                sigil: binder.var.sigil,
                binder: binder.var.span,
                ty: Some(binder.ty.text()),
            };
            self.marks
                .defines(binder.var.span, What::Local(local.clone()));
            self.scope.push(local);
        }
        inside(self);
        self.scope.truncate(before);
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Var(var) => self.marks.uses(expr.span, What::Variable((*var).into())),
            ExprKind::Entity(entity) => self.entity(entity),
            ExprKind::Slot(name) => self.param(name),
            ExprKind::Has { target, path } => {
                self.expr(target);
                if let Some((root, mut words)) = field(target) {
                    for attr in path.iter().take(LONGEST) {
                        words.push(attr.name.clone());
                        let path = words.clone();
                        self.marks
                            .uses(attr.span, What::RequestField { root, path });
                    }
                }
            }
            ExprKind::Is { target, ty, within } => {
                self.expr(target);
                self.ty(ty);
                within.iter().for_each(|within| self.expr(within));
            }
            ExprKind::Attr { target, attr } => {
                self.expr(target);
                if let Some((root, path)) = field(expr) {
                    self.marks
                        .uses(attr.span, What::RequestField { root, path });
                }
            }
            ExprKind::Method { target, name, args } => {
                self.expr(target);
                self.marks.uses(name.span, What::Method(name.text.clone()));
                args.iter().for_each(|arg| self.expr(arg));
            }
            ExprKind::Call { name, args } => {
                let text = name.text();
                let what = match text.as_str() {
                    _ if name.path.len() > 1 => What::Provider(text),
                    "decimal" | "datetime" | "duration" | "ip" => What::Constructor(text),
                    _ => What::Macro(text),
                };
                self.marks.uses(name.span, what);
                args.iter().for_each(|arg| self.expr(arg));
            }
            ExprKind::Temporal(temporal) => self.cond(&temporal.body),
            kind => kind.each_part(&mut |part| self.expr(part)),
        }
    }

    fn cond(&mut self, cond: &Cond) {
        match &cond.kind {
            CondKind::And(parts) => parts.iter().for_each(|part| self.cond(part)),
            CondKind::Since {
                left,
                window,
                right,
            } => {
                self.cond(left);
                self.window(window);
                self.cond(right);
            }
            CondKind::Not(body) => self.cond(body),
            CondKind::Formerly { window, body } | CondKind::Previous { window, body } => {
                self.window(window);
                self.cond(body);
            }
            CondKind::Exists { binder, body } => {
                self.binding(std::slice::from_ref(binder), |walk| walk.cond(body));
            }
            CondKind::Tp(var) => self.var(var),
            CondKind::Compare { left, right, .. } => {
                self.term(left);
                self.term(right);
            }
            CondKind::Match(matcher) => self.matcher(matcher),
            CondKind::Call(call) => self.call(call),
            CondKind::Param { name, injected } => {
                self.param(name);
                injected.iter().for_each(|field| self.term(&field.term));
            }
            CondKind::Error => {}
        }
    }

    fn matcher(&mut self, matcher: &Matcher) {
        let event = &matcher.event;
        let action = EntityUid::new(event.ty.text(), event.action.value.clone());
        let kind = event.kind.text.clone();
        let named = event.ty.span.to(event.action.span);
        self.marks.uses(named, What::Action(action.clone()));
        self.marks.uses(
            event.kind.span,
            What::Kind {
                action: Some(action.clone()),
                kind: kind.clone(),
            },
        );
        for field in matcher.fields() {
            let mut path = Vec::new();
            for word in field.path.iter().take(LONGEST) {
                path.push(word.text.clone());
                self.marks.uses(
                    word.span,
                    What::EventField {
                        action: action.clone(),
                        kind: kind.clone(),
                        path: path.clone(),
                    },
                );
            }
            self.term(&field.term);
        }
    }

    fn window(&mut self, window: &Window) {
        match &window.kind {
            WindowKind::Param(name) => self.param(name),
            WindowKind::Amount { .. } => {
                self.marks.uses(window.span, What::Window(window.seconds()))
            }
            WindowKind::Error => {}
        }
    }

    fn call(&mut self, call: &MacroCall) {
        self.marks
            .uses(call.name.span, What::Macro(call.name.text.clone()));
        let outermost = self.call.is_none();
        if outermost {
            self.call = Some(BTreeMap::new());
        }
        for arg in &call.args {
            match arg {
                CallArg::Window(window) => self.window(window),
                CallArg::Cond(cond) => self.cond(cond),
                CallArg::Term(term) => self.term(term),
            }
        }
        if outermost {
            self.call = None;
        }
    }

    fn term(&mut self, term: &Term) {
        match &term.kind {
            TermKind::Entity(entity) => self.entity(entity),
            TermKind::Array(items) | TermKind::Product(items) => {
                items.iter().for_each(|item| self.term(item));
            }
            TermKind::Context(words) => self.path(term.span, Root::Context, words),
            TermKind::Scope { root, path } => self.path(term.span, (*root).into(), path),
            TermKind::Var(var) => self.var(var),
            TermKind::Aggregate(aggregate) => {
                self.binding(&aggregate.binders, |walk| {
                    if let AggregateOp::Sum(var) = &aggregate.op {
                        walk.var(var);
                    }
                    walk.cond(&aggregate.body);
                });
            }
            TermKind::Sum { first, rest } => {
                self.term(first);
                rest.iter().for_each(|(_, item)| self.term(item));
            }
            TermKind::Call(call) => self.call(call),
            TermKind::Int(_)
            | TermKind::Str(_)
            | TermKind::Bool(_)
            | TermKind::Decimal(_)
            | TermKind::Wildcard
            | TermKind::Error => {}
        }
    }

    fn path(&mut self, span: Span, root: Root, words: &[Ident]) {
        let start = span.start as usize;
        self.marks.uses(
            Span::new(start, start + root.word().len()),
            What::Variable(root),
        );
        let mut path = Vec::new();
        for word in words.iter().take(LONGEST) {
            path.push(word.text.clone());
            let path = path.clone();
            self.marks
                .uses(word.span, What::RequestField { root, path });
        }
    }
}
