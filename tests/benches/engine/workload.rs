//! What is raced: rules, and the stream of events they are asked about.
//!
//! Step `n` is an event of the past at second `2n` and, in the measured part, a decision a second later: each
//! stamp is larger than the last, as the peer asks for. Windows are `2 × history` seconds long, so they hold
//! `history` events of the past, and one leaves for each that comes.

use dogwood_compiler::event::{Event, RequestPart};
use dogwood_compiler::value::{EntityUid, Record, Value};
use std::fmt::Write;

pub const ACTIONS_OF_THE_LARGE_SET: usize = 1000;

/// What the issue asks for, per event with its decision.
#[derive(Clone, Copy)]
pub struct Goal {
    pub nanoseconds: u64,
    /// Median and p99 stay within twice those of the shortest history.
    pub flat: bool,
    pub bytes_per_event: Option<u64>,
}

pub struct Workload {
    pub name: &'static str,
    pub goal: Goal,
    /// Whether the history matters.
    pub temporal: bool,
    pub policy: fn(history: usize) -> String,
    /// The decision of step `n`, or what happened before it.
    pub event: fn(n: usize, decides: bool, history: usize) -> Event,
    /// Names of the actions.
    pub actions: fn() -> Vec<String>,
}

const MICROSECOND: u64 = 1000;

const fn goal(microseconds: u64, temporal: bool) -> Goal {
    Goal {
        nanoseconds: microseconds * MICROSECOND,
        flat: temporal,
        bytes_per_event: if temporal { Some(200) } else { None },
    }
}

pub fn all() -> Vec<Workload> {
    vec![
        plain("1 plain rule", |_| plain_rules(1), 1),
        plain("10 plain rules", |_| plain_rules(10), 1),
        plain("100 plain rules", |_| plain_rules(100), 1),
        plain("1,000 plain rules", |_| plain_rules(1000), 20),
        Workload {
            name: "10,000 rules on 1,000 actions",
            goal: goal(20, false),
            temporal: false,
            policy: |_| rules_on_many_actions(),
            event: |n, decides, _| {
                let action = random(n, 1) % ACTIONS_OF_THE_LARGE_SET as u64;
                Fields::new(n).event(n, &format!("act{action}"), decides)
            },
            actions: || {
                let names = 0..ACTIONS_OF_THE_LARGE_SET;
                names.map(|n| format!("act{n}")).collect()
            },
        },
        temporal("formerly (1,000 users)", 1, formerly_rules, formerly_event),
        temporal(
            "formerly (a user an event)",
            1,
            formerly_rules,
            formerly_of_many_event,
        ),
        temporal("since (push gate)", 1, since_rules, since_event),
        temporal("previous, correlated", 1, previous_rules, previous_event),
        temporal("count (60 a user)", 3, count_rules, count_event),
        temporal("sum (1,000 accounts)", 3, sum_rules, sum_event),
        temporal("join on a bound variable", 3, join_rules, join_event),
        temporal("50 mixed temporal rules", 20, mixed_rules, mixed_event),
        temporal(
            "1,000 formerly rules",
            20,
            many_formerly_rules,
            many_formerly_event,
        ),
    ]
}

fn plain(name: &'static str, policy: fn(usize) -> String, microseconds: u64) -> Workload {
    Workload {
        name,
        goal: goal(microseconds, false),
        temporal: false,
        policy,
        event: |n, decides, _| Fields::new(n).event(n, "read", decides),
        actions: some_actions,
    }
}

fn temporal(
    name: &'static str,
    microseconds: u64,
    policy: fn(usize) -> String,
    event: fn(usize, bool, usize) -> Event,
) -> Workload {
    Workload {
        name,
        goal: goal(microseconds, true),
        temporal: true,
        policy,
        event,
        actions: some_actions,
    }
}

pub fn some_actions() -> Vec<String> {
    let names = ["read", "login", "push", "test", "edit", "pay", "approve"];
    names.map(str::to_owned).to_vec()
}

