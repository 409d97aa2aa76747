//! What stands between the tokens: comments and blank lines, kept for the formatter.

use crate::span::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TriviaKind {
    /// `// …` without its line end.
    Comment,
    /// One or more lines with nothing on them; the span covers them.
    BlankLine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TriviaPiece {
    pub kind: TriviaKind,
    pub span: Span,
}

/// In source order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trivia {
    pub pieces: Vec<TriviaPiece>,
}

impl Trivia {
    pub fn comments(&self) -> impl Iterator<Item = Span> + '_ {
        self.pieces
            .iter()
            .filter(|piece| piece.kind == TriviaKind::Comment)
            .map(|piece| piece.span)
    }

    /// The pieces that begin in `span`, for example those between two items.
    pub fn inside(&self, span: Span) -> &[TriviaPiece] {
        let from = self
            .pieces
            .partition_point(|piece| piece.span.start < span.start);
        let to = self
            .pieces
            .partition_point(|piece| piece.span.start < span.end);
        self.pieces.get(from..to).unwrap_or(&[])
    }
}
