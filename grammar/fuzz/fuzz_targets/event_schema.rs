//! Any text as an event schema: no panic, messages for every error, and what is printed reads back.

#![no_main]

use dogwood_grammar::{parse_event_schema, print::print_event_schema};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| {
    let parsed = parse_event_schema(source);
    for error in &parsed.errors {
        let _ = error.diagnostic(source);
    }
    if parsed.errors.is_empty() {
        let text = print_event_schema(&parsed.tree);
        // Comments alone are a schema, and nothing at all is none; the printer keeps no comments.
        if text.is_empty() {
            return;
        }
        let again = parse_event_schema(&text);
        assert!(again.errors.is_empty(), "{text}\n{:?}", again.errors);
        assert_eq!(text, print_event_schema(&again.tree));
    }
});
