//! Secrets the sandbox never sees: where they go, where they do not, and that nothing brings them back.

use crate::support::{Setup, World, head, rest};
use box_authority::gate::Caller;
use http_body_util::{BodyExt, StreamBody};
use stand_in::{Identity, Reply, Upstream, heads, reply};
use std::io::{Read, Write};
use std::sync::Arc;

const SECRET: &str = "sk-live/0123456789+abcdef=";
const PAIR: &str = "robot:p4ssw0rd-of-the-robot";

const ROUTES: &str = r#"
[egress.llm]
destinations = ["llm.test/v2"]
secret = { ref = "env://LLM_KEY", header = "x-api-key", phantom_prefix = "llm-" }
[egress.bearer]
destinations = ["bearer.test"]
secret = { ref = "file:///run/token", env = "TOKEN" }
[egress.basic]
destinations = ["basic.test"]
allow = ["agent", "tool.git"]
secret = { ref = "env://PAIR", placement = "basic_auth", inject = "always" }
[egress.query]
destinations = ["query.test"]
secret = { ref = "env://QUERY_KEY", placement = "query_param", param = "key" }
"#;

const HOSTS: [&str; 5] = [
    "llm.test",
    "bearer.test",
    "basic.test",
    "query.test",
    "else.test",
];

struct Field {
    world: World,
    secure: Upstream,
    plain: Upstream,
}

fn field_of(caller: Caller, service: stand_in::Service) -> Field {
    let identity = Identity::of(&HOSTS);
    let secure = Upstream::start(Some(&identity), service.clone());
    let plain = Upstream::start(None, service);
    let secrets = vec![
        ("LLM_KEY", SECRET),
        ("/run/token", SECRET),
        ("PAIR", PAIR),
        ("QUERY_KEY", "q&k=0123456789"),
    ];
    let ports = vec![(443, secure.port), (80, plain.port)];
    let world = Setup {
        toml: ROUTES,
        secrets,
        roots: vec![identity.root_pem],
        ports,
        caller,
        ..Setup::default()
    }
    .start();
    Field {
        world,
        secure,
        plain,
    }
}

fn field() -> Field {
    field_of(Caller::Agent, heads(|_| reply(200, &[], "ok")))
}

impl Field {
    fn placeholder(&self, name: &str) -> String {
        self.world.gateway.placeholders()[name].clone()
    }

    fn get(&self, host: &str, path: &str, header: &str) -> String {
        let header = if header.is_empty() {
            String::new()
        } else {
            format!("{header}\r\n")
        };
        self.world.secure(
            &format!("{host}:443"),
            &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{header}Connection: close\r\n\r\n"),
        )
    }

    /// Nothing the box keeps or says holds a secret.
    fn quiet(&self) {
        let told = format!(
            "{}{}{:?}",
            self.world.log(),
            self.world.notices(),
            self.world.gate.actions.lock().unwrap()
        );
        for secret in [SECRET, PAIR, "q&k=0123456789"] {
            assert!(!told.contains(secret), "{told}");
        }
    }
}

