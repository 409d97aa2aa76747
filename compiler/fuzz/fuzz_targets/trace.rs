//! The trace reader neither panics nor loses a line: each one that is not blank is an event or an error.
#![no_main]

use dogwood_compiler::trace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (events, errors) = trace::parse(text);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    assert_eq!(events.len() + errors.len(), lines);
});
