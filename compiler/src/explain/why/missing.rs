//! What should have happened and has not: the event that came nearest, and what was wrong with it.

use super::*;

impl LeafCase<'_, '_> {
    /// Something should have happened and has not, or has been undone.
    pub(super) fn missing(
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
        let Some(pattern) = self.pattern(body) else {
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
            None if forgetful || (case.is_partitioned() && !case.whole) => {
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
        if hit.is_none_or(|hit| case.now().saturating_sub(hit.event.time) > window) {
            found.extend(self.elsewhere(&pattern, window));
        }
    }

    /// The latest event that fits, but belongs to another partition.
    pub(super) fn elsewhere(&self, pattern: &Pattern<'_>, window: i64) -> Option<Witness> {
        let case = self.case;
        let pin = case
            .monitor
            .policy()
            .service()
            .events
            .universal_pin
            .as_ref()?;
        let id = pattern.event();
        let fits = |other: &&Recent| {
            other.event.action == id.action
                && other.event.kind == id.kind
                && case.now().saturating_sub(other.event.time) <= window
                && pattern.matches(&other.event) == Outcome::Hit
        };
        let other = case.others.iter().rev().find(fits)?;
        let words: Vec<&str> = pin.field.iter().map(SmolStr::as_str).collect();
        Some(Witness::Elsewhere {
            seen: case.seen(&other.event),
            field: crate::explain::field(&words),
            found: at(&other.event, &pin.field).map_or_else(|| "absent".to_owned(), show),
        })
    }

    /// A conjunction in which this request itself gives the variables their values: what fails of the rest.
    pub(super) fn joined<'t>(
        &self,
        cond: &'t Cond,
        scene: &mut Scene<'t>,
        found: &mut Vec<Witness>,
    ) -> bool {
        let depth = scene.vars.len();
        let mut parts = Vec::new();
        open(cond, depth, scene, &mut parts);
        let parts = settle(self.speech, parts, depth, true, scene);
        let (own, rest): (Vec<&Cond>, Vec<&Cond>) = parts
            .into_iter()
            .partition(|part| matches!(part.kind, CondKind::Match(_)));
        let mut known = self.known.clone();
        let mut is_so = !own.is_empty() && !rest.is_empty();
        for part in own {
            let pattern = Pattern::of(part, self.body, self.case.event, &known);
            let matched = pattern
                .filter(|pattern| {
                    let (id, event) = (pattern.event(), self.case.event);
                    id.action == event.action && id.kind == event.kind
                })
                .map(|pattern| pattern.matched(self.case.event));
            match matched {
                Some((Outcome::Hit, bound)) => known = bound,
                _ => is_so = false,
            }
            // The rest speaks of the values of this request.
            _ = self.speech.noun_of(part, scene);
            for var in scene.vars.iter_mut().skip(depth) {
                if let Meaning::Field(field) = &mut var.meaning {
                    var.meaning = Meaning::Asked(std::mem::take(field));
                }
            }
        }
        // A value that only the rest gives would tie its parts together.
        let free = scene
            .vars
            .iter()
            .skip(depth)
            .filter(|var| !matches!(var.meaning, Meaning::Is(_) | Meaning::Now))
            .any(|var| !known.contains_key(&var.name));
        if is_so && !free {
            let inner = LeafCase { known, ..*self };
            let before = found.len();
            for part in rest
                .into_iter()
                .filter(|part| inner.is_met(part) != Some(true))
            {
                inner.part(part, true, scene, found);
            }
            is_so = found.len() > before;
        }
        scene.vars.truncate(depth);
        is_so && !free
    }

    /// Whether a part whose variables are known holds, as far as the kept events tell.
    pub(super) fn is_met(&self, part: &Cond) -> Option<bool> {
        match &part.kind {
            CondKind::Not(inner) => self.is_met(inner).map(|met| !met),
            CondKind::Formerly { window, body } => {
                let (pattern, window) = (self.pattern(body)?, window.seconds()?);
                let fits = |recent: &Recent| {
                    self.case.now().saturating_sub(recent.event.time) <= window
                        && pattern.matches(&recent.event) == Outcome::Hit
                };
                Some(self.case.newest(&pattern).any(fits))
            }
            _ => None,
        }
    }

    /// What came just before the request, where that should have been something else.
    pub(super) fn just_before(
        &self,
        body: &Cond,
        window: i64,
        wanted: bool,
        found: &mut Vec<Witness>,
    ) {
        let case = self.case;
        let Some(before) = case.recent.last() else {
            if wanted {
                found.push(Witness::NoneSeen);
            }
            return;
        };
        let seen = case.seen(&before.event);
        let pattern = self.pattern(body);
        let fits = pattern.as_ref().map(|pattern| {
            let id = pattern.event();
            if id.action == before.event.action && id.kind == before.event.kind {
                pattern.matches(&before.event)
            } else {
                Outcome::Miss
            }
        });
        match fits {
            Some(Outcome::Hit) if wanted && seen.age > window => {
                found.push(Witness::TooOld { last: seen, window });
            }
            Some(Outcome::Near(miss)) if wanted => found.push(Witness::Nearest {
                seen,
                field: miss.field,
                found: miss.found,
                wanted: miss.wanted,
            }),
            _ => found.push(Witness::Before(seen)),
        }
    }

    /// The latest event that is one half of what should have happened: the other half was not so when it came.
    pub(super) fn not_then<'t>(
        &self,
        body: &'t Cond,
        window: i64,
        scene: &mut Scene<'t>,
        found: &mut Vec<Witness>,
    ) {
        let depth = scene.vars.len();
        let mut parts = Vec::new();
        open(body, depth, scene, &mut parts);
        let parts = settle(self.speech, parts, depth, true, scene);
        let (own, rest): (Vec<&Cond>, Vec<&Cond>) = parts
            .into_iter()
            .partition(|part| matches!(part.kind, CondKind::Match(_)));
        if let ([own], Some(pattern)) = (
            own.as_slice(),
            own.first().and_then(|own| self.pattern(own)),
        ) && !rest.is_empty()
        {
            _ = self.speech.noun_of(own, scene);
            let near = self
                .case
                .newest(&pattern)
                .find(|recent| pattern.matches(&recent.event) == Outcome::Hit);
            match near {
                Some(near) if self.case.now().saturating_sub(near.event.time) <= window => {
                    let then = std::mem::replace(&mut scene.then, true);
                    let said = rest
                        .iter()
                        .map(|part| self.speech.cond(part, true, scene))
                        .collect();
                    scene.then = then;
                    found.push(Witness::NotThen {
                        seen: self.case.seen(&near.event),
                        missed: Group::all(said).say(),
                    });
                }
                Some(near) => found.push(Witness::TooOld {
                    last: self.case.seen(&near.event),
                    window,
                }),
                None if self.case.whole => found.push(Witness::NoneSeen),
                None => {}
            }
        }
        scene.vars.truncate(depth);
    }

    /// The first event after the anchor that is one of those it must not be followed by.
    pub(super) fn first_after(&self, breaks: &Cond, anchor: &Recent) -> Option<Seen> {
        let pattern = self.pattern(breaks)?;
        let mut after = self.case.newest(&pattern).filter(|recent| {
            recent.position > anchor.position && pattern.matches(&recent.event) == Outcome::Hit
        });
        let first = after.by_ref().last()?;
        Some(self.case.seen(&first.event))
    }
}
