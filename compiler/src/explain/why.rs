//! Why a request was denied, and what would have let it through.
//!
//! The monitor knows which leaves decided, the stamps their windows hold and the last events of each kind.
//! From these the deciding parts of each leaf get their witness: the event that made a part true, or the
//! nearest one that failed. A part whose shape has no words of its own is shown as a sentence.

use super::noun::Noun;
use super::pattern::{Outcome, Pattern};
use super::scene::{Meaning, Scene, open, settle};
use super::witness::{Seen, Witness};
use super::{Speech, action_name, permits, words};
use crate::check::leaves;
use crate::diagnostic::printable;
use crate::event::Event;
use crate::grammar::ast::*;
use crate::monitor::{self, Decision, LeafReport, Monitor, Recent};
use crate::value::Value;

/// A rule of the policy the monitor runs, macros written out, and what to call it: its `@id` or its place.
#[derive(Clone, Debug)]
pub struct NamedRule {
    pub rule: Rule,
    pub name: String,
}

/// More rows than this, and the time of a retry is not looked for: it means trying.
const ROWS_TO_TRY: usize = 10_000;
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
    if decision.allowed() {
        return Vec::new();
    }
    let case = Case {
        rules,
        monitor,
        event,
        recent: monitor.recent(event),
    };
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
            permits::nearest(&case, &mut found);
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
}

/// One leaf of a rule that decided.
struct LeafCase<'a, 'c> {
    case: &'c Case<'a>,
    speech: &'c Speech<'a>,
    report: Option<&'c LeafReport>,
    /// The whole leaf, for what it demands of its variables.
    body: &'c Cond,
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
                } else {
                    self.plainly(cond, wanted, scene, found);
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

    /// Something should have happened and has not, or has been undone.
    fn missing(
        &self,
        cond: &Cond,
        noun: &Noun,
        body: &Cond,
        breaks: Option<(Noun, &Cond)>,
        window: i64,
        found: &mut Vec<Witness>,
    ) {
        let mut needs = format!("{} in {}", noun.one(), words::last(window));
        if let Some((breaks, _)) = &breaks {
            needs.push_str(&format!(", and {} since", breaks.none()));
        }
        found.push(Witness::Needs(needs));
        let case = self.case;
        let witness = self.witness(cond.span);
        let Some(pattern) = Pattern::of(body, self.body, case.event) else {
            return;
        };
        let mut hit: Option<&Recent> = None;
        let mut near = None;
        let mut forgetful = false;
        for recent in case.newest(&pattern) {
            forgetful = recent.forgetful;
            match pattern.matches(&recent.event) {
                Outcome::Hit => {
                    hit = Some(recent);
                    break;
                }
                Outcome::Near(miss) if near.is_none() => near = Some((recent, miss)),
                _ => {}
            }
        }
        match hit {
            Some(hit) if case.now().saturating_sub(hit.event.time) > window => {
                found.push(Witness::TooOld {
                    last: case.seen(&hit.event),
                    window,
                });
            }
            Some(hit) if breaks.is_some() => {
                let by = breaks.and_then(|(_, cond)| self.first_after(cond, hit));
                found.push(Witness::Undone {
                    last: case.seen(&hit.event),
                    by,
                });
            }
            // It is there, so something else about it is amiss: a variable that other parts bind.
            Some(_) => {}
            None if forgetful || case.is_partitioned() => {
                let broken = witness.and_then(|witness| witness.broken);
                found.push(Witness::NoneWithin {
                    window,
                    broken: broken.map(|at| (at, case.now().saturating_sub(at))),
                });
            }
            None => found.push(Witness::NoneSeen),
        }
        if let Some((recent, miss)) = near
            && hit.is_none_or(|hit| hit.position < recent.position)
            && case.now().saturating_sub(recent.event.time) <= window
        {
            found.push(Witness::Nearest {
                seen: case.seen(&recent.event),
                field: miss.field,
                found: miss.found,
                wanted: miss.wanted,
            });
        }
    }

    /// The first event after the anchor that is one of those it must not be followed by.
    fn first_after(&self, breaks: &Cond, anchor: &Recent) -> Option<Seen> {
        let pattern = Pattern::of(breaks, self.body, self.case.event)?;
        let mut after = self.case.newest(&pattern).filter(|recent| {
            recent.position > anchor.position && pattern.matches(&recent.event) == Outcome::Hit
        });
        let first = after.by_ref().last()?;
        Some(self.case.seen(&first.event))
    }

    /// Something should not have happened, and has.
    fn happened(&self, cond: &Cond, what: &str, body: &Cond, found: &mut Vec<Witness>) {
        let case = self.case;
        let hit = Pattern::of(body, self.body, case.event).and_then(|pattern| {
            case.newest(&pattern)
                .find(|recent| pattern.matches(&recent.event) == Outcome::Hit)
        });
        found.push(Witness::Because(what.to_owned()));
        match hit {
            Some(hit) => found.push(Witness::Last(case.seen(&hit.event))),
            None => {
                let latest = self.witness(cond.span).and_then(|witness| witness.latest);
                found.extend(latest.map(|time| {
                    let age = case.now().saturating_sub(time);
                    Witness::Last(Seen {
                        what: "one".to_owned(),
                        time,
                        age,
                    })
                }));
            }
        }
    }

    /// A count or sum against a bound. False where the comparison is of another kind.
    fn total<'t>(
        &self,
        op: CompareOp,
        left: &'t Term,
        right: &'t Term,
        wanted: bool,
        scene: &mut Scene<'t>,
        found: &mut Vec<Witness>,
    ) -> bool {
        let (op, subject, bound) = match (scene.aggregate(left), scene.aggregate(right)) {
            (Some(_), None) => (op, left, right),
            (None, Some(_)) => (words::mirrored(op), right, left),
            _ => return false,
        };
        let span = scene.aggregate(subject).map(|aggregate| aggregate.span);
        let value = span
            .and_then(|span| self.witness(span))
            .and_then(|witness| witness.value);
        let (Some(value), TermKind::Int(limit)) = (value, &bound.kind) else {
            return false;
        };
        let allowed = if wanted { op } else { words::negated(op) };
        let are = |n: i64| if n == 1 { "is" } else { "are" };
        let most = |n: i64| format!("at most {n} {} allowed", are(n));
        let least = |n: i64| format!("at least {n} {} needed", are(n));
        let bound = match allowed {
            CompareOp::Lt => most(limit.saturating_sub(1)),
            CompareOp::Le => most(*limit),
            CompareOp::Gt => least(limit.saturating_add(1)),
            CompareOp::Ge => least(*limit),
            CompareOp::Eq => format!("it must be {limit}"),
            CompareOp::Ne => format!("it must not be {limit}"),
        };
        let subject = self.speech.term(subject, scene);
        found.push(Witness::Total {
            subject,
            value,
            bound,
        });
        true
    }
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
