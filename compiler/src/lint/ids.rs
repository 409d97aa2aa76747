//! Two rules of one name: a denial names a rule, and then nobody knows which.

use super::{Set, Subject};
use dogwood_grammar::Span;
use dogwood_grammar::diagnostic::Diagnostic;
use std::collections::BTreeMap;

pub fn check(set: &mut Set) {
    let mut first: BTreeMap<&str, (&Subject, Span)> = BTreeMap::new();
    for subject in set.subjects {
        let notes = &subject.checked.rule.annotations;
        let Some(id) = notes.iter().rev().find(|note| note.key.text == "id") else {
            continue;
        };
        let Some(value) = id.value.as_ref().filter(|v| !v.value.trim().is_empty()) else {
            continue;
        };
        match first.get(value.value.as_str()) {
            None => {
                first.insert(&value.value, (subject, value.span));
            }
            Some((other, span)) => {
                let (other, span) = (*other, *span);
                let said = Diagnostic::warning(
                    "duplicate-id",
                    value.span,
                    format!("another rule has the id `{}`, too", value.value),
                )
                .help("denials and records name a rule by its id; give each its own");
                set.say_with(subject, said, other, span, "also here".to_owned());
            }
        }
    }
}
