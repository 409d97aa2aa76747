//! Checked rules as the engine of a box.

use crate::denial::RuleName;
use crate::engine::{Compiled, Engine, PolicySet, RuleCard, Ruling};
use dogwood_compiler::compile::{Checked, CheckedRule, Source};
use dogwood_compiler::event::Event;
use dogwood_compiler::event::strict::Strict;
use dogwood_compiler::explain::{NamedRule, why};
use dogwood_compiler::grammar::ast;
use dogwood_compiler::horizon;
use dogwood_compiler::monitor::{Config, Decision, Monitor, Policy};
use dogwood_compiler::schema::Service;
use std::path::Path;
use std::sync::Arc;

impl PolicySet {
    /// The rules of `sources`, checked against `service`.
    pub fn new(checked: &Checked, sources: &[Source], service: &Service) -> PolicySet {
        let cards: Vec<RuleCard> = checked
            .rules
            .iter()
            .map(|rule| RuleCard::of(rule, sources))
            .collect();
        let rules: Vec<ast::Rule> = checked.rules.iter().map(|rule| rule.rule.clone()).collect();
        let longest = cards.iter().map(|card| card.horizon).max().unwrap_or(0);
        PolicySet {
            compiled: Arc::new(Rules::new(rules, &cards, service)),
            rules: cards,
            keep: longest.max(service.events.max_window),
            text: sources.iter().map(|source| source.text.as_str()).collect(),
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
            forbids: checked.rule.effect == ast::Effect::Forbid,
            horizon: horizon::of_rule(&checked.rule),
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

/// The rules, compiled, and once more without their past.
struct Rules {
    policy: Arc<Policy>,
    named: Arc<[NamedRule]>,
    /// Every rule as a forbid over the request alone: those that match are those that could decide.
    present: Arc<Policy>,
    strict: Strict,
    fingerprint: String,
}

impl Rules {
    fn new(rules: Vec<ast::Rule>, cards: &[RuleCard], service: &Service) -> Rules {
        let present: Vec<ast::Rule> = rules
            .iter()
            .map(|rule| ast::Rule {
                effect: ast::Effect::Forbid,
                ..horizon::without_past(rule)
            })
            .collect();
        let policy = Arc::new(Policy::new(&rules, service));
        let named = rules.into_iter().zip(cards).map(|(rule, card)| NamedRule {
            rule,
            name: card.name.to_string(),
        });
        let digits = policy.fingerprint();
        Rules {
            policy,
            fingerprint: digits.iter().map(|byte| format!("{byte:02x}")).collect(),
            named: named.collect(),
            present: Arc::new(Policy::new(&present, service)),
            strict: Strict::new(service),
        }
    }

    fn engine(&self, monitor: Monitor) -> Box<dyn Engine> {
        Box::new(Monitored {
            monitor,
            rules: Arc::clone(&self.named),
            last: None,
        })
    }
}

impl Compiled for Rules {
    fn start(&self) -> Box<dyn Engine> {
        self.engine(Monitor::new(Arc::clone(&self.policy), IN_ORDER))
    }

    fn load(&self, saved: &[u8]) -> Result<Box<dyn Engine>, String> {
        Monitor::load(Arc::clone(&self.policy), IN_ORDER, saved)
            .map(|monitor| self.engine(monitor))
            .map_err(|error| error.to_string())
    }

    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    fn check(&self, event: &Event) -> Result<(), String> {
        self.strict.check(event).map_err(|error| error.to_string())
    }

    fn possible(&self, event: &Event, among: &[usize]) -> Vec<usize> {
        let decision = Monitor::new(Arc::clone(&self.present), IN_ORDER).decide_only(event);
        let mut possible: Vec<usize> = among
            .iter()
            .filter(|rule| decision.rules.contains(rule))
            .copied()
            .collect();
        // A rule that cannot be evaluated might have matched; so might every rule if the request cannot.
        let failed = |rule: &usize| {
            decision
                .errors
                .iter()
                .any(|error| error.rule.is_none_or(|failed| failed == *rule))
        };
        possible.extend(among.iter().filter(|rule| failed(rule)));
        possible.sort_unstable();
        possible.dedup();
        possible
    }
}

/// The authority stamps events itself, never backwards.
const IN_ORDER: Config = Config {
    lateness: 0,
    explained: true,
};

struct Monitored {
    monitor: Monitor,
    rules: Arc<[NamedRule]>,
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

    fn what_if(&self, event: &Event) -> Result<Option<Ruling>, String> {
        if !self.monitor.policy().decides(&event.kind) {
            return Ok(None);
        }
        Ok(Some(ruling(&self.monitor.decide_only(event))))
    }

    fn witness(&self, event: &Event, _: &Ruling) -> Vec<String> {
        let Some(decision) = &self.last else {
            return Vec::new();
        };
        let found = why(&self.rules, &self.monitor, event, decision);
        found.iter().map(ToString::to_string).collect()
    }

    fn save(&self) -> Option<Vec<u8>> {
        Some(self.monitor.save())
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

#[cfg(test)]
mod tests {
    use super::*;
    use dogwood_compiler::compile::{Options, check, load_service};
    use dogwood_compiler::value::{EntityUid, Record, Value};

    const POLICY: &str = r#"// Comments count as lines.
permit (principal, action == Box::Action::"shell:spawn", resource);

@id("push_gate")
@description(" Run the tests, then push. ")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "git" && context.input has arg1 && context.input.arg1 == "push" }
unless temporal {
  !Box::Action::"shell:spawn"::response{ input.program: "git", input.arg1: "add" }
  since within 15m
  Box::Action::"shell:spawn"::response{ input.program: "npm", input.arg1: "test", output.status: 0 }
};
"#;

    fn set() -> PolicySet {
        let source = Source {
            name: "rules/policy.dw".into(),
            text: POLICY.into(),
        };
        let (service, _) = load_service(None, None).unwrap();
        let checked = check(
            std::slice::from_ref(&source),
            None,
            &service,
            &Options::default(),
        )
        .unwrap();
        PolicySet::new(&checked, &[source], &service)
    }

    fn event(time: i64, kind: &str, line: &str, status: Option<i64>) -> Event {
        let words: Vec<&str> = line.split(' ').collect();
        let mut input = Record::from([
            ("command".into(), Value::str(line)),
            ("program".into(), Value::str(words[0])),
            (
                "program_path".into(),
                Value::str(format!("/usr/bin/{}", words[0])),
            ),
            ("cwd".into(), Value::str("~/project")),
            ("arg_count".into(), Value::Int(1)),
        ]);
        input.insert("arg1".into(), Value::str(words[1]));
        crate::history::Entry {
            time,
            action: EntityUid::new("Box::Action", "shell:spawn"),
            kind: kind.into(),
            request_id: "1".into(),
            input,
            output: status.map(|status| Record::from([("status".into(), Value::Int(status))])),
            permitted: false,
            open_from: None,
        }
        .event()
    }

    #[test]
    fn rules_are_named_by_id_or_by_place() {
        let names: Vec<String> = set()
            .rules
            .iter()
            .map(|card| format!("{} {} {:?}", card.name, card.name.place, card.description))
            .collect();
        insta::assert_snapshot!(names.join("\n"), @r#"
        policy.dw:2 policy.dw:2 None
        push_gate policy.dw:4 Some("Run the tests, then push.")
        "#);
        assert_eq!((set().horizon(), set().keep), (900, 86_400));
    }

    #[test]
    fn a_real_policy_rules_and_says_why() {
        let mut engine = set().compiled.start();
        let mut ask = |time: i64| {
            let push = event(time, "request", "git push", None);
            let ruling = engine.step(&push).unwrap().unwrap();
            assert!(ruling.errors.is_empty());
            let witness = engine.witness(&push, &ruling).join("\n");
            (ruling.allow, ruling.determining, witness)
        };
        let (allow, rules, witness) = ask(0);
        assert!(!allow && rules == [1] && !witness.is_empty());
        let mut engine = set().compiled.start();
        assert_eq!(
            engine.step(&event(10, "response", "npm test", Some(0))),
            Ok(None)
        );
        let push = event(910, "request", "git push", None);
        assert_eq!(
            engine.step(&push),
            Ok(Some(Ruling {
                allow: true,
                determining: vec![0],
                errors: Vec::new()
            }))
        );
        let late = event(911, "request", "git push", None);
        assert!(!engine.step(&late).unwrap().unwrap().allow);
    }
}
