//! Decisions that are on disk before they are told: our authority against the peer's durable engine. What the
//! store itself costs, and many callers, are in the bench `durable`.
//!
//! One event a decision on either side: permits of ours are held until the clock has stopped.

use crate::measure::agree;
use crate::peer;
use crate::shown;
use crate::workload::random;
use box_authority::Authority;
use box_authority::action::{Action, Command, Spawn};
use box_authority::clock::Clock;
use box_authority::engine::PolicySet;
use box_authority::gate::{Caller, Gate};
use box_authority::records::{Records, RunIdentity};
use dogwood_compiler::compile::{self, Options, Source};
use dogwood_compiler::event::{Event, RequestPart};
use dogwood_compiler::schema::{BOX_ACTIONS, BOX_EVENTS, box_service};
use dogwood_compiler::value::{EntityUid, Record, Value};
use dogwood_local_engine::{DurableTemporalEngine, Outcome};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

const DECISIONS: usize = 2000;

const POLICY: &str = r#"permit (principal, action == Box::Action::"shell:spawn", resource);
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "git" && context.input has arg1 && context.input.arg1 == "push" }
unless temporal {
  !Box::Action::"shell:spawn"::request{ input.program: "git", input.arg1: "add" }
  since within 24h
  Box::Action::"shell:spawn"::request{ input.program: "npm", input.arg1: "test" }
};
"#;

struct Ticks(AtomicI64);

impl Clock for Ticks {
    fn now(&self) -> i64 {
        1_000_000 + self.0.fetch_add(1, Ordering::Relaxed) / 1000
    }
}

fn words(n: usize) -> [&'static str; 2] {
    match random(n, 24) % 8 {
        0..4 => ["git", "push"],
        4 | 5 => ["git", "add"],
        _ => ["npm", "test"],
    }
}

fn or_panic<T, E: std::fmt::Display>(result: Result<T, E>, what: &str) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{what}: {error}"),
    }
}

fn authority(dir: &Path) -> Authority {
    let source = Source {
        name: "policy.dw".into(),
        text: POLICY.into(),
    };
    let service = box_service();
    let sources = [source];
    let checked = match compile::check(&sources, None, &service, &Options::default()) {
        Ok(checked) => checked,
        Err(found) => panic!("{found:?}"),
    };
    let run = RunIdentity {
        box_id: "box-0000000000000000".into(),
        run_id: 1,
    };
    let opened = Authority::open(
        dir,
        PolicySet::new(&checked, &sources, &service),
        Arc::new(Ticks(AtomicI64::new(0))),
        Records::new(Box::new(std::io::sink()), run),
    );
    or_panic(opened, "the authority")
}

fn action(n: usize) -> Action {
    let words = words(n);
    Action::ShellSpawn(Spawn {
        command: Command {
            words: words.map(Into::into).to_vec(),
            program: words[0].into(),
            cwd: "~/project".into(),
        },
        program_path: "/usr/bin/program".into(),
        credential_reads: Vec::new(),
    })
}

/// The request of the same action, as the peer is told of it.
fn request(n: usize) -> Event {
    let [program, first] = words(n);
    let input = Value::Object(Record::from([
        ("command".into(), Value::str(format!("{program} {first}"))),
        ("program".into(), Value::str(program)),
        ("program_path".into(), Value::str("/usr/bin/program")),
        ("arg1".into(), Value::str(first)),
        ("arg_count".into(), Value::Int(1)),
        ("cwd".into(), Value::str("~/project")),
    ]));
    let principal = EntityUid::new("Box::Agent", "self");
    let resource = EntityUid::new("Box::Resource", "shell");
    Event {
        time: 0,
        action: EntityUid::new("Box::Action", "shell:spawn"),
        kind: "request".into(),
        logged: Record::from([
            ("input".into(), input.clone()),
            ("callerPrincipal".into(), principal.clone().into()),
            ("callerResource".into(), resource.clone().into()),
            ("requestId".into(), Value::str(n.to_string())),
        ]),
        request: Some(RequestPart {
            principal: Some(principal),
            resource: Some(resource),
            context: Record::from([("input".into(), input)]),
            entities: Vec::new(),
        }),
    }
}

struct Timed {
    took: Vec<Duration>,
    verdicts: Vec<bool>,
}

impl Timed {
    fn new(mut one: impl FnMut(usize) -> bool) -> Timed {
        let mut timed = Timed {
            took: Vec::with_capacity(DECISIONS),
            verdicts: Vec::with_capacity(DECISIONS),
        };
        for n in 0..DECISIONS {
            let start = Instant::now();
            let verdict = one(n);
            timed.took.push(start.elapsed());
            timed.verdicts.push(verdict);
        }
        timed.took.sort();
        timed
    }

    fn at(&self, part: usize) -> Duration {
        let found = self.took.get(self.took.len() * part / 100);
        found.copied().unwrap_or_default()
    }
}

fn one_caller(dir: &Path) -> Timed {
    let authority = authority(dir);
    let mut held = Vec::new();
    Timed::new(|n| match authority.decide(&Caller::Agent, action(n)) {
        Ok(permit) => {
            held.push(permit);
            true
        }
        Err(_) => false,
    })
}

fn peer(dir: &Path) -> Timed {
    let file = dir.join("peer.redb");
    let mut engine = or_panic(DurableTemporalEngine::open(file, 1000), "the peer");
    let installed = engine.install(POLICY, BOX_ACTIONS, Some(BOX_EVENTS), None);
    or_panic(installed, "the peer's rules");
    Timed::new(|n| {
        let submitted = or_panic(engine.submit(peer::builder(&request(n))), "the peer");
        matches!(submitted.outcome, Outcome::Decision(verdict) if verdict.allowed())
    })
}

fn in_new_folder<T>(run: impl FnOnce(&Path) -> T) -> T {
    let folder = or_panic(tempfile::tempdir(), "a folder to work in");
    run(folder.path())
}

pub fn run() {
    let ours = in_new_folder(one_caller);
    let theirs = in_new_folder(peer);
    let name = "durable, one event a decision";
    agree(name, &ours.verdicts, &theirs.verdicts, true);
    let ratio = theirs.at(50).as_secs_f64() / ours.at(50).as_secs_f64();
    println!(
        "| {name} | {DECISIONS} | {} | {} | | | {} | {} | | {ratio:.1}× | |",
        shown(ours.at(50)),
        shown(ours.at(99)),
        shown(theirs.at(50)),
        shown(theirs.at(99)),
    );
}
