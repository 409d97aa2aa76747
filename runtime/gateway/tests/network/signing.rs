//! SigV4 checked by a stand-in that computes every signature on its own.

use crate::support::Setup;
use http_body_util::BodyExt;
use stand_in::sigv4::Verifier;
use stand_in::{Identity, Service, Upstream, reply};
use std::sync::Arc;

const KEY: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const TOKEN: &str = "FwoGZXIvYXdzEA-session-token";

fn verifying(service: &'static str) -> Service {
    let verifier = Verifier {
        access_key_id: "AKIDREAL",
        secret_access_key: KEY,
        token: Some(TOKEN),
        region: "eu-west-1",
        service,
    };
    Arc::new(move |request| {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            match verifier.verify(&parts, &body) {
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
    let sqs = Upstream::start(Some(&identity), verifying("sqs"));
    let s3 = Upstream::start(Some(&identity), verifying("s3"));
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
    let server = Upstream::start(Some(&identity), verifying("sqs"));
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
