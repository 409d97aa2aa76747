//! Action schemas and event schemas: what they mean, and what is said about wrong ones.

use super::screen::said;
use super::screen::{DEPOT, EVENTS, depot, service, source};
use dogwood_compiler::compile;
use dogwood_compiler::diagnostic::{Style, render};
use dogwood_compiler::grammar::diagnostic::SourceId;
use dogwood_compiler::schema::{EventId, FieldType, Pin, PinValue, Service, Type};
use dogwood_compiler::value::EntityUid;

fn screen(actions: &str, events: Option<&str>) -> String {
    let actions = source("actions.cedarschema", actions);
    let events = events.map(|events| source("events.dwschema", events));
    let mut texts = vec![(actions.name.as_str(), actions.text.as_str())];
    texts.extend(
        events
            .as_ref()
            .map(|events| (events.name.as_str(), events.text.as_str())),
    );
    match compile::load_service(Some(&actions), events.as_ref()) {
        Ok((_, warnings)) if warnings.is_empty() => "nothing to say".to_owned(),
        Ok((_, said)) | Err(said) => {
            let mut out = render(&said, &texts, Style::Plain);
            for diagnostic in said {
                if let Some(fix) = diagnostic.fix {
                    let text = if diagnostic.source == SourceId(0) {
                        texts[0].1
                    } else {
                        texts[1].1
                    };
                    let mended = super::screen::apply(text, &fix);
                    let line = mended[..fix.edits[0].span.start as usize]
                        .lines()
                        .count()
                        .max(1);
                    let shown = mended.lines().nth(line - 1).unwrap_or("");
                    out.push_str(&format!("\nfix: {}\n  | {shown}\n", fix.title));
                }
            }
            out
        }
    }
}

fn codes(actions: &str, events: &str) -> Vec<&'static str> {
    let (actions, events) = (source("a", actions), source("e", events));
    match compile::load_service(Some(&actions), Some(&events)) {
        Ok((_, said)) | Err(said) => said.iter().map(|diagnostic| diagnostic.code).collect(),
    }
}

fn fields(service: &Service, action: &str, kind: &str) -> Vec<String> {
    let id = EventId {
        action: EntityUid::new("Depot::Action", action),
        kind: kind.into(),
    };
    let event = &service.events.events[&id];
    event
        .fields
        .iter()
        .map(|(path, ty)| {
            let ty = match ty {
                FieldType::Declared { ty, required } => {
                    format!("{ty}{}", if *required { "" } else { "?" })
                }
                FieldType::Scope(types) => types.join("|"),
                FieldType::Injected(name) => format!("~{name}"),
            };
            format!("{}: {ty}", path.join("."))
        })
        .collect()
}

#[test]
fn events_are_derived_for_every_action() {
    let service = depot();
    assert_eq!(
        fields(&service, "move", "response"),
        [
            "callerPrincipal: Depot::Clerk|Depot::Drone",
            "callerResource: Depot::Bay",
            "input.crate: String",
            "input.kg: Long?",
            "output.ok: Bool?",
            "requestId: ~String",
            "sessionId: ~String",
        ]
    );
    assert_eq!(fields(&service, "move", "error").len(), 6);
    // A group has events too, without what only a concrete action has.
    assert_eq!(
        fields(&service, "Any", "request"),
        [
            "callerPrincipal: ",
            "callerResource: ",
            "requestId: ~String",
            "sessionId: ~String"
        ]
    );
    assert_eq!(service.events.max_window, 86_400);
}

#[test]
fn nested_records_become_groups() {
    let actions = DEPOT.replace(
        "type MoveIn  = {",
        "type MoveIn = { at: { x: Long, y?: Long },",
    );
    let events = "event <A>::done { log: { ...inputs(A), note: Any::Thing }, requestId: String }";
    let service = service(&actions, events);
    assert_eq!(
        fields(&service, "move", "done"),
        [
            "log.input.at.x: Long",
            "log.input.at.y: Long?",
            "log.input.crate: String",
            "log.input.kg: Long?",
            "log.note: ~Any::Thing",
            "requestId: ~String",
        ]
    );
}

