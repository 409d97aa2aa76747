//! A policy, and perhaps an action schema and an event schema, from one text parted by lines `---`: each is
//! accepted, or rejected with messages whose places are places of the texts and can be drawn.
#![no_main]

use dogwood_compiler::compile::{Options, Source, check, load_service};
use dogwood_compiler::diagnostic::{Style, render};
use dogwood_compiler::grammar::diagnostic::Diagnostic;
use dogwood_compiler::lower::lower;
use dogwood_compiler::schema::box_service;
use libfuzzer_sys::fuzz_target;

fn source(name: &str, text: &str) -> Source {
    Source {
        name: name.to_owned(),
        text: text.to_owned(),
    }
}

fn sound(said: &[Diagnostic], texts: &[(&str, &str)]) {
    for diagnostic in said {
        let text = texts[usize::from(diagnostic.source.0)].1;
        assert!(text.get(diagnostic.span.range()).is_some(), "{diagnostic:?}");
    }
    render(said.get(..20).unwrap_or(said), texts, Style::Plain);
}

fuzz_target!(|text: &str| {
    let mut parts = text.split("\n---\n");
    let policy = parts.next().unwrap_or_default();
    let service = match (parts.next(), parts.next()) {
        (Some(actions), Some(events)) => {
            let of_actions = source("a.cedarschema", actions);
            match load_service(Some(&of_actions), Some(&source("e.dwschema", events))) {
                Ok((service, _)) => service,
                Err(said) => return sound(&said, &[("a", actions), ("e", events)]),
            }
        }
        _ => box_service(),
    };
    let options = Options {
        arithmetic: text.len() % 2 == 0,
        quiet: false,
    };
    match check(&[source("p.dw", policy)], None, &service, &options) {
        Err(said) => {
            assert!(!said.is_empty());
            sound(&said, &[("p.dw", policy)]);
        }
        Ok(checked) => {
            sound(&checked.diagnostics, &[("p.dw", policy)]);
            _ = lower(&checked.rules, &service, "policy");
        }
    }
});
