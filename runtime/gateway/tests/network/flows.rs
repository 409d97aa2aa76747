//! Requests through the gateway: what is asked, in which order, and what the client gets.

use crate::support::{Setup, World, head, rest, steady};
use box_authority::action::Action;
use box_authority::gate::Caller;
use box_gateway::Fetch;
use http_body_util::{BodyExt, StreamBody};
use stand_in::{Identity, Reply, Upstream, echo, heads, reply};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex, mpsc};

fn world(setup: Setup) -> (World, Upstream, Upstream) {
    let identity = Identity::of(&["api.test", "other.test", "93.184.216.34"]);
    let secure = Upstream::start(Some(&identity), echo());
    let plain = Upstream::start(None, echo());
    let ports = vec![(443, secure.port), (8443, secure.port), (80, plain.port)];
    (
        Setup {
            roots: vec![identity.root_pem],
            ports,
            ..setup
        }
        .start(),
        secure,
        plain,
    )
}

const GET: &str = "GET /a/../b%61?q=1 HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n";

#[test]
fn https_is_decided_step_by_step() {
    let (world, secure, _) = world(Setup::default());
    let reply = world.secure("api.test:443", GET);
    insta::assert_snapshot!(steady(&reply), @r"
    HTTP/1.1 200 OK
    x-upstream: yes
    connection: close

    GET /ba?q=1 0
    ");
    insta::assert_snapshot!(world.log(), @r"
    allow net:connect api.test:443
    allow net:connect api.test:443 93.184.216.34
      net:connect api.test:443 93.184.216.34 -> Done
      net:connect api.test:443 -> Failed
    allow http:request GET api.test:443/ba 0 intercepted
      http:request GET api.test:443/ba 0 intercepted -> Status(200)
    ");
    assert_eq!(secure.requests(), ["GET /ba?q=1\n  host: api.test"]);
    assert_eq!(world.gate.actions.lock().unwrap()[0].0, Caller::Agent);
}

#[test]
fn plain_http_too() {
    let (world, _, plain) = world(Setup {
        caller: Caller::Tool("git".into()),
        ..Setup::default()
    });
    let reply = world.talk(b"POST http://API.test./x HTTP/1.1\r\nHost: api.test\r\nProxy-Authorization: secret\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc");
    assert!(reply.ends_with("POST /x 3\n"), "{reply}");
    insta::assert_snapshot!(world.log(), @r"
    allow net:connect api.test:80
    allow net:connect api.test:80 93.184.216.34
      net:connect api.test:80 93.184.216.34 -> Done
      net:connect api.test:80 -> Failed
    allow http:request POST api.test:80/x 3
      http:request POST api.test:80/x 3 -> Status(200)
    ");
    assert_eq!(
        plain.requests(),
        ["POST /x\n  host: api.test\n  content-length: 3"]
    );
    assert_eq!(
        world.gate.actions.lock().unwrap()[0].0,
        Caller::Tool("git".into())
    );
}

#[test]
fn one_tunnel_many_requests() {
    let (world, secure, _) = world(Setup::default());
    let mut stream = world.tunnel("api.test:443");
    for path in ["/1", "/2", "/3"] {
        stream
            .write_all(format!("GET {path} HTTP/1.1\r\nHost: api.test\r\n\r\n").as_bytes())
            .unwrap();
        let said = head(&mut stream);
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
        let mut body = vec![0; format!("GET {path} 0\n").len()];
        stream.read_exact(&mut body).unwrap();
    }
    assert_eq!(world.cables.dialled.lock().unwrap().len(), 1);
    assert_eq!(world.log().matches("allow http:request").count(), 3);
    assert_eq!(secure.requests().len(), 3);
}

#[test]
fn pipelined_requests_are_each_decided() {
    let deny = Arc::new(
        |action: &Action| matches!(action, Action::HttpRequest { path, .. } if path == "/admin"),
    );
    let (world, secure, _) = world(Setup {
        deny,
        ..Setup::default()
    });
    let both = "GET /a HTTP/1.1\r\nHost: api.test\r\n\r\nGET /%61dmin HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n";
    let reply = world.secure("api.test:443", both);
    assert!(
        reply.contains("HTTP/1.1 200") && reply.contains("HTTP/1.1 403"),
        "{reply}"
    );
    assert_eq!(secure.requests().len(), 1);
}

#[test]
fn a_refused_host_is_never_looked_up() {
    let deny = Arc::new(|action: &Action| matches!(action, Action::NetConnect { ip: None, .. }));
    let (world, _secure, _plain) = world(Setup {
        deny,
        ..Setup::default()
    });
    let said = world.connect("api.test:443").unwrap_err();
    insta::assert_snapshot!(steady(&said), @r#"
    HTTP/1.1 403 Forbidden
    content-type: application/json
    cache-control: no-store
    x-strands-box-egress: refused
    x-box-action: net:connect
    x-box-target: api.test:443
    x-box-rule: sealed
    x-box-description: Nothing leaves after the payroll was read.
    x-box-witness: fs:read of ~/payroll.csv at 10:02:11
    connection: close

    {
      "error": "denied by policy",
      "message": "net:connect denied: policy denied this operation on 'api.test:443' [policy: sealed]: Nothing leaves after the payroll was read.\n  rule: sealed (policy.dw:3)\n  fs:read of ~/payroll.csv at 10:02:11",
      "action": "net:connect",
      "target": "api.test:443",
      "rule": "sealed",
      "place": "policy.dw:3",
      "description": "Nothing leaves after the payroll was read.",
      "witness": [
        "fs:read of ~/payroll.csv at 10:02:11"
      ],
      "help": null
    }
    "#);
    assert!(world.names.asked.lock().unwrap().is_empty());
    assert!(world.cables.dialled.lock().unwrap().is_empty());
}

#[test]
fn a_refused_address_is_never_dialled() {
    let deny = Arc::new(
        |action: &Action| matches!(action, Action::NetConnect { ip: Some(ip), .. } if ip == "9.9.9.9"),
    );
    let (world, _secure, _plain) = world(Setup {
        deny,
        ..Setup::default()
    });
    world.names.answers.lock().unwrap().insert(
        "api.test".into(),
        vec![
            "8.8.8.8".parse().unwrap(),
            "9.9.9.9".parse().unwrap(),
            "7.7.7.7".parse().unwrap(),
        ],
    );
    world
        .cables
        .dead
        .lock()
        .unwrap()
        .push("8.8.8.8".parse().unwrap());
    assert!(
        world
            .connect("api.test:443")
            .unwrap_err()
            .starts_with("HTTP/1.1 403")
    );
    insta::assert_snapshot!(world.log(), @r"
    allow net:connect api.test:443
    allow net:connect api.test:443 8.8.8.8
      net:connect api.test:443 8.8.8.8 -> Failed
    deny net:connect api.test:443 9.9.9.9
      net:connect api.test:443 -> Failed
    ");
    assert_eq!(
        *world.cables.dialled.lock().unwrap(),
        ["8.8.8.8:443".parse().unwrap()]
    );
}

#[test]
fn a_refused_request_reaches_no_server() {
    let deny = Arc::new(|action: &Action| matches!(action, Action::HttpRequest { .. }));
    let (world, secure, _) = world(Setup {
        deny,
        ..Setup::default()
    });
    let said = world.secure("api.test:443", GET);
    assert!(said.starts_with("HTTP/1.1 403"), "{said}");
    assert!(
        said.contains("x-box-rule: sealed") && said.contains("\"http:request denied"),
        "{said}"
    );
    assert!(secure.requests().is_empty());
}

#[test]
fn a_broken_authority_is_no_refusal() {
    let (world, _secure, _plain) = world(Setup {
        fault: true,
        ..Setup::default()
    });
    let said = world.connect("api.test:443").unwrap_err();
    assert!(said.starts_with("HTTP/1.1 502"), "{said}");
    assert!(
        said.contains("interceptor unavailable") && !said.contains("x-strands-box-egress"),
        "{said}"
    );
}

#[test]
fn faults_on_the_way_are_502() {
    let strangers = Identity::of(&["api.test"]);
    let wrong = Identity::of(&["else.test"]);
    let (stranger, misnamed) = (
        Upstream::start(Some(&strangers), echo()),
        Upstream::start(Some(&wrong), echo()),
    );
    let broken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = broken.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in broken.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
        }
    });
    let ports = vec![(443, stranger.port), (444, misnamed.port), (81, port)];
    let world = Setup {
        roots: vec![wrong.root_pem.clone()],
        ports,
        ..Setup::default()
    }
    .start();

    let untrusted = world.secure("api.test:443", GET);
    assert!(
        untrusted.starts_with("HTTP/1.1 502") && untrusted.contains("invalid peer certificate"),
        "{untrusted}"
    );
    let misnamed = world.secure("api.test:444", &GET.replace("api.test", "api.test:444"));
    assert!(
        misnamed.starts_with("HTTP/1.1 502") && misnamed.contains("not valid for name"),
        "{misnamed}"
    );
    assert!(stranger.requests().is_empty());
    let silent = world.talk(
        b"GET http://api.test:81/ HTTP/1.1\r\nHost: api.test:81\r\nConnection: close\r\n\r\n",
    );
    assert!(silent.starts_with("HTTP/1.1 502"), "{silent}");
    let nobody = world.talk(
        b"GET http://api.test:82/ HTTP/1.1\r\nHost: api.test:82\r\nConnection: close\r\n\r\n",
    );
    assert!(
        nobody.starts_with("HTTP/1.1 502") && nobody.contains("no address answers"),
        "{nobody}"
    );
    for said in [&untrusted, &misnamed, &silent, &nobody] {
        assert!(!said.contains("x-strands-box-egress"), "{said}");
    }
    // Never sent is certain; sent and unanswered is not.
    world.until("the outcomes", |world| {
        world.log().contains("api.test:81/ 0 -> dropped")
    });
    assert!(
        world
            .log()
            .contains("GET api.test:443/ba 0 intercepted -> Failed"),
        "{}",
        world.log()
    );
}

#[test]
fn redirects_are_the_clients_to_follow() {
    let plain = Upstream::start(
        None,
        heads(|_| reply(302, &[("location", "http://169.254.169.254/latest")], "")),
    );
    let world = Setup {
        ports: vec![(80, plain.port)],
        ..Setup::default()
    }
    .start();
    let said =
        world.talk(b"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n");
    assert!(
        said.starts_with("HTTP/1.1 302")
            && said.contains("location: http://169.254.169.254/latest"),
        "{said}"
    );
    assert_eq!(world.cables.dialled.lock().unwrap().len(), 1);
    let followed = world.talk(b"GET http://169.254.169.254/latest HTTP/1.1\r\nHost: 169.254.169.254\r\nConnection: close\r\n\r\n");
    assert!(followed.starts_with("HTTP/1.1 403"), "{followed}");
    assert_eq!(world.cables.dialled.lock().unwrap().len(), 1);
}

const BIG: usize = 60 * 1024 * 1024;

/// Tells when a body's first bytes arrive, and counts the whole.
fn counting() -> (stand_in::Service, mpsc::Receiver<()>) {
    let (first, came) = mpsc::channel();
    let first = Arc::new(Mutex::new(first));
    let service: stand_in::Service = Arc::new(move |request| {
        let first = Arc::clone(&first);
        Box::pin(async move {
            let mut body = request.into_body();
            let mut total = 0;
            while let Some(Ok(frame)) = body.frame().await {
                if total == 0 {
                    let _ = first.lock().unwrap().send(());
                }
                total += frame.into_data().map_or(0, |data| data.len());
            }
            reply(200, &[], total.to_string())
        })
    });
    (service, came)
}

#[test]
fn long_uploads_stream() {
    for chunked in [false, true] {
        let (service, came) = counting();
        let plain = Upstream::start(None, service);
        let world = Setup {
            ports: vec![(80, plain.port)],
            ..Setup::default()
        }
        .start();
        let mut stream = world.raw();
        let length = if chunked {
            "Transfer-Encoding: chunked".to_owned()
        } else {
            format!("Content-Length: {BIG}")
        };
        stream.write_all(format!("PUT http://api.test/ HTTP/1.1\r\nHost: api.test\r\n{length}\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
        let piece = vec![b'x'; 1024 * 1024];
        let mut send = |bytes: &[u8]| {
            if chunked {
                stream
                    .write_all(format!("{:x}\r\n", bytes.len()).as_bytes())
                    .unwrap();
            }
            stream.write_all(bytes).unwrap();
            if chunked {
                stream.write_all(b"\r\n").unwrap();
            }
        };
        // The server has the beginning before the client has sent the rest.
        send(&piece);
        send(&piece);
        came.recv_timeout(std::time::Duration::from_secs(30))
            .expect("the first bytes");
        for _ in 2..60 {
            send(&piece);
        }
        if chunked {
            stream.write_all(b"0\r\n\r\n").unwrap();
        }
        let said = rest(&mut stream);
        assert!(said.ends_with(&BIG.to_string()), "{said}");
        let judged = if chunked {
            i64::MAX.to_string()
        } else {
            BIG.to_string()
        };
        assert!(
            world
                .log()
                .contains(&format!("PUT api.test:80/ {judged}\n")),
            "{}",
            world.log()
        );
    }
}

#[test]
fn long_replies_stream() {
    let (go, may) = tokio::sync::oneshot::channel::<()>();
    let may = Arc::new(Mutex::new(Some(may)));
    let service: stand_in::Service = Arc::new(move |_| {
        let may = may.lock().unwrap().take();
        Box::pin(async move {
            let first = futures(may);
            let reply: Reply = http::Response::new(StreamBody::new(first).boxed_unsync());
            reply
        })
    });
    let plain = Upstream::start(None, service);
    let world = Setup {
        ports: vec![(80, plain.port)],
        ..Setup::default()
    }
    .start();
    let mut stream = world.raw();
    stream
        .write_all(b"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n")
        .unwrap();
    head(&mut stream);
    let mut event = [0; 14];
    stream.read_exact(&mut event).unwrap();
    assert!(
        String::from_utf8_lossy(&event).contains("data: 1"),
        "{event:?}"
    );
    // Only now does the server send the rest.
    go.send(()).unwrap();
    let said = rest(&mut stream);
    assert!(said.len() > BIG, "{}", said.len());
}

/// One event; then, when told, sixty megabytes.
fn futures(
    may: Option<tokio::sync::oneshot::Receiver<()>>,
) -> impl futures_core::Stream<Item = Result<http_body::Frame<bytes::Bytes>, std::convert::Infallible>>
+ Send {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        let frame = |data: bytes::Bytes| Ok(http_body::Frame::data(data));
        let _ = sender.send(frame("data: 1\n\n".into())).await;
        if let Some(may) = may {
            let _ = may.await;
        }
        let piece = bytes::Bytes::from(vec![b'y'; 1024 * 1024]);
        for _ in 0..60 {
            let _ = sender.send(frame(piece.clone())).await;
        }
    });
    crate::support::Received(receiver)
}

#[test]
fn the_trusted_process_fetches_through_the_same_checks() {
    let deny = Arc::new(
        |action: &Action| matches!(action, Action::HttpRequest { path, .. } if path == "/no"),
    );
    let (world, _secure, _plain) = world(Setup {
        deny,
        ..Setup::default()
    });
    let fetch = |url: &str, body: &[u8]| {
        let wanted = Fetch {
            method: http::Method::POST,
            url: url.into(),
            headers: vec![("x-a".into(), "b".into())],
            body: body.to_vec(),
            longest_reply: 1 << 20,
        };
        world.gateway.fetch(&Caller::Agent, wanted)
    };
    let good = fetch("https://api.test/yes#part", b"1234").unwrap();
    let body = String::from_utf8_lossy(&good.body).into_owned();
    assert_eq!((good.status, body.as_str()), (200, "POST /yes 4\n"));
    assert_eq!(fetch("http://api.test/yes", b"").unwrap().status, 200);
    // A refusal is the reply that a client of the proxy has.
    let refused = |url: &str| {
        let reply = fetch(url, b"").unwrap();
        let header = |name: &str| {
            let mut headers = reply.headers.iter();
            let found = headers.find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let told: serde_json::Value = serde_json::from_slice(&reply.body).unwrap();
        format!(
            "{} {} {} rule={} {}",
            reply.status,
            header("x-strands-box-egress"),
            header("content-type"),
            told["rule"],
            told["message"]
        )
    };
    let told = [
        "https://api.test/no",
        "https://169.254.169.254/",
        "http://localhost/",
    ]
    .map(refused);
    insta::assert_snapshot!(told.join("\n"));
    let fault = |url: &str| fetch(url, b"").unwrap_err();
    let told = [
        "https://api.test:9/",
        "ftp://api.test/",
        "https://2130706433/",
        "https://u:p@api.test/",
    ]
    .map(|url| fault(url).to_string());
    insta::assert_snapshot!(told.join("\n"), @r#"
    no address answers: connection refused
    "ftp://api.test/" is no http:// or https:// URL
    the URL's authority is refused: the host is an unusual spelling of an IPv4 address; write four decimal numbers
    the URL's authority is refused: it holds user information before an `@`; send credentials in a header
    "#);
    assert_eq!(world.cables.dialled.lock().unwrap().len(), 4);
    assert!(
        world
            .log()
            .contains("allow http:request POST api.test:443/yes 4 intercepted"),
        "{}",
        world.log()
    );
}

#[test]
fn a_head_keeps_the_length_it_was_told() {
    let plain = Upstream::start(
        None,
        heads(|_| reply(200, &[("content-length", "12345")], "")),
    );
    let world = Setup {
        ports: vec![(80, plain.port)],
        ..Setup::default()
    }
    .start();
    let said = world
        .talk(b"HEAD http://api.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n");
    assert!(
        said.starts_with("HTTP/1.1 200") && said.contains("content-length: 12345"),
        "{said}"
    );
    assert!(said.ends_with("\r\n\r\n"), "{said}");
}

#[test]
fn a_closed_idle_connection_is_opened_again_and_decided_again() {
    let plain = Upstream::start(None, heads(|_| reply(200, &[("connection", "close")], "")));
    let world = Setup {
        ports: vec![(80, plain.port)],
        ..Setup::default()
    }
    .start();
    let mut stream = world.raw();
    for _ in 0..2 {
        stream
            .write_all(b"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")
            .unwrap();
        assert!(head(&mut stream).starts_with("HTTP/1.1 200"));
    }
    assert_eq!(world.cables.dialled.lock().unwrap().len(), 2);
    assert_eq!(
        world
            .log()
            .matches("allow net:connect api.test:80 93.184.216.34")
            .count(),
        2
    );
}

#[test]
fn an_ended_listener_serves_nobody() {
    let world = Setup::default().start();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = world.gateway.serve(listener, Caller::Agent).unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert!(head(&mut stream).starts_with("HTTP/1.1 400"));
    serving.end();
    world.until("a closed listener", |_| {
        std::net::TcpStream::connect(address).is_err()
    });
}

#[test]
fn an_answer_with_a_thousand_addresses_is_cut() {
    let world = Setup::default().start();
    let many = (0..1000_u16).map(|n| format!("8.8.{}.{}", n / 200, n % 200).parse().unwrap());
    let answer = std::iter::once("8.8.0.0".parse().unwrap()).chain(many);
    world
        .names
        .answers
        .lock()
        .unwrap()
        .insert("api.test".into(), answer.collect());
    let said = world.connect("api.test:443").unwrap_err();
    assert!(said.starts_with("HTTP/1.1 502"), "{said}");
    let mut dialled = world.cables.dialled.lock().unwrap().clone();
    assert_eq!(dialled.len(), 16);
    dialled.dedup();
    assert_eq!(dialled.len(), 16);
}
