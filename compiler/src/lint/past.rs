//! Conditions about the past that the request meets by itself, or that the next event breaks.

use super::facts::{constant, field_path, words};
use super::reach::outcome;
use super::{Set, Subject, action_of, short};
use crate::schema::{EventId, FieldType};
use dogwood_grammar::ast::{Cond, CondKind, FieldPattern, Matcher, ScopeRoot, TermKind};
use dogwood_grammar::diagnostic::Diagnostic;

pub fn check(set: &mut Set, subject: &Subject) {
    for place in &subject.reading.places {
        match &place.cond.kind {
            CondKind::Formerly { body, .. } => vacuous(set, subject, body, "formerly"),
            CondKind::Since { right, .. } => vacuous(set, subject, right, "since"),
            _ => {}
        }
    }
    for leaf in crate::check::leaves(&subject.checked.rule) {
        crate::check::each_cond(&leaf.body, &mut |cond| {
            if let CondKind::Since { left, .. } = &cond.kind
                && set.service.events.events.len() > 1
                && let Some(matcher) = positive(left)
            {
                fragile(set, subject, matcher);
            }
        });
    }
}

/// `formerly` and the right side of `since` begin at the request itself.
fn vacuous(set: &mut Set, subject: &Subject, body: &Cond, operator: &str) {
    let matchers: Vec<&Matcher> = match &body.kind {
        CondKind::Match(matcher) => vec![matcher],
        CondKind::And(parts) => {
            let all = parts.iter().map(|part| match &part.kind {
                CondKind::Match(matcher) => Some(matcher),
                _ => None,
            });
            match all.collect() {
                Some(matchers) => matchers,
                None => return,
            }
        }
        _ => return,
    };
    let itself = |matcher: &&Matcher| matches_itself(set, subject, matcher);
    let (true, Some(first)) = (matchers.iter().all(itself), matchers.first()) else {
        return;
    };
    let name = short(first);
    let kind = &first.event.kind;
    let said = Diagnostic::warning(
        "self-match",
        first.event.span,
        format!("every `{name}` this rule decides matches this itself, so it always holds"),
    )
    .label(format!("`{operator}` begins at the request being decided"));
    let said = match outcome(set, first) {
        Some(outcome) if matchers.len() == 1 => said
            .help(format!("write `{outcome}` to ask for an earlier one that happened"))
            .fix(format!("change to `{outcome}`"), kind.span, outcome.as_str()),
        _ => said.help(
            "to look at earlier events only, name both moments: `exists (now: Timepoint). (tp(now) && \
             exists (then: Timepoint). (formerly within 1h (… && tp(then)) && then != now))`",
        ),
    };
    set.say(subject, said);
}

/// Whether the predicate matches every request the rule decides.
pub fn matches_itself(set: &Set, subject: &Subject, matcher: &Matcher) -> bool {
    let action = action_of(matcher);
    let id = EventId {
        action,
        kind: matcher.event.kind.text.clone(),
    };
    let Some(event) = set.service.events.events.get(&id) else {
        return false;
    };
    let required = |field: &FieldPattern| match event.fields.get(&field_path(field)) {
        Some(FieldType::Declared { required, .. }) => *required,
        Some(FieldType::Scope(_) | FieldType::Injected(_)) => true,
        None => false,
    };
    let evident = |field: &FieldPattern| {
        let path = field_path(field);
        match &field.term.kind {
            TermKind::Wildcard => required(field),
            TermKind::Context(asked) => words(asked) == path,
            TermKind::Scope { root, path: none } if none.is_empty() => match root {
                ScopeRoot::Principal => path == ["callerPrincipal"],
                ScopeRoot::Resource => path == ["callerResource"],
            },
            _ => constant(&field.term).is_some_and(|value| subject.facts.demands(&path, &value)),
        }
    };
    set.is_attempt(matcher)
        && subject.checked.targets.len() == 1
        && subject.decides(&id.action)
        && matcher.fields().all(evident)
}

/// A predicate each event since the anchor would have to match.
fn positive(left: &Cond) -> Option<&Matcher> {
    match &left.kind {
        CondKind::Match(matcher) => Some(matcher),
        CondKind::And(parts) => parts.iter().find_map(positive),
        CondKind::Exists { body, .. } => positive(body),
        _ => None,
    }
}

fn fragile(set: &mut Set, subject: &Subject, matcher: &Matcher) {
    let name = short(matcher);
    let said = Diagnostic::warning(
        "positive-since",
        matcher.event.span,
        format!("any other event ends this: everything since must be a `{name}`"),
    )
    .label("must match every event, its own response included")
    .help("what must not happen in between is written with `!` on the left of `since`; what must happen once, with `formerly`");
    set.say(subject, said);
}
