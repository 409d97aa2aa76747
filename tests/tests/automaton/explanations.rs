//! Explanations of random leaves: nothing is left out, and what a witness names did happen.
//!
//! `PROPTEST_CASES` says how many cases are run.

use super::formulas::{Writer, services, traces};
use super::stage::try_rules;
use dogwood_compiler::event::Event;
use dogwood_compiler::explain::{NamedRule, Seen, Witness, sentences, why, why_after};
use dogwood_compiler::monitor::{Config, Monitor, Policy, lateness};
use proptest::prelude::*;
use std::sync::Arc;

/// Each part of the leaf's text that must come back in the sentence, with how it may be said.
fn parts(leaf: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for action in ["move", "weigh", "beep"] {
        if leaf.contains(&format!("\"{action}\"::")) {
            found.push((
                action.to_owned(),
                vec![format!("`Yard::{action}`"), format!("\"{action}\"::")],
            ));
        }
    }
    for after in leaf.split("within ").skip(1) {
        let amount: String = after.chars().take_while(char::is_ascii_digit).collect();
        let unit = if amount == "1" { "second" } else { "seconds" };
        let words = match amount.as_str() {
            "1" => unit.to_owned(),
            _ => format!("{amount} {unit}"),
        };
        found.push((
            format!("within {amount}s"),
            vec![words, format!("within {amount}s")],
        ));
    }
    found
}

fn seen(witness: &Witness) -> Vec<&Seen> {
    match witness {
        Witness::Last(seen)
        | Witness::TooOld { last: seen, .. }
        | Witness::Before(seen)
        | Witness::NotThen { seen, .. }
        | Witness::Elsewhere { seen, .. }
        | Witness::Oldest { seen, .. }
        | Witness::Nearest { seen, .. } => vec![seen],
        Witness::Undone { last, by } => std::iter::once(last).chain(by).collect(),
        _ => Vec::new(),
    }
}

proptest! {
    #[test]
    fn nothing_of_a_leaf_is_left_out(service in 0usize..4, choices in prop::collection::vec(any::<u8>(), 0..160)) {
        let service = &services()[service];
        let leaf = Writer::new(&choices).leaf();
        let text = format!("permit(principal, action in Yard::Action::\"Any\", resource) when temporal {{ {leaf} }};");
        let Ok(rules) = try_rules(&text, service) else { return Ok(()) };
        let said = sentences(&rules[0], service).join(" ");
        // There is nothing to tell of what never applies.
        if said.starts_with("Never applies") { return Ok(()) }
        for (part, ways) in parts(&leaf) {
            prop_assert!(ways.iter().any(|way| said.contains(way)), "{} is missing:\n{}\n{}", part, leaf, said);
        }
        prop_assert!(!said.contains("<unreadable>") && !said.contains("  "), "{}\n{}", leaf, said);
        prop_assert_eq!(&said, &sentences(&rules[0], service).join(" "));
    }

    #[test]
    fn a_witness_names_what_happened(
        service in 0usize..4,
        choices in prop::collection::vec(any::<u8>(), 0..160),
        (forbids, whole) in any::<(bool, bool)>(),
        (unless, events) in (any::<bool>(), any::<bool>()).prop_flat_map(|(unless, back)| (Just(unless), traces(back))),
    ) {
        let service = &services()[service];
        let leaf = Writer::new(&choices).leaf();
        let scope = "principal, action in Yard::Action::\"Any\", resource";
        let clause = if unless { "unless" } else { "when" };
        let effect = if forbids { "forbid" } else { "permit" };
        let text = format!("permit({scope}) when {{ {forbids} }};\n{effect}({scope}) {clause} temporal {{ {leaf} }};");
        let Ok(rules) = try_rules(&text, service) else { return Ok(()) };
        let policy = Arc::new(Policy::new(&rules, service));
        let named: Vec<NamedRule> = rules
            .into_iter()
            .enumerate()
            .map(|(number, rule)| NamedRule { rule, name: format!("rule-{number}") })
            .collect();
        let mut monitor = Monitor::new(policy, Config { lateness: lateness(&events), explained: true });
        for (position, event) in events.iter().enumerate() {
            let Ok(Some(decision)) = monitor.step(event) else { continue };
            let found = if whole {
                why_after(&named, &monitor, &events[..position], event, &decision)
            } else {
                why(&named, &monitor, event, &decision)
            };
            prop_assert_eq!(found.is_empty(), decision.allowed(), "{}\n{:?}", leaf, event);
            for witness in &found {
                let line = witness.to_string();
                prop_assert!(!line.contains(char::is_control), "{}", line);
                for seen in seen(witness) {
                    let known = |event: &Event| event.time == seen.time;
                    prop_assert!(events[..=position].iter().any(known), "{}\n{}", leaf, line);
                    prop_assert_eq!(seen.age, event.time - seen.time);
                }
            }
        }
    }
}
