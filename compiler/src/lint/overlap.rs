//! Rules another rule of the set makes pointless.

use super::{Set, Subject};
use dogwood_grammar::ast::{Constraint, EntityRef, HeadRef};
use dogwood_grammar::diagnostic::Diagnostic;
use smol_str::SmolStr;

pub fn check(set: &mut Set) {
    let subjects = set.subjects;
    let any_permit = subjects.iter().any(Subject::permits);
    let plain: Vec<&Subject> = subjects.iter().filter(|s| s.unconditional()).collect();
    for subject in subjects {
        // A rule that decides nothing has been reported.
        if subject.checked.targets.is_empty() {
            continue;
        }
        let wider = plain
            .iter()
            .filter(|other| other.checked.index != subject.checked.index)
            .find_map(|other| Some((*other, shadow(subject, other)?)));
        match wider {
            Some((other, shadow)) => report(set, subject, other, shadow),
            None if !subject.permits() && any_permit => pointless(set, subject),
            None => {}
        }
    }
}

enum Shadow {
    /// An unconditional permit lets through what a temporal one would hold back.
    Bypassed(SmolStr),
    Permitted,
    Forbidden,
    AlsoForbidden,
}

fn shadow(subject: &Subject, wider: &Subject) -> Option<Shadow> {
    let mut heads = wider.heads.iter().zip(&subject.heads);
    if !heads.all(|(wide, narrow)| covers(*wide, *narrow)) {
        return None;
    }
    let targets = &subject.checked.targets;
    let all = targets.iter().all(|action| wider.decides(action));
    match (wider.permits(), subject.permits()) {
        (true, true) if !crate::check::leaves(&subject.checked.rule).is_empty() => {
            let open = targets.iter().find(|action| wider.decides(action))?;
            Some(Shadow::Bypassed(open.id.clone()))
        }
        (true, true) if all && later(subject, wider) => Some(Shadow::Permitted),
        (false, true) if all => Some(Shadow::Forbidden),
        (false, false) if all && later(subject, wider) => Some(Shadow::AlsoForbidden),
        _ => None,
    }
}

/// Of two rules without conditions that cover each other only the later one is pointless.
fn later(subject: &Subject, wider: &Subject) -> bool {
    let equal = subject.unconditional()
        && subject.checked.targets.len() == wider.checked.targets.len()
        && (subject.heads.iter().zip(&wider.heads)).all(|(wide, narrow)| covers(*wide, *narrow));
    !equal || subject.checked.index > wider.checked.index
}

fn report(set: &mut Set, subject: &Subject, other: &Subject, shadow: Shadow) {
    let span = subject.checked.rule.effect_span;
    let name = other.name();
    let said = match shadow {
        Shadow::Bypassed(action) => Diagnostic::warning(
            "temporal-bypassed",
            span,
            format!("this rule holds nothing back: {name} permits every `{action}` without a condition"),
        )
        .help("permits add up; take the other permit away, or turn this rule into a `forbid … unless temporal`"),
        Shadow::Permitted => Diagnostic::warning(
            "shadowed-rule",
            span,
            format!("this rule has no effect: {name} permits all of it without a condition"),
        )
        .help("permits add up; narrow the other one, or remove this one"),
        Shadow::Forbidden => Diagnostic::warning(
            "shadowed-rule",
            span,
            format!("this rule has no effect: {name} forbids all of it without a condition"),
        )
        .help("a forbid always wins over a permit; narrow it, or remove this rule"),
        Shadow::AlsoForbidden => Diagnostic::warning(
            "shadowed-rule",
            span,
            format!("this rule has no effect: {name} forbids all of it without a condition"),
        )
        .help("narrow the other one, or remove this one"),
    };
    let place = other.checked.rule.effect_span;
    set.say_with(
        subject,
        said,
        other,
        place,
        "without a condition".to_owned(),
    );
}

/// A forbid that no permit overlaps: what it forbids is denied anyway.
fn pointless(set: &mut Set, subject: &Subject) {
    let overlaps = subject.checked.targets.iter().any(|action| {
        set.permits_of(action)
            .any(|permit| meet(subject, permit) && !subject.facts.excludes(&permit.facts))
    });
    if !overlaps {
        let said = Diagnostic::warning(
            "forbid-without-permit",
            subject.checked.rule.effect_span,
            "no rule permits anything of what this one forbids",
        )
        .help("what no rule permits is denied anyway; is a permit missing, or does this rule name the wrong action?");
        set.say(subject, said);
    }
}

/// Whether one request can meet both heads.
fn meet(left: &Subject, right: &Subject) -> bool {
    left.heads.iter().zip(&right.heads).all(|heads| {
        let (Some(a), Some(b)) = heads else {
            return true;
        };
        match (a, b) {
            (Constraint::Eq(HeadRef::Entity(a)), Constraint::Eq(HeadRef::Entity(b))) => same(a, b),
            (Constraint::Eq(HeadRef::Entity(e)), Constraint::Is { ty, .. })
            | (Constraint::Is { ty, .. }, Constraint::Eq(HeadRef::Entity(e))) => {
                ty.text() == e.ty.text()
            }
            (Constraint::Is { ty: a, .. }, Constraint::Is { ty: b, .. }) => a.text() == b.text(),
            _ => true,
        }
    })
}

/// Whether whatever meets the second head meets the first.
fn covers(wide: Option<&Constraint>, narrow: Option<&Constraint>) -> bool {
    let Some(wide) = wide else {
        return true;
    };
    match (wide, narrow) {
        (Constraint::Any, _) => true,
        (_, None | Some(Constraint::Any)) => false,
        (Constraint::Is { ty, within: None }, Some(Constraint::Is { ty: other, .. })) => {
            ty.text() == other.text()
        }
        (Constraint::Is { ty, within: None }, Some(Constraint::Eq(HeadRef::Entity(entity)))) => {
            ty.text() == entity.ty.text()
        }
        (
            Constraint::In(HeadRef::Entity(group)),
            Some(
                Constraint::In(HeadRef::Entity(entity))
                | Constraint::Eq(HeadRef::Entity(entity))
                | Constraint::Is {
                    within: Some(HeadRef::Entity(entity)),
                    ..
                },
            ),
        ) => same(group, entity),
        (Constraint::Eq(HeadRef::Entity(a)), Some(Constraint::Eq(HeadRef::Entity(b)))) => {
            same(a, b)
        }
        _ => false,
    }
}

fn same(left: &EntityRef, right: &EntityRef) -> bool {
    left.id.value == right.id.value && left.ty.text() == right.ty.text()
}
