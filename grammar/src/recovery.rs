//! From the parser's failures and recoveries to syntax errors.
//!
//! The parser knows which token it stumbled over and what it could have read instead. The tokens
//! before the place often show what the author meant; then the message is about that.

use crate::error::{Expected, SyntaxErrorKind as Kind};
use crate::span::Span;
use crate::structure::{closes, opens};
use crate::token::{Bad, Key, Lexeme, Token};
use crate::tree::Cx;
use lalrpop_util::{ErrorRecovery, ParseError};

pub(crate) type Recovered<'s> = ErrorRecovery<usize, Token<'s>, ()>;
pub(crate) type Failed<'s> = ParseError<usize, Token<'s>, ()>;

impl Cx<'_> {
    /// Reports why the parser had to recover; gives what it left out.
    pub(crate) fn syntax(&mut self, recovered: Recovered<'_>) -> Span {
        let span = self.failed(recovered.error);
        let dropped = &recovered.dropped_tokens;
        let mut depth = 0i32;
        for (_, token, _) in dropped {
            depth += i32::from(opens(*token).is_some()) - i32::from(closes(*token).is_some());
        }
        // The rest of the clause is out of step: what is wrong there may be our doing.
        if depth != 0 {
            let from = dropped.last().map_or(span.end as usize, |(_, _, end)| *end);
            self.mute_clause(from);
        }
        match (dropped.first(), dropped.last()) {
            (Some((start, _, _)), Some((_, _, end))) => span.to(Span::new(*start, *end)),
            _ => span,
        }
    }

    /// Reports an unexpected token or end; gives its place.
    pub(crate) fn failed(&mut self, failed: Failed<'_>) -> Span {
        let (span, found, expected) = match failed {
            ParseError::UnrecognizedToken {
                token: (l, token, r),
                expected,
            } => (Span::new(l, r), Some(token), expected),
            ParseError::ExtraToken {
                token: (l, token, r),
            } => (Span::new(l, r), Some(token), Vec::new()),
            ParseError::UnrecognizedEof { expected, .. } => {
                let end = self.lexemes.last().map_or(0, |last| last.span.end as usize);
                (Span::at(end), None, expected)
            }
            ParseError::InvalidToken { location } => (Span::at(location), None, Vec::new()),
            ParseError::User { error: () } => return Span::default(),
        };
        if self.muted(span) {
            return span;
        }
        let (kind, place) = self.classify(span, found, &expected);
        // A part that nests too deeply was reported, and it may have swallowed what is missing now.
        let at = self
            .lexemes
            .partition_point(|lexeme| lexeme.span.end <= span.start);
        let before = at.checked_sub(1).and_then(|at| self.lexemes.get(at));
        let swallowed = before.is_some_and(|before| before.token == Token::TooDeep);
        if found != Some(Token::TooDeep) && !swallowed {
            self.error(kind, place);
        }
        span
    }

    fn classify(&self, span: Span, found: Option<Token<'_>>, expected: &[String]) -> (Kind, Span) {
        let at = self
            .lexemes
            .partition_point(|lexeme| lexeme.span.start < span.start);
        let at = if found.is_none() {
            self.lexemes.len()
        } else {
            at
        };
        let before = |back: usize| at.checked_sub(back).and_then(|at| self.lexemes.get(at));
        let token = |back: usize| before(back).map(|lexeme| lexeme.token);
        let place = |back: usize| before(back).map_or(span, |lexeme| lexeme.span);
        let can = |text: &str| expected.iter().any(|one| one.trim_matches('"') == text);

        match found {
            Some(Token::Bad(Bad::OpenString)) => return (Kind::OpenString, span),
            Some(Token::Bad(Bad::Character)) => return (Kind::ForeignCharacter, span),
            _ => {}
        }
        match (token(3), token(2), token(1)) {
            (_, Some(Token::Key(Key::Within)) | Some(Token::Assign), Some(Token::Int(_)))
                if can("WORD") && !can("(") =>
            {
                return (Kind::MissingUnit, place(1));
            }
            (Some(Token::Key(Key::Within)), Some(Token::Int(_)), Some(Token::Word(_)))
                if found == Some(Token::PathSep) =>
            {
                return (Kind::MissingUnit, place(2));
            }
            (_, Some(Token::Str(_)), Some(Token::PathSep)) if can("WORD") => {
                let start = self.event_name_start(at - 2);
                return (
                    Kind::MissingKind,
                    Span {
                        start,
                        end: place(2).end,
                    },
                );
            }
            (_, Some(Token::Int(_)), Some(Token::Dot)) if matches!(found, Some(Token::Int(_))) => {
                return (Kind::Fraction, place(2).to(span));
            }
            (_, _, Some(Token::Int(_))) if found == Some(Token::Dot) => {
                if let Some(Lexeme {
                    token: Token::Int(_),
                    span,
                }) = self.lexemes.get(at + 1)
                {
                    return (Kind::Fraction, place(1).to(*span));
                }
            }
            (_, _, Some(Token::Key(Key::Exists | Key::For)))
                if matches!(
                    found,
                    Some(Token::Word(_) | Token::Param(_) | Token::Fresh(_))
                ) =>
            {
                return (Kind::BinderParens, span);
            }
            (_, _, Some(Token::Word(_))) if expected.len() == 1 && can("outer(") => {
                return (Kind::UnknownEffect, place(1));
            }
            (_, _, Some(Token::ParenClose)) if can(".") && !can("{") && !can("&&") => {
                return (Kind::MissingDot, Span::at(place(1).end as usize));
            }
            _ => {}
        }
        match found {
            Some(Token::Slash) => return (Kind::UnsupportedOperator { operator: '/' }, span),
            Some(Token::Percent) => return (Kind::UnsupportedOperator { operator: '%' }, span),
            Some(Token::Word(_)) if can("entity") && can("type") && !can("WORD") => {
                return (
                    Kind::UnknownDeclaration {
                        event_schema: false,
                    },
                    span,
                );
            }
            Some(Token::Word(_)) if can("event") && !can("WORD") && at == 0 => {
                return (Kind::UnknownDeclaration { event_schema: true }, span);
            }
            _ => {}
        }
        // The list of an aggregate ends with a dot.
        let dot = found == Some(Token::Dot) && expected.len() == 1 && can("(");
        let ends = dot || found.is_some_and(|found| closes(found).is_some());
        if ends && token(1) == Some(Token::Comma) {
            return (Kind::TrailingComma, place(1));
        }
        if can("&&") {
            let temporal = can("since");
            match found {
                Some(Token::Word("and")) => return (Kind::WordOperator { operator: "&&" }, span),
                Some(Token::Word("or")) if temporal => return (Kind::OrInTemporal, span),
                Some(Token::Word("or")) => return (Kind::WordOperator { operator: "||" }, span),
                Some(Token::Or) if temporal => return (Kind::OrInTemporal, span),
                Some(Token::Key(Key::Since)) => return (Kind::ChainedSince, span),
                Some(Token::Key(key @ (Key::In | Key::Has | Key::Like | Key::Is)))
                    if can("since") || !can("||") =>
                {
                    return (Kind::NotInTemporal { word: key.text() }, span);
                }
                Some(
                    Token::Eq
                    | Token::Ne
                    | Token::Lt
                    | Token::Le
                    | Token::Gt
                    | Token::Ge
                    | Token::Assign
                    | Token::Key(Key::In | Key::Has | Key::Like | Key::Is),
                ) if !can("==") => return (Kind::LooseRelation, span),
                _ => {}
            }
        }
        if token(1) == Some(Token::Word("not")) && found.is_some() {
            return (Kind::WordOperator { operator: "!" }, place(1));
        }
        let mut expected = summary(expected);
        if token(1) == Some(Token::Colon) {
            for one in &mut expected {
                if *one == Expected::Condition {
                    *one = Expected::Value;
                }
            }
        }
        match found {
            Some(_) => (Kind::Unexpected { expected }, span),
            None => match self.unclosed() {
                Some(open) => (Kind::Unclosed, open),
                None => (Kind::UnexpectedEnd { expected }, span),
            },
        }
    }

    /// Where the event name that ends with the string at `at` begins.
    fn event_name_start(&self, mut at: usize) -> u32 {
        while at >= 2
            && self
                .lexemes
                .get(at - 1)
                .is_some_and(|sep| sep.token == Token::PathSep)
            && self
                .lexemes
                .get(at - 2)
                .is_some_and(|word| matches!(word.token, Token::Word(_) | Token::Key(_)))
        {
            at -= 2;
        }
        self.lexemes.get(at).map_or(0, |lexeme| lexeme.span.start)
    }

    /// The innermost bracket that is still open at the end.
    fn unclosed(&self) -> Option<Span> {
        let mut open: Vec<&Lexeme<'_>> = Vec::new();
        for lexeme in &self.lexemes {
            if opens(lexeme.token).is_some() {
                open.push(lexeme);
            } else if let Some(bracket) = closes(lexeme.token)
                && let Some(partner) = open
                    .iter()
                    .rposition(|open| opens(open.token) == Some(bracket))
            {
                open.truncate(partner);
            }
        }
        open.last().map(|lexeme| lexeme.span)
    }

    pub(crate) fn trailing_comma(&mut self, l: usize, r: usize) {
        self.error(Kind::TrailingComma, Span::new(l, r));
    }
}

