//! Random policies without temporal parts, against `cedar-policy`: what validates, and what is decided.
//!
//! `DOGWOOD_CASES=20000 cargo test -p dogwood-reference-tests --test cedar_policies` runs more than the
//! default 1,500 policies; `DOGWOOD_SEED` starts elsewhere.

#![allow(clippy::expect_used, clippy::panic)]

mod cedar_policies {
    pub mod generate;
    pub mod requests;
}

use cedar_policies::generate::{LIBRARY, Random, rule};
use cedar_policies::requests::{Asked, DECIDED};
use cedar_policy::{
    AuthorizationError, Authorizer, Decision, PolicySet, Schema, ValidationMode, Validator,
};
use dogwood_compiler::compile::{self, Options, Source};
use dogwood_compiler::monitor::{self, Policy};
use dogwood_compiler::schema::Service;
use std::collections::BTreeSet;
use std::sync::Arc;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(default)
}

fn cases() -> u64 {
    number("DOGWOOD_CASES", 1500)
}

fn random() -> Random {
    Random::from(number("DOGWOOD_SEED", 88_172_645_463_325_252))
}

fn source(name: &str, text: &str) -> Source {
    Source {
        name: name.into(),
        text: text.into(),
    }
}

fn service(schema: &str) -> Service {
    let events = source("e", "decision event <A>::request { ...inputs(A) }");
    match compile::load_service(Some(&source("a", schema)), Some(&events)) {
        Ok((service, _)) => service,
        Err(errors) => panic!("{errors:?}"),
    }
}

#[test]
fn what_validates_there_checks_here_and_nothing_else() {
    let schema = Schema::from_cedarschema_str(LIBRARY)
        .expect("the schema is sound")
        .0;
    let validator = Validator::new(schema);
    let service = service(LIBRARY);
    let mut random = random();
    let (mut accepted, mut rejected, mut different) = (0, 0, Vec::new());
    for _ in 0..cases() {
        let text = rule(&mut random);
        let Ok(policies) = text.parse::<PolicySet>() else {
            continue;
        };
        let result = validator.validate(&policies, ValidationMode::Strict);
        let options = Options::default();
        let ours = compile::check(&[source("p", &text)], None, &service, &options);
        match (result.validation_passed(), &ours) {
            (true, Ok(_)) => accepted += 1,
            (false, Err(_)) => rejected += 1,
            _ => {
                let theirs: Vec<String> = result
                    .validation_errors()
                    .map(ToString::to_string)
                    .collect();
                let ours = ours.map(|_| ()).map_err(|errors| {
                    let texts = errors.iter().map(|error| error.message.clone());
                    texts.collect::<Vec<_>>()
                });
                different.push(format!("{text}\n  there: {theirs:?}\n  here: {ours:?}"));
            }
        }
    }
    println!("cedar policies: {accepted} accepted, {rejected} rejected by both");
    assert!(accepted > 20 && rejected > 20, "the generator reaches both");
    assert!(
        different.is_empty(),
        "{} differ:\n{}",
        different.len(),
        different.join("\n")
    );
}

/// Rules are decided whether they validate or not: an evaluation error must be one in both.
#[test]
fn what_is_decided_there_is_decided_here() {
    let schema = Schema::from_cedarschema_str(DECIDED)
        .expect("the schema is sound")
        .0;
    let service = service(DECIDED);
    let mut random = random();
    let (mut allowed, mut denied, mut failed) = (0, 0, 0);
    let mut different = Vec::new();
    for _ in 0..cases().div_ceil(3) {
        let text: Vec<String> = (0..3).map(|_| rule(&mut random)).collect();
        let text = text.join("\n");
        let Ok(policies) = text.parse::<PolicySet>() else {
            continue;
        };
        let parsed = compile::parse_only(&[source("p", &text)], None, &Options::default());
        // What has a bad literal is not ours to decide: it is refused before.
        let Ok(parsed) = parsed else { continue };
        let rules: Vec<_> = parsed.rules.into_iter().map(|rule| rule.rule).collect();
        let policy = Arc::new(Policy::new(&rules, &service));
        for _ in 0..4 {
            let asked = Asked::random(&mut random);
            let theirs = Authorizer::new().is_authorized(
                &asked.request(&schema),
                &policies,
                &asked.entities(&schema),
            );
            let ours = monitor::replay(Arc::clone(&policy), &[asked.event()]);
            let [(_, _, ours)] = ours.as_slice() else {
                panic!("one event, one decision");
            };
            let index = |id: &cedar_policy::PolicyId| -> usize {
                let id: &str = id.as_ref();
                id.trim_start_matches("policy")
                    .parse()
                    .expect("policies are numbered")
            };
            let said = (
                theirs.decision() == Decision::Allow,
                theirs
                    .diagnostics()
                    .reason()
                    .map(index)
                    .collect::<BTreeSet<_>>(),
                theirs
                    .diagnostics()
                    .errors()
                    .map(|AuthorizationError::PolicyEvaluationError(error)| {
                        index(error.policy_id())
                    })
                    .collect::<BTreeSet<_>>(),
            );
            let here = (
                ours.allowed(),
                ours.rules.iter().copied().collect::<BTreeSet<_>>(),
                ours.errors
                    .iter()
                    .filter_map(|error| error.rule)
                    .collect::<BTreeSet<_>>(),
            );
            if said != here {
                let errors: Vec<String> = theirs
                    .diagnostics()
                    .errors()
                    .map(ToString::to_string)
                    .collect();
                different.push(format!(
                    "{text}\n  {asked:?}\n  there: {said:?} {errors:?}\n  here: {here:?} {:?}",
                    ours.errors
                ));
            }
            allowed += usize::from(said.0);
            denied += usize::from(!said.0);
            failed += said.2.len();
        }
    }
    println!(
        "cedar decisions: {allowed} allowed, {denied} denied, {failed} errors, the same in both"
    );
    assert!(
        allowed > 50 && denied > 50 && failed > 50,
        "the generator reaches all"
    );
    assert!(
        different.is_empty(),
        "{} differ:\n{}",
        different.len(),
        different
            .iter()
            .take(8)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
}