#[test]
fn placeholders_become_secrets_only_where_they_are_bound() {
    let field = field();
    let llm = field.placeholder("LLM_KEY");
    assert!(llm.starts_with("llm-") && llm.len() == 4 + 64, "{llm}");
    assert!(field.placeholder("TOKEN").starts_with("strands_box_"));
    assert!(
        field
            .get("llm.test", "/v2/chat", &format!("X-Api-Key: {llm}"))
            .starts_with("HTTP/1.1 200")
    );
    assert!(
        field
            .get(
                "bearer.test",
                "/",
                &format!("Authorization: Bearer {}", field.placeholder("TOKEN"))
            )
            .starts_with("HTTP/1.1 200")
    );
    assert!(
        field
            .get(
                "query.test",
                &format!("/x?a=1&key={}", field.placeholder("QUERY_KEY")),
                ""
            )
            .starts_with("HTTP/1.1 200")
    );
    // A client that waits to be asked, as git does.
    assert!(field.get("basic.test", "/", "").starts_with("HTTP/1.1 200"));
    let seen = field.secure.requests().join("\n");
    insta::assert_snapshot!(seen, @r"
    GET /v2/chat
      host: llm.test
      x-api-key: sk-live/0123456789+abcdef=
      accept-encoding: identity
    GET /
      host: bearer.test
      authorization: Bearer sk-live/0123456789+abcdef=
      accept-encoding: identity
    GET /x?a=1&key=q%26k%3D0123456789
      host: query.test
      accept-encoding: identity
    GET /
      host: basic.test
      authorization: Basic cm9ib3Q6cDRzc3cwcmQtb2YtdGhlLXJvYm90
      accept-encoding: identity
    ");
    assert!(field.world.notices().contains("[egress.basic] gave its secret to a request to basic.test:443/ that did not show the placeholder"));
    field.quiet();
}

#[test]
fn wrong_placeholders_are_refused() {
    let field = field();
    let (llm, token) = (field.placeholder("LLM_KEY"), field.placeholder("TOKEN"));
    let changed = format!("{}0", &llm[..llm.len() - 1]);
    for (host, path, header, error) in [
        (
            "llm.test",
            "/v2/chat",
            String::new(),
            "its placeholder is missing from the header `x-api-key`",
        ),
        (
            "llm.test",
            "/v2/chat",
            format!("x-api-key: {changed}x"),
            "is not its placeholder",
        ),
        (
            "llm.test",
            "/v2/chat",
            format!("x-api-key: {token}"),
            "is not its placeholder",
        ),
        (
            "llm.test",
            "/x/..//v2",
            format!("x-api-key: {llm}"),
            "the placeholder of LLM_KEY stands in the header",
        ),
        (
            "llm.test",
            "/v2/chat",
            format!("Authorization: Bearer {llm}"),
            "its placeholder is missing",
        ),
        (
            "llm.test",
            "/v2/chat",
            format!("x-api-key: {llm}\r\nx-other: {token}"),
            "the placeholder of TOKEN stands in the header `x-other`",
        ),
        (
            "llm.test",
            "/v2/chat",
            format!("x-api-key: {llm}\r\nx-api-key: {llm}"),
            "is not its placeholder",
        ),
        (
            "llm.test",
            "/v2/chat",
            format!("x-api-key: {llm}\r\nConnection: x-api-key"),
            "its placeholder is missing",
        ),
        (
            "llm.test",
            "/v3/chat",
            format!("x-api-key: {llm}"),
            "the placeholder of LLM_KEY stands in the header `x-api-key`",
        ),
        (
            "else.test",
            "/",
            format!("x-api-key: {llm}"),
            "the placeholder of LLM_KEY stands in the header `x-api-key`",
        ),
        (
            "else.test",
            "/?k=LLM",
            String::new(),
            "the placeholder of LLM_KEY stands in the query",
        ),
        (
            "else.test",
            "/LLM",
            String::new(),
            "the placeholder of LLM_KEY stands in the path",
        ),
    ] {
        let escaped: String = llm.bytes().map(|b| format!("%{b:02x}")).collect();
        let said = field.get(host, &path.replace("LLM", &escaped), &header);
        assert!(
            said.starts_with("HTTP/1.1 403") && said.contains("x-strands-box-egress: refused"),
            "{host}{path} {header}: {said}"
        );
        assert!(
            said.contains("blocked by egress control") && said.contains(error),
            "{host}{path} {header}: {said}"
        );
        assert!(!said.contains(&llm), "{said}");
    }
    assert!(field.secure.requests().is_empty());
    assert!(!field.world.log().contains("http:request"));
    assert!(
        field
            .world
            .notices()
            .contains("the placeholder of LLM_KEY was sent to else.test:443 in the query"),
        "{}",
        field.world.notices()
    );
    assert!(!field.world.notices().contains(&llm));
    field.quiet();
}

#[test]
fn secrets_do_not_travel_in_the_open() {
    let field = field();
    let llm = field.placeholder("LLM_KEY");
    for path in ["/v2", "/v2/x", "/%762/x", "/a/../v2"] {
        let said = field.world.talk(format!("GET http://llm.test{path} HTTP/1.1\r\nHost: llm.test\r\nX-Api-Key: {llm}\r\nConnection: close\r\n\r\n").as_bytes());
        assert!(
            said.starts_with("HTTP/1.1 403")
                && said.contains("credential not permitted on a plaintext request"),
            "{path}: {said}"
        );
    }
    assert!(field.plain.requests().is_empty());
}

#[test]
fn a_route_is_for_those_it_names() {
    let field = field_of(
        Caller::McpServer("notes".into()),
        heads(|_| reply(200, &[], "ok")),
    );
    let said = field.get("basic.test", "/", "");
    assert!(
        said.starts_with("HTTP/1.1 403") && said.contains("[egress.basic] is not for mcp.notes"),
        "{said}"
    );
    assert!(field.secure.requests().is_empty());
    assert!(
        !field
            .world
            .gateway
            .placeholders_for(&Caller::McpServer("notes".into()))
            .contains_key("PAIR")
    );
    assert!(
        field
            .world
            .gateway
            .placeholders_for(&Caller::Tool("git".into()))
            .contains_key("PAIR")
    );
}

#[test]
fn a_placeholder_in_a_body_is_noted_and_a_secret_stopped() {
    let field = field();
    let llm = field.placeholder("LLM_KEY");
    let post = |body: &str| {
        field.world.secure("else.test:443", &format!("POST / HTTP/1.1\r\nHost: else.test\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()))
    };
    assert!(post(&format!("my environment: {llm}")).starts_with("HTTP/1.1 200"));
    assert!(
        field
            .world
            .notices()
            .contains("the placeholder of LLM_KEY was sent to else.test:443/ in the body"),
        "{}",
        field.world.notices()
    );
    let said = post(&format!("found in a file: {SECRET}"));
    assert!(
        said.starts_with("HTTP/1.1 403") && said.contains("a real secret stands in the body"),
        "{said}"
    );
    let said = field.get(
        "else.test",
        &format!("/?x={}", PAIR.replace(':', "%3A")),
        "",
    );
    assert!(
        said.starts_with("HTTP/1.1 403") && said.contains("a real secret stands in the query"),
        "{said}"
    );
    // Undeclared length, across chunks.
    let (a, b) = SECRET.split_at(9);
    let chunked = format!(
        "POST / HTTP/1.1\r\nHost: else.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n{:x}\r\n{a}\r\n{:x}\r\n{b}\r\n0\r\n\r\n",
        a.len(),
        b.len()
    );
    let said = field.world.secure("else.test:443", &chunked);
    assert!(said.starts_with("HTTP/1.1 403"), "{said}");
    field.quiet();
}

#[test]
fn replies_are_scrubbed_across_chunks() {
    let service: stand_in::Service = Arc::new(|request| {
        let key = request
            .headers()
            .get("x-api-key")
            .map(|value| value.to_str().unwrap().to_owned())
            .unwrap_or_default();
        Box::pin(async move {
            use base64::Engine;
            let encoded = base64::engine::general_purpose::STANDARD.encode(format!("user:{key}"));
            let text = format!(
                "a {key} b {key}{key} c {encoded} d {} e",
                key.replace('/', "%2F")
                    .replace('+', "%2B")
                    .replace('=', "%3D")
            );
            let (sender, receiver) = tokio::sync::mpsc::channel(1);
            tokio::spawn(async move {
                for piece in text.as_bytes().chunks(7) {
                    let _ = sender
                        .send(Ok(http_body::Frame::data(bytes::Bytes::copy_from_slice(
                            piece,
                        ))))
                        .await;
                    tokio::task::yield_now().await;
                }
            });
            let mut answer: Reply = http::Response::new(
                StreamBody::new(crate::support::Received(receiver)).boxed_unsync(),
            );
            answer.headers_mut().insert("x-echo", key.parse().unwrap());
            answer.headers_mut().insert(
                "location",
                format!("https://else.test/?k={key}").parse().unwrap(),
            );
            answer
        })
    });
    let field = field_of(Caller::Agent, service);
    let said = field.get(
        "llm.test",
        "/v2",
        &format!("x-api-key: {}", field.placeholder("LLM_KEY")),
    );
    assert!(!said.contains("sk-live"), "{said}");
    assert!(
        said.contains("x-echo: [REDACTED]")
            && said.contains("location: https://else.test/?k=[REDACTED]"),
        "{said}"
    );
    let body: String = said
        .split("\r\n\r\n")
        .nth(1)
        .unwrap()
        .split("\r\n")
        .skip(1)
        .step_by(2)
        .collect();
    assert!(
        body.starts_with("a [REDACTED] b [REDACTED][REDACTED] c dXNlcj"),
        "{body}"
    );
    assert!(body.ends_with(" d [REDACTED] e"), "{body}");
    assert!(
        body.contains("[REDACTED]= d")
            || body.contains("[REDACTED]== d")
            || body.contains("[REDACTED] d")
            || body.len() < 90,
        "{body}"
    );
    field.quiet();
}

#[test]
fn a_compressed_reply_to_a_secret_is_kept_back() {
    let field = field_of(
        Caller::Agent,
        heads(|_| reply(200, &[("content-encoding", "gzip")], "whatever")),
    );
    let said = field.get(
        "llm.test",
        "/v2",
        &format!("x-api-key: {}", field.placeholder("LLM_KEY")),
    );
    assert!(
        said.starts_with("HTTP/1.1 403")
            && said.contains("response blocked by egress control")
            && !said.contains("whatever"),
        "{said}"
    );
    // It did happen.
    assert!(field.world.log().contains("-> Status(200)"));
    assert!(field.get("else.test", "/", "").contains("whatever"));
}

#[test]
fn no_secret_no_start() {
    let config = box_gateway::GatewayConfig {
        egress: toml::from_str::<std::collections::BTreeMap<String, box_gateway::Route>>(
            "[a]\ndestinations=['a.test']\nsecret={ref='env://NOT_THERE_AT_ALL'}",
        )
        .unwrap(),
        ..Default::default()
    };
    let gate = Arc::new(crate::support::Scripted {
        log: Arc::default(),
        actions: Default::default(),
        deny: Arc::new(|_| false),
        fault: false,
    });
    let secrets = Arc::new(box_gateway::HostSecrets::new(std::path::Path::new(
        "/nonexistent",
    )));
    let edges = box_gateway::Edges::system(secrets, Arc::new(crate::support::Notices::default()));
    let fault = box_gateway::Gateway::start(&config, gate, edges)
        .err()
        .unwrap();
    insta::assert_snapshot!(fault, @"credential setup failed: [egress.a] credential variable NOT_THERE_AT_ALL is not set, or holds only whitespace");
}

#[test]
fn events_are_not_held_back_by_scrubbing() {
    let (go, may) = tokio::sync::oneshot::channel::<()>();
    let may = Arc::new(std::sync::Mutex::new(Some(may)));
    let service: stand_in::Service = Arc::new(move |_| {
        let may = may.lock().unwrap().take();
        Box::pin(async move {
            let (sender, receiver) = tokio::sync::mpsc::channel(1);
            tokio::spawn(async move {
                let _ = sender
                    .send(Ok(http_body::Frame::data(bytes::Bytes::from_static(
                        b"data: one\n\n",
                    ))))
                    .await;
                if let Some(may) = may {
                    let _ = may.await;
                }
                let _ = sender
                    .send(Ok(http_body::Frame::data(bytes::Bytes::from_static(
                        b"data: two\n\n",
                    ))))
                    .await;
            });
            let answer: Reply = http::Response::new(
                StreamBody::new(crate::support::Received(receiver)).boxed_unsync(),
            );
            answer
        })
    });
    let field = field_of(Caller::Agent, service);
    let mut stream = field.world.tunnel("llm.test:443");
    let key = field.placeholder("LLM_KEY");
    stream.write_all(format!("GET /v2 HTTP/1.1\r\nHost: llm.test\r\nx-api-key: {key}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
    head(&mut stream);
    let mut event = [0; 16];
    stream.read_exact(&mut event).unwrap();
    assert!(
        String::from_utf8_lossy(&event).contains("data: one"),
        "{event:?}"
    );
    go.send(()).unwrap();
    assert!(rest(&mut stream).contains("data: two"));
}
