//! The life of a connection, and every request once, through the protocol in memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use dogwood_compiler::project::Files;
use dogwood_lsp::server;
use dogwood_lsp::shelf::Disk;
use lsp_server::{Connection, Message, Notification, Request, Response};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

struct InMemory(BTreeMap<PathBuf, String>);

impl Files for InMemory {
    fn is_file(&self, path: &Path) -> bool {
        self.0.contains_key(path)
    }

    fn list(&self, folder: &Path) -> Vec<PathBuf> {
        let inside = self.0.keys().filter(|path| path.parent() == Some(folder));
        inside.cloned().collect()
    }
}

impl Disk for InMemory {
    fn read(&self, path: &Path) -> Option<String> {
        self.0.get(path).cloned()
    }

    fn folders(&self, _: &Path) -> Vec<PathBuf> {
        Vec::new()
    }
}

const POLICY: &str = "@id(\"files\")\npermit (principal, action == Box::Action::\"fs:read\", resource)\nwhen { context.input.path like \"/é/*\" };\n";
const TESTS: &str = "[[test]]\nname = \"reads\"\nevents = [{ action = \"fs:read\", input = { path = \"/é/a\" }, expect = \"allow\", by = \"files\" }]\n";
const URI: &str = "file:///w/policy.dw";

struct Editor {
    connection: Connection,
    serving: Option<JoinHandle<()>>,
    next: i32,
    /// What the server told meanwhile.
    told: Vec<Notification>,
    asked: Vec<Request>,
}

impl Editor {
    fn start(capabilities: Value, files: &[(&str, &str)]) -> (Editor, Value) {
        let folders = json!([{ "uri": "file:///w", "name": "w" }]);
        Editor::start_in(folders, capabilities, files)
    }

    fn start_in(folders: Value, capabilities: Value, files: &[(&str, &str)]) -> (Editor, Value) {
        let (ours, theirs) = Connection::memory();
        let files = files
            .iter()
            .map(|(path, text)| (PathBuf::from(path), (*text).to_owned()));
        let disk = Arc::new(InMemory(files.collect()));
        let serving = std::thread::spawn(move || {
            server::run(&theirs, disk).unwrap();
        });
        let mut editor = Editor {
            connection: ours,
            serving: Some(serving),
            next: 0,
            told: Vec::new(),
            asked: Vec::new(),
        };
        let params = json!({
            "processId": null,
            "rootUri": null,
            "capabilities": capabilities,
            "workspaceFolders": folders,
        });
        let result = editor.request("initialize", params).unwrap();
        editor.notify("initialized", json!({}));
        (editor, result)
    }

    fn open(capabilities: Value) -> Editor {
        let (mut editor, _) = Editor::start(
            capabilities,
            &[("/w/policy.dw", POLICY), ("/w/policy.dwtest.toml", TESTS)],
        );
        editor.opened(URI, POLICY);
        editor
    }

    fn opened(&mut self, uri: &str, text: &str) {
        self.notify(
            "textDocument/didOpen",
            json!({ "textDocument": { "uri": uri, "languageId": "dogwood", "version": 1, "text": text } }),
        );
    }

    fn notify(&self, method: &str, params: Value) {
        let method = method.to_owned();
        let message = Message::Notification(Notification { method, params });
        self.connection.sender.send(message).unwrap();
    }

    fn request(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.next += 1;
        let id = self.next;
        let method = method.to_owned();
        let message = Message::Request(Request {
            id: id.into(),
            method,
            params,
        });
        self.connection.sender.send(message).unwrap();
        loop {
            match self.receive() {
                Message::Response(Response {
                    id: answered,
                    response_result: result,
                }) if answered == id.into() => {
                    return result.map_err(|error| error.message);
                }
                Message::Notification(told) => self.told.push(told),
                Message::Request(asked) => self.asked.push(asked),
                Message::Response(other) => panic!("an answer nobody waits for: {other:?}"),
            }
        }
    }

