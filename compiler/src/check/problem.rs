//! What a check can find, and how it is said.

mod legality;
mod names;
mod never;
mod providers;
mod types;

use dogwood_grammar::Span;
use dogwood_grammar::diagnostic::Diagnostic;
use smol_str::SmolStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub span: Span,
    pub problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    // Legality of temporal blocks.
    ReservedBinder {
        name: SmolStr,
    },
    Misplaced {
        what: &'static str,
    },
    /// Of `exists`, or of the `for` list of an aggregate.
    NotRestricted {
        name: SmolStr,
        list: bool,
    },
    UnusedBinder {
        name: SmolStr,
        list: bool,
        /// What to take out of a list of several.
        cut: Option<Span>,
    },
    SummandNotListed {
        name: SmolStr,
        /// The first of the list.
        first: Option<Span>,
    },
    FreeVariable {
        name: SmolStr,
        nearest: Option<SmolStr>,
        ty: SmolStr,
        wrap: Option<Span>,
    },
    TooEarly {
        name: SmolStr,
        early: Early,
        later: Option<Span>,
        /// The conjunct, the next one, and the one after which it would be in order.
        reordered: Option<(Span, Span, Span)>,
    },
    ArithmeticOff,
    ArithmeticExperimental,

    // Names.
    UnknownAction {
        name: SmolStr,
        nearest: Option<SmolStr>,
        known: Vec<SmolStr>,
    },
    UnknownActionType {
        name: SmolStr,
        nearest: Option<SmolStr>,
    },
    ActionElsewhere {
        name: SmolStr,
        written: SmolStr,
        home: SmolStr,
    },
    GroupAction {
        name: SmolStr,
        /// The whole `action == …`.
        head: Span,
    },
    UnknownEntityType {
        name: SmolStr,
        nearest: Option<SmolStr>,
    },
    UnknownChoice {
        ty: SmolStr,
        name: SmolStr,
        nearest: Option<SmolStr>,
        choices: Vec<SmolStr>,
    },
    UnknownKind {
        name: SmolStr,
        nearest: Option<SmolStr>,
        known: Vec<SmolStr>,
    },
    UnknownField {
        name: SmolStr,
        /// The group it was looked for in; empty for the event itself.
        group: SmolStr,
        event: String,
        nearest: Option<SmolStr>,
        known: Vec<SmolStr>,
    },
    FieldElsewhere {
        name: SmolStr,
        event: String,
        home: SmolStr,
    },
    FieldGroup {
        name: SmolStr,
        known: Vec<SmolStr>,
    },
    FieldHasNoParts {
        name: SmolStr,
    },
    UnknownBinderType {
        name: SmolStr,
        nearest: Option<SmolStr>,
    },
    UnknownAttr {
        of: SmolStr,
        name: SmolStr,
        nearest: Option<SmolStr>,
        known: Vec<SmolStr>,
        action: Option<SmolStr>,
    },
    NotRecord {
        of: SmolStr,
        found: SmolStr,
    },
    AttrNotEverywhere {
        name: SmolStr,
        root: &'static str,
        missing: SmolStr,
        others: Vec<SmolStr>,
    },
    AttrTypesDiffer {
        left: SmolStr,
        right: SmolStr,
    },
    UnknownMethod {
        name: SmolStr,
        nearest: Option<SmolStr>,
    },
    Template {
        name: SmolStr,
    },

    DuplicateAnnotation {
        name: SmolStr,
        first: Span,
    },

    // Windows and time.
    ZeroWindow,
    LongWindow {
        max: i64,
    },
    NotTemporal,

    // Types of temporal blocks.
    FieldType {
        field: SmolStr,
        wanted: SmolStr,
        found: SmolStr,
        /// The literal that was probably meant.
        replacement: Option<String>,
    },
    NeverComparable {
        left: SmolStr,
        right: SmolStr,
    },
    NotOrdered {
        found: SmolStr,
    },
    NotNumber {
        found: SmolStr,
    },
    NotTimepoint {
        name: SmolStr,
        found: SmolStr,
    },
    SummandType {
        name: SmolStr,
        found: SmolStr,
    },

    // Types of conditions.
    Expected {
        wanted: &'static str,
        found: SmolStr,
    },
    /// A literal of another type than what it is compared with, and perhaps the right literal.
    WrongLiteral {
        other: SmolStr,
        found: SmolStr,
        replacement: Option<String>,
    },
    Incompatible {
        what: &'static str,
        left: SmolStr,
        right: SmolStr,
    },
    MixedSet {
        first: SmolStr,
        found: SmolStr,
    },
    EmptySet,
    OptionalAttr {
        name: SmolStr,
        /// The test that is missing, and the condition in front of which it can stand.
        guard: Option<String>,
        condition: Span,
    },
    /// Of what a provider gives; each call is another value, so no test helps.
    OptionalAnswer {
        name: SmolStr,
    },
    UnguardedTag {
        guard: Option<String>,
        condition: Span,
    },
    NoTags {
        of: SmolStr,
    },
    NotLiteral {
        function: &'static str,
    },
    BadLiteral {
        function: &'static str,
        text: SmolStr,
    },

    // Information providers.
    UnknownProvider {
        name: SmolStr,
        nearest: Option<SmolStr>,
        /// There are providers.
        any: bool,
    },
    /// Of a provider or of one of its methods.
    ProviderArity {
        of: SmolStr,
        wanted: usize,
        found: usize,
    },
    /// Neither a path nor a literal nor a set of these.
    ProviderArgument,
    ProviderLiteral {
        wanted: SmolStr,
        found: SmolStr,
    },
    ProviderPathMissing {
        path: SmolStr,
        of: SmolStr,
    },
    ProviderPathType {
        path: SmolStr,
        wanted: SmolStr,
        found: SmolStr,
    },
    UnknownProviderMethod {
        name: SmolStr,
        provider: SmolStr,
        nearest: Option<SmolStr>,
        known: Vec<SmolStr>,
    },
    /// Hidden by a method of the language.
    ShadowedMethod {
        name: SmolStr,
        provider: SmolStr,
    },
    MethodInput {
        name: SmolStr,
        wanted: SmolStr,
        found: SmolStr,
    },

    // What can never hold.
    ImpossibleScope {
        first: Option<(SmolStr, Vec<SmolStr>, Vec<SmolStr>)>,
    },
    NeverApplies,
    HasNever {
        of: SmolStr,
        name: SmolStr,
        nearest: Option<SmolStr>,
    },
    NeverIs {
        wanted: SmolStr,
    },
    NeverTagged {
        of: SmolStr,
    },
    NeverEqual {
        left: SmolStr,
        right: SmolStr,
    },
    NeverIn {
        left: SmolStr,
        right: SmolStr,
    },
}

