//! Who serves: callers on their own threads, whatever those are like, and the authority's thread what nobody
//! waits for.

use super::policies::compile;
use super::{Authority, Held, Shared, ask, kinds, open, policy, records, spawn};
use crate::action::Outcome;
use crate::clock::Clock;
use crate::denial::DenyCause;
use crate::gate::{Caller, Gate};
use redb::backends::InMemoryBackend;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A condition as deep as the language takes, around something that is true.
fn deep() -> &'static str {
    let (open, close) = ("!(".repeat(90), ")".repeat(90));
    let condition = format!("{open}context.input.command == \"git push\"{close}");
    format!(
        "permit (principal, action == Box::Action::\"shell:spawn\", resource) when {{ {condition} }}
        unless temporal {{ {open}formerly within 1h Box::Action::\"shell:spawn\"::request{{ input.command: \"git push\" }}{close} && formerly within 1h Box::Action::\"shell:spawn\"::request{{ input.command: \"ls\" }} }};"
    )
    .leak()
}

#[test]
fn a_decision_needs_no_stack_of_its_caller() {
    let clock = Arc::new(Held(1.into()));
    let records = records(Shared::default());
    let policy = compile(deep());
    let authority = Authority::over(InMemoryBackend::new(), policy, clock, records).unwrap();
    let decided = std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(64 * 1024);
        let asked = small.spawn_scoped(scope, || {
            [
                ask(&authority, "git push").is_ok(),
                ask(&authority, "ls").is_ok(),
            ]
        });
        asked.unwrap().join().unwrap()
    });
    assert_eq!(decided, [true, false]);
}

#[test]
fn an_end_that_nobody_waits_for_is_recorded_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let told = Shared::default();
    let clock = Arc::new(Held(1.into()));
    let authority = Authority::open(dir.path(), policy(), clock, records(told.clone())).unwrap();
    let permit = authority.decide(&Caller::Agent, spawn("npm test")).unwrap();
    permit.complete(Outcome::Status(0));
    let patience = Instant::now() + Duration::from_secs(60);
    let recorded = || {
        let text = String::from_utf8(told.0.lock().unwrap().clone()).unwrap();
        text.contains("strands.box.policy.outcome")
    };
    while !recorded() {
        assert!(Instant::now() < patience, "nobody recorded it");
        std::thread::yield_now();
    }
    // Not closed: what is durable is so without that.
    std::mem::forget(authority);
    let copy = tempfile::tempdir().unwrap();
    std::fs::copy(
        dir.path().join("history.redb"),
        copy.path().join("history.redb"),
    )
    .unwrap();
    insta::assert_snapshot!(kinds(copy.path()), @r#"
    1 request npm test
    1 response npm test {"status": Int(0)}
    "#);
}

#[test]
fn policies_change_while_many_ask() {
    let clock = Arc::new(Held(1.into()));
    let records = records(Shared::default());
    let authority = Authority::over(InMemoryBackend::new(), policy(), clock, records).unwrap();
    let asking = AtomicUsize::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    assert_eq!(ask(&authority, "ls"), Ok(()));
                }
                asking.fetch_sub(1, Ordering::SeqCst);
            });
        }
        while asking.load(Ordering::SeqCst) > 0 {
            assert_eq!(authority.reload(policy()), Ok(Vec::new()));
        }
    });
    // Whoever asks at the end is answered, before it or after it.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| while ask(&authority, "ls").is_ok() {});
        }
        authority.close();
    });
}

/// Tells the time so many times.
struct Stopping(AtomicUsize);

impl Clock for Stopping {
    fn now(&self) -> i64 {
        match self.0.fetch_sub(1, Ordering::SeqCst) {
            0 => panic!("the clock stops"),
            _ => 1,
        }
    }
}

#[test]
fn a_breakdown_on_the_thread_of_a_caller_stops_everybody() {
    // However far the first of them comes.
    let mut heard = 0;
    for times in 2..12 {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(Stopping(times.into()));
        let out = records(Shared::default());
        let authority = Authority::open(dir.path(), policy(), clock, out).unwrap();
        let denials: Vec<_> = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..4)
                .map(|_| {
                    let ask =
                        || (0..4).find_map(|_| authority.decide(&Caller::Agent, spawn("ls")).err());
                    scope.spawn(ask)
                })
                .collect();
            callers
                .into_iter()
                .map(|caller| caller.join().unwrap())
                .collect()
        });
        for denial in denials.into_iter().flatten() {
            assert!(
                matches!(&denial.cause, DenyCause::Fault(said) if said == "the box has stopped deciding"),
                "{denial}"
            );
            heard += 1;
        }
        assert!(authority.decide(&Caller::Agent, spawn("ls")).is_err());
        authority.close();
        // Nothing holds the history any more.
        assert!(open(dir.path(), 1).is_ok());
    }
    assert!(heard > 10, "{heard} heard of it");
}
