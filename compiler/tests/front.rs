//! The front half of the compiler as an author meets it: schemas, macros, checks, and what they say.

#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used)]

mod front {
    mod box_examples;
    mod conditions;
    mod hostile;
    mod legality;
    mod lints;
    mod macros;
    mod pages;
    mod providers;
    mod schemas;
    mod screen;
    mod tags;
    mod temporal;
}