#[test]
fn pins_that_make_the_history_key_local() {
    let pinned = |field: &str| {
        let events = format!("decision event <A>::request {{ ...inputs(A), {field} }}");
        service(DEPOT, &events).events.universal_pin
    };
    assert_eq!(
        pinned("pin callerPrincipal: principalType(A) = principal"),
        Some(Pin {
            field: vec!["callerPrincipal".into()],
            value: PinValue::Principal(vec![])
        })
    );
    assert_eq!(
        pinned("pin sessionId: String = context.sessionId"),
        Some(Pin {
            field: vec!["sessionId".into()],
            value: PinValue::Context(vec!["sessionId".into()])
        })
    );
    assert_eq!(pinned("pin who: principalType(A) = principal"), None);
    assert_eq!(pinned("pin callerPrincipal: String = principal.name"), None);
    assert_eq!(pinned("pin sessionId: String = context.session"), None);
    let one_of_two =
        "decision event <A>::request { pin callerPrincipal: principalType(A) = principal }
                      event <A>::response { callerPrincipal: principalType(A) }";
    assert_eq!(service(DEPOT, one_of_two).events.universal_pin, None);
}

#[test]
fn without_an_event_schema_events_are_pinned_to_the_principal() {
    let actions = source("a", DEPOT);
    let (service, warnings) = compile::load_service(Some(&actions), None).unwrap();
    assert!(warnings.is_empty());
    assert_eq!(
        service.events.decision_kinds.iter().collect::<Vec<_>>(),
        ["request"]
    );
    assert!(service.events.universal_pin.is_some());
    assert_eq!(service.events.events.len(), 4 * 3);
}

#[test]
fn names_resolve_inside_out() {
    let service = service(
        r#"
        type Outer = Long;
        entity Top;
        namespace N {
          type Inner = { a: Outer, b: Local, c: Top, d: ipaddr, e: Set<M::Far>, f: __cedar::String, g: Action };
          entity Local in [Top] = Inner2;
          type Inner2 = { x: Bool };
          action go in [M::Action::"all"] appliesTo { principal: Local, resource: [Top], context: Inner };
        }
        namespace M { entity Far; action all; }
        "#
        .replace("= Inner2;", "= { x: Bool };")
        .as_str(),
        EVENTS,
    );
    let go = &service.actions.actions[&EntityUid::new("N::Action", "go")];
    let context = &go.applies_to.as_ref().unwrap().context;
    let types: Vec<String> = context
        .attrs
        .iter()
        .map(|(name, attr)| format!("{name}: {}", attr.ty))
        .collect();
    assert_eq!(
        types,
        [
            "a: Long",
            "b: N::Local",
            "c: Top",
            "d: ipaddr",
            "e: Set<M::Far>",
            "f: String",
            "g: N::Action"
        ]
    );
    assert!(go.ancestors.contains(&EntityUid::new("M::Action", "all")));
    assert!(
        service.actions.entity_types["N::Local"]
            .ancestors
            .contains("Top")
    );
    assert_eq!(
        service.actions.entity_types["N::Local"].attrs.attrs["x"].ty,
        Type::Bool
    );
}

#[test]
fn type_growth_is_bounded() {
    let mut text = "type T0 = { a: Long };".to_owned();
    for n in 1..40 {
        text.push_str(&format!("type T{n} = {{ a: T{0}, b: T{0} }};", n - 1));
    }
    assert!(codes(&text, EVENTS).contains(&"types-too-large"));
    let chain = |n: usize, decl: &dyn Fn(usize) -> String| -> Vec<&str> {
        codes(&(0..n).map(decl).collect::<String>(), EVENTS)
    };
    // Each declared before, and each declared after, the one it uses.
    for n in [100, 1000] {
        let down = chain(n, &|k| {
            format!(
                "type T{k:04} = {};",
                if k == 0 {
                    "Long".to_owned()
                } else {
                    format!("{{ a: T{:04} }}", k - 1)
                }
            )
        });
        let up = chain(n, &|k| {
            format!(
                "type T{k:04} = {};",
                if k + 1 == n {
                    "Long".to_owned()
                } else {
                    format!("Set<T{:04}>", k + 1)
                }
            )
        });
        for found in [down, up] {
            assert_eq!(n > 128, !found.is_empty());
            assert!(
                found.iter().all(|code| *code == "type-too-deep"),
                "{found:?}"
            );
        }
    }
    assert_eq!(
        chain(1000, &|k| format!(
            "type T{k:04} = {};",
            if k == 0 {
                "Long".to_owned()
            } else {
                format!("T{:04}", k - 1)
            }
        )),
        [] as [&str; 0]
    );
}

