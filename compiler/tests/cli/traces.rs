//! `dogwood replay` of traces that are long, odd or broken.

use crate::Place;

const CAP: &str = "permit (principal, action, resource);
forbid (principal, action == Box::Action::\"mcp:call\", resource)
when temporal { (count for (t: Timepoint). where (formerly within 1m (Box::Action::\"mcp:call\"::request{} && tp(t)))) > 1 };
";

fn request(time: i64) -> String {
    let input = "input: { server: \"aws\", method: \"tools/call\" }";
    let scope = "scope(principal: Box::Agent::\"self\", resource: Box::Resource::\"unused\")";
    format!(
        "@{time} {scope} request_context({input}) Box::Action::\"mcp:call\"::request({input})\n"
    )
}

fn place(trace: impl AsRef<[u8]>) -> Place {
    let place = Place::new();
    place.file("policy.dw", CAP);
    place.file("day.log", trace);
    place
}

const REPLAY: &[&str] = &["replay", "policy.dw", "--trace", "day.log"];
const REPLAY_JSON: &[&str] = &[
    "replay",
    "policy.dw",
    "--trace",
    "day.log",
    "--format",
    "json",
];

/// Stamps may step back: then it is known before the first decision how far.
#[test]
fn stamps_step_back() {
    let times = [100, 40, 101, 30, 161];
    let trace: String = times.into_iter().map(request).collect();
    let answer = place(&trace).run(REPLAY);
    assert_eq!(answer.status, 0, "{}", answer.err);
    insta::assert_snapshot!(answer.out, @"
    @100 (time point 0): ALLOW  [rules: 0]
    @40 (time point 1): ALLOW  [rules: 0]
    @101 (time point 2): DENY  [rules: 1]
    @30 (time point 3): ALLOW  [rules: 0]
    @161 (time point 4): DENY  [rules: 1]
    ");
}

#[test]
fn a_file_a_pipe_and_json_tell_the_same() {
    let trace: String = (0..300).map(|n| request(n * 25)).collect();
    let place = place(&trace);
    let file = place.run(REPLAY);
    let piped = place.run_with(&["replay", "policy.dw", "--trace", "-"], &trace);
    assert_eq!(file.out.lines().count(), 300);
    assert_eq!(file.out, piped.out);
    let json = place.run(REPLAY_JSON);
    let verdicts = json.json()["verdicts"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let lines: Vec<String> = verdicts
        .iter()
        .map(|verdict| {
            let (word, rules) = match verdict["verdict"].as_str() {
                Some("allow") => ("ALLOW", "0"),
                _ => ("DENY", "1"),
            };
            format!(
                "@{} (time point {}): {word}  [rules: {rules}]",
                verdict["timestamp"], verdict["index"]
            )
        })
        .collect();
    assert_eq!(lines, file.out.lines().collect::<Vec<_>>());
    // The layout is the one of every other answer in JSON.
    assert_eq!(json.out, format!("{:#}\n", json.json()));
    place.file("day.log", "\n \n");
    let empty = place.run(REPLAY_JSON);
    assert_eq!(empty.out, "{\n  \"verdicts\": []\n}\n");
}

/// Nothing is decided where a later line cannot be read.
/// More than what is held in memory waits on disk, and comes out whole and in order.
#[test]
fn a_long_answer_is_whole() {
    let events = 30_000;
    let trace: String = (0..events).map(|n| request(n * 25)).collect();
    let answer = place(&trace).run(REPLAY);
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert!(answer.out.len() > 1 << 20, "{}", answer.out.len());
    let mut lines = answer.out.lines();
    for n in 0..events {
        let told = format!("@{} (time point {n}): ", n * 25);
        let line = lines.next().unwrap_or_default();
        assert!(line.starts_with(&told), "{line} at {n}");
    }
    assert_eq!(lines.next(), None);
}

#[test]
fn a_broken_line_at_the_end_stops_everything() {
    let trace: String = (0..50).map(request).collect();
    let place = place(format!("{trace}@51 nonsense\n"));
    let answer = place.run(REPLAY);
    assert_eq!(answer.status, 2);
    assert_eq!(answer.out, "");
    insta::assert_snapshot!(answer.err, @"
    schema: built-in Box schema
    error[trace]: expected `::`
       ┌─ day.log:51:13
       │
    51 │ @51 nonsense
       │             ^
    ");
}

#[test]
fn a_trace_that_is_not_text() {
    let mut bytes = request(1).into_bytes();
    bytes.extend_from_slice(b"\n@2 \xff\n");
    let answer = place(&bytes).run(REPLAY);
    assert_eq!((answer.status, answer.out.as_str()), (2, ""));
    insta::assert_snapshot!(answer.err, @"
    schema: built-in Box schema
    dogwood: error: day.log:3: this is not UTF-8 text (at byte 224)
    ");
}

#[test]
fn marks_and_line_ends_of_other_systems() {
    let trace = format!(
        "\u{feff}{}",
        [1, 2].map(request).concat().replace('\n', "\r\n")
    );
    let answer = place(trace).run(REPLAY);
    assert_eq!((answer.status, answer.out.lines().count()), (0, 2));
}
