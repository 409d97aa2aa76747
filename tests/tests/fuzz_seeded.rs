//! Mutated texts through every parser and the checker, from a fixed seed: no panic, and an answer for each.
//!
//! Inputs are at most 8 KiB, so that time for one is bounded by what is bounded for any input of that
//! size. `DOGWOOD_FUZZ=20000 cargo test -p dogwood-tests --test fuzz_seeded` runs longer.

#![allow(clippy::panic)]

use dogwood_compiler::compile::{self, Options, Source, load_service};
use dogwood_compiler::diagnostic::{Style, render};
use dogwood_compiler::format::format;
use dogwood_compiler::grammar::Language;
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use dogwood_compiler::grammar::print::lay_out_action_schema;
use dogwood_compiler::lower::lower;
use dogwood_compiler::macros::BUILTIN_MACROS;
use dogwood_compiler::monitor::{Config, Monitor, Policy};
use dogwood_compiler::providers::{check as check_providers, load_providers};
use dogwood_compiler::schema::write::{to_json, tree};
use dogwood_compiler::schema::{BOX_ACTIONS, BOX_EVENTS, DEFAULT_EVENTS, Service, box_service};
use dogwood_compiler::trace;
use std::sync::Arc;

const LONGEST: usize = 8 * 1024;

const POLICIES: [&str; 3] = [
    include_str!("../../docs/examples/push-after-tests/policy.dw"),
    BUILTIN_MACROS,
    r#"
@id("cap") @allow("cap-counts-itself, value-counted")
forbid (principal is Box::Agent, action in [Box::Action::"mcp:call"], resource)
when { context.input has tool && context.input.tool like "deploy*" && !temporal { strictly(1h, Box::Action::"fs:read"::request{ input.path: * }) } }
when temporal {
  exists (n: Long). ((count for (t: Timepoint), (s: String). where
    formerly within 1h (Box::Action::"mcp:call"::request{ input.server: s } && tp(t))) == n && n >= 60)
};
permit (principal, action, resource) unless { if context has input then [1, 2].contains(3) else decimal("1.5").lessThan(decimal("2.0")) };
def temporal strictly(?w, ?s) {
  exists ($now: Timepoint). (tp($now) && exists ($then: Timepoint). (formerly within ?w (?s && tp($then)) && $then != $now))
};
"#,
];

const TRACE: &str = r#"@10 scope(principal: Box::Agent::"a", resource: Box::Resource::"r") entities(Box::Agent::"a": { n: 1, d: 1.50, s: ["x", null] } in [Box::Agent::"b"] tags { team: "red", "due date": 3 }) request_context(input: { server: "aws", method: "tools/call" }) Box::Action::"mcp:call"::request(input: { server: "aws", method: "tools/call" }, callerPrincipal: Box::Agent::"a")
@12 Box::Action::"shell:spawn"::response(input: { program: "git", arg_count: 0 }, output: { status: 0 }, callerPrincipal: Box::Agent::"a")
@-3 scope(principal: Box::Agent::"a", resource: Box::Resource::"r") request_context(input: { program: "git", arg1: "push", arg_count: 1, command: "git push", program_path: "/usr/bin/git", cwd: "/" }) Box::Action::"shell:spawn"::request(input: { program: "git", arg1: "push" }, callerPrincipal: bareword)
"#;

/// Pieces that mean something somewhere.
const PIECES: [&str; 44] = [
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "//",
    ";",
    ",",
    ".",
    "::",
    "@",
    "?",
    "$",
    "*",
    "_",
    "&&",
    "||",
    "!",
    "==",
    "!=",
    ">=",
    "-9223372036854775808",
    "99999999999999999999",
    "0s",
    "24h",
    " within 1h ",
    " since ",
    " formerly ",
    " previous ",
    " exists (x: Long). ",
    " count for (t: Timepoint). where ",
    " sum x for (x: Long). where ",
    "tp(t)",
    "principal",
    "context.input",
    "temporal {",
    "when {",
    "\u{feff}",
    "é🦀",
    "\0",
    "pin ",
];

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

