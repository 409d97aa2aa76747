//! `dogwood check-parse`: is this well written, whatever it speaks about?

use super::policy::{SchemaUsed, Set};
use super::{Experiments, Failure, Format, Outcome, counted, input, print, print_json};
use clap::Args;
use dogwood_compiler::check::leaves;
use dogwood_compiler::compile::{self, CheckedRule};
use dogwood_compiler::diagnostic::tally;
use dogwood_compiler::providers::{Chain, Providers, chains};
use dogwood_compiler::schema::Service;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
pub struct CheckParse {
    /// Policy files; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    policies: Vec<PathBuf>,

    /// Event schema (.dwschema); its syntax is checked as well.
    #[arg(long, value_name = "FILE")]
    event_schema: Option<PathBuf>,

    /// A macro library in place of the built-in one.
    #[arg(long, value_name = "FILE")]
    macros: Option<PathBuf>,

    /// Declarations of information providers (.json), to say which calls have none.
    #[arg(long, value_name = "FILE")]
    providers: Option<PathBuf>,

    #[command(flatten)]
    experiments: Experiments,

    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl CheckParse {
    pub fn run(self) -> Result<Outcome, Failure> {
        let others = self
            .macros
            .iter()
            .chain(&self.providers)
            .chain(&self.event_schema);
        let files = self.policies.iter().chain(others);
        input::only_one_stdin(files.map(|path| path.as_path()))?;
        if let Some(path) = &self.event_schema {
            let source = input::read(path)?;
            let diagnostics = compile::check_event_schema(&source);
            if tally(&diagnostics).0 > 0 {
                let set = Set {
                    schema: SchemaUsed::None,
                    service: Service::default(),
                    texts: vec![source],
                    diagnostics,
                    rules: None,
                    macros: Vec::new(),
                };
                set.print_verdict(self.format, 0, false)?;
                return Ok(Outcome::Rejected);
            }
        }
        let mut texts = Vec::new();
        for path in &self.policies {
            texts.push(input::read(path)?);
        }
        let macros = self.macros.as_deref().map(input::read).transpose()?;
        let parsed = compile::parse_only(&texts, macros.as_ref(), &self.experiments.options());
        texts.extend(macros);
        let declared = self.providers.as_deref().map(input::read_providers);
        let declared = match declared.transpose()? {
            None => None,
            Some((_, Ok((providers, _)))) => Some(providers),
            Some((declarations, Err(diagnostics))) => {
                let set = Set {
                    schema: SchemaUsed::None,
                    service: Service::default(),
                    texts: vec![declarations],
                    diagnostics,
                    rules: None,
                    macros: Vec::new(),
                };
                set.print_verdict(self.format, 0, false)?;
                return Ok(Outcome::Rejected);
            }
        };
        let (rules, diagnostics) = match parsed {
            Ok(parsed) => (Some(parsed.rules), parsed.diagnostics),
            Err(diagnostics) => (None, diagnostics),
        };
        let service = Service::default();
        let set = Set {
            schema: SchemaUsed::None,
            service,
            texts,
            diagnostics,
            rules,
            macros: Vec::new(),
        };
        let Some(rules) = &set.rules else {
            set.print_verdict(self.format, 0, false)?;
            return Ok(Outcome::Rejected);
        };
        match self.format {
            Format::Human => print(&described(&set, rules, declared.as_ref()))?,
            Format::Json => {
                let policies: Vec<_> = rules
                    .iter()
                    .map(|rule| {
                        let calls = chains(&rule.rule);
                        let asked: Vec<_> = calls.iter().map(|call| call.name.text()).collect();
                        json!({
                            "place": set.place(rule),
                            "temporal_count": leaves(&rule.rule).len(),
                            "uses_temporal": !leaves(&rule.rule).is_empty(),
                            "provider_invocations": asked,
                            "undeclared_providers": undeclared(&calls, declared.as_ref()),
                        })
                    })
                    .collect();
                print_json(&json!({ "policy_count": rules.len(), "policies": policies }))?;
            }
        }
        Ok(Outcome::Accepted)
    }
}

/// The providers that these calls ask and the declarations do not have; none where there are no declarations.
fn undeclared(calls: &[Chain], declared: Option<&Providers>) -> Vec<String> {
    let mut names: Vec<String> = calls
        .iter()
        .map(|call| call.name.text())
        .filter(|name| declared.is_some_and(|declared| declared.get(name).is_none()))
        .map(String::from)
        .collect();
    names.sort();
    names.dedup();
    names
}

fn described(set: &Set, rules: &[CheckedRule], declared: Option<&Providers>) -> String {
    let mut out = format!("OK: parsed {}\n", counted(rules.len(), "rule"));
    for rule in rules {
        let temporal = leaves(&rule.rule).len();
        let calls = chains(&rule.rule);
        let mut parts = Vec::new();
        if temporal > 0 {
            parts.push(counted(temporal, "temporal block"));
        }
        if !calls.is_empty() {
            parts.push(counted(calls.len(), "provider call"));
        }
        for name in undeclared(&calls, declared) {
            parts.push(format!("`{name}` is not declared"));
        }
        if !parts.is_empty() {
            out.push_str(&format!(
                "  rule {} ({}): {}\n",
                rule.index,
                set.place(rule),
                parts.join(", ")
            ));
        }
    }
    out
}
