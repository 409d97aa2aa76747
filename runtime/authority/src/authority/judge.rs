//! From the ruling of the policy to a verdict: what a rule may say that has too little history, and what
//! follows when a rule cannot be evaluated.

use crate::action::Action;
use crate::denial::DenyCause;
use crate::engine::{Compiled, Engine, PolicySet, RuleCard, Ruling};
use crate::history::Built;
use dogwood_compiler::event::Event;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use time::OffsetDateTime;
use time::macros::format_description;

/// The policy that decides, with its state.
pub(super) struct Live {
    pub(super) engine: Box<dyn Engine>,
    pub(super) compiled: Arc<dyn Compiled>,
    pub(super) rules: Vec<RuleCard>,
    /// Seconds of history that are kept: what is asked for, and what some rule needs.
    pub(super) keep: i64,
    /// As [`Built::lost`].
    lost: Option<i64>,
    /// From when on every rule has all the history it needs.
    sighted: i64,
}

/// A verdict, and the rules behind it by their position.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub verdict: Result<(), DenyCause>,
    pub governing: Option<usize>,
    pub determining: Vec<usize>,
}

impl Judged {
    fn denied(cause: DenyCause, governing: Option<usize>, determining: Vec<usize>) -> Judged {
        Judged {
            verdict: Err(cause),
            governing,
            determining,
        }
    }
}

/// A rule that has too little history, and from when on it has enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub rule: String,
    /// Seconds since 1970.
    pub until: i64,
}

impl std::fmt::Display for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (rule, until) = (&self.rule, moment(self.until));
        write!(
            f,
            "rule {rule} needs more history than there is; it decides again from {until}"
        )
    }
}

impl Live {
    pub(super) fn new(policy: PolicySet, built: Built) -> Live {
        let mut live = Live {
            engine: built.engine,
            compiled: policy.compiled,
            keep: policy
                .rules
                .iter()
                .map(|rule| rule.horizon)
                .fold(policy.keep, i64::max),
            rules: policy.rules,
            lost: built.lost,
            sighted: i64::MIN,
        };
        let sighted = live.rules.iter().map(|card| live.sighted(card)).max();
        live.sighted = sighted.unwrap_or(i64::MIN);
        live
    }

    pub(super) fn step(&mut self, event: &Event) -> Result<Option<Ruling>, String> {
        caught(|| self.engine.step(event))
    }

    pub(super) fn what_if(&self, event: &Event) -> Result<Option<Ruling>, String> {
        caught(|| self.engine.what_if(event))
    }

    /// From when on a rule has all the history it needs.
    fn sighted(&self, card: &RuleCard) -> i64 {
        match self.lost {
            // An event exactly as old as the window is in it.
            Some(lost) if card.horizon > 0 => lost.saturating_add(card.horizon).saturating_add(1),
            _ => i64::MIN,
        }
    }

    /// Rules that have too little history at `time`.
    fn blind(&self, time: i64) -> Vec<usize> {
        if time >= self.sighted {
            return Vec::new();
        }
        let rules = self.rules.iter().enumerate();
        rules
            .filter(|(_, card)| time < self.sighted(card))
            .map(|(rule, _)| rule)
            .collect()
    }

    pub(super) fn waiting(&self, time: i64) -> Vec<Waiting> {
        let blind = self.blind(time).into_iter();
        blind
            .filter_map(|rule| self.rules.get(rule))
            .map(|card| Waiting {
                rule: card.name.to_string(),
                until: self.sighted(card),
            })
            .collect()
    }

