//! Diagnostics as an author sees them: drawn over the text for a person, or as JSON for a program.
//!
//! The phases make [`Diagnostic`]s; this module alone decides how one looks. It never fails: a span that
//! is not one of its text is moved to the nearest place that is.

pub mod codes;
mod excerpt;
pub mod pages;

use crate::grammar::diagnostic::{Diagnostic, Severity, SourceId};
use codespan_reporting::diagnostic as drawn;
use codespan_reporting::files::{Files, SimpleFiles};
use codespan_reporting::term::{self, termcolor};
use excerpt::Excerpt;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::ops::Range;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Plain,
    /// With ANSI colours. Print through `anstream`, which drops them where they do not belong.
    Color,
}

/// The diagnostics drawn over their texts, one after the other, sorted by source and place.
///
/// `sources` are the (name, text) pairs that [`SourceId`] counts.
pub fn render(diagnostics: &[Diagnostic], sources: &[(&str, &str)], style: Style) -> String {
    let files = Texts::new(sources);
    let config = term::Config::default();
    let mut out = Vec::new();
    for diagnostic in sorted(diagnostics) {
        if !out.is_empty() {
            out.push(b'\n');
        }
        out.extend(files.draw(diagnostic, &config, style));
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The diagnostics as a JSON array in the same order. Offsets and lengths are in bytes; lines and
/// columns count from 1, columns in characters. The first label is the primary one.
pub fn to_json(diagnostics: &[Diagnostic], sources: &[(&str, &str)]) -> Value {
    let files = Texts::new(sources);
    Value::Array(
        sorted(diagnostics)
            .into_iter()
            .map(|diagnostic| files.json(diagnostic))
            .collect(),
    )
}

/// How many errors and warnings there are.
pub fn tally(diagnostics: &[Diagnostic]) -> (usize, usize) {
    let errors = diagnostics
        .iter()
        .filter(|d| d.severity == Severity::Error)
        .count();
    (errors, diagnostics.len() - errors)
}

fn sorted(diagnostics: &[Diagnostic]) -> Vec<&Diagnostic> {
    let mut sorted: Vec<&Diagnostic> = diagnostics.iter().collect();
    // Stable, so that two findings at one place keep the order in which they were made.
    sorted.sort_by_key(|diagnostic| (diagnostic.source, diagnostic.span));
    sorted
}

/// The sources, fit for a terminal, and with their line starts known.
struct Texts {
    files: SimpleFiles<String, String>,
    count: usize,
}

impl Texts {
    fn new(sources: &[(&str, &str)]) -> Texts {
        let mut files = SimpleFiles::new();
        for (name, text) in sources {
            files.add(printable(name).into_owned(), printable_in_place(text));
        }
        // A diagnostic about a source nobody handed in is still shown.
        files.add("<unknown>".to_owned(), String::new());
        Texts {
            files,
            count: sources.len(),
        }
    }

    fn id(&self, source: SourceId) -> usize {
        usize::from(source.0).min(self.count)
    }

    fn text(&self, id: usize) -> &str {
        self.files.source(id).unwrap_or_default()
    }

    fn draw(&self, diagnostic: &Diagnostic, config: &term::Config, style: Style) -> Vec<u8> {
        let drawing = self.drawing(diagnostic);
        let drawn = match Excerpt::of(&drawing, &self.files) {
            Some(excerpt) => emit(&excerpt.files, &excerpt.drawing, config, style),
            None => emit(&self.files, &drawing, config, style),
        };
        drawn.unwrap_or_else(|_| format!("{}\n", diagnostic.message).into_bytes())
    }

    /// The diagnostic in the shape of the drawing library.
    fn drawing(&self, diagnostic: &Diagnostic) -> drawn::Diagnostic<usize> {
        let id = self.id(diagnostic.source);
        let mut labels = vec![
            drawn::Label::primary(id, self.shown(id, diagnostic.span.range()))
                .with_message(printable(&diagnostic.label)),
        ];
        labels.extend(diagnostic.labels.iter().map(|label| {
            let id = self.id(label.source);
            drawn::Label::secondary(id, self.shown(id, label.span.range()))
                .with_message(printable(&label.text))
        }));
        let mut notes = Vec::new();
        if let Some(help) = &diagnostic.help {
            notes.push(format!("help: {}", printable(help)));
        }
        if let Some(fix) = &diagnostic.fix {
            notes.push(format!("fix: {}", printable(&fix.title)));
        }
        let severity = match diagnostic.severity {
            Severity::Error => drawn::Severity::Error,
            Severity::Warning => drawn::Severity::Warning,
        };
        drawn::Diagnostic::new(severity)
            .with_code(diagnostic.code)
            .with_message(printable(&diagnostic.message))
            .with_labels(labels)
            .with_notes(notes)
    }

    /// The range to underline: inside the text, on character borders, without blanks at its end, and
    /// never on the empty line behind the last line break.
    fn shown(&self, id: usize, range: Range<usize>) -> Range<usize> {
        let text = self.text(id);
        let start = text.floor_char_boundary(range.start);
        let end = text.ceil_char_boundary(range.end).max(start);
        let written = text.get(start..end).unwrap_or_default();
        let kept = written.trim_end().len();
        let end = if kept > 0 { start + kept } else { end };
        if start == text.len() {
            let last = text.trim_end_matches(['\n', '\r']).len();
            return last..last;
        }
        // Only blanks: the first of them is the place.
        if kept == 0 { start..start } else { start..end }
    }

    fn json(&self, diagnostic: &Diagnostic) -> Value {
        let primary = (
            diagnostic.source,
            diagnostic.span,
            diagnostic.label.as_str(),
        );
        let others = diagnostic
            .labels
            .iter()
            .map(|label| (label.source, label.span, label.text.as_str()));
        let labels: Vec<Value> = std::iter::once(primary)
            .chain(others)
            .map(|(source, span, message)| {
                let place = self.place(self.id(source), span.range());
                with_message(place, message)
            })
            .collect();
        let severity = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let fix = diagnostic.fix.as_ref().map(|fix| {
            let edits: Vec<Value> = fix
                .edits
                .iter()
                .map(|edit| {
                    let mut place = self.place(self.id(diagnostic.source), edit.span.range());
                    place["text"] = json!(edit.text);
                    place
                })
                .collect();
            json!({ "title": fix.title, "edits": edits })
        });
        json!({
            "severity": severity,
            "code": diagnostic.code,
            "message": diagnostic.message,
            "labels": labels,
            "help": diagnostic.help,
            "fix": fix,
        })
    }

    fn place(&self, id: usize, range: Range<usize>) -> Value {
        let text = self.text(id);
        let start = text.floor_char_boundary(range.start);
        let end = text.ceil_char_boundary(range.end).max(start);
        let (line, column) = match self.files.location(id, start) {
            Ok(location) => (location.line_number, location.column_number),
            Err(_) => (1, 1),
        };
        let name = self.files.name(id).unwrap_or_default();
        json!({ "source": name, "start": start, "len": end - start, "line": line, "column": column })
    }
}

fn with_message(mut place: Value, message: &str) -> Value {
    if !message.is_empty() {
        place["message"] = json!(message);
    }
    place
}

fn emit<'files, F>(
    files: &'files F,
    drawing: &drawn::Diagnostic<usize>,
    config: &term::Config,
    style: Style,
) -> Result<Vec<u8>, codespan_reporting::files::Error>
where
    F: Files<'files, FileId = usize>,
{
    let mut out = match style {
        Style::Plain => termcolor::Buffer::no_color(),
        Style::Color => termcolor::Buffer::ansi(),
    };
    term::emit_to_write_style(&mut out, config, files, drawing)?;
    // The drawing leaves a blank line at its end; the space between two is ours to choose.
    let mut bytes = out.into_inner();
    while bytes.ends_with(b"\n\n") {
        bytes.pop();
    }
    Ok(bytes)
}

/// A character that would move the cursor, recolour the screen or reorder the line it stands in.
fn is_unprintable(c: char) -> bool {
    let reorders =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    reorders || (c.is_control() && !matches!(c, '\n' | '\t'))
}

/// The text with every unprintable character written as an escape.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unprintable) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unprintable(c) {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
    }
    Cow::Owned(out)
}

/// The text with every unprintable character replaced by a mark of the same length, so that offsets hold.
fn printable_in_place(text: &str) -> String {
    let plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    if text.as_bytes().iter().all(plain) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let line_break = c == '\r' && rest.peek() == Some(&'\n');
        match c {
            _ if line_break || !is_unprintable(c) => out.push(c),
            _ if c.len_utf8() == 1 => out.push('?'),
            _ if c.len_utf8() == 2 => out.push('¿'),
            _ => out.push('\u{fffd}'),
        }
    }
    out
}

#[cfg(test)]
mod tests;
