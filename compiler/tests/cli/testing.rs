//! `dogwood test`.

use super::super::Place;

const POLICY: &str = r#"@id("shell")
permit (principal, action == Box::Action::"shell:spawn", resource);

@id("gate")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "git" && context.input has arg1 && context.input.arg1 == "push" }
unless temporal {
  formerly within 15m Box::Action::"shell:spawn"::response{ input.program: "npm", output.status: 0 }
};

@id("reads")
permit (principal, action == Box::Action::"fs:read", resource)
when { context.input.path like "/repo/*" };

@id("cap")
forbid (principal, action == Box::Action::"fs:read", resource)
when temporal {
  (count for (t: Timepoint). where
    formerly within 10m (Box::Action::"fs:read"::request{} && tp(t))) > 3
};
"#;

const TESTS: &str = r#"
[[test]]
name = "push waits"
events = [
  { command = "git push", expect = "deny", by = "gate" },
  { at = "+1m", command = "npm test", status = 1 },
  { at = "+1m", command = "git push", expect = "deny", says = "instead of 0" },
  { at = "+1m", command = "npm test", status = 0 },
  { at = "+15m", command = "git push", expect = "allow", by = "shell" },
]

[[test]]
name = "paths"
events = [{ action = "fs:read", input = { path = "${path}" } }]
cases = [
  { path = "/repo/a", expect = "allow" },
  { path = "/etc/passwd", expect = "deny", by = [] },
]

[[test]]
name = "three reads in ten minutes"
events = [
  { action = "fs:read", input.path = "/repo/a", times = 3, every = "1m", expect = "allow" },
  { at = "+1m", action = "fs:read", input.path = "/repo/a", expect = "deny", by = "cap" },
]
"#;

fn place(tests: &str) -> Place {
    let place = Place::new();
    place.file("policy.dw", POLICY);
    place.file("policy.dwtest.toml", tests);
    place
}

#[test]
fn tests_pass_and_are_found() {
    let place = place(TESTS);
    place.file("below/other.dwtest.toml", "policy = \"../policy.dw\"\n[[test]]\nname = \"one\"\nevents = [{ command = \"ls\", expect = \"allow\" }]\n");
    let answer = place.run(&["test"]);
    insta::assert_snapshot!(answer.out);
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    let answer = place.run(&["test", "--filter", "reads"]);
    assert!(answer.out.ends_with("OK: 1 passed\n"), "{}", answer.out);
}

#[test]
fn a_failure_says_why() {
    let place = place(
        r#"
[[test]]
name = "wrong verdict"
events = [
  { command = "npm test", status = 0 },
  { at = "+16m", command = "git push", expect = "allow" },
]

[[test]]
name = "wrong rule"
events = [{ command = "git push", expect = "deny", by = ["cap"] }]

[[test]]
name = "was meant to happen"
events = [
  { action = "fs:read", input.path = "/etc/hosts", output = { result = "completed" } },
  { action = "fs:read", input.path = "/repo/a", expect = "allow" },
]

[[test]]
name = "wrong words"
events = [{ command = "git push", expect = "deny", says = "on Mondays" }]

[[test]]
name = "one too many"
events = [{ action = "fs:read", input.path = "/repo/a", times = 5, every = "2m", expect = "allow" }]
"#,
    );
    let answer = place.run(&["test"]);
    assert_eq!(answer.status, 2);
    insta::assert_snapshot!(answer.out);
}

