//! The tokens of a schema as a tree of brackets, with the comments where they stand.

use super::spaced;
use crate::structure::MAX_NESTING;
use crate::token::{self, Key, Language, Lexeme, Token};
use crate::trivia::TriviaKind;

#[derive(Clone, Copy, Debug)]
pub struct Word<'s> {
    pub token: Token<'s>,
    pub text: &'s str,
    pub blank_before: bool,
}

impl Word<'_> {
    pub fn width(&self) -> usize {
        self.text.chars().count()
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Comment<'s> {
    pub text: &'s str,
    /// Something stands before it on its line.
    pub trails: bool,
    pub blank_before: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Piece<'s> {
    Word(Word<'s>),
    Comment(Comment<'s>),
}

#[derive(Debug)]
pub enum Part<'s> {
    Word(Word<'s>),
    Comment(Comment<'s>),
    Group(Group<'s>),
}

/// `{ … }` or `[ … ]`.
#[derive(Debug)]
pub struct Group<'s> {
    pub open: Word<'s>,
    /// Behind the opening bracket.
    pub opening: Vec<Comment<'s>>,
    pub elements: Vec<Element<'s>>,
    /// In brackets with nothing else in them, or behind a comma with nothing after it.
    pub rest: Vec<Comment<'s>>,
    pub close: Word<'s>,
}

/// What stands between two commas.
#[derive(Debug, Default)]
pub struct Element<'s> {
    pub before: Vec<Comment<'s>>,
    pub blank_before: bool,
    pub parts: Vec<Part<'s>>,
    /// Behind it or below it, before the next or behind its comma.
    pub after: Vec<Comment<'s>>,
}

/// The tokens and comments of a text in order.
pub fn pieces(source: &str, language: Language) -> Vec<Piece<'_>> {
    let (lexemes, trivia) = token::lex(source, language);
    let mut lexemes = lexemes.into_iter().peekable();
    let mut pieces = Vec::new();
    let mut end = 0;
    let mut comments = trivia.pieces.iter().peekable();
    loop {
        while comments
            .next_if(|piece| piece.kind == TriviaKind::BlankLine)
            .is_some()
        {}
        let comment = comments.next_if(|comment| {
            lexemes
                .peek()
                .is_none_or(|lexeme| comment.span.start < lexeme.span.start)
        });
        let span = match (comment, lexemes.peek()) {
            (Some(comment), _) => comment.span,
            (None, Some(lexeme)) => lexeme.span,
            (None, None) => return pieces,
        };
        let gap = source.get(end..span.start as usize).unwrap_or_default();
        let lines = gap.matches('\n').count();
        end = span.end as usize;
        let text = span.text(source);
        let blank_before = lines > 1;
        match comment {
            Some(_) => pieces.push(Piece::Comment(Comment {
                text,
                trails: lines == 0 && !pieces.is_empty(),
                blank_before,
            })),
            None => {
                if let Some(Lexeme { token, .. }) = lexemes.next() {
                    pieces.push(Piece::Word(Word {
                        token,
                        text,
                        blank_before,
                    }));
                }
            }
        }
    }
}

/// A declaration at the start of some pieces.
pub struct Declaration {
    pub length: usize,
    /// It is only the head of a namespace, with its `{`.
    pub namespace: bool,
    /// It is set off from what stands before and after it.
    pub apart: bool,
}

/// How far the declaration goes that these pieces begin with.
pub fn part(pieces: &[Piece<'_>], language: Language) -> Declaration {
    let mut depth = 0usize;
    // Past the annotations.
    let mut first = None;
    let mut before = None;
    let mut noted = false;
    let mut end = None;
    for (at, piece) in pieces.iter().enumerate() {
        let Piece::Word(word) = piece else { continue };
        match word.token {
            Token::At if first.is_none() => noted = true,
            Token::ParenOpen if first.is_none() && noted => depth += 1,
            Token::ParenClose if first.is_none() && noted => depth = depth.saturating_sub(1),
            _ if depth > 0 && first.is_none() => {}
            // The key of an annotation.
            _ if before == Some(Token::At) && first.is_none() => {}
            _ => {
                let first = *first.get_or_insert(word.token);
                let namespace = first == Token::Key(Key::Namespace);
                match word.token {
                    Token::BraceOpen if namespace && depth == 0 => {
                        return Declaration {
                            length: at + 1,
                            namespace: true,
                            apart: true,
                        };
                    }
                    Token::BraceOpen | Token::BracketOpen => depth += 1,
                    Token::BraceClose | Token::BracketClose => {
                        depth = depth.saturating_sub(1);
                        if depth == 0 && language == Language::EventSchema {
                            end = Some(at + 1);
                        }
                    }
                    Token::Semicolon if depth == 0 => end = Some(at + 1),
                    // `max_window = 24 h`.
                    Token::Word(_) if first == Token::Key(Key::MaxWindow) => end = Some(at + 1),
                    _ => {}
                }
            }
        }
        before = Some(word.token);
        if end.is_some() {
            break;
        }
    }
    Declaration {
        length: end.unwrap_or(pieces.len()),
        namespace: false,
        apart: language == Language::EventSchema,
    }
}

/// The brackets of a declaration matched; nothing where they do not match or nest too deeply.
pub fn parts<'s>(pieces: &[Piece<'s>]) -> Option<Vec<Part<'s>>> {
    let mut done: Vec<Part<'s>> = Vec::new();
    let mut open: Vec<Open<'s>> = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Word(word) => match word.token {
                // The last `{` is that of a namespace.
                Token::BraceOpen | Token::BracketOpen if at + 1 < pieces.len() => {
                    if open.len() >= MAX_NESTING {
                        return None;
                    }
                    open.push(Open::new(*word));
                }
                Token::BraceClose | Token::BracketClose => {
                    let group = open.pop()?.close(*word)?;
                    push(&mut done, &mut open, Part::Group(group), false);
                }
                Token::Comma if !open.is_empty() => open.last_mut()?.comma(),
                _ => push(&mut done, &mut open, Part::Word(*word), word.blank_before),
            },
            Piece::Comment(comment) => match open.last_mut() {
                Some(group) => group.comment(*comment),
                None => done.push(Part::Comment(*comment)),
            },
        }
    }
    open.is_empty().then_some(done)
}

