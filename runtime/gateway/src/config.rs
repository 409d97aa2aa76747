//! What the operator says of the network: `[egress.<name>]` and `[gateway]` of `box.toml`, and every fault in it.

use crate::addresses::Lifts;
use crate::destination::Destination;
use crate::hosts::Hosts;
use crate::placement::Placement;
use crate::secrets::SecretRef;
use crate::sigv4::{Scope, scope_of};
use http::header::{AUTHORIZATION, HeaderName};
use serde::Deserialize;
use smol_str::SmolStr;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter};
use std::path::PathBuf;
use std::time::Duration;

/// Everything a gateway is told at its start.
#[derive(Clone, Debug, Default)]
pub struct GatewayConfig {
    /// `[egress.<name>]`.
    pub egress: BTreeMap<String, Route>,
    /// `[mcp.<name>]` of remote servers that have a secret.
    pub mcp: BTreeMap<String, Route>,
    /// `[gateway] allow_private`: `host:port`, each lifted below the address floor by exact name.
    pub allow_private: Vec<String>,
    /// `[gateway] hosts`: a name to the address, or `address:port`, it leads to instead of asking the resolver.
    pub hosts: BTreeMap<String, String>,
    /// PEM texts of roots upstreams may be verified against, beside the public ones.
    pub extra_roots: Vec<String>,
    pub limits: Limits,
}

/// `[gateway]` of `box.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// `host:port` of private, loopback or metadata services the box may be allowed to reach.
    pub allow_private: Vec<String>,
    /// PEM files of further roots.
    pub trust: Vec<PathBuf>,
}

/// `[egress.<name>]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    pub destinations: Vec<String>,
    #[serde(default)]
    pub protocol: Option<String>,
    /// Which sandboxes may use it: `agent`, `tool.<label>`, `mcp.<name>`. Absent: every one.
    #[serde(default)]
    pub allow: Option<Vec<String>>,
    pub secret: SecretTable,
}

/// `secret` of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretTable {
    #[serde(rename = "ref")]
    pub reference: String,
    #[serde(default)]
    pub placement: Option<PlacementKind>,
    #[serde(default)]
    pub header: Option<String>,
    #[serde(default)]
    pub prefix: Option<String>,
    #[serde(default)]
    pub param: Option<String>,
    #[serde(default)]
    pub inject: Option<Inject>,
    #[serde(default)]
    pub phantom_prefix: Option<String>,
    /// The variable that holds the placeholder of a `file://` secret.
    #[serde(default)]
    pub env: Option<String>,
    /// What to sign for, where the host does not say.
    #[serde(default)]
    pub service: Option<String>,
    #[serde(default)]
    pub region: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlacementKind {
    Header,
    BasicAuth,
    QueryParam,
}

/// Whether the process must show the placeholder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Inject {
    #[default]
    Phantom,
    Always,
}

/// Bounds on what one sandbox can make the gateway hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub connections: usize,
    /// A body of undeclared length is read this far to learn its length.
    pub measured_body: usize,
    /// A body that must be signed is held up to this.
    pub signed_body: usize,
    pub dial: Duration,
    pub handshake: Duration,
    pub head: Duration,
    pub reply: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 256,
            measured_body: 1024 * 1024,
            signed_body: 16 * 1024 * 1024,
            dial: Duration::from_secs(10),
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(120),
            reply: Duration::from_secs(600),
        }
    }
}

/// One thing wrong with the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// `egress.llm`, `network`.
    pub table: String,
    /// `secret.prefix`.
    pub key: String,
    pub text: String,
}

impl Display for ConfigProblem {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}] `{}`: {}", self.table, self.key, self.text)
    }
}

impl std::error::Error for ConfigProblem {}

/// A route whose text was found good.
#[derive(Clone, Debug)]
pub struct BoundRoute {
    /// Its table: `egress.llm`, `mcp.tickets`.
    pub name: SmolStr,
    pub destinations: Vec<Destination>,
    pub allow: Option<BTreeSet<SmolStr>>,
    pub source: SecretRef,
    pub use_: SecretUse,
}