    fn receive(&self) -> Message {
        self.connection
            .receiver
            .recv_timeout(Duration::from_secs(60))
            .unwrap()
    }

    /// The next diagnostics told about a document.
    fn diagnostics(&mut self, uri: &str) -> Value {
        loop {
            let found = self.told.iter().position(|told| {
                told.method == "textDocument/publishDiagnostics" && told.params["uri"] == uri
            });
            if let Some(at) = found {
                return self.told.remove(at).params;
            }
            match self.receive() {
                Message::Notification(told) => self.told.push(told),
                Message::Request(asked) => self.asked.push(asked),
                Message::Response(other) => panic!("an answer nobody waits for: {other:?}"),
            }
        }
    }

    fn about(&mut self, method: &str, line: u32, character: u32) -> Value {
        let params = json!({
            "textDocument": { "uri": URI },
            "position": { "line": line, "character": character },
        });
        self.request(method, params).unwrap()
    }

    fn stop(mut self) {
        self.request("shutdown", Value::Null).unwrap();
        self.notify("exit", Value::Null);
        self.serving.take().unwrap().join().unwrap();
    }
}

fn utf8() -> Value {
    json!({ "general": { "positionEncodings": ["utf-16", "utf-8"] } })
}

#[test]
fn says_what_it_can_do() {
    let (editor, result) = Editor::start(json!({}), &[]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&result["capabilities"]).unwrap());
    editor.stop();
}

#[test]
fn columns_are_bytes_only_where_the_editor_knows_them() {
    for (capabilities, encoding, column) in [(utf8(), "utf-8", 42), (json!({}), "utf-16", 41)] {
        let (mut editor, result) = Editor::start(capabilities, &[]);
        assert_eq!(result["capabilities"]["positionEncoding"], encoding);
        editor.opened(URI, &POLICY.replace("/*\"", "/*\" && contxt.x"));
        let told = editor.diagnostics(URI);
        let range = &told["diagnostics"][0]["range"];
        assert_eq!(range["start"]["character"], column, "{told}");
        editor.stop();
    }
}

#[test]
fn diagnostics_follow_the_text() {
    let mut editor = Editor::open(utf8());
    assert_eq!(editor.diagnostics(URI)["diagnostics"], json!([]));
    editor.notify(
        "textDocument/didChange",
        json!({
            "textDocument": { "uri": URI, "version": 2 },
            "contentChanges": [
                { "range": { "start": { "line": 1, "character": 43 }, "end": { "line": 1, "character": 47 } }, "text": "ed" },
                { "range": { "start": { "line": 0, "character": 0 }, "end": { "line": 1, "character": 0 } }, "text": "" },
            ],
        }),
    );
    let told = editor.diagnostics(URI);
    insta::assert_snapshot!(serde_json::to_string_pretty(&told).unwrap());
    editor.notify(
        "textDocument/didClose",
        json!({ "textDocument": { "uri": URI } }),
    );
    assert_eq!(editor.diagnostics(URI)["diagnostics"], json!([]));
    editor.stop();
}

#[test]
fn an_editor_that_pulls_is_not_pushed_at() {
    let mut editor = Editor::open(json!({ "textDocument": { "diagnostic": {} } }));
    let params = json!({ "textDocument": { "uri": URI } });
    let report = editor.request("textDocument/diagnostic", params).unwrap();
    assert_eq!(report, json!({ "kind": "full", "items": [] }));
    assert!(editor.told.is_empty());
    editor.stop();
}