/// A few edits of a seed; always text, never longer than the limit.
fn mutated(seed: &str, random: &mut Random) -> String {
    let mut text: Vec<char> = seed.chars().collect();
    for _ in 0..1 + random.below(6) {
        let at = random.below(text.len() + 1);
        let length = random.below(40).min(text.len() - at);
        match random.below(8) {
            0 => drop(text.drain(at..at + length)),
            1 => {
                let piece: Vec<char> = text[at..at + length].to_vec();
                let to = random.below(text.len() + 1);
                text.splice(to..to, piece);
            }
            2 => text.truncate(at),
            // Nesting.
            3 => {
                let piece = PIECES[random.below(PIECES.len())];
                let many = 1 + random.below(400);
                text.splice(at..at, piece.repeat(many).chars());
            }
            4 if at < text.len() => {
                text[at] = char::from_u32(random.below(0x2_0000) as u32).unwrap_or('\u{fffd}');
            }
            5 if length > 1 => text[at..at + length].reverse(),
            _ => {
                let piece = PIECES[random.below(PIECES.len())];
                text.splice(at..at, piece.chars());
            }
        }
        while text.iter().map(|c| c.len_utf8()).sum::<usize>() > LONGEST {
            text.truncate(text.len() - text.len() / 4 - 1);
        }
    }
    text.into_iter().collect()
}

fn source(name: &str, text: &str) -> Source {
    Source {
        name: name.to_owned(),
        text: text.to_owned(),
    }
}

/// Spans are places of their text, and everything can be drawn.
fn sound(said: &[Diagnostic], text: &str) {
    for diagnostic in said {
        assert!(
            text.get(diagnostic.span.range()).is_some(),
            "{diagnostic:?} is no place of {text:?}"
        );
    }
    let few = said.get(..20).unwrap_or(said);
    render(few, &[("input", text)], Style::Plain);
}

fn check(text: &str, service: &Service) -> Option<Arc<Policy>> {
    let options = Options {
        arithmetic: text.len().is_multiple_of(2),
        ..Options::default()
    };
    match compile::check(&[source("policy.dw", text)], None, service, &options) {
        Ok(checked) => {
            sound(&checked.diagnostics, text);
            _ = lower(&checked.rules, service, "policy");
            let rules: Vec<_> = checked.rules.into_iter().map(|c| c.rule).collect();
            Some(Arc::new(Policy::new(&rules, service)))
        }
        Err(said) => {
            assert!(!said.is_empty());
            sound(&said, text);
            None
        }
    }
}

fn rounds() -> usize {
    std::env::var("DOGWOOD_FUZZ")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1500)
}

#[test]
fn policies_are_accepted_or_rejected_and_nothing_else() {
    let service = box_service();
    let mut random = Random(1);
    let mut accepted = 0;
    for round in 0..rounds() {
        let text = mutated(POLICIES[round % POLICIES.len()], &mut random);
        accepted += usize::from(check(&text, &service).is_some());
    }
    assert!(accepted > 0, "every mutation broke its policy");
}

#[test]
fn schemas_are_accepted_or_rejected_and_nothing_else() {
    let mut random = Random(2);
    let policy = POLICIES[0];
    for round in 0..rounds() / 3 {
        let actions = match round % 2 {
            0 => mutated(BOX_ACTIONS, &mut random),
            _ => BOX_ACTIONS.to_owned(),
        };
        let seed = [BOX_EVENTS, DEFAULT_EVENTS][round / 2 % 2];
        let events = mutated(seed, &mut random);
        match load_service(
            Some(&source("a.cedarschema", &actions)),
            Some(&source("e.dwschema", &events)),
        ) {
            Ok((service, _)) => drop(check(policy, &service)),
            Err(said) => {
                let texts = [("a.cedarschema", actions.as_str()), ("e.dwschema", &events)];
                render(said.get(..20).unwrap_or(&said), &texts, Style::Plain);
            }
        }
        compile::check_event_schema(&source("e.dwschema", &events));
    }
}

