//! The gateway before the real authority: rules as people write them, history on disk.

use crate::support::{Setup, World};
use box_authority::Authority;
use box_authority::action::{Action, FsRead, FsResult, Outcome};
use box_authority::clock::Clock;
use box_authority::engine::PolicySet;
use box_authority::gate::{Caller, Gate};
use box_authority::records::{Records, RunIdentity};
use dogwood_compiler::compile::{Options, Source, check, load_service};
use stand_in::{Identity, Upstream, echo, heads, reply};
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

struct Held(AtomicI64);

impl Clock for Held {
    fn now(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Desk {
    authority: Arc<Authority>,
    clock: Arc<Held>,
    records: Written,
}

fn open(dir: &Path, policy: &str, now: i64) -> Desk {
    let source = [Source {
        name: "policy.dw".into(),
        text: policy.into(),
    }];
    let (service, _) = load_service(None, None).unwrap_or_else(|_| panic!("no service"));
    let checked = check(&source, None, &service, &Options::default()).unwrap_or_else(|said| {
        panic!(
            "{}",
            said.iter().map(|d| format!("{d:?}\n")).collect::<String>()
        )
    });
    let clock = Arc::new(Held(AtomicI64::new(now)));
    let records = Written::default();
    let run = RunIdentity {
        box_id: "box-0000000000000001".into(),
        run_id: 1,
    };
    let rules = PolicySet::new(&checked, &source, &service);
    let authority = Authority::open(
        dir,
        rules,
        clock.clone(),
        Records::new(Box::new(records.clone()), run),
    );
    let authority = Arc::new(authority.unwrap_or_else(|fault| panic!("{fault}")));
    Desk {
        authority,
        clock,
        records,
    }
}

struct Field {
    world: World,
    server: Upstream,
}

fn field(
    desk: &Desk,
    toml: &'static str,
    secrets: Vec<(&'static str, &'static str)>,
    service: stand_in::Service,
) -> Field {
    let identity = Identity::of(&["api.test", "chat.test"]);
    let server = Upstream::start(Some(&identity), service);
    let gate: Arc<dyn Gate> = desk.authority.clone();
    let setup = Setup {
        toml,
        secrets,
        roots: vec![identity.root_pem],
        ports: vec![(443, server.port)],
        gate: Some(gate),
        ..Setup::default()
    };
    Field {
        world: setup.start(),
        server,
    }
}

impl Field {
    fn post(&self, host: &str, path: &str, body: &str) -> String {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        match self.world.connect(&format!("{host}:443")) {
            Ok(_) => self.world.secure(&format!("{host}:443"), &request),
            Err(refused) => refused,
        }
    }
}

const OPEN: &str = r#"
permit (principal, action == Box::Action::"net:connect", resource);
permit (principal, action == Box::Action::"http:request", resource);
permit (principal, action == Box::Action::"fs:read", resource);
"#;

fn status(said: &str) -> &str {
    said.split(' ').nth(1).unwrap_or(said)
}

#[test]
fn nothing_leaves_after_a_sensitive_read_whoever_read_it() {
    let dir = tempfile::tempdir().unwrap();
    let policy = format!(
        "{OPEN}{}",
        r#"
@id("sealed")
@description("Customer data was read in this box. Finish without the network.")
forbid (principal, action == Box::Action::"http:request", resource)
when temporal {
  formerly within 8h (
    Box::Action::"fs:read"::response{ input.path: "~/customer-data/all.csv", input.operation: Box::FsReadOperation::"read_content" }
  )
};
"#
    );
    let desk = open(dir.path(), &policy, 1_800_000_000);
    let field = field(&desk, "", Vec::new(), echo());
    assert_eq!(status(&field.post("api.test", "/a", "x")), "200");
    let read = Action::FsRead {
        path: "~/customer-data/all.csv".into(),
        operation: FsRead::ReadContent,
    };
    let permit = desk
        .authority
        .decide(&Caller::Tool("python".into()), read)
        .unwrap_or_else(|denial| panic!("{denial}"));
    permit.complete(Outcome::Fs(FsResult::Completed));
    let said = field.post("api.test", "/b", "x");
    assert_eq!(status(&said), "403", "{said}");
    for part in [
        "x-box-rule: sealed",
        "x-box-description: Customer data was read in this box.",
        "x-box-witness: ",
        "\"place\": \"policy.dw:",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(field.server.requests().len(), 1);
    desk.clock.0.fetch_add(9 * 3600, Ordering::SeqCst);
    assert_eq!(status(&field.post("api.test", "/c", "x")), "200");
}

#[test]
fn a_cap_counts_what_happened_and_holds_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let policy = format!(
        "{OPEN}{}",
        r#"
@id("chat_pace")
@description("At most 3 posts per 10 minutes.")
forbid (principal, action == Box::Action::"http:request", resource)
when { context.input.host == "chat.test" && context.input.method == "POST" && context.input.intercepted }
when temporal {
  exists (sent: Long). (
    (count for (t: Timepoint). where (
      formerly within 10m (
        Box::Action::"http:request"::response{ input.host: "chat.test", input.path: "/hook" } && tp(t)
      )
    )) == sent && sent >= 3
  )
};
"#
    );
    let start = 1_800_000_000;
    let desk = open(dir.path(), &policy, start);
    {
        let field = field(&desk, "", Vec::new(), echo());
        for _ in 0..3 {
            assert_eq!(status(&field.post("chat.test", "/%68ook", "hi")), "200");
        }
        let fourth = field.post("chat.test", "/x/../hook", "hi");
        assert_eq!(status(&fourth), "403", "{fourth}");
        assert!(fourth.contains("x-box-rule: chat_pace"), "{fourth}");
        assert_eq!(status(&field.post("api.test", "/hook", "hi")), "200");
    }
    desk.authority.close();
    drop(desk);
    let desk = open(dir.path(), &policy, start + 60);
    let field = field(&desk, "", Vec::new(), echo());
    assert_eq!(status(&field.post("chat.test", "/hook", "hi")), "403");
    desk.clock.0.store(start + 700, Ordering::SeqCst);
    assert_eq!(status(&field.post("chat.test", "/hook", "hi")), "200");
}

#[test]
fn connections_count_once_each() {
    let dir = tempfile::tempdir().unwrap();
    let policy = format!(
        "{OPEN}{}",
        r#"
@id("three_connections")
forbid (principal, action == Box::Action::"net:connect", resource)
when temporal {
  exists (n: Long). (
    (count for (t: Timepoint). where (
      formerly within 1h ( Box::Action::"net:connect"::response{ input.host: "api.test" } && tp(t) )
    )) == n && n >= 3
  )
};
"#
    );
    let desk = open(dir.path(), &policy, 1_800_000_000);
    let field = field(&desk, "", Vec::new(), echo());
    for _ in 0..3 {
        assert!(field.world.connect("api.test:443").is_ok());
    }
    let said = field.world.connect("api.test:443").unwrap_err();
    assert!(said.contains("x-box-rule: three_connections"), "{said}");
}

#[test]
fn uploads_are_judged_by_their_length_known_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let policy = format!(
        "{OPEN}{}",
        r#"
@id("small")
forbid (principal, action == Box::Action::"http:request", resource) when { context.input.body_bytes > 1000 };
"#
    );
    let desk = open(dir.path(), &policy, 1_800_000_000);
    let field = field(&desk, "", Vec::new(), echo());
    assert_eq!(
        status(&field.post("api.test", "/", &"x".repeat(1000))),
        "200"
    );
    assert_eq!(
        status(&field.post("api.test", "/", &"x".repeat(1001))),
        "403"
    );
    let chunked = |size: usize| {
        let head = "POST / HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
        field.world.secure(
            "api.test:443",
            &format!("{head}{size:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(size)),
        )
    };
    assert_eq!(status(&chunked(1000)), "200");
    assert_eq!(status(&chunked(1001)), "403");
    assert_eq!(status(&chunked(3_000_000)), "403");
    assert_eq!(field.server.requests().len(), 2);
}

#[test]
fn no_record_and_no_history_holds_a_secret() {
    const SECRET: &str = "sk-live-0123456789abcdef";
    let dir = tempfile::tempdir().unwrap();
    let desk = open(dir.path(), OPEN, 1_800_000_000);
    let toml = "[egress.api]\ndestinations = ['api.test']\nsecret = { ref = 'env://KEY', placement = 'query_param', param = 'key' }";
    let seen = heads(|parts| {
        reply(
            200,
            &[("x-uri", &parts.uri.to_string())],
            parts.uri.to_string(),
        )
    });
    let field = field(&desk, toml, vec![("KEY", SECRET)], seen);
    let key = field.world.gateway.placeholders()["KEY"].clone();
    let said = field.post("api.test", &format!("/v1?key={key}"), "x");
    assert_eq!(status(&said), "200", "{said}");
    assert!(
        said.contains("key=[REDACTED]") && !said.contains(SECRET),
        "{said}"
    );
    assert!(field.server.requests()[0].contains(SECRET));
    desk.authority.close();
    let records = String::from_utf8(desk.records.0.lock().unwrap().clone()).unwrap();
    assert!(
        records.contains("http:request") && records.contains("api.test:443/v1"),
        "{records}"
    );
    let mut kept = records.into_bytes();
    for entry in std::fs::read_dir(dir.path()).unwrap() {
        kept.extend(std::fs::read(entry.unwrap().path()).unwrap());
    }
    for secret in [SECRET, &key] {
        assert!(
            !kept
                .windows(secret.len())
                .any(|window| window == secret.as_bytes()),
            "{secret}"
        );
    }
}
