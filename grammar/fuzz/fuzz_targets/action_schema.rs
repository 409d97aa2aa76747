//! Any text as an action schema: no panic, messages for every error, and what is printed reads back.

#![no_main]

use dogwood_grammar::{parse_action_schema, print::print_action_schema};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| {
    let parsed = parse_action_schema(source);
    for error in &parsed.errors {
        let _ = error.diagnostic(source);
    }
    if parsed.errors.is_empty() {
        let text = print_action_schema(&parsed.tree);
        let again = parse_action_schema(&text);
        assert!(again.errors.is_empty(), "{text}\n{:?}", again.errors);
        assert_eq!(text, print_action_schema(&again.tree));
    }
});
