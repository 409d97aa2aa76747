//! Words that may be meant while a line is typed.

use dogwood_compiler::explain::short_name;
use dogwood_compiler::schema::{RecordType, Service, Type};
use dogwood_compiler::suite::STEP;
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use std::collections::BTreeSet;

/// Keys of events, names of actions, their fields, choices of enumerations, and the dialogue's own commands.
pub struct Words {
    words: BTreeSet<String>,
}

const COMMANDS: &[&str] = &[
    ":help", ":history", ":quit", ":reset", ":rules", ":save", ":undo",
];

impl Words {
    pub fn new(service: &Service) -> Words {
        let mut words: BTreeSet<String> = COMMANDS
            .iter()
            .chain(STEP)
            .map(|word| (*word).to_owned())
            .collect();
        for action in service.actions.actions.values() {
            let Some(applies) = &action.applies_to else {
                continue;
            };
            words.insert(short_name(&action.uid));
            fields("", &applies.context, &mut words);
        }
        for entity in service.actions.entity_types.values() {
            words.extend(entity.choices.iter().flatten().map(|id| id.to_string()));
        }
        Words { words }
    }
}

fn fields(before: &str, record: &RecordType, words: &mut BTreeSet<String>) {
    for (name, attr) in &record.attrs {
        let path = if before.is_empty() {
            name.to_string()
        } else {
            format!("{before}.{name}")
        };
        if let Type::Record(inner) = &attr.ty {
            fields(&path, inner, words);
        } else {
            words.insert(path);
        }
    }
}

/// Where the word that ends at the cursor begins.
fn start(line: &str) -> usize {
    let part_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':' | '.');
    line.char_indices()
        .rev()
        .take_while(|(_, c)| part_of_word(*c))
        .last()
        .map_or(line.len(), |(at, _)| at)
}

impl Completer for Words {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..cursor).unwrap_or(line);
        let from = start(typed);
        let word = typed.get(from..).unwrap_or_default();
        let fits = self
            .words
            .range(word.to_owned()..)
            .take_while(|candidate| candidate.starts_with(word));
        Ok((from, fits.cloned().collect()))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::{Words, start};
    use dogwood_compiler::schema::box_service;

    #[test]
    fn words_of_the_schema() {
        let words = Words::new(&box_service()).words;
        for word in ["fs:read", "input.path", "read_content", "command", ":undo"] {
            assert!(words.contains(word), "{word}");
        }
    }

    #[test]
    fn the_word_at_the_cursor() {
        assert_eq!(start("action = \"fs:r"), 10);
        assert_eq!(start(":hi"), 0);
        assert_eq!(start("a, input.pa"), 3);
        assert_eq!(start(""), 0);
        assert_eq!(start("é \"é"), 4);
    }
}
