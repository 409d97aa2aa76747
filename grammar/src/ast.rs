//! The syntax tree of a policy file: what the author wrote, with the place of every part.
//!
//! ```text
//! PolicyFile ─ Item ─ Rule ─ Scope, Clause ─ Expr            (Cedar)
//!                    │                    └ Temporal ─ Cond ─ Matcher, Term, Aggregate
//!                    └ MacroDef
//! ```
//!
//! Broken input still gives a tree: what could not be read is an `Error` or `Broken` node, and the
//! parser's error list says why. Trees are at most [`MAX_DEPTH`] deep, so a recursive walk is safe.
//! Chains (`&&`, `||`, `+`, `*`) are flat lists and may be of any length.

use crate::span::Span;
use smol_str::SmolStr;

pub mod action_schema;
pub mod event_schema;
mod parts;

/// Greatest depth of an expression, condition or term; deeper input is a syntax error.
pub const MAX_DEPTH: u16 = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident {
    pub text: SmolStr,
    pub span: Span,
}

/// A string literal, escapes decoded. `span` covers the quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Str {
    pub value: SmolStr,
    pub span: Span,
}

/// A possibly qualified name: `A::B::C`. Never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub path: Vec<Ident>,
    pub span: Span,
}

/// `Ns::Type::"id"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntityRef {
    pub ty: Name,
    pub id: Str,
    pub span: Span,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyFile {
    pub items: Vec<Item>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Rule(Rule),
    Macro(MacroDef),
    /// Text that could not be read as a rule or a definition.
    Broken(Span),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    pub key: Ident,
    pub value: Option<Str>,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    Permit,
    Forbid,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub annotations: Vec<Annotation>,
    pub effect: Effect,
    pub effect_span: Span,
    pub scope: Scope,
    pub clauses: Vec<Clause>,
    pub span: Span,
}

