//! Information providers: their declarations, the calls in policies, and what is decided with them.

use super::screen::{DEPOT, EVENTS, said, screen, service, source};
use dogwood_compiler::compile::{self, Options};
use dogwood_compiler::diagnostic::{Style, render};
use dogwood_compiler::event::{EntityData, Event, RequestPart};
use dogwood_compiler::grammar::ast::Rule;
use dogwood_compiler::monitor::{Config, Decision, Monitor, Policy, Verdict};
use dogwood_compiler::providers::{
    self, Providers, Resolver, chains, exports, home, load_providers,
};
use dogwood_compiler::schema::Service;
use dogwood_compiler::value::{EntityUid, Record, Value};
use std::sync::Arc;

/// No script in a file of its own.
fn no_files(name: &str) -> Result<String, String> {
    Err(format!("nothing is called {name} here"))
}

/// What is said about declarations, and the line after each fix.
fn declared(text: &str) -> String {
    let declarations = source("providers.json", text);
    let found = match load_providers(&declarations, &no_files) {
        Ok((_, found)) | Err(found) => found,
    };
    if found.is_empty() {
        return "nothing to say".to_owned();
    }
    let mut out = render(&found, &[("providers.json", text)], Style::Plain);
    for diagnostic in &found {
        if let Some(fix) = &diagnostic.fix {
            let mended = super::screen::apply(text, fix);
            let after = providers::check(&source("providers.json", &mended));
            let same = |d: &&_| **d == *diagnostic;
            assert!(after.iter().find(same).is_none(), "not mended: {mended}");
            out.push_str(&format!("\nfix: {}\n", fix.title));
        }
    }
    out
}

/// A file with this enumerated type and this one type given.
fn with(enums: &str, output: &str) -> String {
    format!(
        "{{ \"entityTypes\": {enums},\n  \"availableProviders\": {{\n    \"Scan::File\": {{ \"outputType\": {output} }} }} }}"
    )
}

const LEVEL: &str = r#"{ "Scan::Level": { "enum": ["LOW", "HIGH"] } }"#;
const BOOL: &str = r#"{ "paramType": "bool" }"#;

#[test]
fn a_sound_file_says_nothing() {
    assert_eq!(declared(DECLARATIONS), "nothing to say");
    let sound = with(
        LEVEL,
        r#"{ "paramType": "record", "fields": { "a": { "paramType": "set", "items": { "paramType": "entity", "entityType": "Scan::Level" } } }, "required": ["a"], "comment": 1 }"#,
    );
    assert_eq!(declared(&sound), "nothing to say");
    assert_eq!(declared(&format!("\u{feff}{sound}")), "nothing to say");
}

#[test]
fn broken_json() {
    said!(declared(
        "{ \"availableProviders\": { \"Scan::File\": { \"outputType\" { } } } }"
    ));
    said!(declared("{ \"availableProviders\": { \"Scan::File: 1 } }"));
    said!(declared(""));
    said!(declared("[1]"));
}

