//! The authority against a policy small enough to see through: a push needs a passing test since the last
//! `git add`.

use super::{Authority, OpenError, Recovered};
use crate::action::{Action, Command, FsRead, FsResult, Outcome, Spawn};
use crate::clock::Clock;
use crate::denial::{Denial, DenyCause, RuleName};
use crate::engine::{Compiled, Engine, PolicySet, RuleCard, Ruling};
use crate::gate::{Caller, Gate};
use crate::history::{Entry, History};
use crate::records::{Records, RunIdentity};
use dogwood_compiler::event::Event;
use dogwood_compiler::value::Value;
use smol_str::SmolStr;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

struct Held(AtomicI64);

impl Clock for Held {
    fn now(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

mod disk;
mod faults;
mod inbox;
mod killed;
mod policies;

#[derive(Clone, Default)]
struct PushGate {
    tested: bool,
}

fn input<'e>(event: &'e Event, field: &str) -> &'e str {
    match event
        .logged
        .get("input")
        .and_then(|input| input.at(&[field]))
    {
        Some(Value::String(text)) => text,
        _ => "",
    }
}

impl Engine for PushGate {
    fn step(&mut self, event: &Event) -> Result<Option<Ruling>, String> {
        let command = input(event, "command");
        if event.kind != "request" {
            if command == "npm test" {
                self.tested = event.logged.get("output").and_then(|o| o.at(&["status"]))
                    == Some(&Value::Int(0));
            } else if command == "git add" {
                self.tested = false;
            }
            return Ok(None);
        }
        let ruling = |allow, determining: &[usize]| Ruling {
            allow,
            determining: determining.into(),
            errors: Vec::new(),
        };
        Ok(Some(match command {
            "panic" => panic!("asked to"),
            "break" => return Err("asked to break".into()),
            "err" => Ruling {
                allow: true,
                determining: vec![0],
                errors: vec![(Some(1), "no attribute `arg1`".into())],
            },
            "unknown" => ruling(false, &[]),
            "git push" if !self.tested => ruling(false, &[1]),
            _ => ruling(true, &[0]),
        }))
    }

    fn what_if(&self, event: &Event) -> Result<Option<Ruling>, String> {
        self.clone().step(event)
    }

    fn save(&self) -> Option<Vec<u8>> {
        None
    }

    fn witness(&self, _: &Event, ruling: &Ruling) -> Vec<String> {
        if ruling.determining.is_empty() {
            Vec::new()
        } else {
            vec!["no passing `npm test` yet".into()]
        }
    }
}

struct Push;

impl Compiled for Push {
    fn start(&self) -> Box<dyn Engine> {
        Box::new(PushGate::default())
    }

    fn load(&self, _: &[u8]) -> Result<Box<dyn Engine>, String> {
        Err("nothing was saved".into())
    }

    fn fingerprint(&self) -> String {
        "push".into()
    }

    fn check(&self, event: &Event) -> Result<(), String> {
        match input(event, "command") {
            "odd" => Err("the event has a field `input.odd`, which is not declared".into()),
            _ => Ok(()),
        }
    }

    fn possible(&self, _: &Event, among: &[usize]) -> Vec<usize> {
        among.into()
    }
}

fn card(id: Option<&str>, place: &str, description: Option<&str>) -> RuleCard {
    RuleCard {
        name: RuleName {
            id: id.map(Into::into),
            place: place.into(),
        },
        description: description.map(Into::into),
        forbids: id.is_some(),
        horizon: if id.is_some() { 86_400 } else { 0 },
    }
}

fn policy() -> PolicySet {
    PolicySet {
        rules: vec![
            card(None, "policy.dw:1", None),
            card(
                Some("push_gate"),
                "policy.dw:4",
                Some("Run the tests, then push."),
            ),
        ],
        compiled: Arc::new(Push),
        keep: 86_400,
        text: "\"push\"".into(),
    }
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other("no space left"))
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn records(out: impl Write + Send + 'static) -> Records {
    Records::new(
        Box::new(out),
        RunIdentity {
            box_id: "box-00000000000000aa".into(),
            run_id: 0xfeed,
        },
    )
}

fn open(dir: &Path, now: i64) -> Result<Authority, OpenError> {
    Authority::open(
        dir,
        policy(),
        Arc::new(Held(now.into())),
        records(Shared::default()),
    )
}

