//! What a decision looks at grows with the events, or with the values times the events, and no faster.

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

/// `M{…}` and `Q{…}` are a move and a weighing.
fn policy(leaf: &str) -> Arc<Policy> {
    let (actions, events) = (source("a.cedarschema", DEPOT), source("e.dwschema", EVENTS));
    let (service, _) = load_service(Some(&actions), Some(&events)).expect("a schema");
    let leaf = leaf
        .replace("M{", "Depot::Action::\"move\"::response{")
        .replace("Q{", "Depot::Action::\"weigh\"::response{")
        .replace("@", "within 9999s");
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
    let input = Record::from_iter([
        (
            "crate".into(),
            Value::str(format!("c{}", number * 7 % values)),
        ),
        ("kg".into(), Value::Int((number * 11 % values) as i64)),
    ]);
    let clerk = EntityUid::new("Depot::Clerk", format!("u{}", number % values));
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
    assert!(few > 100, "{few} {leaf}");
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
