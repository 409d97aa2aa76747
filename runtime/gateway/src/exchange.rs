//! One request and its reply: checked, credentialed, decided, forwarded, scrubbed.

use crate::authority::Authority;
use crate::body::{Body, BodyFault, Load, Lookout, Returned, Sightings, Watched, whole};
use crate::connect;
use crate::core::{Core, Leave};
use crate::edges::Notice;
use crate::head::{Origin, read_head, strip_hop, strip_marks};
use crate::placement::{Head, texts};
use crate::reply::{Refusal, UpstreamFault, has_body};
use crate::routes::{Credential, CredentialFault};
use crate::scrub::Needles;
use crate::secrets::{Secret, SecretFault};
use crate::sigv4::{Payload, SignFault, sign_head};
use crate::tls::server_name;
use box_authority::action::{Action, Outcome};
use box_authority::gate::Caller;
use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HOST, HeaderValue, TRANSFER_ENCODING,
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

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
        let (load, sightings) = self.load(&credential, body, &target).await?;

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
            .map_err(Refusal::Policy)?;

        let outgoing = self
            .outgoing(&mut head, credential, load, declared, &sightings, &target)
            .await;
        let (request, sent) = match outgoing {
            Ok(ready) => ready,
            Err(refusal) => {
                leave.complete(Outcome::Failed).await;
                return Err(refusal);
            }
        };
        let (reply, leave) = self.send(request, leave, &sightings, &target).await?;
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
        let status = reply.status();
        leave
            .complete(Outcome::Status(i64::from(status.as_u16())))
            .await;
        self.returned(reply, &head.method, sent, &target)
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

    /// The request as it leaves, with its secret. Only a permit leads here.
    async fn outgoing(
        &mut self,
        head: &mut Head,
        credential: Credential,
        load: Load,
        declared: bool,
        sightings: &Sightings,
        target: &str,
    ) -> Result<(Request<Body>, Sent), Refusal> {
        let host = self.origin.host_header();
        let held = match &load {
            Load::Held(bytes) => Some(bytes.clone()),
            Load::Streaming { .. } => None,
        };
        let sent = self.apply(head, &credential, held, &host, target).await?;
        let (length, body) = match load {
            Load::Held(bytes) => (Some(bytes.len()), whole(bytes)),
            Load::Streaming { length, body } => {
                (length.and_then(|length| usize::try_from(length).ok()), body)
            }
        };
        if sightings.seen().leak {
            return Err(self.leak("the body".into()));
        }
        let uri = match &head.query {
            Some(query) => format!("{}?{query}", head.path),
            None => head.path.clone(),
        };
        let malformed = || Refusal::Malformed("the target cannot be written".into());
        let mut request = Request::new(body);
        *request.method_mut() = head.method.clone();
        *request.uri_mut() = uri.parse().map_err(|_| malformed())?;
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::from_str(&host).map_err(|_| malformed())?);
        headers.extend(head.headers.clone());
        if let Some(length) =
            length.filter(|length| *length > 0 || declared || has_body(&head.method))
        {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        Ok((request, sent))
    }

    async fn apply(
        &self,
        head: &mut Head,
        credential: &Credential,
        body: Option<Bytes>,
        host: &str,
        target: &str,
    ) -> Result<Sent, Refusal> {
        match credential {
            Credential::None => Ok(Sent {
                needles: None,
                searched: false,
            }),
            Credential::Place(route) => {
                let name = &route.bound.name;
                let source = Arc::clone(&self.core.edges.secrets);
                let held = Arc::clone(route);
                let secret = self
                    .read(name, target, move || held.secret(&*source))
                    .await?;
                let put = route
                    .placement()
                    .and_then(|placement| placement.put(head, &secret));
                put.ok_or_else(|| {
                    self.secret_fault(
                        name,
                        target,
                        "it cannot stand where the route puts it".into(),
                    )
                })?;
                head.headers
                    .insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
                self.needles(name, target, [&secret]).map(|needles| Sent {
                    needles: Some(needles),
                    searched: true,
                })
            }
            Credential::Sign {
                route,
                scope,
                claimed,
            } => {
                let name = &route.bound.name;
                let source = Arc::clone(&self.core.edges.secrets);
                let held = Arc::clone(route);
                let keys = self.read(name, target, move || held.keys(&*source)).await?;
                let payload = body
                    .as_ref()
                    .map_or(Payload::Streamed, |bytes| Payload::Bytes(bytes));
                let claimed = claimed.as_ref().and_then(|claim| claim.to_str().ok());
                sign_head(
                    head,
                    host,
                    scope,
                    &keys,
                    payload,
                    claimed,
                    self.core.edges.clock.now(),
                )
                .map_err(|fault: SignFault| Refusal::Credential {
                    target: target.to_owned(),
                    fault: CredentialFault::Sign {
                        route: name.clone(),
                        fault,
                    },
                })?;
                // Neither travels but the session token; the key is looked for all the same.
                let secrets: Vec<&Secret> = std::iter::once(&keys.secret_access_key)
                    .chain(&keys.session_token)
                    .collect();
                self.needles(name, target, secrets).map(|needles| Sent {
                    needles: Some(needles),
                    searched: false,
                })
            }
        }
    }

    async fn read<T: Send + 'static>(
        &self,
        route: &str,
        target: &str,
        read: impl FnOnce() -> Result<T, SecretFault> + Send + 'static,
    ) -> Result<T, Refusal> {
        match tokio::task::spawn_blocking(read).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(fault)) => Err(self.secret_fault(route, target, fault.to_string())),
            Err(_) => Err(self.secret_fault(route, target, "its source failed".into())),
        }
    }

    /// The agent learns that it failed; where the operator keeps the secret is for the operator.
    fn secret_fault(&self, route: &str, target: &str, reason: String) -> Refusal {
        self.core.notice(
            self.caller,
            Notice::Secret {
                route: route.into(),
                reason,
            },
        );
        Refusal::Secret {
            target: target.to_owned(),
            route: route.to_owned(),
            reason: "it cannot be read".into(),
        }
    }

    fn needles<'s>(
        &self,
        route: &str,
        target: &str,
        secrets: impl IntoIterator<Item = &'s Secret>,
    ) -> Result<Arc<Needles>, Refusal> {
        let needles = Needles::new(secrets);
        if needles.usable() {
            Ok(Arc::new(needles))
        } else {
            Err(self.secret_fault(route, target, "replies could not be searched for it".into()))
        }
    }

    /// Sends it on a connection that is or can be opened. Before the first byte is out, failure is certain;
    /// after it, the permit is dropped, which records that nobody knows.
    async fn send(
        &mut self,
        request: Request<Body>,
        leave: Leave,
        sightings: &Sightings,
        target: &str,
    ) -> Result<(Response<Body>, Leave), Refusal> {
        let mut request = request;
        let mut fresh = !matches!(self.upstream, Upstream::Open(..));
        loop {
            let mut sender = match self.sender(target).await {
                Ok(sender) => sender,
                Err(refusal) => {
                    leave.complete(Outcome::Failed).await;
                    return Err(refusal);
                }
            };
            let fault =
                match timeout(self.core.limits.reply, sender.try_send_request(request)).await {
                    Ok(Ok(reply)) => {
                        *self.upstream = Upstream::Open(self.origin.authority.clone(), sender);
                        return Ok((reply.map(crate::body::incoming), leave));
                    }
                    Err(_) => UpstreamFault::Slow,
                    Ok(Err(mut fault)) => match fault.take_message() {
                        // An idle connection the server had closed.
                        Some(unsent) if !fresh => {
                            fresh = true;
                            request = unsent;
                            *self.upstream = Upstream::None;
                            continue;
                        }
                        Some(_) => {
                            leave.complete(Outcome::Failed).await;
                            return Err(self
                                .broken(target, UpstreamFault::Broken(fault.error().to_string())));
                        }
                        None => UpstreamFault::Broken(fault.error().to_string()),
                    },
                };
            drop(leave);
            if sightings.seen().leak {
                return Err(self.leak("the body".into()));
            }
            return Err(self.broken(target, fault));
        }
    }

    fn broken(&self, target: &str, fault: UpstreamFault) -> Refusal {
        Refusal::Upstream {
            target: target.to_owned(),
            fault,
        }
    }

    async fn sender(&mut self, target: &str) -> Result<SendRequest<Body>, Refusal> {
        if !self.upstream.serves(&self.origin.authority) {
            self.dial().await?;
        }
        match std::mem::take(self.upstream) {
            Upstream::Open(at, mut sender) => {
                if sender.ready().await.is_ok() {
                    return Ok(sender);
                }
                *self.upstream = Upstream::None;
                let stream = connect::open(self.core, self.caller, &at).await?;
                self.handshake(stream, target).await
            }
            Upstream::Dialled(_, stream) => self.handshake(stream, target).await,
            Upstream::None => Err(self.broken(target, UpstreamFault::Dial("no connection".into()))),
        }
    }

    async fn handshake(
        &self,
        stream: TcpStream,
        target: &str,
    ) -> Result<SendRequest<Body>, Refusal> {
        if !self.origin.tls {
            return self.speak(stream, target).await;
        }
        let tls = |text: String| self.broken(target, UpstreamFault::Tls(text));
        let name = server_name(&self.origin.authority.host)
            .ok_or_else(|| tls("the host is no server name".into()))?;
        match timeout(
            self.core.limits.handshake,
            self.core.upstream.connect(name, stream),
        )
        .await
        {
            Ok(Ok(stream)) => self.speak(stream, target).await,
            Ok(Err(fault)) => Err(tls(fault.to_string())),
            Err(_) => Err(tls("no answer in time".into())),
        }
    }

    async fn speak(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        target: &str,
    ) -> Result<SendRequest<Body>, Refusal> {
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(256 * 1024)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|fault| self.broken(target, UpstreamFault::Broken(fault.to_string())))?;
        // Its faults come out at the sender.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(sender)
    }

    fn returned(
        &mut self,
        reply: Response<Body>,
        method: &Method,
        sent: Sent,
        target: &str,
    ) -> Result<Response<Body>, Refusal> {
        let (mut parts, body) = reply.into_parts();
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(self.broken(target, UpstreamFault::Switched));
        }
        let encoded = parts
            .headers
            .get_all(CONTENT_ENCODING)
            .iter()
            .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
        if sent.searched && encoded {
            self.core.notice(
                self.caller,
                Notice::Reply {
                    target: target.to_owned(),
                    reason: "it was compressed, and a secret had gone there".into(),
                },
            );
            return Err(Refusal::Compressed {
                target: target.to_owned(),
            });
        }
        let length = parts.headers.get(CONTENT_LENGTH).cloned();
        if length.is_some() && parts.headers.contains_key(TRANSFER_ENCODING) {
            return Err(self.broken(
                target,
                UpstreamFault::Broken("the reply says its length in two ways".into()),
            ));
        }
        strip_hop(&mut parts.headers);
        strip_marks(&mut parts.headers);
        let bodiless = *method == Method::HEAD || matches!(parts.status.as_u16(), 204 | 304);
        // The length of a body comes from the body; where there is none, the header is what was asked for.
        if let Some(length) = length.filter(|_| bodiless && parts.status != StatusCode::NO_CONTENT)
        {
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
        let body = if bodiless {
            whole(Bytes::new())
        } else {
            Returned::new(body, sent.needles).boxed_unsync()
        };
        let mut response = Response::new(body);
        *response.status_mut() = parts.status;
        *response.headers_mut() = parts.headers;
        Ok(response)
    }
}
