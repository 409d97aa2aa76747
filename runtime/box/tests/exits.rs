//! Every way out of a box, from outside: the network, Python and an MCP server, each decided by the one policy.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// A server of the host on loopback, which keeps the heads of the requests it gets.
struct Upstream {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Upstream {
    fn start() -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heads);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &kept);
            }
        });
        Upstream { port, heads }
    }
}

fn answer(mut stream: TcpStream, heads: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut line) = (String::new(), String::new());
    while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
        head.push_str(&line);
        line.clear();
    }
    // A connection is opened before the request on it is decided.
    if head.is_empty() {
        return;
    }
    heads.lock().unwrap().push(head);
    let _ = stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n");
    let _ = reader.into_inner().take(0).read(&mut [0]);
}

struct Scene {
    scratch: tempfile::TempDir,
}

const SERVER: &str = r#"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"pay","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"charge","inputSchema":{"type":"object","properties":{"amount":{"type":"integer"}},"required":["amount"]}}]}' ;;
    *'"tools/call"'*) result='{"content":[{"type":"text","text":"charged"}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

const POLICY: &str = r#"
@id("all")
permit (principal, action, resource);
@id("no_delete")
@description("Nothing is deleted over there.")
forbid (principal, action == Box::Action::"http:request", resource)
when { context.input.method == "DELETE" };
@id("sealed")
@description("The customers were read.")
forbid (principal, action == Box::Action::"http:request", resource)
when temporal {
  formerly within 1h (
    Box::Action::"fs:read"::response{ input.path: "~/project/customers", input.operation: Box::FsReadOperation::"read_content" }
  )
};
@id("no_keys")
forbid (principal, action == Box::Action::"fs:read", resource)
when { context.input.path == "~/project/key" };
"#;

impl Scene {
    fn new(port: u16) -> Scene {
        let scene = Scene {
            scratch: tempfile::tempdir().unwrap(),
        };
        for folder in ["project", "bin", "box"] {
            std::fs::create_dir(scene.path(folder)).unwrap();
        }
        for (file, text) in [
            ("project/customers", "ann\n"),
            ("project/key", "k\n"),
            ("box/policy.dw", POLICY),
            ("bin/pay-mcp", SERVER),
        ] {
            scene.write(file, text);
        }
        std::fs::set_permissions(scene.path("bin/pay-mcp"), PermissionsExt::from_mode(0o755))
            .unwrap();
        let bin = scene.path("bin");
        scene.write(
            "box/box.toml",
            &format!(
                r#"
name = "exits"
policy = "policy.dw"
[agent]
command = ["/bin/sh", "-c"]
workspace = "../project"
[agent.filesystem]
exec = ["/usr/bin/cat", "/usr/bin/grep"]
[tool.curl]
command = ["curl"]
[tool.printenv]
command = ["printenv"]
pass_env = ["CI"]
[egress.up]
destinations = ["api.example.test"]
secret = {{ ref = "env://API_KEY" }}
allow = ["agent"]
[gateway]
allow_private = ["localhost:{port}"]
[mcp.pay]
type = "stdio"
command = ["pay-mcp"]
env = {{ PATH = "{}:/usr/bin:/bin" }}
"#,
                bin.display()
            ),
        );
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn run(&self, words: &[&str]) -> String {
        let home = self.path("");
        let home = home.display().to_string().trim_end_matches('/').to_owned();
        let output = Command::new(env!("CARGO_BIN_EXE_box"))
            .args(words)
            .current_dir(self.path("project"))
            .env_clear()
            .env("HOME", &home)
            .env("PATH", "/usr/bin:/bin")
            .env("API_KEY", "the-real-value")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        // What is said before the workload starts is tested elsewhere.
        let told = String::from_utf8_lossy(&output.stderr);
        let told = told
            .split_once("starting workload\n")
            .map_or(&*told, |(_, told)| told);
        let text =
            format!("{}{told}", String::from_utf8_lossy(&output.stdout)).replace(&home, "HOME");
        let own = |line: &&str| !line.starts_with("box: ") || line.contains(" denied: ");
        // A placeholder is another one each run.
        let lines = text.lines().filter(own).map(|line| {
            let shown = line.strip_prefix("strands_box_");
            shown.map_or(line, |_| "strands_box_PLACEHOLDER")
        });
        let lines: Vec<&str> = lines.collect();
        format!("{}\nexit {:?}", lines.join("\n"), output.status.code())
    }

    fn agent(&self, script: &str) -> String {
        let config = self.path("box/box.toml");
        self.run(&[
            "run",
            "--config",
            &config.display().to_string(),
            "--",
            script,
        ])
    }

    /// Everything the box wrote down.
    fn written(&self) -> String {
        let mut text = String::new();
        let mut folders = vec![self.path(".local")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else if let Ok(bytes) = std::fs::read(entry.path()) {
                    text.push_str(&String::from_utf8_lossy(&bytes));
                }
            }
        }
        text
    }
}

