//! SigV4 checked by a stand-in that computes every signature on its own.

use crate::support::Setup;
use crate::upstream::{Identity, Service, Upstream, reply};
use http_body_util::BodyExt;
use ring::{digest, hmac};
use std::collections::BTreeMap;
use std::sync::Arc;

const KEY: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const TOKEN: &str = "FwoGZXIvYXdzEA-session-token";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
        .as_ref()
        .to_vec()
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() || b"-._~/".contains(&b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

/// Whether the request's signature is the one its parts give, or what is wrong.
fn verify(parts: &http::request::Parts, body: &[u8], service: &str) -> Result<(), String> {
    let header = |name: &str| {
        parts
            .headers
            .get(name)
            .and_then(|v| v.to_str().ok())
            .map(str::to_owned)
            .ok_or(format!("no {name}"))
    };
    let authorization = header("authorization")?;
    let fields: BTreeMap<&str, &str> = authorization
        .strip_prefix("AWS4-HMAC-SHA256 ")
        .ok_or("another scheme")?
        .split(", ")
        .filter_map(|field| field.split_once('='))
        .collect();
    let scope = fields["Credential"]
        .strip_prefix("AKIDREAL/")
        .ok_or(format!("signed with {}", fields["Credential"]))?;
    let date = header("x-amz-date")?;
    if scope != format!("{}/eu-west-1/{service}/aws4_request", &date[..8]) {
        return Err(format!("scope {scope}"));
    }
    if header("x-amz-security-token")? != TOKEN {
        return Err("no session token".into());
    }
    let payload = match header("x-amz-content-sha256") {
        Ok(claim) if service == "s3" && claim.starts_with(|c: char| c.is_ascii_uppercase()) => {
            claim
        }
        Ok(claim) if service == "s3" && claim != sha256(body) => return Err("payload hash".into()),
        Ok(_) if service != "s3" => {
            return Err("a payload header for another service than S3".into());
        }
        _ => sha256(body),
    };
    let path = if service == "s3" {
        parts.uri.path().to_owned()
    } else {
        encoded(parts.uri.path())
    };
    let mut query: Vec<String> = parts
        .uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            if pair.contains('=') {
                pair.to_owned()
            } else {
                format!("{pair}=")
            }
        })
        .collect();
    query.sort();
    let signed = fields["SignedHeaders"];
    let mut headers = String::new();
    for name in signed.split(';') {
        headers.push_str(&format!("{name}:{}\n", header(name)?.trim()));
    }
    let canonical = format!(
        "{}\n{path}\n{}\n{headers}\n{signed}\n{payload}",
        parts.method,
        query.join("&")
    );
    let text = format!(
        "AWS4-HMAC-SHA256\n{date}\n{scope}\n{}",
        sha256(canonical.as_bytes())
    );
    let mut key = format!("AWS4{KEY}").into_bytes();
    for part in [&date[..8], "eu-west-1", service, "aws4_request"] {
        key = mac(&key, part);
    }
    let own = hex(&mac(&key, &text));
    if own == fields["Signature"] {
        Ok(())
    } else {
        Err(format!("signature of\n{canonical}"))
    }
}

fn stand_in(service: &'static str) -> Service {
    Arc::new(move |request| {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            match verify(&parts, &body, service) {
                Ok(()) => reply(200, &[("x-echo", TOKEN)], "verified"),
                Err(why) => reply(400, &[], format!("not verified: {why}")),
            }
        })
    })
}

