//! Two rules people quote, as written, over the built-in schema of a box.

use super::stage::{letter, policy, record};
use dogwood_compiler::event::{Event, RequestPart};
use dogwood_compiler::monitor::{Config, Monitor, replay};
use dogwood_compiler::schema::box_service;
use dogwood_compiler::value::{EntityUid, Value};

const PUSH_GATE: &str = r#"
permit(principal, action, resource);

@id("push-gate")
forbid(principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "git" && context.input has arg1 && context.input.arg1 == "push" }
unless temporal {
  !Box::Action::"shell:spawn"::response{ input.program: "git", input.arg1: "add" }
  since within 15m
  Box::Action::"shell:spawn"::response{
    input.program: "npm", input.arg1: "test", input.arg_count: 1,
    input.cwd: "~/my-project", output.status: 0 }
};
"#;

const CALL_CAP: &str = r#"
permit(principal, action, resource);

@id("call-cap")
forbid(principal, action == Box::Action::"mcp:call", resource)
when { context.input.server == "aws" && context.input.method == "tools/call" }
when temporal {
  exists (n: Long). (
    (count for (t: Timepoint). where formerly within 1h (
      Box::Action::"mcp:call"::request{ input.server: "aws", input.method: "tools/call" } && tp(t)
    )) == n && n >= 60)
};
"#;

fn event(time: i64, action: &str, kind: &str, input: &[(&str, Value)]) -> Event {
    let agent = EntityUid::new("Box::Agent", "agent");
    let resource = EntityUid::new("Box::Resource", "box");
    let input = Value::Object(record(input));
    Event {
        time,
        action: EntityUid::new("Box::Action", action),
        kind: kind.into(),
        logged: record(&[
            ("input", input.clone()),
            ("callerPrincipal", agent.clone().into()),
            ("callerResource", resource.clone().into()),
        ]),
        request: (kind == "request").then(|| RequestPart {
            principal: Some(agent),
            resource: Some(resource),
            context: record(&[("input", input)]),
            entities: Vec::new(),
        }),
    }
}

fn spawn(time: i64, kind: &str, words: &[&str], status: Option<i64>) -> Event {
    let (program, args) = words.split_first().expect("a program");
    let mut input = vec![
        ("command", Value::str(words.join(" "))),
        ("program", (*program).into()),
        ("program_path", Value::str(format!("/usr/bin/{program}"))),
        ("arg_count", Value::Int(args.len() as i64)),
        ("cwd", "~/my-project".into()),
    ];
    for (name, arg) in ["arg1", "arg2"].into_iter().zip(args) {
        input.push((name, (*arg).into()));
    }
    let mut event = event(time, "shell:spawn", kind, &input);
    if let Some(status) = status {
        let output = Value::Object(record(&[("status", status.into())]));
        event.logged.insert("output".into(), output);
    }
    event
}

/// A program that was asked for, and ran with this status.
fn ran(time: i64, words: &[&str], status: i64) -> [Event; 2] {
    [
        spawn(time, "request", words, None),
        spawn(time + 1, "response", words, Some(status)),
    ]
}

fn push(time: i64) -> [Event; 1] {
    [spawn(time, "request", &["git", "push", "origin"], None)]
}

fn pushes(trace: &[Event]) -> String {
    let decisions = replay(policy(PUSH_GATE, &box_service()), trace);
    let of_pushes = decisions
        .iter()
        .filter(|(at, ..)| trace[*at].logged["input"].at(&["arg1"]) == Some(&Value::str("push")));
    of_pushes.map(|(_, _, decision)| letter(decision)).collect()
}

#[test]
fn push_gate() {
    let test = ["npm", "test"];
    let mut trace = Vec::new();
    trace.extend(push(0));
    trace.extend(ran(10, &test, 1));
    trace.extend(push(20));
    trace.extend(ran(30, &test, 0));
    trace.extend(push(40));
    trace.extend(ran(50, &["git", "add", "."], 0));
    trace.extend(push(60));
    assert_eq!(pushes(&trace), "DDAD");
}

#[test]
fn push_gate_looks_back_fifteen_minutes_and_at_the_right_run() {
    let mut trace = Vec::new();
    trace.extend(ran(0, &["npm", "test"], 0));
    trace.extend(push(901));
    trace.extend(push(902));
    assert_eq!(pushes(&trace), "AD");
    let mut trace = Vec::new();
    trace.extend(ran(0, &["npm", "test", "--", "one"], 0));
    trace.extend(push(10));
    let mut elsewhere = spawn(20, "response", &["npm", "test"], Some(0));
    if let Some(Value::Object(input)) = elsewhere.logged.get_mut("input") {
        input.insert("cwd".into(), "~/other".into());
    }
    trace.push(elsewhere);
    trace.extend(push(30));
    // Asking for `git add` is not adding.
    trace.extend(ran(40, &["npm", "test"], 0));
    trace.push(spawn(50, "request", &["git", "add", "."], None));
    trace.extend(push(60));
    assert_eq!(pushes(&trace), "DDA");
}

fn call(time: i64, server: &str) -> Event {
    let input = [
        ("server", server.into()),
        ("method", "tools/call".into()),
        ("tool", "ls".into()),
    ];
    event(time, "mcp:call", "request", &input)
}

#[test]
fn call_cap_lets_59_pass() {
    let policy = policy(CALL_CAP, &box_service());
    let mut monitor = Monitor::new(policy, Config::default());
    let mut decide = |event: &Event| monitor.step(event).unwrap().unwrap();
    for n in 0..59 {
        assert!(decide(&call(n, "aws")).allowed(), "call {n}");
        assert!(decide(&call(n, "other")).allowed());
    }
    let refused = decide(&call(59, "aws"));
    assert_eq!((letter(&refused), refused.rules), ('D', vec![1]));
    assert!(decide(&call(59, "other")).allowed());
    // The refused call counts too: at 3601 the calls of 2 to 59 and the one of now make 60 again.
    assert!(!decide(&call(3601, "aws")).allowed());
    assert!(decide(&call(3700, "aws")).allowed());
}
