//! An action schema in Cedar's JSON: accepted, or rejected with messages whose places are in the text. What is
//! accepted is written out and accepted again, in both syntaxes.
#![no_main]

use dogwood_compiler::compile::{Source, check_action_schema, load_service};
use dogwood_compiler::diagnostic::{Style, render};
use dogwood_compiler::grammar::print::lay_out_action_schema;
use dogwood_compiler::schema::write::{to_json, tree};
use libfuzzer_sys::fuzz_target;

fn source(name: &str, text: &str) -> Source {
    Source {
        name: name.to_owned(),
        text: text.to_owned(),
    }
}

fuzz_target!(|text: &str| {
    let given = source("actions.json", text);
    let said = check_action_schema(&given);
    for diagnostic in &said {
        assert!(text.get(diagnostic.span.range()).is_some(), "{diagnostic:?}");
    }
    render(&said, &[("actions.json", text)], Style::Plain);
    let Ok((service, _)) = load_service(Some(&given), None) else {
        return;
    };
    let written = tree(&service.actions);
    for (name, again) in [
        ("a.json", to_json(&written).to_string()),
        ("a.cedarschema", lay_out_action_schema(&written)),
    ] {
        let found = check_action_schema(&source(name, &again));
        assert!(found.is_empty(), "{again}\n{found:?}");
    }
});
