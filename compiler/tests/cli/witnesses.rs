//! `dogwood explain --trace` on denials of every kind, as the author of the policy reads them.

use super::super::Place;
use std::fmt::Write;

/// A policy of a box, and what happened under it.
struct Story {
    policy: &'static str,
    trace: String,
}

const START: i64 = 1_767_603_600;

fn story(policy: &'static str) -> Story {
    Story {
        policy,
        trace: String::new(),
    }
}

impl Story {
    fn event(mut self, at: i64, action: &str, input: &str, output: Option<&str>) -> Story {
        let time = START + at;
        _ = match output {
            None => writeln!(
                self.trace,
                "@{time} scope(principal: Box::Agent::\"self\", resource: Box::Resource::\"unused\") \
                 request_context(input: {{ {input} }}) Box::Action::\"{action}\"::request(input: {{ {input} }})"
            ),
            Some(output) => writeln!(
                self.trace,
                "@{time} Box::Action::\"{action}\"::response(input: {{ {input} }}, output: {{ {output} }})"
            ),
        };
        self
    }

    fn asks(self, at: i64, command: &str) -> Story {
        self.event(at, "shell:spawn", &command_input(command), None)
    }

    fn ran(self, at: i64, command: &str, status: i64) -> Story {
        let output = format!("status: {status}");
        self.event(at, "shell:spawn", &command_input(command), Some(&output))
    }

    fn call(self, at: i64, server: &str, tool: &str) -> Story {
        let input = format!("server: \"{server}\", method: \"tools/call\", tool: \"{tool}\"");
        self.event(at, "mcp:call", &input, None)
    }

    fn http(self, at: i64, method: &str, host: &str, bytes: i64) -> Story {
        self.event(at, "http:request", &http(method, host, bytes), None)
    }

    fn answered(self, at: i64, method: &str, host: &str, status: i64) -> Story {
        let output = format!("status: {status}");
        self.event(at, "http:request", &http(method, host, 0), Some(&output))
    }

    /// The explanation of the last denial.
    fn last(&self) -> String {
        let place = Place::new();
        place.file("policy.dw", self.policy);
        place.file("day.log", &self.trace);
        let answer = place.run(&["explain", "policy.dw", "--trace", "day.log"]);
        assert_eq!(answer.status, 0, "{}", answer.err);
        answer.out
    }
}

fn http(method: &str, host: &str, bytes: i64) -> String {
    format!(
        "host: \"{host}\", port: 443, method: \"{method}\", path: \"/\", body_bytes: {bytes}, intercepted: true"
    )
}

fn command_input(command: &str) -> String {
    let words: Vec<&str> = command.split(' ').collect();
    let args: Vec<String> = words
        .iter()
        .skip(1)
        .take(2)
        .enumerate()
        .map(|(at, word)| format!("arg{}: \"{word}\", ", at + 1))
        .collect();
    format!(
        "command: \"{command}\", program: \"{0}\", program_path: \"/usr/bin/{0}\", {1}arg_count: {2}, cwd: \"~/a\"",
        words[0],
        args.concat(),
        words.len() - 1
    )
}

const GATE: &str = r#"@id("all") permit (principal, action, resource);
@id("gate")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "git" && context.input has arg1 && context.input.arg1 == "push" }
unless temporal {
  formerly within 15m Box::Action::"shell:spawn"::response{ input.program: "npm", output.status: 0 }
};
"#;

#[test]
fn formerly() {
    let never = story(GATE).asks(0, "git push");
    let wrong_field = story(GATE).ran(60, "npm test", 1).asks(90, "git push");
    let too_old = story(GATE).ran(0, "npm test", 0).asks(1000, "git push");
    insta::assert_snapshot!([never.last(), wrong_field.last(), too_old.last()].join("\n"));
}

#[test]
fn since() {
    let policy = r#"@id("all") permit (principal, action, resource);
@id("gate")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "git" && context.input has arg1 && context.input.arg1 == "push" }
unless temporal {
  !Box::Action::"shell:spawn"::response{ input.program: "git", input.arg1: "add" }
  since within 15m
  Box::Action::"shell:spawn"::response{ input.program: "npm", output.status: 0 }
};
"#;
    let broken = story(policy)
        .ran(0, "npm test", 0)
        .ran(30, "git add a", 0)
        .ran(60, "git add b", 0)
        .asks(90, "git push");
    let old = story(policy).ran(0, "npm test", 0).asks(901, "git push");
    // The other way round: what was opened and not closed stays closed to others.
    let open = r#"@id("all") permit (principal, action, resource);
