//! Real policies over a history that lives longer than they do: new rules, short histories, snapshots, keys,
//! malformed requests, questions that leave no trace.

use super::disk::Disk;
use super::{Authority, Held, Shared, ask, records, spawn};
use crate::action::{Action, FsRead, Outcome};
use crate::authority::writer::Pace;
use crate::authority::{ReloadError, Waiting};
use crate::denial::DenyCause;
use crate::engine::PolicySet;
use crate::gate::{Caller, Gate};
use dogwood_compiler::compile::{Options, Source, check, load_service};
use dogwood_compiler::value::{Record, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// Three pushes an hour, counting those that are refused.
pub const CAP: &str = r#"permit (principal, action == Box::Action::"shell:spawn", resource);

@id("push_cap")
@description("At most 3 pushes an hour.")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.command == "git push" }
when temporal {
  exists (n: Long). (
    (count for (t: Timepoint). where (
      formerly within 1h ( Box::Action::"shell:spawn"::request{ input.command: "git push" } && tp(t) )
    )) == n && n > 3
  )
};
"#;

const PLAIN: &str = r#"permit (principal, action == Box::Action::"shell:spawn", resource);"#;

const ALL: &str = "permit (principal, action, resource);";

/// A push needs a passing test of the last day, and a deploy a push.
const DAY: &str = r#"@id("work")
permit (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program != "deploy" };

@id("deploy_after_push")
permit (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "deploy" }
when temporal { formerly within 12h ( Box::Action::"shell:spawn"::response{ input.command: "git push", output.status: 0 } ) };

@id("tested")
@description("Run the tests, then push.")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.command == "git push" }
unless temporal { formerly within 24h ( Box::Action::"shell:spawn"::response{ input.command: "npm test", output.status: 0 } ) };
"#;

/// Each text is compiled once.
pub fn compile(text: &'static str) -> PolicySet {
    static COMPILED: Mutex<BTreeMap<&str, PolicySet>> = Mutex::new(BTreeMap::new());
    let mut compiled = COMPILED.lock().unwrap();
    let policy = compiled.entry(text).or_insert_with(|| {
        let source = Source {
            name: "policy.dw".into(),
            text: text.into(),
        };
        let (service, _) = load_service(None, None).unwrap();
        let sources = [source];
        let checked = check(&sources, None, &service, &Options::default()).unwrap();
        PolicySet::new(&checked, &sources, &service)
    });
    PolicySet {
        rules: policy.rules.clone(),
        compiled: Arc::clone(&policy.compiled),
        keep: policy.keep,
        text: policy.text.clone(),
    }
}

/// A policy that keeps an hour, whatever it could be asked later.
fn forgetful(text: &'static str) -> PolicySet {
    let mut policy = compile(text);
    policy.keep = 3600;
    policy
}

struct Desk {
    disk: Disk,
    clock: Arc<Held>,
    told: Shared,
}

impl Desk {
    fn new(now: i64) -> Desk {
        Desk {
            disk: Disk::default(),
            clock: Arc::new(Held(now.into())),
            told: Shared::default(),
        }
    }

    fn open(&self, policy: PolicySet) -> Authority {
        self.open_at(policy, Pace::default())
    }

    fn open_at(&self, policy: PolicySet, pace: Pace) -> Authority {
        Authority::paced(
            self.disk.clone(),
            policy,
            Arc::<Held>::clone(&self.clock),
            records(self.told.clone()),
            pace,
        )
        .unwrap()
    }

    fn pass(&self, seconds: i64) {
        self.clock.0.fetch_add(seconds, Ordering::SeqCst);
    }

