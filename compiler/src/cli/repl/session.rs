//! What a line of the dialogue does. Touches no file and no terminal.

use super::super::replay::error;
use super::super::{Findings, counted};
use dogwood_compiler::compile::Source;
use dogwood_compiler::diagnostic::printable;
use dogwood_compiler::event::Event;
use dogwood_compiler::explain::{NamedRule, describe, explain, why_after};
use dogwood_compiler::monitor::{Config, Decision, Monitor, Policy};
use dogwood_compiler::schema::Service;
use dogwood_compiler::suite::{self, START, record};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

pub struct Session<'s> {
    service: &'s Service,
    policy: Arc<Policy>,
    rules: Vec<NamedRule>,
    names: BTreeSet<String>,
    /// The policy files, for saved tests.
    files: Vec<String>,
    monitor: Monitor,
    now: i64,
    /// Everything so far; a line may have brought two.
    events: Vec<Event>,
    decisions: Vec<(usize, i64, Decision)>,
    /// How many events there were before each line.
    lines: Vec<usize>,
}

pub enum Answer {
    Text(String),
    Save { path: String, text: String },
    End,
}

const HELP: &str = "\
$ git push                 a command the shell spawns; `$ npm test => 0` also says how it ended
action = \"fs:read\", …      any event, with the keys an event of a test file has
@12m                       twelve minutes later
:history                   what has happened
:rules                     what the rules say
:undo                      take the last event back
:reset                     begin anew
:save FILE.dwtest.toml     keep this dialogue as a test
:quit
";

