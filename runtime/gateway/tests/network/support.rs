//! A gateway with everything around it in the test's hands.
#![allow(dead_code)]

use box_authority::action::{Action, Outcome};
use box_authority::denial::{Denial, DenyCause, RuleName};
use box_authority::gate::{Caller, Gate, Permit};
use box_gateway::edges::{Dialer, Resolver};
use box_gateway::messages::Messages;
use box_gateway::secrets::{AwsKeys, Secret, SecretFault};
use box_gateway::{
    Edges, Gateway, GatewayConfig, Limits, Network, Notice, Route, SecretSource, System, Watch,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A public address every name resolves to, unless the test says otherwise.
pub const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));

pub type Deny = Arc<dyn Fn(&Action) -> bool + Send + Sync>;

/// Decides by a closure, and writes down what it was asked and what became of it.
pub struct Scripted {
    pub log: Arc<Mutex<Vec<String>>>,
    pub actions: Mutex<Vec<(Caller, Action)>>,
    pub deny: Deny,
    pub fault: bool,
}

struct Written {
    log: Arc<Mutex<Vec<String>>>,
    line: String,
    done: bool,
}

impl Permit for Written {
    fn complete(mut self: Box<Self>, outcome: Outcome) {
        self.done = true;
        self.log
            .lock()
            .unwrap()
            .push(format!("  {} -> {outcome:?}", self.line));
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        if !self.done {
            self.log
                .lock()
                .unwrap()
                .push(format!("  {} -> dropped", self.line));
        }
    }
}

pub fn line(action: &Action) -> String {
    match action {
        Action::NetConnect { host, port, ip } => {
            format!(
                "net:connect {host}:{port}{}",
                ip.as_ref().map(|ip| format!(" {ip}")).unwrap_or_default()
            )
        }
        Action::HttpRequest {
            host,
            port,
            method,
            path,
            body_bytes,
            intercepted,
        } => {
            format!(
                "http:request {method} {host}:{port}{path} {body_bytes}{}",
                if *intercepted { " intercepted" } else { "" }
            )
        }
        other => format!("{other:?}"),
    }
}

impl Gate for Scripted {
    fn decide(&self, caller: &Caller, action: Action) -> Result<Box<dyn Permit>, Denial> {
        let line = line(&action);
        self.actions
            .lock()
            .unwrap()
            .push((caller.clone(), action.clone()));
        let cause = if self.fault {
            DenyCause::Fault("the history cannot be written".into())
        } else if (self.deny)(&action) {
            DenyCause::Forbidden {
                rule: RuleName {
                    id: Some("sealed".into()),
                    place: "policy.dw:3".into(),
                },
                description: Some("Nothing leaves after the payroll was read.".into()),
                witness: vec!["fs:read of ~/payroll.csv at 10:02:11".into()],
            }
        } else {
            self.log.lock().unwrap().push(format!("allow {line}"));
            return Ok(Box::new(Written {
                log: Arc::clone(&self.log),
                line,
                done: false,
            }));
        };
        self.log.lock().unwrap().push(format!("deny {line}"));
        Err(Denial {
            action: action.name().into(),
            target: action.target(),
            cause,
        })
    }
}

#[derive(Default)]
pub struct Names {
    pub answers: Mutex<BTreeMap<String, Vec<IpAddr>>>,
    pub asked: Mutex<Vec<String>>,
}

#[async_trait::async_trait]
impl Resolver for Names {
    async fn resolve(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(name.to_owned());
        Ok(self
            .answers
            .lock()
            .unwrap()
            .get(name)
            .cloned()
            .unwrap_or_else(|| vec![PUBLIC]))
    }
}

/// Every address leads to the test's server of that port.
#[derive(Default)]
pub struct Cables {
    pub ports: Mutex<BTreeMap<u16, u16>>,
    pub dialled: Mutex<Vec<SocketAddr>>,
    pub dead: Mutex<Vec<IpAddr>>,
}

#[async_trait::async_trait]
impl Dialer for Cables {
    async fn dial(&self, address: SocketAddr) -> std::io::Result<tokio::net::TcpStream> {
        self.dialled.lock().unwrap().push(address);
        let port = self.ports.lock().unwrap().get(&address.port()).copied();
        if self.dead.lock().unwrap().contains(&address.ip()) {
            return Err(std::io::ErrorKind::ConnectionRefused.into());
        }
        match port {
            Some(port) => tokio::net::TcpStream::connect(("127.0.0.1", port)).await,
            None => Err(std::io::ErrorKind::ConnectionRefused.into()),
        }
    }
}

pub struct Vault(pub BTreeMap<String, String>);

impl SecretSource for Vault {
    fn environment(&self, name: &str) -> Result<Secret, SecretFault> {
        let value = self.0.get(name).ok_or(SecretFault::Unset(name.into()))?;
        Secret::new(value.clone(), name)
    }

    fn file(&self, path: &Path) -> Result<Secret, SecretFault> {
        self.environment(&path.display().to_string())
    }

    fn aws_profile(&self, name: &str) -> Result<AwsKeys, SecretFault> {
        Ok(AwsKeys {
            access_key_id: "AKIDREAL".into(),
            secret_access_key: self.environment(name)?,
            session_token: self.environment(&format!("{name}.token")).ok(),
        })
    }
}

#[derive(Default)]
pub struct Notices(pub Mutex<Vec<String>>);