#[test]
fn mistakes_of_a_test_file_are_shown_with_their_place() {
    let place = place(
        r#"polcy = 1
[defaults]
principle = "x"

[[test]]
name = "typos"
events = [
  { acton = "fs:read" },
  { action = "fs:reed" },
  { action = "fs:read", input = { pth = "x", operation = "read_contnt" } },
  { command = "git 'push" },
  { command = "git push", expect = "maybe" },
  { command = "git push", expect = "deny", by = "gat" },
  { at = "5m", command = "git push", status = "zero" },
  { action = "fs:read", kind = "responce" },
  { action = "fs:read", kind = "response", expect = "deny" },
  { action = "fs:read", principal = 'Box::Resource::"x"', by = "gate" },
  { action = "fs:read", times = 0 },
]

[[test]]
name = "typos"
events = [{ action = "fs:read", input = { path = "${pth}" } }]
cases = [{ path = "a", expect = "deny" }]

[[test]]
event = []
"#,
    );
    let answer = place.run(&["test"]);
    assert_eq!(answer.status, 2);
    insta::assert_snapshot!(answer.out);
}

#[test]
fn files_that_cannot_be_run() {
    let place = Place::new();
    let answer = place.run(&["test"]);
    assert_eq!(answer.status, 2);
    insta::assert_snapshot!(answer.err);
    place.file("a.dwtest.toml", "[[test]\n");
    place.file("b.dwtest.toml", "[[test]]\nname = \"x\"\nevents = []\n");
    place.file(
        "c.dwtest.toml",
        "policy = \"none.dw\"\n[[test]]\nname = \"x\"\nevents = []\n",
    );
    place.file(
        "d.dw",
        "permit (principal, action == Box::Action::\"x\", resource);",
    );
    place.file("d.dwtest.toml", "[[test]]\nname = \"x\"\nevents = []\n");
    place.file("e.dw", "");
    let answer = place.run(&["test"]);
    assert_eq!(answer.status, 2);
    insta::assert_snapshot!(answer.out);
    assert_eq!(place.run(&["test", "nowhere"]).status, 1);
}

#[test]
fn coverage() {
    let place = place(
        r#"
[[test]]
name = "push"
events = [
  { command = "git push", expect = "deny" },
  { command = "npm test", status = 0 },
  { command = "git push", expect = "allow" },
]
"#,
    );
    let answer = place.run(&[
        "test",
        "--coverage",
        "--lcov",
        "out.lcov",
        "--coverage-html",
        "out.html",
    ]);
    insta::assert_snapshot!(answer.out);
    let lcov = std::fs::read_to_string(place.path().join("out.lcov")).unwrap();
    insta::assert_snapshot!(lcov);
    let html = std::fs::read_to_string(place.path().join("out.html")).unwrap();
    assert!(
        html.contains("<mark class=\"gap\" title=\"never false\">context.input has arg1</mark>"),
        "{html}"
    );
    assert!(
        html.contains("<mark class=\"none\" title=\"never reached\">"),
        "{html}"
    );
    assert!(!html.contains("http"), "the page is self-contained");
}

#[test]
fn machines_read_the_outcomes() {
    let place = place(
        r#"
[[test]]
name = "a <b> & \"c\""
events = [{ command = "git push", expect = "allow" }]

[[test]]
name = "fine"
events = [{ command = "ls", expect = "allow" }]
"#,
    );
    let answer = place.run(&["test", "--format", "json", "--junit", "out.xml"]);
    assert_eq!(answer.status, 2);
    insta::assert_json_snapshot!(answer.json());
    let junit = std::fs::read_to_string(place.path().join("out.xml")).unwrap();
    insta::assert_snapshot!(junit);
}

