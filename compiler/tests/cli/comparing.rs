//! `dogwood diff`.

use super::super::{Answer, Place};

const OLD: &str = r#"@id("spawn")
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
"#;

fn diff(old: &str, new: &str, more: &[&str]) -> Answer {
    let place = Place::new();
    place.file("old.dw", old);
    place.file("new.dw", new);
    let mut args = vec!["diff", "old.dw", "new.dw"];
    args.extend(more);
    place.run(&args)
}

#[test]
fn spelling_is_no_difference() {
    let new = OLD
        .replace("within 15m", "within 900s")
        .replace(
            "when { context.input.path",
            "// files\nwhen { !!(context.input[\"path\"]",
        )
        .replace("like \"/repo/*\" }", "like \"/repo/*\") }");
    let answer = diff(OLD, &new, &[]);
    insta::assert_snapshot!(answer.out);
    assert_eq!(answer.status, 0);
    assert_eq!(diff(OLD, OLD, &[]).out, "No rule changed meaning.\n");
}

#[test]
fn a_shorter_window_is_shown_by_a_trace() {
    let answer = diff(OLD, &OLD.replace("within 15m", "within 10m"), &[]);
    insta::assert_snapshot!(answer.out);
    assert_eq!(answer.status, 0);
}

#[test]
fn rules_come_and_go() {
    let new = OLD.replace("@id(\"reads\")\npermit", "@id(\"no_reads\")\nforbid");
    let answer = diff(OLD, &new, &[]);
    insta::assert_snapshot!(answer.out);
}

#[test]
fn a_change_that_no_verdict_shows() {
    // What one rule no longer forbids, another does.
    let both = format!(
        "{OLD}\n@id(\"never\")\nforbid (principal, action == Box::Action::\"shell:spawn\", resource);\n"
    );
    let answer = diff(
        &both,
        &both.replace("within 15m", "within 10m"),
        &["--events", "2"],
    );
    insta::assert_snapshot!(answer.out);
}

#[test]
fn recorded_traces_are_replayed_under_both() {
    let place = Place::new();
    place.file("old.dw", OLD);
    place.file("new.dw", OLD.replace("/repo/*", "/repo/a/*"));
    let read = |at: i64, path: &str| {
        let input = format!(
            "input: {{ path: \"{path}\", operation: Box::FsReadOperation::\"read_content\" }}"
        );
        format!(
            "@{at} scope(principal: Box::Agent::\"self\", resource: Box::Resource::\"unused\") request_context({input}) Box::Action::\"fs:read\"::request({input})\n"
        )
    };
    place.file("traces/one.log", read(1, "/repo/a/x"));
    place.file(
        "traces/two.log",
        read(1, "/repo/a/x") + &read(2, "/repo/b/x"),
    );
    let answer = place.run(&["diff", "old.dw", "new.dw", "--traces", "traces"]);
    insta::assert_snapshot!(answer.out);
    let answer = place.run(&[
        "diff", "old.dw", "new.dw", "--traces", "traces", "--format", "json",
    ]);
    insta::assert_json_snapshot!(answer.json());
}

#[test]
fn a_broken_version_is_shown() {
    let answer = diff(
        OLD,
        "permit (principal, action == Box::Action::\"x\", resource);",
        &[],
    );
    assert_eq!(answer.status, 2);
    assert!(answer.out.contains("unknown-action"), "{}", answer.out);
    let place = Place::new();
    place.file("old.dw", OLD);
    assert_eq!(place.run(&["diff", "old.dw", "none.dw"]).status, 1);
}
