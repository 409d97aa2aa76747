//! A policy and a trace from one text, parted by a line `---`: whatever is read is decided, checked or not.
#![no_main]

use dogwood_compiler::grammar::ast::Item;
use dogwood_compiler::grammar::parse_policy;
use dogwood_compiler::monitor::{Policy, replay};
use dogwood_compiler::schema::box_service;
use dogwood_compiler::trace;
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

fuzz_target!(|text: &str| {
    let Some((policy, trace)) = text.split_once("\n---\n") else { return };
    let rules: Vec<_> = parse_policy(policy)
        .tree
        .items
        .into_iter()
        .filter_map(|item| match item {
            Item::Rule(rule) => Some(rule),
            _ => None,
        })
        .collect();
    let (events, _) = trace::parse(trace);
    replay(Arc::new(Policy::new(&rules, &box_service())), &events);
});
