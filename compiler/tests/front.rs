//! The front half of the compiler as an author meets it: schemas, macros, checks, and what they say.

mod front {
    mod box_examples;
    mod conditions;
    mod hostile;
    mod legality;
    mod macros;
    mod schemas;
    mod screen;
    mod temporal;
}
