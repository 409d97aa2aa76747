//! One policy for each kind of cell, and events that fill its windows and then move on.

use dogwood_compiler::compile::{Options, Source, check, load_service};
use dogwood_compiler::event::{Event, RequestPart};
use dogwood_compiler::monitor::Policy;
use dogwood_compiler::value::{EntityUid, Record, Value};
use std::sync::Arc;

const ACTIONS: &str = r#"
namespace Depot {
  entity Clerk;
  entity Bay;
  action "move" appliesTo { principal: [Clerk], resource: [Bay], context: { input: { crate: String, kg: Long } } };
  action "weigh" appliesTo { principal: [Clerk], resource: [Bay], context: { input: { crate: String, kg: Long } } };
}
"#;

const EVENTS: &str =
    "decision event <A>::request { ...inputs(A), PIN callerPrincipal: principalType(A) FROM }";

/// A kind of cell.
pub struct Kind {
    pub name: &'static str,
    /// With `M{`, `Q{` for a moving and a weighing and `W` for the window.
    leaf: &'static str,
    /// Whether each clerk has a history of its own.
    pinned: bool,
    /// In events; the window of a leaf that asks all rows is short.
    pub window: i64,
    /// Of the events that the window holds, how many it needs: one in so many.
    pub needs_one_in: i64,
}

const LONG: i64 = 40_000;
const SHORT: i64 = 40;

const fn kind(name: &'static str, leaf: &'static str, window: i64, needs_one_in: i64) -> Kind {
    Kind {
        name,
        leaf,
        pinned: false,
        window,
        needs_one_in,
    }
}

pub const KINDS: [Kind; 13] = [
    kind(
        "latest",
        "formerly within W Q{ input.crate: context.input.crate }",
        LONG,
        2,
    ),
    kind(
        "anchor, negated left",
        "!Q{ input.crate: context.input.crate } since within W M{ input.crate: context.input.crate }",
        LONG,
        1,
    ),
    kind("anchor, unbroken run", "M{} since within W Q{}", LONG, LONG),
    kind(
        "previous",
        "previous within W M{ input.crate: context.input.crate }",
        LONG,
        LONG,
    ),
    kind(
        "count of time points",
        "(count for (t: Timepoint). where formerly within W (M{ input.crate: context.input.crate } && tp(t))) <= 2",
        LONG,
        2,
    ),
    kind(
        "count of all time points",
        "(count for (t: Timepoint). where formerly within W (M{} && tp(t))) <= 2",
        LONG,
        2,
    ),
    kind(
        "count of distinct values",
        "(count for (c: String). where formerly within W M{ input.crate: c }) <= 2",
        LONG,
        2,
    ),
    kind(
        "sum",
        "(sum k for (k: Long), (t: Timepoint). where formerly within W (M{ input.kg: k, input.crate: context.input.crate } && tp(t))) <= 2",
        LONG,
        2,
    ),
    kind(
        "pair",
        "exists (c: String). (formerly within W M{ input.crate: c } && formerly within W Q{ input.crate: c })",
        LONG,
        1,
    ),
    kind(
        "nested",
        "exists (c: String). (formerly within W (M{ input.crate: c } && formerly within W Q{ input.crate: c }) && M{ input.crate: c })",
        LONG,
        1,
    ),
    kind(
        "rows that wait",
        "formerly within W (Q{ input.kg: * } && !Q{ input.crate: context.input.crate })",
        SHORT,
        2,
    ),
    kind(
        "since over the past",
        "(formerly within 2s Q{ input.crate: context.input.crate }) since within W M{ input.crate: context.input.crate }",
        SHORT,
        1,
    ),
    Kind {
        name: "partitions",
        leaf: "formerly within W Q{ input.crate: context.input.crate }",
        pinned: true,
        window: 4_000,
        needs_one_in: 2,
    },
];

/// Events in a second.
const RATE: i64 = 4;

impl Kind {
    pub fn policy(&self) -> Arc<Policy> {
        let head = |id: &str| format!("Depot::Action::\"{id}\"::request{{");
        let leaf = self
            .leaf
            .replace('W', &format!("{}s", self.window / RATE))
            .replace("M{", &head("move"))
            .replace("Q{", &head("weigh"));
        let text = format!(
            "permit(principal, action == Depot::Action::\"move\", resource) when temporal {{ {leaf} }};"
        );
        let (pin, from) = if self.pinned {
            ("pin", "= principal")
        } else {
            ("", "")
        };
        let events = EVENTS.replace("PIN", pin).replace("FROM", from);
        let source = |name: &str, text: &str| Source {
            name: name.into(),
            text: text.into(),
        };
        let (actions, events) = (
            source("depot.cedarschema", ACTIONS),
            source("depot.dwschema", &events),
        );
        let service = match load_service(Some(&actions), Some(&events)) {
            Ok((service, _)) => service,
            Err(errors) => panic!("{errors:#?}"),
        };
        let policy = source("policy.dw", &text);
        match check(&[policy], None, &service, &Options::default()) {
            Ok(checked) => {
                let rules: Vec<_> = checked.rules.into_iter().map(|rule| rule.rule).collect();
                Arc::new(Policy::new(&rules, &service))
            }
            Err(errors) => panic!("{text}\n{errors:#?}"),
        }
    }
}

/// Crates are weighed and moved in turn, and no name comes back: what is kept by name must go again.
pub fn event(n: i64) -> Event {
    let action = if n % 2 == 0 { "weigh" } else { "move" };
    let who = EntityUid::new("Depot::Clerk", format!("clerk {}", n / 64));
    let input = Record::from([
        ("crate".into(), Value::str(format!("crate {}", n / 2))),
        ("kg".into(), Value::Int(n % 7)),
    ]);
    Event {
        time: n / RATE,
        action: EntityUid::new("Depot::Action", action),
        kind: "request".into(),
        logged: Record::from([
            ("input".into(), Value::Object(input.clone())),
            ("callerPrincipal".into(), who.clone().into()),
        ]),
        request: Some(RequestPart {
            principal: Some(who),
            resource: Some(EntityUid::new("Depot::Bay", "b")),
            context: Record::from([("input".into(), Value::Object(input))]),
            entities: Vec::new(),
        }),
    }
}