#[test]
fn every_request_is_answered() {
    let mut editor = Editor::open(utf8());
    let whole =
        json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 3, "character": 0 } });
    let document = json!({ "uri": URI });
    let mut answers: Vec<(&str, Value)> = Vec::new();
    for (method, line, character) in [
        ("textDocument/hover", 1, 0),
        ("textDocument/definition", 0, 6),
        ("textDocument/documentHighlight", 0, 6),
        ("textDocument/prepareRename", 0, 6),
        ("textDocument/signatureHelp", 2, 10),
    ] {
        answers.push((method, editor.about(method, line, character)));
    }
    for (method, params) in [
        (
            "textDocument/completion",
            json!({ "textDocument": document, "position": { "line": 2, "character": 21 } }),
        ),
        (
            "textDocument/references",
            json!({ "textDocument": document, "position": { "line": 0, "character": 6 }, "context": { "includeDeclaration": true } }),
        ),
        (
            "textDocument/rename",
            json!({ "textDocument": document, "position": { "line": 0, "character": 6 }, "newName": "all" }),
        ),
        (
            "textDocument/documentSymbol",
            json!({ "textDocument": document }),
        ),
        ("workspace/symbol", json!({ "query": "rea" })),
        (
            "textDocument/codeAction",
            json!({ "textDocument": document, "range": whole, "context": { "diagnostics": [] } }),
        ),
        ("textDocument/codeLens", json!({ "textDocument": document })),
        (
            "textDocument/formatting",
            json!({ "textDocument": document, "options": { "tabSize": 2, "insertSpaces": true } }),
        ),
        (
            "textDocument/rangeFormatting",
            json!({ "textDocument": document, "range": whole, "options": { "tabSize": 2, "insertSpaces": true } }),
        ),
        (
            "textDocument/onTypeFormatting",
            json!({ "textDocument": document, "position": { "line": 2, "character": 40 }, "ch": ";", "options": { "tabSize": 2, "insertSpaces": true } }),
        ),
        (
            "textDocument/foldingRange",
            json!({ "textDocument": document }),
        ),
        (
            "textDocument/selectionRange",
            json!({ "textDocument": document, "positions": [{ "line": 1, "character": 10 }] }),
        ),
        (
            "textDocument/inlayHint",
            json!({ "textDocument": document, "range": whole }),
        ),
        (
            "textDocument/semanticTokens/full",
            json!({ "textDocument": document }),
        ),
        (
            "textDocument/semanticTokens/range",
            json!({ "textDocument": document, "range": whole }),
        ),
        (
            "workspace/executeCommand",
            json!({ "command": "dogwood.test", "arguments": [URI] }),
        ),
        (
            "workspace/executeCommand",
            json!({ "command": "dogwood.explain", "arguments": [URI, 1] }),
        ),
    ] {
        answers.push((method, editor.request(method, params).unwrap()));
    }
    let mut out = String::new();
    for (method, mut answer) in answers {
        // Edits of several documents come in any order.
        answer.sort_all_objects();
        out.push_str(&format!("{method}\n  {answer}\n"));
    }
    insta::assert_snapshot!(out);
    editor.stop();
}

#[test]
fn a_test_run_is_shown_in_the_lenses() {
    let mut editor =
        Editor::open(json!({ "workspace": { "codeLens": { "refreshSupport": true } } }));
    let document = json!({ "textDocument": { "uri": URI } });
    let title = |editor: &mut Editor| {
        let lenses = editor
            .request("textDocument/codeLens", document.clone())
            .unwrap();
        lenses[0]["command"]["title"].as_str().unwrap().to_owned()
    };
    assert_eq!(title(&mut editor), "run 1 test file");
    let run = json!({ "command": "dogwood.test", "arguments": [URI] });
    let summary = editor.request("workspace/executeCommand", run).unwrap();
    assert_eq!(summary["passed"], 1, "{summary}");
    assert_eq!(title(&mut editor), "run 1 test file (1 test passed)");
    assert!(
        editor
            .asked
            .iter()
            .any(|asked| asked.method == "workspace/codeLens/refresh")
    );
    editor.stop();
}