#[test]
fn event_size_is_bounded() {
    let wide: String = (0..10_001).map(|n| format!("f{n}: Long,")).collect();
    let actions = format!(
        "entity E; action go appliesTo {{ principal: E, resource: E, context: {{ input: {{ {wide} }} }} }};"
    );
    assert_eq!(
        codes(&actions, "event <A>::request { ...inputs(A), x: String }"),
        ["too-many-fields"]
    );
    let deep = |n: usize| {
        format!(
            "event <A>::request {{ {} x: Long {} }}",
            "a: {".repeat(n),
            "}".repeat(n)
        )
    };
    assert_eq!(codes(DEPOT, &deep(60)), [] as [&str; 0]);
    assert_eq!(codes(DEPOT, &deep(70)), ["nesting-too-deep"]);
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    let actions = source("a", &format!("\u{feff}{DEPOT}"));
    let events = source("e", &format!("\u{feff}{EVENTS}"));
    assert!(compile::load_service(Some(&actions), Some(&events)).is_ok());
}

#[test]
fn wrong_action_schemas() {
    said!(screen(
        r#"
entity Top;
namespace A {
  entity User in [Grup, Top] = { name: Sting, pair: Pair };
  entity Group, User;
  entity Empty enum [];
  entity Twice enum ["a", "b", "a"];
  type Pair = { left: Long, right: Other };
  type Other = Set<Pair>;
  type Long = Bool;
  entity Top2;
  action read in ["writ"] appliesTo { principal: [User], resource: [Usr], context: Other2 };
  action write in [read] appliesTo { principal: [], resource: [User] };
  action loop in [loop];
  type Other2 = Set<String>;
}
namespace A { entity More; }
namespace B { entity Top; }
"#,
        None
    ));
}

#[test]
fn wrong_event_schemas() {
    said!(screen(
        DEPOT,
        Some(
            r#"
decision event <A>::request {
  ...input(A), ...principalType(A), out: outputs(A), who: principlType(A), all: everything(A),
  ...inputs(A), input: String,
  note: String, note: Long
}
event <A>::request { }
"#
        )
    ));
}

#[test]
fn an_empty_event_schema() {
    assert_eq!(codes(DEPOT, "  \n").len(), 1);
    assert_eq!(codes(DEPOT, "// nothing yet\n"), [] as [&str; 0]);
    assert_eq!(codes(DEPOT, "max_window = 3h"), [] as [&str; 0]);
}

#[test]
fn an_event_schema_by_itself() {
    let check = |text: &str| -> Vec<&str> {
        compile::check_event_schema(&source("e", text))
            .iter()
            .map(|d| d.code)
            .collect()
    };
    assert_eq!(check(EVENTS), [] as [&str; 0]);
    assert_eq!(
        check("event <A>::x { a: String, a: Long }"),
        ["duplicate-field"]
    );
    assert_eq!(check("event <A>::x { a: inputs(A) }"), ["spread-as-type"]);
    assert_eq!(
        check("event <A>::x { ...principalType(A) }"),
        ["type-as-spread"]
    );
    assert_eq!(
        check("event <A>::x { pin: String, pin pin: String = principal }"),
        ["duplicate-field"]
    );
    assert_eq!(check("max_window = 9223372036854775807d").len(), 1);
}
