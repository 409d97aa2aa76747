//! Cedar conditions as rules use them, and what is an error in them.

use super::stage::*;
use dogwood_compiler::event::{Event, RequestPart};
use dogwood_compiler::grammar::parse_policy;
use dogwood_compiler::monitor::{Decision, replay};
use dogwood_compiler::value::{EntityUid, Record, Value};

/// Whether a condition is true at a decision, or the text of its error. Not type-checked: run-time
/// semantics are what is tested.
fn eval(condition: &str) -> Result<bool, String> {
    eval_on(condition, request())
}

fn eval_on(condition: &str, event: Event) -> Result<bool, String> {
    let text = format!("permit(principal, action, resource) when {{ {condition} }};");
    let parsed = parse_policy(&text);
    assert!(parsed.errors.is_empty(), "{condition}: {:?}", parsed.errors);
    let policy = unchecked(&text, &service(DEPOT, Some(UNPINNED)));
    let (_, _, decision) = replay(policy, &[event]).remove(0);
    match decision.errors.first() {
        Some(error) => Err(error.error.to_string()),
        None => Ok(decision.allowed()),
    }
}

fn request() -> Event {
    let mut event = a_move_of(1, "a b", 3);
    let request = event.request.as_mut().unwrap();
    request
        .context
        .insert("tags".into(), Value::Array(vec!["x".into(), "y".into()]));
    request
        .context
        .insert("price".into(), Value::Decimal("1.50".into()));
    request.context.insert("nothing".into(), Value::Null);
    let attrs = record(&[("rank", 5.into())]);
    let day = EntityUid::new("Depot::Crew", "day");
    with_entity(event, clerk("ann"), attrs, &[day])
}

fn all_true(conditions: &[&str]) {
    for condition in conditions {
        assert_eq!(eval(condition), Ok(true), "{condition}");
    }
}

fn all_false(conditions: &[&str]) {
    for condition in conditions {
        assert_eq!(eval(condition), Ok(false), "{condition}");
    }
}

fn fails(condition: &str, error: &str) {
    assert_eq!(eval(condition), Err(error.into()), "{condition}");
}

#[test]
fn operators() {
    all_true(&[
        "1 + 2 * 3 - 4 == 3",
        "-(2) < 1 && 1 <= 1 && 2 > 1 && 2 >= 2 && 1 != 2",
        "true || context.missing == 1",
        "!(false && context.missing == 1)",
        "if context has missing then context.missing == 1 else true",
        "1 != \"1\" && [1] != 1",
        "{a: 1, b: [2]} == {b: [2], a: 1}",
        "{a: 1} != {a: 2} && context.input == {crate: \"a b\", kg: 3}",
    ]);
    all_false(&["context.input.kg == 4", "context.input.kg < 3"]);
}

#[test]
fn attributes_and_presence() {
    all_true(&[
        "context.input.kg == 3",
        "context[\"input\"][\"crate\"] == \"a b\"",
        "context has input.kg && !(context has input.ton) && !(context has output.ok)",
        "principal has rank && principal.rank == 5",
        "!(principal has nick) && !(Depot::Clerk::\"who\" has rank)",
        "context.nothing == \"\"",
        "!(principal.hasTag(\"x\"))",
    ]);
}

#[test]
fn membership() {
    all_true(&[
        "principal in Depot::Crew::\"day\" && principal in principal",
        "principal in [Depot::Crew::\"night\", Depot::Crew::\"day\"]",
        "!(principal in [])",
        "!(resource in Depot::Crew::\"day\")",
        "action in Depot::Action::\"Any\" && action in action",
        "action == Depot::Action::\"move\"",
        "principal is Depot::Clerk && !(principal is Depot::Drone)",
        "principal is Depot::Clerk in Depot::Crew::\"day\"",
        "!(principal is Depot::Drone in Depot::Crew::\"day\")",
        "context.tags.contains(\"x\") && context.tags.containsAll([\"y\", \"x\"])",
        "context.tags.containsAny([\"z\", \"x\"]) && !(context.tags.containsAny([]))",
        "context.tags == [\"y\", \"x\", \"y\"] && !context.tags.isEmpty() && [].isEmpty()",
    ]);
}

#[test]
fn patterns() {
    all_true(&[
        "context.input.crate like \"a*\" && context.input.crate like \"*b\"",
        "context.input.crate like \"a*b\" && context.input.crate like \"*\"",
        "!(context.input.crate like \"b*\") && !(context.input.crate like \"a\")",
        "\"a*b\" like \"a\\*b\" && !(\"axb\" like \"a\\*b\")",
    ]);
}

