//! What is found by skipping is what going through everything finds.

use super::super::formula::{Number, Side, Test, Then, When};
use super::super::row::{Cmp, Slot};
use super::super::store::At;
use super::super::value::Val;
use super::Events;
use super::ask::Asked;
use proptest::prelude::*;
use smallvec::SmallVec;
use std::collections::BTreeMap;

const LOGS: usize = 3;

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![
        3 => Just(Side::Own(0)),
        2 => (0..3i64).prop_map(|n| Side::Val(Val::Int(n))),
        1 => (0..2u16).prop_map(Side::Asked),
    ]
}

/// The second is not there.
fn known(slot: Slot) -> Option<Val> {
    (slot == 0).then_some(Val::Int(1))
}

fn test() -> impl Strategy<Value = Test> {
    let cmp = || {
        let all = vec![Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge, Cmp::Eq, Cmp::Ne];
        prop::sample::select(all)
    };
    let now = (0..LOGS).prop_map(|log| Test::Now(when(log, Vec::new())));
    let compared = (cmp(), side(), side());
    let compared = compared.prop_map(|(op, left, right)| Test::Compare(op, left, right));
    let plain = prop_oneof![2 => now, 1 => compared];
    plain.prop_recursive(3, 24, 3, move |inner| {
        let then = (any::<bool>(), inner).prop_map(|(negated, test)| Then { negated, test });
        let list = (0..LOGS, prop::collection::vec(then.clone(), 0..3));
        let list = list.prop_map(|(log, then)| when(log, then));
        let window = 0..12i64;
        let breaks = prop::collection::vec(list.clone(), 0..3);
        let kind = (prop::option::of(Just(0)), prop::option::of(Just(vec![0])));
        let than = side().prop_filter("the same at every event", |side| *side != Side::Own(0));
        let number = (list.clone(), window.clone(), kind, cmp(), than);
        prop_oneof![
            list.clone().prop_map(Test::Now),
            (list.clone(), window.clone()).prop_map(|(list, window)| Test::Formerly(list, window)),
            (list.clone(), window.clone()).prop_map(|(list, window)| Test::Previous(list, window)),
            (list, breaks, window)
                .prop_map(|(anchor, breaks, window)| Test::Since(anchor, breaks, window)),
            number.prop_map(|(when, window, (sum, distinct), op, than)| {
                Test::Number(Box::new(Number {
                    when,
                    window,
                    sum,
                    distinct,
                    op,
                    than,
                }))
            }),
            prop::collection::vec(then, 1..3).prop_map(Test::All),
        ]
    })
}

fn when(log: usize, then: Vec<Then>) -> When {
    let number = 0;
    When { number, log, then }
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
        Test::Now(when) | Test::Formerly(when, _) | Test::Previous(when, _) => of(when),
        Test::Number(number) => of(&mut number.when),
        Test::Since(anchor, breaks, _) => {
            of(anchor);
            breaks.iter_mut().for_each(of);
        }
        Test::Compare(..) => {}
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
        events in prop::collection::vec((0..4i64, prop::collection::vec(0..4i64, LOGS)), 1..40),
    ) {
        number(&mut test, &mut 0);
        let mut logs = vec![Events::default(); LOGS];
        let late = BTreeMap::new();
        let mut time = 0;
        for (pos, (step, of)) in (0..).zip(&events) {
            time += step;
            let now = At { pos, time };
            for (log, val) in logs.iter_mut().zip(of).filter(|(_, val)| **val < 2) {
                log.at.push_back(now);
                log.vals.get_or_insert_default().0.push_back(Val::Int(*val));
            }
            let all: SmallVec<[Option<&Events>; 4]> = logs.iter().map(Some).collect();
            let mut asked = Asked::new(all, &late, &known);
            let slowly = asked.holds_slowly(&test, now);
            prop_assert_eq!(asked.holds(&test, now), slowly, "{:?} {:?}", now, logs);
        }
    }
}
