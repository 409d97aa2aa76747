//! What can be done to a text at a place: every fix of a message, and a few rewritings.

mod extract;

use super::diagnostics::Findings;
use crate::builtin;
use crate::mark::{Root, What};
use crate::snapshot::{Snapshot, item_span, within};
use crate::walk::{self, Node};
use dogwood_compiler::explain::short_name;
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::ast::{
    CondKind, Effect, Expr, ExprKind, Item, MacroBody, Rule, Sigil, Temporal,
};
use dogwood_compiler::grammar::diagnostic::Edit;
use dogwood_compiler::schema::{EventId, FieldType};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// Mends what a message is about.
    Fix,
    Rewrite,
    Extract,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    pub title: String,
    pub kind: ActionKind,
    /// Of this document, applied together.
    pub edits: Vec<Edit>,
    /// The message it mends, as a position among the findings.
    pub mends: Option<usize>,
}

pub fn actions(snapshot: &Snapshot, findings: &Findings, range: Span) -> Vec<Action> {
    let mut found = Vec::new();
    if builtin::is(&snapshot.document.path) {
        return found;
    }
    for (at, diagnostic) in findings.diagnostics.iter().enumerate() {
        let meets = diagnostic.span.start <= range.end && range.start <= diagnostic.span.end;
        if let (true, Some(fix)) = (meets, &diagnostic.fix) {
            found.push(Action {
                title: fix.title.clone(),
                kind: ActionKind::Fix,
                edits: fix.edits.clone(),
                mends: Some(at),
            });
        }
    }
    // Where a message says the same, its own fix is enough.
    let mends = |code: &str| {
        let mut mended = found.iter().filter_map(|action| action.mends);
        mended.any(|at| findings.diagnostics.get(at).is_some_and(|d| d.code == code))
    };
    let wrap = !mends("free-variable");
    let test = !mends("unguarded-optional");
    found.extend(wrap_in_exists(snapshot, range).filter(|_| wrap));
    found.extend(guard(snapshot, range).filter(|_| test));
    found.extend(extract::extract(snapshot, range));
    found.extend(add_id(snapshot, range));
    found
}

fn rewriting(title: String, edits: Vec<Edit>) -> Action {
    Action {
        title,
        kind: ActionKind::Rewrite,
        edits,
        mends: None,
    }
}

/// Introduces a variable that nothing introduces, around the whole temporal condition it is in.
fn wrap_in_exists(snapshot: &Snapshot, range: Span) -> Option<Action> {
    let offset = range.start as usize;
    let mark = snapshot.document.mark_at(offset)?;
    let What::Local(local) = &mark.what else {
        return None;
    };
    let free = local.sigil == Sigil::Plain && !mark.defines && local.ty.is_none();
    let item = snapshot.item_at(offset)?;
    let mut body: Option<Span> = None;
    let mut inside: Option<&Temporal> = None;
    walk::item(item, &mut |node| {
        if let Node::Temporal(temporal) = node
            && within(mark.span, temporal.span)
        {
            inside = Some(temporal);
        }
    });
    if let Some(temporal) = inside {
        body = Some(temporal.body.span);
    } else if let Item::Macro(def) = item
        && let MacroBody::Cond(cond) = &def.body
    {
        body = Some(cond.span);
    }
    // Inside the call of a macro the name may be one that the macro introduces.
    if !free || local.binder != mark.span && in_call(item, mark.span) {
        return None;
    }
    let body = body?;
    let mut ty = String::from("String");
    walk::item(item, &mut |node| {
        if let Node::Matcher(matcher) = node {
            for field in matcher
                .fields()
                .filter(|field| within(mark.span, field.term.span))
            {
                let event = &matcher.event;
                let id = EventId {
                    action: dogwood_compiler::value::EntityUid::new(
                        event.ty.text(),
                        event.action.value.clone(),
                    ),
                    kind: event.kind.text.clone(),
                };
                let path: Vec<_> = field.path.iter().map(|word| word.text.clone()).collect();
                let derived = snapshot.setup.service.events.events.get(&id);
                match derived.and_then(|derived| derived.fields.get(&path)) {
                    Some(FieldType::Declared { ty: declared, .. }) => ty = declared.to_string(),
                    Some(FieldType::Scope(types)) => {
                        ty = types
                            .first()
                            .map_or_else(|| ty.clone(), |name| name.to_string());
                    }
                    Some(FieldType::Injected(name)) => ty = name.to_string(),
                    None => {}
                }
            }
        }
        if let Node::Cond(cond) = node
            && matches!(&cond.kind, CondKind::Tp(var) if var.span == mark.span)
        {
            ty = "Timepoint".to_owned();
        }
    });
    let name = &local.name;
    let before = format!("exists ({name}: {ty}). (");
    Some(rewriting(
        format!("wrap in `exists ({name}: {ty})`"),
        vec![
            Edit {
                span: Span::at(body.start as usize),
                text: before,
            },
            Edit {
                span: Span::at(body.end as usize),
                text: ")".to_owned(),
            },
        ],
    ))
}

