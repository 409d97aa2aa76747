//! The whole process killed at some moment: what it had answered is found again.

use super::{entries, open, spawn};
use crate::action::Outcome;
use crate::gate::{Caller, Gate};
use crate::history::Entry;
use dogwood_compiler::value::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The other half of the test below: asks for ever, and says what was answered.
#[test]
fn asks_until_killed() {
    let Ok(dir) = std::env::var("AUTHORITY_KILL_TEST_DIR") else {
        return;
    };
    let authority = open(Path::new(&dir), 1).unwrap();
    std::thread::scope(|scope| {
        for caller in 0..4 {
            let authority = &authority;
            scope.spawn(move || {
                for n in 0.. {
                    let words = format!("ls {caller}.{n}");
                    let permit = authority.decide(&Caller::Agent, spawn(&words)).unwrap();
                    println!("\nanswered {words}");
                    permit.complete(Outcome::Status(0));
                }
            });
        }
    });
}

#[test]
fn everything_answered_is_found_again_after_a_kill() {
    for round in 1..6_u64 {
        let dir = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "authority::tests::killed::asks_until_killed",
                "--nocapture",
            ])
            .env("AUTHORITY_KILL_TEST_DIR", dir.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut answered = BTreeSet::new();
        let note = |line: &str, answered: &mut BTreeSet<String>| {
            if let Some(words) = line.strip_prefix("answered ") {
                answered.insert(words.to_owned());
            }
        };
        // Killed at another point of its work every round.
        while answered.len() < usize::try_from(round * 13).unwrap() {
            note(&lines.next().unwrap().unwrap(), &mut answered);
        }
        child.kill().unwrap();
        let rest: Vec<String> = lines.map_while(Result::ok).collect();
        // The last line may have been cut short.
        rest.iter()
            .take(rest.len().saturating_sub(1))
            .for_each(|line| note(line, &mut answered));
        child.wait().unwrap();
        drop(open(dir.path(), 2).unwrap());
        let found = entries(dir.path());
        let of_kind = |kind: &str| -> BTreeSet<String> {
            let command = |entry: &Entry| match entry.input.get("command") {
                Some(Value::String(text)) => text.to_string(),
                _ => String::new(),
            };
            found
                .iter()
                .filter(|entry| entry.kind == kind)
                .map(command)
                .collect()
        };
        let requests = of_kind("request");
        assert!(
            answered.is_subset(&requests),
            "lost: {:?}",
            answered.difference(&requests)
        );
        assert_eq!(requests, of_kind("response"), "every request has an end");
    }
}
