//! One step of a test: what is written, what the schema adds, and what is expected.

use super::super::command::{self, CommandFault};
use super::super::fill::{Fill, written};
use super::super::plain::Plain;
use super::super::table::{unknown, wrong};
use super::super::{Expected, MOST_EVENTS, Step, time};
use super::Reader;
use crate::event::{EntityData, Event, RequestPart};
use crate::explain::action_name;
use crate::grammar::diagnostic::Diagnostic;
use crate::json::{Json, JsonKind, Member};
use crate::monitor::Verdict;
use crate::nearest::nearest;
use crate::schema::{ActionDecl, EventId, RecordType, Type};
use crate::value::{EntityUid, Record, Value};
use smol_str::SmolStr;

/// The keys of an event.
pub const STEP: &[&str] = &[
    "at",
    "action",
    "kind",
    "command",
    "input",
    "output",
    "status",
    "context",
    "logged",
    "principal",
    "resource",
    "entities",
    "times",
    "every",
    "expect",
    "by",
    "says",
];
const DEFAULTS: &[&str] = &["principal", "resource", "entities"];

/// Tests begin on a Monday at nine in the morning, so that an explanation has plain times.
pub const START: i64 = 1_767_603_600;

/// Reads the steps of one case in order.
pub struct Steps<'a, 'r> {
    reader: &'r mut Reader<'a>,
    /// The words of the row, which may say what the last step expects.
    row: Option<&'r [Member]>,
    now: i64,
    events: u32,
    requests: u32,
}

/// The parts of an event that stand beside its records.
struct Parties {
    principal: Option<EntityUid>,
    resource: Option<EntityUid>,
    entities: Vec<EntityData>,
}

impl<'a, 'r> Steps<'a, 'r> {
    pub fn new(reader: &'r mut Reader<'a>, row: Option<&'r [Member]>) -> Steps<'a, 'r> {
        Steps {
            reader,
            row,
            now: START,
            events: 0,
            requests: 0,
        }
    }

    /// Goes on at a later time, after so many requests.
    pub fn from(mut self, now: i64, requests: u32) -> Steps<'a, 'r> {
        self.now = now;
        self.requests = requests;
        self
    }

    pub fn read(mut self, events: &[Json]) -> Vec<Step> {
        self.defaults();
        let last = events.len().saturating_sub(1);
        let steps = events
            .iter()
            .enumerate()
            .filter_map(|(at, event)| self.step(event, at == last));
        steps.collect()
    }

    fn refuse(&mut self, problem: Diagnostic) {
        self.reader.problems.push(problem);
    }

    fn defaults(&mut self) {
        let Some(defaults) = self.reader.defaults.clone() else {
            return;
        };
        match defaults.as_object() {
            Some(members) => {
                for member in members {
                    if !DEFAULTS.contains(&member.key.value.as_str()) {
                        self.refuse(unknown(&member.key, "`defaults`", DEFAULTS));
                    }
                }
            }
            None => self.refuse(wrong("defaults", &defaults, "a table")),
        }
    }