/// What the parser could have read, in words an author knows.
fn summary(expected: &[String]) -> Vec<Expected> {
    let can = |text: &str| expected.iter().any(|one| one.trim_matches('"') == text);
    let mut all = Vec::new();
    let mut covered: Vec<&str> = Vec::new();
    if can("INT") && can("STR") && can("(") {
        all.push(if can("formerly") && can("exists") && can("FRESH") {
            Expected::Condition
        } else {
            Expected::Expression
        });
        covered.extend([
            "INT", "STR", "PARAM", "FRESH", "WORD", "(", "[", "{", "!", "-", "*", "if",
        ]);
    }
    if can("==") {
        all.push(Expected::Operator);
        covered.extend(OPERATORS);
    }
    // The start of a rule takes any word, only to say that it is no effect.
    let rule = can("permit") && can("@");
    let words = can("WORD") && !rule;
    if words && !covered.contains(&"WORD") {
        all.push(Expected::Word);
    }
    for one in expected {
        let text = one.trim_matches('"');
        match text {
            "TOO_DEEP" | "BAD" | "WORD" | "FRESH" | "error" | "@" => {}
            _ if text.starts_with("START_") || covered.contains(&text) => {}
            "STR" => all.push(Expected::String),
            "INT" => all.push(Expected::Number),
            "PARAM" => all.push(Expected::Parameter),
            "guardrails" | "temporal" if can("outer{") => {}
            // A longer name is never what is missing.
            "::" | "<" if expected.len() > 2 => {}
            // A keyword that would only be a name here.
            _ if words && text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_') => {}
            _ => {
                let text = text.strip_prefix("outer").unwrap_or(text);
                if let Some(text) = TEXTS.iter().find(|known| **known == text) {
                    all.push(Expected::Text(text));
                }
            }
        }
    }
    all.sort();
    all.dedup();
    all
}

/// What may go on behind an operand.
const OPERATORS: [&str; 24] = [
    "&&", "||", "==", "!=", "<", "<=", ">", ">=", "=", "+", "-", "*", "/", "%", "in", "has",
    "like", "is", "since", "::", "(", ".", "[", ":",
];

const TEXTS: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    ":",
    "::",
    ".",
    "...",
    "@",
    "=",
    "==",
    "<",
    ">",
    "?",
    "!",
    "-",
    "*",
    "&&",
    "permit",
    "forbid",
    "when",
    "unless",
    "guardrails",
    "temporal",
    "def",
    "cedar",
    "if",
    "then",
    "else",
    "has",
    "like",
    "is",
    "in",
    "formerly",
    "previous",
    "since",
    "within",
    "exists",
    "for",
    "where",
    "count",
    "sum",
    "tp",
    "namespace",
    "entity",
    "action",
    "type",
    "tags",
    "enum",
    "appliesTo",
    "attributes",
    "max_window",
    "decision",
    "event",
    "pin",
];