/// A policy is told about what changes in its library, also between two edits of the library.
#[test]
fn an_edit_of_a_library_is_told_to_its_policies() {
    let policy = "permit (principal, action, resource)\nwhen temporal { recently(1h, Box::Action::\"fs:read\"::response{}) };\n";
    let library = "def temporal recently(?w, ?e) { formerly within ?w ?e };\n";
    let files = [
        ("/w/policy.dw", policy),
        ("/w/lib.dw", library),
        ("/w/policy.dwtest.toml", "macros = \"lib.dw\"\n"),
    ];
    let (mut editor, _) = Editor::start(json!({}), &files);
    editor.opened(URI, policy);
    editor.diagnostics(URI);
    editor.opened("file:///w/lib.dw", library);
    editor.diagnostics(URI);
    for (version, name, code) in [(2, "lately", "unknown-macro"), (3, "recently", "")] {
        let text = library.replace("recently", name);
        editor.notify(
            "textDocument/didChange",
            json!({
                "textDocument": { "uri": "file:///w/lib.dw", "version": version },
                "contentChanges": [{ "text": text }],
            }),
        );
        let told = editor.diagnostics(URI);
        let codes: Vec<&str> = told["diagnostics"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|found| found["code"].as_str())
            .filter(|code| *code == "unknown-macro")
            .collect();
        assert_eq!(codes.join(" "), code, "{told}");
    }
    editor.stop();
}

/// A setting that names nothing would leave every rule unchecked, and nobody would know.
#[test]
fn a_setting_that_names_no_file_is_said() {
    let mut editor = Editor::open(json!({}));
    editor.diagnostics(URI);
    editor.notify(
        "workspace/didChangeConfiguration",
        json!({ "settings": { "dogwood": { "policySchema": "none.cedarschema" } } }),
    );
    editor.diagnostics(URI);
    let said = editor
        .told
        .iter()
        .find(|told| told.method == "window/showMessage")
        .unwrap();
    assert_eq!(
        said.params,
        json!({ "type": 2, "message": "`policySchema` names /w/none.cedarschema, and there is no such file: rules are not checked." })
    );
    editor.stop();
}

/// Without a folder the tests beside a policy are found all the same, whether it is open or not.
#[test]
fn tests_are_found_beside_a_policy_of_no_folder() {
    for open in [true, false] {
        let files = [("/w/policy.dw", POLICY), ("/w/policy.dwtest.toml", TESTS)];
        let (mut editor, _) = Editor::start_in(Value::Null, json!({}), &files);
        if open {
            editor.opened(URI, POLICY);
        }
        let run = json!({ "command": "dogwood.test", "arguments": [URI] });
        let summary = editor.request("workspace/executeCommand", run).unwrap();
        assert_eq!(
            summary,
            json!({ "tests": 1, "passed": 1, "failed": 0, "failures": [] })
        );
        editor.stop();
    }
}

/// What is built in has no file: its address is told to those who say that they open it.
#[test]
fn what_is_built_in_is_opened_by_those_who_can() {
    let knows = json!({ "experimental": { "dogwood": { "source": true } } });
    let mut editor = Editor::open(knows);
    let places = editor.about("textDocument/definition", 1, 41);
    let address = "dogwood://builtin/box/actions.cedarschema";
    assert_eq!(places[0]["uri"], address, "{places}");
    let source = editor
        .request("dogwood/source", json!({ "uri": address }))
        .unwrap();
    let line = usize::try_from(places[0]["range"]["start"]["line"].as_u64().unwrap()).unwrap();
    let text = source.as_str().unwrap();
    assert_eq!(
        text.lines().nth(line).unwrap().trim(),
        "action \"fs:read\" appliesTo {"
    );
    // Opened, it is a document like others.
    editor.notify(
        "textDocument/didOpen",
        json!({ "textDocument": { "uri": address, "languageId": "cedarschema", "version": 0, "text": text } }),
    );
    assert_eq!(editor.diagnostics(address)["diagnostics"], json!([]));
    let symbols = editor
        .request(
            "textDocument/documentSymbol",
            json!({ "textDocument": { "uri": address } }),
        )
        .unwrap();
    assert_eq!(symbols[0]["name"], "Box");
    let refused = editor.request("dogwood/source", json!({ "uri": "dogwood://builtin/x.dw" }));
    assert_eq!(
        refused,
        Err("nothing built in has the address dogwood://builtin/x.dw".to_owned())
    );
    editor.stop();

    let mut editor = Editor::open(json!({}));
    assert_eq!(editor.about("textDocument/definition", 1, 41), Value::Null);
    let params = json!({
        "textDocument": { "uri": URI },
        "position": { "line": 1, "character": 41 },
        "context": { "includeDeclaration": true },
    });
    let places = editor.request("textDocument/references", params).unwrap();
    let places = places.as_array().unwrap();
    assert!(!places.is_empty());
    assert!(
        places
            .iter()
            .all(|place| place["uri"].as_str().unwrap().starts_with("file:"))
    );
    editor.stop();
}

