//! Where a secret stands in a request: looked for there, cleared there, written there.

use crate::secrets::Secret;
use crate::url_path::{decoded, escaped};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use smol_str::SmolStr;
use zeroize::Zeroizing;

/// A request's head as it is judged and forwarded: canonical path, query as sent, end-to-end headers.
#[derive(Clone, Debug)]
pub struct Head {
    pub method: Method,
    pub path: String,
    pub query: Option<String>,
    pub headers: HeaderMap,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    Header {
        name: HeaderName,
        prefix: String,
    },
    /// The password half; the secret is the whole `user:password`.
    Basic,
    Query {
        param: SmolStr,
    },
}

/// What stood where the secret goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offered {
    Nothing,
    /// The value, without prefix or user name.
    Value(String),
    /// Something else, or more than one thing.
    Unreadable,
}

impl Placement {
    /// Takes out whatever stands in the place.
    pub fn take(&self, head: &mut Head) -> Offered {
        match self {
            Placement::Header { name, prefix } => match remove_one(&mut head.headers, name) {
                Ok(None) => Offered::Nothing,
                Ok(Some(value)) => match value.get(..prefix.len()) {
                    Some(start) if start.eq_ignore_ascii_case(prefix) => {
                        Offered::Value(value.get(prefix.len()..).unwrap_or_default().to_owned())
                    }
                    _ => Offered::Unreadable,
                },
                Err(()) => Offered::Unreadable,
            },
            Placement::Basic => match remove_one(&mut head.headers, &AUTHORIZATION) {
                Ok(None) => Offered::Nothing,
                Ok(Some(value)) => match basic_pair(&value)
                    .and_then(|pair| pair.split_once(':').map(|(_, p)| p.to_owned()))
                {
                    Some(password) => Offered::Value(password),
                    None => Offered::Unreadable,
                },
                Err(()) => Offered::Unreadable,
            },
            Placement::Query { param } => {
                let mut offered = Offered::Nothing;
                if let Some(query) = head.query.take() {
                    let mut kept = Vec::new();
                    for pair in query.split('&') {
                        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                        if decoded(&name.replace('+', " ")) == param.as_bytes() {
                            offered = match offered {
                                Offered::Nothing => {
                                    match String::from_utf8(decoded(&value.replace('+', " "))) {
                                        Ok(value) => Offered::Value(value),
                                        Err(_) => Offered::Unreadable,
                                    }
                                }
                                _ => Offered::Unreadable,
                            };
                        } else {
                            kept.push(pair);
                        }
                    }
                    if !kept.is_empty() {
                        head.query = Some(kept.join("&"));
                    }
                }
                offered
            }
        }
    }

    /// Writes the secret into the place, which `take` has cleared. `None` if it cannot stand there.
    pub fn put(&self, head: &mut Head, secret: &Secret) -> Option<()> {
        let (name, value) = match self {
            Placement::Header { name, prefix } => {
                (name, Zeroizing::new(format!("{prefix}{}", secret.expose())))
            }
            Placement::Basic => (
                &AUTHORIZATION,
                Zeroizing::new(format!("Basic {}", STANDARD.encode(secret.expose()))),
            ),
            Placement::Query { param } => {
                let pair = format!(
                    "{}={}",
                    escaped(param.as_bytes(), b""),
                    escaped(secret.expose().as_bytes(), b"")
                );
                head.query = Some(match head.query.take() {
                    Some(query) => format!("{query}&{pair}"),
                    None => pair,
                });
                return Some(());
            }
        };
        let mut value = HeaderValue::from_bytes(value.as_bytes()).ok()?;
        value.set_sensitive(true);
        head.headers.insert(name.clone(), value);
        Some(())
    }

    /// As a sentence names it.
    pub fn place(&self) -> String {
        match self {
            Placement::Header { name, prefix } if prefix.is_empty() => {
                format!("the header `{name}`")
            }
            Placement::Header { name, prefix } => format!("the header `{name}` after `{prefix}`"),
            Placement::Basic => "the password of Basic authorization".to_owned(),
            Placement::Query { param } => format!("the query parameter `{param}`"),
        }
    }
}

fn remove_one(headers: &mut HeaderMap, name: &HeaderName) -> Result<Option<String>, ()> {
    let mut values = headers.get_all(name).iter();
    let found = match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value
            .to_str()
            .map(|text| Some(text.to_owned()))
            .map_err(|_| ()),
        (Some(_), Some(_)) => Err(()),
    };
    headers.remove(name);
    found
}

