//! Shapes of leaves that are not one lookup by themselves: whether they cost the same over any history.
//!
//! In a leaf `W` stands for the window, `H` for half of it, and `login{` and so on for an event of that action.

use crate::workload::{Fields, PERMIT_ALL};
use crate::workload::{Goal, Workload, below, draw, forbid, some_actions};
use dogwood_compiler::event::Event;
use dogwood_compiler::value::{EntityUid, Value};

/// A shape, and the rule it makes.
macro_rules! shapes {
    ($($name:literal: $leaf:literal,)*) => {
        vec![$(Workload {
            name: concat!("shape: ", $name),
            goal: GOAL,
            temporal: true,
            policy: |history| rules(history, $leaf),
            event,
            actions: some_actions,
        },)*]
    };
}

const GOAL: Goal = Goal {
    nanoseconds: 3000,
    flat: true,
    bytes_per_event: None,
};

pub fn all() -> Vec<Workload> {
    let mut all = shapes![
        "since, left formerly": "(formerly within H edit{ input.item: context.input.item }) since within W test{ input.item: context.input.item }",
        "since, left not formerly": "(!formerly within H edit{ input.item: context.input.item }) since within W test{ input.item: context.input.item }",
        "since inside, key of the request": "formerly within W (read{} && (!edit{ input.item: context.input.item } since within W test{}))",
        "formerly inside, one key": "formerly within W (read{} && formerly within H login{ input.user: context.input.user })",
        "formerly inside, two keys": "formerly within W (read{ input.item: context.input.item } && formerly within H login{ input.user: context.input.user })",
        "not formerly inside": "formerly within W (read{ input.item: context.input.item } && !formerly within H login{ input.user: context.input.user })",
        "three deep, three keys": "formerly within W (read{ input.item: context.input.item } && formerly within H (login{ input.user: context.input.user } && formerly within H pay{ input.amount: context.input.amount }))",
        "either inside": "formerly within W (read{ input.item: context.input.item } && !(!formerly within H login{ input.user: context.input.user } && !formerly within H pay{ input.amount: context.input.amount }))",
        "formerly of formerly": "formerly within W (formerly within H login{ input.user: context.input.user })",
        "since, left joined": "!(edit{ input.item: context.input.item } && formerly within H login{ input.user: context.input.user }) since within W test{}",
        "since, right joined": "!edit{ input.item: context.input.item } since within W (test{} && formerly within H login{ input.user: context.input.user })",
        "since, left since": "(!edit{ input.item: context.input.item } since within H login{ input.user: context.input.user }) since within W test{}",
        "since, left not since": "(!(!edit{} since within H login{ input.user: context.input.user })) since within W test{ input.item: context.input.item }",
        "since, left count": "((count for (t: Timepoint). where formerly within H (pay{ input.user: context.input.user } && tp(t))) <= 5) since within W test{ input.item: context.input.item }",
        "two filters": "exists (x: String). (formerly within W approve{ input.item: x } && x != context.input.item && x != context.input.user)",
        "sum of a join": "(sum a for (a: Long), (x: String). where (formerly within W pay{ input.amount: a, input.item: x } && formerly within W approve{ input.item: x })) <= 100",
        "join, both asked": "exists (x: String). (formerly within W approve{ input.item: x, input.user: context.input.user } && formerly within W test{ input.item: x, input.amount: context.input.amount })",
        "inner finds more": "formerly within W (exists (v: String). (read{ input.item: v, input.user: context.input.user } && formerly within H pay{ input.item: v, input.amount: context.input.amount }))",
        "count inside": "formerly within W (read{ input.item: context.input.item } && (count for (t: Timepoint). where formerly within H (pay{ input.user: context.input.user } && tp(t))) >= 2)",
        "join with since": "exists (x: String). (formerly within W approve{ input.item: x } && (!edit{ input.item: x, input.user: context.input.user } since within W test{ input.item: x }))",
        "variable inside": "formerly within W (exists (x: String). (formerly within H approve{ input.item: x, input.user: context.input.user } && formerly within H test{ input.item: x }))",
        "variable around": "exists (x: String). (formerly within W approve{ input.item: x, input.user: context.input.user } && ((!(!edit{} since within H login{ input.item: x })) since within W test{ input.item: x }))",
        "join counted inside": "formerly within W (read{ input.item: context.input.item } && (count for (x: String). where (formerly within H pay{ input.item: x, input.user: context.input.user } && formerly within H test{ input.item: x })) >= 2)",
        "request inside, ordered": "formerly within W (exists (a: Long). (pay{ input.user: context.input.user, input.amount: a } && a > context.input.amount))",
        "request inside, unequal": "formerly within W (pay{ input.user: context.input.user } && !pay{ input.item: context.input.item })",
        "filter, ordered": "exists (a: Long). (formerly within W pay{ input.amount: a } && a > context.input.amount)",
        "filter, unequal": "exists (x: String). (formerly within W pay{ input.item: x } && x != context.input.item)",
        "filter, not formerly": "exists (x: String). (formerly within W approve{ input.item: x } && !formerly within W test{ input.item: x })",
        "three joined": "exists (x: String). (formerly within W approve{ input.item: x, input.user: context.input.user } && formerly within W test{ input.item: x } && formerly within H read{ input.item: x })",
        "count of a join": "(count for (x: String). where (formerly within W approve{ input.item: x, input.user: \"user-3\" } && formerly within W test{ input.item: x })) >= 5",
        "join, own columns unused": "exists (x: String). ((exists (u: String). formerly within W approve{ input.item: x, input.user: u }) && (exists (v: Long). formerly within W test{ input.item: x, input.amount: v }))",
        "join, own columns asked": "exists (x: String). (formerly within W approve{ input.item: x, input.user: context.input.user } && formerly within W test{ input.item: x, input.user: \"user-1\" })",
        "three windows, one body": "(count for (t: Timepoint). where formerly within W (pay{ input.user: context.input.user } && tp(t))) <= 12 && (count for (t: Timepoint). where formerly within H (pay{ input.user: context.input.user } && tp(t))) <= 6 && (count for (t: Timepoint). where formerly within Q (pay{ input.user: context.input.user } && tp(t))) <= 4",
    ];
    all.push(Workload {
        name: "shape: formerly, a caller an event",
        goal: GOAL,
        temporal: true,
        policy: |history| {
            rules(
                history,
                "formerly within W login{ callerPrincipal: principal }",
            )
        },
        event: of_a_caller,
        actions: some_actions,
    });
    all.push(Workload {
        name: "shape: formerly, a long name an event",
        goal: GOAL,
        temporal: true,
        policy: |history| {
            let leaf = "formerly within W login{ input.user: context.input.user }";
            rules(history, leaf)
        },
        event: of_a_long_name,
        actions: some_actions,
    });
    all
}

