//! `dogwood lower`: the rules as plain Cedar, for any engine of it.

use super::policy::Set;
use super::{Failure, Format, Outcome, PolicyArgs, counted, print, print_json, remark};
use clap::{Args, ValueEnum};
use dogwood_compiler::grammar::print::lay_out_action_schema;
use dogwood_compiler::lower::{self, Lowered};
use dogwood_compiler::schema::write::to_json;
use serde_json::{Value, json};
use smol_str::SmolStr;

#[derive(Args)]
pub struct Lower {
    #[command(flatten)]
    policy: PolicyArgs,

    /// What to print; JSON has everything.
    #[arg(long, value_enum, default_value_t = Emit::Both)]
    emit: Emit,

    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// The policies.
    CedarPolicies,
    /// The widened schema.
    CedarSchema,
    /// The widened schema as JSON.
    CedarJson,
    /// The policies and the widened schema.
    Both,
}

impl Lower {
    pub fn run(self) -> Result<Outcome, Failure> {
        let mut set = Set::check(&self.policy)?;
        let rules = match set.rules_or_reject(self.format)? {
            Ok(rules) => rules,
            Err(outcome) => return Ok(outcome),
        };
        let lowered = match lower::lower(rules, &set.service, "policy") {
            Ok(lowered) => lowered,
            Err(errors) => {
                set.diagnostics = errors.iter().map(|error| error.diagnostic()).collect();
                return set.reject(self.format);
            }
        };
        // JSON says it itself.
        if self.format == Format::Human && !lowered.self_contained() {
            remark(&note(&lowered));
        }
        let answer = Answer::new(&lowered);
        match self.format {
            Format::Human => print(&answer.text(self.emit))?,
            Format::Json => print_json(&answer.json(&lowered))?,
        }
        Ok(Outcome::Accepted)
    }
}

/// What an engine of Cedar cannot know by itself.
fn note(lowered: &Lowered) -> String {
    let mut hoisted = Vec::new();
    if !lowered.temporal.is_empty() {
        hoisted.push(counted(lowered.temporal.len(), "temporal block"));
    }
    if !lowered.providers.is_empty() {
        hoisted.push(counted(lowered.providers.len(), "provider call"));
    }
    format!(
        "note: Cedar alone cannot decide these policies: it reads {} from the context",
        hoisted.join(" and ")
    )
}

struct Answer {
    policies: String,
    schema: String,
    schema_json: Value,
}

impl Answer {
    fn new(lowered: &Lowered) -> Answer {
        let mut policies = lowered.policies.join("\n\n");
        if !policies.is_empty() {
            policies.push('\n');
        }
        Answer {
            policies,
            schema: lay_out_action_schema(&lowered.schema),
            schema_json: to_json(&lowered.schema),
        }
    }

    fn text(&self, emit: Emit) -> String {
        match emit {
            Emit::CedarPolicies => self.policies.clone(),
            Emit::CedarSchema => self.schema.clone(),
            Emit::CedarJson => format!("{:#}\n", self.schema_json),
            Emit::Both => format!(
                "// Policies\n\n{}\n// Schema\n\n{}",
                self.policies, self.schema
            ),
        }
    }

    /// Everything, whatever was asked for: whoever reads it takes what it needs.
    fn json(&self, lowered: &Lowered) -> Value {
        let actions = |actions: &[dogwood_compiler::value::EntityUid]| -> Vec<String> {
            actions.iter().map(ToString::to_string).collect()
        };
        let temporal = lowered.temporal.iter();
        let blocks: Vec<Value> = temporal
            .clone()
            .map(|field| {
                json!({
                    "name": field.name,
                    "policy": field.rule,
                    "condition": field.condition,
                    "actions": actions(&field.actions),
                })
            })
            .collect();
        let providers = lowered.providers.iter();
        let calls: Vec<Value> = providers
            .clone()
            .map(|field| {
                json!({
                    "name": field.name,
                    "policy": field.rule,
                    "call": field.call,
                    "type": field.ty.to_string(),
                    "actions": actions(&field.actions),
                })
            })
            .collect();
        let temporal: Vec<&SmolStr> = temporal.map(|field| &field.name).collect();
        let providers: Vec<&SmolStr> = providers.map(|field| &field.name).collect();
        json!({
            "cedar_policies": self.policies,
            "cedar_schema": self.schema,
            "cedar_schema_json": self.schema_json.to_string(),
            "self_contained": lowered.self_contained(),
            "temporal_fields": temporal,
            "provider_fields": providers,
            "decision_kinds": lowered.decision_kinds,
            "temporal_blocks": blocks,
            "provider_calls": calls,
        })
    }
}
