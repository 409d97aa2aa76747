//! What should not have happened and has: the last time, or how much of it there was.

use super::*;

impl LeafCase<'_, '_> {
    /// Something should not have happened, and has.
    pub(super) fn happened(&self, cond: &Cond, what: &str, body: &Cond, found: &mut Vec<Witness>) {
        let case = self.case;
        let hit = self.pattern(body).and_then(|pattern| {
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
    pub(super) fn total<'t>(
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
        let oldest = scene
            .aggregate(subject)
            .filter(|_| matches!(allowed, CompareOp::Lt | CompareOp::Le))
            .and_then(|aggregate| self.oldest(aggregate));
        let subject = self.speech.term(subject, scene);
        found.push(Witness::Total {
            subject,
            value,
            bound,
        });
        found.extend(oldest);
        true
    }
    /// Of the events an aggregate looks at, the first that will be forgotten.
    pub(super) fn oldest(&self, aggregate: &Aggregate) -> Option<Witness> {
        fn window(cond: &Cond) -> Option<(i64, &Cond)> {
            match &cond.kind {
                CondKind::Formerly { window, body } => Some((window.seconds()?, body)),
                CondKind::And(parts) => parts.iter().find_map(window),
                CondKind::Exists { body, .. } => window(body),
                _ => None,
            }
        }
        // Of different values, the oldest may have come again since.
        let each_event = |binder: &Binder| crate::explain::temporal::is_timepoint(&binder.ty);
        if !aggregate.binders.iter().any(each_event) {
            return None;
        }
        let (window, body) = window(&aggregate.body)?;
        let case = self.case;
        let pattern = Pattern::of(body, &aggregate.body, case.event, &self.known)?;
        let counted = case.newest(&pattern).filter(|recent| {
            case.now().saturating_sub(recent.event.time) <= window
                && pattern.matches(&recent.event) == Outcome::Hit
        });
        // What is not kept may be older.
        let oldest = counted.last().filter(|_| case.whole)?;
        let seen = case.seen(&oldest.event);
        let leaves = window.saturating_sub(seen.age).saturating_add(1);
        Some(Witness::Oldest { seen, leaves })
    }
}
