//! Laying out a text: it reads the same, and laid out again it stays.
#![no_main]

use dogwood_compiler::format::format;
use dogwood_compiler::grammar::Language;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for language in [
        Language::Policy,
        Language::ActionSchema,
        Language::EventSchema,
    ] {
        if let Ok(laid) = format(text, language) {
            assert_eq!(
                format(&laid, language).as_deref(),
                Ok(laid.as_str()),
                "{text}"
            );
        }
    }
});
