//! Lowered rules are Cedar: every published policy that checks is lowered, read by `cedar-policy` and
//! strictly validated there, with the schema as text and as JSON.
//!
//! Cedar reads schemas slowly in a debug build, so of the large corpora every eighth case is taken; with
//! `DOGWOOD_ALL=1` every one.

use crate::{Case, cases, corpora, run};
use cedar_policy::{PolicySet, Schema, ValidationMode, Validator};
use dogwood_compiler::grammar::print::lay_out_action_schema;
use dogwood_compiler::lower::lower;
use dogwood_compiler::schema::write::to_json;

/// Lowers a case that checks; one that does not has nothing to lower.
fn accepted_by_cedar(case: &Case) -> Result<usize, String> {
    let service = case.service()?;
    let Ok(rules) = case.checked(&service) else {
        return Ok(0);
    };
    let lowered = lower(&rules, &service, "policy").map_err(|errors| format!("{errors:?}"))?;
    let text = lowered.policies.join("\n");
    let policies: PolicySet = text.parse().map_err(|error| format!("{error:?}\n{text}"))?;
    if policies.policies().count() != rules.len() {
        return Err(format!("{} rules became other many:\n{text}", rules.len()));
    }
    let human = lay_out_action_schema(&lowered.schema);
    let (human, _) = Schema::from_cedarschema_str(&human)
        .map_err(|error| format!("schema: {error:?}\n{human}"))?;
    let json = to_json(&lowered.schema);
    let json = Schema::from_json_value(json.clone())
        .map_err(|error| format!("JSON schema: {error:?}\n{json:#}"))?;
    for (name, schema) in [("text", human), ("JSON", json)] {
        let result = Validator::new(schema).validate(&policies, ValidationMode::Strict);
        if !result.validation_passed() {
            let errors: Vec<String> = result
                .validation_errors()
                .map(ToString::to_string)
                .collect();
            return Err(format!(
                "with the schema as {name}: {}\n{text}",
                errors.join("\n")
            ));
        }
    }
    Ok(1)
}

/// Every eighth case, or every one where all are asked for.
fn some(cases: Vec<Case>) -> Vec<Case> {
    let step = if std::env::var_os("DOGWOOD_ALL").is_some() {
        1
    } else {
        8
    };
    if step > 1 {
        println!("skipped: seven of eight cases, for time; DOGWOOD_ALL=1 takes them all");
    }
    cases.into_iter().step_by(step).collect()
}

#[test]
fn temporal() {
    let root = corpora();
    let folder = root.join("passing/temporal_only");
    let cases = cases(
        &folder.join("corpus"),
        Some(&folder.join("shared_schema.cedarschema")),
        Some(&root.join("fixtures/request_response.dwschema")),
    );
    run("temporal, lowered", &some(cases), accepted_by_cedar);
}

#[test]
fn macros() {
    let root = corpora();
    let cases = cases(
        &root.join("passing/macros/corpus"),
        Some(&root.join("passing/temporal_only/shared_schema.cedarschema")),
        Some(&root.join("fixtures/request_response.dwschema")),
    );
    run("macros, lowered", &some(cases), accepted_by_cedar);
}

#[test]
fn mixed() {
    let root = corpora();
    let events = root.join("fixtures/request_response.dwschema");
    let cases = cases(&root.join("passing/mixed/corpus"), None, Some(&events));
    run("mixed, lowered", &cases, accepted_by_cedar);
}

#[test]
fn providers() {
    let root = corpora();
    let folder = root.join("passing/provider_only");
    let cases = cases(
        &folder.join("corpus"),
        Some(&folder.join("shared_schema.cedarschema")),
        Some(&root.join("fixtures/request_response.dwschema")),
    );
    run("providers, lowered", &some(cases), accepted_by_cedar);
}

#[test]
fn cedar() {
    let root = corpora();
    let folder = root.join("passing/cedar_only/corpus_handwritten");
    run(
        "cedar, lowered",
        &cases(&folder, None, None),
        accepted_by_cedar,
    );
}