    /// What the box did itself, one operation a line.
    fn control(&self) -> String {
        let text = String::from_utf8(self.told.0.lock().unwrap().clone()).unwrap();
        let mut found = String::new();
        for line in text
            .lines()
            .filter(|line| line.contains("control.operation"))
        {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let record = &line["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
            let said: Vec<&str> = record["attributes"]
                .as_array()
                .unwrap()
                .iter()
                .map(|attribute| attribute["value"]["stringValue"].as_str().unwrap())
                .collect();
            found += &format!("{}\n", said.join(" "));
        }
        found
    }
}

/// Noon of a day in 2026.
const NOON: i64 = 1_796_040_000;

#[test]
fn a_new_rule_knows_what_happened_before_it() {
    let desk = Desk::new(NOON);
    let authority = desk.open(compile(PLAIN));
    for _ in 0..3 {
        assert_eq!(ask(&authority, "git push"), Ok(()));
    }
    assert_eq!(authority.reload(compile(CAP)), Ok(Vec::new()));
    insta::assert_snapshot!(ask(&authority, "git push").unwrap_err(), @r#"
    shell:spawn denied: policy denied this operation on '/usr/bin/git' [policy: push_cap]: At most 3 pushes an hour.
      rule: push_cap (policy.dw:3)
      because: the number of `shell:spawn` requests with `command` "git push" in the last hour, this one included, is 4; at most 3 are allowed
      allowed again in 1h 01m if nothing else happens
    "#);
    assert_eq!(ask(&authority, "ls"), Ok(()));
    // Back again, and the other way: over a restart.
    assert_eq!(authority.reload(compile(PLAIN)), Ok(Vec::new()));
    assert_eq!(ask(&authority, "git push"), Ok(()));
    drop(authority);
    let authority = desk.open(compile(CAP));
    assert!(ask(&authority, "git push").is_err());
    authority.reject("policy.dw:3: expected `;`");
    assert!(ask(&authority, "git push").is_err());
    authority.close();
    assert_eq!(authority.reload(compile(PLAIN)), Err(ReloadError::Closed));
    let told = desk.control();
    let fingerprints: Vec<String> = [CAP, PLAIN]
        .iter()
        .map(|text| compile(text).compiled.fingerprint())
        .collect();
    let told = told
        .replace(&fingerprints[0], "CAP")
        .replace(&fingerprints[1], "PLAIN");
    insta::assert_snapshot!(told, @"
    box_started ok storage
    policy_installed ok CAP
    policy_installed ok PLAIN
    box_stopped ok 
    box_started ok storage
    policy_refused refused policy.dw:3: expected `;`
    box_stopped ok
    ");
}

#[test]
fn requests_under_way_outlive_the_policy_that_permitted_them() {
    let desk = Desk::new(NOON);
    let authority = desk.open(compile(PLAIN));
    let test = authority.decide(&Caller::Agent, spawn("npm test")).unwrap();
    assert_eq!(authority.reload(compile(DAY)), Ok(Vec::new()));
    assert!(ask(&authority, "git push").is_err());
    test.complete(Outcome::Status(0));
    assert_eq!(ask(&authority, "git push"), Ok(()));
}

#[test]
fn a_rule_that_needs_more_history_than_there_is_waits() {
    let desk = Desk::new(NOON);
    let authority = desk.open(forgetful(PLAIN));
    assert_eq!(ask(&authority, "npm test"), Ok(()));
    desk.pass(7200);
    for _ in 0..4 {
        assert_eq!(ask(&authority, "git push"), Ok(()));
        desk.pass(1);
    }
    // Closed once, so that what is old has been dropped.
    drop(authority);
    let authority = desk.open(forgetful(PLAIN));
    let waiting = authority.reload(compile(DAY)).unwrap();
    let expected = [("deploy_after_push", 12), ("tested", 24)].map(|(rule, hours)| Waiting {
        rule: rule.into(),
        until: NOON + hours * 3600 + 1,
    });
    assert_eq!(waiting, expected);
    insta::assert_snapshot!(waiting[1], @"rule tested needs more history than there is; it decides again from 2026-12-01 12:00:01 UTC");
    // What the rules could not decide anyway goes on.
    assert_eq!(ask(&authority, "ls"), Ok(()));
    insta::assert_snapshot!(ask(&authority, "git push").unwrap_err(), @"
    shell:spawn denied: policy denied this operation on '/usr/bin/git' [policy: tested]: Run the tests, then push.
      rule: tested (policy.dw:10)
      the history reaches back to 2026-11-30 12:00:01 UTC and this rule needs 24h of it: it denies what it could decide until 2026-12-01 12:00:01 UTC
    ");
    // There was a push, and it is still known: but the rule may not say so yet.
    insta::assert_snapshot!(ask(&authority, "deploy now").unwrap_err(), @"
    shell:spawn denied: policy denied this operation on '/usr/bin/deploy' [default-deny]: No permit policy matched this request.
      nearest: deploy_after_push: the history reaches back to 2026-11-30 12:00:01 UTC and this rule needs 12h of it: it permits nothing until 2026-12-01 00:00:01 UTC
    ");
    assert!(
        authority
            .what_if(&Caller::Agent, spawn("git push"))
            .is_err()
    );
    // A restart, with and without a snapshot, does not make it longer.
    drop(authority);
    let authority = desk.open_at(
        compile(DAY),
        Pace {
            events: 1,
            bytes: 0,
        },
    );
    assert_eq!(authority.recovered().waiting, expected);
    desk.pass(NOON + 12 * 3600 - desk.clock.0.load(Ordering::SeqCst));
    assert!(ask(&authority, "deploy now").is_err());
    desk.pass(1);
    assert_eq!(ask(&authority, "deploy now"), Ok(()));
    assert!(ask(&authority, "git push").is_err());
    desk.pass(12 * 3600);
    insta::assert_snapshot!(ask(&authority, "git push").unwrap_err(), @r#"
    shell:spawn denied: policy denied this operation on '/usr/bin/git' [policy: tested]: Run the tests, then push.
      rule: tested (policy.dw:10)
      needs: a `shell:spawn` response with `command` "npm test" and `output.status` 0 in the last 24 hours
      last: none seen yet
    "#);
    assert_eq!(ask(&authority, "npm test"), Ok(()));
    assert_eq!(ask(&authority, "git push"), Ok(()));
}

#[test]
fn a_history_that_was_never_shortened_is_whole() {
    let desk = Desk::new(NOON);
    let authority = desk.open(forgetful(PLAIN));
    assert_eq!(ask(&authority, "npm test"), Ok(()));
    drop(authority);
    let authority = desk.open(compile(DAY));
    assert_eq!(authority.recovered().waiting, []);
    assert_eq!(ask(&authority, "git push"), Ok(()));
}

#[test]
fn a_longer_history_can_be_kept_for_rules_to_come() {
    let desk = Desk::new(NOON);
    let authority = desk.open(forgetful(PLAIN).keeping(7 * 86_400));
    assert_eq!(ask(&authority, "npm test"), Ok(()));
    desk.pass(7200);
    assert_eq!(ask(&authority, "ls"), Ok(()));
    drop(authority);
    let authority = desk.open(compile(DAY));
    assert_eq!(authority.recovered().events, 4);
    assert_eq!(ask(&authority, "git push"), Ok(()));
}

/// Waits until a snapshot holds at least this many events.
fn snapshot_of(authority: &Authority, events: u64) {
    let reader = authority.reader.lock().unwrap().clone().unwrap();
    loop {
        let head = reader.view().unwrap().head().unwrap();
        if head.is_some_and(|head| head.sequence >= events) {
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_snapshot_and_what_came_later_make_the_same_state() {
    let desk = Desk::new(NOON);
    let authority = desk.open_at(
        compile(CAP),
        Pace {
            events: 40,
            bytes: 0,
        },
    );
    for _ in 0..2 {
        assert_eq!(ask(&authority, "git push"), Ok(()));
    }
    for step in 0..40 {
        desk.pass(1);
        assert_eq!(ask(&authority, &format!("ls {step}")), Ok(()));
    }
    snapshot_of(&authority, 40);
    assert_eq!(ask(&authority, "git push"), Ok(()));
    drop(authority);
    let before = desk.disk.bytes();
    let authority = desk.open(compile(CAP));
    let recovered = authority.recovered();
    assert_eq!(
        (recovered.events, recovered.passed_over.as_deref()),
        (86, None)
    );
    assert!(recovered.stepped <= 46, "{}", recovered.stepped);
    assert!(ask(&authority, "git push").is_err());
    drop(authority);
    // A policy whose cells are others steps all of it.
    let other = Desk {
        disk: Disk::holding(before),
        ..Desk::new(NOON)
    };
    let authority = other.open(compile(PLAIN));
    assert_eq!(authority.recovered().stepped, 86);
}

#[test]
fn a_key_counts_once_and_is_answered_alike() {
    let desk = Desk::new(NOON);
    let authority = desk.open(compile(CAP));
    let once = |authority: &Authority, words: &str, key: &str| {
        let caller = Caller::Agent;
        let answer = authority.decide_once(&caller, spawn(words), key)?;
        let repeated = answer.repeated();
        answer.complete(Outcome::Status(0));
        Ok::<bool, crate::denial::Denial>(repeated)
    };
    for _ in 0..10 {
        assert!(once(&authority, "git push", "a").is_ok());
    }
    assert_eq!(once(&authority, "git push", "a"), Ok(true));
    assert_eq!(once(&authority, "git push", "b"), Ok(false));
    assert_eq!(once(&authority, "git push", "c"), Ok(false));
    let refused = once(&authority, "git push", "d").unwrap_err();
    assert!(matches!(refused.cause, DenyCause::Forbidden { .. }));
    let other = once(&authority, "git pull", "a").unwrap_err();
    insta::assert_snapshot!(other, @"
    shell:spawn denied: policy denied this operation on '/usr/bin/git' because the request could not be evaluated.
      the key `a` belongs to another request
    ");
    insta::assert_snapshot!(once(&authority, "ls", "").unwrap_err(), @"
    shell:spawn denied: policy denied this operation on '/usr/bin/ls' because the request could not be evaluated.
      a key has 1 to 256 bytes
    ");
    // Another caller's key is another key.
    let tool = Caller::Tool("ci".into());
    assert!(authority.decide_once(&tool, spawn("ls"), "a").is_ok());
    drop(authority);
    desk.pass(3601);
    let authority = desk.open(compile(CAP));
    // Allowed by now, and still the answer of the first time.
    assert_eq!(once(&authority, "git push", "d"), Err(refused));
    assert_eq!(once(&authority, "git push", "a"), Ok(true));
    assert_eq!(authority.recovered().events, 9);
    assert_eq!(once(&authority, "git push", "e"), Ok(false));
}

#[test]
fn a_repeated_permit_that_is_dropped_says_nothing() {
    let desk = Desk::new(NOON);
    let authority = desk.open(compile(DAY));
    let first = authority.decide_once(&Caller::Agent, spawn("npm test"), "k");
    let again = authority
        .decide_once(&Caller::Agent, spawn("npm test"), "k")
        .unwrap();
    assert!(again.repeated());
    drop(again);
    assert!(ask(&authority, "git push").is_err());
    first.unwrap().complete(Outcome::Status(0));
    assert_eq!(ask(&authority, "git push"), Ok(()));
}

#[test]
fn what_if_leaves_no_trace() {
    let desk = Desk::new(NOON);
    let authority = desk.open(compile(CAP));
    for _ in 0..10 {
        assert_eq!(authority.what_if(&Caller::Agent, spawn("git push")), Ok(()));
    }
    for _ in 0..3 {
        assert_eq!(ask(&authority, "git push"), Ok(()));
    }
    let refused = authority.what_if(&Caller::Agent, spawn("git push"));
    insta::assert_snapshot!(refused.unwrap_err(), @"
    shell:spawn denied: policy denied this operation on '/usr/bin/git' [policy: push_cap]: At most 3 pushes an hour.
      rule: push_cap (policy.dw:3)
    ");
    drop(authority);
    let authority = desk.open(compile(CAP));
    assert_eq!(authority.recovered().events, 6);
    let text = String::from_utf8(desk.told.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text.matches("strands.box.policy.verdict").count(), 3);
}

#[test]
fn a_request_that_does_not_fit_its_schema_is_refused_and_not_recorded() {
    let desk = Desk::new(NOON);
    let authority = desk.open(compile(PLAIN));
    let unknown = Action::Tool {
        namespace: "payments".into(),
        tool: "charge".into(),
        arguments: Record::new(),
    };
    let misfits = [
        unknown,
        Action::Tool {
            namespace: "Box".into(),
            tool: "fs:read".into(),
            arguments: Record::from([("path".into(), Value::str("a"))]),
        },
        Action::Tool {
            namespace: "Box".into(),
            tool: "fs:move".into(),
            arguments: Record::from([
                ("path".into(), Value::str("a")),
                ("operation".into(), Value::Int(3)),
            ]),
        },
    ];
    let said: Vec<String> = misfits
        .into_iter()
        .map(|action| {
            authority
                .decide(&Caller::Agent, action)
                .err()
                .unwrap()
                .to_string()
        })
        .collect();
    insta::assert_snapshot!(said.join("\n"), @r#"
    charge denied: policy denied this operation on 'payments/charge' because the request could not be evaluated.
      no action payments::Action::"charge" is declared
    fs:read denied: policy denied this operation on 'Box/fs:read' because the request could not be evaluated.
      the event Box::Action::"fs:read"::request lacks the field `input.operation`
    fs:move denied: policy denied this operation on 'Box/fs:move' because the request could not be evaluated.
      the event Box::Action::"fs:move"::request has a Long in the field `input.operation`, which is declared as Box::FsMoveOperation
    "#);
    // Nothing broke by it.
    assert_eq!(ask(&authority, "ls"), Ok(()));
    // An outcome that does not fit is recorded as unknown, and said.
    let connect = Action::NetConnect {
        host: "example.net".into(),
        port: 443,
        ip: None,
    };
    let read = Action::FsRead {
        path: "a".into(),
        operation: FsRead::ReadContent,
    };
    authority.reload(compile(ALL)).unwrap();
    authority
        .decide(&Caller::Agent, connect)
        .unwrap()
        .complete(Outcome::Status(200));
    authority
        .decide(&Caller::Agent, read)
        .unwrap()
        .complete(Outcome::Status(0));
    drop(authority);
    let told = desk
        .control()
        .replace(&compile(ALL).compiled.fingerprint(), "ALL");
    insta::assert_snapshot!(told, @r#"
    box_started ok storage
    policy_installed ok ALL
    outcome_misfit refused the event Box::Action::"net:connect"::response has a field `output`, which is not declared
    outcome_misfit refused the event Box::Action::"fs:read"::response has a field `output.status`, which is not declared
    box_stopped ok
    "#);
    let authority = desk.open(compile(PLAIN));
    assert_eq!(authority.recovered().events, 6);
}

#[test]
fn a_clock_set_back_frees_no_budget_and_one_gone_mad_denies() {
    let desk = Desk::new(NOON);
    let authority = desk.open(compile(CAP));
    for _ in 0..3 {
        assert_eq!(ask(&authority, "git push"), Ok(()));
    }
    desk.pass(-7200);
    assert!(ask(&authority, "git push").is_err());
    assert_eq!(ask(&authority, "ls"), Ok(()));
    desk.pass(7200 + 3601);
    assert_eq!(ask(&authority, "git push"), Ok(()));
    desk.clock.0.store(i64::MAX, Ordering::SeqCst);
    insta::assert_snapshot!(ask(&authority, "ls").unwrap_err(), @"
    shell:spawn denied: policy denied this operation on '/usr/bin/ls' because the request could not be evaluated.
      the clock cannot be right: it says 9223372036854775807 seconds after 1970
    ");
    desk.clock.0.store(NOON + 7200, Ordering::SeqCst);
    assert!(ask(&authority, "ls").is_err());
    drop(authority);
    assert_eq!(ask(&desk.open(compile(CAP)), "ls"), Ok(()));
    insta::assert_snapshot!(desk.control(), @"
    box_started ok storage
    clock_set_back ok by 7200 seconds
    box_stopped ok 
    box_started ok storage
    box_stopped ok
    ");
}

#[test]
fn many_callers_at_once_do_not_pass_a_cap() {
    let desk = Desk::new(NOON);
    let authority = desk.open_at(
        compile(CAP),
        Pace {
            events: 16,
            bytes: 0,
        },
    );
    let permitted = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for caller in 0..16 {
            let (authority, permitted) = (&authority, &permitted);
            scope.spawn(move || {
                for n in 0..8 {
                    assert_eq!(ask(authority, &format!("ls {caller}.{n}")), Ok(()));
                    if ask(authority, "git push").is_ok() {
                        permitted.lock().unwrap().insert((caller, n));
                    }
                }
            });
        }
    });
    assert_eq!(permitted.lock().unwrap().len(), 3);
    drop(authority);
    let authority = desk.open(compile(CAP));
    assert_eq!(authority.recovered().events, 16 * 8 * 3 + 3);
    assert!(ask(&authority, "git push").is_err());
}

/// Decisions of one history are the same whatever was restarted, rebuilt or reloaded on the way.
#[test]
fn restarts_snapshots_and_reloads_change_no_decision() {
    let mut dice = super::disk::Dice(7);
    for round in 0..12_i64 {
        let (plain, shaken) = (Desk::new(NOON), Desk::new(NOON));
        let undisturbed = plain.open(compile(DAY));
        let mut disturbed = shaken.open_at(
            compile(DAY),
            Pace {
                events: 5,
                bytes: 0,
            },
        );
        for step in 0..40 {
            match dice.roll(8) {
                0 => {
                    drop(disturbed);
                    disturbed = shaken.open_at(
                        compile(DAY),
                        Pace {
                            events: 5,
                            bytes: 0,
                        },
                    );
                }
                1 => {
                    assert_eq!(disturbed.reload(compile(DAY)), Ok(Vec::new()));
                }
                2 => {
                    assert_eq!(disturbed.reload(compile(PLAIN)), Ok(Vec::new()));
                    assert_eq!(disturbed.reload(compile(DAY)), Ok(Vec::new()));
                }
                _ => {}
            }
            let seconds = 600 * i64::try_from(dice.roll(40)).unwrap();
            plain.pass(seconds);
            shaken.pass(seconds);
            let words = ["git push", "npm test", "deploy now", "ls"]
                [usize::try_from(dice.roll(4)).unwrap()];
            assert_eq!(
                ask(&undisturbed, words).map_err(|denial| std::mem::discriminant(&denial.cause)),
                ask(&disturbed, words).map_err(|denial| std::mem::discriminant(&denial.cause)),
                "round {round}, step {step}: {words}"
            );
        }
    }
}
