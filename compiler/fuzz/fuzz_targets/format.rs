//! Laying out a text: it reads the same, and laid out again it stays.
#![no_main]

use dogwood_compiler::format::format;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(laid) = format(text) {
        assert_eq!(format(&laid).as_deref(), Ok(laid.as_str()), "{text}");
    }
});