fn rules(history: usize, leaf: &str) -> String {
    let mut leaf = leaf
        .replace("within W", &format!("within {}s", 2 * history))
        .replace("within H", &format!("within {history}s"))
        .replace("within Q", &format!("within {}s", history / 2));
    for action in some_actions() {
        leaf = leaf.replace(
            &format!("{action}{{"),
            &format!("Depot::Action::\"{action}\"::response{{"),
        );
    }
    format!("{PERMIT_ALL}{}", forbid("push", "unless", &leaf))
}

fn event(n: usize, decides: bool, history: usize) -> Event {
    const PAST: [&str; 6] = ["login", "edit", "test", "read", "pay", "approve"];
    let draw = draw(n, decides);
    let fields = Fields {
        user: below(draw, 24, history / 10),
        item: below(draw, 25, history / 3),
        amount: below(draw, 26, history) as i64,
        ok: true,
    };
    let past = PAST[below(draw, 27, PAST.len()) as usize];
    fields.event(n, if decides { "push" } else { past }, decides)
}

fn login_or_push(n: usize, decides: bool, history: usize) -> (Event, u64) {
    let draw = draw(n, decides);
    let event = Fields::new(draw).event(n, if decides { "push" } else { "login" }, decides);
    (event, below(draw, 28, history))
}

/// A decision asks about the one who asks.
fn of_a_caller(n: usize, decides: bool, history: usize) -> Event {
    let (mut event, user) = login_or_push(n, decides, history);
    let caller = EntityUid::new("Depot::Clerk", format!("c-{user}"));
    event
        .logged
        .insert("callerPrincipal".into(), caller.clone().into());
    if let Some(request) = &mut event.request {
        request.principal = Some(caller);
    }
    event
}

/// The names do not fit into a value.
fn of_a_long_name(n: usize, decides: bool, history: usize) -> Event {
    let (mut event, user) = login_or_push(n, decides, history);
    let name = Value::str(format!("user-{user}@depot.example"));
    let context = event.request.iter_mut().map(|part| &mut part.context);
    for record in std::iter::once(&mut event.logged).chain(context) {
        if let Some(Value::Object(input)) = record.get_mut("input") {
            input.insert("user".into(), name.clone());
        }
    }
    event
}