fn spawn(words: &str) -> Action {
    let words: Vec<SmolStr> = words.split(' ').map(Into::into).collect();
    let program = words[0].clone();
    let command = Command {
        words,
        program: program.clone(),
        cwd: "~/project".into(),
    };
    Action::ShellSpawn(Spawn {
        command,
        program_path: format!("/usr/bin/{program}").into(),
        credential_reads: Vec::new(),
    })
}

fn ask(authority: &Authority, words: &str) -> Result<(), Denial> {
    let answer = authority
        .decide(&Caller::Agent, spawn(words))
        .map(|permit| permit.complete(Outcome::Status(0)));
    // Asked after the end of the request, so that is stamped before the test goes on.
    let _ = authority.what_if(&Caller::Agent, spawn("true"));
    answer
}

fn entries(dir: &Path) -> Vec<Entry> {
    let file = dir.join("history.redb");
    let history = History::open(crate::history::file(&file).unwrap(), &file).unwrap();
    let mut found = Vec::new();
    let view = history.reader().view().unwrap();
    view.each(0, |_, entry| {
        found.push(entry);
        Ok(())
    })
    .unwrap();
    found
}

/// Events the history holds, and requests without an end.
fn found(authority: &Authority) -> (usize, usize) {
    let Recovered {
        events, unfinished, ..
    } = authority.recovered();
    (*events, *unfinished)
}

