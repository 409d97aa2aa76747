//! `dogwood replay --as-box`: the same trace as the language takes it, and as a box would.

use crate::Place;

const POLICY: &str = r#"permit (principal, action == Box::Action::"net:connect", resource);
@id("no_high_ports")
forbid (principal, action == Box::Action::"net:connect", resource)
when { context.input.port > 1024 };
@id("known_address")
forbid (principal, action == Box::Action::"net:connect", resource)
when { context.input.ip == "10.0.0.1" };
@id("one_a_minute")
forbid (principal, action == Box::Action::"net:connect", resource)
when temporal { (count for (t: Timepoint). where (formerly within 1m (Box::Action::"net:connect"::request{} && tp(t)))) > 1 };
"#;

fn event(time: i64, kind: &str, input: &str) -> String {
    let beside = r#"callerPrincipal: Box::Agent::"self", callerResource: Box::Resource::"unused", requestId: "1""#;
    let scope = match kind {
        "request" => format!(
            r#"scope(principal: Box::Agent::"self", resource: Box::Resource::"unused") request_context(input: {input}) "#
        ),
        _ => String::new(),
    };
    format!("@{time} {scope}Box::Action::\"net:connect\"::{kind}(input: {input}, {beside})\n")
}

#[test]
fn a_box_takes_what_its_schema_says_and_denies_where_a_rule_fails() {
    let place = Place::new();
    place.file("policy.dw", POLICY);
    let whole = r#"{ host: "a", port: 443, ip: "10.0.0.2" }"#;
    let trace = [
        event(100, "request", whole),
        // `known_address` cannot be evaluated without an address, which may be absent.
        event(200, "request", r#"{ host: "a", port: 443 }"#),
        // Whoever leaves the port out steps round `no_high_ports`.
        event(300, "request", r#"{ host: "a", ip: "10.0.0.2" }"#),
        event(
            400,
            "request",
            r#"{ host: "a", port: "443", ip: "10.0.0.2" }"#,
        ),
        event(
            500,
            "response",
            r#"{ host: "a", port: 443, colour: "red" }"#,
        ),
        event(600, "answer", r#"{ host: "a", port: 443 }"#),
        event(700, "request", whole),
        // A box's time never runs back, so this is within the minute.
        event(100, "request", whole),
    ]
    .concat();
    place.file("day.log", &trace);
    let replay = ["replay", "policy.dw", "--unchecked", "--trace", "day.log"];
    insta::assert_snapshot!(place.run(&replay).out, @"
    @100 (time point 0): ALLOW  [rules: 0]
    @200 (time point 1): ALLOW  [rules: 0]
        error: rule 2: the record has no attribute `ip`
    @300 (time point 2): ALLOW  [rules: 0]
        error: rule 1: the record has no attribute `port`
    @400 (time point 3): ALLOW  [rules: 0]
        error: rule 1: expected a Long, datetime or duration, found a String
    @700 (time point 6): ALLOW  [rules: 0]
    @100 (time point 7): DENY  [rules: 3]
    ");
    let as_box = [&replay[..], &["--as-box"]].concat();
    let answer = place.run(&as_box);
    assert_eq!(answer.status, 0, "{}", answer.err);
    insta::assert_snapshot!(answer.out, @r#"
    @100 (time point 0): ALLOW  [rules: 0]
    @200 (time point 1): DENY
        error: rule 2: the record has no attribute `ip`
    @300 (time point 2): DENY, not recorded
        error: the event Box::Action::"net:connect"::request lacks the field `input.port`
    @400 (time point 3): DENY, not recorded
        error: the event Box::Action::"net:connect"::request has a String in the field `input.port`, which is declared as Long
    @500 (time point 4): not recorded
        error: the event Box::Action::"net:connect"::response has a field `input.colour`, which is not declared
    @600 (time point 5): not recorded
        error: no event kind `answer` is declared
    @700 (time point 6): ALLOW  [rules: 0]
    @700 (time point 7): DENY  [rules: 3]
    "#);
    let json = place
        .run(&[&as_box[..], &["--format", "json"]].concat())
        .json();
    insta::assert_snapshot!(json["verdicts"][4], @r#"{"index":4,"timestamp":500,"verdict":"not recorded","determining_rules":[],"errors":["the event Box::Action::\"net:connect\"::response has a field `input.colour`, which is not declared"]}"#);
}