pub fn action_schema(actions: &[String]) -> String {
    let mut text = "namespace Depot {\n  entity Clerk;\n  entity Bay;\n  type In = { user: String, item: String, amount: Long };\n".to_owned();
    for name in actions {
        _ = writeln!(
            text,
            "  action \"{name}\" appliesTo {{ principal: [Clerk], resource: [Bay], context: {{ input: In, output?: {{ ok: Bool }} }} }};"
        );
    }
    text.push_str("}\n");
    text
}

pub const EVENT_SCHEMA: &str = "max_window = 400d
decision event <A>::request { ...inputs(A), callerPrincipal: principalType(A), callerResource: resourceType(A) }
event <A>::response { ...inputs(A), ...outputs(A), callerPrincipal: principalType(A), callerResource: resourceType(A) }
";

/// A number from the position of an event: the same in every run, and no two `salt`s alike.
pub fn random(n: usize, salt: u64) -> u64 {
    let mut x = (n as u64)
        .wrapping_add(salt << 48)
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// So that a decision does not ask about just what has happened.
pub fn draw(n: usize, decides: bool) -> usize {
    2 * n + usize::from(decides)
}

pub fn below(n: usize, salt: u64, bound: usize) -> u64 {
    random(n, salt) % bound.max(1) as u64
}

pub struct Fields {
    pub user: u64,
    pub item: u64,
    pub amount: i64,
    pub ok: bool,
}

impl Fields {
    pub fn new(n: usize) -> Fields {
        Fields {
            user: below(n, 2, 100),
            item: below(n, 3, 1000),
            amount: below(n, 4, 1000) as i64,
            ok: true,
        }
    }

    pub fn event(&self, n: usize, action: &str, decides: bool) -> Event {
        let input = Value::Object(Record::from([
            ("user".into(), Value::str(format!("user-{}", self.user))),
            ("item".into(), Value::str(format!("item-{}", self.item))),
            ("amount".into(), Value::Int(self.amount)),
        ]));
        let principal = EntityUid::new("Depot::Clerk", "ann");
        let resource = EntityUid::new("Depot::Bay", "b1");
        let mut logged = Record::from([
            ("input".into(), input.clone()),
            ("callerPrincipal".into(), principal.clone().into()),
            ("callerResource".into(), resource.clone().into()),
        ]);
        if !decides {
            let output = Record::from([("ok".into(), Value::Bool(self.ok))]);
            logged.insert("output".into(), Value::Object(output));
        }
        Event {
            time: 2 * n as i64 + i64::from(decides),
            action: EntityUid::new("Depot::Action", action),
            kind: if decides { "request" } else { "response" }.into(),
            logged,
            request: decides.then(|| RequestPart {
                principal: Some(principal),
                resource: Some(resource),
                context: Record::from([("input".into(), input)]),
                entities: Vec::new(),
            }),
        }
    }
}

pub fn forbid(action: &str, when: &str, temporal: &str) -> String {
    format!(
        "forbid (principal, action == Depot::Action::\"{action}\", resource) {when} temporal {{ {temporal} }};\n"
    )
}

pub const PERMIT_ALL: &str = "permit (principal, action, resource);\n";

/// Half permit small amounts of one item, half forbid another item.
fn plain_rules(rules: usize) -> String {
    let mut text = "permit (principal, action == Depot::Action::\"read\", resource) when { context.input.amount < 700 };\n".to_owned();
    for n in 1..rules {
        let rule = if n % 2 == 0 {
            format!(
                "permit (principal, action == Depot::Action::\"read\", resource) when {{ context.input.item == \"item-{n}\" && context.input.amount >= {n} }};"
            )
        } else {
            format!(
                "forbid (principal, action == Depot::Action::\"read\", resource) when {{ context.input.item == \"item-{n}\" && context.input.user like \"user-{}*\" }};",
                n % 10
            )
        };
        _ = writeln!(text, "{rule}");
    }
    text
}

fn rules_on_many_actions() -> String {
    let mut text = String::new();
    for action in 0..ACTIONS_OF_THE_LARGE_SET {
        for n in 0..10 {
            let (effect, test) = match n {
                0 => ("permit", "context.input.amount < 700".to_owned()),
                n if n % 2 == 0 => ("permit", format!("context.input.item == \"item-{n}\"")),
                n => (
                    "forbid",
                    format!(
                        "context.input.item == \"item-{n}\" && context.input.amount > {action}"
                    ),
                ),
            };
            _ = writeln!(
                text,
                "{effect} (principal, action == Depot::Action::\"act{action}\", resource) when {{ {test} }};"
            );
        }
    }
    text
}

/// A user reads who has logged in.
fn formerly_rules(history: usize) -> String {
    let window = 2 * history;
    let leaf = format!(
        "formerly within {window}s Depot::Action::\"login\"::response{{ input.user: context.input.user }}"
    );
    format!("{PERMIT_ALL}{}", forbid("read", "unless", &leaf))
}

/// Half of the users never log in.
fn formerly_event(n: usize, decides: bool, _: usize) -> Event {
    let draw = draw(n, decides);
    let user = below(draw, 5, 2000);
    let fields = Fields {
        user: if decides { user } else { user - user % 2 },
        ..Fields::new(draw)
    };
    fields.event(n, if decides { "read" } else { "login" }, decides)
}

/// About two thirds of the users have logged in, each about once.
fn formerly_of_many_event(n: usize, decides: bool, history: usize) -> Event {
    let draw = draw(n, decides);
    let fields = Fields {
        user: below(draw, 5, history),
        ..Fields::new(draw)
    };
    fields.event(n, if decides { "read" } else { "login" }, decides)
}

/// Of each item: pushed after a passing test and no edit since.
fn since_rules(history: usize) -> String {
    let window = 2 * history;
    let leaf = format!(
        "!Depot::Action::\"edit\"::response{{ input.item: context.input.item }} since within {window}s Depot::Action::\"test\"::response{{ input.item: context.input.item, output.ok: true }}"
    );
    format!("{PERMIT_ALL}{}", forbid("push", "unless", &leaf))
}

fn since_event(n: usize, decides: bool, _: usize) -> Event {
    let draw = draw(n, decides);
    let fields = Fields {
        item: below(draw, 6, 100),
        ok: below(draw, 7, 5) > 0,
        ..Fields::new(draw)
    };
    let past = if below(draw, 8, 2) == 0 {
        "edit"
    } else {
        "test"
    };
    fields.event(n, if decides { "push" } else { past }, decides)
}

/// The step before was a test of the same item.
fn previous_rules(history: usize) -> String {
    let window = 2 * history;
    let leaf = format!(
        "previous within {window}s Depot::Action::\"test\"::response{{ input.item: context.input.item }}"
    );
    format!("{PERMIT_ALL}{}", forbid("push", "unless", &leaf))
}

fn previous_event(n: usize, decides: bool, _: usize) -> Event {
    let fields = Fields {
        // Half of the decisions ask about another item.
        item: 2 * below(n, 9, 50) + if decides { below(n, 10, 2) } else { 0 },
        ..Fields::new(n)
    };
    fields.event(n, if decides { "push" } else { "test" }, decides)
}

/// So many users that the window holds about sixty events of each.
fn count_rules(history: usize) -> String {
    let window = 2 * history;
    let leaf = format!(
        "(count for (t: Timepoint). where formerly within {window}s (Depot::Action::\"read\"::response{{ input.user: context.input.user }} && tp(t))) >= 60"
    );
    format!("{PERMIT_ALL}{}", forbid("read", "when", &leaf))
}

fn count_event(n: usize, decides: bool, history: usize) -> Event {
    let draw = draw(n, decides);
    let fields = Fields {
        user: below(draw, 11, history / 60),
        ..Fields::new(draw)
    };
    fields.event(n, "read", decides)
}

/// Cents, so that an account spends about 10,000 in the window.
fn sum_rules(history: usize) -> String {
    let window = 2 * history;
    let leaf = format!(
        "(sum spent for (spent: Long), (t: Timepoint). where formerly within {window}s (Depot::Action::\"pay\"::response{{ input.user: context.input.user, input.amount: spent }} && tp(t))) > 10000"
    );
    format!("{PERMIT_ALL}{}", forbid("pay", "when", &leaf))
}

fn sum_event(n: usize, decides: bool, history: usize) -> Event {
    let draw = draw(n, decides);
    let fields = Fields {
        user: below(draw, 12, 1000),
        amount: 1 + below(draw, 13, 20_000 * 1000 / history.max(1)) as i64,
        ..Fields::new(draw)
    };
    fields.event(n, "pay", decides)
}

/// Something this user approved has passed a test.
fn join_rules(history: usize) -> String {
    let window = 2 * history;
    let leaf = format!(
        "exists (x: String). (formerly within {window}s Depot::Action::\"approve\"::response{{ input.user: context.input.user, input.item: x }} && formerly within {window}s Depot::Action::\"test\"::response{{ input.item: x, output.ok: true }})"
    );
    format!("{PERMIT_ALL}{}", forbid("push", "unless", &leaf))
}

fn join_event(n: usize, decides: bool, history: usize) -> Event {
    let draw = draw(n, decides);
    let fields = Fields {
        user: below(draw, 14, history / 4),
        item: below(draw, 15, history),
        ok: below(draw, 16, 2) == 0,
        ..Fields::new(draw)
    };
    let past = if below(draw, 17, 2) == 0 {
        "approve"
    } else {
        "test"
    };
    fields.event(n, if decides { "push" } else { past }, decides)
}

/// Ten of each of five kinds, all on the action decided, told apart by their windows and numbers.
fn mixed_rules(history: usize) -> String {
    let mut text = PERMIT_ALL.to_owned();
    for n in 0..10 {
        let window = format!("{}s", (2 * history * (n + 1) / 10).max(1));
        let event = |name: &str| format!("Depot::Action::\"{name}\"::response");
        text.push_str(&forbid(
            "push",
            "when",
            &format!(
                "formerly within {window} {}{{ input.user: context.input.user, input.amount: {n} }}",
                event("login")
            ),
        ));
        text.push_str(&forbid(
            "push",
            "when",
            &format!(
                "!{}{{ input.item: context.input.item }} since within {window} {}{{ input.item: context.input.item, output.ok: false, input.amount: {n} }}",
                event("edit"),
                event("test")
            ),
        ));
        text.push_str(&forbid(
            "push",
            "when",
            &format!(
                "(count for (t: Timepoint). where formerly within {window} ({}{{ input.user: context.input.user }} && tp(t))) >= {}",
                event("read"),
                4 + n
            ),
        ));
        text.push_str(&forbid(
            "push",
            "when",
            &format!(
                "(sum spent for (spent: Long), (t: Timepoint). where formerly within {window} ({}{{ input.user: context.input.user, input.amount: spent }} && tp(t))) > {}",
                event("pay"),
                20 + n
            ),
        ));
        text.push_str(&forbid(
            "push",
            "when",
            &format!(
                "exists (x: String). (formerly within {window} {}{{ input.user: context.input.user, input.item: x, input.amount: {n} }} && formerly within {window} {}{{ input.item: x, output.ok: true }})",
                event("approve"),
                event("test")
            ),
        ));
    }
    text
}

fn mixed_event(n: usize, decides: bool, history: usize) -> Event {
    let draw = draw(n, decides);
    let fields = Fields {
        user: below(draw, 18, history / 10),
        item: below(draw, 19, history),
        amount: below(draw, 23, 10) as i64,
        ok: below(draw, 20, 10) > 0,
    };
    const PAST: [&str; 6] = ["login", "edit", "test", "read", "pay", "approve"];
    let past = PAST[below(draw, 21, PAST.len()) as usize];
    fields.event(n, if decides { "push" } else { past }, decides)
}

/// Each asks after an event of one item.
fn many_formerly_rules(history: usize) -> String {
    let window = 2 * history;
    let mut text = PERMIT_ALL.to_owned();
    for n in 0..1000 {
        text.push_str(&forbid(
            "read",
            "when",
            &format!(
                "formerly within {window}s Depot::Action::\"login\"::response{{ input.item: \"item-{n}\", input.user: context.input.user }}"
            ),
        ));
    }
    text
}

fn many_formerly_event(n: usize, decides: bool, history: usize) -> Event {
    let draw = draw(n, decides);
    let fields = Fields {
        user: below(draw, 22, history),
        ..Fields::new(draw)
    };
    fields.event(n, if decides { "read" } else { "login" }, decides)
}
