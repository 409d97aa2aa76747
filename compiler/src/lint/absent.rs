//! `!=` on what may be absent: an absent value is neither equal nor unequal to anything.

use super::facts::{field_path, words};
use super::{Set, Subject, action_of, between};
use crate::schema::{EventId, FieldType, RecordType, Type};
use dogwood_grammar::Span;
use dogwood_grammar::ast::{CompareOp, Cond, CondKind, ScopeRoot, Temporal, Term, TermKind};
use dogwood_grammar::diagnostic::{Diagnostic, Edit, Fix};
use smol_str::SmolStr;

pub fn check(set: &mut Set, subject: &Subject) {
    for leaf in crate::check::leaves(&subject.checked.rule) {
        crate::check::each_cond(&leaf.body, &mut |cond| {
            if let CondKind::Compare {
                op: CompareOp::Ne,
                left,
                right,
            } = &cond.kind
            {
                for side in [left, right] {
                    unequal(set, subject, leaf, cond, side, (left.span, right.span));
                }
            }
        });
    }
}

fn unequal(
    set: &mut Set,
    subject: &Subject,
    leaf: &Temporal,
    cond: &Cond,
    side: &Term,
    sides: (Span, Span),
) {
    let written = side.span.text(subject.text).to_owned();
    let said = |message| Diagnostic::warning("absent-unequal", side.span, message);
    match &side.kind {
        TermKind::Context(path) if in_context(set, subject, &words(path)) => {
            let said = said(format!("where `{written}` is absent, this is false"))
                .help("write `!(… == …)` to include requests without it");
            set.say(
                subject,
                Diagnostic {
                    fix: negated(subject, cond, sides),
                    ..said
                },
            );
        }
        TermKind::Scope { root, path } if in_scope(set, subject, *root, &words(path)) => {
            let said = said(format!("where `{written}` is absent, this is false"))
                .help("write `!(… == …)` to include requests without it");
            set.say(
                subject,
                Diagnostic {
                    fix: negated(subject, cond, sides),
                    ..said
                },
            );
        }
        TermKind::Var(var) => {
            if let Some((action, field)) = bound_by(set, leaf, &var.name) {
                set.say(
                    subject,
                    said(format!("a `{action}` without `{field}` is passed over here"))
                        .help("a predicate that names a field does not match events without it; write `!` around a predicate with the value itself to include them"),
                );
            }
        }
        _ => {}
    }
}

fn negated(subject: &Subject, cond: &Cond, sides: (Span, Span)) -> Option<Fix> {
    let operator = between(subject.text, sides.0, sides.1, "!=")?;
    let insert = |at: u32, text: &str| Edit {
        span: Span { start: at, end: at },
        text: text.to_owned(),
    };
    Some(Fix {
        title: "include what is absent".to_owned(),
        edits: vec![
            insert(cond.span.start, "!("),
            Edit {
                span: operator,
                text: "==".to_owned(),
            },
            insert(cond.span.end, ")"),
        ],
    })
}

fn in_context(set: &Set, subject: &Subject, path: &[SmolStr]) -> bool {
    subject.checked.targets.iter().any(|action| {
        let applies = set.service.actions.actions.get(action);
        let applies = applies.and_then(|action| action.applies_to.as_ref());
        applies.is_some_and(|applies| optional(&applies.context, path))
    })
}

fn in_scope(set: &Set, subject: &Subject, root: ScopeRoot, path: &[SmolStr]) -> bool {
    let schema = &set.service.actions;
    let applies = subject
        .checked
        .targets
        .iter()
        .filter_map(|action| schema.actions.get(action)?.applies_to.as_ref());
    let types = applies.flat_map(|applies| match root {
        ScopeRoot::Principal => &applies.principals,
        ScopeRoot::Resource => &applies.resources,
    });
    types
        .filter_map(|ty| schema.entity_types.get(ty))
        .any(|entity| optional(&entity.attrs, path))
}

/// Whether some step of the path may be missing.
fn optional(record: &RecordType, path: &[SmolStr]) -> bool {
    let Some((first, rest)) = path.split_first() else {
        return false;
    };
    match record.attrs.get(first) {
        None => false,
        Some(attr) if !attr.required => true,
        Some(attr) => match &attr.ty {
            Type::Record(inner) => optional(inner, rest),
            _ => false,
        },
    }
}

/// The action and field a variable gets its value from, where only fields bind it that may be absent.
fn bound_by(set: &Set, leaf: &Temporal, name: &SmolStr) -> Option<(SmolStr, String)> {
    let mut found = None;
    let mut sure = false;
    crate::check::each_cond(&leaf.body, &mut |cond| {
        let CondKind::Match(matcher) = &cond.kind else {
            return;
        };
        for field in matcher.fields() {
            if !matches!(&field.term.kind, TermKind::Var(var) if var.name == *name) {
                continue;
            }
            let id = EventId {
                action: action_of(matcher),
                kind: matcher.event.kind.text.clone(),
            };
            let path = field_path(field);
            let event = set.service.events.events.get(&id);
            match event.and_then(|event| event.fields.get(&path)) {
                // Outcomes have their output.
                Some(FieldType::Declared {
                    required: false, ..
                }) if path.first().is_some_and(|group| group != "output") => {
                    found = Some((id.action.id, path.join(".")));
                }
                _ => sure = true,
            }
        }
    });
    found.filter(|_| !sure)
}
