//! Checked rules as the engine of a box.

use crate::denial::RuleName;
use crate::engine::{Engine, PolicySet, RuleCard, Ruling};
use dogwood_compiler::compile::{Checked, CheckedRule, Source};
use dogwood_compiler::event::Event;
use dogwood_compiler::explain::{NamedRule, why};
use dogwood_compiler::monitor::{Config, Decision, Monitor, Policy};
use dogwood_compiler::schema::Service;
use std::path::Path;
use std::sync::Arc;

impl PolicySet {
    /// The rules of `sources`, checked against `service`, with an empty history.
    pub fn new(checked: &Checked, sources: &[Source], service: &Service) -> PolicySet {
        let rules: Vec<_> = checked
            .rules
            .iter()
            .map(|checked| checked.rule.clone())
            .collect();
        let monitor = Monitor::new(
            Arc::new(Policy::new(&rules, service)),
            Config { lateness: 0 },
        );
        let cards: Vec<RuleCard> = checked
            .rules
            .iter()
            .map(|rule| RuleCard::of(rule, sources))
            .collect();
        let named = rules.into_iter().zip(&cards).map(|(rule, card)| NamedRule {
            rule,
            name: card.name.to_string(),
        });
        PolicySet {
            engine: Box::new(Monitored {
                monitor,
                rules: named.collect(),
                last: None,
            }),
            rules: cards,
            horizon: service.events.max_window,
        }
    }
}

impl RuleCard {
    pub fn of(checked: &CheckedRule, sources: &[Source]) -> RuleCard {
        let given = |name: &str| {
            checked
                .rule
                .annotation(name)
                .map(str::trim)
                .filter(|text| !text.is_empty())
                .map(Into::into)
        };
        RuleCard {
            name: RuleName {
                id: given("id"),
                place: place(checked, sources),
            },
            description: given("description"),
        }
    }
}

/// `policy.dw:12`.
fn place(checked: &CheckedRule, sources: &[Source]) -> String {
    let Some(source) = sources.get(usize::from(checked.source.0)) else {
        return format!("rule {}", checked.index + 1);
    };
    let before = source.text.bytes().take(checked.rule.span.range().start);
    let line = before.filter(|byte| *byte == b'\n').count() + 1;
    let name = Path::new(&source.name)
        .file_name()
        .map_or(source.name.as_str().into(), |name| name.to_string_lossy());
    format!("{name}:{line}")
}

struct Monitored {
    monitor: Monitor,
    rules: Vec<NamedRule>,
    /// The decision on the event just stepped.
    last: Option<Decision>,
}

impl Engine for Monitored {
    fn step(&mut self, event: &Event) -> Result<Option<Ruling>, String> {
        let decision = self
            .monitor
            .step(event)
            .map_err(|error| error.to_string())?;
        self.last = decision;
        Ok(self.last.as_ref().map(ruling))
    }

    fn witness(&self, event: &Event, _: &Ruling) -> Vec<String> {
        let Some(decision) = &self.last else {
            return Vec::new();
        };
        let found = why(&self.rules, &self.monitor, event, decision);
        found.iter().map(ToString::to_string).collect()
    }
}

fn ruling(decision: &Decision) -> Ruling {
    Ruling {
        allow: decision.allowed(),
        determining: decision.rules.clone(),
        errors: decision
            .errors
            .iter()
            .map(|error| (error.rule, error.error.to_string()))
            .collect(),
    }
}
