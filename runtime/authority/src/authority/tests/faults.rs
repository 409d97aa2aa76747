//! Every write and every sync of a run breaks once. Whatever was answered before is found again, in order;
//! no cap is passed; and whoever broke goes on denying.

use super::disk::{Breaks, Dice, Disk};
use super::policies::{CAP, compile};
use super::{Authority, Held, OpenError, Shared, ask, records, spawn};
use crate::action::Outcome;
use crate::authority::writer::Pace;
use crate::denial::DenyCause;
use crate::gate::{Caller, Gate};
use crate::history::{Entry, History};
use dogwood_compiler::value::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Between two requests, in seconds.
const STEP: i64 = 300;

fn open_at(disk: &Disk, clock: &Arc<Held>) -> Result<Authority, OpenError> {
    let mut policy = compile(CAP);
    // Short, so that the run drops events as well.
    policy.keep = 3600;
    Authority::paced(
        disk.clone(),
        policy,
        Arc::<Held>::clone(clock),
        records(Shared::default()),
        Pace {
            events: 4,
            bytes: u64::MAX,
        },
    )
}

/// With a clock that stands still: the authority's own time is that of the last event.
fn open(disk: &Disk) -> Result<Authority, OpenError> {
    open_at(disk, &Arc::new(Held(0.into())))
}

/// A whole run on this disk.
fn run(disk: &Disk) -> Told {
    let clock = Arc::new(Held(0.into()));
    match open_at(disk, &clock) {
        Ok(authority) => ask_all(&authority, &clock),
        Err(_) => Told::default(),
    }
}

/// What was asked, in order, and whether it was permitted; only what was answered by the policy.
#[derive(Default)]
struct Told {
    answered: Vec<(String, bool)>,
    broken: Option<DenyCause>,
}

const ASKED: usize = 20;

fn script(step: usize) -> String {
    match step % 3 {
        0 => format!("ls {step}"),
        1 => "git push".into(),
        _ => format!("make {step}"),
    }
}

/// Asks, and ends what is permitted in one way or another.
fn ask_all(authority: &Authority, clock: &Held) -> Told {
    let mut told = Told::default();
    for step in 0..ASKED {
        clock.0.fetch_add(STEP, Ordering::SeqCst);
        let words = script(step);
        let key = format!("key {step}");
        let answer = match step % 4 {
            3 => authority.decide_once(&Caller::Agent, spawn(&words), &key),
            _ => authority.decide(&Caller::Agent, spawn(&words)),
        };
        match answer {
            Ok(permit) => {
                assert_eq!(told.broken, None, "permitted after a fault");
                told.answered.push((words, true));
                match step % 4 {
                    0 => drop(permit),
                    1 => permit.complete(Outcome::Failed),
                    _ => permit.complete(Outcome::Status(0)),
                }
            }
            Err(denial) if matches!(denial.cause, DenyCause::Fault(_)) => {
                told.broken.get_or_insert(denial.cause);
            }
            Err(_) => {
                assert_eq!(told.broken, None, "decided after a fault");
                told.answered.push((words, false));
            }
        }
    }
    told
}

fn requests(disk: &Disk) -> Vec<String> {
    let history = History::open(disk.clone(), Path::new("disk")).unwrap();
    let mut found = Vec::new();
    let view = history.reader().view().unwrap();
    view.each(0, |_, entry| {
        if let Entry { kind, input, .. } = entry
            && kind == "request"
            && let Some(Value::String(command)) = input.get("command")
        {
            found.push(command.to_string());
        }
        Ok(())
    })
    .unwrap();
    found
}

/// The requests that are still kept are the last of those that were asked, and all that were answered.
fn assert_kept(told: &Told, kept: &[String], at: &str) {
    let asked: Vec<String> = (0..ASKED).map(script).collect();
    let answered = told.answered.len();
    // One more may have been made durable and not answered.
    let upto = (answered..=ASKED).find(|upto| {
        asked
            .get(..*upto)
            .is_some_and(|asked| asked.ends_with(kept))
    });
    assert!(
        upto.is_some_and(|upto| upto <= answered + 1),
        "{at}: asked {asked:?}, answered {answered}, kept {kept:?}"
    );
    // Those of the last hour.
    assert!(kept.len() >= answered.min(12), "{at}: {kept:?}");
}