impl<'s> Session<'s> {
    pub fn new(
        service: &'s Service,
        policy: Arc<Policy>,
        rules: Vec<NamedRule>,
        files: Vec<String>,
    ) -> Session<'s> {
        Session {
            service,
            monitor: Monitor::new(
                Arc::clone(&policy),
                Config {
                    explained: true,
                    ..Config::default()
                },
            ),
            policy,
            names: rules.iter().map(|rule| rule.name.clone()).collect(),
            rules,
            files,
            now: START,
            events: Vec::new(),
            decisions: Vec::new(),
            lines: Vec::new(),
        }
    }

    pub fn service(&self) -> &Service {
        self.service
    }

    pub fn line(&mut self, line: &str) -> Answer {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Answer::Text(String::new());
        }
        if let Some(command) = line.strip_prefix(':') {
            return self.command(command.trim());
        }
        if let Some(later) = line.strip_prefix('@') {
            let later = later.trim();
            return Answer::Text(match suite::read_span(later.trim_start_matches('+')) {
                Some(span) => {
                    self.now = self.now.saturating_add(span);
                    format!(
                        "it is {} since the start\n",
                        suite::span_text(self.now - START)
                    )
                }
                None => "write a span of time, as `@90s`, `@5m` or `@1h30m`\n".to_owned(),
            });
        }
        let event = match line.strip_prefix('$') {
            Some(command) => {
                let (command, status) = match command.rsplit_once("=>") {
                    Some((command, status)) => (command.trim(), Some(status.trim())),
                    None => (command.trim(), None),
                };
                let mut event = format!("command = {}", text(command));
                if let Some(status) = status {
                    _ = write!(event, ", status = {status}");
                }
                event
            }
            None => line.to_owned(),
        };
        Answer::Text(self.event(&event))
    }

    fn event(&mut self, line: &str) -> String {
        let requests = u32::try_from(self.lines.len()).unwrap_or(u32::MAX);
        let step = match suite::single(line, self.service, &self.names, self.now, requests) {
            Ok(step) => step,
            Err((text, problems)) => {
                let source = Source {
                    name: "event".to_owned(),
                    text,
                };
                return Findings::new(&problems, std::slice::from_ref(&source)).drawn();
            }
        };
        self.lines.push(self.events.len());
        let mut out = String::new();
        for round in 0..step.times {
            let mut event = step.event.clone();
            event.time = event
                .time
                .saturating_add(step.every.saturating_mul(i64::from(round)));
            self.now = event.time;
            let allowed = self.take(&event, &mut out);
            if let (true, Some(response)) = (allowed, &step.response) {
                let mut response = response.clone();
                response.time = event.time;
                self.take(&response, &mut out);
            }
        }
        out
    }

    /// Takes an event in, and says what is decided; true unless it is denied.
    fn take(&mut self, event: &Event, out: &mut String) -> bool {
        let decided = match self.monitor.step(event) {
            Ok(decided) => decided,
            Err(late) => {
                _ = writeln!(out, "{late}");
                return false;
            }
        };
        let position = self.events.len();
        self.events.push(event.clone());
        let Some(decision) = decided else {
            _ = writeln!(out, "{position}: {}", printable(&describe(event)));
            return true;
        };
        let verdict = if decision.allowed() { "ALLOW" } else { "DENY" };
        let by: Vec<&str> = decision
            .rules
            .iter()
            .filter_map(|rule| self.rules.get(*rule))
            .map(|rule| rule.name.as_str())
            .collect();
        let by = if by.is_empty() {
            String::new()
        } else {
            format!(" by {}", by.join(", "))
        };
        _ = writeln!(
            out,
            "{position}: {}: {verdict}{}",
            printable(&describe(event)),
            printable(&by)
        );
        let past = self.events.get(..position).unwrap_or_default();
        for witness in why_after(&self.rules, &self.monitor, past, event, &decision) {
            _ = writeln!(out, "  {}", printable(&witness.to_string()));
        }
        if !decision.allowed() && decision.rules.is_empty() {
            // Said by the reasons already.
        } else {
            for problem in &decision.errors {
                _ = writeln!(out, "  error: {}", printable(&error(problem)));
            }
        }
        let allowed = decision.allowed();
        self.decisions.push((position, event.time, decision));
        allowed
    }

    fn command(&mut self, command: &str) -> Answer {
        let (word, rest) = match command.split_once(char::is_whitespace) {
            Some((word, rest)) => (word, rest.trim()),
            None => (command, ""),
        };
        Answer::Text(match word {
            "quit" | "q" | "exit" => return Answer::End,
            "help" | "h" | "?" => HELP.to_owned(),
            "history" => self.history(),
            "rules" => self.sentences(),
            "undo" => self.undo(),
            "reset" => {
                self.events.clear();
                self.lines.clear();
                self.again();
                self.now = START;
                "nothing has happened\n".to_owned()
            }
            "save" if rest.is_empty() => "say where: `:save push.dwtest.toml`\n".to_owned(),
            "save" => {
                let names: Vec<String> = self.rules.iter().map(|rule| rule.name.clone()).collect();
                let made = record::record(
                    self.service,
                    &self.events,
                    &self.decisions,
                    &names,
                    &self.files,
                    "from a dialogue",
                );
                match made {
                    Ok(text) => {
                        return Answer::Save {
                            path: rest.to_owned(),
                            text,
                        };
                    }
                    Err(fault) => format!("this dialogue cannot be a test: {fault}\n"),
                }
            }
            other => format!("there is no `:{other}`; `:help` lists what there is\n"),
        })
    }

    fn history(&self) -> String {
        let mut out = String::new();
        for (position, event) in self.events.iter().enumerate() {
            let decided = self.decisions.iter().find(|(at, ..)| *at == position);
            let verdict = match decided {
                Some((_, _, decision)) if decision.allowed() => ": allowed",
                Some(_) => ": denied",
                None => "",
            };
            let at = suite::span_text(event.time - START);
            _ = writeln!(
                out,
                "{position}  +{at}  {}{verdict}",
                printable(&describe(event))
            );
        }
        if out.is_empty() {
            out.push_str("nothing has happened\n");
        }
        out
    }

    fn sentences(&self) -> String {
        let mut out = String::new();
        for named in &self.rules {
            let said = explain(&named.rule, 0, "", self.service)
                .sentences
                .join(" ");
            _ = writeln!(out, "{}: {}", printable(&named.name), printable(&said));
        }
        out
    }

    fn undo(&mut self) -> String {
        let Some(before) = self.lines.pop() else {
            return "nothing has happened\n".to_owned();
        };
        let taken = self.events.len().saturating_sub(before);
        self.events.truncate(before);
        self.again();
        self.now = self.events.last().map_or(START, |event| event.time);
        format!("took {} back\n", counted(taken, "event"))
    }

    /// Decides everything anew.
    fn again(&mut self) {
        self.monitor = Monitor::new(
            Arc::clone(&self.policy),
            Config {
                explained: true,
                ..Config::default()
            },
        );
        self.decisions.clear();
        for (position, event) in self.events.iter().enumerate() {
            if let Ok(Some(decision)) = self.monitor.step(event) {
                self.decisions.push((position, event.time, decision));
            }
        }
    }
}

/// A basic string of TOML.
fn text(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
