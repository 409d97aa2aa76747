//! Why a request was denied, and what would have let it through.
//!
//! The monitor knows which leaves decided, the stamps their windows hold and the last events of each kind.
//! From these the deciding parts of each leaf get their witness: the event that made a part true, or the
//! nearest one that failed. A part whose shape has no words of its own is shown as a sentence.

mod happened;
mod missing;

use super::claim::Group;
use super::noun::Noun;
use super::pattern::{Bound, Outcome, Pattern, show};
use super::scene::{Meaning, Scene, open, settle};
use super::witness::{Seen, Witness};
use super::{Speech, action_name, permits, words};
use crate::check::leaves;
use crate::diagnostic::printable;
use crate::event::Event;
use crate::grammar::ast::*;
use crate::monitor::{self, Decision, LeafReport, Monitor, Recent};
use crate::value::Value;
use smol_str::SmolStr;
use std::sync::Arc;

/// A rule of the policy the monitor runs, macros written out, and what to call it: its `@id` or its place.
#[derive(Clone, Debug)]
pub struct NamedRule {
    pub rule: Rule,
    pub name: String,
}

/// More rows than this, and the time of a retry is not looked for: it means trying.
const ROWS_TO_TRY: usize = 10_000;
/// Events of the past looked through for the nearest.
const LOOKED_AT: usize = 2000;
/// At most so many forbidding rules are spoken of.
const RULES: usize = 3;

/// The reasons of a denial. `event` must be the last the monitor took in, `decision` its decision, and
/// `rules` those its policy was compiled from, in order. Nothing for an allowance.
pub fn why(
    rules: &[NamedRule],
    monitor: &Monitor,
    event: &Event,
    decision: &Decision,
) -> Vec<Witness> {
    let case = Case {
        rules,
        monitor,
        event,
        recent: monitor.recent(event),
        others: Vec::new(),
        whole: false,
    };
    reasons(&case, decision)
}

/// The same, knowing everything that happened before the event, and not only what a monitor keeps of it.
pub fn why_after(
    rules: &[NamedRule],
    monitor: &Monitor,
    past: &[Event],
    event: &Event,
    decision: &Decision,
) -> Vec<Witness> {
    if decision.allowed() {
        return Vec::new();
    }
    let forgetful = past.len() > LOOKED_AT;
    let pin = monitor.policy().service().events.universal_pin.as_ref();
    let key = |event: &Event| pin.and_then(|pin| at(event, &pin.field).cloned());
    let all = past.iter().enumerate().rev().take(LOOKED_AT).rev();
    let all = all.map(|(position, event)| Recent {
        position: i64::try_from(position).unwrap_or(i64::MAX),
        event: Arc::new(event.clone()),
        forgetful,
    });
    let own = key(event);
    let (recent, others) = all.partition(|recent: &Recent| key(&recent.event) == own);
    let case = Case {
        rules,
        monitor,
        event,
        recent,
        others,
        whole: !forgetful,
    };
    reasons(&case, decision)
}

fn reasons(case: &Case<'_>, decision: &Decision) -> Vec<Witness> {
    if decision.allowed() {
        return Vec::new();
    }
    let Case {
        rules,
        monitor,
        event,
        ..
    } = *case;
    let mut found = Vec::new();
    let deciding: Vec<(usize, &NamedRule)> = decision
        .rules
        .iter()
        .filter_map(|number| Some((*number, rules.get(*number)?)))
        .collect();
    for (number, named) in deciding.iter().take(RULES) {
        if deciding.len() > 1 {
            found.push(Witness::Rule(named.name.clone()));
        }
        case.forbidden(*number, &named.rule, &mut found);
    }
    if deciding.is_empty() {
        found.extend(decision.errors.iter().map(|error| {
            Witness::Broken {
                rule: error
                    .rule
                    .and_then(|number| rules.get(number))
                    .map(|named| named.name.clone()),
                reason: error.error.to_string(),
            }
        }));
        if decision.errors.iter().all(|error| error.rule.is_some()) {
            permits::nearest(case, &mut found);
        }
    }
    if monitor.size().rows <= ROWS_TO_TRY
        && let Some(seconds) = monitor.retry_after(event)
    {
        found.push(Witness::AllowedIn { seconds });
    }
    found
}

