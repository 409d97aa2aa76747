//! The stand-in for `sandbox-exec`: it checks how it was called and becomes the program, unconfined.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// The status of a stand-in that was called wrongly.
const WRONG: i32 = 99;

pub fn stand_in(arguments: &[String]) -> ! {
    let [_, flag, profile, dashes, program, rest @ ..] = arguments else {
        wrong("too few arguments");
    };
    if flag != "-p" || dashes != "--" {
        wrong("the arguments are not -p PROFILE -- PROGRAM");
    }
    if !balanced(profile) {
        wrong("the profile's parentheses do not match");
    }
    // The launcher asks for operations that not every release knows.
    if profile.contains("(deny file-graft)") && program == "/usr/bin/true" {
        std::process::exit(0);
    }
    let mut rules = profile.lines();
    if rules.next() != Some("(version 1)") || rules.next() != Some("(deny default)") {
        wrong("the profile does not begin with its version and a denial of everything");
    }
    let executes = format!("(literal \"{}\")", resolved(program));
    if !profile.contains(&executes) {
        wrong("the profile does not name the program");
    }
    // For the test to look at.
    if let Some(copy) = std::env::var_os("PROFILE_COPY") {
        std::fs::write(copy, profile).unwrap();
    }
    let error = Command::new(program).args(rest).exec();
    wrong(&error.to_string())
}

fn resolved(program: &str) -> String {
    std::fs::canonicalize(program)
        .map(|path| path.display().to_string())
        .unwrap_or_default()
}

fn wrong(why: &str) -> ! {
    eprintln!("sandbox-exec stand-in: {why}");
    std::process::exit(WRONG)
}

/// Parentheses outside strings and comments match.
fn balanced(profile: &str) -> bool {
    let mut depth = 0i32;
    let mut letters = profile.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ';' => while letters.next().is_some_and(|letter| letter != '\n') {},
            '"' => loop {
                match letters.next() {
                    Some('\\') => {
                        letters.next();
                    }
                    Some('"') => break,
                    Some(_) => {}
                    None => return false,
                }
            },
            _ => {}
        }
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}
