//! AWS requests signed outside the sandbox: what the client signed with its placeholder keys is taken out,
//! and the request is signed again with the real ones.

use crate::authority::Host;
use crate::placement::Head;
use crate::secrets::AwsKeys;
use crate::url_path::escaped;
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4;
use http::header::{HeaderName, HeaderValue};
use smol_str::SmolStr;
use std::time::SystemTime;
use thiserror::Error;

/// What a signature is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    pub service: SmolStr,
    pub region: SmolStr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SignFault {
    #[error(
        "the service and region cannot be told from the host; set `secret.service` and `secret.region`"
    )]
    UnknownHost,
    #[error(
        "the client signed each chunk of the body, which cannot be signed again; turn payload chunk signing off"
    )]
    SignedChunks,
    #[error("the body is too long to be signed; only S3 takes a body without its hash")]
    BodyTooLong,
    #[error("the request cannot be signed")]
    Request,
}

/// The body as far as a signature covers it.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'b> {
    Bytes(&'b [u8]),
    /// Longer than is held in memory.
    Streamed,
}

const STREAMED_UNSIGNED: &str = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";

const SUFFIXES: [&str; 4] = [".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".on.aws"];

/// Service and region as a host spells them.
pub fn scope_of(host: &Host) -> Result<Scope, SignFault> {
    let Host::Name(name) = host else {
        return Err(SignFault::UnknownHost);
    };
    let rest = SUFFIXES
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .ok_or(SignFault::UnknownHost)?;
    let labels: Vec<&str> = rest
        .split('.')
        .filter(|label| !matches!(*label, "dualstack" | "vpce"))
        .collect();
    let at = labels.iter().rposition(|label| is_region(label));
    let (before, region, after) = match at {
        Some(at) => (
            labels.get(..at).unwrap_or_default(),
            labels.get(at).copied().unwrap_or_default(),
            labels.get(at + 1),
        ),
        // A global endpoint.
        None => (labels.as_slice(), "us-east-1", None),
    };
    // `domain.region.es`, `id.region.aoss`: the service follows the region.
    let label = after
        .or(before.last())
        .copied()
        .ok_or(SignFault::UnknownHost)?;
    let label = label
        .strip_suffix("-fips")
        .or(label.strip_prefix("fips-"))
        .unwrap_or(label);
    let service = match label {
        "bedrock-runtime" | "bedrock-agent" | "bedrock-agent-runtime" => "bedrock",
        "s3-accesspoint" | "s3-control" => "s3",
        "lambda-url" => "lambda",
        "email" => "ses",
        "iot" if before.len() > 1 => "iotdevicegateway",
        "" => return Err(SignFault::UnknownHost),
        own => own,
    };
    Ok(Scope {
        service: service.into(),
        region: region.into(),
    })
}

fn is_region(label: &str) -> bool {
    let mut parts = label.split('-');
    let area = parts
        .next()
        .is_some_and(|area| area.len() == 2 && area.bytes().all(|b| b.is_ascii_lowercase()));
    let number = label
        .rsplit('-')
        .next()
        .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    area && number && label.split('-').count() >= 3
}

/// Takes out what the client's own signing left.
pub fn clear(head: &mut Head) -> Option<HeaderValue> {
    let payload = head.headers.remove("x-amz-content-sha256");
    for name in [
        "authorization",
        "x-amz-date",
        "x-amz-security-token",
        "x-amz-signature",
    ] {
        head.headers.remove(name);
    }
    if let Some(query) = head.query.take() {
        let presigned = |pair: &&str| {
            let name = pair
                .split('=')
                .next()
                .unwrap_or_default()
                .to_ascii_lowercase();
            !matches!(
                name.as_str(),
                "x-amz-algorithm"
                    | "x-amz-credential"
                    | "x-amz-date"
                    | "x-amz-expires"
                    | "x-amz-signedheaders"
                    | "x-amz-signature"
                    | "x-amz-security-token"
                    | "x-amz-content-sha256"
            )
        };
        let kept: Vec<&str> = query.split('&').filter(presigned).collect();
        head.query = (!kept.is_empty()).then(|| kept.join("&"));
    }
    payload
}

/// Signs a cleared head. `host` is its `Host` header; `claimed` what the client said of its payload.
pub fn sign_head(
    head: &mut Head,
    host: &str,
    scope: &Scope,
    keys: &AwsKeys,
    payload: Payload<'_>,
    claimed: Option<&str>,
    now: SystemTime,
) -> Result<(), SignFault> {
    let s3 = matches!(
        scope.service.as_str(),
        "s3" | "s3-outposts" | "s3-object-lambda" | "s3express"
    );
    let body = match (claimed, payload) {
        (Some(STREAMED_UNSIGNED), _) => SignableBody::Precomputed(STREAMED_UNSIGNED.to_owned()),
        (Some(claim), _) if claim.starts_with("STREAMING-") => return Err(SignFault::SignedChunks),
        (_, Payload::Bytes(bytes)) => SignableBody::Bytes(bytes),
        (_, Payload::Streamed) if s3 => SignableBody::UnsignedPayload,
        (_, Payload::Streamed) => return Err(SignFault::BodyTooLong),
    };
    let mut settings = SigningSettings::default();
    if s3 {
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        // S3 hashes a key with everything but unreserved characters escaped, so it is sent that way.
        head.path = escaped(head.path.as_bytes(), b"/%");
    }
    let identity = Credentials::new(
        keys.access_key_id.clone(),
        keys.secret_access_key.expose(),
        keys.session_token
            .as_ref()
            .map(|token| token.expose().to_owned()),
        None,
        "box-gateway",
    )
    .into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(&scope.region)
        .name(&scope.service)
        .time(now)
        .settings(settings)
        .build()
        .map_err(|_| SignFault::Request)?
        .into();

    let url = match &head.query {
        Some(query) => format!("https://{host}{}?{query}", head.path),
        None => format!("https://{host}{}", head.path),
    };
    // A small, stable set: nothing a proxy on the way may touch.
    let mut signed = vec![("host", host)];
    for (name, value) in &head.headers {
        let name = name.as_str();
        if name == "content-type" || name == "content-md5" || name.starts_with("x-amz-") {
            signed.push((name, value.to_str().map_err(|_| SignFault::Request)?));
        }
    }
    let request = SignableRequest::new(head.method.as_str(), url, signed.into_iter(), body)
        .map_err(|_| SignFault::Request)?;
    let (instructions, _) = sign(request, &params)
        .map_err(|_| SignFault::Request)?
        .into_parts();
    let (headers, _) = instructions.into_parts();
    for header in headers {
        let name = HeaderName::from_static(header.name());
        let mut value = HeaderValue::from_str(header.value()).map_err(|_| SignFault::Request)?;
        value.set_sensitive(true);
        head.headers.insert(name, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Payload, Scope, SignFault, clear, scope_of, sign_head};
    use crate::authority::Host;
    use crate::placement::Head;
    use crate::secrets::{AwsKeys, Secret};
    use http::header::{HeaderMap, HeaderValue};
    use std::time::{Duration, SystemTime};

    #[test]
    fn scopes() {
        for (host, service, region) in [
            ("sqs.eu-west-1.amazonaws.com", "sqs", "eu-west-1"),
            (
                "bedrock-runtime.us-west-2.amazonaws.com",
                "bedrock",
                "us-west-2",
            ),
            ("iam.amazonaws.com", "iam", "us-east-1"),
            ("s3.amazonaws.com", "s3", "us-east-1"),
            (
                "my.bucket.s3.eu-central-1.amazonaws.com",
                "s3",
                "eu-central-1",
            ),
            (
                "b.s3.dualstack.ap-south-1.amazonaws.com",
                "s3",
                "ap-south-1",
            ),
            (
                "x1.execute-api.us-east-2.amazonaws.com",
                "execute-api",
                "us-east-2",
            ),
            (
                "api.ecr.us-gov-west-1.amazonaws.com",
                "ecr",
                "us-gov-west-1",
            ),
            ("sts-fips.us-east-1.amazonaws.com", "sts", "us-east-1"),
            ("s3.cn-north-1.amazonaws.com.cn", "s3", "cn-north-1"),
            (
                "vpce-1.sqs.us-east-1.vpce.amazonaws.com",
                "sqs",
                "us-east-1",
            ),
            ("search-d.us-east-1.es.amazonaws.com", "es", "us-east-1"),
            ("fn.lambda-url.us-east-1.on.aws", "lambda", "us-east-1"),
            ("lambda.us-east-1.api.aws", "lambda", "us-east-1"),
        ] {
            assert_eq!(
                scope_of(&Host::parse(host).unwrap()),
                Ok(Scope {
                    service: service.into(),
                    region: region.into()
                }),
                "{host}"
            );
        }
        for host in [
            "example.com",
            "evilamazonaws.com",
            "sqs.eu-west-1.amazonaws.com.evil.test",
            "10.0.0.1",
        ] {
            assert_eq!(
                scope_of(&Host::parse(host).unwrap()),
                Err(SignFault::UnknownHost),
                "{host}"
            );
        }
    }

    fn keys() -> AwsKeys {
        AwsKeys {
            access_key_id: "AKIDEXAMPLE".into(),
            secret_access_key: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(), "X")
                .unwrap(),
            session_token: None,
        }
    }

    fn head() -> Head {
        Head {
            method: http::Method::GET,
            path: "/".into(),
            query: None,
            headers: HeaderMap::new(),
        }
    }

    /// 2015-08-30T12:36:00Z, the time of the published test suite.
    fn then() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_440_938_160)
    }

    #[test]
    fn the_published_vanilla_signature() {
        let scope = Scope {
            service: "service".into(),
            region: "us-east-1".into(),
        };
        let mut sent = head();
        sign_head(
            &mut sent,
            "example.amazonaws.com",
            &scope,
            &keys(),
            Payload::Bytes(b""),
            None,
            then(),
        )
        .unwrap();
        let signed = sent.headers["authorization"].to_str().unwrap();
        assert_eq!(
            signed,
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
        assert!(!format!("{sent:?}").contains("5fa00fa3"));
    }

    #[test]
    fn payloads() {
        let s3 = Scope {
            service: "s3".into(),
            region: "us-east-1".into(),
        };
        let sqs = Scope {
            service: "sqs".into(),
            region: "us-east-1".into(),
        };
        let mut sent = head();
        sent.path = "/a b!/c%2Fd".into();
        sign_head(
            &mut sent,
            "b.s3.amazonaws.com",
            &s3,
            &keys(),
            Payload::Streamed,
            None,
            then(),
        )
        .unwrap();
        assert_eq!(sent.path, "/a%20b%21/c%2Fd");
        assert_eq!(sent.headers["x-amz-content-sha256"], "UNSIGNED-PAYLOAD");
        let streamed = |scope, claimed| {
            sign_head(
                &mut head(),
                "h",
                scope,
                &keys(),
                Payload::Streamed,
                claimed,
                then(),
            )
        };
        assert_eq!(streamed(&sqs, None), Err(SignFault::BodyTooLong));
        assert_eq!(
            streamed(&s3, Some("STREAMING-AWS4-HMAC-SHA256-PAYLOAD")),
            Err(SignFault::SignedChunks)
        );
        assert_eq!(
            streamed(&s3, Some("STREAMING-UNSIGNED-PAYLOAD-TRAILER")),
            Ok(())
        );
    }

    #[test]
    fn what_the_client_signed_goes() {
        let mut sent = head();
        for name in [
            "authorization",
            "x-amz-date",
            "x-amz-security-token",
            "x-amz-content-sha256",
            "x-amz-target",
        ] {
            sent.headers.insert(name, HeaderValue::from_static("v"));
        }
        sent.query = Some("list-type=2&X-Amz-Signature=ab&X-Amz-Credential=c&prefix=".into());
        assert_eq!(clear(&mut sent), Some(HeaderValue::from_static("v")));
        assert_eq!(sent.query.as_deref(), Some("list-type=2&prefix="));
        let left: Vec<&str> = sent.headers.keys().map(|name| name.as_str()).collect();
        assert_eq!(left, ["x-amz-target"]);
    }
}