/// How a route's secret is used.
#[derive(Clone, Debug)]
pub enum SecretUse {
    Place {
        placement: Placement,
        inject: Inject,
        variable: SmolStr,
        phantom_prefix: String,
    },
    /// Explicit scope, or what each host says.
    Sign(Option<Scope>),
}

/// Names no placeholder may take: the sandbox's own, and those that change what a program runs.
const RESERVED_NAMES: [&str; 20] = [
    "HOME",
    "PATH",
    "PWD",
    "USER",
    "TMPDIR",
    "NODE_OPTIONS",
    "BASH_ENV",
    "ENV",
    "RUBYOPT",
    "PERL5LIB",
    "PERL5OPT",
    "GEM_PATH",
    "CLASSPATH",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "NO_PROXY",
    "no_proxy",
    "NODE_USE_ENV_PROXY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
];
const RESERVED_PREFIXES: [&str; 4] = ["LD_", "DYLD_", "PYTHON", "OTEL_EXPORTER_OTLP_"];

/// Checks the whole configuration, and says everything that is wrong with it at once.
pub fn check(
    config: &GatewayConfig,
) -> Result<(Vec<BoundRoute>, Lifts, Hosts), Vec<ConfigProblem>> {
    let mut problems = Vec::new();
    let mut routes: Vec<BoundRoute> = Vec::new();
    let egress = config.egress.iter();
    let egress = egress.map(|(name, route)| (format!("egress.{name}"), route));
    let servers = config.mcp.iter();
    let servers = servers.map(|(name, route)| (format!("mcp.{name}"), route));
    for (table, route) in egress.chain(servers) {
        let mut of_route = RouteCheck {
            table: table.clone(),
            problems: &mut problems,
        };
        if let Some(bound) = of_route.route(&table, route) {
            routes.push(bound);
        }
    }
    for (at, route) in routes.iter().enumerate() {
        let own = route.destinations.iter().enumerate().flat_map(|(i, one)| {
            route
                .destinations
                .iter()
                .skip(i + 1)
                .map(move |two| (one, two, &route.name))
        });
        let others = routes.iter().skip(at + 1).flat_map(|other| {
            route.destinations.iter().flat_map(move |one| {
                other
                    .destinations
                    .iter()
                    .map(move |two| (one, two, &other.name))
            })
        });
        for (one, two, name) in own.chain(others) {
            if one.overlaps(two) {
                problems.push(ConfigProblem {
                    table: route.name.to_string(),
                    key: "destinations".into(),
                    text: format!(
                        "`{one}` overlaps `{two}` of [{name}]; a request may have one secret only"
                    ),
                });
            }
        }
        if let SecretUse::Place { variable, .. } = &route.use_ {
            for other in routes.iter().skip(at + 1) {
                if let SecretUse::Place {
                    variable: theirs, ..
                } = &other.use_
                    && variable == theirs
                    && route.source != other.source
                {
                    problems.push(ConfigProblem {
                        table: other.name.to_string(),
                        key: "secret.env".into(),
                        text: format!(
                            "`{variable}` already holds the placeholder of [{}]",
                            route.name
                        ),
                    });
                }
            }
        }
    }
    let lifts = Lifts::parse(&config.allow_private).unwrap_or_else(|faults| {
        problems.extend(faults.into_iter().map(|(text, fault)| ConfigProblem {
            table: "gateway".into(),
            key: "allow_private".into(),
            text: format!("{text:?} is not `host:port`: {fault}"),
        }));
        Lifts::default()
    });
    let hosts = Hosts::parse(&config.hosts).unwrap_or_else(|faults| {
        problems.extend(faults.into_iter().map(|fault| ConfigProblem {
            table: "gateway".into(),
            key: "hosts".into(),
            text: fault.to_string(),
        }));
        Hosts::default()
    });
    if problems.is_empty() {
        Ok((routes, lifts, hosts))
    } else {
        Err(problems)
    }
}

struct RouteCheck<'p> {
    table: String,
    problems: &'p mut Vec<ConfigProblem>,
}

