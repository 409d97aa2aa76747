//! A monitor written down and read back decides, waits and explains as it would have; what is not its own
//! snapshot is refused.

use super::equivalence::cases;
use super::formulas::{Writer, services, traces};
use super::stage::*;
use dogwood_compiler::event::Event;
use dogwood_compiler::monitor::{Config, LoadError, Monitor, Policy, lateness};
use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use std::cell::Cell;
use std::sync::Arc;

fn explained(lateness: i64) -> Config {
    Config {
        lateness,
        explained: true,
    }
}

#[test]
fn a_monitor_read_back_goes_on_as_before() {
    let services = services();
    let mut runner = TestRunner::new(cases(Cases::default().cases));
    let choices = || prop::collection::vec(any::<u8>(), 0..160);
    let input = (
        0usize..4,
        choices(),
        any::<bool>(),
        prop::collection::vec(any::<bool>(), 18),
    )
        .prop_flat_map(|(service, choices, back, breaks)| {
            (Just((service, choices, breaks)), traces(back))
        });
    let (restarts, decided) = (Cell::new(0), Cell::new(0));
    let outcome = runner.run(&input, |((at, choices, breaks), events)| {
        let service = &services[at];
        let leaf = Writer::new(&choices).leaf();
        let text = format!("permit(principal, action, resource) when temporal {{ {leaf} }};");
        let Ok(rules) = try_rules(&text, service) else {
            return Ok(());
        };
        let policy = Arc::new(Policy::new(&rules, service));
        let config = explained(lateness(&events));
        let mut straight = Monitor::new(policy.clone(), config);
        let mut broken = Monitor::new(policy.clone(), config);
        for (event, stop) in events.iter().zip(breaks) {
            let (a, b) = (straight.step(event), broken.step(event));
            prop_assert_eq!(&a, &b, "{}", text);
            if let Ok(Some(_)) = a {
                decided.set(decided.get() + 1);
                prop_assert_eq!(straight.report(event, 0), broken.report(event, 0));
                prop_assert_eq!(straight.retry_after(event), broken.retry_after(event));
                prop_assert_eq!(straight.recent(event), broken.recent(event));
            }
            if stop {
                restarts.set(restarts.get() + 1);
                let size = broken.size();
                broken = Monitor::load(policy.clone(), config, &broken.save())
                    .map_err(|error| TestCaseError::fail(error.to_string()))?;
                prop_assert_eq!(broken.size().rows, size.rows);
            }
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    let (restarts, decided) = (restarts.get(), decided.get());
    println!("{restarts} restarts among {decided} decisions");
    assert!(restarts > 100 && decided > 100);
}

const LEAF: &str = "(count for (c: String). where formerly within 20s M{ input.crate: c }) <= 2
    && !(formerly within 20s (Q{} && formerly within 5s Q{ input.crate: context.input.crate }))
    && !B{} since within 20s M{}";

fn policy_of(leaf: &str) -> Arc<Policy> {
    policy(&move_rule(leaf), &service(DEPOT, Some(UNPINNED)))
}

fn filled(policy: &Arc<Policy>) -> Monitor {
    let mut monitor = Monitor::new(policy.clone(), explained(0));
    let events: [Event; 4] = [
        weigh(1, "a", 1),
        weigh(2, "b", 2),
        a_move(3, "a"),
        a_move(4, "c"),
    ];
    for event in &events {
        monitor.step(event).expect("in time");
    }
    monitor
}

fn error(policy: &Arc<Policy>, config: Config, bytes: &[u8]) -> LoadError {
    match Monitor::load(policy.clone(), config, bytes) {
        Ok(_) => panic!("it was taken over"),
        Err(error) => error,
    }
}

#[test]
fn the_snapshot_of_another_policy_is_refused() {
    let own = policy_of(LEAF);
    let bytes = filled(&own).save();
    let same = policy_of(&LEAF.replace("(c:", "(other:").replace(": c }", ": other }"));
    assert_eq!(own.fingerprint(), same.fingerprint());
    assert!(Monitor::load(same, explained(0), &bytes).is_ok());
    for other in [LEAF.replace("<= 2", "<= 3"), LEAF.replace("20s", "21s")] {
        let other = policy_of(&other);
        assert_eq!(error(&other, explained(0), &bytes), LoadError::OtherPolicy);
    }
}

#[test]
fn the_fingerprint_is_the_same_in_every_process() {
    // Anything that depends on the order of a hash map would differ between two policies already.
    let prints: Vec<[u8; 32]> = (0..8).map(|_| policy_of(LEAF).fingerprint()).collect();
    assert!(prints.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn more_lateness_than_was_allowed_for_is_refused() {
    let policy = policy_of(LEAF);
    let bytes = filled(&policy).save();
    let saved = LoadError::Lateness {
        saved: 0,
        wanted: 5,
    };
    assert_eq!(error(&policy, explained(5), &bytes), saved);
}

#[test]
fn another_format_is_named() {
    let policy = policy_of(LEAF);
    let mut bytes = filled(&policy).save();
    bytes[4..6].copy_from_slice(&999u16.to_le_bytes());
    let found = LoadError::OtherVersion { found: 999 };
    assert_eq!(error(&policy, explained(0), &bytes), found);
}

#[test]
fn damage_is_an_error_wherever_it_is() {
    let policy = policy_of(LEAF);
    let bytes = filled(&policy).save();
    for len in 0..bytes.len() {
        assert_eq!(
            error(&policy, explained(0), &bytes[..len]),
            LoadError::Corrupt
        );
    }
    for at in (0..4).chain(38..bytes.len()) {
        for bit in [1, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= bit;
            assert_eq!(error(&policy, explained(0), &damaged), LoadError::Corrupt);
        }
    }
}

/// A digest that fits is no proof of sense: whatever stands behind it is an error or a state, never a panic.
#[test]
fn nonsense_with_a_fitting_digest_does_no_harm() {
    use sha2::{Digest, Sha256};
    let policy = policy_of(LEAF);
    let bytes = filled(&policy).save();
    let (header, rest) = bytes.split_at(70);
    let mut runner = TestRunner::new(cases(2000));
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4);
    let outcome = runner.run(
        &(changes, any::<prop::sample::Index>()),
        |(changes, end)| {
            let mut rest = rest.to_vec();
            for (at, byte) in changes {
                let at = at.index(rest.len());
                rest[at] = byte;
            }
            if byte_of(&rest).is_multiple_of(3) {
                rest.truncate(end.index(rest.len()));
            }
            let mut forged = header[..38].to_vec();
            forged.extend(Sha256::digest(&rest));
            forged.extend(&rest);
            if let Ok(mut monitor) = Monitor::load(policy.clone(), explained(0), &forged) {
                let _ = monitor.step(&weigh(i64::MAX, "a", 1));
                let last = a_move(i64::MAX, "a");
                let _ = monitor.step(&last);
                let _ = monitor.report(&last, 0);
                let _ = monitor.retry_after(&last);
                let _ = monitor.save();
            }
            Ok(())
        },
    );
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

fn byte_of(bytes: &[u8]) -> u8 {
    bytes.last().copied().unwrap_or(0)
}
