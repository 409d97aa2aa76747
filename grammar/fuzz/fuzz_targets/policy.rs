//! Any text as a policy file: no panic, messages for every error, and what is printed reads back.

#![no_main]

use dogwood_grammar::{parse_policy, print::print_policy};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|source: &str| {
    let parsed = parse_policy(source);
    for error in &parsed.errors {
        let _ = error.diagnostic(source);
    }
    if parsed.errors.is_empty() {
        let text = print_policy(&parsed.tree);
        let again = parse_policy(&text);
        assert!(again.errors.is_empty(), "{text}\n{:?}", again.errors);
        assert_eq!(text, print_policy(&again.tree));
    }
});
