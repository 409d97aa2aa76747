//! Hostile clients: nothing they try reaches a server that was not judged.

use crate::support::{Setup, World, head, rest};
use rustls::pki_types::ServerName;
use stand_in::{Identity, Upstream, echo};
use std::io::Write;

struct Field {
    world: World,
    secure: Upstream,
    plain: Upstream,
}

fn field(toml: &'static str) -> Field {
    let identity = Identity::of(&["api.test", "10.0.0.7", "build.corp"]);
    let secure = Upstream::start(Some(&identity), echo());
    let plain = Upstream::start(None, echo());
    let ports = vec![(443, secure.port), (80, plain.port), (8443, secure.port)];
    Field {
        world: Setup {
            toml,
            roots: vec![identity.root_pem],
            ports,
            ..Setup::default()
        }
        .start(),
        secure,
        plain,
    }
}

impl Field {
    fn untouched(&self) -> bool {
        self.secure.requests().is_empty() && self.plain.requests().is_empty()
    }
}

#[test]
fn the_inner_host_must_be_the_tunnels() {
    let field = field("");
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n", "403"),
        ("GET / HTTP/1.1\r\nHost: api.test:8443\r\n\r\n", "403"),
        ("GET / HTTP/1.1\r\nHost: api.test@evil.test\r\n\r\n", "403"),
        (
            "GET https://evil.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n",
            "403",
        ),
        (
            "GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n",
            "403",
        ),
        (
            "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\n",
            "403",
        ),
        (
            "GET / HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            "403",
        ),
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("OPTIONS * HTTP/1.1\r\nHost: api.test\r\n\r\n", "400"),
        ("GET /%zz HTTP/1.1\r\nHost: api.test\r\n\r\n", "400"),
    ] {
        let mut stream = field.world.tunnel("api.test:443");
        stream.write_all(request.as_bytes()).unwrap();
        let said = head(&mut stream);
        assert!(
            said.starts_with(&format!("HTTP/1.1 {status}")),
            "{request:?}: {said}"
        );
    }
    assert!(field.untouched());
    assert_eq!(field.world.log().matches("http:request").count(), 0);
}

#[test]
fn the_server_name_must_be_the_tunnels() {
    let field = field("");
    for (name, sni) in [("evil.test", true), ("api.test", false)] {
        let stream = field.world.connect("api.test:443").unwrap();
        let mut stream = field
            .world
            .tls(stream, ServerName::try_from(name).unwrap(), sni);
        let sent =
            stream.write_all(b"GET / HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n");
        assert!(sent.is_err() || rest(&mut stream).is_empty(), "{name}");
    }
    field
        .world
        .until("two notices", |world| world.notices().lines().count() == 2);
    assert!(
        field
            .world
            .notices()
            .contains("no TLS came about inside the tunnel to api.test:443"),
        "{}",
        field.world.notices()
    );
    // Not TLS at all.
    let mut stream = field.world.connect("api.test:443").unwrap();
    stream
        .write_all(b"SSH-2.0-OpenSSH_9.9\r\nGET / HTTP/1.1\r\n\r\n")
        .unwrap();
    assert!(!rest(&mut stream).contains("HTTP"));
    assert!(field.untouched());
}

#[test]
fn requests_outside_a_tunnel_name_their_server() {
    let field = field("");
    for (request, status) in [
        ("GET /x HTTP/1.1\r\nHost: api.test\r\n\r\n", "400"),
        (
            "GET https://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n",
            "403",
        ),
        (
            "GET http://api.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
            "403",
        ),
        (
            "GET http://u:p@api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n",
            "403",
        ),
        (
            "GET http://2130706433/ HTTP/1.1\r\nHost: 2130706433\r\n\r\n",
            "403",
        ),
        ("CONNECT api.test HTTP/1.1\r\n\r\n", "40"),
        ("CONNECT api.test:0 HTTP/1.1\r\n\r\n", "40"),
        ("CONNECT api.test:65536 HTTP/1.1\r\n\r\n", "40"),
        ("CONNECT 0x7f.1:443 HTTP/1.1\r\n\r\n", "403"),
        (
            "CONNECT api.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n",
            "403",
        ),
        (
            "GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
            "403",
        ),
    ] {
        let mut stream = field.world.raw();
        stream.write_all(request.as_bytes()).unwrap();
        let said = head(&mut stream);
        assert!(
            said.starts_with(&format!("HTTP/1.1 {status}")),
            "{request:?}: {said}"
        );
    }
    assert!(field.untouched());
}

