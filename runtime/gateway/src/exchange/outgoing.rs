//! The request as it leaves, with its secret or its signature.

use super::{Exchange, Sent};
use crate::body::{Body, Load, Sightings, whole};
use crate::edges::Notice;
use crate::placement::Head;
use crate::reply::{Refusal, has_body};
use crate::routes::{Credential, CredentialFault};
use crate::scrub::Needles;
use crate::secrets::{Secret, SecretFault};
use crate::sigv4::{Payload, SignFault, sign_head};
use bytes::Bytes;
use http::Request;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, HOST, HeaderValue};
use std::sync::Arc;

impl Exchange<'_> {
    /// The request as it leaves, with its secret. Only a permit leads here.
    pub(super) async fn outgoing(
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
}