#[test]
fn a_stand_in_verifies_what_was_signed_outside() {
    let identity = Identity::of(&[
        "sqs.eu-west-1.amazonaws.com",
        "files.s3.eu-west-1.amazonaws.com",
        "stand-in.test",
    ]);
    let sqs = Upstream::start(Some(&identity), stand_in("sqs"));
    let s3 = Upstream::start(Some(&identity), stand_in("s3"));
    let toml = r#"
        [egress.aws]
        destinations = ["*.amazonaws.com", "*.amazonaws.com:8443"]
        secret = { ref = "aws://work" }
        [egress.local]
        destinations = ["stand-in.test"]
        secret = { ref = "aws://work", service = "sqs", region = "eu-west-1" }
    "#;
    let secrets = vec![("work", KEY), ("work.token", TOKEN)];
    let ports = vec![(443, sqs.port), (8443, s3.port)];
    let world = Setup {
        toml,
        secrets,
        roots: vec![identity.root_pem],
        ports,
        ..Setup::default()
    }
    .start();
    let placeholders = world.gateway.placeholders();
    let (id, key) = (
        &placeholders["AWS_ACCESS_KEY_ID"],
        &placeholders["AWS_SECRET_ACCESS_KEY"],
    );
    assert_ne!(id, key);

    let forged = format!(
        "Authorization: AWS4-HMAC-SHA256 Credential={id}/20200101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=00\r\nX-Amz-Date: 20200101T000000Z\r\nX-Amz-Security-Token: mine\r\nX-Amz-Content-Sha256: 00\r\n"
    );
    let mut requests = Vec::new();
    for host in ["sqs.eu-west-1.amazonaws.com", "stand-in.test"] {
        let body = "Action=SendMessage&MessageBody=hi";
        requests.push((
            host.to_owned(),
            443,
            format!("POST /1/queue%20name/x:y?b=2&a=1&c HTTP/1.1\r\nHost: {host}\r\n{forged}Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\nUser-Agent: x\r\nConnection: close\r\n\r\n{body}", body.len()),
        ));
    }
    let files = "files.s3.eu-west-1.amazonaws.com";
    for (start, tail) in [
        (
            "PUT /a%20b!/(c)//d",
            "Content-Length: 5\r\n\r\nhello".to_owned(),
        ),
        (
            "GET /?list-type=2&prefix=a%2Fb&X-Amz-Signature=00&X-Amz-Credential=x",
            "\r\n".into(),
        ),
        (
            "PUT /chunked",
            "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n".into(),
        ),
        (
            "PUT /long",
            format!(
                "Content-Length: {}\r\n\r\n{}",
                20 * 1024 * 1024,
                "x".repeat(20 * 1024 * 1024)
            ),
        ),
    ] {
        requests.push((
            files.into(),
            8443,
            format!(
                "{start} HTTP/1.1\r\nHost: {files}:8443\r\n{forged}Connection: close\r\n{tail}"
            ),
        ));
    }
    for (host, port, request) in &requests {
        let said = world.secure(&format!("{host}:{port}"), request);
        assert!(
            said.starts_with("HTTP/1.1 200"),
            "{}\n{said}",
            request.lines().next().unwrap()
        );
        assert!(said.contains("x-echo: [REDACTED]"), "{said}");
    }
    let told = format!("{}{}", world.log(), world.notices());
    assert!(!told.contains(KEY) && !told.contains(TOKEN));

    // Signed chunk by chunk in the box: nothing that could be signed again.
    let chunks = format!(
        "PUT /c HTTP/1.1\r\nHost: {files}:8443\r\nX-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"
    );
    let said = world.secure(&format!("{files}:8443"), &chunks);
    assert!(
        said.starts_with("HTTP/1.1 403") && said.contains("turn payload chunk signing off"),
        "{said}"
    );
    // And a body too long for any other service.
    let long = format!(
        "POST / HTTP/1.1\r\nHost: stand-in.test\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        20 * 1024 * 1024
    );
    let said = world.secure("stand-in.test:443", &long);
    assert!(
        said.starts_with("HTTP/1.1 403") && said.contains("too long to be signed"),
        "{said}"
    );
}

#[test]
fn the_placeholder_keys_open_nothing_elsewhere() {
    let identity = Identity::of(&["evil.test"]);
    let server = Upstream::start(Some(&identity), stand_in("sqs"));
    let toml = "[egress.aws]\ndestinations = ['*.amazonaws.com']\nsecret = { ref = 'aws://work' }";
    let world = Setup {
        toml,
        secrets: vec![("work", KEY)],
        roots: vec![identity.root_pem],
        ports: vec![(443, server.port)],
        ..Setup::default()
    }
    .start();
    let id = world.gateway.placeholders()["AWS_ACCESS_KEY_ID"].clone();
    let said = world.secure("evil.test:443", &format!("GET / HTTP/1.1\r\nHost: evil.test\r\nAuthorization: AWS4-HMAC-SHA256 Credential={id}/x\r\nConnection: close\r\n\r\n"));
    assert!(
        said.starts_with("HTTP/1.1 403")
            && said.contains(
                "the placeholder of AWS_ACCESS_KEY_ID stands in the header `authorization`"
            ),
        "{said}"
    );
    assert!(server.requests().is_empty());
}
