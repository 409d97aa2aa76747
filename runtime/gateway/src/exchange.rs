//! One request and its reply: checked, credentialed, decided, forwarded, scrubbed.

mod message;
mod outgoing;
mod sending;

use self::message::{Leaves, Letter};
use crate::authority::Authority;
use crate::body::{Body, BodyFault, Load, Lookout, Returned, Sightings, Watched, whole};
use crate::connect;
use crate::core::Core;
use crate::edges::Notice;
use crate::head::{Origin, read_head, strip_hop, strip_marks};
use crate::messages::LONGEST;
use crate::placement::{Head, texts};
use crate::reply::{Refusal, UpstreamFault};
use crate::routes::{Credential, CredentialFault};
use crate::scrub::Needles;
use box_authority::action::{Action, Outcome};
use box_authority::gate::Caller;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use http::response::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::client::conn::http1::SendRequest;
use std::sync::Arc;
use tokio::net::TcpStream;

/// The connection to a server that goes with a client's connection.
#[derive(Default)]
pub enum Upstream {
    #[default]
    None,
    /// Connected, and nothing sent yet.
    Dialled(Authority, TcpStream),
    Open(Authority, SendRequest<Body>),
}

impl Upstream {
    /// Whether a request to `to` can go out without a new connection.
    fn serves(&self, to: &Authority) -> bool {
        match self {
            Upstream::None => false,
            Upstream::Dialled(at, _) => at == to,
            Upstream::Open(at, sender) => at == to && !sender.is_closed(),
        }
    }
}

/// Carries one request out and its reply back.
pub async fn exchange(
    core: &Arc<Core>,
    caller: &Caller,
    origin: &Origin,
    upstream: &mut Upstream,
    request: Request<Body>,
) -> Result<Response<Body>, Refusal> {
    let exchange = Exchange {
        core,
        caller,
        origin,
        upstream,
    };
    exchange.run(request).await
}

struct Exchange<'x> {
    core: &'x Arc<Core>,
    caller: &'x Caller,
    origin: &'x Origin,
    upstream: &'x mut Upstream,
}

/// What went with a request, to be kept out of its reply.
struct Sent {
    needles: Option<Arc<Needles>>,
    /// The secret itself travelled, so a reply that cannot be searched may not pass.
    searched: bool,
}

