//! Words, numbers, strings and punctuation: one token set for all three languages.
//!
//! Keywords are contextual, so the lexer knows only words; each language then names the words that
//! its grammar gives a meaning ([`Language::keyword`]) and the grammar reads them as ordinary words
//! wherever one may stand. The lexer never fails: what is no token becomes [`Token::Bad`].

use crate::span::Span;
use crate::trivia::{Trivia, TriviaKind, TriviaPiece};
use logos::Logos;

/// Which of the three languages a text is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    Policy,
    ActionSchema,
    EventSchema,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Logos)]
#[logos(skip r"[ \t\r\n]+")]
pub(crate) enum Token<'s> {
    #[regex(r"[A-Za-z_][A-Za-z0-9_]*")]
    Word(&'s str),
    #[regex(r"[0-9]+")]
    Int(&'s str),
    /// With its quotes and escapes.
    #[regex(r#""([^"\\]|\\[^\n]|\\\n)*""#)]
    Str(&'s str),
    /// `?name`, with its sigil.
    #[regex(r"\?[A-Za-z_][A-Za-z0-9_]*")]
    Param(&'s str),
    /// `$name`, with its sigil.
    #[regex(r"\$[A-Za-z_][A-Za-z0-9_]*")]
    Fresh(&'s str),
    #[regex(r"//[^\n]*", allow_greedy = true)]
    Comment,
    #[token("(")]
    ParenOpen,
    #[token(")")]
    ParenClose,
    #[token("[")]
    BracketOpen,
    #[token("]")]
    BracketClose,
    #[token("{")]
    BraceOpen,
    #[token("}")]
    BraceClose,
    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token("::")]
    PathSep,
    #[token(".")]
    Dot,
    #[token("...")]
    Spread,
    #[token("@")]
    At,
    #[token("?")]
    Question,
    #[token("=")]
    Assign,
    #[token("==")]
    Eq,
    #[token("!=")]
    Ne,
    #[token("<")]
    Lt,
    #[token("<=")]
    Le,
    #[token(">")]
    Gt,
    #[token(">=")]
    Ge,
    #[token("&&")]
    And,
    #[token("||")]
    Or,
    #[token("!")]
    Not,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,

    // The rest is never lexed. It comes from reading the words and brackets in their place.
    /// A word that the grammar of the language gives a meaning.
    Key(Key),
    /// Brackets of the outermost level of a rule or macro: scope, parameters, clause bodies.
    OuterParenOpen,
    OuterParenClose,
    OuterBraceOpen,
    OuterBraceClose,
    /// Stands for a part that nests too deeply; already reported.
    TooDeep,
    /// What the text is to be read as; the first token of each parse.
    Start(Start),
    /// Not a token of the language.
    Bad(Bad),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Start {
    Item,
    Expr,
    Cond,
    /// The head of a namespace.
    Namespace,
    /// `max_window = …`.
    Window,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Bad {
    /// A string literal without its closing quote.
    OpenString,
    Character,
}

macro_rules! keys {
    ($($name:ident = $text:literal)*) => {
        /// The words some grammar gives a meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub(crate) enum Key { $($name,)* }

        impl Key {
            pub(crate) fn text(self) -> &'static str {
                match self { $(Key::$name => $text,)* }
            }

            fn find(word: &str) -> Option<Key> {
                match word { $($text => Some(Key::$name),)* _ => None }
            }
        }
    };
}

keys! {
    Permit = "permit" Forbid = "forbid" When = "when" Unless = "unless" Guardrails = "guardrails"
    Temporal = "temporal" Def = "def" Cedar = "cedar"
    If = "if" Then = "then" Else = "else" Has = "has" Like = "like" Is = "is" In = "in"
    Formerly = "formerly" Previous = "previous" Since = "since" Within = "within"
    Exists = "exists" For = "for" Where = "where" Count = "count" Sum = "sum" Tp = "tp" Let = "let"
    Namespace = "namespace" Entity = "entity" Action = "action" Type = "type" Tags = "tags"
    Enum = "enum" AppliesTo = "appliesTo" Attributes = "attributes" Set = "Set"
    MaxWindow = "max_window" Decision = "decision" Event = "event" Pin = "pin"
}

impl Language {
    /// The keyword that `word` can be in this language.
    fn keyword(self, word: &str) -> Option<Key> {
        let key = Key::find(word)?;
        let own = match key {
            Key::In => self != Language::EventSchema,
            Key::Namespace
            | Key::Entity
            | Key::Action
            | Key::Type
            | Key::Tags
            | Key::Enum
            | Key::AppliesTo
            | Key::Attributes
            | Key::Set => self == Language::ActionSchema,
            Key::MaxWindow | Key::Decision | Key::Event | Key::Pin => self == Language::EventSchema,
            _ => self == Language::Policy,
        };
        own.then_some(key)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lexeme<'s> {
    pub(crate) token: Token<'s>,
    pub(crate) span: Span,
}

/// All tokens of a text, and the comments and blank lines between them.
pub(crate) fn lex(source: &str, language: Language) -> (Vec<Lexeme<'_>>, Trivia) {
    // A token of a policy is some five bytes long, with its blanks.
    let mut lexemes: Vec<Lexeme<'_>> = Vec::with_capacity(source.len() / 5);
    let mut trivia = Trivia::default();
    let mut gap = if source.starts_with('\u{feff}') {
        '\u{feff}'.len_utf8()
    } else {
        0
    };
    let mut base = gap;
    let mut lexer = Token::lexer(source.get(base..).unwrap_or(""));
    while let Some(token) = lexer.next() {
        let range = base + lexer.span().start..base + lexer.span().end;
        note_blank_lines(source, gap..range.start, &mut trivia);
        gap = range.end;
        let mut span = Span::new(range.start, range.end);
        let token = match token {
            Ok(Token::Comment) => {
                let end = source
                    .get(range.clone())
                    .map_or(0, |comment| comment.trim_end().len());
                let span = Span::new(range.start, range.start + end);
                trivia.pieces.push(TriviaPiece {
                    kind: TriviaKind::Comment,
                    span,
                });
                continue;
            }
            Ok(Token::Word(word)) => match language.keyword(word) {
                Some(key) => Token::Key(key),
                None => Token::Word(word),
            },
            Ok(token) => token,
            Err(())
                if source
                    .get(range.start..)
                    .is_some_and(|bad| bad.starts_with('"')) =>
            {
                // Reading goes on in the next line, as if the quote were closed at the end of this.
                let line = source
                    .get(range.start..)
                    .and_then(|rest| rest.lines().next());
                gap = range.start + line.map_or(1, |line| line.trim_end().len());
                span = Span::new(range.start, gap);
                base = gap;
                lexer = Token::lexer(source.get(base..).unwrap_or(""));
                Token::Bad(Bad::OpenString)
            }
            Err(()) => Token::Bad(Bad::Character),
        };
        match lexemes.last_mut() {
            // A run of foreign characters is one mistake.
            Some(last)
                if token == Token::Bad(Bad::Character)
                    && last.token == token
                    && last.span.end == span.start =>
            {
                last.span.end = span.end;
            }
            _ => lexemes.push(Lexeme { token, span }),
        }
    }
    note_blank_lines(source, gap..source.len(), &mut trivia);
    (lexemes, trivia)
}

/// Notes the blank lines in `gap`, a range of white space; a run of them is one piece.
fn note_blank_lines(source: &str, gap: std::ops::Range<usize>, trivia: &mut Trivia) {
    // Most tokens touch or stand one blank apart.
    if gap.len() < 2 {
        return;
    }
    let start = gap.start;
    let blank = source.get(gap).unwrap_or("");
    let Some(first) = blank.find('\n') else {
        return;
    };
    let Some(last) = blank.rfind('\n').filter(|last| *last > first) else {
        return;
    };
    let span = Span::new(start + first + 1, start + last + 1);
    trivia.pieces.push(TriviaPiece {
        kind: TriviaKind::BlankLine,
        span,
    });
}

#[cfg(test)]
mod tests;
