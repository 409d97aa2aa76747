//! Policies, schemas and test files in the one layout: 80 columns, two blanks of indent, operators at the start of a line.
//!
//! Only layout changes. A file that does not parse is not touched; a statement of a policy with a comment where
//! the layout has no place for one keeps its text. Blank lines between comments stay (one at most), and every
//! statement is set off by one.

mod toml;

use crate::suite;
use dogwood_grammar::ast::{Item, PolicyFile};
use dogwood_grammar::diagnostic::{Diagnostic, Edit};
use dogwood_grammar::print::{
    lay_out, lay_out_schema, print_action_schema, print_event_schema, print_policy,
};
use dogwood_grammar::{
    Language, Parsed, Span, TriviaKind, parse_action_schema, parse_event_schema, parse_policy,
};

/// The text laid out, or its syntax errors.
pub fn format(text: &str, language: Language) -> Result<String, Vec<Diagnostic>> {
    let (mark, text) = match text.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    let laid = match language {
        Language::Policy => {
            let read = |text: &str| Read::of(parse_policy(text), text, print_policy);
            safely(text, read, |parsed| Some(file(parsed, text)))
        }
        Language::ActionSchema => {
            let read = |text: &str| Read::of(parse_action_schema(text), text, print_action_schema);
            safely(text, read, |_| lay_out_schema(text, language))
        }
        Language::EventSchema => {
            let read = |text: &str| Read::of(parse_event_schema(text), text, print_event_schema);
            safely(text, read, |_| lay_out_schema(text, language))
        }
    };
    match laid {
        Ok(Some(laid)) => Ok(laid),
        Ok(None) => Ok(format!("{mark}{text}")),
        Err(errors) => Err(errors
            .into_iter()
            .map(|error| shifted(error, mark.len()))
            .collect()),
    }
}

/// The text of a test file laid out, or why it is not TOML.
pub fn format_tests(text: &str) -> Result<String, Vec<Diagnostic>> {
    let mut laid = text.to_owned();
    for edit in test_edits(text)?.iter().rev() {
        laid.replace_range(edit.span.range(), &edit.text);
    }
    Ok(laid)
}

/// Edits that lay out a test file, each of one line or of those of a long string, in order.
pub fn test_edits(text: &str) -> Result<Vec<Edit>, Vec<Diagnostic>> {
    suite::syntax(text).map_err(|problem| vec![problem])?;
    // Where the two readers disagree it is left alone.
    Ok(toml::edits(text).unwrap_or_default())
}

/// The diagnostic of a text without its first bytes, as one of the whole.
fn shifted(mut diagnostic: Diagnostic, by: usize) -> Diagnostic {
    let by = u32::try_from(by).unwrap_or(0);
    let shift = |span: &mut Span| {
        span.start = span.start.saturating_add(by);
        span.end = span.end.saturating_add(by);
    };
    shift(&mut diagnostic.span);
    diagnostic
        .labels
        .iter_mut()
        .for_each(|label| shift(&mut label.span));
    let edits = diagnostic.fix.iter_mut().flat_map(|fix| &mut fix.edits);
    edits.for_each(|edit| shift(&mut edit.span));
    diagnostic
}

/// A text as it was read.
struct Read<T> {
    parsed: Parsed<T>,
    /// What it says, whatever its layout: the tree in plain text, and the comments.
    says: (String, Vec<String>),
}

impl<T> Read<T> {
    fn of(parsed: Parsed<T>, text: &str, print: fn(&T) -> String) -> Read<T> {
        let comments = parsed.trivia.comments();
        let comments = comments
            .map(|span| span.text(text).trim_end().to_owned())
            .collect();
        Read {
            says: (print(&parsed.tree), comments),
            parsed,
        }
    }
}

/// Whatever may be wrong with the layout, it never changes what a file says: nothing where it would.
fn safely<T>(
    text: &str,
    read: impl Fn(&str) -> Read<T>,
    lay_out: impl FnOnce(&Parsed<T>) -> Option<String>,
) -> Result<Option<String>, Vec<Diagnostic>> {
    let before = read(text);
    let errors = &before.parsed.errors;
    if !errors.is_empty() {
        return Err(errors.iter().map(|error| error.diagnostic(text)).collect());
    }
    Ok(lay_out(&before.parsed).filter(|laid| {
        let after = read(laid);
        after.parsed.errors.is_empty() && after.says == before.says
    }))
}

fn file(parsed: &Parsed<PolicyFile>, text: &str) -> String {
    let mut out = Lines::default();
    let mut from = 0;
    for item in &parsed.tree.items {
        let span = span(item);
        out.between(
            parsed,
            text,
            Span {
                start: from,
                end: span.start,
            },
        );
        out.statement(&match lay_out(item, text, &parsed.trivia) {
            Some(laid) => laid,
            None => span.text(text).to_owned(),
        });
        from = span.end;
    }
    let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
    out.between(parsed, text, Span { start: from, end });
    if out.last == Last::Blank {
        out.text.pop();
    }
    out.text
}

fn span(item: &Item) -> Span {
    match item {
        Item::Rule(rule) => rule.span,
        Item::Macro(definition) => definition.span,
        Item::Broken(span) => *span,
    }
}

#[derive(Default)]
struct Lines {
    text: String,
    last: Last,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Nothing,
    Statement,
    Comment,
    Blank,
}

impl Lines {
    /// The comments and blank lines between two statements.
    fn between(&mut self, parsed: &Parsed<PolicyFile>, text: &str, span: Span) {
        for piece in parsed.trivia.inside(span) {
            match piece.kind {
                TriviaKind::BlankLine => self.blank(),
                TriviaKind::Comment => {
                    let before = Span {
                        start: span.start,
                        end: piece.span.start,
                    };
                    // Behind a statement, on its last line.
                    let trails = self.last == Last::Statement && !before.text(text).contains('\n');
                    if trails {
                        self.text.pop();
                        self.text.push(' ');
                    } else if self.last == Last::Statement {
                        self.blank();
                    }
                    self.text.push_str(piece.span.text(text).trim_end());
                    self.text.push('\n');
                    self.last = if trails {
                        Last::Statement
                    } else {
                        Last::Comment
                    };
                }
            }
        }
    }

    fn statement(&mut self, text: &str) {
        if self.last == Last::Statement {
            self.blank();
        }
        self.text.push_str(text);
        self.text.push('\n');
        self.last = Last::Statement;
    }

    /// One blank line; none at the start of the file.
    fn blank(&mut self) {
        if !matches!(self.last, Last::Nothing | Last::Blank) {
            self.text.push('\n');
            self.last = Last::Blank;
        }
    }
}

#[cfg(test)]
mod tests;
