//! Drafts against a scratch directory that stands for the operator's home.

use super::{Host, find_program};
use crate::config::{BoxConfig, read};
use dogwood_compiler::diagnostic::{Style, render};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

struct Scene {
    _scratch: tempfile::TempDir,
    home: PathBuf,
    host: Host,
}

impl Scene {
    /// `~/boxes/{box.toml,rules.dw,agent}` and `~/project/src`.
    fn new() -> Scene {
        let scratch = tempfile::tempdir().unwrap();
        let home = scratch.path().canonicalize().unwrap().join("home");
        for folder in ["boxes", "project/src", "bin"] {
            std::fs::create_dir_all(home.join(folder)).unwrap();
        }
        std::fs::write(home.join("boxes/rules.dw"), "").unwrap();
        for program in ["boxes/agent", "bin/git"] {
            std::fs::write(home.join(program), "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(home.join(program), PermissionsExt::from_mode(0o755)).unwrap();
        }
        let host = Host {
            path: format!("relative:{}", home.join("bin").display()),
            state: home.join(".local/state/box"),
            cwd: home.join("project"),
            home: home.clone(),
        };
        Scene {
            _scratch: scratch,
            home,
            host,
        }
    }

    fn file(&self) -> PathBuf {
        self.home.join("boxes/box.toml")
    }

    fn read(&self, text: &str) -> Result<BoxConfig, String> {
        read(&self.file(), text, &self.host)
            .map_err(|problems| self.shown(&render(&problems, &[("box.toml", text)], Style::Plain)))
    }

    fn shown(&self, text: &str) -> String {
        let digits = |text: &str| text.chars().take_while(char::is_ascii_hexdigit).count();
        let text = text.replace(&self.home.display().to_string(), "HOME");
        match text.find("/x-") {
            Some(at) if digits(&text[at + 3..]) == 16 => {
                format!("{}/x-HASH{}", &text[..at], &text[at + 19..])
            }
            _ => text,
        }
    }
}

#[test]
fn relative_means_relative_to_the_file() {
    let scene = Scene::new();
    let config = scene
        .read(
            r#"
name = "x"
policy = "rules.dw"
[agent]
command = ["./agent", "--fast"]
filesystem = { read = ["agent"], list = ["~/project"] }
[tool.git]
command = ["git"]
workspace = "../project"
filesystem = { read = ["~/project/./src"] }
"#,
        )
        .unwrap();
    insta::assert_snapshot!("relative_to_the_file", scene.shown(&format!("{config:#?}")));
}

#[test]
fn what_is_not_there_or_not_exact_is_named() {
    let scene = Scene::new();
    symlink("project", scene.home.join("link")).unwrap();
    symlink("nowhere", scene.home.join("dangling")).unwrap();
    let report = scene
        .read(
            r#"
name = "x"
policy = "rulez.dw"
box_dir = "missing/state"
[agent]
command = ["no-such-agent"]
workspace = "~"
[agent.filesystem]
read = ["gone", "~/link", "~/link/src", "~/dangling"]
[tool.one]
command = ["git", "log"]
[tool.two]
command = ["~/bin/git", "log"]
[tool.three]
command = ["rules.dw"]
workspace = "rules.dw"
"#,
        )
        .unwrap_err();
    insta::assert_snapshot!("not_there", report);
}

#[test]
fn the_box_directory_stands_apart() {
    let scene = Scene::new();
    let agent = "[agent]\ncommand = [\"./agent\"]\n";
    let cases = [
        format!("name = \"x\"\nbox_dir = \"~/project/state\"\n{agent}"),
        format!("name = \"x\"\nbox_dir = \".\"\npolicy = \"rules.dw\"\n{agent}"),
        format!("name = \"x\"\nbox_dir = \"~/a/b\"\n{agent}env = {{ HOME = \"~/project\" }}\n"),
        format!("name = \"x\"\nbox_dir = \"~/bin/state\"\n{agent}env = {{ HOME = \"~/bin\" }}\n"),
    ];
    let report: Vec<String> = cases
        .iter()
        .map(|text| scene.read(text).unwrap_err())
        .collect();
    insta::assert_snapshot!("box_directory", report.join("\n"));
}

#[test]
fn no_process_writes_what_governs_it() {
    let scene = Scene::new();
    let text = r#"
name = "x"
policy = "rules.dw"
box_dir = "~/state"
[agent]
command = ["./agent"]
filesystem = { read = ["~/boxes"], write = ["~/boxes"] }
[tool.git]
command = ["git"]
filesystem = { write = ["~/project"], write_file = ["rules.dw"] }
[tool.log]
command = ["git", "log"]
filesystem = { write = ["~"] }
"#;
    insta::assert_snapshot!("own_files", scene.read(text).unwrap_err());
}

#[test]
fn every_table_meets_the_machine() {
    let scene = Scene::new();
    std::fs::write(
        scene.home.join("boxes/roots.pem"),
        "-----BEGIN CERTIFICATE-----\n",
    )
    .unwrap();
    let config = scene
        .read(
            r#"
name = "x"
[agent]
command = ["./agent"]
[tool.git]
command = ["git"]
pass_env = ["GIT_AUTHOR_NAME"]
[egress.llm]
destinations = ["llm.example.net/v2"]
secret = { ref = "env://LLM_KEY", header = "x-api-key" }
allow = ["agent", "tool.git", "mcp.tickets"]
[gateway]
allow_private = ["db.internal:5432"]
hosts = { "db.internal" = "10.0.0.7:5433", "wiki.example.net" = "10.0.0.8" }
ca_files = ["roots.pem"]
[mcp.tickets]
type = "stdio"
command = ["git", "--readonly"]
[mcp.wiki]
type = "http"
destinations = ["wiki.example.net/mcp"]
[telemetry.disk]
kind = "file"
destination = "~/records.jsonl"
"#,
        )
        .unwrap();
    let text = format!(
        "{:#?}\n{:#?}\n{:#?}\n{:#?}\n{:#?}",
        config.tools, config.egress, config.mcp, config.telemetry, config.gateway
    );
    insta::assert_snapshot!("every_table", scene.shown(&text));
}

#[test]
fn what_the_gateway_would_refuse_is_refused_where_it_stands() {
    let scene = Scene::new();
    std::fs::write(
        scene.home.join("boxes/key.pem"),
        "-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n",
    )
    .unwrap();
    let report = scene
        .read(
            r#"
name = "x"
box_dir = "~/state"
[agent]
command = ["./agent"]
filesystem = { write = ["~/project"] }
[egress.llm]
destinations = ["*", "llm.example.net:0", "LLM.example.net"]
secret = { ref = "hunter2-the-real-thing" }
[egress.other]
destinations = ["https://x.example"]
protocol = "mcp"
secret = { ref = "env://KEY", param = "key", phantom_prefix = "a b" }
allow = ["tool.gti", "agent"]
[egress.bucket]
destinations = ["bucket.example"]
secret = { ref = "aws://work", header = "x" }
[egress.wiki]
destinations = ["wiki.example.net"]
secret = { ref = "env://WIKI" }
[gateway]
allow_private = ["db.internal", "a b:1"]
hosts = { "db.internal" = "here", "*.example" = "10.0.0.7", "10.0.0.7" = "10.0.0.8" }
ca_files = ["key.pem", "rules.dw", "gone.pem"]
[mcp.tickets]
type = "stdio"
command = ["no-such-server"]
[mcp.wiki]
type = "http"
destinations = ["bad host", "wiki.example.net/mcp"]
[mcp.wiki2]
type = "http"
destinations = ["wiki.example.net:8443"]
[telemetry.one]
kind = "file"
destination = "~/project/records.jsonl"
[telemetry.two]
kind = "file"
destination = "~/state/records.jsonl"
[telemetry.three]
kind = "file"
destination = "~/none/records.jsonl"
"#,
        )
        .unwrap_err();
    assert!(!report.contains("hunter2-the-real-thing`"), "{report}");
    insta::assert_snapshot!("network_refusals", report);
}

#[test]
fn two_routes_never_meet() {
    let scene = Scene::new();
    let report = scene
        .read(
            r#"
name = "x"
[agent]
command = ["./agent"]
[egress.one]
destinations = ["api.example.net", "*.cdn.example"]
secret = { ref = "env://ONE" }
[egress.two]
destinations = ["api.example.net/v2", "a.cdn.example:443"]
secret = { ref = "env://TWO" }
"#,
        )
        .unwrap_err();
    insta::assert_snapshot!("overlaps", report);
}

#[test]
fn a_policy_with_two_names_is_refused() {
    let scene = Scene::new();
    std::fs::hard_link(
        scene.home.join("boxes/rules.dw"),
        scene.home.join("project/rules.dw"),
    )
    .unwrap();
    let text = "name = \"x\"\npolicy = \"rules.dw\"\n[agent]\ncommand = [\"./agent\"]\n";
    insta::assert_snapshot!("hard_link", scene.read(text).unwrap_err());
}

#[test]
fn without_an_agent_there_is_nothing_to_run() {
    let mut scene = Scene::new();
    insta::assert_snapshot!("no_agent", scene.read("name = \"x\"\n").unwrap_err());
    scene.host.cwd = scene.home.clone();
    let text = "name = \"x\"\n[agent]\ncommand = [\"./agent\"]\n";
    insta::assert_snapshot!("workspace_is_home", scene.read(text).unwrap_err());
}

#[test]
fn programs_are_looked_up_in_absolute_folders_only() {
    let scene = Scene::new();
    assert_eq!(
        find_program("git", &scene.host.path),
        Some(scene.home.join("bin/git"))
    );
    assert_eq!(find_program("git", "bin:."), None);
    assert_eq!(
        find_program("src", &scene.home.join("project").display().to_string()),
        None
    );
}

#[test]
fn a_box_keeps_its_directory() {
    assert_eq!(
        format!("{:016x}", super::hash(Path::new("/a/box.toml"))),
        "439be8e10bd66bf3"
    );
}
