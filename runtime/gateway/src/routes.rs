//! Routes at work: their placeholders, which request is bound to which secret, and what must not leave.

use crate::authority::Authority;
use crate::config::{BoundRoute, Inject, SecretUse};
use crate::edges::Random;
use crate::placement::{Head, Offered, Placement, texts};
use crate::secrets::{AwsKeys, Secret, SecretFault, SecretRef, SecretSource};
use crate::sigv4::{self, Scope, SignFault, scope_of};
use aho_corasick::AhoCorasick;
use box_authority::gate::Caller;
use http::header::HeaderValue;
use smol_str::{SmolStr, format_smolstr};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use thiserror::Error;

/// A route with its placeholder, and its secret when that is read at the start.
#[derive(Debug)]
pub struct ArmedRoute {
    pub bound: BoundRoute,
    placeholder: Option<String>,
    /// `env://` only; the others are read at each use.
    value: Option<Secret>,
}

#[derive(Debug)]
pub struct Routes {
    routes: Vec<Arc<ArmedRoute>>,
    placeholders: BTreeMap<String, String>,
    /// Finds any placeholder; names in the order of its patterns.
    finder: Option<AhoCorasick>,
    names: Vec<SmolStr>,
    /// Every value as it was at the start, to be looked for in what leaves.
    watched: Vec<Secret>,
}

/// What a request gets besides its own words.
#[derive(Clone, Debug)]
pub enum Credential {
    None,
    Place(Arc<ArmedRoute>),
    Sign {
        route: Arc<ArmedRoute>,
        scope: Scope,
        claimed: Option<HeaderValue>,
    },
}

/// Why a request's credentials are wrong. The secret itself plays no part here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialFault {
    /// A secret rides inside TLS only.
    Plaintext {
        route: SmolStr,
    },
    /// The route is for other sandboxes.
    Caller {
        route: SmolStr,
        caller: SmolStr,
    },
    Missing {
        route: SmolStr,
        place: String,
        variable: SmolStr,
    },
    Different {
        route: SmolStr,
        place: String,
        variable: SmolStr,
    },
    /// A placeholder stands where no route put it.
    Stray {
        variable: SmolStr,
        place: String,
    },
    Sign {
        route: SmolStr,
        fault: SignFault,
    },
}

/// Why routes cannot be armed.
#[derive(Debug, Error)]
pub enum ArmFault {
    #[error("{}", .0.iter().map(|(route, fault)| format!("[{route}] {fault}")).collect::<Vec<_>>().join("\n"))]
    Secrets(Vec<(SmolStr, SecretFault)>),
    #[error("no randomness for placeholders: {0}")]
    Random(#[from] std::io::Error),
}

pub const PHANTOM_PREFIX: &str = "strands_box_";
const AWS_VARIABLES: [&str; 2] = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];

/// How configuration and tables name a caller.
pub fn caller_name(caller: &Caller) -> SmolStr {
    match caller {
        Caller::Agent => "agent".into(),
        Caller::Tool(label) => format_smolstr!("tool.{label}"),
        Caller::McpServer(name) => format_smolstr!("mcp.{name}"),
    }
}

impl Routes {
    /// Makes the placeholders, and reads every secret once, so that a missing one stops the start.
    pub fn arm(
        bound: Vec<BoundRoute>,
        secrets: &dyn SecretSource,
        random: &dyn Random,
    ) -> Result<Routes, ArmFault> {
        let mut placeholders: BTreeMap<String, String> = BTreeMap::new();
        let mut routes = Vec::new();
        let mut faults = Vec::new();
        let mut watched = Vec::new();
        for route in bound {
            let read = match &route.source {
                SecretRef::Environment(name) => secrets.environment(name).map(|value| vec![value]),
                SecretRef::File(place) => secrets.file(place).map(|value| vec![value]),
                SecretRef::AwsProfile(profile) => secrets.aws_profile(profile).map(|keys| {
                    keys.session_token
                        .into_iter()
                        .chain([keys.secret_access_key])
                        .collect()
                }),
            };
            let values = match read {
                Ok(values) => values,
                Err(fault) => {
                    faults.push((route.name.clone(), fault));
                    continue;
                }
            };
            let value = match &route.source {
                SecretRef::Environment(_) => values.first().cloned(),
                SecretRef::File(_) | SecretRef::AwsProfile(_) => None,
            };
            watched.extend(values);
            let placeholder = match &route.use_ {
                // Two routes of one variable share its placeholder.
                SecretUse::Place {
                    variable,
                    phantom_prefix,
                    ..
                } => {
                    let made = match placeholders.get(variable.as_str()) {
                        Some(made) => made.clone(),
                        None => placeholder(phantom_prefix, random)?,
                    };
                    placeholders.insert(variable.to_string(), made.clone());
                    Some(made)
                }
                SecretUse::Sign(_) => {
                    for name in AWS_VARIABLES {
                        if !placeholders.contains_key(name) {
                            placeholders.insert(name.into(), placeholder(PHANTOM_PREFIX, random)?);
                        }
                    }
                    None
                }
            };
            routes.push(Arc::new(ArmedRoute {
                bound: route,
                placeholder,
                value,
            }));
        }
        if !faults.is_empty() {
            return Err(ArmFault::Secrets(faults));
        }
        let finder = AhoCorasick::new(placeholders.values()).ok();
        let names = placeholders.keys().map(SmolStr::new).collect();
        Ok(Routes {
            routes,
            placeholders,
            finder,
            names,
            watched,
        })
    }