/// Test files have no layout: not an empty answer, but none.
#[test]
fn schemas_and_test_files_are_laid_out() {
    let schema = "entity A{};";
    let files = [
        ("/w/a.cedarschema", schema),
        ("/w/policy.dwtest.toml", "[[test]]\nname='x'\n"),
    ];
    let (mut editor, _) = Editor::start(utf8(), &files);
    let mut format = |uri: &str| {
        let options = json!({ "tabSize": 2, "insertSpaces": true });
        let params = json!({ "textDocument": { "uri": uri }, "options": options });
        editor.request("textDocument/formatting", params).unwrap()
    };
    assert_eq!(format("file:///w/a.cedarschema")[0]["newText"], " {};\n");
    let tests = format("file:///w/policy.dwtest.toml");
    assert_eq!(tests[0]["newText"], "name = 'x'\n");
    editor.stop();
}

#[test]
fn what_cannot_be_answered_is_refused() {
    let mut editor = Editor::open(utf8());
    let mut refuse = |method: &str, params: Value| editor.request(method, params).unwrap_err();
    let said = [
        refuse("textDocument/nonsense", json!({})),
        refuse("textDocument/hover", json!({ "textDocument": 1 })),
        refuse(
            "textDocument/hover",
            json!({ "textDocument": { "uri": "file:///w/none.dw" }, "position": { "line": 0, "character": 0 } }),
        ),
        refuse(
            "textDocument/rename",
            json!({ "textDocument": { "uri": URI }, "position": { "line": 1, "character": 0 }, "newName": "x" }),
        ),
        refuse(
            "workspace/executeCommand",
            json!({ "command": "dogwood.test" }),
        ),
        refuse(
            "workspace/executeCommand",
            json!({ "command": "dogwood.fly", "arguments": [URI] }),
        ),
    ];
    insta::assert_snapshot!(said.join("\n"));
    // The text lives on whatever was said about it.
    editor.notify("textDocument/didChange", json!({ "textDocument": 3 }));
    assert!(!editor.about("textDocument/hover", 1, 0).is_null());
    editor.stop();
}

/// The settings name a schema: the policy is read against it.
#[test]
fn settings_choose_the_schema() {
    let schema =
        "entity U; entity R; action go appliesTo { principal: U, resource: R, context: {} };\n";
    let policy = "permit (principal, action == Action::\"go\", resource);\n";
    let (mut editor, _) = Editor::start(json!({}), &[("/w/a.cedarschema", schema)]);
    editor.opened(URI, policy);
    let told = editor.diagnostics(URI);
    assert_eq!(
        told["diagnostics"][0]["code"], "unknown-action-type",
        "{told}"
    );
    editor.notify(
        "workspace/didChangeConfiguration",
        json!({ "settings": { "dogwood": { "policySchema": "a.cedarschema" } } }),
    );
    assert_eq!(editor.diagnostics(URI)["diagnostics"], json!([]));
    editor.stop();
}
