//! `dogwood repl`, with its lines from a pipe.

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
