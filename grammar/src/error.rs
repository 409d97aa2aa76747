//! Syntax errors: why a text is wrong, and the one place of what we tell the author about it.

use crate::span::Span;
use smol_str::SmolStr;

mod message;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    pub kind: SyntaxErrorKind,
    /// The smallest part of the text that is wrong.
    pub span: Span,
}

/// Why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyntaxErrorKind {
    // Tokens.
    OpenString,
    ForeignCharacter,
    InvalidEscape,
    /// `\*` outside a `like` pattern.
    StarEscape,
    IntegerRange,
    // Shape.
    Unexpected {
        expected: Vec<Expected>,
    },
    /// The text or the rule ends; the span is empty.
    UnexpectedEnd {
        expected: Vec<Expected>,
    },
    /// A bracket without its partner.
    Unclosed,
    TooDeep,
    MissingSemicolon,
    StraySemicolon,
    /// Where the grammar has no trailing comma.
    TrailingComma,
    /// Two things with one name where each name may stand once.
    Duplicate {
        what: &'static str,
        name: SmolStr,
        first: Span,
    },
    // Rules.
    UnknownEffect,
    ScopeVariable {
        name: SmolStr,
    },
    /// `principal : T`.
    ScopeColon,
    /// Neither `==` nor `in` nor `is`.
    ScopeOperator,
    ActionIs,
    ActionSlot,
    ScopeSlot {
        variable: &'static str,
    },
    /// Not an entity literal.
    ScopeNotEntity {
        action: bool,
    },
    /// `principal in [a, b]`, `action == [a]`.
    ScopeList,
    /// `{ … }` or `temporal { … }` without `when` or `unless`.
    MissingClauseWord,
    UnknownClauseWord {
        word: SmolStr,
    },
    // Expressions.
    AssignForEq,
    UnsupportedOperator {
        operator: char,
    },
    UnknownVariable {
        name: SmolStr,
    },
    IndexNotString,
    CallOfNonName,
    Arity {
        name: SmolStr,
        expected: usize,
        found: usize,
        method: bool,
    },
    EntityRecord,
    MixedUnary,
    PatternNotLiteral,
    /// `1.5`.
    Fraction,
    /// `and`, `or`, `not` in a place for `&&`, `||`, `!`.
    WordOperator {
        operator: &'static str,
    },
    /// A relation after `has`, `like` or `is`.
    LooseRelation,
    // Temporal blocks.
    OrInTemporal,
    LetInTemporal,
    /// `in`, `has`, `like`, `is`.
    NotInTemporal {
        word: &'static str,
    },
    ChainedSince,
    /// `exists x: T. …`.
    BinderParens,
    /// Behind the variables of `exists` and `for`.
    MissingDot,
    MissingWindow {
        operator: &'static str,
    },
    MissingUnit,
    BadUnit,
    MissingKind,
    MissingBraces,
    /// The operand of `formerly` and the like must be one atom or parenthesised.
    NeedsParens {
        operator: &'static str,
    },
    ChainedCompare,
    /// A condition where a value must stand.
    NotATerm,
    /// A value where a condition must stand.
    NotACondition,
    ArrayTerm,
    /// `context` alone.
    ContextAlone,
    /// `x.a` where `x` is none of `context`, `principal`, `resource`.
    PathRoot {
        name: SmolStr,
    },
    ReservedCall {
        name: SmolStr,
    },
    DecimalArgument,
    // Schemas.
    ZeroMaxWindow,
    /// Longer than can be counted.
    WindowRange,
    /// Nothing but blanks.
    BlankSchema,
    /// `max_window` that is not the first thing of the file.
    LateMaxWindow,
    PinOnGroup,
    PinWithoutValue,
    ValueWithoutPin {
        /// Its name.
        field: Span,
    },
    SelectorArgument {
        binder: SmolStr,
    },
    PinRoot,
    TypeArgument {
        name: SmolStr,
    },
    /// Neither `principal` nor `resource` nor `context`.
    AppliesToKey {
        name: SmolStr,
    },
    /// `principal: { … }`.
    AppliesToTypes {
        key: SmolStr,
    },
    /// `context: [ … ]` or `context: Set<T>`.
    AppliesToContext,
    NestedNamespace,
    UnknownDeclaration {
        event_schema: bool,
    },
    StrayBrace,
}

/// What could have stood at the place of an unexpected token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Expected {
    Expression,
    Condition,
    Value,
    Operator,
    Word,
    String,
    Number,
    Parameter,
    /// This very text.
    Text(&'static str),
}