#[test]
fn smuggling_ends_the_connection() {
    let field = field("");
    let hidden = "GET http://api.test/hidden HTTP/1.1\r\nHost: api.test\r\n\r\n";
    for headers in [
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n",
        "Content-Length: 0\r\nContent-Length: 58\r\n",
        "Content-Length: 0\r\nContent-Length: 0\r\n",
        "Content-Length: +0\r\n",
        "Content-Length: 0,58\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "X: a\rContent-Length: 58\r\n",
        "X: a\nContent-Length: 58\r\n",
        "X: a\r\n Content-Length: 58\r\n",
        "X: a\0b\r\n",
        "X\t: a\r\n",
        "Host: api.test\r\n",
    ] {
        let request =
            format!("POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\n{headers}\r\n{hidden}");
        let said = field.world.talk(request.as_bytes());
        assert!(said.starts_with("HTTP/1.1 400"), "{headers:?}: {said}");
        assert_eq!(
            said.matches("cache-control:").count(),
            1,
            "{headers:?}: {said}"
        );
        let inner = format!("POST / HTTP/1.1\r\nHost: api.test\r\n{headers}\r\n{hidden}");
        let mut stream = field.world.tunnel("api.test:443");
        stream.write_all(inner.as_bytes()).unwrap();
        let said = head(&mut stream);
        assert!(said.starts_with("HTTP/1.1 400"), "{headers:?}: {said}");
    }
    // A chunk that lies breaks the request off; what hides behind it is nobody's request.
    let chunk = format!(
        "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n{hidden}"
    );
    let said = field.world.talk(chunk.as_bytes());
    assert!(!said.contains("HTTP/1.1 200"), "{said}");
    assert!(
        !field
            .plain
            .requests()
            .iter()
            .any(|line| line.contains("hidden")),
        "{:?}",
        field.plain.requests()
    );
    assert!(field.secure.requests().is_empty());
}

#[test]
fn a_long_head_is_refused() {
    let field = field("");
    let said = field.world.talk(
        format!(
            "GET http://api.test/{} HTTP/1.1\r\nHost: api.test\r\n\r\n",
            "a".repeat(70_000)
        )
        .as_bytes(),
    );
    assert!(
        said.starts_with("HTTP/1.1 400") && said.contains("longer than 64 KiB"),
        "{said}"
    );
    assert!(field.untouched());
}

#[test]
fn reserved_addresses_are_out_of_reach() {
    let field = field("");
    for host in [
        "169.254.169.254",
        "127.0.0.1",
        "10.0.0.7",
        "192.168.1.1",
        "172.16.0.1",
        "100.100.100.200",
        "0.0.0.0",
        "224.0.0.1",
        "[::1]",
        "[::]",
        "[::ffff:169.254.169.254]",
        "[::169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::a9fe:a9fe]",
        "[2002:a9fe:a9fe::1]",
        "[2001:0:808:808::5601:5601]",
        "[2606::5efe:a9fe:a9fe]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[fc00::1]",
        "localhost",
        "a.localhost",
        "LOCALHOST.",
        "metadata.google.internal",
        "metadata.azure.internal",
        "instance-data",
    ] {
        let said = field.world.connect(&format!("{host}:443")).expect_err(host);
        assert!(said.starts_with("HTTP/1.1 403"), "{host}: {said}");
        let said = field.world.talk(
            format!(
                "GET http://{host}/latest HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
            )
            .as_bytes(),
        );
        assert!(said.starts_with("HTTP/1.1 403"), "{host}: {said}");
    }
    assert!(field.untouched());
    assert!(field.world.cables.dialled.lock().unwrap().is_empty());
    assert!(field.world.names.asked.lock().unwrap().is_empty());
    let said = field.world.connect("169.254.169.254:80").unwrap_err();
    assert!(
        said.contains("link-local or cloud metadata") && said.contains("allow_private"),
        "{said}"
    );
    assert!(
        field
            .world
            .notices()
            .contains("refused 169.254.169.254:80: link-local or cloud metadata")
    );
}

