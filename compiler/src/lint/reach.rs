//! What can never happen: events no rule lets happen, and predicates the request can never match.

use super::facts::{constant, field_path};
use super::{Set, Subject, action_of, past, short};
use crate::schema::EventId;
use dogwood_grammar::ast::{CondKind, Effect, Matcher};
use dogwood_grammar::diagnostic::Diagnostic;
use smol_str::SmolStr;

pub fn check(set: &mut Set, subject: &Subject) {
    for matcher in subject.reading.prerequisites() {
        if !set.is_attempt(matcher) {
            unreachable(set, subject, matcher);
        } else if !past::matches_itself(set, subject, matcher) {
            attempt(set, subject, matcher);
        }
    }
    for place in &subject.reading.places {
        if let CondKind::Match(matcher) = &place.cond.kind {
            never_now(set, subject, matcher);
        }
    }
}

/// The rule waits for an outcome of an action that is always denied.
fn unreachable(set: &mut Set, subject: &Subject, matcher: &Matcher) {
    if set.permits.is_empty() {
        return;
    }
    let action = action_of(matcher);
    let known = set.permits_of(&action).next().is_some();
    // A permit cannot be the first to permit what it waits for.
    let possible = |permit: &Subject| {
        permit.checked.index != subject.checked.index && !permit.facts.contradicts(matcher)
    };
    if set.permits_of(&action).any(possible) {
        return;
    }
    let effect = match subject.checked.rule.effect {
        Effect::Permit => "this permit can never take effect",
        Effect::Forbid => "the exception of this forbid can never take effect",
    };
    let name = short(matcher);
    let message = match known {
        true => format!("{effect}: no other rule permits such a `{name}`"),
        false => format!("{effect}: no rule permits `{name}`"),
    };
    let kind = &matcher.event.kind.text;
    let help = match refused(set, matcher) {
        Some((field, value)) if known => {
            format!(
                "no permit of `{name}` lets `{field}` be {value}, so there is never such a `{kind}`"
            )
        }
        _ => format!("what is denied has no `{kind}`; permit such a `{name}` in a rule of its own"),
    };
    let span = matcher.event.action.span;
    let said = Diagnostic::warning("unreachable-prerequisite", span, message).help(help);
    set.say(subject, said);
}

/// A field of a predicate that every permit of its action rules out.
fn refused(set: &Set, matcher: &Matcher) -> Option<(String, String)> {
    let action = action_of(matcher);
    matcher.fields().find_map(|field| {
        let value = constant(&field.term)?;
        let path = field_path(field);
        let out = set
            .permits_of(&action)
            .all(|permit| permit.facts.rules_out(&path, &value));
        let shown = match value {
            super::facts::Constant::Bool(b) => format!("`{b}`"),
            super::facts::Constant::Int(n) => format!("`{n}`"),
            super::facts::Constant::Str(text) => format!("{:?}", text.as_str()),
            super::facts::Constant::Entity(uid) => format!("{:?}", uid.id.as_str()),
        };
        out.then(|| (path.join("."), shown))
    })
}

/// A denied attempt is in the history as well, and opens the rule.
fn attempt(set: &mut Set, subject: &Subject, matcher: &Matcher) {
    let Some(outcome) = outcome(set, matcher) else {
        return;
    };
    let kind = &matcher.event.kind;
    let name = short(matcher);
    let said = Diagnostic::warning(
        "attempt-as-precondition",
        kind.span,
        format!("a `{name}` that was denied meets this, too"),
    )
    .label("every attempt, allowed or not")
    .help(format!("write `{outcome}` to ask that it happened"))
    .fix(
        format!("change to `{outcome}`"),
        kind.span,
        outcome.as_str(),
    );
    set.say(subject, said);
}

/// The kind of event that says an action was allowed and ended, if it has the fields that are asked for.
pub fn outcome(set: &Set, matcher: &Matcher) -> Option<SmolStr> {
    let id = EventId {
        action: action_of(matcher),
        kind: SmolStr::new_static("response"),
    };
    let event = set.service.events.events.get(&id)?;
    let has = matcher
        .fields()
        .all(|field| event.fields.contains_key(&field_path(field)));
    let decided = set.service.events.decision_kinds.contains(&id.kind);
    (has && !decided).then_some(id.kind)
}

/// Outside `formerly`, `previous` and `since` a predicate is about the request itself.
fn never_now(set: &mut Set, subject: &Subject, matcher: &Matcher) {
    if subject.checked.targets.is_empty() {
        return;
    }
    let action = action_of(matcher);
    let (span, why) = if !set.is_attempt(matcher) {
        let kind = &matcher.event.kind;
        (kind.span, format!("which is never a `{}`", kind.text))
    } else if !subject.decides(&action) {
        let why = format!("and this rule decides no `{}`", action.id);
        (matcher.event.action.span, why)
    } else {
        return;
    };
    let said = Diagnostic::warning(
        "never-now",
        span,
        format!("this predicate is about the request being decided, {why}"),
    )
    .help("to look back, write `formerly within 1h …` in front of it");
    set.say(subject, said);
}
