//! Our monitor.

use crate::workload::{EVENT_SCHEMA, Workload, action_schema};
use dogwood_compiler::compile::{self, Options, Source};
use dogwood_compiler::event::Event;
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use dogwood_compiler::monitor::{Config, Monitor, Policy};
use std::sync::Arc;

pub struct Ours(Monitor);

impl Ours {
    pub fn new(workload: &Workload, history: usize) -> Result<Ours, String> {
        let source = |name: &str, text: String| Source {
            name: name.to_owned(),
            text,
        };
        let said = |all: Vec<Diagnostic>| {
            let said: Vec<&str> = all.iter().map(|found| found.message.as_str()).collect();
            said.join("; ")
        };
        let actions = source("actions", action_schema(&(workload.actions)()));
        let events = source("events", EVENT_SCHEMA.to_owned());
        let (service, _) = compile::load_service(Some(&actions), Some(&events)).map_err(said)?;
        let policy = source("policy", (workload.policy)(history));
        let quiet = Options {
            quiet: true,
            ..Options::default()
        };
        let checked = compile::check(&[policy], None, &service, &quiet).map_err(said)?;
        let rules: Vec<_> = checked.rules.into_iter().map(|rule| rule.rule).collect();
        let policy = Arc::new(Policy::new(&rules, &service));
        Ok(Ours(Monitor::new(policy, Config::default())))
    }

    /// The verdict, on a decision.
    pub fn step(&mut self, event: &Event) -> Option<bool> {
        match self.0.step(event) {
            Ok(decision) => decision.map(|decision| decision.allowed()),
            Err(error) => panic!("{error}"),
        }
    }
}
