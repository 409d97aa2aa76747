//! The one shape of everything the toolchain tells an author about a text.
//!
//! Errors are enums in the phase that finds them; each phase turns its enum into this shape in one
//! place. Rendering (terminal, JSON, editor) reads only this.

use crate::span::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
}

/// Which of the texts given to one run a span belongs to; an index into the run's source list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u16);

/// A second place that belongs to the message, with what it has to do with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub source: SourceId,
    pub span: Span,
    pub text: String,
}

/// Replace the text under `span` by `text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub span: Span,
    pub text: String,
}

/// Edits of the primary source which, applied together, mend the problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What the fix does, as an editor would offer it: "rename to `shell:spawn`".
    pub title: String,
    pub edits: Vec<Edit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable kebab-case name: `unknown-action`. Documented, searchable, usable in `@allow("…")`.
    pub code: &'static str,
    pub severity: Severity,
    /// One sentence in the author's terms.
    pub message: String,
    pub source: SourceId,
    /// The smallest part of the text that is wrong.
    pub span: Span,
    /// Short text under the primary span; may be empty.
    pub label: String,
    pub labels: Vec<Label>,
    /// What to do about it.
    pub help: Option<String>,
    pub fix: Option<Fix>,
}

impl Diagnostic {
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            source: SourceId::default(),
            span,
            label: String::new(),
            labels: Vec::new(),
            help: None,
            fix: None,
        }
    }

    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, span, message)
        }
    }

    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Diagnostic {
        self.label = text.into();
        self
    }

    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.labels.push(Label {
            source: self.source,
            span,
            text: text.into(),
        });
        self
    }

    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help = Some(text.into());
        self
    }

    #[must_use]
    pub fn fix(
        mut self,
        title: impl Into<String>,
        span: Span,
        text: impl Into<String>,
    ) -> Diagnostic {
        self.fix = Some(Fix {
            title: title.into(),
            edits: vec![Edit {
                span,
                text: text.into(),
            }],
        });
        self
    }

    /// The same message about the text `source`, labels included.
    #[must_use]
    pub fn in_source(mut self, source: SourceId) -> Diagnostic {
        self.source = source;
        for label in &mut self.labels {
            label.source = source;
        }
        self
    }
}
