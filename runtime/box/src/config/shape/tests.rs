//! What is wrong with a text, drawn as its author sees it.

use super::read;
use dogwood_compiler::diagnostic::{Style, render};

fn refusals(text: &str) -> String {
    let (_, problems) = read(text);
    render(&problems, &[("box.toml", text)], Style::Plain)
}

#[test]
fn a_whole_file() {
    let text = r#"
name = "ledger-bot"
box_dir = "state"
policy = "rules.dw"

[agent]
command = ["./agent.sh", "--fast"]
workspace = "project"
env = { TERM = "xterm" }
filesystem = { read = ["~/tools"], exec = ["/usr/bin/env"] }

[tool.git]
command = ["/usr/bin/git"]
network = { contain_egress = true }
[tool.git.filesystem]
read = ["project"]
"#;
    let (draft, problems) = read(text);
    assert!(problems.is_empty(), "{problems:?}");
    insta::assert_debug_snapshot!("a_whole_file", draft);
}

#[test]
fn unknown_keys_name_the_nearest_one() {
    let text = r#"nmae = "x"
[agent]
comand = ["a"]
filesystem = { reads = [], colour = [] }
"#;
    insta::assert_snapshot!("unknown_keys", refusals(text));
}

#[test]
fn types_and_spellings() {
    let text = r#"name = "a b"
policy = 3
box_dir = ""
[agent]
command = "make check"
workspace = ["x"]
env = { "1X" = "a", LD_PRELOAD = "x", HTTP_PROXY = "y", HOME = "home", BOX_BROKER = "z", OK = 1 }
network = { contain_egress = false }
[agent.filesystem]
read = ["*.rs", "a/../b", "~bob/x", "", "src", "src"]
[tool."bad label"]
command = []
[tool.git]
command = ["git", "${HOME}"]
network = { contain_egress = false, dns = true }
filesystem = { exec = ["/usr/bin/x"], metadata = ["/usr"] }
[tool.empty]
"#;
    insta::assert_snapshot!("types_and_spellings", refusals(text));
}

#[test]
fn what_this_build_does_not_enforce_is_not_ignored() {
    let text = r#"name = "x"
[agent]
command = ["a"]
[egress.llm]
destinations = ["llm.example.net"]
[mcp.tickets]
type = "stdio"
"#;
    insta::assert_snapshot!("not_supported_yet", refusals(text));
}

#[test]
fn a_broken_text_says_where() {
    insta::assert_snapshot!(
        "broken_text",
        refusals("name = \"x\n[agent]\ncommand = [\"a\"\nworkspace = 1 2\n")
    );
}

#[test]
fn nothing_at_all() {
    insta::assert_snapshot!("nothing_at_all", refusals(""));
}
