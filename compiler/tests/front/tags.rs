//! Entity tags, from the trace to the verdict.

use dogwood_compiler::compile::{self, Options, Source, load_service};
use dogwood_compiler::monitor::{Policy, replay};
use dogwood_compiler::trace;
use std::sync::Arc;

const SCHEMA: &str = "namespace Depot {
  entity Clerk = { boss?: Clerk } tags String;
  entity Bay;
  action \"move\" appliesTo { principal: [Clerk], resource: [Bay], context: { tag?: String } };
}
";

/// The verdict on one request of Ann's, with these entities, or what could not be evaluated.
fn decided(condition: &str, entities: &str) -> Result<bool, String> {
    let source = |name: &str, text: String| Source {
        name: name.to_owned(),
        text,
    };
    let schema = source("d.cedarschema", SCHEMA.to_owned());
    let (service, _) = load_service(Some(&schema), None).expect("a sound schema");
    let rule = format!("permit (principal, action, resource) when {{ {condition} }};");
    let rules = compile::check(&[source("p.dw", rule)], None, &service, &Options::default());
    let rules: Vec<_> = rules.expect("a sound rule").rules;
    let rules: Vec<_> = rules.into_iter().map(|checked| checked.rule).collect();
    let line = format!(
        "@1 scope(principal: Depot::Clerk::\"ann\", resource: Depot::Bay::\"b\") entities({entities}) request_context(tag: \"shift\") Depot::Action::\"move\"::request(callerPrincipal: Depot::Clerk::\"ann\")"
    );
    let (events, errors) = trace::parse(&line);
    assert!(errors.is_empty(), "{errors:?}");
    let policy = Arc::new(Policy::new(&rules, &service));
    let (_, _, decision) = replay(policy, &events).remove(0);
    match decision.errors.first() {
        Some(error) => Err(error.error.to_string()),
        None => Ok(decision.allowed()),
    }
}

const TEAM: &str = "principal.hasTag(\"team\") && principal.getTag(\"team\") == \"red\"";

#[test]
fn tags_of_the_decision_are_read() {
    let with = |tags: &str| {
        decided(
            TEAM,
            &format!("Depot::Clerk::\"ann\": {{}} tags {{ {tags} }}"),
        )
    };
    assert_eq!(with("team: \"red\""), Ok(true));
    assert_eq!(with("team: \"blue\""), Ok(false));
    assert_eq!(with("shift: \"red\""), Ok(false));
    assert_eq!(with("team: null"), Ok(false));
    assert_eq!(decided(TEAM, "Depot::Clerk::\"ann\": {}"), Ok(false));
    assert_eq!(decided(TEAM, ""), Ok(false));
}

#[test]
fn a_tag_is_named_by_any_text() {
    let entities = "Depot::Clerk::\"ann\": {} tags { shift: \"late\", \"due date\": \"soon\" }";
    let computed = "context has tag && principal.hasTag(context.tag) && principal.getTag(context.tag) == \"late\"";
    assert_eq!(decided(computed, entities), Ok(true));
    let quoted = "principal.hasTag(\"due date\") && principal.getTag(\"due date\") like \"so*\"";
    assert_eq!(decided(quoted, entities), Ok(true));
}

#[test]
fn tags_of_others_are_read() {
    let boss = "principal has boss && principal.boss.hasTag(\"team\") && principal.boss.getTag(\"team\") == \"red\"";
    let entities = "Depot::Clerk::\"ann\": { boss: Depot::Clerk::\"bob\" }, Depot::Clerk::\"bob\": {} tags { team: \"red\" }";
    assert_eq!(decided(boss, entities), Ok(true));
}

#[test]
fn tags_that_do_not_fit_the_schema_deny() {
    assert_eq!(
        decided("true", "Depot::Clerk::\"ann\": {} tags { team: 1 }"),
        Err("tag `team` of Depot::Clerk::\"ann\" has another type than declared".to_owned())
    );
    assert_eq!(
        decided("true", "Depot::Bay::\"b\": {} tags { team: \"red\" }"),
        Err("Depot::Bay::\"b\" has tags, which its type does not declare".to_owned())
    );
}
