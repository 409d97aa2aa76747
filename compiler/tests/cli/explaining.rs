//! `dogwood explain` of a trace: what a verdict rests on, what would turn it, and the page that draws it.

use super::super::Place;
use std::process::Command;

const POLICY: &str = r#"@id("spawn")
permit (principal, action == Box::Action::"shell:spawn", resource);

@id("gate")
@description("Run npm test, then push.")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "git" && context.input has arg1 && context.input.arg1 == "push" }
unless temporal {
  !Box::Action::"shell:spawn"::response{ input.program: "git", input.arg1: "add" }
  since within 15m
  Box::Action::"shell:spawn"::response{ input.program: "npm", output.status: 0 }
};

@id("cap")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when temporal {
  (count for (t: Timepoint). where
    formerly within 10m (Box::Action::"shell:spawn"::request{ input.program: "curl" } && tp(t))) > 2
};
"#;

fn spawn(at: i64, command: &str, status: Option<i64>) -> String {
    let words: Vec<&str> = command.split(' ').collect();
    let arg = words
        .get(1)
        .map(|word| format!("arg1: \"{word}\", "))
        .unwrap_or_default();
    let input = format!(
        "input: {{ command: \"{command}\", program: \"{0}\", program_path: \"/usr/bin/{0}\", {arg}arg_count: {1}, cwd: \"~/a\" }}",
        words[0],
        words.len() - 1
    );
    let time = 1_767_603_600 + at;
    match status {
        None => format!(
            "@{time} scope(principal: Box::Agent::\"self\", resource: Box::Resource::\"unused\") \
             request_context({input}) Box::Action::\"shell:spawn\"::request({input})\n"
        ),
        Some(status) => format!(
            "@{time} Box::Action::\"shell:spawn\"::response({input}, output: {{ status: {status} }})\n"
        ),
    }
}

fn place() -> Place {
    let place = Place::new();
    place.file("policy.dw", POLICY);
    let day = [
        spawn(0, "git push", None),
        spawn(60, "npm test", Some(1)),
        spawn(200, "npm test", Some(0)),
        spawn(300, "git push", None),
        spawn(400, "git add", Some(0)),
        spawn(420, "git push", None),
        spawn(500, "curl", None),
        spawn(510, "curl", None),
        spawn(520, "curl <b>&\\\"", None),
    ];
    place.file("day.log", day.concat());
    place
}

#[test]
fn verdicts_and_what_they_rest_on() {
    let place = place();
    let mut out = String::new();
    for at in ["0", "3", "5", "8"] {
        let answer = place.run(&["explain", "policy.dw", "--trace", "day.log", "--at", at]);
        assert_eq!(answer.status, 0, "{}", answer.err);
        out.push_str(&answer.out);
    }
    insta::assert_snapshot!(out);
    let last = place.run(&["explain", "policy.dw", "--trace", "day.log", "--last-deny"]);
    assert!(out.ends_with(&last.out), "{}", last.out);
    let answer = place.run(&[
        "explain",
        "policy.dw",
        "--trace",
        "day.log",
        "--format",
        "json",
    ]);
    insta::assert_json_snapshot!(answer.json());
}

#[test]
fn markdown_and_macros_written_out() {
    let place = place();
    place.file(
        "macro.dw",
        "def temporal passed(?w) { formerly within ?w Box::Action::\"shell:spawn\"::response{ output.status: 0 } };\n\
         @id(\"m\")\npermit (principal, action == Box::Action::\"shell:exec\", resource) when temporal { passed(5m) };\n",
    );
    let answer = place.run(&["explain", "policy.dw", "--format", "markdown"]);
    let verdict = place.run(&[
        "explain",
        "policy.dw",
        "--trace",
        "day.log",
        "--at",
        "3",
        "--format",
        "markdown",
    ]);
    let expanded = place.run(&["explain", "macro.dw", "--expand"]);
    insta::assert_snapshot!(format!(
        "{}\n{}\n{}{}",
        answer.out, verdict.out, expanded.out, expanded.err
    ));
}