fn pushes(told: &Told) -> usize {
    let pushed = |(words, permitted): &&(String, bool)| *permitted && words == "git push";
    told.answered.iter().filter(pushed).count()
}

#[test]
fn nothing_answered_is_lost_wherever_the_power_goes() {
    let disk = Disk::default();
    let told = run(&disk);
    assert_eq!((told.answered.len(), pushes(&told)), (ASKED, 3));
    let operations = disk.operations();
    assert!(operations > 100, "{operations}");
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut opened = 0;
    for number in 0..operations {
        let at = format!("operation {number} of {operations}");
        let disk = Disk::default().breaking(Breaks::From(number));
        let told = run(&disk);
        for _ in 0..2 {
            let left = Disk::holding(disk.after_power_loss(&mut dice));
            let again = match open(&left) {
                Ok(again) => again,
                // The file was being made.
                Err(error) => {
                    assert!(told.answered.is_empty(), "{at}: {error}");
                    continue;
                }
            };
            opened += 1;
            drop(again);
            assert_kept(&told, &requests(&left), &at);
            // Still within the hour of every push: together no more than the cap.
            let again = open(&left).unwrap();
            let more = (0..4).filter(|_| ask(&again, "git push").is_ok()).count();
            assert!(
                pushes(&told) + more <= 3,
                "{at}: {} and {more}",
                pushes(&told)
            );
        }
    }
    assert!(opened > operations, "{opened}");
}

#[test]
fn one_failure_denies_until_the_next_run() {
    let disk = Disk::default();
    run(&disk);
    let operations = disk.operations();
    for number in 0..operations {
        let disk = Disk::default().breaking(Breaks::Once(number));
        // Nothing is permitted or decided after the first fault: `ask_all` asserts it.
        let told = run(&disk);
        let disk = disk.breaking(Breaks::Never);
        if told.answered.is_empty() {
            continue;
        }
        assert_kept(&told, &requests(&disk), &format!("operation {number}"));
        let again = open(&disk).unwrap();
        assert_eq!(ask(&again, "ls"), Ok(()));
    }
}

#[test]
fn a_full_disk_denies_and_says_so() {
    let disk = Disk::default();
    let authority = open(&disk).unwrap();
    assert_eq!(ask(&authority, "ls"), Ok(()));
    let disk = disk.clone().breaking(Breaks::Full(0));
    let mut asked = 1;
    let denial = loop {
        match ask(&authority, &"x".repeat(3000)) {
            Ok(()) => asked += 1,
            Err(denial) => break denial,
        }
    };
    insta::assert_snapshot!(denial.to_string().replace(&"x".repeat(3000), "X"), @"
    shell:spawn denied: policy denied this operation on '/usr/bin/X' because the request could not be evaluated.
      the history cannot be written: I/O error: no space left on the disk
    ");
    // Room again: whoever does not know what was written does not go on.
    let disk = disk.breaking(Breaks::Never);
    insta::assert_snapshot!(ask(&authority, "ls").unwrap_err(), @"
    shell:spawn denied: policy denied this operation on '/usr/bin/ls' because the request could not be evaluated.
      the history cannot be written: I/O error: no space left on the disk
    ");
    drop(authority);
    let again = open(&disk).unwrap();
    assert_eq!(ask(&again, "ls"), Ok(()));
    drop(again);
    assert!(requests(&disk).len() > asked);
}

#[test]
fn a_disk_that_lies_is_refused_or_believed_in_order() {
    let mut dice = Dice(42);
    let (mut refused, mut believed) = (0, 0);
    for _ in 0..40 {
        let disk = Disk::default();
        drop(open(&disk).unwrap());
        let disk = disk.breaking(Breaks::Lies);
        run(&disk);
        let left = Disk::holding(disk.after_power_loss(&mut dice));
        match open(&left) {
            Err(OpenError::History(_) | OpenError::Replay { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
            Ok(again) => {
                believed += 1;
                drop(again);
                let kept = requests(&left);
                let asked: Vec<String> = (0..ASKED).map(script).collect();
                assert!(
                    (0..=ASKED).any(|upto| asked[..upto].ends_with(&kept)),
                    "{kept:?}"
                );
            }
        }
    }
    assert_eq!(refused + believed, 40);
}
