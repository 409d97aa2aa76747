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
fn every_table_of_a_full_file() {
    let text = r#"
name = "ledger-bot"
[agent]
command = ["./agent.sh"]
[tool.make]
command = ["make"]
pass_env = ["CI", "VERBOSE"]
[egress.llm]
destinations = ["llm.example.net/v2"]
allow = ["agent", "tool.make"]
secret = { ref = "env://LLM_KEY", header = "x-api-key", phantom_prefix = "llm-" }
[egress.forge]
destinations = ["git.example.net", "*.forge.example:8443"]
protocol = "http"
[egress.forge.secret]
ref = "file:///home/ann/token"
env = "FORGE_TOKEN"
placement = "basic_auth"
inject = "always"
[egress.bucket]
destinations = ["s3.eu-west-1.amazonaws.com"]
secret.ref = "aws://work"
[gateway]
allow_private = ["db.internal:5432"]
hosts = { "db.internal" = "10.0.0.7" }
ca_files = ["roots.pem"]
[mcp.tickets]
type = "stdio"
command = ["tickets-mcp", "--readonly"]
filesystem = { read = ["tickets"] }
[mcp.wiki]
type = "http"
destinations = ["wiki.example.net/mcp"]
[telemetry.disk]
kind = "file"
destination = "~/records.jsonl"
[telemetry.collector]
kind = "otlp"
destination = "https://collect.example.net"
include = ["deny", "permit"]
secret = { ref = "secret://COLLECT", header = "x-key" }
[containment]
private_proc = true
[experimental-features]
tool-grammars = false
"#;
    let (draft, problems) = read(text);
    assert!(problems.is_empty(), "{problems:?}");
    insta::assert_debug_snapshot!("every_table", draft);
}

#[test]
fn tables_about_the_network_the_servers_and_the_records() {
    let text = r#"name = "x"
[agent]
command = ["a"]
pass_env = ["X"]
[tool.git]
command = ["git"]
pass_env = ["PATH", "LD_PRELOAD", "A", "A", "1", "B"]
env = { B = "1" }
[egress.one]
destination = ["a.example"]
secret = { reff = "env://A", placement = "headers", inject = "allways" }
[egress.two]
destinations = "b.example"
secret = "hunter2"
[egress.three]
destinations = ["c.example"]
[egress.four]
destinations = ["d.example"]
secret = { ref = "env://LD_PRELOAD" }
[egress.five]
destinations = ["e.example"]
secret = { ref = "file:///x", env = "HTTP_PROXY" }
[gateway]
allow_privat = ["a:1"]
host = {}
hosts."a.example" = 3
ca_files = "x"
[mcp.one]
command = ["one"]
[mcp.two]
type = "studio"
[mcp.three]
type = "stdio"
command = ["/usr/bin/three"]
destinations = ["x"]
filesystem = { exec = ["/usr/bin/x"] }
[mcp.four]
type = "stdio"
command = ["python3", "server.py"]
[mcp.five]
type = "stdio"
command = ["same"]
[mcp.six]
type = "stdio"
command = ["same", "more"]
[mcp.seven]
type = "http"
command = ["x"]
[telemetry.one]
kind = "fil"
[telemetry.two]
kind = "file"
destination = "records.jsonl"
include = []
secret = { ref = "hunter2", headr = "x" }
[telemetry.three]
kind = "otlp"
destination = "collector:4317"
include = ["deny", "denny", "deny"]
[containment]
private_procs = true
[experimental-features]
tool-grammars = "yes"
"#;
    insta::assert_snapshot!("tables", refusals(text));
}

#[test]
fn what_this_build_does_not_enforce_is_not_ignored() {
    let text = r#"name = "x"
[agent]
command = ["a"]
[tool.git]
command = ["git"]
network = { contain_egress = false }
[mcp.wiki]
type = "http"
destinations = ["wiki.example.net"]
[telemetry.collector]
kind = "otlp"
destination = "https://collect.example.net"
include = ["deny"]
[containment]
private_proc = false
[experimental-features]
tool-grammars = true
"#;
    let (draft, problems) = read(text);
    assert!(problems.is_empty(), "{problems:?}");
    let report = render(&draft.not_yet, &[("box.toml", text)], Style::Plain);
    insta::assert_snapshot!("not_enforced", report);
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

#[test]
fn a_length_of_history_is_a_number_and_a_unit() {
    let kept = |length: &str| {
        let text = format!("name = \"a\"\nkeep_history = {length}\n");
        let (draft, problems) = read(&text);
        let said = render(&problems, &[("box.toml", text.as_str())], Style::Plain);
        draft.keep_history.ok_or(said)
    };
    assert_eq!(kept("\"30d\""), Ok(30 * 86_400));
    assert_eq!(kept("\"90m\""), Ok(5400));
    for wrong in ["\"3 weeks\"", "\"d\"", "\"-1d\"", "\"\"", "\"30\""] {
        let said = kept(wrong).unwrap_err();
        assert!(said.contains("is not a length of time"), "{said}");
    }
    assert!(kept("30").unwrap_err().contains("wants a string"));
}
