//! Every answer the gateway gives of its own accord, in one place.

use crate::addresses::Reserved;
use crate::body::{Body, whole};
use crate::head::HeadFault;
use crate::routes::CredentialFault;
use box_authority::denial::{Denial, DenyCause};
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Response, StatusCode};
use serde::Serialize;
use thiserror::Error;

/// The header that tells a refusal of the box from a reply of the server.
pub const MARK: &str = "x-strands-box-egress";

/// Why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    Policy(Denial),
    Floor {
        action: &'static str,
        target: String,
        why: Reserved,
    },
    Head {
        target: String,
        fault: HeadFault,
    },
    Credential {
        target: String,
        fault: CredentialFault,
    },
    /// The secret cannot be had or cannot stand where it should.
    Secret {
        target: String,
        route: String,
        reason: String,
    },
    Leak {
        target: String,
        place: String,
    },
    Compressed {
        target: String,
        why: &'static str,
    },
    /// A message inside the request was refused, in words of its own protocol.
    Message {
        denial: Denial,
        body: Vec<u8>,
    },
    Malformed(String),
    /// Nothing was refused; it did not work.
    Upstream {
        target: String,
        fault: UpstreamFault,
    },
    /// More connections than the gateway holds.
    Busy,
}

/// What went wrong on the way to the server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UpstreamFault {
    #[error("the name cannot be resolved: {0}")]
    Resolve(String),
    #[error("no address answers: {0}")]
    Dial(String),
    #[error("TLS with the server failed: {0}")]
    Tls(String),
    #[error("the connection to the server broke off: {0}")]
    Broken(String),
    #[error("the server did not answer in time")]
    Slow,
    #[error("the request's body broke off")]
    Body,
    #[error("the server switched protocols without being asked")]
    Switched,
}

#[derive(Serialize)]
struct Told<'t> {
    error: &'t str,
    message: String,
    action: &'t str,
    target: &'t str,
    rule: Option<String>,
    place: Option<&'t str>,
    description: Option<&'t str>,
    witness: &'t [String],
    help: Option<String>,
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Refusal::Policy(Denial {
                cause: DenyCause::Fault(_),
                ..
            })
            | Refusal::Message {
                denial:
                    Denial {
                        cause: DenyCause::Fault(_),
                        ..
                    },
                ..
            }
            | Refusal::Upstream { .. } => StatusCode::BAD_GATEWAY,
            Refusal::Malformed(_)
            | Refusal::Head {
                fault: HeadFault::Path(_) | HeadFault::OriginForm | HeadFault::NoHost,
                ..
            } => StatusCode::BAD_REQUEST,
            Refusal::Busy => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::FORBIDDEN,
        }
    }

    /// Whether it is a refusal, and not a fault on the way.
    pub fn marked(&self) -> bool {
        self.status() == StatusCode::FORBIDDEN
    }

    fn told(&self) -> Told<'_> {
        let plain = |error, action, target, message: String, help: Option<String>| Told {
            error,
            message,
            action,
            target,
            rule: None,
            place: None,
            description: None,
            witness: &[],
            help,
        };
        match self {
            Refusal::Policy(denial) | Refusal::Message { denial, .. } => policy(denial),
            Refusal::Floor {
                action,
                target,
                why,
            } => plain(
                "address refused",
                action,
                target,
                format!("{target} is {why}, which no rule opens"),
                Some(format!(
                    "the operator can lift one destination by name: `allow_private = [\"{target}\"]` under [gateway]"
                )),
            ),
            Refusal::Head { target, fault } => plain(
                head_error(fault),
                "http:request",
                target,
                fault.to_string(),
                head_help(fault),
            ),
            Refusal::Credential { target, fault } => {
                let (error, message, help) = credential(target, fault);
                plain(error, "http:request", target, message, help)
            }
            Refusal::Secret {
                target,
                route,
                reason,
            } => plain(
                "blocked by egress control",
                "http:request",
                target,
                format!("the secret of [{route}] cannot be used: {reason}"),
                Some("this is for the operator of the box to mend; a retry will not help".into()),
            ),
            Refusal::Leak { target, place } => plain(
                "blocked by egress control",
                "http:request",
                target,
                format!(
                    "a real secret stands in {place}; secrets do not leave in what a sandbox sends"
                ),
                Some(
                    "send the placeholder from the environment to the destination it belongs to"
                        .into(),
                ),
            ),
            Refusal::Compressed { target, why } => plain(
                "response blocked by egress control",
                "http:request",
                target,
                format!("the reply came compressed, and {why}"),
                None,
            ),
            Refusal::Malformed(why) => {
                plain("malformed request", "http:request", "", why.clone(), None)
            }
            Refusal::Upstream { target, fault } => plain(
                "upstream fault",
                "http:request",
                target,
                fault.to_string(),
                None,
            ),
            Refusal::Busy => plain(
                "busy",
                "net:connect",
                "",
                "the gateway holds as many connections as it may".into(),
                Some("close some, and retry".into()),
            ),
        }
    }

    /// The sentence of it.
    pub fn message(&self) -> String {
        self.told().message
    }

    /// As an answer to a client.
    pub fn response(&self) -> Response<Body> {
        let told = self.told();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.marked() {
            headers.insert(MARK, HeaderValue::from_static("refused"));
            line(&mut headers, "x-box-action", told.action);
            line(&mut headers, "x-box-target", told.target);
            line(
                &mut headers,
                "x-box-rule",
                told.rule.as_deref().unwrap_or_default(),
            );
            line(
                &mut headers,
                "x-box-description",
                told.description.unwrap_or_default(),
            );
            line(&mut headers, "x-box-witness", &told.witness.join("; "));
            if told.rule.is_none() {
                line(&mut headers, "x-box-reason", &told.message);
            }
        }
        let text = match self {
            Refusal::Message { body, .. } => body.clone(),
            _ => {
                let mut text = serde_json::to_vec_pretty(&told).unwrap_or_default();
                text.push(b'\n');
                text
            }
        };
        let mut response = Response::new(whole(text));
        *response.status_mut() = self.status();
        *response.headers_mut() = headers;
        response
    }

    /// As an answer that ends the connection: what follows on it cannot be told apart any more.
    pub fn last_response(&self) -> Response<Body> {
        let mut response = self.response();
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

fn policy(denial: &Denial) -> Told<'_> {
    let (error, rule, place, description, witness, help): (_, _, _, _, &[String], _) = match &denial
        .cause
    {
        DenyCause::Forbidden {
            rule,
            description,
            witness,
        } => (
            "denied by policy",
            Some(rule.to_string()),
            Some(rule.place.as_str()),
            description.as_deref(),
            witness,
            None,
        ),
        DenyCause::NoPermit { witness } => ("denied by policy", None, None, None, witness, None),
        DenyCause::Fault(_) => (
            "interceptor unavailable",
            None,
            None,
            None,
            &[],
            Some("the box cannot decide anything any more; tell its operator".into()),
        ),
        DenyCause::Enforcement { .. } => ("blocked by egress control", None, None, None, &[], None),
    };
    Told {
        error,
        message: denial.to_string(),
        action: &denial.action,
        target: &denial.target,
        rule,
        place,
        description,
        witness,
        help,
    }
}