@id("one_at_a_time")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "deploy" }
when temporal {
  !Box::Action::"shell:spawn"::response{ input.program: "deploy" }
  since within 1h
  Box::Action::"mcp:call"::request{ input.server: "deploy", input.tool: "lock" }
};
"#;
    let locked = story(open)
        .call(0, "deploy", "lock")
        .call(30, "deploy", "status")
        .asks(100, "deploy now");
    insta::assert_snapshot!([broken.last(), old.last(), locked.last()].join("\n"));
}

#[test]
fn previous() {
    let policy = r#"@id("all") permit (principal, action, resource);
@id("confirm")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "rm" }
unless temporal {
  previous within 1m Box::Action::"mcp:call"::request{ input.server: "user", input.tool: "confirm" }
};
"#;
    let first = story(policy).asks(0, "rm -r build");
    let between = story(policy)
        .call(0, "user", "confirm")
        .asks(10, "ls")
        .asks(20, "rm -r build");
    let late = story(policy)
        .call(0, "user", "confirm")
        .asks(75, "rm -r build");
    let wrong = story(policy).call(0, "user", "ask").asks(20, "rm -r build");
    insta::assert_snapshot!([first.last(), between.last(), late.last(), wrong.last()].join("\n"));
}

#[test]
fn count_and_sum() {
    let count = r#"@id("all") permit (principal, action, resource);
@id("cap")
forbid (principal, action == Box::Action::"mcp:call", resource)
when { context.input.server == "aws" }
when temporal { count_within(1h, Box::Action::"mcp:call"::request{ input.server: "aws" }) > 3 };
"#;
    let mut capped = story(count);
    for n in 0..4 {
        capped = capped
            .call(n * 600, "aws", "run")
            .call(n * 600 + 5, "notes", "run");
    }
    let sum = r#"@id("all") permit (principal, action, resource);
@id("upload")
forbid (principal, action == Box::Action::"http:request", resource)
when temporal {
  (sum n for (n: Long), (t: Timepoint). where formerly within 1h (
    Box::Action::"http:request"::request{ input.host: "up.example.org", input.body_bytes: n } && tp(t))) > 1000
};
"#;
    let uploaded = story(sum)
        .http(0, "POST", "up.example.org", 600)
        .http(100, "POST", "up.example.org", 300)
        .http(200, "POST", "up.example.org", 200);
    let distinct = r#"@id("all") permit (principal, action, resource);
@id("few_hosts")
forbid (principal, action == Box::Action::"http:request", resource)
when temporal {
  (count for (h: String). where formerly within 10m Box::Action::"http:request"::request{ input.host: h }) > 2
};
"#;
    let scanned = story(distinct)
        .http(0, "GET", "a.example", 0)
        .http(10, "GET", "b.example", 0)
        .http(20, "GET", "a.example", 0)
        .http(30, "GET", "c.example", 0);
    let needed = r#"@id("two_reviews")
permit (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "merge" }
when temporal { count_within(1d, Box::Action::"mcp:call"::request{ input.server: "review", input.tool: "approve" }) >= 2 };
@id("calls") permit (principal, action == Box::Action::"mcp:call", resource);
"#;
    let reviewed = story(needed)
        .call(0, "review", "approve")
        .call(5, "review", "comment")
        .asks(60, "merge");
    insta::assert_snapshot!(
        [
            capped.last(),
            uploaded.last(),
            scanned.last(),
            reviewed.last()
        ]
        .join("\n")
    );
}

#[test]
fn once_in_a_session_and_negations() {
    let once = r#"@id("all") permit (principal, action, resource);
@id("once")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "deploy" }
when temporal { formerly within 1d Box::Action::"shell:spawn"::response{ input.program: "deploy", output.status: 0 } };
"#;
    let twice = story(once)
        .ran(0, "deploy staging", 0)
        .asks(600, "deploy again");
    let nested = r#"@id("all") permit (principal, action, resource);
@id("tests_before_build")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "ship" }
unless temporal {
  formerly within 1h (
    Box::Action::"shell:spawn"::response{ input.program: "build", output.status: 0 } &&
    formerly within 10m Box::Action::"shell:spawn"::response{ input.program: "npm", output.status: 0 })
};
"#;
    let wrong_order = story(nested)
        .ran(0, "build all", 0)
        .ran(30, "npm test", 0)
        .asks(60, "ship it");
    let negated = r#"@id("quiet")
