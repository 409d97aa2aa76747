//! What is found by skipping is what going through everything finds.

use super::super::formula::{Test, Then, When};
use super::super::row::Cmp;
use super::super::store::At;
use super::ask::Asked;
use proptest::prelude::*;
use smallvec::SmallVec;
use std::collections::{BTreeMap, VecDeque};

const LOGS: usize = 3;

fn test() -> impl Strategy<Value = Test> {
    let plain = (0..LOGS).prop_map(|log| Test::Now(when(log, Vec::new())));
    plain.prop_recursive(3, 24, 3, |inner| {
        let then = (any::<bool>(), inner).prop_map(|(negated, test)| Then { negated, test });
        let list = (0..LOGS, prop::collection::vec(then.clone(), 0..3));
        let list = list.prop_map(|(log, then)| when(log, then));
        let window = 0..12i64;
        let cmp = prop::sample::select(vec![Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge, Cmp::Eq, Cmp::Ne]);
        let breaks = prop::collection::vec(list.clone(), 0..3);
        prop_oneof![
            list.clone().prop_map(Test::Now),
            (list.clone(), window.clone()).prop_map(|(list, window)| Test::Formerly(list, window)),
            (list.clone(), window.clone()).prop_map(|(list, window)| Test::Previous(list, window)),
            (list, breaks, window.clone())
                .prop_map(|(anchor, breaks, window)| Test::Since(anchor, breaks, window)),
            (0..LOGS, window, cmp, 0..4i64).prop_map(|(log, window, cmp, n)| Test::Count(
                when(log, Vec::new()),
                window,
                cmp,
                n
            )),
            prop::collection::vec(then, 1..3).prop_map(Test::All),
        ]
    })
}

fn when(log: usize, then: Vec<Then>) -> When {
    When {
        number: 0,
        log,
        then,
    }
}

/// Gives each list of events a number of its own.
fn number(test: &mut Test, next: &mut usize) {
    let mut of = |when: &mut When| {
        when.number = *next;
        *next += 1;
        for then in &mut when.then {
            number(&mut then.test, next);
        }
    };
    match test {
        Test::Now(when)
        | Test::Formerly(when, _)
        | Test::Previous(when, _)
        | Test::Count(when, ..) => of(when),
        Test::Since(anchor, breaks, _) => {
            of(anchor);
            breaks.iter_mut().for_each(of);
        }
        Test::All(parts) => {
            let tests = parts.iter_mut().map(|then| &mut then.test);
            tests.for_each(|test| number(test, next));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn skipping_finds_what_going_through_finds(
        mut test in test(),
        events in prop::collection::vec((0..4i64, prop::collection::vec(any::<bool>(), LOGS)), 1..40),
    ) {
        number(&mut test, &mut 0);
        let mut logs = vec![VecDeque::new(); LOGS];
        let late = BTreeMap::new();
        let mut time = 0;
        for (pos, (step, of)) in (0..).zip(&events) {
            time += step;
            let now = At { pos, time };
            for (log, _) in logs.iter_mut().zip(of).filter(|(_, of)| **of) {
                log.push_back(now);
            }
            let all: SmallVec<[Option<&VecDeque<At>>; 4]> = logs.iter().map(Some).collect();
            let mut asked = Asked::new(all, &late);
            let slowly = asked.holds_slowly(&test, now);
            prop_assert_eq!(asked.holds(&test, now), slowly, "{:?} {:?}", now, logs);
        }
    }
}