#[test]
fn a_name_cannot_be_rebound_to_a_reserved_address() {
    let field = field("[network]\nallow_private = ['build.corp:8443']");
    let answers = |name: &str, ips: &[&str]| {
        let ips = ips.iter().map(|ip| ip.parse().unwrap()).collect();
        field
            .world
            .names
            .answers
            .lock()
            .unwrap()
            .insert(name.into(), ips);
    };
    for ips in [
        &["169.254.169.254"][..],
        &["93.184.216.34", "10.0.0.7"],
        &["::ffff:127.0.0.1"],
        &["2002:a00:7::1"],
    ] {
        answers("api.test", ips);
        let said = field.world.connect("api.test:443").unwrap_err();
        assert!(
            said.starts_with("HTTP/1.1 403") && said.contains("address refused"),
            "{ips:?}: {said}"
        );
    }
    // A lifted name may go to a private address, on its own port, but not to the metadata service.
    answers("build.corp", &["10.0.0.7"]);
    assert!(field.world.connect("build.corp:443").is_err());
    assert!(field.world.cables.dialled.lock().unwrap().is_empty());
    let said = field.world.secure(
        "build.corp:8443",
        "GET / HTTP/1.1\r\nHost: build.corp:8443\r\nConnection: close\r\n\r\n",
    );
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    answers("build.corp", &["169.254.169.254"]);
    assert!(
        field
            .world
            .connect("build.corp:8443")
            .unwrap_err()
            .contains("address refused")
    );
    // No address, and too many.
    answers("none.test", &[]);
    assert!(
        field
            .world
            .connect("none.test:443")
            .unwrap_err()
            .starts_with("HTTP/1.1 502")
    );
}

#[test]
fn a_second_lookup_cannot_change_what_was_decided() {
    let field = field("");
    let mut stream = field.world.tunnel("api.test:443");
    field
        .world
        .names
        .answers
        .lock()
        .unwrap()
        .insert("api.test".into(), vec!["169.254.169.254".parse().unwrap()]);
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n")
        .unwrap();
    assert!(rest(&mut stream).starts_with("HTTP/1.1 200"));
    assert_eq!(field.world.names.asked.lock().unwrap().len(), 1);
    assert_eq!(
        *field.world.cables.dialled.lock().unwrap(),
        ["93.184.216.34:443".parse().unwrap()]
    );
}

#[test]
fn a_name_in_the_table_leads_there_and_is_judged_like_any() {
    let field = field(
        "hosts = { 'api.test' = '93.184.216.34:8443', 'build.corp' = '10.0.0.7', 'shadow.test' = '10.0.0.7' }
         [network]
         allow_private = ['build.corp:443']",
    );
    let get = |host: &str| {
        let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        field.world.secure(&format!("{host}:443"), &text)
    };
    assert!(get("api.test").starts_with("HTTP/1.1 200"));
    assert!(get("build.corp").starts_with("HTTP/1.1 200"));
    // Only the name and port that were lifted lead below the floor.
    for to in ["build.corp:80", "shadow.test:443"] {
        let said = field.world.connect(to).unwrap_err();
        assert!(said.contains("address refused"), "{to}: {said}");
    }
    assert!(field.world.names.asked.lock().unwrap().is_empty());
    assert_eq!(
        *field.world.cables.dialled.lock().unwrap(),
        ["93.184.216.34:8443", "10.0.0.7:443"].map(|at| at.parse().unwrap())
    );
    let log = field.world.log();
    assert!(
        log.contains("net:connect api.test:443\n")
            && log.contains("net:connect build.corp:443 10.0.0.7"),
        "{log}"
    );
}

