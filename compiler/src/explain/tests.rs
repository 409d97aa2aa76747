use super::*;
use crate::grammar::parse_policy;
use crate::schema::box_service;

fn service() -> Service {
    box_service()
}

fn explained(text: &str, service: &Service) -> Vec<Explanation> {
    let parsed = parse_policy(text);
    assert_eq!(parsed.errors, [], "{text}");
    let rules = parsed.tree.items.iter().filter_map(|item| match item {
        Item::Rule(rule) => Some(rule),
        _ => None,
    });
    rules
        .enumerate()
        .map(|(number, rule)| {
            let line = 1 + text[..rule.span.start as usize].matches('\n').count();
            explain(rule, number, format!("policy.dw:{line}"), service)
        })
        .collect()
}

fn shown(text: &str) -> String {
    let shown: Vec<String> = explained(text, &service())
        .iter()
        .map(Explanation::to_string)
        .collect();
    shown.join("\n")
}

fn sentence(text: &str) -> String {
    let found = explained(text, &service());
    found
        .iter()
        .flat_map(|rule| rule.sentences.clone())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Each guard beside what it becomes.
fn guards(guards: &[&str]) -> String {
    let line = |guard: &&str| {
        let said = sentence(&format!(
            "forbid (principal, action, resource) when {{ {guard} }};"
        ));
        let said = said.replace("Forbids every action ", "");
        format!("{guard}\n    {said}\n")
    };
    guards.iter().map(line).collect()
}

/// Each temporal condition of a `move` rule beside what it becomes. `M`, `Q` and `B` stand for `move`,
/// `weigh` and `beep` requests.
fn leaves(leaves: &[&str]) -> String {
    let line = |leaf: &&str| {
        let mut full = (*leaf).to_owned();
        for (short, id) in [("M{", "move"), ("Q{", "weigh"), ("B{", "beep")] {
            full = full.replace(short, &format!("Depot::Action::\"{id}\"::request{{"));
        }
        let rule = format!(
            "permit (principal, action == Depot::Action::\"move\", resource) when temporal {{ {full} }};"
        );
        let said = sentence(&rule)
            .trim_start_matches("Permits `Depot::move` ")
            .replace("Depot::", "");
        format!("{leaf}\n    {said}\n")
    };
    leaves.iter().map(line).collect()
}

#[test]
fn push_after_green_tests() {
    let text = r#"
// Only these first words of git are reachable at all, so `git -C x push` is default-denied.
@id("git_verbs")
permit (principal, action == Box::Action::"shell:spawn", resource)
when {
  context.input.program_path == "/usr/bin/git" && context.input has arg1 &&
  ["status", "diff", "add", "commit", "push"].contains(context.input.arg1)
};

@id("run_checks")
permit (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program_path == "/usr/bin/make" && context.input has arg1 && context.input.arg1 == "check" };

@id("push_gate")
@description("Push needs a passing `make check` in the last 45 minutes and no edit after it. Run make check, then push.")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when {
  context.input.program_path == "/usr/bin/git" &&
  context.input has arg1 && context.input.arg1 == "push"
}
unless temporal {
  !Box::Action::"fs:write"::response{ input.operation: Box::FsWriteOperation::"write_content" }
  since within 45m
  Box::Action::"shell:spawn"::response{ input.program_path: "/usr/bin/make", input.arg1: "check", output.status: 0 }
};

permit (principal, action, resource)
unless temporal {
  !(exists (p: String). (
    Box::Action::"fs:write"::response{ input.path: p, input.operation: Box::FsWriteOperation::"write_content" }
    && p != "/dev/null"
  )) since within 45m Box::Action::"shell:spawn"::response{ output.status: 0 }
};
"#;
    insta::assert_snapshot!(shown(text), @r#"
    rule 0: git_verbs (policy.dw:3)
      Permits `shell:spawn` when `program_path` is "/usr/bin/git", and `arg1` is one of "add",
      "commit", "diff", "push" or "status".

    rule 1: run_checks (policy.dw:10)
      Permits `shell:spawn` when `program_path` is "/usr/bin/make" and `arg1` is "check".

    rule 2: push_gate (policy.dw:14)
      Forbids `shell:spawn` when `program_path` is "/usr/bin/git" and `arg1` is "push", unless in
      the last 45 minutes there was a `shell:spawn` response of `/usr/bin/make check …` with
      `output.status` 0, and no `fs:write` response with `operation` `write_content` has come since.
      When it denies, it says: Push needs a passing `make check` in the last 45 minutes and no edit
      after it. Run make check, then push.

    rule 3 (policy.dw:27)
      Permits every action unless in the last 45 minutes there was a `shell:spawn` response with
      `output.status` 0, and no `fs:write` response with `operation` `write_content` and a `path`
      other than "/dev/null" has come since.
    "#);
}

#[test]
fn the_other_box_scenarios() {
    let text = r#"
@id("sealed_after_payroll")
@description("Payroll data was read in this box, so only the model host may be contacted for the next 8 hours.")
forbid (principal, action == Box::Action::"http:request", resource)
when { context.input.host != "llm.example.net" }
when temporal {
  formerly within 8h (
    Box::Action::"fs:read"::response{ input.path: "~/payroll/2026.csv", input.operation: Box::FsReadOperation::"read_content" }
  )
};

@id("slack_pace")
@description("At most 3 Slack posts per 10 minutes. Combine what is left into one message and retry later.")
forbid (principal, action == Box::Action::"http:request", resource)
when { context.input.host == "slack.com" && context.input.path == "/api/chat.postMessage" }
when temporal {
  exists (sent: Long). (
    (count for (t: Timepoint). where (
      formerly within 10m (
        Box::Action::"http:request"::response{ input.host: "slack.com", input.path: "/api/chat.postMessage" } && tp(t)
      )
    )) == sent && sent >= 3
  )
};

@id("charge_ceiling")
@description("One charge may not exceed 20 dollars. Split it or ask the operator.")
forbid (principal, action == payments::Action::"charge", resource)
when { !(context.input has amount_cents && context.input.amount_cents > 0 && context.input.amount_cents <= 2000) };

@id("daily_budget")
@description("The 24-hour budget is used up. Stop charging and report what remains to be paid.")
forbid (principal, action == payments::Action::"charge", resource)
when temporal {
  exists (spent: Long). (
    (sum c for (c: Long), (t: Timepoint). where (
      formerly within 24h ( payments::Action::"charge"::request{ input.amount_cents: c } && c > 0 && tp(t) )
    )) == spent && spent > 10000
  )
};

@id("mcp_hourly")
@description("60 tool calls per hour. Batch the remaining work or wait.")
forbid (principal, action == Box::Action::"mcp:call", resource)
when { context.input.method == "tools/call" }
when temporal {
  exists (n: Long). (
    (count for (t: Timepoint). where (
      formerly within 1h ( Box::Action::"mcp:call"::request{ input.method: "tools/call" } && tp(t) )
    )) == n && n > 60
  )
};
"#;
    insta::assert_snapshot!(shown(text), @r#"
    rule 0: sealed_after_payroll (policy.dw:2)
      Forbids `http:request` when `host` is not "llm.example.net", and in the last 8 hours there was
      an `fs:read` response of `~/payroll/2026.csv` with `operation` `read_content`.
      When it denies, it says: Payroll data was read in this box, so only the model host may be
      contacted for the next 8 hours.

    rule 1: slack_pace (policy.dw:12)
      Forbids `http:request` when `host` is "slack.com" and `path` is "/api/chat.postMessage", and
      the number of `http:request` responses to `slack.com/api/chat.postMessage` in the last 10
      minutes is at least 3.
      When it denies, it says: At most 3 Slack posts per 10 minutes. Combine what is left into one
      message and retry later.

    rule 2: charge_ceiling (policy.dw:26)
      Forbids `payments::charge` unless `amount_cents` is more than 0 and at most 2000.
      When it denies, it says: One charge may not exceed 20 dollars. Split it or ask the operator.

    rule 3: daily_budget (policy.dw:31)
      Forbids `payments::charge` when the sum of `amount_cents` over the `payments::charge` requests
      with an `amount_cents` of more than 0 in the last 24 hours, this one included if it is one, is
      more than 10000.
      When it denies, it says: The 24-hour budget is used up. Stop charging and report what remains
      to be paid.

    rule 4: mcp_hourly (policy.dw:42)
      Forbids `mcp:call` when `method` is "tools/call", and the number of `mcp:call` requests with
      `method` "tools/call" in the last hour, this one included, is more than 60.
      When it denies, it says: 60 tool calls per hour. Batch the remaining work or wait.
    "#);
}

#[test]
fn the_two_rules_people_quote() {
    let text = r#"
@id("push-gate")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "git" && context.input has arg1 && context.input.arg1 == "push" }
unless temporal {
  !Box::Action::"shell:spawn"::response{ input.program: "git", input.arg1: "add" }
  since within 15m
  Box::Action::"shell:spawn"::response{
    input.program: "npm", input.arg1: "test", input.arg_count: 1, input.cwd: "~/my-project", output.status: 0 }
};

@id("call-cap")
forbid (principal, action == Box::Action::"mcp:call", resource)
when { context.input.method == "tools/call" && context.input.server == "aws" }
when temporal {
  exists (n: Long). (n == (count for (t: Timepoint). where (formerly within 1h (
    Box::Action::"mcp:call"::request{ input.server: "aws", input.method: "tools/call" } && tp(t)))) && n >= 60)
};
"#;
    insta::assert_snapshot!(shown(text), @r#"
    rule 0: push-gate (policy.dw:2)
      Forbids `shell:spawn` when `program` is "git" and `arg1` is "push", unless in the last 15
      minutes there was a `shell:spawn` response of `npm test` in `~/my-project` with
      `output.status` 0, and no `shell:spawn` response of `git add …` has come since.

    rule 1: call-cap (policy.dw:12)
      Forbids `mcp:call` when `server` is "aws" and `method` is "tools/call", and the number of
      `mcp:call` requests with `server` "aws" and `method` "tools/call" in the last hour, this one
      included, is at least 60.
    "#);
}

#[test]
fn scopes() {
    let heads = [
        "",
        "principal, action, resource",
        r#"action == Depot::Action::"move""#,
        r#"action in Depot::Action::"Any""#,
        r#"action in [Box::Action::"fs:read", Box::Action::"fs:write", Box::Action::"fs:move"]"#,
        r#"principal == Depot::Clerk::"ann", action, resource"#,
        r#"principal in Depot::Crew::"day", resource is Depot::Bay"#,
        r#"principal is Depot::Clerk in Depot::Crew::"day", action, resource in Depot::Hall::"a""#,
    ];
    let said: String = heads
        .iter()
        .map(|head| format!("({head})\n    {}\n", sentence(&format!("permit ({head});"))))
        .collect();
    insta::assert_snapshot!(said, @r#"
    ()
        Permits every action.
    (principal, action, resource)
        Permits every action.
    (action == Depot::Action::"move")
        Permits `Depot::move`.
    (action in Depot::Action::"Any")
        Permits every action in `Depot::Any`.
    (action in [Box::Action::"fs:read", Box::Action::"fs:write", Box::Action::"fs:move"])
        Permits `fs:move`, `fs:read` and `fs:write`.
    (principal == Depot::Clerk::"ann", action, resource)
        Permits every action by `Depot::Clerk::"ann"`.
    (principal in Depot::Crew::"day", resource is Depot::Bay)
        Permits every action by anyone in `Depot::Crew::"day"` on a `Depot::Bay`.
    (principal is Depot::Clerk in Depot::Crew::"day", action, resource in Depot::Hall::"a")
        Permits every action by a `Depot::Clerk` in `Depot::Crew::"day"` on anything in `Depot::Hall::"a"`.
    "#);
}

#[test]
fn cedar_guards() {
    insta::assert_snapshot!(guards(&[
        r#"context.input.n > 3 && context.input.n <= 10"#,
        r#"3 < context.input.n"#,
        r#"context.input.a == "x" || context.input.a == "y""#,
        r#"context.input.a == "x" && (context.input.b == 1 || context.input.c == 2)"#,
        r#"(context.input.a == 1 && context.input.b == 2) || (context.input.c == 3 && (context.input.d == 4 || context.input.e == 5))"#,
        r#"context.input has arg1 && context.input.arg1 != "push""#,
        r#"context.input has arg1 && context.input.arg1 like "pu*""#,
        r#"context.input has a.b && context.input.a.b like "*x*""#,
        r#"!(context.input has arg1)"#,
        r#"context.input has arg1 && !(context.input.arg1 like "*.txt")"#,
        r#"context.input.path like "/a*b*""#,
        r#"context.input.path like "100\*""#,
        r#"["a", "b"].contains(context.input.arg1)"#,
        r#"!["a", "b"].contains(context.input.arg1)"#,
        r#"["a"].contains(context.input.arg1)"#,
        r#"context.input.credential_reads.contains("~/.aws")"#,
        r#"context.input.credential_reads.containsAny(["~/.aws", "~/.ssh"])"#,
        r#"context.input.credential_reads.isEmpty()"#,
        r#"context.input.intercepted"#,
        r#"!context.input.intercepted && context.input.port == 443"#,
        r#"principal is Depot::Clerk && principal in Depot::Crew::"day""#,
        r#"principal has rank && principal.rank < 3"#,
        r#"action == Box::Action::"fs:read" || action in [Box::Action::"fs:write", Box::Action::"fs:move"]"#,
        r#"ip("10.0.0.1").isInRange(ip("10.0.0.0/8")) && context.addr.isLoopback()"#,
        r#"context.input.tare.lessThan(decimal("1.5"))"#,
        r#"context.input.a + 1 > context.input.b * 2"#,
        r#"if context.input.a == 1 then context.input.b == 2 else context.input.c == 3"#,
        r#"if context.input.a then true else false"#,
        r#"principal.hasTag("x") && principal.getTag("x") == "y""#,
        r#"Risk::score(context.input.path) > 5"#,
        r#"context.when > datetime("2026-01-01")"#,
        r#"true"#,
        r#"false"#,
        r#"context.input.operation == Box::FsReadOperation::"read_content""#,
        r#"context["odd name"] == {a: 1, "b c": [2, 3]}"#,
        r#"context.n > 3 && temporal { formerly within 1h Box::Action::"fs:read"::response{} }"#,
        r#"!temporal { formerly within 1h Box::Action::"fs:read"::response{} } || context.n == 1"#,
    ]), @r#"
    context.input.n > 3 && context.input.n <= 10
        when `n` is at least 4 and at most 10.
    3 < context.input.n
        when `n` is at least 4.
    context.input.a == "x" || context.input.a == "y"
        when `a` is one of "x" or "y".
    context.input.a == "x" && (context.input.b == 1 || context.input.c == 2)
        when `a` is "x", and either `b` is 1 or `c` is 2.
    (context.input.a == 1 && context.input.b == 2) || (context.input.c == 3 && (context.input.d == 4 || context.input.e == 5))
        when both `a` is 1 and `b` is 2, or both `c` is 3, and (`d` is 4 or `e` is 5).
    context.input has arg1 && context.input.arg1 != "push"
        when `arg1` is given and not "push".
    context.input has arg1 && context.input.arg1 like "pu*"
        when `arg1` starts with "pu".
    context.input has a.b && context.input.a.b like "*x*"
        when `a.b` contains "x".
    !(context.input has arg1)
        when `arg1` is not given.
    context.input has arg1 && !(context.input.arg1 like "*.txt")
        when `arg1` is given and does not end in ".txt".
    context.input.path like "/a*b*"
        when `path` matches `"/a*b*"`.
    context.input.path like "100\*"
        when `path` is "100*".
    ["a", "b"].contains(context.input.arg1)
        when `arg1` is one of "a" or "b".
    !["a", "b"].contains(context.input.arg1)
        when `arg1` is not one of "a" or "b".
    ["a"].contains(context.input.arg1)
        when `arg1` is "a".
    context.input.credential_reads.contains("~/.aws")
        when `credential_reads` contains "~/.aws".
    context.input.credential_reads.containsAny(["~/.aws", "~/.ssh"])
        when `credential_reads` contains any of "~/.aws" or "~/.ssh".
    context.input.credential_reads.isEmpty()
        when `credential_reads` is empty.
    context.input.intercepted
        when `intercepted` is true.
    !context.input.intercepted && context.input.port == 443
        when `port` is 443 and `intercepted` is false.
    principal is Depot::Clerk && principal in Depot::Crew::"day"
        when the principal is a `Depot::Clerk` and in `Depot::Crew::"day"`.
    principal has rank && principal.rank < 3
        when the principal has `rank` and the principal's `rank` is at most 2.
    action == Box::Action::"fs:read" || action in [Box::Action::"fs:write", Box::Action::"fs:move"]
        when the action is `fs:read`, or one of `fs:move` or `fs:write`.
    ip("10.0.0.1").isInRange(ip("10.0.0.0/8")) && context.addr.isLoopback()
        when `addr` is a loopback address and 10.0.0.1 is in the range 10.0.0.0/8.
    context.input.tare.lessThan(decimal("1.5"))
        when `tare` is less than 1.5.
    context.input.a + 1 > context.input.b * 2
        when `a` plus 1 is more than `b` times 2.
    if context.input.a == 1 then context.input.b == 2 else context.input.c == 3
        when (if `a` is 1, then `b` is 2; if not, `c` is 3).
    if context.input.a then true else false
        when `a` is true.
    principal.hasTag("x") && principal.getTag("x") == "y"
        when the principal has the tag "x" and the tag "x" of the principal is "y".
    Risk::score(context.input.path) > 5
        when `Risk::score(context.input.path)` is at least 6.
    context.when > datetime("2026-01-01")
        when `when` is more than 2026-01-01.
    true
        Forbids every action.
    false
        Never applies: its condition is always false.
    context.input.operation == Box::FsReadOperation::"read_content"
        when `operation` is `read_content`.
    context["odd name"] == {a: 1, "b c": [2, 3]}
        when `odd name` is `{ a: 1, "b c": [2, 3] }`.
    context.n > 3 && temporal { formerly within 1h Box::Action::"fs:read"::response{} }
        when `n` is at least 4, and in the last hour there was an `fs:read` response.
    !temporal { formerly within 1h Box::Action::"fs:read"::response{} } || context.n == 1
        when `n` is 1, or in the last hour there was no `fs:read` response.
    "#);
}

#[test]
fn temporal_conditions() {
    insta::assert_snapshot!(leaves(&[
        "M{}",
        "!M{ input.kg: 3 }",
        "M{ input.kg: * }",
        "formerly within 10s M{ input.crate: context.input.crate }",
        "formerly within 90s M{ callerPrincipal: principal }",
        "!(formerly within 1d Q{ input.crate: context.input.other })",
        "formerly within 2d Q{ callerPrincipal: resource.owner }",
        "previous within 60s M{}",
        "previous within 60s (!M{})",
        "!M{} since within 1h Q{}",
        "M{} since within 1h Q{}",
        "!(!B{} since within 1h Q{})",
        "(!(formerly within 1m B{})) since within 1h Q{}",
        "formerly within 10s (formerly within 10s Q{})",
        "formerly within 1h (Q{} && !(Q{ input.kg: 1 }))",
        "!(formerly within 1h (Q{} && !(Q{ input.kg: 1 })))",
        "formerly within 1h (!Q{})",
        "exists (k: Long). (M{ input.kg: k } && 0 < k)",
        "exists (k: Long). (formerly within 1h Q{ input.kg: k } && k >= 3)",
        "!(exists (k: Long). (formerly within 1h Q{ input.kg: k } && k >= 3))",
        "exists (k: Long). (!(M{input.kg: k}) since within 1h Q{input.kg: k})",
        "exists (c: String). (c == context.input.crate && formerly within 1h Q{input.crate: c})",
        "exists (t: Timepoint). (tp(t) && context.input.kg != 5 && M{})",
        "exists (t: Timepoint). (tp(t) && exists (u: Timepoint). (formerly within 10s (M{input.crate: context.input.crate} && tp(u)) && u != t))",
        "exists (c: String). (formerly within 1h Q{ input.crate: c } && formerly within 1h B{} && M{ input.crate: c })",
        "!(exists (c: String). (formerly within 1h Q{ input.crate: c } && M{ input.crate: c }))",
        "exists (c: String). (M{ input.crate: c } && exists (c: String). (formerly within 1h Q{ input.crate: c }))",
        "exists (p: Depot::Clerk). (M{ callerPrincipal: p } && formerly within 1h Q{ callerPrincipal: p })",
        "exists (a: Long). exists (b: Long). (M{ input.kg: a } && formerly within 1h Q{ input.kg: b } && a < b)",
        "exists (k: Long). (M{ input.kg: k, input.other: k })",
        "exists (k: Long). (k == context.input.kg)",
        "!(exists (k: Long). (k == context.input.kg))",
        "exists (k: Long). (k == context.input.kg && M{})",
        "exists (k: Long). (k == context.input.kg && !(formerly within 1h Q{ input.kg: k }))",
        "exists (k: Long). (k == 3)",
        "formerly within 1h Q{ input.ok: true, input.tare: decimal(\"1.5\") }",
    ]), @r#"
    M{}
        when this event is a `move` request.
    !M{ input.kg: 3 }
        unless this event is a `move` request with `kg` 3.
    M{ input.kg: * }
        when this event is a `move` request with a `kg`.
    formerly within 10s M{ input.crate: context.input.crate }
        when in the last 10 seconds there was a `move` request with the same `crate` as this request (this one counts).
    formerly within 90s M{ callerPrincipal: principal }
        when in the last 90 seconds there was a `move` request by the same principal (this one counts).
    !(formerly within 1d Q{ input.crate: context.input.other })
        unless in the last 24 hours there was a `weigh` request with `crate` equal to this request's `other`.
    formerly within 2d Q{ callerPrincipal: resource.owner }
        when in the last 2 days there was a `weigh` request with `callerPrincipal` equal to the resource's `owner`.
    previous within 60s M{}
        when the event just before this one was a `move` request, at most 1 minute earlier.
    previous within 60s (!M{})
        when the event just before this one came at most 1 minute earlier, and at that moment the event was not a `move` request.
    !M{} since within 1h Q{}
        when in the last hour there was a `weigh` request, and no `move` request has come since.
    M{} since within 1h Q{}
        when in the last hour there was a `weigh` request, and every event since was a `move` request.
    !(!B{} since within 1h Q{})
        unless in the last hour there was a `weigh` request, and no `beep` request has come since.
    (!(formerly within 1m B{})) since within 1h Q{}
        when in the last hour there was a `weigh` request, and at no moment since was it so that in the minute up to then there was a `beep` request.
    formerly within 10s (formerly within 10s Q{})
        when at some moment in the last 10 seconds, in the 10 seconds up to then there was a `weigh` request.
    formerly within 1h (Q{} && !(Q{ input.kg: 1 }))
        when at some moment in the last hour, the event was a `weigh` request and was not a `weigh` request with `kg` 1.
    !(formerly within 1h (Q{} && !(Q{ input.kg: 1 })))
        unless at some moment in the last hour, the event was a `weigh` request and was not a `weigh` request with `kg` 1.
    formerly within 1h (!Q{})
        when at some moment in the last hour, the event was not a `weigh` request.
    exists (k: Long). (M{ input.kg: k } && 0 < k)
        when this event is a `move` request with a `kg` of more than 0.
    exists (k: Long). (formerly within 1h Q{ input.kg: k } && k >= 3)
        when in the last hour there was a `weigh` request with a `kg` of at least 3.
    !(exists (k: Long). (formerly within 1h Q{ input.kg: k } && k >= 3))
        unless in the last hour there was a `weigh` request with a `kg` of at least 3.
    exists (k: Long). (!(M{input.kg: k}) since within 1h Q{input.kg: k})
        when in the last hour there was a `weigh` request with a `kg`, and no `move` request with the same `kg` has come since.
    exists (c: String). (c == context.input.crate && formerly within 1h Q{input.crate: c})
        when in the last hour there was a `weigh` request with the same `crate` as this request.
    exists (t: Timepoint). (tp(t) && context.input.kg != 5 && M{})
        when this event is a `move` request, and this request's `kg` is given and is not 5.
    exists (t: Timepoint). (tp(t) && exists (u: Timepoint). (formerly within 10s (M{input.crate: context.input.crate} && tp(u)) && u != t))
        when in the last 10 seconds there was an earlier `move` request with the same `crate` as this request.
    exists (c: String). (formerly within 1h Q{ input.crate: c } && formerly within 1h B{} && M{ input.crate: c })
        when this event is a `move` request with a `crate`, in the last hour there was a `beep` request, and in the last hour there was a `weigh` request with the same `crate`.
    !(exists (c: String). (formerly within 1h Q{ input.crate: c } && M{ input.crate: c }))
        unless this event is a `move` request with a `crate`, and in the last hour there was a `weigh` request with the same `crate`.
    exists (c: String). (M{ input.crate: c } && exists (c: String). (formerly within 1h Q{ input.crate: c }))
        when this event is a `move` request with a `crate`, and in the last hour there was a `weigh` request with a `crate`.
    exists (p: Depot::Clerk). (M{ callerPrincipal: p } && formerly within 1h Q{ callerPrincipal: p })
        when this event is a `move` request with a `callerPrincipal`, and in the last hour there was a `weigh` request with the same `callerPrincipal`.
    exists (a: Long). exists (b: Long). (M{ input.kg: a } && formerly within 1h Q{ input.kg: b } && a < b)
        when this event is a `move` request with a `kg` (`x`), in the last hour there was a `weigh` request with a `kg` (`y`), and `x` is less than `y`.
    exists (k: Long). (M{ input.kg: k, input.other: k })
        when this event is a `move` request with a `kg` and `other` equal to that `kg`.
    exists (k: Long). (k == context.input.kg)
        when this request's `kg` is given.
    !(exists (k: Long). (k == context.input.kg))
        unless this request's `kg` is given.
    exists (k: Long). (k == context.input.kg && M{})
        when this event is a `move` request and this request's `kg` is given.
    exists (k: Long). (k == context.input.kg && !(formerly within 1h Q{ input.kg: k }))
        when in the last hour there was no `weigh` request with the same `kg` as this request, and this request's `kg` is given.
    exists (k: Long). (k == 3)
        Permits `move`.
    formerly within 1h Q{ input.ok: true, input.tare: decimal("1.5") }
        when in the last hour there was a `weigh` request with `ok` true and `tare` 1.5.
    "#);
}

#[test]
fn aggregates() {
    insta::assert_snapshot!(leaves(&[
        "(count for (t: Timepoint). where formerly within 1m (M{} && tp(t))) <= 2",
        "(count for (c: String). where formerly within 1m M{ input.crate: c }) <= 1",
        "(count for (c: String), (k: Long). where formerly within 1m M{ input.crate: c, input.kg: k }) <= 1",
        "(sum k for (k: Long), (t: Timepoint). where formerly within 1h (Q{ input.kg: k } && k > 3 && tp(t))) <= 5",
        "(sum k for (k: Long). where formerly within 1h M{ input.kg: k }) <= 5",
        "(sum k for (k: Long), (t: Timepoint). where formerly within 1h (Q{ input.kg: k } && tp(t))) <= 5",
        "exists (n: Long). ((count for (t: Timepoint). where formerly within 1h (Q{} && tp(t))) == n && n < 2)",
        "!(exists (n: Long). ((count for (t: Timepoint). where formerly within 1h (Q{} && tp(t))) == n && n < 2))",
        "exists (n: Long). ((count for (t: Timepoint). where formerly within 1h (Q{} && tp(t))) == n && n > 2 && n < 9)",
        "exists (c: String). (formerly within 1h Q{ input.crate: c } && 2 <= (count for (t: Timepoint). where formerly within 1h (Q{ input.crate: c } && tp(t))))",
        "(sum k for (k: Long), (t: Timepoint). where (k == context.input.kg && tp(t))) == 4",
        "(count for (t: Timepoint). where formerly within 1h (Q{} && tp(t))) > (count for (t: Timepoint). where formerly within 1h (B{} && tp(t)))",
        "formerly within 1h (Q{} && (count for (t: Timepoint). where formerly within 1m (B{} && tp(t))) > 1)",
    ]), @"
    (count for (t: Timepoint). where formerly within 1m (M{} && tp(t))) <= 2
        when the number of `move` requests in the last minute, this one included, is at most 2.
    (count for (c: String). where formerly within 1m M{ input.crate: c }) <= 1
        when the number of different `crate` values among the `move` requests in the last minute, this one included if it is one, is at most 1.
    (count for (c: String), (k: Long). where formerly within 1m M{ input.crate: c, input.kg: k }) <= 1
        when the number of different combinations of `crate` and `kg` among the `move` requests in the last minute, this one included if it is one, is at most 1.
    (sum k for (k: Long), (t: Timepoint). where formerly within 1h (Q{ input.kg: k } && k > 3 && tp(t))) <= 5
        when the sum of `kg` over the `weigh` requests with a `kg` of at least 4 in the last hour is at most 5.
    (sum k for (k: Long). where formerly within 1h M{ input.kg: k }) <= 5
        when the sum of the different `kg` values among the `move` requests in the last hour, this one included if it is one, is at most 5.
    (sum k for (k: Long), (t: Timepoint). where formerly within 1h (Q{ input.kg: k } && tp(t))) <= 5
        when the sum of `kg` over the `weigh` requests in the last hour is at most 5.
    exists (n: Long). ((count for (t: Timepoint). where formerly within 1h (Q{} && tp(t))) == n && n < 2)
        when the number of `weigh` requests in the last hour is at most 1.
    !(exists (n: Long). ((count for (t: Timepoint). where formerly within 1h (Q{} && tp(t))) == n && n < 2))
        when the number of `weigh` requests in the last hour is at least 2.
    exists (n: Long). ((count for (t: Timepoint). where formerly within 1h (Q{} && tp(t))) == n && n > 2 && n < 9)
        when the number of `weigh` requests in the last hour is at least 3 and at most 8.
    exists (c: String). (formerly within 1h Q{ input.crate: c } && 2 <= (count for (t: Timepoint). where formerly within 1h (Q{ input.crate: c } && tp(t))))
        when in the last hour there was a `weigh` request with a `crate`, and the number of `weigh` requests with the same `crate` in the last hour is at least 2.
    (sum k for (k: Long), (t: Timepoint). where (k == context.input.kg && tp(t))) == 4
        when the sum of `y` over all `x` and `y` for which `tp(x) && y == context.input.kg` is 4.
    (count for (t: Timepoint). where formerly within 1h (Q{} && tp(t))) > (count for (t: Timepoint). where formerly within 1h (B{} && tp(t)))
        when the number of `beep` requests in the last hour is less than the number of `weigh` requests in the last hour.
    formerly within 1h (Q{} && (count for (t: Timepoint). where formerly within 1m (B{} && tp(t))) > 1)
        when at some moment in the last hour, the event was a `weigh` request and the number of `beep` requests in the minute up to then was at least 2.
    ");
}

#[test]
fn a_rule_under_a_pin_says_so() {
    let mut service = service();
    service.events.universal_pin = Some(crate::schema::Pin {
        field: vec!["callerPrincipal".into()],
        value: crate::schema::PinValue::Principal(Vec::new()),
    });
    let temporal = "permit (principal, action, resource) when temporal { formerly within 1h Box::Action::\"fs:read\"::response{} };";
    let plain = "permit (principal, action, resource);";
    let said: Vec<Vec<String>> = explained(&format!("{temporal}{plain}"), &service)
        .into_iter()
        .map(|rule| rule.sentences)
        .collect();
    insta::assert_debug_snapshot!(said, @r#"
    [
        [
            "Permits every action when in the last hour there was an `fs:read` response.",
            "It sees only earlier events of the same principal.",
        ],
        [
            "Permits every action.",
        ],
    ]
    "#);
}

#[test]
fn an_equation_that_goes_in_a_circle_ends() {
    // Not legal, but a half-written policy is explained in editors too.
    let leaf = "exists (x: Long). exists (y: Long). (x == y + 1 && y == x + 1 && M{ input.kg: x })";
    assert!(leaves(&[leaf]).contains("this event is"));
    let leaf = "exists (x: Long). (x == (count for (t: Timepoint). where formerly within 1h (Q{ input.kg: x } && tp(t))) && x > 1)";
    assert!(leaves(&[leaf]).contains("the number of"));
}