/// The parenthesised head, in the author's order. At most one element for each variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    pub heads: Vec<Head>,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScopeVar {
    Principal,
    Action,
    Resource,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub var: ScopeVar,
    pub constraint: Constraint,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constraint {
    Any,
    Eq(HeadRef),
    In(HeadRef),
    /// `action in [a, b]`; only on `action`.
    InAny(Vec<EntityRef>),
    /// `principal is T` and `principal is T in e`.
    Is {
        ty: Name,
        within: Option<HeadRef>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadRef {
    Entity(EntityRef),
    /// `?principal`, `?resource`: readable, but there are no templates.
    Slot(Ident),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClauseKind {
    When,
    Unless,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    pub kind: ClauseKind,
    pub keyword: Span,
    /// Written `when guardrails { … }`; decoration without meaning.
    pub guardrails: bool,
    pub body: ClauseBody,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClauseBody {
    Expr(Expr),
    Temporal(Temporal),
}

// ---------------------------------------------------------------------------------- expressions

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
    /// 1 for a leaf, else one more than the deepest part.
    pub depth: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExprKind {
    Bool(bool),
    Long(i64),
    Str(SmolStr),
    Var(Var),
    Entity(EntityRef),
    /// `?name`: a macro parameter inside a macro body.
    Slot(Ident),
    Set(Vec<Expr>),
    Record(Vec<RecordField>),
    If {
        test: Box<Expr>,
        yes: Box<Expr>,
        no: Box<Expr>,
    },
    /// Two or more operands.
    Or(Vec<Expr>),
    /// Two or more operands.
    And(Vec<Expr>),
    Compare {
        op: CompareOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    In {
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// `e has a.b.c` or `e has "a b"` (one element).
    Has {
        target: Box<Expr>,
        path: Vec<Attr>,
    },
    Like {
        target: Box<Expr>,
        pattern: Pattern,
    },
    Is {
        target: Box<Expr>,
        ty: Name,
        within: Option<Box<Expr>>,
    },
    /// `a + b - c`: at least one further operand.
    Sum {
        first: Box<Expr>,
        rest: Vec<(SumOp, Expr)>,
    },
    /// `a * b * c`: two or more operands.
    Product(Vec<Expr>),
    Not(Box<Expr>),
    Neg(Box<Expr>),
    /// `e.name` or `e["name"]`.
    Attr {
        target: Box<Expr>,
        attr: Attr,
    },
    Method {
        target: Box<Expr>,
        name: Ident,
        args: Vec<Expr>,
    },
    /// `f(…)` (constructor or `def cedar` macro) and `Ns::f(…)` (information provider).
    Call {
        name: Name,
        args: Vec<Expr>,
    },
    Temporal(Box<Temporal>),
    /// Unreadable; an error was reported.
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Var {
    Principal,
    Action,
    Resource,
    Context,
}

/// An attribute name as used after `.`, in `has` and in `["…"]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attr {
    pub name: SmolStr,
    /// Written as a string literal.
    pub quoted: bool,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordField {
    pub key: Attr,
    pub value: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SumOp {
    Add,
    Sub,
}

/// The right side of `like`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub parts: Vec<PatternPart>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PatternPart {
    Text(SmolStr),
    /// An unescaped `*`.
    Any,
}

// ----------------------------------------------------------------------------- temporal language

/// `temporal { … }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Temporal {
    pub keyword: Span,
    pub body: Cond,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cond {
    pub kind: CondKind,
    pub span: Span,
    pub depth: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CondKind {
    /// Two or more conjuncts, left to right.
    And(Vec<Cond>),
    Since {
        left: Box<Cond>,
        window: Window,
        right: Box<Cond>,
    },
    Not(Box<Cond>),
    Formerly {
        window: Window,
        body: Box<Cond>,
    },
    Previous {
        window: Window,
        body: Box<Cond>,
    },
    Exists {
        binder: Binder,
        body: Box<Cond>,
    },
    Tp(VarRef),
    Compare {
        op: CompareOp,
        left: Term,
        right: Term,
    },
    Match(Matcher),
    Call(MacroCall),
    /// `?c` or `?c{ f: t }` in a macro body.
    Param {
        name: Ident,
        injected: Vec<FieldPattern>,
    },
    /// Unreadable; an error was reported.
    Error,
}

/// `Ns::Action::"id"::kind{ f: t, … }{ … }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher {
    pub event: EventName,
    /// The brace groups in order; all are one conjunction.
    pub groups: Vec<Vec<FieldPattern>>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventName {
    /// `Ns::Action`, never empty.
    pub ty: Name,
    pub action: Str,
    pub kind: Ident,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPattern {
    /// `input.path` as words; never empty.
    pub path: Vec<Ident>,
    pub term: Term,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    pub kind: WindowKind,
    /// The amount and unit, without `within`.
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowKind {
    Amount {
        amount: u64,
        unit: Unit,
    },
    /// `within ?w` in a macro body.
    Param(Ident),
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    Second,
    Minute,
    Hour,
    Day,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binder {
    pub var: VarRef,
    pub ty: Name,
    pub span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sigil {
    Plain,
    /// `?x`, a macro parameter.
    Param,
    /// `$x`, fresh for each expansion.
    Fresh,
}

/// A variable of the temporal language. `span` covers the sigil.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VarRef {
    pub sigil: Sigil,
    pub name: SmolStr,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    pub kind: TermKind,
    pub span: Span,
    pub depth: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermKind {
    Int(i64),
    Str(SmolStr),
    Bool(bool),
    /// `decimal("1.5")`.
    Decimal(Str),
    Entity(EntityRef),
    Array(Vec<Term>),
    /// `context.a.b`; at least one word.
    Context(Vec<Ident>),
    /// `principal`, `resource.a.b`.
    Scope {
        root: ScopeRoot,
        path: Vec<Ident>,
    },
    /// `*` or `_`.
    Wildcard,
    Var(VarRef),
    Aggregate(Box<Aggregate>),
    /// `a + b - c`; experimental.
    Sum {
        first: Box<Term>,
        rest: Vec<(SumOp, Term)>,
    },
    /// `a * b`; experimental.
    Product(Vec<Term>),
    Call(MacroCall),
    /// Unreadable; an error was reported.
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScopeRoot {
    Principal,
    Resource,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregate {
    pub op: AggregateOp,
    pub binders: Vec<Binder>,
    pub body: Cond,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AggregateOp {
    Count,
    Sum(VarRef),
}

// ----------------------------------------------------------------------------------------- macros

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MacroKind {
    Cedar,
    Temporal,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MacroDef {
    pub kind: MacroKind,
    pub name: Ident,
    /// Without their `?`; spans cover it.
    pub params: Vec<Ident>,
    pub body: MacroBody,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MacroBody {
    Expr(Expr),
    Cond(Cond),
    /// An aggregate, or arithmetic over aggregates.
    Value(Term),
    Broken,
}

/// `name(arg, …)` inside a temporal block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MacroCall {
    pub name: Ident,
    pub args: Vec<CallArg>,
    pub span: Span,
}

/// An argument by its shape. A bare word or a call may stand for a condition or a term; both are
/// read as terms, and expansion looks at how the parameter is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallArg {
    Window(Window),
    Cond(Cond),
    Term(Term),
}

impl Name {
    /// `A::B::C`.
    pub fn text(&self) -> SmolStr {
        let words: Vec<&str> = self.path.iter().map(|word| word.text.as_str()).collect();
        SmolStr::new(words.join("::"))
    }
}

impl Scope {
    pub fn head(&self, var: ScopeVar) -> Option<&Head> {
        self.heads.iter().find(|head| head.var == var)
    }
}

impl Rule {
    /// The value of the last annotation of that name; the empty string where it has none.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        let found = self
            .annotations
            .iter()
            .rev()
            .find(|note| note.key.text == key)?;
        Some(
            found
                .value
                .as_ref()
                .map_or("", |value| value.value.as_str()),
        )
    }
}

impl Matcher {
    /// The field patterns of all groups, in order.
    pub fn fields(&self) -> impl Iterator<Item = &FieldPattern> {
        self.groups.iter().flatten()
    }
}

impl Unit {
    pub fn seconds(self) -> i64 {
        match self {
            Unit::Second => 1,
            Unit::Minute => 60,
            Unit::Hour => 3600,
            Unit::Day => 86_400,
        }
    }

    pub fn letter(self) -> char {
        match self {
            Unit::Second => 's',
            Unit::Minute => 'm',
            Unit::Hour => 'h',
            Unit::Day => 'd',
        }
    }
}

impl Window {
    /// The length in seconds; nothing for a macro parameter or where it does not fit an `i64`.
    pub fn seconds(&self) -> Option<i64> {
        match self.kind {
            WindowKind::Amount { amount, unit } => {
                i64::try_from(amount).ok()?.checked_mul(unit.seconds())
            }
            WindowKind::Param(_) | WindowKind::Error => None,
        }
    }
}