impl Watch for Notices {
    fn notice(&self, caller: &Caller, notice: Notice) {
        self.0.lock().unwrap().push(format!("{caller:?}: {notice}"));
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct File {
    egress: BTreeMap<String, Route>,
    mcp: BTreeMap<String, Route>,
    network: Network,
    hosts: BTreeMap<String, String>,
}

pub struct Setup {
    pub toml: &'static str,
    pub secrets: Vec<(&'static str, &'static str)>,
    pub deny: Deny,
    pub fault: bool,
    pub roots: Vec<String>,
    /// Port as clients name it, port the server really has.
    pub ports: Vec<(u16, u16)>,
    pub caller: Caller,
    pub limits: Limits,
    /// Instead of the scripted one.
    pub gate: Option<Arc<dyn Gate>>,
    pub messages: Option<Arc<dyn Messages>>,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            toml: "",
            secrets: Vec::new(),
            deny: Arc::new(|_| false),
            fault: false,
            roots: Vec::new(),
            ports: Vec::new(),
            caller: Caller::Agent,
            limits: Limits::default(),
            gate: None,
            messages: None,
        }
    }
}

pub struct World {
    pub gateway: Gateway,
    pub port: u16,
    pub gate: Arc<Scripted>,
    pub names: Arc<Names>,
    pub cables: Arc<Cables>,
    pub notices: Arc<Notices>,
}

impl Setup {
    pub fn start(self) -> World {
        let file: File = toml::from_str(self.toml).expect("configuration");
        let config = GatewayConfig {
            egress: file.egress,
            mcp: file.mcp,
            allow_private: file.network.allow_private,
            hosts: file.hosts,
            extra_roots: self.roots,
            limits: self.limits,
        };
        let gate = Arc::new(Scripted {
            log: Arc::default(),
            actions: Mutex::default(),
            deny: self.deny,
            fault: self.fault,
        });
        let asked = self.gate.unwrap_or_else(|| gate.clone());
        let names = Arc::new(Names::default());
        let cables = Arc::new(Cables {
            ports: Mutex::new(self.ports.into_iter().collect()),
            ..Cables::default()
        });
        let notices = Arc::new(Notices::default());
        let vault = Vault(
            self.secrets
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        );
        let edges = Edges {
            resolver: names.clone(),
            dialer: cables.clone(),
            secrets: Arc::new(vault),
            clock: Arc::new(System),
            random: Arc::new(System),
            watch: notices.clone(),
            messages: self.messages,
        };
        let gateway =
            Gateway::start(&config, asked, edges).unwrap_or_else(|fault| panic!("{fault}"));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        gateway.serve(listener, self.caller).unwrap();
        World {
            gateway,
            port,
            gate,
            names,
            cables,
            notices,
        }
    }
}

pub trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

impl World {
    pub fn log(&self) -> String {
        self.gate.log.lock().unwrap().join("\n")
    }

    pub fn notices(&self) -> String {
        self.notices.0.lock().unwrap().join("\n")
    }

    /// Waits for something another thread will say.
    pub fn until(&self, what: &str, ready: impl Fn(&World) -> bool) {
        for _ in 0..2000 {
            if ready(self) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("never came: {what}\n{}\n{}", self.log(), self.notices());
    }

    pub fn raw(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream
    }

    /// Sends bytes and reads to the end.
    pub fn talk(&self, bytes: &[u8]) -> String {
        let mut stream = self.raw();
        stream.write_all(bytes).unwrap();
        rest(&mut stream)
    }

    /// Opens a tunnel, or returns what was said instead.
    pub fn connect(&self, to: &str) -> Result<TcpStream, String> {
        let mut stream = self.raw();
        stream
            .write_all(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").as_bytes())
            .unwrap();
        let head = head(&mut stream);
        if head.starts_with("HTTP/1.1 200") {
            Ok(stream)
        } else {
            Err(head + rest(&mut stream).as_str())
        }
    }

    /// TLS inside a tunnel, asking for `name`.
    pub fn tls(
        &self,
        stream: TcpStream,
        name: ServerName<'static>,
        sni: bool,
    ) -> impl Stream + use<> {
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.gateway.ca_pem().as_bytes()).unwrap())
            .unwrap();
        let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(
            rustls::crypto::ring::default_provider(),
        ))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
        config.enable_sni = sni;
        rustls::StreamOwned::new(
            rustls::ClientConnection::new(Arc::new(config), name).unwrap(),
            stream,
        )
    }

    pub fn tunnel(&self, to: &str) -> impl Stream + use<> {
        let stream = self.connect(to).unwrap_or_else(|said| panic!("{said}"));
        let host = to.rsplit_once(':').map_or(to, |(host, _)| host).to_owned();
        self.tls(stream, ServerName::try_from(host).unwrap(), true)
    }

    /// One request in a tunnel of its own, to the end.
    pub fn secure(&self, to: &str, request: &str) -> String {
        let mut stream = self.tunnel(to);
        stream.write_all(request.as_bytes()).unwrap();
        rest(&mut stream)
    }
}

/// Reads to the end of a head.
pub fn head(stream: &mut impl Read) -> String {
    let mut text = Vec::new();
    let mut byte = [0_u8];
    while !text.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        text.push(byte[0]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

pub fn rest(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    // A peer that is cut off without a TLS farewell is an end too.
    let _ = stream.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What is the same on every run.
pub fn steady(reply: &str) -> String {
    reply
        .lines()
        .filter(|line| !line.starts_with("date: ") && !line.starts_with("content-length: "))
        .collect::<Vec<_>>()
        .join("\n")
}

/// A channel as a stream of body frames.
pub struct Received<T>(pub tokio::sync::mpsc::Receiver<T>);

impl<T> futures_core::Stream for Received<T> {
    type Item = T;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<T>> {
        self.0.poll_recv(cx)
    }
}
