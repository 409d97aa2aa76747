//! What is asked, in which order, for every way a script can run a command or touch a file.

#![allow(clippy::unwrap_used)] // a broken fixture should stop the test

#[path = "support/world.rs"]
mod world;

use world::{World, world};

/// Files and programs that the scripts use.
fn furnished() -> World {
    world()
        .file("f", "one\ntwo\n")
        .file("d/x", "x\n")
        .file("d/y", "y\n")
        .program("s.sh", "#!/bin/sh\necho \"script $1\"\n")
        .program("tool", "#!/bin/cat\n")
        .bin("prog", "echo \"prog $*\"")
        .bin("fails", "exit 3")
        .bin("count", "wc -c | tr -d ' '")
        .bin("show", "echo \"$FOO\"")
}

/// Each script in a world of its own, as one text.
fn reports(scripts: &[&str]) -> String {
    scripts
        .iter()
        .map(|script| format!("$ {script}\n{}\n\n", furnished().run(script).report()))
        .collect()
}

fn refused(parts: &'static [&'static str], scripts: &[&str]) -> String {
    scripts
        .iter()
        .map(|script| {
            format!(
                "$ {script}\n{}\n\n",
                furnished().deny(parts).run(script).report()
            )
        })
        .collect()
}

#[test]
fn plain_commands() {
    insta::assert_snapshot!(reports(&[
        "echo hi there",
        "prog a 'b c' $((1+1))",
        "nosuch; echo $?",
        "x=$(echo one two); prog $x",
        "A=1",
        "fails; echo $?",
        "prog --uncovered; echo $?",
    ]));
}

#[test]
fn every_route_to_a_command() {
    insta::assert_snapshot!(reports(&[
        "echo a | cat | prog last",
        "echo $(prog in) `prog tick`",
        "eval 'prog one; echo two'",
        "source s.sh; . ./s.sh",
        "sh s.sh q; bash -c 'prog $0 $1' zero one",
        "bash -c \"bash -c 'prog deep'\"",
        "trap 'prog bye' EXIT; echo hi",
        "find d -type f -exec prog {} \\;",
        "printf 'a\\nb\\n' | xargs -n1 prog",
        "env FOO=1 show; FOO=2 show; export FOO=3; show",
        "timeout 5 prog slow",
        "(cd d; prog sub); prog top",
        "prog bg & wait",
        "command prog a; command echo b; builtin echo c; exec prog d",
        "if prog cond; then for i in 1 2; do prog $i; done; fi",
        "case x in x) prog c;; esac; while fails; do :; done; [[ -n x ]] && prog yes",
        "cat <(prog sub)",
        "prog <<< text; prog <<E\nbody\nE",
        "X=prog; $X via var; alias p=prog",
        "./s.sh a; ./tool; ~/bin/prog direct",
        "nohup prog n; { time prog t; } 2>/dev/null",
        "coproc prog co; wait",
    ]));
}

#[test]
fn functions_are_the_shells_own_and_shadow_programs() {
    insta::assert_snapshot!(reports(&[
        "prog() { echo fake; }; prog all",
        "f() { g in; }; g() { echo \"g $1\"; }; f",
        "function h { prog $1; }; h x; h y",
        "eval 'k() { echo k; }'; k",
        "f() { return 4; }; f; echo $?",
        "f() { > made; }; f",
    ]));
}

#[test]
fn a_refused_command_ends_with_126_and_says_why() {
    insta::assert_snapshot!(refused(
        &[
            "exec ~/ws: rm",
            "prog",
            "eval",
            "exec ~/ws: bash",
            "source",
            "command",
            "./s.sh"
        ],
        &[
            "rm f; echo $?; cat f",
            "prog a; echo $?",
            "eval 'echo hi'; echo $?",
            "bash -c 'echo hi'; echo $?",
            "source s.sh; echo $?",
            "command echo hi; echo $?",
            "./s.sh; echo $?",
            "./tool; ~/bin/prog; echo $?",
            "set -e; prog; echo unreachable",
            "prog 2>/dev/null; echo $?",
            "prog 2> err; cat err",
            "x=$(rm f 2>&1); echo $?; echo \"$x\" | head -1",
            "echo f | xargs rm; echo $?",
            "find d -name x -exec rm {} \\;",
            "(rm f); echo $?",
            "if rm f; then echo yes; else echo no $?; fi",
            "trap 'rm f' EXIT; echo hi",
        ],
    ));
}

#[test]
fn a_refused_stage_leaves_the_others() {
    insta::assert_snapshot!(refused(
        &["prog", "exec ~/ws: rm", "exec ~/ws: sort"],
        &[
            "set -o pipefail; prog | cat; echo $?",
            "set -o pipefail; rm f | cat; echo $? ${PIPESTATUS[0]}",
            "cat f | sort; echo $?",
            "cat f | prog; echo $?",
            "prog & wait $!; echo $?",
        ],
    ));
}

#[test]
fn nothing_happens_inside_a_refused_function() {
    insta::assert_snapshot!(refused(
        &["exec ~/ws: f"],
        &[
            "f() { echo in; prog x; rm f; }; f; echo $?",
            "f() { > made; }; f; ls made",
            "f() { eval 'echo in'; }; f; echo $?",
            "f() { export A=1; }; f; echo $? $A",
        ],
    ));
}

