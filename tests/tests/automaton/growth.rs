//! What is held grows with the events in the windows and no faster, however the values of a rule go together.

use super::equivalence::cases;
use super::formulas::{Writer, services};
use super::stage::try_rules;
use dogwood_compiler::event::{Event, RequestPart};
use dogwood_compiler::monitor::{Config, Monitor, Policy};
use dogwood_compiler::value::{EntityUid, Record, Value};
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use std::sync::Arc;

/// Numbers that look drawn.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % n
    }

    /// An event with one of so many values in each field.
    fn event(&mut self, time: i64, values: usize) -> Event {
        let action = ["move", "move", "weigh", "move"][self.below(4)];
        let kind = ["request", "request", "response"][self.below(3)];
        let clerk = EntityUid::new("Yard::Clerk", format!("u{}", self.below(values)));
        let mut record = || {
            let input = [
                (
                    "crate".into(),
                    Value::str(format!("c{}", self.below(values))),
                ),
                ("kg".into(), Value::Int(self.below(values) as i64)),
            ];
            Record::from_iter([
                ("input".into(), Value::Object(input.into_iter().collect())),
                ("sessionId".into(), Value::str("s")),
            ])
        };
        let (mut logged, context) = (record(), record());
        logged.insert("callerPrincipal".into(), clerk.clone().into());
        let request = RequestPart {
            principal: Some(clerk),
            resource: Some(EntityUid::new("Yard::Bay", "b")),
            context,
            ..RequestPart::default()
        };
        Event {
            time,
            action: EntityUid::new("Yard::Action", action),
            kind: kind.into(),
            logged,
            request: (kind == "request").then_some(request),
        }
    }
}

/// What so many events leave behind, all of them inside the windows.
fn held(policy: &Arc<Policy>, events: usize) -> usize {
    let mut monitor = Monitor::new(policy.clone(), Config::default());
    let before = monitor.size().bytes;
    let mut drawn = Drawn(88_172_645_463_325_252);
    for time in 0..events {
        let event = drawn.event(time as i64, events / 8);
        monitor.step(&event).expect("in time");
    }
    monitor.size().bytes - before
}

#[test]
fn four_times_the_events_hold_four_times_as_much() {
    let services = services();
    let mut runner = TestRunner::new(cases(Cases::default().cases / 2));
    let outcome = runner.run(&prop::collection::vec(any::<u8>(), 0..120), |choices| {
        let mut writer = Writer::new(&choices);
        let mut leaf = match choices.first().is_some_and(|choice| choice % 2 == 0) {
            true => writer.nested(),
            false => writer.sharing(),
        };
        for seconds in (1..=20).rev() {
            leaf = leaf.replace(&format!("within {seconds}s"), "within 9999s");
        }
        let scope = "principal, action in Yard::Action::\"Any\", resource";
        let text = format!("permit({scope}) when temporal {{ {leaf} }};");
        let Ok(rules) = try_rules(&text, &services[0]) else {
            return Ok(());
        };
        let policy = Arc::new(Policy::new(&rules, &services[0]));
        // Tables grow by steps, and what is small is all steps: what looks like more than four times is asked again.
        let (few, many) = (held(&policy, 80), held(&policy, 320));
        if many > 6 * few.max(2000) {
            let more = held(&policy, 1280);
            prop_assert!(more <= 6 * many, "{few} {many} {more} {leaf}");
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
