//! A request's head: does it name where it goes, in one way only, and what of it is for the next hop.

use crate::authority::{Authority, AuthorityFault};
use crate::placement::Head;
use crate::url_path::{PathFault, canonical_path};
use http::header::{CONNECTION, HOST, HeaderMap, HeaderName, UPGRADE};
use http::request::Parts;
use http::{Method, Uri};
use thiserror::Error;

/// Where requests of a connection go, and whether TLS ends here on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub authority: Authority,
    pub tls: bool,
}

impl Origin {
    pub fn default_port(&self) -> u16 {
        if self.tls { 443 } else { 80 }
    }

    pub fn host_header(&self) -> String {
        self.authority.host_header(self.default_port())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HeadFault {
    #[error("the authority {text:?} is refused: {fault}")]
    Authority { text: String, fault: AuthorityFault },
    #[error("Host says {host:?}, but the request goes to {to}")]
    Host { host: String, to: String },
    #[error("the target names {target:?}, but the tunnel was opened to {to}")]
    Target { target: String, to: String },
    #[error("the request has no Host")]
    NoHost,
    #[error("CONNECT inside a tunnel")]
    NestedConnect,
    #[error(
        "an https:// target outside a tunnel would lose its encryption; open the tunnel with CONNECT"
    )]
    PlainHttps,
    #[error(
        "a request to the gateway must name its server: CONNECT host:port, or an absolute http:// target"
    )]
    OriginForm,
    #[error("{0}")]
    Path(#[from] PathFault),
    #[error(
        "the protocol upgrade to {0:?} is refused; a connection that stops being HTTP could not be judged"
    )]
    Upgrade(String),
}

/// Headers of one hop. Those `Connection` names join them.
pub const FRAMING_HEADERS: [&str; 11] = [
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "host",
    "expect",
    "http2-settings",
    "proxy-connection",
];

/// The origin of a request made to the proxy itself.
pub fn plain_origin(uri: &Uri) -> Result<Origin, HeadFault> {
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => return Err(HeadFault::PlainHttps),
        _ => return Err(HeadFault::OriginForm),
    }
    let text = uri
        .authority()
        .map(|authority| authority.as_str())
        .ok_or(HeadFault::OriginForm)?;
    Ok(Origin {
        authority: authority(text, Some(80))?,
        tls: false,
    })
}

/// The target of a CONNECT.
pub fn tunnel_authority(uri: &Uri) -> Result<Authority, HeadFault> {
    let text = uri
        .authority()
        .map(|authority| authority.as_str())
        .ok_or(HeadFault::OriginForm)?;
    authority(text, None)
}

fn authority(text: &str, default: Option<u16>) -> Result<Authority, HeadFault> {
    Authority::parse(text, default).map_err(|fault| HeadFault::Authority {
        text: text.to_owned(),
        fault,
    })
}

/// Reads a head that must belong to `origin`. What is judged later and what is forwarded both come from it.
pub fn read_head(parts: Parts, origin: &Origin) -> Result<Head, HeadFault> {
    if parts.method == Method::CONNECT {
        return Err(HeadFault::NestedConnect);
    }
    if let Some(target) = parts.uri.authority() {
        let scheme = if origin.tls { "https" } else { "http" };
        let same = parts.uri.scheme_str() == Some(scheme)
            && Authority::parse(target.as_str(), Some(origin.default_port())).as_ref()
                == Ok(&origin.authority);
        if !same {
            return Err(HeadFault::Target {
                target: parts.uri.to_string(),
                to: origin.authority.to_string(),
            });
        }
    }
    match parts.headers.get(HOST) {
        Some(host) => {
            let text = String::from_utf8_lossy(host.as_bytes()).into_owned();
            if Authority::parse(&text, Some(origin.default_port())).as_ref()
                != Ok(&origin.authority)
            {
                return Err(HeadFault::Host {
                    host: text,
                    to: origin.authority.to_string(),
                });
            }
        }
        // The absolute target of an HTTP/1.0 request says it.
        None if parts.uri.authority().is_some() => {}
        None => return Err(HeadFault::NoHost),
    }
    if let Some(wanted) = parts.headers.get(UPGRADE) {
        // A client that merely offers HTTP/2 goes on without.
        if !wanted.as_bytes().eq_ignore_ascii_case(b"h2c") {
            return Err(HeadFault::Upgrade(
                String::from_utf8_lossy(wanted.as_bytes()).into_owned(),
            ));
        }
    }
    let path = canonical_path(parts.uri.path())?;
    let query = parts.uri.query().map(str::to_owned);
    let mut headers = parts.headers;
    strip_hop(&mut headers);
    Ok(Head {
        method: parts.method,
        path,
        query,
        headers,
    })
}

/// Takes out what is for this hop, before anything looks at the rest.
pub fn strip_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .collect();
    let proxy: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with("proxy-"))
        .cloned()
        .collect();
    for name in named.into_iter().chain(proxy) {
        headers.remove(name);
    }
    for name in FRAMING_HEADERS {
        headers.remove(name);
    }
}

