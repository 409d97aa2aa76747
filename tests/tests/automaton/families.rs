//! Many rules that differ in one constant decide together as each would alone.

use super::stage::*;
use dogwood_compiler::event::Event;
use dogwood_compiler::monitor::{Config, Monitor, lateness, replay};
use proptest::prelude::*;

/// Shapes of leaves with a hole for the constant; each is asked with a dozen of them.
const SHAPES: [&str; 11] = [
    "formerly within 9s Q{ input.crate: \"_\", input.kg: context.input.kg }",
    "formerly within 9s Q{ input.crate: \"_\" }",
    "formerly within 4s Q{ input.kg: 1, input.crate: \"_\" }",
    "!(formerly within 9s Q{ input.crate: \"_\", input.kg: context.input.kg })",
    "formerly within 5s Q{ input.crate: \"_\" } && formerly within 9s Q{ input.crate: context.input.crate }",
    "exists (x: Long). (formerly within 9s Q{ input.crate: \"_\", input.kg: x } && x >= 2)",
    "exists (x: Long). (formerly within 9s Q{ input.crate: \"_\", input.kg: x } && formerly within 6s Q{ input.crate: \"c1\", input.kg: x })",
    "formerly within 9s (Q{ input.crate: \"_\" } && !(Q{ input.kg: 2 }))",
    // Windows of their own, and what ends an anchor.
    "formerly within NUMBERs Q{ input.crate: \"_\", input.kg: context.input.kg }",
    "!M{ input.kg: 1 } since within 9s Q{ input.crate: \"_\", input.kg: context.input.kg }",
    "!M{ input.kg: 1 } since within NUMBERs Q{ input.crate: \"_\" }",
];

/// Whatever stands before the leaf, the rule must be found or left out alike.
const GUARDS: [&str; 4] = [
    "",
    "when { context.input.kg > 0 } ",
    "when { principal is Depot::Clerk } ",
    "when { context.input has kg && context.input.kg == 1 } ",
];

fn rules_of(shape: &str, guard: &str) -> Vec<String> {
    (0..12)
        .map(|n| {
            let shape = shape.replace("NUMBER", &(1 + n).to_string());
            let leaf = long(&shape.replace('_', &format!("c{n}")));
            format!(
                "forbid(principal, action == Depot::Action::\"move\", resource) {guard}when temporal {{ {leaf} }};"
            )
        })
        .collect()
}

fn traces() -> impl Strategy<Value = Vec<Event>> {
    let event = (any::<bool>(), 0..14usize, 0..4i64, -2..4i64);
    prop::collection::vec(event, 1..60).prop_map(|events| {
        let mut time = 0;
        let events = events.into_iter().map(|(asks, name, kg, step)| {
            time += step;
            let name = format!("c{name}");
            match (asks, kg) {
                (true, 3) => a_move(time, &name),
                (true, _) => a_move_of(time, &name, kg),
                (false, _) => weigh(time, &name, kg),
            }
        });
        events.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn together_as_alone(
        first in 0..SHAPES.len(),
        second in 0..SHAPES.len(),
        guard in 0..GUARDS.len(),
        events in traces(),
    ) {
        let service = service(DEPOT, Some(UNPINNED));
        let mut texts = rules_of(SHAPES[first], GUARDS[guard]);
        texts.extend(rules_of(SHAPES[second], ""));
        let together = unchecked(&texts.concat(), &service);
        let mut expected: Vec<Vec<usize>> = Vec::new();
        let mut errors = 0;
        for (number, text) in texts.iter().enumerate() {
            let alone = replay(unchecked(text, &service), &events);
            expected.resize(alone.len(), Vec::new());
            for ((_, _, decision), expected) in alone.iter().zip(&mut expected) {
                errors += decision.errors.len();
                if !decision.rules.is_empty() {
                    expected.push(number);
                }
            }
        }
        let decided = replay(together.clone(), &events);
        let rules: Vec<_> = decided.iter().map(|(_, _, d)| d.rules.clone()).collect();
        prop_assert_eq!(rules, expected);
        prop_assert_eq!(decided.iter().map(|(_, _, d)| d.errors.len()).sum::<usize>(), errors);
        // Asking first, a snapshot in between, and reports say the same.
        let config = Config { lateness: lateness(&events), explained: false };
        let mut monitor = Monitor::new(together.clone(), config);
        for event in &events {
            let asked = monitor.decide_only(event);
            let saved = monitor.save();
            monitor = Monitor::load(together.clone(), config, &saved).unwrap();
            let Some(decision) = monitor.step(event).unwrap() else { continue };
            prop_assert_eq!(&asked, &decision);
            for rule in &decision.rules {
                prop_assert!(monitor.report(event, *rule).iter().all(|leaf| leaf.truth));
            }
        }
    }
}

#[test]
fn a_family_is_one_cell() {
    let service = service(DEPOT, Some(UNPINNED));
    for shape in &SHAPES[8..] {
        let cells = policy(&rules_of(shape, "").concat(), &service).cells();
        assert_eq!((cells.len(), cells[0].rules.len()), (1, 12), "{shape}");
    }
    let policy = policy(&rules_of(SHAPES[0], "").concat(), &service);
    let cells = policy.cells();
    assert_eq!(cells.len(), 1);
    assert_eq!((cells[0].columns, cells[0].rules.len()), (2, 12));
    // What no rule asks about is not kept.
    let mut monitor = Monitor::new(policy, Config::default());
    for n in 0..40 {
        monitor.step(&weigh(n / 10, &format!("c{n}"), 1)).unwrap();
    }
    assert_eq!(monitor.size().rows, 12);
}