fn in_call(item: &Item, place: Span) -> bool {
    let mut found = false;
    walk::item(item, &mut |node| {
        if let Node::Cond(cond) = node
            && matches!(cond.kind, CondKind::Call(_))
            && within(place, cond.span)
        {
            found = true;
        }
    });
    found
}

/// Tests that an optional field is there, before the comparison that reads it.
fn guard(snapshot: &Snapshot, range: Span) -> Option<Action> {
    let offset = range.start as usize;
    let mark = snapshot.document.mark_at(offset)?;
    let What::RequestField {
        root: root @ (Root::Context | Root::Principal | Root::Resource),
        path,
    } = &mark.what
    else {
        return None;
    };
    let (_, rule) = snapshot.rule_at(offset)?;
    let types = snapshot.field_types(Some(rule), *root, path);
    if !types.iter().any(|(_, required)| !required) {
        return None;
    }
    let item = snapshot.item_at(offset)?;
    // From the outside in: the last test around the field, and whether it stands under `||` or `!`.
    let mut atom: Option<&Expr> = None;
    let mut target: Option<&Expr> = None;
    let mut loose = false;
    walk::item(item, &mut |node| {
        let Node::Expr(expr) = node else { return };
        if !within(mark.span, expr.span) {
            return;
        }
        match &expr.kind {
            ExprKind::And(_) => loose = false,
            ExprKind::Or(_) | ExprKind::Not(_) | ExprKind::If { .. } => loose = true,
            ExprKind::Compare { .. }
            | ExprKind::In { .. }
            | ExprKind::Like { .. }
            | ExprKind::Is { .. }
            | ExprKind::Method { .. }
                if atom.is_none_or(|atom| !within(expr.span, atom.span)) =>
            {
                atom = Some(expr);
            }
            ExprKind::Attr { target: of, attr } if attr.span == mark.span => target = Some(of),
            _ => {}
        }
    });
    let (atom, target) = (atom?, target?);
    let attr = path.last()?;
    let test = format!("{} has {attr}", target.span.text(snapshot.text()));
    let open = if loose { "(" } else { "" };
    let mut edits = vec![Edit {
        span: Span::at(atom.span.start as usize),
        text: format!("{open}{test} && "),
    }];
    if loose {
        edits.push(Edit {
            span: Span::at(atom.span.end as usize),
            text: ")".to_owned(),
        });
    }
    Some(rewriting(format!("test first: `{test}`"), edits))
}

/// Gives a rule a name.
fn add_id(snapshot: &Snapshot, range: Span) -> Option<Action> {
    let (_, rule) = snapshot.rule_at(range.start as usize)?;
    // Anywhere in the rule would be too often: on its annotations, effect or head.
    let head = rule.span.start..=rule.scope.span.end;
    if rule.annotation("id").is_some() || !head.contains(&range.start) {
        return None;
    }
    let taken: Vec<&str> = snapshot
        .rules()
        .filter_map(|rule| rule.annotation("id"))
        .collect();
    let base = proposed(snapshot, rule);
    let mut name = base.clone();
    let mut number = 2;
    while taken.contains(&name.as_str()) {
        name = format!("{base}_{number}");
        number += 1;
    }
    let at = Span::at(rule.span.start as usize);
    let edit = Edit {
        span: at,
        text: format!("@id(\"{name}\")\n"),
    };
    Some(rewriting(format!("add `@id(\"{name}\")`"), vec![edit]))
}

/// `forbid_shell_spawn`.
fn proposed(snapshot: &Snapshot, rule: &Rule) -> String {
    let effect = match rule.effect {
        Effect::Permit => "permit",
        Effect::Forbid => "forbid",
    };
    let actions = snapshot.actions_of(Some(rule));
    let what = match actions.as_slice() {
        [only] => short_name(&only.uid),
        _ => "some".to_owned(),
    };
    let word: String = what
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    format!("{effect}_{word}")
}

/// Whether no message is about the statement: what is wrong should be mended before it is moved.
fn sound(snapshot: &Snapshot, item: &Item) -> bool {
    let errors = &snapshot.document.policy().errors;
    errors
        .iter()
        .all(|error| !within(error.span, item_span(item)))
}
