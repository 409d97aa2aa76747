//! AWS Signature Version 4 from the server's side: every signature is computed again from the request.

use ring::{digest, hmac};
use std::collections::BTreeMap;

/// Whose signatures are good, and for what.
#[derive(Clone, Copy, Debug)]
pub struct Verifier {
    pub access_key_id: &'static str,
    pub secret_access_key: &'static str,
    /// A session token, which then has to come along.
    pub token: Option<&'static str>,
    pub region: &'static str,
    pub service: &'static str,
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn sha256(bytes: &[u8]) -> String {
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

impl Verifier {
    /// Whether the request's signature is the one its parts give, or what is wrong.
    pub fn verify(&self, parts: &http::request::Parts, body: &[u8]) -> Result<(), String> {
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
        let field = |name: &str| fields.get(name).copied().ok_or(format!("no {name}"));
        let credential = field("Credential")?;
        let scope = credential
            .strip_prefix(self.access_key_id)
            .and_then(|rest| rest.strip_prefix('/'))
            .ok_or(format!("signed with {credential}"))?;
        let date = header("x-amz-date")?;
        let day = date.get(..8).ok_or("a short date")?;
        if scope != format!("{day}/{}/{}/aws4_request", self.region, self.service) {
            return Err(format!("scope {scope}"));
        }
        if let Some(token) = self.token
            && header("x-amz-security-token")? != token
        {
            return Err("no session token".into());
        }
        let s3 = self.service == "s3";
        let payload = match header("x-amz-content-sha256") {
            Ok(claim) if s3 && claim.starts_with(|c: char| c.is_ascii_uppercase()) => claim,
            Ok(claim) if s3 && claim != sha256(body) => return Err("payload hash".into()),
            Ok(_) if !s3 => return Err("a payload header for another service than S3".into()),
            _ => sha256(body),
        };
        let path = if s3 {
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
        let signed = field("SignedHeaders")?;
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
        let mut key = format!("AWS4{}", self.secret_access_key).into_bytes();
        for part in [day, self.region, self.service, "aws4_request"] {
            key = mac(&key, part);
        }
        if hex(&mac(&key, &text)) == field("Signature")? {
            Ok(())
        } else {
            Err(format!("signature of\n{canonical}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Verifier;

    /// The example `get-vanilla` of the suite AWS publishes with the algorithm.
    #[test]
    fn the_published_example() {
        let verifier = Verifier {
            access_key_id: "AKIDEXAMPLE",
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            token: None,
            region: "us-east-1",
            service: "service",
        };
        let request = |path: &str| {
            let (parts, ()) = http::Request::get(path)
                .header("host", "example.amazonaws.com")
                .header("x-amz-date", "20150830T123600Z")
                .header("authorization", "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31")
                .body(())
                .expect("a request")
                .into_parts();
            parts
        };
        assert_eq!(verifier.verify(&request("/"), b""), Ok(()));
        assert!(verifier.verify(&request("/?a=1"), b"").is_err());
        assert!(verifier.verify(&request("/"), b"x").is_err());
    }
}
