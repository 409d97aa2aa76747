//! curl, git, Python and Node reach a server under a private authority with nothing but what the box sets.

use crate::scene::{Scene, policy};
use http_body_util::BodyExt;
use stand_in::{Answer, Identity, Service, Upstream, heads, reply};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

const FORBIDS: &str = r#"
@id("sealed")
@description("That stays closed.")
forbid (principal, action == Box::Action::"http:request", resource)
when { context.input.path == "/sealed" };
"#;

/// Serves `/hello` and the repositories of a folder.
fn server(identity: &Identity, files: &Path) -> Upstream {
    let files = files.to_owned();
    let plainly = heads(|parts| match parts.uri.path() {
        "/hello" => reply(200, &[], format!("hello, {}\n", parts.method)),
        _ => reply(404, &[], "nothing here\n"),
    });
    let service: Service =
        Arc::new(
            move |request| match request.uri().path().strip_prefix("/git") {
                Some(path) => repository(files.clone(), path.to_owned(), request),
                None => plainly(request),
            },
        );
    Upstream::start(Some(identity), service)
}

/// `git http-backend`, as a web server runs it.
fn repository(
    files: PathBuf,
    path: String,
    request: http::Request<hyper::body::Incoming>,
) -> Answer {
    Box::pin(async move {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let header = |name: &str| {
            let value = parts.headers.get(name).and_then(|v| v.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let mut backend = Command::new("git")
            .arg("http-backend")
            .env("GIT_PROJECT_ROOT", files)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("REQUEST_METHOD", parts.method.as_str())
            .env("PATH_INFO", path)
            .env("QUERY_STRING", parts.uri.query().unwrap_or_default())
            .env("CONTENT_TYPE", header("content-type"))
            .env("CONTENT_LENGTH", body.len().to_string())
            .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
            .env("GIT_PROTOCOL", header("git-protocol"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = backend.stdin.take().unwrap();
        let feeding = std::thread::spawn(move || {
            let _ = stdin.write_all(&body);
        });
        let said = tokio::task::spawn_blocking(move || {
            let output = backend.wait_with_output().unwrap();
            feeding.join().unwrap();
            output.stdout
        });
        let said = said.await.unwrap();
        let end = said
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap_or(0);
        let head = String::from_utf8_lossy(&said[..end]).into_owned();
        let mut status = 200;
        let mut headers = Vec::new();
        for line in head.lines() {
            match line.split_once(": ") {
                Some(("Status", text)) => status = text[..3].parse().unwrap(),
                Some(pair) => headers.push(pair),
                None => {}
            }
        }
        reply(status, &headers, said[end + 4..].to_vec())
    })
}

/// A scene whose `api.test` is the server, with further tables.
fn scene(files: &Path, tables: &str) -> (Scene, Upstream) {
    let identity = Identity::of(&["api.test"]);
    let server = server(&identity, files);
    let scene = Scene::new(
        &["api.test"],
        server.port,
        &identity.root_pem,
        &policy(FORBIDS),
        tables,
    );
    (scene, server)
}

fn nowhere() -> &'static Path {
    Path::new("/nonexistent")
}

/// Whether a program answers, or a printed reason why the test has nothing to do.
fn present(program: &str, words: &[&str]) -> bool {
    let said = Command::new(program).args(words).output();
    let answers = said.is_ok_and(|output| output.status.success());
    if !answers {
        println!(
            "skipped: `{program} {}` does not work here",
            words.join(" ")
        );
    }
    answers
}

/// A folder that outlives the test, made once: downloads are not made again.
fn kept(name: &str, make: impl FnOnce(&Path) -> bool) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if !folder.exists() {
        let unfinished = folder.with_extension(format!("part-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&unfinished);
        std::fs::create_dir_all(&unfinished).unwrap();
        if !make(&unfinished) {
            let _ = std::fs::remove_dir_all(&unfinished);
            return None;
        }
        std::fs::rename(&unfinished, &folder).unwrap();
    }
    folder.canonicalize().ok()
}

#[test]
fn curl() {
    if !present("curl", &["--version"]) {
        return;
    }
    let (scene, server) = scene(nowhere(), "");
    let script = [
        "bash -c 'curl -sS https://api.test/hello'",
        "bash -c 'curl -sS -X PUT -d x https://api.test/hello'",
        "bash -c 'curl -sS -o /dev/null -w \"%{http_code} %header{x-box-rule}\\n\" https://api.test/sealed'",
        "bash -c 'curl -sS https://unknown.test/' || echo failed",
    ];
    insta::assert_snapshot!(scene.agent(&script.join("; ")));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn git() {
    if !present("/usr/bin/git", &["--version"]) {
        return;
    }
    let work = tempfile::tempdir().unwrap();
    let script = "git init -q -b main src && cd src && echo text > file && git add file \
        && git -c user.name=a -c user.email=a@b commit -q -m one && cd .. && git clone -q --bare src repo.git";
    let made = Command::new("sh")
        .args(["-c", script])
        .current_dir(work.path())
        .env("HOME", work.path())
        .output()
        .unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let tables = r#"
[tool.git]
command = ["/usr/bin/git"]
filesystem = { write = ["~/project"] }
"#;
    let (scene, server) = scene(work.path(), tables);
    let said = scene.agent(
        "bash -c 'git clone -q https://api.test/git/repo.git copy && cat copy/file; git -C copy log --format=%s'",
    );
    assert_eq!(said, "text\none\n", "{}", server.requests().join("\n"));
}

#[test]
fn python() {
    let program = "/usr/bin/python3";
    if !present(program, &["-c", "import ssl"]) {
        return;
    }
    let requests = kept("requests", |folder| {
        let folder = folder.display().to_string();
        let words = "-m pip install -q --disable-pip-version-check --no-compile --platform any --implementation py \
            --abi none --only-binary=:all: --target";
        let words: Vec<&str> = words
            .split_whitespace()
            .chain([&*folder, "requests"])
            .collect();
        present("python3", &words)
    });
    let listed = requests
        .as_ref()
        .map(|folder| format!("filesystem = {{ read = [{folder:?}] }}"));
    let tables = format!(
        "[tool.python]\ncommand = [\"{program}\"]\n{}",
        listed.unwrap_or_default()
    );
    let (scene, _server) = scene(nowhere(), &tables);
    let plain = r#"
import json, urllib.request, urllib.error
def get(url):
    try:
        with urllib.request.urlopen(url) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())["rule"]
print(get("https://api.test/hello"))
print(get("https://api.test/sealed"))
"#;
    let run = |script: &str| scene.agent(&format!("bash -c '{program} -c '\\''{script}'\\'"));
    assert_eq!(run(plain), "(200, 'hello, GET\\n')\n(403, 'sealed')\n");
    let Some(folder) = requests else {
        return;
    };
    let with_requests = format!(
        r#"
import sys
sys.path.insert(0, "{}")
import requests
print(requests.get("https://api.test/hello").text, end="")
print(requests.post("https://api.test/sealed").headers["x-box-rule"])
"#,
        folder.display()
    );
    assert_eq!(run(&with_requests), "hello, GET\nsealed\n");
}

#[test]
fn fetch_of_the_python_checkpoint() {
    let (scene, _server) = scene(nowhere(), "");
    scene.write(
        "project/ask.py",
        r#"
import json
print(fetch("https://api.test/hello")["body"].strip())
reply = fetch("https://api.test/sealed")
told = json.loads(reply["body"])
print(reply["status"], reply["headers"]["x-strands-box-egress"], reply["headers"]["x-box-rule"])
print(told["error"], told["rule"], told["description"])
reply = fetch("http://metadata.google.internal/")
print(reply["status"], json.loads(reply["body"])["message"])
"#,
    );
    insta::assert_snapshot!(scene.agent("python3 ask.py"), @r"
    hello, GET
    403 refused sealed
    denied by policy sealed That stays closed.
    403 metadata.google.internal:80 is link-local or cloud metadata, which no rule opens
    ");
}

/// A Node whose `fetch` reads the proxy from its environment: the machine's, or one from npm.
fn node() -> Option<PathBuf> {
    let script = "const [major, minor] = process.versions.node.split('.').map(Number); \
        process.exit(major > 24 || (major === 24 && minor >= 5) || (major === 22 && minor >= 21) ? 0 : 1)";
    let new = |program: &Path| {
        let answer = Command::new(program).args(["-e", script]).status();
        answer.is_ok_and(|status| status.success())
    };
    let own = Path::new("/usr/bin/node");
    if new(own) {
        return own.canonicalize().ok();
    }
    let folder = kept("node-24", |folder| {
        let folder = folder.display().to_string();
        let words = [
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--prefix",
            &*folder,
            "node@24",
        ];
        if !present("npm", &words) {
            return false;
        }
        // One name for the program: it has another in the package for this machine.
        let installed = Path::new(&folder).join("node_modules/node/bin/node");
        std::fs::copy(installed, Path::new(&folder).join("node")).is_ok()
    })?;
    let program = folder.join("node");
    if new(&program) {
        return Some(program);
    }
    println!("skipped: {} does not run here", program.display());
    None
}

#[test]
fn node_fetch() {
    let Some(program) = node() else {
        println!("skipped: no Node here whose fetch reads a proxy from the environment");
        return;
    };
    let tables = format!("[tool.node]\ncommand = [{program:?}]\n");
    let (scene, _server) = scene(nowhere(), &tables);
    scene.write(
        "project/fetch.js",
        r#"
const get = async (url) => {
  const reply = await fetch(url);
  return [reply.status, reply.headers.get("x-box-rule"), (await reply.text()).split("\n")[0]];
};
(async () => {
  console.log(JSON.stringify(await get("https://api.test/hello")));
  console.log(JSON.stringify((await get("https://api.test/sealed")).slice(0, 2)));
})();
"#,
    );
    let said = scene.agent(&format!(
        "bash -c '{} -e \"$(cat fetch.js)\"'",
        program.display()
    ));
    assert_eq!(said, "[200,null,\"hello, GET\"]\n[403,\"sealed\"]\n");
}

#[test]
fn a_private_authority_counts_for_who_is_given_it_only() {
    let identity = Identity::of(&["api.test"]);
    let server = server(&identity, nowhere());
    let other = Identity::of(&["api.test"]);
    let scene = Scene::new(&["api.test"], server.port, &other.root_pem, &policy(""), "");
    let said = scene.agent("bash -c 'curl -sS https://api.test/hello'");
    assert!(said.contains("TLS with the server failed"), "{said}");
    assert!(server.requests().is_empty());
}