/// Takes out of a server's reply what only the gateway may say.
pub fn strip_marks(headers: &mut HeaderMap) {
    let marks: Vec<HeaderName> = headers
        .keys()
        .filter(|name| {
            name.as_str().starts_with("x-strands-box-") || name.as_str().starts_with("x-box-")
        })
        .cloned()
        .collect();
    for name in marks {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::{HeadFault, Origin, plain_origin, read_head, tunnel_authority};
    use crate::authority::{Authority, AuthorityFault};
    use http::Request;

    fn origin(to: &str, tls: bool) -> Origin {
        Origin {
            authority: Authority::parse(to, None).unwrap(),
            tls,
        }
    }

    fn read(
        method: &str,
        uri: &str,
        headers: &[(&str, &str)],
        to: &Origin,
    ) -> Result<String, HeadFault> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let head = read_head(request.body(()).unwrap().into_parts().0, to)?;
        let names: Vec<&str> = head.headers.keys().map(|name| name.as_str()).collect();
        Ok(format!(
            "{} {}{} {}",
            head.method,
            head.path,
            head.query.map(|q| format!("?{q}")).unwrap_or_default(),
            names.join(",")
        ))
    }

    #[test]
    fn host_must_agree() {
        let to = origin("api.test:443", true);
        for host in ["api.test", "API.test.", "api.test:443"] {
            assert_eq!(
                read("GET", "/%61?q", &[("host", host)], &to).as_deref(),
                Ok("GET /a?q "),
                "{host}"
            );
        }
        for host in [
            "evil.test",
            "api.test:8443",
            "api.test@evil.test",
            "",
            "api.test:443:443",
        ] {
            assert!(
                matches!(
                    read("GET", "/", &[("host", host)], &to),
                    Err(HeadFault::Host { .. })
                ),
                "{host}"
            );
        }
        let odd = origin("api.test:8443", true);
        assert!(read("GET", "/", &[("host", "api.test:8443")], &odd).is_ok());
        assert!(read("GET", "/", &[("host", "api.test")], &odd).is_err());
        assert_eq!(read("GET", "/", &[], &to), Err(HeadFault::NoHost));
    }

    #[test]
    fn targets() {
        let to = origin("api.test:443", true);
        assert!(read("GET", "https://api.test/x", &[("host", "api.test")], &to).is_ok());
        assert!(matches!(
            read("GET", "https://evil.test/x", &[("host", "api.test")], &to),
            Err(HeadFault::Target { .. })
        ));
        assert!(matches!(
            read("GET", "http://api.test/x", &[("host", "api.test")], &to),
            Err(HeadFault::Target { .. })
        ));
        assert_eq!(
            read("CONNECT", "api.test:443", &[("host", "api.test")], &to),
            Err(HeadFault::NestedConnect)
        );
        assert!(matches!(
            read("OPTIONS", "*", &[("host", "api.test")], &to),
            Err(HeadFault::Path(_))
        ));
        let plain = origin("api.test:80", false);
        assert!(matches!(
            read("GET", "http://api.test/x", &[("host", "evil.test")], &plain),
            Err(HeadFault::Host { .. })
        ));
        assert_eq!(
            plain_origin(&"http://API.test./x".parse().unwrap()),
            Ok(plain)
        );
        assert_eq!(
            plain_origin(&"https://api.test/x".parse().unwrap()),
            Err(HeadFault::PlainHttps)
        );
        assert_eq!(
            plain_origin(&"/x".parse().unwrap()),
            Err(HeadFault::OriginForm)
        );
        assert_eq!(
            plain_origin(&"http://a@api.test/x".parse().unwrap()),
            Err(HeadFault::Authority {
                text: "a@api.test".into(),
                fault: AuthorityFault::UserInfo
            })
        );
        assert_eq!(
            tunnel_authority(&"api.test:443".parse().unwrap())
                .unwrap()
                .to_string(),
            "api.test:443"
        );
        assert!(tunnel_authority(&"api.test".parse().unwrap()).is_err());
    }

    #[test]
    fn the_hop_keeps_its_headers() {
        let to = origin("api.test:443", true);
        let sent = [
            ("host", "api.test"),
            ("connection", "close, X-Secret"),
            ("x-secret", "1"),
            ("proxy-authorization", "x"),
            ("te", "trailers"),
            ("proxy-anything", "x"),
            ("expect", "100-continue"),
            ("accept", "*/*"),
            ("upgrade", "h2c"),
            ("http2-settings", "x"),
        ];
        assert_eq!(read("GET", "/", &sent, &to).as_deref(), Ok("GET / accept"));
        assert_eq!(
            read(
                "GET",
                "/",
                &[("host", "api.test"), ("upgrade", "websocket")],
                &to
            ),
            Err(HeadFault::Upgrade("websocket".into()))
        );
    }
}
