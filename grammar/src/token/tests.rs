//! What the lexer makes of texts.

use super::*;
use crate::trivia::TriviaKind;

fn tokens(source: &str) -> Vec<Token<'_>> {
    lex(source, Language::Policy)
        .0
        .into_iter()
        .map(|lexeme| lexeme.token)
        .collect()
}

#[test]
fn keywords_need_word_boundaries() {
    assert_eq!(tokens("temporal"), [Token::Key(Key::Temporal)]);
    assert_eq!(
        tokens("temporalThing since1 _in"),
        [
            Token::Word("temporalThing"),
            Token::Word("since1"),
            Token::Word("_in"),
        ]
    );
}

#[test]
fn keywords_belong_to_their_language() {
    assert_eq!(
        tokens("entity pin when"),
        [
            Token::Word("entity"),
            Token::Word("pin"),
            Token::Key(Key::When),
        ]
    );
    let (schema, _) = lex("entity when", Language::ActionSchema);
    assert_eq!(schema[0].token, Token::Key(Key::Entity));
    assert_eq!(schema[1].token, Token::Word("when"));
}

#[test]
fn numbers_and_units_are_two_tokens() {
    assert_eq!(
        tokens("10s 5 m -3"),
        [
            Token::Int("10"),
            Token::Word("s"),
            Token::Int("5"),
            Token::Word("m"),
            Token::Minus,
            Token::Int("3"),
        ]
    );
}

#[test]
fn the_longest_operator_wins() {
    assert_eq!(
        tokens("==::=<=...&&||!=!"),
        [
            Token::Eq,
            Token::PathSep,
            Token::Assign,
            Token::Le,
            Token::Spread,
            Token::And,
            Token::Or,
            Token::Ne,
            Token::Not,
        ]
    );
}

#[test]
fn strings_span_lines_and_hide_comments() {
    assert_eq!(
        tokens("\"a\n// b\\\"\" x"),
        [Token::Str("\"a\n// b\\\"\""), Token::Word("x")]
    );
}

#[test]
fn an_open_string_ends_with_its_line() {
    assert_eq!(
        tokens("\"open ;\nnext"),
        [Token::Bad(Bad::OpenString), Token::Word("next")]
    );
}

#[test]
fn foreign_characters_are_one_token_a_run() {
    assert_eq!(
        tokens("é€ & x"),
        [
            Token::Bad(Bad::Character),
            Token::Bad(Bad::Character),
            Token::Word("x"),
        ]
    );
}

#[test]
fn spans_count_the_byte_order_mark() {
    let (lexemes, trivia) = lex("\u{feff}// c\nx", Language::Policy);
    assert_eq!(lexemes[0].span, Span::new(8, 9));
    assert_eq!(trivia.pieces[0].span, Span::new(3, 7));
}

#[test]
fn comments_and_blank_lines_are_kept() {
    let source = "// one  \n\n\nx // two\r\ny\n\t\n";
    let (_, trivia) = lex(source, Language::Policy);
    let pieces: Vec<(TriviaKind, &str)> = trivia
        .pieces
        .iter()
        .map(|piece| (piece.kind, piece.span.text(source)))
        .collect();
    assert_eq!(
        pieces,
        [
            (TriviaKind::Comment, "// one"),
            (TriviaKind::BlankLine, "\n\n"),
            (TriviaKind::Comment, "// two"),
            (TriviaKind::BlankLine, "\t\n"),
        ]
    );
    assert_eq!(trivia.inside(Span::new(9, 20)).len(), 2);
}