fn head_error(fault: &HeadFault) -> &'static str {
    match fault {
        HeadFault::Host { .. }
        | HeadFault::Target { .. }
        | HeadFault::Authority { .. }
        | HeadFault::NestedConnect => "request authority rejected",
        HeadFault::Upgrade(_) | HeadFault::PlainHttps => "blocked by egress control",
        HeadFault::NoHost | HeadFault::OriginForm | HeadFault::Path(_) => "malformed request",
    }
}

fn head_help(fault: &HeadFault) -> Option<String> {
    match fault {
        HeadFault::Host { .. } | HeadFault::Target { .. } => {
            Some("name the same host in the URL and in every header".into())
        }
        HeadFault::Upgrade(_) => Some("use plain requests, or server-sent events, instead".into()),
        _ => None,
    }
}

fn credential(target: &str, fault: &CredentialFault) -> (&'static str, String, Option<String>) {
    match fault {
        CredentialFault::Plaintext { route } => (
            "credential not permitted on a plaintext request",
            format!("{target} belongs to [{route}], whose secret travels over TLS only"),
            Some("use https://".into()),
        ),
        CredentialFault::Caller { route, caller } => (
            "blocked by egress control",
            format!("[{route}] is not for {caller}"),
            Some(format!(
                "the operator can add \"{caller}\" to `allow` of the route"
            )),
        ),
        CredentialFault::Missing {
            route,
            place,
            variable,
        } => (
            "blocked by egress control",
            format!("{target} belongs to [{route}], and its placeholder is missing from {place}"),
            Some(format!(
                "send the value of {variable} there with the first request, or let the operator set `inject = \"always\"`"
            )),
        ),
        CredentialFault::Different {
            route,
            place,
            variable,
        } => (
            "blocked by egress control",
            format!(
                "{target} belongs to [{route}], and what stands in {place} is not its placeholder"
            ),
            Some(format!("send the value of {variable} as it is")),
        ),
        CredentialFault::Stray { variable, place } => (
            "blocked by egress control",
            format!(
                "the placeholder of {variable} stands in {place}, where no route of {target} puts it"
            ),
            Some("it is worth nothing there; leave it out".into()),
        ),
        CredentialFault::Sign { route, fault } => (
            "blocked by egress control",
            format!("[{route}] cannot sign: {fault}"),
            None,
        ),
    }
}

