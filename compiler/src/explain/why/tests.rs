use super::*;
use crate::compile::{Options, Source, check};
use crate::event::RequestPart;
use crate::monitor::{Config, Policy};
use crate::schema::box_service;
use crate::value::{EntityUid, Record};
use std::sync::Arc;

/// 10:00:00 of some day.
const TEN: i64 = 1_795_946_400;

/// A policy and what has happened under it.
struct Story {
    rules: Vec<NamedRule>,
    monitor: Monitor,
    told: String,
}

impl Story {
    fn new(policy: &str) -> Story {
        let source = Source {
            name: "policy.dw".to_owned(),
            text: policy.to_owned(),
        };
        let service = box_service();
        let checked = check(&[source], None, &service, &Options::default())
            .unwrap_or_else(|e| panic!("{e:#?}"));
        let name = |rule: &Rule| {
            let line = 1 + policy[..rule.effect_span.start as usize]
                .matches('\n')
                .count();
            rule.annotation("id")
                .map_or_else(|| format!("policy.dw:{line}"), str::to_owned)
        };
        let rules: Vec<Rule> = checked.rules.into_iter().map(|rule| rule.rule).collect();
        let compiled = Arc::new(Policy::new(&rules, &service));
        let rules = rules
            .into_iter()
            .map(|rule| NamedRule {
                name: name(&rule),
                rule,
            })
            .collect();
        Story {
            rules,
            monitor: Monitor::new(
                compiled,
                Config {
                    explained: true,
                    ..Config::default()
                },
            ),
            told: String::new(),
        }
    }

    /// A request; if allowed and a status is given, its response a second later.
    fn does(mut self, at: i64, action: &str, input: Record, status: Option<i64>) -> Story {
        let event = event(at, action, "request", input.clone(), None);
        let decision = self.monitor.step(&event).unwrap().unwrap();
        let verdict = if decision.allowed() {
            "allowed"
        } else {
            "denied"
        };
        self.told
            .push_str(&format!("+{at} {}: {verdict}\n", name_of(&event)));
        for witness in why(&self.rules, &self.monitor, &event, &decision) {
            self.told.push_str(&format!("    {witness}\n"));
        }
        if let (true, Some(status)) = (decision.allowed(), status) {
            let output = Record::from([("status".into(), Value::Int(status))]);
            self.monitor
                .step(&self::event(
                    at + 1,
                    action,
                    "response",
                    input,
                    Some(output),
                ))
                .unwrap();
        }
        self
    }

    fn spawn(self, at: i64, command: &str, status: i64) -> Story {
        self.does(at, "shell:spawn", command_input(command), Some(status))
    }

    fn call(self, at: i64, server: &str) -> Story {
        let input = Record::from([
            ("server".into(), server.into()),
            ("method".into(), "tools/call".into()),
            ("tool".into(), "list".into()),
        ]);
        self.does(at, "mcp:call", input, None)
    }
}

fn command_input(command: &str) -> Record {
    let words: Vec<&str> = command.split(' ').collect();
    let mut input = Record::from([
        ("command".into(), command.into()),
        ("program".into(), words[0].into()),
        (
            "program_path".into(),
            format!("/usr/bin/{}", words[0]).as_str().into(),
        ),
        ("arg_count".into(), Value::Int(words.len() as i64 - 1)),
        ("cwd".into(), "~/my-project".into()),
    ]);
    for (name, word) in ["arg1", "arg2"].into_iter().zip(&words[1..]) {
        input.insert(name.into(), (*word).into());
    }
    input
}

fn event(at: i64, action: &str, kind: &str, input: Record, output: Option<Record>) -> Event {
    let input = Value::Object(input);
    let mut logged = Record::from([("input".into(), input.clone())]);
    if let Some(output) = output {
        logged.insert("output".into(), Value::Object(output));
    }
    let request = (kind == "request").then(|| RequestPart {
        principal: Some(EntityUid::new("Box::Agent", "self")),
        resource: Some(EntityUid::new("Box::Resource", "unused")),
        context: Record::from([("input".into(), input)]),
        entities: Vec::new(),
    });
    let action = EntityUid::new("Box::Action", action);
    Event {
        time: TEN + at,
        action,
        kind: kind.into(),
        logged,
        request,
    }
}