    /// Variables and placeholders of one caller's environment.
    pub fn placeholders_for(&self, caller: &Caller) -> BTreeMap<String, String> {
        let mut own = BTreeMap::new();
        for route in self.routes.iter().filter(|route| route.allows(caller)) {
            let names: &[&str] = match &route.bound.use_ {
                SecretUse::Place { variable, .. } => &[variable.as_str()],
                SecretUse::Sign(_) => &AWS_VARIABLES,
            };
            for name in names {
                if let Some(value) = self.placeholders.get(*name) {
                    own.insert((*name).to_owned(), value.clone());
                }
            }
        }
        own
    }

    pub fn placeholders(&self) -> &BTreeMap<String, String> {
        &self.placeholders
    }

    /// The variable whose placeholder a text holds.
    pub fn placeholder_in(&self, text: &[u8]) -> Option<SmolStr> {
        let finder = self.finder.as_ref()?;
        finder
            .find(text)
            .and_then(|found| self.names.get(found.pattern().as_usize()).cloned())
    }

    pub fn longest_placeholder(&self) -> usize {
        self.placeholders
            .values()
            .map(String::len)
            .max()
            .unwrap_or(0)
    }

    pub fn watched(&self) -> &[Secret] {
        &self.watched
    }

    /// Takes the placeholder or the client's own signature out of the head and says what goes in its
    /// place. A second value tells that an `always` route was used without its placeholder.
    pub fn credential(
        &self,
        caller: &Caller,
        to: &Authority,
        tls: bool,
        head: &mut Head,
    ) -> Result<(Credential, Option<SmolStr>), CredentialFault> {
        let route = self.routes.iter().find(|route| {
            route
                .bound
                .destinations
                .iter()
                .any(|d| d.matches(to, &head.path))
        });
        let mut unshown = None;
        let credential = match route {
            None => Credential::None,
            Some(route) => {
                let name = route.bound.name.clone();
                if !tls {
                    return Err(CredentialFault::Plaintext { route: name });
                }
                if !route.allows(caller) {
                    return Err(CredentialFault::Caller {
                        route: name,
                        caller: caller_name(caller),
                    });
                }
                match &route.bound.use_ {
                    SecretUse::Place {
                        placement,
                        inject,
                        variable,
                        ..
                    } => {
                        let offered = placement.take(head);
                        let shown = matches!((&offered, &route.placeholder), (Offered::Value(value), Some(own)) if value == own);
                        if !shown {
                            if *inject == Inject::Phantom {
                                let (route, place, variable) =
                                    (name, placement.place(), variable.clone());
                                return Err(match offered {
                                    Offered::Nothing => CredentialFault::Missing {
                                        route,
                                        place,
                                        variable,
                                    },
                                    _ => CredentialFault::Different {
                                        route,
                                        place,
                                        variable,
                                    },
                                });
                            }
                            unshown = Some(name);
                        }
                        Credential::Place(Arc::clone(route))
                    }
                    SecretUse::Sign(scope) => {
                        let scope = match scope {
                            Some(scope) => scope.clone(),
                            None => scope_of(&to.host)
                                .map_err(|fault| CredentialFault::Sign { route: name, fault })?,
                        };
                        let claimed = sigv4::clear(head);
                        Credential::Sign {
                            route: Arc::clone(route),
                            scope,
                            claimed,
                        }
                    }
                }
            }
        };
        for (place, text) in texts(head) {
            if let Some(variable) = self.placeholder_in(&text) {
                return Err(CredentialFault::Stray { variable, place });
            }
        }
        Ok((credential, unshown))
    }
}

impl ArmedRoute {
    pub fn allows(&self, caller: &Caller) -> bool {
        self.bound
            .allow
            .as_ref()
            .is_none_or(|allowed| allowed.contains(&caller_name(caller)))
    }

    pub fn placement(&self) -> Option<&Placement> {
        match &self.bound.use_ {
            SecretUse::Place { placement, .. } => Some(placement),
            SecretUse::Sign(_) => None,
        }
    }

    /// The value, after a permit.
    pub fn secret(&self, source: &dyn SecretSource) -> Result<Secret, SecretFault> {
        match (&self.value, &self.bound.source) {
            (Some(value), _) => Ok(value.clone()),
            (None, SecretRef::Environment(name)) => source.environment(name),
            (None, SecretRef::File(place)) => source.file(place),
            (None, SecretRef::AwsProfile(profile)) => source
                .aws_profile(profile)
                .map(|keys| keys.secret_access_key),
        }
    }

    pub fn keys(&self, source: &dyn SecretSource) -> Result<AwsKeys, SecretFault> {
        match &self.bound.source {
            SecretRef::AwsProfile(profile) => source.aws_profile(profile),
            _ => Err(SecretFault::NoProfile(self.bound.name.clone())),
        }
    }
}

fn placeholder(prefix: &str, random: &dyn Random) -> std::io::Result<String> {
    let mut bytes = [0_u8; 32];
    random.fill(&mut bytes)?;
    let mut text = prefix.to_owned();
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
