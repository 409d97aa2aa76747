//! Answers that are expected of operations.

use crate::world::{ROLES, World};
use box_sandbox::spec::Role;

pub const NOTHING_THERE: &[&str] = &["ENOENT"];
pub const NO_CHANGE: &[&str] = &["EROFS", "EACCES"];
pub const NO_PERMISSION: &[&str] = &["EPERM"];
pub const NO_ACCESS: &[&str] = &["EACCES"];
pub const UNKNOWN: &[&str] = &["ENOSYS"];
/// Any answer of an operation that succeeded. Other expectations of success are exact.
pub const FINE: &[&str] = &["ok*"];

pub type Try<'a> = (String, &'a [&'a str]);

/// Each operation in one sandbox of each role; each answer begins with one of those expected.
pub fn expect(world: &World, tries: &[Try]) {
    for role in ROLES {
        expect_as(world, role, tries);
    }
}

pub fn expect_as(world: &World, role: Role, tries: &[Try]) {
    let operations: Vec<String> = tries
        .iter()
        .map(|(operation, _)| operation.clone())
        .collect();
    let answers = world.probe(role, &operations);
    check(role, tries, &answers);
}

/// Every answer is one of those expected of its operation.
pub fn check(role: Role, tries: &[Try], answers: &[String]) {
    assert_eq!(answers.len(), tries.len(), "{answers:#?}");
    let mut wrong = Vec::new();
    for ((operation, expected), answer) in tries.iter().zip(answers) {
        let fine = answer.starts_with("ok") && expected.contains(&"ok*");
        if !fine && !expected.contains(&answer.trim()) {
            wrong.push(format!(
                "{operation}: expected one of {expected:?}, got {answer}"
            ));
        }
    }
    assert!(wrong.is_empty(), "as {role:?}: {wrong:#?}");
}
