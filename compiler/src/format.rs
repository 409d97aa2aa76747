//! Policy files in the one layout: 80 columns, two blanks of indent, operators at the start of a line.
//!
//! Only layout changes. A file that does not parse is not touched; a statement with a comment where the
//! layout has no place for one keeps its text. Blank lines between comments stay (one at most), and every
//! statement is set off by one.

use dogwood_grammar::ast::{Item, PolicyFile};
use dogwood_grammar::diagnostic::Diagnostic;
use dogwood_grammar::print::{lay_out, print_policy};
use dogwood_grammar::{Parsed, Span, TriviaKind, parse_policy};

/// The text laid out, or its syntax errors.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let (mark, text) = match text.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    let parsed = parse_policy(text);
    if !parsed.errors.is_empty() {
        let shifted = |mut diagnostic: Diagnostic| {
            let by = u32::try_from(mark.len()).unwrap_or(0);
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
        };
        let errors = parsed.errors.iter();
        return Err(errors
            .map(|error| shifted(error.diagnostic(text)))
            .collect());
    }
    let laid = file(&parsed, text);
    // Whatever may be wrong with the layout, it never changes what a file says.
    Ok(if says_the_same(&parsed, text, &laid) {
        laid
    } else {
        format!("{mark}{text}")
    })
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

/// Whether both texts have the same tree and the same comments.
fn says_the_same(parsed: &Parsed<PolicyFile>, text: &str, laid: &str) -> bool {
    let again = parse_policy(laid);
    let comments = |parsed: &Parsed<PolicyFile>, text: &str| -> Vec<String> {
        let comments = parsed.trivia.comments();
        comments
            .map(|span| span.text(text).trim_end().to_owned())
            .collect()
    };
    again.errors.is_empty()
        && print_policy(&again.tree) == print_policy(&parsed.tree)
        && comments(&again, laid) == comments(parsed, text)
}

#[cfg(test)]
mod tests;
