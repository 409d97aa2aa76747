//! The network checkpoint of a box: one gateway for all its sandboxes, each with a listener of its own, so that
//! who asks is known from where it was asked.

use crate::boxdir;
use crate::config::BoxConfig;
use box_authority::action::Action;
use box_authority::denial::{Denial, DenyCause};
use box_authority::gate::{Caller, Gate};
use box_gateway::config::GatewayConfig;
use box_gateway::messages::Messages;
use box_gateway::{Edges, Gateway, HostSecrets, Notice, Route, Serving, Watch};
use box_sandbox::Child;
use box_sandbox::spec::ProcessSpec;
use smol_str::SmolStr;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The variable that tells a sandbox where its gateway listens.
pub const ADDRESS: &str = "BOX_GATEWAY";

pub struct Network {
    gateway: Gateway,
    /// The file of the box's certificate, in every view.
    certificate: PathBuf,
}

impl Network {
    /// Starts the gateway, with a certificate authority that lives as long as it does. What it notices on its
    /// own account is appended to `notices`.
    pub fn start(
        config: &BoxConfig,
        gate: Arc<dyn Gate>,
        home: &Path,
        notices: File,
        messages: Option<Arc<dyn Messages>>,
    ) -> Result<Network, String> {
        let settings = settings(config)?;
        let watch = Arc::new(Notices {
            gate: Arc::clone(&gate),
            file: Mutex::new(notices),
        });
        let edges = Edges {
            messages,
            ..Edges::system(Arc::new(HostSecrets::new(home)), watch)
        };
        let gateway = Gateway::start(&settings, gate, edges).map_err(|e| e.to_string())?;
        let certificate = boxdir::write_certificate(&config.box_dir, &gateway.ca_pem())
            .map_err(|e| format!("the certificate of the box cannot be written: {e}"))?;
        Ok(Network {
            gateway,
            certificate,
        })
    }

    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Gives a process its way to the gateway: a listener, which becomes the last of its own, the variables
    /// that lead there, and the placeholders it may use. What its table says stands over a placeholder, and
    /// under what the box sets.
    pub fn equip(&self, spec: &mut ProcessSpec, caller: &Caller) {
        for (name, placeholder) in self.gateway.placeholders_for(caller) {
            spec.env.entry(name).or_insert(placeholder);
        }
        let proxy = format!("${{{ADDRESS}}}");
        let roots = self.certificate.display().to_string();
        spec.env.extend(self.gateway.environment(&proxy, &roots));
        spec.listeners.push(ADDRESS.into());
    }

    /// Serves the listener of an equipped sandbox until the answer is dropped.
    pub fn serve(&self, child: &mut Child, caller: Caller) -> std::io::Result<Served> {
        let Some(listener) = child.listeners.pop() else {
            return Err(std::io::ErrorKind::NotConnected.into());
        };
        self.gateway
            .serve(listener, caller)
            .map(|serving| Served(Some(serving)))
    }
}

/// What the configuration says to a gateway.
pub fn settings(config: &BoxConfig) -> Result<GatewayConfig, String> {
    let mut extra_roots = Vec::new();
    for file in &config.gateway.ca_files {
        let text = std::fs::read_to_string(file)
            .map_err(|e| format!("the roots in {}: {e}", file.display()))?;
        extra_roots.push(text);
    }
    let mcp = config.remotes().filter_map(|(name, remote)| {
        let route = Route {
            destinations: remote.destinations.clone(),
            allow: remote.allow.clone(),
            secret: remote.secret.clone()?,
            ..Route::default()
        };
        Some((name.to_owned(), route))
    });
    Ok(GatewayConfig {
        egress: config.egress.clone(),
        mcp: mcp.collect(),
        allow_private: config.gateway.allow_private.clone(),
        hosts: config.gateway.hosts.clone(),
        extra_roots,
        ..GatewayConfig::default()
    })
}

/// A sandbox's listener. It holds the sandbox's network, so it ends with the sandbox.
pub struct Served(Option<Serving>);

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(serving) = self.0.take() {
            serving.end();
        }
    }
}

/// What the gateway refuses or notices by itself: a line in a file the operator finds, and a record where it is
/// a refusal that no rule lifts.
struct Notices {
    gate: Arc<dyn Gate>,
    file: Mutex<File>,
}

impl Watch for Notices {
    fn notice(&self, caller: &Caller, notice: Notice) {
        let line = format!("{}: {notice}", name(caller))
            .escape_debug()
            .to_string();
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // The refusal stands whether or not anybody can read of it.
        let _ = writeln!(file, "{line}");
        drop(file);
        if let Notice::Floor { target, why } = &notice {
            let (host, port) = target.rsplit_once(':').unwrap_or((target, "0"));
            let action = Action::NetConnect {
                host: host.into(),
                port: port.parse().unwrap_or_default(),
                ip: None,
            };
            let denial = Denial {
                action: action.name().into(),
                target: target.clone(),
                cause: DenyCause::Enforcement {
                    gate: "address-floor",
                    reason: why.to_string(),
                },
            };
            self.gate.record_refusal(caller, &action, &denial);
        }
    }
}

/// How the file names a sandbox: `tool.git`.
pub fn name(caller: &Caller) -> SmolStr {
    match caller {
        Caller::Agent => "agent".into(),
        Caller::Tool(label) => smol_str::format_smolstr!("tool.{label}"),
        Caller::McpServer(name) => smol_str::format_smolstr!("mcp.{name}"),
    }
}