fn basic_pair(value: &str) -> Option<String> {
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()
}

/// Every text of a head that a placeholder or secret could stand in, with its name for messages.
pub fn texts(head: &Head) -> Vec<(String, Vec<u8>)> {
    let mut texts = vec![("the path".to_owned(), decoded(&head.path))];
    if let Some(query) = &head.query {
        texts.push(("the query".to_owned(), decoded(query)));
    }
    for (name, value) in &head.headers {
        let place = format!("the header `{name}`");
        if let Some(pair) = value.to_str().ok().and_then(basic_pair) {
            texts.push((place.clone(), pair.into_bytes()));
        }
        texts.push((place, value.as_bytes().to_vec()));
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::{Head, Offered, Placement, texts};
    use crate::secrets::Secret;
    use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

    fn head(headers: &[(&'static str, &'static str)], query: Option<&str>) -> Head {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        Head {
            method: http::Method::GET,
            path: "/".into(),
            query: query.map(Into::into),
            headers: map,
        }
    }

    fn bearer() -> Placement {
        Placement::Header {
            name: AUTHORIZATION,
            prefix: "Bearer ".into(),
        }
    }

    #[test]
    fn headers() {
        let value = |head: &mut Head| bearer().take(head);
        assert_eq!(value(&mut head(&[], None)), Offered::Nothing);
        assert_eq!(
            value(&mut head(&[("authorization", "Bearer ph")], None)),
            Offered::Value("ph".into())
        );
        assert_eq!(
            value(&mut head(&[("authorization", "bearer ph")], None)),
            Offered::Value("ph".into())
        );
        assert_eq!(
            value(&mut head(&[("authorization", "Basic ph")], None)),
            Offered::Unreadable
        );
        assert_eq!(
            value(&mut head(
                &[
                    ("authorization", "Bearer ph"),
                    ("authorization", "Bearer ph")
                ],
                None
            )),
            Offered::Unreadable
        );
        let mut sent = head(&[("authorization", "Bearer ph")], None);
        value(&mut sent);
        assert!(sent.headers.is_empty());
        bearer()
            .put(&mut sent, &Secret::new("s3".into(), "X").unwrap())
            .unwrap();
        assert_eq!(sent.headers[AUTHORIZATION], "Bearer s3");
        assert!(!format!("{sent:?}").contains("s3"));
    }

    #[test]
    fn basic() {
        // `any:ph`
        let mut sent = head(&[("authorization", "Basic YW55OnBo")], None);
        assert_eq!(
            Placement::Basic.take(&mut sent),
            Offered::Value("ph".into())
        );
        Placement::Basic
            .put(&mut sent, &Secret::new("user:pass".into(), "X").unwrap())
            .unwrap();
        assert_eq!(sent.headers[AUTHORIZATION], "Basic dXNlcjpwYXNz");
    }

    #[test]
    fn query() {
        let place = Placement::Query {
            param: "key".into(),
        };
        let mut sent = head(&[], Some("a=1&%6bey=p%68&b"));
        assert_eq!(place.take(&mut sent), Offered::Value("ph".into()));
        assert_eq!(sent.query.as_deref(), Some("a=1&b"));
        place
            .put(&mut sent, &Secret::new("s&t=".into(), "X").unwrap())
            .unwrap();
        assert_eq!(sent.query.as_deref(), Some("a=1&b&key=s%26t%3D"));
        assert_eq!(
            place.take(&mut head(&[], Some("key=a&key=a"))),
            Offered::Unreadable
        );
        let mut only = head(&[], Some("key=a"));
        place.take(&mut only);
        assert_eq!(only.query, None);
    }

    #[test]
    fn places_to_look() {
        let mut sent = head(
            &[("x-a", "1"), ("authorization", "Basic YW55OnBo")],
            Some("q=%70h"),
        );
        sent.path = "/x%20y".into();
        let found: Vec<String> = texts(&sent)
            .into_iter()
            .map(|(place, text)| format!("{place}: {}", String::from_utf8_lossy(&text)))
            .collect();
        insta::assert_snapshot!(found.join("\n"), @r"
        the path: /x y
        the query: q=ph
        the header `x-a`: 1
        the header `authorization`: any:ph
        the header `authorization`: Basic YW55OnBo
        ");
    }
}
