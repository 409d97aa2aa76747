//! Breaking lines that are too wide, and putting comments back where they stood.
//!
//! A comment can stand before anything that begins a line of its own (an operand, an element, a clause, a
//! closing brace), or at the end of the line before. Where the author put one anywhere else, [`lay_out`]
//! gives up, and the text is best left as it is.

use super::Out;
use crate::ast::Item;
use crate::span::Span;
use crate::trivia::Trivia;
use std::collections::VecDeque;

/// Columns a line may have, if its parts allow it.
pub const WIDTH: usize = 80;
const INDENT: usize = 2;
/// What may follow on a line: `);` or ` }`.
const TAIL: usize = 2;

/// The text of an item over as many lines as it needs, with its comments, without a line end.
///
/// `source` is the whole text the item was read from, `trivia` what was found between its tokens. Nothing
/// where a comment stands where this layout has no place for one.
pub fn lay_out(item: &Item, source: &str, trivia: &Trivia) -> Option<String> {
    let span = match item {
        Item::Rule(rule) => rule.span,
        Item::Macro(definition) => definition.span,
        Item::Broken(_) => return None,
    };
    let start = span.start as usize;
    let comments = trivia
        .inside(span)
        .iter()
        .filter(|piece| piece.kind == crate::trivia::TriviaKind::Comment)
        .map(|piece| Comment {
            start: piece.span.start as usize - start,
            end: piece.span.end as usize - start,
        })
        .collect();
    let mut out = Out {
        layout: Some(Layout {
            source: span.text(source).to_owned(),
            start,
            comments,
            misplaced: false,
        }),
        ..Out::default()
    };
    match item {
        Item::Rule(rule) => out.rule(rule),
        Item::Macro(definition) => out.macro_def(definition),
        Item::Broken(_) => {}
    }
    let layout = out.layout?;
    (layout.comments.is_empty() && !layout.misplaced).then_some(out.text)
}

pub(super) struct Layout {
    /// The text of the item.
    source: String,
    /// Where it begins in the whole text.
    start: usize,
    /// Those not yet put back.
    comments: VecDeque<Comment>,
    misplaced: bool,
}

/// Places in the text of the item.
#[derive(Clone, Copy)]
struct Comment {
    start: usize,
    end: usize,
}

impl Layout {
    fn at(&self, place: u32) -> usize {
        (place as usize).saturating_sub(self.start)
    }

    fn text(&self, start: usize, end: usize) -> &str {
        self.source.get(start..end).unwrap_or_default()
    }

    /// Whether nothing but operators and opening brackets stands between a comment and what it is put before.
    fn belongs_before(&self, comment: Comment, place: usize) -> bool {
        let mut gap = String::new();
        let mut from = comment.end;
        for later in self
            .comments
            .iter()
            .filter(|c| c.start >= comment.end && c.end <= place)
        {
            gap.push_str(self.text(from, later.start));
            from = later.end;
        }
        gap.push_str(self.text(from, place));
        const WORDS: [&str; 6] = ["since", "within", "then", "else", "where", "guardrails"];
        gap.split(|c: char| c.is_whitespace() || "&|(,+-*!.".contains(c))
            .all(|word| word.is_empty() || WORDS.contains(&word))
    }

    /// Where the first word inside written parentheses is, and the closing one. Without any, comments
    /// before the end are left for what comes later.
    fn inside_parentheses(&self, span: Span) -> (u32, u32) {
        let text = self.text(self.at(span.start), self.at(span.end));
        let Some(inside) = text.strip_prefix('(').filter(|rest| rest.ends_with(')')) else {
            return (span.start, 0);
        };
        let mut rest = inside.trim_start();
        while rest.starts_with("//") {
            rest = rest
                .find('\n')
                .and_then(|end| rest.get(end..))
                .unwrap_or_default();
            rest = rest.trim_start();
        }
        let before = u32::try_from(text.len() - rest.len()).unwrap_or(0);
        (
            span.start.saturating_add(before),
            span.end.saturating_sub(1),
        )
    }

    /// Whether it follows something on its line.
    fn trails(&self, comment: Comment) -> bool {
        let before = self.text(0, comment.start);
        let line = before.rsplit('\n').next().unwrap_or_default();
        !line.trim().is_empty()
    }
}