impl Exchange<'_> {
    async fn run(mut self, request: Request<Body>) -> Result<Response<Body>, Refusal> {
        let core = Arc::clone(self.core);
        let (parts, body) = request.into_parts();
        let declared = parts.headers.contains_key(CONTENT_LENGTH);
        let bare = self.origin.authority.to_string();
        let mut head = read_head(parts, self.origin).map_err(|fault| Refusal::Head {
            target: bare.clone(),
            fault,
        })?;
        let target = format!("{bare}{}", head.path);

        // A connection before the request, as for a tunnel.
        if !self.origin.tls && !self.upstream.serves(&self.origin.authority) {
            self.dial().await?;
        }
        let credential = self.credential(&mut head, &target)?;
        self.refuse_leaks(&head)?;
        let messages = core.edges.messages.as_deref();
        let messages = messages.filter(|read| read.at(&self.origin.authority.host));
        let (load, sightings) = self
            .load(&credential, body, &target, messages.is_some())
            .await?;
        let letter = match messages {
            Some(messages) => self.letter(messages, &head, &load),
            None => Letter::none(),
        };

        let action = Action::HttpRequest {
            host: self.origin.authority.host.text(),
            port: i64::from(self.origin.authority.port),
            method: head.method.as_str().into(),
            path: head.path.as_str().into(),
            body_bytes: load.judged_bytes(),
            intercepted: self.origin.tls,
        };
        let leave = core
            .decide(self.caller, action)
            .await
            .map_err(|denial| letter.refused(denial))?;
        let mut leaves = Leaves::of(leave);
        let (load, answer) = match self.decided(letter, &mut leaves, &mut head, load).await {
            Ok(decided) => decided,
            Err(refusal) => {
                leaves.failed().await;
                return Err(refusal);
            }
        };

        let outgoing = self
            .outgoing(&mut head, credential, load, declared, &sightings, &target)
            .await;
        let (request, sent) = match outgoing {
            Ok(ready) => ready,
            Err(refusal) => {
                leaves.failed().await;
                return Err(refusal);
            }
        };
        let (reply, leaves) = self.send(request, leaves, &sightings, &target).await?;
        let seen = sightings.seen();
        if let Some(variable) = seen.placeholder {
            core.notice(
                self.caller,
                Notice::Stray {
                    variable,
                    target: target.clone(),
                    place: "the body".into(),
                },
            );
        }
        let status = i64::from(reply.status().as_u16());
        leaves.request.complete(Outcome::Status(status)).await;
        let (parts, body) = self.reply_head(reply, &sent, &target)?;
        let bodiless = head.method == Method::HEAD || matches!(status, 204 | 304);
        let (parts, body) = match answer {
            Some(answer) => {
                self.heard(answer, leaves.messages, parts, body, &target)
                    .await?
            }
            None => (parts, body),
        };
        Ok(returned(parts, body, bodiless, sent))
    }

    async fn dial(&mut self) -> Result<(), Refusal> {
        *self.upstream = Upstream::None;
        let to = &self.origin.authority;
        let stream = connect::open(self.core, self.caller, to).await?;
        *self.upstream = Upstream::Dialled(to.clone(), stream);
        Ok(())
    }

    fn credential(&self, head: &mut Head, target: &str) -> Result<Credential, Refusal> {
        let core = self.core;
        match core
            .routes
            .credential(self.caller, &self.origin.authority, self.origin.tls, head)
        {
            Ok((credential, unshown)) => {
                if let Some(route) = unshown {
                    core.notice(
                        self.caller,
                        Notice::Unshown {
                            route,
                            target: target.to_owned(),
                        },
                    );
                }
                Ok(credential)
            }
            Err(fault) => {
                let mut target = target.to_owned();
                if let CredentialFault::Stray { variable, place } = &fault {
                    // The path may be what holds it.
                    target = self.origin.authority.to_string();
                    let (variable, place) = (variable.clone(), place.clone());
                    core.notice(
                        self.caller,
                        Notice::Stray {
                            variable,
                            target: target.clone(),
                            place,
                        },
                    );
                }
                Err(Refusal::Credential { target, fault })
            }
        }
    }

    fn refuse_leaks(&self, head: &Head) -> Result<(), Refusal> {
        match texts(head)
            .into_iter()
            .find(|(_, text)| self.core.secrets.found_in(text))
        {
            Some((place, _)) => Err(self.leak(place)),
            None => Ok(()),
        }
    }

    /// Says nothing of the path, which may be what holds the secret.
    fn leak(&self, place: String) -> Refusal {
        let target = self.origin.authority.to_string();
        self.core.notice(
            self.caller,
            Notice::Leak {
                target: target.clone(),
                place: place.clone(),
            },
        );
        Refusal::Leak { target, place }
    }

    async fn load(
        &self,
        credential: &Credential,
        body: Body,
        target: &str,
        message: bool,
    ) -> Result<(Load, Sightings), Refusal> {
        let core = self.core;
        let sightings = Sightings::default();
        let watched = Watched::new(
            body,
            Lookout::new(
                Arc::clone(&core.routes),
                Arc::clone(&core.secrets),
                sightings.clone(),
            ),
        );
        let (limit, held) = match credential {
            // What is signed is what is written anew.
            _ if message => (LONGEST, true),
            // Its chunks are not part of what is signed.
            Credential::Sign {
                claimed: Some(claim),
                ..
            } if claim.as_bytes().starts_with(b"STREAMING-") => (core.limits.measured_body, false),
            Credential::Sign { .. } => (core.limits.signed_body, true),
            _ => (core.limits.measured_body, false),
        };
        match Load::read(watched.boxed_unsync(), limit, held).await {
            Ok(load) => Ok((load, sightings)),
            Err(BodyFault::Leak) => Err(self.leak("the body".into())),
            Err(BodyFault::Wire(_)) => Err(Refusal::Upstream {
                target: target.to_owned(),
                fault: UpstreamFault::Body,
            }),
        }
    }

    /// The head of a reply as the client may have it, save for its length.
    fn reply_head(
        &self,
        reply: Response<Body>,
        sent: &Sent,
        target: &str,
    ) -> Result<(Parts, Body), Refusal> {
        let (mut parts, body) = reply.into_parts();
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(self.broken(target, UpstreamFault::Switched));
        }
        if sent.searched && encoded(&parts.headers) {
            return Err(self.compressed(
                target,
                "could not be searched for the secret that had gone there",
            ));
        }
        if parts.headers.contains_key(CONTENT_LENGTH)
            && parts.headers.contains_key(TRANSFER_ENCODING)
        {
            return Err(self.broken(
                target,
                UpstreamFault::Broken("the reply says its length in two ways".into()),
            ));
        }
        let length = parts.headers.get(CONTENT_LENGTH).cloned();
        strip_hop(&mut parts.headers);
        strip_marks(&mut parts.headers);
        if let Some(length) = length {
            parts.headers.insert(CONTENT_LENGTH, length);
        }
        if let Some(needles) = &sent.needles {
            for value in parts.headers.values_mut() {
                if needles.found_in(value.as_bytes())
                    && let Ok(clean) = HeaderValue::from_bytes(&needles.replace(value.as_bytes()))
                {
                    *value = clean;
                }
            }
        }
        Ok((parts, body))
    }

    fn compressed(&self, target: &str, why: &'static str) -> Refusal {
        self.core.notice(
            self.caller,
            Notice::Reply {
                target: target.to_owned(),
                reason: format!("it was compressed, and {why}"),
            },
        );
        Refusal::Compressed {
            target: target.to_owned(),
            why,
        }
    }

    fn broken(&self, target: &str, fault: UpstreamFault) -> Refusal {
        Refusal::Upstream {
            target: target.to_owned(),
            fault,
        }
    }
}

fn encoded(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter();
    codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// The reply, scrubbed. The length of a body comes from the body; where there is none, the header is what was
/// asked for.
fn returned(mut parts: Parts, body: Body, bodiless: bool, sent: Sent) -> Response<Body> {
    if !bodiless || parts.status == StatusCode::NO_CONTENT {
        parts.headers.remove(CONTENT_LENGTH);
    }
    let body = match bodiless {
        true => whole(Bytes::new()),
        false => Returned::new(body, sent.needles).boxed_unsync(),
    };
    Response::from_parts(parts, body)
}
