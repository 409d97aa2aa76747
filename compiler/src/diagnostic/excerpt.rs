//! The part worth drawing of a very long line.
//!
//! A machine-written policy can be one line of a megabyte. Where a label touches such a line, the
//! diagnostic is drawn over a piece of it around the primary place instead.

use codespan_reporting::diagnostic::{Diagnostic, Label, LabelStyle};
use codespan_reporting::files::{Error, Files, SimpleFiles};
use std::ops::Range;

/// Bytes a line may have before only a piece of it is shown.
const LONG: usize = 400;
/// Bytes shown before and after the start of the primary place.
const BEFORE: usize = 60;
const AFTER: usize = 120;

pub(super) struct Excerpt {
    pub files: Line,
    pub drawing: Diagnostic<usize>,
}

/// One shortened line that knows where it was cut from.
pub(super) struct Line {
    name: String,
    text: String,
    number: usize,
    /// Characters of the line before the piece, minus the mark that stands for them.
    columns_before: usize,
}

impl Excerpt {
    /// Nothing where every line that a label touches can be drawn whole.
    pub fn of(drawing: &Diagnostic<usize>, files: &SimpleFiles<String, String>) -> Option<Excerpt> {
        let long = drawing.labels.iter().any(|label| {
            let lines = (
                files.line_index(label.file_id, label.range.start),
                files.line_index(label.file_id, label.range.end),
            );
            let (Ok(first), Ok(last)) = lines else {
                return false;
            };
            [first, last].into_iter().any(|index| {
                files
                    .line_range(label.file_id, index)
                    .is_ok_and(|range| range.len() > LONG)
            })
        });
        if !long {
            return None;
        }
        let primary = drawing
            .labels
            .iter()
            .find(|label| label.style == LabelStyle::Primary)?;
        let id = primary.file_id;
        let text: &str = files.source(id).ok()?;
        let index = files.line_index(id, primary.range.start).ok()?;
        let whole = files.line_range(id, index).ok()?;
        let line_end = whole.start + text.get(whole.clone())?.trim_end().len();

        let mut start = text.floor_char_boundary(primary.range.start.saturating_sub(BEFORE));
        if start <= whole.start {
            start = whole.start;
        }
        let end = text
            .ceil_char_boundary(primary.range.start.saturating_add(AFTER))
            .min(line_end)
            .max(start);
        let piece = text.get(start..end)?;
        let (cut_before, cut_after) = (start > whole.start, end < line_end);
        let mark_before = if cut_before { "… " } else { "" };
        let mark_after = if cut_after { " …" } else { "" };
        let skipped = text.get(whole.start..start)?.chars().count();

        let mut drawing_of_piece = drawing.clone();
        drawing_of_piece.labels.clear();
        for label in &drawing.labels {
            let starts_inside = label.file_id == id && (start..=end).contains(&label.range.start);
            if starts_inside {
                let from = label.range.start - start + mark_before.len();
                let to = label.range.end.min(end) - start + mark_before.len();
                let moved = Label {
                    range: from..to.max(from),
                    file_id: 0,
                    ..label.clone()
                };
                drawing_of_piece.labels.push(moved);
            } else if let Ok(place) = files.location(label.file_id, label.range.start) {
                let name = files.name(label.file_id).unwrap_or_default();
                let (line, column) = (place.line_number, place.column_number);
                drawing_of_piece
                    .notes
                    .push(format!("{name}:{line}:{column}: {}", label.message));
            }
        }
        Some(Excerpt {
            files: Line {
                name: files.name(id).ok()?,
                text: format!("{mark_before}{piece}{mark_after}"),
                number: index + 1,
                columns_before: skipped.saturating_sub(mark_before.chars().count()),
            },
            drawing: drawing_of_piece,
        })
    }
}

impl<'a> Files<'a> for Line {
    type FileId = usize;
    type Name = &'a str;
    type Source = &'a str;

    fn name(&'a self, _: usize) -> Result<&'a str, Error> {
        Ok(&self.name)
    }

    fn source(&'a self, _: usize) -> Result<&'a str, Error> {
        Ok(&self.text)
    }

    fn line_index(&'a self, _: usize, _: usize) -> Result<usize, Error> {
        Ok(0)
    }

    fn line_number(&'a self, _: usize, _: usize) -> Result<usize, Error> {
        Ok(self.number)
    }

    fn column_number(&'a self, _: usize, _: usize, byte: usize) -> Result<usize, Error> {
        let before = self.text.get(..byte).unwrap_or(&self.text);
        Ok(self.columns_before + before.chars().count() + 1)
    }

    fn line_range(&'a self, _: usize, index: usize) -> Result<Range<usize>, Error> {
        if index == 0 {
            Ok(0..self.text.len())
        } else {
            Err(Error::LineTooLarge {
                given: index,
                max: 0,
            })
        }
    }
}
