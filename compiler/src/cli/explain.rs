//! `dogwood explain`: what each rule says, in plain English.

use super::policy::Set;
use super::{Failure, Format, Outcome, PolicyArgs, print, print_json};
use clap::Args;
use dogwood_compiler::diagnostic::printable;
use dogwood_compiler::explain::explain;
use serde_json::json;

#[derive(Args)]
pub struct Explain {
    #[command(flatten)]
    policy: PolicyArgs,

    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl Explain {
    pub fn run(self) -> Result<Outcome, Failure> {
        let set = Set::check(&self.policy)?;
        let rules = match set.rules_or_reject(self.format)? {
            Ok(rules) => rules,
            Err(outcome) => return Ok(outcome),
        };
        let explained: Vec<_> = rules
            .iter()
            .map(|rule| explain(&rule.rule, rule.index, set.place(rule), &set.service))
            .collect();
        match self.format {
            Format::Human => {
                let mut parts: Vec<String> = explained
                    .iter()
                    .map(|rule| printable(&rule.to_string()).into_owned())
                    .collect();
                let any_permit = explained.iter().any(|rule| rule.effect == "permit");
                parts.push(closing(explained.is_empty(), any_permit).to_owned());
                print(&parts.join("\n"))?;
            }
            Format::Json => {
                print_json(&json!({ "schema": set.schema.text(), "rules": explained }))?;
            }
        }
        Ok(Outcome::Accepted)
    }
}

/// What holds beside the rules.
fn closing(empty: bool, any_permit: bool) -> &'static str {
    match (empty, any_permit) {
        (true, _) => "There are no rules, so everything is denied.\n",
        (_, false) => "No rule permits anything, so everything is denied.\n",
        _ => {
            "Whatever no rule permits is denied, and a rule that forbids beats every rule that permits.\n"
        }
    }
}
