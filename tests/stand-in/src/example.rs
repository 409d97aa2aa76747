//! The one service the examples talk to, whatever name they call it by.

use crate::sigv4::Verifier;
use crate::upstream::{Identity, Service, reply};
use http_body_util::BodyExt;
use std::sync::Arc;

/// The names its certificate is for.
pub const NAMES: [&str; 4] = [
    "api.example.test",
    "chat.example.test",
    "llm.example.test",
    "queue.example.test",
];

/// The key pair of the published examples of the signature algorithm.
pub const KEYS: Verifier = Verifier {
    access_key_id: "AKIDEXAMPLE",
    secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
    token: None,
    region: "eu-west-1",
    service: "sqs",
};

pub fn identity() -> Identity {
    Identity::of(&NAMES)
}

/// Says what it got, headers included, as a careless server does. `queue.example.test` takes signed requests
/// only, and computes each signature on its own.
pub fn service() -> Service {
    Arc::new(|request| {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let Ok(body) = body.collect().await else {
                return reply(400, &[], "the body broke off\n");
            };
            let body = body.to_bytes();
            let host = parts.headers.get("host");
            let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
            if host.starts_with("queue.") {
                return match KEYS.verify(&parts, &body) {
                    Ok(()) => reply(200, &[], "the signature is good\n"),
                    Err(why) => reply(403, &[], format!("the signature is not good: {why}\n")),
                };
            }
            let mut text = format!(
                "{} {host}{}, {} bytes\n",
                parts.method,
                parts.uri.path(),
                body.len()
            );
            for name in ["authorization", "x-api-key"] {
                if let Some(value) = parts.headers.get(name) {
                    let value = String::from_utf8_lossy(value.as_bytes());
                    text.push_str(&format!("you sent {name}: {value}\n"));
                }
            }
            reply(200, &[], text)
        })
    })
}