#[test]
fn a_trace_becomes_a_test_that_passes() {
    let place = place("");
    std::fs::remove_file(place.path().join("policy.dwtest.toml")).unwrap();
    let input = r#"input: { command: "git push", program: "git", program_path: "/usr/bin/git", arg1: "push", arg_count: 1, cwd: "~/a" }"#;
    let npm = r#"input: { command: "npm test", program: "npm", program_path: "/usr/bin/npm", arg1: "test", arg_count: 1, cwd: "~/a" }"#;
    let scope = r#"scope(principal: Box::Agent::"self", resource: Box::Resource::"unused")"#;
    let spawn = r#"Box::Action::"shell:spawn""#;
    place.file(
        "day.log",
        format!(
            "@100 {scope} request_context({input}) {spawn}::request({input}, requestId: \"1\")\n\
             @200 {scope} request_context({npm}) {spawn}::request({npm}, requestId: \"2\")\n\
             @203 {spawn}::response({npm}, output: {{ status: 0 }}, requestId: \"2\")\n\
             @300 {scope} request_context({input}) {spawn}::request({input}, requestId: \"3\")\n"
        ),
    );
    let answer = place.run(&["test", "--record", "day.log", "policy.dw"]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    insta::assert_snapshot!(answer.out);
    place.file("day.dwtest.toml", &answer.out);
    let answer = place.run(&["test", "day.dwtest.toml"]);
    assert_eq!(
        (answer.status, answer.out.as_str()),
        (
            0,
            "day.dwtest.toml\n  ok    recorded from day.log\nOK: 1 passed\n"
        )
    );
    place.file(
        "back.log",
        format!("@100 {spawn}::response({npm})\n@99 {spawn}::response({npm})\n"),
    );
    let answer = place.run(&["test", "--record", "back.log", "policy.dw"]);
    assert_eq!(answer.status, 2);
    insta::assert_snapshot!(answer.err);
}

#[test]
fn records_of_a_box_become_a_test() {
    let place = place("");
    std::fs::remove_file(place.path().join("policy.dwtest.toml")).unwrap();
    let export = |time: i64, event: &str, attributes: &str| {
        format!(
            "{{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{{\"timeUnixNano\":\"{time}000000000\",\"eventName\":\"{event}\",\"attributes\":[{attributes}]}}]}}]}}]}}\n"
        )
    };
    let text = |key: &str, value: &str| {
        format!("{{\"key\":\"{key}\",\"value\":{{\"stringValue\":\"{value}\"}}}}")
    };
    let texts = |key: &str, values: &[&str]| {
        let values: Vec<String> = values
            .iter()
            .map(|value| format!("{{\"stringValue\":\"{value}\"}}"))
            .collect();
        format!(
            "{{\"key\":\"{key}\",\"value\":{{\"arrayValue\":{{\"values\":[{}]}}}}}}",
            values.join(",")
        )
    };
    let spawn = |time: i64, words: &[&str], verdict: &str, by: &str| {
        let attributes = [
            text("strands.box.policy.action", "shell:spawn"),
            text("strands.box.policy.verdict", verdict),
            text("strands.box.request.id", &format!("r{time}")),
            texts("strands.box.policy.determining.ids", &[by]),
            text("process.command", words[0]),
            texts("process.command_args", &words[1..]),
            text("process.working_directory", "~/a"),
        ];
        export(time, "strands.box.policy.decision", &attributes.join(","))
    };
    let read = [
        text("strands.box.policy.action", "fs:read"),
        text("strands.box.policy.verdict", "deny"),
        text("file.path", "/etc/hosts"),
    ];
    let ended = [
        text("strands.box.policy.action", "shell:spawn"),
        text("strands.box.outcome.kind", "response"),
        text("strands.box.request.id", "r160"),
        text("strands.box.outcome.status", "0"),
    ];
    let records = [
        export(
            99,
            "strands.box.control",
            &text("strands.box.control.operation", "box_started"),
        ),
        spawn(100, &["git", "push"], "deny", "gate"),
        spawn(160, &["ls", "<redacted>"], "permit", "shell"),
        export(161, "strands.box.policy.outcome", &ended.join(",")),
        export(170, "strands.box.policy.decision", &read.join(",")),
    ];
    place.file("records.jsonl", records.concat());
    let answer = place.run(&["test", "--record", "records.jsonl", "policy.dw"]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    insta::assert_snapshot!(answer.out);
    place.file("day.dwtest.toml", &answer.out);
    let answer = place.run(&["test", "day.dwtest.toml"]);
    assert_eq!(answer.status, 0, "{}", answer.out);
    for (records, said) in [
        ("{}\n", "line 1 is no decision record"),
        ("{\"resourceLogs\":[]}\n", "these records hold no decision"),
        ("{\n", "line 1 is no decision record"),
    ] {
        place.file("bad.jsonl", records);
        let answer = place.run(&["test", "--record", "bad.jsonl", "policy.dw"]);
        assert_eq!(answer.status, 2);
        assert!(answer.err.contains(said), "{}", answer.err);
    }
}

/// The lines of a program that goes on, up to one that begins so.
struct Watched {
    child: std::process::Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Watched {
    fn start(place: &Place) -> Watched {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_dogwood"))
            .args(["test", "--watch"])
            .current_dir(place.path())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let (send, lines) = std::sync::mpsc::channel();
        let out = std::io::BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            use std::io::BufRead;
            out.lines()
                .map_while(Result::ok)
                .all(|line| send.send(line).is_ok())
        });
        Watched { child, lines }
    }

    /// Waits for a run that says so.
    fn until(&self, wanted: &str) {
        let mut out = String::new();
        while !out.contains(wanted) {
            let wait = std::time::Duration::from_secs(60);
            let line = self.lines.recv_timeout(wait);
            assert!(line.is_ok(), "waited in vain for {wanted:?}, saw\n{out}");
            out.push_str(&format!("{}\n", line.unwrap_or_default()));
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[test]
fn watching_sees_files_change_come_go_and_move() {
    let place = Place::new();
    let test = "[[test]]\nname = \"runs\"\nevents = [{ command = \"ls\", expect = \"allow\" }]\n";
    place.file("a.dwtest.toml", test);
    let path = |name: &str| place.path().join(name);
    // At once, as editors do it.
    let write = |name: &str, content: &str| {
        let new = place.file("new.tmp", content);
        std::fs::rename(new, path(name)).unwrap();
    };
    let watched = Watched::start(&place);
    watched.until("FAILED: 0 passed, 1 file could not be run");
    write("a.dw", POLICY);
    watched.until("OK: 1 passed");
    write("a.dw", &POLICY.replace("permit", "forbid"));
    watched.until("FAILED: 0 passed, 1 failed");
    write("a.dw", POLICY);
    watched.until("OK: 1 passed");
    write("b.dwtest.toml", &format!("policy = \"a.dw\"\n{test}"));
    watched.until("b.dwtest.toml\n  ok    runs\nOK: 2 passed");
    std::fs::rename(path("b.dwtest.toml"), path("c.dwtest.toml")).unwrap();
    watched.until("c.dwtest.toml\n  ok    runs\nOK: 2 passed");
    std::fs::remove_file(path("c.dwtest.toml")).unwrap();
    watched.until("a.dwtest.toml\n  ok    runs\nOK: 1 passed");
    write("own.dwschema", "no schema");
    write(
        "a.dwtest.toml",
        &format!("event-schema = \"own.dwschema\"\n{test}"),
    );
    watched.until("FAILED: 0 passed, 1 file could not be run");
    write(
        "own.dwschema",
        include_str!("../../../stdlib-policies/box/events.dwschema"),
    );
    watched.until("OK: 1 passed");
}

/// Every example has its tests, and they pass.
#[test]
fn the_examples_keep_their_promises() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples");
    let mut tried = 0;
    for entry in std::fs::read_dir(&examples).unwrap() {
        let folder = entry.unwrap().path();
        if !folder.join("policy.dw").is_file() {
            continue;
        }
        tried += 1;
        let answer = Place::new().run(&["test", folder.to_str().unwrap()]);
        assert_eq!(
            answer.status,
            0,
            "{}\n{}{}",
            folder.display(),
            answer.out,
            answer.err
        );
    }
    assert!(tried >= 7, "{tried}");
}
