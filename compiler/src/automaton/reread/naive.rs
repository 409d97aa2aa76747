//! However it is asked, a formula holds where its definition says.

use super::ask::{Asked, Found, Known};
use super::indexes::Indexes;
use super::plan::{Form, Memo};
use super::spans::Spans;
use super::{Happened, Reread};
use crate::automaton::row::Slot;
use crate::automaton::store::in_window;
use crate::automaton::value::Val;
use proptest::prelude::*;
use std::collections::BTreeSet;

const FIRST: i64 = 5;
const VALS: i64 = 2;

fn holds(state: &Reread, form: &Form, env: &mut Vec<Known>, pos: i64) -> bool {
    let Some(now) = state.time(pos) else {
        return false;
    };
    let inside = |pos: &i64, window: i64| {
        let time = state.time(*pos);
        time.is_some_and(|time| in_window(time, now, window))
    };
    match form {
        Form::All(parts) => parts.iter().all(|part| holds(state, part, env, pos)),
        Form::Not(body) => !holds(state, body, env, pos),
        Form::Event(log, slots) => {
            let happened = &state.logs[*log];
            let event = happened.at.iter().position(|at| *at == pos);
            event.is_some_and(|event| {
                let mut columns = slots.iter().enumerate();
                columns.all(|(column, slot)| {
                    let val = happened.val(event, column);
                    val.map(Known::Val) == Some(env[*slot as usize])
                })
            })
        }
        Form::Now(slot) => env[*slot as usize] == Known::Val(Val::Int(pos)),
        Form::Exists(slots, body, _) => {
            let slot = slots[0] as usize;
            let found = (0..VALS).any(|val| {
                env[slot] = Known::Val(Val::Int(val));
                holds(state, body, env, pos)
            });
            env[slot] = Known::Not;
            found
        }
        Form::Formerly(body, window, _) => {
            (FIRST..=pos).any(|at| inside(&at, *window) && holds(state, body, env, at))
        }
        Form::Previous(body, window, _) => {
            inside(&(pos - 1), *window) && holds(state, body, env, pos - 1)
        }
        Form::Since(sides, window, _) => (FIRST..=pos).any(|at| {
            inside(&at, *window)
                && holds(state, &sides.1, env, at)
                && (at + 1..=pos).all(|later| holds(state, &sides.0, env, later))
        }),
        Form::Compare(..) | Form::Never => false,
    }
}

fn memo(free: BTreeSet<Slot>, shared: bool) -> Memo {
    Memo {
        number: 0,
        free: free.into_iter().collect(),
        shared,
    }
}

/// Each number is one operator's.
fn number(form: &mut Form, next: &mut usize) {
    let memo = match form {
        Form::All(parts) => return parts.iter_mut().for_each(|part| number(part, next)),
        Form::Not(body) => return number(body, next),
        Form::Since(sides, _, memo) => {
            number(&mut sides.0, next);
            number(&mut sides.1, next);
            memo
        }
        Form::Exists(_, body, memo)
        | Form::Formerly(body, _, memo)
        | Form::Previous(body, _, memo) => {
            number(body, next);
            memo
        }
        Form::Event(..) | Form::Now(_) | Form::Compare(..) | Form::Never => return,
    };
    memo.number = *next;
    *next += 1;
}

