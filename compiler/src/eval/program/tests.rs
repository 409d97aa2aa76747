//! The program equals the tree evaluator, on random conditions and requests.

use super::*;
use crate::eval::entities::Entities;
use crate::eval::guard::{Request, is_true};
use crate::event::EntityData;
use crate::schema::{ActionSchema, Service, box_service};
use crate::value::{Record, Value};
use proptest::prelude::*;
use std::sync::Arc;

fn names() -> impl Strategy<Value = SmolStr> {
    prop::sample::select(vec!["a", "b", "c", "input"]).prop_map(SmolStr::new)
}

fn texts() -> impl Strategy<Value = SmolStr> {
    let texts = vec!["", "x", "y", "xy", "1.50", "10.1.2.3", "10.0.0.0/8"];
    prop::sample::select(texts).prop_map(SmolStr::new)
}

fn uids() -> impl Strategy<Value = EntityUid> {
    let types = prop::sample::select(vec!["T", "U", "Box::Action"]);
    (types, prop::sample::select(vec!["x", "y", "shell:spawn"]))
        .prop_map(|(ty, id)| EntityUid::new(ty, id))
}

fn longs() -> impl Strategy<Value = i64> {
    prop_oneof![-2i64..3, Just(i64::MAX), Just(i64::MIN)]
}

/// Values as they come with a request that was let in: decimals are well-formed.
fn values() -> impl Strategy<Value = Value> {
    let simple = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        longs().prop_map(Value::Int),
        texts().prop_map(Value::String),
        prop::sample::select(vec!["1.5", "1.50", "-2.0"]).prop_map(|d| Value::Decimal(d.into())),
        uids().prop_map(Value::Entity),
    ];
    simple.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            prop::collection::btree_map(names(), inner, 0..4).prop_map(Value::Object),
        ]
    })
}

fn records() -> impl Strategy<Value = Record> {
    prop::collection::btree_map(names(), values(), 0..4)
}

/// What a request is made of.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    uids: [EntityUid; 3],
    context: Record,
    given: Vec<EntityData>,
    leaves: u8,
    service: Arc<Service>,
}

pub(crate) fn askings() -> impl Strategy<Value = Asking> {
    let entity = (uids(), records(), prop::collection::vec(uids(), 0..2));
    let entities = entity.prop_map(|(uid, attrs, parents)| EntityData {
        uid,
        attrs,
        parents,
        tags: Record::new(),
    });
    let service = Arc::new(box_service());
    (
        [uids(), uids(), uids()],
        records(),
        prop::collection::vec(entities, 0..3),
        any::<u8>(),
    )
        .prop_map(move |(uids, context, given, leaves)| Asking {
            uids,
            context,
            given,
            leaves,
            service: Arc::clone(&service),
        })
}

impl Asking {
    pub fn request(&self) -> Request<'_> {
        let [principal, action, resource] = &self.uids;
        let schema: &ActionSchema = &self.service.actions;
        Request {
            principal,
            action,
            resource,
            context: &self.context,
            entities: Entities { given: &self.given },
            schema,
            provided: &[],
        }
    }

    pub fn leaf(&self, number: usize) -> bool {
        self.leaves >> (number & 7) & 1 == 1
    }
}

fn paths() -> impl Strategy<Value = Guard> {
    let var = prop::sample::select(vec![
        Var::Context,
        Var::Context,
        Var::Principal,
        Var::Resource,
        Var::Action,
    ]);
    (var, prop::collection::vec(names(), 0..3)).prop_map(|(var, names)| {
        names.into_iter().fold(Guard::Var(var), |target, name| {
            Guard::Attr(Box::new(target), name)
        })
    })
}

fn constants() -> impl Strategy<Value = Guard> {
    prop_oneof![
        any::<bool>().prop_map(Guard::Bool),
        longs().prop_map(Guard::Long),
        texts().prop_map(Guard::Str),
        uids().prop_map(Guard::Entity),
        prop::collection::vec(uids().prop_map(Guard::Entity), 0..3).prop_map(Guard::Set),
        prop::collection::vec(texts().prop_map(Guard::Str), 0..3).prop_map(Guard::Set),
    ]
}

fn ops() -> impl Strategy<Value = CompareOp> {
    prop::sample::select(vec![
        CompareOp::Eq,
        CompareOp::Eq,
        CompareOp::Ne,
        CompareOp::Lt,
        CompareOp::Le,
        CompareOp::Gt,
        CompareOp::Ge,
    ])
}

fn methods() -> impl Strategy<Value = Method> {
    prop::sample::select(vec![
        Method::Contains,
        Method::ContainsAll,
        Method::IsInRange,
        Method::LessThan,
        Method::GreaterThanOrEqual,
    ])
}

fn patterns() -> impl Strategy<Value = Vec<PatternPart>> {
    let part = prop_oneof![Just(PatternPart::Any), texts().prop_map(PatternPart::Text),];
    prop::collection::vec(part, 0..3).prop_map(|parts| crate::eval::compile::joined(&parts))
}

