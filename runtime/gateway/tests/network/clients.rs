//! Real programs, with nothing but the variables the gateway sets: curl, git, Python, Node.

use crate::support::{Setup, World};
use crate::upstream::{Identity, Upstream, heads, reply};
use box_authority::action::Action;
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

/// Serves the files of a folder, and `/private` to who brings the key.
fn field(files: &Path) -> Field {
    let files = files.to_owned();
    let identity = Identity::of(&["api.test", "git.test"]);
    let service = heads(move |parts| match parts.uri.path() {
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
        && git -c user.name=a -c user.email=a@b commit -q -m one && cd .. && git clone -q --bare src repo.git && git -C repo.git update-server-info";
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
import os, json, urllib.request, urllib.error
def get(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())["rule"]
print(get("https://api.test/hello"))
print(get("http://api.test/hello"))
print(get("https://api.test/secret-plans"))
print(get("https://api.test/private", Authorization="Bearer " + os.environ["API_KEY"]))
"#;
    assert_eq!(
        field.said(&python, &["-c", script]),
        "(200, 'hello from upstream')\n(200, 'hello from upstream')\n(403, 'sealed')\n(200, 'welcome, [REDACTED]')\n"
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
