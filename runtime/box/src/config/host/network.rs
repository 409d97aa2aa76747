//! What a draft says of the network, the servers and the records, against the gateway's rules and the machine.

use super::super::shape::{Draft, DraftRoute, DraftServer};
use super::super::{GatewayTable, Remote, Server};
use super::{Resolver, reason};
use box_gateway::Route;
use box_gateway::config::{ConfigProblem, GatewayConfig, check};
use box_gateway::destination::Destination;
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

impl Resolver<'_> {
    pub(super) fn egress(&mut self, draft: &Draft) -> BTreeMap<String, Route> {
        let remotes = || {
            draft.mcp.iter().filter_map(|(name, server)| match server {
                DraftServer::Http(route) => Some((name, &**route)),
                DraftServer::Stdio(_) => None,
            })
        };
        let mut config = GatewayConfig {
            allow_private: texts(draft),
            hosts: named(draft),
            ..GatewayConfig::default()
        };
        // A route that lacks a key has been answered; it would only be answered again.
        for (name, route) in &draft.egress {
            self.allowed(draft, route);
            if whole(route) {
                config.egress.insert(name.clone(), route.route.clone());
            }
        }
        for (name, route) in remotes() {
            self.allowed(draft, route);
            if whole(route) {
                config.mcp.insert(name.clone(), route.route.clone());
            } else if route.spans.contains_key("destinations") {
                self.destinations(name, route);
            }
        }
        for problem in check(&config).err().unwrap_or_default() {
            self.gateway_problem(draft, &problem);
        }
        let mut taken: Vec<(&str, Vec<Destination>)> = draft
            .egress
            .values()
            .map(|route| (route.title.as_str(), parsed(route)))
            .collect();
        for (_, route) in remotes() {
            self.alone(route, &taken);
            taken.push((&route.title, parsed(route)));
        }
        config.egress
    }

    /// The destinations of a remote server that has no secret.
    fn destinations(&mut self, name: &str, route: &DraftRoute) {
        let faults = route.destinations.iter().filter_map(|word| {
            let fault = Destination::parse(&word.text).err()?;
            Some(format!("{:?}: {fault}", word.text))
        });
        let none = route.destinations.is_empty();
        let none = none.then(|| "it names no destination".to_owned());
        for text in faults.chain(none) {
            let problem = ConfigProblem {
                table: format!("mcp.{name}"),
                key: "destinations".into(),
                text,
            };
            self.route_problem(route, &problem);
        }
    }

    /// Every request to a host of a remote server is read as a message to it.
    fn alone(&mut self, route: &DraftRoute, taken: &[(&str, Vec<Destination>)]) {
        for word in &route.destinations {
            let Ok(own) = Destination::parse(&word.text) else {
                continue;
            };
            let meets = |others: &Vec<Destination>| others.iter().any(|to| to.shares_host(&own));
            if let Some((other, _)) = taken.iter().find(|(_, others)| meets(others)) {
                let message = format!("the host of `{}` is {other}'s already", word.text);
                self.refuse(
                    "invalid-egress",
                    word.span,
                    message,
                    "what is sent there is read as one thing only: take it out of one of them",
                );
            }
        }
    }

    /// Every process that `allow` names is one of the file.
    fn allowed(&mut self, draft: &Draft, route: &DraftRoute) {
        let tools = draft.tools.keys().map(|label| format!("tool.{label}"));
        let servers = draft.mcp.keys().map(|name| format!("mcp.{name}"));
        let known: BTreeSet<String> = ["agent".to_owned()]
            .into_iter()
            .chain(tools)
            .chain(servers)
            .collect();
        for word in &route.allow {
            if !known.contains(&word.text) {
                let message = format!("there is no process `{}` in this file", word.text);
                let list: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                let help = format!("processes of this file: {}", list.join(", "));
                self.refuse("invalid-egress", word.span, message, &help);
            }
        }
    }

    fn gateway_problem(&mut self, draft: &Draft, problem: &ConfigProblem) {
        let egress = problem.table.strip_prefix("egress.");
        let egress = egress.and_then(|name| draft.egress.get(name));
        let server = problem.table.strip_prefix("mcp.");
        let server = server.and_then(|name| match draft.mcp.get(name) {
            Some(DraftServer::Http(route)) => Some(&**route),
            _ => None,
        });
        match egress.or(server) {
            Some(route) => self.route_problem(route, problem),
            None => {
                let names: Vec<super::Word>;
                let (words, help) = if problem.key == "hosts" {
                    names = draft.gateway.hosts.iter().map(|(n, _)| n.clone()).collect();
                    let help = "write a name and where it leads: `\"db.internal\" = \"10.0.0.7\"`, or `\"10.0.0.7:5433\"`";
                    (&names, help)
                } else {
                    let help = "write the name and the port of one service: `db.internal:5432`";
                    (&draft.gateway.allow_private, help)
                };
                self.refuse(
                    "invalid-gateway",
                    smallest(words, problem).unwrap_or(Span::at(0)),
                    format!("`[gateway]` `{}`: {}", problem.key, problem.text),
                    help,
                );
            }
        }
    }

    fn route_problem(&mut self, route: &DraftRoute, problem: &ConfigProblem) {
        // Names of processes were looked at here, against the file.
        if problem.key == "allow" {
            return;
        }
        let whole = route.spans.get(&problem.key).or(route.spans.get("secret"));
        let at = smallest(&route.destinations, problem).filter(|_| problem.key == "destinations");
        let at = at.or(whole.copied()).unwrap_or(route.at);
        let message = format!("`{}` `{}`: {}", route.title, problem.key, problem.text);
        let refusal = Diagnostic::error("invalid-egress", at, message);
        self.problems.push(match problem.key.as_str() {
            "destinations" => refusal.help(
                "a destination is `host`, `host:port`, `host/path`, `host/*suffix` or `*.domain`",
            ),
            "secret.ref" => refusal.help(
                "a secret is named by where it is: `env://NAME`, `file:///PATH` or `aws://PROFILE`",
            ),
            _ => refusal,
        });
    }

    pub(super) fn gateway(&mut self, draft: &Draft) -> GatewayTable {
        let mut ca_files = Vec::new();
        for word in &draft.gateway.ca_files {
            let path = self.absolute(&word.text);
            let help = "name a PEM file of certificates";
            match path.canonicalize().and_then(|path| {
                let text = std::fs::read_to_string(&path)?;
                Ok((path, text))
            }) {
                Err(e) => {
                    let message = format!("{} cannot be read: {}", path.display(), reason(&e));
                    self.refuse("path-missing", word.span, message, help);
                }
                Ok((_, text)) if !text.contains("-----BEGIN CERTIFICATE-----") => {
                    let message = format!("{} holds no certificate", path.display());
                    self.refuse("path-kind", word.span, message, help);
                }
                Ok((_, text)) if text.contains("PRIVATE KEY-----") => {
                    let message = format!("{} holds a private key", path.display());
                    self.refuse("path-kind", word.span, message, help);
                }
                Ok((path, _)) => ca_files.push(path),
            }
        }
        GatewayTable {
            allow_private: texts(draft),
            hosts: named(draft),
            ca_files,
        }
    }

    pub(super) fn servers(&mut self, draft: &Draft) -> BTreeMap<String, Server> {
        let mut servers = BTreeMap::new();
        for (name, server) in &draft.mcp {
            let server = match server {
                DraftServer::Stdio(process) => self
                    .process(&format!("mcp.{name}"), process, false)
                    .map(Server::Stdio),
                DraftServer::Http(route) => Some(Server::Http(Remote {
                    destinations: route.route.destinations.clone(),
                    secret: route.secret.then(|| route.route.secret.clone()),
                    allow: route.route.allow.clone(),
                })),
            };
            if let Some(server) = server {
                servers.insert(name.clone(), server);
            }
        }
        servers
    }

    /// The files records go to.
    pub(super) fn records(&mut self, draft: &Draft, box_dir: &Path) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = Vec::new();
        for target in draft.telemetry.values().filter(|target| target.file) {
            let word = &target.destination;
            let path = self.absolute(&word.text);
            let (Some(parent), Some(last)) = (path.parent(), path.file_name()) else {
                continue;
            };
            let found = match parent.canonicalize() {
                Ok(parent) => parent.join(last),
                // The box makes its own folders.
                Err(_) if path.starts_with(box_dir) => path.clone(),
                Err(e) => {
                    let message = format!(
                        "`{}`: records cannot be kept in {}: {}",
                        target.title,
                        parent.display(),
                        reason(&e)
                    );
                    let help = "create the directory first";
                    self.refuse("path-missing", word.span, message, help);
                    continue;
                }
            };
            let problem = if found.is_symlink() || (found.exists() && !found.is_file()) {
                Some(("path-kind", "it is not a regular file"))
            } else if found.starts_with(box_dir) && !found.starts_with(box_dir.join("private")) {
                Some((
                    "path-own",
                    "in the box directory only `private/` is for records",
                ))
            } else if files.contains(&found) {
                Some(("duplicate-path", "another target writes there"))
            } else {
                None
            };
            if let Some((code, why)) = problem {
                let message = format!(
                    "`{}`: records cannot go to {}: {why}",
                    target.title,
                    found.display()
                );
                self.refuse(
                    code,
                    word.span,
                    message,
                    "name a file of its own, which need not exist",
                );
                continue;
            }
            files.push(found);
        }
        files
    }
}

/// The destinations that are some.
fn parsed(route: &DraftRoute) -> Vec<Destination> {
    let words = route.destinations.iter();
    words
        .filter_map(|word| Destination::parse(&word.text).ok())
        .collect()
}

/// Whether a route has the keys that make it one.
fn whole(route: &DraftRoute) -> bool {
    route.spans.contains_key("destinations") && !route.route.secret.reference.is_empty()
}

fn texts(draft: &Draft) -> Vec<String> {
    draft
        .gateway
        .allow_private
        .iter()
        .map(|word| word.text.clone())
        .collect()
}

/// Names and where they lead.
fn named(draft: &Draft) -> BTreeMap<String, String> {
    draft
        .gateway
        .hosts
        .iter()
        .map(|(name, place)| (name.text.clone(), place.text.clone()))
        .collect()
}

/// The word a problem speaks of: the longest one in its text.
fn smallest(words: &[super::Word], problem: &ConfigProblem) -> Option<Span> {
    words
        .iter()
        .filter(|word| problem.text.contains(&word.text))
        .max_by_key(|word| word.text.len())
        .map(|word| word.span)
}