    fn step(&mut self, node: &Json, last: bool) -> Option<Step> {
        let Some(members) = node.as_object() else {
            self.refuse(wrong("events", node, "a list of tables"));
            return None;
        };
        let before = self.reader.problems.len();
        for member in members {
            if !STEP.contains(&member.key.value.as_str()) {
                self.refuse(unknown(&member.key, "an event of a test", STEP));
            }
        }
        // What is missing may be there, misspelled.
        if self.reader.problems.len() > before {
            return None;
        }
        if let Some(at) = node.get("at") {
            self.time(at);
        }
        let times = self.count(node).unwrap_or(1);
        let every = self.every(node).unwrap_or(0);
        let action = self.action(node)?;
        let kind = self.kind(node, &action)?;
        let decided = self.decides(&kind);
        let parties = self.parties(node, &action);
        let (input, line) = self.input(node, &action);
        let output = self.output(node, &action);
        let expected = self.expected(node, last);
        if let (false, Some(expected)) = (decided, &expected) {
            let problem = Diagnostic::error(
                "test-nothing-decided",
                expected.span,
                format!("nothing is decided at a `{kind}` event, so nothing can be expected of it"),
            )
            .help("expect a verdict of a request; an event of this kind only happened");
            self.refuse(problem);
        }
        let context = self.context(node, &action, &input);
        let title = match (&line, input.get("path"), input.get("host")) {
            (Some(line), ..) => format!("{} `{line}`", action.uid.id),
            (_, Some(Value::String(text)), None) | (_, None, Some(Value::String(text)))
                if !text.is_empty() =>
            {
                format!("{} {text}", action.uid.id)
            }
            _ => action.uid.id.to_string(),
        };
        self.requests += 1;
        let with_output = !decided;
        let event = Event {
            time: self.now,
            action: action.uid.clone(),
            kind: kind.clone(),
            logged: self.logged(
                node,
                &action,
                &kind,
                &input,
                output.as_ref().filter(|_| with_output),
                &parties,
            ),
            request: decided.then(|| RequestPart {
                principal: parties.principal.clone(),
                resource: parties.resource.clone(),
                context,
                entities: parties.entities.clone(),
            }),
        };
        let response = match (decided, &output) {
            (true, Some(output)) => self.response(node, &action, &input, output, &parties),
            _ => None,
        };
        // What is said to have ended must have been permitted.
        let expected = expected.or_else(|| {
            response.as_ref().map(|_| Expected {
                span: node.span,
                verdict: Verdict::Allow,
                by: None,
                says: None,
            })
        });
        self.now = self
            .now
            .saturating_add(every.saturating_mul(i64::from(times) - 1));
        Some(Step {
            span: node.span,
            title,
            event,
            response,
            times,
            every,
            expected,
        })
    }

    fn time(&mut self, at: &Json) {
        let moved = match &at.kind {
            JsonKind::String(text) => text
                .strip_prefix('+')
                .and_then(time::span)
                .and_then(|span| self.now.checked_add(span)),
            JsonKind::Number(digits) => digits
                .parse::<i64>()
                .ok()
                .and_then(|seconds| START.checked_add(seconds)),
            _ => None,
        };
        match moved {
            Some(now) if now >= self.now => self.now = now,
            Some(_) => self.refuse(Diagnostic::error(
                "test-time",
                at.span,
                "this time is before that of the event above",
            )
            .help("put the events in order of time")),
            None => self.refuse(
                Diagnostic::error("test-time", at.span, "this is not a time")
                    .help("write `\"+5m\"` for five minutes after the event above, or seconds since the start: `at = 300`"),
            ),
        }
    }

    fn count(&mut self, node: &Json) -> Option<u32> {
        let times = node.get("times")?;
        let number = match &times.kind {
            JsonKind::Number(digits) => digits.parse::<u32>().ok(),
            _ => None,
        };
        let number = number.filter(|number| *number > 0);
        let fits = number.filter(|number| {
            self.events = self.events.saturating_add(*number);
            self.events <= MOST_EVENTS
        });
        if fits.is_none() {
            let message = format!(
                "`times` wants a whole number from 1 to {MOST_EVENTS}, in all events of a test together"
            );
            self.refuse(Diagnostic::error("wrong-shape", times.span, message));
        }
        fits
    }

    fn every(&mut self, node: &Json) -> Option<i64> {
        let every = node.get("every")?;
        let seconds = every.as_str().and_then(|text| time::span(text));
        if seconds.is_none() {
            self.refuse(
                Diagnostic::error("test-time", every.span, "this is not a span of time")
                    .help("write `\"30s\"`, `\"5m\"` or `\"1h30m\"`"),
            );
        }
        seconds
    }

