//! Dispatch leaves out only rules that are false without an error.

use super::*;
use crate::eval::program::tests::{askings, guards};
use crate::eval::program::{Builder, Scratch, Truth};
use crate::eval::{Guard, is_true};
use dogwood_grammar::ast::{CompareOp, Var};
use proptest::prelude::*;

/// A condition with a comparison of a few paths, after or before something else.
fn selective() -> impl Strategy<Value = Guard> {
    let attribute = |of: Guard, name: &str| Guard::Attr(Box::new(of), name.into());
    let input = attribute(Guard::Var(Var::Context), "input");
    let paths = vec![
        Guard::Var(Var::Principal),
        attribute(Guard::Var(Var::Context), "a"),
        attribute(input.clone(), "a"),
        attribute(input.clone(), "b"),
    ];
    let constant = prop_oneof![
        prop::sample::select(vec!["", "x", "y", "z"]).prop_map(|text| Guard::Str(text.into())),
        (0i64..3).prop_map(Guard::Long),
        prop::sample::select(vec!["x", "y"]).prop_map(|id| Guard::Entity(EntityUid::new("T", id))),
    ];
    let same = (prop::sample::select(paths), constant)
        .prop_map(|(path, constant)| Guard::Compare(CompareOp::Eq, Box::new([path, constant])));
    let either = prop::collection::vec(same.clone(), 1..3).prop_map(Guard::Or);
    let has = prop::sample::select(vec!["a", "b"])
        .prop_map(move |name| Guard::Has(Box::new(input.clone()), vec![name.into()]));
    let part = prop_oneof![4 => same, 2 => either, 2 => has, 1 => guards()];
    prop::collection::vec(part, 1..4).prop_map(Guard::And)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_left_out_is_false(
        conditions in prop::collection::vec(selective(), 1..24),
        askings in prop::collection::vec(askings(), 1..4),
    ) {
        let mut builder = Builder::default();
        let rules: Vec<(usize, TestId)> =
            conditions.iter().map(|guard| builder.condition(guard)).enumerate().collect();
        let program = builder.finish();
        let dispatch = Dispatch::new(rules, &program, &Families::default());
        let mut scratch = Scratch::default();
        for asking in &askings {
            let request = asking.request();
            let mut leaf = |number: usize| asking.leaf(number);
            let mut run = Run::new(&program, &request, &mut scratch, &mut leaf);
            let mut truths = vec![None; conditions.len()];
            dispatch.each(&mut run, &mut |run, rule, condition| {
                assert_eq!(truths[rule], None, "visited once");
                truths[rule] = Some(run.truth(condition));
            });
            for (guard, truth) in conditions.iter().zip(truths) {
                let tree = is_true(guard, &request, &mut |number| asking.leaf(number));
                let expected = tree.map_or(Truth::Error, Truth::from);
                prop_assert_eq!(truth.unwrap_or(Truth::False), expected, "{:?}", guard);
            }
        }
    }
}

#[test]
fn many_rules_of_one_field_are_found_by_its_value() {
    let path = Guard::Attr(Box::new(Guard::Var(Var::Context)), "a".into());
    let mut builder = Builder::default();
    let rules = (0..100).map(|n| {
        let sides = [path.clone(), Guard::Long(n)];
        (
            n as usize,
            builder.condition(&Guard::Compare(CompareOp::Eq, Box::new(sides))),
        )
    });
    let rules: Vec<_> = rules.collect();
    let dispatch = Dispatch::new(rules, &builder.finish(), &Families::default());
    assert_eq!((dispatch.always.len(), dispatch.groups.len()), (0, 1));
    assert_eq!(dispatch.groups[0].numbers.len(), 100);
}