permit (principal, action == Box::Action::"http:request", resource)
unless temporal { formerly within 5m Box::Action::"http:request"::response{ input.host: context.input.host, output.status: 429 } };
"#;
    let told_to_wait = story(negated)
        .http(0, "GET", "a.example", 0)
        .answered(1, "GET", "a.example", 429)
        .answered(2, "GET", "b.example", 200)
        .http(100, "GET", "a.example", 0);
    insta::assert_snapshot!([twice.last(), wrong_order.last(), told_to_wait.last()].join("\n"));
}

#[test]
fn joins_and_values_of_the_request() {
    let join = r#"@id("all") permit (principal, action, resource);
@id("own_lock")
forbid (principal, action == Box::Action::"mcp:call", resource)
when { context.input.method == "tools/call" && context.input has tool && context.input.tool == "write" }
unless temporal {
  exists (s: String). (
    Box::Action::"mcp:call"::request{ input.server: s } &&
    formerly within 1h Box::Action::"mcp:call"::request{ input.server: s, input.tool: "lock" })
};
"#;
    let other = story(join).call(0, "db1", "lock").call(60, "db2", "write");
    let correlated = r#"@id("all") permit (principal, action, resource);
@id("read_first")
forbid (principal, action == Box::Action::"http:request", resource)
when { context.input.method == "POST" }
unless temporal {
  formerly within 10m Box::Action::"http:request"::response{ input.method: "GET", input.host: context.input.host, output.status: 200 }
};
"#;
    let unread = story(correlated)
        .answered(0, "GET", "a.example", 200)
        .answered(5, "GET", "b.example", 500)
        .http(30, "POST", "b.example", 10);
    insta::assert_snapshot!([other.last(), unread.last()].join("\n"));
}

#[test]
fn the_nearest_permit() {
    let policy = r#"@id("get")
permit (principal, action == Box::Action::"http:request", resource)
when { context.input.method == "GET" && context.input.host like "*.example.org" };
@id("small_posts")
permit (principal, action == Box::Action::"http:request", resource)
when { context.input.method == "POST" && context.input.host == "up.example.org" && context.input.body_bytes < 1000 };
"#;
    let large = story(policy).http(0, "POST", "up.example.org", 5000);
    let host = story(policy).http(0, "GET", "www.example.net", 0);
    let action = story(policy).asks(0, "ls");
    insta::assert_snapshot!([large.last(), host.last(), action.last()].join("\n"));
}

const YARD: &str = r#"namespace Yard {
  entity Clerk;
  entity Bay;
  action "move" appliesTo { principal: [Clerk], resource: [Bay], context: { input: { crate: String, kg: Long } } };
  action "weigh" appliesTo { principal: [Clerk], resource: [Bay], context: { input: { crate: String, kg: Long } } };
}
"#;

/// Requests of the yard: second, clerk, action, crate, kilograms.
fn yard(policy: &str, events: &[(i64, &str, &str, &str, i64)]) -> String {
    let place = Place::new();
    place.file("yard.cedarschema", YARD);
    let mut trace = String::new();
    for (at, who, action, crate_, kg) in events {
        let input = format!("input: {{ crate: \"{crate_}\", kg: {kg} }}");
        _ = writeln!(
            trace,
            "@{} scope(principal: Yard::Clerk::\"{who}\", resource: Yard::Bay::\"one\") request_context({input}) \
             Yard::Action::\"{action}\"::request(callerPrincipal: Yard::Clerk::\"{who}\", callerResource: Yard::Bay::\"one\", {input})",
            START + at
        );
    }
    place.file("policy.dw", policy);
    place.file("day.log", &trace);
    let answer = place.run(&[
        "explain",
        "policy.dw",
        "--policy-schema",
        "yard.cedarschema",
        "--trace",
        "day.log",
    ]);
    assert_eq!(answer.status, 0, "{}{}", answer.out, answer.err);
    answer.out
}

#[test]
fn principals_and_partitions() {
    let weighed = r#"@id("all") permit (principal, action, resource);
@id("weigh_first")
forbid (principal, action == Yard::Action::"move", resource)
unless temporal { formerly within 10m Yard::Action::"weigh"::request{ input.crate: context.input.crate } };
"#;
    let by_another = yard(
        weighed,
        &[(0, "bob", "weigh", "a", 3), (60, "ann", "move", "a", 3)],
    );
    let other_crate = yard(
        weighed,
        &[
            (0, "ann", "weigh", "b", 3),
            (30, "bob", "weigh", "a", 3),
            (60, "ann", "move", "a", 3),
        ],
    );
    let too_old = yard(
        weighed,
        &[(0, "ann", "weigh", "a", 3), (700, "ann", "move", "a", 3)],
    );
    insta::assert_snapshot!([by_another, other_crate, too_old].join("\n"));
}
