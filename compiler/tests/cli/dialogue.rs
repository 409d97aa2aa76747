//! `dogwood repl`, with its lines from a pipe and from a terminal.

use super::super::Place;

const POLICY: &str = r#"@id("spawn")
permit (principal, action == Box::Action::"shell:spawn", resource);

@id("gate")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "git" && context.input has arg1 && context.input.arg1 == "push" }
unless temporal {
  formerly within 15m Box::Action::"shell:spawn"::response{ input.program: "npm", output.status: 0 }
};
"#;

#[test]
fn a_dialogue() {
    let place = Place::new();
    place.file("policy.dw", POLICY);
    let typed = "$ git push\n\
                 $ npm test => 0\n\
                 @15m\n\
                 $ git push\n\
                 @1s\n\
                 $ git push\n\
                 action = \"fs:read\", input.path = \"/etc/hosts\"\n\
                 acton = \"fs:read\"\n\
                 $ git 'push\n\
                 @soon\n\
                 :history\n\
                 :undo\n\
                 :undo\n\
                 :rules\n\
                 :nope\n\
                 :save kept.dwtest.toml\n\
                 :save kept.dwtest.toml\n\
                 :reset\n\
                 :history\n\
                 :help\n\
                 # a remark\n\
                 :quit\n\
                 $ never reached\n";
    let answer = place.run_with(&["repl", "policy.dw"], typed);
    insta::assert_snapshot!(answer.out);
    assert_eq!(answer.status, 0);
    let answer = place.run(&["test"]);
    assert_eq!(
        (answer.status, answer.out.lines().last()),
        (0, Some("OK: 1 passed"))
    );
}

#[test]
fn a_policy_with_errors_starts_no_dialogue() {
    let place = Place::new();
    place.file(
        "policy.dw",
        "permit (principal, action == Box::Action::\"x\", resource);",
    );
    let answer = place.run_with(&["repl", "policy.dw"], "$ ls\n");
    assert_eq!(answer.status, 2);
    assert!(!answer.out.contains("dogwood>"), "{}", answer.out);
}

/// Runs a program on a terminal of its own: waits for a text, types, and so on.
const TERMINAL: &str = r#"
import os, pty, sys, select
program, steps = sys.argv[1], sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.execv(program, [program, "repl", "policy.dw"])
seen = b""
for step in steps:
    wanted, typed = step.split("|", 1)
    wanted = wanted.encode()
    while wanted not in seen:
        if not select.select([terminal], [], [], 60)[0]:
            sys.exit("waited in vain for %r, saw %r" % (wanted, seen))
        seen += os.read(terminal, 4096)
    seen = seen.split(wanted, 1)[1]
    os.write(terminal, typed.encode().decode("unicode_escape").encode())
try:
    while os.read(terminal, 4096):
        pass
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

#[test]
fn a_terminal_completes_words_and_keeps_its_history() {
    let place = Place::new();
    place.file("policy.dw", POLICY);
    let typed = |steps: &[&str]| {
        let answer = std::process::Command::new("python3")
            .args(["-c", TERMINAL, env!("CARGO_BIN_EXE_dogwood")])
            .args(steps)
            .current_dir(place.path())
            .env("XDG_STATE_HOME", place.path().join("state"))
            .env("TERM", "xterm")
            .output();
        answer.ok().map(|answer| {
            let err = String::from_utf8_lossy(&answer.stderr).into_owned();
            (answer.status.code(), err)
        })
    };
    let first = typed(&[
        "dogwood> |$ git push\\r",
        "DENY|",
        // The line before, again.
        "dogwood> |\\x1b[A",
        "$ git push|\\r",
        "1: |",
        "dogwood> |:rul\\t",
        ":rules|\\r",
        "gate: Forbids|",
        "dogwood> |acti\\t",
        "action|\\x15:quit\\r",
    ]);
    let Some(first) = first else {
        println!("skipped: no python3 on PATH to open a terminal with");
        return;
    };
    assert_eq!(first, (Some(0), String::new()));
    // What was typed the last time is still there.
    let again = typed(&[
        "dogwood> |\\x1b[A\\x1b[A\\x1b[A",
        "$ git push|\\x15:quit\\r",
    ]);
    assert_eq!(again, Some((Some(0), String::new())));
}