fn kinds(dir: &Path) -> String {
    let kind = |entry: &Entry| {
        let command = match entry
            .input
            .get("command")
            .or_else(|| entry.input.get("path"))
        {
            Some(Value::String(text)) => text.clone(),
            _ => "?".into(),
        };
        let output = entry
            .output
            .as_ref()
            .map(|output| format!(" {output:?}"))
            .unwrap_or_default();
        format!("{} {} {command}{output}", entry.request_id, entry.kind)
    };
    entries(dir).iter().map(kind).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_history_decides_and_survives() {
    let dir = tempfile::tempdir().unwrap();
    let authority = open(dir.path(), 100).unwrap();
    assert!(ask(&authority, "git push").is_err());
    assert_eq!(ask(&authority, "npm test"), Ok(()));
    assert_eq!(ask(&authority, "git push"), Ok(()));
    drop(authority);
    // The clock went back while the box was down: its own time does not.
    let authority = open(dir.path(), 50).unwrap();
    assert_eq!(found(&authority), (5, 0));
    assert_eq!(ask(&authority, "git push"), Ok(()));
    assert_eq!(ask(&authority, "git add"), Ok(()));
    insta::assert_snapshot!(ask(&authority, "git push").unwrap_err(), @r"
    shell:spawn denied: policy denied this operation on '/usr/bin/git' [policy: push_gate]: Run the tests, then push.
      rule: push_gate (policy.dw:4)
      no passing `npm test` yet
    ");
    drop(authority);
    assert!(entries(dir.path()).iter().all(|entry| entry.time == 100));
    insta::assert_snapshot!(kinds(dir.path()), @r#"
    1 request git push
    2 request npm test
    2 response npm test {"status": Int(0)}
    4 request git push
    4 response git push {"status": Int(0)}
    6 request git push
    6 response git push {"status": Int(0)}
    8 request git add
    8 response git add {"status": Int(0)}
    10 request git push
    "#);
}

#[test]
fn a_dropped_permit_may_have_acted() {
    let dir = tempfile::tempdir().unwrap();
    let authority = open(dir.path(), 1).unwrap();
    drop(authority.decide(&Caller::Agent, spawn("npm test")).unwrap());
    let read = Action::FsRead {
        path: "~/notes".into(),
        operation: FsRead::ReadContent,
    };
    drop(authority.decide(&Caller::Agent, read.clone()).unwrap());
    let connect = Action::NetConnect {
        host: "example.net".into(),
        port: 443,
        ip: None,
    };
    drop(authority.decide(&Caller::Agent, connect).unwrap());
    authority
        .decide(&Caller::Agent, read.clone())
        .unwrap()
        .complete(Outcome::Fs(FsResult::DescriptorIssued));
    authority
        .decide(&Caller::Agent, read)
        .unwrap()
        .complete(Outcome::Failed);
    drop(authority);
    insta::assert_snapshot!(kinds(dir.path()), @r#"
    1 request npm test
    1 response npm test {"status": Int(-1)}
    3 request ~/notes
    3 response ~/notes {"result": Entity(EntityUid { ty: "Box::FsResponseResult", id: "indeterminate" })}
    5 request ?
    5 response ?
    7 request ~/notes
    7 response ~/notes {"result": Entity(EntityUid { ty: "Box::FsResponseResult", id: "descriptor_issued" })}
    9 request ~/notes
    9 error ~/notes
    "#);
}

#[test]
fn a_request_that_never_ended_is_ended_by_the_next_run() {
    let dir = tempfile::tempdir().unwrap();
    let authority = open(dir.path(), 1).unwrap();
    let permit = authority.decide(&Caller::Agent, spawn("npm test")).unwrap();
    // The box goes away before the command ends.
    drop(authority);
    drop(permit);
    let authority = open(dir.path(), 7).unwrap();
    assert_eq!(found(&authority), (1, 1));
    drop(authority);
    let authority = open(dir.path(), 8).unwrap();
    assert_eq!(found(&authority), (2, 0));
    drop(authority);
    insta::assert_snapshot!(kinds(dir.path()), @r#"
    1 request npm test
    1 response npm test {"status": Int(-1)}
    "#);
}

#[test]
fn one_box_runs_once() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path(), 1).unwrap();
    let Err(second) = open(dir.path(), 1) else {
        panic!("opened twice");
    };
    let said = second
        .to_string()
        .replace(&dir.path().display().to_string(), "DIR")
        .replace(&std::process::id().to_string(), "PID");
    insta::assert_snapshot!(said, @"this box is already running: process PID holds the history in DIR");
    drop(first);
    assert!(open(dir.path(), 1).is_ok());
}

#[test]
fn a_history_that_was_touched_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("history.redb");
    let authority = open(dir.path(), 1).unwrap();
    for _ in 0..20 {
        assert_eq!(ask(&authority, "npm test"), Ok(()));
    }
    drop(authority);
    let whole = std::fs::read(&file).unwrap();
    let refusal = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        match open(dir.path(), 1) {
            Ok(_) => panic!("opened"),
            Err(error) => error
                .to_string()
                .replace(&dir.path().display().to_string(), "DIR"),
        }
    };
    // One letter of stored events, wherever they lie.
    let found = |(at, bytes): (usize, &[u8])| (bytes == b"npm test").then_some(at);
    let mut changed = whole.clone();
    for at in whole.windows(8).enumerate().filter_map(found) {
        changed[at] = b'm';
    }
    insta::assert_snapshot!(refusal(&changed), @"the history DIR/history.redb cannot be read: DB corrupted: Primary is corrupted despite 2-phase commit");
    assert!(refusal(&whole[..whole.len() / 2]).contains("DIR/history.redb cannot be read"));
    insta::assert_snapshot!(refusal(&[]), @"the box has run before, but its history DIR/history.redb is gone or empty; put it back, or delete the whole box directory to start over");
    std::fs::remove_file(&file).unwrap();
    assert!(matches!(open(dir.path(), 1), Err(OpenError::History(_))));
    std::fs::write(&file, &whole).unwrap();
    assert_eq!(open(dir.path(), 1).unwrap().recovered().events, 40);
}

#[test]
fn old_events_are_dropped_and_numbers_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let authority = open(dir.path(), 1).unwrap();
    assert_eq!(ask(&authority, "npm test"), Ok(()));
    drop(authority);
    let authority = open(dir.path(), 90_000).unwrap();
    assert_eq!(ask(&authority, "ls"), Ok(()));
    drop(authority);
    let authority = open(dir.path(), 90_001).unwrap();
    assert_eq!(authority.recovered().events, 2);
    assert_eq!(ask(&authority, "ls"), Ok(()));
    drop(authority);
    let numbers: Vec<_> = entries(dir.path())
        .iter()
        .map(|entry| entry.request_id.to_string())
        .collect();
    assert_eq!(numbers, ["3", "3", "5", "5"]);
}

#[test]
fn what_breaks_stays_broken_until_the_next_run() {
    for command in ["panic", "break"] {
        let dir = tempfile::tempdir().unwrap();
        let authority = open(dir.path(), 1).unwrap();
        assert_eq!(ask(&authority, "ls"), Ok(()));
        let broken = ask(&authority, command).unwrap_err();
        assert!(matches!(broken.cause, DenyCause::Fault(_)));
        let after = ask(&authority, "ls").unwrap_err();
        assert_eq!(after.cause, broken.cause);
    }
}

