//! Input, output and the end of a run.

#![allow(clippy::unwrap_used)] // a broken fixture should stop the test

#[path = "support/world.rs"]
mod world;

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use world::{Sink, world};

/// An input that stays open until the test lets go of it.
struct Held(Receiver<Vec<u8>>, Vec<u8>);

impl Read for Held {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.1.is_empty() {
            match self.0.recv() {
                Ok(bytes) => self.1 = bytes,
                Err(_) => return Ok(0),
            }
        }
        let n = out.len().min(self.1.len());
        out[..n].copy_from_slice(&self.1[..n]);
        self.1.drain(..n);
        Ok(n)
    }
}

#[test]
fn programs_and_builtins_read_the_runs_input() {
    for (script, expected) in [
        ("count", "6\n"),
        ("cat", "a\nb\nc\n"),
        ("read x; echo \"<$x>\"", "<a>\n"),
        ("while read l; do echo \"[$l]\"; done", "[a]\n[b]\n[c]\n"),
        ("x=$(cat); echo $x", "a b c\n"),
        ("bash hook.sh", "got a b c\n"),
        ("echo x | count", "2\n"),
        ("count < empty", "0\n"),
        ("printf '' | count", "0\n"),
        ("count <<< word", "5\n"),
    ] {
        let world = world()
            .bin("count", "wc -c | tr -d ' '")
            .file("hook.sh", "x=$(cat)\necho got $x\n")
            .file("empty", "")
            .stdin(&b"a\nb\nc\n"[..]);
        assert_eq!(world.run(script).stdout, expected, "{script}");
    }
}

#[test]
fn a_script_that_reads_nothing_does_not_wait_for_its_input() {
    let (_open, held) = channel();
    let world = world()
        .file("f", "x\n")
        .bin("prog", "echo prog")
        .stdin(Held(held, Vec::new()));
    let ran = world.run("echo hi; cat f | head -1; prog </dev/null; grep -c x f");
    assert_eq!((ran.stdout.as_str(), ran.status), ("hi\nx\nprog\n1\n", 0));
}

#[test]
fn a_programs_output_arrives_while_it_runs() {
    let (open, held) = channel();
    // The program ends only after its first line was seen outside.
    let world = world()
        .bin("ask", "echo ready; read answer; echo \"got $answer\"")
        .stdin(Held(held, Vec::new()));
    let stdout = Sink::default();
    let seen = stdout.clone();
    let answer = std::thread::spawn(move || {
        while !seen.text().contains("ready") {
            std::thread::sleep(Duration::from_millis(2));
        }
        open.send(b"yes\n".to_vec()).unwrap();
    });
    let ran = world.run_request(world.request("ask"), stdout);
    answer.join().unwrap();
    assert_eq!(ran.stdout, "ready\ngot yes\n");
}

#[test]
fn a_cancelled_run_ends_its_programs() {
    let world = world().bin("forever", "echo up; exec sleep 1000");
    let stdout = Sink::default();
    let cancel = Arc::new(AtomicBool::new(false));
    let mut request = world.request("forever; echo unreachable");
    request.cancel = Some(Arc::clone(&cancel));
    let seen = stdout.clone();
    let canceller = std::thread::spawn(move || {
        while !seen.text().contains("up") {
            std::thread::sleep(Duration::from_millis(2));
        }
        cancel.store(true, Ordering::Relaxed);
    });
    let ran = world.run_request(request, stdout);
    canceller.join().unwrap();
    assert_eq!((ran.status, ran.stdout.as_str()), (130, "up\n"));
}

#[test]
fn a_reader_that_leaves_ends_its_writer() {
    let world = world().bin("flood", "while :; do echo y; done");
    let ran = world.run("flood | head -2; yes | head -1");
    assert_eq!(ran.stdout, "y\ny\ny\n");
}

#[test]
fn programs_in_a_loop_leave_its_input_alone() {
    let world = world().bin("prog", "echo \"prog $1\"").file("f", "a\nb\n");
    let ran = world.run(
        "cat f | while read l; do prog $l; done; while read l; do prog $l; done < f; prog last",
    );
    assert_eq!(ran.stdout, "prog a\nprog b\nprog a\nprog b\nprog last\n");
}

#[test]
fn bytes_pass_unchanged() {
    let world = world()
        .bin("bytes", "printf 'a\\000\\377b'")
        .bin("count", "wc -c | tr -d ' '");
    let ran = world.run("bytes > out; bytes | count; count < out; cat out | count");
    assert_eq!(ran.stdout, "4\n4\n4\n");
    assert_eq!(std::fs::read(world.ws.join("out")).unwrap(), b"a\0\xffb");
}

#[test]
fn much_output_is_one_question() {
    let world = world().bin("much", "head -c 3000000 /dev/zero");
    let ran = world.run("much > out; cat out >> out2; wc -c < out2");
    assert_eq!(ran.stdout.trim(), "3000000");
    let writes: Vec<_> = ran
        .asked
        .iter()
        .filter(|line| line.starts_with("write_content"))
        .collect();
    assert_eq!(
        writes,
        ["write_content ~/ws/out", "write_content ~/ws/out2"]
    );
}

#[test]
fn arguments_and_directories_reach_the_script() {
    let world = world()
        .bin("here", "pwd; echo \"$0\" | grep -o 'here$'")
        .file("d/x", "");
    let mut request = world.request("echo \"$0 $1 $#\"; cd d; here");
    request.args = vec!["run.sh".into(), "one".into(), "two".into()];
    request.env.insert("GREETING".into(), "hello".into());
    let ran = world.run_request(request, Sink::default());
    assert_eq!(ran.stdout, "run.sh one 2\n~/ws/d\nhere\n");
}

#[test]
fn limits_end_a_run_with_a_reason() {
    let mut big = world();
    big.limits.command_bytes = 10;
    let ran = big.run("echo 0123456789");
    assert_eq!(
        (ran.status, ran.stderr.as_str()),
        (1, "box: input too large\n")
    );

    let mut slow = world().bin("forever", "exec sleep 1000");
    slow.limits.program_wall = Some(Duration::from_millis(50));
    let ran = slow.run("forever; echo $?");
    assert_eq!(ran.stdout, "124\n");

    let mut endless = world();
    endless.limits.run_wall = Some(Duration::from_millis(200));
    assert_eq!(endless.run("while :; do sleep 0.01; done").status, 124);

    let mut small = world().file("f", "0123456789");
    small.limits.host_file = 5;
    let ran = small.run("cat f; echo $?");
    assert_eq!(ran.stdout, "1\n");

    let ran = world().run("f() { f; }; f; echo $?");
    assert_ne!(ran.status, 125, "{}", ran.stderr);

    let ran = world().run("if then");
    assert_eq!(ran.status, 2);
    assert!(ran.stderr.contains("syntax error"), "{}", ran.stderr);
}

#[test]
fn a_mark_cannot_be_forged() {
    let world = world().bin("prog", "echo \"$#\"");
    let ran = world.run("prog $'\\x010000000000000000:1' a");
    assert_eq!(ran.stdout, "2\n");
    let ran = world.run("__box_refused 1; echo $?");
    assert_eq!(ran.stdout, "126\n");
}
