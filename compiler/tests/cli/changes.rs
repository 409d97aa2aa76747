//! `dogwood diff` on edits as people make them: what changed, and the shortest trace that shows it.

use super::super::Place;

const OLD: &str = r#"@id("spawn")
permit (principal, action == Box::Action::"shell:spawn", resource);

@id("calls")
permit (principal, action == Box::Action::"mcp:call", resource);

@id("gate")
forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "git" && context.input has arg1 && context.input.arg1 == "push" }
unless temporal {
  formerly within 1h Box::Action::"shell:spawn"::response{ input.program: "npm", output.status: 0 }
};

@id("cap")
forbid (principal, action == Box::Action::"mcp:call", resource)
when temporal { count_within(1h, Box::Action::"mcp:call"::request{}) > 3 };
"#;

/// What `dogwood diff` says of an edit.
fn edited(edit: impl Fn(String) -> String, more: &[&str]) -> String {
    let place = Place::new();
    place.file("old.dw", OLD);
    let new = edit(OLD.to_owned());
    assert_ne!(new, OLD);
    place.file("new.dw", new);
    let mut args = vec!["diff", "old.dw", "new.dw"];
    args.extend(more);
    let answer = place.run(&args);
    assert_eq!(answer.status, 0, "{}{}", answer.out, answer.err);
    answer.out
}

#[test]
fn a_shorter_window() {
    insta::assert_snapshot!(edited(
        |old| old.replacen("within 1h", "within 30m", 1),
        &[]
    ));
}

#[test]
fn a_lower_cap() {
    insta::assert_snapshot!(edited(|old| old.replace("> 3", ">= 3"), &[]));
}

#[test]
fn a_cap_that_only_sounds_lower() {
    insta::assert_snapshot!(edited(|old| old.replace("> 3", ">= 4"), &[]));
}

#[test]
fn formerly_becomes_since() {
    let edit = |old: String| {
        old.replacen(
            "formerly within 1h",
            "!Box::Action::\"shell:spawn\"::response{ input.program: \"git\", input.arg1: \"add\" } since within 1h",
            1,
        )
    };
    insta::assert_snapshot!(edited(edit, &[]));
}

#[test]
fn a_wider_scope() {
    let edit = |old: String| {
        old.replacen(
            "action == Box::Action::\"mcp:call\"",
            "action in [Box::Action::\"mcp:call\", Box::Action::\"fs:read\"]",
            1,
        )
    };
    insta::assert_snapshot!(edited(edit, &[]));
}

#[test]
fn a_rule_moved_and_another_renamed() {
    let edit = |old: String| {
        let (first, rest) = old.split_once("\n\n").unwrap();
        format!("{rest}\n{first}\n").replace("@id(\"cap\")", "@id(\"call_cap\")")
    };
    insta::assert_snapshot!(edited(edit, &[]));
}

#[test]
fn permit_and_forbid_exchanged() {
    let edit = |old: String| old.replace("@id(\"spawn\")\npermit", "@id(\"spawn\")\nforbid");
    insta::assert_snapshot!(edited(edit, &[]));
}

#[test]
fn a_cap_beyond_every_search() {
    let place = Place::new();
    let cap = |n: i64| {
        format!(
            "@id(\"calls\") permit (principal, action == Box::Action::\"mcp:call\", resource);\n\
             @id(\"cap\") forbid (principal, action == Box::Action::\"mcp:call\", resource)\n\
             when temporal {{ count_within(1h, Box::Action::\"mcp:call\"::request{{ input.server: \"aws\" }}) > {n} }};\n"
        )
    };
    place.file("old.dw", cap(60));
    place.file("new.dw", cap(59));
    insta::assert_snapshot!(place.run(&["diff", "old.dw", "new.dw"]).out);
}

#[test]
fn equal_as_far_as_was_looked() {
    // The same by another way of saying it, which no normal form shows.
    let edit = |old: String| {
        old.replace(
            "input.program: \"npm\", output.status: 0 }",
            "input.program: \"npm\", output.status: 0, input.command: * }",
        )
    };
    insta::assert_snapshot!(edited(edit, &["--events", "3"]));
}

#[test]
fn a_macro_that_stands_for_something_else() {
    let with = |window: &str| {
        format!(
            "def temporal tested() {{ formerly within {window} Box::Action::\"shell:spawn\"::response{{ input.program: \"npm\", output.status: 0 }} }};\n\
             @id(\"push\") permit (principal, action == Box::Action::\"shell:spawn\", resource) when temporal {{ tested() }};\n"
        )
    };
    let place = Place::new();
    place.file("old.dw", with("1h"));
    place.file("new.dw", with("10m"));
    insta::assert_snapshot!(place.run(&["diff", "old.dw", "new.dw"]).out);
}
