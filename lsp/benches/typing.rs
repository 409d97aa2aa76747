//! How long an editor waits for diagnostics: a policy of 3,000 lines, edited key by key through the protocol.
//!
//! `cargo bench -p dogwood-lsp --bench typing`

use dogwood_lsp::disk::OnDisk;
use dogwood_lsp::server;
use lsp_server::{Connection, Message, Notification, Request};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

const LINES: usize = 3_000;
const URI: &str = "file:///nowhere/typing/policy.dw";

/// Rules of the shapes that policies have, until there are enough lines.
fn policy() -> String {
    let mut text = String::new();
    let mut number = 0;
    while text.lines().count() < LINES {
        let rule = match number % 5 {
            0 => format!(
                "@id(\"files_{number}\")\n@description(\"One folder.\")\npermit (\n  principal,\n  action in [Box::Action::\"fs:read\", Box::Action::\"fs:write\"],\n  resource\n)\nwhen {{\n  context.input.path like \"*/work/{number}\" ||\n  context.input.path like \"*/work/{number}/*\"\n}};\n\n"
            ),
            1 => format!(
                "@id(\"git_{number}\")\npermit (principal, action == Box::Action::\"shell:spawn\", resource)\nwhen {{\n  context.input.program == \"git{number}\" &&\n  context.input has arg1 &&\n  [\"status\", \"log\", \"push\"].contains(context.input.arg1)\n}};\n\n"
            ),
            2 => format!(
                "@id(\"gate_{number}\")\nforbid (principal, action == Box::Action::\"shell:spawn\", resource)\nwhen {{\n  context.input.program == \"git{number}\" &&\n  context.input has arg1 &&\n  context.input.arg1 == \"push\"\n}}\nunless temporal {{\n  !Box::Action::\"shell:spawn\"::response{{ input.program: \"git{number}\", input.arg1: \"add\" }}\n  since within 15m\n  Box::Action::\"shell:spawn\"::response{{ input.program: \"run-tests\", output.status: 0 }}\n}};\n\n"
            ),
            3 => format!(
                "// A cap, with the request being decided.\n@id(\"cap_{number}\")\nforbid (principal, action == Box::Action::\"mcp:call\", resource)\nwhen {{ context.input.method == \"tools/call\" }}\nwhen temporal {{\n  count_within(1h, Box::Action::\"mcp:call\"::request{{ input.method: \"tools/call\", input.server: \"s{number}\" }}) > 60\n}};\n\n"
            ),
            _ => format!(
                "@id(\"seal_{number}\")\nforbid (principal, action == Box::Action::\"http:request\", resource)\nwhen {{ context.input.host == \"h{number}.example.com\" }}\nwhen temporal {{\n  formerly within 24h Box::Action::\"fs:read\"::response{{ input.path: \"~/secret/{number}\" }}\n}};\n\n"
            ),
        };
        text.push_str(&rule);
        number += 1;
    }
    text
}

/// Typed into the middle of the file, then taken away again.
const TYPED: &str = "@id(\"typed\")\nforbid (principal, action == Box::Action::\"http:request\", resource)\nwhen { context.input.method == \"POST\" && context.input.body_bytes > 1000 }\nwhen temporal {\n  exists (h: String). (formerly within 1h Box::Action::\"http:request\"::response{ input.host: h })\n};\n";

struct Editor {
    connection: Connection,
    version: i32,
}

impl Editor {
    fn notify(&self, method: &str, params: Value) {
        let method = method.to_owned();
        let notification = Notification { method, params };
        let sent = self
            .connection
            .sender
            .send(Message::Notification(notification));
        assert!(sent.is_ok(), "the server is gone");
    }

    /// The next diagnostics of this version.
    fn wait(&self) -> Value {
        loop {
            match self.connection.receiver.recv() {
                Ok(Message::Notification(told))
                    if told.method == "textDocument/publishDiagnostics" =>
                {
                    if told.params["version"] == json!(self.version) {
                        return told.params;
                    }
                }
                Ok(_) => {}
                Err(_) => std::process::exit(1),
            }
        }
    }

    fn change(&mut self, from: (usize, usize), to: (usize, usize), text: &str) -> Duration {
        self.version += 1;
        let began = Instant::now();
        self.notify(
            "textDocument/didChange",
            json!({
                "textDocument": { "uri": URI, "version": self.version },
                "contentChanges": [{
                    "range": {
                        "start": { "line": from.0, "character": from.1 },
                        "end": { "line": to.0, "character": to.1 },
                    },
                    "text": text,
                }],
            }),
        );
        self.wait();
        began.elapsed()
    }
}

fn main() {
    let (ours, theirs) = Connection::memory();
    let serving = std::thread::Builder::new()
        .stack_size(16 * 1024 * 1024)
        .spawn(move || server::run(&theirs, Arc::new(OnDisk)));
    let mut editor = Editor {
        connection: ours,
        version: 1,
    };
    let request = Request {
        id: 1.into(),
        method: "initialize".to_owned(),
        params: json!({ "capabilities": {} }),
    };
    assert!(
        editor
            .connection
            .sender
            .send(Message::Request(request))
            .is_ok()
    );
    assert!(editor.connection.receiver.recv().is_ok());
    editor.notify("initialized", json!({}));
    let text = policy();
    let lines = text.lines().count();
    editor.notify(
        "textDocument/didOpen",
        json!({ "textDocument": { "uri": URI, "languageId": "dogwood", "version": 1, "text": text } }),
    );
    let opened = Instant::now();
    let told = editor.wait();
    println!(
        "{lines} lines, {} bytes; opened in {:?} with {} messages",
        text.len(),
        opened.elapsed(),
        told["diagnostics"].as_array().map_or(0, Vec::len)
    );
    // The first line of a rule in the middle.
    let middle = text
        .lines()
        .enumerate()
        .skip(lines / 2)
        .find(|(_, line)| line.starts_with("@id"))
        .map_or(0, |(at, _)| at);
    let mut times = Vec::new();
    let mut at = (middle, 0);
    let mut places = Vec::new();
    for c in TYPED.chars() {
        times.push(editor.change(at, at, &c.to_string()));
        places.push(at);
        at = if c == '\n' {
            (at.0 + 1, 0)
        } else {
            (at.0, at.1 + 1)
        };
    }
    let mut end = at;
    for start in places.into_iter().rev() {
        times.push(editor.change(start, end, ""));
        end = start;
    }
    times.sort();
    let percentile = |p: usize| times.get((times.len() * p / 100).min(times.len() - 1));
    println!(
        "{} keys: p50 {:?}, p90 {:?}, p99 {:?}, slowest {:?}",
        times.len(),
        percentile(50).copied().unwrap_or_default(),
        percentile(90).copied().unwrap_or_default(),
        percentile(99).copied().unwrap_or_default(),
        times.last().copied().unwrap_or_default(),
    );
    drop(editor);
    if let Ok(serving) = serving {
        _ = serving.join();
    }
}