#[test]
fn the_network_ends_at_the_gateway_whoever_asks() {
    let upstream = Upstream::start();
    let scene = Scene::new(upstream.port);
    let url = format!("http://localhost:{}/a/../b", upstream.port);
    // NO_PROXY holds localhost: say otherwise, since this upstream is one that has to be asked for.
    let curl = "curl -sS --noproxy '' -w ' %{http_code}\\n'";
    let report = [
        format!("bash -c \"{curl} {url}\""),
        format!("bash -c \"{curl} -X DELETE {url} | grep -o 'no_delete' | head -1\""),
        format!("bash -c \"curl -s --noproxy '*' {url}\"; echo $?"),
        "bash -c \"curl -sS -o /dev/null -w '%{http_code}\\n' http://169.254.169.254/\"".into(),
        "bash -c 'CI=yes printenv CI; printenv API_KEY; CI=no /usr/bin/printenv CI API_KEY'; echo $?".into(),
        "case $API_KEY in strands_box_*) echo placeholder ${#API_KEY};; esac".into(),
        "read line < \"$SSL_CERT_FILE\"; echo $line".into(),
        // One history: what the shell read seals what curl sends.
        format!("bash -c 'cat customers'; bash -c \"{curl} {url} | grep -o sealed | head -1\""),
    ]
    .map(|script| {
        let script = script.replace(&upstream.port.to_string(), "PORT");
        let ran = scene.agent(&script.replace("PORT", &upstream.port.to_string()));
        format!(
            "$ {script}\n{}",
            ran.replace(&upstream.port.to_string(), "PORT")
        )
    });
    insta::assert_snapshot!("network", report.join("\n\n"));
    assert_eq!(upstream.heads.lock().unwrap().len(), 1);
    assert!(!scene.written().contains("the-real-value"));
    assert!(scene.written().contains("address-floor"));
}

#[test]
fn python_is_a_checkpoint_typed_and_started() {
    let upstream = Upstream::start();
    let scene = Scene::new(upstream.port);
    scene.write(
        "project/script.py",
        "print(open('customers').read().strip())\n",
    );
    let report = [
        "python3 -c 'print(1 + 1)'; python --version",
        "python3 -c \"print(open('key').read())\"; echo $?",
        "bash -c 'python3 script.py && echo done'",
        "bash -c \"python3 -c \\\"print(open('key').read())\\\"\"; echo $?",
        "bash -c 'echo \"print(7)\" | python3 -'",
        "bash -c 'python3 --help | head -1; python3 -m pip'; echo $?",
    ]
    .map(|script| format!("$ {script}\n{}", scene.agent(script)));
    insta::assert_snapshot!("python", report.join("\n\n"));
}

#[test]
fn a_server_is_started_relayed_and_decided() {
    let upstream = Upstream::start();
    let scene = Scene::new(upstream.port);
    let frame = |id: u32, method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
    };
    let hello = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}"#;
    let call = |id, amount: u32| {
        let params = format!(r#"{{"name":"charge","arguments":{{"amount":{amount}}}}}"#);
        frame(id, "tools/call", &params)
    };
    let frames = [
        frame(1, "initialize", hello),
        frame(2, "tools/list", "{}"),
        call(3, 5),
        call(4, 50),
    ];
    // A client waits for each answer, so that every call finds the tools listed.
    let said: String = frames
        .iter()
        .map(|frame| {
            format!(
                "n=$((n+1)); echo '{frame}'; i=0; \
                 while [ $(grep -c . /tmp/out) -lt $n ] && [ $((i=i+1)) -lt 5000 ]; do :; done; "
            )
        })
        .collect();
    let script = format!(": > /tmp/out; n=0; {{ {said} }} | pay-mcp >> /tmp/out; cat /tmp/out");
    let untyped = scene.agent(&script);
    insta::assert_snapshot!("mcp_untyped", untyped);

    let config = scene.path("box/box.toml").display().to_string();
    let output = scene.path("box").display().to_string();
    let generated = scene.run(&[
        "policy",
        "generate-schema",
        "--config",
        &config,
        "--output-dir",
        &output,
    ]);
    insta::assert_snapshot!("mcp_schema", generated);
    scene.write(
        "box/policy.dw",
        &format!(
            "{POLICY}\n@id(\"small\")\n@description(\"At most 20.\")\nforbid (principal, action == pay::Action::\"charge\", resource)\nwhen {{ context.input.amount > 20 }};\n"
        ),
    );
    insta::assert_snapshot!("mcp_typed", scene.agent(&script));

    // Other tools than those of the schema are refused their list.
    scene.write("bin/pay-mcp", &SERVER.replace("\"integer\"", "\"string\""));
    insta::assert_snapshot!("mcp_changed", scene.agent(&script));
    insta::assert_snapshot!(
        "mcp_unknown",
        scene.agent("BOX_BROKER=127.0.0.1:1 pay-mcp; echo $?")
    );
}
