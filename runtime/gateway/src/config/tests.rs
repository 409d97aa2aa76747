//! What a configuration is told.

use super::{GatewayConfig, Route, check};
use std::collections::BTreeMap;

#[derive(serde::Deserialize)]
struct File {
    egress: BTreeMap<String, Route>,
    #[serde(default)]
    network: super::Network,
}

fn report(text: &str) -> String {
    let file: File = match toml::from_str(text) {
        Ok(file) => file,
        Err(fault) => return format!("toml: {}", fault.message()),
    };
    match check(&GatewayConfig {
        egress: file.egress,
        allow_private: file.network.allow_private,
        ..Default::default()
    }) {
        Ok((routes, ..)) => routes.iter().map(|route| format!("{route:?}\n")).collect(),
        Err(problems) => problems
            .iter()
            .map(|problem| format!("{problem}\n"))
            .collect(),
    }
}

#[test]
fn every_fault_at_once() {
    insta::assert_snapshot!(report(
        r#"
        [network]
        allow_private = ["10.0.0.1", "ok.test:80", "*:80"]
        [egress.a]
        destinations = ["api.test", "*", "api.test:443"]
        secret = { ref = "sk-live-1234" }
        [egress.b]
        destinations = []
        protocol = "mcp"
        secret = { ref = "vault://x" }
        [egress.c]
        destinations = ["c.test"]
        allow = ["agent", "tool.", "root"]
        secret = { ref = "env://PATH", header = "x y" }
        [egress.d]
        destinations = ["c.test/v1"]
        secret = { ref = "env://D", placement = "query_param", prefix = "x" }
        [egress.e]
        destinations = ["e.test"]
        secret = { ref = "aws://p", inject = "always" }
        [egress.f]
        destinations = ["f.test"]
        secret = { ref = "file://rel", phantom_prefix = "a b" }
        [egress.g]
        destinations = ["g.test"]
        secret = { ref = "file:///t", header = "Content-Length" }
        [egress.h]
        destinations = ["h.test"]
        secret = { ref = "env://H", header = "Proxy-Authorization", prefix = "a\r\nb" }
        [egress.i]
        destinations = ["i.test"]
        secret = { ref = "env://LD_PRELOAD", prefix = "{}", phantom_prefix = "" }
    "#
    ));
}

#[test]
fn overlaps() {
    insta::assert_snapshot!(report(r#"
        [egress.a]
        destinations = ["a.test/v1", "a.test/v1/x"]
        secret = { ref = "env://A" }
        [egress.b]
        destinations = ["*.test"]
        secret = { ref = "file:///b", env = "A" }
    "#), @r"
    [egress.a] `destinations`: `a.test/v1` overlaps `a.test/v1/x` of [egress.a]; a request may have one secret only
    [egress.a] `destinations`: `a.test/v1` overlaps `*.test` of [egress.b]; a request may have one secret only
    [egress.a] `destinations`: `a.test/v1/x` overlaps `*.test` of [egress.b]; a request may have one secret only
    [egress.b] `secret.env`: `A` already holds the placeholder of [egress.a]
    ");
}

#[test]
fn good_routes() {
    insta::assert_snapshot!(report(
        r#"
        [egress.llm]
        destinations = ["llm.example.net/v2"]
        secret = { ref = "env://LLM_KEY", header = "x-api-key", phantom_prefix = "llm-" }
        [egress.git]
        destinations = ["git.example.net"]
        allow = ["tool.git"]
        secret = { ref = "file:///etc/token", env = "GIT_TOKEN", placement = "basic_auth", inject = "always" }
        [egress.aws]
        destinations = ["*.amazonaws.com"]
        secret = { ref = "aws://work" }
    "#
    ));
}

#[test]
fn closed_tables() {
    insta::assert_snapshot!(report("[egress.a]\ndestinations = ['a.test']\nsecret = { ref = 'env://A', bearer = 'x' }"), @"toml: unknown field `bearer`, expected one of `ref`, `placement`, `header`, `prefix`, `param`, `inject`, `phantom_prefix`, `env`, `service`, `region`");
    insta::assert_snapshot!(report("[egress.a]\ndestinations = ['a.test']"), @"toml: missing field `secret`");
}