#[test]
fn keys_and_shapes() {
    said!(declared(r#"{ "availableProvider": {} }"#));
    said!(declared(
        r#"{ "availableProviders": { "Scan::File": { "argumentTypes": [] } } }"#
    ));
    said!(declared(
        r#"{ "availableProviders": { "Scan::File": { "argumentType": [], "outputType": { "paramType": 5 } } } }"#
    ));
    said!(declared(
        r#"{ "availableProviders": { "Scan::File": { "outputType": { "fields": {} } }, "Scan::File": { "outputType": { "paramType": "bool" } }, "Scan": { "outputType": { "paramType": "bool" } } } }"#
    ));
}

#[test]
fn enumerated_types() {
    said!(declared(&with(
        r#"{ "Scan::Level": { "enum": [] } }"#,
        BOOL
    )));
    said!(declared(&with(
        r#"{ "Scan::Level": { "enum": ["LOW", "HIGH", "LOW"] } }"#,
        BOOL
    )));
    said!(declared(&with(
        r#"{ "Scan::Level": { "annotations": { "doc": "x" } } }"#,
        BOOL
    )));
    said!(declared(&with(
        r#"{ "Scan::Level": { "enum": ["LOW"], "map": {} } }"#,
        BOOL
    )));
    said!(declared(&with(
        r#"{ "Scan::Level": { "enum": ["LOW", 2, ["HIGH"]] } }"#,
        BOOL
    )));
    said!(declared(&with(
        r#"{ "Scan::Level": { "enum": "LOW" } }"#,
        BOOL
    )));
}

#[test]
fn names_of_enumerated_types() {
    said!(declared(&with(r#"{ "Level": { "enum": ["LOW"] } }"#, BOOL)));
    said!(declared(&with(
        r#"{ "Scan::Le vel": { "enum": ["LOW"] } }"#,
        BOOL
    )));
    said!(declared(&with(
        r#"{ "__cedar::Level": { "enum": ["LOW"] } }"#,
        BOOL
    )));
    said!(declared(&with(
        r#"{ "Scn::Level": { "enum": ["LOW"] } }"#,
        BOOL
    )));
    said!(declared(&with(
        r#"{ "Elsewhere::Level": { "enum": ["LOW"] } }"#,
        BOOL
    )));
    said!(declared(&with(
        r#"{ "Scan::Level": { "enum": ["LOW"] }, "Scan::Level": { "enum": ["HIGH"] } }"#,
        BOOL
    )));
    said!(declared(
        r#"{ "entityTypes": { "A_B::C": { "enum": ["X"] }, "A::B_C": { "enum": ["Y"] } },
  "availableProviders": { "A_B::P": { "outputType": { "paramType": "bool" } }, "A::P": { "outputType": { "paramType": "bool" } } } }"#
    ));
}

#[test]
fn types_of_providers() {
    said!(declared(&with(LEVEL, r#"{ "paramType": "entity" }"#)));
    said!(declared(&with(
        LEVEL,
        r#"{ "paramType": "entity", "entityType": "Scan::Level", "fields": {}, "required": [] }"#
    )));
    said!(declared(&with(
        LEVEL,
        r#"{ "paramType": "string", "entityType": "Scan::Level" }"#
    )));
    said!(declared(&with(
        LEVEL,
        r#"{ "paramType": "entity", "entityType": "Level" }"#
    )));
    said!(declared(&with(
        LEVEL,
        r#"{ "paramType": "entity", "entityType": "Scan::Levle" }"#
    )));
    said!(declared(&with(LEVEL, r#"{ "paramType": "strng" }"#)));
    said!(declared(&with(
        LEVEL,
        r#"{ "paramType": "entiy", "entityType": "Scan::Level" }"#
    )));
    said!(declared(&with(
        LEVEL,
        r#"{ "paramType": "recrod", "fields": { "a": { "paramType": "entity", "entityType": "Scan::Level" } } }"#
    )));
}

#[test]
fn implementations() {
    let file = |implementation: &str| {
        format!(
            r#"{{ "availableProviders": {{ "Scan::File": {{ "outputType": {{ "paramType": "bool" }},
  "availableMethods": {{ "contains": {{ "argumentTypes": [{{ "paramType": "bool" }}], "outputType": {{ "paramType": "bool" }} }} }},
  "implementation": {implementation} }} }} }}"#
        )
    };
    said!(declared(&file(
        r#"{ "kind": "rhai", "scriptFile": "scan.rhai" }"#
    )));
    said!(declared(&file(r#"{ "kind": "lua", "script": "" }"#)));
    said!(declared(&file(r#"{ "script": "fn evaluate() { true }" }"#)));
    said!(declared(&file(r#"{ "kind": "rhai" }"#)));
    said!(declared(&file(
        r#"{ "kind": "rhai", "script": "fn evaluate( { true }" }"#
    )));
    said!(declared(&file(
        r#"{ "kind": "rhai", "script": "fn evaluate(a) { eval(a) }" }"#
    )));
    said!(declared(&file(
        r#"{ "kind": "rhai", "script": "fn evaluate(a) { true }" }"#
    )));
}

#[test]
fn a_file_is_checked_without_its_scripts() {
    let text = r#"{ "availableProviders": { "Scan::File": { "outputType": { "paramType": "bool" }, "implementation": { "kind": "rhai", "scriptFile": "scan.rhai" } } } }"#;
    assert_eq!(
        providers::check(&source("providers.json", text)),
        Vec::new()
    );
}

// ------------------------------------------------------------------------------------- policies

/// Providers of the depot. `Scan::Crate` gives a record with an enumerated level; `Scale::Load` counts.
const DECLARATIONS: &str = r##"{
  "entityTypes": { "Scan::Level": { "enum": ["LOW", "HIGH"] }, "Scan::Unused": { "enum": ["X"] } },
  "availableProviders": {
    "Scan::Crate": {
      "argumentTypes": [{ "paramType": "string" }],
      "outputType": { "paramType": "record",
        "fields": { "level": { "paramType": "entity", "entityType": "Scan::Level" }, "note": { "paramType": "string" } },
        "required": ["level"] },
      "implementation": { "kind": "rhai",
        "script": "fn evaluate(crate) { if crate == () { return #{ level: \"HIGH\" }; } if crate == \"odd\" { return #{ level: \"ODD\" }; } #{ level: if crate.contains(\"hot\") { \"HIGH\" } else { \"LOW\" } } }" }
    },
    "Scale::Load": {
      "argumentTypes": [{ "paramType": "long" }, { "paramType": "set", "items": { "paramType": "string" } }],
      "outputType": { "paramType": "long" },
      "availableMethods": {
        "plus": { "argumentTypes": [{ "paramType": "long" }], "inputType": { "paramType": "long" }, "outputType": { "paramType": "long" } },
        "named": { "inputType": { "paramType": "string" }, "outputType": { "paramType": "string" } }
      },
      "implementation": { "kind": "rhai",
        "script": "fn evaluate(kg, names) { if kg == () { 0 } else { kg + names.len() } } fn plus(n, more) { n + more } fn named(s) { s }" }
    },
    "Who::Is": {
      "argumentTypes": [{ "paramType": "string" }],
      "outputType": { "paramType": "string" },
      "implementation": { "kind": "rhai", "script": "fn evaluate(who) { who }" }
    },
    "Rate::Of": {
      "argumentTypes": [{ "paramType": "decimal" }],
      "outputType": { "paramType": "decimal" },
      "implementation": { "kind": "rhai", "script": "fn evaluate(n) { n }" }
    },
    "Nobody::Answers": { "outputType": { "paramType": "bool" } }
  }
}"##;

fn asking() -> Service {
    let (providers, _) =
        load_providers(&source("providers.json", DECLARATIONS), &no_files).unwrap();
    Service {
        providers: Arc::new(providers),
        ..service(DEPOT, EVENTS)
    }
}

fn move_when(condition: &str) -> String {
    format!(
        "permit (principal, action == Depot::Action::\"move\", resource)\nwhen {{ {condition} }};"
    )
}

fn checked(condition: &str) -> String {
    screen(&move_when(condition), &asking())
}

#[test]
fn sound_calls_say_nothing() {
    for condition in [
        "Scan::Crate(context.input.crate).level == Scan::Level::\"LOW\"",
        "Scan::Crate(context.input.crate).level in [Scan::Level::\"LOW\", Scan::Level::\"HIGH\"]",
        "Scan::Crate(context.input.crate) has note",
        "Scale::Load(context.input.kg, []).plus(-2).plus(3) < 10",
        "Scale::Load(1, [\"a\", context.input.crate]) + 1 == 3 && !(Scale::Load(1, []) > 3)",
        "Who::Is(principal.id) like \"a*\" || Who::Is(resource.type) == \"Depot::Bay\"",
        "Rate::Of(decimal(\"1.5\")).lessThan(decimal(\"2.0\"))",
    ] {
        let policy = source("policy.dw", &move_when(condition));
        let checked = compile::check(&[policy], None, &asking(), &Options::default());
        assert!(checked.is_ok(), "{condition}: {checked:?}");
    }
}

#[test]
fn what_is_asked() {
    said!(checked(
        "Scan::Crates(context.input.crate).level == Scan::Level::\"LOW\""
    ));
    said!(screen(
        &move_when("Scan::Crate(context.input.crate).ok"),
        &service(DEPOT, EVENTS)
    ));
    said!(checked(
        "Who::Is() == \"a\" && Scale::Load(1, [], true) == 1"
    ));
    said!(checked(
        "Who::Is(1 + 1) == \"a\" && Who::Is(Who::Is(\"a\")) == \"a\""
    ));
}

#[test]
fn what_it_is_given() {
    said!(checked("Who::Is(42) == \"a\""));
    said!(checked("Scale::Load(\"1\", [1]) == 1"));
    said!(checked(
        "Scale::Load(context.input.crate, context.input) == 1"
    ));
    said!(checked("Rate::Of(1) == Rate::Of(decimal(\"x\"))"));
    said!(checked("Who::Is(principal) == \"a\""));
}

#[test]
fn it_is_asked_for_every_request() {
    let any =
        "permit (principal, action, resource) when { Who::Is(context.input.crate) == \"a\" };";
    said!(screen(any, &asking()));
    let clerks = "permit (principal, action == Depot::Action::\"move\", resource) when { principal is Depot::Clerk && Scale::Load(principal.rank, []) > 1 };";
    said!(screen(clerks, &asking()));
}

#[test]
fn methods_of_providers() {
    said!(checked("Scale::Load(1, []).plsu(1) == 1"));
    said!(checked("Who::Is(\"a\").plus(1) == 1"));
    said!(checked(
        "Scale::Load(1, []).plus(\"1\") == 1 && Scale::Load(1, []).plus() == 1"
    ));
    said!(checked("Scale::Load(1, []).named() == \"a\""));
    said!(checked(
        "Scan::Crate(context.input.crate).level.plus(1) == 1"
    ));
}

#[test]
fn a_method_may_not_be_named_as_one_of_the_language() {
    let text = r#"{ "availableProviders": { "Risk::Of": { "outputType": { "paramType": "long" },
      "availableMethods": { "contains": { "argumentTypes": [{ "paramType": "string" }], "outputType": { "paramType": "bool" } } } } } }"#;
    said!(declared(text));
    let (providers, _) = load_providers(&source("providers.json", text), &no_files).unwrap();
    let service = Service {
        providers: Arc::new(providers),
        ..service(DEPOT, EVENTS)
    };
    said!(screen(&move_when("Risk::Of().contains(\"x\")"), &service));
}

#[test]
fn enumerated_values_are_checked() {
    said!(checked(
        "Scan::Crate(context.input.crate).level == Scan::Level::\"LWO\""
    ));
    said!(checked("Scan::Crate(context.input.crate).level == \"LOW\""));
    said!(checked(
        "Scan::Crate(context.input.crate).level > Scan::Level::\"LOW\""
    ));
    said!(checked(
        "Scan::Crate(context.input.crate).level != Scan::Unused::\"X\""
    ));
    said!(checked(
        "Scan::Crate(context.input.crate).level == Level::\"LOW\""
    ));
    said!(checked("Scan::Crate(context.input.crate).note == \"a\""));
}

/// Clashes are said about the declarations, which come behind the policies and the macros.
fn clash(schema: &str, output: &str) -> String {
    let declarations = with(LEVEL, output);
    let (providers, _) =
        load_providers(&source("providers.json", &declarations), &no_files).unwrap();
    let service = Service {
        providers: Arc::new(providers),
        ..service(&format!("{schema}\n{DEPOT}"), EVENTS)
    };
    let policy = source("policy.dw", &move_when("Scan::File() has a || true"));
    let found = compile::check(
        std::slice::from_ref(&policy),
        None,
        &service,
        &Options::default(),
    );
    render(
        &found.unwrap_err(),
        &[
            ("policy.dw", &policy.text),
            ("providers.json", &declarations),
        ],
        Style::Plain,
    )
}

#[test]
fn exported_names_may_not_clash() {
    let level = r#"{ "paramType": "record", "fields": { "a": { "paramType": "entity", "entityType": "Scan::Level" } } }"#;
    said!(clash("namespace Scan { entity Level; }", level));
    said!(clash("namespace Depot2 {} entity Scan_Level;", level));
    let inside = DEPOT.replace("entity Drone;", "entity Drone; type Scan_Level = Long;");
    let declarations = with(LEVEL, level);
    let (providers, _) =
        load_providers(&source("providers.json", &declarations), &no_files).unwrap();
    let actions = service(&inside, EVENTS).actions;
    let policy = move_when("Scan::File() has a");
    let parsed = rules(&policy);
    let calls: Vec<_> = parsed.iter().flat_map(chains).collect();
    let said: Vec<String> = exports(&providers, &actions, &calls)
        .unwrap_err()
        .iter()
        .map(|clash| clash.diagnostic().message)
        .collect();
    assert_eq!(
        said,
        ["`Scan::Level` is exported as `Depot::Scan_Level`, which the action schema declares"]
    );
    // Nobody asks, nothing clashes.
    assert_eq!(exports(&providers, &actions, []), Ok(Vec::new()));
}

#[test]
fn types_that_providers_take_are_declared_and_enumerated() {
    let take = |ty: &str| {
        format!(
            r#"{{ "availableProviders": {{ "Scan::File": {{ "argumentTypes": [{{ "paramType": "entity", "entityType": "{ty}" }}], "outputType": {{ "paramType": "bool" }} }} }} }}"#
        )
    };
    let said = |ty: &str| {
        let declarations = take(ty);
        let (providers, _) =
            load_providers(&source("providers.json", &declarations), &no_files).unwrap();
        let service = Service {
            providers: Arc::new(providers),
            ..service(DEPOT, EVENTS)
        };
        let policy = source("policy.dw", &move_when("Scan::File(resource)"));
        let found = compile::check(
            std::slice::from_ref(&policy),
            None,
            &service,
            &Options::default(),
        );
        render(
            &found.unwrap_err(),
            &[
                ("policy.dw", &policy.text),
                ("providers.json", &declarations),
            ],
            Style::Plain,
        )
    };
    said!(said("Depot::Nope"));
    said!(said("Depot::Bay"));
}

#[test]
fn exported_types_go_home() {
    let service = asking();
    assert_eq!(home(&service.actions), "Depot");
    let parsed = rules(&move_when(
        "Scan::Crate(\"a\").level == Scan::Level::\"LOW\"",
    ));
    let calls: Vec<_> = parsed.iter().flat_map(chains).collect();
    let found = exports(&service.providers, &service.actions, &calls).unwrap();
    let names: Vec<_> = found
        .iter()
        .map(|export| (export.declared.as_str(), export.exported.as_str()))
        .collect();
    assert_eq!(names, [("Scan::Level", "Depot::Scan_Level")]);
}

fn rules(text: &str) -> Vec<Rule> {
    let parsed = compile::parse_only(&[source("p", text)], None, &Options::default());
    let rules = parsed.unwrap().rules;
    rules.into_iter().map(|checked| checked.rule).collect()
}

// ------------------------------------------------------------------------------------ decisions

fn request(action: &str, context: Record) -> Event {
    Event {
        time: 10,
        action: EntityUid::new("Depot::Action", action),
        kind: "request".into(),
        logged: Record::new(),
        request: Some(RequestPart {
            principal: Some(EntityUid::new("Depot::Clerk", "ann")),
            resource: Some(EntityUid::new("Depot::Bay", "b1")),
            context,
            entities: Vec::new(),
        }),
    }
}

fn moving(crate_name: &str, kg: i64) -> Event {
    let input: Record = [
        ("crate".into(), crate_name.into()),
        ("kg".into(), kg.into()),
    ]
    .into();
    request("move", [("input".into(), Value::Object(input))].into())
}

fn decided(service: &Service, text: &str, event: &Event) -> Decision {
    let policy = Arc::new(Policy::new(&rules(text), service));
    let mut monitor = Monitor::new(policy, Config::default());
    monitor.step(event).unwrap().unwrap()
}

fn allows(condition: &str, event: &Event) -> bool {
    let decision = decided(&asking(), &move_when(condition), event);
    assert_eq!(decision.errors, Vec::new(), "{condition}");
    decision.verdict == Verdict::Allow
}

#[test]
fn answers_are_used() {
    let low = "Scan::Crate(context.input.crate).level == Scan::Level::\"LOW\"";
    assert!(allows(low, &moving("a", 1)));
    assert!(!allows(low, &moving("hot", 1)));
    let load = "Scale::Load(context.input.kg, [\"x\", \"y\"]).plus(10) == 15";
    assert!(allows(load, &moving("a", 3)));
    assert!(!allows(load, &moving("a", 4)));
    assert!(allows("Who::Is(principal.id) == \"ann\"", &moving("a", 1)));
    assert!(allows(
        "Who::Is(resource) == \"Depot::Bay::\\\"b1\\\"\"",
        &moving("a", 1)
    ));
    assert!(allows(
        "Rate::Of(decimal(\"1.50\")) == decimal(\"1.5\")",
        &moving("a", 1)
    ));
}

#[test]
fn given_attributes_win_over_the_id() {
    let mut event = moving("a", 1);
    if let Some(part) = &mut event.request {
        part.entities.push(EntityData {
            uid: EntityUid::new("Depot::Clerk", "ann"),
            attrs: [
                ("rank".into(), Value::Int(1)),
                ("nick".into(), "nan".into()),
            ]
            .into(),
            parents: Vec::new(),
            tags: Default::default(),
        });
    }
    assert!(allows("Who::Is(principal.nick) == \"nan\"", &event));
}

#[test]
fn a_failing_provider_denies_whatever_the_rule_is_about() {
    // The rule is about moving, and the permit has nothing to ask.
    let text = format!(
        "permit (principal, action, resource);\n{}",
        move_when("Scan::Crate(context.input.crate).level == Scan::Level::\"LOW\"")
    );
    let weigh = |crate_name: &str| Event {
        action: EntityUid::new("Depot::Action", "weigh"),
        ..moving(crate_name, 1)
    };
    let fine = decided(&asking(), &text, &weigh("a"));
    assert_eq!((fine.verdict, fine.rules), (Verdict::Allow, vec![0]));
    let failed = decided(&asking(), &text, &weigh("odd"));
    assert_eq!((failed.verdict, failed.rules), (Verdict::Deny, Vec::new()));
    let said: Vec<String> = failed
        .errors
        .iter()
        .map(|error| format!("rule {:?}: {}", error.rule, error.error))
        .collect();
    insta::assert_snapshot!(said.join("\n"), @r#"rule Some(1): the information provider `Scan::Crate` gave no answer: its answer "ODD" is not one of the values of `Scan::Level`"#);
}

#[test]
fn what_cannot_be_answered_denies() {
    let why = |condition: &str| {
        let decision = decided(&asking(), &move_when(condition), &moving("a", 1));
        assert_eq!(
            (decision.verdict, decision.rules),
            (Verdict::Deny, Vec::new())
        );
        decision.errors[0].error.to_string()
    };
    insta::assert_snapshot!(why("Nobody::Answers()"), @"the information provider `Nobody::Answers` gave no answer: nothing answers for it");
    insta::assert_snapshot!(why("Not::Declared()"), @"the information provider `Not::Declared` gave no answer: it is not declared");
    insta::assert_snapshot!(why("Who::Is(1 + 1) == \"a\""), @"the information provider `Who::Is` gave no answer: it cannot be asked like this");
    insta::assert_snapshot!(why("Scale::Load(\"a\", 5) == 1"), @"the information provider `Scale::Load` gave no answer: Function not found: len (i64) (line 1, position 62)");
}

#[test]
fn what_is_not_there_is_given_as_nothing() {
    let nothing = request("move", Record::new());
    assert!(!allows(
        "Scan::Crate(context.input.crate).level == Scan::Level::\"LOW\"",
        &nothing
    ));
    assert!(allows("Scale::Load(context.input.kg, []) == 0", &nothing));
}

#[derive(Debug)]
struct Host;

impl Resolver for Host {
    fn resolve(&self, provider: &str, args: &[Value]) -> Option<Result<Value, String>> {
        match (provider, args) {
            ("Nobody::Answers", []) => Some(Ok(true.into())),
            ("Scale::Load", [Value::Int(n), _]) => Some(Ok((n * 100).into())),
            ("Who::Is", _) => Some(Err("the directory is down".to_owned())),
            _ => None,
        }
    }
}

#[test]
fn the_host_is_asked_first() {
    let base = asking();
    let providers = Providers::clone(&base.providers).resolved_by(Arc::new(Host));
    let service = Service {
        providers: Arc::new(providers),
        ..base
    };
    let decide = |condition: &str| decided(&service, &move_when(condition), &moving("a", 3));
    assert!(decide("Nobody::Answers()").allowed());
    // The base value is the host's, the methods are the script's.
    assert!(decide("Scale::Load(context.input.kg, []).plus(1) == 301").allowed());
    // It has nothing to say, so the script does.
    assert!(decide("Rate::Of(decimal(\"1.5\")) == decimal(\"1.5\")").allowed());
    let failed = decide("Who::Is(\"a\") == \"a\"");
    insta::assert_snapshot!(failed.errors[0].error, @"the information provider `Who::Is` gave no answer: the directory is down");
}

#[test]
fn shapes_with_enumerated_values_are_insisted_on() {
    let answer = |script: &str| {
        let text = format!(
            r#"{{ "entityTypes": {LEVEL}, "availableProviders": {{ "Scan::File": {{
  "outputType": {{ "paramType": "record", "required": ["level"], "fields": {{
    "level": {{ "paramType": "entity", "entityType": "Scan::Level" }},
    "all": {{ "paramType": "set", "items": {{ "paramType": "entity", "entityType": "Scan::Level" }} }},
    "n": {{ "paramType": "long" }} }} }},
  "implementation": {{ "kind": "rhai", "script": {script:?} }} }} }} }}"#,
            script = format!("fn evaluate() {{ {script} }}")
        );
        let (providers, _) = load_providers(&source("providers.json", &text), &no_files).unwrap();
        let service = Service {
            providers: Arc::new(providers),
            ..service(DEPOT, EVENTS)
        };
        let policy = move_when("Scan::File().level == Scan::Level::\"LOW\"");
        let decision = decided(&service, &policy, &moving("a", 1));
        match decision.errors.first() {
            Some(error) => error.error.to_string(),
            None => format!("{:?}", decision.verdict),
        }
    };
    assert_eq!(answer("#{ level: \"LOW\" }"), "Allow");
    assert_eq!(
        answer("#{ level: \"HIGH\", all: [\"LOW\"], n: \"no number\" }"),
        "Deny"
    );
    insta::assert_snapshot!(answer("\"LOW\""), @"the information provider `Scan::File` gave no answer: its answer has a string where a record is declared");
    insta::assert_snapshot!(answer("#{ n: 1 }"), @"the information provider `Scan::File` gave no answer: its answer lacks the field `level`");
    insta::assert_snapshot!(answer("#{ level: () }"), @"the information provider `Scan::File` gave no answer: its answer has nothing where a value of an enumerated type is declared");
    insta::assert_snapshot!(answer("#{ level: \"LOW\", all: \"LOW\" }"), @"the information provider `Scan::File` gave no answer: its answer has a string where a set is declared");
    insta::assert_snapshot!(answer("#{ level: \"LOW\", all: [\"LOW\", \"MID\"] }"), @r#"the information provider `Scan::File` gave no answer: its answer "MID" is not one of the values of `Scan::Level`"#);
    insta::assert_snapshot!(answer("#{ level: \"LOW\", n: parse_decimal(\"0.12345\") }"), @"the information provider `Scan::File` gave no answer: its answer 0.12345 does not fit a decimal");
}

/// Also between two stages an enumerated type has only its values, and a method is given the bare id.
#[test]
fn values_between_methods_are_insisted_on() {
    let decide = |says: &str, condition: &str| {
        let level = serde_json::json!({ "paramType": "entity", "entityType": "Scan::Level" });
        let script = format!("fn evaluate() {{ \"{says}\" }}")
            + r#" fn worse(l) { if l == "LOW" { "MID" } else { "HIGH" } } fn spelt(l) { l + "!" }"#;
        let declared = serde_json::json!({
            "entityTypes": { "Scan::Level": { "enum": ["LOW", "HIGH"] } },
            "availableProviders": { "Scan::File": {
                "outputType": level,
                "availableMethods": {
                    "worse": { "outputType": level },
                    "spelt": { "outputType": { "paramType": "string" } },
                },
                "implementation": { "kind": "rhai", "script": script },
            } },
        });
        let (providers, _) =
            load_providers(&source("providers.json", &declared.to_string()), &no_files).unwrap();
        let service = Service {
            providers: Arc::new(providers),
            ..service(DEPOT, EVENTS)
        };
        let decision = decided(&service, &move_when(condition), &moving("a", 1));
        match decision.errors.first() {
            Some(found) => Err(found.error.to_string()),
            None => Ok(decision.verdict == Verdict::Allow),
        }
    };
    let worse = "Scan::File().worse() == Scan::Level::\"HIGH\"";
    let spelt = "Scan::File().spelt() == \"HIGH!\"";
    assert_eq!(decide("HIGH", worse), Ok(true));
    assert_eq!(decide("HIGH", spelt), Ok(true));
    let why = "the information provider `Scan::File` gave no answer: its answer";
    for (id, condition, odd) in [
        ("ODD", worse, "ODD"),
        ("ODD", spelt, "ODD"),
        ("LOW", "Scan::File().worse().spelt() == \"MID!\"", "MID"),
    ] {
        assert_eq!(
            decide(id, condition),
            Err(format!(
                "{why} {odd:?} is not one of the values of `Scan::Level`"
            ))
        );
    }
}

#[test]
fn equal_calls_are_asked_once() {
    #[derive(Debug, Default)]
    struct Counting(std::sync::atomic::AtomicUsize);
    impl Resolver for Counting {
        fn resolve(&self, _: &str, _: &[Value]) -> Option<Result<Value, String>> {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Some(Ok("a".into()))
        }
    }
    let counting = Arc::new(Counting::default());
    let base = asking();
    let providers = Providers::clone(&base.providers).resolved_by(counting.clone());
    let service = Service {
        providers: Arc::new(providers),
        ..base
    };
    let twice = "Who::Is(principal.id) == \"b\" || Who::Is(principal.id) == \"a\" || Who::Is(resource.id) == \"a\"";
    let text = format!(
        "{}\n{}",
        move_when(twice),
        move_when("Who::Is(principal.id) == \"c\"")
    );
    assert!(decided(&service, &text, &moving("a", 1)).allowed());
    assert_eq!(counting.0.load(std::sync::atomic::Ordering::Relaxed), 2);
}