impl Out {
    /// Whether this can stand on the rest of the line. Always true without a layout.
    pub(super) fn fits(&self, span: Span, draw: impl Fn(&mut Out)) -> bool {
        let Some(layout) = &self.layout else {
            return true;
        };
        let (start, end) = (layout.at(span.start), layout.at(span.end));
        if layout
            .comments
            .iter()
            .any(|comment| start <= comment.start && comment.start < end)
        {
            return false;
        }
        let mut flat = Out {
            cedar: self.cedar,
            ..Out::default()
        };
        draw(&mut flat);
        let column = self.text.rsplit('\n').next().unwrap_or_default();
        let width = column.chars().count() + flat.text.chars().count() + TAIL;
        !flat.text.contains('\n') && width <= WIDTH
    }

    /// A new line for what begins at `place`, after the comments before it.
    pub(super) fn line(&mut self, place: u32) {
        self.comments_before(place);
        self.new_line();
    }

    /// A new line for the bracket at `place`; comments before it belong to what is inside.
    fn closing_line(&mut self, place: u32) {
        self.indented(|out| out.comments_before(place));
        self.new_line();
    }

    fn new_line(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n(' ', self.indent));
    }

    fn comments_before(&mut self, place: u32) {
        let Some(layout) = &mut self.layout else {
            return;
        };
        let place = layout.at(place);
        while let Some(comment) = layout.comments.front().copied().filter(|c| c.start < place) {
            layout.comments.pop_front();
            if !layout.belongs_before(comment, place) {
                layout.misplaced = true;
            }
            if layout.trails(comment) {
                self.text.push(' ');
            } else {
                self.text.push('\n');
                self.text.extend(std::iter::repeat_n(' ', self.indent));
            }
            let text = layout.text(comment.start, comment.end);
            self.text.push_str(text.trim_end());
        }
    }

    pub(super) fn indented(&mut self, draw: impl FnOnce(&mut Out)) {
        self.indent += INDENT;
        draw(self);
        self.indent -= INDENT;
    }

    /// An operator, at the start of a line if lines are broken here.
    pub(super) fn separate(&mut self, broken: bool, place: u32, operator: &str) {
        if broken {
            self.line(place);
            self.push(operator.trim_start());
        } else {
            self.push(operator);
        }
    }

    /// `{ … }`, where `outer` ends with the closing brace.
    pub(super) fn braced(
        &mut self,
        fits: bool,
        outer: Span,
        inner: Span,
        draw: impl FnOnce(&mut Out),
    ) {
        if fits {
            self.push("{ ");
            draw(self);
            self.push(" }");
            return;
        }
        self.push("{");
        self.indented(|out| {
            out.line(inner.start);
            draw(out);
        });
        self.closing_line(outer.end.saturating_sub(1));
        self.push("}");
    }

    /// In parentheses; the span of what was written in some covers them.
    pub(super) fn parenthesised(&mut self, fits: bool, span: Span, draw: impl FnOnce(&mut Out)) {
        self.push("(");
        if fits {
            draw(self);
        } else {
            let (first, close) = match &self.layout {
                Some(layout) => layout.inside_parentheses(span),
                None => (span.start, 0),
            };
            self.indented(|out| {
                out.line(first);
                draw(out);
            });
            self.closing_line(close);
        }
        self.push(")");
    }

    /// Elements in brackets, on one line or one on each. `outer` ends with the closing bracket.
    pub(super) fn enclosed<T>(
        &mut self,
        open: &str,
        close: &str,
        outer: Span,
        all: &[T],
        place: impl Fn(&T) -> Span,
        mut one: impl FnMut(&mut Out, &T),
    ) {
        // One line where all of them fit; drawn twice, so the drawing must not be one that changes.
        if self.layout.is_none() || all.is_empty() {
            self.push(open);
            self.list(all, one);
            self.push(close);
            return;
        }
        let mut flat = Out {
            cedar: self.cedar,
            ..Out::default()
        };
        flat.push(open);
        flat.list(all, &mut one);
        flat.push(close);
        let first = all.first().map_or(outer, &place);
        let inside = Span {
            start: first.start,
            end: outer.end,
        };
        let flat = flat.text;
        if self.fits(inside, |out| out.push(&flat)) {
            self.push(&flat);
            return;
        }
        self.push(open.trim_end());
        self.indented(|out| {
            for (index, element) in all.iter().enumerate() {
                out.line(place(element).start);
                one(out, element);
                if index + 1 < all.len() {
                    out.push(",");
                }
            }
        });
        self.closing_line(outer.end.saturating_sub(1));
        self.push(close.trim_start());
    }
}
