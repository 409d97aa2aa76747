//! Requests a checkpoint inside the trusted process makes for a sandbox: the same decisions, without a proxy.

use crate::authority::{Authority, AuthorityFault};
use crate::body::{Body, whole};
use crate::connect;
use crate::core::Core;
use crate::exchange::{Upstream, exchange};
use crate::head::Origin;
use crate::reply::Refusal;
use box_authority::gate::Caller;
use http::header::HOST;
use http::{Method, Request, Response, Uri};
use http_body_util::BodyExt;
use std::sync::Arc;
use thiserror::Error;

/// One request. A redirect comes back as what it is.
#[derive(Clone, Debug)]
pub struct Fetch {
    pub method: Method,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// A longer reply is a fault.
    pub longest_reply: usize,
}

/// What a server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Why no answer of a server came.
#[derive(Debug, Error)]
pub enum FetchFault {
    #[error("{0:?} is no http:// or https:// URL")]
    Url(String),
    #[error("the URL's authority is refused: {0}")]
    Authority(#[from] AuthorityFault),
    #[error("a header cannot be written: {0}")]
    Header(String),
    /// Nothing was refused; it did not work.
    #[error("{0}")]
    Failed(String),
    #[error("the reply is longer than {0} bytes")]
    Long(usize),
    #[error("the gateway has ended")]
    Ended,
}

/// A refusal is a reply, the one that a client of the proxy reads: 403, its header, and JSON.
pub async fn fetch(
    core: &Arc<Core>,
    caller: &Caller,
    wanted: Fetch,
) -> Result<Fetched, FetchFault> {
    let (origin, request) = request(&wanted)?;
    let response = match carried(core, caller, &origin, request).await {
        Ok(response) => response,
        Err(refusal) if refusal.marked() => refusal.response(),
        Err(fault) => return Err(FetchFault::Failed(fault.message())),
    };
    collected(response, wanted.longest_reply).await
}

async fn carried(
    core: &Arc<Core>,
    caller: &Caller,
    origin: &Origin,
    request: Request<Body>,
) -> Result<Response<Body>, Refusal> {
    let mut upstream = Upstream::None;
    if origin.tls {
        let stream = connect::open(core, caller, &origin.authority).await?;
        upstream = Upstream::Dialled(origin.authority.clone(), stream);
    }
    exchange(core, caller, origin, &mut upstream, request).await
}

fn request(wanted: &Fetch) -> Result<(Origin, Request<Body>), FetchFault> {
    let bad = || FetchFault::Url(wanted.url.clone());
    let text = wanted.url.split('#').next().unwrap_or_default();
    let uri: Uri = text.parse().map_err(|_| bad())?;
    let (tls, port) = match uri.scheme_str() {
        Some("https") => (true, 443),
        Some("http") => (false, 80),
        _ => return Err(bad()),
    };
    let named = uri.authority().ok_or_else(bad)?.as_str();
    let origin = Origin {
        authority: Authority::parse(named, Some(port))?,
        tls,
    };
    let mut request = Request::builder().method(&wanted.method).uri(uri.clone());
    for (name, value) in &wanted.headers {
        request = request.header(name, value);
    }
    let mut request = request
        .body(whole(wanted.body.clone()))
        .map_err(|fault| FetchFault::Header(fault.to_string()))?;
    if !request.headers().contains_key(HOST) {
        let host = origin.host_header().parse().map_err(|_| bad())?;
        request.headers_mut().insert(HOST, host);
    }
    Ok((origin, request))
}

async fn collected(response: Response<Body>, longest: usize) -> Result<Fetched, FetchFault> {
    let (parts, mut stream) = response.into_parts();
    let mut body = Vec::new();
    while let Some(frame) = stream.frame().await {
        let frame = frame.map_err(|fault| FetchFault::Failed(fault.to_string()))?;
        if let Ok(data) = frame.into_data() {
            body.extend_from_slice(&data);
            if body.len() > longest {
                return Err(FetchFault::Long(longest));
            }
        }
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = parts
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), text(value.as_bytes())))
        .collect();
    Ok(Fetched {
        status: parts.status.as_u16(),
        headers,
        body,
    })
}