    /// What follows from a ruling on a request. `explain` may ask the engine, which has just stepped it.
    pub(super) fn judge(
        &self,
        action: &Action,
        event: &Event,
        ruling: Ruling,
        explain: bool,
    ) -> Judged {
        let witness = |ruling: &Ruling| {
            if !explain {
                return Vec::new();
            }
            // An explanation that breaks must not take the verdict with it.
            let said = || self.engine.witness(event, ruling);
            catch_unwind(AssertUnwindSafe(said)).unwrap_or_default()
        };
        let blind = self.blind(event.time);
        let sees = |rule: &usize| !blind.contains(rule);
        let forbid = match ruling.allow {
            true => None,
            false => ruling.determining.iter().copied().find(sees),
        };
        if let Some(card) = forbid.and_then(|rule| self.rules.get(rule)) {
            let cause = DenyCause::Forbidden {
                rule: card.name.clone(),
                description: card.description.clone(),
                witness: witness(&ruling),
            };
            return Judged::denied(cause, forbid, ruling.determining);
        }
        let could = match blind.as_slice() {
            [] => Vec::new(),
            // If even that breaks, each of them might have decided.
            some => {
                caught(|| Ok(self.compiled.possible(event, some))).unwrap_or_else(|_| some.into())
            }
        };
        let blind_rule = |forbids: bool| {
            let of_kind = |rule: &&usize| {
                self.rules
                    .get(**rule)
                    .is_some_and(|card| card.forbids == forbids)
            };
            let rule = could.iter().find(of_kind)?;
            Some((*rule, self.rules.get(*rule)?))
        };
        if let Some((rule, card)) = blind_rule(true) {
            let cause = DenyCause::Forbidden {
                rule: card.name.clone(),
                description: card.description.clone(),
                witness: vec![self.too_short(card)],
            };
            return Judged::denied(cause, Some(rule), vec![rule]);
        }
        // A rule that could not be evaluated might have forbidden it.
        if let Some((rule, reason)) = ruling.errors.first() {
            let card = rule.and_then(|rule| self.rules.get(rule));
            let reason = match card {
                Some(card) => format!("rule {} could not be evaluated: {reason}", card.name),
                None => reason.clone(),
            };
            return Judged::denied(DenyCause::Fault(reason), *rule, ruling.determining);
        }
        let permits: Vec<usize> = match ruling.allow {
            true => ruling.determining.iter().copied().filter(sees).collect(),
            false => Vec::new(),
        };
        // A tool call was permitted as `mcp:call` before; its own action only narrows that.
        if !permits.is_empty() || matches!(action, Action::Tool { .. }) {
            return Judged {
                verdict: Ok(()),
                governing: permits.first().copied(),
                determining: permits,
            };
        }
        let witness = match blind_rule(false) {
            Some((_, card)) => vec![format!("nearest: {}: {}", card.name, self.too_short(card))],
            None => witness(&ruling),
        };
        Judged::denied(DenyCause::NoPermit { witness }, None, Vec::new())
    }

    fn too_short(&self, card: &RuleCard) -> String {
        let from = self.lost.map_or(i64::MIN, |lost| lost.saturating_add(1));
        let does = if card.forbids {
            "denies what it could decide"
        } else {
            "permits nothing"
        };
        format!(
            "the history reaches back to {} and this rule needs {} of it: it {does} until {}",
            moment(from),
            length(card.horizon),
            moment(self.sighted(card)),
        )
    }
}

/// A panic inside the policy is an answer like any other: a fault.
fn caught<T>(ask: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(ask))
        .unwrap_or_else(|_| Err("the evaluation of the policy broke down".into()))
}

/// `2026-11-29 21:00:05 UTC`.
pub(super) fn moment(seconds: i64) -> String {
    let format = format_description!("[year]-[month]-[day] [hour]:[minute]:[second] UTC");
    OffsetDateTime::from_unix_timestamp(seconds)
        .ok()
        .and_then(|time| time.format(&format).ok())
        .unwrap_or_else(|| format!("{seconds} seconds after 1970"))
}

/// `24h`, `90m`, `45s`: the largest unit that is exact.
fn length(seconds: i64) -> String {
    match seconds {
        s if s % 3600 == 0 => format!("{}h", s / 3600),
        s if s % 60 == 0 => format!("{}m", s / 60),
        s => format!("{s}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{length, moment};

    #[test]
    fn times_are_written_for_people() {
        assert_eq!(moment(1_796_000_405), "2026-11-30 01:00:05 UTC");
        assert_eq!(moment(i64::MIN), "-9223372036854775808 seconds after 1970");
        assert_eq!(
            [length(86_400), length(5400), length(45)],
            ["24h", "90m", "45s"]
        );
    }
}
