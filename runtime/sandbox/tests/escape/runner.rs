//! A small test runner that takes a filter, as the usual one does.

use crate::{files, life, programs, surface};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

pub type Test = (&'static str, fn());

/// An ordinary user without a home, a group, or a capability.
const ORDINARY: u32 = 12345;

pub fn main(arguments: &[String]) -> ! {
    let list = arguments.iter().any(|argument| argument == "--list");
    let filters: Vec<&String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let tests: Vec<Test> = [files::TESTS, surface::TESTS, programs::TESTS, life::TESTS].concat();
    let chosen: Vec<&Test> = tests
        .iter()
        .filter(|(name, _)| {
            filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()))
        })
        .collect();
    if list {
        for (name, _) in chosen {
            println!("{name}: test");
        }
        std::process::exit(0);
    }
    let root = nix::unistd::geteuid().is_root();
    let identity = if root { "root" } else { "an ordinary user" };
    println!("\nrunning {} tests as {identity}", chosen.len());
    let mut failed = 0;
    for (name, test) in &chosen {
        let passed = catch_unwind(AssertUnwindSafe(test)).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed += usize::from(!passed);
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {verdict}. {} passed; {failed} failed",
        chosen.len() - failed
    );
    let ordinary = !root || again_as_ordinary_user(arguments);
    std::process::exit(i32::from(failed > 0 || !ordinary))
}

/// The same tests from a copy that everybody can read.
fn again_as_ordinary_user(arguments: &[String]) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::Builder::new()
        .prefix("escape")
        .tempdir_in("/var/tmp")
        .unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = place.path().join("escape");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
    Command::new(&copy)
        .args(arguments)
        .current_dir("/")
        .uid(ORDINARY)
        .gid(ORDINARY)
        .status()
        .unwrap()
        .success()
}
