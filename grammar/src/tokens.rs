//! The tokens of a text for whoever draws it: an editor's colours, the word under a cursor.

use crate::span::Span;
use crate::token::{self, Language, Token};

/// What a token is, as far as the text alone says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// A word that the language gives a meaning in some places; in others it is a name like any.
    Keyword,
    Word,
    Number,
    String,
    /// `?name`.
    Parameter,
    /// `$name`.
    Fresh,
    Comment,
    Bracket,
    Operator,
    /// Not a token of the language.
    Bad,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub kind: TokenKind,
    pub span: Span,
}

/// The tokens and comments of any text, in order. Never fails.
pub fn tokens(source: &str, language: Language) -> Vec<Piece> {
    let (lexemes, trivia) = token::lex(source, language);
    let comments = trivia.comments().map(|span| Piece {
        kind: TokenKind::Comment,
        span,
    });
    let mut pieces: Vec<Piece> = lexemes
        .iter()
        .map(|lexeme| Piece {
            kind: kind(lexeme.token),
            span: lexeme.span,
        })
        .chain(comments)
        .collect();
    pieces.sort_by_key(|piece| piece.span);
    pieces
}

fn kind(token: Token<'_>) -> TokenKind {
    match token {
        Token::Key(_) => TokenKind::Keyword,
        Token::Word(_) => TokenKind::Word,
        Token::Int(_) => TokenKind::Number,
        Token::Str(_) => TokenKind::String,
        Token::Param(_) => TokenKind::Parameter,
        Token::Fresh(_) => TokenKind::Fresh,
        Token::Comment => TokenKind::Comment,
        Token::ParenOpen
        | Token::ParenClose
        | Token::BracketOpen
        | Token::BracketClose
        | Token::BraceOpen
        | Token::BraceClose
        | Token::OuterParenOpen
        | Token::OuterParenClose
        | Token::OuterBraceOpen
        | Token::OuterBraceClose => TokenKind::Bracket,
        Token::Bad(_) | Token::TooDeep | Token::Start(_) => TokenKind::Bad,
        _ => TokenKind::Operator,
    }
}

/// The places of the statements of a policy file, each with its `;`. Read alone, the text of one gives
/// the tree and the errors it has in the whole.
pub fn statements(source: &str) -> Vec<Span> {
    let (lexemes, _) = token::lex(source, Language::Policy);
    let spans = crate::structure::items(source, &lexemes).into_iter();
    spans
        .filter_map(|item| {
            let inside = lexemes.get(item.lexemes)?;
            let first = inside
                .first()
                .map(|lexeme| lexeme.span)
                .or(item.semicolon)?;
            let last = item.semicolon.or(inside.last().map(|lexeme| lexeme.span))?;
            Some(first.to(last))
        })
        .collect()
}
