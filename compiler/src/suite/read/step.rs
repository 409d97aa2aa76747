//! One step of a test: what is written, what the schema adds, and what is expected.

mod expected;
mod parties;
mod records;

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
}