/// A denial under examination.
pub(super) struct Case<'a> {
    pub rules: &'a [NamedRule],
    pub monitor: &'a Monitor,
    pub event: &'a Event,
    /// In order of arrival.
    pub recent: Vec<Recent>,
    /// What happened in other partitions, as far as it is known.
    pub others: Vec<Recent>,
    /// `recent` is all of the past.
    pub whole: bool,
}

/// One leaf of a rule that decided.
struct LeafCase<'a, 'c> {
    case: &'c Case<'a>,
    speech: &'c Speech<'a>,
    report: Option<&'c LeafReport>,
    /// The whole leaf, for what it demands of its variables.
    body: &'c Cond,
    /// Variables that this request gives their values.
    known: Bound,
}

impl<'a> Case<'a> {
    pub fn speech(&self, rule: &Rule) -> Speech<'a> {
        Speech::new(rule, self.monitor.policy().service())
    }

    fn forbidden(&self, number: usize, rule: &Rule, found: &mut Vec<Witness>) {
        let speech = self.speech(rule);
        let leaves = leaves(rule);
        if leaves.is_empty() {
            found.push(Witness::Because(speech.guard(rule)));
            return;
        }
        let reports = self.monitor.report(self.event, number);
        let before = found.len();
        for (at, temporal) in leaves.into_iter().enumerate() {
            let report = reports.get(at);
            // A rule that forbids holds as a whole: what its leaf is now, it must not be.
            let wanted = match (asked_for(rule, temporal), report) {
                (Some(holds), _) => !holds,
                (None, Some(report)) => !report.truth,
                (None, None) => continue,
            };
            if report.is_some_and(|report| report.truth == wanted) {
                continue;
            }
            self.leaf(&speech, temporal, wanted, report, found);
        }
        if found.len() == before {
            found.push(Witness::Because(speech.guard(rule)));
        }
    }

    /// Why a leaf is not what is wanted.
    pub fn leaf(
        &self,
        speech: &Speech<'a>,
        temporal: &Temporal,
        wanted: bool,
        report: Option<&LeafReport>,
        found: &mut Vec<Witness>,
    ) {
        let leaf = LeafCase {
            case: self,
            speech,
            report,
            body: &temporal.body,
            known: Bound::new(),
        };
        let before = found.len();
        leaf.part(&temporal.body, wanted, &mut Scene::default(), found);
        if found.len() == before {
            leaf.plainly(&temporal.body, wanted, &mut Scene::default(), found);
        }
    }

    pub fn now(&self) -> i64 {
        self.event.time
    }

    /// Idle partitions are forgotten, so that nothing is known of their past.
    fn is_partitioned(&self) -> bool {
        self.monitor
            .policy()
            .service()
            .events
            .universal_pin
            .is_some()
    }

    fn seen(&self, event: &Event) -> Seen {
        Seen {
            what: name_of(event),
            time: event.time,
            age: self.now().saturating_sub(event.time),
        }
    }

    /// The last events of a kind before this one, newest first.
    fn newest<'r>(
        &'r self,
        pattern: &Pattern<'_>,
    ) -> impl Iterator<Item = &'r Recent> + use<'r, 'a> {
        let id = pattern.event();
        self.recent
            .iter()
            .rev()
            .filter(move |recent| recent.event.action == id.action && recent.event.kind == id.kind)
    }
}