#[test]
fn builtins_that_only_the_interpreter_knows_are_refused_too() {
    insta::assert_snapshot!(refused(
        &["export", "declare", "unset", "let", "exec ~/ws: set"],
        &[
            "export A=1; echo $? $A",
            "declare B=2; echo $? $B",
            "C=1; unset C; echo $? $C",
            "let D=1; echo $D",
            "set; echo $?"
        ],
    ));
}

#[test]
fn files_are_asked_for_by_effect() {
    insta::assert_snapshot!(reports(&[
        "cat f; head -1 f; grep -c o f d/x",
        "echo a > new; echo b >> new; : > new",
        "cat < f; prog < f; echo $(<f)",
        "prog > out 2>&1; prog >> out; cat out",
        "{ echo a; prog b; } > out",
        "cat f > copy; cat f >> copy",
        "cp f g; mv g h; mv h d/x",
        "rm f; rm -r d",
        "mkdir m; mkdir -p a/b/c; rmdir m",
        "touch n; touch f; chmod 600 f",
        "ln -s f link; cat link; readlink link; rm link",
        "cd d && pwd; cd ..; cd nowhere; echo $?",
        "ls; ls -l f d | wc -l",
        "test -e f; [ -x tool ]; [[ -d d ]] && echo dir",
        "echo *; echo d/*; echo no/*",
        "sed -i s/one/1/ f; cat f",
        "cat nowhere; echo $?; cat no/where; echo $?",
        "tee a b <<< hi; sort -o f f",
        "find . -name x; find d -size +0 -type f",
        "cp -r d e; mv d e",
        "exec > log; echo a; prog b",
    ]));
}

#[test]
fn what_is_outside_lives_in_memory_for_one_run() {
    insta::assert_snapshot!(reports(&[
        "echo hi > /tmp/x; cat /tmp/x; mv /tmp/x y; cat y",
        "cat /etc/passwd; echo $?; ls /etc",
        "cat /dev/null; head -c 3 /dev/urandom | wc -c",
        "echo 'echo mem $1' > /tmp/y.sh; chmod +x /tmp/y.sh; /tmp/y.sh k",
        "mkdir -p /opt/a; cp f /opt/a; ls /opt/a; rm -r /opt",
    ]));
    assert!(!std::path::Path::new("/opt/a/f").exists());
}

#[test]
fn a_refused_effect_is_the_utilitys_own_failure() {
    insta::assert_snapshot!(refused(
        &[
            "read_content ~/ws/f",
            "write_content ~/ws/out",
            "remove_file ~/ws/d/x",
            "rename ~/ws/d/y",
            "read_metadata ~/ws/s.sh",
            "change_dir"
        ],
        &[
            "cat f; echo $?",
            "cat < f; echo $?",
            "grep -r x . ; echo $?",
            "echo hi > out; echo $?",
            "prog > out; echo $?",
            "prog | tee out; echo $?",
            "rm -r d; echo $?; find d",
            "mv f d/y; echo $?; cp f g; echo $?",
            "ls -l s.sh; test -e s.sh; echo $?; [[ -e s.sh ]]; echo $?",
            "cd d; echo $?; pwd",
            "source f; bash f; echo $?",
            "for i in 1 2; do echo $i; [[ -e s.sh ]] && echo seen; done | cat",
            "eval '[[ -e s.sh ]] && echo seen'; echo s.sh | while read n; do [[ -e $n ]] && echo seen; done",
        ],
    ));
}

#[test]
fn links_are_resolved_before_the_question() {
    let world = furnished();
    std::os::unix::fs::symlink("/etc", world.ws.join("etc")).unwrap();
    std::os::unix::fs::symlink("d", world.ws.join("dir")).unwrap();
    std::os::unix::fs::symlink(world.home.join("bin/prog"), world.ws.join("linked")).unwrap();
    let ran = world.run(
        "cat dir/x; cat etc/passwd; echo hi > dir/new; cd dir && pwd; cd ..; ./linked; ls dir; rm dir; cat d/x
         ln -s ../../.. up; ln -s /etc/passwd pw; echo $?",
    );
    insta::assert_snapshot!(ran.report());
}

#[test]
fn nothing_opens_what_the_box_was_loaded_from() {
    let mut world = furnished()
        .file("box.toml", "secret = 1\n")
        .file("state/run/box.sock", "");
    world.protected = vec![world.ws.join("box.toml"), world.ws.join("state")];
    std::fs::hard_link(world.ws.join("box.toml"), world.ws.join("alias")).unwrap();
    std::os::unix::fs::symlink("box.toml", world.ws.join("link")).unwrap();
    let ran = world.run(
        "cat box.toml; cat alias; cat link; echo x > box.toml; rm -r state; ls state; mv state s2; rm box.toml
         cp f box.toml; chmod 777 box.toml; mv f box.toml; mv ~/ws ~/other; rm -rf ~/ws/state; sed -i s/1/2/ box.toml",
    );
    insta::assert_snapshot!(ran.report());
    assert_eq!(
        std::fs::read_to_string(world.ws.join("box.toml")).unwrap(),
        "secret = 1\n"
    );
    assert!(world.ws.join("state/run/box.sock").exists());
}

#[test]
fn outcomes_come_back() {
    let ran = furnished().run(
        "prog a > out; fails; cat f nowhere; f() { return 3; }; f; command cat f; prog --uncovered",
    );
    insta::assert_snapshot!(ran.outcomes.join("\n"));
}
