//! Warnings about rules that are correct, but hardly mean what their author thinks.
//!
//! ```text
//! facts    what a rule's conditions demand of a request: constants by context path
//! places   the temporal conditions that are tested at the request, and which way each one pulls
//! ─ allow     `@allow("code")`, and codes it names that do not exist
//! ─ reach     events no rule lets happen, rules that meet nothing
//! ─ overlap   rules another rule makes pointless
//! ─ count     what a count counts, and where a cap ends
//! ─ past      conditions that hold because of the request itself, or break at once
//! ─ absent    `!=` on what may be absent
//! ─ grants    broad permits of a box
//! ─ ids       two rules of one name
//! ─ pins      pins that are no partition (event schema)
//! ```
//!
//! A lint that cries wolf is worse than none: each fires only where the whole set shows the mistake, and
//! stays silent where a condition cannot be read.

mod absent;
mod allow;
mod count;
mod facts;
mod grants;
mod ids;
mod overlap;
mod past;
mod pins;
mod places;
mod reach;

pub(crate) use allow::{allowed, silence};
pub(crate) use pins::pins;

use crate::compile::CheckedRule;
use crate::macros::CallSite;
use crate::schema::Service;
use dogwood_grammar::Span;
use dogwood_grammar::ast::{Constraint, Effect, Matcher, ScopeVar};
use dogwood_grammar::diagnostic::{Diagnostic, Label};
use facts::Facts;
use places::Reading;
use smol_str::SmolStr;
use std::collections::BTreeMap;

use crate::value::EntityUid;

/// What is said of rules that do nothing at all; the lints pass over them.
const NOTHING: [&str; 1] = ["never-applies"];

/// Whether a rule does nothing, by what the checks said.
pub(crate) fn does_nothing(checked: &CheckedRule, said: &[Diagnostic]) -> bool {
    let rule = checked.rule.span;
    said.iter().any(|d| {
        NOTHING.contains(&d.code)
            && d.source == checked.source
            && rule.start <= d.span.start
            && d.span.end <= rule.end
    })
}

/// A rule with what the lints need to know about it.
pub(crate) struct Subject<'a> {
    pub checked: &'a CheckedRule,
    /// The text its spans belong to.
    pub text: &'a str,
    pub calls: &'a [CallSite],
    /// What it asks of the principal and of the resource.
    heads: [Option<&'a Constraint>; 2],
    facts: Facts<'a>,
    reading: Reading<'a>,
}

impl<'a> Subject<'a> {
    pub fn new(checked: &'a CheckedRule, text: &'a str, calls: &'a [CallSite]) -> Subject<'a> {
        Subject {
            checked,
            text,
            calls,
            heads: [ScopeVar::Principal, ScopeVar::Resource].map(|var| {
                let head = checked.rule.scope.head(var);
                head.map(|head| &head.constraint)
            }),
            facts: Facts::of(&checked.rule),
            reading: Reading::of(&checked.rule),
        }
    }

    fn permits(&self) -> bool {
        self.checked.rule.effect == Effect::Permit
    }

    /// Whether the rule has no condition beside its head.
    fn unconditional(&self) -> bool {
        self.checked.rule.clauses.is_empty()
    }

    fn decides(&self, action: &EntityUid) -> bool {
        self.checked.targets.contains(action)
    }

    /// Its `@id` in quotes, or which rule of the set it is.
    fn name(&self) -> String {
        match self.checked.rule.annotation("id").map(str::trim) {
            Some(id) if !id.is_empty() => format!("`{id}`"),
            _ => format!("rule {}", self.checked.index),
        }
    }
}

/// Everything the lints look at, and what they found.
pub(crate) struct Set<'a> {
    subjects: &'a [Subject<'a>],
    service: &'a Service,
    /// The permits that can decide an action, by position.
    permits: BTreeMap<&'a EntityUid, Vec<usize>>,
    found: Vec<Diagnostic>,
}

/// All warnings about a set of rules without errors, in any order.
pub(crate) fn lint<'a>(subjects: &'a [Subject<'a>], service: &'a Service) -> Vec<Diagnostic> {
    let mut permits: BTreeMap<&EntityUid, Vec<usize>> = BTreeMap::new();
    for (at, subject) in subjects.iter().enumerate() {
        if subject.permits() {
            for action in &subject.checked.targets {
                permits.entry(action).or_default().push(at);
            }
        }
    }
    let mut set = Set {
        subjects,
        service,
        permits,
        found: Vec::new(),
    };
    ids::check(&mut set);
    overlap::check(&mut set);
    for subject in subjects {
        reach::check(&mut set, subject);
        count::check(&mut set, subject);
        past::check(&mut set, subject);
        absent::check(&mut set, subject);
        grants::check(&mut set, subject);
    }
    set.found
}

impl<'a> Set<'a> {
    fn say(&mut self, subject: &Subject, diagnostic: Diagnostic) {
        self.found.push(placed(subject, diagnostic));
    }

    /// The same with a second place, in another rule.
    fn say_with(
        &mut self,
        subject: &Subject,
        diagnostic: Diagnostic,
        other: &Subject,
        span: Span,
        text: String,
    ) {
        let mut diagnostic = placed(subject, diagnostic);
        diagnostic.labels.push(Label {
            source: other.checked.source,
            span,
            text,
        });
        self.found.push(diagnostic);
    }

    fn permits_of(&self, action: &EntityUid) -> impl Iterator<Item = &'a Subject<'a>> {
        let subjects = self.subjects;
        self.permits
            .get(action)
            .into_iter()
            .flatten()
            .filter_map(move |at| subjects.get(*at))
    }

    /// Whether an event of this kind is decided, so that it is in the history whatever became of it.
    fn is_attempt(&self, matcher: &Matcher) -> bool {
        self.service
            .events
            .decision_kinds
            .contains(&matcher.event.kind.text)
    }
}

fn placed(subject: &Subject, diagnostic: Diagnostic) -> Diagnostic {
    crate::compile::about_call(diagnostic, subject.calls).in_source(subject.checked.source)
}

/// The action a predicate names.
fn action_of(matcher: &Matcher) -> EntityUid {
    EntityUid::new(matcher.event.ty.text(), matcher.event.action.value.clone())
}

/// `mcp:call`, as messages name an action.
fn short(matcher: &Matcher) -> &SmolStr {
    &matcher.event.action.value
}

/// The only place of `wanted` between two spans of a text: an operator has no span of its own.
fn between(text: &str, left: Span, right: Span, wanted: &str) -> Option<Span> {
    let from = left.end.min(right.end) as usize;
    let gap = text.get(from..right.start.max(left.start) as usize)?;
    let mut places = gap.match_indices(wanted);
    let (at, _) = places.next()?;
    let only = places.next().is_none() && !gap.contains("//");
    only.then(|| Span::new(from + at, from + at + wanted.len()))
}