#[test]
fn the_page_stands_alone_and_is_read_by_a_browser() {
    let place = place();
    let answer = place.run(&["explain", "policy.dw", "--trace", "day.log", "--html"]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    let page = &answer.out;
    assert_eq!(page.matches("<circle").count(), 9);
    for class in ["allow", "deny", "past"] {
        assert!(
            page.contains(&format!("<circle class=\"{class}\"")),
            "{class}"
        );
    }
    assert!(page.contains("looks back 15m 00s"), "{page}");
    assert!(page.contains("rests on event 2"), "{page}");
    // Nothing of the trace is markup, and nothing is fetched.
    assert!(page.contains("curl &lt;b&gt;&amp;") && !page.contains("curl <b>"));
    assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("<script"));
    let file = place.file("page.html", page);
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let browser = names.iter().find(|name| {
        Command::new(name)
            .arg("--version")
            .output()
            .is_ok_and(|answer| answer.status.success())
    });
    let Some(browser) = browser else {
        println!("skipped: no chromium on PATH, so the page was not opened in a browser");
        return;
    };
    let profile = place.path().join("profile");
    let answer = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    assert!(
        answer.status.success(),
        "{}",
        String::from_utf8_lossy(&answer.stderr)
    );
    let dom = String::from_utf8_lossy(&answer.stdout);
    assert_eq!(dom.matches("<circle").count(), 9, "{dom}");
    assert_eq!(dom.matches("<li id=\"event-").count(), 9, "{dom}");
    assert!(dom.contains("</dl>"), "the page was read to its end");
}

#[test]
fn macros_are_told_by_their_names() {
    let place = Place::new();
    place.file(
        "policy.dw",
        r#"def temporal pushed_after_tests(?who, ?w) {
  !Box::Action::"shell:spawn"::response{ input.program: "git", input.arg1: "add" }
  since within ?w Box::Action::"shell:spawn"::response{ input.program: "npm", output.status: 0, callerPrincipal: ?who }
};
def temporal spent(?w) { count for ($t: Timepoint). where (formerly within ?w (Box::Action::"mcp:call"::request{} && tp($t))) };
def temporal asked_before(?w, ?what) { formerly within ?w ?what{ input.host: context.input.host } };
def cedar main_branch(?name) { ?name == "main" || ?name == "master" };

@id("gate")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "git" && context.input has arg2 && main_branch(context.input.arg2) }
unless temporal { pushed_after_tests(principal, 15m) };

@id("cap")
forbid (principal, action == Box::Action::"mcp:call", resource)
when temporal { spent(1h) > 60 && count_within(10m, Box::Action::"mcp:call"::request{ input.server: "aws" }) >= 3 };

@id("host")
permit (principal, action == Box::Action::"http:request", resource)
unless temporal { asked_before(1d, Box::Action::"http:request"::response{}) };
"#,
    );
    let named = place.run(&["explain", "policy.dw"]).out;
    let expanded = place.run(&["explain", "policy.dw", "--expand"]).out;
    let json = place.run(&["explain", "policy.dw", "--format", "json"]);
    let markdown = place
        .run(&["explain", "policy.dw", "--format", "markdown"])
        .out;
    assert_eq!(json.json()["macros"].as_array().map(Vec::len), Some(4));
    insta::assert_snapshot!(format!("{named}---\n{expanded}---\n{markdown}"));
}

#[test]
fn two_spellings_read_the_same() {
    let place = Place::new();
    place.file(
        "one.dw",
        r#"@id("r") forbid (principal, action in [Box::Action::"net:connect", Box::Action::"http:request"], resource)
unless { !(context.input.host == "a" || "b" == context.input.host) || 1024 <= context.input.port }
when temporal { exists (n: Long). (n == (count for (t: Timepoint). where formerly within 60m (Box::Action::"http:request"::request{} && tp(t))) && !(n < 4)) };
"#,
    );
    place.file(
        "two.dw",
        r#"@id("r") forbid (resource, action in [Box::Action::"http:request", Box::Action::"net:connect"], principal)
when temporal { count_within(1h, Box::Action::"http:request"::request{}) > 3 }
when { if context.input.port < 1024 then ["b", "a"].contains(context.input.host) else false };
"#,
    );
    let of = |name: &str| {
        let answer = place.run(&["explain", name]);
        answer.out.replace(name, "policy.dw")
    };
    assert_eq!(of("one.dw"), of("two.dw"));
    insta::assert_snapshot!(of("one.dw"));
    assert_eq!(
        place.run(&["diff", "one.dw", "two.dw"]).out,
        "written differently, the same in meaning: r\nNo rule changed meaning.\n"
    );
}