#[test]
fn a_lifted_address_works_without_a_server_name() {
    let field = field("[network]\nallow_private = ['10.0.0.7:443']");
    let stream = field.world.connect("10.0.0.7:443").unwrap();
    let mut stream = field
        .world
        .tls(stream, ServerName::try_from("10.0.0.7").unwrap(), true);
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: 10.0.0.7\r\nConnection: close\r\n\r\n")
        .unwrap();
    assert!(rest(&mut stream).starts_with("HTTP/1.1 200"));
    assert!(
        field
            .world
            .log()
            .contains("net:connect 10.0.0.7:443 10.0.0.7")
    );
}

#[test]
fn servers_cannot_forge_a_refusal() {
    let field = field("");
    let said = field
        .world
        .talk(b"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n");
    assert!(
        said.starts_with("HTTP/1.1 200")
            && said.contains("x-upstream: yes")
            && !said.contains("x-strands-box-egress"),
        "{said}"
    );
}

#[test]
fn hostile_replies_stay_outside() {
    use std::io::Read;
    for (reply, status, absent) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\nabcde",
            "502",
            "abcde",
        ),
        (
            "HTTP/1.1 200 OK\r\nX: a\r\n folded\r\nContent-Length: 2\r\n\r\nab",
            "502",
            "folded",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nab",
            "502",
            "\r\n\r\nab",
        ),
        (
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nraw",
            "502",
            "raw",
        ),
        ("SSH-2.0-OpenSSH_9.9\r\n", "502", "SSH"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nTrailer: x\r\n\r\n",
            "502",
            "hello",
        ),
        (
            "HTTP/1.1 200 OK\r\nX-Box-Rule: forged\r\nProxy-Authenticate: Basic\r\nConnection: x-mine\r\nX-Mine: 1\r\nContent-Length: 0\r\n\r\n",
            "200",
            "x-",
        ),
    ] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(reply.as_bytes());
            }
        });
        let world = Setup {
            ports: vec![(80, port)],
            ..Setup::default()
        }
        .start();
        let said = world
            .talk(b"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n");
        assert!(
            said.starts_with(&format!("HTTP/1.1 {status}")),
            "{reply:?}: {said}"
        );
        assert!(!said.contains(absent), "{reply:?}: {said}");
    }
}

#[test]
fn connections_are_bounded_and_the_rest_told() {
    let limits = box_gateway::Limits {
        connections: 2,
        ..box_gateway::Limits::default()
    };
    let plain = Upstream::start(None, echo());
    let world = Setup {
        ports: vec![(80, plain.port)],
        limits,
        ..Setup::default()
    }
    .start();
    let get = b"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n";
    let mut held: Vec<_> = (0..2).map(|_| world.raw()).collect();
    for stream in &mut held {
        stream.write_all(get).unwrap();
        assert!(head(stream).starts_with("HTTP/1.1 200"));
    }
    let said = world.talk(get);
    assert!(
        said.starts_with("HTTP/1.1 503") && said.contains("busy"),
        "{said}"
    );
    drop(held);
    world.until("a free place", |world| {
        let mut stream = world.raw();
        stream.write_all(get).unwrap();
        head(&mut stream).starts_with("HTTP/1.1 200")
    });
}

#[test]
fn nothing_follows_a_refused_tunnel() {
    let field = field("");
    let after = "GET http://api.test/hidden HTTP/1.1\r\nHost: api.test\r\n\r\n";
    for connect in [
        "CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n",
        "CONNECT 0x7f.1:80 HTTP/1.1\r\n\r\n",
    ] {
        let said = field.world.talk(format!("{connect}{after}").as_bytes());
        assert!(said.starts_with("HTTP/1.1 403"), "{said}");
        assert_eq!(said.matches("cache-control:").count(), 1, "{said}");
    }
    assert!(field.untouched());
}
