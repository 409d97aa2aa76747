//! `dogwood schema …`: schemas and declarations by themselves, and an action schema made of MCP tools.

use super::policy::with_first_error;
use super::{Failure, Findings, Format, Outcome, counted, input, print, print_json, remark};
use clap::{Args, Subcommand};
use dogwood_compiler::compile::{self, Source};
use dogwood_compiler::diagnostic::{printable, tally};
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use dogwood_compiler::{mcp_schema, providers};
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
pub struct Schema {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    /// Check an action schema (.cedarschema, or Cedar's JSON).
    Action(One),
    /// Check an event schema (.dwschema).
    Event(One),
    /// Check the declarations of information providers (.json).
    Providers(One),
    /// Make an action schema of the tools of an MCP server.
    #[command(after_help = "Example:\n  \
        dogwood schema mcp --manifest tools.json -o tools.cedarschema\n\n\
        The manifest is the reply of a server to `tools/list`, its `result`, or the bare array of tools.")]
    Mcp(Mcp),
}

#[derive(Args)]
struct One {
    /// `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

#[derive(Args)]
struct Mcp {
    /// The tools; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    manifest: PathBuf,

    /// Where to write the schema; standard output without it.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Schema {
    pub fn run(self) -> Result<Outcome, Failure> {
        match self.kind {
            Kind::Action(one) => one.check("action", compile::check_action_schema),
            Kind::Event(one) => one.check("event", compile::check_event_schema),
            Kind::Providers(one) => one.check("providers", providers::check),
            Kind::Mcp(mcp) => mcp.run(),
        }
    }
}

impl One {
    fn check(self, kind: &str, check: fn(&Source) -> Vec<Diagnostic>) -> Result<Outcome, Failure> {
        let source = input::read(&self.file)?;
        let found = check(&source);
        let (errors, warnings) = tally(&found);
        let findings = Findings::new(&found, std::slice::from_ref(&source));
        let passed = errors == 0;
        match self.format {
            Format::Human => {
                let mut out = findings.drawn();
                if !out.is_empty() {
                    out.push('\n');
                }
                out.push_str(&match (passed, warnings) {
                    (true, 0) => format!("OK: {}\n", printable(&source.name)),
                    (true, n) => format!(
                        "OK: {}, {}\n",
                        printable(&source.name),
                        counted(n, "warning")
                    ),
                    (false, n) => format!(
                        "FAILED: {}, {}\n",
                        counted(errors, "error"),
                        counted(n, "warning")
                    ),
                });
                print(&out)?;
            }
            Format::Json => {
                let all = findings.json();
                let of = |severity: &str| -> Vec<serde_json::Value> {
                    let all = all.as_array().into_iter().flatten();
                    all.filter(|d| d["severity"] == severity).cloned().collect()
                };
                let mut answer = json!({ "kind": kind, "ok": passed });
                if warnings > 0 {
                    answer["warnings"] = json!(of("warning"));
                }
                if !passed {
                    answer["errors"] = json!(of("error"));
                }
                print_json(&with_first_error(answer))?;
            }
        }
        Ok(if passed {
            Outcome::Accepted
        } else {
            Outcome::Rejected
        })
    }
}

impl Mcp {
    fn run(self) -> Result<Outcome, Failure> {
        let source = input::read(&self.manifest)?;
        match mcp_schema::from_manifest(&source) {
            Ok(schema) => {
                match &self.output {
                    None => print(&schema)?,
                    Some(path) => {
                        input::replace(path, &schema)?;
                        remark(&format!("wrote {}", printable(&path.display().to_string())));
                    }
                }
                Ok(Outcome::Accepted)
            }
            Err(errors) => {
                let findings = Findings::new(&errors, std::slice::from_ref(&source));
                super::policy::remark_drawn(&findings.drawn());
                Ok(Outcome::Rejected)
            }
        }
    }
}
