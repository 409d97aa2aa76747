//! Schemas in the one layout: 80 columns, two blanks of indent, one element to a line in brackets that do not
//! fit on one.
//!
//! A schema is words and brackets, so its tokens are laid out as they are written, and none is lost or spelled
//! differently: only a comma before a closing bracket goes. A comment can stand anywhere. Blank lines stay
//! between declarations and between elements that have a line each, one at most.

mod nodes;

use super::layout::WIDTH;
use crate::span::Span;
use crate::token::{self, Key, Language, Token};
use nodes::{Comment, Element, Group, Part, Piece, Word};

const INDENT: usize = 2;

/// The text of a schema laid out. Nothing where its brackets do not match; a text with other errors is laid
/// out too, and what is wrong with it is still wrong.
pub fn lay_out_schema(source: &str, language: Language) -> Option<String> {
    let pieces = nodes::pieces(source, language);
    let mut draw = Draw::default();
    draw.file(&pieces, language)?;
    let mut text = draw.text;
    if !text.is_empty() {
        text.push('\n');
    }
    keeps_the_tokens(source, &text, language).then_some(text)
}

/// One declaration of a schema laid out, with `indent` blanks before every line but the first.
pub fn lay_out_declaration(
    source: &str,
    declaration: Span,
    language: Language,
    indent: usize,
) -> Option<String> {
    let source = declaration.text(source);
    let pieces = nodes::pieces(source, language);
    let mut draw = Draw {
        indent,
        ..Draw::default()
    };
    draw.declaration(&pieces)?;
    keeps_the_tokens(source, &draw.text, language).then_some(draw.text)
}

/// Whether both texts have the same tokens and comments, but for commas before closing brackets.
fn keeps_the_tokens(source: &str, laid: &str, language: Language) -> bool {
    let read = |text: &str| {
        let (lexemes, trivia) = token::lex(text, language);
        let told = lexemes.iter().enumerate().filter(|(at, lexeme)| {
            let next = lexemes.get(at + 1).map(|next| next.token);
            lexeme.token != Token::Comma
                || !matches!(next, Some(Token::BraceClose | Token::BracketClose))
        });
        let tokens: Vec<String> = told
            .map(|(_, lexeme)| lexeme.span.text(text).to_owned())
            .collect();
        let comments: Vec<String> = trivia
            .comments()
            .map(|span| span.text(text).to_owned())
            .collect();
        (tokens, comments)
    };
    read(source) == read(laid)
}

/// What was drawn last between declarations.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Last {
    #[default]
    Nothing,
    /// The `{` of a namespace.
    Open,
    Declaration,
    /// A declaration that stands apart from the next: an event, a namespace.
    Apart,
    Comment,
}

#[derive(Default)]
struct Draw<'s> {
    text: String,
    indent: usize,
    /// The token before, on this line.
    before: Option<Token<'s>>,
    /// A new line comes before the next token, with so many blanks.
    pending: Option<usize>,
}

