//! What the words of the language, and the actions of a box, mean: one paragraph and one line of code each.

mod boxed;
mod language;

pub use boxed::{action, field};
pub use language::{
    Word, annotation, applies_to, constructor, keyword, method, operator, selector, test_key,
    type_name,
};