/// What reads a variable too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Early {
    Filter,
    Value,
    Negation,
    SinceLeft,
}

impl Finding {
    /// The message; `source` is the text the span belongs to.
    pub fn diagnostic(&self, source: &str) -> Diagnostic {
        match &self.problem {
            Problem::ReservedBinder { .. }
            | Problem::Misplaced { .. }
            | Problem::NotRestricted { .. }
            | Problem::UnusedBinder { .. }
            | Problem::SummandNotListed { .. }
            | Problem::FreeVariable { .. }
            | Problem::TooEarly { .. }
            | Problem::ArithmeticOff
            | Problem::ArithmeticExperimental => self.legality(source),
            Problem::ZeroWindow
            | Problem::LongWindow { .. }
            | Problem::NotTemporal
            | Problem::FieldType { .. }
            | Problem::NeverComparable { .. }
            | Problem::NotOrdered { .. }
            | Problem::NotNumber { .. }
            | Problem::NotTimepoint { .. }
            | Problem::SummandType { .. } => self.leaf(),
            Problem::Expected { .. }
            | Problem::WrongLiteral { .. }
            | Problem::Incompatible { .. }
            | Problem::MixedSet { .. }
            | Problem::EmptySet
            | Problem::OptionalAttr { .. }
            | Problem::OptionalAnswer { .. }
            | Problem::UnguardedTag { .. }
            | Problem::NoTags { .. }
            | Problem::NotLiteral { .. }
            | Problem::BadLiteral { .. } => self.guard(),
            Problem::UnknownProvider { .. }
            | Problem::ProviderArity { .. }
            | Problem::ProviderArgument
            | Problem::ProviderLiteral { .. }
            | Problem::ProviderPathMissing { .. }
            | Problem::ProviderPathType { .. }
            | Problem::UnknownProviderMethod { .. }
            | Problem::ShadowedMethod { .. }
            | Problem::MethodInput { .. } => self.provider(),
            Problem::ImpossibleScope { .. }
            | Problem::NeverApplies
            | Problem::HasNever { .. }
            | Problem::NeverIs { .. }
            | Problem::NeverTagged { .. }
            | Problem::NeverEqual { .. }
            | Problem::NeverIn { .. } => self.never(),
            _ => self.name(source),
        }
    }

    fn error(&self, code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, self.span, message)
    }

    fn wrong_type(&self, text: String, wanted: &str, replacement: Option<&str>) -> Diagnostic {
        let found = self
            .error("type-mismatch", text)
            .label(format!("expected {wanted}"));
        match replacement {
            Some(text) => found.fix(format!("change to `{text}`"), self.span, text),
            None => found,
        }
    }

    fn propose(
        &self,
        found: Diagnostic,
        nearest: Option<String>,
        otherwise: impl FnOnce() -> Option<String>,
    ) -> Diagnostic {
        match nearest {
            Some(near) => found
                .help(format!("did you mean `{}`?", near.trim_matches('"')))
                .fix(
                    format!("change to `{}`", near.trim_matches('"')),
                    self.span,
                    near,
                ),
            None => Diagnostic {
                help: otherwise(),
                ..found
            },
        }
    }
}

fn before(span: Span) -> Span {
    Span {
        start: span.start,
        end: span.start,
    }
}