fn constructs(inner: impl Strategy<Value = Guard>) -> impl Strategy<Value = Guard> {
    let constructor = prop::sample::select(vec![
        Constructor::Ip,
        Constructor::Ip,
        Constructor::Decimal,
        Constructor::Duration,
    ]);
    (constructor, inner).prop_map(|(of, text)| Guard::Construct(of, Box::new(text)))
}

fn tests() -> impl Strategy<Value = Guard> {
    let side = || {
        prop_oneof![
            3 => paths(),
            3 => constants(),
            1 => constructs(texts().prop_map(Guard::Str)),
            1 => constructs(paths()),
            1 => constants().prop_map(|inner| Guard::Neg(Box::new(inner))),
        ]
    };
    let sides = move || [side(), side()].prop_map(Box::new);
    let types = prop::sample::select(vec!["T", "U"]).prop_map(SmolStr::new);
    prop_oneof![
        4 => (ops(), sides()).prop_map(|(op, sides)| Guard::Compare(op, sides)),
        3 => (paths(), constants()).prop_map(|(path, constant)| {
            Guard::Compare(CompareOp::Eq, Box::new([path, constant]))
        }),
        1 => sides().prop_map(Guard::In),
        2 => (paths(), prop::collection::vec(names(), 1..3))
            .prop_map(|(target, names)| Guard::Has(Box::new(target), names)),
        1 => (paths(), patterns()).prop_map(|(path, parts)| Guard::Like(Box::new(path), parts)),
        1 => (paths(), types, prop::option::of(constants().prop_map(Box::new)))
            .prop_map(|(path, ty, within)| Guard::Is(Box::new(path), ty, within)),
        2 => (methods(), sides()).prop_map(|(method, sides)| {
            let [target, arg] = *sides;
            Guard::Method(method, Box::new(target), vec![arg])
        }),
        1 => paths(),
        1 => constants(),
        2 => (0usize..8).prop_map(Guard::Leaf),
    ]
}

pub(crate) fn guards() -> impl Strategy<Value = Guard> {
    tests().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            2 => prop::collection::vec(inner.clone(), 0..5).prop_map(Guard::And),
            2 => prop::collection::vec(inner.clone(), 0..4).prop_map(Guard::Or),
            1 => inner.clone().prop_map(|inner| Guard::Not(Box::new(inner))),
            1 => [inner.clone(), inner.clone(), inner].prop_map(|parts| Guard::If(Box::new(parts))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    /// Several conditions share one run, so that what one has found out is there for the next.
    #[test]
    fn the_program_equals_the_tree(
        conditions in prop::collection::vec(guards(), 1..6),
        askings in prop::collection::vec(askings(), 1..3),
    ) {
        let mut builder = Builder::default();
        let ids: Vec<TestId> = conditions.iter().map(|guard| builder.condition(guard)).collect();
        let program = builder.finish();
        let mut scratch = Scratch::default();
        for asking in &askings {
            let request = asking.request();
            let mut leaf = |number: usize| asking.leaf(number);
            let mut run = Run::new(&program, &request, &mut scratch, &mut leaf);
            for (guard, id) in conditions.iter().zip(&ids) {
                let tree = is_true(guard, &request, &mut |number| asking.leaf(number));
                let expected = tree.clone().map_or(Truth::Error, Truth::from);
                prop_assert_eq!(run.truth(*id), expected, "{:?} {:?}", guard, tree);
            }
        }
    }
}

#[test]
fn leaves_wait_and_are_asked_once() {
    let leaf = || Guard::Leaf(0);
    let absent = Guard::Attr(Box::new(Guard::Var(Var::Context)), "absent".into());
    let asked = |guard: Guard, truth: bool| {
        let mut builder = Builder::default();
        let id = builder.condition(&guard);
        let program = builder.finish();
        let service = box_service();
        let uid = EntityUid::new("T", "x");
        let context = Record::new();
        let request = Request {
            principal: &uid,
            action: &uid,
            resource: &uid,
            context: &context,
            entities: Entities { given: &[] },
            schema: &service.actions,
            provided: &[],
        };
        let mut times = 0;
        let mut answer = |_| {
            times += 1;
            truth
        };
        let mut scratch = Scratch::default();
        let truth = Run::new(&program, &request, &mut scratch, &mut answer).truth(id);
        (truth, times)
    };
    let no = || Guard::Bool(false);
    assert_eq!(
        asked(Guard::And(vec![leaf(), no()]), true),
        (Truth::False, 0)
    );
    let yes = Guard::Compare(CompareOp::Eq, Box::new([Guard::Long(1), Guard::Long(1)]));
    let twice = Guard::And(vec![
        leaf(),
        yes.clone(),
        Guard::Not(Box::new(Guard::Not(Box::new(leaf())))),
    ]);
    assert_eq!(asked(twice, true), (Truth::True, 1));
    // A test that fails fails the rule only if the leaf before it lets it come to that.
    let failing = || Guard::And(vec![leaf(), absent.clone()]);
    assert_eq!(asked(failing(), false), (Truth::False, 1));
    assert_eq!(asked(failing(), true), (Truth::Error, 1));
    let late = Guard::And(vec![absent.clone(), leaf()]);
    assert_eq!(asked(late, false), (Truth::Error, 0));
}
