//! The variables that send a sandbox's programs through the gateway. The sandbox is what holds them to it.

use std::collections::BTreeMap;

const PROXY: [&str; 6] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "http_proxy",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
];
const DIRECT: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Every one names a file of roots. Several clients replace their own roots by it, which is right here: no
/// connection leaves the sandbox but through the gateway's certificates.
const ROOTS: [&str; 13] = [
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "CODEX_CA_CERTIFICATE",
    "AWS_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "CURL_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "PIP_CERT",
    "npm_config_cafile",
    "DENO_CERT",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "BUNDLE_SSL_CA_CERT",
];

/// `proxy` is `127.0.0.1:<port>` of the sandbox's own listener, `roots` the file with the box's certificate
/// as the sandbox sees it.
pub fn environment(proxy: &str, roots: &str) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::new();
    for name in PROXY {
        variables.insert(name.to_owned(), format!("http://{proxy}"));
    }
    for name in DIRECT {
        variables.insert(name.to_owned(), "127.0.0.1,localhost".to_owned());
    }
    for name in ROOTS {
        variables.insert(name.to_owned(), roots.to_owned());
    }
    variables.insert("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned());
    variables
}

/// Whether the gateway sets it, so that no table may.
pub fn is_own(name: &str) -> bool {
    PROXY.contains(&name)
        || DIRECT.contains(&name)
        || ROOTS.contains(&name)
        || name == "NODE_USE_ENV_PROXY"
}

#[cfg(test)]
mod tests {
    use super::{environment, is_own};

    #[test]
    fn variables() {
        let all = environment("127.0.0.1:3128", "/box/trust/cert.pem");
        assert!(all.keys().all(|name| is_own(name)));
        let text: Vec<String> = all
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        insta::assert_snapshot!(text.join("\n"));
    }
}
