//! From the parser's recoveries to syntax errors.

use crate::error::SyntaxErrorKind;
use crate::span::Span;
use crate::token::Token;
use crate::tree::Cx;
use lalrpop_util::{ErrorRecovery, ParseError};
use smol_str::SmolStr;

pub(crate) type Recovered<'s> = ErrorRecovery<usize, Token<'s>, ()>;
pub(crate) type Failed<'s> = ParseError<usize, Token<'s>, ()>;

impl Cx<'_> {
    /// Reports why the parser had to recover; gives what it left out.
    pub(crate) fn syntax(&mut self, recovered: Recovered<'_>) -> Span {
        let span = self.failed(recovered.error);
        match (
            recovered.dropped_tokens.first(),
            recovered.dropped_tokens.last(),
        ) {
            (Some((start, _, _)), Some((_, _, end))) => span.to(Span::new(*start, *end)),
            _ => span,
        }
    }

    /// Reports an unexpected token or end; gives its place.
    pub(crate) fn failed(&mut self, failed: Failed<'_>) -> Span {
        match failed {
            ParseError::UnrecognizedToken {
                token: (l, token, r),
                expected: _,
            } => {
                let span = Span::new(l, r);
                let kind = SyntaxErrorKind::Unexpected {
                    found: SmolStr::new(self.text(span)),
                    expected: Vec::new(),
                };
                if token != Token::TooDeep {
                    self.error(kind, span);
                }
                span
            }
            ParseError::ExtraToken { token: (l, _, r) } => Span::new(l, r),
            ParseError::UnrecognizedEof { location, .. } => {
                self.error(
                    SyntaxErrorKind::UnexpectedEnd {
                        expected: Vec::new(),
                    },
                    Span::at(location),
                );
                Span::at(location)
            }
            ParseError::InvalidToken { location } => Span::at(location),
            ParseError::User { error: () } => Span::default(),
        }
    }

    pub(crate) fn trailing_comma(&mut self, l: usize, r: usize) {
        self.error(SyntaxErrorKind::TrailingComma, Span::new(l, r));
    }
}
