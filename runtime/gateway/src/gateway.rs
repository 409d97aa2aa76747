//! The gateway itself: its start, the listeners it serves, and requests made from inside the trusted process.

use crate::body::{Body, incoming, whole};
use crate::config::{ConfigProblem, GatewayConfig, check};
use crate::connect;
use crate::core::Core;
use crate::edges::{Edges, Notice};
use crate::exchange::{Upstream, exchange};
use crate::fetch::{Fetch, FetchFault, Fetched, fetch};
use crate::head::{HeadFault, Origin, plain_origin, tunnel_authority};
use crate::reply::Refusal;
use crate::routes::{ArmFault, Routes};
use crate::scrub::Needles;
use crate::secrets::Secret;
use crate::tls::{CertificateAuthority, TlsFault, client};
use crate::wire::{Guarded, MALFORMED};
use box_authority::gate::{Caller, Gate};
use bytes::Bytes;
use http::header::HOST;
use http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::Upgraded;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Why a gateway does not start.
#[derive(Debug, Error)]
pub enum StartFault {
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Config(Vec<ConfigProblem>),
    #[error("credential setup failed: {0}")]
    Secrets(#[from] ArmFault),
    #[error("egress proxy failed: {0}")]
    Tls(#[from] TlsFault),
    #[error("egress proxy failed: {0}")]
    Runtime(#[from] std::io::Error),
}

/// One per box. Dropping it ends every connection.
pub struct Gateway {
    core: Arc<Core>,
    runtime: Option<Runtime>,
}

/// A listener at work. Letting go of it changes nothing; the gateway serves on.
#[derive(Debug)]
pub struct Serving(AbortHandle);

impl Serving {
    /// Closes the listener. Connections end with their clients.
    pub fn end(self) {
        self.0.abort();
    }
}

/// A value shorter than this is too common a text to be looked for in what leaves.
const SHORTEST_WATCHED: usize = 12;

impl Gateway {
    pub fn start(
        config: &GatewayConfig,
        gate: Arc<dyn Gate>,
        edges: Edges,
    ) -> Result<Gateway, StartFault> {
        let (bound, lifts, hosts) = check(config).map_err(StartFault::Config)?;
        let routes = Routes::arm(bound, &*edges.secrets, &*edges.random)?;
        let watched: Vec<&Secret> = routes
            .watched()
            .iter()
            .filter(|value| value.expose().len() >= SHORTEST_WATCHED)
            .collect();
        let core = Core {
            gate,
            secrets: Arc::new(Needles::new(watched)),
            routes: Arc::new(routes),
            lifts,
            hosts,
            authority: CertificateAuthority::new(&*edges.clock, &*edges.random)?,
            upstream: TlsConnector::from(client(&config.extra_roots)?),
            limits: config.limits.clone(),
            edges,
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("gateway")
            .enable_all()
            .build()?;
        Ok(Gateway {
            core: Arc::new(core),
            runtime: Some(runtime),
        })
    }

    /// Serves one sandbox. Whoever connects to this listener is `caller`, whatever it says.
    ///
    /// The listener keeps the sandbox's network alive: end the [`Serving`] when the sandbox has ended.
    pub fn serve(
        &self,
        listener: std::net::TcpListener,
        caller: Caller,
    ) -> std::io::Result<Serving> {
        let Some(runtime) = &self.runtime else {
            return Err(std::io::ErrorKind::NotConnected.into());
        };
        listener.set_nonblocking(true)?;
        let _inside = runtime.enter();
        let listener = TcpListener::from_std(listener)?;
        Ok(Serving(
            runtime
                .spawn(accept(Arc::clone(&self.core), listener, caller))
                .abort_handle(),
        ))
    }

    /// The certificate programs inside must trust. There is no way to its key.
    pub fn ca_pem(&self) -> String {
        self.core.authority.pem().to_owned()
    }

    /// See [`crate::environment::environment`].
    pub fn environment(&self, proxy: &str, roots: &str) -> BTreeMap<String, String> {
        crate::environment::environment(proxy, roots)
    }

    /// Every placeholder by the variable that holds it.
    pub fn placeholders(&self) -> BTreeMap<String, String> {
        self.core.routes.placeholders().clone()
    }

    /// Those of the routes one caller may use.
    pub fn placeholders_for(&self, caller: &Caller) -> BTreeMap<String, String> {
        self.core.routes.placeholders_for(caller)
    }

    /// Makes a request on behalf of a sandbox, through the very same checks. Blocks.
    pub fn fetch(&self, caller: &Caller, request: Fetch) -> Result<Fetched, FetchFault> {
        let runtime = self.runtime.as_ref().ok_or(FetchFault::Ended)?;
        let core = Arc::clone(&self.core);
        let caller = caller.clone();
        let (answer, answered) = std::sync::mpsc::sync_channel(1);
        runtime.spawn(async move {
            // The receiver waits below.
            let _ = answer.send(fetch(&core, &caller, request).await);
        });
        answered.recv().unwrap_or(Err(FetchFault::Ended))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(core: Arc<Core>, listener: TcpListener, caller: Caller) {
    // One sandbox's connections take no other's places.
    let places = Arc::new(Semaphore::new(core.limits.connections));
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(_) => {
                // Out of descriptors, most likely: wait for connections to end.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let (core, caller) = (Arc::clone(&core), caller.clone());
        let served = Served {
            core,
            caller,
            scope: Scope::Proxy,
            upstream: Mutex::default(),
            place: Arc::clone(&places).try_acquire_owned().ok().map(Arc::new),
        };
        tokio::spawn(serve(Arc::new(served), stream));
    }
}

/// What a connection is for.
enum Scope {
    /// As accepted: it names a server with each request.
    Proxy,
    /// Inside a tunnel, after TLS.
    Tunnel(Origin),
}

struct Served {
    core: Arc<Core>,
    caller: Caller,
    scope: Scope,
    upstream: Mutex<Upstream>,
    /// Held until the tunnel inside it ends too. None: there was none left.
    place: Option<Arc<OwnedSemaphorePermit>>,
}

/// Speaks HTTP/1.1 on a connection until it ends.
fn serve<S>(served: Arc<Served>, stream: S) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // Boxed, since a tunnel serves inside a connection that is served.
    Box::pin(async move {
        let head = served.core.limits.head;
        let service = service_fn(move |request| {
            let served = Arc::clone(&served);
            async move { Ok::<_, Infallible>(served.answer(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(head)
            // A client that has said everything may still be waiting for its answer.
            .half_close(true)
            .max_buf_size(256 * 1024)
            .serve_connection(TokioIo::new(Guarded::new(stream)), service)
            .with_upgrades();
        // A connection that breaks off is the client's own affair; permits it held are dropped.
        let _ = connection.await;
    })
}

impl Served {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        if let Some(why) = request.headers().get(MALFORMED) {
            return Refusal::Malformed(String::from_utf8_lossy(why.as_bytes()).into_owned())
                .last_response();
        }
        if self.place.is_none() {
            return Refusal::Busy.last_response();
        }
        match &self.scope {
            Scope::Proxy if request.method() == Method::CONNECT => {
                match Arc::clone(&self).tunnel(request).await {
                    Ok(response) => response,
                    // What follows a CONNECT is not examined as HTTP.
                    Err(refusal) => refusal.last_response(),
                }
            }
            Scope::Proxy => match plain_origin(request.uri()) {
                Ok(origin) => self.exchange(&origin, request).await,
                Err(fault) => Refusal::Head {
                    target: request.uri().to_string(),
                    fault,
                }
                .last_response(),
            },
            Scope::Tunnel(_) if request.method() == Method::CONNECT => Refusal::Head {
                target: request.uri().to_string(),
                fault: HeadFault::NestedConnect,
            }
            .last_response(),
            Scope::Tunnel(origin) => self.exchange(origin, request).await,
        }
    }

    async fn exchange(&self, origin: &Origin, request: Request<Incoming>) -> Response<Body> {
        let mut upstream = self.upstream.lock().await;
        let request = request.map(incoming);
        match exchange(&self.core, &self.caller, origin, &mut upstream, request).await {
            Ok(response) => response,
            Err(refusal) => refusal.response(),
        }
    }

    /// Opens the connection first, then the tunnel: a refusal must be readable before TLS starts.
    async fn tunnel(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let named = request.uri().to_string();
        let authority = tunnel_authority(request.uri()).map_err(|fault| Refusal::Head {
            target: named.clone(),
            fault,
        })?;
        if let Some(host) = request.headers().get(HOST) {
            let text = String::from_utf8_lossy(host.as_bytes()).into_owned();
            // Some clients leave the port out, since the target has it.
            if crate::authority::Authority::parse(&text, Some(authority.port)).as_ref()
                != Ok(&authority)
            {
                return Err(Refusal::Head {
                    target: named,
                    fault: HeadFault::Host {
                        host: text,
                        to: authority.to_string(),
                    },
                });
            }
        }
        let stream = connect::open(&self.core, &self.caller, &authority).await?;
        let upgrade = hyper::upgrade::on(request);
        tokio::spawn(async move {
            if let Ok(upgraded) = upgrade.await {
                self.inside(
                    upgraded,
                    Upstream::Dialled(authority.clone(), stream),
                    Origin {
                        authority,
                        tls: true,
                    },
                )
                .await;
            }
        });
        Ok(Response::new(whole(Bytes::new())))
    }

    async fn inside(&self, upgraded: Upgraded, upstream: Upstream, origin: Origin) {
        let core = Arc::clone(&self.core);
        let target = origin.authority.to_string();
        let failed = |reason: String| {
            core.notice(
                &self.caller,
                Notice::Handshake {
                    target: target.clone(),
                    reason,
                },
            )
        };
        let config = match core.authority.server(
            &origin.authority.host,
            &*core.edges.clock,
            &*core.edges.random,
        ) {
            Ok(config) => config,
            Err(fault) => return failed(fault.to_string()),
        };
        match timeout(
            core.limits.handshake,
            TlsAcceptor::from(config).accept(TokioIo::new(upgraded)),
        )
        .await
        {
            Ok(Ok(stream)) => {
                let caller = self.caller.clone();
                let served = Served {
                    core: Arc::clone(&core),
                    caller,
                    scope: Scope::Tunnel(origin),
                    upstream: Mutex::new(upstream),
                    place: self.place.clone(),
                };
                serve(Arc::new(served), stream).await;
            }
            Ok(Err(fault)) => failed(fault.to_string()),
            Err(_) => failed("no answer in time".into()),
        }
    }
}
