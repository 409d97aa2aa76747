//! A server on a port of loopback, which answers by a closure and keeps what reached it.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

pub type Reply = Response<UnsyncBoxBody<Bytes, Infallible>>;
pub type Answer = Pin<Box<dyn Future<Output = Reply> + Send>>;
pub type Service = Arc<dyn Fn(Request<Incoming>) -> Answer + Send + Sync>;

/// A root and a leaf of it.
pub struct Identity {
    pub root_pem: String,
    config: Arc<rustls::ServerConfig>,
}

impl Identity {
    pub fn of(names: &[&str]) -> Identity {
        let root_key = KeyPair::generate().expect("a key");
        let mut root = CertificateParams::new(Vec::<String>::new()).expect("parameters");
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root_pem = root.self_signed(&root_key).expect("a root").pem();
        let issuer = Issuer::new(root, root_key);
        let key = KeyPair::generate().expect("a key");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let leaf = CertificateParams::new(names)
            .expect("parameters")
            .signed_by(&key, &issuer)
            .expect("a leaf");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(
                vec![leaf.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )
            .expect("a server");
        Identity {
            root_pem,
            config: Arc::new(config),
        }
    }
}

/// A running server. `seen` holds one line for each request that reached it, and its headers.
pub struct Upstream {
    pub port: u16,
    pub seen: Arc<Mutex<Vec<String>>>,
    _runtime: Runtime,
}

impl Upstream {
    pub fn start(identity: Option<&Identity>, service: Service) -> Upstream {
        Upstream::on(0, identity, service).expect("a free port")
    }

    /// On a port of its own choice, if it is 0.
    pub fn on(
        port: u16,
        identity: Option<&Identity>,
        service: Service,
    ) -> std::io::Result<Upstream> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let listener = std::net::TcpListener::bind(("127.0.0.1", port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let acceptor = identity.map(|identity| TlsAcceptor::from(Arc::clone(&identity.config)));
        let log = Arc::clone(&seen);
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).expect("a listener");
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    continue;
                };
                let (acceptor, service, log) =
                    (acceptor.clone(), Arc::clone(&service), Arc::clone(&log));
                tokio::spawn(async move {
                    let answer = service_fn(move |request: Request<Incoming>| {
                        let mut line = format!("{} {}", request.method(), request.uri());
                        for (name, value) in request.headers() {
                            line.push_str(&format!(
                                "\n  {name}: {}",
                                String::from_utf8_lossy(value.as_bytes())
                            ));
                        }
                        log.lock().unwrap().push(line);
                        let answer = service(request);
                        async move { Ok::<_, Infallible>(answer.await) }
                    });
                    match acceptor {
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                let _ = http1::Builder::new()
                                    .serve_connection(TokioIo::new(stream), answer)
                                    .await;
                            }
                        }
                        None => {
                            let _ = http1::Builder::new()
                                .serve_connection(TokioIo::new(stream), answer)
                                .await;
                        }
                    }
                });
            }
        });
        Ok(Upstream {
            port,
            seen,
            _runtime: runtime,
        })
    }

    pub fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

pub fn reply(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Reply {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response
        .body(Full::new(body.into()).boxed_unsync())
        .expect("a reply")
}

/// Answers every request from its head.
pub fn heads(answer: impl Fn(&http::request::Parts) -> Reply + Send + Sync + 'static) -> Service {
    let answer = Arc::new(answer);
    Arc::new(move |request| {
        let answer = Arc::clone(&answer);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let _ = body.collect().await;
            answer(&parts)
        })
    })
}

/// Says where the request got to and what it brought along.
pub fn echo() -> Service {
    Arc::new(|request| {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let length = match body.collect().await {
                Ok(body) => body.to_bytes().len(),
                Err(_) => return reply(400, &[], ""),
            };
            reply(
                200,
                &[("x-strands-box-egress", "refused"), ("x-upstream", "yes")],
                format!("{} {} {length}\n", parts.method, parts.uri),
            )
        })
    })
}