    fn action(&mut self, node: &Json) -> Option<ActionDecl> {
        let Some(named) = node.get("action") else {
            let commanded = node.get("command").is_some();
            // A command line without an action is a program of the host.
            let spawn = self
                .reader
                .service
                .actions
                .actions
                .get(&EntityUid::new("Box::Action", "shell:spawn"));
            return match spawn {
                Some(spawn) if commanded => Some(spawn.clone()),
                _ => {
                    let problem =
                        Diagnostic::error("missing-key", node.span, "this event has no `action`");
                    self.refuse(problem.help("name what is done: `action = \"fs:read\"`"));
                    None
                }
            };
        };
        let Some(text) = named.as_str() else {
            self.refuse(wrong("action", named, "a string"));
            return None;
        };
        let actions = &self.reader.service.actions.actions;
        let uid = written(text);
        let mut found = actions
            .values()
            .filter(|action| action.applies_to.is_some())
            .filter(|action| match &uid {
                Some(uid) => action.uid == *uid,
                None => {
                    action.uid.id == *text
                        || action_name(&action.uid.ty, &action.uid.id) == text.as_str()
                }
            });
        match (found.next(), found.next()) {
            (Some(only), None) => Some(only.clone()),
            (Some(one), Some(other)) => {
                let help = format!("write `'{}'` or `'{}'`", one.uid, other.uid);
                let message = format!("more than one action is called `{text}`");
                self.refuse(Diagnostic::error("ambiguous-type", named.span, message).help(help));
                None
            }
            (None, _) => {
                let names: Vec<SmolStr> = actions
                    .values()
                    .filter(|action| action.applies_to.is_some())
                    .map(|action| SmolStr::new(action_name(&action.uid.ty, &action.uid.id)))
                    .collect();
                let problem = Diagnostic::error(
                    "unknown-action",
                    named.span,
                    format!("there is no action `{text}`"),
                );
                self.refuse(match nearest(text, &names) {
                    Some(near) => problem.label(format!("did you mean `{near}`?")).fix(
                        format!("change to `{near}`"),
                        named.span,
                        format!("{:?}", near.as_str()),
                    ),
                    None => problem,
                });
                None
            }
        }
    }

    fn decides(&self, kind: &str) -> bool {
        self.reader.service.events.decision_kinds.contains(kind)
    }

    fn kind(&mut self, node: &Json, action: &ActionDecl) -> Option<SmolStr> {
        let events = &self.reader.service.events;
        let kinds: Vec<SmolStr> = events
            .events
            .keys()
            .filter(|id| id.action == action.uid)
            .map(|id| id.kind.clone())
            .collect();
        let Some(named) = node.get("kind") else {
            let decision = kinds.iter().find(|kind| self.decides(kind)).cloned();
            if decision.is_none() {
                let message = format!(
                    "no event of `{}` is decided; which `kind` is this?",
                    action.uid.id
                );
                self.refuse(Diagnostic::error("missing-key", node.span, message));
            }
            return decision;
        };
        match named.as_str() {
            Some(kind) if kinds.contains(kind) => Some(kind.clone()),
            Some(kind) => {
                let all: Vec<String> = kinds.iter().map(|kind| format!("`{kind}`")).collect();
                let message = format!("`{}` has no event of the kind `{kind}`", action.uid.id);
                let problem = Diagnostic::error("unknown-event", named.span, message)
                    .help(format!("its kinds: {}", all.join(", ")));
                self.refuse(match nearest(kind, &kinds) {
                    Some(near) => problem.label(format!("did you mean `{near}`?")),
                    None => problem,
                });
                None
            }
            None => {
                self.refuse(wrong("kind", named, "a string"));
                None
            }
        }
    }

