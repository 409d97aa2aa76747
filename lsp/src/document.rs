//! One text an editor has open, or that lies beside one: its lines and its tree, made once for each revision.

use crate::mark::{self, Mark};
use crate::text::{Encoding, Lines, Point};
use dogwood_compiler::grammar::ast::PolicyFile;
use dogwood_compiler::grammar::ast::action_schema::ActionSchemaFile;
use dogwood_compiler::grammar::ast::event_schema::EventSchemaFile;
use dogwood_compiler::grammar::{
    Language, Parsed, Piece, Span, Trivia, parse_action_schema, parse_event_schema, parse_policy,
    tokens,
};
use dogwood_compiler::json::Json;
use dogwood_compiler::project::TEST_ENDING;
use dogwood_compiler::schema::json;
use dogwood_compiler::suite;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Policy,
    ActionSchema,
    EventSchema,
    Tests,
    /// A file of another language: a place to lead to, and nothing else.
    Other,
}

impl Kind {
    /// By the ending of the name.
    pub fn of(path: &Path) -> Option<Kind> {
        let name = path.to_string_lossy();
        match () {
            _ if name.ends_with(TEST_ENDING) => Some(Kind::Tests),
            _ if name.ends_with(".dw") => Some(Kind::Policy),
            _ if name.ends_with(".cedarschema") => Some(Kind::ActionSchema),
            _ if name.ends_with(".dwschema") => Some(Kind::EventSchema),
            _ => None,
        }
    }

    /// The language of its tokens; a test file has none of ours.
    pub fn language(self) -> Option<Language> {
        match self {
            Kind::Policy => Some(Language::Policy),
            Kind::ActionSchema => Some(Language::ActionSchema),
            Kind::EventSchema => Some(Language::EventSchema),
            Kind::Tests | Kind::Other => None,
        }
    }

    /// By the name an editor has for the language.
    pub fn named(language: &str) -> Option<Kind> {
        match language {
            "dogwood" => Some(Kind::Policy),
            "cedarschema" => Some(Kind::ActionSchema),
            "dwschema" => Some(Kind::EventSchema),
            "dwtest" => Some(Kind::Tests),
            _ => None,
        }
    }
}

/// A text at one revision. Never changed: an edit makes another.
#[derive(Debug)]
pub struct Document {
    pub path: PathBuf,
    pub kind: Kind,
    /// As the editor counts.
    pub version: i32,
    pub text: String,
    pub lines: Lines,
    policy: OnceLock<Parsed<PolicyFile>>,
    action_schema: OnceLock<Parsed<ActionSchemaFile>>,
    event_schema: OnceLock<Parsed<EventSchemaFile>>,
    tests: OnceLock<Json>,
    pieces: OnceLock<Vec<Piece>>,
    marks: OnceLock<Vec<Mark>>,
}

impl Document {
    pub fn new(path: PathBuf, kind: Kind, version: i32, text: String) -> Document {
        let lines = Lines::of(&text);
        Document::with_lines(path, kind, version, text, lines)
    }

    fn with_lines(path: PathBuf, kind: Kind, version: i32, text: String, lines: Lines) -> Document {
        Document {
            path,
            kind,
            version,
            text,
            lines,
            policy: OnceLock::new(),
            action_schema: OnceLock::new(),
            event_schema: OnceLock::new(),
            tests: OnceLock::new(),
            pieces: OnceLock::new(),
            marks: OnceLock::new(),
        }
    }

    /// The document with a part replaced. A range that is the wrong way round is empty.
    pub fn edited(
        &self,
        version: i32,
        from: Point,
        to: Point,
        new: &str,
        encoding: Encoding,
    ) -> Document {
        let start = self.lines.offset(&self.text, from, encoding);
        let end = self.lines.offset(&self.text, to, encoding).max(start);
        let mut text = String::with_capacity(self.text.len() + new.len());
        text.push_str(self.text.get(..start).unwrap_or(""));
        text.push_str(new);
        text.push_str(self.text.get(end..).unwrap_or(""));
        let lines = self.lines.edited(start..end, new);
        Document::with_lines(self.path.clone(), self.kind, version, text, lines)
    }

