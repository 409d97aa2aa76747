//! Answers that are expected of operations.

use crate::world::{ROLES, World};
use box_sandbox::spec::Role;

pub const NOTHING_THERE: &[&str] = &["ENOENT"];
pub const NO_CHANGE: &[&str] = &["EROFS", "EACCES"];
pub const NO_PERMISSION: &[&str] = &["EPERM"];
pub const NO_ACCESS: &[&str] = &["EACCES"];
pub const UNKNOWN: &[&str] = &["ENOSYS"];
pub const FINE: &[&str] = &["ok"];

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
    assert_eq!(answers.len(), tries.len(), "{answers:#?}");
    let mut wrong = Vec::new();
    for ((operation, expected), answer) in tries.iter().zip(&answers) {
        let word = answer.split(' ').next().unwrap_or_default();
        if !expected.contains(&answer.trim()) && !expected.contains(&word) {
            wrong.push(format!(
                "{operation}: expected one of {expected:?}, got {answer}"
            ));
        }
    }
    assert!(wrong.is_empty(), "as {role:?}: {wrong:#?}");
}
