//! `dogwood check-parse`: is this well written, whatever it speaks about?

use super::policy::{SchemaUsed, Set};
use super::{Failure, Format, Outcome, counted, input, print, print_json};
use clap::Args;
use dogwood_compiler::check::leaves;
use dogwood_compiler::compile::{self, CheckedRule, Options};
use dogwood_compiler::schema::Service;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
pub struct CheckParse {
    /// Policy files; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    policies: Vec<PathBuf>,

    /// A macro library in place of the built-in one.
    #[arg(long, value_name = "FILE")]
    macros: Option<PathBuf>,

    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl CheckParse {
    pub fn run(self) -> Result<Outcome, Failure> {
        let files = self.policies.iter().chain(&self.macros);
        input::only_one_stdin(files.map(|path| path.as_path()))?;
        let mut texts = Vec::new();
        for path in &self.policies {
            texts.push(input::read(path)?);
        }
        let macros = self.macros.as_deref().map(input::read).transpose()?;
        let parsed = compile::parse_only(&texts, macros.as_ref(), &Options::default());
        texts.extend(macros);
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
        };
        let Some(rules) = &set.rules else {
            set.print_verdict(self.format, 0, false)?;
            return Ok(Outcome::Rejected);
        };
        match self.format {
            Format::Human => print(&described(&set, rules))?,
            Format::Json => {
                let policies: Vec<_> = rules
                    .iter()
                    .map(|rule| {
                        json!({
                            "place": set.place(rule),
                            "temporal_count": leaves(&rule.rule).len(),
                            "uses_temporal": !leaves(&rule.rule).is_empty(),
                        })
                    })
                    .collect();
                print_json(&json!({ "policy_count": rules.len(), "policies": policies }))?;
            }
        }
        Ok(Outcome::Accepted)
    }
}

fn described(set: &Set, rules: &[CheckedRule]) -> String {
    let mut out = format!("OK: parsed {}\n", counted(rules.len(), "rule"));
    for rule in rules {
        let temporal = leaves(&rule.rule).len();
        if temporal > 0 {
            let blocks = counted(temporal, "temporal block");
            out.push_str(&format!(
                "  rule {} ({}): {blocks}\n",
                rule.index,
                set.place(rule)
            ));
        }
    }
    out
}