fn line(headers: &mut HeaderMap, name: &'static str, text: &str) {
    const LONGEST: usize = 1024;
    let clean: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(LONGEST)
        .collect();
    if !clean.is_empty()
        && let Ok(value) = HeaderValue::from_bytes(clean.as_bytes())
    {
        headers.insert(HeaderName::from_static(name), value);
    }
}

/// Whether a request's method usually carries a body, so that an empty one says its length.
pub fn has_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

#[cfg(test)]
mod tests {
    use super::{Refusal, UpstreamFault};
    use crate::addresses::Reserved;
    use crate::head::HeadFault;
    use crate::routes::CredentialFault;
    use box_authority::denial::{Denial, DenyCause, RuleName};
    use http_body_util::BodyExt;

    fn shown(refusal: &Refusal) -> String {
        let response = refusal.response();
        let mut text = format!("{}\n", response.status());
        for (name, value) in response.headers() {
            text.push_str(&format!(
                "{name}: {}\n",
                String::from_utf8_lossy(value.as_bytes())
            ));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let body = runtime
            .block_on(response.into_body().collect())
            .unwrap()
            .to_bytes();
        text.push('\n');
        text.push_str(&String::from_utf8_lossy(&body));
        text
    }

    fn denial(action: &str, target: &str, cause: DenyCause) -> Refusal {
        Refusal::Policy(Denial {
            action: action.into(),
            target: target.into(),
            cause,
        })
    }

    #[test]
    fn what_a_client_reads() {
        let rule = RuleName {
            id: Some("sealed".into()),
            place: "policy.dw:7".into(),
        };
        let target = || "api.test:443/v1".to_owned();
        let credential = |fault| Refusal::Credential {
            target: target(),
            fault,
        };
        let all = [
            denial(
                "http:request",
                "api.test:443/v1",
                DenyCause::Forbidden {
                    rule: rule.clone(),
                    description: Some("Customer data was read; no HTTP any more.".into()),
                    witness: vec![
                        "fs:read of ~/customer-data/a.csv at 10:02:11".into(),
                        "zwei Zeilen\nüber".into(),
                    ],
                },
            ),
            denial(
                "net:connect",
                "api.test:443",
                DenyCause::NoPermit {
                    witness: Vec::new(),
                },
            ),
            denial(
                "net:connect",
                "api.test:443",
                DenyCause::Fault("the history cannot be written".into()),
            ),
            Refusal::Floor {
                action: "net:connect",
                target: "169.254.169.254:80".into(),
                why: Reserved::Metadata,
            },
            Refusal::Head {
                target: target(),
                fault: HeadFault::Host {
                    host: "evil.test".into(),
                    to: "api.test:443".into(),
                },
            },
            Refusal::Head {
                target: target(),
                fault: HeadFault::Upgrade("websocket".into()),
            },
            credential(CredentialFault::Plaintext {
                route: "egress.llm".into(),
            }),
            credential(CredentialFault::Caller {
                route: "egress.llm".into(),
                caller: "tool.git".into(),
            }),
            credential(CredentialFault::Missing {
                route: "egress.llm".into(),
                place: "the header `x-api-key`".into(),
                variable: "LLM_KEY".into(),
            }),
            credential(CredentialFault::Different {
                route: "egress.llm".into(),
                place: "the header `x-api-key`".into(),
                variable: "LLM_KEY".into(),
            }),
            credential(CredentialFault::Stray {
                variable: "LLM_KEY".into(),
                place: "the query".into(),
            }),
            Refusal::Secret {
                target: target(),
                route: "egress.llm".into(),
                reason: "it cannot be read".into(),
            },
            Refusal::Leak {
                target: target(),
                place: "the body".into(),
            },
            Refusal::Compressed {
                target: target(),
                why: "could not be searched for the secret that had gone there",
            },
            Refusal::Message {
                denial: Denial {
                    action: "mcp:call".into(),
                    target: "pay/charge".into(),
                    cause: DenyCause::Enforcement {
                        gate: "mcp-catalog",
                        reason: "the tool is not in the accepted MCP catalog".into(),
                    },
                },
                body: br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001}}"#.to_vec(),
            },
            Refusal::Malformed("a line ends without CR LF".into()),
            Refusal::Upstream {
                target: target(),
                fault: UpstreamFault::Slow,
            },
            Refusal::Busy,
        ];
        let text: Vec<String> = all.iter().map(shown).collect();
        insta::assert_snapshot!(text.join("\n----\n"));
    }
}