/// Formulas of which only these slots are known.
fn forms(slots: Slot) -> BoxedStrategy<Form> {
    let leaf = prop_oneof![
        4 => (0..slots).prop_map(|slot| Form::Event(0, vec![slot])),
        2 => (0..slots, 0..slots).prop_map(|(one, two)| Form::Event(1, vec![one, two])),
        2 => Just(Form::Event(2, Vec::new())),
        1 => Just(Form::Never),
    ];
    leaf.prop_recursive(3, 8, 2, move |inner| {
        let operand = (inner.clone(), 0i64..6, any::<bool>());
        let both = (inner.clone(), inner.clone(), 0i64..6, any::<bool>());
        let bound = (1i64..3).prop_flat_map(move |log| {
            let body = if slots == 1 {
                forms(2)
            } else {
                Just(Form::Never).boxed()
            };
            (Just(log), body, any::<bool>(), any::<bool>())
        });
        let mut all = vec![
            prop::collection::vec(inner.clone(), 0..3)
                .prop_map(Form::All)
                .boxed(),
            inner.prop_map(|body| Form::Not(Box::new(body))).boxed(),
            operand
                .clone()
                .prop_map(|(body, window, shared)| {
                    let memo = memo(body.free(), shared);
                    Form::Formerly(Box::new(body), window, memo)
                })
                .boxed(),
            operand
                .prop_map(|(body, window, shared)| {
                    let memo = memo(body.free(), shared);
                    Form::Previous(Box::new(body), window, memo)
                })
                .boxed(),
            both.prop_map(|(left, right, window, shared)| {
                let memo = memo(&left.free() | &right.free(), shared);
                Form::Since(Box::new((left, right)), window, memo)
            })
            .boxed(),
        ];
        if slots == 1 {
            all.push(
                bound
                    .prop_map(|(log, body, looks_back, shared)| {
                        let event = match log {
                            1 => Form::Event(0, vec![1]),
                            _ => Form::Event(1, vec![0, 1]),
                        };
                        let event = match looks_back {
                            true => {
                                let memo = memo(event.free(), shared);
                                Form::Formerly(Box::new(event), 9, memo)
                            }
                            false => event,
                        };
                        let body = Form::All(vec![event, body]);
                        let free = &body.free() - &BTreeSet::from([1]);
                        Form::Exists(vec![1], Box::new(body), memo(free, shared))
                    })
                    .boxed(),
            );
        }
        prop::strategy::Union::new(all)
    })
    .boxed()
}

fn log(width: usize, events: &[Option<(i64, i64)>]) -> Happened {
    let mut happened = Happened {
        gone: 3,
        width,
        ..Happened::default()
    };
    for (pos, event) in (FIRST..).zip(events) {
        if let Some((one, two)) = event {
            happened.at.push_back(pos);
            let vals = [Val::Int(*one), Val::Int(*two)];
            happened.vals.extend(&vals[..width]);
        }
    }
    happened
}

fn states() -> impl Strategy<Value = Reread> {
    let events = || prop::option::of((0..VALS, 0..VALS));
    let event = (
        prop_oneof![8 => 0i64..3, 1 => -2i64..0],
        events(),
        events(),
        events(),
    );
    prop::collection::vec(event, 1..14).prop_map(|events| {
        let mut state = Reread {
            first: FIRST,
            stamps: Default::default(),
            back: 0,
            lateness: 0,
            logs: vec![
                log(1, &events.iter().map(|event| event.1).collect::<Vec<_>>()),
                log(2, &events.iter().map(|event| event.2).collect::<Vec<_>>()),
                log(0, &events.iter().map(|event| event.3).collect::<Vec<_>>()),
            ],
            indexes: Indexes::default(),
        };
        let mut time = 0;
        for (step, ..) in events {
            time += step;
            state.stamp(time);
        }
        state
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]
    #[test]
    fn a_formula_holds_where_its_definition_says(
        mut form in forms(1),
        state in states(),
        domains in prop::collection::vec(prop::collection::btree_set(FIRST..FIRST + 14, 0..9), 3),
    ) {
        number(&mut form, &mut 0);
        let mut env = vec![Known::Val(Val::Int(1)), Known::Not];
        let mut found = Found::default();
        for positions in domains {
            let (mut domain, mut expected) = (Spans::default(), Spans::default());
            for pos in positions.into_iter().filter(|pos| *pos < state.behind()) {
                domain.push(pos, pos);
                if holds(&state, &form, &mut env, pos) {
                    expected.push(pos, pos);
                }
            }
            // What is remembered of one question must be right for the next.
            let mut asked = Asked { state: &state, found: &mut found };
            prop_assert_eq!(asked.somewhere(&form, &mut env, &domain), !expected.is_empty());
            prop_assert_eq!(asked.spans(&form, &mut env, &domain), expected);
        }
    }
}