#[test]
fn records_that_cannot_be_written_deny() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::open(
        dir.path(),
        policy(),
        Arc::new(Held(1.into())),
        records(Full),
    );
    assert!(matches!(authority, Err(OpenError::Records(_))));
}

#[test]
fn a_rule_that_cannot_be_evaluated_denies_one_request() {
    let dir = tempfile::tempdir().unwrap();
    let authority = open(dir.path(), 1).unwrap();
    insta::assert_snapshot!(ask(&authority, "err").unwrap_err(), @r"
    shell:spawn denied: policy denied this operation on '/usr/bin/err' because the request could not be evaluated.
      rule push_gate could not be evaluated: no attribute `arg1`
    ");
    assert_eq!(ask(&authority, "ls"), Ok(()));
}

#[test]
fn a_tool_call_is_only_narrowed_by_its_own_action() {
    let dir = tempfile::tempdir().unwrap();
    let authority = open(dir.path(), 100).unwrap();
    // Its name must not make it one of the box's own actions.
    let tool = |command: &str| Action::Tool {
        namespace: "payments".into(),
        tool: "shell:charge".into(),
        arguments: [("command".into(), Value::str(command))].into(),
    };
    // No rule speaks of it: the permit of the call stands, and the end is recorded.
    drop(authority.decide(&Caller::Agent, tool("unknown")).unwrap());
    let refused = authority.decide(&Caller::Agent, tool("git push")).err();
    assert!(matches!(
        refused.unwrap().cause,
        DenyCause::Forbidden { .. }
    ));
    drop(authority);
    let entries = entries(dir.path());
    let ends: Vec<_> = entries
        .iter()
        .filter(|entry| entry.kind == "response")
        .collect();
    assert!(matches!(ends.as_slice(), [end] if end.output.is_none()));
}

#[test]
fn every_decision_has_a_record() {
    let dir = tempfile::tempdir().unwrap();
    let out = Shared::default();
    let authority = Authority::open(
        dir.path(),
        policy(),
        Arc::new(Held(1_700_000_000.into())),
        records(out.clone()),
    )
    .unwrap();
    assert_eq!(ask(&authority, "npm test"), Ok(()));
    assert!(ask(&authority, "unknown").is_err());
    let floor = Denial {
        action: "fs:read".into(),
        target: "~/.state/box".into(),
        cause: DenyCause::Enforcement {
            gate: "reach-floor",
            reason: "inside the box directory".into(),
        },
    };
    let read = Action::FsRead {
        path: "~/.state/box".into(),
        operation: FsRead::ReadContent,
    };
    authority.record_refusal(&Caller::Tool("git".into()), &read, &floor);
    assert!(ask(&authority, "git add").is_ok());
    assert!(ask(&authority, "git push").is_err());
    drop(authority);
    let text = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
    let mut readable = String::new();
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let scope = &line["resourceLogs"][0]["scopeLogs"][0];
        let record = &scope["logRecords"][0];
        readable += &format!(
            "{} {} {}\n",
            record["severityText"], record["eventName"], record["traceId"]
        );
        for attribute in record["attributes"].as_array().unwrap() {
            let key = attribute["key"].as_str().unwrap();
            let value = attribute["value"]
                .to_string()
                .replace(&dir.path().display().to_string(), "DIR");
            readable += &format!("  {key} {value}\n");
        }
    }
    insta::assert_snapshot!("every_decision_has_a_record", readable);
    insta::assert_snapshot!("one_record_as_written", text.lines().nth(1).unwrap());
}

#[test]
fn concurrent_callers_are_ordered_without_gaps() {
    let dir = tempfile::tempdir().unwrap();
    let authority = open(dir.path(), 1).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for _ in 0..25 {
                    assert_eq!(ask(&authority, "ls"), Ok(()));
                }
            });
        }
    });
    drop(authority);
    let entries = entries(dir.path());
    assert_eq!(entries.len(), 800);
    let requests: BTreeSet<_> = entries
        .iter()
        .filter(|e| e.kind == "request")
        .map(|e| e.request_id.clone())
        .collect();
    let responses: BTreeSet<_> = entries
        .iter()
        .filter(|e| e.kind == "response")
        .map(|e| e.request_id.clone())
        .collect();
    assert_eq!(requests.len(), 400);
    assert_eq!(requests, responses);
}