impl RouteCheck<'_> {
    fn problem(&mut self, key: &str, text: impl Into<String>) {
        self.problems.push(ConfigProblem {
            table: self.table.clone(),
            key: key.into(),
            text: text.into(),
        });
    }

    fn route(&mut self, name: &str, route: &Route) -> Option<BoundRoute> {
        let before = self.problems.len();
        match route.protocol.as_deref() {
            None | Some("http") => {}
            Some("mcp") => self.problem(
                "protocol",
                "MCP over HTTP is configured as `[mcp.<name>]` with `type = \"http\"`",
            ),
            Some(other) => self.problem(
                "protocol",
                format!("{other:?} is not known; only \"http\" is"),
            ),
        }
        if route.destinations.is_empty() {
            self.problem("destinations", "it names no destination");
        }
        let mut destinations = Vec::new();
        for text in &route.destinations {
            match Destination::parse(text) {
                Ok(destination) => destinations.push(destination),
                Err(fault) => self.problem("destinations", format!("{text:?}: {fault}")),
            }
        }
        let allow = route.allow.as_ref().map(|callers| self.callers(callers));
        let source = self.source(&route.secret.reference);
        let use_ = match &source {
            Some(SecretRef::AwsProfile(_)) => self.signing(&route.secret, &destinations),
            Some(source) => self.placing(&route.secret, source),
            None => None,
        };
        match (source, use_) {
            (Some(source), Some(use_)) if self.problems.len() == before => Some(BoundRoute {
                name: name.into(),
                destinations,
                allow,
                source,
                use_,
            }),
            _ => None,
        }
    }

    fn callers(&mut self, callers: &[String]) -> BTreeSet<SmolStr> {
        for caller in callers {
            let labelled = caller.strip_prefix("tool.").or(caller.strip_prefix("mcp."));
            if caller != "agent" && labelled.is_none_or(str::is_empty) {
                self.problem(
                    "allow",
                    format!("{caller:?} is not `agent`, `tool.<label>` or `mcp.<name>`"),
                );
            }
        }
        callers.iter().map(SmolStr::new).collect()
    }

    fn source(&mut self, reference: &str) -> Option<SecretRef> {
        let Some((scheme, rest)) = reference.split_once("://") else {
            // Not repeated: it may be the secret itself.
            self.problem("secret.ref", "it names no source; write env://NAME, file:///PATH or aws://PROFILE, never a value");
            return None;
        };
        match scheme {
            "env" if variable_name(rest) => Some(SecretRef::Environment(rest.into())),
            "env" => {
                self.problem("secret.ref", "env:// wants the name of a variable");
                None
            }
            "file" if rest.starts_with('/') => Some(SecretRef::File(PathBuf::from(rest))),
            "file" => {
                self.problem("secret.ref", "file:// wants an absolute path: file:///PATH");
                None
            }
            "aws" if !rest.is_empty() => Some(SecretRef::AwsProfile(rest.into())),
            "aws" => Some(SecretRef::AwsProfile("default".into())),
            other => {
                self.problem(
                    "secret.ref",
                    format!(
                        "the source `{other}://` is not known; there are env://, file:// and aws://"
                    ),
                );
                None
            }
        }
    }

    fn signing(&mut self, secret: &SecretTable, destinations: &[Destination]) -> Option<SecretUse> {
        for (key, present) in [
            ("placement", secret.placement.is_some()),
            ("header", secret.header.is_some()),
            ("prefix", secret.prefix.is_some()),
            ("param", secret.param.is_some()),
            ("inject", secret.inject.is_some()),
            ("phantom_prefix", secret.phantom_prefix.is_some()),
            ("env", secret.env.is_some()),
        ] {
            if present {
                self.problem(
                    &format!("secret.{key}"),
                    "aws:// signs requests, and takes no placement",
                );
            }
        }
        match (&secret.service, &secret.region) {
            (Some(service), Some(region)) => Some(SecretUse::Sign(Some(Scope {
                service: service.into(),
                region: region.into(),
            }))),
            (None, None) => {
                for host in destinations.iter().filter_map(Destination::host) {
                    if let Err(fault) = scope_of(host) {
                        self.problem("destinations", format!("`{host}`: {fault}"));
                    }
                }
                Some(SecretUse::Sign(None))
            }
            _ => {
                self.problem(
                    "secret.service",
                    "`service` and `region` stand together or not at all",
                );
                None
            }
        }
    }

    fn placing(&mut self, secret: &SecretTable, source: &SecretRef) -> Option<SecretUse> {
        for (key, present) in [
            ("service", secret.service.is_some()),
            ("region", secret.region.is_some()),
        ] {
            if present {
                self.problem(&format!("secret.{key}"), "only aws:// signs for a service");
            }
        }
        let variable = match (source, &secret.env) {
            (SecretRef::Environment(name), None) => name.clone(),
            (SecretRef::Environment(_), Some(_)) => {
                self.problem(
                    "secret.env",
                    "the placeholder of an env:// secret takes the secret's own name",
                );
                return None;
            }
            (_, Some(name)) if variable_name(name) => name.into(),
            (_, Some(name)) => {
                self.problem("secret.env", format!("{name:?} is no variable name"));
                return None;
            }
            (_, None) => {
                self.problem(
                    "secret.env",
                    "a file:// secret needs it: the variable that will hold the placeholder",
                );
                return None;
            }
        };
        if RESERVED_NAMES.contains(&variable.as_str())
            || RESERVED_PREFIXES
                .iter()
                .any(|prefix| variable.starts_with(prefix))
            || crate::environment::is_own(&variable)
        {
            self.problem(
                "secret.ref",
                format!("`{variable}` is set by the box itself, or changes what programs run"),
            );
        }
        let phantom_prefix = secret
            .phantom_prefix
            .clone()
            .unwrap_or_else(|| crate::routes::PHANTOM_PREFIX.into());
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '~');
        if phantom_prefix.is_empty()
            || phantom_prefix.len() > 64
            || !phantom_prefix.chars().all(fits)
        {
            self.problem(
                "secret.phantom_prefix",
                "it is 1 to 64 letters, digits, `-`, `_`, `.` or `~`",
            );
        }
        let kind = secret.placement.unwrap_or(PlacementKind::Header);
        for (key, present, only) in [
            ("header", secret.header.is_some(), PlacementKind::Header),
            ("prefix", secret.prefix.is_some(), PlacementKind::Header),
            ("param", secret.param.is_some(), PlacementKind::QueryParam),
        ] {
            if present && kind != only {
                let name = if only == PlacementKind::Header {
                    "header"
                } else {
                    "query_param"
                };
                self.problem(
                    &format!("secret.{key}"),
                    format!("it belongs to `placement = \"{name}\"`"),
                );
            }
        }
        let placement = match kind {
            PlacementKind::Header => self.header(secret)?,
            PlacementKind::BasicAuth => Placement::Basic,
            PlacementKind::QueryParam => match secret.param.as_deref() {
                Some(param) if !param.is_empty() && !param.chars().any(char::is_control) => {
                    Placement::Query {
                        param: param.into(),
                    }
                }
                _ => {
                    self.problem(
                        "secret.param",
                        "`placement = \"query_param\"` needs the parameter's name",
                    );
                    return None;
                }
            },
        };
        Some(SecretUse::Place {
            placement,
            inject: secret.inject.unwrap_or_default(),
            variable,
            phantom_prefix,
        })
    }

    fn header(&mut self, secret: &SecretTable) -> Option<Placement> {
        let name = match &secret.header {
            None => AUTHORIZATION,
            Some(text) => match HeaderName::from_bytes(text.as_bytes()) {
                Ok(name) => name,
                Err(_) => {
                    self.problem("secret.header", format!("{text:?} is no header name"));
                    return None;
                }
            },
        };
        if name.as_str().starts_with("proxy-")
            || crate::head::FRAMING_HEADERS.contains(&name.as_str())
        {
            self.problem(
                "secret.header",
                format!("`{name}` never travels past the gateway as sent"),
            );
            return None;
        }
        let prefix = match &secret.prefix {
            Some(prefix) => prefix.clone(),
            None if name == AUTHORIZATION => "Bearer ".into(),
            None => String::new(),
        };
        if !prefix.is_ascii()
            || prefix
                .chars()
                .any(|c| c.is_control() || matches!(c, '{' | '}'))
        {
            self.problem(
                "secret.prefix",
                "it may hold no control character, brace or letter outside ASCII",
            );
            return None;
        }
        Some(Placement::Header { name, prefix })
    }
}

fn variable_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests;
