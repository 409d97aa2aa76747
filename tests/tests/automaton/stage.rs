//! The stage for tests: a depot, its policies, and short ways to write events.

use dogwood_compiler::compile::{Options, Source, check, load_service};
use dogwood_compiler::event::{EntityData, Event, RequestPart};
use dogwood_compiler::grammar::ast::{Item, Rule};
use dogwood_compiler::grammar::parse_policy;
use dogwood_compiler::monitor::{Decision, Policy, replay};
use dogwood_compiler::schema::Service;
use dogwood_compiler::value::{EntityUid, Record, Value};
use std::sync::Arc;

pub const DEPOT: &str = r#"
namespace Depot {
  entity Crew;
  entity Clerk in [Crew] = { rank: Long, nick?: String };
  entity Drone;
  entity Bay;
  type MoveIn  = { crate: String, kg?: Long };
  type WeighIn = { crate: String, kg: Long, tare: decimal };
  action Any;
  action "move"  in [Any] appliesTo { principal: [Clerk, Drone], resource: [Bay],
                                      context: { input: MoveIn,  output?: { ok: Bool } } };
  action "weigh" in [Any] appliesTo { principal: [Clerk], resource: [Bay],
                                      context: { input: WeighIn, output?: { ok: Bool } } };
  action "beep" appliesTo { principal: [Clerk], resource: [Bay], context: {} };
}
"#;

pub const UNPINNED: &str = "
decision event <A>::request { ...inputs(A), callerPrincipal: principalType(A), callerResource: resourceType(A) }
event <A>::response { ...inputs(A), ...outputs(A), callerPrincipal: principalType(A), callerResource: resourceType(A) }
event <A>::error { ...inputs(A), callerPrincipal: principalType(A), callerResource: resourceType(A) }
";

pub fn source(name: &str, text: &str) -> Source {
    Source {
        name: name.into(),
        text: text.into(),
    }
}

/// The service of an action schema, with an event schema or the built-in one.
pub fn service(actions: &str, events: Option<&str>) -> Service {
    let actions = source("depot.cedarschema", actions);
    let events = events.map(|text| source("depot.dwschema", text));
    match load_service(Some(&actions), events.as_ref()) {
        Ok((service, _)) => service,
        Err(errors) => panic!("{errors:#?}"),
    }
}

pub fn try_rules(policy: &str, service: &Service) -> Result<Vec<Rule>, String> {
    let options = Options {
        arithmetic: true,
        ..Options::default()
    };
    match check(&[source("policy.dw", policy)], None, service, &options) {
        Ok(checked) => Ok(checked.rules.into_iter().map(|rule| rule.rule).collect()),
        Err(errors) => Err(format!("{policy}\n{errors:#?}")),
    }
}

pub fn rules(policy: &str, service: &Service) -> Vec<Rule> {
    try_rules(policy, service).unwrap_or_else(|error| panic!("{error}"))
}

pub fn policy(text: &str, service: &Service) -> Arc<Policy> {
    Arc::new(Policy::new(&rules(text, service), service))
}

/// Without the checks, which would not let pass what can fail.
pub fn unchecked(text: &str, service: &Service) -> Arc<Policy> {
    let items = parse_policy(text).tree.items.into_iter();
    let rules: Vec<_> = items
        .filter_map(|item| match item {
            Item::Rule(rule) => Some(rule),
            _ => None,
        })
        .collect();
    Arc::new(Policy::new(&rules, service))
}

/// What each decision says: `A` or `D`.
pub fn verdicts(policy: Arc<Policy>, events: &[Event]) -> String {
    replay(policy, events)
        .iter()
        .map(|(_, _, decision)| letter(decision))
        .collect()
}

pub fn letter(decision: &Decision) -> char {
    if decision.allowed() { 'A' } else { 'D' }
}

/// A rule for `move` with this leaf, in the short notation of the language reference's examples.
pub fn move_rule(leaf: &str) -> String {
    format!(
        "permit(principal, action == Depot::Action::\"move\", resource) when temporal {{ {} }};",
        long(leaf)
    )
}

/// `M{…}`, `Q{…}`, `B{…}` written out.
pub fn long(leaf: &str) -> String {
    let head = |id: &str| format!("Depot::Action::\"{id}\"::request{{");
    leaf.replace("M{", &head("move"))
        .replace("Q{", &head("weigh"))
        .replace("B{", &head("beep"))
}