#[test]
fn traces_are_read_and_decided_or_refused() {
    let service = box_service();
    let Some(policy) = check(POLICIES[0], &service) else {
        panic!("the example is sound");
    };
    let mut random = Random(3);
    let mut decided = 0;
    for _ in 0..rounds() {
        let text = mutated(TRACE, &mut random);
        let (events, _) = trace::parse(&text);
        let mut monitor = Monitor::new(policy.clone(), Config::default());
        for event in &events {
            decided += usize::from(matches!(monitor.step(event), Ok(Some(_))));
        }
    }
    assert!(decided > 0, "no mutation left an event to decide");
}

#[test]
fn policies_keep_their_meaning_when_laid_out() {
    let mut random = Random(5);
    let mut laid_out = 0;
    for round in 0..rounds() {
        let text = mutated(POLICIES[round % POLICIES.len()], &mut random);
        if let Ok(laid) = format(&text, Language::Policy) {
            laid_out += 1;
            let again = format(&laid, Language::Policy);
            assert_eq!(again.as_deref(), Ok(laid.as_str()), "{text}");
        }
    }
    assert!(laid_out > 0, "every mutation broke its policy");
}

/// What is read as JSON is written out and read again, in both syntaxes.
#[test]
fn json_schemas_are_accepted_or_rejected_and_nothing_else() {
    let mut random = Random(6);
    let mut accepted = 0;
    for _ in 0..rounds() {
        let text = mutated(JSON_SCHEMA, &mut random);
        let given = source("a.json", &text);
        sound(&compile::check_action_schema(&given), &text);
        let Ok((service, _)) = load_service(Some(&given), None) else {
            continue;
        };
        accepted += 1;
        let written = tree(&service.actions);
        for (name, again) in [
            ("a.json", to_json(&written).to_string()),
            ("a.cedarschema", lay_out_action_schema(&written)),
        ] {
            let said = compile::check_action_schema(&source(name, &again));
            assert!(said.is_empty(), "{again}\n{said:?}");
        }
    }
    assert!(accepted > 0, "every mutation broke the schema");
}

const JSON_SCHEMA: &str = r#"{ "Depot": {
  "annotations": { "doc": "yard" },
  "commonTypes": { "Load": { "type": "Record", "attributes": { "kg": { "type": "Long" }, "from": { "type": "Extension", "name": "ipaddr", "required": false } } } },
  "entityTypes": {
    "Clerk": { "memberOfTypes": ["Crew"], "shape": { "type": "Record", "attributes": { "friends": { "type": "Set", "element": { "type": "Entity", "name": "Clerk" } } } }, "tags": { "type": "String" } },
    "Crew": {}, "Rank": { "enum": ["low", "high"] }, "Bay": { "shape": { "type": "Load" } } },
  "actions": { "any": {}, "move": { "memberOf": [{ "id": "any" }],
    "appliesTo": { "principalTypes": ["Clerk"], "resourceTypes": ["Depot::Bay"], "context": { "type": "Load" } } } } } }"#;

const PROVIDERS: &str = r#"{
  "availableProviders": {
    "Risk::Score": {
      "argumentTypes": [{ "paramType": "string" }, { "paramType": "set", "items": { "paramType": "long" } }],
      "outputType": { "paramType": "record", "fields": { "n": { "paramType": "long" }, "of": { "paramType": "entity", "entityType": "Risk::Level" } }, "required": ["n"] },
      "availableMethods": { "above": { "argumentTypes": [{ "paramType": "long" }], "outputType": { "paramType": "bool" } } },
      "implementation": { "kind": "rhai", "script": "fn evaluate(a, b) { #{ n: a.len() + b.len(), of: \"low\" } } fn above(input, n) { input.n > n }" }
    }
  },
  "entityTypes": { "Risk::Level": { "enum": ["low", "high"] } }
}"#;

#[test]
fn provider_files_are_accepted_or_rejected_and_nothing_else() {
    let none = |_: &str| Err("there are no files here".to_owned());
    let mut random = Random(4);
    let mut accepted = 0;
    for _ in 0..rounds() / 3 {
        let text = mutated(PROVIDERS, &mut random);
        let source = source("providers.json", &text);
        match load_providers(&source, &none) {
            Ok((_, warnings)) => {
                accepted += 1;
                sound(&warnings, &text);
            }
            Err(said) => sound(&said, &text),
        }
        sound(&check_providers(&source), &text);
    }
    assert!(accepted > 0, "every mutation broke the declarations");
}