const PUSH_GATE: &str = r#"
permit (principal, action, resource);
@id("push-gate")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "git" && context.input has arg1 && context.input.arg1 == "push" }
unless temporal {
  !Box::Action::"shell:spawn"::response{ input.program: "git", input.arg1: "add" }
  since within 15m
  Box::Action::"shell:spawn"::response{
    input.program: "npm", input.arg1: "test", input.arg_count: 1, input.cwd: "~/my-project", output.status: 0 }
};
"#;

#[test]
fn push_after_tests() {
    let story = Story::new(PUSH_GATE)
        .spawn(0, "git push", 0)
        .spawn(10, "npm test", 1)
        .spawn(41, "git push", 0)
        .spawn(60, "npm test", 0)
        .spawn(70, "git push", 0)
        .spawn(100, "git add .", 0)
        .spawn(130, "git add more", 0)
        .spawn(200, "git push", 0)
        .spawn(300, "npm test", 0)
        .spawn(310, "npm test -- one", 0)
        .spawn(1300, "git push", 0)
        .spawn(1310, "npm test", 2)
        .spawn(1320, "git push", 0);
    insta::assert_snapshot!(story.told, @"
    +0 `git push`: denied
        needs: a `shell:spawn` response of `npm test` in `~/my-project` with `output.status` 0 in the last 15 minutes, and no `shell:spawn` response of `git add …` since
        last: none seen yet
    +10 `npm test`: allowed
    +41 `git push`: denied
        needs: a `shell:spawn` response of `npm test` in `~/my-project` with `output.status` 0 in the last 15 minutes, and no `shell:spawn` response of `git add …` since
        last: none seen yet
        nearest: `npm test` at 10:00:11, 30s ago, had `output.status` 1 instead of 0
    +60 `npm test`: allowed
    +70 `git push`: allowed
    +100 `git add .`: allowed
    +130 `git add more`: allowed
    +200 `git push`: denied
        needs: a `shell:spawn` response of `npm test` in `~/my-project` with `output.status` 0 in the last 15 minutes, and no `shell:spawn` response of `git add …` since
        last: `npm test` at 10:01:01, 2m 19s ago; undone by `git add .` at 10:01:41, 1m 39s ago
    +300 `npm test`: allowed
    +310 `npm test -- one`: allowed
    +1300 `git push`: denied
        needs: a `shell:spawn` response of `npm test` in `~/my-project` with `output.status` 0 in the last 15 minutes, and no `shell:spawn` response of `git add …` since
        last: `npm test` at 10:05:01, 16m 39s ago, 1m 39s too long; the rule looks back 15 minutes
    +1310 `npm test`: allowed
    +1320 `git push`: denied
        needs: a `shell:spawn` response of `npm test` in `~/my-project` with `output.status` 0 in the last 15 minutes, and no `shell:spawn` response of `git add …` since
        last: `npm test` at 10:05:01, 16m 59s ago, 1m 59s too long; the rule looks back 15 minutes
        nearest: `npm test` at 10:21:51, 9s ago, had `output.status` 2 instead of 0
    ");
}

#[test]
fn what_was_forgotten_is_not_called_absent() {
    let mut story = Story::new(PUSH_GATE).spawn(0, "npm test", 0);
    for n in 0..40 {
        story = story.spawn(10 + n, "ls", 0);
    }
    story.told.clear();
    let story = story.spawn(1000, "git push", 0);
    insta::assert_snapshot!(story.told, @"
    +1000 `git push`: denied
        needs: a `shell:spawn` response of `npm test` in `~/my-project` with `output.status` 0 in the last 15 minutes, and no `shell:spawn` response of `git add …` since
        last: none in the last 15 minutes
    ");
}

#[test]
fn a_break_that_was_forgotten_still_has_its_time() {
    let mut story = Story::new(PUSH_GATE)
        .spawn(0, "npm test", 0)
        .spawn(5, "git add .", 0);
    for n in 0..40 {
        story = story.spawn(10 + n, "ls", 0);
    }
    story.told.clear();
    let story = story.spawn(100, "git push", 0);
    insta::assert_snapshot!(story.told, @"
    +100 `git push`: denied
        needs: a `shell:spawn` response of `npm test` in `~/my-project` with `output.status` 0 in the last 15 minutes, and no `shell:spawn` response of `git add …` since
        last: none in the last 15 minutes, or undone at 10:00:06, 1m 34s ago
    ");
}

#[test]
fn a_cap_says_when_it_opens_again() {
    let mut story = Story::new(
        r#"
permit (principal, action, resource);
@id("call-cap")
forbid (principal, action == Box::Action::"mcp:call", resource)
when { context.input.method == "tools/call" && context.input.server == "aws" }
when temporal {
  exists (n: Long). (n == (count for (t: Timepoint). where (formerly within 1h (
    Box::Action::"mcp:call"::request{ input.server: "aws", input.method: "tools/call" } && tp(t)))) && n >= 60)
};
"#,
    );
    for n in 0..59 {
        story = story.call(n * 20, "aws").call(n * 20 + 1, "other");
    }
    assert!(!story.told.contains("denied"), "59 pass");
    story.told.clear();
    let story = story
        .call(1200, "aws")
        .call(1230, "other")
        .call(1260, "aws");
    insta::assert_snapshot!(story.told, @r#"
    +1200 `list` on server `aws`: denied
        because: the number of `mcp:call` requests with `server` "aws" and `method` "tools/call" in the last hour, this one included, is 60; at most 59 are allowed
        allowed again in 40m 21s if nothing else happens
    +1230 `list` on server `other`: allowed
    +1260 `list` on server `aws`: denied
        because: the number of `mcp:call` requests with `server` "aws" and `method` "tools/call" in the last hour, this one included, is 61; at most 59 are allowed
        allowed again in 39m 41s if nothing else happens
    "#);
}

#[test]
fn a_seal_says_what_closed_it() {
    let read = |path: &str| {
        let operation = Value::Entity(EntityUid::new("Box::FsReadOperation", "read_content"));
        Record::from([
            ("path".into(), path.into()),
            ("operation".into(), operation),
        ])
    };
    let ask = |host: &str| {
        Record::from([
            ("host".into(), host.into()),
            ("port".into(), Value::Int(443)),
            ("method".into(), "GET".into()),
            ("path".into(), "/".into()),
            ("body_bytes".into(), Value::Int(0)),
            ("intercepted".into(), Value::Bool(true)),
        ])
    };
    let mut story = Story::new(
        r#"
permit (principal, action, resource);
@id("sealed_after_payroll")
forbid (principal, action == Box::Action::"http:request", resource)
when { context.input.host != "llm.example.net" }
when temporal {
  formerly within 8h Box::Action::"fs:read"::response{
    input.path: "~/payroll/2026.csv", input.operation: Box::FsReadOperation::"read_content" }
};
"#,
    )
    .does(0, "http:request", ask("docs.example.org"), None)
    .does(5, "fs:read", read("~/payroll/2026.csv"), None);
    let done = event(6, "fs:read", "response", read("~/payroll/2026.csv"), None);
    story.monitor.step(&done).unwrap();
    let story = story
        .does(10, "http:request", ask("llm.example.net"), None)
        .does(4000, "http:request", ask("docs.example.org"), None)
        .does(28_806, "http:request", ask("docs.example.org"), None)
        .does(28_807, "http:request", ask("docs.example.org"), None);
    insta::assert_snapshot!(story.told, @"
    +0 `http:request` to `docs.example.org/`: allowed
    +5 `fs:read` of `~/payroll/2026.csv`: allowed
    +10 `http:request` to `llm.example.net/`: allowed
    +4000 `http:request` to `docs.example.org/`: denied
        because: an `fs:read` response of `~/payroll/2026.csv` with `operation` `read_content` in the last 8 hours
        last: `fs:read` of `~/payroll/2026.csv` at 10:00:06, 1h 06m ago
        allowed again in 6h 54m if nothing else happens
    +28806 `http:request` to `docs.example.org/`: denied
        because: an `fs:read` response of `~/payroll/2026.csv` with `operation` `read_content` in the last 8 hours
        last: `fs:read` of `~/payroll/2026.csv` at 10:00:06, 8h 00m ago
        allowed again in 1s if nothing else happens
    +28807 `http:request` to `docs.example.org/`: allowed
    ");
}

#[test]
fn the_nearest_permit_is_named() {
    let story = Story::new(
        r#"
@id("run_checks")
permit (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program_path == "/usr/bin/make" && context.input has arg1 && context.input.arg1 == "check" };
@id("git_verbs")
permit (principal, action == Box::Action::"shell:spawn", resource)
when {
  context.input.program_path == "/usr/bin/git" && context.input has arg1 &&
  ["status", "diff", "add", "commit"].contains(context.input.arg1)
};
@id("push_after_checks")
permit (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "git" && context.input has arg1 && context.input.arg1 == "push" }
when temporal { formerly within 15m Box::Action::"shell:spawn"::response{ input.program: "make", output.status: 0 } };
@id("small_requests")
permit (principal, action == Box::Action::"http:request", resource) unless { context.input.body_bytes > 1000 };
"#,
    )
    .spawn(0, "make install", 0)
    .spawn(10, "make", 0)
    .spawn(20, "git rebase", 0)
    .spawn(30, "git push", 0)
    .spawn(40, "make check", 2)
    .spawn(50, "git push", 0)
    .spawn(60, "rm -rf /", 0)
    .call(70, "aws");
    insta::assert_snapshot!(story.told, @r#"
    +0 `make install`: denied
        no permit rule covers `shell:spawn` of `make install`
        nearest: rule run_checks needs that `arg1` is "check"; here it is "install"
    +10 `make`: denied
        no permit rule covers `shell:spawn` of `make`
        nearest: rule run_checks needs that `arg1` is "check"; here it is not given
    +20 `git rebase`: denied
        no permit rule covers `shell:spawn` of `git rebase`
        nearest: rule git_verbs needs that `arg1` is one of "status", "diff", "add" or "commit"; here it is "rebase"
    +30 `git push`: denied
        no permit rule covers `shell:spawn` of `git push`
        nearest: rule push_after_checks
        needs: a `shell:spawn` response of `make …` with `output.status` 0 in the last 15 minutes
        last: none seen yet
    +40 `make check`: allowed
    +50 `git push`: denied
        no permit rule covers `shell:spawn` of `git push`
        nearest: rule push_after_checks
        needs: a `shell:spawn` response of `make …` with `output.status` 0 in the last 15 minutes
        last: none seen yet
        nearest: `make check` at 10:00:41, 9s ago, had `output.status` 2 instead of 0
    +60 `rm -rf /`: denied
        no permit rule covers `shell:spawn` of `rm -rf /`
    +70 `list` on server `aws`: denied
        no permit rule covers `mcp:call` of `list` on server `aws`
    "#);
}

#[test]
fn several_rules_each_have_their_say() {
    let story = Story::new(
        r#"
permit (principal, action, resource);
@id("never-on-main") forbid (principal, action == Box::Action::"shell:spawn", resource) when { context.input.program == "git" };
@id("calm")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { temporal { (count for (t: Timepoint). where (formerly within 1m (Box::Action::"shell:spawn"::request{} && tp(t)))) > 2 } && context.input.arg_count > 0 };
"#,
    )
    .spawn(0, "git status", 0)
    .spawn(10, "npm test", 0)
    .spawn(20, "git status", 0)
    .spawn(30, "npm test", 0);
    insta::assert_snapshot!(story.told, @r#"
    +0 `git status`: denied
        because: `program` is "git"
    +10 `npm test`: allowed
    +20 `git status`: denied
        rule never-on-main:
        because: `program` is "git"
        rule calm:
        because: the number of `shell:spawn` requests in the last minute, this one included, is 3; at most 2 are allowed
    +30 `npm test`: denied
        because: the number of `shell:spawn` requests in the last minute, this one included, is 4; at most 2 are allowed
        allowed again in 51s if nothing else happens
    "#);
}

#[test]
fn correlated_and_combined_conditions() {
    let story = Story::new(
        r#"
permit (principal, action, resource);
@id("read-before-write")
forbid (principal, action == Box::Action::"shell:spawn", resource)
unless temporal {
  formerly within 10m Box::Action::"mcp:call"::request{ input.server: "plan" } &&
  !(formerly within 10m Box::Action::"shell:spawn"::response{ input.command: context.input.command }) &&
  (count for (t: Timepoint). where (formerly within 10m (Box::Action::"mcp:call"::request{} && tp(t)))) >= 2
};
"#,
    )
    .spawn(0, "make", 0)
    .call(10, "plan")
    .spawn(20, "make", 0)
    .call(30, "aws")
    .spawn(40, "make", 0)
    .spawn(50, "make", 0)
    .spawn(55, "make check", 0);
    insta::assert_snapshot!(story.told, @r#"
    +0 `make`: denied
        needs: an `mcp:call` request with `server` "plan" in the last 10 minutes
        last: none seen yet
    +10 `list` on server `plan`: allowed
    +20 `make`: denied
        because: the number of `mcp:call` requests in the last 10 minutes is 1; at least 2 are needed
    +30 `list` on server `aws`: allowed
    +40 `make`: allowed
    +50 `make`: denied
        because: a `shell:spawn` response with the same `command` as this request in the last 10 minutes
        last: `make` at 10:00:41, 9s ago
    +55 `make check`: allowed
    "#);
}

#[test]
fn a_request_that_cannot_be_judged_says_so() {
    let mut story = Story::new("permit (principal, action, resource) when { context.input.port == 443 || context.input.port == 80 };".replace("permit (principal, action, resource)", "@id(\"ports\") permit (principal, action == Box::Action::\"net:connect\", resource)").as_str());
    let mut lost = event(
        0,
        "net:connect",
        "request",
        Record::from([("host".into(), "a".into())]),
        None,
    );
    let decision = story.monitor.step(&lost).unwrap().unwrap();
    let said: Vec<String> = why(&story.rules, &story.monitor, &lost, &decision)
        .iter()
        .map(Witness::to_string)
        .collect();
    lost.request = None;
    let decision = story.monitor.step(&lost).unwrap().unwrap();
    let also: Vec<String> = why(&story.rules, &story.monitor, &lost, &decision)
        .iter()
        .map(Witness::to_string)
        .collect();
    insta::assert_debug_snapshot!((said, also), @r#"
    (
        [
            "rule ports could not be judged: the record has no attribute `port`",
            "no permit rule covers `net:connect` to `a`",
            "nearest: rule ports needs that `port` is 443 or 80; here it is not given",
        ],
        [
            "the request could not be judged: the request names no principal",
        ],
    )
    "#);
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    /// What an agent may do; `git push` is asked about.
    const COMMANDS: [(&str, i64); 5] = [
        ("npm test", 0),
        ("npm test", 1),
        ("git add .", 0),
        ("ls", 0),
        ("git push", 0),
    ];

    fn happenings() -> impl Strategy<Value = Vec<(i64, usize)>> {
        proptest::collection::vec(
            (prop_oneof![1..100i64, 400..1000i64], 0..COMMANDS.len()),
            1..25,
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The witness of the push gate against the plain reading of the rule over the whole list.
        #[test]
        fn the_push_gate_names_the_right_events(happenings in happenings()) {
            let mut story = Story::new(PUSH_GATE);
            let mut now = 0;
            // Responses so far: time and command.
            let mut past: Vec<(i64, usize)> = Vec::new();
            for (gap, which) in happenings {
                now += gap + 1;
                let (command, status) = COMMANDS[which];
                let input = command_input(command);
                let asked = event(now, "shell:spawn", "request", input.clone(), None);
                let decision = story.monitor.step(&asked).unwrap().unwrap();
                let found = why(&story.rules, &story.monitor, &asked, &decision);
                if decision.allowed() {
                    prop_assert_eq!(found, []);
                    let output = Record::from([("status".into(), Value::Int(status))]);
                    story.monitor.step(&event(now + 1, "shell:spawn", "response", input, Some(output))).unwrap();
                    past.push((now + 1, which));
                    continue;
                }
                let passed = past.iter().rposition(|(_, which)| *which == 0);
                let times: Vec<Option<i64>> = found.iter().map(|witness| match witness {
                    Witness::NoneSeen => None,
                    Witness::TooOld { last, .. } | Witness::Undone { last, .. } => Some(last.time - TEN),
                    _ => Some(-1),
                }).filter(|time| *time != Some(-1)).collect();
                prop_assert_eq!(&times, &vec![passed.map(|at| past[at].0)], "{:#?}", found);
                let undone: Vec<i64> = found.iter().filter_map(|witness| match witness {
                    Witness::Undone { by, .. } => by.as_ref().map(|by| by.time - TEN),
                    _ => None,
                }).collect();
                let expected: Vec<i64> = passed
                    .filter(|at| now - past[*at].0 <= 900)
                    .and_then(|at| past[at..].iter().find(|(_, which)| *which == 2))
                    .map(|(time, _)| *time)
                    .into_iter()
                    .collect();
                prop_assert_eq!(undone, expected, "{:#?}", found);
                let nearest: Vec<i64> = found.iter().filter_map(|witness| match witness {
                    Witness::Nearest { seen, .. } => Some(seen.time - TEN),
                    _ => None,
                }).collect();
                let failed = past.iter().rposition(|(_, which)| *which == 1);
                let expected: Vec<i64> = failed
                    .filter(|failed| passed.is_none_or(|passed| passed < *failed))
                    .map(|at| past[at].0)
                    .filter(|time| now - time <= 900)
                    .into_iter()
                    .collect();
                prop_assert_eq!(nearest, expected, "{:#?}", found);
            }
        }

        /// Whoever waits as long as told is let through, and whoever waits a second less is not.
        #[test]
        fn the_time_to_wait_is_exact(gaps in proptest::collection::vec(0..40i64, 1..20), cap in 1..5i64) {
            let policy = format!(
                "permit (principal, action, resource);
                 forbid (principal, action == Box::Action::\"mcp:call\", resource) when temporal {{
                   (count for (t: Timepoint). where (formerly within 1m (Box::Action::\"mcp:call\"::request{{}} && tp(t)))) > {cap} }};"
            );
            let mut story = Story::new(&policy);
            let mut now = 0;
            for gap in gaps {
                now += gap;
                let input = Record::from([("server".into(), "a".into()), ("method".into(), "ping".into())]);
                let asked = event(now, "mcp:call", "request", input, None);
                let decision = story.monitor.step(&asked).unwrap().unwrap();
                let found = why(&story.rules, &story.monitor, &asked, &decision);
                let wait = found.iter().find_map(|witness| match witness {
                    Witness::AllowedIn { seconds } => Some(*seconds),
                    _ => None,
                });
                prop_assert_eq!(wait.is_some(), !decision.allowed(), "{:#?}", found);
                if let Some(wait) = wait {
                    let at = |seconds: i64| Event { time: asked.time + seconds, ..asked.clone() };
                    prop_assert!(story.monitor.decide_only(&at(wait)).allowed());
                    prop_assert!(!story.monitor.decide_only(&at(wait - 1)).allowed());
                }
            }
        }
    }
}
