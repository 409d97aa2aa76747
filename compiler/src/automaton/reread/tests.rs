//! What a decision looks at grows with the events, or with the values times the events, and no faster; where a few
//! searches are enough, not at all.

use super::ask::WORK;
use crate::compile::{Options, Source, check, load_service};
use crate::event::{Event, RequestPart};
use crate::monitor::{CellKind, Config, Monitor, Policy};
use crate::value::{EntityUid, Record, Value};
use std::sync::Arc;

const DEPOT: &str = r#"
namespace Depot {
  entity Clerk;
  entity Bay;
  type In = { crate: String, kg: Long };
  action "move"  appliesTo { principal: [Clerk], resource: [Bay], context: { input: In } };
  action "weigh" appliesTo { principal: [Clerk], resource: [Bay], context: { input: In } };
  action "seal"  appliesTo { principal: [Clerk], resource: [Bay], context: { input: In } };
  action "open"  appliesTo { principal: [Clerk], resource: [Bay], context: { input: In } };
}
"#;

const EVENTS: &str = "
  decision event <A>::request { ...inputs(A), callerPrincipal: principalType(A) }
  event <A>::response { ...inputs(A), callerPrincipal: principalType(A) }
";

fn source(name: &str, text: &str) -> Source {
    Source {
        name: name.into(),
        text: text.into(),
    }
}

/// `M{…}`, `Q{…}`, `S{…}` and `O{…}` are a move, a weighing, a sealing and an opening.
fn policy(leaf: &str) -> Arc<Policy> {
    let (actions, events) = (source("a.cedarschema", DEPOT), source("e.dwschema", EVENTS));
    let (service, _) = load_service(Some(&actions), Some(&events)).expect("a schema");
    let mut leaf = leaf.replace("@", "within 9999s");
    for (short, action) in [
        ("M{", "move"),
        ("Q{", "weigh"),
        ("S{", "seal"),
        ("O{", "open"),
    ] {
        leaf = leaf.replace(short, &format!("Depot::Action::\"{action}\"::response{{"));
    }
    let text = format!("permit(principal, action, resource) when temporal {{ {leaf} }};");
    let checked = check(
        &[source("a.dw", &text)],
        None,
        &service,
        &Options::default(),
    );
    let checked = checked.unwrap_or_else(|errors| panic!("{leaf}\n{errors:#?}"));
    let rules: Vec<_> = checked.rules.into_iter().map(|rule| rule.rule).collect();
    Arc::new(Policy::new(&rules, &service))
}

fn event(kind: &str, number: usize, values: usize) -> Event {
    // Each value comes in turn, in either action, and in another order in the other field.
    let action = ["move", "weigh", "move"][number % 3];
    let (item, kg) = (number * 7 % values, number * 11 % values);
    event_of(kind, number, action, (item, kg, number % values))
}

fn event_of(
    kind: &str,
    number: usize,
    action: &str,
    (item, kg, clerk): (usize, usize, usize),
) -> Event {
    let input = Record::from_iter([
        ("crate".into(), Value::str(format!("c{item}"))),
        ("kg".into(), Value::Int(kg as i64)),
    ]);
    let clerk = EntityUid::new("Depot::Clerk", format!("u{clerk}"));
    let record = Record::from_iter([("input".into(), Value::Object(input))]);
    let mut logged = record.clone();
    logged.insert("callerPrincipal".into(), clerk.clone().into());
    Event {
        time: number as i64,
        action: EntityUid::new("Depot::Action", action),
        kind: kind.into(),
        logged,
        request: Some(RequestPart {
            principal: Some(clerk),
            resource: Some(EntityUid::new("Depot::Bay", "b")),
            context: record,
            ..RequestPart::default()
        }),
    }
}

/// What the decision behind so many events looks at.
fn work(policy: &Arc<Policy>, events: usize) -> usize {
    let mut monitor = Monitor::new(policy.clone(), Config::default());
    for number in 0..events {
        let happened = event("response", number, events / 4);
        monitor.step(&happened).expect("in time");
    }
    let before = WORK.get();
    let asked = event("request", events, events / 4);
    monitor.step(&asked).expect("in time");
    WORK.get() - before
}

fn assert_grows(leaf: &str, most: usize) {
    let policy = policy(leaf);
    let kinds: Vec<CellKind> = policy.cells().iter().map(|cell| cell.kind).collect();
    assert!(kinds.contains(&CellKind::Reread), "{kinds:?} {leaf}");
    let (few, many) = (work(&policy, 100), work(&policy, 400));
    assert!(few > 20, "{few} {leaf}");
    assert!(many <= most * few, "{few} {many} {leaf}");
}