impl<'c> LeafCase<'_, 'c> {
    /// Why a part of the leaf is not what is wanted.
    fn part<'t>(
        &self,
        cond: &'t Cond,
        wanted: bool,
        scene: &mut Scene<'t>,
        found: &mut Vec<Witness>,
    ) {
        let depth = scene.vars.len();
        match &cond.kind {
            CondKind::Not(inner) => self.part(inner, !wanted, scene, found),
            CondKind::And(_) | CondKind::Exists { .. } => {
                if self.tells_apart(cond, scene) {
                    let mut parts = Vec::new();
                    open(cond, depth, scene, &mut parts);
                    let parts = settle(self.speech, parts, depth, true, scene);
                    for part in self.failing(parts, wanted) {
                        self.part(part, wanted, scene, found);
                    }
                } else if !(wanted && self.joined(cond, scene, found)) {
                    self.plainly(cond, wanted, scene, found);
                }
            }
            CondKind::Previous { window, body } => {
                self.plainly(cond, wanted, scene, found);
                if let (true, Some(window)) = (self.case.whole, window.seconds()) {
                    self.just_before(body, window, wanted, found);
                }
            }
            CondKind::Formerly { window, body } => {
                let noun = self.speech.noun_of(body, scene);
                scene.vars.truncate(depth);
                match (noun, window.seconds()) {
                    (Some(noun), Some(window)) if wanted => {
                        self.missing(cond, &noun, body, None, window, found)
                    }
                    (Some(noun), Some(window)) => self.happened(
                        cond,
                        &format!("{} in {}", noun.one(), words::last(window)),
                        body,
                        found,
                    ),
                    (None, Some(window)) if wanted => {
                        self.plainly(cond, wanted, scene, found);
                        self.not_then(body, window, scene, found);
                    }
                    _ => self.plainly(cond, wanted, scene, found),
                }
            }
            CondKind::Since {
                left,
                window,
                right,
            } => {
                let anchor = self.speech.noun_of(right, scene);
                let breaks = match &left.kind {
                    CondKind::Not(broken_by) => self
                        .speech
                        .noun_of(broken_by, scene)
                        .map(|noun| (noun, &**broken_by)),
                    _ => None,
                };
                scene.vars.truncate(depth);
                match (anchor, breaks, window.seconds()) {
                    (Some(anchor), Some(breaks), Some(window)) if wanted => {
                        self.missing(cond, &anchor, right, Some(breaks), window, found);
                    }
                    (Some(anchor), Some((breaks, _)), Some(window)) => {
                        let what = format!(
                            "{} in {}, and {} since",
                            anchor.one(),
                            words::last(window),
                            breaks.none()
                        );
                        self.happened(cond, &what, right, found);
                    }
                    _ => self.plainly(cond, wanted, scene, found),
                }
            }
            CondKind::Compare { op, left, right } => {
                if !self.total(*op, left, right, wanted, scene, found) {
                    self.plainly(cond, wanted, scene, found);
                }
            }
            _ => self.plainly(cond, wanted, scene, found),
        }
        scene.vars.truncate(depth);
    }

    /// Whether the parts of a conjunction can be judged one by one.
    fn tells_apart<'t>(&self, cond: &'t Cond, scene: &mut Scene<'t>) -> bool {
        let depth = scene.vars.len();
        let is_event = self.speech.noun_of(cond, scene).is_some();
        scene.vars.truncate(depth);
        if is_event {
            return false;
        }
        let mut parts = Vec::new();
        open(cond, depth, scene, &mut parts);
        let parts = settle(self.speech, parts, depth, true, scene);
        // Variables that several parts share tie them together; one that is an aggregate does not.
        let shared = scene
            .vars
            .iter()
            .skip(depth)
            .any(|var| !matches!(var.meaning, Meaning::Is(_) | Meaning::Now));
        scene.vars.truncate(depth);
        parts.len() == 1 || !shared
    }

    /// Of the parts that must all hold, those that do not; of parts one of which must not, all.
    fn failing<'t>(&self, parts: Vec<&'t Cond>, wanted: bool) -> Vec<&'t Cond> {
        if !wanted {
            return parts;
        }
        let fails: Vec<&Cond> = parts
            .iter()
            .copied()
            .filter(|part| self.holds(part) == Some(false))
            .collect();
        if fails.is_empty() {
            parts
                .into_iter()
                .filter(|part| self.holds(part) != Some(true))
                .collect()
        } else {
            fails
        }
    }

    fn holds(&self, part: &Cond) -> Option<bool> {
        match &part.kind {
            CondKind::Not(inner) => self.holds(inner).map(|holds| !holds),
            CondKind::Formerly { .. } | CondKind::Since { .. } | CondKind::Previous { .. } => {
                self.witness(part.span).map(|witness| witness.holds)
            }
            _ => None,
        }
    }

    fn witness(&self, span: crate::grammar::Span) -> Option<&'c monitor::Witness> {
        self.report?
            .witnesses
            .iter()
            .find(|witness| witness.span == span)
    }

    /// The part as a sentence.
    fn plainly<'t>(
        &self,
        cond: &'t Cond,
        wanted: bool,
        scene: &mut Scene<'t>,
        found: &mut Vec<Witness>,
    ) {
        let said = self.speech.cond(cond, true, scene).say();
        found.push(if wanted {
            Witness::Needs(said)
        } else {
            Witness::Because(said)
        });
    }

    fn pattern<'t>(&'t self, body: &'t Cond) -> Option<Pattern<'t>> {
        Pattern::of(body, self.body, self.case.event, &self.known)
    }
}