fn push<'s>(done: &mut Vec<Part<'s>>, open: &mut [Open<'s>], part: Part<'s>, blank: bool) {
    match open.last_mut() {
        Some(group) => group.part(part, blank),
        None => done.push(part),
    }
}

/// Brackets that are not closed yet.
struct Open<'s> {
    open: Word<'s>,
    opening: Vec<Comment<'s>>,
    elements: Vec<Element<'s>>,
    now: Element<'s>,
}

impl<'s> Open<'s> {
    fn new(open: Word<'s>) -> Open<'s> {
        Open {
            open,
            opening: Vec::new(),
            elements: Vec::new(),
            now: Element::default(),
        }
    }

    fn part(&mut self, part: Part<'s>, blank: bool) {
        if self.now.parts.is_empty() {
            self.now.blank_before = blank;
        }
        self.now.parts.push(part);
    }

    fn comment(&mut self, mut comment: Comment<'s>) {
        let begun = !self.now.parts.is_empty();
        if begun {
            self.now.parts.push(Part::Comment(comment));
        } else if !comment.trails || !self.now.before.is_empty() {
            self.now.before.push(comment);
        } else if let Some(last) = self.elements.last_mut() {
            // One that stood before the comma has the line already.
            comment.trails = last.after.is_empty();
            last.after.push(comment);
        } else {
            self.opening.push(comment);
        }
    }

    /// An element ends; the comments at its end stand behind its comma.
    fn comma(&mut self) {
        let mut element = std::mem::take(&mut self.now);
        if element.parts.is_empty() {
            // A lone comma: what stood before it stays for what comes.
            self.now = element;
            return;
        }
        while let Some(Part::Comment(_)) = element.parts.last() {
            if let Some(Part::Comment(comment)) = element.parts.pop() {
                element.after.insert(0, comment);
            }
        }
        self.elements.push(element);
    }

    fn close(mut self, close: Word<'s>) -> Option<Group<'s>> {
        let pair = matches!(
            (self.open.token, close.token),
            (Token::BraceOpen, Token::BraceClose) | (Token::BracketOpen, Token::BracketClose)
        );
        if !pair {
            return None;
        }
        if !self.now.parts.is_empty() {
            self.comma();
        }
        Some(Group {
            open: self.open,
            opening: self.opening,
            elements: self.elements,
            rest: self.now.before,
            close,
        })
    }
}

/// Where the annotations end that these parts begin with, each with the index behind its last part.
pub fn annotations(parts: &[Part<'_>]) -> Vec<usize> {
    let mut words = parts
        .iter()
        .enumerate()
        .filter_map(|(at, part)| match part {
            Part::Word(word) => Some((at, word.token)),
            Part::Group(group) => Some((at, group.open.token)),
            Part::Comment(_) => None,
        });
    let mut words = words.by_ref().peekable();
    let mut ends = Vec::new();
    while words.next_if(|(_, token)| *token == Token::At).is_some() {
        let Some((mut end, _)) = words.next() else {
            break;
        };
        if words
            .next_if(|(_, token)| *token == Token::ParenOpen)
            .is_some()
        {
            for (at, token) in words.by_ref() {
                end = at;
                if token == Token::ParenClose {
                    break;
                }
            }
        }
        ends.push(end + 1);
    }
    ends
}

/// Brackets on one line; nothing where a comment or a line end in a string keeps them from it.
pub fn flat(group: &Group<'_>) -> Option<String> {
    let mut text = String::new();
    draw_flat(group, &mut text)?;
    Some(text)
}

fn draw_flat(group: &Group<'_>, text: &mut String) -> Option<()> {
    if !group.opening.is_empty() || !group.rest.is_empty() {
        return None;
    }
    let blank = group.open.token == Token::BraceOpen && !group.elements.is_empty();
    text.push_str(group.open.text);
    if blank {
        text.push(' ');
    }
    for (at, element) in group.elements.iter().enumerate() {
        if !element.before.is_empty() || !element.after.is_empty() {
            return None;
        }
        if at > 0 {
            text.push_str(", ");
        }
        let mut before = None;
        for part in &element.parts {
            let (first, last) = match part {
                Part::Word(word) => (word.token, word.token),
                Part::Group(group) => (group.open.token, group.close.token),
                Part::Comment(_) => return None,
            };
            if before.is_some_and(|before| spaced(before, first)) {
                text.push(' ');
            }
            match part {
                Part::Word(word) if word.text.contains('\n') => return None,
                Part::Word(word) => text.push_str(word.text),
                Part::Group(inner) => draw_flat(inner, text)?,
                Part::Comment(_) => {}
            }
            before = Some(last);
        }
    }
    if blank {
        text.push(' ');
    }
    text.push_str(group.close.text);
    Some(())
}
