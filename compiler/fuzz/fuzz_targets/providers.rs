//! Declarations of information providers: accepted, or rejected with messages whose places are in the text.
#![no_main]

use dogwood_compiler::compile::Source;
use dogwood_compiler::diagnostic::{Style, render};
use dogwood_compiler::providers::{check, load_providers};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let source = Source {
        name: "providers.json".to_owned(),
        text: text.to_owned(),
    };
    let said = match load_providers(&source, &|_| Err("there are no files here".to_owned())) {
        Ok((_, warnings)) => warnings,
        Err(said) => said,
    };
    for diagnostic in said.iter().chain(&check(&source)) {
        assert!(text.get(diagnostic.span.range()).is_some(), "{diagnostic:?}");
    }
    render(&said, &[("providers.json", text)], Style::Plain);
});