/// A field of what is known of an event.
fn at<'e>(event: &'e Event, path: &[SmolStr]) -> Option<&'e Value> {
    let (first, rest) = path.split_first()?;
    let rest: Vec<&str> = rest.iter().map(SmolStr::as_str).collect();
    event.logged.get(first)?.at(&rest)
}

/// Whether the rule asks for the leaf to hold or not to hold; nothing where that depends.
pub(super) fn asked_for(rule: &Rule, temporal: &Temporal) -> Option<bool> {
    rule.clauses.iter().find_map(|clause| {
        let when = clause.kind == ClauseKind::When;
        match &clause.body {
            ClauseBody::Temporal(own) => std::ptr::eq(own, temporal).then_some(when),
            ClauseBody::Expr(expr) => sign(expr, when, temporal),
        }
    })
}

fn sign(expr: &Expr, holds: bool, temporal: &Temporal) -> Option<bool> {
    match &expr.kind {
        ExprKind::Temporal(own) => std::ptr::eq(&**own, temporal).then_some(holds),
        ExprKind::Not(inner) => sign(inner, !holds, temporal),
        ExprKind::And(parts) if holds => parts.iter().find_map(|part| sign(part, holds, temporal)),
        ExprKind::Or(parts) if !holds => parts.iter().find_map(|part| sign(part, holds, temporal)),
        _ => None,
    }
}

/// What people call an event: the command, the path, the host; else its action and kind.
pub(super) fn name_of(event: &Event) -> String {
    let action = action_name(&event.action.ty, &event.action.id);
    let input = event.logged.get("input");
    let field = |name: &str| match input.and_then(|input| input.at(&[name])) {
        Some(Value::String(text)) if !text.is_empty() => Some(shortened(text)),
        _ => None,
    };
    if let Some(command) = field("command") {
        return format!("`{command}`");
    }
    if let Some(host) = field("host") {
        return format!(
            "`{action}` to `{host}{}`",
            field("path").unwrap_or_default()
        );
    }
    if let Some(path) = field("path") {
        return format!("`{action}` of `{path}`");
    }
    if let (Some(server), Some(method)) = (field("server"), field("method")) {
        return format!("`{}` on server `{server}`", field("tool").unwrap_or(method));
    }
    format!("{} `{action}` {}", words::article(&action), event.kind)
}

/// One line of at most 60 characters.
pub(super) fn shortened(text: &str) -> String {
    let text = text.replace(['\n', '\t', '`'], " ");
    let mut out: String = printable(&text).chars().take(60).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests;
