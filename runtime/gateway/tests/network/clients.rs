//! Real programs, with nothing but the variables the gateway sets: curl, git, Python, Node.

use crate::support::{Setup, World};
use box_authority::action::Action;
use http_body_util::BodyExt;
use stand_in::{Answer, Identity, Service, Upstream, heads, reply};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

const KEY: &str = "the-real-api-key-0123456789";

const ROUTES: &str = r#"
[egress.api]
destinations = ["api.test/private"]
secret = { ref = "env://API_KEY" }
[egress.git]
destinations = ["git.test"]
secret = { ref = "env://GIT_PAIR", placement = "basic_auth", inject = "always" }
"#;

struct Field {
    world: World,
    server: Upstream,
    _plain: Upstream,
    home: tempfile::TempDir,
}

/// Serves the files of a folder, repositories below `/smart/`, and `/private` to who brings the key.
fn field(files: &Path) -> Field {
    let files = files.to_owned();
    let identity = Identity::of(&["api.test", "git.test"]);
    let repositories = files.clone();
    let plainly = heads(move |parts| match parts.uri.path() {
        "/hello" => reply(200, &[], "hello from upstream"),
        "/private"
            if parts
                .headers
                .get("authorization")
                .is_some_and(|value| value == format!("Bearer {KEY}").as_str()) =>
        {
            reply(200, &[], format!("welcome, {KEY}"))
        }
        "/private" => reply(401, &[], "who are you?"),
        path => match std::fs::read(files.join(path.trim_start_matches('/'))) {
            Ok(bytes) => reply(200, &[], bytes),
            Err(_) => reply(404, &[], ""),
        },
    });
    let service: Service =
        Arc::new(
            move |request| match request.uri().path().strip_prefix("/smart") {
                Some(path) => smart(repositories.clone(), path.to_owned(), request),
                None => plainly(request),
            },
        );
    let server = Upstream::start(Some(&identity), service.clone());
    let plain = Upstream::start(None, service);
    let deny = Arc::new(
        |action: &Action| matches!(action, Action::HttpRequest { path, .. } if path == "/secret-plans"),
    );
    let secrets = vec![("API_KEY", KEY), ("GIT_PAIR", "robot:git-token-0123456789")];
    let ports = vec![(443, server.port), (80, plain.port)];
    let world = Setup {
        toml: ROUTES,
        secrets,
        deny,
        roots: vec![identity.root_pem],
        ports,
        ..Setup::default()
    }
    .start();
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("cert.pem"), world.gateway.ca_pem()).unwrap();
    Field {
        world,
        server,
        _plain: plain,
        home,
    }
}

/// `git http-backend`, as a web server runs it.
fn smart(
    files: std::path::PathBuf,
    path: String,
    request: http::Request<hyper::body::Incoming>,
) -> Answer {
    Box::pin(async move {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let made = tokio::task::spawn_blocking(move || {
            let header = |name: &str| {
                parts
                    .headers
                    .get(name)
                    .and_then(|v| v.to_str().ok())
                    .unwrap_or_default()
                    .to_owned()
            };
            let mut backend = Command::new("git")
                .arg("http-backend")
                .env("GIT_PROJECT_ROOT", files)
                .env("GIT_HTTP_EXPORT_ALL", "1")
                .env("REMOTE_USER", "robot")
                .env("REQUEST_METHOD", parts.method.as_str())
                .env("PATH_INFO", path)
                .env("QUERY_STRING", parts.uri.query().unwrap_or_default())
                .env("CONTENT_TYPE", header("content-type"))
                .env("CONTENT_LENGTH", body.len().to_string())
                .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
                .env("GIT_PROTOCOL", header("git-protocol"))
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let mut stdin = backend.stdin.take().unwrap();
            let feeding = std::thread::spawn(move || {
                let _ = stdin.write_all(&body);
            });
            let output = backend.wait_with_output().unwrap();
            feeding.join().unwrap();
            output.stdout
        });
        let output = made.await.unwrap();
        let end = output
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap_or(0);
        let head = String::from_utf8_lossy(&output[..end]).into_owned();
        let mut status = 200;
        let mut headers = Vec::new();
        for line in head.lines() {
            match line.split_once(": ") {
                Some(("Status", text)) => status = text[..3].parse().unwrap(),
                Some(pair) => headers.push(pair),
                None => {}
            }
        }
        reply(status, &headers, output[end + 4..].to_vec())
    })
}