    /// The tree of a policy; of another document an empty one.
    pub fn policy(&self) -> &Parsed<PolicyFile> {
        self.policy.get_or_init(|| match self.kind {
            Kind::Policy => parse_policy(&self.text),
            _ => parse_policy(""),
        })
    }

    /// A schema in Cedar's JSON syntax.
    pub fn is_json(&self) -> bool {
        self.kind == Kind::ActionSchema && json::is_json(&self.path.to_string_lossy(), &self.text)
    }

    /// The tree of an action schema. One in JSON comes without its syntax errors: they are another list.
    pub fn action_schema(&self) -> &Parsed<ActionSchemaFile> {
        self.action_schema.get_or_init(|| match self.kind {
            Kind::ActionSchema if self.is_json() => Parsed {
                tree: json::read(&self.text).0,
                trivia: Trivia::default(),
                errors: Vec::new(),
            },
            Kind::ActionSchema => parse_action_schema(&self.text),
            _ => parse_action_schema(""),
        })
    }

    pub fn event_schema(&self) -> &Parsed<EventSchemaFile> {
        self.event_schema.get_or_init(|| match self.kind {
            Kind::EventSchema => parse_event_schema(&self.text),
            _ => parse_event_schema(""),
        })
    }

    pub fn tests(&self) -> &Json {
        self.tests.get_or_init(|| match self.kind {
            Kind::Tests => suite::outline(&self.text),
            _ => suite::outline(""),
        })
    }

    /// Its tokens; a test file has none of ours.
    pub fn pieces(&self) -> &[Piece] {
        self.pieces.get_or_init(|| {
            let language = self.kind.language();
            language.map_or_else(Vec::new, |language| tokens(&self.text, language))
        })
    }

    /// The token at an offset; of two that meet there, the one that is a word.
    pub fn piece_at(&self, offset: usize) -> Option<Piece> {
        let pieces = self.pieces();
        let end = pieces.partition_point(|piece| piece.span.start as usize <= offset);
        let here = end.checked_sub(1).and_then(|at| pieces.get(at)).copied();
        let before = end.checked_sub(2).and_then(|at| pieces.get(at)).copied();
        let touches = |piece: &Piece| offset <= piece.span.end as usize;
        let wordy = |piece: &Piece| {
            let text = piece.span.text(&self.text);
            text.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '"' | '?' | '$'))
        };
        let here = here.filter(touches);
        let before = before.filter(touches);
        match (here, before) {
            (Some(here), Some(before)) if !wordy(&here) && wordy(&before) => Some(before),
            (Some(here), _) => Some(here),
            (None, before) => before,
        }
    }

    /// What its names stand for, in order.
    pub fn marks(&self) -> &[Mark] {
        self.marks.get_or_init(|| mark::marks(self))
    }

    /// The smallest name at an offset.
    pub fn mark_at(&self, offset: usize) -> Option<&Mark> {
        let touches = |span: Span| span.start as usize <= offset && offset <= span.end as usize;
        let touching = self.marks().iter().filter(|mark| touches(mark.span));
        // Of two that meet, the one behind the cursor.
        touching.min_by_key(|mark| {
            let ends = mark.span.end as usize == offset;
            (mark.span.end - mark.span.start, ends)
        })
    }

    /// The comment lines directly above an offset, without their slashes.
    pub fn comment_above(&self, offset: usize) -> Option<String> {
        comment_above(&self.text, &self.lines, offset)
    }
}

/// The comment lines directly above an offset of a text.
pub fn comment_above(text: &str, lines: &Lines, offset: usize) -> Option<String> {
    let mut said = Vec::new();
    let mut line = lines.line(offset);
    while let Some(above) = line.checked_sub(1) {
        let Some(comment) = lines.text(text, above).trim().strip_prefix("//") else {
            break;
        };
        said.push(comment.trim().to_owned());
        line = above;
    }
    said.reverse();
    (!said.is_empty()).then(|| said.join("\n"))
}