pub fn clerk(id: &str) -> EntityUid {
    EntityUid::new("Depot::Clerk", id)
}

pub fn record(fields: &[(&str, Value)]) -> Record {
    fields
        .iter()
        .map(|(name, value)| ((*name).into(), value.clone()))
        .collect()
}

/// An event of `ann`; its input is both logged and asked.
pub fn event(time: i64, action: &str, kind: &str, input: &[(&str, Value)]) -> Event {
    by(clerk("ann"), time, action, kind, input)
}

pub fn by(who: EntityUid, time: i64, action: &str, kind: &str, input: &[(&str, Value)]) -> Event {
    let bay = EntityUid::new("Depot::Bay", "b1");
    let input = Value::Object(record(input));
    Event {
        time,
        action: EntityUid::new("Depot::Action", action),
        kind: kind.into(),
        logged: record(&[
            ("input", input.clone()),
            ("callerPrincipal", who.clone().into()),
            ("callerResource", bay.clone().into()),
        ]),
        request: Some(RequestPart {
            principal: Some(who),
            resource: Some(bay),
            context: record(&[("input", input)]),
            entities: Vec::new(),
        }),
    }
}

pub fn a_move(time: i64, name: &str) -> Event {
    event(time, "move", "request", &[("crate", name.into())])
}

pub fn a_move_of(time: i64, name: &str, kg: i64) -> Event {
    event(
        time,
        "move",
        "request",
        &[("crate", name.into()), ("kg", kg.into())],
    )
}

pub fn weigh(time: i64, name: &str, kg: i64) -> Event {
    let tare = Value::Decimal("1.50".into());
    event(
        time,
        "weigh",
        "request",
        &[("crate", name.into()), ("kg", kg.into()), ("tare", tare)],
    )
}

pub fn beep(time: i64) -> Event {
    event(time, "beep", "request", &[])
}

pub fn with_entity(
    mut event: Event,
    uid: EntityUid,
    attrs: Record,
    parents: &[EntityUid],
) -> Event {
    if let Some(request) = &mut event.request {
        request.entities.push(EntityData {
            uid,
            attrs,
            parents: parents.to_vec(),
            tags: Record::new(),
        });
    }
    event
}

/// The decisions on moves only, under the unpinned schema.
pub fn moves(leaf: &str, events: &[Event]) -> String {
    let service = service(DEPOT, Some(UNPINNED));
    let policy = policy(&move_rule(leaf), &service);
    let decisions = replay(policy, events);
    let of_moves = decisions.iter().filter(|(at, ..)| {
        events
            .get(*at)
            .is_some_and(|event| event.action.id == "move")
    });
    of_moves.map(|(_, _, decision)| letter(decision)).collect()
}

/// The event as a line of a trace.
pub fn written(event: &Event) -> String {
    let mut line = format!("@{} ", event.time);
    if let Some(part) = &event.request {
        let scope = [("principal", &part.principal), ("resource", &part.resource)];
        let scope = scope
            .into_iter()
            .filter_map(|(name, uid)| Some(format!("{name}: {}", uid.as_ref()?)));
        line += &format!("scope({}) ", scope.collect::<Vec<_>>().join(", "));
        let entities = part.entities.iter().map(|entity| {
            let (attrs, tags) = (fields(&entity.attrs), fields(&entity.tags));
            let parents: Vec<String> = entity.parents.iter().map(EntityUid::to_string).collect();
            format!(
                "{}: {{ {attrs} }} in [{}] tags {{ {tags} }}",
                entity.uid,
                parents.join(", ")
            )
        });
        line += &format!("entities({}) ", entities.collect::<Vec<_>>().join(", "));
        line += &format!("request_context({}) ", fields(&part.context));
    }
    line += &format!(
        "{}::{}({})",
        event.action,
        event.kind,
        fields(&event.logged)
    );
    line
}

fn fields(record: &Record) -> String {
    let fields = record
        .iter()
        .map(|(name, value)| format!("{name}: {}", written_value(value)));
    fields.collect::<Vec<_>>().join(", ")
}

fn written_value(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Int(n) => n.to_string(),
        Value::String(text) => format!("{:?}", text.as_str()),
        Value::Decimal(text) => text.to_string(),
        Value::Entity(uid) => uid.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(written_value).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(inner) => format!("{{ {} }}", fields(inner)),
    }
}