impl Field {
    /// The program with the box's environment and no other.
    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        let roots = self.home.path().join("cert.pem").display().to_string();
        Command::new(program)
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.home.path())
            .envs(
                self.world
                    .gateway
                    .environment(&format!("127.0.0.1:{}", self.world.port), &roots),
            )
            .envs(self.world.gateway.placeholders())
            .current_dir(self.home.path())
            .output()
            .unwrap_or_else(|fault| panic!("{program}: {fault}"))
    }

    fn said(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.run(program, arguments);
        format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    }
}

/// The program's own path, or a printed reason why the test has nothing to do.
fn present(program: &str, question: &[&str]) -> Option<String> {
    match Command::new(program).args(question).output() {
        Ok(output) if output.status.success() => {
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => {
            println!(
                "skipped: {program} {question:?} says {}",
                String::from_utf8_lossy(&output.stderr)
            );
            None
        }
        Err(fault) => {
            println!("skipped: no {program} here ({fault})");
            None
        }
    }
}

#[test]
fn curl() {
    let Some(_) = present("curl", &["--version"]) else {
        return;
    };
    let field = field(Path::new("/nonexistent"));
    assert_eq!(
        field.said("curl", &["-sS", "https://api.test/hello"]),
        "hello from upstream"
    );
    assert_eq!(
        field.said("curl", &["-sS", "http://api.test/hello"]),
        "hello from upstream"
    );
    assert_eq!(
        field.said("curl", &["-sS", "--http2", "http://api.test/hello"]),
        "hello from upstream"
    );
    let refused = field.said("curl", &["-sS", "-i", "https://api.test/secret-plans"]);
    assert!(
        refused.contains("403")
            && refused.contains("x-box-rule: sealed")
            && refused.contains("payroll"),
        "{refused}"
    );
    let key = field.world.gateway.placeholders()["API_KEY"].clone();
    assert_eq!(
        field.said(
            "curl",
            &["-sS", "--oauth2-bearer", &key, "https://api.test/private"]
        ),
        "welcome, [REDACTED]"
    );
    assert!(
        field
            .said("curl", &["-sS", "https://api.test/private"])
            .contains("its placeholder is missing")
    );
    let metadata = field.said("curl", &["-sS", "http://169.254.169.254/latest/meta-data/"]);
    assert!(metadata.contains("address refused"), "{metadata}");
    let upload = field.home.path().join("upload");
    std::fs::write(&upload, vec![b'x'; 3_000_000]).unwrap();
    let put = field.said("curl", &["-sS", "-T", "upload", "https://api.test/hello"]);
    assert_eq!(put, "hello from upstream");
    assert!(
        field
            .world
            .log()
            .contains("PUT api.test:443/hello 3000000 intercepted"),
        "{}",
        field.world.log()
    );
}

#[test]
fn git() {
    let Some(_) = present("git", &["--version"]) else {
        return;
    };
    let work = tempfile::tempdir().unwrap();
    let script = "git init -q -b main src && cd src && echo text > file && git add file \
        && git -c user.name=a -c user.email=a@b commit -q -m one && cd .. && git clone -q --bare src repo.git && git -C repo.git update-server-info && git -C repo.git config http.receivepack true";
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
    let field = field(work.path());
    let cloned = field.run("git", &["clone", "-q", "https://git.test/repo.git", "copy"]);
    assert!(
        cloned.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&cloned.stderr),
        field.world.log()
    );
    assert_eq!(
        std::fs::read_to_string(field.home.path().join("copy/file")).unwrap(),
        "text\n"
    );
    // Fetch and push, with requests that have bodies.
    let script = "git clone -q https://git.test/smart/repo.git two && cd two && echo more >> file \
        && git -c user.name=a -c user.email=a@b commit -q -a -m two && git -c http.postBuffer=1 push -q origin main && git ls-remote origin";
    let pushed = field.run("sh", &["-c", script]);
    let said = String::from_utf8_lossy(&pushed.stderr);
    assert!(pushed.status.success(), "{said}\n{}", field.world.log());
    let log = Command::new("git")
        .args(["--git-dir", "repo.git", "log", "--format=%s", "main"])
        .current_dir(work.path())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&log.stdout), "two\none\n");
    assert!(
        field
            .world
            .log()
            .contains("POST git.test:443/smart/repo.git/git-receive-pack")
    );
    // It never had the password, and the server always did.
    use base64::Engine;
    let expected = base64::engine::general_purpose::STANDARD.encode("robot:git-token-0123456789");
    assert!(
        field
            .server
            .requests()
            .iter()
            .all(|line| line.contains(&expected))
    );
}

