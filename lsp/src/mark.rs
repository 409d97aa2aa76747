//! What every name of a document stands for: the one walk that hover, definitions, references, renaming and
//! colours read.
//!
//! ```text
//! exists (c: String). (… M{ input.crate: c })
//!         ─ Local       ─ Action  ─ EventField
//! ```

mod policy;
mod schema;
mod tests;

use crate::document::{Document, Kind};
use dogwood_compiler::grammar::Span;
use dogwood_compiler::grammar::ast::{ScopeRoot, Sigil, Str, Var};
use dogwood_compiler::value::EntityUid;
use smol_str::SmolStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub span: Span,
    pub what: What,
    /// It stands where the thing is introduced.
    pub defines: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The word behind `@`.
    Annotation(SmolStr),
    /// The `@id` of a rule, and where a test names it.
    Rule(SmolStr),
    /// A code of a diagnostic in `@allow("…")`.
    Code(SmolStr),
    /// An entity type or a common type, qualified as far as the document says.
    Type(SmolStr),
    /// The id of an entity, in quotes.
    Entity(EntityUid),
    Action(EntityUid),
    /// The id of an action, as tests write it.
    ActionId(SmolStr),
    Kind {
        action: Option<EntityUid>,
        kind: SmolStr,
    },
    /// A field of a recorded event.
    EventField {
        action: EntityUid,
        kind: SmolStr,
        path: Vec<SmolStr>,
    },
    /// A field of what is being decided.
    RequestField {
        root: Root,
        path: Vec<SmolStr>,
    },
    /// `principal`, `action`, `resource` or `context` itself.
    Variable(Root),
    Macro(SmolStr),
    /// `decimal` and the like.
    Constructor(SmolStr),
    Method(SmolStr),
    Provider(SmolStr),
    Local(Local),
    /// The amount and unit of a window, in seconds where it is written out.
    Window(Option<i64>),
    /// A field that a schema declares, with the place of its declaration.
    Attribute(SmolStr, Span),
    /// A field of the input, output or context that a test gives an action.
    GivenField {
        action: SmolStr,
        path: Vec<SmolStr>,
    },
    /// `inputs` and the like.
    Selector(SmolStr),
    Test(SmolStr),
    File(SmolStr),
    /// A key of a test file.
    Key(SmolStr),
}

/// A variable, a parameter of a macro, or the letter an event schema calls every action by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    pub name: SmolStr,
    pub sigil: Sigil,
    /// Where it is introduced; its own place where nothing introduces it.
    pub binder: Span,
    pub ty: Option<SmolStr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    Principal,
    Action,
    Resource,
    Context,
}

impl Root {
    pub fn word(self) -> &'static str {
        match self {
            Root::Principal => "principal",
            Root::Action => "action",
            Root::Resource => "resource",
            Root::Context => "context",
        }
    }
}

impl From<Var> for Root {
    fn from(var: Var) -> Root {
        match var {
            Var::Principal => Root::Principal,
            Var::Action => Root::Action,
            Var::Resource => Root::Resource,
            Var::Context => Root::Context,
        }
    }
}

impl From<ScopeRoot> for Root {
    fn from(root: ScopeRoot) -> Root {
        match root {
            ScopeRoot::Principal => Root::Principal,
            ScopeRoot::Resource => Root::Resource,
        }
    }
}

/// All names of a document, in order of place.
pub fn marks(document: &Document) -> Vec<Mark> {
    let mut marks = Marks {
        text: &document.text,
        all: Vec::new(),
    };
    match document.kind {
        Kind::Policy => policy::collect(&document.policy().tree, &mut marks),
        Kind::ActionSchema => schema::actions(&document.action_schema().tree, &mut marks),
        Kind::EventSchema => schema::events(&document.event_schema().tree, &mut marks),
        Kind::Tests => tests::collect(document.tests(), &mut marks),
        Kind::Other => {}
    }
    let mut all = marks.all;
    all.retain(|mark| !mark.span.is_empty());
    all.sort_by_key(|mark| (mark.span.start, mark.span.end));
    all
}

struct Marks<'t> {
    text: &'t str,
    all: Vec<Mark>,
}

impl Marks<'_> {
    fn uses(&mut self, span: Span, what: What) {
        self.all.push(Mark {
            span,
            what,
            defines: false,
        });
    }

    fn defines(&mut self, span: Span, what: What) {
        self.all.push(Mark {
            span,
            what,
            defines: true,
        });
    }

    /// The place of a string without its quotes, where it is written as it reads.
    fn inside(&self, string: &Str) -> Span {
        inside(self.text, string.span, &string.value)
    }
}

/// The place of a string without its quotes, where it is written as it reads.
pub fn inside(text: &str, span: Span, value: &str) -> Span {
    let written = span.text(text);
    let within = written
        .strip_prefix(['"', '\''])
        .and_then(|rest| rest.strip_suffix(['"', '\'']));
    match within {
        Some(within) if within == value && !value.is_empty() => Span {
            start: span.start + 1,
            end: span.end - 1,
        },
        _ => span,
    }
}