impl<'s> Draw<'s> {
    fn file(&mut self, pieces: &[Piece<'s>], language: Language) -> Option<()> {
        let mut last = Last::Nothing;
        let mut at = 0;
        while let Some(piece) = pieces.get(at) {
            match piece {
                Piece::Comment(comment) => {
                    if comment.trails && last != Last::Nothing {
                        self.text.push(' ');
                        self.text.push_str(comment.text);
                    } else {
                        self.between(last, comment.blank_before, false);
                        self.new_line(self.indent);
                        self.text.push_str(comment.text);
                        last = Last::Comment;
                    }
                    at += 1;
                }
                Piece::Word(word) if word.token == Token::BraceClose => {
                    self.indent = self.indent.checked_sub(INDENT)?;
                    if last == Last::Open {
                        // `{}`, unless a comment stands behind the brace.
                        if !self.text.ends_with('{') {
                            self.new_line(self.indent);
                        }
                    } else {
                        self.new_line(self.indent);
                    }
                    self.text.push('}');
                    last = Last::Apart;
                    at += 1;
                }
                Piece::Word(word) => {
                    let rest = pieces.get(at..)?;
                    let part = nodes::part(rest, language);
                    self.between(last, word.blank_before, part.apart && last != Last::Comment);
                    self.new_line(self.indent);
                    self.declaration(rest.get(..part.length)?)?;
                    last = if part.namespace {
                        self.indent += INDENT;
                        Last::Open
                    } else if part.apart {
                        Last::Apart
                    } else {
                        Last::Declaration
                    };
                    at += part.length;
                }
            }
        }
        (self.indent == 0).then_some(())
    }

    /// A blank line between two things of a file, where there is to be one.
    fn between(&mut self, last: Last, written: bool, apart: bool) {
        let blank = match last {
            Last::Nothing | Last::Open => false,
            Last::Apart => true,
            Last::Declaration | Last::Comment => written || apart,
        };
        if blank {
            self.text.push('\n');
        }
    }

    fn new_line(&mut self, indent: usize) {
        if !self.text.is_empty() {
            self.text.push('\n');
            self.text.extend(std::iter::repeat_n(' ', indent));
        }
        self.before = None;
        self.pending = None;
    }

    fn column(&self) -> usize {
        let line = self.text.rsplit('\n').next().unwrap_or_default();
        // The first line of a declaration that is drawn alone.
        let indent = if line.len() == self.text.len() {
            self.indent
        } else {
            0
        };
        indent + line.chars().count()
    }

    /// The tokens of one declaration, up to its `;` or closing brace, or of the head of a namespace.
    fn declaration(&mut self, pieces: &[Piece<'s>]) -> Option<()> {
        let events = pieces.iter().find_map(|piece| match piece {
            Piece::Word(word) => Some(matches!(
                word.token,
                Token::Key(Key::Event | Key::Decision | Key::MaxWindow)
            )),
            Piece::Comment(_) => None,
        });
        let parts = nodes::parts(pieces)?;
        self.pending = None;
        self.sequence(&parts, self.indent, 0, events == Some(true));
        self.pending = None;
        Some(())
    }

    /// Words, brackets and comments one after the other, annotations at the start on lines of their own. `tail`
    /// columns follow.
    fn sequence(&mut self, parts: &[Part<'s>], indent: usize, tail: usize, open: bool) {
        let notes = nodes::annotations(parts);
        let continued = indent + INDENT;
        for (at, part) in parts.iter().enumerate() {
            let rest = parts.get(at + 1..).unwrap_or_default();
            match part {
                Part::Comment(comment) => self.comment(comment, continued),
                Part::Word(word) => {
                    let follows = run(rest, word.token, tail);
                    if self.before == Some(Token::Comma)
                        && self.column() + 1 + word.width() + follows > WIDTH
                    {
                        self.pending = Some(continued);
                    }
                    self.word(word);
                }
                Part::Group(group) => self.group(group, run(rest, group.close.token, tail), open),
            }
            if notes.contains(&(at + 1)) {
                self.pending = Some(indent);
            }
        }
    }

    fn word(&mut self, word: &Word<'s>) {
        match self.pending.take() {
            Some(indent) => self.new_line(indent),
            None if self.before.is_some_and(|before| spaced(before, word.token)) => {
                self.text.push(' ');
            }
            None => {}
        }
        self.text.push_str(word.text);
        self.before = Some(word.token);
    }

    /// Behind what stands on the line where it was written so, else on a line of its own. What follows goes on
    /// in the next line.
    fn comment(&mut self, comment: &Comment<'s>, indent: usize) {
        let indent = self.pending.unwrap_or(indent);
        if comment.trails {
            self.text.push(' ');
        } else {
            self.new_line(indent);
        }
        self.text.push_str(comment.text);
        self.pending = Some(indent);
    }

    /// Brackets on one line where they fit, with the `tail` columns that follow; else an element to a line.
    fn group(&mut self, group: &Group<'s>, tail: usize, open: bool) {
        if let Some(indent) = self.pending.take() {
            self.new_line(indent);
        }
        if self
            .before
            .is_some_and(|before| spaced(before, group.open.token))
        {
            self.text.push(' ');
        }
        let flat = nodes::flat(group).filter(|flat| {
            let empty = group.elements.is_empty();
            empty || !open && self.column() + flat.chars().count() + tail <= WIDTH
        });
        if let Some(flat) = flat {
            self.text.push_str(&flat);
            self.before = Some(group.close.token);
            return;
        }
        self.text.push_str(group.open.text);
        let outer = self.indent;
        self.indent += INDENT;
        for comment in &group.opening {
            self.text.push(' ');
            self.text.push_str(comment.text);
        }
        for (at, element) in group.elements.iter().enumerate() {
            let last = at + 1 == group.elements.len();
            self.element(element, at > 0, last);
        }
        for (at, comment) in group.rest.iter().enumerate() {
            self.own_line(comment, at > 0);
        }
        self.indent = outer;
        self.new_line(outer);
        self.text.push_str(group.close.text);
        self.before = Some(group.close.token);
    }

    fn element(&mut self, element: &Element<'s>, after_another: bool, last: bool) {
        for (at, comment) in element.before.iter().enumerate() {
            self.own_line(comment, after_another || at > 0);
        }
        if element.blank_before && (after_another || !element.before.is_empty()) {
            self.text.push('\n');
        }
        self.new_line(self.indent);
        self.sequence(&element.parts, self.indent, usize::from(!last), false);
        if !last {
            self.text.push(',');
        }
        self.pending = None;
        for comment in &element.after {
            if comment.trails {
                self.text.push(' ');
                self.text.push_str(comment.text);
            } else {
                self.own_line(comment, true);
            }
        }
    }

    fn own_line(&mut self, comment: &Comment<'s>, blank: bool) {
        if blank && comment.blank_before {
            self.text.push('\n');
        }
        self.new_line(self.indent);
        self.text.push_str(comment.text);
    }
}

/// Columns of what follows on a line at least: up to the next comma or bracket.
fn run<'s>(parts: &[Part<'s>], mut before: Token<'s>, tail: usize) -> usize {
    let mut width = 0;
    for part in parts {
        match part {
            Part::Word(word) => {
                width += usize::from(spaced(before, word.token)) + word.width();
                before = word.token;
                if before == Token::Comma {
                    return width;
                }
            }
            // The bracket and the blank before it.
            Part::Group(_) => return width + 2,
            Part::Comment(_) => return width,
        }
    }
    width + tail
}

/// Whether a blank stands between two tokens on one line.
fn spaced(before: Token<'_>, next: Token<'_>) -> bool {
    match (before, next) {
        (
            Token::At
            | Token::ParenOpen
            | Token::BracketOpen
            | Token::Lt
            | Token::PathSep
            | Token::Dot
            | Token::Spread
            | Token::Int(_),
            _,
        ) => false,
        (Token::Key(Key::Event), Token::Lt) => true,
        (
            _,
            Token::Comma
            | Token::Semicolon
            | Token::Colon
            | Token::PathSep
            | Token::Question
            | Token::Lt
            | Token::Gt
            | Token::ParenOpen
            | Token::ParenClose
            | Token::BracketClose
            | Token::Dot,
        ) => false,
        _ => true,
    }
}