#[test]
fn python() {
    let Some(python) = present("python3", &["-c", "import sys; print(sys.executable)"]) else {
        return;
    };
    let field = field(Path::new("/nonexistent"));
    let script = r#"
import os, json, ssl, urllib.request, urllib.error
def get(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())["rule"]
print(get("https://api.test/hello"))
strict = ssl.create_default_context()
strict.verify_flags |= ssl.VERIFY_X509_STRICT
print(urllib.request.urlopen("https://api.test/hello", context=strict).status)
print(get("http://api.test/hello"))
print(get("https://api.test/secret-plans"))
print(get("https://api.test/private", Authorization="Bearer " + os.environ["API_KEY"]))
"#;
    assert_eq!(
        field.said(&python, &["-c", script]),
        "(200, 'hello from upstream')\n200\n(200, 'hello from upstream')\n(403, 'sealed')\n(200, 'welcome, [REDACTED]')\n"
    );
    if present(&python, &["-c", "import requests"]).is_none() {
        return;
    }
    let script = r#"
import os, requests
with requests.Session() as session:
    print(session.get("https://api.test/hello").text)
    print(session.get("https://api.test/secret-plans").headers["x-box-rule"])
    print(session.get("https://api.test/private", headers={"Authorization": "Bearer " + os.environ["API_KEY"]}).text)
"#;
    assert_eq!(
        field.said(&python, &["-c", script]),
        "hello from upstream\nsealed\nwelcome, [REDACTED]\n"
    );
}

#[test]
fn node() {
    let Some(version) = present("node", &["-p", "process.versions.node"]) else {
        return;
    };
    let Some(node) = present("node", &["-p", "process.execPath"]) else {
        return;
    };
    let newer = |major, minor| {
        let mut numbers = version
            .split('.')
            .filter_map(|number| number.parse::<u32>().ok());
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
    };
    // The variable is read from 22.21 and 24.0 on.
    if !(newer(24, 0) || (newer(22, 21) && !newer(23, 0))) {
        println!("skipped: fetch of Node {version} reads no proxy from the environment");
        return;
    }
    let field = field(Path::new("/nonexistent"));
    let script = r#"
const get = async (url, headers) => (await fetch(url, { headers })).text();
(async () => {
  console.log(await get("https://api.test/hello"));
  console.log((await fetch("https://api.test/secret-plans")).headers.get("x-box-rule"));
  console.log(await get("https://api.test/private", { authorization: "Bearer " + process.env.API_KEY }));
})();
"#;
    let output = field.run(&node, &["-e", script]);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "hello from upstream\nsealed\nwelcome, [REDACTED]\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