    fn part<'n>(&mut self, node: &'n Json, key: &str) -> Option<&'n [Member]> {
        let part = node.get(key)?;
        if part.as_object().is_none() {
            self.refuse(wrong(key, part, "a table"));
        }
        part.as_object()
    }

    /// The record type of a part of the context.
    fn record_type(action: &ActionDecl, part: &str) -> Option<RecordType> {
        let context = &action.applies_to.as_ref()?.context;
        match &context.attrs.get(part)?.ty {
            Type::Record(record) => Some(record.clone()),
            _ => None,
        }
    }

    fn fill(&mut self) -> Fill<'_> {
        Fill {
            plain: Plain {
                service: self.reader.service,
            },
            problems: &mut self.reader.problems,
        }
    }

    fn input(&mut self, node: &Json, action: &ActionDecl) -> (Record, Option<String>) {
        let given = self.part(node, "input").unwrap_or_default();
        let ty = Self::record_type(action, "input").unwrap_or_default();
        let mut under = Record::new();
        let mut line = None;
        if let Some(command) = node.get("command") {
            match command.as_str().map(|text| (text, command::input(text))) {
                Some((text, Ok(fields))) if ty.attrs.contains_key("command") => {
                    under = fields;
                    line = Some(text.to_string());
                }
                Some((_, Ok(_))) => {
                    let message = format!("`{}` takes no command line", action.uid.id);
                    self.refuse(Diagnostic::error(
                        "unknown-attribute",
                        command.span,
                        message,
                    ));
                }
                Some((_, Err(fault))) => {
                    let message = match fault {
                        CommandFault::Empty => "this command line is empty",
                        CommandFault::Quotes => "a quote of this command line is not closed",
                    };
                    self.refuse(Diagnostic::error("wrong-shape", command.span, message));
                }
                None => self.refuse(wrong("command", command, "a string")),
            }
        }
        let place = format!("the input of `{}`", action.uid.id);
        (self.fill().record(&ty, given, under, &place), line)
    }

    fn output(&mut self, node: &Json, action: &ActionDecl) -> Option<Record> {
        let ty = Self::record_type(action, "output");
        let mut given = self.part(node, "output").map(<[Member]>::to_vec);
        if let Some(status) = node.get("status") {
            given.get_or_insert_default().push(Member {
                key: crate::grammar::ast::Str {
                    value: "status".into(),
                    span: status.span,
                },
                value: status.clone(),
            });
        }
        let given = given?;
        let place = format!("the output of `{}`", action.uid.id);
        Some(
            self.fill()
                .record(&ty.unwrap_or_default(), &given, Record::new(), &place),
        )
    }

    fn context(&mut self, node: &Json, action: &ActionDecl, input: &Record) -> Record {
        let given = self.part(node, "context").unwrap_or_default().to_vec();
        let mut ty = action
            .applies_to
            .as_ref()
            .map(|applies| applies.context.clone())
            .unwrap_or_default();
        let has_input = ty.attrs.remove("input").is_some();
        ty.attrs.remove("output");
        let mut context = self
            .fill()
            .record(&ty, &given, Record::new(), "the context");
        if has_input {
            context.insert("input".into(), Value::Object(input.clone()));
        }
        context
    }

    fn parties(&mut self, node: &Json, action: &ActionDecl) -> Parties {
        let (principals, resources) = match &action.applies_to {
            Some(applies) => (applies.principals.clone(), applies.resources.clone()),
            None => Default::default(),
        };
        Parties {
            principal: self.party(node, "principal", action, &principals),
            resource: self.party(node, "resource", action, &resources),
            entities: self.entities(node),
        }
    }

    fn setting(&self, node: &Json, key: &str) -> Option<Json> {
        node.get(key)
            .or_else(|| self.reader.defaults.as_ref()?.get(key))
            .cloned()
    }

    fn party(
        &mut self,
        node: &Json,
        key: &str,
        action: &ActionDecl,
        types: &[SmolStr],
    ) -> Option<EntityUid> {
        match self.setting(node, key) {
            Some(named) => match named.as_str() {
                Some(text) => self.fill().entity(types, &text.clone(), &named),
                None => {
                    self.refuse(wrong(key, &named, "a string"));
                    None
                }
            },
            None => {
                let plain = Plain {
                    service: self.reader.service,
                };
                if key == "resource" {
                    plain.resource(action)
                } else {
                    plain.principal(action)
                }
            }
        }
    }

    /// `entities = { 'Depot::Clerk::"ann"' = { in = ['Depot::Crew::"day"'], rank = 3 } }`.
    fn entities(&mut self, node: &Json) -> Vec<EntityData> {
        let Some(given) = self.setting(node, "entities") else {
            return Vec::new();
        };
        let Some(members) = given.as_object() else {
            self.refuse(wrong("entities", &given, "a table"));
            return Vec::new();
        };
        let mut entities = Vec::new();
        for Member { key, value } in members {
            let uid = written(&key.value);
            let ty = uid.as_ref().and_then(|uid| {
                self.reader
                    .service
                    .actions
                    .entity_types
                    .get(&uid.ty)
                    .cloned()
            });
            let (Some(uid), Some(ty)) = (uid, ty) else {
                let message = format!("`{}` is no entity of the schema", key.value);
                let problem = Diagnostic::error("unknown-entity-type", key.span, message);
                self.refuse(
                    problem.help("write its type and its id: `'Box::Agent::\"self\"' = { … }`"),
                );
                continue;
            };
            let Some(members) = value.as_object() else {
                self.refuse(wrong(&key.value, value, "a table of attributes"));
                continue;
            };
            let (parents, attrs): (Vec<Member>, Vec<Member>) = members
                .iter()
                .cloned()
                .partition(|member| member.key.value == "in");
            let mut above = Vec::new();
            for parent in parents
                .iter()
                .flat_map(|member| match member.value.as_array() {
                    Some(items) => items.to_vec(),
                    None => vec![member.value.clone()],
                })
            {
                match parent.as_str().and_then(|text| written(text)) {
                    Some(parent) => above.push(parent),
                    None => self.refuse(wrong("in", &parent, "entities, as `'Ns::Type::\"id\"'`")),
                }
            }
            let place = format!("`{}`", uid.ty);
            let attrs = self.fill().record(&ty.attrs, &attrs, Record::new(), &place);
            entities.push(EntityData {
                uid,
                attrs,
                parents: above,
                tags: Record::new(),
            });
        }
        entities
    }

    fn response(
        &mut self,
        node: &Json,
        action: &ActionDecl,
        input: &Record,
        output: &Record,
        parties: &Parties,
    ) -> Option<Event> {
        let kind = SmolStr::new_static("response");
        let id = EventId {
            action: action.uid.clone(),
            kind: kind.clone(),
        };
        if !self.reader.service.events.events.contains_key(&id) {
            let message = format!(
                "`{}` has no `response` event to hold an output",
                action.uid.id
            );
            self.refuse(Diagnostic::error("unknown-event", node.span, message));
            return None;
        }
        Some(Event {
            time: self.now,
            action: action.uid.clone(),
            logged: self.logged(node, action, &kind, input, Some(output), parties),
            kind,
            request: None,
        })
    }

    /// The logged record of an event, field by field as the event schema derives it.
    fn logged(
        &mut self,
        node: &Json,
        action: &ActionDecl,
        kind: &SmolStr,
        input: &Record,
        output: Option<&Record>,
        parties: &Parties,
    ) -> Record {
        let id = EventId {
            action: action.uid.clone(),
            kind: kind.clone(),
        };
        let service = self.reader.service;
        let Some(derived) = service.events.events.get(&id) else {
            return Record::new();
        };
        let given = self.part(node, "logged").unwrap_or_default().to_vec();
        let mut groups = Record::from([("input".into(), Value::Object(input.clone()))]);
        if let Some(output) = output {
            groups.insert("output".into(), Value::Object(output.clone()));
        }
        let mut logged = Plain { service }.logged(
            &id,
            &groups,
            parties.principal.as_ref(),
            parties.resource.as_ref(),
            &format!("r{}", self.requests),
        );
        for member in given {
            match untyped(&member.value) {
                Some(value)
                    if derived
                        .fields
                        .contains_key(std::slice::from_ref(&member.key.value))
                        || derived
                            .groups
                            .contains(std::slice::from_ref(&member.key.value)) =>
                {
                    logged.insert(member.key.value.clone(), value);
                }
                Some(_) => {
                    let message = format!(
                        "a `{kind}` of `{}` has no `{}`",
                        action.uid.id, member.key.value
                    );
                    self.refuse(Diagnostic::error("unknown-field", member.key.span, message));
                }
                None => {
                    let problem = wrong(&member.key.value, &member.value, "a value");
                    self.refuse(problem);
                }
            }
        }
        logged
    }

    fn expected(&mut self, node: &Json, last: bool) -> Option<Expected> {
        let row = self.row.filter(|_| last);
        let said = |key: &str| -> Option<Json> {
            let of_row = row.and_then(|row| row.iter().find(|word| word.key.value == key));
            node.get(key)
                .or_else(|| of_row.map(|word| &word.value))
                .cloned()
        };
        let (expect, by, says) = (said("expect"), said("by"), said("says"));
        let by = by.map(|by| (self.names(&by), by.span));
        let verdict = match &expect {
            None if by.is_none() && says.is_none() => return None,
            None => {
                let span = by.as_ref().map_or(node.span, |(_, span)| *span);
                self.refuse(
                    Diagnostic::error("missing-key", span, "what should be decided is not said")
                        .help("add `expect = \"allow\"` or `expect = \"deny\"`"),
                );
                return None;
            }
            Some(word) => match word.as_str().map(SmolStr::as_str) {
                Some("allow") => Verdict::Allow,
                Some("deny") => Verdict::Deny,
                found => {
                    let wanted = "`\"allow\"` or `\"deny\"`";
                    self.refuse(match found {
                        Some(found) => Diagnostic::error(
                            "wrong-shape",
                            word.span,
                            format!("`expect` wants {wanted}, and this is `{found}`"),
                        ),
                        None => wrong("expect", word, wanted),
                    });
                    return None;
                }
            },
        };
        let says = match says {
            Some(node) => match node.as_str() {
                Some(text) => Some(text.to_string()),
                None => {
                    self.refuse(wrong("says", &node, "a string"));
                    None
                }
            },
            None => None,
        };
        let span = expect.as_ref().map_or(node.span, |expect| expect.span);
        Some(Expected {
            span,
            verdict,
            by: by.map(|(by, _)| by),
            says,
        })
    }

    fn names(&mut self, node: &Json) -> Vec<String> {
        let items: Vec<Json> = match node.as_array() {
            Some(items) => items.to_vec(),
            None => vec![node.clone()],
        };
        let mut names = Vec::new();
        for item in items {
            let Some(name) = item.as_str() else {
                self.refuse(wrong("by", &item, "the names of rules"));
                continue;
            };
            if !self.reader.rules.contains(name.as_str()) {
                let known: Vec<SmolStr> = self.reader.rules.iter().map(SmolStr::new).collect();
                let problem = Diagnostic::error(
                    "test-rule",
                    item.span,
                    format!("no rule is called `{name}`"),
                );
                self.refuse(match nearest(name, &known) {
                    Some(near) => problem.label(format!("did you mean `{near}`?")).fix(
                        format!("change to `{near}`"),
                        item.span,
                        format!("{:?}", near.as_str()),
                    ),
                    None => problem.help(
                        "a rule is called by its `@id`, or by where it stands: `policy.dw:12`",
                    ),
                });
                continue;
            }
            names.push(name.to_string());
        }
        names
    }
}

/// A value of a field without a type; an entity is written as `Ns::Type::"id"`.
fn untyped(node: &Json) -> Option<Value> {
    Some(match &node.kind {
        JsonKind::Bool(yes) => Value::Bool(*yes),
        JsonKind::Number(digits) => Value::Int(digits.parse().ok()?),
        JsonKind::String(text) => match written(text) {
            Some(uid) => Value::Entity(uid),
            None => Value::String(text.clone()),
        },
        JsonKind::Array(items) => Value::Array(items.iter().map(untyped).collect::<Option<_>>()?),
        JsonKind::Object(members) => {
            let fields = members
                .iter()
                .map(|member| Some((member.key.value.clone(), untyped(&member.value)?)));
            Value::Object(fields.collect::<Option<_>>()?)
        }
        JsonKind::Null => return None,
    })
}