#[test]
fn extension_values() {
    all_true(&[
        "context.price == decimal(\"1.5\") && context.price.lessThan(decimal(\"1.51\"))",
        "decimal(\"-0.5\").greaterThanOrEqual(decimal(\"-0.5000\"))",
        "ip(\"10.1.2.3\").isInRange(ip(\"10.0.0.0/8\")) && ip(\"::1\").isLoopback()",
        "ip(\"224.0.0.1\").isMulticast() && ip(\"1.2.3.4\").isIpv4() && !ip(\"1.2.3.4\").isIpv6()",
        "datetime(\"2024-01-01\") < datetime(\"2024-01-01T00:00:00.001Z\")",
        "datetime(\"2024-01-01\").offset(duration(\"1d\")) == datetime(\"2024-01-02\")",
        "datetime(\"2024-01-02\").durationSince(datetime(\"2024-01-01\")) == duration(\"24h\")",
        "datetime(\"1969-12-31T23:00:00Z\").toDate() == datetime(\"1969-12-31\")",
        "datetime(\"1969-12-31T23:00:00Z\").toTime() == duration(\"23h\")",
        "duration(\"1d1h\").toHours() == 25 && duration(\"-90s\").toMinutes() == -1",
        "duration(\"1ms\") < duration(\"1s\")",
    ]);
}

#[test]
fn errors_say_what_went_wrong() {
    fails(
        "context.missing == 1",
        "the record has no attribute `missing`",
    );
    fails(
        "principal.nick == \"a\"",
        "Depot::Clerk::\"ann\" has no attribute `nick`",
    );
    fails(
        "Depot::Clerk::\"who\".rank == 1",
        "nothing is known of Depot::Clerk::\"who\"",
    );
    fails("1 < \"2\"", "expected a Long, found a String");
    fails(
        "datetime(\"2024-01-01\") < 1",
        "expected a datetime, found a Long",
    );
    fails("true && 1", "expected a Bool, found a Long");
    fails("context.input", "expected a Bool, found a record");
    fails(
        "9223372036854775807 + 1 == 0",
        "the result of `+` does not fit 64 bits",
    );
    fails(
        "-(-9223372036854775808) == 0",
        "the result of `-` does not fit 64 bits",
    );
    fails(
        "decimal(\"1.23456\") == decimal(\"1.0\")",
        "\"1.23456\" is not a value of `decimal`",
    );
    fails(
        "ip(context.input.crate).isIpv4()",
        "\"a b\" is not a value of `ip`",
    );
    fails("principal in [1]", "expected an entity, found a Long");
    fails(
        "principal.getTag(\"x\") == 1",
        "Depot::Clerk::\"ann\" has no tag `x`",
    );
    fails(
        "context.input.kg has x",
        "expected a record or an entity, found a Long",
    );
    fails(
        "Some::provider(1) == 1",
        "the information provider `Some::provider` gave no answer: it is not declared",
    );
    // An operand that is not reached does no harm.
    assert_eq!(eval("false && context.missing == 1"), Ok(false));
}

#[test]
fn a_request_that_cannot_be_judged_is_denied() {
    let with = |change: fn(&mut RequestPart)| {
        let mut event = a_move(1, "a");
        change(event.request.as_mut().unwrap());
        eval_on("true", event).unwrap_err()
    };
    assert_eq!(
        with(|part| part.resource = None),
        "the request names no resource"
    );
    let bad = with(|part| {
        let nested = record(&[("deep", Value::Decimal("1.".into()))]);
        part.context.insert("x".into(), Value::Object(nested));
    });
    assert_eq!(bad, "`context.x.deep` is not a well-formed value");
    let given = |uid: EntityUid, attrs: Record, parents: &[EntityUid]| {
        eval_on("true", with_entity(a_move(1, "a"), uid, attrs, parents)).unwrap_err()
    };
    assert_eq!(
        given(EntityUid::new("Depot::Ghost", "g"), Record::new(), &[]),
        "the schema has no entity type `Depot::Ghost`"
    );
    assert_eq!(
        given(clerk("ann"), Record::new(), &[]),
        "Depot::Clerk::\"ann\" lacks its required attribute `rank`"
    );
    assert_eq!(
        given(clerk("ann"), record(&[("rank", "high".into())]), &[]),
        "attribute `rank` of Depot::Clerk::\"ann\" has another type than declared"
    );
    assert_eq!(
        given(
            clerk("ann"),
            record(&[("rank", 1.into()), ("x", 1.into())]),
            &[]
        ),
        "Depot::Clerk::\"ann\" has an attribute `x` that its type does not declare"
    );
    assert_eq!(
        given(clerk("ann"), record(&[("rank", 1.into())]), &[clerk("bob")]),
        "Depot::Clerk::\"ann\" cannot be in Depot::Clerk::\"bob\""
    );
}

#[test]
fn an_action_the_schema_does_not_know_is_decided() {
    let service = service(DEPOT, Some(UNPINNED));
    let policy = policy(
        "permit(principal, action, resource); forbid(principal, action in Depot::Action::\"Any\", resource);",
        &service,
    );
    let mut event = a_move(1, "a");
    event.action = EntityUid::new("Depot::Action", "fly");
    let decided: Vec<Decision> = replay(policy, &[event, a_move(2, "a")])
        .into_iter()
        .map(|(.., d)| d)
        .collect();
    assert_eq!(
        (letter(&decided[0]), decided[0].rules.clone()),
        ('A', vec![0])
    );
    assert_eq!(
        (letter(&decided[1]), decided[1].rules.clone()),
        ('D', vec![1])
    );
}