#[test]
fn work_grows_as_events_do() {
    let leaves = [
        // Two operators inside a third share a variable.
        "formerly @ (exists (c: String). (formerly @ M{input.crate: c} && formerly @ Q{input.crate: c, input.kg: context.input.kg}))",
        "formerly @ (exists (c: String). (formerly @ M{input.crate: c} && !formerly @ Q{input.crate: c, input.kg: context.input.kg}))",
        "(!(exists (c: String). (formerly @ M{input.crate: c} && formerly @ Q{input.crate: c}))) since @ M{input.crate: context.input.crate}",
        // The leaf around binds it.
        "exists (c: String). (formerly @ Q{input.crate: c} && ((!(Q{} since @ M{input.crate: c})) since @ M{}))",
        "exists (k: Long). (formerly @ M{input.kg: k} && formerly @ ((!formerly @ M{input.kg: k}) since @ Q{callerPrincipal: principal}))",
        // What is counted, three deep.
        "formerly @ ((sum k for (k: Long), (t: Timepoint). where formerly @ (M{input.kg: k} && tp(t))) > context.input.kg)",
        "formerly @ ((count for (t: Timepoint). where formerly @ (M{} && tp(t) && (count for (u: Timepoint). where formerly @ (Q{} && tp(u) && (count for (v: Timepoint). where formerly @ (M{} && tp(v))) > context.input.kg)) > 2)) > 3)",
        "formerly @ (exists (k: Long). (k == (count for (c: String). where formerly @ M{input.crate: c}) && k != context.input.kg))",
        "(!((count for (c: String). where (formerly @ M{input.crate: c} && !(formerly @ Q{input.crate: c, input.kg: context.input.kg}))) >= 2)) since @ (exists (k: Long). (formerly @ Q{input.kg: k} && k >= context.input.kg))",
    ];
    for leaf in leaves {
        assert_grows(leaf, 6);
    }
}

/// With two variables between the same operators, pairs are tried.
#[test]
fn pairs_of_values_cost_pairs() {
    let leaves = [
        "formerly @ ((sum k for (c: String), (k: Long). where (formerly @ M{input.crate: c} && formerly @ Q{input.kg: k})) > context.input.kg)",
        "formerly @ (exists (k: Long). exists (m: Long). (formerly @ M{input.kg: k} && formerly @ Q{input.kg: m} && k < m && formerly @ M{input.kg: m, callerPrincipal: principal}))",
    ];
    for leaf in leaves {
        assert_grows(leaf, 20);
    }
}

/// One who asks moved four crates, among so many events of others with so many crates; in the end something is done
/// with the four. What the second of two decisions looks at: the first makes the indexes.
fn work_among(policy: &Arc<Policy>, (events, crates): (usize, usize), last: &str) -> usize {
    const ASKING: usize = 1;
    const OTHERS: usize = 2;
    let mut monitor = Monitor::new(policy.clone(), Config::default());
    for number in 0..events {
        let (turn, at) = (number / (events / 4), number % (events / 4));
        let happened = match at {
            7 => event_of("response", number, "move", (turn, ASKING, ASKING)),
            _ => {
                let action = ["move", "weigh", "seal", "open"][number % 4];
                event_of(
                    "response",
                    number,
                    action,
                    (number * 7 % crates, OTHERS, OTHERS),
                )
            }
        };
        monitor.step(&happened).expect("in time");
    }
    for moved in 0..4 {
        let happened = event_of("response", events + moved, last, (moved, OTHERS, OTHERS));
        monitor.step(&happened).expect("in time");
    }
    let mut decide = |number| {
        let before = WORK.get();
        let asked = event_of("request", number, "move", (0, ASKING, ASKING));
        monitor.step(&asked).expect("in time");
        WORK.get() - before
    };
    decide(events + 4);
    decide(events + 5)
}

/// One who asks has done little: it does not matter what others did.
#[test]
fn work_does_not_grow_with_what_others_did() {
    let leaves = [
        // A variable around a `since` whose left side looks back.
        "exists (c: String). (formerly @ M{input.crate: c, input.kg: context.input.kg} && ((!(!Q{} since @ S{input.crate: c})) since @ O{input.crate: c}))",
        // Two operators inside a third share a variable.
        "formerly @ (exists (c: String). (formerly @ M{input.crate: c, input.kg: context.input.kg} && formerly @ O{input.crate: c}))",
        "formerly @ (exists (c: String). (formerly @ O{input.crate: c} && formerly @ M{input.crate: c, input.kg: context.input.kg}))",
    ];
    for leaf in leaves {
        let policy = policy(leaf);
        let kinds: Vec<CellKind> = policy.cells().iter().map(|cell| cell.kind).collect();
        assert!(kinds.contains(&CellKind::Reread), "{kinds:?} {leaf}");
        // Either each crate has more events, or there are more crates; the first of the four makes it so, or none.
        for (crates, last) in [(25, "seal"), (401, "seal"), (25, "open"), (401, "open")] {
            let few = work_among(&policy, (200, 25), last);
            let many = work_among(&policy, (3200, crates), last);
            assert!(few > 5, "{few} {leaf}");
            assert!(many <= 2 * few, "{few} {many} {crates:?} {leaf}");
        }
    }
}
