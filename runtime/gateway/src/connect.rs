//! From a host and a port to a connection: `net:connect` before the lookup, then for each address.

use crate::addresses::canonical_ip;
use crate::authority::{Authority, Host};
use crate::core::Core;
use crate::edges::Notice;
use crate::reply::{Refusal, UpstreamFault};
use box_authority::action::{Action, Outcome};
use box_authority::gate::Caller;
use std::net::{IpAddr, SocketAddr};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// An answer with more addresses is cut here.
const MOST_ADDRESSES: usize = 16;

/// Opens a connection. Only an address that was just decided is dialled, and the first refused one ends it.
///
/// Each good connection leaves one `::response`, on the decision of the address it went to, so that rules
/// can count connections. The decision before the lookup is given back as having made no connection.
pub async fn open(core: &Core, caller: &Caller, to: &Authority) -> Result<TcpStream, Refusal> {
    let floor = |why| {
        core.notice(
            caller,
            Notice::Floor {
                target: to.to_string(),
                why,
            },
        );
        Refusal::Floor {
            action: "net:connect",
            target: to.to_string(),
            why,
        }
    };
    let fault = |fault| Refusal::Upstream {
        target: to.to_string(),
        fault,
    };

    core.lifts.check_name(to).map_err(floor)?;
    let leave = core
        .decide(caller, connect(to, None))
        .await
        .map_err(Refusal::Policy)?;
    let found = addresses(core, to).await;
    let result = match found {
        Ok(addresses) => match addresses
            .iter()
            .try_for_each(|at| core.lifts.check_address(to, at.ip()))
        {
            Ok(()) => dial(core, caller, to, addresses).await,
            Err(why) => Err(floor(why)),
        },
        Err(why) => Err(fault(why)),
    };
    leave.complete(Outcome::Failed).await;
    result
}

fn connect(to: &Authority, ip: Option<IpAddr>) -> Action {
    Action::NetConnect {
        host: to.host.text(),
        port: i64::from(to.port),
        ip: ip.map(|ip| canonical_ip(ip).into()),
    }
}

/// Where a host and port lead, looked up once and kept for this connection.
async fn addresses(core: &Core, to: &Authority) -> Result<Vec<SocketAddr>, UpstreamFault> {
    let name = match &to.host {
        Host::Ip(ip) => return Ok(vec![SocketAddr::new(*ip, to.port)]),
        Host::Name(name) => name,
    };
    if let Some(place) = core.hosts.place(name) {
        return Ok(vec![place.of(to.port)]);
    }
    let found = match timeout(core.limits.dial, core.edges.resolver.resolve(name)).await {
        Ok(Ok(found)) => found,
        Ok(Err(fault)) => return Err(UpstreamFault::Resolve(fault.kind().to_string())),
        Err(_) => return Err(UpstreamFault::Resolve("no answer in time".into())),
    };
    let mut unique: Vec<SocketAddr> = Vec::new();
    for ip in found {
        let at = SocketAddr::new(ip, to.port);
        if unique.len() < MOST_ADDRESSES && !unique.contains(&at) {
            unique.push(at);
        }
    }
    if unique.is_empty() {
        Err(UpstreamFault::Resolve("it has no address".into()))
    } else {
        Ok(unique)
    }
}

async fn dial(
    core: &Core,
    caller: &Caller,
    to: &Authority,
    addresses: Vec<SocketAddr>,
) -> Result<TcpStream, Refusal> {
    let mut last = "no address".to_owned();
    for at in addresses {
        let permit = core
            .decide(caller, connect(to, Some(at.ip())))
            .await
            .map_err(Refusal::Policy)?;
        match timeout(core.limits.dial, core.edges.dialer.dial(at)).await {
            Ok(Ok(stream)) => {
                permit.complete(Outcome::Done).await;
                return Ok(stream);
            }
            Ok(Err(fault)) => last = fault.kind().to_string(),
            Err(_) => last = "no answer in time".into(),
        }
        permit.complete(Outcome::Failed).await;
    }
    Err(Refusal::Upstream {
        target: to.to_string(),
        fault: UpstreamFault::Dial(last),
    })
}
