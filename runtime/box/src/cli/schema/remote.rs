//! The tools of a remote server, asked for through a gateway of its own: the same floor, the same verified TLS and
//! the same way of placing its secret as in the box. No policy is asked, since it is the operator who asks.

use crate::cli::tell;
use crate::config::{BoxConfig, Remote};
use crate::network::settings;
use box_authority::action::{Action, Outcome};
use box_authority::denial::Denial;
use box_authority::gate::{Caller, Gate, Permit};
use box_gateway::config::Inject;
use box_gateway::destination::Destination;
use box_gateway::{Edges, Fetch, Gateway, HostSecrets, Notice, Watch};
use box_mcp::catalogue::Catalogue;
use box_mcp::discover::{Post, Posted, list_remote_tools};
use box_mcp::frame::MAX_LINE;
use smol_str::SmolStr;
use std::path::Path;
use std::sync::Arc;

/// `initialize` and `tools/list` at the server's endpoint. Whoever calls bounds the time.
pub fn listed(
    config: &BoxConfig,
    name: &str,
    remote: &Remote,
    home: &Path,
) -> Result<Catalogue, String> {
    let url = endpoint(remote)?;
    let mut settings = settings(config)?;
    settings.egress.clear();
    settings.mcp.retain(|known, _| known == name);
    for route in settings.mcp.values_mut() {
        // It is the box that asks: nobody has to show a placeholder.
        if !route.secret.reference.starts_with("aws://") {
            route.secret.inject = Some(Inject::Always);
        }
        route.allow = None;
    }
    let edges = Edges::system(Arc::new(HostSecrets::new(home)), Arc::new(Told));
    let gateway =
        Gateway::start(&settings, Arc::new(Operator), edges).map_err(|e| e.to_string())?;
    let mut posts = Posts {
        gateway,
        url,
        caller: Caller::McpServer(name.into()),
    };
    list_remote_tools(name, &mut posts).map_err(|e| e.to_string())
}

/// The path of its first destination, or `/mcp`; plain HTTP on port 80 only.
fn endpoint(remote: &Remote) -> Result<String, String> {
    let first = remote.destinations.first().map_or("", String::as_str);
    let destination = Destination::parse(first).map_err(|e| e.to_string())?;
    let host = destination.host().ok_or(
        "its first destination names no host that could be asked; put one before the others",
    )?;
    let path = match destination.prefix() {
        None | Some("") => "/mcp",
        Some(path) => path,
    };
    Ok(match destination.port() {
        None | Some(443) => format!("https://{host}{path}"),
        Some(80) => format!("http://{host}{path}"),
        Some(port) => format!("https://{host}:{port}{path}"),
    })
}

struct Posts {
    gateway: Gateway,
    url: String,
    caller: Caller,
}

impl Post for Posts {
    fn post(&mut self, headers: &[(&str, &str)], body: String) -> Result<Posted, String> {
        let headers = headers.iter().map(|(name, value)| {
            let pair: (String, String) = ((*name).into(), (*value).into());
            pair
        });
        let request = Fetch {
            method: http::Method::POST,
            url: self.url.clone(),
            headers: headers.collect(),
            body: body.into_bytes(),
            longest_reply: MAX_LINE,
        };
        let reply = self
            .gateway
            .fetch(&self.caller, request)
            .map_err(|e| format!("{}: {e}", self.url))?;
        let header = |wanted: &str| {
            let mut named = reply.headers.iter();
            let found = named.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value.clone())
        };
        let kind = header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default();
        Ok(Posted {
            status: reply.status,
            kind: kind.trim().to_ascii_lowercase(),
            session: header("mcp-session-id"),
            body: reply.body,
        })
    }
}

/// Permits everything: nothing of a sandbox comes this way.
struct Operator;

struct Given;

impl Permit for Given {
    fn complete(self: Box<Self>, _outcome: Outcome) {}
}

impl Gate for Operator {
    fn decide(&self, _caller: &Caller, _action: Action) -> Result<Box<dyn Permit>, Denial> {
        Ok(Box::new(Given))
    }
}

struct Told;

impl Watch for Told {
    fn notice(&self, caller: &Caller, notice: Notice) {
        // That no placeholder was shown is as it should be.
        if !matches!(notice, Notice::Unshown { .. }) {
            let name: SmolStr = crate::network::name(caller);
            tell(&format!("{name}: {notice}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::endpoint;
    use crate::config::Remote;

    #[test]
    fn where_a_server_is_asked() {
        let told: Vec<String> = [
            "mcp.example.net",
            "mcp.example.net:443/v2/mcp",
            "mcp.example.net:80",
            "mcp.example.net:8443/",
            "[2001:db8::1]",
            "mcp.example.net/*mcp",
            "*.example.net",
        ]
        .iter()
        .map(|destination| {
            let remote = Remote {
                destinations: vec![(*destination).to_owned(), "other.test".into()],
                secret: None,
                allow: None,
            };
            endpoint(&remote).unwrap_or_else(|refused| refused)
        })
        .collect();
        insta::assert_snapshot!(told.join("\n"));
    }
}
